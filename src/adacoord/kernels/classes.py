r"""The block kernels: what :mod:`.loss` and :mod:`.rows` are to losses whose prediction is a
vector of K numbers.

A primal point is then a matrix X of shape (d, K), held by rows, so that an entry a_ij meets K
neighbours in memory; a dual point is a row y_i of K numbers.  None of these functions allocates.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import FAST, jit


@jit
def omega(x, w):
    """The root of w + log w = x (Wright's omega, Lambert's W(e^x)), to rounding; ``w``: a guess.

    Fourth-order steps of Fritsch, Shafer and Crowley: one from a good guess, two from the
    starts of Lawrence, Corless and Jeffrey (Algorithm 917), which replace a bad one.
    """
    r = x - w - math.log(w) if w > 0.0 else np.inf
    if not abs(r) < 0.5:
        if x < -2.0:
            w = math.exp(x)
            if x < -37.0:  # w (1 - w) is w
                return w
            w *= 1.0 - w * (1.0 - 1.5 * w)
        elif x < 4.0:
            t = x - 1.0
            w = 1.0 + t * (0.5 + t * (0.0625 + t * (-1.0 / 192.0 + t * (-1.0 / 3072.0))))
        else:
            log = math.log(x)
            w = x - log + log / x
        r = x - w - math.log(w)
    for _ in range(6):
        a = w + 1.0
        c = 2.0 * a * (a + r * (2.0 / 3.0))
        e = r / a * (c - r) / (c - 2.0 * r)
        w *= 1.0 + e
        if abs(e) < 1e-4:
            break
        r = x - w - math.log(w)
    return w


@jit
def dual_prox_multinomial(z, b, y, s, out):
    r"""out = argmax_v  v.z - phi*(v) - \|v-y\|^2/(2s) for the multinomial loss; b is the class.

    With p = v + e_b and q = y + e_b the conditions are  log p_k + p_k/s = z_k + q_k/s - nu  and
    sum p = 1.  Given nu they are K scalar ones, p_k = s omega(z_k + q_k/s - nu - log s), and
    their sum is convex and decreasing in nu: Halley's step (exact for s = inf but for the third
    order, for s = 0 too) inside a bracket.  A Newton step on the K-vector needs fewer logarithms
    where it works, but can leave the simplex when s is large and y at its boundary.
    """
    n_classes = z.shape[0]
    inv, log_s = 1.0 / s, math.log(s)
    # The largest p_k is at least 1/K and at most 1.  Start: the conditions made linear at p = q.
    best = -np.inf
    top_z = top_q = total = slope = height = 0.0
    for k in range(n_classes):
        q = y[k] + 1.0 if k == b else y[k]
        out[k] = q
        if z[k] + q * inv > best:
            best, top_z, top_q = z[k] + q * inv, z[k], q
        if q > 0.0:
            d = q / (1.0 + q * inv)
            total += q
            slope += d
            height += d * (z[k] - math.log(q))
    low = top_z + (top_q - 1.0) * inv
    high = top_z + (top_q - 1.0 / n_classes) * inv + math.log(n_classes)
    nu = (total - 1.0 + height) / slope if slope > 0.0 else low
    if not low <= nu <= high:
        nu = low
    step = 0.0
    for iteration in range(200):
        total = slope = bend = 0.0
        for k in range(n_classes):
            q = y[k] + 1.0 if k == b else y[k]
            w = omega((z[k] - nu) + q * inv - log_s, out[k] * inv)
            p, a = s * w, 1.0 / (1.0 + w)
            out[k] = p
            total += p
            slope += p * a
            bend += p * a * a * a
        f = total - 1.0
        step = f / slope
        if abs(step) <= 1e-7:  # what is left is corrected below, to second order
            break
        if abs(f) <= 1e-15:  # s is so small that nu cannot be told better
            step = 0.0
            break
        if f > 0.0:
            low = nu
        else:
            high = nu
        if f * bend < slope * slope:
            step /= 1.0 - 0.5 * f * bend / (slope * slope)
        new = nu + step
        if not low < new < high or iteration % 10 == 9:
            new = 0.5 * (low + high)
            if new == low or new == high:
                step = 0.0
                break
        nu = new
    rest = 0.0
    for k in range(n_classes):
        out[k] -= step * out[k] / (1.0 + out[k] * inv)
        if k != b:
            rest += out[k]
    out[b] = max(-rest, -1.0)  # p_b - 1, without its rounding


@jit
def dual_prox_blocks(z, b, y, s, out):
    """:func:`dual_prox_multinomial` over rows."""
    for i in range(z.shape[0]):
        dual_prox_multinomial(z[i], b[i], y[i], s[i], out[i])


@jit(fastmath=FAST)
def block_dot(indices, data, start, stop, X, out):
    """out = a_i X, in the type of ``out``."""
    width, real = np.uint64(out.shape[0]), out.dtype.type
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for k in range(width):
        out[k] = real(0)
    e = start
    while e + four <= stop:  # four entries at a time: 1.8 -> 0.8 us for 150 entries, K = 6
        a, b, c, d = real(data[e]), real(data[e + one]), real(data[e + two]), real(data[e + three])
        if indices is None:
            h = e - start
            g, j, f = h + one, h + two, h + three
        else:
            h, g = np.uint64(indices[e]), np.uint64(indices[e + one])
            j, f = np.uint64(indices[e + two]), np.uint64(indices[e + three])
        for k in range(width):
            out[k] += (a * X[h, k] + b * X[g, k]) + (c * X[j, k] + d * X[f, k])
        e += four
    while e < stop:
        a = real(data[e])
        h = e - start if indices is None else np.uint64(indices[e])
        for k in range(width):
            out[k] += a * X[h, k]
        e += one


@jit(fastmath=FAST)
def block_add(indices, data, start, stop, v, X):
    """X += a_i' v: row j gains a_ij v."""
    width = np.uint64(v.shape[0])
    for e in range(start, stop):
        value = X.dtype.type(data[e])
        j = e - start if indices is None else np.uint64(indices[e])
        for k in range(width):
            X[j, k] += value * v[k]


