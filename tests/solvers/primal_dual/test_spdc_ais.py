"""SPDC-AIS makes the iterates of Algorithm 1 of its paper, with the step sizes of its theorems.

Only the rows that were drawn and the choice of beta come from the package; probabilities (from
the reference's own gradient maps), steps and iterates are the reference's.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import reference
from reference import NaiveSPDC
from scipy import sparse, stats

import adacoord as ac
from adacoord.solvers.primal_dual import spdc
from adacoord.solvers.primal_dual.spdc import SPDC
from adacoord.solvers.primal_dual.spdc_ais import Adaptive, balance
from adacoord.solvers.primal_dual.spdc_primal import DensePrimal, ScaledPrimal, StampedPrimal

GAMMA = {"squared": 1.0, "smooth_hinge": 1.0, "logistic": 4.0, "hinge": 0.0}
PENALTIES = {"l2": (0.0, 0.03, False), "l1+l2": (0.02, 0.03, False), "positive": (0.02, 0.03, True)}
STEPS = ("practical", "theory", "theory2", "constant")
POWER = {"practical": 1, "constant": 0, "theory": -1, "theory2": -1}
STORAGES = pytest.mark.parametrize("storage", ["dense", "csr"])
N_ROWS = 50  # pieces of three rows, and one of two at the end of a pass


def make(loss, n=N_ROWS, d=11, seed=0, zero_rows=()):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * rng.exponential(1.0, (n, 1))
    A *= rng.random((n, d)) < np.r_[0.1, 0.1, np.full(d - 2, 0.4)]
    A[np.arange(n), 2 + np.arange(n) % (d - 2)] += 0.5  # no row is zero but those asked for
    A[list(zero_rows)] = 0.0
    z = A @ rng.standard_normal(d) + 0.3
    return A, (
        z if loss == "squared" else np.where(z + 0.1 * rng.standard_normal(n) > 0, 1.0, -1.0)
    )


def record(solver):
    """The rows of each call of the kernels, as they were drawn."""
    orders, run = [], solver._run

    def recorded(order, *args, **kwargs):
        run(order, *args, **kwargs)
        orders.append(order.astype(int))

    solver._run = recorded
    return orders


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
    delta=(0.2, 0.8),
    kappa=0.5,
    horizon=4,
    rho=None,
    sampling="adaptive",
    weights="averaged",
    seen=None,
):
    """The solver and the reference, after the same rows; delta grows until pass ``horizon``."""
    l1, l2, positive = penalty
    data = sparse.csr_matrix(A.astype(dtype)) if storage == "csr" else A.astype(dtype)
    problem = ac.Problem(
        data, b, loss, l1, l2, positive=positive, sample_weight=w, intercept=intercept
    )
    solver = SPDC(
        problem,
        np.random.Generator(np.random.PCG64(5)),
        sampling=sampling,
        steps=steps,
        delta=delta,
        kappa=kappa,
        delta_passes=horizon,
        weights=weights,
        rho=rho,
    )
    orders = record(solver)
    n, d = A.shape
    w = np.ones(n) if w is None else w
    rows = np.flatnonzero((w > 0) & (intercept | (A != 0).any(axis=1)))
    N, W = rows.size, w * rows.size / n
    R = np.sqrt(W[rows] * ((A[rows] ** 2).sum(axis=1) + solver.beta**2))
    naive, stage = None, -1
    leaves = np.ones(N) if sampling == "adaptive" else R.copy()
    for k in range(passes):
        orders.clear()
        solver.advance(1)
        if solver.stage != stage:  # of Section 3 of SPDC: its curvatures are the package's choice
            lam, gamma = l2 or solver.lam, GAMMA[loss] or solver.delta_y
            tau, sigma, theta, high = reference.ais_steps(
                R, d, lam, gamma, steps, delta, rho, sampling != "lipschitz"
            )
            base = np.zeros(n)
            base[rows] = sigma
            found = solver.steps.tau, solver.steps.theta
            np.testing.assert_allclose(found, (tau, theta), rtol=1e-11)
            np.testing.assert_allclose(solver.sigma, base, rtol=1e-11)
            # tau is bisected: roots of gradient maps near 0 would show the difference
            (tau, theta), static = found, solver.sigma
            base = static
            if naive is None:
                naive = NaiveSPDC(
                    A, b, loss, penalty, rows, W, tau, base.copy(), theta, np.zeros(n), solver.beta
                )
            naive.tau, naive.theta = tau, theta
            naive.delta_x, naive.delta_y = lam - l2, gamma - GAMMA[loss]
            naive.begin_stage()
            stage = solver.stage
        if steps == "practical" and sampling == "adaptive":
            naive.tau, base = tau * reference.longer(leaves), static / reference.longer(leaves)
            naive.theta = 1 / (1 + 2 * lam * naive.tau)
        time = (k + np.arange(N) / N) / horizon
        deltas = delta[0] + (high - delta[0]) * np.minimum(time, 1.0)
        order = np.concatenate(orders)
        assert order.size == N and np.isin(order, rows).all()
        if sampling != "ideal":
            reference.ais_pass(
                naive,
                order,
                leaves,
                base,
                deltas,
                kappa,
                POWER[steps],
                weights == "averaged",
                sampling == "adaptive",
            )
            np.testing.assert_allclose(
                solver.tree[solver.tree.size // 2 :][:N],
                leaves,
                rtol=1e-6 if dtype is float else 1e-2,
                atol=1e-7,
            )
            continue
        for i, now in zip(order, deltas, strict=True):
            frequency = reference.ideal_frequencies(naive, base, now, kappa)
            np.testing.assert_allclose(seen.pop(0), frequency, rtol=1e-6)
            f = frequency[np.flatnonzero(rows == i)[0]]
            naive.p[i] = f / N
            naive.sigma[i] = base[i] * f ** POWER[steps]
            naive.run([[i]])
    kind = {"dense": DensePrimal, "csr": StampedPrimal if l1 or positive else ScaledPrimal}[storage]
    assert l2 == 0.0 or type(solver.primal) is kind
    return solver, naive


def assert_same(solver, naive, rtol=1e-10):
    for got, want in (
        (solver.x, naive.x[:-1]),
        (solver.y, naive.y),
        (np.array([solver.intercept]), np.array([naive.intercept])),
    ):
        np.testing.assert_allclose(got, want, rtol=0, atol=rtol * max(abs(want).max(), 1e-30))
    assert np.abs(naive.x).max() > 0.0


# ---- iterates ----------------------------------------------------------------------------------


@STORAGES
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("loss", ["squared", "smooth_hinge", "logistic"])
def test_iterates(loss, steps, penalty, storage):
    A, b = make(loss)
    assert_same(*run_both(A, b, loss, PENALTIES[penalty], 6, storage=storage, steps=steps))


@STORAGES
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("steps", STEPS)
def test_weights_intercept_and_rows_that_are_not_there(steps, penalty, storage):
    A, b = make("squared", seed=1, zero_rows=(3, 17))
    w = np.random.default_rng(2).exponential(1.0, b.size)
    w[[3, 9]] = 0.0
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            "squared",
            PENALTIES[penalty],
            4,
            storage=storage,
            w=w,
            intercept=intercept,
            steps=steps,
        )
        assert solver.rows.size == (48 if intercept else 47)
        assert (solver.intercept != 0.0) == intercept
        assert_same(solver, naive)


@STORAGES
def test_options_of_the_mixture(storage):
    """Powers, shares and horizons; kappa = 0 or delta = 0 is uniform sampling."""
    A, b = make("smooth_hinge", seed=3)
    run = partial(run_both, A, b, "smooth_hinge", PENALTIES["l2"], 5, storage=storage)
    for options in (
        {"kappa": 1.0},
        {"kappa": 2.0, "steps": "theory"},
        {"delta": (0.0, 0.95)},
        {"delta": (0.7, 0.7), "steps": "theory2"},
        {"horizon": 1},
        {"horizon": 100},
    ):
        assert_same(*run(**options))
    for options in ({"kappa": 0.0}, {"delta": (0.0, 0.0)}):
        solver, naive = run(steps="theory", **options)
        assert_same(solver, naive)
        drawn = naive.p[naive.p > 0.0]
        assert drawn.size > 0.9 * N_ROWS
        np.testing.assert_allclose(N_ROWS * drawn, 1.0, rtol=1e-12)


@STORAGES
@pytest.mark.parametrize("penalty", ["l2", "l1+l2"])
def test_theorem_2_with_a_rho(penalty, storage):
    """gamma = 4, so that Remark 1's largest delta is a share: 1 - 1/(4 + rho sigma delta)."""
    A, b = make("logistic", seed=4)
    solver, naive = run_both(
        A, b, "logistic", PENALTIES[penalty], 5, storage=storage, steps="theory2", rho=2.0
    )
    assert 0.75 < solver.ais.high < 0.95
    assert_same(solver, naive)


