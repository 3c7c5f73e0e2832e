r"""The table of losses: what compiled code may ask of a loss, for every loss of one number per row.

======================  ==========================================================
:func:`expand`          (phi(z), phi'(z), phi''(z))
:func:`value`           phi(z)
:func:`slope`           phi'(z)
:func:`curvature`       phi''(z), from the slope v there
:func:`conjugate`       phi*(v)
:func:`dual_prox`       argmax_v  v z - phi*(v) - (v-y)^2/(2s)
:func:`dual_prox_slope` the derivative of the dual prox in z, from the v that it gave
======================  ==========================================================

A loss is an integer code (:mod:`.codes`) and four constants, ``code, alpha, epsilon, lo, hi``,
the first arguments of each function: functions passed as arguments would never hit Numba's disk
cache.  The formulas are those of :mod:`adacoord.problem.losses`, which share no code with these:
the solvers' kernels are judged by them.  Scalars are float64 whatever the data are.

A code without a row here gives NaN everywhere, which no certificate takes for a solution.
"""

from __future__ import annotations

import math

import numpy as np

from .codes import GAMMA, LOG_COSH, LOGISTIC, MARGIN, POISSON, QUADRATIC, TWEEDIE
from .jit import jit

#: The step after which :func:`_dual_prox_logistic` is done: its cube is below 1e-16.
ENOUGH = 2.0**-18

#: In the place of an alpha of 0, so that z = b divides by something: the least positive number.
LEAST = 5e-324


def others(code):
    """None if the loss is of the quadratic family, and a kernel need not be compiled with others.

    For the ``is None`` of kernels, which is decided when they are compiled.
    """
    return None if code == QUADRATIC or code == MARGIN else True


@jit(inline=True)
def expand(code, alpha, epsilon, lo, hi, z, b):
    """(phi(z), phi'(z), phi''(z)).

    At a kink of phi' its slope on one side; at a kink of phi a subgradient, and inf or 0.
    """
    if code == QUADRATIC or code == MARGIN:
        return expand_quadratic(code, alpha, epsilon, lo, hi, z, b)
    if code == LOGISTIC:
        m = b * z
        e = math.exp(-abs(m))
        q = (e if m > 0.0 else 1.0) / (1.0 + e)  # 1/(1 + exp(m)), without an overflow
        return math.log1p(e) + max(-m, 0.0), -b * q, e / ((1.0 + e) * (1.0 + e))
    if code == POISSON:
        e = math.exp(z)
        return e - b * z, e - b, e
    if code == GAMMA:
        e = b * math.exp(-z)
        return z + e, 1.0 - e, e
    if code == TWEEDIE:
        return _expand_tweedie(alpha, z, b)
    if code == LOG_COSH:
        r = z - b
        v = math.tanh(r)
        return _log_cosh(abs(r)), v, (1.0 - v) * (1.0 + v)
    return np.nan, np.nan, np.nan


@jit(inline=True)
def expand_quadratic(code, alpha, epsilon, lo, hi, z, b):
    """:func:`expand` where the code is QUADRATIC or MARGIN: no other loss is compiled with it."""
    lo, hi = _interval(code, lo, hi, b)
    r = z - b
    free = (max(r - epsilon, 0.0) + min(r + epsilon, 0.0)) / max(alpha, LEAST)
    v = min(max(free, lo), hi)
    curved = lo < free < hi and (epsilon == 0.0 or free != 0.0)
    value = v * r - epsilon * abs(v) - 0.5 * alpha * v * v
    return value, v, (1.0 / alpha if curved else 0.0)


@jit(inline=True)
def value(code, alpha, epsilon, lo, hi, z, b):
    """phi(z)."""
    return expand(code, alpha, epsilon, lo, hi, z, b)[0]


@jit(inline=True)
def slope(code, alpha, epsilon, lo, hi, z, b):
    """phi'(z), or an element of the subdifferential: :func:`expand` less its logarithms."""
    if code == QUADRATIC or code == MARGIN:
        v = z - b
        if epsilon > 0.0:
            v = max(v - epsilon, 0.0) + min(v + epsilon, 0.0)
        first, last = _interval(code, lo, hi, b)
        return min(max(v / max(alpha, LEAST), first), last)
    if code == LOGISTIC:
        m = b * z
        e = math.exp(-abs(m))
        return -b * (e if m > 0.0 else 1.0) / (1.0 + e)
    if code == POISSON:
        return math.exp(z) - b
    if code == GAMMA:
        return 1.0 - b * math.exp(-z)
    if code == TWEEDIE:
        return _expand_tweedie(alpha, z, b)[1]
    if code == LOG_COSH:
        return math.tanh(z - b)
    return np.nan


