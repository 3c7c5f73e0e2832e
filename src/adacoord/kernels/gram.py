"""Gram matrices of sparse rows, and of rows too short for BLAS."""

from __future__ import annotations

import numpy as np

from .jit import FAST, jit


@jit
def sparse_gram(indptr, indices, data, bend, out):
    """out = A' diag(bend) A for CSR rows in any order of columns.

    Each pair of entries of a row once, then the halves are added: 3.4 M pairs for a9a, against
    250 M multiply-adds of a dense product.
    """
    one = np.uint64(1)
    for i in range(np.uint64(bend.shape[0])):
        if bend[i] != 0.0:
            for p in range(indptr[i], indptr[i + one]):
                scaled = bend[i] * np.float64(data[p])
                row = indices[p]
                out[row, row] += 0.5 * scaled * np.float64(data[p])
                for q in range(p + one, indptr[i + one]):
                    out[row, indices[q]] += scaled * np.float64(data[q])
    for j in range(np.uint64(out.shape[0])):
        for k in range(j + one):
            total = out[j, k] + out[k, j]
            out[j, k] = total
            out[k, j] = total


#: Rows that are turned into columns at a time: these stay in the first cache.
ROWS = np.uint64(128)


@jit(inline=True)
def _turn(data, start, step, size, centre, out, at):
    """out[at], ... = ``size`` entries of a column less its centre; four at a time, as gathers
    take twice as long."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    e, last = start, at + size
    while at + four <= last:
        out[at] = np.float64(data[e]) - centre
        out[at + one] = np.float64(data[e + step]) - centre
        e += step + step
        out[at + two] = np.float64(data[e]) - centre
        out[at + three] = np.float64(data[e + step]) - centre
        e += step + step
        at += four
    while at < last:
        out[at] = np.float64(data[e]) - centre
        e += step
        at += one


@jit(fastmath=FAST, inline=True)
def _two_by_two(columns, weight, j, k, size):
    """The weighted products of columns at j and the next one with those at k."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        x, y = weight[i] * columns[j + i], weight[i] * columns[j + ROWS + i]
        a += x * columns[k + i]
        b += x * columns[k + ROWS + i]
        c += y * columns[k + i]
        d += y * columns[k + ROWS + i]
    return a, b, c, d


@jit(fastmath=FAST, inline=True)
def _weighted_sum(columns, weight, j, size):
    total = 0.0
    for i in range(size):
        total += weight[i] * columns[j + i]
    return total


@jit
def narrow_gram(data, across, down, weight, values, centre, out, sums, products):
    """out = sum_i weight_i (a_i - centre)(a_i - centre)', sums += sum_i weight_i (a_i - centre),
    and products += sum_i weight_i values_i (a_i - centre) where there are ``values``.

    Entry (i, j) is ``data[i * down + j * across]``.  Some rows at a time as columns, of which two
    by two are in registers at once (CPU ms, one pair at a time / this / BLAS: 40,000 x 8 numbers
    .49/.21/1.0, 85,156 x 5 .64/.25/1.9, 20,000 x 32 1.7/1.1/2.0, 10,000 x 60 2.5/1.7/2.3).
    """
    one, two = np.uint64(1), np.uint64(2)
    n, d = np.uint64(weight.shape[0]), np.uint64(centre.shape[0])
    wide, first = d + (d & one), np.uint64(0)
    columns, totals, scaled = np.zeros(wide * ROWS), np.zeros((wide, wide)), np.zeros(ROWS)
    valued = values.shape[0] > 0
    while first < n:
        size = min(ROWS, n - first)
        part = weight[first : first + size]
        if valued:
            for i in range(size):
                scaled[i] = part[i] * values[first + i]
        for j in range(d):
            _turn(data, first * down + j * across, down, size, centre[j], columns, j * ROWS)
            sums[j] += _weighted_sum(columns, part, j * ROWS, size)
            if valued:
                products[j] += _weighted_sum(columns, scaled, j * ROWS, size)
        for j in range(np.uint64(0), wide, two):
            for k in range(np.uint64(0), j + one, two):
                a, b, c, e = _two_by_two(columns, part, j * ROWS, k * ROWS, size)
                totals[j, k] += a
                totals[j, k + one] += b
                totals[j + one, k] += c
                totals[j + one, k + one] += e
        first += ROWS
    for j in range(d):
        for k in range(j + one):
            out[j, k] = totals[j, k]
            out[k, j] = totals[j, k]
