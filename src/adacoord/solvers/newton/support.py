r"""A Newton step on the support: conjugate gradients where the signs of x are settled.

On the columns S with x_j != 0 and as long as no sign changes, the model of
:mod:`~adacoord.solvers.primal.kernels` is a plain quadratic.  Its minimiser solves

    (A_S' H A_S + l2) d = -(A_S' slopes + l2 x_S + l1 sign(x_S)),

which conjugate gradients (scaled by the diagonal) find in far fewer products with A_S than
coordinate descent needs sweeps when columns are correlated.  A small support takes a Cholesky
factor of A_S' H A_S instead, and then can afford to go on where a sign stops it: x_j stays at 0
and the rest is solved anew.

The Gram matrix and its factor are compiled here, though :mod:`adacoord.linalg` has both: supports
have some ten columns, picked out of all, and change within the kernel, which LAPACK cannot enter.
"""

from __future__ import annotations

import math

import numpy as np

from ...kernels.columns import combine
from ...kernels.jit import FAST, jit
from ...kernels.rows import row_dot
from ..primal.kernels import penalised, spread


@jit(fastmath=FAST)
def _apply(colptr, rows, data, support, v, h, sums, mass, l2, direction, image, product):
    """image = A_S direction, product = (A_S' H A_S + l2) direction; entries touched."""
    image[:] = 0.0
    touched = combine(colptr, rows, data, support, direction, image)
    total = 0.0
    constant = h.shape[0] == 1
    for i in range(np.uint64(image.shape[0])):
        v[i] = (h[0] if constant else h[i]) * image[i]
        total += v[i]
    for k in range(np.uint64(support.shape[0])):
        j = np.uint64(support[k])
        start, stop = colptr[j], colptr[j + np.uint64(1)]
        product[k] = row_dot(rows, data, start, stop, v) - sums[j] * (total / mass)
        product[k] += l2 * direction[k]
        touched += stop - start
    return touched


@jit(fastmath=FAST)
def support_newton(
    colptr,
    rows,
    data,
    support,
    x,
    slopes,
    h,
    squares,
    sums,
    total,
    mass,
    l1,
    l2,
    accuracy,
    iterations,
    v,
    image,
    sum_image,
):
    """Move x on ``support`` to the minimiser of the model there, as far as signs allow.

    Returns (total, entries touched); x and slopes are updated.  ``v``, ``image`` and
    ``sum_image`` are room for n numbers each.
    """
    m = np.uint64(support.shape[0])
    g, d, p, q, scale = np.empty(m), np.zeros(m), np.empty(m), np.empty(m), np.empty(m)
    touched = np.uint64(0)
    rz = 0.0
    for k in range(m):
        j = np.uint64(support[k])
        start, stop = colptr[j], colptr[j + np.uint64(1)]
        touched += stop - start
        s = penalised(spread(squares[j], sums[j], mass), l2)
        scale[k] = 1.0 / s if s > 0.0 else 0.0
        g[k] = row_dot(rows, data, start, stop, slopes) - sums[j] * (total / mass)
        g[k] += l2 * x[j] + math.copysign(l1, x[j])
        p[k] = -scale[k] * g[k]
        rz += g[k] * g[k] * scale[k]
    goal = accuracy * rz
    sum_image[:] = 0.0
    for _ in range(iterations):
        if not rz > goal:
            break
        touched += _apply(colptr, rows, data, support, v, h, sums, mass, l2, p, image, q)
        curved = 0.0
        for k in range(m):
            curved += p[k] * q[k]
        if not curved > 0.0:
            break
        alpha = rz / curved
        last, rz = rz, 0.0
        for k in range(m):
            d[k] += alpha * p[k]
            g[k] += alpha * q[k]
            rz += g[k] * g[k] * scale[k]
        for i in range(np.uint64(image.shape[0])):
            sum_image[i] += alpha * image[i]
        beta = rz / last
        for k in range(m):
            p[k] = -scale[k] * g[k] + beta * p[k]
    # where a sign would change, stop at zero; if that does not pay, stop all at the first change
    limit, crossed = 1.0, False
    for k in range(m):
        old = x[support[k]]
        if old * (old + d[k]) < 0.0:
            crossed = True
            limit = min(limit, -old / d[k])
            p[k] = -old
        else:
            p[k] = d[k]
    if crossed:
        image[:] = 0.0
        touched += combine(colptr, rows, data, support, p, image)
        if model_change(support, x, p, slopes, h, total, mass, image, l1, l2)[0] >= 0.0:
            for k in range(m):
                p[k] = limit * d[k]
            for i in range(np.uint64(image.shape[0])):
                image[i] = limit * sum_image[i]
    else:
        image[:] = sum_image
    change, added = model_change(support, x, p, slopes, h, total, mass, image, l1, l2)
    if not change < 0.0:
        return total, touched
    constant = h.shape[0] == 1
    for i in range(np.uint64(image.shape[0])):
        slopes[i] += (h[0] if constant else h[i]) * image[i]
    for k in range(m):
        old = x[support[k]]
        x[support[k]] = 0.0 if p[k] == -old or limit * d[k] == -old else old + p[k]
    return total + added, touched


