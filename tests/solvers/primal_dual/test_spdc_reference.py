"""SPDC's kernels make the iterates of the papers' algorithms, written down naively.

Only the order of the rows (recorded from the solver's own sampler), the partition into blocks and
the choice of beta come from the package; steps, probabilities and iterates are the reference's.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference
from reference import NaiveSPDC, batches_of
from scipy import sparse

import adacoord as ac
from adacoord.solvers.primal_dual.spdc import SPDC
from adacoord.solvers.primal_dual.spdc_primal import DensePrimal, ScaledPrimal, StampedPrimal

GAMMA = {"squared": 1.0, "smooth_hinge": 1.0, "logistic": 4.0, "hinge": 0.0}
PENALTIES = {"l2": (0.0, 0.03, False), "l1+l2": (0.02, 0.03, False), "positive": (0.02, 0.03, True)}
SAMPLINGS = {
    "uniform": {},
    "weighted": {"sampling": "weighted", "alpha": 0.4},
    "batches": {"batch_size": 4},
    "weighted batches": {"sampling": "lipschitz", "batch_size": 4},
}


def make(loss, n=23, d=11, seed=0, zero_rows=()):
    """Rows of unequal norms, about a third of the entries; columns 0 and 1 are rarely there."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * rng.exponential(1.0, (n, 1))
    A *= rng.random((n, d)) < np.r_[0.1, 0.1, np.full(d - 2, 0.4)]
    A[np.arange(n), 2 + np.arange(n) % (d - 2)] += 0.5  # no row is zero but those asked for
    A[list(zero_rows)] = 0.0
    z = A @ rng.standard_normal(d) + 0.3
    return A, (
        z if loss == "squared" else np.where(z + 0.1 * rng.standard_normal(n) > 0, 1.0, -1.0)
    )


def run_both(
    A,
    b,
    loss,
    penalty,
    passes,
    *,
    storage="csr",
    w=None,
    intercept=False,
    dtype=float,
    steps="practical",
    primal=None,
    **options,
):
    """The solver and the reference, after the same rows."""
    l1, l2, positive = penalty
    data = sparse.csr_matrix(A.astype(dtype)) if storage == "csr" else A.astype(dtype)
    problem = ac.Problem(
        data, b, loss, l1, l2, positive=positive, sample_weight=w, intercept=intercept
    )
    solver = SPDC(problem, np.random.Generator(np.random.PCG64(5)), steps=steps, **options)
    drawn, draw = [], solver.sampler.order

    def recorded(*args):
        drawn.append(draw(*args))
        return drawn[-1]

    solver.sampler.order = recorded

    n = b.size
    w = np.ones(n) if w is None else w
    rows = np.flatnonzero((w > 0) & (intercept | (A != 0).any(axis=1)))
    m = min(options.get("batch_size", 1), rows.size)
    W = w * rows.size / n
    R = np.sqrt(W[rows] * ((A[rows] ** 2).sum(axis=1) + solver.beta**2))
    naive, stage, visits = None, -1, 0
    for k in range(passes):
        solver.advance(1)
        if solver.stage != stage:  # of Section 3: its curvatures are the package's choice
            lam, gamma = l2 or solver.lam, GAMMA[loss] or solver.gamma
            tau, sigma, theta, p = own_steps(R, lam, gamma, m, steps, solver, options)
            direct = options.get("kinks") == "direct"
            theta = 1.0 if direct and not l2 * GAMMA[loss] else theta
            full = np.zeros((2, n))
            full[:, rows] = sigma, p
            if naive is None:
                naive = NaiveSPDC(
                    A, b, loss, penalty, rows, W, tau, full[0], theta, full[1], solver.beta
                )
            naive.tau, naive.sigma, naive.theta = tau, full[0], theta
            if not direct:
                naive.delta_x, naive.delta_y = lam - l2, gamma - GAMMA[loss]
            naive.begin_stage()
            stage = solver.stage
        visits += drawn[-1].size
        assert visits == (k + 1) * rows.size // m * m  # so many batches are due
        naive.run(batches_of(rows[drawn[-1]], m))
    assert len(drawn) == passes
    kind = primal or (DensePrimal if storage == "dense" else None)
    assert kind is None or type(solver.primal) is kind
    return solver, naive


