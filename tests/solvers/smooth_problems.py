"""Problems with smooth losses and their gradient, for the tests of Newton's method."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from adacoord import losses

SMOOTH = tuple(name for name, cls in losses.LOSSES.items() if cls().differentiable)
STORAGES = pytest.mark.parametrize("storage", ["dense", "csr"])


def as_storage(A, storage):
    return sparse.csr_matrix(A) if storage == "csr" else A


def make(loss, n, d, seed=0):
    """Heavy-tailed noise, so that every piece of every loss is in use at the optimum."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6) + 0.3
    A[A == 0.3] = 0.0
    z = A @ rng.standard_normal(d) / np.sqrt(d) + 0.4 + rng.standard_t(2, n)
    b = {
        "classification": np.where(z > 0, 1.0, -1.0),
        "regression": z,
        "count": np.floor(np.exp(np.clip(0.3 * z, -3, 3))),
        "positive": np.exp(np.clip(0.3 * z, -3, 3)),
    }[losses.LOSSES[loss].task]
    if losses.LOSSES[loss].task == "classification":
        b[:2] = 1.0, -1.0
    return A, b


def gradient(problem, x, c):
    """Of P in (x, c), from the definition; the losses' slopes are those of the certificate."""
    y = problem.loss.derivative(problem.predict(x, c), problem.b)
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    p = (w * y.T).T / problem.n
    return problem.matrix.tdot(p) + problem.penalty.l2 * x, np.sum(p, axis=0)
