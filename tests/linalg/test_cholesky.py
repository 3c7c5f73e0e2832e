"""Symmetric systems: definite, nearly so, and not at all."""

from __future__ import annotations

import numpy as np

from adacoord.linalg.cholesky import Cholesky, definite, solve_symmetric


def gram(rank, size=6, seed=0):
    B = np.random.default_rng(seed).standard_normal((rank, size))
    return B.T @ B


def test_definite():
    H, right = gram(20), np.arange(6.0)
    np.testing.assert_allclose(H @ Cholesky(H.copy()).solve(right), right, atol=1e-9)
    np.testing.assert_allclose(H @ definite(H).solve(right), right, atol=1e-9)


def test_a_ridge_where_rounding_makes_it_indefinite():
    H = gram(3)
    right = H @ np.ones(6)
    np.testing.assert_allclose(H @ Cholesky(H.copy()).solve(right), right, atol=1e-4)
    assert definite(H) is None


def test_no_numbers_give_no_numbers():
    assert np.isnan(Cholesky(np.full((2, 2), np.nan)).solve(np.ones(2))).all()
    assert np.isfinite(Cholesky(np.zeros((2, 2))).solve(np.ones(2))).all()


def test_the_shortest_solution():
    H = gram(3)
    right = H @ np.ones(6)
    found = solve_symmetric(H, right, exact=True)
    np.testing.assert_allclose(H @ found, right, atol=1e-9)
    # where there is none, it is said, unless one does without
    away = np.linalg.svd(H)[0][:, -1]
    assert solve_symmetric(H, away, exact=True) is None
    assert solve_symmetric(H, away, exact=False) is not None
    assert solve_symmetric(np.full((2, 2), np.nan), np.ones(2), exact=False) is None
