r"""Least squares of several targets on the Gram matrix of their columns, rows of x as groups.

Problem    min tr(X'GX)/2 - tr(Q'X) + square/2 + sum_j t_j |X_j| + l1 |X|_1 + l2/2 |X|^2
Dual       as in :mod:`~adacoord.kernels.gram_path`, for R = Q - GX in the place of r: t is least
           where |S(R_j)| is furthest beyond t_j (S the soft threshold at l1; with both that is
           less than the best t)
Set        columns with X_j != 0, and those that violate their constraint; its part of G is held
           apart
Sweep      one exact step on each X_j, first of all the set, then of its support
Ahead      to where sweeps that changed no support tend, if P is less there
Look       R over all columns from X itself, and the gap
"""

from __future__ import annotations

import math

import numpy as np

from ...kernels.gram_path import SWEEPS, bounds, combination, copy, near, subtract
from ...kernels.jit import FAST, jit
from .class_kernels import add_four, add_outer, row_step
from .kernels import penalised

#: The gap of the set to reach before a look, in units of the goal; and after each look in vain.
SHARE = 0.5


@jit(fastmath=FAST)
def row_bounds(m, q, r, x, square, thresholds, l1, l2, room):
    """(P, D) of the problem with the first m columns alone; arrays have a row for each target."""
    qx, rx, ones, squares, top, excess = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    sizes, pulls, largest = room[0], room[1], room[2]
    for j in range(m):
        sizes[j] = pulls[j] = largest[j] = 0.0
    for k in range(x.shape[0]):
        for j in range(m):
            at, pull = x[k, j], abs(r[k, j])
            qx += q[k, j] * at
            rx += r[k, j] * at
            ones += abs(at)
            sizes[j] += at * at
            largest[j] = max(largest[j], pull)
            over = max(pull - l1, 0.0)
            pulls[j] += over * over
    value = l1 * ones
    for j in range(m):
        t, pull = thresholds[j], math.sqrt(pulls[j])
        value += t * math.sqrt(sizes[j])
        squares += sizes[j]
        over = max(pull - t, 0.0)
        excess += over * over
        if over > 0.0:
            held = largest[j] / l1 if t == 0.0 and l1 > 0.0 else np.inf
            top = max(top, pull / t if t > 0.0 else held)
    return bounds(square, qx, rx, value, squares, top, excess, 1.0, l2)


@jit(fastmath=FAST)
def pull_of(r, j, l1):
    """|S(R_j)|."""
    total = 0.0
    for k in range(r.shape[0]):
        over = max(abs(r[k, j]) - l1, 0.0)
        total += over * over
    return math.sqrt(total)


@jit
def row_sweep_on_gram(order, count, H, r, x, thresholds, l1, l2, work):
    """A step on each of the first ``count`` columns of ``order``; how many came in or went out.

    Four steps at a time enter the slopes: until then those to come take them into account one by
    one (1,000 x 500, 10 targets: .21 -> .17 ms a sweep).
    """
    K, changes = x.shape[0], 0
    g, v, steps = work[0], work[1], work[2:]
    rows = x.T
    waiting, places = 0, np.empty(4, dtype=np.uint64)
    for t in range(count):
        a = np.uint64(order[t])
        for k in range(K):
            g[k] = l2 * x[k, a] - r[k, a]
        for s in range(waiting):
            entry = H[places[s], a]
            for k in range(K):
                g[k] -= entry * steps[s, k]
        _, moved, flipped = row_step(rows, a, g, penalised(H[a, a], l2), l1, thresholds[a], v)
        if moved:
            places[waiting] = a
            for k in range(K):
                steps[waiting, k] = x[k, a] - v[k]
                x[k, a] = v[k]
            waiting += 1
            if waiting == 4:
                add_four(H, places, steps, r)
                waiting = 0
            changes += flipped
    for s in range(waiting):
        add_outer(H[places[s]], steps[s], r)
    return changes


