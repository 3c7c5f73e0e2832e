r"""Least squares along a path of penalties, on the Gram matrix: one call for all points.

Problem    min x'Gx/2 - q.x + square/2 + g(x), g(x) = l1 |x|_1 + l2/2 |x|^2 or the same on x >= 0
Dual       r = q - Gx are the correlations of the residual; t times the residual, with t = 1 if
           l2 > 0 or t = min(1, l1/max |r_j|), is a dual point of value
           -t^2 (square - q.x - r.x)/2 + t (square - q.x) - g*(t r)
Set        columns that the sequential strong rule keeps, |r_j| >= 2 l1 - (the last l1)
           (Tibshirani and others 2012), and later those that turn out to violate their constraint.
           Its part of G is held apart (H), so that a step costs as many
           numbers as the set has columns
Start      where the last point ended, or further along the line through the last two if P is less
           there: between two changes of the support x is linear in l1
Sweep      one exact step on each column of the set; its gap, then, over the set alone
Ahead      after SWEEPS sweeps that changed no sign, the point to which they tend (Anderson's
           extrapolation), if P is less there
Newton     where sweeps have cost as much as a factor of H on the support, and have changed no
           sign: the minimiser there, with 0 for what would change its sign
Look       r over all columns from x itself, and the gap.  Below ``tol`` a few passes more are for
           the last digits, then the next point follows
"""

from __future__ import annotations

import math

import numpy as np

from .jit import FAST, jit
from .prox import dead_zone, shrink

#: The gap of the set to reach before a look, in units of the goal; and after each look in vain.
SHARE = 0.5
#: Sweeps before Newton, at least; and one more per so many columns of the support (a factor costs
#: m^3/6 multiply-adds, a sweep m^2).
FIRST, COLUMNS = 6, 10
#: Passes beyond those before Newton, on the way from ``tol`` to ``goal``; of larger supports that
#: would cost more than the way to ``tol``.
LAST, POLISHED = 6, 100
#: Columns that H has room for at first.
ROOM = 128
#: Sweeps without a change of sign that an extrapolation looks back on.
SWEEPS = 5
#: The least pivot of a factor, over the diagonal: a column with less depends on others.
DEPENDENT = 1e-11


@jit(fastmath=FAST)
def bounds(square, qx, rx, ones, squares, top, excess, l1, l2):
    """(P, D) from the sums q.x, r.x, |x|_1, |x|^2, max_j |r_j|, sum_j max(|r_j| - l1, 0)^2."""
    rss = max(square - qx - rx, 0.0)
    primal = 0.5 * rss + l1 * ones + 0.5 * l2 * squares
    dual = -np.inf
    if l2 > 0.0:
        dual = -0.5 * rss + square - qx - excess / (2.0 * l2)
    if top <= l1 or l1 > 0.0:
        t = 1.0 if top <= l1 else l1 / top
        dual = max(dual, t * (square - qx - 0.5 * t * rss))
    return primal, dual


@jit(fastmath=FAST)
def set_bounds(m, q, r, x, square, l1, l2, positive):
    """(P, D) of the problem with the first m columns alone."""
    qx, rx, ones, squares, top, excess = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(m):
        qx += q[k] * x[k]
        rx += r[k] * x[k]
        ones += abs(x[k])
        squares += x[k] * x[k]
        pull = r[k] if positive else abs(r[k])
        top = max(top, pull)
        over = max(pull - l1, 0.0)
        excess += over * over
    return bounds(square, qx, rx, ones, squares, top, excess, l1, l2)


@jit
def near(primal, dual, goal, noise):
    """Whether P - D is ``goal`` of P, or nothing but rounding."""
    return primal - dual <= max(goal * abs(primal), noise)


@jit(fastmath=FAST)
def subtract(m, factor, row, out):
    """out -= factor row, of the first m numbers."""
    for i in range(m):
        out[i] -= factor * row[i]


@jit(fastmath=FAST)
def dot(m, a, b):
    """a.b, of the first m numbers."""
    total = 0.0
    for i in range(m):
        total += a[i] * b[i]
    return total


@jit
def copy(m, a, out):
    """out = a, of the first m numbers."""
    for i in range(m):
        out[i] = a[i]


@jit
def count_nonzero(m, a):
    """How many of the first m numbers are not 0."""
    count = 0
    for i in range(m):
        count += a[i] != 0.0
    return count


@jit
def correlations(m, G, q, support, x, r):
    """r = q - Gx, from x itself: its first m numbers, and the columns of G that they are of."""
    d = q.shape[0]
    copy(d, q, r)
    for k in range(m):
        if x[k] != 0.0:
            subtract(d, x[k], G[support[k]], r)


