"""Weighted Gram matrices: BLAS for dense data, each pair of entries of a row once for sparse."""

from __future__ import annotations

import numpy as np

from ..data.columns import as_scipy
from ..data.matrix import Matrix

#: Entries of the blocks of rows that dense products are made of (32 MB); of those that are made
#: for a single product, which stay in the cache (1 MB: 40,000 x 60 numbers, 18 -> 9 ms).
BLOCK, CACHED = 2**22, 2**17
#: Columns up to which BLAS has too little to do: half the time at 48, as much at 80.
NARROW = 48
#: Entries of rows that are taken whether they have a weight or not.
SHORT = 16
#: Rows whose mean is near enough to that of all: what is left is then taken from their products.
SAMPLE = 256
#: ... unless that leaves less than this share of them.
CANCELS = 1e-4


def weighted_gram(
    matrix: Matrix, weight: np.ndarray, centre: np.ndarray | None = None, single: bool = False
):
    """sum_i weight_i (a_i - centre)(a_i - centre)' in float64, over the rows that have a weight.

    For sparse data ``centre`` must be the mean by these weights.  ``single``: float32 products of
    dense float32 rows will do, in half the time.
    """
    from ..kernels.gram import sparse_gram

    if matrix.blocked:
        return matrix.gather(_gram_of_block, centre, rows=(weight,))[1][0]
    d = matrix.shape[1]
    if matrix.is_dense:
        A = as_scipy(matrix)
        # few rows have a curvature, with kinks; to count them takes as long as short rows do
        if d > SHORT and 2 * np.count_nonzero(weight) < weight.size:
            rows = np.flatnonzero(weight)
            A, weight = A[rows], weight[rows]
        if d <= NARROW:
            return _narrow_gram(A, weight, np.zeros(d) if centre is None else centre)[0]
        kind = np.dtype(np.float32 if single else np.float64)
        return _dense_gram(A, np.sqrt(weight), centre, kind)
    H = np.zeros((d, d))
    sparse_gram(*matrix.arrays, weight, H)
    if centre is not None:
        H -= float(np.sum(weight)) * np.multiply.outer(centre, centre)
    return H


def centred_gram(
    matrix: Matrix, weight: np.ndarray, single: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(:func:`weighted_gram` about the mean by these weights, that mean).

    A few dense columns are gone through once, about the mean of some rows.
    """
    total = float(np.sum(weight))
    if matrix.is_dense and not matrix.blocked and matrix.shape[1] <= NARROW:
        A = as_scipy(matrix)
        near = A[:: max(1, len(A) // SAMPLE)].mean(axis=0, dtype=np.float64)
        H, sums = _narrow_gram(A, weight, near)
        sums /= total
        left = total * np.multiply.outer(sums, sums)
        if (left.diagonal() <= (1.0 - CANCELS) * H.diagonal()).all():
            return H - left, near + sums
    centre = matrix.tdot(weight) / total
    return weighted_gram(matrix, weight, centre, single), centre


def weighted_moments(matrix: Matrix, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(sum_i weight_i a_i a_i', sum_i weight_i a_i): blocks of rows are loaded once for both."""
    return matrix.gather(_moments_of_block, rows=(weight,))[1]


def _moments_of_block(block: Matrix, weight: np.ndarray) -> tuple:
    return (), (weighted_gram(block, weight), block.tdot(weight))


def _gram_of_block(block: Matrix, centre: np.ndarray | None, weight: np.ndarray) -> tuple:
    return (), (weighted_gram(block, weight, centre),)


def _narrow_gram(
    A: np.ndarray, weight: np.ndarray, centre: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(sum_i weight_i (a_i - centre)(a_i - centre)', sum_i weight_i (a_i - centre))."""
    from ..kernels.gram import narrow_gram

    (n, d), by_rows = A.shape, A.flags.c_contiguous
    data, across, down = (A, 1, d) if by_rows else (A.T, n, 1)
    H, sums = np.empty((d, d)), np.zeros(d)
    narrow_gram(data.reshape(-1), np.uint64(across), np.uint64(down), weight, centre, H, sums)
    return H, sums


def _dense_gram(
    A: np.ndarray, root: np.ndarray, centre: np.ndarray | None, kind: np.dtype
) -> np.ndarray:
    """In blocks of rows; nothing cancels where means are large."""
    n, d = A.shape
    shift = np.zeros(d, kind) if centre is None else centre.astype(kind)
    H = np.zeros((d, d))
    # as many as there are columns at least: BLAS is at its best, and the sum a small part of it
    rows, alike = min(max(CACHED // d, d), n), n > 0 and bool((root == root[0]).all())
    room = np.empty((rows, d), kind)
    for i in range(0, n, max(rows, 1)):
        block = A[i : i + rows]
        part = np.subtract(block, shift, dtype=kind, out=room[: len(block)])
        if not alike:
            part *= root[i : i + rows, None].astype(kind)
        H += part.T @ part
    if alike:
        H *= root[0] ** 2
    return H
