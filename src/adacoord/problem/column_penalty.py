r"""A penalty of its own for each column, and bounds.

.. math:: g(x) = \sum_j l_{1j} |x_j| + \tfrac{l_{2j}}{2} x_j^2, \qquad lower_j \le x_j \le upper_j

It answers what :class:`~adacoord.problem.penalties.Penalty` answers, which stays what it is for
one l1, one l2 and x >= 0 at most.  Per column the prox is ``clip(shrink(v, step l1_j)/(1 + step
l2_j), lower_j, upper_j)``, and the conjugate is attained at ``clip(shrink(v, l1_j)/l2_j, lower_j,
upper_j)``.

Where l2_j = 0 and a side is open, -u_j has to stay within l1_j on that side: dual points are scaled
for that, as for l1 alone.  With l1_j = 0 as well nothing but u_j = 0 would do, and no scaling gets
there: the certificate then holds for |x_j| <= B_j, a ``box`` far beyond any solution, which costs
B_j |u_j| of D and vanishes at the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .penalties import Penalty

#: The box over the size of x_j, or of what x_j could be.
FAR = 1000.0
#: What a dual point that was scaled onto its boundary may be beyond it by rounding.
ROUNDING = 1e-12
#: l1_j^2/l2_j that agree so far are those of one penalty in other units.
SAME = 1e-12


class Uniform(NamedTuple):
    """The penalty of t, with x = scale t."""

    penalty: Penalty
    scale: np.ndarray


@dataclass(frozen=True, eq=False)
class ColumnPenalty:
    """g(x) = sum_j l1_j |x_j| + l2_j/2 x_j^2 on lower <= x <= upper.

    All are arrays with a row per column; ``size`` says what x_j could be (the box is FAR times
    that, where there is need of one).
    """

    l1: np.ndarray
    l2: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    size: np.ndarray

    separable: ClassVar[bool] = True
    uniform: ClassVar[bool] = False
    grouped: ClassVar[bool] = False
    serial: ClassVar[int] = 0
    positive: ClassVar[bool] = False
    #: The box sees to it.
    coercive: ClassVar[bool] = True

    # ---- what kind of penalty it is -----------------------------------------------------

    @property
    def quadratic(self) -> bool:
        """g is a sum of l2_j/2 x_j^2 and nothing else: differentiable, and finite everywhere."""
        return not self.has_threshold and not self.bounded

    @property
    def absent(self) -> bool:
        """g = 0."""
        return self.quadratic and not (self.l2 > 0.0).any()

    @property
    def bounded(self) -> bool:
        """Some x_j has an end."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @property
    def sparse(self) -> bool:
        """The prox makes exact zeros, or stops at bounds."""
        return not self.quadratic

    @property
    def has_threshold(self) -> bool:
        return bool((self.l1 > 0.0).any())

    @property
    def strong_convexity(self) -> float:
        return float(self.l2.min())

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """What kernels take."""
        return self.l1, self.l2, (self.lower, self.upper)

    def by_column(self, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(l1, l2, lower, upper) of each column."""
        return self.l1.ravel(), self.l2.ravel(), self.lower.ravel(), self.upper.ravel()

    @property
    def given(self) -> dict[str, Any]:
        """What it was made of, as users say it: numbers where all columns have the same."""
        found = {name: _single(getattr(self, name)) for name in ("l1", "l2", "lower", "upper")}
        ends = {
            name: value
            for name, value in found.items()
            if not np.isscalar(value) or np.isfinite(value)
        }
        return {"positive": False, **ends}

    @property
    def words(self) -> str:
        """What it is, for people."""
        parts = [_words(name, getattr(self, name)) for name in ("l1", "l2")]
        for name, none in (("lower", -np.inf), ("upper", np.inf)):
            if (getattr(self, name) != none).any():
                parts.append(_words(name, getattr(self, name)))
        return ", ".join(parts)

    def plus_quadratic(self, mu: float) -> ColumnPenalty:
        return replace(self, l2=self.l2 + mu)

    def uniformed(self) -> Uniform | None:
        """The same as one l1 and one l2 in other units of the columns, where there are such.

        With x_j = s_j t_j the weights become l1_j s_j and l2_j s_j^2: an l1 or an l2 alone, if no
        column goes without, and both where l1_j^2/l2_j is the same for all.
        """
        l1, l2 = self.l1, self.l2
        free = bool((self.upper == np.inf).all())
        positive = bool((self.lower == 0.0).all())
        if not free or not (positive or (self.lower == -np.inf).all()):
            return None
        if (l1 > 0.0).all():
            first = float(np.exp(np.log(l1).mean()))
            scale = first / l1
            rest = l2 * scale * scale
            second = float(rest.mean())
            if np.abs(rest - second).max() > SAME * second:
                return None
            return Uniform(Penalty(first, second, positive), scale)
        if (l1 == 0.0).all() and (l2 > 0.0).all():
            second = float(np.exp(np.log(l2).mean()))
            return Uniform(Penalty(0.0, second, positive), np.sqrt(second / l2))
        return None

    # ---- values -------------------------------------------------------------------------

    def nearest(self, x: np.ndarray) -> np.ndarray:
        """x within the bounds."""
        return np.minimum(np.maximum(x, self.lower), self.upper)

    def value(self, x: np.ndarray) -> float:
        if np.any(x < self.lower) or np.any(x > self.upper):
            return np.inf
        return self.magnitude(x)

    def magnitude(self, x: np.ndarray) -> float:
        size = np.abs(x)
        return float(np.sum(size * (self.l1 + 0.5 * self.l2 * size)))

    def reach(self, value: float) -> float:
        least = float(self.l1.min())
        return value / least if least > 0.0 else np.inf

    def prox(self, v: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        high = step * self.l1
        return self.nearest((v - np.clip(v, -high, high)) / (1.0 + step * self.l2))

    # ---- the conjugate ------------------------------------------------------------------

    @cached_property
    def box(self) -> np.ndarray:
        """B_j for columns that have no penalty and an open side; inf for all others."""
        bare = _bare(self.l1, self.l2, self.lower, self.upper)
        ends = [np.where(np.isfinite(e), np.abs(e), 0.0) for e in (self.lower, self.upper)]
        size = np.maximum(self.size, np.maximum(*ends))
        return np.where(bare, FAR * size, np.inf)

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds, and the ends of the box where these are open."""
        return np.maximum(self.lower, -self.box), np.minimum(self.upper, self.box)

    def excess(self, v: np.ndarray) -> np.ndarray:
        """How far v is beyond l1, on sides where neither l2 nor a bound or box holds x; or 0."""
        return np.maximum(self._beyond(v), 0.0)

    def _beyond(self, v: np.ndarray) -> np.ndarray:
        """The same, below 0 where v is within; -inf for columns that are held on both sides."""
        low, high = self._ends
        open_up = (self.l2 == 0.0) & (high == np.inf)
        open_down = (self.l2 == 0.0) & (low == -np.inf)
        pull = np.maximum(np.where(open_up, v, -np.inf), np.where(open_down, -v, -np.inf))
        return pull - self.l1

    def conjugate(self, v: np.ndarray) -> float:
        return np.inf if (self.excess(v) > ROUNDING * self.l1).any() else self.attained(v)

    def attained(self, v: np.ndarray) -> float:
        """The conjugate, where v is in its domain but for rounding."""
        x = self.conjugate_gradient(v)
        size = np.abs(x)
        return float(np.sum(size * (np.sign(x) * v - self.l1 - 0.5 * self.l2 * size)))

    def conjugate_gradient(self, v: np.ndarray) -> np.ndarray:
        """argmax_x x.v - g(x) within the bounds (and the box), at feasible v."""
        beyond = np.maximum(np.abs(v) - self.l1, 0.0)
        held = self.l2 > 0.0
        with np.errstate(over="ignore"):
            size = np.divide(beyond, self.l2, out=np.zeros(np.shape(beyond)), where=held)
        size = np.where(~held & (beyond > 0.0), np.inf, size)
        low, high = self._ends
        x = np.minimum(np.maximum(np.sign(v) * size, low), high)
        # what is left without an end is within rounding of its threshold
        return np.where(np.isinf(x), self.nearest(np.zeros(x.shape)), x)

    def outside(self, x: np.ndarray) -> np.ndarray | None:
        """The box that holds for x as well, FAR beyond it; None where no column needs one."""
        if not np.isfinite(self.box).any():
            return None
        size = np.abs(x) if x.ndim == 1 else np.abs(x).max(axis=1, keepdims=True)  # of all classes
        return np.maximum(self.box, FAR * size)

    def box_cost(self, x: np.ndarray, u: np.ndarray) -> float:
        """What the box of x costs more than the box: of D, at the average u."""
        wide = self.outside(x)
        if wide is None:
            return 0.0
        more = np.where(wide > self.box, wide, 0.0) - np.where(wide > self.box, self.box, 0.0)
        up, down = np.where(self.upper == np.inf, -u, 0.0), np.where(self.lower == -np.inf, u, 0.0)
        return float(np.sum(more * np.maximum(np.maximum(up, down), 0.0)))

    # ---- zeros, and the domain of the conjugate -----------------------------------------

    def pull(self, u: np.ndarray) -> np.ndarray:
        """How strongly ``u`` pulls zero coordinates to where they may go."""
        up, down = np.where(self.upper > 0.0, -u, -np.inf), np.where(self.lower < 0.0, u, -np.inf)
        return np.maximum(up, down)

    def slack(self, u: np.ndarray) -> np.ndarray:
        room = self.l1 - self.pull(u)
        return np.where((self.lower > 0.0) | (self.upper < 0.0), -np.inf, room)

    def critical_l1(self, u: np.ndarray) -> float:
        """The factor of all l1_j that holds all of x at 0 against ``u``."""
        pull = np.maximum(self.pull(u), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(pull > 0.0, pull / self.l1, 0.0), initial=0.0))

    def feasible_scale(self, u: np.ndarray) -> float:
        beyond = self.excess(-u)
        worst = beyond > 0.0
        if not worst.any():
            return 1.0
        l1 = np.broadcast_to(self.l1, beyond.shape)[worst]
        return float(np.min(l1 / (l1 + beyond[worst])))

    def overshoot(self, v: np.ndarray, slack: np.ndarray) -> float:
        """How far beyond the domain of the conjugate v may be that is known to within ``slack``.

        As a share of l1, the largest of the columns that nothing else holds.
        """
        beyond = self._beyond(v) + slack
        worst = beyond > 0.0  # none that goes without an l1: a box holds these
        return float(np.max(beyond[worst] / np.broadcast_to(self.l1, v.shape)[worst], initial=0.0))


