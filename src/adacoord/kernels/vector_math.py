r"""exp and log1p that a loop can take eight (or four) at a time.

The compiled ``math.exp`` is a call of the C library: LLVM vectorises no loop that has one.  These
are straight lines of multiplications and additions, to within an ulp or two:

``exp(x)``    :math:`2^k e^r`, k the whole number nearest to :math:`x/\log 2`; Taylor's polynomial
              for :math:`|r| \le \tfrac12 \log 2`
``log1p(e)``  :math:`2\,\mathrm{artanh}\, s` with :math:`s = e/(2 + e) \le \tfrac13`, for
              :math:`0 \le e \le 1`

The logistic loss with its slope and curvature: 26 -> 3.7 ns per row; softmax: 10 -> 2.5 ns per
entry.  A kernel that goes row by row gains nothing, and has ``math``'s.
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import jit

#: Adding 1.5 2^52 rounds to a whole number, which then stands in the last bits.
_ROUND = 6755399441055744.0
_PER_LOG_2 = 1.0 / math.log(2.0)
#: log 2 in two parts: the first has so few digits that k times it is exact.
_LOG_2_HIGH, _LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (
    1.0 / math.factorial(k) for k in range(2, 14)
)
_A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10, _A11, _A12, _A13, _A14, _A15, _A16 = (
    1.0 / (2 * k + 1) for k in range(1, 17)
)
#: Where exp ends: 0 below the first, inf beyond the second.
_LEAST, _MOST = -708.0, 709.0

#: Sums may not be rearranged here, whatever the caller allows: (x + 2^52) - 2^52 is not x.
_EXACT = {"contract"}


@intrinsic
def _power_of_two(typingctx, rounded):
    """2^k from k + 1.5 2^52: its last bits, moved to where the exponent is."""

    def codegen(context, builder, signature, args):
        int64 = ir.IntType(64)
        bits = builder.add(builder.bitcast(args[0], int64), int64(1023))
        return builder.bitcast(builder.shl(bits, int64(52)), ir.DoubleType())

    return types.float64(types.float64), codegen


@jit(fastmath=_EXACT, inline=True)
def exp(x):
    """e^x: 0 below -708, inf beyond 709; NaN for NaN."""
    inside = _LEAST if x < _LEAST else x
    inside = _MOST if inside > _MOST else inside
    rounded = inside * _PER_LOG_2 + _ROUND
    k = rounded - _ROUND
    r = (inside - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    p = _E13 * r + _E12
    p = p * r + _E11
    p = p * r + _E10
    p = p * r + _E9
    p = p * r + _E8
    p = p * r + _E7
    p = p * r + _E6
    p = p * r + _E5
    p = p * r + _E4
    p = p * r + _E3
    p = p * r + _E2
    p = 1.0 + (r + r * r * p)
    p *= _power_of_two(rounded)
    p = 0.0 if x < _LEAST else p
    return math.inf if x > _MOST else p


@jit(fastmath=_EXACT, inline=True)
def log1p(e):
    """log(1 + e) for 0 <= e <= 1."""
    s = e / (2.0 + e)
    q = s * s
    p = _A16 * q + _A15
    p = p * q + _A14
    p = p * q + _A13
    p = p * q + _A12
    p = p * q + _A11
    p = p * q + _A10
    p = p * q + _A9
    p = p * q + _A8
    p = p * q + _A7
    p = p * q + _A6
    p = p * q + _A5
    p = p * q + _A4
    p = p * q + _A3
    p = p * q + _A2
    p = p * q + _A1
    return 2.0 * (s + s * q * p)
