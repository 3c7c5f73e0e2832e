"""Sums over rows of what losses are there, in parts where rows are many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

#: Rows of which the losses are evaluated at a time where they are many: what is made on the way
#: stays in the cache, and in memory that the process has (CPU ms of P, D and the domain of 245,057
#: rows: logistic 2.5, 9.2, 4.4 -> .7, 1.4, .5; squared .13, .18, .04 -> .16, .23, .04; of 40,000
#: rows the parts gain nothing).
PART, MANY = 2**14, 2**16


def sum_of(
    function: Callable, at: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """sum_i w_i function(at_i, b_i)."""
    if at.ndim > 1 or not many(at.size):
        return weighted_sum(function(at, b), weights)
    values = np.empty(at.size)
    for part in parts(at.size):
        values[part] = function(at[part], b[part])
    return weighted_sum(values, weights)


def many(size: int) -> bool:
    """Whether so many rows are evaluated in parts."""
    return size > MANY


def parts(size: int) -> Iterator[slice]:
    """Parts of vectors of which some stay in the cache."""
    step = PART if many(size) else max(size, 1)
    return (slice(first, first + step) for first in range(0, size, step))


def square_sum(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """sum_i w_i v_i^2."""
    if weights is not None or values.ndim > 1:
        return weighted_sum(np.square(values), weights)
    values = np.ascontiguousarray(values)
    return compiled().product_sum(values, values)


def sum_and_size(values: np.ndarray) -> tuple[float, float]:
    """The sum of the values, and that of their sizes (for bounds: no care is taken of it)."""
    return compiled().sum_and_size(np.ascontiguousarray(values))


@cache
def compiled() -> Any:
    """:mod:`adacoord.kernels.sums`, which imports Numba, for who has something to sum (an import
    in a function takes a microsecond, as a sum of 10,000 numbers does)."""
    from ..kernels import sums

    return sums


def weighted_sum(values: np.ndarray, weights: np.ndarray | None) -> float:
    """sum_i w_i v_i over the rows that have a weight: 0 * inf is not 0."""
    if weights is None:
        return float(values.sum())
    kept = weights > 0.0
    return float(np.sum(weights[kept] * values[kept]))
