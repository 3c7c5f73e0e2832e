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
#: ... and the share of the mean square of each column that means may make where they are left.
CENTRED = 0.99
#: Rows of a block that BLAS needs no more than (16,384 columns: 128 MB).
TALL = 2**10
#: Of products, unless float32 will do.
DOUBLE = np.dtype(np.float64)


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
        A, weight = _with_weight(as_scipy(matrix), weight)
        if d <= NARROW:
            return _narrow_gram(A, weight, centre)[0]
        kind = np.dtype(np.float32) if single else DOUBLE
        return _dense_gram(A, weight, centre, kind=kind)[0]
    H = np.zeros((d, d))
    sparse_gram(*matrix.arrays, weight, H)
    if centre is not None:
        H -= float(np.sum(weight)) * np.multiply.outer(centre, centre)
    return H


def centred_gram(
    matrix: Matrix, weight: np.ndarray, single: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(:func:`weighted_gram` about the mean by these weights, that mean).

    Dense columns are gone through once, about the mean of some rows.
    """
    if matrix.is_dense and not matrix.blocked and not single:
        return _about_mean(*_with_weight(as_scipy(matrix), weight))[:2]
    centre = matrix.tdot(weight) / float(np.sum(weight))
    return weighted_gram(matrix, weight, centre, single), centre


def gram_and_products(
    matrix: Matrix, weight: np.ndarray, values: np.ndarray, centred: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(:func:`weighted_gram` about m, m, sum_i weight_i (a_i - m) v_i') of dense rows.

    m is the mean by these weights, or 0, unless ``centred``.  One v_i for each row, or several.
    """
    A = as_scipy(matrix)
    if A.shape[1] > NARROW or values.ndim == 1:
        # products with blocks of rows that are in the cache anyway
        if centred:
            return _about_mean(A, weight, values)
        made = _narrow_gram if A.shape[1] <= NARROW else _dense_gram
        H, _, products = made(A, weight, None, values=values)
        return H, np.zeros(A.shape[1]), products
    products = matrix.tdot((weight * values.T).T)
    if not centred:
        return weighted_gram(matrix, weight), np.zeros(A.shape[1]), products
    H, centre, _ = _about_mean(A, weight)
    return H, centre, products - np.multiply.outer(centre, weight @ values)


def weighted_moments(matrix: Matrix, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(sum_i weight_i a_i a_i', sum_i weight_i a_i): blocks of rows are loaded once for both."""
    return matrix.gather(_moments_of_block, rows=(weight,))[1]


def _moments_of_block(block: Matrix, weight: np.ndarray) -> tuple:
    return (), (weighted_gram(block, weight), block.tdot(weight))


def _gram_of_block(block: Matrix, centre: np.ndarray | None, weight: np.ndarray) -> tuple:
    return (), (weighted_gram(block, weight, centre),)


def _with_weight(A: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that have a weight, where they are few: of those that kinks leave a curvature."""
    # to count them takes as long as short rows do
    if A.shape[1] > SHORT and 2 * np.count_nonzero(weight) < weight.size:
        rows = np.flatnonzero(weight)
        return A[rows], weight[rows]
    return A, weight


def _about_mean(
    A: np.ndarray, weight: np.ndarray, values: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(Gram matrix about the mean, mean, products with ``values``) of dense rows.

    About the mean of some rows, or about 0 where that will do as well; about the mean of all where
    this leaves too little.
    """
    n, d = A.shape
    total = float(np.sum(weight))
    near = np.zeros(d)
    if n:
        some = A[:: max(1, n // SAMPLE)].astype(np.float64, copy=False)
        mean = np.ones(len(some)) @ some / len(some)
        # rows that nothing is taken off are not copied (8,733 x 66 numbers: 1.75 -> 1.55 ms)
        small = np.square(mean) <= CENTRED * np.einsum("ij,ij->j", some, some) / len(some)
        if d <= NARROW or not small.all():
            near = mean
    for last in (False, True):
        made = _narrow_gram if d <= NARROW else _dense_gram
        H, sums, products = made(A, weight, near, values=values)
        sums /= total
        left = total * np.multiply.outer(sums, sums)
        near = near + sums
        if last or (left.diagonal() <= (1.0 - CANCELS) * H.diagonal()).all():
            break
    H -= left
    if values is not None:
        products -= np.multiply.outer(sums, weight @ values)
    return H, near, products


def _narrow_gram(
    A: np.ndarray,
    weight: np.ndarray,
    centre: np.ndarray | None,
    values: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """:func:`_dense_gram`, with one value for each row at most."""
    from ..kernels.gram import narrow_gram

    (n, d), by_rows = A.shape, A.flags.c_contiguous
    data, across, down = (A, 1, d) if by_rows else (A.T, n, 1)
    H, sums, products = np.empty((d, d)), np.zeros(d), np.zeros(d)
    centre = np.zeros(d) if centre is None else centre
    values = np.zeros(0) if values is None else values
    steps = np.uint64(across), np.uint64(down)
    narrow_gram(data.reshape(-1), *steps, weight, values, centre, H, sums, products)
    return H, sums, products


def _dense_gram(
    A: np.ndarray,
    weight: np.ndarray,
    centre: np.ndarray | None,
    values: np.ndarray | None = None,
    kind: np.dtype = DOUBLE,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sum_i weight_i (a_i - centre)(a_i - centre)', sum_i weight_i (a_i - centre), sum_i weight_i
    (a_i - centre) v_i').

    In blocks of rows; nothing cancels where means are large.
    """
    n, d = A.shape
    shift = None if centre is None or not centre.any() else centre.astype(kind)
    H, sums = np.zeros((d, d)), np.zeros(d)
    products = np.zeros((d, 0) if values is None else (d, *values.shape[1:]))
    # nearly as many as there are columns: BLAS is at its best, and the sum a small part of it
    rows, alike = max(CACHED // d, min(d, TALL)), n > 0 and bool((weight == weight[0]).all())
    root = np.ones(rows) if alike else np.sqrt(weight)
    # one block for all: memory from the system would take half the time of the products
    as_it_is = shift is None and alike and A.dtype == kind
    room = None if as_it_is else np.empty((min(rows, n), d), kind)
    for i in range(0, n, rows):
        part = A[i : i + rows]
        own = root[: len(part)] if alike else root[i : i + rows]
        if room is not None:
            part = np.subtract(
                part, 0.0 if shift is None else shift, out=room[: len(part)], dtype=kind
            )
        if not alike:
            part *= own[:, None].astype(kind)
        H += part.T @ part
        sums += own @ part
        if values is not None:
            some = values[i : i + rows]
            products += part.T @ (some if alike else (own * some.T).T)
    if alike:
        for total in (H, sums, products):
            total *= weight[0]
    return H, sums, products