@jit(inline=True)
def curvature(code, alpha, epsilon, lo, hi, v, b):
    """phi''(z) from the slope ``v`` there, which is 1/phi*''(v).

    At a kink of phi' one of its two slopes; at a kink of phi (alpha = 0, v inside) infinite.  A
    curvature far below 1e-16 of its largest value is not told from 0.
    """
    if code == QUADRATIC or code == MARGIN:
        first, last = _interval(code, lo, hi, b)
        return 1.0 / alpha if first < v < last and (epsilon == 0.0 or v != 0.0) else 0.0
    if code == LOGISTIC:
        return abs(v) * (1.0 - abs(v))
    if code == POISSON:
        return v + b
    if code == GAMMA:
        return 1.0 - v
    if code == TWEEDIE:
        return _invert_tweedie(alpha, v, b)[1]
    if code == LOG_COSH:
        return (1.0 - v) * (1.0 + v)
    return np.nan


@jit
def conjugate(code, alpha, epsilon, lo, hi, v, b):
    """phi*(v), ``inf`` outside its domain."""
    if code == QUADRATIC or code == MARGIN:
        return conjugate_quadratic(code, alpha, epsilon, lo, hi, v, b)
    if code == LOGISTIC:
        q = -b * v
        return _xlogx(q) + _xlog1py(1.0 - q, -q) if 0.0 <= q <= 1.0 else np.inf
    if code == POISSON:
        m = v + b
        return _xlogx(m) - m if m >= 0.0 else np.inf
    if code == GAMMA:
        m = 1.0 - v
        return _xlogx(m) - m * (1.0 + math.log(b)) if m >= 0.0 else np.inf
    if code == TWEEDIE:
        return _conjugate_tweedie(alpha, v, b)
    if code == LOG_COSH:
        return b * v + _log_cosh_conjugate(abs(v)) if abs(v) <= 1.0 else np.inf
    return np.nan


@jit(inline=True)
def conjugate_quadratic(code, alpha, epsilon, lo, hi, v, b):
    """:func:`conjugate` where the code is QUADRATIC or MARGIN."""
    first, last = _interval(code, lo, hi, b)
    return b * v + epsilon * abs(v) + 0.5 * alpha * v * v if first <= v <= last else np.inf


@jit(inline=True)
def dual_prox(code, alpha, epsilon, lo, hi, z, b, y, s):
    """argmax_v  v z - phi*(v) - (v-y)^2/(2s)."""
    if code == QUADRATIC or code == MARGIN:
        v = y + s * (z - b)
        if epsilon > 0.0:
            v = max(v - s * epsilon, 0.0) + min(v + s * epsilon, 0.0)
        v /= 1.0 + s * alpha
        if code == MARGIN and b < 0.0:
            return min(max(v, -hi), -lo)
        return min(max(v, lo), hi)
    return _dual_prox_by_newton(code, alpha, z, b, y, s)


@jit
def _dual_prox_by_newton(code, alpha, z, b, y, s):
    """The other losses: apart, so that the family above is small enough to be inlined."""
    if code == LOGISTIC:
        return _dual_prox_logistic(z, b, y, s)
    if code == POISSON:
        return _dual_prox_poisson(z, b, y, s)
    if code == GAMMA:  # Poisson's of the count 1 at log b - z
        return -_dual_prox_poisson(math.log(b) - z, 1.0, -y, s)
    if code == TWEEDIE:
        return _dual_prox_tweedie(alpha, z, b, y, s)
    if code == LOG_COSH:
        return _dual_prox_log_cosh(z, b, y, s)
    return np.nan


@jit(inline=True)
def dual_prox_slope(code, alpha, epsilon, lo, hi, v, b, s):
    """dv/dz of v = :func:`dual_prox` (z): its reciprocal is 1/s + phi*''(v)."""
    return s / (1.0 + s / curvature(code, alpha, epsilon, lo, hi, v, b))


