"""The kernels of :mod:`.single`: products with dense float32 rows, in float32.

Some rows at a time, which stay in the cache between the product with A and that with A'; four of
them share a sum.  What a block adds up is added to float64 sums.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import FAST, jit

#: Entries of a block (256 kB); rows that are made of columns at a time.
BLOCK, ROWS = 2**16, 32


@jit(fastmath=FAST)
def round_rows(A, centre, scale, out):
    """out = (A - centre) scale; returns the largest squared length of its rows."""
    largest = 0.0
    for i in range(np.uint64(A.shape[0])):
        square = 0.0
        for j in range(np.uint64(A.shape[1])):
            entry = (A[i, j] - centre[j]) * scale[j]
            out[i, j] = entry
            square += entry * entry
        largest = max(largest, square)
    return largest


@jit(fastmath=FAST)
def round_columns(columns, centre, scale, out):
    """The same of data by columns: a few rows at a time, so that both sides stay in the cache."""
    largest, squares = 0.0, np.empty(ROWS)
    n = columns.shape[1]
    for first in range(0, n, ROWS):
        m = min(ROWS, n - first)
        squares[:] = 0.0
        for j in range(columns.shape[0]):
            for i in range(m):
                entry = (columns[j, first + i] - centre[j]) * scale[j]
                out[first + i, j] = entry
                squares[i] += entry * entry
        largest = max(largest, squares[:m].max())
    return largest


@jit(fastmath=FAST)
def _dot(row, v):
    total = np.float32(0.0)
    for k in range(row.shape[0]):
        total += row[k] * v[k]
    return total


@jit(fastmath=FAST)
def _add(row, factor, out):
    for k in range(out.shape[0]):
        out[k] += factor * row[k]


@jit(fastmath=FAST)
def _add_four(first, second, third, fourth, a, b, c, d, out):
    for k in range(out.shape[0]):
        out[k] += (a * first[k] + b * second[k]) + (c * third[k] + d * fourth[k])


@jit
def _widen(part, out):
    for k in range(out.shape[0]):
        out[k] += part[k]


@jit
def hessian_single(A, v, shift, bend, av, out):
    """av = A v + shift and out += A' (bend av), each row read once; returns the sum of bend av."""
    n, d = A.shape
    size = max(4, BLOCK // d // 4 * 4)
    total, part, bent = 0.0, np.empty(d, dtype=np.float32), np.empty(size, dtype=np.float32)
    for first in range(0, n, size):
        rows = A[first : first + size]
        m = rows.shape[0]
        for i in range(m):
            av[first + i] = np.float64(_dot(rows[i], v)) + shift
            factor = bend[first + i] * av[first + i]
            bent[i] = factor
            total += factor
        part[:] = 0.0
        whole = m // 4 * 4
        for i in range(0, whole, 4):
            a, b, c, e = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
            _add_four(a, b, c, e, bent[i], bent[i + 1], bent[i + 2], bent[i + 3], part)
        for i in range(whole, m):
            _add(rows[i], bent[i], part)
        _widen(part, out)
    return total


@jit
def rmatvec_single(A, p, out):
    """out += A'p."""
    n, d = A.shape
    part = np.empty(d, dtype=np.float32)
    size = max(4, BLOCK // d)
    for first in range(0, n, size):
        part[:] = 0.0
        for i in range(first, min(n, first + size)):  # four at a time come slower from memory
            _add(A[i], np.float32(p[i]), part)
        _widen(part, out)
