r"""Coordinate frequencies: Algorithms 2 and 3 and the schedule of ACF (Glasmachers, Dogan 2013).

Algorithm 2 (adaptation) changes the preference :math:`p_i` of a coordinate by the decrease
:math:`D_i` that a step on it brought, against the mean decrease :math:`\bar D` of all steps,

.. math::

    p_i \leftarrow \mathrm{clip}\bigl(p_i\, e^{c (D_i/\bar D - 1)},\; p_{min},\; p_{max}\bigr),
    \qquad \bar D \leftarrow (1 - \eta)\bar D + \eta D_i,

until all coordinates bring the same: p starts at 1 (the print has 1/n, which its bounds rule out),
and :math:`\bar D` at the mean of the first n decreases, p being frozen meanwhile.

Algorithm 3 (schedule) gives each coordinate its share :math:`n p_i/\sum p` of a sweep in an
accumulator; the sweep visits it as often as the accumulator holds whole numbers, in random order.
Frequencies are met to within one visit over any number of sweeps, a visit costs no draw from a
distribution, and the order is known ahead.  No coordinate waits longer than
:math:`p_{max}/p_{min} = 400` sweeps.

:class:`Frequencies` is the schedule in NumPy; the functions below it are both algorithms inside
kernels.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels.jit import jit
from .random import uniform

#: The published defaults; eta is 1/n.
LEARNING_RATE, LEAST, MOST = 0.2, 0.05, 20.0
#: Largest exponent of one change: a first step may bring a thousand times the mean.
LEAP = 3.0
#: The factor after a step that brought nothing.
UNMOVED = math.exp(-LEARNING_RATE)


class Frequencies:
    """Accumulators of n coordinates, started at random so that the first passes differ."""

    def __init__(self, n: int, rng: np.random.Generator):
        self.accumulators = rng.random(n)
        self.visits = np.zeros(n, dtype=np.int64)

    def order(self, frequencies: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Positions of the next pass: i ``visits[i]`` times, about ``frequencies[i]``."""
        self.accumulators += frequencies
        whole = np.floor(self.accumulators)
        self.accumulators -= whole
        self.visits = whole.astype(np.int64)
        return rng.permutation(np.repeat(np.arange(whole.size), self.visits))


@jit
def updated_frequency(p, decrease, mean):
    """Algorithm 2: the new preference after a step that brought ``decrease``."""
    if mean > 0.0:
        if decrease == 0.0:  # rows that stay where they are need no exponential
            p *= UNMOVED
        else:
            p *= math.exp(min(LEARNING_RATE * (decrease / mean - 1.0), LEAP))
    return min(max(p, LEAST), MOST)


@jit
def schedule(active, size, p, accumulators, order, state):
    """Algorithm 3 for the coordinates ``active[:size]``; the number of visits put into ``order``.

    ``order`` must hold ``2 size`` numbers.  With all p equal each coordinate comes exactly once.
    """
    total = 0.0
    for t in range(size):
        total += p[active[t]]
    visits = 0
    for t in range(size):
        i = active[t]
        # p = 1 throughout must give exactly 1, not 1 less rounding
        share = accumulators[i] + p[i] * (size / total)
        while share >= 1.0 and visits < order.shape[0]:
            order[visits] = i
            visits += 1
            share -= 1.0
        accumulators[i] = share
    shuffle(order, visits, state)
    return visits


@jit
def shuffle(order, size, state):
    """Fisher-Yates on ``order[:size]``."""
    for t in range(size - 1, 0, -1):
        k = min(np.int64(uniform(state) * (t + 1)), t)
        order[t], order[k] = order[k], order[t]