@STORAGES
@pytest.mark.parametrize("kind", ["hinge", "lasso", "hinge, l1"])
def test_iterates_by_perturbation(kind, storage):
    loss = "squared" if kind == "lasso" else "hinge"
    penalty = PENALTIES["l2"] if kind == "hinge" else (0.02, 0.0, False)
    A, b = make(loss, seed=5)
    for intercept in (False, True):
        solver, naive = run_both(A, b, loss, penalty, 12, storage=storage, intercept=intercept)
        assert solver.stage >= 1 and (naive.delta_y > 0.0) == (loss == "hinge")
        assert_same(solver, naive)


@pytest.mark.slow
@STORAGES
@pytest.mark.parametrize("penalty", PENALTIES)
def test_float32(penalty, storage):
    A, b = make("logistic", seed=6)
    A = A.astype(np.float32).astype(float)
    solver, naive = run_both(
        A, b, "logistic", PENALTIES[penalty], 4, storage=storage, dtype=np.float32, intercept=True
    )
    assert all(v.dtype == np.float32 for v in solver.primal.state.values() if v.ndim == 2)
    assert_same(solver, naive, rtol=2e-3)


@STORAGES
def test_iterates_after_many_passes(storage):
    """Past the re-synchronisation of pass 32."""
    A, b = make("smooth_hinge", seed=7)
    for penalty in ("l2", "l1+l2"):
        assert_same(*run_both(A, b, "smooth_hinge", PENALTIES[penalty], 40, storage=storage))


