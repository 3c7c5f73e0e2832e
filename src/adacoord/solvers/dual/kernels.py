"""The kernels of dual coordinate ascent: one step on a row, and the sweeps made of it.

``dual_pass``       a given order, nothing adapted: ``dcd`` and ``sdca``
``adaptive_sweeps``  shrinking and frequencies: ``acf``
"""

from __future__ import annotations

import numpy as np

from ...kernels.codes import MARGIN
from ...kernels.jit import FAST, jit, prefetch
from ...kernels.loss import dual_prox
from ...kernels.prox import dead_zone, shrink
from ...kernels.rows import AHEAD, prefetch_row, row_add, row_dot
from ...sampling.frequencies import schedule, shuffle, updated_frequency


@jit(fastmath=FAST)
def _shrunk_dot(indices, data, start, stop, v, threshold, positive):
    """a_i . shrink(v, threshold)."""
    total = v.dtype.type(0)
    low, high = dead_zone(threshold, positive)
    low, high = v.dtype.type(low), v.dtype.type(high)
    for k in range(start, stop):
        j = k - start if indices is None else indices[k]
        total += data[k] * shrink(v[j], low, high)
    return total


@jit
def dual_pass(
    indptr,
    indices,
    data,
    order,
    b,
    weight,
    step,
    y,
    v,
    code,
    alpha,
    epsilon,
    lo,
    hi,
    l1,
    l2,
    positive,
    rho,
    c,
):
    """One visit of each row of ``order``; updates ``y`` and ``v``, returns the intercept."""
    one = np.uint64(1)
    threshold, plain = l1 / l2, l1 == 0.0 and not positive
    for t in range(order.shape[0]):
        if t + 2 * AHEAD < order.shape[0]:
            i = np.uint64(order[t + 2 * AHEAD])
            prefetch(indptr, i)
            prefetch(b, i)
            prefetch(y, i)
            prefetch(weight, i)
            prefetch(step, i)
            prefetch_row(indptr, indices, data, np.uint64(order[t + AHEAD]))
        i = np.uint64(order[t])
        start, stop = indptr[i], indptr[i + one]
        if plain:
            z = c + row_dot(indices, data, start, stop, v)
        else:
            z = c + _shrunk_dot(indices, data, start, stop, v, threshold, positive)
        new = dual_prox(code, alpha, epsilon, lo, hi, z, b[i], y[i], step[i])
        change = weight[i] * (new - y[i])
        if change != 0.0:
            y[i] = new
            row_add(indices, data, start, stop, -change / l2, v)
            c -= rho * change
    return c


#: What ``adaptive_sweeps`` carries in ``memory`` from one call to the next.
(
    SIZE,  # rows in the active set
    LOW,
    HIGH,  # least and largest projected slope of the last sweep: beyond them, rows rest
    RANGE,  # HIGH - LOW of the last full sweep
    FULL,  # whether the next sweep is a full one: each row once
    SINCE,  # visits since the last full sweep
    VISITS,  # visits in all
    MEAN,  # the mean decrease
    GAIN,  # the decrease of the last sweep
    GAINED,  # the decrease of all sweeps
    LEARNING,  # whether frequencies are being adapted
    INTERCEPT,
    BALANCE,  # sum_i w_i y_i/N
    FINISHED,  # whether a full sweep has met liblinear's rule
    RISEN,  # by how much the dual has risen (with an l1: at least)
    MISSING,  # the gap that the last sweep met: of each row when it was visited
    MEMORY,
) = range(17)

#: A full sweep is due when the slopes of the active rows have fallen to this share of their range
#: at the last full sweep, and after so many visits of the average row.
PATIENCE, LATEST = 0.1, 20.0
#: Frequencies are adapted from the first sweep on that brings more than this share of the one
#: before it: until then plain sweeps do well enough.
EASY = 0.25


