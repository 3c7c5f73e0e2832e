r"""Losses with kinks, or narrow bends, and penalties as sums of terms of one number s,

    max_{L <= v <= U} v (s - b) - bend v^2/2

=====================  ==============================  ==================================
of a row, s = z_i      phi_i on [lo, hi]               v in w_i/n [lo, hi], b = b_i
                       ... with alpha (Huber's, say)   bend = n alpha/w_i, 0 for all others
                       ... with a tube of epsilon      v in w_i/n [0, hi], b = b_i + epsilon,
                                                       and w_i/n [lo, 0], b = b_i - epsilon
of a column, s = x_j   l1_j |x_j|                      v in [-l1_j, l1_j], b = 0
                       x_j >= lower_j                  v in [-inf, 0], b = lower_j
                       x_j <= upper_j                  v in [0, inf], b = upper_j
=====================  ==============================  ==================================

A bound at 0 is an end of the l1's own term that is open.  The l2 of a column stays what it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...problem import Problem
from ...problem.group_penalty import GroupPenalty


@dataclass(frozen=True)
class Terms:
    """``low``, ``high``, ``b`` and ``bend`` of the terms, layers of all rows first, then layers of
    all columns; a row or column that a layer has nothing for has low = high."""

    low: np.ndarray
    high: np.ndarray
    b: np.ndarray
    bend: np.ndarray
    row_layers: int
    column_layers: int
    n: int
    d: int

    @property
    def of_rows(self) -> slice:
        return slice(0, self.row_layers * self.n)

    @property
    def of_columns(self) -> slice:
        return slice(self.row_layers * self.n, None)

    def spread(self, z: np.ndarray, x: np.ndarray) -> np.ndarray:
        """What rows and columns have, for each of their terms."""
        return np.concatenate([z] * self.row_layers + [x] * self.column_layers)

    def layers(self, of: np.ndarray) -> np.ndarray:
        """Those of the columns, a row each."""
        return of[self.of_columns].reshape(self.column_layers, self.d)

    def gathered(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sums over the terms of each row, and of each column."""
        rows = v[self.of_rows].reshape(self.row_layers, self.n)
        return _sum(rows), _sum(self.layers(v))


def _sum(layers: np.ndarray) -> np.ndarray:
    if len(layers) == 1:
        return layers[0]
    return layers.sum(axis=0)  # zeros, where there are none


def terms_of(problem: Problem) -> Terms:
    """The terms of a loss with bounded slopes, and of a separable penalty without its l2."""
    n, d = problem.n, problem.d
    w = (np.ones(n) if problem.weights is None else problem.weights) / n
    low, high = problem._domain
    b = problem.b if problem.offset is None else problem.b - problem.offset
    alpha, epsilon = problem.loss.constants[:2]
    none = np.zeros(n)
    if epsilon == 0.0:
        rows = [(w * low, w * high, b)]
    else:
        rows = [(none, w * high, b + epsilon), (w * low, none, b - epsilon)]
    assert not isinstance(problem.penalty, GroupPenalty)  # no term of one number
    l1, _, lower, upper = problem.penalty.by_column(d)
    down = np.where(lower == 0.0, -np.inf, -l1)
    up = np.where(upper == 0.0, np.inf, l1)
    columns = [(down, up, np.zeros(d))]
    for end, sign in ((lower, -1.0), (upper, 1.0)):
        held = np.isfinite(end) & (end != 0.0)
        if held.any():
            open_ = np.where(held, sign * np.inf, 0.0)
            sides = np.minimum(open_, 0.0), np.maximum(open_, 0.0)
            columns.append((*sides, np.where(held, end, 0.0)))
    if not (columns[0][0] < columns[0][1]).any():
        del columns[0]
    low, high, b = (np.concatenate(part) for part in zip(*rows, *columns, strict=True))
    bends = [np.divide(alpha, w, out=np.zeros(n), where=w > 0.0)] * len(rows)
    bend = np.concatenate([*bends, np.zeros(len(columns) * d)])
    return Terms(low, high, b, bend, len(rows), len(columns), n, d)
