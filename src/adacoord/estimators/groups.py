"""``GroupLasso``, and ``MultiTaskElasticNet`` with ``MultiTaskLasso``: coefficients that are zero
together, of several columns or of several targets."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import MultiOutputMixin
from sklearn.utils._param_validation import Interval, StrOptions

from ..problem import Problem
from ..problem.losses import get_loss
from .base import LinearEstimator
from .columns import COLUMNS
from .recipes import Recipe, Regression, Rows
from .regressors import LinearRegressor


@dataclass(frozen=True, kw_only=True)
class Grouped(Regression):
    """One target, and groups of columns; penalties are (l21, l1, l2).

    Attributes
    ----------
    groups : a label for each column
    group_weights : of the groups, or None
    """

    groups: Any
    group_weights: Any

    def problems(self, rows: Rows, penalties) -> list[Problem]:
        matrix = rows.as_matrix(self.columns)
        weights = mean_one(rows.weights)
        return [
            Problem(
                matrix,
                rows.targets[k],
                self.loss,
                l21=l21,
                l1=l1,
                l2=l2,
                groups=self.groups,
                group_weights=self.group_weights,
                offset=self._offset(rows, k),
                sample_weight=weights,
                intercept=self.fit_intercept,
            )
            for k, (l21, l1, l2) in enumerate(penalties)
        ]


@dataclass(frozen=True, kw_only=True)
class Tasks(Recipe):
    """All targets in one problem, with rows of coefficients as groups; penalties are (l21, l2).

    Attributes
    ----------
    n_targets : of y
    """

    n_targets: int

    @property
    def count(self) -> int:
        return 1

    @property
    def height(self) -> int:
        return self.n_targets

    def _targets(self, rows: Rows, k: int) -> tuple[np.ndarray, np.ndarray | None]:
        return rows.targets.T if self.n_targets > 1 else rows.targets[0], rows.weights

    def problems(self, rows: Rows, penalties) -> list[Problem]:
        [(l21, l2)] = penalties
        b, weights = self._targets(rows, 0)
        offset = rows.offset
        if offset is not None:
            offset = offset.T if self.n_targets > 1 else offset[0]
        return [
            Problem(
                rows.as_matrix(self.columns),
                b,
                self.loss,
                l21=l21,
                l2=l2,
                offset=offset,
                sample_weight=mean_one(weights),
                intercept=self.fit_intercept,
            )
        ]

    def coefficients(self, points, d: int) -> tuple[np.ndarray, np.ndarray]:
        [point] = points
        coef = self.columns.in_units(np.array(point.x.reshape(d, -1).T, order="C"))
        return coef, np.array(np.atleast_1d(point.intercept), dtype=np.float64)

    def points(self, coef, c) -> list[tuple[np.ndarray, Any]]:
        coef, c = coef.astype(np.float64, copy=False), c.astype(np.float64, copy=False)
        coef = self.columns.of_units(coef)
        if self.n_targets == 1:
            return [(coef[0], float(c[0]))]
        return [(np.array(coef.T, order="C"), np.array(c))]

    def shaped(self, coef, c) -> dict[str, Any]:
        coef = np.asfortranarray(coef)  # as scikit-learn's has it
        return {"coef_": coef, "intercept_": c if self.fit_intercept else np.zeros(self.height)}

    def duals(self, results) -> np.ndarray:
        [result] = results
        return np.ascontiguousarray(result.y.reshape(len(result.y), -1).T)


def mean_one(weights: np.ndarray | None) -> np.ndarray | None:
    """Weights of a mean of 1."""
    return None if weights is None else weights * (weights.size / weights.sum())


class GroupLasso(LinearRegressor):
    r"""Least squares with a penalty that makes groups of coefficients zero together.

    Minimises :math:`\frac{1}{2 \sum_i w_i} \sum_i w_i (a_i^Tx + c - b_i)^2 + \alpha (1 - r) \sum_G
    \omega_G |x_G|_2 + \alpha r |x|_1` with r = ``l1_ratio``, to a certified optimum: the group
    lasso for r = 0, the sparse group lasso for 0 < r < 1.

    Parameters
    ----------
    alpha : float, default=1.0
        The weight of the penalty; larger than 0.
    groups : array of shape (n_features,), default=None
        A label for each column, a number or a string.  None: each column is a group by itself.
    group_weights : array of shape (n_groups,), default=None
        :math:`\omega_G`, in the order of the sorted labels; None for the square root of the number
        of columns of each group.
    l1_ratio : float, default=0.0
        The share of l1, 0 to 1 (1 not included: that is :class:`Lasso`).
    fit_intercept : bool, default=True
        The intercept is not penalised.
    max_iter : int, default=1000
        Passes over the data.
    tol : float, default=1e-4
        The relative duality gap to reach.
    warm_start : bool, default=False
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : {"auto", "acf"}, default="auto"
        See :func:`adacoord.solve`.
    verbose : int, default=0
    standardize : bool, default=False
        The penalty acts on columns of unit deviation; the coefficients are those of X as it is.
        X is never centred: sparse data stay sparse.  Constant columns keep their units.
    n_jobs : int or None, default=None
        Without effect: there is one problem.
    keep_dual : bool or None, default=None
        Whether to keep ``dual_coef_``, a number for each row: None keeps up to 1 MB of it, or all
        of it with ``warm_start=True``, which starts from it.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    sparse_coef_ : the same as a sparse matrix
    intercept_ : float
    n_iter_ : passes over the data
    dual_coef_ : array of shape (n_samples,); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        "standardize": COLUMNS["standardize"],
        "alpha": [Interval(Real, 0.0, None, closed="neither")],
        "groups": [None, "array-like"],
        "group_weights": [None, "array-like"],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="left")],
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        groups=None,
        group_weights=None,
        l1_ratio=0.0,
        fit_intercept=True,
        max_iter=1000,
        tol=1e-4,
        warm_start=False,
        random_state=None,
        solver="auto",
        verbose=0,
        standardize=False,
        n_jobs=None,
        keep_dual=None,
    ):
        self.alpha = alpha
        self.groups = groups
        self.group_weights = group_weights
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.solver = solver
        self.verbose = verbose
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.keep_dual = keep_dual

    def _recipe(self, rows):
        return grouped(self, rows)

    def _penalties(self, rows, recipe):
        return [group_penalty(self.alpha, self.l1_ratio)]

    @property
    def sparse_coef_(self):
        """``coef_`` as a sparse matrix."""
        return sparse.csr_matrix(self.coef_)


