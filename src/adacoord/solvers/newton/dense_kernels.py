"""The kernels of :mod:`.dense`: losses over dense rows, and descent on a Gram matrix."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.jit import FAST, jit
from ...kernels.prox import dead_zone, shrink
from ...linalg.line_search import GROWTH, HALF, NOISE, ROUNDING
from .kernels import along_quadratic, expand_family


@jit(fastmath=FAST)
def expand_data(
    A, logistic, exponential, tweedie, quadratic, code, alpha, epsilon, lo, hi, z, b, weight,
    y, bend, bent, slope,
):  # fmt: skip
    """The losses at z and all that a Newton step needs of them, in one pass over A.

    y = phi'(z), bend = weight phi''(z), slope = [A, 1]'(weight y), and the rows
    sqrt(bend_i) [a_i, 1] of those that have a curvature, side by side in ``bent`` (unless that
    is empty).  Returns (sum weight phi(z), the number of these rows, how many rows have gained or
    lost a curvature).
    """
    fill = bent.shape[0] > 0
    d = np.uint64(A.shape[1])
    flips, m = 0, np.uint64(0)
    before, p = bend.copy(), np.empty_like(z)
    # losses several rows at a time: 20,301 x 4, gamma, a step: .62 -> .31 ms
    total, _ = expand_family(
        logistic, exponential, tweedie, quadratic, code, alpha, epsilon, lo, hi,
        z, b, weight, y, p, bend,
    )  # fmt: skip
    slope[:] = 0.0
    for i in range(np.uint64(A.shape[0])):
        if p[i] != 0.0:
            for j in range(d):
                slope[j] += p[i] * A[i, j]
            slope[d] += p[i]
        if (bend[i] > 0.0) != (before[i] > 0.0):
            flips += 1
        if bend[i] > 0.0:
            if fill:
                root = math.sqrt(bend[i])
                for j in range(d):
                    bent[m, j] = root * A[i, j]
                bent[m, d] = root
            m += np.uint64(1)
    return total, m, flips


@jit(fastmath=FAST)
def whole_step(
    A, factor, settled, l2, logistic, exponential, tweedie, quadratic, code, alpha, epsilon, lo,
    hi, b, weight, x, c, z, value, step, dz, trial, y, bend, bent, slope, share, rounding,
):  # fmt: skip
    """The step -H^{-1} gradient, taken if the slope along it falls to ``share`` of what it was and
    P does not grow, or if it is ``rounding`` of P.

    ``factor`` is L of H = LL'; ``value`` and ``slope`` are the losses' at z = Ax + c.  Fills
    ``step`` and dz = [A, 1] step.  Where it is taken x moves, ``trial`` is the new z and the
    losses are expanded there (:func:`expand_data`); from x itself if ``settled``, so that nothing
    is left of rounding in running sums.

    Returns (whether it was taken, the slope along it, the losses, the rows with a curvature, how
    many have gained or lost one, the largest change of x or z in units of their largest).
    """
    d, m = np.uint64(x.shape[0]), np.uint64(factor.shape[0])
    for j in range(m):
        step[j] = -slope[j] - l2 * x[j] if j < d else -slope[j]
    along = 0.0
    for j in range(m):
        step[j] /= factor[j, j]
        along -= step[j] * step[j]
        for k in range(j + np.uint64(1), m):
            step[k] -= factor[k, j] * step[j]
    for back in range(m):
        j = m - np.uint64(1) - back
        total = step[j]
        for k in range(j + np.uint64(1), m):
            total -= factor[k, j] * step[k]
        step[j] = total / factor[j, j]
    dc = step[d] if m > d else 0.0
    for i in range(np.uint64(A.shape[0])):
        total = 0.0
        for j in range(d):
            total += A[i, j] * step[j]
        dz[i] = total + dc
        trial[i] = z[i] + dz[i]
    if settled:
        for i in range(np.uint64(A.shape[0])):
            total = 0.0
            for j in range(d):
                total += A[i, j] * (x[j] + step[j])
            trial[i] = total + (c + dc)
    losses, rows, flips = expand_data(
        A, logistic, exponential, tweedie, quadratic, code, alpha, epsilon, lo, hi, trial, b,
        weight, y, bend, bent, slope,
    )  # fmt: skip
    before, after, first = 0.0, 0.0, slope[d] * dc
    for j in range(d):
        new = x[j] + step[j]
        before += x[j] * x[j]
        after += new * new
        first += (slope[j] + l2 * new) * step[j]
    before, after = value + 0.5 * l2 * before, losses + 0.5 * l2 * after
    rounding *= abs(before)
    taken = abs(first) <= -share * along and after <= before + rounding
    if not (taken or -along <= rounding):
        return False, along, value, rows, flips, 0.0
    size = change = 0.0
    for j in range(d):
        x[j] += step[j]
        size, change = max(size, abs(x[j])), max(change, abs(step[j]))
    moved = change / size if size > 0.0 else 0.0
    size = change = 0.0
    for i in range(np.uint64(A.shape[0])):
        size, change = max(size, abs(trial[i])), max(change, abs(dz[i]))
    return True, along, losses, rows, flips, max(moved, change / size if size > 0.0 else 0.0)


@jit
def move(x, dx, z, dz, t):
    """x += t dx and z += t dz; the larger of their largest changes, in units of their largest."""
    size = change = 0.0
    for j in range(np.uint64(x.shape[0])):
        x[j] += t * dx[j]
        size, change = max(size, abs(x[j])), max(change, abs(t * dx[j]))
    share = change / size if size > 0.0 else 0.0
    size = change = 0.0
    for i in range(np.uint64(z.shape[0])):
        z[i] += t * dz[i]
        size, change = max(size, abs(z[i])), max(change, abs(t * dz[i]))
    return max(share, change / size if size > 0.0 else 0.0)


@jit
def descend(H, gradient, x, l1, positive, sweeps):
    """Coordinate descent on gradient.s + s'Hs/2 + l1 |x + s|_1; ``x`` becomes x + s.

    ``gradient`` is kept that of the new x.
    """
    low, high = dead_zone(l1, positive)
    for _ in range(sweeps):
        for j in range(np.uint64(x.shape[0])):
            bend = H[j, j]
            new = shrink(x[j] - gradient[j] / bend, low / bend, high / bend) if bend > 0.0 else 0.0
            step = new - x[j]
            if step != 0.0:
                x[j] = new
                for k in range(np.uint64(x.shape[0])):
                    gradient[k] += step * H[j, k]


@jit
def newton_steps(
    A, code, alpha, epsilon, lo, hi, l2, b, weight, x, c, z, value, rows, H, step, dz, trial, y,
    bend, bent, slope, longest, rough, last, singular, most,
):  # fmt: skip
    """Steps of Newton's method to their end, for losses of the quadratic family and l2 alone.

    Those of :class:`~.dense.DenseNewton`, one after the other: H in ``H`` and its factor,
    :func:`whole_step`, the line search where that is not taken, and the rules by which a step is
    the last.  ``z``, ``value`` and ``rows`` are those of the point (x, c), as it was expanded last;
    ``longest`` is the longest row.  The predictions end in ``z``, or in ``trial`` if ``swapped``.

    Returns (whether it ended, c, the losses, the rows with a curvature, steps, the multiply-adds
    of their matrices, ``swapped``); it ends before its end where H has no factor, or after ``most``
    steps.
    """
    n, d, m = np.uint64(A.shape[0]), np.uint64(A.shape[1]), np.uint64(H.shape[0])
    settled, swapped, moved, taken, work = False, False, np.inf, 0, 0
    while taken < most:
        if not settled:
            if rows == 0:
                break
            _gram(bent, rows, H)
            for j in range(d):
                H[j, j] += l2
            work += rows * H.size // 2 + H.size * H.shape[0] // 6
            if not _factorised(H, singular):
                break
        before = moved
        done, along, losses, count, flips, moved = whole_step(
            A, H, settled, l2, None, None, None, True, code, alpha, epsilon, lo, hi, b, weight,
            x, c, z, value, step, dz, trial, y, bend, bent, slope, HALF, ROUNDING,
        )  # fmt: skip
        taken += 1
        dc, t = (step[d] if m > d else 0.0), 1.0
        if done:
            z, trial, swapped = trial, z, not swapped
            c += dc
            value, rows = losses, np.int64(count)
        else:
            t = _searched(code, alpha, epsilon, lo, hi, l2, x, step, z, dz, b, weight, value, along)
            moved = move(x, step[:d], z, dz, t)
            c += t * dc
            if settled:  # nothing is left of rounding in running sums
                for i in range(n):
                    z[i] = c
                    for j in range(d):
                        z[i] += A[i, j] * x[j]
            value, count, flips = expand_data(
                A, None, None, None, True, code, alpha, epsilon, lo, hi, z, b, weight, y, bend,
                bent, slope,
            )  # fmt: skip
            rows = np.int64(count)
        if moved <= last or (settled and moved > 0.5 * before):
            return True, c, value, rows, taken, work, swapped
        settled = t == 1.0 and flips == 0
        if settled and _next_change(H, l2, slope, x, z, step, longest) <= last:
            return True, c, value, rows, taken, work, swapped
        if rough > 0.0 and t == 1.0 and flips <= rough * rows:
            return True, c, value, rows, taken, work, swapped
    return False, c, value, rows, taken, work, swapped


@jit(fastmath=FAST)
def _gram(B, rows, H):
    """The lower half of H = B'B, of the first ``rows`` rows and as many columns as H has."""
    one, four, m = np.uint64(1), np.uint64(4), np.uint64(H.shape[0])
    H[:, :] = 0.0
    i, end = np.uint64(0), np.uint64(rows)
    while i + four <= end:
        p, q, r = i + one, i + np.uint64(2), i + np.uint64(3)
        for j in range(m):
            a, b, c, e = B[i, j], B[p, j], B[q, j], B[r, j]
            for k in range(j + one):
                H[j, k] += a * B[i, k] + b * B[p, k] + c * B[q, k] + e * B[r, k]
        i += four
    while i < end:
        for j in range(m):
            a = B[i, j]
            for k in range(j + one):
                H[j, k] += a * B[i, k]
        i += one


