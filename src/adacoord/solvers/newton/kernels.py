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
    elif code == QUADRATIC:
        total, curvature = _expand_quadratic(alpha, epsilon, lo, hi, z, b, weight, y, bend)
    elif code == MARGIN:
        total, curvature = _expand_margin(alpha, epsilon, lo, hi, z, b, weight, y, bend)
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
def _expand_quadratic(alpha, epsilon, lo, hi, z, b, weight, y, bend):
    total = curvature = 0.0
    for i in range(np.uint64(z.shape[0])):
        value, y[i], second = expand(QUADRATIC, alpha, epsilon, lo, hi, z[i], b[i])
        bend[i] = _visible(weight[i] * second)
        total += weight[i] * value
        curvature += bend[i]
    return total, curvature


@jit(fastmath=FAST)
def _expand_margin(alpha, epsilon, lo, hi, z, b, weight, y, bend):
    total = curvature = 0.0
    for i in range(np.uint64(z.shape[0])):
        value, y[i], second = expand(MARGIN, alpha, epsilon, lo, hi, z[i], b[i])
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


@jit(fastmath=FAST, inline=True)
def softmax(z, i, b, y):
    """y_i = p - e_b with p = softmax(z_i); returns logsumexp(z_i) - z_ib.

    Of rows of matrices, not of vectors: views of rows take 100 ns each.
    """
    classes = np.uint64(z.shape[1])
    top = z[i, 0]
    for k in range(classes):
        top = max(top, z[i, k])
    for k in range(classes):
        y[i, k] = exp(z[i, k] - top)
    own = y[i, b]
    y[i, b] = 0.0
    rest = 0.0  # keeps the digits of a small loss, as does log1p
    for k in range(classes):
        rest += y[i, k]
    total = own + rest
    share = 1.0 / total
    for k in range(classes):
        y[i, k] *= share
    y[i, b] = -rest * share
    return math.log1p(rest) if z[i, b] == top else math.log(total) + (top - z[i, b])


@jit
def expand_blocks(z, b, weight, y):
    """Rowwise :func:`softmax`; returns sum weight phi(z)."""
    total = 0.0
    for i in range(np.uint64(z.shape[0])):
        value = softmax(z, i, np.uint64(b[i]), y)
        if weight[i] > 0.0:
            total += weight[i] * value
    return total


@jit(fastmath=FAST)
def along_line_blocks(z, dz, b, weight, t):
    """As :func:`along_line`, for the multinomial loss."""
    classes, first_row = np.uint64(z.shape[1]), np.uint64(0)
    point, y = np.empty((1, z.shape[1])), np.empty((1, z.shape[1]))
    total = slope = bend = 0.0
    for i in range(np.uint64(z.shape[0])):
        if weight[i] == 0.0:
            continue
        own = np.uint64(b[i])
        for k in range(classes):
            point[0, k] = z[i, k] + t * dz[i, k]
        total += weight[i] * softmax(point, first_row, own, y)
        first = square = 0.0
        for k in range(classes):
            first += y[0, k] * dz[i, k]
            square += y[0, k] * dz[i, k] * dz[i, k]
        mean, square = first + dz[i, own], square + dz[i, own] * dz[i, own]  # p = y + e_b
        slope += weight[i] * first
        bend += weight[i] * max(square - mean * mean, 0.0)
    return total, slope, bend


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


@jit
def hessian_blocks(probability, weight, av, out):
    """out = the Hessian of each row's multinomial loss times ``av``: w (p av - p (p.av))."""
    for i in range(np.uint64(av.shape[0])):
        mean = 0.0
        for k in range(av.shape[1]):
            out[i, k] = probability[i, k] * av[i, k]
            mean += out[i, k]
        for k in range(av.shape[1]):
            out[i, k] = weight[i] * (out[i, k] - probability[i, k] * mean)


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
