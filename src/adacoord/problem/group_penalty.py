r"""Groups of columns that are zero together.

.. math:: g(x) = l_{21} \sum_G w_G |x_G|_2 + l_1 |x|_1 + \tfrac{l_2}{2} |x|_2^2

The group lasso (Yuan and Lin 2006), the sparse group lasso with an l1 (Simon, Friedman, Hastie and
Tibshirani 2013), and, where x has a column per target or class, the penalty of rows of the
multitask lasso: x_G holds all of them.  It answers what
:class:`~adacoord.problem.penalties.Penalty` answers.  With S the soft threshold at l1 and
t_G = l21 w_G,

======================  =====================================================================
prox                    S(v) of each coordinate at step l1, then (1 - step t_G/|S|)_+ S of each
                        group, over 1 + step l2
conjugate               g*(v) = sum_G max(|S(v_G)|_2 - t_G, 0)^2 / (2 l2); for l2 = 0 the
                        indicator of |S(v_G)|_2 <= t_G
slack, excess           t_G - |S(u_G)|_2 of each group, and what it is below 0
feasible_scale          the largest s <= 1 with |S(s u_G)|_2 <= t_G: a convex function of s, by
                        Newton's method from above
======================  =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .penalties import _scaled_square

#: What a dual point that was scaled onto its boundary may be beyond it by rounding.
ROUNDING = 1e-12
#: Half an ulp of 1, with what sums of squares and their root add to it per term.
ROUND = 2.0**-52
#: Numbers whose squares stay well within float64, whatever their sums.
TINY, HUGE = 1e-100, 1e100
#: Targets or classes of a column that are summed one after the other: what bounds the rounding of P
#: counts with 35 roundings at least.
FEW = 32
#: Newton steps at most; from above they are monotone, and quadratic at the end.
STEPS = 60


@dataclass(frozen=True, eq=False)
class GroupPenalty:
    """g(x) = l21 sum_G w_G |x_G|_2 + l1 |x|_1 + l2/2 |x|^2.

    ``index`` is the group of each column, 0 .. m-1; ``weights`` are w_G.
    """

    index: np.ndarray
    weights: np.ndarray
    l21: float
    l1: float = 0.0
    l2: float = 0.0

    positive: ClassVar[bool] = False
    separable: ClassVar[bool] = False
    uniform: ClassVar[bool] = True
    grouped: ClassVar[bool] = True

    # ---- what kind of penalty it is -----------------------------------------------------

    @property
    def given(self) -> dict[str, Any]:
        """What it was made of, as users say it."""
        weights = {"l21": self.l21, "l1": self.l1, "l2": self.l2, "positive": False}
        return {"groups": self.index, "group_weights": self.weights, **weights}

    @property
    def quadratic(self) -> bool:
        return not self.has_threshold

    @property
    def sparse(self) -> bool:
        return self.has_threshold

    @property
    def has_threshold(self) -> bool:
        return self.l21 > 0.0 or self.l1 > 0.0

    @property
    def coercive(self) -> bool:
        """g grows in every direction."""
        return self.l1 > 0.0 or self.l2 > 0.0 or bool((self.thresholds > 0.0).all())

    @property
    def strong_convexity(self) -> float:
        return self.l2

    @cached_property
    def thresholds(self) -> np.ndarray:
        """t_G = l21 w_G."""
        return self.l21 * self.weights

    @property
    def arguments(self) -> tuple[np.ndarray, float, float]:
        """What the kernels of groups take."""
        return self.thresholds, self.l1, self.l2

    def uniformed(self) -> None:
        """No change of units takes groups away."""

    @property
    def words(self) -> str:
        return f"{self.weights.size} groups, l21={self.l21:g}, l1={self.l1:g}, l2={self.l2:g}"

    def plus_quadratic(self, mu: float) -> GroupPenalty:
        return replace(self, l2=self.l2 + mu)

    @cached_property
    def _each(self) -> bool:
        """Whether each column is a group, in this order."""
        return np.array_equal(self.index, np.arange(self.weights.size))

    # ---- values -------------------------------------------------------------------------

    def _squares(self, x: np.ndarray) -> np.ndarray:
        """Sums of squares of each group."""
        if x.ndim == 1:
            rows = np.square(x)
        elif x.shape[1] <= FEW:  # one after the other, which is faster for few
            rows = np.einsum("jk,jk->j", x, x)
        else:
            rows = np.square(x).sum(axis=1)
        return rows if self._each else np.bincount(self.index, rows, self.weights.size)

    def norms(self, x: np.ndarray) -> np.ndarray:
        """|x_G|_2 of each group, also where squares leave float64."""
        if x.ndim > 1:  # a look at the squares says as much
            squares = self._squares(x)
            if TINY**2 < squares.max(initial=0.0) < HUGE**2:
                return np.sqrt(squares)
        size = float(max(x.max(initial=0.0), -x.min(initial=0.0)))
        if TINY < size < HUGE or not 0.0 < size < np.inf:
            return np.sqrt(self._squares(x))
        return size * np.sqrt(self._squares(x / size))

    def _thresholded(self, v: np.ndarray) -> np.ndarray:
        return v - np.clip(v, -self.l1, self.l1) if self.l1 else v

    def _per_column(self, values: np.ndarray, like: np.ndarray) -> np.ndarray:
        """The value of the group of each coordinate."""
        return values[self.index].reshape((-1,) + (1,) * (like.ndim - 1))

    def value(self, x: np.ndarray) -> float:
        total = float(np.sum(self.thresholds * self.norms(x))) if self.l21 else 0.0
        if self.l1:
            total += self.l1 * float(np.abs(x).sum())
        return total + 0.5 * _scaled_square(x, self.l2) if self.l2 else total

    def magnitude(self, x: np.ndarray) -> float:
        return self.value(x)

    @cached_property
    def serial(self) -> int:
        """Terms that a norm sums up one after the other: the columns of the largest group."""
        return int(np.bincount(self.index).max())

    def reach(self, value: float) -> float:
        least = float(self.thresholds.min()) + self.l1
        return value / least if least > 0.0 else np.inf

    def prox(self, v: np.ndarray, step: Any) -> np.ndarray:
        """argmin_x g(x) + |x - v|^2/(2 step), with one step for all coordinates."""
        shrunk = v - np.clip(v, -step * self.l1, step * self.l1)
        norms = self.norms(shrunk)
        left = np.maximum(norms - step * self.thresholds, 0.0)
        share = np.divide(left, norms, out=np.zeros_like(left), where=norms > 0.0)
        return self._per_column(share, v) * shrunk / (1.0 + step * self.l2)

    def slack(self, u: np.ndarray) -> np.ndarray:
        """What the pull of each group may still grow by before x_G = 0 is not optimal."""
        return self.thresholds - self.norms(self._thresholded(u))

    def excess(self, v: np.ndarray) -> np.ndarray:
        """How far each group of ``v`` is beyond its thresholds (0 where it is not)."""
        return np.maximum(-self.slack(v), 0.0)

    def conjugate(self, v: np.ndarray) -> float:
        excess = self.excess(v)
        if self.l2 > 0.0:
            return 0.5 * _scaled_square(excess, 1.0 / self.l2)
        beyond = excess > ROUNDING * (self.thresholds + self.l1)
        return np.inf if beyond.any() else 0.0

    def conjugate_gradient(self, v: np.ndarray) -> np.ndarray:
        """argmax_x x.v - g(x), where l2 > 0."""
        shrunk = self._thresholded(v)
        norms = self.norms(shrunk)
        left = np.maximum(norms - self.thresholds, 0.0)
        share = np.divide(left, norms, out=np.zeros_like(left), where=norms > 0.0)
        return self._per_column(share, v) * shrunk / self.l2

    def overshoot(self, v: np.ndarray, slack: float) -> float:
        """How far beyond the domain of the conjugate, where l2 = 0, v may be whose columns are
        known to within ``slack``: as a share of the thresholds.

        |S(v_G)| <= t_G + e makes v/(1 + e/t_G) feasible: S at l1 of v/s is that at s l1, over s.
        """
        counts = np.bincount(self.index, minlength=self.weights.size)
        norms = self.norms(v)
        known = ROUND * (counts + 8.0) * norms + slack * np.sqrt(counts)
        held = np.where(self.thresholds > 0.0, self.thresholds, self.l1)
        excess = self.excess(v) if self.l1 else np.maximum(norms - self.thresholds, 0.0)
        return float(np.max((excess + known) / held, initial=0.0))

    def nearest(self, x: np.ndarray) -> np.ndarray:
        return x

    def outside(self, x: np.ndarray) -> np.ndarray | None:
        return None

    def box_cost(self, x: np.ndarray, u: np.ndarray) -> float:
        return 0.0

    # ---- the domain of the conjugate ----------------------------------------------------

    def critical_l1(self, u: np.ndarray) -> float:
        """The factor of l21 and l1 that holds all of x at 0 against ``u``."""
        scale = self._scale(u)
        return 0.0 if scale == np.inf else (1.0 / scale if scale > 0.0 else np.inf)

    def feasible_scale(self, u: np.ndarray) -> float:
        if self.l2 > 0.0:
            return 1.0
        if self.l1 == 0.0:
            norms = self.norms(u)
            beyond = norms > self.thresholds
            return float(np.min(self.thresholds[beyond] / norms[beyond], initial=1.0))
        if not (self.slack(u) < 0.0).any():
            return 1.0
        return min(self._scale(u), 1.0)

    def _scale(self, u: np.ndarray) -> float:
        """The largest s with |S(s u_G)|_2 <= t_G of all groups; inf where u = 0."""
        size = np.abs(u)
        if not size.any():
            return np.inf
        if self.l1 == 0.0:
            norms = self.norms(u)
            pulled = norms > 0.0
            return float(np.min(self.thresholds[pulled] / norms[pulled]))
        largest = np.zeros(self.weights.size)
        np.maximum.at(largest, self.index, size.reshape(self.index.size, -1).max(axis=1))
        # at this s the largest coordinate alone is at the threshold: from above
        with np.errstate(divide="ignore"):
            s = (self.l1 + self.thresholds) / largest
        pulled = largest > 0.0
        s[~pulled] = np.inf
        held = pulled & (self.thresholds > 0.0)  # without one the largest coordinate is all
        for _ in range(STEPS):
            now = self._per_column(np.where(held, s, 0.0), size)
            left = np.maximum(now * size - self.l1, 0.0)
            norms = self.norms(left)
            beyond = held & (norms > self.thresholds)
            if not beyond.any():
                break
            parts = (left * size).reshape(self.index.size, -1).sum(axis=1)
            slope = np.bincount(self.index, parts, self.weights.size)[beyond] / norms[beyond]
            step = (norms[beyond] - self.thresholds[beyond]) / slope
            before = s[beyond]
            s[beyond] = before - step
            if np.all(step <= 4e-16 * before):
                break
        return float(s.min())


def as_groups(groups: Any, group_weights: Any, l21: Any, l1: Any, l2: Any, d: int) -> GroupPenalty:
    """The penalty of such groups, or a sentence that says what is wrong with them."""
    index = group_index(groups, d)
    m = int(index.max()) + 1
    weights = np.sqrt(np.bincount(index)) if group_weights is None else _weights(group_weights, m)
    numbers = {"l21": l21, "l1": l1, "l2": l2}
    for name, value in numbers.items():
        if np.ndim(value) or isinstance(value, (bool, np.bool_)) or _kind(value) not in "fiu":
            raise ValueError(f"{name}={value!r}: with groups it must be a number, zero or more")
        if not 0.0 <= float(value) < np.inf:
            raise ValueError(f"{name}={value!r}: the penalty must be finite, zero or more")
        numbers[name] = float(value)
    if not weights.all() and numbers["l1"] == numbers["l2"] == 0.0 and numbers["l21"] > 0.0:
        raise ValueError(
            f"group_weights has the value 0 at position {int(np.argmin(weights))}: without an l1 "
            "or an l2 that group has no penalty, and no certificate; give it a positive weight, or "
            "add a small l2"
        )
    return GroupPenalty(index, weights, **numbers)


def group_index(groups: Any, d: int) -> np.ndarray:
    """The group of each column as a number 0 .. m-1, in the order of the sorted labels."""
    try:
        labels = np.asarray(groups)
    except ValueError as error:
        raise ValueError(f"groups cannot be read as an array of labels: {error}") from None
    if labels.shape != (d,):
        raise ValueError(
            f"groups has shape {labels.shape}: A has {d} columns, so groups must hold a label for "
            f"each, and have shape ({d},)"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        j = int(np.argmin(np.isfinite(labels)))
        raise ValueError(
            f"groups has the value {labels[j]} at position {j}: every column needs a label; give "
            "a column that belongs to no other a label of its own"
        )
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    if labels.dtype.kind not in "fiubUS":
        raise ValueError(
            f"groups has dtype {labels.dtype}: labels must be numbers or strings, one a column"
        )
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _kind(value: Any) -> str:
    return np.asarray(value).dtype.kind


def _weights(group_weights: Any, m: int) -> np.ndarray:
    weights = np.asarray(group_weights)
    if weights.dtype.kind not in "fiu" or weights.shape != (m,):
        raise ValueError(
            f"group_weights has shape {weights.shape} and dtype {weights.dtype}: there are {m} "
            f"groups, so it must hold numbers of shape ({m},), in the order of the sorted labels"
        )
    weights = weights.astype(np.float64)
    bad = np.flatnonzero(~((weights >= 0.0) & (weights < np.inf)))
    if bad.size:
        raise ValueError(
            f"group_weights has the value {weights[bad[0]]:g} at position {bad[0]}: the weight of "
            "a group must be finite, zero or more"
        )
    return weights