def own_steps(R, lam, gamma, m, rule, solver, options):
    alpha = options.get("alpha", 0.5) if "sampling" in options else 0.0
    weights = reference.mixture(R, alpha)
    if alpha == 0.0 and m > 1:
        p = solver.sampler.p  # one over the size of a block
        assert np.isin(np.round(1 / p), (R.size // m, -(-R.size // m))).all()
    else:
        p = weights if m == 1 else reference.capped(weights, m)
    if rule == "icml2015":
        return *reference.icml_steps(R, lam, gamma, p), p
    if rule == "practical":
        return *reference.practical_steps(R, lam, gamma, m, p), p
    return *reference.theory_steps(R, lam, gamma, m, alpha, p), p


def assert_same(solver, naive, rtol=1e-10):
    for got, want in (
        (solver.x, naive.x[:-1]),
        (solver.y, naive.y),
        (np.array([solver.intercept]), np.array([naive.intercept])),
    ):
        np.testing.assert_allclose(got, want, rtol=0, atol=rtol * max(abs(want).max(), 1e-30))
    assert np.abs(naive.x).max() > 0.0


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "smooth_hinge", "logistic"])
@pytest.mark.parametrize("steps", ["practical", "theory"])
def test_iterates(loss, penalty, sampling, storage, steps):
    A, b = make(loss)
    kind = None
    if storage == "csr":
        kind = ScaledPrimal if penalty == "l2" else StampedPrimal
    solver, naive = run_both(
        A,
        b,
        loss,
        PENALTIES[penalty],
        5,
        storage=storage,
        steps=steps,
        primal=kind,
        **SAMPLINGS[sampling],
    )
    assert_same(solver, naive)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "l1+l2"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_weighted_sampling_of_the_2015_version(loss, penalty, intercept, storage):
    """Half uniform, half by the norms, tau and sigma by 4 Rbar."""
    A, b = make(loss, seed=20, zero_rows=(3,))
    w = np.random.default_rng(21).exponential(1.0, b.size)
    solver, naive = run_both(
        A,
        b,
        loss,
        PENALTIES[penalty],
        8,
        storage=storage,
        w=w,
        intercept=intercept,
        steps="icml2015",
        sampling="weighted",
    )
    assert solver.alpha == 0.5
    assert_same(solver, naive)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_weights_intercept_and_rows_that_are_not_there(loss, penalty, sampling, storage):
    A, b = make(loss, seed=1, zero_rows=(3, 17))
    w = np.random.default_rng(2).exponential(1.0, b.size)
    w[[3, 9]] = 0.0
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            loss,
            PENALTIES[penalty],
            4,
            storage=storage,
            w=w,
            intercept=intercept,
            **SAMPLINGS[sampling],
        )
        assert solver.rows.size == (21 if intercept else 20)
        assert (solver.intercept != 0.0) == intercept
        assert_same(solver, naive)


@pytest.mark.parametrize("steps", ["practical", "theory"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_weights_with_either_rule_of_steps(sampling, steps):
    A, b = make("smooth_hinge", seed=3)
    w = np.random.default_rng(4).integers(1, 4, b.size).astype(float)
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            "smooth_hinge",
            PENALTIES["l1+l2"],
            4,
            w=w,
            steps=steps,
            intercept=intercept,
            **SAMPLINGS[sampling],
        )
        assert_same(solver, naive)


@pytest.mark.parametrize("m", [1, 4, 22, 23])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_batches_up_to_all_rows(m, storage):
    A, b = make("squared", seed=5)
    for options in ({}, {"sampling": "weighted", "alpha": 0.7}):
        solver, naive = run_both(
            A, b, "squared", PENALTIES["l2"], 6, storage=storage, batch_size=m, **options
        )
        assert_same(solver, naive)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_extreme_penalty(loss, intercept):
    """lambda tau >= 1/2: the scaled form would divide by almost nothing, or by less.

    With an intercept, whose feature is as long as the penalty is strong, it does not come to that.
    """
    A, b = make(loss, seed=6)
    for strength, m in ((1e5, 1), (1e9, 1), (1e5, 23)):
        solver, naive = run_both(
            A,
            b,
            loss,
            (0.0, strength, False),
            4,
            steps="theory",
            primal=ScaledPrimal if intercept else StampedPrimal,
            intercept=intercept,
            batch_size=m,
        )
        assert (solver.lam * solver.steps.tau < 0.5) == intercept
        assert_same(solver, naive)


@pytest.mark.parametrize("dtype, n, rtol", [(np.float64, 2200, 1e-10), (np.float32, 800, 1e-3)])
def test_the_scale_of_x_underflows_and_is_flushed_within_a_pass(dtype, n, rtol):
    """q^N is no number of this type: the scaled form has to be folded back within the pass."""
    A, b = make("squared", n=n, seed=7)
    A = A.astype(dtype).astype(float)
    l2 = 0.8 * n * (A**2).sum(axis=1).max()  # lambda tau = sqrt(.8)/2
    solver, naive = run_both(
        A, b, "squared", (0.0, l2, False), 2, steps="theory", dtype=dtype, primal=ScaledPrimal
    )
    with np.errstate(under="ignore"):
        assert dtype((1 + l2 * solver.steps.tau) ** -float(n)) == 0.0
    assert_same(solver, naive, rtol)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("penalty", ["l2", "l1+l2"])
def test_hinge_by_perturbation(sampling, penalty, storage):
    A, b = make("hinge", seed=8)
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            "hinge",
            PENALTIES[penalty],
            12,
            storage=storage,
            intercept=intercept,
            **SAMPLINGS[sampling],
        )
        assert solver.stage >= 1 and naive.delta_y > 0.0 and naive.delta_x == 0.0
        assert_same(solver, naive)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_l1_alone_by_perturbation(loss, sampling, storage):
    A, b = make(loss, seed=9)
    for positive in (False, True):
        solver, naive = run_both(
            A, b, loss, (0.02, 0.0, positive), 12, storage=storage, **SAMPLINGS[sampling]
        )
        assert solver.stage >= 1 and naive.delta_x > 0.0
        assert (naive.delta_y > 0.0) == (loss == "hinge")
        assert_same(solver, naive)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("steps", ["practical", "theory"])
