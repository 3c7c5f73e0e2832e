"""Losses whose conjugate is an entropy: of two classes, of several, and of log cosh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels.codes import LOG_COSH, LOGISTIC, MULTINOMIAL
from .loss import Loss, Units
from .multiclass import from_simplex

#: The least normal number, and the largest below 1: where logarithms would be infinite.
TINY, BELOW_1 = float(np.finfo(np.float64).tiny), 1.0 - 2.0**-53


def entropy(q: np.ndarray) -> np.ndarray:
    """q log q for q >= 0, 0 at 0."""
    return q * np.log(np.maximum(q, TINY))


def entropy_from_1(v: np.ndarray) -> np.ndarray:
    """(1 + v) log(1 + v) for v >= -1, with the digits of a small v."""
    return (1.0 + v) * np.log1p(np.maximum(v, -BELOW_1))


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-bz))."""

    name = "logistic"
    code = LOGISTIC
    task = "classification"
    gamma = 4.0
    constants = (0.0, 0.0, 0.0, 0.0)

    # NumPy's exp, log and log1p take many numbers at a time: 1 to 2 ns each, where logaddexp,
    # expit and xlogy take 10 to 20 (a check of 245,057 x 3 numbers: 20 -> 9 ms).

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        m = -b * z
        return np.log1p(np.exp(-np.abs(m))) + np.maximum(m, 0.0)

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        m = b * z
        return -b * (np.exp(np.minimum(-m, 0.0)) / (1.0 + np.exp(-np.abs(m))))

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = np.sign(np.asarray(b, dtype=np.float64))
        return np.minimum(-b, 0.0), np.maximum(-b, 0.0)

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        q = -b * v
        return entropy(q) + entropy_from_1(-q)  # 1 - q would lose a small q

    def units(self, width: int, reach: float) -> Units:
        # exp and log1p, of numbers of one sign throughout
        return Units(18.0, 0.0, 12.0, (1.0, 0.0, 0.0, 0.0))


@dataclass(frozen=True)
class LogCosh(Loss):
    """log cosh(z-b): r^2/2 for small r = z-b, |r| - log 2 for large ones, and smooth throughout."""

    name = "log_cosh"
    code = LOG_COSH
    task = "regression"
    gamma = 1.0
    constants = (0.0, 0.0, -1.0, 1.0)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        r = np.abs(z - b)
        small = np.log1p(2.0 * np.square(np.sinh(0.5 * np.minimum(r, 1.0))))  # with all its digits
        return np.where(r < 1.0, small, r + np.log1p(0.5 * np.expm1(-2.0 * r)))

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.tanh(z - b)

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = np.shape(b)
        return np.full(shape, -1.0), np.full(shape, 1.0)

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        clipped = np.clip(v, -0.5, 0.5)
        small = clipped * np.arctanh(clipped) + 0.5 * np.log1p(-np.square(clipped))
        large = 0.5 * (entropy_from_1(v) + entropy_from_1(-v))
        return b * v + np.where(np.abs(v) < 0.5, small, large)

    def units(self, width: int, reach: float) -> Units:
        # phi >= r tanh(r)/2 takes the rounding of r; both forms of phi* keep 40 units of v^2
        return Units(48.0, 0.0, 44.0, (0.0, 1.0, 1.0, 0.0))


@dataclass(frozen=True)
class Multinomial(Loss):
    """logsumexp(z) - z_b for a vector ``z`` of one number a class and a class code ``b``."""

    name = "multinomial"
    code = MULTINOMIAL
    task = "multiclass"
    blocks = True
    simplex = True
    gamma = 2.0  # in the Euclidean norm: the Hessian diag(p) - pp' is at most 1/2
    constants = (0.0, 0.0, 0.0, 0.0)

    # NumPy's exp and log in blocks that stay in the cache, sums by kernels of the judge's own
    # (sums of 10 numbers each take NumPy 40 ns; a check of 5,000 x 50 of 10 classes: 2.5 -> 1 ms)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        from ..kernels.classes import less_own, row_sums

        largest, rest = np.empty(b.size), np.empty(b.size)
        for part in _blocks(z):
            e = np.array(z[part], dtype=np.float64, order="C")
            less_own(e, b[part], largest[part])
            np.exp(e, out=e)
            row_sums(e, rest[part])
        return largest + np.log1p(rest)

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return from_simplex(e / e.sum(axis=1, keepdims=True), b)

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The box around the simplex."""
        lo = np.zeros((b.size, int(b.max()) + 1))
        lo[np.arange(b.size), b] = -1.0
        return lo, lo + 1.0

    def conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        from ..kernels.classes import others, weighted_rows

        values, own = np.empty(b.size), np.empty(b.size)
        for part in _blocks(v):
            block = np.ascontiguousarray(v[part], dtype=np.float64)
            logs, codes = np.empty(block.shape), b[part]
            inside = np.empty(len(codes), dtype=bool)
            others(block, codes, TINY, logs, own[part], inside)
            np.log(logs, out=logs)
            weighted_rows(block, codes, logs, values[part])
            values[part][~inside], own[part][~inside] = np.inf, 0.0
        return values + entropy_from_1(own)

    def units(self, width: int, reach: float) -> Units:
        # The differences z_k - z_b are rounded twice, and phi moves by p_k times that: at most by
        # the largest of them times phi, and 746 phi in all, since exp(-746) is 0.  v_b is minus the
        # sum of the others but for K roundings, which an entropy makes log(1/u) < 40 times larger.
        value = 24.0 + 2.0 * min(reach + 1.0, 746.0) + width
        return Units(value, 0.0, 12.0 + width, (1.0, 0.0, 0.0, 0.0), 40.0 * (width + 2.0))

    def start(self, b: np.ndarray) -> np.ndarray:
        return np.zeros((b.size, int(b.max()) + 1))

    def dual_prox(
        self, z: np.ndarray, b: np.ndarray, y: np.ndarray, s: float | np.ndarray
    ) -> np.ndarray:
        """Rowwise, as the kernels do it; ``s`` is one number a row."""
        from ..kernels.classes import dual_prox_blocks

        z, y = (np.ascontiguousarray(a, dtype=np.float64) for a in (z, y))
        s = np.ascontiguousarray(np.broadcast_to(s, b.shape), dtype=np.float64)
        out = np.empty_like(z)
        dual_prox_blocks(z, b, y, s, out)
        return out


def _blocks(z: np.ndarray) -> Iterator[slice]:
    """Blocks of rows that stay in the cache."""
    size = max(2**16 // z.shape[1], 64)
    return (slice(first, first + size) for first in range(0, len(z), size))