def _bare(l1: np.ndarray, l2: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Columns without a penalty, and with an open side."""
    return (l1 == 0.0) & (l2 == 0.0) & ((lower == -np.inf) | (upper == np.inf))


def _words(name: str, values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return f"{name}={low:g}" if low == high else f"{name}={low:g}..{high:g}"


def as_penalty(
    l1: Any,
    l2: Any,
    positive: bool,
    lower: Any,
    upper: Any,
    d: int,
    size: Callable[[], np.ndarray],
    classes: bool,
) -> Penalty | ColumnPenalty:
    """The penalty of d columns, a uniform one where it is; ``size`` says what x_j could be."""
    l1, l2 = weights(l1, "l1", d), weights(l2, "l2", d)
    lower, upper = ends(lower, upper, d)
    if positive:
        if np.any(np.asarray(upper) < 0.0):
            raise ValueError(
                f"upper has the value {np.min(upper):g}: with positive=True no coefficient is "
                "below 0; leave positive out, or raise upper"
            )
        lower = np.maximum(lower, 0.0)
    l1, l2, lower, upper = (_single(a) for a in (l1, l2, lower, upper))
    same = all(np.ndim(a) == 0 for a in (l1, l2, lower, upper))
    if same and upper == np.inf and lower in (0.0, -np.inf):
        return Penalty(l1, l2, bool(lower == 0.0))
    shape = (d, 1) if classes else (d,)
    arrays = [np.array(np.broadcast_to(a, d), dtype=np.float64) for a in (l1, l2, lower, upper)]
    # to know the sizes takes a pass over the data: only for columns whose box they make
    sizes = size() if _bare(*arrays).any() else np.ones(d)
    return ColumnPenalty(*(a.reshape(shape) for a in (*arrays, sizes)))


def _single(values: Any) -> Any:
    """One number, where all are the same."""
    array = np.asarray(values)
    return float(array.flat[0]) if array.size and (array == array.flat[0]).all() else values


def weights(value: Any, name: str, d: int) -> Any:
    """A number as it is; an array of d weights, zero or more."""
    if np.ndim(value) == 0:
        return value  # Penalty says what is wrong with it
    array = _as_columns(value, name, d)
    bad = np.flatnonzero(~((array >= 0.0) & (array < np.inf)))
    if bad.size:
        raise ValueError(
            f"{name} has the value {array[bad[0]]:g} at position {bad[0]}: the weight of a column "
            "must be finite, zero or more (0 for a column that is not penalised)"
        )
    return array


def ends(lower: Any, upper: Any, d: int) -> tuple[Any, Any]:
    """Bounds as numbers or arrays of d, in order; None is no bound."""
    found = []
    for name, value, none in (("lower", lower, -np.inf), ("upper", upper, np.inf)):
        if value is None:
            value = none
        array = _as_columns(value, name, d) if np.ndim(value) else _number(value, name)
        bad = np.flatnonzero(np.isnan(array) | (np.asarray(array) == -none))
        if bad.size:
            raise ValueError(
                f"{name} has the value {np.ravel(array)[bad[0]]:g} at position {bad[0]}: a bound "
                f"must be a number, or {none:g} for none"
            )
        found.append(array)
    low, high = (np.broadcast_to(a, d) for a in found)
    crossed = np.flatnonzero(low > high)
    if crossed.size:
        j = crossed[0]
        raise ValueError(
            f"lower={low[j]:g} is above upper={high[j]:g} at position {j}: no coefficient is "
            "within such bounds; exchange them"
        )
    return found[0], found[1]


def _number(value: Any, name: str) -> np.ndarray:
    if isinstance(value, (bool, np.bool_)) or np.asarray(value).dtype.kind not in "fiu":
        raise ValueError(f"{name}={value!r}: a bound must be a number, an array of them, or None")
    return np.asarray(value, dtype=np.float64)


def _as_columns(value: Any, name: str, d: int) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read as an array of numbers: {error}") from None
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} has dtype {array.dtype}: it must hold real numbers")
    if array.shape != (d,):
        raise ValueError(
            f"{name} has shape {array.shape}: A has {d} columns, so {name} must be a number or "
            f"have shape ({d},)"
        )
    return array.astype(np.float64)
