"""Every method that works on blocks of rows: the optimum of the serial one, same bits for any
number of threads."""

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.data.blocks import BlockMatrix
from adacoord.parallel.choice import in_blocks
from adacoord.parallel.executors import Serial, Threads

BOUNDS = np.array([0, 40, 41, 150, 300, 400])
CASES = [
    ("squared", {"l2": 1e-2}, ["newton", "newton-cg", "lbfgs", "dcd"]),
    ("logistic", {"l2": 1e-2}, ["newton", "newton-cg", "lbfgs", "dcd", "acf"]),
    ("poisson", {"l2": 1e-2}, ["newton", "newton-cg"]),
    ("hinge", {"l2": 1e-2}, ["newton", "dcd"]),
    ("smooth_hinge", {"l2": 1e-2}, ["newton", "dcd"]),
    ("epsilon_insensitive", {"l2": 1e-2}, ["newton"]),
    ("squared", {"l1": 1e-2}, ["acf"]),
    ("squared", {"l1": 1e-2, "l2": 1e-2}, ["acf", "dcd"]),
    ("logistic", {"l1": 5e-3}, ["acf"]),
    ("squared_hinge", {"l1": 5e-3, "l2": 1e-3}, ["acf"]),
    ("huber", {"l1": 5e-3}, ["acf"]),
    ("squared", {"l1": 1e-2, "positive": True}, ["acf"]),
    ("squared", {"l2": 1e-2, "positive": True}, ["acf"]),
    ("poisson", {"l2": 1e-2, "positive": True}, ["acf"]),
    ("multinomial", {"l2": 1e-2}, ["newton-cg"]),
]


def problem(loss, penalty, sparse_data=False, intercept=True, weights=True, d=12):
    rng = np.random.default_rng(7)
    A = rng.standard_normal((400, d)) + rng.standard_normal(d)
    if sparse_data:
        A *= rng.random(A.shape) < 0.2
    z = A @ (rng.standard_normal(d) * (rng.random(d) < 0.6)) + rng.standard_normal(400)
    task = ac.losses.get_loss(loss).task
    b = {
        "classification": np.where(z > np.median(z), 1.0, -1.0),
        "count": rng.poisson(np.exp(np.clip(z / 4, -3, 3))).astype(float),
        "positive": np.exp(np.clip(z / 4, -3, 3)),
        "multiclass": rng.integers(0, 3, 400).astype(float),
    }.get(task, z)
    w = rng.random(400) * (rng.random(400) < 0.9) if weights else None
    return ac.Problem(
        sparse.csr_matrix(A) if sparse_data else A,
        b,
        loss,
        intercept=intercept,
        sample_weight=w,
        **penalty,
    )


def cut(whole, executor):
    out = in_blocks(whole, executor)
    out.matrix = BlockMatrix.of(whole.matrix, executor, BOUNDS)
    return out


