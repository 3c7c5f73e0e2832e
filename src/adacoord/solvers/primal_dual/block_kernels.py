"""One pass of SPDC for losses of K classes: :mod:`.spdc_kernels` with vectors for its scalars.

==================  ============================================  =========================
dense_blocks        dense rows, any penalty: X by classes (K, d)  O(d K) a row
scaled_blocks       CSR, l2 alone: X = s Z - G U                  O(nnz of the row K)
stamped_blocks      CSR, any penalty: row j of X at the time of   O(nnz of the row K)
                    its last use; its K entries share a stamp
==================  ============================================  =========================

``moves`` gets |dy_i|_2 of each visited row.  ``bias`` has shape (4, K): x_c, xbar_c, u_c, and 1/N
in the last row.  ``change`` is scratch of shape (m, K): W_i dy_i of the rows of a batch.
Batches, tau, theta and ``team`` as there.
"""

from __future__ import annotations

import math

import numpy as np

from ...kernels.classes import block_add, block_dot, dual_prox_multinomial
from ...kernels.jit import jit
from ...kernels.lagged import catch_up
from ...kernels.prox import dead_zone, shrink
from ...kernels.rows import AHEAD, prefetch_row, row_dot
from ...kernels.team import meet
from .spdc_kernels import dense_step, range_add


@jit
def block_dual_step(i, z, b, y, moves, weight, sigma, center, delta, new, change):
    """Update y_i and note the size of its move; ``change`` gets W_i dy_i.

    ``delta`` adds (delta/2)|v - center_i|^2 to phi*; ``new`` is scratch.
    """
    s, width = sigma[i], z.shape[0]
    if delta > 0.0:  # two quadratics around y_i and center_i are one around their mean
        factor = 1.0 / (1.0 + s * delta)
        for k in range(width):
            change[k] = (y[i, k] + s * delta * center[i, k]) * factor
        dual_prox_multinomial(z, np.int64(b[i]), change, s * factor, new)
    else:
        dual_prox_multinomial(z, np.int64(b[i]), y[i], s, new)
    square = 0.0
    for k in range(width):
        move = new[k] - y[i, k]
        square += move * move
        change[k] = weight[i] * move
        y[i, k] = new[k]
    moves[i] = math.sqrt(square)


@jit
def block_bias_step(order, first, last, kappa, change, bias, beta, tau, theta):
    """The intercept's share of the primal step: K coordinates without a penalty."""
    for k in range(bias.shape[1]):
        along = average = 0.0
        for t in range(first, last):
            along += change[t - first, k] * kappa[np.uint64(order[t])]
            average += change[t - first, k]
        old = bias[0, k]
        bias[0, k] = old - tau * (bias[2, k] + beta * along)
        bias[1, k] = bias[0, k] + theta * (bias[0, k] - old)
        bias[2, k] += beta * average * bias[3, k]


# ---- dense rows -------------------------------------------------------------------------


@jit
def _dense_row_step(data, start, x, xbar, u, along, average, tau, theta, l1, lam, positive):
    """The same for a batch of one row, u += average a included, in one sweep."""
    real = x.dtype.type
    q, step, th = real(1.0 / (1.0 + lam * tau)), real(tau), real(theta)
    low, high = dead_zone(tau * l1, positive)
    low, high = real(low), real(high)
    along, average = real(along), real(average)
    for j in range(np.uint64(x.shape[0])):
        a = data[start + j]
        new = q * shrink(x[j] - step * (u[j] + along * a), low, high)
        xbar[j] = new + th * (new - x[j])
        x[j] = new
        u[j] += average * a


