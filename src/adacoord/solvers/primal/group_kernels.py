r"""The kernels of groups of columns, on the model of :mod:`~adacoord.solvers.primal.kernels`.

A group G is ``members[pointers[G] : pointers[G + 1]]``.  Its part of the model is

    g.(v - x) + (v - x)'B(v - x)/2 + l2/2 |v|^2 + l1 |v|_1 + t |v|_2,

with B = A_G' diag(h) A_G of the centred columns.  A visit costs one product with the columns of G,
and one more update if x_G moves: its minimum is then sought on B alone.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import FAST, jit
from ...kernels.rows import row_dot
from .kernels import _add

#: Proximal steps on B at most, and the share of the first that ends them (500 x 5,000 in groups of
#: 10 at the 50th part, two draws, in CPU ms: 86 and 61 with 1e-3, 78 and 56 with this; with
#: 3e-2 and more it takes more sweeps).
STEPS, ENOUGH = 100, 1e-2


@jit(fastmath=FAST)
def group_grams(
    colptr, rows, data, groups, pointers, members, h, sums, mass, starts, blocks, bounds, column
):
    """B of ``groups`` into ``blocks`` from ``starts`` on, and a bound on its largest eigenvalue.

    A negative start is that of a group too large for it: the bound is its trace.  Returns the
    entries touched; ``column`` is room for one, and stays 0 (for dense data its content is free).
    """
    touched = np.uint64(0)
    one = np.uint64(1)
    constant = h.shape[0] == 1
    for k in range(groups.shape[0]):
        first, size = pointers[groups[k]], pointers[groups[k] + 1] - pointers[groups[k]]
        start = starts[groups[k]]
        trace = 0.0
        for a in range(size):
            j = np.uint64(members[first + a])
            begin, end = colptr[j], colptr[j + one]
            for e in range(begin, end):
                i = e - begin if rows is None else rows[e]
                column[i] = (h[0] if constant else h[i]) * data[e]
            for b in range(a if start >= 0 else size - 1, size):
                other = np.uint64(members[first + (b if start >= 0 else a)])
                dot = row_dot(rows, data, colptr[other], colptr[other + one], column)
                touched += colptr[other + one] - colptr[other]
                entry = dot - sums[j] * (sums[other] / mass)
                if other == j:
                    if entry <= 1e-13 * dot:  # a constant column, but for rounding
                        entry = 0.0
                    trace += entry
                if start >= 0:
                    blocks[start + a * size + b] = entry
                    blocks[start + b * size + a] = entry
            if rows is not None:
                for e in range(begin, end):
                    column[rows[e]] = 0.0
        bound = trace
        if start >= 0:
            widest = 0.0
            for a in range(size):
                total = 0.0
                for b in range(size):
                    total += abs(blocks[start + a * size + b])
                widest = max(widest, total)
            bound = min(trace, widest)
        bounds[groups[k]] = bound
    return touched


@jit(fastmath=FAST)
def group_prox(v, size, l1, threshold):
    """v becomes argmin_x l1 |x|_1 + threshold |x|_2 + |x - v|^2/2."""
    square = 0.0
    for a in range(size):
        value = v[a] - min(max(v[a], -l1), l1)
        v[a] = value
        square += value * value
    norm = np.sqrt(square)
    share = 1.0 - threshold / norm if norm > threshold else 0.0
    for a in range(size):
        v[a] *= share


@jit(fastmath=FAST)
def _group_value(v, size, l1, l2, threshold):
    square, total = 0.0, 0.0
    for a in range(size):
        square += v[a] * v[a]
        total += abs(v[a])
    return threshold * np.sqrt(square) + l1 * total + 0.5 * l2 * square


@jit(fastmath=FAST)
def group_minimum(x, g, size, B, start, bound, l1, l2, threshold, v, r):
    """v = the minimum of the model of a group, from x and the slopes g of the loss there.

    Returns by how much it is below the model at x.
    """
    curvature = bound + l2
    if curvature <= 0.0:  # columns of zeros, or of the intercept's kind: only g sees x_G
        for a in range(size):
            v[a] = 0.0
        return _group_value(x, size, l1, l2, threshold)
    for a in range(size):
        v[a] = x[a]
        r[a] = g[a]
    first = 0.0
    steps = STEPS if start >= 0 else 1
    for step in range(steps):
        # r + B (v - x) is the slope of the smooth part but for l2
        for a in range(size):
            r[a] = v[a] - (r[a] + l2 * v[a]) / curvature
        group_prox(r, size, l1 / curvature, threshold / curvature)
        moved, length = 0.0, 0.0
        for a in range(size):
            moved += (r[a] - v[a]) ** 2
            length += r[a] * r[a]
            v[a] = r[a]
        if step == 0:
            first = moved
        if moved <= ENOUGH * ENOUGH * first or moved <= 1e-32 * length:
            break
        if step + 1 < steps:
            for a in range(size):
                total = g[a]
                for b in range(size):
                    total += B[start + a * size + b] * (v[b] - x[b])
                r[a] = total
    gain = _group_value(x, size, l1, l2, threshold) - _group_value(v, size, l1, l2, threshold)
    for a in range(size):
        change = v[a] - x[a]
        gain -= g[a] * change
        if start >= 0:
            for b in range(size):
                gain -= 0.5 * change * B[start + a * size + b] * (v[b] - x[b])
        else:
            gain -= 0.5 * bound * change * change
    return gain


@jit
def group_sweep(
    colptr,
    rows,
    data,
    order,
    pointers,
    members,
    x,
    slopes,
    h,
    sums,
    total,
    mass,
    blocks,
    starts,
    bounds,
    thresholds,
    l1,
    l2,
    work,
):
    """A step on each group of ``order``; (total, decrease of the model, entries touched, groups
    that came to 0 or left it).

    ``work`` is room for four times the largest group.
    """
    one = np.uint64(1)
    lowered, touched, flips = 0.0, np.uint64(0), 0
    old, g, v, r = work[0], work[1], work[2], work[3]
    for t in range(order.shape[0]):
        group = order[t]
        first, size = pointers[group], pointers[group + 1] - pointers[group]
        shift = total / mass
        was, square = False, 0.0
        for a in range(size):
            j = np.uint64(members[first + a])
            start, stop = colptr[j], colptr[j + one]
            g[a] = row_dot(rows, data, start, stop, slopes) - sums[j] * shift
            old[a] = x[j]
            was = was or x[j] != 0.0
            beyond = abs(g[a]) - l1
            if beyond > 0.0:
                square += beyond * beyond
            touched += stop - start
        if was or np.sqrt(square) > thresholds[group]:
            gain = group_minimum(
                old,
                g,
                size,
                blocks,
                starts[group],
                bounds[group],
                l1,
                l2,
                thresholds[group],
                v,
                r,
            )
            now = False
            for a in range(size):
                if v[a] != old[a]:
                    j = np.uint64(members[first + a])
                    start, stop = colptr[j], colptr[j + one]
                    _add(rows, data, start, stop, v[a] - old[a], h, slopes)
                    touched += stop - start
                    total += (v[a] - old[a]) * sums[j]
                    x[j] = v[a]
                now = now or v[a] != 0.0
            if now != was:
                flips += 1
            lowered += gain
    return total, lowered, touched, flips
