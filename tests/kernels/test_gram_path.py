"""The path on the Gram matrix against coordinate descent as the textbook has it."""

from __future__ import annotations

import numpy as np
import pytest

from adacoord.kernels.gram_path import factorise, gram_certificates, gram_path


def naive(G, q, l1, l2, positive, x, sweeps=20_000):
    """Cyclic coordinate descent, nothing else."""
    x = x.copy()
    for _ in range(sweeps):
        before = x.copy()
        for j in range(q.size):
            if G[j, j] == 0.0:
                continue
            v = q[j] - G[j] @ x + G[j, j] * x[j]
            shrunk = max(v - l1, 0.0) if positive else np.sign(v) * max(abs(v) - l1, 0.0)
            x[j] = shrunk / (G[j, j] + l2)
        if np.max(np.abs(x - before)) <= 1e-15 * np.max(np.abs(x), initial=1e-300):
            break
    return x


def value(G, q, square, l1, l2, x):
    return 0.5 * (x @ G @ x + square) - q @ x + l1 * np.abs(x).sum() + 0.5 * l2 * x @ x


def run(G, q, square, l1, l2, positive=False, tol=1e-8, goal=1e-13, most=5000, budget=np.inf):
    points, d = len(l1), q.size
    X, taken, work = np.zeros((points, d)), np.zeros(points, dtype=np.int64), np.zeros(points)
    moving = G.diagonal() > 0.0
    done = gram_path(
        G, q, square, moving, np.asarray(l1), np.asarray(l2), positive, tol, goal,
        1e-15 * square, most, budget, np.zeros(d), X, taken, work,
    )  # fmt: skip
    primal, dual, doubt = np.empty(points), np.empty(points), np.empty(points)
    sizes = np.sqrt(np.append(G.diagonal(), square))
    gram_certificates(
        G, q, square, np.asarray(l1), np.asarray(l2), positive, X, sizes, 1e-15, primal, dual, doubt
    )
    return X, primal, dual, doubt, taken, done


CASES = {
    "plain": {},
    "correlated": {"rho": 0.95},
    "wide": {"n": 12, "d": 30},
    "square": {"n": 15, "d": 15},
    "duplicates": {"copies": 5},
    "constant": {"zero": 3},
}


def make(n=80, d=15, rho=0.0, copies=0, zero=-1, seed=0):
    rng = np.random.default_rng(seed)
    A = np.sqrt(1 - rho) * rng.standard_normal((n, d)) + np.sqrt(rho) * rng.standard_normal((n, 1))
    if copies:
        A[:, -copies:] = A[:, :copies]
    if zero >= 0:
        A[:, zero] = 0.0
    b = A[:, :5] @ rng.standard_normal(5) + 0.5 * rng.standard_normal(n)
    return A.T @ A / n, A.T @ b / n, float(b @ b / n)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("case", CASES)
def test_against_naive_descent(case, l2, positive):
    G, q, square = make(**CASES[case])
    l1 = np.geomspace(np.abs(q).max(), 3e-3 * np.abs(q).max(), 15)
    X, primal, dual, doubt, _, done = run(G, q, square, l1, np.full(15, l2), positive)
    assert done == 15 and (doubt <= 1e-12 * square).all()
    x = np.zeros(q.size)
    for k in range(15):
        x = naive(G, q, l1[k], l2, positive, x)
        best = value(G, q, square, l1[k], l2, x)
        assert primal[k] == pytest.approx(value(G, q, square, l1[k], l2, X[k]), rel=1e-12)
        assert primal[k] <= best + 1e-11 * square
        assert dual[k] <= best + 1e-13 * square and primal[k] - dual[k] <= 1e-8 * primal[k]
        assert not positive or (X[k] >= 0.0).all()
        if case in ("plain", "correlated"):  # one minimiser
            np.testing.assert_allclose(X[k], x, atol=1e-6 * np.abs(x).max() + 1e-12)


def test_any_order_and_repeated_penalties():
    G, q, square = make()
    l1 = np.array([0.3, 0.3, 0.01, 0.2, 1e3, 0.02])
    X, primal, dual, *_ = run(G, q, square, l1, np.zeros(6))
    assert ((primal - dual) <= 1e-8 * primal).all() and not X[4].any()
    np.testing.assert_allclose(X[0], X[1], atol=1e-9)


def test_calls_of_a_budget_add_up():
    """It returns after each point; who goes on from there gets every point."""
    G, q, square = make(rho=0.5)
    l1, done, x = np.geomspace(0.5, 1e-3, 8), 0, np.zeros(15)
    X, taken, work = np.zeros((8, 15)), np.zeros(8, dtype=np.int64), np.zeros(8)
    moving = np.ones(15, dtype=bool)
    while done < 8:
        step = gram_path(
            G, q, square, moving, l1[done:], np.zeros(8 - done), False, 1e-9, 1e-12, 0.0, 1000,
            0.0, x, X[done:], taken[done:], work[done:],
        )  # fmt: skip
        assert step == 1
        np.testing.assert_array_equal(x, X[done])
        done += step
    whole, *_ = run(G, q, square, l1, np.zeros(8))
    np.testing.assert_allclose(X, whole, atol=1e-5)
    assert (taken > 0).all() and (work > 0).all()


def test_passes_are_limited():
    G, q, square = make(rho=0.99)
    *_, taken, done = run(G, q, square, np.full(3, 1e-6), np.zeros(3), tol=0.0, goal=0.0, most=4)
    assert done == 3 and taken.max() <= 4


def test_factor_of_dependent_rows():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 6))
    H = A.T @ A
    L = H.copy()
    assert factorise(L, H.diagonal().copy()) == 0
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(H), atol=1e-12)
    A[:, 4] = A[:, 0] - A[:, 1]
    H = A.T @ A
    L = H.copy()
    assert factorise(L, H.diagonal().copy()) == 1
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, H, atol=1e-8)


def test_factor_of_many_dependent_rows():
    """Rounding does not grow from one small pivot to the next: but for the first none has one."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((10, 60)) + 3.0 * rng.standard_normal((10, 1))
    H = A.T @ A
    L = H.copy()
    assert factorise(L, H.diagonal().copy()) == 50
    assert np.isinf(L.diagonal()).sum() == 49
    below = np.tril(L, -1)
    assert np.abs(below).max() <= 1.1 * np.sqrt(H.diagonal().max())
    kept = np.flatnonzero(np.isfinite(L.diagonal()))[:10]
    part = np.tril(L)[np.ix_(kept, kept)]
    np.testing.assert_allclose(part @ part.T, H[np.ix_(kept, kept)], rtol=1e-8)
