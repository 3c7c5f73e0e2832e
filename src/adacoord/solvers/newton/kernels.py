"""The kernels of Newton's method: losses along rows and lines, and sparse Gram matrices."""

from __future__ import annotations

import numpy as np

from ...kernels.codes import GAMMA, LOGISTIC, MARGIN, POISSON, QUADRATIC, TWEEDIE
from ...kernels.jit import FAST, jit
from ...kernels.loss import conjugate, conjugate_quadratic, expand, expand_quadratic, others
from ...kernels.rows import row_add, row_dot
from ...kernels.vector_math import exp, log1p

# A loop with one loss in it is straight, and takes several rows at a time; with a code that is an
# argument it has calls of every loss in it (squared: 12 -> 3 ns per row).  Python chooses the loop,
# so that a fit compiles the one that it needs.


#: Losses of exp(z).
LINKS = POISSON, GAMMA, TWEEDIE


def _power(code, alpha):
    """Tweedie's power; None where one exponential will do, and so is all that is compiled."""
    return alpha if code == TWEEDIE else None


def expand_rows(code, alpha, epsilon, lo, hi, z, b, weight, y, p, bend):
    """y = phi'(z), p = weight y, bend = weight phi''(z); returns their sum, sum weight phi(z)."""
    arrays = z, b, weight, y, p, bend
    if code == LOGISTIC:
        return _expand_logistic(*arrays)
    if code in LINKS:
        return _expand_exponential(_power(code, alpha), code == GAMMA, *arrays)
    if code == QUADRATIC or code == MARGIN:
        return _expand_quadratic(code, alpha, epsilon, lo, hi, *arrays)
    return _expand(code, alpha, epsilon, lo, hi, *arrays)


def family(code):
    """(logistic, exponential, tweedie, quadratic): True for what the loss is, else None.

    Kernels are compiled for the types of their arguments, and None is a type: one that calls
    :func:`expand_family` has one loop in it, and a first fit compiles no other.
    """
    links = code in (POISSON, GAMMA), code == TWEEDIE
    kinds = code == LOGISTIC, *links, code in (QUADRATIC, MARGIN)
    return tuple(True if kind else None for kind in kinds)


@jit
def expand_family(
    logistic, exponential, tweedie, quadratic, code, alpha, epsilon, lo, hi,
    z, b, weight, y, p, bend,
):  # fmt: skip
    """:func:`expand_rows` inside other kernels, for a loss of that :func:`family`."""
    if logistic is not None:
        return _expand_logistic(z, b, weight, y, p, bend)
    if exponential is not None:
        return _expand_exponential(None, code == GAMMA, z, b, weight, y, p, bend)
    if tweedie is not None:
        return _expand_exponential(alpha, False, z, b, weight, y, p, bend)
    if quadratic is not None:
        return _expand_quadratic(code, alpha, epsilon, lo, hi, z, b, weight, y, p, bend)
    return _expand(code, alpha, epsilon, lo, hi, z, b, weight, y, p, bend)


@jit
def _weigh(weight, y, p):
    for i in range(np.uint64(y.shape[0])):
        p[i] = weight[i] * y[i] if weight[i] > 0.0 else 0.0  # 0 * inf is not 0


@jit
def _expand(code, alpha, epsilon, lo, hi, z, b, weight, y, p, bend):
    total = curvature = 0.0
    for i in range(np.uint64(z.shape[0])):
        value, y[i], second = expand(code, alpha, epsilon, lo, hi, z[i], b[i])
        bend[i] = _visible(weight[i] * second)
        total += weight[i] * value if weight[i] > 0.0 else 0.0
        curvature += bend[i]
    _weigh(weight, y, p)
    return total, curvature


@jit(fastmath=FAST)
def _expand_quadratic(code, alpha, epsilon, lo, hi, z, b, weight, y, p, bend):
    total = curvature = 0.0
    for i in range(np.uint64(z.shape[0])):
        value, y[i], second = expand_quadratic(code, alpha, epsilon, lo, hi, z[i], b[i])
        bend[i] = _visible(weight[i] * second)
        total += weight[i] * value
        curvature += bend[i]
    _weigh(weight, y, p)
    return total, curvature


@jit(fastmath=FAST)
def _expand_logistic(z, b, weight, y, p, bend):
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
    _weigh(weight, y, p)
    return total, curvature


@jit(inline=True)
def _exponential(power, gamma, z, b):
    """(phi, phi', phi'') of Poisson's loss, of gamma's, or of Tweedie's of a ``power``."""
    if power is not None:
        falling = b * exp((1.0 - power) * z) if b > 0.0 else 0.0  # 0 times inf is 0 here
        rising = exp((2.0 - power) * z)
        value = falling / (power - 1.0) + rising / (2.0 - power)
        return value, rising - falling, (power - 1.0) * falling + (2.0 - power) * rising
    e = exp(-z if gamma else z) * (b if gamma else 1.0)
    return e + (z if gamma else -b * z), (1.0 - e if gamma else e - b), e


