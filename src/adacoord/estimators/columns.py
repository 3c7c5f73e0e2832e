"""What estimators say of single columns: factors of the penalty, bounds, and units.

``standardize`` is a change of units: on the columns s_j a_j, s_j = 1/deviation, one l1 and one l2
are what l1 deviation_j and l2 deviation_j^2 are on the columns as they are, so that every solver
takes it at its usual speed; coefficients and bounds go back and forth by s_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..data.blocks import BlockMatrix

#: Constraints on the parameters of that kind.
COLUMNS: dict = {
    "standardize": ["boolean"],
    "penalty_factor": [None, "array-like"],
    "bounds": [None, "array-like"],
}
#: A deviation below this share of the column's mean (times the root of the rows) is rounding.
ROUNDING = 10.0 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Columns:
    """Weights, bounds and units of the columns; None where they are all alike.

    Attributes
    ----------
    factor : of the penalty, of shape (d,)
    bounds : (lower, upper), numbers or arrays of shape (d,), in the units of X
    scale : what the columns are multiplied by, of shape (d,)
    """

    factor: np.ndarray | None = None
    bounds: tuple[Any, Any] | None = None
    scale: np.ndarray | None = None

    @classmethod
    def of(cls, X, weights, standardize: bool, factor, bounds) -> Columns:
        """What the parameters ask for of such data."""
        if factor is None and bounds is None and not standardize:
            return ALIKE
        if factor is not None:
            factor = checked_factor(factor, X.shape[1])
        if bounds is not None and len(bounds) != 2:
            raise ValueError(
                f"bounds has {len(bounds)} elements: give (lower, upper), each a number, an array "
                f"of shape ({X.shape[1]},) or None"
            )
        scale = None
        if standardize:
            if isinstance(X, BlockMatrix):
                raise ValueError(
                    "standardize=True: data in blocks of rows are used as they are; scale their "
                    "columns before, or give them as one array"
                )
            scale = 1.0 / deviations(X, weights)
        return cls(factor, None if bounds is None else tuple(bounds), scale)

    def factor_of(self, d: int, biased: bool) -> Any:
        """Of the columns, and 1 of the bias that liblinear penalises."""
        if self.factor is None:
            return 1.0
        return np.append(self.factor, 1.0) if biased else self.factor

    def bounds_of(self, d: int, biased: bool) -> tuple[Any, Any]:
        """In the units of the problem; none for the bias."""
        if self.bounds is None:
            return None, None
        ends = []
        for name, end, none in zip(("lower", "upper"), self.bounds, (-np.inf, np.inf), strict=True):
            end = np.asarray(none if end is None else end, dtype=np.float64)
            if end.shape not in ((), (d,)):
                raise ValueError(
                    f"bounds: {name} has shape {end.shape}; X has {d} columns, so it must be a "
                    f"number or have shape ({d},)"
                )
            end = end if self.scale is None else end / self.scale
            ends.append(np.append(np.broadcast_to(end, d), none) if biased else end)
        return ends[0], ends[1]

    def scaled(self, X):
        """X in the units of the problem; in float64, which float32 would round."""
        if self.scale is None:
            return X
        if sparse.issparse(X):
            return (X.astype(np.float64) @ sparse.diags_array(self.scale)).asformat(X.format)
        return X * self.scale

    def in_units(self, coef: np.ndarray) -> np.ndarray:
        """Coefficients of the problem, by their last axis, as those of X."""
        return coef if self.scale is None else coef * self.scale

    def of_units(self, coef: np.ndarray) -> np.ndarray:
        """Those of X as those of the problem."""
        return coef if self.scale is None else coef / self.scale


#: All columns alike.
ALIKE = Columns()


def checked_factor(factor, d: int) -> np.ndarray:
    found = np.asarray(factor)
    if found.dtype.kind not in "fiub" or found.shape != (d,):
        raise ValueError(
            f"penalty_factor has shape {found.shape} and dtype {found.dtype}: X has {d} columns, "
            f"so it must hold numbers of shape ({d},)"
        )
    found = found.astype(np.float64)
    bad = np.flatnonzero(~((found >= 0.0) & (found < np.inf)))
    if bad.size:
        raise ValueError(
            f"penalty_factor has the value {found[bad[0]]:g} at position {bad[0]}: factors must be "
            "finite, zero or more (0 for a column that is not penalised)"
        )
    return found


def deviations(X, weights: np.ndarray | None) -> np.ndarray:
    """The (weighted) standard deviation of each column; 1 for constant ones."""
    if sparse.issparse(X):
        mean, variance = _sparse_moments(X, weights)
    else:
        mean = np.average(X.astype(np.float64, copy=False), axis=0, weights=weights)
        variance = np.average(np.square(X - mean), axis=0, weights=weights)
    found = np.sqrt(variance)
    constant = found <= ROUNDING * X.shape[0] ** 0.5 * np.abs(mean)
    return np.where(constant | (found == 0.0), 1.0, found)


def _sparse_moments(X, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(means, variances) of the columns, in two passes as of dense ones.

    The zeros that are not stored count by the weight of their rows; where there are none, not even
    by the rounding of that: a constant column has no variance then.
    """
    if weights is not None:
        X, weights = X[weights > 0.0], weights[weights > 0.0]
    columns = X.astype(np.float64).tocsc()
    columns.sum_duplicates()
    (n, d), stored = columns.shape, np.diff(columns.indptr)
    w = np.ones(n) if weights is None else weights
    j, w_stored = np.repeat(np.arange(d), stored), w[columns.indices]
    absent = np.where(stored < n, np.sum(w) - np.bincount(j, w_stored, d), 0.0)
    mean = np.bincount(j, w_stored * columns.data, d) / np.sum(w)
    squares = np.bincount(j, w_stored * np.square(columns.data - mean[j]), d)
    return mean, (squares + np.maximum(absent, 0.0) * mean * mean) / np.sum(w)


def added(z, offset):
    """Predictions and an offset of their shape."""
    if offset is None:
        return z
    offset = np.asarray(offset)
    if offset.shape != z.shape or offset.dtype.kind not in "fiub":
        raise ValueError(
            f"offset has shape {offset.shape} and dtype {offset.dtype}: it must hold numbers of "
            f"shape {tuple(z.shape)}, as the predictions have"
        )
    return z + offset
