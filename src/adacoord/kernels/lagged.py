r"""Lagged updates: the proximal steps a coordinate of x has missed while its rows were not drawn.

Between two visits u_j does not change, so that the missed steps compose to a closed form (Section
6.2 of SPDC), here by tables over time: see :func:`lagged_steps`.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import jit
from .prox import shrink


@jit
def fill_tables(clock, missed, tau, theta, lam, ahead):
    """Fill the tables of :func:`lagged_steps` for steps of sizes ``tau``; returns how many fit.

    ``clock[t]`` is (decay, tau, q, ahead): decay the product of q = 1/(1 + lambda tau) over the
    steps before t, tau and q those of step t, ahead the theta of the step before it (``ahead``
    for t = 0).  ``missed[t]`` is (1/decay, sum of tau/decay over the steps before t).  The tables
    end where the decay would leave the range of numbers.
    """
    clock[0, 0], clock[0, 3] = 1.0, ahead
    missed[0, 0], missed[0, 1] = 1.0, 0.0
    for t in range(tau.shape[0]):
        q = 1.0 / (1.0 + lam * tau[t])
        clock[t, 1], clock[t, 2] = tau[t], q
        clock[t + 1, 0], clock[t + 1, 3] = q * clock[t, 0], theta[t]
        missed[t + 1, 0] = missed[t, 0] / q
        missed[t + 1, 1] = missed[t, 1] + tau[t] * missed[t, 0]
        if clock[t + 1, 0] < 1e-100:
            return t + 1
    return tau.shape[0]


@jit
def lagged_steps(x, u, growth, then, decay, now, l1, positive):
    """Missed steps x <- q shrink(x - tau u) at constant u while x keeps its sign, in O(1).

    They compose to ``decay (growth x - (now - then)(u + sign l1))``, with ``growth, then =
    missed[since]``, ``now = missed[until, 1]`` and ``decay = clock[until, 0]``: monotone in time.
    Returns x and whether it went through 0 instead, which takes :func:`cross`.  Tables, because
    ``pow`` in this place costs 2-4x (section 6.2 of SPDC solves for the crossing by logarithms);
    by time, because tau may change from step to step; scalars, because array arguments cost
    half as much again for the whole pass; one rare branch in place of one for each case (10 -> 5
    ns per entry).
    """
    sign = 1.0 if positive else math.copysign(1.0, -u if x == 0.0 else x)
    end = decay * (growth * x - (now - then) * (u + sign * l1))
    stays = sign * end >= 0.0
    # otherwise x reaches 0, and |u| <= l1 keeps it there
    return (end if stays else 0.0), (not stays and sign * u > l1 and not positive)


@jit
def catch_up(x, u, since, until, clock, missed, l1, positive):
    """The steps from ``since`` to ``until``, whatever x does."""
    growth, then = missed[since, 0], missed[since, 1]
    end, crosses = lagged_steps(x, u, growth, then, clock[until, 0], missed[until, 1], l1, positive)
    return cross(x, u, since, until, clock, missed, l1) if crosses else end


@jit
def cross(x, u, since, until, clock, missed, l1):
    """:func:`lagged_steps` for an ``x`` that goes through 0 to the other side."""
    sign = math.copysign(1.0, x)
    drift = u + sign * l1
    # the last step on this side of 0 is in [low, high)
    low, high = np.int64(since), np.int64(until)
    while high - low > 1:
        middle = (low + high) // 2
        if sign * (missed[since, 0] * x - (missed[middle, 1] - missed[since, 1]) * drift) > 0.0:
            low = middle
        else:
            high = middle
    x = clock[low, 0] * (missed[since, 0] * x - (missed[low, 1] - missed[since, 1]) * drift)
    tau, q = clock[low, 1], clock[low, 2]
    x = q * shrink(x - tau * u, -tau * l1, tau * l1)  # the step that crosses
    pull = (missed[until, 1] - missed[low + 1, 1]) * (u - sign * l1)
    return clock[until, 0] * (missed[low + 1, 0] * x - pull)
