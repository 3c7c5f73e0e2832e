"""Defects that hostile data once brought out: certificates that lied.

Each test is one of them; what is compared with is written here, in long double.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import adacoord as ac

LONG = np.longdouble


def warned(*args, **kwargs):
    """``ac.solve`` where it may stop short, and say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        return ac.solve(*args, **kwargs)


def multinomial_primal(A, b, w, l2, x, c):
    """P in long double."""
    A, x, c, w = (np.asarray(v, dtype=LONG) for v in (A, x, c, w))
    z = A @ x + c
    z = z - z[np.arange(b.size), b][:, None]
    top = z.max(axis=1)
    loss = top + np.log(np.exp(z - top[:, None]).sum(axis=1))
    small = np.exp(np.where(np.arange(z.shape[1]) == b[:, None], -np.inf, z)).sum(axis=1)
    loss = np.where(top == 0, np.log1p(small), loss)
    return (w * loss).sum() / b.size + LONG(l2) / 2 * (x * x).sum()


def classes(seed, offset, spread=0.1):
    b = np.arange(60) % 3
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 2)) * spread + np.array([[0, 0], [3, 0], [0, 3]])[b] + offset
    return A, b


@pytest.mark.parametrize(
    "offset, l2, weights",
    [
        (1e6, 1e-12, None),
        (1e4, 1e-8, None),
        (0.0, 1e-8, (1.0, 1e8)),
        (0.0, 1e-8, (1.0, 1e12)),
        (1e4, 1e-6, (1.0, 1e8)),
    ],
)
def test_multinomial_dual_stays_below_the_primal(offset, l2, weights):
    A, b = classes(23, offset)
    w = None if weights is None else np.where(np.arange(60) % 2, *weights)
    problem = ac.Problem(A, b, "multinomial", l2=l2, intercept=True, sample_weight=w)
    ones = np.ones(60) if w is None else w
    results = [warned(problem, solver, tol=1e-9, max_passes=300) for solver in ("newton", "apdc")]
    best = min(multinomial_primal(A, b, ones, l2, r.x, r.intercept) for r in results)
    for r in results:
        assert r.dual <= best, (r, float(best))
        assert r.gap >= multinomial_primal(A, b, ones, l2, r.x, r.intercept) - best


@pytest.mark.parametrize("seed", range(3))
def test_multinomial_weights_of_all_sizes(seed):
    rng = np.random.default_rng(seed)
    A, b = classes(seed, 0.0, spread=1.0)
    w = 10.0 ** rng.uniform(-12, 12, 60)
    problem = ac.Problem(A, b, "multinomial", l2=1e-3, sample_weight=w)
    results = [warned(problem, "newton", tol=tol, max_passes=200) for tol in (1e-6, 1e-9, 1e-12)]
    best = min(multinomial_primal(A, b, w, 1e-3, r.x, 0.0) for r in results)
    assert all(r.dual <= best for r in results)


def test_balanced_classes_are_balanced_to_their_own_digits():
    from adacoord.problem.multiclass import balance, into_domain

    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-3, 1e-8, 1e-13, 1e-100):
        for weights in (np.ones(40), 10.0 ** rng.uniform(-12, 12, 40)):
            b = np.arange(40) % 4
            y = into_domain(scale * rng.exponential(size=(40, 4)), b)
            found = balance(y, b, weights).astype(LONG)
            sums = (weights[:, None] * found).sum(axis=0)
            most = (weights[:, None] * np.abs(found)).sum(axis=0)
            assert (np.abs(sums) <= 1e-14 * most.max()).all(), (scale, sums, most)
            p = found.copy()
            p[np.arange(40), b] += 1
            assert (p >= 0).all() and (np.abs(found.sum(axis=1)) <= 1e-15).all()


def test_balance_of_classes_that_nothing_flows_to():
    from adacoord.problem.multiclass import balance, into_domain

    b = np.arange(30) % 3
    y = np.zeros((30, 3))
    y[b == 0, 1] = 0.7  # class 1 gets and never gives
    y[0, 1] = 1.0
    found = balance(into_domain(y, b), b, np.ones(30))
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-14)
    assert (found[np.arange(30), b] >= -1.0).all()


@pytest.mark.parametrize("without", range(3))
def test_balance_of_classes_without_weight(without):
    """A class whose rows weigh nothing can give nothing back, and gets nothing."""
    A, b = classes(5, 0.0, spread=1.0)
    problem = ac.Problem(
        A, b, "multinomial", l2=0.1, sample_weight=(b != without) * 1.0, intercept=True
    )
    r = warned(problem, "newton", tol=1e-6)
    assert r.relative_gap <= 1e-4 and r.dual <= r.primal


def test_a_balance_near_the_optimum_costs_next_to_nothing():
    """D of a repaired point is second order in what was repaired."""
    rng = np.random.default_rng(1)
    A, b = classes(1, 0.0, spread=1.0)
    problem = ac.Problem(A, b, "multinomial", l2=1e-2, intercept=True)
    r = ac.solve(problem, "newton", tol=1e-10)
    noise = rng.standard_normal(r.y.shape)
    losses = []
    for size in (1e-3, 1e-4):
        y, u = problem.feasible_dual(r.y * (1.0 + size * noise))
        losses.append(r.primal - problem._dual(y, u))
    assert 0.0 < losses[1] <= losses[0] / 30


def test_dual_of_targets_far_from_zero():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((50, 4)), 1e8 + rng.standard_normal(50)
    problem = ac.Problem(A, b, l2=1e-2, intercept=True)
    centred = ac.Problem(A, b - 1e8, l2=1e-2, intercept=True)
    best = ac.solve(centred, tol=1e-12)
    for shift in (0.0, 4e-13, -4e-13):
        y = best.y + shift * np.mean(np.abs(best.y))
        assert problem.dual(y) <= best.primal + 1e-6 * best.primal
    assert problem.dual(best.y + 1e-3) == -np.inf


