"""The kernels of :mod:`.dense`: losses over dense rows, and descent on a Gram matrix."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.jit import FAST, jit
from ...kernels.prox import dead_zone, shrink
from .kernels import expand_family


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
        total = again = 0.0
        for j in range(d):
            total += A[i, j] * step[j]
            again += A[i, j] * (x[j] + step[j])
        dz[i] = total + dc
        trial[i] = again + (c + dc) if settled else z[i] + dz[i]
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
