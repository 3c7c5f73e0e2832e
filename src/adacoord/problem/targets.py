"""Least squares of several targets at once: what the multitask lasso is made of.

phi(z; b) = |z - b|^2/2 for vectors of K numbers, phi*(v) = b.v + |v|^2/2: arrays have shape (n, K).
A problem has it where the targets of the loss ``"squared"`` have several columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.matrix import LARGEST
from ..kernels.codes import QUADRATIC
from .loss import Loss, Units


class SquaredTargets(Loss):
    """|z - b|^2/2 for vectors ``z`` and ``b`` of one number a target."""

    name = "squared_targets"
    code = QUADRATIC
    task = "targets"
    blocks = True
    gamma = 1.0
    constants = (1.0, 0.0, -np.inf, np.inf)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        r = z - b
        return 0.5 * dots(r, r)

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        return z - b

    def conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        return dots(v, b + 0.5 * v)

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(b.shape, -np.inf), np.full(b.shape, np.inf)

    def _ends(self, b: np.ndarray) -> tuple[Any, Any]:
        return -np.inf, np.inf

    def units(self, width: int, reach: float) -> Units:
        # of one target, and the sums over all of them
        return Units(24.0 + width, 0.0, 7.0 + width, (0.0, 1.0, 0.5, 0.0))

    def without_offset(self, b: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, None]:
        return b - offset, None


def dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a_i.b_i of each row i."""
    from ..kernels.classes import row_products

    out = np.empty(len(a))
    row_products(np.ascontiguousarray(a), np.ascontiguousarray(b), out)
    return out


def check_matrix(b: np.ndarray, n: int) -> np.ndarray:
    """Targets of shape (n, K) in float64: a copy."""
    if b.shape[0] != n:
        raise ValueError(f"b has shape {b.shape}: A has {n} rows, so b must have as many")
    if b.dtype.kind not in "fiub":
        raise ValueError(f"b has dtype {b.dtype}: it must hold real numbers")
    b = np.array(b, dtype=np.float64, order="C")
    finite = np.isfinite(b)
    if not finite.all():
        i, k = np.argwhere(~finite)[0]
        raise ValueError(
            f"b has the value {b[i, k]} at position ({i}, {k}): every value must be a finite "
            "number; drop or impute missing values"
        )
    if np.abs(b).max(initial=0.0) > LARGEST:
        raise ValueError(
            f"b has the value {np.abs(b).max():g}: numbers beyond {LARGEST:g} overflow when they "
            "are squared; rescale the targets"
        )
    return b