@jit
def matmat(indptr, indices, data, X, out):
    """out = A X."""
    for i in range(np.uint64(out.shape[0])):
        block_dot(indices, data, indptr[i], indptr[i + np.uint64(1)], X, out[i])


@jit
def rmatmat(indptr, indices, data, V, block, part, out):
    """out += A' V, by blocks of rows whose sums are made in ``part``, which holds zeros."""
    n, first = V.shape[0], 0
    while first < n:
        last = min(first + block, n)
        for i in range(np.uint64(first), np.uint64(last)):
            block_add(indices, data, indptr[i], indptr[i + np.uint64(1)], V[i], part)
        for j in range(np.uint64(out.shape[0])):
            for k in range(np.uint64(out.shape[1])):
                out[j, k] += part[j, k]
                part[j, k] = 0.0
        first = last


@jit(fastmath=FAST)
def stationary(rates, out):
    """The stationary distribution, up to a factor, of the Markov chain with these rates.

    Elimination without subtractions (Grassmann, Taksar and Heyman 1985): every probability to its
    own last digits, whatever the scales of the rates, which are overwritten.  The diagonal is not
    looked at; states that never leave have to come first.
    """
    for k in range(rates.shape[0] - 1, 0, -1):
        total = 0.0
        for j in range(k):
            total += rates[k, j]
        for i in range(k):
            share = rates[i, k] / total if total > 0.0 else 0.0
            rates[i, k] = share
            if share > 0.0:
                for j in range(k):
                    rates[i, j] += share * rates[k, j]
    out[0] = 1.0
    for k in range(1, rates.shape[0]):
        total = 0.0
        for i in range(k):
            total += out[i] * rates[i, k]
        out[k] = total


# What the certificate asks of dual points and losses of several classes, row by row and without
# temporaries.  NaN stays NaN everywhere.


@jit
def simplex_rows(y, b, out):
    """out = y brought into the domain: negative p_k to 0, rows made to sum to 1; y may be out.

    The class b takes what the others leave; where they sum to more than 1 they are scaled.  y_b is
    minus their sum: no digits are lost where p_b is near 1.
    """
    width = np.uint64(y.shape[1])
    for i in range(np.uint64(y.shape[0])):
        own, rest = np.uint64(b[i]), 0.0
        for k in range(width):
            p = 0.0 if y[i, k] < 0.0 else (1.0 if y[i, k] > 1.0 else y[i, k])
            out[i, k] = p
        out[i, own] = 0.0
        for k in range(width):
            rest += out[i, k]
        if not rest <= 1.0:
            again = 0.0
            for k in range(width):
                out[i, k] /= rest
                again += out[i, k]
            rest = again
        out[i, own] = -1.0 if rest > 1.0 else -rest


@jit
def scale_flow(given, b, weight, scale, flow):
    """given_ik *= scale_k, k != b, and given_ib = 0; flow_jk = sum of w_i given_ik, b_i = j."""
    width = np.uint64(given.shape[1])
    flow[:] = 0.0
    for i in range(np.uint64(given.shape[0])):
        own, w = np.uint64(b[i]), weight[i]
        given[i, own] = 0.0
        for k in range(width):
            given[i, k] *= scale[k]
        for k in range(width):
            flow[own, k] += w * given[i, k]


