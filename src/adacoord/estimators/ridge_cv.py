"""``RidgeCV``: alpha chosen by leaving each row out in turn, or on folds."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_method_params, check_scalar

from ..problem.losses import get_loss
from .base import LinearEstimator
from .columns import COLUMNS
from .leave_one_out import LeftOut, leave_one_out
from .recipes import Rows, ridge_penalties, ridge_penalty
from .regressors import LinearRegressor, Ridge
from .row_blocks import refuse_blocks
from .search import CrossValidated, Walk, as_rows, points, shifted, strong_first


class RidgeCV(MultiOutputMixin, CrossValidated, LinearRegressor):
    r"""Least squares with an l2 penalty that cross-validation chooses.

    Minimises :math:`\sum_i w_i (a_i^Tx + c - b_i)^2 + \alpha |x|^2` for the best alpha, to a
    certified optimum.

    Parameters
    ----------
    alphas : array, default=(0.1, 1.0, 10.0)
        The alphas to choose from.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    scoring : str, callable or None, default=None
        None for the negative (weighted) mean squared error where ``cv`` is None, else for R^2.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None leaves each row out in turn, exactly and at once (from one decomposition).
    gcv_mode : {"auto", "svd", "eigen"} or None, default=None
        How X is decomposed for ``cv=None``: the products of its rows or columns, whichever are
        fewer; or, with "svd" and dense X, itself.
    store_cv_results : bool, default=False
        Keep ``cv_results_``, for ``cv=None``.
    alpha_per_target : bool, default=False
        An alpha for each target, for ``cv=None``.
    max_iter : int or None, default=None
        Passes over the data; None for 1000.
    tol : float, default=1e-4
        The relative duality gap to reach.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
    n_jobs : int or None, default=None
        Folds to walk at the same time, in threads; and targets to fit.
    penalty_factor : array of shape (n_features,), default=None
        A factor of the penalty for each column, zero or more; 0 for a column that is not
        penalised.  They are used as they are.
    bounds : tuple (lower, upper), default=None
        Only coefficients from lower to upper, each a number or an array of shape (n_features,);
        None, or an infinite one, is no bound.
    standardize : bool, default=False
        The penalty acts on columns of unit deviation; the coefficients are those of X as it is.
        It is a penalty factor by another name, l1 times the deviation and l2 times its square, and
        X is never centred: sparse data stay sparse.  Constant columns keep their units.
    keep_dual : bool or None, default=None
        Whether to keep ``dual_coef_``, a number for each row: None keeps up to 1 MB of it.

    Attributes
    ----------
    alpha_ : the best; an array with ``alpha_per_target``
    best_score_ : its score; an array with ``alpha_per_target``
    cv_results_ : array of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas): the
        (weighted) squared errors of the rows left out, or with ``scoring`` their predictions
    path_gaps_ : array of shape (n_alphas, n_folds): the relative gaps of all models on folds;
        not for ``cv=None``, which has a closed form
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    n_iter_ : passes over the data of the last solution; a list if there are several targets
    dual_coef_ : array of shape (n_samples,) or (n_targets, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : its certificate; an array if there are several targets
    history_ : what each gap check of it saw
    solver_ : the method that found it

    Notes
    -----
    With ``sample_weight`` the scores on folds are weighted, too.  scikit-learn's are only with
    metadata routing enabled.
    """

    _multi_output = True
    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        **COLUMNS,
        "alphas": ["array-like", Interval(Real, 0.0, None, closed="neither")],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "cv": ["cv_object"],
        "gcv_mode": [StrOptions({"auto", "svd", "eigen"}), None],
        "store_cv_results": ["boolean"],
        "alpha_per_target": ["boolean"],
    }
    _parameter_constraints.pop("warm_start")

    def __init__(
        self,
        alphas=(0.1, 1.0, 10.0),
        *,
        fit_intercept=True,
        scoring=None,
        cv=None,
        gcv_mode=None,
        store_cv_results=False,
        alpha_per_target=False,
        max_iter=None,
        tol=1e-4,
        solver="auto",
        random_state=None,
        verbose=0,
        n_jobs=None,
        penalty_factor=None,
        bounds=None,
        standardize=False,
        keep_dual=None,
    ):
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.standardize = standardize
        self.keep_dual = keep_dual

    def fit(self, X, y, sample_weight=None, offset=None, **params):
        """Choose alpha, and fit the model with it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,) or a number, optional
        offset : array of the shape of y, optional
            What is added to the predictions, of the rows that are left out as well.
        **params : dict
            For the splitter and the scorer; with scikit-learn's metadata routing only.

        Returns
        -------
        self
        """
        self._validate_params()
        self._refuse_checkpoint()
        refuse_blocks(self, X)
        splitting, scoring = self._routed(params, sample_weight, scored=True)
        alphas = self._checked_alphas()
        rows = self._rows(X, y, sample_weight)
        if rows.weights is not None and "sample_weight" in scoring:
            scoring = {**scoring, "sample_weight": rows.weights}
        recipe = self._recipe(rows)
        rows = recipe.with_offset(rows, offset)
        self._begin(rows)
        if self.cv is not None:
            missed = self._on_folds(rows, recipe, alphas, splitting, scoring)
            return self._solve(self._posed(rows, recipe), [None] * recipe.count, missed)
        for name in ("penalty_factor", "bounds"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"cv=None and {name} are incompatible: each row is left out by a formula for "
                    "one penalty and no bounds; give cv, such as cv=5"
                )
        scaled = replace(rows, X=recipe.columns.scaled(rows.X), matrix=None)
        with np.errstate(all="ignore"):  # an alpha at which something overflows is not the best
            coef, c = self._leave_one_out(scaled, alphas, scoring)
        posed, starts = self._posed(rows, recipe), [None] * recipe.count
        if np.isfinite(coef).all() and np.isfinite(c).all():  # which leaves little to do
            starts = posed.starts(recipe.columns.in_units(coef), c)
        return self._solve(posed, starts)

    def _recipe(self, rows: Rows):
        return self._regression(rows, get_loss("squared"))

    def _penalties(self, rows: Rows, recipe):
        return ridge_penalties(rows.X.shape[0], self.alpha_, recipe.n_targets)

    def _checked_alphas(self) -> np.ndarray:
        bounds = "neither" if self.cv is None else "left"
        if np.ndim(self.alphas) == 1:
            for i, alpha in enumerate(self.alphas):
                name = "alphas" if len(self.alphas) == 1 else f"alphas[{i}]"
                check_scalar(alpha, name, Real, min_val=0.0, include_boundaries=bounds)
        return np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))

    # ---- each row in turn ---------------------------------------------------------------

    def _leave_one_out(self, rows: Rows, alphas, scoring) -> tuple[np.ndarray, np.ndarray]:
        """Choose alpha; the coefficients and intercepts of all rows for it."""
        X, y, Y = rows.X, rows.y, rows.without_offset.T
        shift = rows.targets.T - Y
        scorer = None if self.scoring is None else self._scorer()
        apart = self.alpha_per_target and Y.shape[1] > 1
        scores, kept = [], []
        groups = [slice(j, j + 1) for j in range(Y.shape[1])] if apart else [slice(None)]
        best: list[LeftOut] = []  # so far, for each group of targets
        highest = np.full(len(groups), -np.inf)
        decomposed = leave_one_out(
            X, Y, rows.weights, self.fit_intercept, alphas, svd=self.gcv_mode == "svd"
        )
        for left in decomposed:
            predictions = left.predictions + shift
            values = np.square(left.errors) if scorer is None else predictions
            if scorer is None:
                scores.append(-values.mean(axis=0) if apart else -values.mean())
            elif apart:
                scores.append(
                    [
                        scorer(_Echo(), predictions[:, j], rows.targets[j], **scoring)
                        for j in range(Y.shape[1])
                    ]
                )
            else:
                scores.append(scorer(_Echo(), predictions.reshape(y.shape), y, **scoring))
            better = highest < np.ravel(scores[-1])
            before = best or [left] * len(groups)
            best = [left if b else old for b, old in zip(better, before, strict=True)]
            highest = np.where(better, np.ravel(scores[-1]), highest)
            if self.store_cv_results:
                kept.append(values.reshape(y.shape))
        table = np.array(scores, dtype=np.float64)
        table[np.isnan(table)] = -np.inf
        if scorer is None and not np.isfinite(table.max(axis=0)).all():
            raise ValueError(
                "X and y are too large, or sample_weight is too far apart, to leave rows out in "
                "turn: all errors overflow; rescale them, or give folds with cv=5"
            )
        chosen = np.argmax(table, axis=0)
        self.alpha_ = alphas[chosen] if apart else float(alphas[chosen])
        self.best_score_ = table.max(axis=0) if apart else float(table.max())
        if self.store_cv_results:
            self.cv_results_ = np.stack(kept, axis=-1).astype(X.dtype)
        found = [left.model(targets) for left, targets in zip(best, groups, strict=True)]
        coef, c = (np.concatenate(part) for part in zip(*found, strict=True))
        return coef, c

    # ---- folds --------------------------------------------------------------------------

    def _on_folds(self, rows: Rows, recipe, alphas, splitting, scoring) -> str:
        """Choose alpha; what is to be said of the paths."""
        for name in ("store_cv_results", "alpha_per_target"):
            if getattr(self, name):
                raise ValueError(
                    f"cv!=None and {name}=True are incompatible: {name} is for cv=None, which "
                    "leaves each row out in turn"
                )
        X, y = rows.X, rows.y
        scorer, order = self._scorer(), strong_first(alphas)
        if "sample_weight" in scoring and not _routing_enabled() and not _weighs(scorer):
            scoring = {name: v for name, v in scoring.items() if name != "sample_weight"}

        def one_fold(train, test, solve):
            problems = recipe.problems(rows.take(train), [(1.0, 1.0)] * recipe.count)
            left_out, model = rows.take(test), Ridge(fit_intercept=self.fit_intercept)
            held_out = as_rows(left_out.X)
            how = _check_method_params(X, scoring, indices=test)
            penalties = [ridge_penalty(len(train), float(alpha)) for alpha in alphas[order]]
            walk = Walk.empty(1, alphas.size)
            for j, results in zip(order, points(problems, penalties, solve), strict=True):
                coef, c = recipe.coefficients(results, X.shape[1])
                model.alpha, model.coef_ = alphas[j], coef.reshape(y.shape[1:] + X.shape[1:])
                model.intercept_ = c.reshape(y.shape[1:])
                score = scorer(shifted(model, left_out), held_out, y[test], **how)
                walk.note((0, j), score, results)
            return walk

        walks = self._walk(self._folds(X, y, classifier=False, **splitting), one_fold)
        means = np.mean([w.scores[0] for w in walks], axis=0)
        best = int(np.argmax(means))
        self.alpha_, self.best_score_ = float(alphas[best]), float(means[best])
        self.path_gaps_ = np.stack([w.gaps[0] for w in walks], axis=-1)
        return self._missed(walks)

    # ---- metadata -----------------------------------------------------------------------

    def _scorer(self):
        if self.scoring is None:
            scorer = get_scorer("r2")
            return scorer.set_score_request(sample_weight=True) if _routing_enabled() else scorer
        return check_scoring(self, scoring=self.scoring)

    def get_metadata_routing(self):
        """What the splitter and the scorer ask for, to scikit-learn."""
        return self._router(self._scorer(), "fit")


class _Echo(RegressorMixin, BaseEstimator):
    """Predicts what it is given: scorers take an estimator."""

    def predict(self, X):
        return X


def _weighs(scorer) -> bool:
    """Whether a scorer takes ``sample_weight``."""
    return "sample_weight" in signature(getattr(scorer, "_score_func", scorer)).parameters
