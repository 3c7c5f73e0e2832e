"""One pass of SPDC, three ways of holding x, u and the extrapolated point.

=============  ======================================================  ======================
dense_pass     dense rows, any penalty: the vectors as they are        O(d) a row
scaled_pass    CSR, l2 alone: x = s z - G u with two scalars           O(nnz of the row)
stamped_pass   CSR, any penalty: each x_j at the time of its last use  O(nnz of the row)
=============  ======================================================  ======================

All three make the same iterates (Section 6 of the paper; the tests compare them with a naive
reference).  Batch k is ``order[starts[k]:starts[k+1]]``, its step is made with tau[k] and
theta[k]; ``kappa`` is 1/(N p_i) for SPDC; ``moves`` gets the dy of each visited row.  xbar is
that of the previous step, made with *its* tau and theta.  ``bias`` is (x_c, xbar_c, u_c,
1/N): the coordinate of the intercept, whose feature value is ``beta`` (0: no intercept) and whose
penalty is 0, and the number of rows.

``team`` (:mod:`adacoord.kernels.team`) is a thread's share of the pass: the products of its rows of
each batch, then the changes of its columns, and nobody goes on before all are done.  What a batch
makes of scalars each thread computes for itself; what is kept of them, the first one writes.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import FAST, jit, prefetch
from ...kernels.lagged import catch_up, cross, lagged_steps
from ...kernels.loss import dual_prox
from ...kernels.prox import dead_zone, shrink
from ...kernels.rows import AHEAD, prefetch_row, row_dot
from ...kernels.team import meet


@jit
def dual_step(i, z, b, y, moves, weight, sigma, center, delta, code, alpha, epsilon, lo, hi):
    """Update y_i and note the move; returns W_i dy_i.

    ``delta`` adds (delta/2)(v - center_i)^2 to phi*.
    """
    s, anchor = sigma[i], y[i]
    if delta > 0.0:  # two quadratics around y_i and center_i are one around their mean
        factor = 1.0 / (1.0 + s * delta)
        anchor = (anchor + s * delta * center[i]) * factor
        s *= factor
    new = dual_prox(code, alpha, epsilon, lo, hi, z, b[i], anchor, s)
    moves[i] = new - y[i]
    y[i] = new
    return weight[i] * moves[i]


@jit
def bias_step(bias, beta, tau, theta, direction, average):
    """The intercept's share of the primal step: a coordinate without a penalty."""
    old = bias[0]
    bias[0] = old - tau * (bias[2] + beta * direction)
    bias[1] = bias[0] + theta * (bias[0] - old)
    bias[2] += beta * average


# What a range of columns is changed by is compiled without fast arithmetic: with it the last few
# entries of a range would be rounded otherwise than those before them (a*b + c in one step or in
# two), and the bits depend on where threads cut.  No slower: these loops wait for memory.


@jit
def range_add(data, start, stop, scale, x):
    """x += scale data[start:stop], in the type of ``x``."""
    factor = x.dtype.type(scale)
    for k in range(start, stop):
        x[k - start] += factor * data[k]


@jit
def dense_step(x, xbar, u, direction, tau, theta, l1, lam, positive):
    """x+ = prox(x - tau (u + direction)), xbar = x+ + theta (x+ - x); clears ``direction``."""
    real = x.dtype.type
    q, step, th, zero = real(1.0 / (1.0 + lam * tau)), real(tau), real(theta), real(0)
    low, high = dead_zone(tau * l1, positive)
    low, high = real(low), real(high)
    for j in range(x.shape[0]):
        new = q * shrink(x[j] - step * (u[j] + direction[j]), low, high)
        xbar[j] = new + th * (new - x[j])
        x[j] = new
        direction[j] = zero


