"""From checked rows to problems, and from their solutions to ``coef_`` and ``intercept_``.

:class:`Posed` is what a fit solves and ``certify`` judges: the rows, the problems they make, and
the :class:`Recipe` that made them, which also knows the way back.  A recipe is what an estimator
asks for, whatever the rows and the penalty: a cross-validation poses each fold by it.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from ..data.blocks import BlockMatrix
from ..data.matrix import Matrix, as_matrix
from ..problem import Problem
from ..problem.losses import Loss
from .columns import ALIKE, Columns


@dataclass(frozen=True)
class Rows:
    """Checked input.

    Attributes
    ----------
    X : array or sparse matrix; in C or Fortran order, CSR or CSC, as it came
    y : array, as it came
    targets : the codes of the classes, of shape (n,); of a regression float64 of shape
        (n_targets, n)
    weights : sample weights in float64, or None
    classes : the labels in order, or None of a regression
    offset : what is added to the predictions, of shape (rows of coefficients, n), or None
    matrix : X as solvers read it, where the check of X has made it, or None
    """

    X: Any
    y: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    classes: np.ndarray | None = None
    offset: np.ndarray | None = None
    matrix: Matrix | None = None

    def as_matrix(self, columns: Columns, bias: float | None = None) -> Matrix:
        """X as solvers read it: in the units of ``columns``, with a column of ``bias`` if any."""
        X = columns.scaled(self.X)
        X = X if bias is None else with_bias(X, bias)
        return self.matrix if X is self.X and self.matrix is not None else as_matrix(X, "X")

    @property
    def without_offset(self) -> np.ndarray:
        """The targets of a regression less the offset: what least squares see of it."""
        return self.targets if self.offset is None else self.targets - self.offset

    def take(self, kept: np.ndarray) -> Rows:
        """Some of the rows, in the layout that all have."""
        X = self.X
        columns = not sparse.issparse(X) and X.flags.f_contiguous and not X.flags.c_contiguous
        return replace(
            self,
            X=X.T.take(kept, axis=1).T if columns else X[kept],  # X[kept] is in C order
            y=self.y[kept],
            targets=self.targets[..., kept],
            weights=None if self.weights is None else self.weights[kept],
            offset=None if self.offset is None else self.offset[:, kept],
            matrix=None,
        )


@dataclass(frozen=True, kw_only=True)
class Recipe(ABC):
    """What classification and regression share.

    Attributes
    ----------
    loss : of the problems
    fit_intercept : whether there is an intercept
    bias : None for an intercept without penalty, else the value of liblinear's column
    mean_one : rescale the weights to a mean of 1
    positive : only x >= 0
    columns : weights, bounds and units of the columns
    """

    loss: Loss
    fit_intercept: bool
    bias: float | None = None
    mean_one: bool = False
    positive: bool = False
    columns: Columns = ALIKE

    @property
    def penalised(self) -> bool:
        """Whether the intercept is one more column, and penalised."""
        return self.fit_intercept and self.bias is not None

    @property
    @abstractmethod
    def count(self) -> int:
        """Problems."""

    @property
    def height(self) -> int:
        """Rows of coefficients."""
        return self.count

    @abstractmethod
    def _targets(self, rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray | None]:
        """(b, weights) of problem k."""

    def problems(self, rows: Rows, penalties) -> list[Problem]:
        """The problems that the rows make under ``penalties``, one (l1, l2) per problem."""
        if self.penalised and isinstance(rows.X, BlockMatrix):
            raise ValueError(
                f"intercept_scaling={self.bias!r}: data in blocks of rows get no further column; "
                "use intercept_scaling=None, which does not penalise the intercept"
            )
        # wrapped once for all of them
        matrix = rows.as_matrix(self.columns, self.bias if self.penalised else None)
        lower, upper = self.columns.bounds_of(rows.X.shape[1], self.penalised)

        def problem(k, l1, l2):
            b, weights = self._targets(rows, k)
            if self.mean_one and weights is not None:
                weights = weights * (matrix.shape[0] / weights.sum())
            factor = self.columns.factor_of(rows.X.shape[1], self.penalised)
            return Problem(
                matrix,
                b,
                self.loss,
                l1=l1 * factor,
                l2=l2 * factor,
                positive=self.positive,
                lower=lower,
                upper=upper,
                offset=self._offset(rows, k),
                sample_weight=weights,
                intercept=self.fit_intercept and not self.penalised,
            )

        numbered = zip(range(self.count), penalties, strict=True)
        return [problem(k, l1, l2) for k, (l1, l2) in numbered]

    def _offset(self, rows: Rows, k: int) -> np.ndarray | None:
        """That of problem k."""
        return None if rows.offset is None else rows.offset[k]

    def with_offset(self, rows: Rows, offset) -> Rows:
        """The rows with an offset of shape (n,), or (n, rows of coefficients); None is none."""
        if offset is None:
            return rows
        n, found = rows.X.shape[0], np.asarray(offset)
        wanted = f"({n},)" if self.height == 1 else f"({n}, {self.height})"
        if (
            found.dtype.kind not in "fiub"
            or found.shape not in ((n,), (n, self.height))
            or (found.ndim == 1 and self.height > 1)
        ):
            raise ValueError(
                f"offset has shape {found.shape} and dtype {found.dtype}: X has {n} rows, so it "
                f"must hold numbers of shape {wanted}"
            )
        return replace(rows, offset=found.reshape(n, self.height).T.astype(np.float64))

    def coefficients(self, points, d: int) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients, intercepts) of the problems solved so far; zeros for the rest."""
        coef, c = np.zeros((self.height, d + self.penalised)), np.zeros(self.height)
        for k, point in enumerate(points):
            coef[k], c[k] = point.x, point.intercept
        if self.bias is not None and self.penalised:
            coef, c = coef[:, :-1], coef[:, -1] * self.bias
        return self.columns.in_units(coef), c

    def points(self, coef, c) -> list[tuple[np.ndarray, float | np.ndarray]]:
        """(x, intercept) of each problem at such coefficients and intercepts, in float64."""
        coef, c = coef.astype(np.float64, copy=False), c.astype(np.float64, copy=False)
        coef = self.columns.of_units(coef)
        if self.penalised:
            coef, c = np.column_stack([coef, c / self.bias]), np.zeros_like(c)
        return [(x, float(intercept)) for x, intercept in zip(coef, c, strict=True)]

    @abstractmethod
    def shaped(self, coef, c) -> dict[str, Any]:
        """``coef_`` and ``intercept_`` of such coefficients and intercepts."""

    def duals(self, results) -> np.ndarray:
        """``dual_coef_``."""
        return results[0].y[None] if len(results) == 1 else np.stack([r.y for r in results])


