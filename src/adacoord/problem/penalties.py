r"""The penalties: g(x) = l1 |x|_1 + l2/2 |x|_2^2, with or without x >= 0.

What solvers, the certificate and the rules of ``auto`` ask of a penalty, it answers here; nobody
else takes it apart.

======================  =====================================================================
value                   g(x), ``inf`` for a negative coordinate of a ``positive`` penalty
prox                    argmin_x g(x) + |x - v|^2/(2 step) = shrink(v, step l1)/(1 + step l2)
conjugate               g*(v) = sum_j max(|v_j| - l1, 0)^2 / (2 l2); for l2 = 0 the indicator
                        of |v_j| <= l1 (``positive``: v_j in place of |v_j|)
conjugate_gradient      the x that attains the conjugate, shrink(v, l1)/l2
strong_convexity        lambda of the theory: g less lambda/2 |x|^2 is still convex
quadratic, sparse       what kind of g it is, see there
separable, coercive
pull, slack,            with u the gradient of the loss: what holds x_j at 0, and what keeps u
critical_l1,            in the domain of g*(-u)
feasible_scale
plus_quadratic          g(x) + mu/2 |x|^2, of proximal points and model steps
uniform, by_column,     one l1 and one l2 for all columns (:class:`.column_penalty.ColumnPenalty`
uniformed               is the other kind); what each column has; the same in other units
grouped                 groups of columns are 0 together (:class:`.group_penalty.GroupPenalty`)
nearest                 x within the bounds
outside, box_cost       of the certificate: the box that it holds for where columns have neither a
                        penalty nor bounds, and what that costs
magnitude, overshoot    of its rounding: the sizes of what g is made of, and how far beyond the
                        domain of g* its argument may be
arguments               what kernels take, in this order everywhere: ``(l1, l2, positive)``
======================  =====================================================================

As with the losses, what is here is NumPy in float64 for the certificate; the kernels use
:func:`adacoord.kernels.prox.prox` and what it is made of.  No BLAS: its threads would spin
beside the kernels (6 ms for ``x @ x`` with 50,000 entries on two busy cores), and its bits depend
on their number.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from .row_sums import square_sum


@dataclass(frozen=True)
class Penalty:
    """g(x) = l1 |x|_1 + l2/2 |x|^2, on x >= 0 if ``positive``."""

    l1: float = 0.0
    l2: float = 0.0
    positive: bool = False

    #: g is a sum over the coordinates of x: what methods that move one x_j at a time rest on.
    separable: ClassVar[bool] = True
    #: One l1 and one l2 for all columns, and no bound but 0.
    uniform: ClassVar[bool] = True
    #: Coordinates come to 0 in groups (:class:`.group_penalty.GroupPenalty`).
    grouped: ClassVar[bool] = False
    #: Terms that the value sums up one after the other, not in pairs.
    serial: ClassVar[int] = 0

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            value = getattr(self, name)
            real = isinstance(value, Real) and not isinstance(value, bool)
            if not real:
                raise ValueError(f"{name}={value!r}: the penalty must be a number, zero or more")
            # a float32 would not hold the largest float64; nor would any float some whole numbers
            if not 0 <= (value if isinstance(value, int) else float(value)) <= sys.float_info.max:
                shown = repr(value) if len(repr(value)) < 30 else f"{repr(value)[:20]}..."
                raise ValueError(f"{name}={shown}: the penalty must be finite, zero or more")
            object.__setattr__(self, name, float(value))

    # ---- what kind of penalty it is -----------------------------------------------------

    @property
    def quadratic(self) -> bool:
        """g is l2/2 |x|^2 and nothing else (0 too): differentiable, and finite everywhere."""
        return self.l1 == 0.0 and not self.positive

    @property
    def sparse(self) -> bool:
        """The prox makes exact zeros: solutions have a support."""
        return self.l1 > 0.0 or self.positive

    @property
    def has_threshold(self) -> bool:
        """There is an l1: zero coordinates stay zero under slopes of up to that size."""
        return self.l1 > 0.0

    @property
    def coercive(self) -> bool:
        """g grows without bound in every direction of its domain: P has a minimum, and 0 is inside
        the domain of g*, so that scaling makes every dual point feasible."""
        return self.l1 > 0.0 or self.l2 > 0.0

    @property
    def strong_convexity(self) -> float:
        """The largest lambda for which g - lambda/2 |x|^2 is convex; g* is 1/lambda-smooth."""
        return self.l2

    @property
    def arguments(self) -> tuple[float, float, bool]:
        """What kernels take."""
        return self.l1, self.l2, self.positive

    def by_column(self, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(l1, l2, lower, upper) of each column."""
        lower = 0.0 if self.positive else -np.inf
        return np.full(d, self.l1), np.full(d, self.l2), np.full(d, lower), np.full(d, np.inf)

    def uniformed(self) -> None:
        """It is uniform as it is; see :class:`.column_penalty.ColumnPenalty`."""

    @property
    def given(self) -> dict[str, Any]:
        """What it was made of, as users say it."""
        return {"l1": self.l1, "l2": self.l2, "positive": self.positive}

    @property
    def words(self) -> str:
        return f"l1={self.l1:g}, l2={self.l2:g}{', positive' * self.positive}"

    def plus_quadratic(self, mu: float) -> Penalty:
        """g(x) + mu/2 |x|^2; its ``conjugate_gradient(v)`` is argmin_x g(x) + mu/2 |x|^2 - v.x."""
        return Penalty(self.l1, self.l2 + mu, self.positive)

    # ---- values -------------------------------------------------------------------------

    def value(self, x: np.ndarray) -> float:
        if self.positive and np.any(x < 0.0):
            return np.inf
        total = self.l1 * float(np.abs(x).sum()) if self.l1 else 0.0  # 0 * inf is not 0
        return total + 0.5 * _scaled_square(x, self.l2) if self.l2 else total

    def magnitude(self, x: np.ndarray) -> float:
        """The sizes of what g(x) is made of: g of points outside the bounds, too."""
        return self.value(x if self.quadratic else np.abs(x))

    def reach(self, value: float) -> float:
        """A bound on |x|_2 of the points where l1 |x|_1 is at most ``value``."""
        return value / self.l1 if self.l1 > 0.0 else np.inf

    def prox(self, v: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        """argmin_x g(x) + |x - v|^2/(2 step); a step for each coordinate where it is an array."""
        high = step * self.l1
        shrunk = v - (np.minimum(v, high) if self.positive else np.clip(v, -high, high))
        return shrunk / (1.0 + step * self.l2)

    def excess(self, v: np.ndarray) -> np.ndarray:
        """How far each coordinate of ``v`` is beyond the threshold l1 (0 where it is not)."""
        if self.quadratic:
            return np.abs(v)
        return np.maximum((v if self.positive else np.abs(v)) - self.l1, 0.0)

    def conjugate(self, v: np.ndarray) -> float:
        if self.l2 > 0.0:
            beyond = v if self.quadratic else self.excess(v)
            return 0.5 * _scaled_square(beyond, 1.0 / self.l2)
        # A point scaled onto the boundary lands within rounding of it.
        most = np.max(v if self.positive else np.abs(v), initial=0.0)
        return 0.0 if most - self.l1 <= 1e-12 * self.l1 else np.inf

    def conjugate_gradient(self, v: np.ndarray) -> np.ndarray:
        """argmax_x x.v - g(x), where the strong convexity is positive."""
        if self.quadratic:  # (15,000 columns: 36 -> 6 us)
            return v / self.l2
        return np.sign(v) * self.excess(v) / self.l2

    def nearest(self, x: np.ndarray) -> np.ndarray:
        """x within the bounds."""
        return np.maximum(x, 0.0) if self.positive else x

    def outside(self, x: np.ndarray) -> np.ndarray | None:
        """The box that the certificate of x holds for: none is needed."""
        return None

    def box_cost(self, x: np.ndarray, u: np.ndarray) -> float:
        """What that box costs of D."""
        return 0.0

    # ---- zeros, and the domain of the conjugate -----------------------------------------

    def pull(self, u: np.ndarray) -> np.ndarray:
        """How strongly the slopes ``u`` of the loss pull zero coordinates away from zero."""
        return -u if self.positive else np.abs(u)

    def slack(self, u: np.ndarray) -> np.ndarray:
        """What each coordinate's :meth:`pull` may still grow by before x_j = 0 is not optimal.

        Negative where it is not.
        """
        return self.l1 - self.pull(u)

    def critical_l1(self, u: np.ndarray) -> float:
        """The smallest l1 that holds all of x at 0 against ``u``."""
        return float(np.max(self.pull(u), initial=0.0))

    def feasible_scale(self, u: np.ndarray) -> float:
        """The largest t <= 1 for which -t u is in the domain of the conjugate."""
        if self.l2 > 0.0:
            return 1.0
        least = self.critical_l1(u)
        return self.l1 / least if least > self.l1 else 1.0

    def overshoot(self, v: np.ndarray, slack: float) -> float:
        """How far beyond the domain of the conjugate, where l2 = 0, v may be that is known to
        within ``slack``: as a share of l1."""
        return (float(np.max(self.excess(v), initial=0.0)) + slack) / self.l1


def _scaled_square(x: np.ndarray, factor: float) -> float:
    """factor |x|^2, also where |x|^2 alone is beyond float64."""
    total = square_sum(x.ravel())
    if 1e-250 < total < np.inf:
        return factor * total
    size = float(np.abs(x).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return factor * total
    return float(np.square(x / size).sum()) * size * factor * size
