r"""The kernels of groups of columns, on the model of :mod:`~adacoord.solvers.primal.kernels`.

A group G is ``members[pointers[G] : pointers[G + 1]]``.  Its part of the model is

    g.(v - x) + (v - x)'B(v - x)/2 + l2/2 |v|^2 + l1 |v|_1 + t |v|_2,

with B = A_G' diag(h) A_G of the centred columns.  A visit costs one product with the columns of G,
and one more update if x_G moves: its minimum is then sought on B alone, by proximal steps, or,
without an l1 and once these have cost as much, from the eigenvectors of B and |v|, the root of a
function of one number.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import FAST, jit
from ...kernels.rows import row_dot
from .kernels import _add, penalised

#: Proximal steps on B at most, and the share of the first that ends them (500 x 5,000 in groups of
#: 10 at the 50th part, two draws, in CPU ms: 86 and 61 with 1e-3, 78 and 56 with this; with
#: 3e-2 and more it takes more sweeps).
STEPS, ENOUGH = 100, 1e-2
#: Newton steps for |v| at most (2 to 4 are taken), and the last one, relative to |v|.
ROOT_STEPS, ROOT = 40, 1e-7
#: What is known of the B of a group: nothing, B, or its eigenvectors.
UNKNOWN, MADE, TURNED = 0, 1, 2
#: Proximal steps of a group that is to have no others.
NEVER = -(2**62)
#: Turns of all pairs at most, and what is left off the diagonal over the root of what is on it: a
#: step that takes B for that diagonal is off by as much, and the next visit puts it right (of 10
#: columns 4 us for 10 to rounding, LAPACK 6; of 5 .6, 1.5 and 1.9).
TURNS, ALIKE = 30, 1e-2


@jit(fastmath=FAST)
def _four_dots(data, a, b, c, d, x):
    """The products of four dense columns with x, which is read once for all of them."""
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    for i in range(np.uint64(x.shape[0])):
        p += data[a + i] * x[i]
        q += data[b + i] * x[i]
        r += data[c + i] * x[i]
        s += data[d + i] * x[i]
    return p, q, r, s


@jit
def group_dots(colptr, rows, data, columns, first, size, x, out):
    """out_k = A^j . x for j = columns_(first + k), k < size.

    Dense columns four at a time, here and in :func:`group_add`: the group lasso of
    ``race.py --models`` takes 19 ms on 10,000 x 500 and took 25, on 500 x 5,000 12 for 13.
    """
    one, k = np.uint64(1), 0
    if rows is None:
        while k + 4 <= size:
            at = first + k
            out[k], out[k + 1], out[k + 2], out[k + 3] = _four_dots(
                data,
                colptr[np.uint64(columns[at])],
                colptr[np.uint64(columns[at + 1])],
                colptr[np.uint64(columns[at + 2])],
                colptr[np.uint64(columns[at + 3])],
                x,
            )
            k += 4
    while k < size:
        j = np.uint64(columns[first + k])
        out[k] = row_dot(rows, data, colptr[j], colptr[j + one], x)
        k += 1


@jit(fastmath=FAST)
def _four_adds(data, a, b, c, d, p, q, r, s, h, slopes):
    """slopes += h (p A^a + q A^b + r A^c + s A^d) of four dense columns."""
    constant = h.shape[0] == 1
    if constant:
        p, q, r, s = p * h[0], q * h[0], r * h[0], s * h[0]
    for i in range(np.uint64(slopes.shape[0])):
        change = (p * data[a + i] + q * data[b + i]) + (r * data[c + i] + s * data[d + i])
        slopes[i] += change if constant else h[i] * change


@jit
def group_add(colptr, rows, data, columns, size, steps, h, slopes):
    """slopes += h sum_k steps_k A^j for j = columns_k, k < size; returns the entries touched."""
    one, touched, k = np.uint64(1), np.uint64(0), 0
    if rows is None:
        while k + 4 <= size:
            _four_adds(
                data,
                colptr[np.uint64(columns[k])],
                colptr[np.uint64(columns[k + 1])],
                colptr[np.uint64(columns[k + 2])],
                colptr[np.uint64(columns[k + 3])],
                steps[k],
                steps[k + 1],
                steps[k + 2],
                steps[k + 3],
                h,
                slopes,
            )
            touched += np.uint64(4 * slopes.shape[0])
            k += 4
    while k < size:
        j = np.uint64(columns[k])
        start = colptr[j]
        stop = start + np.uint64(slopes.shape[0]) if rows is None else colptr[j + one]
        _add(rows, data, start, stop, steps[k], h, slopes)
        touched += stop - start
        k += 1
    return touched


@jit(fastmath=FAST)
def group_gram(
    colptr,
    rows,
    data,
    group,
    pointers,
    members,
    h,
    sums,
    mass,
    starts,
    blocks,
    bounds,
    column,
    dots,
):
    """B of a group into ``blocks`` from its start on, and a bound on its largest eigenvalue.

    A negative start is that of a group too large for it: the bound is its trace.  Returns the
    entries touched; ``column`` is room for one, and stays 0 (for dense data its content is free),
    ``dots`` for a number of each column of the largest group.
    """
    touched = np.uint64(0)
    one = np.uint64(1)
    constant = h.shape[0] == 1
    first, size = pointers[group], pointers[group + 1] - pointers[group]
    start = starts[group]
    trace = 0.0
    for a in range(size):
        j = np.uint64(members[first + a])
        begin, end = colptr[j], colptr[j + one]
        for e in range(begin, end):
            i = e - begin if rows is None else rows[e]
            column[i] = (h[0] if constant else h[i]) * data[e]
        # the other half is the same; of a group too large for it, the diagonal alone
        count = size - a if start >= 0 else 1
        group_dots(colptr, rows, data, members, first + a, count, column, dots)
        for b in range(a, a + count):
            other, dot = np.uint64(members[first + b]), dots[b - a]
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
    bounds[group] = bound
    return touched


@jit
def block_of_gram(colptr, G, members, first, size, places, start, blocks, bounds, group):
    """:func:`group_gram` where G, whose rows begin at ``colptr``, is the Gram matrix of a set."""
    trace, widest = 0.0, 0.0
    for a in range(size):
        row, total = colptr[np.uint64(members[first + a])], 0.0
        for b in range(size):
            entry = G[row + np.uint64(places[np.uint64(members[first + b])])]
            total += abs(entry)
            if start >= 0:
                blocks[start + a * size + b] = entry
            if a == b:
                trace += entry
        widest = max(widest, total)
    bounds[group] = min(trace, widest) if start >= 0 else trace


@jit
def by_rows(colptr, rows, data, columns, ends, places, values):
    """The sparse ``columns`` by rows: row i is ``places`` and ``values`` from ends_i to ends_(i+1).

    ``ends`` has two numbers more than there are rows, all 0; the last is not part of the answer.
    """
    one, two = np.uint64(1), np.uint64(2)
    for k in range(np.uint64(columns.shape[0])):
        j = np.uint64(columns[k])
        for e in range(colptr[j], colptr[j + one]):
            ends[np.uint64(rows[e]) + two] += one
    for i in range(two, np.uint64(ends.shape[0])):
        ends[i] += ends[i - one]
    for k in range(np.uint64(columns.shape[0])):
        j = np.uint64(columns[k])
        for e in range(colptr[j], colptr[j + one]):
            at = ends[np.uint64(rows[e]) + one]
            places[at], values[at] = k, data[e]
            ends[np.uint64(rows[e]) + one] = at + one


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

    Returns by how much it is below the model at x, and the steps taken.
    """
    curvature = penalised(bound, l2)
    if curvature <= 0.0:  # columns of zeros, or of the intercept's kind: only g sees x_G
        for a in range(size):
            v[a] = 0.0
        return _group_value(x, size, l1, l2, threshold), 0
    for a in range(size):
        v[a] = x[a]
        r[a] = g[a]
    first, taken = 0.0, 0
    steps = STEPS if start >= 0 else 1
    for step in range(steps):
        taken += 1
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
    return gain, taken


