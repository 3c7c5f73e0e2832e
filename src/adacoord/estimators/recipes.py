"""From rows and targets to problems, and from their solutions to ``coef_`` and ``intercept_``.

A recipe knows what an estimator asks for, whatever the rows and the penalty: a fit cooks by it
once, a cross-validation once a fold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.matrix import Matrix, as_matrix
from ..problem import Problem
from ..problem.losses import Loss, get_loss
from .base import with_bias


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What classification and regression share.

    Attributes
    ----------
    loss : of one problem
    fit_intercept : whether there is an intercept
    bias : None for an intercept without penalty, else the value of liblinear's column
    mean_one : rescale the weights to a mean of 1
    positive : only x >= 0
    """

    loss: Loss
    fit_intercept: bool
    bias: float | None = None
    mean_one: bool = False
    positive: bool = False

    @property
    def penalised(self) -> bool:
        """Whether the intercept is one more column, and penalised."""
        return self.fit_intercept and self.bias is not None

    def matrix(self, X) -> Matrix:
        """The data, wrapped once for all problems."""
        return as_matrix(with_bias(X, self.bias) if self.penalised else X, "X")

    def _problem(self, matrix, b, weights, l1, l2, loss=None) -> Problem:
        if self.mean_one and weights is not None:
            weights = weights * (matrix.shape[0] / weights.sum())
        return Problem(
            matrix, b, loss or self.loss, l1=l1, l2=l2, positive=self.positive,
            sample_weight=weights, intercept=self.fit_intercept and not self.penalised,
        )

    def _split(self, coef, c):
        """(coef, intercept), the bias taken out of the columns."""
        return (coef[:, :-1], coef[:, -1] * self.bias) if self.penalised else (coef, c)

    def points(self, coef, c) -> list[tuple[np.ndarray, float | np.ndarray]]:
        """(x, intercept) of each problem at ``coef_`` and ``intercept_``, in float64."""
        coef, c = coef.astype(np.float64), c.astype(np.float64)
        if self.penalised:
            coef, c = np.column_stack([coef, c / self.bias]), np.zeros_like(c)
        return [(x, float(intercept)) for x, intercept in zip(coef, c, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Classification(Recipe):
    """A loss of margins, one problem a class (one for two); or the multinomial loss.

    Attributes
    ----------
    n_classes : of all the data
    multinomial : one problem for three classes or more
    class_weights : array of shape (n_classes,), or None
    weigh_rest : whether, of one class against the rest, the rest is weighed too
    """

    n_classes: int
    multinomial: bool = False
    class_weights: np.ndarray | None = None
    weigh_rest: bool = True

    @property
    def joint(self) -> bool:
        """Whether one problem holds all of more than two classes."""
        return self.multinomial and self.n_classes > 2

    @property
    def single(self) -> bool:
        """Whether there is one problem."""
        return self.joint or self.n_classes == 2

    @property
    def rows(self) -> int:
        """Rows of ``coef_``."""
        return self.n_classes if self.n_classes > 2 else 1

    def problems(self, X, codes, weights, l1, l2) -> list[Problem]:
        """The problems that rows of the classes ``codes`` make."""
        matrix = self.matrix(X)

        def problem(b, loss=None, one=None):
            w, by_class = weights, self.class_weights
            if by_class is not None:
                if one is not None and not self.weigh_rest:
                    by_class = np.where(np.arange(self.n_classes) == one, by_class, 1.0)
                w = by_class[codes] if w is None else w * by_class[codes]
            return self._problem(matrix, b, w, l1, l2, loss)

        if self.joint:
            return [problem(codes, get_loss("multinomial"))]
        if self.n_classes == 2:
            return [problem(np.where(codes == 1, 1.0, -1.0))]
        return [
            problem(np.where(codes == k, 1.0, -1.0), one=k) for k in range(self.n_classes)
        ]

    def coefficients(self, points, d: int) -> tuple[np.ndarray, np.ndarray]:
        """``coef_`` and ``intercept_`` of the problems solved so far; zeros for the rest."""
        coef, c = np.zeros((self.rows, d + self.penalised)), np.zeros(self.rows)
        if self.joint:
            coef[:], c[:] = points[0].x.T, points[0].intercept
            c -= c.mean()  # adding a number to all changes nothing
        else:
            for k, point in enumerate(points):
                coef[k], c[k] = point.x, point.intercept
        return self._split(coef, c)

    def points(self, coef, c) -> list[tuple[np.ndarray, float | np.ndarray]]:
        """(x, intercept) of each problem at ``coef_`` and ``intercept_``, in float64."""
        if self.joint:
            return [(coef.T.astype(np.float64), c.astype(np.float64))]
        return super().points(coef, c)


@dataclass(frozen=True, kw_only=True)
class Regression(Recipe):
    """One problem a target."""

    def problems(self, X, targets, weights, penalties) -> list[Problem]:
        """``targets`` has a row a target, ``penalties`` its (l1, l2)."""
        matrix = self.matrix(X)
        return [
            self._problem(matrix, b, weights, l1, l2)
            for b, (l1, l2) in zip(targets, penalties, strict=True)
        ]

    def coefficients(self, points, d: int, n_targets: int) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts of the targets solved so far; zeros for the rest."""
        coef, c = np.zeros((n_targets, d + self.penalised)), np.zeros(n_targets)
        for k, point in enumerate(points):
            coef[k], c[k] = point.x, point.intercept
        return self._split(coef, c)


def checked_penalty(name: str, value: float, l1: float, l2: float) -> tuple[float, float]:
    """(l1, l2), of what ``name=value`` asks for; refused where float64 has no such numbers.

    A penalty that underflows would be none, and with it the certificate would go.
    """
    if not np.finfo(np.float64).tiny <= max(l1, l2) < np.inf:
        raise ValueError(
            f"{name}={value!r}: for these data the penalty would be l1={l1:g}, l2={l2:g}, which is "
            f"beyond the numbers of float64; give {name} nearer to 1"
        )
    return l1, l2


def liblinear_penalty(n: int, C: float, l1_ratio: float) -> tuple[float, float]:
    """(l1, l2) for liblinear's objective over n rows: C sum_i phi_i + penalty."""
    C = float(C)
    if np.isinf(C):
        return 0.0, 0.0
    with np.errstate(over="ignore", divide="ignore"):
        penalties = np.array([l1_ratio, 1.0 - l1_ratio]) / (np.float64(C) * n)
    return checked_penalty("C", C, *map(float, penalties))


def elastic_net_penalty(alpha: float, l1_ratio: float) -> tuple[float, float]:
    """(l1, l2) of scikit-learn's elastic net."""
    if alpha == 0.0:
        return 0.0, 0.0
    return checked_penalty("alpha", alpha, alpha * l1_ratio, alpha * (1.0 - l1_ratio))


def ridge_penalty(n: int, alpha: float) -> tuple[float, float]:
    """(0, l2) for scikit-learn's ridge regression over n rows, a sum."""
    return checked_penalty("alpha", alpha, 0.0, alpha / n) if alpha > 0.0 else (0.0, 0.0)
