"""What the tests of the doubly stochastic methods (DSPDC, SPD1-VR) share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac

GAMMA = {"squared": 1.0, "smooth_hinge": 1.0, "logistic": 4.0}
PENALTIES = {
    "l2": (0.0, 0.01, False),
    "l1+l2": (0.01, 0.01, False),
    "positive": (0.005, 0.02, True),
}
SAMPLINGS = ["uniform", "lipschitz", "adaptive"]
#: Other than the defaults, of what each sampling takes.
MIXTURES = {
    "uniform": {},
    "lipschitz": {"delta": (0.1, 0.6), "delta_passes": 7},
    "adaptive": {"delta": (0.1, 0.6), "delta_passes": 7, "kappa": 0.8},
}
STORAGES = pytest.mark.parametrize("storage", ["dense", "csr"])


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def make(loss, n=60, d=12, seed=0, density=0.5):
    """Normalised rows, half of the entries zero."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    A[:, 0] = rng.standard_normal(n)
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    z = A @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    return A, z if loss == "squared" else np.where(z > 0, 1.0, -1.0)


def as_storage(A, storage, dtype=np.float64):
    A = A.astype(dtype)
    return sparse.csr_matrix(A) if storage == "csr" else A


def make_problem(loss, penalty, storage, seed=0, **options):
    A, b = make(loss, seed=seed)
    l1, l2, positive = PENALTIES[penalty]
    return ac.Problem(as_storage(A, storage), b, loss, l1, l2, positive=positive, **options)
