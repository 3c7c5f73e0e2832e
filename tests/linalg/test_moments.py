"""Moments of rows against the textbook's sums, in long double; and their subtraction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from adacoord.data.matrix import as_matrix
from adacoord.linalg import moments as module
from adacoord.linalg.moments import fits, means, moments

STORAGES = [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array]


def make(n=60, d=7, dtype=np.float64, mean=0.0):
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6) + mean).astype(dtype)
    return A, rng.standard_normal(n) + 3.0, rng.integers(0, 3, n).astype(float)


def exact(A, b, w, rows, intercept):
    """(G, q, square, means) in long double."""
    A, b, w = (np.asarray(v, dtype=np.longdouble)[rows] for v in (A, b, w))
    m, mb = np.zeros(A.shape[1], dtype=np.longdouble), np.longdouble(0)
    if intercept:
        m, mb = w @ A / w.sum(), w @ b / w.sum()
    A, b = A - m, b - mb
    return (A.T * w) @ A, (A.T * w) @ b, w @ (b * b), m


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["all", "block", "some"])
def test_against_the_sums(storage, dtype, weighted, intercept, kind, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 100)
    A, b, w = make(dtype=dtype)
    rows = {"all": None, "block": np.arange(20, 45), "some": np.arange(1, 60, 2)}[kind]
    matrix, weights = as_matrix(storage(A)), w if weighted else None
    shift = means(matrix, b, weights) if intercept else np.zeros(8)
    found = moments(matrix, b, weights, shift, rows)
    kept = np.arange(60) if rows is None else rows
    w = w if weighted else np.ones(60)
    loss = found.least_squares(intercept, 10.0)
    G, q, square, m = exact(A, b, w, kept, intercept)
    np.testing.assert_allclose(loss.gram, (G / 10).astype(float), atol=1e-13)
    np.testing.assert_allclose(loss.cross, (q / 10).astype(float), atol=1e-12)
    assert loss.square == pytest.approx(float(square / 10), rel=1e-12)
    np.testing.assert_allclose(loss.means, m.astype(float), atol=1e-14)
    assert found.mass == pytest.approx(w[kept].sum()) and found.rows == kept.size
    # errors of any model on these rows, without another look at them
    X, c = np.random.default_rng(1).standard_normal((3, 7)), np.array([0.0, 1.0, -2.0])
    errors = [w[kept] @ np.square(A[kept] @ x + k - b[kept]) for x, k in zip(X, c, strict=True)]
    total, doubt = found.squared_error(X, c)
    np.testing.assert_allclose(total, errors, rtol=1e-6 if dtype == np.float32 else 1e-12)
    assert (np.abs(total - errors) <= doubt + 1e-6 * total * (dtype == np.float32)).all()


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("left", [1, 3, 59])
def test_folds_are_subtracted(mean, left):
    """What is left is as exact as its sizes say, also where hardly a row is left."""
    A, b, w = make(mean=mean)
    w += 1.0
    matrix = as_matrix(A)
    shift = means(matrix, b, w)
    total, test = moments(matrix, b, w, shift), np.arange(60 - left)
    found = total - moments(matrix, b, w, shift, test)
    assert found.rows == left and found.mass == pytest.approx(w[60 - left :].sum())
    G, q, square, _ = exact(A, b, w, np.arange(60 - left, 60), True)
    loss = found.least_squares(True, 1.0)
    allowed = 1e-13 * np.multiply.outer(loss.sizes, loss.sizes) + 4e-10 * (mean > 0.0)
    assert (np.abs(loss.gram - G.astype(float)) <= allowed[:-1, :-1]).all()
    assert (np.abs(loss.cross - q.astype(float)) <= allowed[:-1, -1]).all()
    assert abs(loss.square - float(square)) <= allowed[-1, -1]
    both = found + moments(matrix, b, w, shift, test)
    np.testing.assert_allclose(both.products, total.products, atol=1e-11)


def test_constant_columns_do_not_move():
    A, b, _ = make(mean=1e6)
    A[:, 2], A[:30, 3] = 1e6 + 0.1, 0.0
    A[30:, 3] = 5.0
    matrix = as_matrix(A)
    shift = means(matrix, b, None)
    total, first = moments(matrix, b, None, shift), np.arange(30)
    moving = [
        m.least_squares(True, 60).moving for m in (total, moments(matrix, b, None, shift, first))
    ]
    np.testing.assert_array_equal(moving[0], np.arange(7) != 2)
    np.testing.assert_array_equal(moving[1], ~np.isin(np.arange(7), (2, 3)))
    rest = (total - moments(matrix, b, None, shift, first)).least_squares(True, 30)
    np.testing.assert_array_equal(rest.moving, moving[1])


def test_the_limit_of_memory():
    assert fits(4000, 4) and not fits(6000, 4) and not fits(20_000, 1)


def test_shifted_moments_know_their_intercept():
    A, b, _ = make()
    matrix = as_matrix(A)
    with pytest.raises(ValueError, match="with an intercept"):
        moments(matrix, b, None, means(matrix, b, None)).least_squares(False, 60)
