"""SPD1-VR: the iterates of the corrected Algorithm 3, unbiased draws, the right optimum."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import reference
from doubly_problems import (
    GAMMA,
    MIXTURES,
    PENALTIES,
    SAMPLINGS,
    STORAGES,
    as_storage,
    generator,
    make,
    make_problem,
)
from scipy import stats

import adacoord as ac
from adacoord.api.monitor import Monitor
from adacoord.sampling.single import alias_table
from adacoord.solvers.doubly.spd1vr import SPD1VR, _pick

# ---- Algorithm 3, written down naively ---------------------------------------------------------


class Splitmix:
    """Numbers in (0, 1], by the published recurrence in Python's integers."""

    def __init__(self, seed):
        self.state = int(seed)

    def __call__(self):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = ((self.state ^ (self.state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return (((z ^ (z >> 31)) >> 11) + 1) / 2**53


def pick(weights, u, even=False):
    """By Walker's table of the weights; uniformly if they are known to be equal."""
    place = (1 - u) * len(weights)
    cell = min(int(place), len(weights) - 1)
    if even:
        return cell
    keep, alias = alias_table(np.asarray(weights, dtype=float))
    return cell if place - cell < keep[cell] else int(alias[cell])


def as_printed(weights, N, D, rng):
    """A list of indices drawn by the weights."""
    size = int(min(N * D / np.log(N * D), 10 * (N + D)))
    keep, alias = alias_table(weights)
    cell = rng.integers(weights.size, size=size)
    return np.where(rng.random(size) < keep[cell], cell, alias[cell])


def naive_spd1vr(
    A,
    b,
    loss,
    penalty,
    epochs,
    seed,
    start,
    *,
    dense,
    sampling,
    steps="practical",
    delta=(0.2, 0.8),
    kappa=0.5,
    delta_passes=100,
    w=None,
    intercept=False,
):
    """(x, c, y): all probabilities from the matrix P, all gradients at the reference in full."""
    n, d = A.shape
    w = np.ones(n) if w is None else w
    rows = np.flatnonzero((w > 0) & (A.any(axis=1) | intercept))
    A = A[rows]
    columns = np.flatnonzero(A.any(axis=0))
    A, beta = A[:, columns], 0.0
    if intercept:
        beta = abs(A).max()
        A = np.hstack([A, np.full((rows.size, 1), beta)])
    N, D = A.shape
    W = w[rows] * N / n
    scaled = abs(A) * np.sqrt(W)[:, None]
    stored = np.ones((N, D)) if dense else (A != 0).astype(float)
    M = int(stored.sum())
    v = {"practical": 0.15, "theory": 0.1}.get(steps, steps)
    sigma = v * (N * penalty[1] / GAMMA[loss]) ** 0.5  # tau sigma = v^2 N, tau/sigma = gamma/lam
    tau = v * (N * GAMMA[loss] / penalty[1]) ** 0.5
    own = scaled.max(axis=1), scaled.max(axis=0)
    if steps == "theory":
        own = np.full(N, scaled.max()), np.full(D, scaled.max())
    prox = [penalty] * columns.size + [(0.0, 0.0, False)] * intercept

    full = start.copy()
    y, b, x, number = full[rows], b[rows], np.zeros(D), Splitmix(seed)
    for epoch in range(epochs):
        share = delta[0] + (delta[1] - delta[0]) * min((3 * epoch + 1) / delta_passes, 1)
        y0, x0 = y.copy(), x.copy()
        Gx, Gy = A.T @ (W * y0) / N, A @ x0
        rw, cw = np.ones(N), np.ones(D)
        if sampling == "lipschitz":
            rw, cw = np.linalg.norm(scaled, axis=1), np.linalg.norm(scaled, axis=0)
        elif sampling == "adaptive":  # the gradient maps, with the steps of uniform sampling
            s, t = sigma / own[0] / stored.sum(axis=1), tau / own[1] / stored.sum(axis=0)
            rw = [
                abs(reference.dual_prox(loss, Gy[i], b[i], y0[i], s[i]) - y0[i]) / s[i]
                for i in range(N)
            ]
            cw = [abs(reference.prox(x0[j], Gx[j], t[j], prox[j]) - x0[j]) / t[j] for j in range(D)]
            rw, cw = np.array(rw) ** kappa, np.array(cw) ** kappa
        even = sampling == "uniform"
        alpha, beta_j = (
            (1 - share) + share * a.size * a / a.sum() if a.any() and not even else np.ones(a.size)
            for a in (rw, cw)
        )
        P = np.outer(alpha, beta_j) * stored
        P /= P.sum()
        s = sigma / own[0] / (M * P.sum(axis=1))
        t = tau / own[1] / (M * P.sum(axis=0))
        given_row, given_column = P / P.sum(axis=1, keepdims=True), P / P.sum(axis=0)
        if dense and steps == "theory":
            rng = generator(number.state)
            lists = [as_printed(a, N, D, rng) for a in (alpha, beta_j)]
        for _ in range(-(-M // 3)):
            if dense and steps == "theory" and not even:
                i, j, i2, j2 = (lists[k % 2][pick(lists[k % 2], number(), True)] for k in range(4))
            elif dense:
                i, j, i2, j2 = (pick((alpha, beta_j)[k % 2], number(), even) for k in range(4))
            else:
                i = pick(alpha * (stored @ beta_j), number())
                inside = np.flatnonzero(stored[i])
                j = inside[pick(beta_j[inside], number(), even)]
                below = np.flatnonzero(stored[:, j])
                i2 = below[pick(alpha[below], number(), even)]
                j2 = inside[pick(beta_j[inside], number(), even)]
            gradient = Gx[j] + A[i2, j] * W[i2] * (y[i2] - y0[i2]) / (N * given_column[i2, j])
            xb = reference.prox(x[j], gradient, t[j], prox[j])
            z = Gy[i] + A[i, j2] * (x[j2] - x0[j2]) / given_row[i, j2]
            yb = reference.dual_prox(loss, z, b[i], y[i], s[i])
            gradient = Gx[j] + A[i, j] * W[i] * (yb - y0[i]) / (N * given_column[i, j])
            x[j] = reference.prox(x[j], gradient, t[j], prox[j])
            z = Gy[i] + A[i, j] * (xb - x0[j]) / given_row[i, j]
            y[i] = reference.dual_prox(loss, z, b[i], y[i], s[i])
    full[rows] = y
    out = np.zeros(d)
    out[columns] = x[: columns.size]
    return out, beta * x[-1] if intercept else 0.0, full


def assert_follows(
    A, b, loss, penalty, epochs, storage="dense", w=None, intercept=False, **options
):
    l1, l2, positive = penalty
    problem = ac.Problem(
        as_storage(A, storage),
        b,
        loss,
        l1,
        l2,
        positive=positive,
        sample_weight=w,
        intercept=intercept,
    )
    solver = SPD1VR(problem, generator(1), **options)
    seed, start = solver.random[0], solver.y.copy()
    solver.advance(3 * epochs)
    x, c, y = naive_spd1vr(
        A,
        b,
        loss,
        penalty,
        epochs,
        seed,
        start,
        w=w,
        dense=storage == "dense",
        intercept=intercept,
        **options,
    )
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-10 * abs(x).max())
    np.testing.assert_allclose(solver.y, y, rtol=0, atol=1e-10 * abs(y).max())
    assert solver.intercept == pytest.approx(c, rel=1e-9, abs=1e-10)
    assert abs(x).max() > 1e-4 and np.ptp(y) > 1e-3


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", GAMMA)
def test_iterates(loss, penalty, sampling, storage):
    assert_follows(*make(loss, n=23, d=7), loss, PENALTIES[penalty], 5, storage, sampling=sampling)


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("steps", ["theory", 0.3])
def test_iterates_with_other_steps(steps, sampling, storage):
    assert_follows(
        *make("squared", n=23, d=7),
        "squared",
        PENALTIES["l1+l2"],
        7,
        storage,
        sampling=sampling,
        steps=steps,
        **MIXTURES[sampling],
    )


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_weights_intercept_and_what_is_not_there(sampling, storage):
    """A row of zeros, rows without weight, and columns that only those or none have."""
    A, b = make("smooth_hinge", n=23, d=7, seed=2)
    A[3] = A[:, 4] = 0.0
    A[np.arange(23) != 9, 5] = 0.0
    w = np.random.default_rng(3).exponential(1.0, 23)
    w[[3, 9, 12]] = 0.0
    for intercept in (False, True):
        assert_follows(
            A,
            b,
            "smooth_hinge",
            (0.005, 0.02, False),
            5,
            storage,
            w=w,
            intercept=intercept,
            sampling=sampling,
        )


# ---- the draws ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_draws_of_sparse_entries(sampling):
    """(i, j) by P_ij = alpha_i beta_j/Z, i' by P(.|j), j' by P(.|i): chi-square of 60,000 each."""
    problem = make_problem("smooth_hinge", "l2", "csr")
    share = {} if sampling == "uniform" else {"delta": (0.7, 0.7)}
    solver = SPD1VR(problem, generator(), sampling=sampling, **share)
    solver.advance(5)
    m, c = solver.matrix, solver.columns
    A = np.zeros(m.shape)
    i_of = np.repeat(np.arange(problem.n), m.row_sizes)
    A[i_of, m.indices] = 1.0
    P = A * np.outer(solver.alpha, solver.beta_j)
    P /= P.sum()
    assert (sampling == "uniform") == (np.ptp(P[A > 0]) < 1e-12)
    row_keep, row_alias, keep, alias, column_keep, column_alias = solver.tables
    u = np.random.default_rng(1).random((60_000, 2))
    counts, in_row, in_column = np.zeros(P.shape), np.zeros(problem.d), np.zeros(problem.n)
    for first, second in u:
        i = int(_pick(row_keep, row_alias, 0, problem.n, first))
        start, size = int(m.indptr[i]), int(m.row_sizes[i])
        counts[i, m.indices[_pick(keep, alias, start, size, second)]] += 1
        start, size = int(m.indptr[4]), int(m.row_sizes[4])
        in_row[m.indices[_pick(keep, alias, start, size, first)]] += 1
        start, size = int(c.colptr[3]), int(c.sizes[3])
        in_column[c.rows[_pick(column_keep, column_alias, start, size, second)]] += 1
    for seen, law in (
        (counts, P),
        (in_row, P[4] / P[4].sum()),
        (in_column, P[:, 3] / P[:, 3].sum()),
    ):
        assert not seen[law == 0].any()
        assert stats.chisquare(seen[law > 0], 60_000 * law[law > 0]).pvalue > 1e-6
    # and the importance weights are one over these conditional probabilities
    np.testing.assert_allclose(
        (solver.C / solver.alpha[:, None])[A > 0],
        (P.sum(axis=0) / np.where(A > 0, P, 1))[A > 0],
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        (solver.B[:, None] / solver.beta_j)[A > 0],
        (P.sum(axis=1, keepdims=True) / np.where(A > 0, P, 1))[A > 0],
        rtol=1e-12,
    )


# ---- the optimum -------------------------------------------------------------------------------


@cache
def optimum(loss, penalty, seed=0):
    return reference.smooth_optimum(*make(loss, seed=seed), loss, PENALTIES[penalty])[0]


def run(problem, tol=1e-9, passes=20_000, **options):
    monitor = Monitor(problem, tol=tol, max_passes=passes)
    status = monitor.run(lambda: SPD1VR(problem, generator(), **options))
    assert status == "converged", (monitor.relative_gap, options)
    return monitor


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", GAMMA)
def test_optimum(loss, penalty, sampling, storage):
    best = optimum(loss, penalty)
    found = run(make_problem(loss, penalty, storage), sampling=sampling)
    assert abs(found.best_primal - best) <= 1e-8 * abs(best)
    assert found.best_dual <= best * (1 + 1e-10)


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("steps", ["theory", 0.2])
def test_optimum_with_other_steps(steps, sampling, storage):
    best = optimum("smooth_hinge", "l2")
    found = run(make_problem("smooth_hinge", "l2", storage), sampling=sampling, steps=steps)
    assert found.best_primal == pytest.approx(best, rel=1e-8)


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_optimum_with_weights_and_intercept(sampling, storage):
    A, b = make("logistic", seed=4)
    A[5] = 0.0
    A += 0.3 * (A != 0)
    w = np.random.default_rng(5).exponential(2.0, b.size)
    w[[2, 40]] = 0.0
    A_ = as_storage(A, storage)
    problem = ac.Problem(A_, b, "logistic", l2=0.02, sample_weight=w, intercept=True)
    best, _, c = reference.smooth_optimum(A, b, "logistic", (0.0, 0.02, False), w, intercept=True)
    found = run(problem, sampling=sampling, passes=50_000)
    assert found.best_primal == pytest.approx(best, rel=1e-8)
    assert found.intercept == pytest.approx(c, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("shape", [(20, 20), (20, 60), (100, 40)])
def test_correlated_columns(shape, sampling):
    """Entries all positive, l2 small: where steps that do not go by 1/P diverge."""
    rng = np.random.default_rng(6)
    A, b = rng.random(shape), rng.standard_normal(shape[0])
    run(ac.Problem(A, b, l2=1e-3), sampling=sampling, tol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1), (5, 2)])
def test_tiny(shape, sampling):
    rng = np.random.default_rng(7)
    A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
    for storage in ("dense", "csr"):
        problem = ac.Problem(as_storage(A, storage), b, l2=0.05 * (A**2).sum(axis=1).mean())
        for steps in ("practical", "theory"):
            run(problem, sampling=sampling, steps=steps, passes=100_000)


@STORAGES
def test_nothing_to_visit(storage):
    A, b = as_storage(np.zeros((4, 3)), storage), np.array([1.0, 1.0, 1.0, -1.0])
    found = run(ac.Problem(A, b, "logistic", l2=0.1), tol=1e-12)
    assert not found.x.any() and found.best_primal == pytest.approx(np.log(2.0))
    found = run(ac.Problem(A, b, "logistic", l2=0.1, intercept=True), sampling="adaptive")
    assert found.intercept == pytest.approx(np.log(3.0), rel=1e-3)


# ---- the stepper -------------------------------------------------------------------------------


def assert_bits(a, b):
    for name in ("x", "y", "intercept", "passes", "operations"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


@STORAGES
@pytest.mark.parametrize("steps", ["practical", "theory"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_passes_add_up(sampling, steps, storage):
    """An epoch is three passes: any way of asking for them cuts epochs."""
    problem = make_problem("logistic", "l1+l2", storage, intercept=True)
    whole, parts = (SPD1VR(problem, generator(), sampling=sampling, steps=steps) for _ in "ab")
    whole.advance(75)
    for k in (3, 1, 27, 0, 2, 31, 11):
        parts.advance(k)
        parts.x.sum()
    assert_bits(whole, parts)
    assert 0 <= whole.operations - 75 * whole.matrix.nnz <= 2 * 25  # rounded up to whole steps


@STORAGES
@pytest.mark.parametrize("steps", ["practical", "theory"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_state_continues_elsewhere(sampling, steps, storage):
    problem = make_problem("smooth_hinge", "l1+l2", storage, intercept=True)
    for passes in (0, 1, 2, 17, 18, 40):
        first, other = (
            SPD1VR(problem, generator(k), sampling=sampling, steps=steps) for k in range(2)
        )
        first.advance(passes)
        state = first.state()
        kept = {k: np.array(v) for k, v in state.items()}
        assert all(v.dtype.kind in "biuf" for v in kept.values())
        first.advance(30)
        other.restore(state)
        other.advance(30)
        assert_bits(first, other)
        for key, value in state.items():
            np.testing.assert_array_equal(value, kept[key], err_msg=key)


def test_start_is_where_it_starts():
    problem = make_problem("logistic", "l1+l2", "csr", intercept=True)
    start = ac.solve(problem, "dcd", tol=1e-10)
    solver = SPD1VR(problem, generator(), start)
    np.testing.assert_array_equal(solver.x, start.x)
    assert solver.intercept == pytest.approx(start.intercept)
    solver.advance(40)
    assert problem.gap(solver.x, solver.y, solver.intercept) < 1e-7


@pytest.mark.slow
def test_float32():
    A, b = make("squared")
    for storage in ("dense", "csr"):
        points = []
        for dtype in (np.float32, np.float64):
            problem = ac.Problem(as_storage(A.astype(np.float32), storage, dtype), b, l2=0.01)
            solver = SPD1VR(problem, generator(), sampling="lipschitz")
            solver.advance(40)
            points.append(solver.x)
        np.testing.assert_allclose(*points, rtol=0, atol=1e-4 * abs(points[1]).max())


def test_problems_it_cannot_solve():
    A, b = make("logistic")
    for problem, words in (
        (ac.Problem(A, b, "hinge", l2=0.1), 'solver="spd1-vr".*smooth loss'),
        (ac.Problem(A, b, "logistic", l1=0.1), "l2 > 0"),
    ):
        with pytest.raises(ValueError, match=words):
            SPD1VR(problem, generator())
