"""The kernels of Newton's method: losses along rows and lines, and sparse Gram matrices."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.jit import jit
from ...kernels.loss import expand


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
