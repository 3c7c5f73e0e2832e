"""Weighted Gram matrices against the textbook's product."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from adacoord.data.matrix import as_matrix
from adacoord.linalg import gram


@pytest.mark.parametrize(
    "storage", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("d", [7, 20])
def test_against_the_product(storage, dtype, few, centred, d, monkeypatch):
    monkeypatch.setattr(gram, "CACHED", 100)
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((60, d)) * (rng.random((60, d)) < 0.6)).astype(dtype)
    w = rng.random(60) * (rng.random(60) < (0.2 if few else 0.9))
    centre = w @ A.astype(float) / w.sum() if centred else None
    B = A.astype(float) - (centre if centred else 0.0)
    found = gram.weighted_gram(as_matrix(storage(A)), w, centre)
    np.testing.assert_allclose(found, (B.T * w) @ B, rtol=0, atol=1e-12)


def test_means_do_not_cancel():
    """Dense columns of 1e8 + noise: what is subtracted first is not lost."""
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((200, 3))
    A, w = noise + 1e8, np.ones(200)
    B = A - A.mean(axis=0)
    found = gram.weighted_gram(as_matrix(A), w, A.mean(axis=0))
    np.testing.assert_allclose(found, B.T @ B, rtol=1e-10)
