"""Losses of exp(z), the log link: Poisson's, gamma's, and Tweedie's between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.codes import GAMMA, POISSON, TWEEDIE
from .entropic_losses import entropy
from .loss import Loss, Units, require

#: Offsets whose exponential is a weight, or a factor of targets, that float64 holds with room.
LARGEST_OFFSET = 300.0
#: The digits of an argument that only bounds what rounding hides, and what they may add to sizes:
#: exp takes at most 700 times their relative error.
ROUGHLY, MORE = 1e-6, 1.001


@dataclass(frozen=True)
class LogLink(Loss):
    """Half a unit deviance of exp(z), up to a constant; neither smooth nor Lipschitz."""

    differentiable = True  # though no 1/gamma bounds its curvature
    log_link = True
    task = "count"
    unbounded = True
    gamma = 0.0

    def start(self, b: np.ndarray) -> np.ndarray:
        """phi'(0): the slope of an entropy is infinite at the end of its domain."""
        return 1.0 - np.asarray(b, dtype=np.float64)


@dataclass(frozen=True)
class Poisson(LogLink):
    """exp(z) - bz for counts ``b``."""

    name = "poisson"
    code = POISSON
    constants = (0.0, 0.0, 0.0, 0.0)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # an overflow is an honest inf here
            return np.exp(z) - b * z

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(z) - b

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = np.asarray(b, dtype=np.float64)
        return -b, np.full(b.shape, np.inf)

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        m = v + b
        return entropy(m) - m

    def without_offset(
        self, b: np.ndarray, offset: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None] | None:
        if np.abs(offset).max() > LARGEST_OFFSET:
            return None
        factor = np.exp(offset)
        return b / factor, factor

    def units(self, width: int, reach: float) -> Units:
        # m itself is rounded, which moves phi* by |log m| of that
        return Units(12.0, 0.0, 14.0, (0.0, 0.0, 0.0, 0.0))

    def sizes(self, z: np.ndarray, v: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        with np.errstate(over="ignore"):
            values = np.exp(z) + np.abs(b * z)
        m = v + b
        return values, np.abs(entropy(m)) + m, np.abs(entropy(b)) + b


@dataclass(frozen=True)
class Gamma(LogLink):
    """z + b exp(-z) for targets ``b`` > 0: Poisson's loss of the count 1 at log b - z."""

    name = "gamma"
    code = GAMMA
    task = "positive"
    constants = (0.0, 0.0, 0.0, 0.0)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return z + b * np.exp(-z)

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return 1.0 - b * np.exp(-z)

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = np.shape(b)
        return np.full(shape, -np.inf), np.ones(shape)

    def _ends(self, b: np.ndarray) -> tuple[Any, Any]:
        return -np.inf, 1.0

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        m = 1.0 - v
        return entropy(m) - m * (1.0 + np.log(b))

    def without_offset(
        self, b: np.ndarray, offset: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None] | None:
        if np.abs(offset).max() > LARGEST_OFFSET:
            return None
        return b * np.exp(-offset), None

    def units(self, width: int, reach: float) -> Units:
        # m itself is rounded, which moves phi* by |log m - log b| of that
        return Units(14.0, 0.0, 24.0, (0.0, 0.0, 0.0, 0.0))

    def sizes(self, z: np.ndarray, v: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        with np.errstate(over="ignore"):
            values = np.abs(z) + b * np.exp(-z)
        m, least = 1.0 - v, 1.0 + np.abs(np.log(b))
        return values, np.abs(entropy(m)) + m * least, least


@dataclass(frozen=True)
class Tweedie(LogLink):
    """b exp((1-p)z)/(p-1) + exp((2-p)z)/(2-p) for ``b`` >= 0 and 1 < p = ``power`` < 2.

    Between Poisson's loss (p = 1) and gamma's (p = 2): of sums of a Poisson number of gamma
    variates, such as the claims of a year.
    """

    power: float = 1.5
    name = "tweedie"
    code = TWEEDIE
    parameter = "power"

    def __post_init__(self) -> None:
        require(
            self.power,
            lambda v: 1 < v < 2,
            "power",
            'it must lie strictly between 1 and 2; use loss="poisson" for 1, "gamma" for 2',
        )

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (float(self.power), 0.0, 0.0, 0.0)

    def _parts(self, z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """b exp((1-p)z), which is 0 for b = 0 wherever z is, and exp((2-p)z)."""
        with np.errstate(over="ignore", invalid="ignore"):
            falling = np.where(b > 0.0, b * np.exp((1.0 - self.power) * z), 0.0)
            return falling, np.exp((2.0 - self.power) * z)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        falling, rising = self._parts(z, b)
        return falling / (self.power - 1.0) + rising / (2.0 - self.power)

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        falling, rising = self._parts(z, b)
        return rising - falling

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = np.asarray(b, dtype=np.float64)
        return np.where(b > 0.0, -np.inf, 0.0), np.full(b.shape, np.inf)

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        p = self.power
        log_b = np.log(np.where(b > 0.0, b, 1.0))
        unit = np.exp((2.0 - p) * log_b)  # phi' in units of this is a function of z - log b
        t = _tweedie_argument(v / unit, p)
        values = v * (log_b + t)
        values -= unit * (np.exp((1.0 - p) * t) / (p - 1.0) + np.exp((2.0 - p) * t) / (2.0 - p))
        zero = b == 0.0
        if np.any(zero):
            bounded = np.maximum(v, 0.0)
            values = np.where(zero, (entropy(bounded) - bounded) / (2.0 - p), values)
        return values

    def without_offset(
        self, b: np.ndarray, offset: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None] | None:
        if np.abs(offset).max() > LARGEST_OFFSET:
            return None
        return b * np.exp(-offset), np.exp((2.0 - self.power) * offset)

    def units(self, width: int, reach: float) -> Units:
        # p - 1 and 2 - p are exact; what multiplies them in exp is in the sizes
        return Units(24.0, 0.0, 40.0, (0.0, 0.0, 0.0, 0.0))

    def sizes(self, z: np.ndarray, v: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        p = self.power
        values = self.value(z, b) * (1.0 + np.abs(z))
        log_b = np.log(np.where(b > 0.0, b, 1.0))
        unit = np.exp((2.0 - p) * log_b)
        t = _tweedie_argument(v / unit, p, ROUGHLY)
        parts = np.exp((1.0 - p) * t) / (p - 1.0) + np.exp((2.0 - p) * t) / (2.0 - p)
        far = 1.0 + np.abs(log_b)
        conjugates = np.abs(v) * (np.abs(log_b) + np.abs(t)) + unit * parts * (far + np.abs(t))
        conjugates *= MORE
        least = unit * far / ((p - 1.0) * (2.0 - p))
        m = np.maximum(v, 0.0)
        zero = b == 0.0
        conjugates = np.where(zero, (np.abs(entropy(m)) + m) / (2.0 - p), conjugates)
        return values, conjugates, np.where(zero, 0.0, least)


def _tweedie_argument(q: np.ndarray, p: float, digits: float = 1e-17) -> np.ndarray:
    """The t with exp((2-p)t) - exp((1-p)t) = q to relative ``digits``, by Newton's method.

    For q >= 0, with k = 2-p and m = p-1, it is the root of k t - log(q + exp(-m t)), which is
    concave with a slope between k and 1: steps from the left increase to it.  Otherwise -t is that
    for -q, with k and m exchanged.  The curvature is at most m^2/4: a step s leaves less than
    (m s)^2/(8 k).
    """
    up, size = q >= 0.0, np.abs(q)
    k, m = np.where(up, 2.0 - p, p - 1.0), np.where(up, p - 1.0, 2.0 - p)
    t = np.log1p(size) / (k + m / (1.0 + size))
    t = np.maximum(t, np.log(np.maximum(size, 1.0)) / k)
    for _ in range(100):
        e = np.exp(-m * t)
        # for small q the same with all its digits
        far = k * t - np.log(size + e)
        near = t - np.log1p(np.minimum(size, 1.0) * np.exp(np.minimum(m * t, 700.0)))
        step = np.where(size > 1.0, far, near) / (k + m * e / (size + e))
        t = t - step
        if np.all(np.square(m * step) <= 8.0 * digits * k * t):
            break
    return np.where(up, t, -t)
