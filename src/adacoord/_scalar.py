r"""The scalar kernels every solver inlines: the dual prox of a loss, the prox of a penalty.

Losses are integer codes (:mod:`adacoord.losses`) and four constants, penalties are
``(l1, l2, positive)``: functions passed as arguments would never hit Numba's disk cache.
Scalars are float64 whatever the data: the row loops around them stay in the data's type.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import jit
from .losses import LOGISTIC, MARGIN


@jit
def _dprox_logistic(z, b, y, s):
    # With q = -b v = sigmoid(-r) the optimality condition is  r - sigmoid(-r)/s = c.
    # The left side is convex for r < 0 and concave for r > 0, so Newton kept on the root's
    # side of 0 is monotone after one step; a plain bracketed Newton can cycle.
    inv = 1.0 / s
    c = b * (z + y * inv)
    right = c + 0.5 * inv > 0.0
    r = b * z
    q = 0.0
    for _ in range(60):
        if right:
            r = max(r, 0.0)
            e = math.exp(-r)
            q = e / (1.0 + e)
        else:
            r = min(r, 0.0)
            q = 1.0 / (1.0 + math.exp(r))
        step = (r - q * inv - c) / (1.0 + q * (1.0 - q) * inv)
        r -= step
        if abs(step) <= 1e-15 * (1.0 + abs(r)):
            break
    q = 1.0 / (1.0 + math.exp(r)) if r < 700.0 else 0.0
    return -b * q


@jit
def _dprox_poisson(z, b, y, s):
    # With v + b = e^r the condition is  e^r + s r = c: convex and increasing in r, so Newton
    # from a point at or right of the root decreases to it.  Both starts are upper bounds.
    c = s * z + y + b
    if c >= 1.0:
        r = min(math.log(c), (c - 1.0) / s)
    else:
        r = min(c / s, (c - 1.0) / (1.0 + s))
    for _ in range(100):
        e = math.exp(r)
        step = (e + s * r - c) / (e + s)
        r -= step
        if abs(step) <= 1e-15 * (1.0 + abs(r)):
            break
    return math.exp(r) - b


@jit
def dprox(code, alpha, epsilon, lo, hi, z, b, y, s):
    """argmax_v  v z - phi*(v) - (v-y)^2/(2s)."""
    if code <= MARGIN:
        v = y + s * (z - b)
        if epsilon > 0.0:
            v = max(v - s * epsilon, 0.0) + min(v + s * epsilon, 0.0)
        v /= 1.0 + s * alpha
        if code == MARGIN and b < 0.0:
            return min(max(v, -hi), -lo)
        return min(max(v, lo), hi)
    if code == LOGISTIC:
        return _dprox_logistic(z, b, y, s)
    return _dprox_poisson(z, b, y, s)


@jit
def dprox_array(code, alpha, epsilon, lo, hi, z, b, y, s):
    """:func:`dprox` over arrays."""
    out = np.empty(z.shape[0])
    for i in range(z.shape[0]):
        out[i] = dprox(code, alpha, epsilon, lo, hi, z[i], b[i], y[i], s[i])
    return out


@jit
def shrink(v, low, high):
    """v less its projection on [low, high]: soft-thresholding at ``high`` if ``low = -high``.

    ``low = -inf`` keeps only the positive side.  Without a branch, and without a literal: one
    would turn float32 loops into float64 ones.
    """
    return v - min(max(v, low), high)


@jit
def dead_zone(threshold, positive):
    """The (low, high) of :func:`shrink` for a threshold."""
    return (-np.inf if positive else -threshold), threshold


@jit
def catch_up(x, u, k, powers, sums, q, tau, l1, positive):
    """``k`` proximal steps x <- q shrink(x - tau u) at constant ``u``, in O(1).

    ``powers[k] = q^k`` and ``sums[k] = tau (q + ... + q^k)``: while x keeps its sign the steps
    compose to ``powers[k] x - sums[k] (u + sign l1)``, which is monotone in k.  Tables, because
    ``pow`` in this place costs 2-4x (section 6.2 of SPDC solves for the crossing by logarithms);
    one rare branch in place of one for each case (10 -> 5 ns an entry).
    """
    sign = 1.0 if positive else math.copysign(1.0, -u if x == 0.0 else x)
    end = powers[k] * x - sums[k] * (u + sign * l1)
    stays = sign * end >= 0.0
    if not stays and sign * u > l1 and not positive:
        return _cross(x, u, k, powers, sums, q, tau, l1)
    return end if stays else 0.0  # x reaches 0, and |u| <= l1 keeps it there


@jit
def _cross(x, u, k, powers, sums, q, tau, l1):
    """:func:`catch_up` for an ``x`` that goes through 0 to the other side."""
    sign = math.copysign(1.0, x)
    drift = u + sign * l1
    low, high = 0, k  # the last step on this side of 0 is in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        if sign * (powers[middle] * x - sums[middle] * drift) > 0.0:
            low = middle
        else:
            high = middle
    x = powers[low] * x - sums[low] * drift
    x = q * shrink(x - tau * u, -tau * l1, tau * l1)  # the step that crosses
    left = k - low - 1
    return powers[left] * x - sums[left] * (u - sign * l1)
