r"""The proximal step of the penalty, one coordinate at a time.

A penalty is ``(l1, l2, positive)``; the step on g_j(x) = l1 |x| + l2 x^2/2 of length tau is
``shrink(x - tau u, *dead_zone(tau l1, positive)) / (1 + tau l2)``.

Where columns have weights and bounds of their own, l1 and l2 are arrays and ``(lower, upper)`` is
in the place of ``positive``: kernels that take both kinds ask :func:`at`, :func:`one_sided` and
:func:`within`, which are the number itself, ``positive`` and nothing at all for the plain kind.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from .jit import jit


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


def at(weight, j):
    """The weight of column j: one for all, or an array."""
    return weight[j] if np.ndim(weight) else weight


def one_sided(positive):
    """Whether only x >= 0 is wanted, of the last of ``Penalty.arguments``."""
    return False if isinstance(positive, tuple) else positive


def within(x, positive, j):
    """x_j within its bounds, where it has some of its own."""
    return min(max(x, positive[0][j]), positive[1][j]) if isinstance(positive, tuple) else x


@overload(at)
def _at(weight, j):
    if isinstance(weight, types.Array):
        return lambda weight, j: weight[j]
    return lambda weight, j: weight


@overload(one_sided)
def _one_sided(positive):
    if isinstance(positive, types.BaseTuple):
        return lambda positive: False
    return lambda positive: positive


@overload(within)
def _within(x, positive, j):
    if isinstance(positive, types.BaseTuple):
        return lambda x, positive, j: min(max(x, positive[0][j]), positive[1][j])
    return lambda x, positive, j: x
