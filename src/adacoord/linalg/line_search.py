"""One line search, for convex functions of which value, slope and curvature are cheap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: A step is taken when the slope at its end is at most this share of that at its start.
HALF = 0.5
#: A slope below this share of P is rounding: the step is refinement, and taken whole.
ROUNDING = 1e-14
#: What a sum over the rows may be off by, as a share of it: no rise of P.
NOISE = 1e-12
#: How much a step may grow from one trial to the next.
GROWTH = 10.0


def line_search(
    along: Callable[[float], tuple[float, float, float]],
    start: float,
    slope: float,
    share: float = HALF,
) -> float:
    """A step t > 0 at which a convex function is nearly least; ``start``, ``slope``: those at 0.

    ``along(t)`` gives value, slope and curvature.  t = 1, or Newton's method for a root of the
    slope, kept in a bracket that grows until it holds one.  Slopes decide, ``share`` of that at 0
    is enough: near the optimum values drown in rounding.  The value only has to be no larger, as
    the slope alone does not say where it jumps.
    """
    low, high, t = 0.0, np.inf, 1.0
    for trial in range(100):
        value, first, second = along(t)
        if abs(first) <= -share * slope and value <= start + NOISE * abs(start):
            return t
        if first < 0.0:
            low = t
        else:  # also where exp has overflowed to inf or NaN
            high = t
        t = t - first / second if second > 0.0 and np.isfinite(first) else np.inf
        if high == np.inf:
            t = min(max(t, 2.0 * low), GROWTH * low)
        elif trial % 2 or not low < t < high:  # Newton alone creeps down an exponential
            t = 0.5 * (low + high)
    return low