@pytest.mark.parametrize("n", [1, 2, 7, 15, 31, 32])
def test_few_rows(n):
    """Pieces of one row below 32 rows, of two from there on."""
    A, b = make("squared", n=n, seed=8)
    assert_same(*run_both(A, b, "squared", PENALTIES["l2"], 4, storage="dense"))


def test_draws_follow_the_maps():
    """Chi-square against eq. 13 of the first piece of each pass, begun from the same weights."""
    rng = np.random.default_rng(9)
    A, b = make("squared", seed=9)
    problem = ac.Problem(A, b, l2=0.03)
    solver = SPDC(
        problem,
        np.random.Generator(np.random.PCG64(1)),
        sampling="adaptive",
        delta=(0.6, 0.6),
        kappa=0.0,
    )
    wanted = rng.exponential(1.0, N_ROWS)
    wanted *= N_ROWS / wanted.sum()
    counts, passes = np.zeros(N_ROWS), 400
    orders = record(solver)
    for _ in range(passes):
        solver.tree = reference_tree(wanted)
        orders.clear()
        solver.advance(1)
        counts += np.bincount(orders[0][:3], minlength=N_ROWS)  # the first piece
    p = 0.4 / N_ROWS + 0.6 * wanted / wanted.sum()
    assert stats.chisquare(counts, p * 3 * passes).pvalue > 1e-6


def reference_tree(weights):
    """Leaves of a tree of 64 places, each inner node the sum of its children."""
    tree = np.zeros(128)
    tree[64 : 64 + weights.size] = weights
    for k in range(63, 0, -1):
        tree[k] = tree[2 * k] + tree[2 * k + 1]
    return tree


