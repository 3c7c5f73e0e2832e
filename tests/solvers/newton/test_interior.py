"""The interior point for kinks: the optima of HiGHS and Clarabel, and the judge's certificate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.solvers.newton import interior, interior_systems, size
from adacoord.solvers.newton.interior_systems import ByColumns, ByRows
from adacoord.solvers.newton.program import solve_program
from adacoord.solvers.registry import SOLVERS

LOSSES = ("hinge", "absolute", ac.losses.Quantile(0.8))


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    """Data that tests can afford, by the method for those that are not small."""
    for module in (size, "adacoord.solvers.registry", "adacoord.auto.rule"):
        target = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{target}.small", lambda problem: False)


def pose(loss, n=300, d=8, storage="dense", intercept=True, weighted=False, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7) * np.geomspace(1, 30, d)
    z = A @ (rng.standard_normal(d) * (rng.random(d) < 0.6)) + rng.standard_t(2, n) + 4.0
    b = np.where(z > np.median(z), 1.0, -1.0) if loss == "hinge" else z
    w = rng.integers(0, 3, n) * 1.0 if weighted else None
    X = sparse.csr_matrix(A) if storage == "csr" else A
    problem = ac.Problem(X, b, loss, l1=1.0, intercept=intercept, sample_weight=w)
    return problem.with_penalty(l1=share * problem.l1_max())


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.5, 1e-3])
def test_the_vertex_of_highs(loss, storage, intercept, weighted, share):
    problem = pose(loss, 300, 8, storage, intercept, weighted, share)
    result = ac.solve(problem, "newton", tol=1e-9, max_passes=100)
    assert SOLVERS["newton"].variant(problem).cls == "InteriorPoint"
    x, c, _ = solve_program(problem)
    best = problem.primal(x, c)
    assert result.converged
    assert result.dual <= best + 1e-12 * abs(best)
    assert result.primal == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("share", [2.0, 0.05])
def test_more_columns_than_rows(loss, share):
    problem = pose(loss, 40, 120, share=share)
    result = ac.solve(problem, "newton", tol=1e-8, max_passes=100)
    assert result.converged
    if share > 1.0:
        np.testing.assert_allclose(result.x, 0.0, atol=1e-6)


FURTHER = (
    {"l1": 0.02, "l2": 0.05},
    {"l1": 0.02, "positive": True},
    {"l2": 0.05, "positive": True},
    {"l2": 0.01, "lower": -0.1, "upper": 0.25},
    {"l1": 0.02, "lower": [-0.1] * 3 + [-np.inf] * 5, "upper": [np.inf, 0.0] * 4},
    {},
)


@pytest.mark.parametrize("loss", (*LOSSES, ac.losses.EpsilonInsensitive(0.3)), ids=str)
@pytest.mark.parametrize("penalty", FURTHER, ids=str)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.filterwarnings("ignore:.* all of it rounding")  # of rows that are all met
def test_the_optimum_of_clarabel(loss, penalty, wide):
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(2)
    n, d = (6, 8) if wide else (90, 8)
    A = rng.standard_normal((n, d))
    b = A @ rng.standard_normal(d) + rng.standard_normal(n)
    b = np.where(b > 0.0, 1.0, -1.0) if loss == "hinge" else b
    problem = ac.Problem(A, b, loss, intercept=True, **penalty)
    assert SOLVERS["newton"].variant(problem).cls == "InteriorPoint"
    result = ac.solve(problem, "newton", tol=1e-8, max_passes=100)
    x, c = cvxpy.Variable(d), cvxpy.Variable()
    z = A @ x + c
    epsilon = problem.loss.constants[1]
    low, high = (end[0] for end in problem._domain) if loss != "hinge" else (0.0, 1.0)
    r = cvxpy.multiply(-b, z) + 1.0 if loss == "hinge" else z - b
    losses = cvxpy.maximum(high * (r - epsilon), low * (r + epsilon), 0.0)
    l1, l2, lower, upper = problem.penalty.by_column(d)
    value = cvxpy.sum(losses) / n + l1 @ cvxpy.abs(x) + 0.5 * l2 @ cvxpy.square(x)
    held = [x[j] >= lower[j] for j in range(d) if np.isfinite(lower[j])]
    held += [x[j] <= upper[j] for j in range(d) if np.isfinite(upper[j])]
    best = cvxpy.Problem(cvxpy.Minimize(value), held).solve(solver="CLARABEL")
    assert result.primal == pytest.approx(best, abs=1e-6 * problem.primal(np.zeros(d)))
    assert result.dual <= best + 1e-7 * abs(best) + 1e-9
    assert result.converged or best < 1e-7


def test_weights_of_twelve_decades():
    """Where all multipliers began with the same size it was stuck after four iterations."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 8))
    b = A @ np.ones(8) + rng.standard_normal(60)
    problem = ac.Problem(A, b, "absolute", l1=0.1, sample_weight=10.0 ** rng.uniform(-6, 6, 60))
    result = ac.solve(problem, "newton", tol=1e-8, max_passes=60)
    assert result.converged and result.history.switched is None


