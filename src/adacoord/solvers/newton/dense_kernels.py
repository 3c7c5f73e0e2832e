"""The kernels of :mod:`.dense`: losses over dense rows, and descent on a Gram matrix."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.codes import MARGIN
from ...kernels.jit import FAST, jit
from ...kernels.loss import dual_prox, expand
from ...kernels.prox import dead_zone, shrink


@jit(fastmath=FAST)
def expand_data(A, code, alpha, epsilon, lo, hi, z, b, weight, y, bend, bent, slope):
    """The losses at z and all that a Newton step needs of them, in one pass over A.

    y = phi'(z), bend = weight phi''(z), slope = [A, 1]'(weight y), and the rows
    sqrt(bend_i) [a_i, 1] of those that have a curvature, side by side in ``bent`` (unless that
    is empty).  Returns (sum weight phi(z), the number of these rows, how many rows have gained or
    lost a curvature).
    """
    fill = bent.shape[0] > 0
    d = np.uint64(A.shape[1])
    total, flips, m = 0.0, 0, np.uint64(0)
    slope[:] = 0.0
    for i in range(np.uint64(A.shape[0])):
        value, y[i], second = expand(code, alpha, epsilon, lo, hi, z[i], b[i])
        h = 0.0
        if weight[i] > 0.0:  # 0 * inf is not 0
            total += weight[i] * value
            p = weight[i] * y[i]
            if p != 0.0:
                for j in range(d):
                    slope[j] += p * A[i, j]
                slope[d] += p
            # nothing below 1e-100: products of such numbers are denormal, which costs BLAS 4x
            h = weight[i] * second if weight[i] * second > 1e-100 else 0.0
        if (h > 0.0) != (bend[i] > 0.0):
            flips += 1
        bend[i] = h
        if h > 0.0:
            if fill:
                root = math.sqrt(h)
                for j in range(d):
                    bent[m, j] = root * A[i, j]
                bent[m, d] = root
            m += np.uint64(1)
    return total, m, flips


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
def respond(code, alpha, epsilon, lo, hi, z, b, y, step, weight, v, kink):
    """v = dprox(z) at y, and which rows of it lie at a kink: strictly between the ends of the
    domain, and not at the kink of epsilon |v|; for losses of the quadratic family."""
    for i in range(np.uint64(z.shape[0])):
        v[i] = dual_prox(code, alpha, epsilon, lo, hi, z[i], b[i], y[i], step)
        first, last = lo, hi
        if code == MARGIN and b[i] < 0.0:
            first, last = -hi, -lo
        kink[i] = first < v[i] < last and weight[i] > 0.0 and (epsilon == 0.0 or v[i] != 0.0)
