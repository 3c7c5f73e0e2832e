"""The kernels of Newton's method: losses along rows and lines, and sparse Gram matrices."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.codes import LOGISTIC, MARGIN, QUADRATIC
from ...kernels.jit import FAST, jit
from ...kernels.loss import expand
from ...kernels.rows import row_add, row_dot
from ...kernels.vector_math import exp, log1p

# A loop with the code of one loss in it is straight, and takes several rows at a time; with a code
# that is an argument it has calls of every loss in it (squared: 12 -> 3 ns per row).


@jit
def expand_rows(code, alpha, epsilon, lo, hi, z, b, weight, y, p, bend):
    """y = phi'(z), p = weight y, bend = weight phi''(z); returns their sum, sum weight phi(z)."""
    if code == LOGISTIC:
        total, curvature = _expand_logistic(z, b, weight, y, bend)
    elif code == QUADRATIC or code == MARGIN:
        margin = code == MARGIN
        total, curvature = _expand_quadratic(margin, alpha, epsilon, lo, hi, z, b, weight, y, bend)
    else:
        total, curvature = _expand(code, alpha, epsilon, lo, hi, z, b, weight, y, bend)
    for i in range(np.uint64(z.shape[0])):
        p[i] = weight[i] * y[i] if weight[i] > 0.0 else 0.0  # 0 * inf is not 0
    return total, curvature


@jit
def _expand(code, alpha, epsilon, lo, hi, z, b, weight, y, bend):
    total = curvature = 0.0
    for i in range(np.uint64(z.shape[0])):
        value, y[i], second = expand(code, alpha, epsilon, lo, hi, z[i], b[i])
        bend[i] = _visible(weight[i] * second)
        total += weight[i] * value if weight[i] > 0.0 else 0.0
        curvature += bend[i]
    return total, curvature


@jit(fastmath=FAST)
def _expand_quadratic(margin, alpha, epsilon, lo, hi, z, b, weight, y, bend):
    total = curvature = 0.0
    code = MARGIN if margin else QUADRATIC  # and none of the others
    for i in range(np.uint64(z.shape[0])):
        value, y[i], second = expand(code, alpha, epsilon, lo, hi, z[i], b[i])
        bend[i] = _visible(weight[i] * second)
        total += weight[i] * value
        curvature += bend[i]
    return total, curvature


@jit(fastmath=FAST)
def _expand_logistic(z, b, weight, y, bend):
    total = curvature = 0.0
    for i in range(np.uint64(z.shape[0])):
        m = b[i] * z[i]
        e = exp(-abs(m))
        r = 1.0 / (1.0 + e)
        y[i] = -b[i] * ((e if m > 0.0 else 1.0) * r)
        second = _visible(weight[i] * (e * r * r))
        bend[i] = second
        total += weight[i] * (log1p(e) + (0.0 if m > 0.0 else -m))
        curvature += second
    return total, curvature


@jit(inline=True)
def _visible(curvature):
    """Nothing below 1e-100: products of such numbers are denormal, which costs BLAS 4x."""
    return curvature if curvature > 1e-100 else 0.0


@jit
def along_line(code, alpha, epsilon, lo, hi, z, dz, b, weight, t):
    """sum weight phi(z + t dz), its slope and its curvature in t."""
    if code == LOGISTIC:
        return _along_logistic(z, dz, b, weight, t)
    total = slope = bend = 0.0
    for i in range(np.uint64(z.shape[0])):
        if weight[i] > 0.0:
            value, first, second = expand(code, alpha, epsilon, lo, hi, z[i] + t * dz[i], b[i])
            total += weight[i] * value
            slope += weight[i] * first * dz[i]
            bend += weight[i] * second * dz[i] * dz[i]
    return total, slope, bend


@jit(fastmath=FAST)
def _along_logistic(z, dz, b, weight, t):
    total = slope = bend = 0.0
    for i in range(np.uint64(z.shape[0])):
        m = b[i] * (z[i] + t * dz[i])
        e = exp(-abs(m))
        r = 1.0 / (1.0 + e)
        slope -= weight[i] * b[i] * dz[i] * ((e if m > 0.0 else 1.0) * r)
        bend += weight[i] * (e * r * r) * (dz[i] * dz[i])
        total += weight[i] * (log1p(e) + (0.0 if m > 0.0 else -m))
    return total, slope, bend


