r"""From frequencies p to a sequence of coordinates: the two ways of Section 3 of ACF's paper.

``by_argmax``       without chance: each step adds :math:`p_i/\sum p` to the accumulator of every
                    coordinate, takes the one with the largest (the first of several) and lowers
                    that accumulator by 1.  A step looks at all n accumulators: for small n
                    (0.5 s per sweep of 20,000 rows).
``independently``   random coordinate descent: each coordinate is drawn from :math:`p_i/\sum p`,
                    with replacement, by Walker's alias table.

Like Algorithm 3 (:func:`.frequencies.schedule`), whose arguments they share, both make the sequence
of a sweep from the p at its start: what Algorithm 2 changes during a sweep counts in the next one.
(Glasmachers and Dogan, 2013.)
"""

from __future__ import annotations

import numpy as np

from ..kernels.jit import jit
from .random import uniform
from .single import alias_table

#: Shares are whole multiples of this: their sums are exact, so that coordinates with equal
#: accumulators are equal (and come in turn), not in an order that rounding made.
GRAIN = 2.0**-40


@jit
def by_argmax(active, size, p, accumulators, order, state):
    """``size`` coordinates of ``active[:size]`` by the largest accumulator; their number."""
    total = 0.0
    for k in range(size):
        total += p[active[k]]
    share, held = np.empty(size), np.empty(size)
    for k in range(size):
        share[k] = np.rint(p[active[k]] / total / GRAIN) * GRAIN
        held[k] = accumulators[active[k]]
    for t in range(size):
        most, best = -np.inf, 0
        for k in range(size):
            held[k] += share[k]
            if held[k] > most:
                most, best = held[k], k
        held[best] -= 1.0
        order[t] = active[best]
    for k in range(size):
        accumulators[active[k]] = held[k]
    return size


@jit
def independently(active, size, p, accumulators, order, state):
    """``size`` independent coordinates of ``active[:size]``; their number."""
    weight = np.empty(size)
    for k in range(size):
        weight[k] = p[active[k]]
    keep, alias = alias_table(weight)
    for t in range(size):
        k = min(np.int64(uniform(state) * size), size - 1)
        order[t] = active[k if uniform(state) <= keep[k] else alias[k]]
    return size