def grouped(model, rows: Rows) -> Grouped:
    """The recipe of a group lasso."""
    return Grouped(
        loss=get_loss("squared"),
        fit_intercept=model.fit_intercept,
        n_targets=len(rows.targets),
        flat=rows.y.ndim == 1,
        columns=model._columns(rows),
        groups=np.arange(rows.X.shape[1]) if model.groups is None else model.groups,
        group_weights=model.group_weights,
    )


def group_penalty(alpha: float, l1_ratio: float) -> tuple[float, float, float]:
    """(l21, l1, l2)."""
    return alpha * (1.0 - l1_ratio), alpha * l1_ratio, 0.0


class MultiTaskElasticNet(MultiOutputMixin, LinearRegressor):
    r"""Least squares of several targets whose coefficients are zero together, for each column.

    Minimises :math:`\frac{1}{2 n} |B - A W - 1 c^T|_F^2 + \alpha r \sum_j |W_j|_2 + \frac{\alpha
    (1 - r)}{2} |W|_F^2` with r = ``l1_ratio`` and the rows :math:`W_j`, to a certified optimum.

    Parameters
    ----------
    alpha : float, default=1.0
        The weight of the penalty; larger than 0.
    l1_ratio : float, default=0.5
        The share of the norms of rows; 0 leaves the l2 alone.
    fit_intercept : bool, default=True
        The intercepts are not penalised.
    copy_X, selection
        Taken for the sake of calls to scikit-learn's class; they have no effect.
    max_iter : int, default=1000
        Passes over the data.
    tol : float, default=1e-4
        The relative duality gap to reach.
    warm_start : bool, default=False
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : {"auto", "acf"}, default="auto"
        See :func:`adacoord.solve`.
    verbose : int, default=0
    standardize : bool, default=False
        The penalty acts on columns of unit deviation; the coefficients are those of X as it is.
        X is never centred: sparse data stay sparse.  Constant columns keep their units.
    n_jobs : int or None, default=None
        Without effect: there is one problem.
    keep_dual : bool or None, default=None
        Whether to keep ``dual_coef_``, a number for each row: None keeps up to 1 MB of it, or all
        of it with ``warm_start=True``, which starts from it.

    Attributes
    ----------
    coef_ : array of shape (n_targets, n_features)
    sparse_coef_ : the same as a sparse matrix
    intercept_ : array of shape (n_targets,)
    n_iter_ : passes over the data
    dual_coef_ : array of shape (n_targets, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _multi_output = True
    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        "standardize": COLUMNS["standardize"],
        "alpha": [Interval(Real, 0.0, None, closed="neither")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "copy_X": ["boolean"],
        "selection": [StrOptions({"cyclic", "random"})],
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        l1_ratio=0.5,
        fit_intercept=True,
        copy_X=True,
        max_iter=1000,
        tol=1e-4,
        warm_start=False,
        random_state=None,
        selection="cyclic",
        solver="auto",
        verbose=0,
        standardize=False,
        n_jobs=None,
        keep_dual=None,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.selection = selection
        self.solver = solver
        self.verbose = verbose
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.keep_dual = keep_dual

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

    def _rows(self, X, y, sample_weight):
        rows = super()._rows(X, y, sample_weight)
        if rows.y.ndim == 1:
            other = "Lasso" if type(self) is MultiTaskLasso else "ElasticNet"
            raise ValueError(
                f"y has shape {rows.y.shape}: For mono-task outputs, use {other}; several targets "
                "are columns of y"
            )
        return rows

    def _recipe(self, rows):
        return Tasks(
            loss=get_loss("squared"),
            fit_intercept=self.fit_intercept,
            n_targets=len(rows.targets),
            columns=self._columns(rows),
        )

    def _penalties(self, rows, recipe):
        ratio = self.l1_ratio
        return [(self.alpha * ratio, self.alpha * (1.0 - ratio))]

    @property
    def sparse_coef_(self):
        """``coef_`` as a sparse matrix."""
        return sparse.csr_matrix(self.coef_)


class MultiTaskLasso(MultiTaskElasticNet):
    r"""Least squares of several targets whose coefficients are zero together, for each column.

    Minimises :math:`\frac{1}{2 n} |B - A W - 1 c^T|_F^2 + \alpha \sum_j |W_j|_2` with the rows
    :math:`W_j`, to a certified optimum.

    Parameters
    ----------
    alpha : float, default=1.0
        The weight of the penalty; larger than 0.
    fit_intercept : bool, default=True
        The intercepts are not penalised.
    copy_X, selection
        Taken for the sake of calls to scikit-learn's class; they have no effect.
    max_iter : int, default=1000
        Passes over the data.
    tol : float, default=1e-4
        The relative duality gap to reach.
    warm_start : bool, default=False
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : {"auto", "acf"}, default="auto"
        See :func:`adacoord.solve`.
    verbose : int, default=0
    standardize : bool, default=False
        The penalty acts on columns of unit deviation; the coefficients are those of X as it is.
        X is never centred: sparse data stay sparse.  Constant columns keep their units.
    n_jobs : int or None, default=None
        Without effect: there is one problem.
    keep_dual : bool or None, default=None
        Whether to keep ``dual_coef_``, a number for each row: None keeps up to 1 MB of it, or all
        of it with ``warm_start=True``, which starts from it.

    Attributes
    ----------
    coef_ : array of shape (n_targets, n_features)
    sparse_coef_ : the same as a sparse matrix
    intercept_ : array of shape (n_targets,)
    n_iter_ : passes over the data
    dual_coef_ : array of shape (n_targets, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _parameter_constraints: dict = {**MultiTaskElasticNet._parameter_constraints}
    _parameter_constraints.pop("l1_ratio")

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        copy_X=True,
        max_iter=1000,
        tol=1e-4,
        warm_start=False,
        random_state=None,
        selection="cyclic",
        solver="auto",
        verbose=0,
        standardize=False,
        n_jobs=None,
        keep_dual=None,
    ):
        super().__init__(
            alpha=alpha,
            fit_intercept=fit_intercept,
            copy_X=copy_X,
            max_iter=max_iter,
            tol=tol,
            warm_start=warm_start,
            random_state=random_state,
            selection=selection,
            solver=solver,
            verbose=verbose,
            standardize=standardize,
            n_jobs=n_jobs,
        )
        self.l1_ratio = 1.0
        self.keep_dual = keep_dual