@jit
def dense_pass(
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
    code,
    alpha,
    epsilon,
    lo,
    hi,
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
    one, inv_n = np.uint64(1), bias[3]
    part, parts, cuts, edges, gate = team
    mine, of = np.uint64(part), np.uint64(parts)
    left, right = edges[part], edges[part + 1]
    my_x, my_xbar, my_u = x[left:right], xbar[left:right], u[left:right]
    my_direction = direction[left:right]
    for k in range(starts.shape[0] - 1):
        first, last = starts[k], starts[k + 1]
        along = average = 0.0
        for t in range(first + part, last, parts):
            i = np.uint64(order[t])
            z = beta * bias[1] + row_dot(None, data, indptr[i], indptr[i + one], xbar)
            change[t - first] = dual_step(
                i, z, b, y, moves, weight, sigma, center, delta, code, alpha, epsilon, lo, hi
            )
        if parts > 1 and meet(gate):
            return
        for t in range(first, last):
            i, g = np.uint64(order[t]), change[t - first]
            if g != 0.0:
                along += g * kappa[i]
                average += g * inv_n
                start, stop = cuts[i * of + mine], cuts[i * of + mine + one]
                # the step takes the old u: what is added to it here is subtracted there
                range_add(data, start, stop, g * (kappa[i] - inv_n), my_direction)
                range_add(data, start, stop, g * inv_n, my_u)
        dense_step(my_x, my_xbar, my_u, my_direction, tau[k], theta[k], l1, lam, positive)
        if beta != 0.0 and part == 0:
            bias_step(bias, beta, tau[k], theta[k], along, average)
        if parts > 1 and meet(gate):
            return


@jit(fastmath=FAST)
def _pair_dot(indices, data, start, stop, zu):
    """(a.z, a.u) of the interleaved vectors: one cache line serves both."""
    az = au = zu.dtype.type(0)
    for k in range(start, stop):
        az += data[k] * zu[indices[k], 0]
        au += data[k] * zu[indices[k], 1]
    return az, au


@jit(fastmath=FAST)
def _pair_add(indices, data, start, stop, z_scale, u_scale, zu):
    zs, us = zu.dtype.type(z_scale), zu.dtype.type(u_scale)
    for k in range(start, stop):
        zu[indices[k], 0] += zs * data[k]
        zu[indices[k], 1] += us * data[k]


@jit(fastmath=FAST)
def _z_add(indices, data, start, stop, scale, zu):
    zs = zu.dtype.type(scale)
    for k in range(start, stop):
        zu[indices[k], 0] += zs * data[k]


@jit
def add_pending(cuts, indices, data, rows, scales, factor, zu, part=0, parts=1):
    """z += factor sum_k scales[k] a_rows[k], in the columns of a part (``indptr``: in all)."""
    mine, of = np.uint64(part), np.uint64(parts)
    for k in range(rows.shape[0]):
        if scales[k] != 0.0:
            place = np.uint64(rows[k]) * of + mine
            start, stop = cuts[place], cuts[place + np.uint64(1)]
            _z_add(indices, data, start, stop, factor * scales[k], zu)


@jit
def _rescale(s, G, zu):
    s, G = zu.dtype.type(s), zu.dtype.type(G)
    for j in range(zu.shape[0]):
        zu[j, 0] = s * zu[j, 0] - G * zu[j, 1]


@jit
def flush(cuts, indices, data, pending, scales, s, G, zu, edges, part=0, parts=1):
    """Make z what it is for s = 1 and G = 0: x, plus the pending rows; in the columns of a part."""
    add_pending(cuts, indices, data, pending, scales, -1.0, zu, part, parts)
    _rescale(s, G, zu[edges[part] : edges[part + 1]])
    for k in range(scales.shape[0]):
        scales[k] *= s
    add_pending(cuts, indices, data, pending, scales, 1.0, zu, part, parts)


@jit
def scaled_pass(
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
    code,
    alpha,
    epsilon,
    lo,
    hi,
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
    """Section 6.1 without time stamps: x = s z - G u, updated at the batch's entries only.

    xbar = keep x - pull u + e, where keep = 1 - theta lambda tau, pull = theta tau, and e =
    -pull sum_i g_i (kappa_i - 1/N) a_i is along the last batch's rows; it is kept inside z
    (``waiting`` rows and scales, of which each thread has a copy) and taken out again a step later,
    while those entries are still in cache.  ``scale`` is (s, G, keep, pull); keep = 1 and pull = 0
    where xbar is x.
    """
    one, inv_n = np.uint64(1), bias[3]
    part, parts, cuts, edges, gate = team
    mine, of = np.uint64(part), np.uint64(parts)
    pending, scales = waiting.copy(), waiting_scales.copy()
    tiny = 1e-100 if zu.itemsize == 8 else 1e-15
    s, G, keep, pull = scale
    if parts > 1 and meet(gate):  # all have read what the first one writes at the end
        return
    for k in range(starts.shape[0] - 1):
        first, last = starts[k], starts[k + 1]
        z_weight, u_weight = keep * s, keep * G + pull
        for t in range(first + part, last, parts):
            if t + 2 * AHEAD < order.shape[0]:
                i = np.uint64(order[t + 2 * AHEAD])
                prefetch(indptr, i)
                prefetch(b, i)
                prefetch(y, i)
                prefetch(weight, i)
                prefetch(sigma, i)
                prefetch(kappa, i)
                prefetch(moves, i)
                prefetch_row(indptr, indices, data, np.uint64(order[t + AHEAD]))
            i = np.uint64(order[t])
            az, au = _pair_dot(indices, data, indptr[i], indptr[i + one], zu)
            z = z_weight * az - u_weight * au + beta * bias[1]
            change[t - first] = dual_step(
                i, z, b, y, moves, weight, sigma, center, delta, code, alpha, epsilon, lo, hi
            )
        if parts > 1 and meet(gate):
            return
        add_pending(cuts, indices, data, pending, scales, -1.0, zu, part, parts)
        q = 1.0 / (1.0 + lam * tau[k])
        keep, pull = 1.0 - theta[k] * lam * tau[k], theta[k] * tau[k]
        s *= q
        G = q * (G + tau[k])
        along = average = 0.0
        for t in range(first, last):
            if parts > 1 and t + AHEAD < last:  # rows that others have read
                prefetch_row(cuts, indices, data, np.uint64(order[t + AHEAD]) * of + mine)
            i, g = np.uint64(order[t]), change[t - first]
            pending[t - first] = order[t]
            scales[t - first] = -pull * g * (kappa[i] - inv_n) / (keep * s)
            if g != 0.0:
                along += g * kappa[i]
                average += g * inv_n
                z_scale = g * (G * inv_n - q * tau[k] * kappa[i]) / s + scales[t - first]
                start, stop = cuts[i * of + mine], cuts[i * of + mine + one]
                _pair_add(indices, data, start, stop, z_scale, g * inv_n, zu)
        for t in range(last - first, scales.shape[0]):
            scales[t] = 0.0
        if beta != 0.0 and part == 0:
            bias_step(bias, beta, tau[k], theta[k], along, average)
        if s < tiny:
            flush(cuts, indices, data, pending, scales, s, G, zu, edges, part, parts)
            s, G = 1.0, 0.0
        if parts > 1 and meet(gate):
            return
    if part == 0:
        waiting[:], waiting_scales[:] = pending, scales
        scale[0], scale[1], scale[2], scale[3] = s, G, keep, pull


@jit(inline=True)
def settle_one(j, vectors, until, clock, missed, since, l1, positive):
    """Bring coordinate j from the time ``since`` to the present, ``until`` + 1."""
    tau, q = clock[until, 1], clock[until, 2]
    low, high = dead_zone(tau * l1, positive)
    u = vectors[j, 2]
    before = catch_up(vectors[j, 0], u, since, until, clock, missed, l1, positive)
    vectors[j, 0] = q * shrink(before - tau * u, low, high)
    vectors[j, 1] = before


@jit
def stamped_pass(
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
    code,
    alpha,
    epsilon,
    lo,
    hi,
    l1,
    positive,
    beta,
    bias,
    change,
    team,
    vectors,
    stamp,
    time,
    clock,
    missed,
):
    """Section 6.2: vectors[j] = (x_j, x_j one step before, u_j, direction_j) at time stamp[j].

    Begins at ``time`` and returns the time it ends at; ``clock`` and ``missed`` are the tables of
    :func:`~adacoord.kernels.lagged.fill_tables`, which hold tau and theta by time.
    """
    one, inv_n = np.uint64(1), bias[3]
    part, parts, cuts, _, gate = team
    mine, of = np.uint64(part), np.uint64(parts)
    for n in range(starts.shape[0] - 1):
        first, last = starts[n], starts[n + 1]
        until = np.uint64(max(time - 1, 0))
        tau, q, ahead = clock[until, 1], clock[until, 2], clock[time, 3]
        low, high = dead_zone(tau * l1, positive)
        decay, total = clock[until, 0], missed[until, 1]
        if parts > 1:  # each column is brought to the present by its owner, then read by all
            for t in range(first, last):
                if t + AHEAD < last:
                    prefetch_row(cuts, indices, data, np.uint64(order[t + AHEAD]) * of + mine)
                place = np.uint64(order[t]) * of + mine
                start, stop = cuts[place], cuts[place + one]
                for k in range(start, stop):
                    j = np.uint64(indices[k])
                    if stamp[j] < time:
                        since = np.uint64(stamp[j])
                        settle_one(j, vectors, until, clock, missed, since, l1, positive)
                        stamp[j] = time
            if meet(gate):
                return time
        for t in range(first + part, last, parts):
            if t + 2 * AHEAD < order.shape[0]:
                i = np.uint64(order[t + 2 * AHEAD])
                prefetch(indptr, i)
                prefetch(b, i)
                prefetch(y, i)
                prefetch(weight, i)
                prefetch(sigma, i)
                prefetch(kappa, i)
                prefetch(moves, i)
                prefetch_row(indptr, indices, data, np.uint64(order[t + AHEAD]))
            i = np.uint64(order[t])
            z = beta * bias[1]
            for k in range(indptr[i], indptr[i + one]):
                j = indices[k]
                now, before = vectors[j, 0], vectors[j, 1]
                if stamp[j] < time:
                    u, since = vectors[j, 2], np.uint64(stamp[j])
                    growth, then = missed[since, 0], missed[since, 1]
                    before, crosses = lagged_steps(now, u, growth, then, decay, total, l1, positive)
                    if crosses:
                        before = cross(now, u, since, until, clock, missed, l1)
                    now = q * shrink(before - tau * u, low, high)
                    vectors[j, 0], vectors[j, 1] = now, before
                    now, before = vectors[j, 0], vectors[j, 1]  # rounded, as the next row sees it
                    stamp[j] = time
                z += data[k] * (now + ahead * (now - before))
            change[t - first] = dual_step(
                i, z, b, y, moves, weight, sigma, center, delta, code, alpha, epsilon, lo, hi
            )
        if parts > 1 and meet(gate):
            return time
        along = average = 0.0
        tau, q, ahead = clock[time, 1], clock[time, 2], clock[time + 1, 3]
        low, high = dead_zone(tau * l1, positive)
        time += 1
        for t in range(first, last):
            i, g = np.uint64(order[t]), change[t - first]
            along += g * kappa[i]
            average += g * inv_n
            u_scale, x_scale = g * inv_n, g * (kappa[i] - inv_n)
            start, stop = cuts[i * of + mine], cuts[i * of + mine + one]
            if last - first == 1:  # each entry once: the third loop below is 14 of 51 ms
                for k in range(start, stop):
                    j = indices[k]
                    u = vectors[j, 2] + u_scale * data[k]
                    old = vectors[j, 0]
                    vectors[j, 2] = u
                    vectors[j, 1] = old
                    vectors[j, 0] = q * shrink(old - tau * (u + x_scale * data[k]), low, high)
                    stamp[j] = time
            else:
                for k in range(start, stop):
                    vectors[indices[k], 3] += x_scale * data[k]
                    vectors[indices[k], 2] += u_scale * data[k]
        if last - first > 1:
            for t in range(first, last):
                i = np.uint64(order[t])
                for k in range(cuts[i * of + mine], cuts[i * of + mine + one]):
                    j = indices[k]
                    if stamp[j] < time:
                        old = vectors[j, 0]
                        step = tau * (vectors[j, 2] + vectors[j, 3])
                        vectors[j, 1] = old
                        vectors[j, 0] = q * shrink(old - step, low, high)
                        vectors[j, 3] = 0.0
                        stamp[j] = time
        if beta != 0.0 and part == 0:
            bias_step(bias, beta, tau, ahead, along, average)
    return time


@jit
def settle_stamped(vectors, stamp, time, clock, missed, l1, positive):
    """Bring every coordinate to the present, and set the clock to 0."""
    until = np.uint64(max(time - 1, 0))
    for j in range(np.uint64(stamp.shape[0])):
        if stamp[j] < time:
            since = np.uint64(stamp[j])
            settle_one(j, vectors, until, clock, missed, since, l1, positive)
        stamp[j] = 0
