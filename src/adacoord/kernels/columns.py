"""The column loops: products with some or all columns, for dense and CSC data alike.

As in :mod:`adacoord.kernels.rows` a matrix is three arrays, here ``(colptr, rows, data)`` with
``rows=None`` for dense columns.
"""

from __future__ import annotations

import numpy as np

from .jit import FAST, jit
from .rows import AHEAD, long_dot, prefetch_row


@jit
def column_dots(colptr, rows, data, columns, v, out):
    """out_k = A^j . v for j = columns_k."""
    for k in range(np.uint64(columns.shape[0])):
        if k + np.uint64(AHEAD) < columns.shape[0]:
            prefetch_row(colptr, rows, data, np.uint64(columns[k + np.uint64(AHEAD)]))
        j = np.uint64(columns[k])
        out[k] = long_dot(rows, data, colptr[j], colptr[j + np.uint64(1)], v)


@jit(fastmath=FAST)
def combine(colptr, rows, data, columns, coefficients, out):
    """out += sum_k coefficients_k A^j for j = columns_k; returns the entries touched."""
    touched = np.uint64(0)
    for k in range(np.uint64(columns.shape[0])):
        factor = coefficients[k]
        if factor != 0.0:
            j = np.uint64(columns[k])
            start, stop = colptr[j], colptr[j + np.uint64(1)]
            touched += stop - start
            for e in range(start, stop):
                i = e - start if rows is None else rows[e]
                out[i] += factor * data[e]
    return touched


@jit(fastmath=FAST)
def moments(colptr, rows, data, columns, h, squares, sums):
    """squares_j = sum_i h_i a_ij^2 and sums_j = sum_i h_i a_ij for j in columns."""
    constant = h.shape[0] == 1
    for k in range(np.uint64(columns.shape[0])):
        j = np.uint64(columns[k])
        start, stop = colptr[j], colptr[j + np.uint64(1)]
        square, total = 0.0, 0.0
        for e in range(start, stop):
            i = e - start if rows is None else rows[e]
            part = (h[0] if constant else h[i]) * data[e]
            total += part
            square += part * data[e]
        squares[j] = square
        sums[j] = total


@jit(fastmath=FAST)
def both_moments(colptr, rows, data, norms, squares, sums):
    """norms_i += |a_i|^2, squares_j = |A^j|^2 and sums_j = sum_i a_ij, in float64."""
    for j in range(np.uint64(colptr.shape[0] - 1)):
        start, stop = colptr[j], colptr[j + np.uint64(1)]
        square, total = 0.0, 0.0
        for e in range(start, stop):
            i = e - start if rows is None else rows[e]
            value = np.float64(data[e])
            norms[i] += value * value
            square += value * value
            total += value
        squares[j] = square
        sums[j] = total


@jit(fastmath=FAST)
def column_magnitudes(colptr, rows, data, columns, coefficients, out):
    """out += sum_k |coefficients_k| |A^j| for j = columns_k, in float64."""
    for k in range(np.uint64(columns.shape[0])):
        j = np.uint64(columns[k])
        start, stop = colptr[j], colptr[j + np.uint64(1)]
        for e in range(start, stop):
            i = e - start if rows is None else rows[e]
            out[i] += abs(np.float64(data[e]) * coefficients[k])
