r"""The scalar kernels every solver inlines: the dual prox of a loss, the prox of a penalty.

Losses are integer codes (:mod:`adacoord.problem.losses`) and four constants, penalties are
``(l1, l2, positive)``: functions passed as arguments would never hit Numba's disk cache.
Scalars are float64 whatever the data: the row loops around them stay in the data's type.
"""

from __future__ import annotations

import math

import numpy as np

from .codes import LOGISTIC, MARGIN
from .jit import jit


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
def prox(v, step, l1, l2, positive):
    """argmin_x g(x) + (x - v)^2/(2 step) for one coordinate, of ``Penalty.arguments``."""
    low, high = dead_zone(step * l1, positive)
    return shrink(v, low, high) / (1.0 + step * l2)


@jit
def wind(clock, missed, tau, theta, lam, ahead):
    """Fill the tables of :func:`glide` for steps of sizes ``tau``; returns how many fit.

    ``clock[t]`` is (decay, tau, q, ahead): decay the product of q = 1/(1 + lambda tau) over the
    steps before t, tau and q those of step t, ahead the theta of the step before it (``ahead``
    for t = 0).  ``missed[t]`` is (1/decay, sum of tau/decay over the steps before t).  The tables
    end where the decay would leave the range of numbers.
    """
    clock[0, 0], clock[0, 3] = 1.0, ahead
    missed[0, 0], missed[0, 1] = 1.0, 0.0
    for t in range(tau.shape[0]):
        q = 1.0 / (1.0 + lam * tau[t])
        clock[t, 1], clock[t, 2] = tau[t], q
        clock[t + 1, 0], clock[t + 1, 3] = q * clock[t, 0], theta[t]
        missed[t + 1, 0] = missed[t, 0] / q
        missed[t + 1, 1] = missed[t, 1] + tau[t] * missed[t, 0]
        if clock[t + 1, 0] < 1e-100:
            return t + 1
    return tau.shape[0]


@jit
def glide(x, u, growth, then, decay, now, l1, positive):
    """Missed steps x <- q shrink(x - tau u) at constant u while x keeps its sign, in O(1).

    They compose to ``decay (growth x - (now - then)(u + sign l1))``, with ``growth, then =
    missed[since]``, ``now = missed[until, 1]`` and ``decay = clock[until, 0]``: monotone in time.
    Returns x and whether it went through 0 instead, which takes :func:`cross`.  Tables, because
    ``pow`` in this place costs 2-4x (section 6.2 of SPDC solves for the crossing by logarithms);
    by time, because tau may change from step to step; scalars, because array arguments cost
    half as much again for the whole pass; one rare branch in place of one for each case (10 -> 5
    ns an entry).
    """
    sign = 1.0 if positive else math.copysign(1.0, -u if x == 0.0 else x)
    end = decay * (growth * x - (now - then) * (u + sign * l1))
    stays = sign * end >= 0.0
    # otherwise x reaches 0, and |u| <= l1 keeps it there
    return (end if stays else 0.0), (not stays and sign * u > l1 and not positive)


@jit
def catch_up(x, u, since, until, clock, missed, l1, positive):
    """The steps from ``since`` to ``until``, whatever x does."""
    growth, then = missed[since, 0], missed[since, 1]
    end, crosses = glide(x, u, growth, then, clock[until, 0], missed[until, 1], l1, positive)
    return cross(x, u, since, until, clock, missed, l1) if crosses else end


@jit
def cross(x, u, since, until, clock, missed, l1):
    """:func:`glide` for an ``x`` that goes through 0 to the other side."""
    sign = math.copysign(1.0, x)
    drift = u + sign * l1
    # the last step on this side of 0 is in [low, high)
    low, high = np.int64(since), np.int64(until)
    while high - low > 1:
        middle = (low + high) // 2
        if sign * (missed[since, 0] * x - (missed[middle, 1] - missed[since, 1]) * drift) > 0.0:
            low = middle
        else:
            high = middle
    x = clock[low, 0] * (missed[since, 0] * x - (missed[low, 1] - missed[since, 1]) * drift)
    tau, q = clock[low, 1], clock[low, 2]
    x = q * shrink(x - tau * u, -tau * l1, tau * l1)  # the step that crosses
    pull = (missed[until, 1] - missed[low + 1, 1]) * (u - sign * l1)
    return clock[until, 0] * (missed[low + 1, 0] * x - pull)