def test_dual_does_not_pull_points_into_the_domain():
    problem = ac.Problem(np.eye(2), [1.0, -1.0], "hinge", l2=1.0, intercept=True)
    assert problem.dual(np.array([-1.5, 1.5])) == -np.inf
    assert np.isfinite(problem.dual(np.array([-0.5, 0.5])))


def test_rows_whose_squares_vanish():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 3)), rng.standard_normal(30)
    with pytest.raises(ValueError, match=r"A has no entry larger than .*: the squares"):
        ac.Problem(A * 1e-165, b, l1=1e-3)
    B = A.copy()
    B[:5] *= 1e-165  # beside others they are next to rows of zeros, and are not scaled like them
    r = ac.solve(ac.Problem(B, b, l1=0.05), tol=1e-9)
    zeros = np.where(np.arange(30)[:, None] < 5, 0.0, A)
    assert r.converged and r.primal == pytest.approx(
        ac.solve(ac.Problem(zeros, b, l1=0.05), tol=1e-9).primal, rel=1e-8
    )
    for storage in (np.asfortranarray, np.ascontiguousarray):
        assert ac.Problem(storage(B), b, l1=0.05).matrix.zero_rows.size == 0
        assert list(ac.Problem(storage(zeros), b, l1=0.05).matrix.zero_rows) == [0, 1, 2, 3, 4]


def test_points_beyond_the_square_root_of_the_largest_number():
    problem = ac.Problem(np.eye(2), [1.0, 2.0], l1=1.0)
    with np.errstate(over="ignore"):
        assert problem.primal([1e160, 0.0]) == np.inf
    assert ac.Problem(np.eye(2), [1.0, 2.0], "absolute", l1=1.0).primal([1e160, 0.0]) < np.inf


def test_a_callback_cannot_write_into_the_result():
    A, b = classes(3, 0.0, spread=1.0)
    problem = ac.Problem(A, b, "multinomial", l2=0.1, intercept=True)
    refused = []

    def vandal(progress):
        for array in (progress.x, progress.intercept):
            try:
                array[:] = 99.0
            except ValueError:
                refused.append(1)

    r = ac.solve(problem, "apdc", callback=vandal)
    assert refused and r.primal == problem.primal(r.x, r.intercept)


@pytest.mark.parametrize("offset", [2.0**20, 2.0**28, 2.0**36])
@pytest.mark.parametrize("seed", range(3))
def test_what_rounding_hides_is_in_the_gap(offset, seed):
    """Ridge with features far from zero: the gap bounds P(x, c) - P*, both in long double."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((60, 3)) + offset, rng.standard_normal(60)
    r = warned(ac.Problem(A, b, l2=1e-3, intercept=True), tol=1e-9)
    A, b = A.astype(LONG), b.astype(LONG)
    residual = A @ r.x.astype(LONG) + LONG(r.intercept) - b
    P = (residual**2).sum() / 120 + LONG(1e-3) / 2 * (r.x.astype(LONG) ** 2).sum()
    # the optimum by the normal equations of centred columns: 3 x 3, in long double
    B, t = A - A.mean(axis=0), b - b.mean()
    H, g = B.T @ B / 60 + LONG(1e-3) * np.eye(3, dtype=LONG), B.T @ t / 60
    for k in range(3):  # Gauss
        for i in range(k + 1, 3):
            f = H[i, k] / H[k, k]
            H[i], g[i] = H[i] - f * H[k], g[i] - f * g[k]
    x = np.zeros(3, dtype=LONG)
    for k in (2, 1, 0):
        x[k] = (g[k] - H[k] @ x) / H[k, k]
    least = ((B @ x - t) ** 2).sum() / 120 + LONG(1e-3) / 2 * (x**2).sum()
    assert r.gap >= P - least, (r.gap, float(P - least))
    assert r.dual <= least
    if offset == 2.0**36:
        assert r.status == "rounding" and not r.converged


def test_rounding_is_said():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((60, 3)) + 2.0**36, rng.standard_normal(60)
    with pytest.warns(ac.ConvergenceWarning, match="all of it rounding; tol=1e-09 was asked for"):
        ac.solve(ac.Problem(A, b, l2=1e-3, intercept=True), tol=1e-9)


@pytest.mark.parametrize("by", ["rows", "columns", "csr", "csc"])
def test_magnitudes(by, monkeypatch):
    from scipy import sparse

    from adacoord.data import matrix

    monkeypatch.setattr(matrix, "BLOCK", 7)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((13, 5)) * (rng.random((13, 5)) < 0.6)
    A[4] = 0.0
    form = {
        "rows": np.ascontiguousarray,
        "columns": np.asfortranarray,
        "csr": sparse.csr_array,
        "csc": sparse.csc_array,
    }[by]
    m = matrix.as_matrix(form(A))
    for x in (rng.standard_normal(5), rng.standard_normal((5, 3))):
        np.testing.assert_allclose(m.magnitude_dot(x), np.abs(A) @ np.abs(x), rtol=1e-14)


def test_no_bound_is_not_rounding():
    """Before a finite D is found, nothing says that float64 is at its end."""
    from adacoord.api.monitor import Monitor

    problem = ac.Problem(np.eye(2), [1.0, 2.0], l2=1.0)
    monitor = Monitor(problem, tol=1e-6, max_passes=10)
    assert monitor.gap == np.inf and not monitor._all_rounding