@jit(fastmath=FAST)
def softmax_rows(e, own, b, weight):
    """From e = exp(z - max z) to y = p - e_b in its place, p = softmax(z); own = z_b - max z.

    Returns sum weight (logsumexp(z) - z_b).
    """
    value = 0.0
    for i in range(np.uint64(e.shape[0])):
        row, k = e[i], b[i]
        rest, top = 0.0, row[k]
        row[k] = 0.0
        for j in range(row.shape[0]):
            rest += row[j]
        scale = 1.0 / (rest + top)
        for j in range(row.shape[0]):
            row[j] *= scale
        row[k] = -rest * scale  # keeps the digits of a small loss, as does log1p
        if weight[i] > 0.0:
            loss = math.log1p(rest) if own[i] == 0.0 else math.log(rest + top) - own[i]
            value += weight[i] * loss
    return value


@jit(fastmath=FAST)
def along_blocks(y, b, weight, dz):
    """(slope, curvature) of sum weight phi along dz, where y = phi' is the multinomial loss's."""
    slope = bend = 0.0
    for i in range(np.uint64(y.shape[0])):
        first = square = 0.0
        for k in range(y.shape[1]):
            part = y[i, k] * dz[i, k]
            first += part
            square += part * dz[i, k]
        own = dz[i, b[i]]
        slope += weight[i] * first
        bend += weight[i] * max(square + own * own - (first + own) * (first + own), 0.0)
    return slope, bend


@jit
def hessian_rows(indptr, indices, data, v, shift, bend, av, out):
    """av = A v + shift and out += A' (bend av), each row read once; returns the sum of bend av."""
    total = 0.0
    for i in range(np.uint64(av.shape[0])):
        start, stop = indptr[i], indptr[i + np.uint64(1)]
        av[i] = row_dot(indices, data, start, stop, v) + shift
        factor = bend[i] * av[i]
        if factor != 0.0:
            row_add(indices, data, start, stop, factor, out)
            total += factor
    return total


@jit(fastmath=FAST)
def hessian_blocks(y, b, weight, av, out):
    """out = w (p av - p (p.av)) for each row, p = y + e_b: the Hessians of the multinomial loss."""
    for i in range(np.uint64(av.shape[0])):
        own, mean = b[i], av[i, b[i]]
        for k in range(av.shape[1]):
            mean += y[i, k] * av[i, k]
        for k in range(av.shape[1]):
            out[i, k] = weight[i] * y[i, k] * (av[i, k] - mean)
        out[i, own] += weight[i] * (av[i, own] - mean)


@jit(fastmath=FAST)
def curvature_blocks(y, b, weight, rows, classes):
    """The sums of w p (1 - p) over the classes of each row, and over the rows of each class."""
    for k in range(y.shape[1]):
        classes[k] = 0.0
    for i in range(np.uint64(y.shape[0])):
        own, total = y[i, b[i]], 0.0
        y_own = -own * (1.0 + own)
        for k in range(y.shape[1]):
            part = y[i, k] * (1.0 - y[i, k])
            total += part
            classes[k] += weight[i] * part
        more = y_own - own * (1.0 - own)
        rows[i] = weight[i] * (total + more)
        classes[b[i]] += weight[i] * more


@jit(fastmath=FAST)
def spread_rows(indptr, indices, data, bend, centre, out, seen):
    """out_j += sum of bend_i (a_ij - centre_j)^2 and seen_j += that of bend_i, stored entries."""
    for i in range(np.uint64(bend.shape[0])):
        start, stop, weight = indptr[i], indptr[i + np.uint64(1)], bend[i]
        if weight > 0.0:
            for k in range(start, stop):
                j = k - start if indices is None else np.uint64(indices[k])
                away = np.float64(data[k]) - centre[j]
                out[j] += weight * away * away
                if indices is not None:
                    seen[j] += weight


@jit(fastmath=FAST)
def spread_columns(colptr, rows, data, bend, centre, out, seen):
    """As :func:`spread_rows`, of data by columns."""
    for j in range(np.uint64(out.shape[0])):
        start, stop = colptr[j], colptr[j + np.uint64(1)]
        total = weight = 0.0
        for k in range(start, stop):
            i = k - start if rows is None else np.uint64(rows[k])
            away = np.float64(data[k]) - centre[j]
            total += bend[i] * away * away
            weight += bend[i]
        out[j] += total
        seen[j] += weight
