r"""The proximal step of the penalty, one coordinate at a time.

A penalty is ``(l1, l2, positive)``; the step on g_j(x) = l1 |x| + l2 x^2/2 of length tau is
``shrink(x - tau u, *dead_zone(tau l1, positive)) / (1 + tau l2)``.
"""

from __future__ import annotations

import numpy as np

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
