"""DSPDC: the iterates of the corrected Algorithm 2, the right optimum, the stepper's promises."""

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
from scipy import sparse

import adacoord as ac
from adacoord.api.monitor import Monitor
from adacoord.data.columns import Columns
from adacoord.data.matrix import as_matrix
from adacoord.solvers.doubly.dspdc import DSPDC
from adacoord.solvers.doubly.spd1vr import SPD1VR

# ---- Algorithm 2, written down naively ---------------------------------------------------------


def splitmix(seed):
    """Numbers in (0, 1], by the published recurrence in Python's integers."""
    state, mask = int(seed), 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield (((z ^ (z >> 31)) >> 11) + 1) / 2**53


def draw(w, delta, u):
    """(index, probability) of (1-delta)/n + delta w/sum w, by cumulative sums."""
    w = np.maximum(w, 1e-200)  # all can be 0
    if u <= 1 - delta:
        i = min(int(u / (1 - delta) * w.size), w.size - 1)
    else:
        i = int(np.searchsorted(np.cumsum(w), (u - (1 - delta)) / delta * w.sum()))
    return i, (1 - delta) / w.size + delta * w[i] / w.sum()


def visited(A, w, intercept):
    """(rows, columns, A with beta behind it, beta)."""
    rows = np.flatnonzero((w > 0) & (A.any(axis=1) | intercept))
    A = A[rows]
    columns = np.flatnonzero(A.any(axis=0))
    A, beta = A[:, columns], 0.0
    if intercept:
        beta = abs(A).max()
        A = np.hstack([A, np.full((rows.size, 1), beta)])
    return rows, columns, A, beta


def naive_dspdc(
    A,
    b,
    loss,
    penalty,
    passes,
    seed,
    start,
    *,
    dense,
    sampling,
    steps="practical",
    delta=(0.2, 0.8),
    kappa=0.5,
    delta_passes=100,
    multiplier=1.0,
    w=None,
    intercept=False,
):
    """(x, c, y, entries touched): xbar, ybar and all products in full at each step."""
    n, d = A.shape
    w = np.ones(n) if w is None else w
    rows, columns, A, beta = visited(A, w, intercept)
    N, D = A.shape
    W = w[rows] * N / n
    scaled = abs(A) * np.sqrt(W)[:, None]
    lam, gamma, top = penalty[1], GAMMA[loss], scaled.max()
    m = {"practical": 1.6, "theory": 1.0, "printed": multiplier, "constant": multiplier}.get(
        steps, steps
    )
    if steps == "theory" and sampling != "uniform":
        m *= 1 - max(delta)
    tau = m / 2 * (gamma / (N * lam * top**2)) ** 0.5
    sigma = m / (2 * D) * (N * lam / (gamma * top**2)) ** 0.5
    theta = 1.0
    if steps == "theory":
        theta = 1 - 1 / (max(N, D) + 2 * D / m * (N * top**2 / (lam * gamma)) ** 0.5)
    pi, psi = np.ones(N), np.ones(D)
    if sampling == "lipschitz":
        pi, psi = np.linalg.norm(scaled, axis=1), np.linalg.norm(scaled, axis=0)
    sizes = [(D, N)] * 2 if dense else [(A != 0).sum(axis=1), (A != 0).sum(axis=0)]
    entries = N * D if dense else np.count_nonzero(A)

    full = start.copy()
    y, b = full[rows], b[rows]
    x = xbar = np.zeros(D)
    numbers, spent = splitmix(seed), 0
    for k in range(passes):
        share = delta[0] + (delta[1] - delta[0]) * min(k / delta_passes, 1)
        share = 0.0 if sampling == "uniform" else share
        power = kappa if sampling == "adaptive" else 1.0
        while spent < (k + 1) * entries:
            i, p = draw(abs(pi) ** power, share, next(numbers))
            j, q = draw(abs(psi) ** power, share, next(numbers))
            if steps in ("theory", "printed"):
                s, t = sigma / (N * p), tau / (D * q)
            elif steps == "constant":
                s, t = sigma, tau
            else:
                s, t = sigma * top / scaled[i].max(), tau * top / scaled[:, j].max()
            v = reference.dual_prox(loss, A[i] @ xbar, b[i], y[i], s)
            ybar = y.copy()
            ybar[i] += (v - y[i]) / p
            free = intercept and j == D - 1
            new = x.copy()
            gradient = A[:, j] @ (W * ybar) / N
            new[j] = reference.prox(x[j], gradient, t, (0.0, 0.0, False) if free else penalty)
            xbar = new + theta * (new - x) / (q if steps in ("practical", "theory") else 1.0)
            if sampling == "adaptive":
                pi[i], psi[j] = (v - y[i]) / s, (new[j] - x[j]) / t
            x, y[i] = new, v
            spent += D + N if dense else sizes[0][i] + sizes[1][j]
    full[rows] = y
    out = np.zeros(d)
    out[columns] = x[: columns.size]
    return out, beta * x[-1] if intercept else 0.0, full, spent