@jit
def dense_blocks(
    indptr,
    data,
    order,
    starts,
    b,
    weight,
    sigma,
    kappa,
    y,
    moves,
    center,
    delta,
    tau,
    theta,
    l1,
    lam,
    positive,
    beta,
    bias,
    change,
    team,
    x,
    xbar,
    u,
    direction,
):
    """x, xbar, u and direction have shape (K, d): a class is a vector."""
    one, inv_n = np.uint64(1), bias[3, 0]
    part, parts, cuts, edges, gate = team
    mine, of = np.uint64(part), np.uint64(parts)
    left, right = edges[part], edges[part + 1]
    width = x.shape[0]
    z, new = np.empty(width), np.empty(width)
    for n in range(starts.shape[0] - 1):
        first, last = starts[n], starts[n + 1]
        for t in range(first + part, last, parts):
            i = np.uint64(order[t])
            for k in range(width):
                z[k] = beta * bias[1, k] + row_dot(None, data, indptr[i], indptr[i + one], xbar[k])
            block_dual_step(i, z, b, y, moves, weight, sigma, center, delta, new, change[t - first])
        if parts > 1 and meet(gate):
            return
        if last - first == 1:
            i = np.uint64(order[first])
            for k in range(width):
                g = change[0, k]
                _dense_row_step(
                    data,
                    cuts[i * of + mine],
                    x[k, left:right],
                    xbar[k, left:right],
                    u[k, left:right],
                    g * kappa[i],
                    g * inv_n,
                    tau[n],
                    theta[n],
                    l1,
                    lam,
                    positive,
                )
        else:
            for k in range(width):
                my_x, my_xbar, my_u = x[k, left:right], xbar[k, left:right], u[k, left:right]
                my_direction = direction[k, left:right]
                for t in range(first, last):
                    i, g = np.uint64(order[t]), change[t - first, k]
                    start, stop = cuts[i * of + mine], cuts[i * of + mine + one]
                    # the step takes the old u: what is added to it here is subtracted there
                    range_add(data, start, stop, g * (kappa[i] - inv_n), my_direction)
                    range_add(data, start, stop, g * inv_n, my_u)
                dense_step(my_x, my_xbar, my_u, my_direction, tau[n], theta[n], l1, lam, positive)
        if beta != 0.0 and part == 0:
            block_bias_step(order, first, last, kappa, change, bias, beta, tau[n], theta[n])
        if parts > 1 and meet(gate):
            return


# ---- CSR, l2 alone: ``zu`` of shape (d, 2K) holds Z and U side by side -----------------------


@jit
def add_pending_blocks(cuts, indices, data, rows, scales, factor, zu, part=0, parts=1):
    """Z += factor sum_r a_rows[r]' scales[r], in the columns of a part (``indptr``: in all)."""
    v = np.empty(scales.shape[1], zu.dtype)
    mine, of = np.uint64(part), np.uint64(parts)
    for r in range(rows.shape[0]):
        busy = False
        for k in range(v.shape[0]):
            v[k] = factor * scales[r, k]
            busy |= scales[r, k] != 0.0
        if busy:
            place = np.uint64(rows[r]) * of + mine
            block_add(indices, data, cuts[place], cuts[place + np.uint64(1)], v, zu)