@jit(fastmath=FAST)
def _expand_exponential(power, gamma, z, b, weight, y, p, bend):
    total = curvature = 0.0
    for i in range(np.uint64(z.shape[0])):
        value, y[i], second = _exponential(power, gamma, z[i], b[i])
        bend[i] = _visible(weight[i] * second)
        total += weight[i] * value if weight[i] > 0.0 else 0.0
        curvature += bend[i]
    _weigh(weight, y, p)
    return total, curvature


@jit(inline=True)
def _visible(curvature):
    """Nothing below 1e-100: products of such numbers are denormal, which costs BLAS 4x."""
    return curvature if curvature > 1e-100 else 0.0


@jit(fastmath=FAST)
def distance(a, b, times_a, times_b):
    """sum_i |times_a a_i - times_b b_i|."""
    total = 0.0
    for i in range(np.uint64(a.shape[0])):
        total += abs(times_a * a[i] - times_b * b[i])
    return total


#: Losses of which :func:`follow_rows` and :func:`follow_known` know the ends of the conjugates.
KNOWN = LOGISTIC, POISSON, GAMMA


def follow_rows(code, alpha, epsilon, lo, hi, z, dz, b, weight, y, bend, out, *domain):
    """out = y + phi''(z) dz within ``domain``: the slopes that the expansion at z has at z + dz.

    y and bend are those of :func:`expand_rows`; ``domain`` are the ends of that of the conjugates,
    which the loops of some losses do not read (:data:`KNOWN`).
    Returns the sums of weight phi(z + dz) and of weight (phi(z + dz) + phi*(out) - out (z + dz)),
    which is 0 where out = phi'(z + dz), with what the ends have cut off; and how much that is.
    """
    if code == LOGISTIC:
        return _follow_logistic(z, dz, b, weight, y, bend, out)
    if code in LINKS:
        power = _power(code, alpha)
        return _follow_exponential(power, code == GAMMA, z, dz, b, weight, y, bend, out, *domain)
    law = others(code), code, alpha, epsilon, lo, hi
    return _follow(*law, z, dz, b, weight, y, bend, *domain, out)


@jit(fastmath=FAST)
def follow_known(code, dz, b, weight, y, bend, there, bend_there, out):
    """:func:`follow_rows` without the sum, of the KNOWN losses, to leading order; y and bend at
    z + dz are ``there`` and ``bend_there``: no exponentials."""
    missed = cut = 0.0
    for i in range(np.uint64(dz.shape[0])):
        second = bend[i] / max(weight[i], 1e-300)
        free = y[i] + second * dz[i]
        low = -b[i] if code == POISSON else min(-b[i], 0.0) if code == LOGISTIC else -np.inf
        high = np.inf if code == POISSON else max(-b[i], 0.0) if code == LOGISTIC else 1.0
        slope = min(max(free, low), high)
        out[i] = slope
        beyond = abs(free - slope)
        away = weight[i] * (slope - there[i]) if weight[i] > 0.0 else 0.0
        cut += weight[i] * beyond
        missed += away * away / max(bend_there[i], 1e-100)  # none is visible below that
        missed += weight[i] * (beyond * beyond / max(second, 1e-300))
    return 0.5 * missed, cut


@jit
def _follow(other, code, alpha, epsilon, lo, hi, z, dz, b, weight, y, bend, low, high, out):
    total = missed = cut = 0.0
    for i in range(np.uint64(z.shape[0])):
        out[i] = y[i]
        if weight[i] > 0.0:
            second = bend[i] / weight[i]
            free = y[i] + second * dz[i]
            out[i] = min(max(free, low[i]), high[i])
            if out[i] != free:
                away = abs(free - out[i])
                cut += weight[i] * away
                missed += 0.5 * weight[i] * away * away / second
            there = z[i] + dz[i]
            if other is None:
                value = expand_quadratic(code, alpha, epsilon, lo, hi, there, b[i])[0]
                dual = conjugate_quadratic(code, alpha, epsilon, lo, hi, out[i], b[i])
            else:
                value = expand(code, alpha, epsilon, lo, hi, there, b[i])[0]
                dual = conjugate(code, alpha, epsilon, lo, hi, out[i], b[i])
            total += weight[i] * value
            missed += weight[i] * max(value + dual - out[i] * there, 0.0)
    return total, missed, cut