def assert_follows(
    A, b, loss, penalty, passes, storage="dense", w=None, intercept=False, **options
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
    solver = DSPDC(problem, generator(1), **options)
    seed, start = solver.random[0], solver.y.copy()
    solver.advance(passes)
    x, c, y, spent = naive_dspdc(
        A,
        b,
        loss,
        penalty,
        passes,
        seed,
        start,
        w=w,
        dense=storage == "dense",
        intercept=intercept,
        **options,
    )
    assert solver.operations == spent
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-10 * abs(x).max())
    np.testing.assert_allclose(solver.y, y, rtol=0, atol=1e-10 * abs(y).max())
    assert solver.intercept == pytest.approx(c, rel=1e-9, abs=1e-10)
    assert abs(x).max() > 1e-4 and np.ptp(y) > 1e-3


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", GAMMA)
def test_iterates(loss, penalty, sampling, storage):
    # few passes: the root of a gradient map near 0 turns a rounding of 1e-16 into 1e-8 of its p
    assert_follows(*make(loss, n=23, d=7), loss, PENALTIES[penalty], 6, storage, sampling=sampling)


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("steps", ["theory", 4.0])
def test_iterates_with_other_steps(steps, sampling, storage):
    assert_follows(
        *make("squared", n=23, d=7),
        "squared",
        PENALTIES["l1+l2"],
        40,
        storage,
        sampling=sampling,
        steps=steps,
        **MIXTURES[sampling],
    )


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("steps", ["printed", "constant"])
def test_iterates_with_fixed_steps(steps, sampling, storage):
    """Algorithm 2 with its steps, and with those of eq. 10, times what the paper tunes."""
    A, b = make("smooth_hinge", n=23, d=7, seed=3)
    options = {"steps": steps, "sampling": sampling, "multiplier": 1.5, **MIXTURES[sampling]}
    for penalty in ("l2", "l1+l2"):
        assert_follows(A, b, "smooth_hinge", PENALTIES[penalty], 6, storage, **options)


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("steps", ["practical", "theory"])
def test_weights_intercept_and_what_is_not_there(steps, sampling, storage):
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
            12,
            storage,
            w=w,
            intercept=intercept,
            sampling=sampling,
            steps=steps,
        )


def test_iterates_past_the_resynchronisation():
    for storage in ("dense", "csr"):
        assert_follows(
            *make("smooth_hinge", n=12, d=4),
            "smooth_hinge",
            PENALTIES["l2"],
            70,
            storage,
            sampling="adaptive",
        )


@pytest.mark.slow
def test_float32():
    A, b = make("squared")
    A = A.astype(np.float32)
    for storage in ("dense", "csr"):
        points = []
        for dtype in (np.float32, np.float64):
            problem = ac.Problem(as_storage(A, storage, dtype), b, l2=0.01)
            solver = DSPDC(problem, generator(), sampling="lipschitz")
            solver.advance(40)
            points.append(solver.x)
        np.testing.assert_allclose(*points, rtol=0, atol=1e-4 * abs(points[1]).max())