@jit
def _rescale(s, G, zu):
    s, G = zu.dtype.type(s), zu.dtype.type(G)
    width = np.uint64(zu.shape[1] // 2)
    for j in range(np.uint64(zu.shape[0])):
        for k in range(width):
            zu[j, k] = s * zu[j, k] - G * zu[j, k + width]


@jit
def flush_blocks(cuts, indices, data, pending, scales, s, G, zu, edges, part=0, parts=1):
    """Make Z what it is for s = 1 and G = 0: X, plus the pending rows; in the columns of a part."""
    add_pending_blocks(cuts, indices, data, pending, scales, -1.0, zu, part, parts)
    _rescale(s, G, zu[edges[part] : edges[part + 1]])
    scales *= s
    add_pending_blocks(cuts, indices, data, pending, scales, 1.0, zu, part, parts)


@jit
def scaled_blocks(
    indptr,
    indices,
    data,
    order,
    starts,
    b,
    weight,
    sigma,
    kappa,
    y,
    moves,
    center,
    delta,
    tau,
    theta,
    lam,
    beta,
    bias,
    change,
    team,
    zu,
    waiting,
    waiting_scales,
    scale,
):
    """``scale`` is (s, G, keep, pull): xbar = keep X - pull U + e, with keep = 1 - theta lambda tau
    and pull = theta tau of the step before (1 and 0 where xbar is x).

    e is kept inside Z (``waiting`` rows, and scales of shape (m, K), of which each thread has a
    copy) and taken out again a step later; with theta = 0 there is none.
    """
    one, inv_n = np.uint64(1), bias[3, 0]
    part, parts, cuts, edges, gate = team
    mine, of = np.uint64(part), np.uint64(parts)
    pending, scales = waiting.copy(), waiting_scales.copy()
    tiny = 1e-100 if zu.itemsize == 8 else 1e-15
    width = bias.shape[1]
    dots, adds = np.empty(2 * width, zu.dtype), np.empty(2 * width, zu.dtype)
    z, new = np.empty(width), np.empty(width)
    s, G, keep, pull = scale
    if parts > 1 and meet(gate):  # all have read what the first one writes at the end
        return
    for n in range(starts.shape[0] - 1):
        first, last = starts[n], starts[n + 1]
        for t in range(first + part, last, parts):
            if t + AHEAD < order.shape[0]:
                prefetch_row(indptr, indices, data, np.uint64(order[t + AHEAD]))
            i = np.uint64(order[t])
            block_dot(indices, data, indptr[i], indptr[i + one], zu, dots)
            for k in range(width):
                z[k] = keep * s * dots[k] - (keep * G + pull) * dots[k + width] + beta * bias[1, k]
            block_dual_step(i, z, b, y, moves, weight, sigma, center, delta, new, change[t - first])
        if parts > 1 and meet(gate):
            return
        if pull > 0.0:
            add_pending_blocks(cuts, indices, data, pending, scales, -1.0, zu, part, parts)
        q = 1.0 / (1.0 + lam * tau[n])
        keep, pull = 1.0 - theta[n] * lam * tau[n], theta[n] * tau[n]
        s *= q
        G = q * (G + tau[n])
        scales[:] = 0.0
        for t in range(first, last):
            i = np.uint64(order[t])
            pending[t - first] = order[t]
            ahead = -pull * (kappa[i] - inv_n) / (keep * s)
            along = (G * inv_n - q * tau[n] * kappa[i]) / s + ahead
            for k in range(width):
                g = change[t - first, k]
                scales[t - first, k] = ahead * g
                adds[k], adds[k + width] = along * g, inv_n * g
            start, stop = cuts[i * of + mine], cuts[i * of + mine + one]
            block_add(indices, data, start, stop, adds, zu)
        if beta != 0.0 and part == 0:
            block_bias_step(order, first, last, kappa, change, bias, beta, tau[n], theta[n])
        if s < tiny:
            flush_blocks(cuts, indices, data, pending, scales, s, G, zu, edges, part, parts)
            s, G = 1.0, 0.0
        if parts > 1 and meet(gate):
            return
    if part == 0:
        waiting[:] = pending
        waiting_scales[:] = scales
        scale[0], scale[1], scale[2], scale[3] = s, G, keep, pull


# ---- CSR, any penalty: ``xu`` of shape (d, 2K) holds X and U, ``before`` X one step before ---


@jit
def _present(j, width, xu, before, since, until, clock, missed, l1, positive):
    """Bring row j from the time ``since`` to the present, ``until`` + 1."""
    tau, q = clock[until, 1], clock[until, 2]
    low, high = dead_zone(tau * l1, positive)
    power = clock[until, 0] * missed[since, 0]
    total = clock[until, 0] * (missed[until, 1] - missed[since, 1])
    for k in range(width):
        x, u = xu[j, k], xu[j, k + width]
        # catch_up, with what the K entries share taken out of the loop (twice as fast, mnist)
        sign = 1.0 if positive else math.copysign(1.0, -u if x == 0.0 else x)
        old = power * x - total * (u + sign * l1)
        if sign * old < 0.0:
            if sign * u > l1 and not positive:
                old = catch_up(x, u, since, until, clock, missed, l1, positive)
            else:
                old = 0.0
        before[j, k] = old
        xu[j, k] = q * shrink(old - tau * u, low, high)


@jit
def stamped_blocks(
    indptr,
    indices,
    data,
    order,
    starts,
    b,
    weight,
    sigma,
    kappa,
    y,
    moves,
    center,
    delta,
    l1,
    positive,
    beta,
    bias,
    change,
    team,
    xu,
    before,
    direction,
    stamp,
    time,
    clock,
    missed,
):
    """Begins at ``time`` and returns the time it ends at; ``clock`` holds tau and theta by time.

    ``direction`` of shape (d, K) is needed for batches of several rows only.
    """
    one, inv_n = np.uint64(1), bias[3, 0]
    part, parts, cuts, _, gate = team
    mine, of = np.uint64(part), np.uint64(parts)
    width = np.uint64(bias.shape[1])
    z, new = np.empty(width), np.empty(width)
    adds = np.empty(width)
    for n in range(starts.shape[0] - 1):
        first, last = starts[n], starts[n + 1]
        ahead = clock[time, 3]
        if parts > 1:  # each column is brought to the present by its owner, then read by all
            for t in range(first, last):
                place = np.uint64(order[t]) * of + mine
                for e in range(cuts[place], cuts[place + one]):
                    j = np.uint64(indices[e])
                    if stamp[j] < time:
                        since, until = np.uint64(stamp[j]), np.uint64(time - 1)
                        _present(j, width, xu, before, since, until, clock, missed, l1, positive)
                        stamp[j] = time
            if meet(gate):
                return time
        for t in range(first + part, last, parts):
            if t + AHEAD < order.shape[0]:
                prefetch_row(indptr, indices, data, np.uint64(order[t + AHEAD]))
            i = np.uint64(order[t])
            for k in range(width):
                z[k] = beta * bias[1, k]
            for e in range(indptr[i], indptr[i + one]):
                j = np.uint64(indices[e])
                if stamp[j] < time:
                    since, until = np.uint64(stamp[j]), np.uint64(time - 1)
                    _present(j, width, xu, before, since, until, clock, missed, l1, positive)
                    stamp[j] = time
                a = data[e]
                if ahead == 0.0:
                    for k in range(width):
                        z[k] += a * xu[j, k]
                else:
                    for k in range(width):
                        z[k] += a * (xu[j, k] + ahead * (xu[j, k] - before[j, k]))
            block_dual_step(i, z, b, y, moves, weight, sigma, center, delta, new, change[t - first])
        if parts > 1 and meet(gate):
            return time
        tau, q = clock[time, 1], clock[time, 2]
        low, high = dead_zone(tau * l1, positive)
        time += 1
        for t in range(first, last):
            i = np.uint64(order[t])
            extra = kappa[i] - inv_n
            for k in range(width):
                adds[k] = change[t - first, k]
            for e in range(cuts[i * of + mine], cuts[i * of + mine + one]):
                j, a = np.uint64(indices[e]), data[e]
                if last - first == 1:
                    for k in range(width):
                        u = xu[j, k + width] + inv_n * adds[k] * a
                        old = xu[j, k]
                        xu[j, k + width] = u
                        before[j, k] = old
                        xu[j, k] = q * shrink(old - tau * (u + extra * adds[k] * a), low, high)
                    stamp[j] = time
                else:
                    for k in range(width):
                        direction[j, k] += extra * adds[k] * a
                        xu[j, k + width] += inv_n * adds[k] * a
        if last - first > 1:
            for t in range(first, last):
                i = np.uint64(order[t])
                for e in range(cuts[i * of + mine], cuts[i * of + mine + one]):
                    j = np.uint64(indices[e])
                    if stamp[j] < time:
                        for k in range(width):
                            old = xu[j, k]
                            step = tau * (xu[j, k + width] + direction[j, k])
                            before[j, k] = old
                            xu[j, k] = q * shrink(old - step, low, high)
                            direction[j, k] = 0.0
                        stamp[j] = time
        if beta != 0.0 and part == 0:
            block_bias_step(order, first, last, kappa, change, bias, beta, tau, clock[time, 3])
    return time


@jit
def settle_blocks(xu, before, stamp, time, clock, missed, l1, positive):
    """Bring every row to the present, and set the clock to 0."""
    width = np.uint64(before.shape[1])
    for j in range(np.uint64(stamp.shape[0])):
        if stamp[j] < time:
            since, until = np.uint64(stamp[j]), np.uint64(time - 1)
            _present(j, width, xu, before, since, until, clock, missed, l1, positive)
        stamp[j] = 0
