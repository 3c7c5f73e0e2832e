"""The kernels of Newton steps for several classes: softmax at the end of a step."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.jit import FAST, jit


@jit(fastmath=FAST)
def largest(row):
    """The largest of a row; what it is of NaN does not matter.

    Long rows in four parts that do not wait for one another (300 numbers: 1.2 -> 0.3 ns each).
    """
    first = second = third = fourth = row[0]
    parted = row.shape[0] // 4 * 4 if row.shape[0] >= 32 else 0
    for k in range(0, parted, 4):
        first = row[k] if row[k] > first else first
        second = row[k + 1] if row[k + 1] > second else second
        third = row[k + 2] if row[k + 2] > third else third
        fourth = row[k + 3] if row[k + 3] > fourth else fourth
    for k in range(parted, row.shape[0]):
        first = row[k] if row[k] > first else first
    first = second if second > first else first
    third = fourth if fourth > third else third
    return third if third > first else first


@jit(fastmath=FAST)
def shift_rows(z, c, b, own):
    """z = z + c less the largest for each row, own = z_b then."""
    for i in range(np.uint64(z.shape[0])):
        row = z[i]
        for k in range(row.shape[0]):
            row[k] += c[k]
        top = largest(row)
        for k in range(row.shape[0]):
            row[k] -= top
        own[i] = row[b[i]]


@jit(fastmath=FAST)
def slope_rows(e, own, b, weight):
    """From e = exp(z - max z) to y = p - e_b in its place, p = softmax(z); own = z_b - max z.

    Returns sum weight (logsumexp(z) - z_b), in float64 whatever the type of e.
    """
    value, real = 0.0, e.dtype.type
    for i in range(np.uint64(e.shape[0])):
        row, k = e[i], b[i]
        top, total = row[k], real(0)
        for j in range(row.shape[0]):
            total += row[j]
        rest = total - top
        if rest < 0.1 * total:  # without what cancels; a 0 stored in its place would stall the sum
            rest = real(0)
            for j in range(k):
                rest += row[j]
            for j in range(k + 1, row.shape[0]):
                rest += row[j]
        scale = real(1) / (rest + top)
        for j in range(row.shape[0]):
            row[j] *= scale
        row[k] = -rest * scale  # keeps the digits of a small loss, as does log1p
        whole = np.float64(rest)
        loss = math.log1p(whole) if own[i] == 0.0 else math.log(whole + top) - own[i]
        value += weight[i] * loss if weight[i] > 0.0 else 0.0
    return value


@jit(fastmath=FAST)
def follow_class_rows(y, new, b, weight, dz, out):
    """out = what the expansion at z, of slopes y, has for slopes at z + dz, on the simplex.

    ``new`` are the slopes there.  Returns the sum of weight times the divergence of the two (to
    third order), and of weight times what the ends of the simplex have cut off.
    """
    lacking, cut = 0.0, 0.0
    for i in range(np.uint64(y.shape[0])):
        own, mean = b[i], dz[i, b[i]]
        for k in range(y.shape[1]):
            mean += y[i, k] * dz[i, k]
        total, beyond = 0.0, 0.0
        for k in range(y.shape[1]):
            p = y[i, k] + (1.0 if k == own else 0.0)
            part = p * (1.0 + dz[i, k] - mean)
            beyond += part * part if part < 0.0 else 0.0
            out[i, k] = max(part, 0.0)
            total += out[i, k]
        scale, others, away = 1.0 / total, 0.0, 0.0
        for k in range(y.shape[1]):
            out[i, k] *= scale
            others += 0.0 if k == own else out[i, k]
        out[i, own] = -others
        for k in range(y.shape[1]):
            step = out[i, k] - new[i, k]
            both = out[i, k] + new[i, k] + (2.0 if k == own else 0.0)
            away += step * step / both if both > 0.0 else 0.0
        lacking += weight[i] * away
        cut += weight[i] * (math.sqrt(beyond) + (total - 1.0) if beyond > 0.0 else 0.0)
    return lacking, cut


@jit(fastmath=FAST)
def curvature_rows(y, b, weight, out):
    """out = w p (1 - p), p = y + e_b."""
    for i in range(np.uint64(y.shape[0])):
        own, w = y[i, b[i]], weight[i]
        for k in range(y.shape[1]):
            out[i, k] = w * y[i, k] * (1.0 - y[i, k])
        out[i, b[i]] = -w * own * (1.0 + own)


@jit(fastmath=FAST)
def pairs_of_entries(block, centre, out):
    """out = the products a_ij a_il, j >= l, of the centred rows of a block."""
    d = block.shape[1]
    for i in range(np.uint64(block.shape[0])):
        at = 0
        for j in range(d):
            left = block[i, j] - centre[j]
            for k in range(j + 1):
                out[i, at + k] = left * (block[i, k] - centre[k])
            at += j + 1


@jit(fastmath=FAST)
def _dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@jit
def backward(q, s, r, pairs, weights):
    """The first loop of L-BFGS: q loses what the last ``pairs`` changes, in a ring, explain."""
    memory = s.shape[0]
    for age in range(min(pairs, memory)):
        k = (pairs - 1 - age) % memory
        weights[age] = _dot(s[k], q) / _dot(s[k], r[k])
        q -= weights[age] * r[k]


@jit
def forward(q, s, r, pairs, weights):
    """The second loop: q = H_0 q gains it again."""
    memory = s.shape[0]
    kept = min(pairs, memory)
    for back in range(kept):
        age = kept - 1 - back
        k = (pairs - 1 - age) % memory
        q += (weights[age] - _dot(r[k], q) / _dot(s[k], r[k])) * s[k]