@jit
def gram_sweep(m, H, r, x, l1, l2, positive):
    """A step on each of the first m columns; the number of those that came in or went out."""
    low, high = dead_zone(l1, positive)
    changes = 0
    for k in range(m):
        h, old = H[k, k], x[k]
        new = shrink(r[k] + h * old, low, high) / (h + l2)
        if new != old:
            subtract(m, new - old, H[k], r)
            x[k] = new
            if new == 0.0 or old == 0.0 or (new > 0.0) != (old > 0.0):
                changes += 1
    return changes


@jit
def factorise(L, diagonal):
    """L L' = L in place, by rows; how many depend on those above them.

    The pivot of the first of them is as if the diagonal were DEPENDENT longer there, that of the
    others is infinite: with many small pivots rounding grows from one to the next without bound
    (60 x 400, a support of 151: x was NaN).
    """
    count = 0
    for i in range(L.shape[0]):
        row = L[i]
        for j in range(i):
            other = L[j]
            row[j] = (row[j] - dot(j, row, other)) / other[j]
        left, least = row[i] - dot(i, row, row), DEPENDENT * diagonal[i]
        count += left <= least
        row[i] = math.sqrt(max(left, least)) if left > least or count == 1 else np.inf
    return count


@jit
def newton_step(m, H, q, r, x, square, l1, l2, positive, support, step, trial):
    """To the minimiser on the support; x_j that would change their signs go to 0 instead.

    If that does not pay, only to the first of these.  ``support``, ``step`` and ``trial`` are
    room.  Whether it got there; and how many columns depend on others: along the first of these P
    is linear, and the step goes on until an x_j is 0; the others stay where they are.
    """
    s = 0
    for k in range(m):
        if x[k] != 0.0:
            support[s] = k
            s += 1
    L, diagonal = np.empty((s, s)), np.empty(s)
    for i in range(s):
        row = H[support[i]]
        for j in range(i + 1):
            L[i, j] = row[support[j]]
        L[i, i] += l2
        diagonal[i] = L[i, i]
    dependent = factorise(L, diagonal)
    for i in range(s):
        k = support[i]
        right = r[k] - l2 * x[k] - math.copysign(l1, x[k])
        step[i] = (right - dot(i, L[i], step)) / L[i, i]
    for i in range(s - 1, -1, -1):
        step[i] /= L[i, i]
        subtract(i, step[i], L[i], step)
    limit, first = 1.0, -1
    for i in range(s):
        old = x[support[i]]
        if old * (old + limit * step[i]) < 0.0:
            limit, first = -old / step[i], i
    if first >= 0:
        before, _ = set_bounds(m, q, r, x, square, l1, l2, positive)
        for k in range(m):
            trial[k] = r[k]
        for i in range(s):
            k = support[i]
            old = x[k]
            if old * (old + step[i]) < 0.0:
                x[k] = 0.0
            else:
                x[k] = old + step[i]
            diagonal[i] = old
            subtract(m, x[k] - old, H[k], trial)
        after, _ = set_bounds(m, q, trial, x, square, l1, l2, positive)
        if after < before:
            for k in range(m):
                r[k] = trial[k]
            return False, dependent
        for i in range(s):
            x[support[i]] = diagonal[i]
    for i in range(s):
        k = support[i]
        new = x[k] + limit * step[i] if i != first else 0.0
        subtract(m, new - x[k], H[k], r)
        x[k] = new
    return first < 0, dependent


@jit
def combination(m, iterates, images, x_new, r_new):
    """The point to which the last sweeps tend, and its r; whether there is one.

    ``iterates`` are x after each of them and ``images`` their r: the combination with weights of
    sum 1 that has the least difference from sweep to sweep (Anderson; Bertrand and Massias 2021).
    """
    K = iterates.shape[0] - 1
    C, weights, diagonal = np.empty((K, K)), np.empty(K), np.empty(K)
    for i in range(K):
        for j in range(i + 1):
            total = 0.0
            for k in range(m):
                total += (iterates[i + 1, k] - iterates[i, k]) * (
                    iterates[j + 1, k] - iterates[j, k]
                )
            C[i, j] = total
    ridge = 0.0
    for i in range(K):
        ridge += 1e-13 * C[i, i]
    if not ridge > 0.0:
        return False
    for i in range(K):
        C[i, i] += ridge
        diagonal[i] = C[i, i]
    factorise(C, diagonal)
    for i in range(K):
        weights[i] = (1.0 - dot(i, C[i], weights)) / C[i, i]
    total = 0.0
    for i in range(K - 1, -1, -1):
        weights[i] /= C[i, i]
        total += weights[i]
        subtract(i, weights[i], C[i], weights)
    for k in range(m):
        x_new[k] = r_new[k] = 0.0
    for i in range(K):
        subtract(m, -weights[i] / total, iterates[i + 1], x_new)
        subtract(m, -weights[i] / total, images[i + 1], r_new)
    return True


