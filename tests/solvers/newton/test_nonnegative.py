"""Least squares with x >= 0: pivoting by blocks, and active sets where that is not the way."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

import adacoord as ac
from adacoord.solvers.newton import nonnegative
from adacoord.solvers.newton.nonnegative import PATIENCE, by_pivoting, pivoted


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n, d", [(60, 12), (200, 80), (60, 90)])
def test_pivoting_is_scipys(n, d, intercept, is_sparse):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((n, d)) * np.geomspace(1e-3, 1e3, d)
        A += intercept * np.arange(d) * np.geomspace(1e-3, 1e3, d)
        A = np.where(rng.random((n, d)) < 0.7, A, 0.0)
        b, w = rng.standard_normal(n) + 2.0, rng.integers(0, 3, n).astype(float)
        how = {"intercept": intercept, "positive": True, "sample_weight": w}
        found = by_pivoting(ac.Problem(sparse.csr_matrix(A) if is_sparse else A, b, **how))
        if found is None:  # more columns than rows: what is exchanged may have no inverse
            assert d > n
            continue
        means, target = (w @ A / w.sum(), w @ b / w.sum()) if intercept else (0.0, 0.0)
        root, lengths = np.sqrt(w), np.linalg.norm(np.sqrt(w)[:, None] * (A - means), axis=0)
        x, _ = nnls(root[:, None] * (A - means) / lengths, root * (b - target), maxiter=50 * d)
        np.testing.assert_allclose(found[0] * lengths, x, atol=1e-9)
        assert found[1] == pytest.approx(target - np.sum(means * found[0]), abs=1e-9)


def test_one_exchange_at_a_time_where_all_do_not_help(monkeypatch):
    """Murty's rule ends by itself, too."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 10)) + 1.0
    A /= np.linalg.norm(A, axis=0)
    b = rng.standard_normal(30) + 1.0
    monkeypatch.setattr(nonnegative, "PATIENCE", 0)
    monkeypatch.setattr(nonnegative, "EXCHANGES", 2**10)
    assert PATIENCE > 0
    np.testing.assert_allclose(pivoted(A.T @ A, A.T @ b, 30), nnls(A, b)[0], atol=1e-12)


def test_no_exchange_and_no_inverse():
    assert not pivoted(np.eye(3), np.array([-1.0, 0.0, -2.0]), 5).any()
    assert pivoted(np.ones((2, 2)), np.ones(2), 8) is None  # twice the same column


@pytest.mark.parametrize("wide", [False, True])
def test_active_sets_go_on_where_the_slopes_are_not_right(wide, monkeypatch):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((20, 50) if wide else (50, 20))
    b, calls, real = rng.standard_normal(len(A)), [], nonnegative.solve_nonnegative
    monkeypatch.setattr(
        nonnegative, "solve_nonnegative", lambda problem: calls.append(1) or real(problem)
    )
    problem = ac.Problem(A, b, positive=True)
    first = ac.solve(problem, tol=1e-9)
    assert first.converged and len(calls) == wide
    poor = (np.ones(problem.d), 0.0)
    monkeypatch.setattr(nonnegative, "by_pivoting", lambda problem: poor)
    second = ac.solve(problem, tol=1e-9)
    assert second.converged and second.passes == 2 and len(calls) == 1 + wide
    np.testing.assert_allclose(A @ second.x, A @ first.x, atol=1e-9)