def test_all_maps_zero():
    """Rows beyond the hinge do not move at all: the floor keeps 0/0 away."""
    A = np.ones((40, 2)) + 0.01 * np.arange(80).reshape(40, 2)
    A[20:] *= -1.0
    b = np.repeat([1.0, -1.0], 20)
    problem = ac.Problem(A, b, "smooth_hinge", l2=1e-6)
    start = ac.solve(problem, "dcd", tol=1e-13, max_passes=10_000)
    for kappa in (0.5, 2.0):
        solver = SPDC(
            problem,
            np.random.Generator(np.random.PCG64(0)),
            start,
            sampling="adaptive",
            kappa=kappa,
        )
        solver.advance(300)
        assert np.isfinite(solver.x).all() and np.isfinite(solver.y).all()
        assert np.isfinite(solver.tree).all() and (solver.tree[1] > 0.0)
        assert problem.gap(solver.x, solver.y) <= 1e-9


# ---- Algorithm 1 as printed, draws and all ------------------------------------------------------


def splitmix(state):
    """Numbers in (0, 1], by the published recurrence in Python's integers."""
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield (((z ^ (z >> 31)) >> 11) + 1) / 2**53


def printed_ais(A, b, lam, passes, horizon, seed, *, constant, norms=None):
    """(x, y) of SPDC-AIS, or of SPDC-LIS where ``norms`` are given, for the smoothed hinge.

    All three vectors in full at each step; eq. 13 with pi_i = 1 at first, delta_t from 0.2 to 0.8,
    kappa = 1/2; sigma for every row (eq. 10) or sigma/(n p_i) (Algorithm 1).
    """
    n, d = A.shape
    R = max(np.linalg.norm(A, axis=1))
    tau, sigma = 1 / (2 * R * np.sqrt(n * lam)), np.sqrt(n * lam) / (2 * R)
    theta = 1 - 1 / (n + 2 * R * np.sqrt(n / lam))  # of SPDC's Algorithm 1
    if not constant:  # Theorem 2, its mu corrected
        theta = 1 - min(2 * lam * tau / (1 + 2 * lam * tau), 1 / (n / (2 * sigma) + n / 0.2))
    x = xbar = np.zeros(d)
    y, pi = np.zeros(n), np.ones(n)
    rng = np.random.Generator(np.random.PCG64(seed))
    rng.integers(2**62)  # the seed of batches
    for t in range(passes * n):
        if t % n == 0:
            numbers = splitmix(int(rng.integers(2**63, size=1, dtype=np.uint64)[0]))
        delta = 0.2 + 0.6 * min(t / (horizon * n), 1)
        w = np.sqrt(np.maximum(abs(pi), 1e-300)) if norms is None else norms
        u = next(numbers)
        if u <= 1 - delta:
            i = min(int(u / (1 - delta) * n), n - 1)
        else:
            i = int(np.searchsorted(np.cumsum(w), (u - (1 - delta)) / delta * w.sum()))
        p = (1 - delta) / n + delta * w[i] / w.sum()
        s = sigma if constant else sigma / (n * p)
        v = reference.dual_prox("smooth_hinge", A[i] @ xbar, b[i], y[i], s)
        u, dy = A.T @ y / n, v - y[i]
        new = (x - tau * (u + dy / (n * p) * A[i])) / (1 + lam * tau)
        x, xbar = new, new + theta * (new - x)
        pi[i], y[i] = dy / s, v
    return x, y


@STORAGES
@pytest.mark.parametrize("sampling", ["adaptive", "lipschitz"])
@pytest.mark.parametrize("steps", ["constant", "theory2"])
def test_as_printed(steps, sampling, storage):
    """The same random numbers, the same iterates to 1e-10: what the paper's Figure 4 shows."""
    if (steps, sampling) == ("theory2", "lipschitz"):
        pytest.skip("Theorem 2 is about gradient maps")
    A, b = make("smooth_hinge", seed=16)
    problem = ac.Problem(
        sparse.csr_matrix(A) if storage == "csr" else A, b, "smooth_hinge", l2=0.03
    )
    options = {"weights": "last"} if sampling == "adaptive" else {"delta": (0.2, 0.8)}
    solver = SPDC(
        problem,
        np.random.Generator(np.random.PCG64(3)),
        sampling=sampling,
        steps=steps,
        delta_passes=7,
        **options,
    )
    solver.advance(9)
    norms = None if sampling == "adaptive" else np.linalg.norm(A, axis=1)
    x, y = printed_ais(A, b, 0.03, 9, 7, 3, constant=steps == "constant", norms=norms)
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-10 * abs(x).max())
    np.testing.assert_allclose(solver.y, y, rtol=0, atol=1e-10)


