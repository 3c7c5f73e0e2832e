r"""The kernels of the methods that move one x_j at a time, along the columns of A.

They minimise a quadratic model of P around (x, c), exact for the squared loss,

    M(x') = sum_i rho_i dz_i + (1/2) sum_i h_i dz_i^2 + g(x'),      dz = A (x' - x) + dc,

where rho_i = w_i phi'(z_i)/n and h_i = w_i phi''(z_i)/n.  ``slopes`` holds rho_i + h_i dz_i
without the part of dc: the best dc for each x' is -total/mass, with total = sum_i slopes_i and
mass = sum_i h_i, which amounts to columns centred by their means m_j = sum_i h_i a_ij/mass and is
never formed.  A step on x_j costs one product with A^j, and one more update if x_j moves.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import FAST, jit
from ...kernels.prox import at, dead_zone, one_sided, shrink, within
from ...kernels.rows import AHEAD, prefetch_row, row_dot
from ...sampling.frequencies import schedule, updated_frequency


@jit
def linearise(slope, bend, weight, floor, share, slopes, h):
    """slopes = slope = w phi', h_i = max(bend_i, weight_i floor, share |slope_i|), bend = w phi''.

    Returns their sums.  An ``h`` of fewer elements than rows is a curvature that all rows share,
    and is left alone.
    """
    total, mass = 0.0, 0.0
    constant = h.shape[0] < slope.shape[0]
    for i in range(np.uint64(slope.shape[0])):
        slopes[i] = slope[i]
        total += slope[i]
        if not constant:
            h[i] = max(bend[i], weight[i] * floor, share * abs(slope[i]))
            mass += h[i]
    return total, h[0] * slope.shape[0] if constant else mass


@jit(fastmath=FAST)
def _add(rows, data, start, stop, step, h, slopes):
    """slopes += step h A^j."""
    if h.shape[0] == 1:  # the same for all rows: no second look-up
        step *= h[0]
        for e in range(start, stop):
            i = e - start if rows is None else rows[e]
            slopes[i] += step * data[e]
    else:
        for e in range(start, stop):
            i = e - start if rows is None else rows[e]
            slopes[i] += step * h[i] * data[e]


@jit
def spread(square, total, mass):
    """sum_i h_i (a_ij - m_j)^2; 0 for a constant column, whatever rounding left of it."""
    centred = square - total * (total / mass)
    return centred if centred > 1e-13 * square else 0.0


@jit
def penalised(square, l2):
    """The curvature of the model in x_j, from the square of the centred column.

    0 for a column that is zero or constant: only g sees that x_j.  The slope of a constant column
    is rounding, and steps of that over a small l2 grow from sweep to sweep (240 x 356 with three
    of them: x_j = 1e183 after eight passes).
    """
    return square + l2 if square > 0.0 else 0.0


@jit
def _step(rows, data, start, stop, slopes, shift, x, square, l1, l2, positive, j):
    """The best x_j of the model, and by how much it lowers it."""
    if square <= 0.0:  # a column of zeros, or of the intercept's kind: only g sees x_j
        new = within(0.0, positive, j)
        return new, l1 * (abs(x) - abs(new)) + 0.5 * l2 * (x * x - new * new)
    low, high = dead_zone(l1, one_sided(positive))
    g = row_dot(rows, data, start, stop, slopes) - shift + l2 * x
    new = within(shrink(x - g / square, low / square, high / square), positive, j)
    step = new - x
    return new, -(step * (g + 0.5 * square * step) + l1 * (abs(new) - abs(x)))


@jit
def sweep(
    colptr,
    rows,
    data,
    order,
    x,
    slopes,
    h,
    squares,
    sums,
    total,
    mass,
    l1,
    l2,
    positive,
    frequency,
    average,
    eta,
):
    """A step on each column of ``order``; (total, decrease of the model, entries touched, mean
    decrease, sign changes).

    ``eta > 0`` adapts ``frequency`` to what each step brings (Algorithm 2 of ACF).
    """
    one, ahead, size = np.uint64(1), np.uint64(AHEAD), np.uint64(order.shape[0])
    lowered, touched, flips = 0.0, np.uint64(0), 0
    for t in range(size):
        if t + ahead < size:
            prefetch_row(colptr, rows, data, np.uint64(order[t + ahead]))
        j = np.uint64(order[t])
        start, stop = colptr[j], colptr[j + one]
        new, gain = _step(
            rows,
            data,
            start,
            stop,
            slopes,
            sums[j] * (total / mass),
            x[j],
            penalised(spread(squares[j], sums[j], mass), at(l2, j)),
            at(l1, j),
            at(l2, j),
            positive,
            j,
        )
        touched += stop - start
        if new != x[j]:
            _add(rows, data, start, stop, new - x[j], h, slopes)
            touched += stop - start
            total += (new - x[j]) * sums[j]
            if new * x[j] <= 0.0:
                flips += 1
            x[j] = new
            lowered += gain
        if eta > 0.0:
            frequency[j] = updated_frequency(frequency[j], gain, average)
            average += eta * (gain - average)
    return total, lowered, touched, average, flips


@jit
def sweeps(
    colptr,
    rows,
    data,
    columns,
    x,
    slopes,
    h,
    squares,
    sums,
    total,
    mass,
    l1,
    l2,
    positive,
    frequency,
    accumulator,
    order,
    random,
    average,
    learning,
    first,
    most,
    enough,
    room,
):
    """Up to ``most`` sweeps over ``columns`` by their frequencies: (total, decrease of the model by
    the last, entries touched, mean decrease, sign changes of the last, decrease by the first, how
    many).

    The last is one that brings no more than ``enough`` of what the first of the model has
    (``first``, 0 before there was one), or one after which ``room`` entries have been touched,
    counting n at least for each.  While frequencies are not ``learning``, a sweep gives the mean.

    One call of them all: with the one loop over the losses, logistic on 62 x 2,000 numbers at
    l1_max/100 takes 3.9 ms, and took 4.3.
    """
    size, touched, count, work = columns.shape[0], np.uint64(0), 0, 0
    lowered, flips = 0.0, 0
    while count < most:
        visits = schedule(columns, size, frequency, accumulator, order, random)
        eta = 1.0 / size if learning and size > 0 else 0.0
        total, lowered, entries, average, flips = sweep(
            colptr,
            rows,
            data,
            order[:visits],
            x,
            slopes,
            h,
            squares,
            sums,
            total,
            mass,
            l1,
            l2,
            positive,
            frequency,
            average,
            eta,
        )
        if not learning:
            average, learning = lowered / max(size, 1), True
        count += 1
        touched += entries
        work += max(np.int64(entries), slopes.shape[0])
        if first == 0.0:
            first = lowered
        if not lowered > enough * first or work >= room:
            break
    return total, lowered, touched, average, flips, first, count