@jit
def add_flow(given, b, weight, share, to, flow):
    """given_ik += share_b to_k, k != b; the flow then, and the largest sum of a row returned."""
    width, largest = np.uint64(given.shape[1]), 0.0
    flow[:] = 0.0
    for i in range(np.uint64(given.shape[0])):
        own, w, part = np.uint64(b[i]), weight[i], share[b[i]]
        for k in range(width):
            given[i, k] += part * to[k]
        given[i, own] = 0.0
        total = 0.0
        for k in range(width):
            flow[own, k] += w * given[i, k]
            total += given[i, k]
        largest = total if not total <= largest else largest
    return largest


@jit
def less_own(z, b, own):
    """z = z less its largest for each row, and that less z_b in own; -inf in place of the 0."""
    width = np.uint64(z.shape[1])
    for i in range(np.uint64(z.shape[0])):
        base, top = z[i, np.uint64(b[i])], np.uint64(0)
        for k in range(width):
            z[i, k] -= base
            top = k if z[i, k] > z[i, top] else top
        largest = z[i, top]
        for k in range(width):
            z[i, k] -= largest
        z[i, top] = -np.inf  # log1p keeps the digits of a small loss
        own[i] = largest


@jit(fastmath=FAST)
def row_sums(e, out):
    """The sums of the rows."""
    width = np.uint64(e.shape[1])
    for i in range(np.uint64(e.shape[0])):
        total = 0.0
        for k in range(width):
            total += e[i, k]
        out[i] = total


@jit(fastmath=FAST)
def row_products(a, b, out):
    """out_i = a_i.b_i; of few numbers a row (4,275 x 3: 18 us by NumPy, 4 so)."""
    for i in range(np.uint64(a.shape[0])):
        total = 0.0
        for k in range(np.uint64(a.shape[1])):
            total += a[i, k] * b[i, k]
        out[i] = total


@jit(fastmath=FAST)
def centre_rows(y, weight, mass, mean):
    """mean = sum_i weight_i y_i / mass (without weights that of ones), which y_i then lose.

    (4,275 x 3: 28 us by NumPy, 9 so.)
    """
    n, K = np.uint64(y.shape[0]), np.uint64(y.shape[1])
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    whole = n - n % np.uint64(4)
    mean[:] = 0.0
    for i in range(np.uint64(0), whole, np.uint64(4)):  # four rows at a time
        for k in range(K):
            if weight is None:
                mean[k] += (y[i, k] + y[i + one, k]) + (y[i + two, k] + y[i + three, k])
            else:
                mean[k] += weight[i] * y[i, k] + weight[i + one] * y[i + one, k]
                mean[k] += weight[i + two] * y[i + two, k] + weight[i + three] * y[i + three, k]
    for i in range(whole, n):
        for k in range(K):
            mean[k] += y[i, k] if weight is None else weight[i] * y[i, k]
    mean /= mass
    for i in range(np.uint64(0), whole, np.uint64(4)):
        for k in range(K):
            y[i, k] -= mean[k]
            y[i + one, k] -= mean[k]
            y[i + two, k] -= mean[k]
            y[i + three, k] -= mean[k]
    for i in range(whole, n):
        for k in range(K):
            y[i, k] -= mean[k]


@jit(fastmath=FAST)
def others(v, b, least, out, own, inside):
    """out = v, but at least ``least``; own = v_b.

    inside: on the simplex, the others not negative, own at least -1, and a sum of 0 but for 1e-12.
    """
    width = np.uint64(v.shape[1])
    for i in range(np.uint64(v.shape[0])):
        mine, total, negative = np.uint64(b[i]), 0.0, 0
        own[i] = v[i, mine]
        for k in range(width):
            value = v[i, k]
            total += value
            negative += 0 if value >= 0.0 else 1
            out[i, k] = value if value > least else least
        negative -= 0 if own[i] >= 0.0 else 1
        inside[i] = negative == 0 and own[i] >= -1.0 and abs(total) <= 1e-12


@jit(fastmath=FAST)
def weighted_rows(v, b, logs, out):
    """out_i = sum of v_ik logs_ik, k != b."""
    width = np.uint64(v.shape[1])
    for i in range(np.uint64(v.shape[0])):
        total = 0.0
        mine = np.uint64(b[i])
        for k in range(width):
            total += v[i, k] * logs[i, k] if k != mine else 0.0
        out[i] = total
