"""Weighted Gram matrices: BLAS for dense data, each pair of entries of a row once for sparse."""

from __future__ import annotations

import numpy as np

from ..data.columns import as_scipy
from ..data.matrix import Matrix

#: Entries of the blocks of rows that dense products are made of (32 MB).
BLOCK = 2**22


def weighted_gram(matrix: Matrix, weight: np.ndarray, centre: np.ndarray | None = None):
    """sum_i weight_i (a_i - centre)(a_i - centre)' in float64, over the rows that have a weight.

    For sparse data ``centre`` must be the mean by these weights.
    """
    rows = np.flatnonzero(weight)
    if matrix.is_dense:
        A, root = as_scipy(matrix), np.sqrt(weight)
        if 2 * rows.size < weight.size:  # few rows have a curvature, with kinks
            A, root = A[rows], root[rows]
        return _dense_gram(A, root, centre)
    from ..kernels.gram import sparse_gram

    d = matrix.shape[1]
    H = np.zeros((d, d))
    sparse_gram(*matrix.arrays, weight, H)
    if centre is not None:
        H -= float(np.sum(weight)) * np.multiply.outer(centre, centre)
    return H


def _dense_gram(A: np.ndarray, root: np.ndarray, centre: np.ndarray | None) -> np.ndarray:
    """In blocks of rows; nothing cancels where means are large."""
    n, d = A.shape
    H = np.zeros((d, d))
    rows = max(1, BLOCK // d)
    for i in range(0, n, rows):
        part = (
            A[i : i + rows] * root[i : i + rows, None]
            if centre is None
            else ((A[i : i + rows] - centre) * root[i : i + rows, None])
        )
        H += part.T @ part
    return H