@jit
def extrapolate(m, iterates, images, q, square, l1, l2, positive, x, r, x_new, r_new):
    """Go to the point to which the last sweeps tend, if P is less there.

    ``x_new`` and ``r_new`` are room.
    """
    if not combination(m, iterates, images, x_new, r_new):
        return
    if positive:
        for k in range(m):
            if x_new[k] < 0.0:
                return
    before, _ = set_bounds(m, q, r, x, square, l1, l2, positive)
    after, _ = set_bounds(m, q, r_new, x_new, square, l1, l2, positive)
    if after < before:
        copy(m, x_new, x)
        copy(m, r_new, r)


@jit
def compact(m, kept, H, members, place, x, old):
    """Only the ``kept`` of the first m columns stay in the set; how many."""
    size = 0
    for k in range(m):
        if kept[k]:
            row = H[k]
            target = H[size]
            length = 0
            for i in range(m):
                if kept[i]:
                    target[length] = row[i]
                    length += 1
            members[size], place[members[k]] = members[k], size
            x[size], old[size] = x[k], old[k]
            size += 1
        else:
            place[members[k]] = -1
    return size


@jit
def patience(size):
    """Sweeps before a Newton step on a support of so many columns."""
    return FIRST + size // COLUMNS


@jit
def extend(G, H, members, place, j, m):
    """Column j becomes number m of the set; H, or a larger one where it was full.

    Rows as long as G's would be a page apart each: half the speed.
    """
    if m == H.shape[0]:
        size = min(2 * m, G.shape[0])
        larger = np.empty((size, size))
        for k in range(m):
            copy(m, H[k], larger[k])
        H = larger
    members[m] = j
    place[j] = m
    row = G[j]
    for k in range(m + 1):
        value = row[members[k]]
        H[m, k] = value
        H[k, m] = value
    return H