@jit(fastmath=FAST)
def diagonalise(B, start, size, values, first, V):
    """B of a group becomes its eigenvectors, by rows; ``values`` from ``first`` on are theirs.

    Jacobi's method, to ALIKE: B is V' diag(values) V but for that.  ``V`` is room for as many
    numbers as B has.
    """
    for k in range(size * size):
        V[k] = 0.0
    for a in range(size):
        V[a * size + a] = 1.0
    for _ in range(TURNS):
        turned = False
        for p in range(size - 1):
            for q in range(p + 1, size):
                i, j = start + p * size, start + q * size
                off, above, below = B[i + q], B[i + p], B[j + q]
                if off * off <= ALIKE * ALIKE * (above * below):
                    continue
                turned = True
                ratio = (below - above) / (2.0 * off)
                tangent = 1.0 / (abs(ratio) + np.sqrt(ratio * ratio + 1.0))
                tangent = tangent if ratio >= 0.0 else -tangent
                c = 1.0 / np.sqrt(tangent * tangent + 1.0)
                s = c * tangent
                for k in range(size):
                    upper, lower = B[i + k], B[j + k]
                    B[i + k], B[j + k] = c * upper - s * lower, s * upper + c * lower
                    upper, lower = V[p * size + k], V[q * size + k]
                    V[p * size + k], V[q * size + k] = c * upper - s * lower, s * upper + c * lower
                B[i + p], B[j + q] = above - tangent * off, below + tangent * off
                B[i + q], B[j + p] = 0.0, 0.0
                for k in range(size):
                    B[start + k * size + p], B[start + k * size + q] = B[i + k], B[j + k]
        if not turned:
            break
    for a in range(size):
        values[first + a] = max(B[start + a * size + a], 0.0)
    for k in range(size * size):
        B[start + k] = V[k]