@jit
def slopes_of_rows(G, q, x, r):
    """r = q - Gx, from x itself; returns how many columns that took."""
    K, d = q.shape
    count = 0
    for k in range(K):
        copy(d, q[k], r[k])
    for j in range(d):
        moved = False
        for k in range(K):
            if x[k, j] != 0.0:
                moved = True
                subtract(d, x[k, j], G[j], r[k])
        count += moved
    return count


@jit
def wanted(goals, limits, spent):
    """The least of the goals whose limit is not reached."""
    least = np.inf
    for k in range(goals.size):
        if spent < limits[k]:
            least = min(least, goals[k])
    return least


@jit
def gram_rows(G, q, square, thresholds, l1, l2, goals, limits, noise, most, x):
    """Solve from x, of shape (K, d), to each relative gap of ``goals``.

    A goal is given up once as many multiply-adds as its part of ``limits`` were made; ``most``
    sweeps at the most.  Returns (the relative gap, the multiply-adds).
    """
    K, d = q.shape
    members, order = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    inside = np.zeros(d, dtype=np.bool_)
    r, room, work = np.empty((K, d)), np.empty((3, d)), np.empty((6, K))
    spent, share, passes, m = 0.0, SHARE, 0, -1
    while True:
        # ---- look
        spent += float(slopes_of_rows(G, q, x, r)) * K * d
        primal, dual = row_bounds(d, q, r, x, square, thresholds, l1, l2, room)
        enough = near(primal, dual, wanted(goals, limits, spent), noise)
        if (enough and passes > 0) or passes >= most:
            break
        before, m = m, 0
        for j in range(d):
            if not inside[j]:
                pulled = G[j, j] > 0.0 and pull_of(r, j, l1) > thresholds[j]
                for k in range(K):
                    pulled = pulled or x[k, j] != 0.0
                inside[j] = pulled
            if inside[j]:
                members[m] = j
                m += 1
        if m == before:
            share *= 0.1
        if m == 0 or share < 1e-4:  # rounding has the rest
            break
        # ---- the set
        H = G
        if m < d:
            H = np.empty((m, m))
            for a in range(m):
                row = G[members[a]]
                for b in range(m):
                    H[a, b] = row[members[b]]
        qs, rs, xs, ts = np.empty((K, m)), np.empty((K, m)), np.empty((K, m)), np.empty(m)
        for a in range(m):
            ts[a] = thresholds[members[a]]
            for k in range(K):
                qs[k, a], rs[k, a] = q[k, members[a]], r[k, members[a]]
                xs[k, a] = x[k, members[a]]
        iterates, images = np.empty((SWEEPS + 1, K * m)), np.empty((SWEEPS + 1, K * m))
        x_new, r_new = np.empty((K, m)), np.empty((K, m))
        # ---- solve
        filled, sweeps = 0, 0
        while passes < most:
            whole = sweeps % (SWEEPS + 1) == 0
            if whole:
                count = m
                for a in range(m):
                    order[a] = a
            changes = row_sweep_on_gram(order, count, H, rs, xs, ts, l1, l2, work)
            passes += 1
            sweeps += 1
            spent += float(count) * m * K
            primal, dual = row_bounds(m, qs, rs, xs, square, ts, l1, l2, room)
            if near(primal, dual, share * wanted(goals, limits, spent), noise):
                break
            if whole:
                count = 0
                for a in range(m):
                    moved = False
                    for k in range(K):
                        moved = moved or xs[k, a] != 0.0
                    if moved:
                        order[count] = a
                        count += 1
            filled = 0 if changes else filled
            copy(K * m, xs.reshape(-1), iterates[filled])
            copy(K * m, rs.reshape(-1), images[filled])
            filled += 1
            if filled > SWEEPS:
                filled = 0
                if combination(K * m, iterates, images, x_new.reshape(-1), r_new.reshape(-1)):
                    there, _ = row_bounds(m, qs, r_new, x_new, square, ts, l1, l2, room)
                    if there < primal:
                        xs[:] = x_new
                        rs[:] = r_new
        for a in range(m):
            for k in range(K):
                x[k, members[a]] = xs[k, a]
    return (primal - dual) / max(abs(primal), abs(dual)) if primal > dual else 0.0, spent
