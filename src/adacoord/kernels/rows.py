"""The row loops every kernel is made of, for dense and CSR data alike.

A matrix is ``(indptr, indices, data)`` with ``indices=None`` for dense rows: Numba prunes the
``is None`` branch when it compiles, so each storage gets its own straight loop from one source.
Indices and row pointers are unsigned, because Numba guards signed ones against negatives
(12.1 -> 7.1 ms and 101 -> 53 ms for a dual pass over w8a and RCV1).
"""

from __future__ import annotations

import numpy as np

from .jit import FAST, jit, prefetch
from .summation import LONG

#: Entries of rows that are added up four at a time.
SHORT = 32
#: Rows of the known order to fetch ahead (7.1 -> 5.0 ms, 53 -> 44 ms for the same passes).
AHEAD = 4


@jit(fastmath=FAST)
def row_dot(indices, data, start, stop, x):
    """a_i . x in the type of ``x``."""
    total = x.dtype.type(0)
    if indices is None:
        for k in range(start, stop):
            total += data[k] * x[k - start]
    else:
        for k in range(start, stop):
            total += data[k] * x[indices[k]]
    return total


@jit(fastmath=FAST)
def row_add(indices, data, start, stop, scale, x):
    """x += scale a_i, in the type of ``x``."""
    factor = x.dtype.type(scale)
    if indices is None:
        for k in range(start, stop):
            x[k - start] += factor * data[k]
    else:
        for k in range(start, stop):
            x[indices[k]] += factor * data[k]


@jit
def prefetch_row(indptr, indices, data, i):
    """Ask for the cache lines of row ``i`` (64 bytes: 8 doubles)."""
    for k in range(indptr[i], indptr[i + np.uint64(1)], np.uint64(8)):
        prefetch(data, k)
        if indices is not None:
            prefetch(indices, k)


@jit(fastmath=FAST)
def _piece(indices, data, start, first, last, x):
    """The part of a_i . x that the entries from first to last make."""
    total = x.dtype.type(0)
    for k in range(first, last):
        total += data[k] * x[k - start if indices is None else indices[k]]
    return total


@jit
def _in_pieces(indices, data, start, stop, x):
    size = np.uint64(max(np.float64(LONG), np.floor(np.sqrt(np.float64(stop - start)))))
    total, first = x.dtype.type(0), start
    while first < stop:
        last = min(first + size, stop)
        total += _piece(indices, data, start, first, last, x)
        first = last
    return total


@jit(inline=True)
def long_dot(indices, data, start, stop, x):
    """a_i . x as :func:`row_dot`, long rows in pieces: see :mod:`.summation`."""
    # apart, so that the loop over short rows is inlined (100,000 x 10: 0.79 -> 0.25 ms)
    if stop - start > np.uint64(LONG):
        return _in_pieces(indices, data, start, stop, x)
    return row_dot(indices, data, start, stop, x)


