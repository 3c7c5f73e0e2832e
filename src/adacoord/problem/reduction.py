r"""From the problem asked to the one that solvers are given, and back: exact changes of variables.

=========================  =====================================================================
offset, regression         phi(z + o; b) = phi(z; b - o)
offset, log link           exp(z + o) - b (z + o) = e^o (exp(z) - b e^-o z) - b o: other weights
                           and targets, y_i = e^(o_i) y'_i, and a constant; of gamma the targets
                           b e^-o alone, of Tweedie's the weights e^((2-p)o)
weights of the columns     x_j = s_j t_j: l1_j s_j and l2_j s_j^2, where these can be made the same
                           for all (:meth:`ColumnPenalty.uniformed`); y stays what it is
=========================  =====================================================================

So every solver takes these.  What is left, bounds, columns without a penalty beside others with
one, and the offset of margins, is left to the solvers that can.  The judge works on the problem
asked, whatever was solved.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.columns import ColumnMatrix, Columns
from ..data.matrix import Matrix, as_matrix, check_finite

if TYPE_CHECKING:
    from .problem import Problem


@dataclass(frozen=True)
class Reduction:
    """``problem`` in (t, c, y'); the x asked for is ``x_scale`` t, the y ``y_scale`` y'."""

    problem: Problem
    x_scale: np.ndarray | None = None
    y_scale: np.ndarray | None = None

    @property
    def trivial(self) -> bool:
        """Whether points are those of the problem asked."""
        return self.x_scale is None and self.y_scale is None

    def point(self, start: Any) -> Any:
        """A point of the problem asked as one of ``problem``."""
        if start is None or self.trivial:
            return start
        x, y = np.asarray(start.x, dtype=np.float64), np.asarray(start.y, dtype=np.float64)
        x = x if self.x_scale is None else x / self.x_scale
        y = y if self.y_scale is None else y / self.y_scale
        return SimpleNamespace(x=x, intercept=start.intercept, y=y)

    def x(self, t: np.ndarray) -> np.ndarray:
        return t if self.x_scale is None else self.x_scale * t

    def y(self, y: np.ndarray) -> np.ndarray:
        return y if self.y_scale is None else self.y_scale * y


def reduce_problem(problem: Problem) -> Reduction:
    """The reduction of a problem: itself where there is nothing to be done."""
    if problem.offset is None and problem.penalty.uniform:
        return Reduction(problem)
    found = None
    if problem.offset is not None:
        found = problem.loss.without_offset(problem.b, problem.offset)
    uniform = problem.penalty.uniformed()
    if found is None and uniform is None:
        return Reduction(problem)
    # what has been found out of the data is that of the problem asked
    names = ("loss", "matrix", "n", "d", "b", "weights", "intercept", "offset", "penalty", "_block")
    other = copy(problem)
    other.__dict__ = {name: vars(problem)[name] for name in names} | {"_reduced": None}
    y_scale = None
    if found is not None:
        other.b, y_scale = found
        other.offset = None
        if y_scale is not None:
            other.weights = y_scale if problem.weights is None else problem.weights * y_scale
    if uniform is None:
        return Reduction(other, y_scale=y_scale)
    other.penalty = uniform.penalty
    other.matrix = scaled_columns(problem.matrix, uniform.scale.ravel())
    return Reduction(other, uniform.scale, y_scale)


def scaled_columns(matrix: Matrix, scale: np.ndarray) -> Matrix:
    """A diag(scale), in float64: float32 would not hold the products."""
    if matrix.is_dense:
        return as_matrix(matrix._array * scale)
    # the pattern stays: nothing but the entries has to be looked at again
    scaled: Matrix
    if matrix.by_columns:
        columns = matrix.columns
        data = columns.data * np.repeat(scale, columns.sizes)
        scaled = ColumnMatrix(Columns(matrix.shape, columns.colptr, columns.rows, data))
    else:
        data = matrix.data * scale[matrix.indices]
        scaled = Matrix(matrix.shape, matrix.indptr, matrix.indices, data)
    check_finite(scaled, "A")
    return scaled
