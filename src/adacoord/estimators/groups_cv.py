"""``GroupLassoCV``: the group lasso with an alpha that cross-validation chooses."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval

from ..data.matrix import as_matrix
from .base import LinearEstimator
from .columns import COLUMNS
from .groups import group_penalty, grouped
from .recipes import Posed
from .regressors import LinearRegressor
from .search import CrossValidated, Walk, weighted_mean


class GroupLassoCV(CrossValidated, LinearRegressor):
    r"""Least squares with groups of coefficients, alpha chosen by cross-validation.

    Minimises what :class:`GroupLasso` does for every alpha on every fold, from strong to weak, each
    from where the last one ended and to a certified optimum; and then for the best alpha on all
    rows.  The best has the least mean over the folds of the (weighted) mean squared error.

    Parameters
    ----------
    groups : array of shape (n_features,), default=None
        A label for each column, a number or a string.  None: each column is a group by itself.
    group_weights : array of shape (n_groups,), default=None
        In the order of the sorted labels; None for the square root of the number of columns of
        each group.
    l1_ratio : float, default=0.0
        The share of l1, 0 to 1 (1 not included: that is :class:`LassoCV`).
    eps : float, default=1e-2
        The last alpha of an automatic path over the first, at which x = 0.
    alphas : int or array, default=50
        The alphas to choose from, or how many of them the automatic path has.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    max_iter : int, default=1000
        Passes over the data for each alpha and fold.
    tol : float, default=1e-4
        The relative duality gap to reach.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; None is 5 folds.
    verbose : int, default=0
    standardize : bool, default=False
        The penalty acts on columns of unit deviation; the coefficients are those of X as it is.
        X is never centred: sparse data stay sparse.  Constant columns keep their units.
    n_jobs : int or None, default=None
        Folds at the same time.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : {"auto", "acf"}, default="auto"
        See :func:`adacoord.solve`.
    keep_dual : bool or None, default=None
        Whether to keep ``dual_coef_``, a number for each row: None keeps up to 1 MB of it.

    Attributes
    ----------
    alpha_ : the best
    alphas_ : array of shape (n_alphas,), from strong to weak
    mse_path_ : array of shape (n_alphas, n_folds)
    path_gaps_ : the relative gaps of all these models, in the same shape
    coef_ : array of shape (n_features,)
    intercept_ : float
    n_iter_ : passes over the data of the last solution
    dual_coef_ : array of shape (n_samples,); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate of the last solution
    history_ : what each gap check of it saw
    solver_ : the method that found it
    """

    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        "standardize": COLUMNS["standardize"],
        "groups": [None, "array-like"],
        "group_weights": [None, "array-like"],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="left")],
        "eps": [Interval(Real, 0.0, 1.0, closed="neither")],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
    }
    _parameter_constraints.pop("warm_start")

    def __init__(
        self,
        *,
        groups=None,
        group_weights=None,
        l1_ratio=0.0,
        eps=1e-2,
        alphas=50,
        fit_intercept=True,
        max_iter=1000,
        tol=1e-4,
        cv=None,
        verbose=0,
        standardize=False,
        n_jobs=None,
        random_state=None,
        solver="auto",
        keep_dual=None,
    ):
        self.groups = groups
        self.group_weights = group_weights
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.verbose = verbose
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.solver = solver
        self.keep_dual = keep_dual

    def fit(self, X, y, sample_weight=None, offset=None, **params):
        """Choose alpha on folds, and fit the model with it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Of the losses, and of the squared errors on each fold.
        offset : array of shape (n_samples,), optional
            What is added to the predictions, on the folds as well.
        **params : dict
            For the splitter, such as ``groups``; with scikit-learn's metadata routing only.

        Returns
        -------
        self
        """
        self._validate_params()
        self._refuse_checkpoint()
        splitting, _ = self._routed(params, sample_weight, scored=False)
        rows = self._rows(X, y, sample_weight)
        recipe = self._recipe(rows)
        rows = recipe.with_offset(rows, offset)
        [problem] = recipe.problems(rows, [group_penalty(1.0, self.l1_ratio)])
        alphas = self._grid(problem)
        self._begin(rows)
        folds = self._folds(rows.X, rows.y, classifier=False, **splitting)

        def along(problem, alphas, solve):
            last = None
            for alpha in alphas:
                l21, l1, l2 = group_penalty(float(alpha), self.l1_ratio)
                last = solve(problem.with_penalty(l1=l1, l2=l2, l21=l21), last)
                if last.status == "interrupted":
                    raise KeyboardInterrupt
                yield last

        def one_fold(train, test, solve):
            [problem] = recipe.problems(rows.take(train), [group_penalty(1.0, self.l1_ratio)])
            left_out = rows.take(test)
            held_out, target = as_matrix(left_out.X, "X"), left_out.without_offset[0]
            walk = Walk.empty(1, alphas.size)
            for j, result in enumerate(along(problem, alphas, solve)):
                x = recipe.columns.in_units(result.x)
                errors = np.square(held_out.dot(x) + result.intercept - target)
                walk.note((0, j), weighted_mean(errors, left_out.weights), [result])
            return walk

        walks = self._walk(folds, one_fold)
        self.alphas_ = alphas
        self.mse_path_ = np.stack([w.scores[0] for w in walks], axis=-1)
        self.path_gaps_ = np.stack([w.gaps[0] for w in walks], axis=-1)
        best = int(np.argmin(self.mse_path_.mean(axis=-1)))
        self.alpha_ = float(alphas[best])
        start = None  # a weak penalty is found sooner by way of the stronger ones
        for found in along(problem, alphas[:best], self._runner()):
            start = found
        posed = Posed(rows, recipe, recipe.problems(rows, self._penalties(rows, recipe)))
        return self._solve(posed, [start], self._missed(walks))

    def _grid(self, problem) -> np.ndarray:
        """The alphas, from strong to weak."""
        if isinstance(self.alphas, Integral):
            largest = problem.l1_max()  # the factor of l21 and l1 at which x = 0
            largest = max(largest, np.finfo(np.float64).resolution)
            return np.geomspace(largest, largest * self.eps, int(self.alphas))
        alphas = np.asarray(self.alphas, dtype=np.float64)
        if alphas.ndim != 1 or not alphas.size or not (alphas > 0.0).all():
            raise ValueError(
                f"alphas={self.alphas!r}: give a number of them, or a list of numbers larger than 0"
            )
        return np.sort(alphas)[::-1]

    def _recipe(self, rows):
        return grouped(self, rows)

    def _penalties(self, rows, recipe):
        return [group_penalty(self.alpha_, self.l1_ratio)]

    @property
    def sparse_coef_(self):
        """``coef_`` as a sparse matrix."""
        return sparse.csr_matrix(self.coef_)

    def get_metadata_routing(self):
        """Who asks for metadata: the splitter.

        Returns
        -------
        MetadataRouter
        """
        return self._router()
