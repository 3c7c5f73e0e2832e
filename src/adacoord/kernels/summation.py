r"""How long sums are cut, and through how many roundings a term of them goes.

A sum of m terms in any order is off by at most :math:`\gamma_{m-1} \sum |terms|`, with
:math:`\gamma_k = k u/(1 - k u)` and u = 2^-53 (Higham 2002, eq. 4.4); a sum of sums of B terms each
by :math:`\gamma_{B + m/B}`: products with A are cut into pieces of about sqrt(m) terms, so that
what can be proved of them does not grow with m.  Inside a piece the compiler chooses the order.
Plain Python: what bounds the rounding of P and D imports nothing compiled.
"""

from __future__ import annotations

import math

#: Half the distance from 1 to the next number.
UNIT = 2.0**-53
#: Terms of a dot product that are summed as they come (vectorised); longer ones are cut.
LONG = 256
#: Rows whose multiples are added up before their sum goes to the others'.
ROWS = 64
#: Entries of a block of rows, in columns: what adding the block's sum to the others' may cost.
ENTRIES_PER_COLUMN = 8


def gamma(roundings: float) -> float:
    """What k roundings in a row may come to, relatively."""
    return roundings * UNIT / (1.0 - roundings * UNIT)


def row_block(n: int, d: int, entries: int) -> int:
    """Rows of a block of A' v: about sqrt(n), and enough of them to be worth their sum."""
    return max(ROWS, math.isqrt(n), -(-ENTRIES_PER_COLUMN * d * n // max(entries, 1)))


def depth(terms: int, block: int) -> int:
    """Roundings that a product goes through, its own included, in a sum cut into blocks."""
    return terms if terms <= block else block - (-terms // block)


def dot_depth(terms: int) -> int:
    """The same of :func:`adacoord.kernels.rows.long_dot`."""
    return depth(terms, max(LONG, math.isqrt(terms)))


def pairwise_depth(terms: int) -> int:
    """Roundings that a term goes through in NumPy's sum of a contiguous array.

    Up to 128 terms are summed in 8 chains of 16, which 3 additions put together, with up to 7 left
    over; more are halved (``pairwise_sum`` of NumPy's loops).
    """
    if terms <= 128:
        return min(terms, 26)
    return 27 + (terms // 128).bit_length()
