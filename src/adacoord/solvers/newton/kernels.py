"""The kernels of Newton's method: losses along rows and lines, and sparse Gram matrices."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.jit import FAST, jit
from ...kernels.loss import expand
from ...kernels.rows import row_add, row_dot


@jit
def expand_rows(code, alpha, epsilon, lo, hi, z, b, weight, y, p, bend):
    """y = phi'(z), p = weight y, bend = weight phi''(z); returns their sum, sum weight phi(z)."""
    total = curvature = 0.0
    for i in range(np.uint64(z.shape[0])):
        value, y[i], second = expand(code, alpha, epsilon, lo, hi, z[i], b[i])
        if weight[i] > 0.0:  # 0 * inf is not 0
            total += weight[i] * value
            p[i] = weight[i] * y[i]
            # nothing below 1e-100: products of such numbers are denormal, which costs BLAS 4x
            bend[i] = weight[i] * second if weight[i] * second > 1e-100 else 0.0
            curvature += bend[i]
        else:
            p[i] = bend[i] = 0.0
    return total, curvature


@jit
def line_start(t, dt, dual, ddual, p, dz):
    """(t.dual, dt.dual, dt.ddual, p.dz) of arrays in one dimension."""
    xx = xdx = dxdx = pdz = 0.0
    for j in range(np.uint64(t.shape[0])):
        xx += t[j] * dual[j]
        xdx += dt[j] * dual[j]
        dxdx += dt[j] * ddual[j]
    for i in range(np.uint64(p.shape[0])):
        pdz += p[i] * dz[i]
    return xx, xdx, dxdx, pdz


@jit
def along_line(code, alpha, epsilon, lo, hi, z, dz, b, weight, t):
    """sum weight phi(z + t dz), its slope and its curvature in t."""
    total = slope = bend = 0.0
    for i in range(np.uint64(z.shape[0])):
        if weight[i] > 0.0:
            value, first, second = expand(code, alpha, epsilon, lo, hi, z[i] + t * dz[i], b[i])
            total += weight[i] * value
            slope += weight[i] * first * dz[i]
            bend += weight[i] * second * dz[i] * dz[i]
    return total, slope, bend


@jit
def softmax(z, b, y):
    """y = p - e_b with p = softmax(z); returns logsumexp(z) - z_b."""
    top = z[0]
    for k in range(1, z.shape[0]):
        top = max(top, z[k])
    total = rest = 0.0
    for k in range(z.shape[0]):
        y[k] = math.exp(z[k] - top)
        total += y[k]
        if k != b:
            rest += y[k]
    for k in range(z.shape[0]):
        y[k] /= total
    y[b] = -rest / total  # keeps the digits of a small loss, as does log1p
    if z[b] == top:
        return math.log1p(rest)
    return math.log(total) + (top - z[b])


@jit
def expand_blocks(z, b, weight, y):
    """Rowwise :func:`softmax`; returns sum weight phi(z)."""
    total = 0.0
    for i in range(np.uint64(z.shape[0])):
        value = softmax(z[i], b[i], y[i])
        if weight[i] > 0.0:
            total += weight[i] * value
    return total


@jit
def along_line_blocks(z, dz, b, weight, t):
    """As :func:`along_line`, for the multinomial loss."""
    n_classes = z.shape[1]
    point, y = np.empty(n_classes), np.empty(n_classes)
    total = slope = bend = 0.0
    for i in range(np.uint64(z.shape[0])):
        if weight[i] == 0.0:
            continue
        for k in range(n_classes):
            point[k] = z[i, k] + t * dz[i, k]
        total += weight[i] * softmax(point, b[i], y)
        first = mean = square = 0.0
        for k in range(n_classes):
            p = y[k] + 1.0 if k == b[i] else y[k]
            first += y[k] * dz[i, k]
            mean += p * dz[i, k]
            square += p * dz[i, k] * dz[i, k]
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
