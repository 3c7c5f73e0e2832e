r"""The penalties: g(x) = l1 |x|_1 + l2/2 |x|_2^2, with or without x >= 0.

===========  ================================================================================
value        g(x), ``inf`` for a negative coordinate of a ``positive`` penalty
conjugate    g*(v) = sum_j max(|v_j| - l1, 0)^2 / (2 l2); for l2 = 0 the indicator of
             |v_j| <= l1 (``positive``: v_j in place of |v_j|)
gradient     of g*: the x that attains the conjugate, shrink(v, l1)/l2
===========  ================================================================================

As with the losses, what is here is NumPy in float64 for the certificate; the kernels use
:func:`adacoord.kernels.prox.shrink`.  No BLAS: its threads would spin beside the kernels (6 ms
for ``x @ x`` with 50,000 entries on two busy cores), and its bits depend on their number.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Real

import numpy as np


@dataclass(frozen=True)
class Penalty:
    """g(x) = l1 |x|_1 + l2/2 |x|^2, on x >= 0 if ``positive``; l2 is its strong convexity."""

    l1: float = 0.0
    l2: float = 0.0
    positive: bool = False

    def __post_init__(self):
        for name in ("l1", "l2"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real):
                raise ValueError(f"{name}={value!r}: the penalty must be a number, zero or more")
            if not 0 <= value <= sys.float_info.max:
                shown = repr(value) if len(repr(value)) < 30 else f"{repr(value)[:20]}..."
                raise ValueError(f"{name}={shown}: the penalty must be finite, zero or more")
            object.__setattr__(self, name, float(value))

    def value(self, x: np.ndarray) -> float:
        if self.positive and np.any(x < 0.0):
            return np.inf
        total = self.l1 * float(np.abs(x).sum()) if self.l1 else 0.0  # 0 * inf is not 0
        return total + 0.5 * _scaled_square(x, self.l2) if self.l2 else total

    def excess(self, v: np.ndarray) -> np.ndarray:
        """How far each coordinate of ``v`` is beyond the threshold l1 (0 where it is not)."""
        return np.maximum((v if self.positive else np.abs(v)) - self.l1, 0.0)

    def conjugate(self, v: np.ndarray) -> float:
        excess = self.excess(v)
        if self.l2 > 0.0:
            return 0.5 * _scaled_square(excess, 1.0 / self.l2)
        # A point scaled onto the boundary lands within rounding of it.
        return 0.0 if excess.max() <= 1e-12 * self.l1 else np.inf

    def conjugate_gradient(self, v: np.ndarray) -> np.ndarray:
        """argmax_x x.v - g(x), for l2 > 0."""
        return np.sign(v) * self.excess(v) / self.l2


def _scaled_square(x: np.ndarray, factor: float) -> float:
    """factor |x|^2, also where |x|^2 alone is beyond float64."""
    total = float(np.square(x).sum())
    if 1e-250 < total < np.inf:
        return factor * total
    size = float(np.abs(x).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return factor * total
    return float(np.square(x / size).sum()) * size * factor * size
