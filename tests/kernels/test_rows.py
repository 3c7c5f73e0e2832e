"""Products with dense rows against NumPy, where several rows are taken at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adacoord.data.matrix import as_matrix
from adacoord.kernels.rows import SHORT


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 23),
    d=st.sampled_from([1, 2, 5, SHORT, SHORT + 1, 70]),
    zeros=st.sampled_from([0.0, 0.3, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**16),
)
def test_transposed_products(n, d, zeros, dtype, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)).astype(dtype)
    v = rng.standard_normal(n) * (rng.random(n) >= zeros)
    expected = A.astype(np.float64).T @ v
    np.testing.assert_allclose(as_matrix(A).tdot(v), expected, rtol=0, atol=1e-13 * n)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 11),
    d=st.sampled_from([1, 2, 5, SHORT, SHORT + 1, 70]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**16),
)
def test_products_and_norms(n, d, dtype, seed):
    """What a row gives does not depend on the rows beside it, to the last bit."""
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((n + 4, d)).astype(dtype), rng.standard_normal(d)
    whole, part = as_matrix(A), as_matrix(A[4:])
    wide = A.astype(np.float64)
    np.testing.assert_allclose(whole.dot(x), wide @ x, rtol=0, atol=1e-14 * (d + 10))
    np.testing.assert_allclose(whole.squared_norms, np.square(wide).sum(axis=1), rtol=1e-14)
    if n >= 4:
        assert np.array_equal(whole.dot(x)[4:], part.dot(x))
        assert np.array_equal(whole.squared_norms[4:], part.squared_norms)