@dataclass(frozen=True, kw_only=True)
class Classification(Recipe):
    """A loss of margins, one problem per class (one for two); or the multinomial loss.

    Attributes
    ----------
    n_classes : of all the data
    class_weights : array of shape (n_classes,), or None
    weigh_rest : whether, of one class against the rest, the rest is weighed too
    """

    n_classes: int
    class_weights: np.ndarray | None = None
    weigh_rest: bool = True

    @property
    def joint(self) -> bool:
        """Whether one problem holds all classes."""
        return self.loss.blocks

    @property
    def count(self) -> int:
        return 1 if self.joint else self.height

    @property
    def height(self) -> int:
        return self.n_classes if self.n_classes > 2 else 1

    def _targets(self, rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray | None]:
        codes, weights, by_class = rows.targets, rows.weights, self.class_weights
        one = k if self.n_classes > 2 else 1
        if by_class is not None:
            if self.n_classes > 2 and not (self.joint or self.weigh_rest):
                by_class = np.where(np.arange(self.n_classes) == one, by_class, 1.0)
            weights = by_class[codes] if weights is None else weights * by_class[codes]
        return codes if self.joint else np.where(codes == one, 1.0, -1.0), weights

    def _offset(self, rows: Rows, k: int) -> np.ndarray | None:
        if rows.offset is None or not self.joint:
            return super()._offset(rows, k)
        return rows.offset.T

    def coefficients(self, points, d: int) -> tuple[np.ndarray, np.ndarray]:
        if not self.joint:
            return super().coefficients(points, d)
        [point] = points
        coef = np.array(point.x.T, order="C")
        if self.bias is not None and self.penalised:
            return self.columns.in_units(coef[:, :-1]), coef[:, -1] * self.bias
        # adding a number to all intercepts changes nothing; where it is rounding, the point is left
        # as it was certified
        shared = np.mean(point.intercept)
        if abs(shared) <= 1e-12 * np.max(np.abs(point.intercept)):
            shared = 0.0
        return self.columns.in_units(coef), point.intercept - shared

    def points(self, coef, c) -> list[tuple[np.ndarray, float | np.ndarray]]:
        if self.joint:
            coef, c = self.columns.of_units(coef.astype(np.float64)), c.astype(np.float64)
            if self.penalised:
                coef, c = np.column_stack([coef, c / self.bias]), np.zeros_like(c)
            return [(np.array(coef.T, order="C"), c)]
        return super().points(coef, c)

    def shaped(self, coef, c) -> dict[str, Any]:
        return {"coef_": np.ascontiguousarray(coef), "intercept_": c}

    def duals(self, results) -> np.ndarray:
        if self.joint:
            return np.ascontiguousarray(results[0].y.T)
        return super().duals(results)


@dataclass(frozen=True, kw_only=True)
class Regression(Recipe):
    """One problem per target.

    Attributes
    ----------
    n_targets : of y
    flat : whether y has one dimension; one column is one target, too, but its ``intercept_`` keeps
        the column's shape, as scikit-learn's does
    """

    n_targets: int
    flat: bool

    @property
    def count(self) -> int:
        return self.n_targets

    def _targets(self, rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray | None]:
        return rows.targets[k], rows.weights

    def shaped(self, coef, c) -> dict[str, Any]:
        coef = np.ascontiguousarray(coef)
        return {
            "coef_": coef[0] if self.count == 1 else coef,
            "intercept_": (c[0] if self.flat else c) if self.fit_intercept else 0.0,
        }

    def duals(self, results) -> np.ndarray:
        y = super().duals(results)
        return y[0] if self.count == 1 else y


