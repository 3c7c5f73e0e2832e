"""``RidgeCV``: alpha chosen by leaving each row out in turn, or on folds."""

from __future__ import annotations

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
from .leave_one_out import leave_one_out
from .recipes import Rows, ridge_penalties, ridge_penalty
from .regressors import LinearRegressor, Ridge
from .search import CrossValidated, Walk, as_rows, points, strong_first


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
    dual_coef_ : array of shape (n_samples,) or (n_targets, n_samples)
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

    def fit(self, X, y, sample_weight=None, **params):
        """Choose alpha, and fit the model with it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,) or a number, optional
        **params : dict
            For the splitter and the scorer; with scikit-learn's metadata routing only.

        Returns
        -------
        self
        """
        self._validate_params()
        splitting, scoring = self._routed(params, sample_weight, scored=True)
        alphas = self._checked_alphas()
        rows = self._rows(X, y, sample_weight)
        if rows.weights is not None and "sample_weight" in scoring:
            scoring = {**scoring, "sample_weight": rows.weights}
        recipe = self._recipe(rows)
        self._begin(rows)
        if self.cv is None:
            missed = ""
            self._leave_one_out(rows, alphas, scoring)
        else:
            missed = self._on_folds(rows, recipe, alphas, splitting, scoring)
        return self._solve(self._posed(rows, recipe), [None] * recipe.count, missed)

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

    def _leave_one_out(self, rows: Rows, alphas, scoring) -> None:
        X, y, Y = rows.X, rows.y, rows.targets.T
        scorer = None if self.scoring is None else self._scorer()
        apart = self.alpha_per_target and Y.shape[1] > 1
        scores, kept = [], []
        decomposed = leave_one_out(
            X, Y, rows.weights, self.fit_intercept, alphas, svd=self.gcv_mode == "svd"
        )
        for errors, predictions in decomposed:
            values = np.square(errors) if scorer is None else predictions
            if scorer is None:
                scores.append(-values.mean(axis=0) if apart else -values.mean())
            elif apart:
                scores.append(
                    [
                        scorer(_Echo(), predictions[:, j], Y[:, j], **scoring)
                        for j in range(Y.shape[1])
                    ]
                )
            else:
                scores.append(scorer(_Echo(), predictions.reshape(y.shape), y, **scoring))
            if self.store_cv_results:
                kept.append(values.reshape(y.shape))
        table = np.array(scores, dtype=np.float64)
        best = np.argmax(table, axis=0)
        self.alpha_ = alphas[best] if apart else float(alphas[best])
        self.best_score_ = table.max(axis=0) if apart else float(table.max())
        if self.store_cv_results:
            self.cv_results_ = np.stack(kept, axis=-1).astype(X.dtype)

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
            problems = recipe.problems(rows.take(train), [(0.0, 0.0)] * recipe.count)
            held_out, model = as_rows(X[test]), Ridge(fit_intercept=self.fit_intercept)
            how = _check_method_params(X, scoring, indices=test)
            penalties = [ridge_penalty(len(train), float(alpha)) for alpha in alphas[order]]
            walk = Walk.empty(1, alphas.size)
            for j, results in zip(order, points(problems, penalties, solve), strict=True):
                coef, c = recipe.coefficients(results, X.shape[1])
                model.alpha, model.coef_ = alphas[j], coef.reshape(y.shape[1:] + X.shape[1:])
                model.intercept_ = c.reshape(y.shape[1:])
                walk.note((0, j), scorer(model, held_out, y[test], **how), results)
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