@STORAGES
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("steps", STEPS)
def test_weights_of_the_last_step(steps, penalty, storage):
    A, b = make("squared", seed=17, zero_rows=(3,))
    w = np.random.default_rng(18).exponential(1.0, b.size)
    options = {"steps": steps, "storage": storage, "w": w, "intercept": True}
    assert_same(*run_both(A, b, "squared", PENALTIES[penalty], 5, weights="last", **options))


@STORAGES
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("steps", ["practical", "theory", "constant"])
def test_lipschitz_with_a_share_that_grows(steps, penalty, storage):
    A, b = make("logistic", seed=19, zero_rows=(3,))
    options = {"steps": steps, "storage": storage, "intercept": True}
    assert_same(*run_both(A, b, "logistic", PENALTIES[penalty], 5, sampling="lipschitz", **options))


@pytest.mark.parametrize("sampling", ["uniform", "lipschitz", "weighted"])
def test_constant_steps_are_those_of_algorithm_1(sampling):
    A, b = make("squared", seed=20)
    problem = ac.Problem(A, b, l2=0.03)
    solver = SPDC(problem, np.random.default_rng(0), sampling=sampling, steps="constant")
    solver.advance(1)
    tau, sigma, theta = reference.theory_steps(np.linalg.norm(A, axis=1), 0.03, 1.0)
    assert (solver.steps.tau, solver.steps.theta) == pytest.approx((tau, theta), rel=1e-12)
    np.testing.assert_allclose(solver.sigma, sigma, rtol=1e-12)


# ---- the step sizes, by hand -------------------------------------------------------------------


def test_theorem_1_by_hand():
    """N = 4, R = 2, lambda = 1/4, gamma = 1, dbar = 1/2: tau = sigma = 1/8,
    2 lambda tau/(1 + 2 lambda tau) = 1/17; gamma/(N/(2 sigma) + N gamma/(1-dbar)) = 1/24."""
    norms = np.array([1.0, 2.0, 0.5, 1.5])
    steps = Adaptive(np.ones(4), 0.5, (0.2, 0.5), None, None).steps("theory", norms, 3, 0.25, 1.0)
    assert steps.tau == pytest.approx(1 / 8, rel=1e-14)
    np.testing.assert_allclose(steps.sigma, 1 / 8, rtol=1e-14)
    assert steps.theta == pytest.approx(1 - 1 / 24, rel=1e-14)
    # lambda = 1, gamma = 4: tau = sqrt(4/4)/8, sigma = sqrt(4/4)/8; 1/4/(5/4) = 1/5 against
    # 4/(16 + 32) = 1/12
    steps = Adaptive(np.ones(4), 0.5, (0.2, 0.5), None, None).steps("theory", norms, 3, 1.0, 4.0)
    assert (steps.tau, steps.sigma[0]) == pytest.approx((1 / 8, 1 / 8), rel=1e-14)
    assert steps.theta == pytest.approx(1 - 1 / 12, rel=1e-14)
    # lambda = 1/400, gamma = 4: tau = sqrt(400)/8 = 5/2, sigma = 1/160: primal 1/80/(81/80)
    # = 1/81, dual 4/(320 + 32) = 1/88; with dbar = 0 (tau = 5, sigma = 1/80) 1/41 and 4/(160+16)
    steps = Adaptive(np.ones(4), 0.5, (0.2, 0.5), None, None).steps(
        "theory", norms, 3, 1 / 400, 4.0
    )
    assert (steps.tau, steps.sigma[0]) == pytest.approx((5 / 2, 1 / 160), rel=1e-14)
    assert steps.theta == pytest.approx(1 - 1 / 88, rel=1e-14)
    steps = Adaptive(np.ones(4), 0.5, (0.0, 0.0), None, None).steps(
        "theory", norms, 3, 1 / 400, 4.0
    )
    assert steps.theta == pytest.approx(1 - 1 / 44, rel=1e-14)