@jit
def dual_prox_array(code, alpha, epsilon, lo, hi, z, b, y, s):
    """:func:`dual_prox` over arrays."""
    out = np.empty(z.shape[0])
    for i in range(z.shape[0]):
        out[i] = dual_prox(code, alpha, epsilon, lo, hi, z[i], b[i], y[i], s[i])
    return out


@jit(inline=True)
def _interval(code, lo, hi, b):
    """The domain of phi* in the quadratic family: mirrored where b is the label -1."""
    if code == MARGIN and b < 0.0:
        return -hi, -lo
    return lo, hi


@jit
def _xlogx(x):
    """x log x, and 0 for x = 0."""
    return x * math.log(x) if x != 0.0 else 0.0


@jit
def _xlog1py(x, y):
    """x log(1 + y), and 0 for x = 0."""
    return x * math.log1p(y) if x != 0.0 else 0.0


@jit
def _log_cosh(r):
    """log cosh(r) for r >= 0, without an overflow and with all digits of a small one."""
    if r < 1.0:
        h = math.sinh(0.5 * r)
        return math.log1p(2.0 * h * h)
    return r + math.log1p(0.5 * math.expm1(-2.0 * r))


@jit
def _log_cosh_conjugate(v):
    """((1+v) log(1+v) + (1-v) log(1-v))/2 for 0 <= v <= 1, with all digits of a small one."""
    if v < 0.5:
        return v * math.atanh(v) + 0.5 * math.log1p(-v * v)
    return 0.5 * (_xlog1py(1.0 + v, v) + _xlog1py(1.0 - v, -v))


@jit
def _dual_prox_logistic(z, b, y, s):
    # With q = -b v = sigmoid(-r) the optimality condition is  r - sigmoid(-r)/s = c.
    # The left side is convex for r < 0 and concave for r > 0, so Newton kept on the root's
    # side of 0 is monotone after one step; a plain bracketed Newton can cycle.
    # No derivative is larger than the first, so that a step of ENOUGH, taken to second order,
    # leaves its cube, less than rounding; q there needs no exponential of its own (rows of a
    # ninth pass, s = 1: 70 -> 45 ns).
    inv = 1.0 / s
    c = b * (z + y * inv)
    right = c + 0.5 * inv > 0.0
    r = b * z
    q = 0.0
    for _ in range(60):
        r = max(r, 0.0) if right else min(r, 0.0)
        e = math.exp(-abs(r))
        whole = 1.0 + e
        part = 1.0 / whole
        q = (e if right else 1.0) * part
        least = whole * whole / (whole * whole + e * inv)  # 1 over the slope of the left side
        step = (r - q * inv - c) * least
        if abs(step) <= ENOUGH + 1e-15 * abs(r):
            bend = e * part * part
            turn = 0.5 * bend * (1.0 - 2.0 * q)
            step -= turn * inv * least * step * step
            q += step * (bend + turn * step)
            break
        r -= step
    return -b * q


@jit
def _dual_prox_poisson(z, b, y, s):
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


# ---- Tweedie's: with z = log b + t and in units of b^(2-p), phi' is exp((2-p)t) - exp((1-p)t) ----


@jit
def _expand_tweedie(p, z, b):
    """(phi, phi', phi''); 0 times an infinite exponential is 0."""
    falling = b * math.exp((1.0 - p) * z) if b > 0.0 else 0.0
    rising = math.exp((2.0 - p) * z)
    value = falling / (p - 1.0) + rising / (2.0 - p)
    return value, rising - falling, (p - 1.0) * falling + (2.0 - p) * rising


@jit
def _invert_tweedie(p, v, b):
    """(z, phi''(z)) where phi'(z) = v."""
    if b == 0.0:
        return (math.log(v) / (2.0 - p) if v > 0.0 else -np.inf), (2.0 - p) * v
    log_b = math.log(b)
    unit = math.exp((2.0 - p) * log_b)
    q = v / unit
    t = _tweedie_root(2.0 - p, p - 1.0, q) if q >= 0.0 else -_tweedie_root(p - 1.0, 2.0 - p, -q)
    second = (p - 1.0) * math.exp((1.0 - p) * t) + (2.0 - p) * math.exp((2.0 - p) * t)
    return log_b + t, unit * second