@jit(fastmath=FAST, inline=True)
def _four_dots(data, start, x, out, i):
    """Of four dense rows from ``start`` on, which do not wait for one another's sums."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    size = np.uint64(x.shape[0])
    second, third, fourth = start + size, start + size + size, start + size + size + size
    a, b, c, d = x.dtype.type(0), x.dtype.type(0), x.dtype.type(0), x.dtype.type(0)
    for k in range(size):
        a += data[start + k] * x[k]
        b += data[second + k] * x[k]
        c += data[third + k] * x[k]
        d += data[fourth + k] * x[k]
    out[i], out[i + one], out[i + two], out[i + three] = a, b, c, d


@jit
def matvec(indptr, indices, data, x, out):
    """out = A x.

    Four short dense rows at a time (40,000 x 8 numbers: .090 -> .037 ms); the last ones once more
    with those before them, so that the bits of a row are its own.
    """
    four, n = np.uint64(4), np.uint64(out.shape[0])
    if indices is None and x.shape[0] <= SHORT and n >= four:
        for k in range(np.uint64(0), n, four):  # one call: each is compiled apart
            i = min(k, n - four)
            _four_dots(data, indptr[i], x, out, i)
        return
    for i in range(n):
        out[i] = long_dot(indices, data, indptr[i], indptr[i + np.uint64(1)], x)


@jit(fastmath=FAST)
def magnitudes(indptr, indices, data, x, out):
    """out = |A| |x|."""
    for i in range(np.uint64(out.shape[0])):
        total, start = 0.0, indptr[i]
        for k in range(start, indptr[i + np.uint64(1)]):
            total += abs(np.float64(data[k]) * x[k - start if indices is None else indices[k]])
        out[i] = total


@jit(fastmath=FAST, inline=True)
def _four_rows_add(data, start, a, b, c, d, out):
    """out += a a_0 + b a_1 + c a_2 + d a_3 for four dense rows from ``start`` on."""
    size = np.uint64(out.shape[0])
    second, third, fourth = start + size, start + size + size, start + size + size + size
    for k in range(size):
        out[k] += (a * data[start + k] + b * data[second + k]) + (
            c * data[third + k] + d * data[fourth + k]
        )


@jit
def rmatvec(indptr, indices, data, v, block, part, out):
    """out += A' v, by blocks of rows whose sums are made in ``part``, which holds zeros.

    Four short dense rows at a time, which would wait for one another's sums (85,156 x 5 numbers:
    0.33 -> 0.18 ms); long ones come faster from memory one by one (30,000 x 100: 1.1, not 1.5).
    """
    one, four, n, start = np.uint64(1), np.uint64(4), np.uint64(v.shape[0]), np.uint64(0)
    while start < n:
        first, last = start, min(start + np.uint64(block), n)
        if indices is None and out.shape[0] <= SHORT:
            while first + four <= last:
                a, b, c, d = (
                    v[first],
                    v[first + one],
                    v[first + np.uint64(2)],
                    v[first + np.uint64(3)],
                )
                if a != 0.0 and b != 0.0 and c != 0.0 and d != 0.0:
                    _four_rows_add(data, indptr[first], a, b, c, d, part)
                else:
                    for i in range(first, first + four):
                        if v[i] != 0.0:
                            row_add(indices, data, indptr[i], indptr[i + one], v[i], part)
                first += four
        for i in range(first, last):
            if v[i] != 0.0:
                row_add(indices, data, indptr[i], indptr[i + one], v[i], part)
        for j in range(np.uint64(out.shape[0])):
            out[j] += part[j]
            part[j] = 0.0
        start = last


@jit
def both_products(indptr, indices, data, x, v, block, part, z, out):
    """z = A x and out += A' v, as :func:`matvec` and :func:`rmatvec` of rows that are long or
    sparse: each is read once (CPU ms, two products / this: 900 x 9,000 numbers 4.6/3.0, 6,000 x 350
    .39/.30, sparse rows of 75 in 47,000 columns, 20,000 of them, 2.6/1.6)."""
    one, n, start = np.uint64(1), np.uint64(v.shape[0]), np.uint64(0)
    while start < n:
        last = min(start + np.uint64(block), n)
        for i in range(start, last):
            first, end = indptr[i], indptr[i + one]
            z[i] = long_dot(indices, data, first, end, x)
            if v[i] != 0.0:
                row_add(indices, data, first, end, v[i], part)
        for j in range(np.uint64(out.shape[0])):
            out[j] += part[j]
            part[j] = 0.0
        start = last


@jit(fastmath=FAST)
def column_squares(indptr, indices, data, weight, out):
    """out_j += sum_i weight_i a_ij^2, in float64."""
    for i in range(np.uint64(indptr.shape[0] - 1)):
        start, stop, factor = indptr[i], indptr[i + np.uint64(1)], weight[i]
        for e in range(start, stop):
            j = e - start if indices is None else indices[e]
            out[j] += factor * np.float64(data[e]) * np.float64(data[e])


@jit
def column_moments(indptr, indices, data, weight, sizes, squares, sums):
    """sizes_j, squares_j, sums_j += the number of entries of sparse column j, and their squares
    and values by ``weight`` (of one element: the same for all rows), in float64."""
    constant = weight.shape[0] == 1
    for i in range(np.uint64(indptr.shape[0] - 1)):
        factor = weight[0] if constant else weight[i]
        for e in range(indptr[i], indptr[i + np.uint64(1)]):
            j, entry = indices[e], np.float64(data[e])
            sizes[j] += 1
            sums[j] += factor * entry
            squares[j] += factor * entry * entry


@jit
def gather_columns(indptr, indices, data, held, place, rows, out):
    """The entries of the sparse columns that are ``held``, from place_j on in ``rows`` and ``out``.

    ``place`` ends as the ends of the columns; their rows come out in order.
    """
    for i in range(np.uint64(indptr.shape[0] - 1)):
        for e in range(indptr[i], indptr[i + np.uint64(1)]):
            j = indices[e]
            if held[j]:  # bytes that stay in the cache, where places would not
                p = place[j]
                rows[p], out[p] = i, data[e]
                place[j] = p + np.uint64(1)


@jit(fastmath=FAST, inline=True)
def _four_squares(data, start, size, out, i):
    """Of four dense rows from ``start`` on."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    second, third, fourth = start + size, start + size + size, start + size + size + size
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for k in range(size):
        a += np.float64(data[start + k]) * np.float64(data[start + k])
        b += np.float64(data[second + k]) * np.float64(data[second + k])
        c += np.float64(data[third + k]) * np.float64(data[third + k])
        d += np.float64(data[fourth + k]) * np.float64(data[fourth + k])
    out[i], out[i + one], out[i + two], out[i + three] = a, b, c, d


@jit(fastmath=FAST)
def squared_norms(indptr, indices, data, out):
    """out_i = |a_i|^2, accumulated in float64; short dense rows as in :func:`matvec`."""
    four, n = np.uint64(4), np.uint64(out.shape[0])
    if indices is None and n >= four and indptr[1] - indptr[0] <= np.uint64(SHORT):
        size = indptr[1] - indptr[0]
        for k in range(np.uint64(0), n, four):
            i = min(k, n - four)
            _four_squares(data, indptr[i], size, out, i)
        return
    for i in range(n):
        total = 0.0
        for k in range(indptr[i], indptr[i + np.uint64(1)]):
            total += np.float64(data[k]) * np.float64(data[k])
        out[i] = total


@jit
def has_duplicates(indptr, indices, seen):
    """Whether a row names a column twice; ``seen`` holds a -1 for every column."""
    for i in range(np.uint64(indptr.shape[0] - 1)):
        for k in range(indptr[i], indptr[i + np.uint64(1)]):
            if seen[indices[k]] == np.int64(i):
                return True
            seen[indices[k]] = np.int64(i)
    return False