@pytest.mark.parametrize(
    "loss, penalty",
    [
        ("hinge", (0.0, 0.03, False)),
        ("hinge", (0.02, 0.0, False)),
        ("squared", (0.02, 0.0, True)),
        ("logistic", (0.02, 0.03, False)),
    ],
)
def test_kinks_as_they_are(loss, penalty, steps, sampling, storage):
    """theta = 1, and nothing perturbed; where there are no kinks, as ever."""
    A, b = make(loss, seed=22)
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            loss,
            penalty,
            9,
            storage=storage,
            steps=steps,
            intercept=intercept,
            kinks="direct",
            **SAMPLINGS[sampling],
        )
        assert solver.stage == 0 and not naive.delta_x and not naive.delta_y
        assert (solver.theta == 1.0) == (penalty[1] * GAMMA[loss] == 0.0)
        assert_same(solver, naive)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_float32(sampling, penalty, storage):
    A, b = make("logistic", seed=10)
    A = A.astype(np.float32).astype(float)
    solver, naive = run_both(
        A,
        b,
        "logistic",
        PENALTIES[penalty],
        5,
        storage=storage,
        dtype=np.float32,
        intercept=True,
        **SAMPLINGS[sampling],
    )
    assert all(v.dtype == np.float32 for v in solver.primal.state.values() if v.ndim == 2)
    assert_same(solver, naive, rtol=1e-3)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_iterates_after_many_passes(penalty):
    """Past the re-synchronisation of pass 32, dense and CSR still follow the same path."""
    A, b = make("smooth_hinge", seed=11)
    for storage in ("dense", "csr"):
        solver, naive = run_both(A, b, "smooth_hinge", PENALTIES[penalty], 70, storage=storage)
        assert_same(solver, naive)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "smooth_hinge", "logistic", "hinge"])
def test_dual_ascent(loss, penalty, storage):
    A, b = make(loss, seed=12)
    w = np.random.default_rng(13).exponential(1.0, b.size)
    l1, l2, positive = PENALTIES[penalty]
    from adacoord.solvers.dual.dual_cd import DualCoordinateAscent, StochasticDualCoordinateAscent

    for cls in (DualCoordinateAscent, StochasticDualCoordinateAscent):
        problem = ac.Problem(
            sparse.csr_matrix(A) if storage == "csr" else A,
            b,
            loss,
            l1,
            l2,
            positive=positive,
            sample_weight=w,
        )
        solver = cls(problem, np.random.Generator(np.random.PCG64(1)))
        orders, draw = [], solver._order

        def recorded(orders=orders, draw=draw):
            orders.append(draw())
            return orders[-1]

        solver._order = recorded
        solver.advance(4)
        x, y = reference.naive_dual_ascent(
            A, b, loss, PENALTIES[penalty], np.concatenate(orders), w
        )
        np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-10 * abs(x).max())
        np.testing.assert_allclose(solver.y, y, rtol=0, atol=1e-10 * abs(y).max())
