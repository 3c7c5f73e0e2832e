"""Weighted Gram matrices: BLAS for dense data, each pair of entries of a row once for sparse."""

from __future__ import annotations

import numpy as np

from ..data.columns import as_scipy
from ..data.matrix import Matrix

#: Entries of the blocks of rows that dense products are made of (32 MB); of those that are made
#: for a single product, which stay in the cache (1 MB: 40,000 x 60 numbers, 18 -> 9 ms).
BLOCK, CACHED = 2**22, 2**17
#: Columns up to which BLAS has too little to do (245,057 x 3 numbers: 4.2 -> 2.6 ms).
NARROW = 16


def weighted_gram(matrix: Matrix, weight: np.ndarray, centre: np.ndarray | None = None):
    """sum_i weight_i (a_i - centre)(a_i - centre)' in float64, over the rows that have a weight.

    For sparse data ``centre`` must be the mean by these weights.
    """
    from ..kernels.gram import narrow_gram, sparse_gram

    d = matrix.shape[1]
    if matrix.is_dense and d > NARROW:
        A, root = as_scipy(matrix), np.sqrt(weight)
        if 2 * np.count_nonzero(weight) < weight.size:  # few rows have a curvature, with kinks
            rows = np.flatnonzero(weight)
            A, root = A[rows], root[rows]
        return _dense_gram(A, root, centre)
    H = np.zeros((d, d))
    if matrix.is_dense:
        narrow_gram(as_scipy(matrix), weight, np.zeros(d) if centre is None else centre, H)
        return H
    sparse_gram(*matrix.arrays, weight, H)
    if centre is not None:
        H -= float(np.sum(weight)) * np.multiply.outer(centre, centre)
    return H


def _dense_gram(A: np.ndarray, root: np.ndarray, centre: np.ndarray | None) -> np.ndarray:
    """In blocks of rows; nothing cancels where means are large."""
    n, d = A.shape
    H = np.zeros((d, d))
    rows, alike = max(1, CACHED // d), n > 0 and bool((root == root[0]).all())
    for i in range(0, n, rows):
        part = np.subtract(A[i : i + rows], 0.0 if centre is None else centre, dtype=np.float64)
        if not alike:
            part *= root[i : i + rows, None]
        H += part.T @ part
    if alike:
        H *= root[0] ** 2
    return H
