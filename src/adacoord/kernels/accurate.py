"""Products with A in twice the working precision (Ogita, Rump and Oishi 2005, algorithm Dot2).

Every product and every sum is kept with its own rounding error: A x = high + low is off by at most
u |A x| + gamma_m^2 |A| |x|.  Three to four times the cost of a plain product: for the judge, where
the rounding of its own sums is all that is left of a gap.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from .jit import jit


@intrinsic
def fma(typingctx, a, b, c):
    """a b + c with one rounding."""

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@jit(inline=True)
def two_sum(a, b):
    """(a + b as rounded, what that lost)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@jit
def accurate_matvec(indptr, indices, data, x, high, low):
    """high + low = A x."""
    for i in range(np.uint64(high.shape[0])):
        start, total, rest = indptr[i], 0.0, 0.0
        for k in range(start, indptr[i + np.uint64(1)]):
            a, b = np.float64(data[k]), x[k - start if indices is None else indices[k]]
            product = a * b
            total, lost = two_sum(total, product)
            rest += lost + fma(a, b, -product)
        high[i], low[i] = total, rest


@jit
def accurate_rmatvec(indptr, indices, data, v, v_low, high, low):
    """high + low += A' (v + v_low), where v_low is what v as rounded lost."""
    for i in range(np.uint64(v.shape[0])):
        start, b = indptr[i], v[i]
        for k in range(start, indptr[i + np.uint64(1)]):
            a, j = np.float64(data[k]), k - start if indices is None else indices[k]
            product = a * b
            high[j], lost = two_sum(high[j], product)
            low[j] += lost + fma(a, b, -product) + a * v_low[i]