@jit(fastmath=FAST)
def _factorised(H, singular):
    """L of H = LL' in its place; False where H is singular to rounding (:mod:`.cholesky`)."""
    one, m = np.uint64(1), np.uint64(H.shape[0])
    least, largest = np.inf, 0.0
    for j in range(m):
        for k in range(j + one):
            total = H[j, k]
            for i in range(k):
                total -= H[j, i] * H[k, i]
            if k < j:
                H[j, k] = total / H[k, k]
            elif total > 0.0:
                H[j, j] = math.sqrt(total)
            else:  # NaN, too
                return False
        least, largest = min(least, H[j, j]), max(largest, H[j, j])
    return (least / largest) ** 2 >= singular


@jit
def _searched(code, alpha, epsilon, lo, hi, l2, x, step, z, dz, b, weight, value, slope):
    """:func:`~adacoord.linalg.line_search.line_search` along a step."""
    constant = tilt = bend = 0.0
    for j in range(np.uint64(x.shape[0])):
        constant += 0.5 * l2 * x[j] * x[j]
        tilt += l2 * x[j] * step[j]
        bend += l2 * step[j] * step[j]
    start = value + constant
    if -slope <= ROUNDING * abs(start):  # refinement
        return 1.0
    low, high, t = 0.0, np.inf, 1.0
    for trial in range(100):
        total, first, second = along_quadratic(code, alpha, epsilon, lo, hi, t, z, dz, b, weight)
        total += constant + t * (tilt + 0.5 * t * bend)
        first += tilt + t * bend
        second += bend
        if abs(first) <= -HALF * slope and total <= start + NOISE * abs(start):
            return t
        if first < 0.0:
            low = t
        else:
            high = t
        t = t - first / second if second > 0.0 and np.isfinite(first) else np.inf
        if high == np.inf:
            t = min(max(t, 2.0 * low), GROWTH * low)
        elif trial % 2 or not low < t < high:
            t = 0.5 * (low + high)
    return low


@jit(fastmath=FAST)
def _next_change(factor, l2, slope, x, z, step, longest):
    """At most what the next step would change of x and z, in units of their largest."""
    one, d, m = np.uint64(1), np.uint64(x.shape[0]), np.uint64(factor.shape[0])
    for j in range(m):
        step[j] = slope[j] + l2 * x[j] if j < d else slope[j]
    for j in range(m):
        step[j] /= factor[j, j]
        for k in range(j + one, m):
            step[k] -= factor[k, j] * step[j]
    for back in range(m):
        j = m - one - back
        total = step[j]
        for k in range(j + one, m):
            total -= factor[k, j] * step[k]
        step[j] = total / factor[j, j]
    size = largest = change = length = 0.0
    for j in range(d):
        size, change = max(size, abs(x[j])), max(change, abs(step[j]))
        length += step[j] * step[j]
    for i in range(np.uint64(z.shape[0])):
        largest = max(largest, abs(z[i]))
    if not (size > 0.0 and largest > 0.0):
        return np.inf
    moved = longest * math.sqrt(length) + (abs(step[d]) if m > d else 0.0)
    return max(change / size, moved / largest)