@dataclass(frozen=True)
class Posed:
    """What a fit is to solve: the problems that checked rows make, and the way back."""

    rows: Rows
    recipe: Recipe
    problems: list[Problem]

    def coefficients(self, points) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients, intercepts) of the problems solved so far; zeros for the rest."""
        return self.recipe.coefficients(points, self.rows.X.shape[1])

    def shaped(self, points) -> dict[str, Any]:
        """``coef_`` and ``intercept_`` of the problems solved so far; zeros for the rest."""
        return self.recipe.shaped(*self.coefficients(points))

    def starts(self, coef, intercept, dual=None) -> list[Any]:
        """Points to start from, at such ``coef_``, ``intercept_`` and ``dual_coef_``.

        None for all problems where the shape of ``coef_`` is another.  Without a dual point that
        fits, it is the slopes of the losses.
        """
        points = self.recipe.points(*as_coefficients(coef, intercept))
        if [x.shape for x, _ in points] != [p.x_shape for p in self.problems]:
            return [None] * len(self.problems)
        duals = np.atleast_2d(np.empty(0) if dual is None else dual)
        duals = duals.T[None] if self.problems[0].loss.blocks else duals
        known = duals.shape == (len(self.problems), *self.problems[0].y_shape)

        def start(k, problem, x, c):
            c = c if problem.intercept else problem.no_intercept
            y = duals[k] if known else problem.loss.derivative(problem.predict(x, c), problem.b)
            return SimpleNamespace(x=x, intercept=c, y=y)

        return [
            start(k, problem, *point)
            for k, (problem, point) in enumerate(zip(self.problems, points, strict=True))
        ]


def as_coefficients(coef, intercept) -> tuple[np.ndarray, np.ndarray]:
    """``coef_`` as a matrix and ``intercept_`` as a vector of as many rows."""
    coef = np.atleast_2d(coef.toarray() if sparse.issparse(coef) else coef)
    return coef, np.broadcast_to(np.asarray(intercept), coef.shape[:1])


def with_bias(X, scaling: float):
    """``X`` and a column of ``scaling``: liblinear's penalised bias."""
    # in the type of X where that holds it exactly: the intercept is its multiple
    dtype = X.dtype if float(X.dtype.type(scaling)) == scaling else np.float64
    column = np.full((X.shape[0], 1), scaling, dtype=dtype)
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(column)], format=X.format)
    return np.hstack([X, column])  # columns stay columns here, too


def checked_penalty(name: str, value: float, l1: float, l2: float) -> tuple[float, float]:
    """(l1, l2), of what ``name=value`` asks for; refused where float64 has no such numbers.

    A penalty that underflows would be none, and with it the certificate would go.
    """
    if not sys.float_info.min <= max(l1, l2) < math.inf:
        raise ValueError(
            f"{name}={value!r}: for these data the penalty would be l1={l1:g}, l2={l2:g}, which is "
            f"beyond the numbers of float64; give {name} nearer to 1"
        )
    return l1, l2


def liblinear_penalty(n: int, C: float, l1_ratio: float) -> tuple[float, float]:
    """(l1, l2) for liblinear's objective over n rows: C sum_i phi_i + penalty."""
    C, l1_ratio = float(C), float(l1_ratio)  # numbers that overflow without a warning
    if math.isinf(C):
        return 0.0, 0.0
    scale = C * n
    return checked_penalty("C", C, l1_ratio / scale, (1.0 - l1_ratio) / scale)


def elastic_net_penalty(alpha: float, l1_ratio: float) -> tuple[float, float]:
    """(l1, l2) of scikit-learn's elastic net."""
    if alpha == 0.0:
        return 0.0, 0.0
    return checked_penalty("alpha", alpha, alpha * l1_ratio, alpha * (1.0 - l1_ratio))


def ridge_penalty(n: int, alpha: float) -> tuple[float, float]:
    """(0, l2) for scikit-learn's ridge regression over n rows, a sum."""
    return checked_penalty("alpha", alpha, 0.0, alpha / n) if alpha > 0.0 else (0.0, 0.0)


def ridge_penalties(n: int, alpha, n_targets: int) -> list[tuple[float, float]]:
    """The same of each target; ``alpha`` is one number, or one per target."""
    alpha = np.asarray(alpha, dtype=np.float64)
    if alpha.ndim > 1 or alpha.size not in (1, n_targets):
        raise ValueError(
            "Number of targets and number of penalties do not correspond: "
            f"{alpha.size} != {n_targets}; give one alpha, or one per target"
        )
    bad = alpha[~((alpha >= 0.0) & (alpha < np.inf))]
    if bad.size:
        raise ValueError(f"alpha has the value {bad[0]}: penalties must be finite, 0 or more")
    return [ridge_penalty(n, float(a)) for a in np.broadcast_to(alpha.ravel(), (n_targets,))]