# ---- the optimum -------------------------------------------------------------------------------


@cache
def optimum(loss, penalty, seed=0):
    return reference.smooth_optimum(*make(loss, seed=seed), loss, PENALTIES[penalty])[0]


def run(cls, problem, tol=1e-9, passes=20_000, **options):
    monitor = Monitor(problem, tol=tol, max_passes=passes)
    status = monitor.run(lambda: cls(problem, generator(), **options))
    assert status == "converged", (monitor.relative_gap, options)
    return monitor


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", GAMMA)
def test_optimum(loss, penalty, sampling, storage):
    best = optimum(loss, penalty)
    found = run(DSPDC, make_problem(loss, penalty, storage), sampling=sampling)
    assert abs(found.best_primal - best) <= 1e-8 * abs(best)
    assert found.best_dual <= best * (1 + 1e-10)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("steps", ["theory", 4])
def test_optimum_with_other_steps(steps, sampling):
    best = optimum("smooth_hinge", "l2")
    found = run(
        DSPDC, make_problem("smooth_hinge", "l2", "dense"), sampling=sampling, tol=1e-8, steps=steps
    )
    assert found.best_primal == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("cls", [DSPDC, SPD1VR])
def test_unsorted_rows(cls):
    A, b = make("smooth_hinge")
    csr = sparse.csr_matrix(A)
    for start, stop in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        for array in (csr.indices, csr.data):
            array[start:stop] = array[start:stop][::-1].copy()
    csr.has_sorted_indices = False
    before = csr.indices.copy()
    found = run(cls, ac.Problem(csr, b, "smooth_hinge", l2=0.01))
    assert found.best_primal == pytest.approx(optimum("smooth_hinge", "l2"), rel=1e-8)
    np.testing.assert_array_equal(csr.indices, before)


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_optimum_with_weights_and_intercept(sampling, storage):
    A, b = make("logistic", seed=4)
    A[5] = 0.0
    w = np.random.default_rng(5).exponential(2.0, b.size)
    w[[2, 40]] = 0.0
    problem = ac.Problem(
        as_storage(A + 0.3 * (A != 0), storage),
        b,
        "logistic",
        l2=0.02,
        sample_weight=w,
        intercept=True,
    )
    best, _, c = reference.smooth_optimum(
        A + 0.3 * (A != 0), b, "logistic", (0.0, 0.02, False), w, intercept=True
    )
    found = run(DSPDC, problem, sampling=sampling, passes=50_000)
    assert found.best_primal == pytest.approx(best, rel=1e-8)
    assert found.intercept == pytest.approx(c, abs=1e-3)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("shape", [(20, 20), (20, 60), (100, 40)])
def test_correlated_columns(shape, sampling):
    """Entries all positive, l2 small: where m = 4 with xbar = x+ + dx diverges."""
    rng = np.random.default_rng(6)
    A, b = rng.random(shape), rng.standard_normal(shape[0])
    run(DSPDC, ac.Problem(A, b, l2=1e-3), sampling=sampling, tol=1e-6)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1), (5, 2)])
def test_tiny(shape, sampling):
    rng = np.random.default_rng(7)
    A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
    run(DSPDC, ac.Problem(A, b, l2=0.05 * (A**2).sum(axis=1).mean()), sampling=sampling)


@STORAGES
def test_nothing_to_visit(storage):
    A, b = as_storage(np.zeros((4, 3)), storage), np.array([1.0, 1.0, 1.0, -1.0])
    found = run(DSPDC, ac.Problem(A, b, "logistic", l2=0.1), tol=1e-12)
    assert not found.x.any() and found.best_primal == pytest.approx(np.log(2.0))
    found = run(DSPDC, ac.Problem(A, b, "logistic", l2=0.1, intercept=True))
    assert found.intercept == pytest.approx(np.log(3.0), rel=1e-3)


# ---- the stepper -------------------------------------------------------------------------------