@jit
def gram_path(
    G, q, square, moving, l1, l2, positive, tol, goal, noise, most, budget, x, X, taken, work
):
    """Solve from x under each (l1_k, l2_k) in turn, to relative gaps of ``tol``.

    Then, if a Newton step will do, to ``goal``; ``noise`` is what P - D is not known to.  Rows of
    ``X`` get the solutions, ``taken`` the passes (sweeps and Newton steps; ``most`` at a point),
    ``work`` the multiply-adds.  Returns after the point at which these are more than ``budget`` in
    all, with the number of points done.
    """
    d, points = q.shape[0], l1.shape[0]
    H = np.empty((min(d, ROOM), min(d, ROOM)))
    whole = np.empty((3, d), dtype=np.int64)
    members, place, support = whole[0], whole[1], whole[2]
    room = np.empty((7, d))
    xs, rs, qs, old = room[0], room[1], room[2], room[3]
    trial, step, r = room[4], room[5], room[6]
    kept = np.empty(d, dtype=np.bool_)
    iterates, images = np.empty((SWEEPS + 1, d)), np.empty((SWEEPS + 1, d))
    m, spent = 0, 0.0
    for j in range(d):
        place[j], xs[j], old[j] = -1, 0.0, 0.0
    for j in range(d):
        if x[j] != 0.0:
            H = extend(G, H, members, place, j, m)
            xs[m] = x[j]
            m += 1
    correlations(m, G, q, members, xs, r)
    spent += d * m
    for p in range(points):
        a, b = l1[p], l2[p]
        done, before, passes = 0.0, m, 0
        # ---- start
        threshold = min(2.0 * a - l1[p - 1] if p > 0 else a, a)
        count = 0
        for k in range(m):
            pull = r[members[k]] if positive else abs(r[members[k]])
            kept[k] = xs[k] != 0.0 or pull > threshold
            count += kept[k]
        if 3 * count < 2 * m:
            m = before = compact(m, kept, H, members, place, xs, old)
        for j in range(d):
            pull = r[j] if positive else abs(r[j])
            if place[j] < 0 and moving[j] and pull > threshold:
                H = extend(G, H, members, place, j, m)
                xs[m], old[m] = 0.0, 0.0
                m += 1
        for k in range(before, m):
            done += k
        for k in range(m):
            qs[k], rs[k] = q[members[k]], r[members[k]]
        if p > 1 and l1[p - 2] != l1[p - 1]:
            ahead = (a - l1[p - 1]) / (l1[p - 1] - l1[p - 2])
            for k in range(m):
                trial[k] = xs[k] + ahead * (xs[k] - old[k])
                if trial[k] * xs[k] <= 0.0 or xs[k] * old[k] <= 0.0:
                    trial[k] = xs[k]
            copy(m, qs, step)
            for k in range(m):
                if trial[k] != 0.0:
                    subtract(m, trial[k], H[k], step)
            done += m * m
            here, _ = set_bounds(m, qs, rs, xs, square, a, b, positive)
            there, _ = set_bounds(m, qs, step, trial, square, a, b, positive)
            copy(m, xs, old)
            if there < here:
                copy(m, trial, xs)
                copy(m, step, rs)
        else:
            copy(m, xs, old)
        # ---- solve
        share, sweeps, limit, polish = SHARE * tol, 0, most, False
        while True:
            settled, exact, filled = False, False, 0
            while passes < limit and not exact:
                changes = gram_sweep(m, H, rs, xs, a, b, positive)
                passes += 1
                sweeps += 1
                done += m * m
                primal, dual = set_bounds(m, qs, rs, xs, square, a, b, positive)
                if near(primal, dual, share, noise):
                    break
                exact, settled = settled and changes == 0, False
                size = count_nonzero(m, xs)
                filled = 0 if changes else filled
                copy(m, xs, iterates[filled])
                copy(m, rs, images[filled])
                filled += 1
                if filled > SWEEPS:
                    filled = 0
                    extrapolate(
                        m, iterates, images, qs, square, a, b, positive, xs, rs, trial, step
                    )
                if changes == 0 and not exact and passes < limit and sweeps >= patience(size):
                    settled, dependent = newton_step(
                        m, H, qs, rs, xs, square, a, b, positive, support, step, trial
                    )
                    passes += 1
                    filled = 0
                    done += size * size * size / 6.0 + size * m
                    sweeps = 0 if settled else FIRST - 2
                    settled = settled and dependent == 0
            # ---- look
            correlations(m, G, q, members, xs, r)
            for j in range(d):
                x[j] = 0.0
            for k in range(m):
                x[members[k]] = xs[k]
            done += d * m
            primal, dual = set_bounds(d, q, r, x, square, a, b, positive)
            if near(primal, dual, goal, noise) or passes >= limit:
                break
            before = m
            for j in range(d):
                pull = r[j] if positive else abs(r[j])
                if place[j] < 0 and moving[j] and pull > a:
                    H = extend(G, H, members, place, j, m)
                    xs[m], old[m], qs[m] = 0.0, 0.0, q[j]
                    m += 1
            for k in range(m):
                rs[k] = r[members[k]]
            if exact and before == m:
                break
            size = count_nonzero(m, xs)
            if near(primal, dual, tol, noise):
                if polish or size > POLISHED:
                    break
                polish, share = True, SHARE * goal
                limit = min(most, passes + patience(size) + LAST)
            elif before == m:
                share *= 0.1
        size = count_nonzero(m, xs)
        if 0 < size <= POLISHED and passes < most and not exact:
            # a gap of rounding leaves x the root of that: one more step takes it to its last digits
            for k in range(m):
                rs[k] = r[members[k]]
            newton_step(m, H, qs, rs, xs, square, a, b, positive, support, step, trial)
            passes += 1
            correlations(m, G, q, members, xs, r)
            for k in range(m):
                x[members[k]] = xs[k]
            done += size * size * size / 6.0 + (size + d) * m
        copy(d, x, X[p])
        taken[p] = passes
        work[p] = done
        spent += done
        if spent > budget:
            return p + 1
    return points


@jit
def gram_certificates(G, q, square, l1, l2, positive, X, sizes, unit, primal, dual, doubt):
    """P and D of each row of X, and what rounding may hide of P - D.

    ``sizes`` are lengths of columns and targets, ``unit`` what a sum of squares is not known to:
    P and D are off by unit (|b| + sum_j |x_j| |a_j|)^2, correlations by unit times |a_j| times that
    sum, of which a constraint of l1 makes that times |x|_1.
    """
    d = q.shape[0]
    r, everything = np.empty(d), np.empty(d, dtype=np.int64)
    longest = 0.0
    for j in range(d):
        everything[j] = j
        longest = max(longest, sizes[j])
    for p in range(X.shape[0]):
        x = X[p]
        correlations(d, G, q, everything, x, r)
        primal[p], dual[p] = set_bounds(d, q, r, x, square, l1[p], l2[p], positive)
        total, ones, excess = sizes[d], 0.0, 0.0
        for j in range(d):
            total += abs(x[j]) * sizes[j]
            ones += abs(x[j])
            pull = r[j] if positive else abs(r[j])
            if l2[p] > 0.0:
                excess += max(pull - l1[p], 0.0) / l2[p] * sizes[j]
        doubt[p] = unit * total * (total + longest * ones + excess)