def test_a_run_is_the_same_in_pieces():
    problem = pose("absolute")
    rng = np.random.Generator(np.random.PCG64(0))
    whole, parts, other = (interior.InteriorPoint(problem, rng) for _ in range(3))
    whole.advance(7)
    parts.advance(3)
    other.restore(parts.state())
    other.advance(4)
    for name in ("x", "y", "intercept", "estimate"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))


def test_what_it_says_of_its_gap_is_what_the_judge_finds():
    problem = pose("absolute", 500, 5)
    solver = interior.InteriorPoint(problem, np.random.Generator(np.random.PCG64(0)))
    seen = []
    for _ in range(25):
        with np.errstate(all="ignore"):  # as the monitor runs it
            solver.advance(1)
        if solver.estimate < 1e-2:
            primal, bound = problem.judge(solver.x, solver.y, solver.intercept)
            seen.append((solver.estimate, problem.relative_gap(primal, bound)))
    estimates, gaps = np.array(seen).T
    assert gaps.min() < 1e-9
    late = gaps > 1e-11  # above rounding
    np.testing.assert_allclose(estimates[late], gaps[late], rtol=0.5)


def test_kinks_and_more_than_an_l2():
    A, b = np.random.default_rng(0).standard_normal((50, 3)), np.arange(50.0)
    for loss, penalty, taken in (
        ("epsilon_insensitive", {"l1": 0.1}, True),
        ("absolute", {"l1": 0.1, "l2": 0.1}, True),
        ("absolute", {"l1": 0.1, "positive": True}, True),
        ("absolute", {"l2": np.array([0.0, 0.1, 0.2])}, True),
        ("absolute", {}, True),
        ("absolute", {"upper": 1.0}, True),
        ("absolute", {"lower": np.zeros(3), "upper": np.array([0.0, 1.0, 1.0])}, False),
        ("absolute", {"l2": 0.1}, False),
        ("huber", {"l1": 0.1}, True),
        ("huber", {"l2": 0.1}, False),
        ("squared_epsilon_insensitive", {"l1": 0.1}, False),
    ):
        problem = ac.Problem(A, b, loss, **penalty)
        assert (SOLVERS["newton"].variant(problem).cls == "InteriorPoint") == taken


def test_blocks_of_rows():
    problem = pose("absolute", 400, 5)
    A, b = problem.matrix.dense, problem.b
    blocks = [(A[i : i + 100], b[i : i + 100]) for i in range(0, 400, 100)]
    other = ac.Problem(blocks, loss="absolute", l1=problem.penalty.l1, intercept=True)
    one, two = (ac.solve(p, tol=1e-8) for p in (problem, other))
    assert one.solver == two.solver == "newton" and two.converged
    assert two.primal == pytest.approx(one.primal, rel=1e-8)


def test_auto_goes_on_where_it_is_stuck(monkeypatch):
    problem = pose("absolute", 60, 3, share=0.3)
    best = ac.solve(problem, "newton", tol=1e-9)
    monkeypatch.setattr(interior, "IDLE", 0)  # stuck at once
    result = ac.solve(problem, tol=1e-3, max_passes=20_000)
    assert result.history.switched.after == "apdc"
    assert result.converged and result.dual <= best.primal <= result.primal + 1e-12


def test_targets_in_any_unit():
    for unit in (1e-8, 1e8):
        problem = pose("absolute", 300, 4, share=0.2)
        scaled = ac.Problem(
            problem.matrix, unit * problem.b, "absolute", l1=problem.penalty.l1, intercept=True
        )
        assert ac.solve(scaled, "newton", tol=1e-8, max_passes=60).converged


@pytest.mark.parametrize("system", [ByColumns, ByRows])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
def test_directions_solve_their_equations(system, storage, intercept, shape, monkeypatch):
    monkeypatch.setattr(interior_systems, "BLOCK", 1)
    monkeypatch.setattr(interior_systems, "NARROW", 7)  # columns of a block
    problem = pose("absolute", *shape, storage, intercept)
    (n, d), rng = shape, np.random.default_rng(1)
    A = problem.matrix.dense
    B = np.block([[A, np.ones((n, 1))], [np.eye(d), np.zeros((d, 1))]])
    if not intercept:
        B = B[:, :-1]
    q, xi, back = rng.exponential(1.0, n + d), rng.standard_normal(n + d), rng.standard_normal(d)
    q[0] = 0.0  # a row without a weight
    total = 0.7 if intercept else 0.0
    made = system(problem)
    made.factorise(q)
    for refine in (False, True):
        dx, dc, dv = made.direction(xi, (back, total), refine)
        point = np.append(dx, dc) if intercept else dx
        np.testing.assert_allclose(dv, q * (B @ point - xi), atol=1e-10)
        np.testing.assert_allclose(B.T @ dv, -np.append(back, total)[: B.shape[1]], atol=1e-10)


BENT = (ac.losses.SmoothHinge(1e-3), ac.losses.Huber(1e-3), ac.losses.Huber(0.5))


