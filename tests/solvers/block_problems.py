"""Small problems with blocks of rows, and the comparison of a solver with a naive one."""

from __future__ import annotations

import numpy as np

GAMMA = {"squared": 1.0, "smooth_hinge": 1.0, "logistic": 4.0, "hinge": 0.0, "multinomial": 2.0}
PENALTIES = {
    "l2": (0.0, 0.03, False),
    "l1+l2": (0.02, 0.03, False),
    "positive": (0.005, 0.03, True),
}
N_ROWS = 23
#: Ten blocks of one to six rows, not in order; their labels are words.
GROUPS = np.array(
    [
        f"g{k}"
        for k in np.random.default_rng(3).permutation(
            np.repeat(np.arange(10), [1, 1, 1, 2, 1, 3, 1, 6, 2, 5])
        )
    ]
)


def make(loss, seed=0, zero_rows=(), n=N_ROWS, d=11, K=3):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * rng.exponential(1.0, (n, 1))
    A *= rng.random((n, d)) < np.r_[0.1, 0.1, np.full(d - 2, 0.4)]
    A[np.arange(n), 2 + np.arange(n) % (d - 2)] += 0.5  # no row is zero but those asked for
    A[list(zero_rows)] = 0.0
    if loss == "multinomial":
        b = np.argmax(A @ rng.standard_normal((d, K)) + rng.standard_normal((n, K)), axis=1)
        b[:K] = np.arange(K)
        return A, b
    z = A @ rng.standard_normal(d) + 0.3
    return A, (
        z if loss == "squared" else np.where(z + 0.1 * rng.standard_normal(n) > 0, 1.0, -1.0)
    )


def assert_same(solver, naive, rtol=1e-10):
    for got, want in (
        (solver.x, naive.x[:-1]),
        (solver.y, naive.y),
        (np.atleast_1d(solver.intercept), np.atleast_1d(naive.intercept)),
    ):
        np.testing.assert_allclose(got, want, rtol=0, atol=rtol * max(abs(want).max(), 1e-30))
    assert np.abs(naive.x).max() > 0.0