@jit
def adaptive_sweeps(
    indptr,
    indices,
    data,
    rows,
    active,
    resting,
    order,
    b,
    weight,
    step,
    p,
    accumulators,
    y,
    v,
    code,
    alpha,
    epsilon,
    lo,
    hi,
    gamma,
    l1,
    l2,
    positive,
    rho,
    memory,
    state,
    budget,
    planned,
    adapts,
    rests,
    eps,
):
    """Sweeps until ``budget`` visits have been made in all, at least one; the entries touched.

    A sweep visits the active rows in the order of :func:`~adacoord.sampling.frequencies.schedule`;
    the first one, with ``planned > 0``, the rows of ``order[:planned]``.
    A row rests (leaves ``active``) when its y is at an end of its domain, or at the kink of
    epsilon |y|, and the slope there points outward by more than any projected slope of the last
    sweep: liblinear's rule (Hsieh et al., 2008), for every loss with such a dual.  Without
    ``rests`` none does, and a full sweep is made only to see whether liblinear's rule holds.
    """
    one = np.uint64(1)
    threshold, plain = l1 / l2, l1 == 0.0 and not positive
    bounded = code <= MARGIN
    n = rows.shape[0]
    scale = -1.0 / l2
    bend = 1.0 / alpha if alpha > 0.0 else np.inf
    size = np.int64(memory[SIZE])
    c, balance, mean = memory[INTERCEPT], memory[BALANCE], memory[MEAN]
    operations = np.uint64(0)
    while True:
        c -= rho * balance  # re-centre
        full = memory[FULL] != 0.0
        learning = memory[LEARNING] != 0.0
        if full:
            for t in range(n):  # a slice would take a second more to compile
                order[t] = rows[t]
            shuffle(order, n, state)
            visits = n
        elif planned > 0:
            visits, planned = planned, 0
        else:
            visits = schedule(active, size, p, accumulators, order, state)
            if visits == 0:  # only when an overflow has made some p a NaN
                break
        low_before, high_before = memory[LOW], memory[HIGH]
        low, high, gain, risen, missing = np.inf, -np.inf, 0.0, 0.0, 0.0
        eta = 1.0 / (n if full else size)
        rested = 0
        for t in range(visits):
            if t + 2 * AHEAD < visits:
                i = np.uint64(order[t + 2 * AHEAD])
                prefetch(indptr, i)
                prefetch(b, i)
                prefetch(y, i)
                prefetch(weight, i)
                prefetch(step, i)
                prefetch(p, i)
                prefetch_row(indptr, indices, data, np.uint64(order[t + AHEAD]))
            i = np.uint64(order[t])
            start, stop = indptr[i], indptr[i + one]
            operations += stop - start
            if plain:
                z = c + row_dot(indices, data, start, stop, v)
            else:
                z = c + _shrunk_dot(indices, data, start, stop, v, threshold, positive)
            old = y[i]
            moves = True
            if bounded:
                first, last = lo, hi
                if code == MARGIN and b[i] < 0.0:
                    first, last = -hi, -lo
                up = z - b[i] - alpha * old  # the slopes to the right and to the left of y_i
                down = up
                if epsilon > 0.0:
                    up -= epsilon if old >= 0.0 else -epsilon
                    down -= epsilon if old > 0.0 else -epsilon
                slope = 0.0
                if old < last and up > 0.0:
                    slope = up
                elif old > first and down < 0.0:
                    slope = down
                low, high = min(low, slope), max(high, slope)
                if slope != 0.0:  # phi(z) + phi*(y) - zy (beyond the kink of epsilon |y|: more)
                    steep = abs(slope)
                    room = min((last - old) if slope > 0.0 else (old - first), steep * bend)
                    missing += weight[i] * room * (steep - 0.5 * alpha * room)
                moves = slope != 0.0
                if (
                    rests
                    and not moves
                    and (old >= last or up < low_before)
                    and (old <= first or down > high_before)
                ):
                    rested += 1 - resting[i]
                    resting[i] = 1
            decrease = 0.0
            if moves:
                new = dual_prox(code, alpha, epsilon, lo, hi, z, b[i], old, step[i])
                change = weight[i] * (new - old)
                if change != 0.0:
                    y[i] = new
                    row_add(indices, data, start, stop, change * scale, v)
                    c -= rho * change
                    balance += change
                    if bounded:
                        # the print's: by how much the dual rises (with an l1: at least)
                        decrease = change * (slope - 0.5 * (new - old) * (1.0 / step[i] + alpha))
                        if old * new < 0.0:
                            decrease -= 2.0 * epsilon * weight[i] * abs(new)
                        risen += decrease
                    if rests or not bounded:
                        # exact for a quadratic dual away from its bounds, less than the truth
                        # elsewhere: what the shrinking orders were tuned with
                        decrease = 0.5 * change * (new - old) * (1.0 / step[i] + gamma)
                    gain += decrease
            if learning:
                p[i] = updated_frequency(p[i], decrease, mean)
                mean += eta * (decrease - mean)
        if not learning:
            mean = gain / visits
            if adapts and gain > EASY * memory[GAIN] and gain > 0.0:
                memory[LEARNING] = 1.0
        memory[GAIN] = gain
        memory[GAINED] += gain
        memory[VISITS] += visits
        memory[FULL] = 0.0
        if bounded:
            memory[RISEN] += risen
            memory[MISSING] = missing
            if full:
                memory[RANGE], memory[SINCE] = high - low, 0.0
                if eps > 0.0 and high - low <= eps:
                    memory[FINISHED] = 1.0
            memory[LOW] = low if low < 0.0 else -np.inf
            memory[HIGH] = high if high > 0.0 else np.inf
            memory[SINCE] += visits
            if full:
                size = _awake(rows, n, resting, active)
            elif rested > 0:
                size = _awake(active, size, resting, active)
            if rests:
                due = eps if eps > 0.0 else PATIENCE * memory[RANGE]
                again = high - low <= due or memory[SINCE] >= LATEST * n or size == 0
            else:
                again = eps > 0.0 and high - low <= eps
            if again:
                memory[FULL] = 1.0
                for t in range(resting.shape[0]):
                    resting[t] = 0
        if memory[VISITS] >= budget or memory[FINISHED] != 0.0:
            break
    memory[SIZE], memory[INTERCEPT], memory[BALANCE], memory[MEAN] = size, c, balance, mean
    return operations


@jit
def _awake(rows, size, resting, active):
    """Put those of ``rows[:size]`` that do not rest into ``active``; how many there are."""
    awake = 0
    for t in range(size):
        i = rows[t]
        active[awake] = i
        awake += 1 - resting[i]
    return awake