@pytest.mark.parametrize("sparse_data", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize(
    ("loss", "penalty", "solver"),
    [(loss, penalty, solver) for loss, penalty, solvers in CASES for solver in solvers],
)
def test_the_optimum_and_the_same_bits(loss, penalty, solver, sparse_data, intercept):
    whole = problem(loss, penalty, sparse_data, intercept)
    want = ac.solve(whole, tol=1e-9)
    tol = 1e-5 if (loss, solver) == ("hinge", "dcd") else 1e-7  # which crawls, in blocks or not
    results = []
    for executor in (Serial(), Threads(2), Threads(4)):
        results.append(ac.solve(cut(whole, executor), solver, tol=tol, max_passes=4000))
        executor.close()
    first = results[0]
    assert first.solver == solver
    assert first.converged
    assert abs(first.primal - want.primal) <= 2 * tol * abs(want.primal)
    for other in results[1:]:
        assert np.array_equal(first.x, other.x)
        assert np.array_equal(first.y, other.y)
        assert first.history.gap.tolist() == other.history.gap.tolist()


@pytest.mark.parametrize(
    ("loss", "penalty", "solver"),
    [(loss, penalty, solver) for loss, penalty, solvers in CASES for solver in solvers],
)
def test_a_state_goes_on_with_the_same_bits(loss, penalty, solver):
    """Stops after two passes, and goes on in a new solver; and passes one by one or together."""
    from adacoord.solvers.registry import admit

    parts = cut(problem(loss, penalty), Serial())

    def make():
        rng = np.random.Generator(np.random.PCG64(3))
        return admit(parts, solver, {}).load()(parts, rng, None)

    with np.errstate(all="ignore"):
        straight, broken, again = make(), make(), make()
        straight.advance(4)
        broken.advance(2)
        again.restore(broken.state())
        again.advance(1)
        again.advance(1)
    assert np.array_equal(straight.x, again.x)
    assert np.array_equal(straight.y, again.y)
    assert np.array_equal(straight.intercept, again.intercept)
    assert straight.passes == again.passes


def test_auto_takes_a_method_for_blocks():
    for loss, penalty, _ in CASES:
        result = ac.solve(cut(problem(loss, penalty), Serial()), tol=1e-6, max_passes=4000)
        assert result.converged, (loss, penalty, result)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_unpenalised_and_wide(loss):
    """More columns than rows: the system is that of the columns all the same."""
    whole = problem(loss, {"l2": 1e-1}, d=450)
    parts = cut(whole, Serial())
    for solver in ("newton",) if loss == "hinge" else ("newton", "newton-cg"):
        result = ac.solve(parts, solver, tol=1e-8)
        assert result.converged
        assert result.primal == pytest.approx(ac.solve(whole, tol=1e-9).primal, rel=1e-7)


def test_n_jobs_of_solve_and_estimators():
    """Large enough to be cut: the same bits for 1, 2 and 4, and the serial optimum."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12_000, 50))
    b = np.where(A @ rng.standard_normal(50) + rng.standard_normal(12_000) > 0, 1, -1)
    whole = ac.Problem(A, b, "logistic", l2=1e-4, intercept=True)
    results = [ac.solve(whole, tol=1e-8, n_jobs=n) for n in (1, 2, 4)]
    assert all(np.array_equal(results[0].x, r.x) for r in results)
    serial = ac.solve(whole, tol=1e-8)
    assert results[0].primal == pytest.approx(serial.primal, rel=1e-8)
    fits = [ac.LogisticRegression(n_jobs=n).fit(A, b) for n in (1, 2, None)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert np.allclose(fits[0].coef_, fits[2].coef_, atol=1e-3)


def test_small_data_stay_serial():
    whole = problem("logistic", {"l2": 1e-2})
    assert np.array_equal(ac.solve(whole).x, ac.solve(whole, n_jobs=2).x)


@pytest.mark.parametrize(
    ("loss", "penalty", "dense", "shared"),
    [
        ("squared", {"l2": 1e-3}, True, True),
        ("logistic", {"l2": 1e-3}, True, True),
        ("squared", {"l1": 1e-2}, True, True),
        ("logistic", {"l2": 1e-3}, False, True),
        ("squared", {"l1": 1e-2}, False, False),
        ("hinge", {"l2": 1e-3}, False, False),
    ],
)
def test_what_auto_shares_out(loss, penalty, dense, shared):
    """By the data, whatever the number of threads; rounds and sparse sets only by name."""
    from adacoord.api.solve import shared_out

    rng = np.random.default_rng(0)
    A = rng.standard_normal((20_000, 40))
    A = A if dense else sparse.csr_matrix(A * (rng.random(A.shape) < 0.9))
    b = np.where(rng.random(20_000) < 0.5, 1.0, -1.0)
    posed = ac.Problem(A, b, loss, intercept=True, **penalty)
    with shared_out(posed, "auto", {}, 1, None) as made:
        assert made.matrix.blocked == shared
