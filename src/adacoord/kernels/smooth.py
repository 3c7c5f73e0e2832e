"""Value, slope and curvature of the smooth losses as scalar kernels, for the methods that move x.

The quadratic family of :mod:`adacoord.problem.losses` with alpha > 0, and the logistic loss; codes
and constants as in :func:`adacoord.kernels.scalar.dprox`.
"""

from __future__ import annotations

import math

from .codes import LOGISTIC, MARGIN
from .jit import jit


@jit
def slope(code, alpha, epsilon, lo, hi, z, b):
    """phi'(z)."""
    if code == LOGISTIC:
        m = b * z
        if m > 0.0:
            e = math.exp(-m)
            return -b * e / (1.0 + e)
        return -b / (1.0 + math.exp(m))
    v = z - b
    if epsilon > 0.0:
        v = max(v - epsilon, 0.0) + min(v + epsilon, 0.0)
    v /= alpha
    if code == MARGIN and b < 0.0:
        return min(max(v, -hi), -lo)
    return min(max(v, lo), hi)


@jit
def curvature(code, alpha, epsilon, lo, hi, b, v):
    """phi''(z) from the slope ``v`` there; an element of its closure at the kinks of phi'."""
    if code == LOGISTIC:
        return abs(v) * (1.0 - abs(v))
    if code == MARGIN and b < 0.0:
        v = -v
    return 1.0 / alpha if lo < v < hi and (epsilon == 0.0 or v != 0.0) else 0.0


@jit
def value(code, alpha, epsilon, lo, hi, z, b):
    """phi(z)."""
    if code == LOGISTIC:
        m = b * z
        return math.log1p(math.exp(-m)) if m > 0.0 else math.log1p(math.exp(m)) - m
    v = slope(code, alpha, epsilon, lo, hi, z, b)
    return v * (z - b) - epsilon * abs(v) - 0.5 * alpha * v * v