def assert_bits(a, b):
    for name in ("x", "y", "intercept", "passes", "operations"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_passes_add_up(sampling, storage):
    problem = make_problem("logistic", "l1+l2", storage, intercept=True)
    whole, parts = (DSPDC(problem, generator(), sampling=sampling) for _ in range(2))
    whole.advance(75)
    for k in (3, 1, 27, 0, 2, 31, 11):
        parts.advance(k)
        parts.x.sum()
    assert_bits(whole, parts)
    n, d = problem.n, problem.d
    assert 0 <= whole.operations - 75 * whole.matrix.nnz < n + d + 1


@STORAGES
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_state_continues_elsewhere(sampling, storage):
    problem = make_problem("smooth_hinge", "l1+l2", storage, intercept=True)
    for passes in (0, 1, 17, 32, 40):
        first, other = (DSPDC(problem, generator(k), sampling=sampling) for k in range(2))
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
    solver = DSPDC(problem, generator(), start)
    np.testing.assert_array_equal(solver.x, start.x)
    assert solver.intercept == pytest.approx(start.intercept)
    solver.advance(40)
    assert problem.gap(solver.x, solver.y, solver.intercept) < 1e-7


@pytest.mark.parametrize(
    "option",
    [
        {"sampling": "other"},
        {"steps": "other"},
        {"steps": 0.0},
        {"steps": True},
        {"kappa": -1.0},
        {"delta": (0.2, 1.0)},
        {"delta": 0.5},
        {"delta_passes": 0},
        {"steps": np.inf},
        {"multiplier": 0.0},
        {"multiplier": "large"},
        {"multiplier": True},
    ],
)
def test_bad_options(option):
    ((name, value),) = option.items()
    with pytest.raises(ValueError) as error:
        DSPDC(make_problem("squared", "l2", "csr"), generator(), **option)
    assert str(error.value).startswith(f"{name}={value!r}: ")


def test_a_multiplier_is_for_fixed_steps():
    for steps in ("practical", "theory", 2.0):
        with pytest.raises(ValueError, match=r'multiplier=3.0 with steps=.* steps="printed" or'):
            DSPDC(make_problem("squared", "l2", "csr"), generator(), steps=steps, multiplier=3.0)


def test_problems_it_cannot_solve():
    A, b = make("logistic")
    for problem, words in (
        (ac.Problem(A, b, "hinge", l2=0.1), "smooth loss"),
        (ac.Problem(A, b, "logistic", l1=0.1), "l2 > 0"),
        (ac.Problem(A, b > 0, "multinomial", l2=0.1), "one number a row"),
    ):
        with pytest.raises(ValueError, match=words):
            DSPDC(problem, generator())


# ---- columns -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wide", [False, True])
def test_columns(dtype, wide):
    """The same entries, by columns with increasing rows; unsorted CSR and 64-bit indices too."""
    rng = np.random.default_rng(8)
    A = (rng.standard_normal((30, 11)) * (rng.random((30, 11)) < 0.3)).astype(dtype)
    csr = sparse.csr_matrix(A)
    for i in range(30):
        part = slice(*csr.indptr[i : i + 2])
        csr.indices[part], csr.data[part] = csr.indices[part][::-1], csr.data[part][::-1]
    if wide:
        csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    columns = Columns.of(as_matrix(csr))
    dense = Columns.of(as_matrix(A))
    assert columns.data.dtype == dense.data.dtype == dtype and dense.rows is None
    np.testing.assert_array_equal(dense.data.reshape(11, 30), A.T)
    np.testing.assert_array_equal(columns.sizes, (A != 0).sum(axis=0))
    for j in range(11):
        part = slice(int(columns.colptr[j]), int(columns.colptr[j + 1]))
        np.testing.assert_array_equal(columns.rows[part], np.flatnonzero(A[:, j]))
        np.testing.assert_array_equal(columns.data[part], A[A[:, j] != 0, j])
    with pytest.raises(ValueError):
        columns.data[0] = 1.0
