r"""Sweeps over a working set in turn, and Anderson's extrapolation of them.

Of each SWEEPS + 1 sweeps the first is over all of the set, the others are over its support, until
these bring little.

Sweeps in a fixed order are a linear map near the optimum, once no coefficient comes to 0 or leaves
it any more.  Of the points x_0, ..., x_M that they went through, the combination of x_1, ..., x_M
with weights of sum 1 whose difference from sweep to sweep is least is nearer to where they tend
than the last of them (Bertrand and Massias 2021).  What is linear in x is combined alike.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

#: Sweeps that an extrapolation looks back on.
SWEEPS = 5
#: Of what the last sweep over the set brought, what one over its support may bring for the next to
#: be over the set: what is missing there is more.
SETTLED = 1e-4
#: Of the squares of the differences: what their combination is not known to.
RIDGE = 1e-12


def combination(iterates: np.ndarray) -> np.ndarray | None:
    """The weights of all iterates (rows) but the first; None where there is no such combination."""
    steps = np.diff(iterates, axis=0)
    products = steps @ steps.T
    ridge = RIDGE * np.trace(products)
    if not 0.0 < ridge < np.inf:
        return None
    weights = np.linalg.solve(products + ridge * np.eye(len(steps)), np.ones(len(steps)))
    total = weights.sum()
    return weights / total if np.isfinite(total) and total != 0.0 else None


class InTurn:
    """What a working set has in the place of adaptive frequencies; mixed into its class.

    Asked of it: ``_visit``, ``_members`` (columns of the set), ``_image`` (what of the model is
    linear in x, as one vector), ``_rise`` (of the model from the point to an x on these columns
    with its image) and ``_move`` to it.
    """

    turns: ClassVar[tuple[str, ...]] = ("inside", "active", "trail", "images", "filled", "brought")

    def _no_turns(self):
        # the columns of the set and the units of its support; x on the set after each of the last
        # sweeps, and its images
        self.inside = self.active = np.empty(0, dtype=np.int64)
        self.trail, self.images, self.filled = np.empty((0, 0)), np.empty((0, 0)), 0
        #: What the last sweep over the set has lowered the model by, and the last sweep.
        self.brought = np.zeros(2)

    def _in_turn(self):
        """A sweep, then ahead of the last where there have been enough; see ``_visit``."""
        whole = self.sweeps % (SWEEPS + 1) == 0 or self.brought[1] <= SETTLED * self.brought[0]
        if self.sweeps == 0:
            self.inside, self.filled = self._members(self.set), 0
            self.trail = np.empty((SWEEPS + 1, self.point[self.inside].size))
            self.images = np.empty((SWEEPS + 1, self._image().size))
        lowered, touched, flips = self._visit(self.set if whole else self.active, 0.0)
        self.brought[:] = lowered if whole else self.brought[0], lowered
        if whole:
            self.active = self.set[self._support()[self.set]]
        k = self.filled = 0 if flips else self.filled
        self.trail[k], self.images[k] = self.point[self.inside].ravel(), self._image()
        self.filled += 1
        if self.filled > SWEEPS:
            self.filled = 0
            weights = combination(self.trail)
            if weights is not None:
                x = (weights @ self.trail[1:]).reshape(self.point[self.inside].shape)
                image = weights @ self.images[1:]
                if self._rise(x, image) < 0.0:
                    self._move(x, image)
        return lowered, touched, flips