@pytest.mark.parametrize("loss", BENT, ids=str)
@pytest.mark.parametrize("shape", [(120, 9), (30, 80)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("further", [{}, {"l2": 0.05}, {"positive": True}])
def test_bends_however_narrow(loss, shape, weighted, further):
    posed = pose("hinge" if "Hinge" in str(loss) else "absolute", *shape, weighted=weighted)
    problem = ac.Problem(
        posed.matrix, posed.b, loss, 0.3 * posed.penalty.l1,
        intercept=True, sample_weight=posed.weights, **further,
    )  # fmt: skip
    assert SOLVERS["newton"].variant(problem).cls == "InteriorPoint"
    result = ac.solve(problem, "newton", tol=1e-9, max_passes=40)
    assert result.converged and result.history.switched is None
    # the slopes at the point found are a dual point of their own, which closes most of the gap
    other = ac.certify(problem, result.x, result.intercept, effort=0)
    assert other.dual <= result.primal
    # without an l2, and where no bend is left, the vertex of HiGHS is as good as that costs
    if "Huber" in str(loss) and loss.delta < 0.01 and further != {"l2": 0.05}:
        kinks = ac.Problem(
            posed.matrix, posed.b, "absolute", 0.3 * posed.penalty.l1 / loss.delta,
            intercept=True, sample_weight=posed.weights, **further,
        )  # fmt: skip
        x, c, _ = solve_program(kinks)
        assert result.primal <= problem.primal(x, c) <= result.primal + loss.delta**2


@pytest.mark.parametrize("loss", BENT[:2], ids=str)
@pytest.mark.parametrize("shape", [(300, 900), (900, 60)])
def test_descent_that_crawls_is_left_to_it(loss, shape):
    """Descent on columns was at gaps of .3 to 1 after 1,000 passes."""
    rng = np.random.default_rng(sum(shape))
    A = rng.standard_normal(shape)
    b = A @ rng.standard_normal(shape[1]) / shape[1] ** 0.5 + 0.5 * rng.standard_normal(shape[0])
    b = np.sign(b) if "Hinge" in str(loss) else b
    problem = ac.Problem(A, b, loss, l1=1.0, intercept=True)
    for l2 in (0.0, 1e-3):
        l1 = 0.01 * problem.l1_max()
        result = ac.solve(problem.with_penalty(l1=l1, l2=l2 * l1), tol=1e-7)
        assert result.converged
        assert (result.history.switched.before, result.solver) == ("acf", "newton")
    path = ac.path(problem, n_points=4, ratio=0.01, tol=1e-6)
    assert (path.relative_gap <= 1e-6).all()


@pytest.mark.parametrize("loss", BENT[:2], ids=str)
def test_conjugate_gradients_that_crawl_are_left_to_it(loss):
    """Targets of 10^6 times the bend of Huber's loss: a gap of 1 after 1,000 passes."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4000, 60))
    b = A @ rng.standard_normal(60) / 60**0.5 + 0.5 * rng.standard_normal(4000)
    b = np.sign(b) if "Hinge" in str(loss) else 1e3 * b
    problem = ac.Problem(A, b, loss, l2=1e-7, intercept=True)
    assert SOLVERS["newton"].variant(problem).cls == "Newton"  # where bends are wide
    result = ac.solve(problem, tol=1e-7)
    assert result.converged
    assert (result.history.switched.before, result.solver) == ("newton-cg", "newton")
    path = ac.path(problem, l2=[1e-6, 1e-7], tol=1e-6)
    assert path.converged.all()


@pytest.mark.parametrize("system", [ByColumns, ByRows])
def test_rows_that_all_underflow_end_the_run(system):
    """They make NaN, which ends the run, and no ZeroDivisionError."""
    made = system(pose("absolute", 6, 4))
    with np.errstate(all="ignore"):
        made.factorise(np.r_[np.zeros(6), np.ones(4)])
        dx, dc, _ = made.direction(np.ones(10), (np.zeros(4), 1.0), True)
    assert not np.isfinite(dc + dx.sum())


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_auto_takes_it_for_wide_data(loss, storage):
    problem = pose(loss, 50, 600, storage, share=0.05)
    result = ac.solve(problem, tol=1e-9, max_passes=60)
    assert result.converged and result.solver == "newton" and not result.history.switched
    x, c, _ = solve_program(problem)
    assert result.primal == pytest.approx(problem.primal(x, c), rel=1e-8)
    slack = problem.penalty.l1 - np.abs(problem.average(result.y))
    assert (result.x[slack > 1e-6 * problem.penalty.l1] == 0.0).all()


@pytest.mark.parametrize("seed", range(12))
def test_zeros_are_zeros_at_the_last_digit(seed):
    """Where the bound is above P by rounding, too (seeds 7 and 10 of these were all non-zero)."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, 12))
    b = A[:, :5] @ rng.uniform(10.0, 90.0, 5) + rng.standard_normal(200)
    result = ac.solve(ac.Problem(A, b, "quantile", l1=0.1), tol=1e-13, max_passes=60)
    assert result.relative_gap < 1e-11 and not result.x[np.abs(result.x) < 1e-9].any()
    assert np.count_nonzero(result.x) < 12