@jit(fastmath=FAST)
def _gram(colptr, rows, data, support, h, sums, mass, l2, v, gram):
    """The lower half of A_S' H A_S + l2, of centred columns; entries touched."""
    v[:] = 0.0
    constant = h.shape[0] == 1
    touched = np.uint64(0)
    for k in range(np.uint64(support.shape[0])):
        j = np.uint64(support[k])
        start, stop = colptr[j], colptr[j + np.uint64(1)]
        for e in range(start, stop):
            i = e - start if rows is None else rows[e]
            v[i] = (h[0] if constant else h[i]) * data[e]
        for m in range(k + np.uint64(1)):
            other = np.uint64(support[m])
            begin, end = colptr[other], colptr[other + np.uint64(1)]
            gram[k, m] = row_dot(rows, data, begin, end, v) - sums[j] * (sums[other] / mass)
            touched += end - begin
        gram[k, k] += l2
        for e in range(start, stop):
            v[e - start if rows is None else rows[e]] = 0.0
    return touched


@jit(fastmath=FAST)
def _solve(gram, active, size, factor, d):
    """d = gram^-1 d on the first ``size`` of ``active``, by Cholesky.

    Where a column depends on those before it, d is 0 instead.
    """
    for a in range(size):
        for b in range(a + 1):
            total = gram[active[a], active[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a != b:
                factor[a, b] = total / factor[b, b]
            elif total > 1e-12 * gram[active[a], active[a]]:
                factor[a, a] = math.sqrt(total)
            else:
                factor[a, a] = 1e150
        total = d[a]
        for c in range(a):
            total -= factor[a, c] * d[c]
        d[a] = total / factor[a, a]
    for a in range(size - 1, -1, -1):
        total = d[a]
        for c in range(a + 1, size):
            total -= factor[c, a] * d[c]
        d[a] = total / factor[a, a]


@jit(fastmath=FAST)
def support_solve(
    colptr,
    rows,
    data,
    support,
    x,
    slopes,
    h,
    squares,
    sums,
    total,
    mass,
    l1,
    l2,
    rounds,
    v,
    image,
):
    """:func:`support_newton` for a small support: x_j that reach 0 stay there, the rest goes on.

    Returns (total, entries touched); x and slopes are updated.
    """
    m = support.shape[0]
    gram, factor = np.empty((m, m)), np.empty((m, m))
    touched = _gram(colptr, rows, data, support, h, sums, mass, l2, v, gram)
    g, d, new = np.empty(m), np.empty(m), np.empty(m)
    active, size = np.empty(m, dtype=np.int64), 0
    for k in range(m):
        j = np.uint64(support[k])
        start, stop = colptr[j], colptr[j + np.uint64(1)]
        touched += stop - start
        g[k] = row_dot(rows, data, start, stop, slopes) - sums[j] * (total / mass)
        g[k] += l2 * x[j] + math.copysign(l1, x[j])
        new[k] = x[j]
        if penalised(spread(squares[j], sums[j], mass), l2) > 0.0:
            active[size] = k
            size += 1
    for _ in range(rounds):
        for a in range(size):
            d[a] = -g[active[a]]
        _solve(gram, active, size, factor, d)
        limit, first = 1.0, -1
        for a in range(size):
            old = new[active[a]]
            if old * (old + d[a]) < 0.0 and -old / d[a] < limit:
                limit, first = -old / d[a], a
        for a in range(size):
            k, step = active[a], limit * d[a]
            new[k] = 0.0 if a == first else new[k] + step
            for b in range(size):
                other = active[b]
                g[other] += step * (gram[k, other] if k >= other else gram[other, k])
        if first < 0:
            break
        size -= 1
        for a in range(first, size):
            active[a] = active[a + 1]
    for k in range(m):
        j = support[k]
        d[k] = new[k] - x[j]
        total += d[k] * sums[j]
        x[j] = new[k]
    image[:] = 0.0
    touched += combine(colptr, rows, data, support, d, image)
    constant = h.shape[0] == 1
    for i in range(np.uint64(image.shape[0])):
        slopes[i] += (h[0] if constant else h[i]) * image[i]
    return total, touched


@jit(fastmath=FAST)
def model_change(support, x, step, slopes, h, total, mass, image, l1, l2):
    """Change of the model by x_S += step with A_S step = image; and that of sum slopes."""
    linear, square, added = 0.0, 0.0, 0.0
    constant = h.shape[0] == 1
    for i in range(np.uint64(image.shape[0])):
        hi = (h[0] if constant else h[i]) * image[i]
        linear += slopes[i] * image[i]
        square += hi * image[i]
        added += hi
    change = linear + 0.5 * square
    change -= 0.5 * added * (2.0 * total + added) / mass  # the best intercept before and after
    for k in range(np.uint64(support.shape[0])):
        old, s = x[support[k]], step[k]
        change += l1 * (abs(old + s) - abs(old)) + l2 * s * (old + 0.5 * s)
    return change, added
