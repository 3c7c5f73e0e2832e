"""What the tests share: small real and generated problems, and where the data sets are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

# before SciPy is imported: scikit-learn's checks of array API input run only with it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
from scipy import sparse


@pytest.fixture(scope="session")
def data():
    """``data(name)``: (A, b) of a file of ADACOORD_DATA; skips, saying so, where there is none."""
    folder = os.environ.get("ADACOORD_DATA")
    loaded = {}

    def load(name):
        if not folder or not Path(folder).is_dir():
            pytest.skip("ADACOORD_DATA does not name the folder of the data sets")
        path = Path(folder) / f"{name}.svm.xz"
        if not path.exists():
            pytest.skip(f"{name}.svm.xz is not in ADACOORD_DATA")
        if name not in loaded:
            from adacoord.io import load_svmlight

            loaded[name] = load_svmlight(path)
        return loaded[name]

    return load


@pytest.fixture
def make_data():
    """``make_data(n, d, density, seed, task)``: a small (A, b); CSR where density < 1."""

    def make(n, d, density=1.0, seed=0, task="classification", dtype=np.float64):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((n, d))
        if density < 1.0:
            A *= rng.random((n, d)) < density
        w = rng.standard_normal(d) * (rng.random(d) < 0.5)
        z = A @ w + 0.5 * rng.standard_normal(n)
        b = {"classification": np.where(z > 0, 1.0, -1.0), "regression": z,
             "count": np.floor(np.exp(np.clip(0.3 * z, -3, 3)))}[task]
        if task == "classification":
            b[:2] = 1.0, -1.0
        A = A.astype(dtype)
        return (sparse.csr_matrix(A) if density < 1.0 else A), b

    return make
