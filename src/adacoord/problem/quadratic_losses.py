"""The nine losses whose conjugate is a quadratic on an interval: the table of :mod:`.losses`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.codes import MARGIN, QUADRATIC
from .loss import Loss, Units, require
from .row_sums import compiled


class Quadratic(Loss):
    """phi*(v) = bv + epsilon |v| + alpha v^2/2 on an interval around 0."""

    code = QUADRATIC
    task = "regression"

    @property
    def gamma(self) -> float:
        return self.constants[0]

    @property
    def straight(self) -> bool:
        return max(map(abs, self.constants[2:])) < np.inf

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = np.shape(b)
        lo, hi = (np.array(np.broadcast_to(end, shape)) for end in self._ends(b))
        return lo, hi

    def _ends(self, b: np.ndarray) -> tuple[Any, Any]:
        _, _, lo, hi = self.constants
        if self.code != MARGIN:
            return lo, hi
        own = np.asarray(b) > 0.0
        return np.where(own, lo, -hi), np.where(own, hi, -lo)

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._slope(z - b, b)

    def _slope(self, r: np.ndarray, b: np.ndarray) -> np.ndarray:
        """phi' of the residual r = z - b."""
        alpha, epsilon, lo, hi = self.constants
        if epsilon > 0.0:
            r = np.sign(r) * np.maximum(np.abs(r) - epsilon, 0.0)
        if alpha == 0.0:
            lo, hi = self._ends(b)
            return np.where(r > 0.0, hi, np.where(r < 0.0, lo, 0.0))
        if lo == -np.inf and hi == np.inf:
            return r / alpha if alpha != 1.0 else r
        lo, hi = self._ends(b)
        return np.minimum(np.maximum(r / alpha, lo), hi)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        alpha, epsilon, lo, hi = self.constants
        r = z - b
        if epsilon == 0.0 and lo == -np.inf and hi == np.inf:
            r *= r
            r *= 0.5 / alpha
            return r
        if alpha == 0.0 and (self.code == MARGIN or epsilon == 0.0):
            if self.code == MARGIN:  # (hinge, 50,000 rows: .20 -> .06 ms)
                r *= b
            return np.maximum(lo * r, hi * r)
        v = self._slope(r, b)
        values = v * (r - 0.5 * alpha * v)  # no inf - inf for large z
        return values - epsilon * np.abs(v) if epsilon > 0.0 else values

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        alpha, epsilon, _, _ = self.constants
        values = 0.5 * alpha * v
        values += b
        values *= v
        return values + epsilon * np.abs(v) if epsilon > 0.0 else values

    def units(self, width: int, reach: float) -> Units:
        # v is where v r - epsilon |v| - alpha v^2/2 is largest: what is wrong with it is of second
        # order.  r, the products and the sums make 12 |v r|, and phi >= |v r|/2 - epsilon |v|.
        alpha, epsilon, _, _ = self.constants
        return Units(24.0, 24.0 * epsilon, 7.0, (0.0, 1.0, 0.5 * alpha, epsilon))


class Margin(Quadratic):
    code = MARGIN
    task = "classification"


def _require_tube(epsilon: float) -> None:
    require(
        epsilon,
        lambda v: 0 <= v < np.inf,
        "epsilon",
        "the half-width of the tube must be zero or more, and finite",
    )


@dataclass(frozen=True)
class Squared(Quadratic):
    """(z-b)^2 / 2."""

    name = "squared"
    constants = (1.0, 0.0, -np.inf, np.inf)

    # in one pass, and no vector on the way (40,000 rows: P .060 -> .006 ms, D .055 -> .010)
    def value_sum(self, z: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None) -> float:
        if weights is not None:
            return super().value_sum(z, b, weights)
        return 0.5 * compiled().squared_distance(np.ascontiguousarray(z), b)

    def conjugate_sum(
        self, v: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None
    ) -> float:
        if weights is not None:
            return super().conjugate_sum(v, b, weights)
        v, product_sum = np.ascontiguousarray(v), compiled().product_sum
        total = 0.5 * product_sum(v, v) + product_sum(v, b)
        return math.inf if math.isnan(total) else total


@dataclass(frozen=True)
class SmoothHinge(Margin):
    """The hinge with its kink replaced by a parabola of width ``mu`` (1 in the papers)."""

    mu: float = 1.0
    name = "smooth_hinge"
    parameter = "mu"

    def __post_init__(self) -> None:
        require(
            self.mu,
            lambda v: 0 < v < np.inf,
            "mu",
            'the smoothing width must be positive; for mu=0 use loss="hinge"',
        )

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (float(self.mu), 0.0, -1.0, 0.0)


@dataclass(frozen=True)
class Hinge(Margin):
    """max(0, 1-bz), the loss of the support vector machine."""

    name = "hinge"
    constants = (0.0, 0.0, -1.0, 0.0)


@dataclass(frozen=True)
class SquaredHinge(Margin):
    """max(0, 1-bz)^2."""

    name = "squared_hinge"
    constants = (0.5, 0.0, -np.inf, 0.0)


@dataclass(frozen=True)
class Huber(Quadratic):
    """r^2/2 for |r| <= delta, delta |r| - delta^2/2 beyond, with r = z-b."""

    delta: float = 1.35
    name = "huber"
    parameter = "delta"

    def __post_init__(self) -> None:
        require(
            self.delta,
            lambda v: 0 < v < np.inf,
            "delta",
            'the threshold must be positive and finite; for no threshold use loss="squared"',
        )

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (1.0, 0.0, -float(self.delta), float(self.delta))


@dataclass(frozen=True)
class EpsilonInsensitive(Quadratic):
    """max(0, |z-b| - epsilon), the loss of support vector regression."""

    epsilon: float = 0.1
    name = "epsilon_insensitive"
    parameter = "epsilon"

    def __post_init__(self) -> None:
        _require_tube(self.epsilon)

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (0.0, float(self.epsilon), -1.0, 1.0)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Quadratic):
    """max(0, |z-b| - epsilon)^2."""

    epsilon: float = 0.1
    name = "squared_epsilon_insensitive"
    parameter = "epsilon"

    def __post_init__(self) -> None:
        _require_tube(self.epsilon)

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (0.5, float(self.epsilon), -np.inf, np.inf)


@dataclass(frozen=True)
class Absolute(Quadratic):
    """|z-b|: median regression."""

    name = "absolute"
    constants = (0.0, 0.0, -1.0, 1.0)


@dataclass(frozen=True)
class Quantile(Quadratic):
    """q (b-z)+ + (1-q) (z-b)+: regression of the ``q``-th quantile (the pinball loss)."""

    q: float = 0.5
    name = "quantile"
    parameter = "q"

    def __post_init__(self) -> None:
        require(self.q, lambda v: 0 < v < 1, "q", "a quantile lies strictly between 0 and 1")

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (0.0, 0.0, -float(self.q), 1.0 - float(self.q))