def test_theorem_1_takes_the_largest_delta_wherever_it_is():
    norms = np.array([1.0, 2.0, 0.5, 1.5])
    up, down = (
        Adaptive(np.ones(4), 0.5, d, None, None).steps("theory", norms, 3, 0.25, 1.0)
        for d in ((0.2, 0.5), (0.5, 0.2))
    )
    assert (down.tau, down.theta) == (up.tau, up.theta)


def test_theorem_2_by_hand():
    """N = 4, R = 2, lambda = 1/4, gamma = 1: tau = sigma = 1/4; 1/8/(9/8) = 1/9 against
    1/(8 + 8) with dbar = 1/2."""
    norms = np.array([1.0, 2.0, 0.5, 1.5])
    plain = Adaptive(np.ones(4), 0.5, (0.2, 0.5), None, None)
    steps = plain.steps("theory2", norms, 3, 0.25, 1.0)
    assert (steps.tau, steps.sigma[0]) == pytest.approx((1 / 4, 1 / 4), rel=1e-14)
    assert steps.theta == pytest.approx(1 - 1 / 16, rel=1e-14) and plain.high == 0.5
    # rho = 20: rho sigma delta = 1, so dbar = 1 - 1/(1 + 1) = 1/2, and 3/2/(8 + 8) = 3/32 < 1/9
    with_rho = Adaptive(np.ones(4), 0.5, (0.2, 0.8), None, 20.0)
    steps = with_rho.steps("theory2", norms, 3, 0.25, 1.0)
    assert with_rho.high == pytest.approx(0.5, rel=1e-14)
    assert steps.theta == pytest.approx(1 - 3 / 32, rel=1e-14)
    # rho = 100: dbar = 1 - 1/6, (1 + 5/2)/(8 + 24) = 7/64 < 1/9
    steps = Adaptive(np.ones(4), 0.5, (0.2, 0.8), None, 100.0).steps("theory2", norms, 3, 0.25, 1.0)
    assert steps.theta == pytest.approx(1 - 7 / 64, rel=1e-14)
    # rho = 0 and gamma = 1 would give dbar = 0: never below the first delta
    nothing = Adaptive(np.ones(4), 0.5, (0.2, 0.8), None, 0.0)
    assert nothing.steps("theory2", norms, 3, 0.25, 1.0).theta == pytest.approx(
        1 - 1 / 13, rel=1e-14
    )
    assert nothing.high == 0.2


def test_sigma_of_the_theorems_falls_and_the_practical_one_grows_with_p():
    A, b = make("squared", seed=10)
    for steps in STEPS:
        # whose practical tau stays
        sampling = "lipschitz" if steps == "practical" else "adaptive"
        solver, naive = run_both(
            A, b, "squared", PENALTIES["l2"], 5, steps=steps, sampling=sampling
        )
        drawn = naive.p > 0.0
        f, sigma = N_ROWS * naive.p[drawn], naive.sigma[drawn]
        assert f.min() < 0.9 and f.max() > 1.1
        np.testing.assert_allclose(sigma, solver.sigma[drawn] * f ** POWER[steps], rtol=1e-9)
        if steps == "practical":  # tau sigma_i R_i^2 = .6 N p_i
            squares = (A[drawn] ** 2).sum(axis=1)
            np.testing.assert_allclose(naive.tau * sigma * squares, 0.6 * f, rtol=1e-9)


def test_tau_grows_as_fewer_rows_move():
    sampler = Adaptive(np.array([3.0, 1.0, 0.0, 0.0]))
    assert sampler.longer("practical") == pytest.approx(4 * 10 / 16, rel=1e-14)
    assert sampler.longer("constant") == sampler.longer("theory") == 1.0
    assert Adaptive(np.ones(5)).longer("practical") == pytest.approx(1.0, rel=1e-14)
    assert Adaptive(np.eye(1, 100)[0]).longer("practical") == 8.0  # at most
    assert Adaptive(np.eye(1, 100)[0], learns=False).longer("practical") == 1.0