@jit
def _tweedie_root(k, m, q):
    # The t >= 0 with  k t = log(q + exp(-m t)), k + m = 1, q >= 0: the difference of the two is
    # concave and increasing, so that steps from the left of the root increase to it.
    t = math.log1p(q) / (k + m / (1.0 + q))
    if q > 1.0:
        t = max(t, math.log(q) / k)
    for _ in range(100):
        e = math.exp(-m * t)
        # for small q the same with all its digits
        away = k * t - math.log(q + e) if q > 1.0 else t - math.log1p(q / e)
        step = away / (k + m * e / (q + e))
        t -= step
        if abs(step) <= 1e-15 * t:
            break
    return t


@jit
def _conjugate_tweedie(p, v, b):
    if b == 0.0:
        return (_xlogx(v) - v) / (2.0 - p) if v >= 0.0 else np.inf
    z = _invert_tweedie(p, v, b)[0]
    return v * z - _expand_tweedie(p, z, b)[0]


@jit
def _dual_prox_tweedie(p, z, b, y, s):
    # With v = phi'(r) the condition is  s r + phi'(r) = s z + y.  For b = 0 it is Poisson's, of
    # (2-p) r.  Otherwise, in the units above,  S t + exp(kt) - exp(-mt) = C,  k = 2-p, m = p-1:
    # concave up to t0 = 2 log(m/k), convex from there on.  Let the root be on the convex side, by
    # exchanging t for -t and k for m if need be; Newton from the right of it decreases to it.
    # Both starts are upper bounds: a step from t0, and  exp(kt) <= C - S t0 + exp(-m t0).
    k, m = 2.0 - p, p - 1.0
    if b == 0.0:
        return _dual_prox_poisson(0.0, 0.0, s * z + y, s / k)
    log_b = math.log(b)
    unit = math.exp(k * log_b)
    S, sign = s / unit, 1.0
    C = S * (z - log_b) + y / unit
    t0 = 2.0 * math.log(m / k)
    if S * t0 + math.exp(k * t0) - math.exp(-m * t0) > C:
        k, m, C, t0, sign = m, k, -C, -t0, -1.0
    rising, falling = math.exp(k * t0), math.exp(-m * t0)
    t = t0 - (S * t0 + rising - falling - C) / (S + k * rising + m * falling)
    most = C - S * t0 + falling
    if most > 0.0:
        t = min(t, math.log(most) / k)
    for _ in range(100):
        rising, falling = math.exp(k * t), math.exp(-m * t)
        step = (S * t + _tweedie_slope(t, rising, falling) - C) / (S + k * rising + m * falling)
        t -= step
        if abs(step) <= 1e-15 * (1.0 + abs(t)):
            break
    rising, falling = math.exp(k * t), math.exp(-m * t)
    if k * rising + m * falling > S:  # where t is known better than v
        return y + s * (z - log_b - sign * t)
    return sign * unit * _tweedie_slope(t, rising, falling)


@jit
def _tweedie_slope(t, rising, falling):
    """exp(kt) - exp(-mt), with all its digits for a small t."""
    return falling * math.expm1(t) if abs(t) < 1.0 else rising - falling


@jit
def _dual_prox_log_cosh(z, b, y, s):
    # With v = tanh(r) the condition is  r + tanh(r)/s = z - b + y/s.  Both sides are odd: let the
    # root be positive, where the left one is concave and increasing.  There a Newton step ends at
    # or left of the root, wherever it starts, and the next ones increase to it.  Two points left of
    # it keep the first step from falling far short: tanh(r) is at most r, and at most 1.
    # For a root above 1/2 both sides are less 1/s, so that a y at the end of its domain costs no
    # digits: p = 1 - tanh(r).  Far out a step is about 1/2; tanh(20) is 1.
    inv = 1.0 / s
    r = z - b
    c = r + y * inv
    sign = math.copysign(1.0, c)
    r *= sign
    c *= sign
    far = c > 0.5 + 0.46 * inv  # about the left side at 1/2
    least = c / (1.0 + inv)
    if far:
        c = r + (sign * y - 1.0) * inv
        least = max(least, c)
    for _ in range(60):
        r = max(r, least)
        if far:
            e = math.exp(-2.0 * r)
            p = 2.0 * e / (1.0 + e)
            step = (r - p * inv - c) / (1.0 + p * (2.0 - p) * inv)
        else:
            t = math.tanh(r)
            step = (r + t * inv - c) / (1.0 + (1.0 - t) * (1.0 + t) * inv)
        r -= step
        if abs(step) <= 1e-15 * (1.0 + r) or r > 20.0:
            break
    return sign * math.tanh(r)
