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
@pytest.mark.parametrize("d", [7, 20, gram.NARROW + 2])
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


@pytest.mark.parametrize("n", [1, 127, 128, 300])
@pytest.mark.parametrize("d", [1, 5, gram.NARROW])
def test_few_columns_in_blocks_of_rows(n, d):
    rng = np.random.default_rng(2)
    A, w, centre = rng.standard_normal((n, d)), rng.random(n), rng.standard_normal(d)
    B = A - centre
    found = gram.weighted_gram(as_matrix(A), w, centre)
    np.testing.assert_allclose(found, (B.T * w) @ B, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alike", [False, True])
def test_in_single_precision(alike):
    """To six digits of what the columns are about their means, however far these are from 0."""
    rng = np.random.default_rng(3)
    A = (rng.standard_normal((500, gram.NARROW + 2)) + 30.0).astype(np.float32)
    w = np.full(500, 0.3) if alike else rng.random(500)
    centre = w @ A.astype(float) / w.sum()
    B = A.astype(float) - centre
    found = gram.weighted_gram(as_matrix(A), w, centre, single=True)
    expected = (B.T * w) @ B
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * expected.max())
    assert not np.array_equal(found, gram.weighted_gram(as_matrix(A), w, centre))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 6, gram.NARROW, gram.NARROW + 1])
@pytest.mark.parametrize("shape", ["drawn", "far", "apart", "constant", "light"])
def test_about_the_mean(shape, d, dtype, order):
    """In one pass about the mean of some rows, or two where that is far from the mean of all."""
    rng = np.random.default_rng(4)
    n = 5 * gram.SAMPLE
    A, w = rng.standard_normal((n, d)), rng.random(n)
    sampled = np.arange(n) % (n // gram.SAMPLE) == 0
    if shape == "far":
        A += 1e4
    if shape == "apart":  # the rows that are looked at first say nothing of the others
        A[sampled] += 1e3
    if shape == "constant":
        A[:, 0] = 1e6 / 3.0
    if shape == "light":
        A[sampled], w[sampled] = A[sampled] + 1e8, 0.0
    A = A.astype(dtype)
    means = w @ A.astype(float) / w.sum()
    B = A.astype(float) - means
    found, centre = gram.centred_gram(as_matrix(np.asarray(A, order=order)), w)
    np.testing.assert_allclose(centre, means, rtol=1e-13, atol=1e-14)
    expected = (B.T * w) @ B
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * max(expected.max(), 1.0))
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [6, gram.NARROW + 2])
@pytest.mark.parametrize("mean", [0.0, 0.3, 50.0])
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_with_products(storage, dtype, d, mean, alike, centred, monkeypatch):
    """Whether rows are taken as they are, or about a mean, block by block."""
    monkeypatch.setattr(gram, "CACHED", 1000)
    rng = np.random.default_rng(5)
    A = storage((rng.standard_normal((300, d)) + mean).astype(dtype))
    w = np.full(300, 0.3) if alike else rng.random(300)
    V = rng.standard_normal((3, 300)).T
    V -= w @ V / w.sum()
    m = w @ A.astype(float) / w.sum() if centred else np.zeros(d)
    B = A.astype(float) - m
    H, found, products = gram.gram_and_products(as_matrix(A), w, V, centred)
    scale = float(np.square(A.astype(float)).sum())
    np.testing.assert_allclose(found, m, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(H, (B.T * w) @ B, rtol=0, atol=1e-14 * scale)
    np.testing.assert_allclose(products, (B.T * w) @ V, rtol=0, atol=1e-14 * scale)