def test_balance_by_hand():
    """kappa = S/(lambda gamma): rows much fewer than columns lengthen tau, many shorten it."""
    ones = np.ones(16)
    assert balance(ones, 16, 1e-3, 1.0) == pytest.approx(1.5, rel=1e-14)
    # kappa = 240: (1 + 15)/(1 + 0) and its inverse
    assert balance(ones, 10**15, 1 / 240, 1.0) == pytest.approx(1.5 * 2.0, rel=1e-12)
    many = np.ones(10**6)  # kappa = 10^6 and d = 1: 2/(1 + 10^6)
    assert balance(many, 1, 1e-6, 1.0) == pytest.approx(1.5 * (2 / (1 + 1e6)) ** 0.25, rel=1e-12)
    assert balance(ones, 4, 1e9, 1.0) == pytest.approx(1.5, rel=1e-8)  # well conditioned


def test_schedule_of_delta():
    sampler = Adaptive(np.ones(100), delta_passes=20)
    times = (0, 1000, 1010, 2000, 9900)  # steps
    assert [sampler.delta(t) for t in times] == pytest.approx([0.2, 0.5, 0.503, 0.8, 0.8])
    assert Adaptive(np.ones(100)).delta(500) == pytest.approx(0.5)  # ten passes by default


# ---- ideal -------------------------------------------------------------------------------------


@pytest.fixture
def frequencies(monkeypatch):
    """N p_i of every step, as the solver computes them."""
    seen, own = [], spdc.ideal_frequencies

    def spy(*args):
        seen.append(own(*args))
        return seen[-1]

    monkeypatch.setattr(spdc, "ideal_frequencies", spy)
    return seen


@STORAGES
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_ideal(penalty, steps, storage, frequencies):
    """The probabilities of eq. 12 at each step, and the iterates."""
    A, b = make("squared", n=17, seed=11)
    w = np.random.default_rng(12).exponential(1.0, 17)
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            "squared",
            PENALTIES[penalty],
            4,
            storage=storage,
            steps=steps,
            sampling="ideal",
            seen=frequencies,
            w=w,
            intercept=intercept,
        )
        assert not frequencies
        assert_same(solver, naive)


@STORAGES
def test_ideal_by_perturbation(storage, frequencies):
    """The gradient maps are those of the perturbed problem: they vanish at its solution."""
    A, b = make("hinge", n=17, seed=13)
    solver, naive = run_both(
        A, b, "hinge", PENALTIES["l2"], 10, storage=storage, sampling="ideal", seen=frequencies
    )
    assert solver.stage >= 1
    assert_same(solver, naive)


@STORAGES
def test_ideal_counts_its_products(storage):
    A, b = make("squared", n=17, seed=14)
    problem = ac.Problem(sparse.csr_matrix(A) if storage == "csr" else A, b, l2=0.03)
    solver = SPDC(problem, np.random.Generator(np.random.PCG64(0)), sampling="ideal")
    orders = record(solver)
    solver.advance(3)
    visited = np.diff(problem.matrix.indptr.astype(int))[np.concatenate(orders)].sum()
    assert solver.operations == visited + 3 * 17 * problem.matrix.nnz


@pytest.mark.slow
@pytest.mark.parametrize("steps, storage", [*((s, "dense") for s in STEPS), ("practical", "csr")])
@pytest.mark.parametrize("loss", ["squared", "smooth_hinge", "logistic"])
def test_ideal_converges(loss, steps, storage):
    A, b = make(loss, n=17, seed=15)
    best, _, _ = reference.smooth_optimum(A, b, loss, PENALTIES["l1+l2"])
    data = sparse.csr_matrix(A) if storage == "csr" else A
    problem = ac.Problem(data, b, loss, *PENALTIES["l1+l2"][:2])
    result = ac.solve(problem, "spdc", sampling="ideal", steps=steps, tol=1e-8, max_passes=3000)
    assert result.converged and abs(result.primal - best) <= 1e-8 * best