@jit(fastmath=FAST)
def _follow_logistic(z, dz, b, weight, y, bend, out):
    """To leading order: without the logarithms of the conjugate."""
    total = missed = cut = 0.0
    for i in range(np.uint64(z.shape[0])):
        m = b[i] * (z[i] + dz[i])
        e = exp(-abs(m))
        r = 1.0 / (1.0 + e)
        second = bend[i] / max(weight[i], 1e-300)
        free = -b[i] * (y[i] + second * dz[i])
        q = min(max(free, 0.0), 1.0)
        beyond = abs(free - q)
        cut += weight[i] * beyond
        out[i] = -b[i] * q
        away = q - (e if m > 0.0 else 1.0) * r
        missed += weight[i] * (away * away / max(e * r * r, 1e-300))
        missed += weight[i] * (beyond * beyond / max(second, 1e-300))
        total += weight[i] * (log1p(e) + (0.0 if m > 0.0 else -m))
    return total, 0.5 * missed, cut


@jit(fastmath=FAST)
def _follow_exponential(power, gamma, z, dz, b, weight, y, bend, out, low=None, high=None):
    """To leading order, too; phi'' = e is how far a slope is from its end."""
    total = missed = cut = 0.0
    # the squares of such means are numbers
    least, most = (-300.0 if gamma or power is not None else -np.inf), (np.inf if gamma else 300.0)
    for i in range(np.uint64(z.shape[0])):
        there = min(max(z[i] + dz[i], least), most)
        value, slope, e = _exponential(power, gamma, there, b[i])
        second = bend[i] / max(weight[i], 1e-300)
        free = y[i] + second * dz[i]
        if power is None:
            out[i] = min(free, 1.0) if gamma else max(free, -b[i])
        else:
            out[i] = min(max(free, low[i]), high[i])
        beyond = abs(free - out[i])
        cut += weight[i] * beyond
        away = out[i] - slope
        if weight[i] > 0.0:
            missed += weight[i] * (away * away / max(e, 1e-300))
            missed += weight[i] * (beyond * beyond / max(second, 1e-300))
            total += weight[i] * value
    return total, 0.5 * missed, cut


def along_line(code, alpha, epsilon, lo, hi, t, z, dz, b, weight):
    """sum weight phi(z + t dz), its slope and its curvature in t."""
    if code == LOGISTIC:
        return _along_logistic(z, dz, b, weight, t)
    if code in LINKS:
        return _along_exponential(_power(code, alpha), code == GAMMA, z, dz, b, weight, t)
    if code == QUADRATIC or code == MARGIN:
        return along_quadratic(code, alpha, epsilon, lo, hi, t, z, dz, b, weight)
    return _along(code, alpha, epsilon, lo, hi, t, z, dz, b, weight)


@jit(fastmath=FAST)
def along_quadratic(code, alpha, epsilon, lo, hi, t, z, dz, b, weight):
    """Several rows at a time (514 of them: 3.4 -> .6 us)."""
    total = slope = bend = 0.0
    for i in range(np.uint64(z.shape[0])):
        point = z[i] + t * dz[i]
        value, first, second = expand_quadratic(code, alpha, epsilon, lo, hi, point, b[i])
        total += weight[i] * value
        slope += weight[i] * first * dz[i]
        bend += weight[i] * second * dz[i] * dz[i]
    return total, slope, bend


@jit
def _along(code, alpha, epsilon, lo, hi, t, z, dz, b, weight):
    total = slope = bend = 0.0
    for i in range(np.uint64(z.shape[0])):
        if weight[i] > 0.0:
            point = z[i] + t * dz[i]
            value, first, second = expand(code, alpha, epsilon, lo, hi, point, b[i])
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
def _along_exponential(power, gamma, z, dz, b, weight, t):
    total = slope = bend = 0.0
    for i in range(np.uint64(z.shape[0])):
        if weight[i] > 0.0:
            value, first, second = _exponential(power, gamma, z[i] + t * dz[i], b[i])
            total += weight[i] * value
            slope += weight[i] * first * dz[i]
            bend += weight[i] * second * dz[i] * dz[i]
    return total, slope, bend


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


@jit(fastmath=FAST)
def less_pairs(v, hv, bends, first, last, q, shares):
    """q -= (v.q/bend) Hv for the pairs first..last of a ring, from the last one on."""
    for back in range(last - first):
        pair = last - 1 - back
        k = pair % bends.shape[0]
        dot = 0.0
        for j in range(q.shape[0]):
            dot += v[k, j] * q[j]
        share = dot / bends[k]
        for j in range(q.shape[0]):
            q[j] -= share * hv[k, j]
        shares[pair - first] = share


@jit(fastmath=FAST)
def plus_pairs(v, hv, bends, first, last, q, shares):
    """q += (share - Hv.q/bend) v, from the first one on."""
    for pair in range(first, last):
        k = pair % bends.shape[0]
        dot = 0.0
        for j in range(q.shape[0]):
            dot += hv[k, j] * q[j]
        share = shares[pair - first] - dot / bends[k]
        for j in range(q.shape[0]):
            q[j] += share * v[k, j]