@jit(fastmath=FAST)
def spectral_minimum(x, g, size, V, start, values, first, l2, threshold, v, r, y):
    """The same without an l1 and with a threshold, from the eigenvectors V and ``values`` of B.

    With c = V(g - Bx) and b = values + l2, Vv = -|v| c/(b|v| + t), and |v| is the root of
    s(|v|) = (sum c^2/(b|v| + t)^2)^-1/2 = 1.  s is a power mean of what is linear in |v|: concave,
    so that Newton's steps come from below, after the first.
    """
    length, square = 0.0, 0.0
    for a in range(size):
        slope, turned = 0.0, 0.0
        for b in range(size):
            slope += V[start + a * size + b] * g[b]
            turned += V[start + a * size + b] * x[b]
        r[a], y[a], v[a] = slope, turned, 0.0
        c = slope - values[first + a] * turned
        square += c * c
        length += x[a] * x[a]
    gain = threshold * np.sqrt(length) + 0.5 * l2 * length
    norm = 0.0
    if np.sqrt(square) > threshold:
        norm = np.sqrt(length)
        for _ in range(ROOT_STEPS):
            total, slope = 0.0, 0.0
            for a in range(size):
                bend = values[first + a] + l2
                share = 1.0 / (bend * norm + threshold)
                c = (r[a] - values[first + a] * y[a]) * share
                total += c * c
                slope += c * c * bend * share
            if not slope > 0.0:  # columns of zeros: only rounding sees x_G
                break
            before, norm = norm, max(norm + total * (np.sqrt(total) - 1.0) / slope, 0.0)
            if abs(norm - before) <= ROOT * norm:
                break
    after = 0.0
    for a in range(size):
        value = values[first + a]
        c = r[a] - value * y[a]
        new = -c * norm / ((value + l2) * norm + threshold)
        gain -= (r[a] + 0.5 * value * (new - y[a])) * (new - y[a])
        after += new * new
        if norm > 0.0:
            for b in range(size):
                v[b] += V[start + a * size + b] * new
    return gain - threshold * np.sqrt(after) - 0.5 * l2 * after


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
    built,
    effort,
    dear,
    spectrum,
    turned,
    places,
    thresholds,
    l1,
    l2,
    work,
    moving,
    column,
):
    """A step on each group of ``order``; (total, decrease of the model, entries touched, groups
    that came to 0 or left it).

    On the Gram matrix of a set where there are ``places``, of each column in it: that is the data
    then, ``slopes`` are those of x on the set, and ``h`` is 1.

    The Gram matrix of a group that moves for the first time is made while its columns are at hand
    (:func:`group_gram`; 500 x 5,000 in groups of 10: 1.9 -> .8 ms, of all groups of the first
    set).  ``effort`` counts the proximal steps of each
    group; after more than are ``dear``, its eigenvectors take the place of B in ``blocks``, and
    ``spectrum`` has their values in the order of ``members``.  ``turned`` is room for these,
    ``work`` for five times the largest group, ``moving`` for the columns of one,
    ``column`` for a column.
    """
    one = np.uint64(1)
    on_gram = places.shape[0] > 0
    lowered, touched, flips = 0.0, np.uint64(0), 0
    old, g, v, r, y = work[0], work[1], work[2], work[3], work[4]
    for t in range(order.shape[0]):
        group = order[t]
        first, size = pointers[group], pointers[group + 1] - pointers[group]
        shift = total / mass
        was, square = False, 0.0
        if not on_gram:
            group_dots(colptr, rows, data, members, first, size, slopes, g)
        for a in range(size):
            j = np.uint64(members[first + a])
            if on_gram:
                g[a] = slopes[places[j]]
            else:
                g[a] -= sums[j] * shift
                touched += colptr[j + one] - colptr[j]
            old[a] = x[j]
            was = was or x[j] != 0.0
            beyond = abs(g[a]) - l1
            if beyond > 0.0:
                square += beyond * beyond
        if was or np.sqrt(square) > thresholds[group]:
            if built[group] == UNKNOWN and on_gram:
                block_of_gram(
                    colptr, data, members, first, size, places, starts[group], blocks, bounds, group
                )
                built[group] = MADE
            if built[group] == UNKNOWN:
                touched += group_gram(
                    colptr,
                    rows,
                    data,
                    group,
                    pointers,
                    members,
                    h,
                    sums,
                    mass,
                    starts,
                    blocks,
                    bounds,
                    column,
                    v,
                )
                built[group] = MADE
            start, threshold = starts[group], thresholds[group]
            if built[group] == MADE and effort[group] > dear[group]:
                diagonalise(blocks, start, size, spectrum, first, turned)
                built[group] = TURNED
            if built[group] == TURNED:
                gain = spectral_minimum(
                    old, g, size, blocks, start, spectrum, first, l2, threshold, v, r, y
                )
                if not gain > -np.inf:  # no minimum in this arithmetic: proximal steps again
                    gain, built[group], effort[group] = 0.0, UNKNOWN, NEVER
                    for a in range(size):
                        v[a] = old[a]
            else:
                gain, steps = group_minimum(
                    old, g, size, blocks, start, bounds[group], l1, l2, threshold, v, r
                )
                effort[group] += steps
            now, count = False, 0
            for a in range(size):
                if v[a] != old[a]:
                    j = np.uint64(members[first + a])
                    moving[count], r[count] = members[first + a], v[a] - old[a]
                    count += 1
                    total += (v[a] - old[a]) * sums[j]
                    x[j] = v[a]
                now = now or v[a] != 0.0
            touched += group_add(colptr, rows, data, moving, count, r, h, slopes)
            if now != was:
                flips += 1
            lowered += gain
    return total, lowered, touched, flips
