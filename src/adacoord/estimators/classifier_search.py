"""The search that ``LogisticRegressionCV`` and ``LinearSVCCV`` share: C and l1_ratio, on folds."""

from __future__ import annotations

import warnings
from dataclasses import replace
from inspect import signature
from numbers import Integral

import numpy as np
from sklearn.metrics import get_scorer, make_scorer
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled, process_routing
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_method_params

from ..data.matrix import as_matrix
from .base import EstimatorConvergenceWarning
from .classifiers import LinearClassifier
from .recipes import Classification, Rows, liblinear_penalty
from .row_blocks import refuse_blocks
from .search import (
    NEVER_WRONG,
    CrossValidated,
    Walk,
    as_rows,
    points,
    shifted,
    strong_first,
    weighted_mean,
)


class ClassifierCV(CrossValidated, LinearClassifier):
    """The shared search: a path over C for each l1_ratio on each fold, then one fit on all rows.

    A class says in ``_ratios`` which shares of l1 to choose from.
    """

    # `score` hands its weights on to the scorer
    __metadata_request__score = {"sample_weight": UNUSED}

    def fit(self, X, y, sample_weight=None, offset=None, **params):
        """Choose the penalty on folds, and fit the model with it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Of the losses, and of the scores on each fold; the mean over the folds is not weighted.
        offset : array of shape (n_samples,), or (n_samples, rows of ``coef_``), optional
            What is added to the decision function, on the folds as well.
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
        ratios, Cs = self._ratios(), self._checked_Cs()
        rows = self._rows(X, y, sample_weight)
        if rows.matrix is None:  # whose check refuses rows that only some folds have
            rows = replace(rows, matrix=as_matrix(rows.X, "X"))
        if rows.weights is not None and "sample_weight" in scoring:
            scoring = {**scoring, "sample_weight": rows.weights}
        recipe = self._recipe(rows)
        rows = recipe.with_offset(rows, offset)
        self._begin(rows)
        self.Cs_ = Cs
        folds = self._folds(rows.X, rows.y, classifier=True, **splitting)
        walks = self._walk(folds, self._walker(rows, recipe, ratios, scoring))
        self.scores_, self.path_gaps_, self.coefs_paths_ = (
            np.stack([getattr(w, name) for w in walks]) for name in ("scores", "gaps", "coefs")
        )
        missed = self._missed(walks)
        self.C_, self.l1_ratio_, coef, c = self._chosen(ratios)
        if self.refit:
            posed = self._posed(rows, recipe)
            known = np.abs(c).max() < NEVER_WRONG / len(folds)  # no fold without a class
            starts = posed.starts(coef, c) if known else [None] * recipe.count
            self._solve(posed, starts, missed)
        else:
            self._keep_mean(coef.astype(rows.X.dtype), c.astype(rows.X.dtype), recipe)
            if missed:
                warnings.warn(missed, EstimatorConvergenceWarning, stacklevel=2)
        self.n_iter_ = np.stack([w.passes for w in walks])
        self._present(ratios)
        return self

    def _penalty(self, n):
        C, ratio = (np.ravel(v)[0] for v in (self.C_, self.l1_ratio_))  # one for all classes
        return liblinear_penalty(n, C, float(ratio))

    def _walker(self, rows: Rows, recipe: Classification, ratios, scoring):
        """What to do on a fold."""
        d, Cs, order = rows.X.shape[1], self.Cs_, strong_first(-self.Cs_)

        def one_fold(train, test, solve):
            fold = with_every_class(train, rows)
            problems = recipe.problems(fold, [(1.0, 1.0)] * recipe.count)
            score = self._score_on(rows, test, scoring)
            walk, model = Walk.empty(len(ratios), Cs.size), self._plain(recipe)
            walk.coefs = np.empty((len(ratios), Cs.size, recipe.height, d + self.fit_intercept))
            for i, ratio in enumerate(ratios):
                penalties = [liblinear_penalty(len(fold.y), Cs[j], ratio) for j in order]
                for j, results in zip(order, points(problems, penalties, solve), strict=True):
                    coef, c = recipe.coefficients(results, d)
                    model.C, model.coef_, model.intercept_ = Cs[j], coef, c
                    walk.coefs[i, j, :, :d] = coef
                    if self.fit_intercept:
                        walk.coefs[i, j, :, d] = c
                    walk.note((i, j), score(model), results)
            return walk

        return one_fold

    def _chosen(self, ratios):
        """(C, l1_ratio, coefficients, intercepts): the best, and the mean of its models on folds.

        Without ``refit`` each fold has its own best, and all four are means.
        """
        scores = np.swapaxes(self.scores_, 1, 2)  # of equal ones the first C wins: scikit-learn's
        folds = np.arange(len(scores))
        flat = scores.reshape(folds.size, -1)
        best = np.argmax(flat.sum(axis=0)) if self.refit else np.argmax(flat, axis=1)
        j, i = np.unravel_index(np.broadcast_to(best, folds.shape), scores.shape[1:])
        mean = self.coefs_paths_[folds, i, j].mean(axis=0)
        if self.fit_intercept:
            coef, c = mean[:, :-1], mean[:, -1]
        else:
            coef, c = mean, np.zeros(len(mean), dtype=mean.dtype)
        if self.refit:
            return float(self.Cs_[j[0]]), float(ratios[i[0]]), coef, c
        return float(np.mean(self.Cs_[j])), float(np.mean(ratios[i])), coef, c

    def _keep_mean(self, coef, c, recipe) -> None:
        """The mean of the folds' best models: no optimum of anything, and without certificate."""
        self.coef_, self.intercept_ = np.ascontiguousarray(coef), c
        self.dual_gap_ = np.nan if recipe.count == 1 else np.full(recipe.count, np.nan)
        self.relative_gap_ = self.dual_gap_
        self.history_, self.solver_ = [], "auto"

    def _present(self, ratios) -> None:
        """Set ``l1_ratios_``, and shape what was found."""
        self.l1_ratios_ = ratios

    def _checked_Cs(self) -> np.ndarray:
        if isinstance(self.Cs, Integral):
            return np.logspace(-4, 4, self.Cs)
        Cs = np.asarray(self.Cs, dtype=np.float64)
        if Cs.ndim != 1 or not Cs.size or not (Cs > 0.0).all():
            raise ValueError(f"Cs={self.Cs!r}: it must be a number of Cs, or a list of positive Cs")
        return Cs

    # ---- scores -------------------------------------------------------------------------

    def _plain(self, recipe):
        """A model of the kind whose path is walked, to be scored."""
        model = self._kind(
            **{
                name: value
                for name, value in self.get_params(deep=False).items()
                if name in self._kind().get_params()
            }
        )
        model.classes_ = self.classes_
        model.dual_gap_ = 0.0 if recipe.count == 1 else np.zeros(recipe.count)
        return model

    def _score_on(self, rows: Rows, test, params):
        """The score of a model on the rows of a test fold."""
        left_out = rows.take(test)
        X, y = as_rows(left_out.X), left_out.y
        if self.scoring is None:
            codes, weights, offset = left_out.targets, left_out.weights, left_out.offset
            return lambda model: weighted_mean(_codes(model, X, offset) == codes, weights)
        scorer = _with_labels(get_scorer(self.scoring), self.classes_)
        params = _check_method_params(rows.X, params, indices=test)
        return lambda model: scorer(shifted(model, left_out), X, y, **params)

    def _scorer(self):
        return get_scorer(self.scoring or "accuracy")

    def score(self, X, y, sample_weight=None, **score_params):
        """The score by ``scoring`` (accuracy where it is None).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        **score_params : dict
            For the scorer; with scikit-learn's metadata routing only.

        Returns
        -------
        float
        """
        _raise_for_params(score_params, self, "score")
        if sample_weight is not None:
            score_params["sample_weight"] = sample_weight
        if _routing_enabled():
            score_params = process_routing(self, "score", **score_params).scorer.score
        return self._scorer()(self, X, y, **score_params)

    def get_metadata_routing(self):
        """What the splitter and the scorer ask for, to scikit-learn."""
        return self._router(self._scorer(), "fit", "score")


def with_every_class(train: np.ndarray, rows: Rows) -> Rows:
    """The rows of a fold: where it lacks a class, with a row of that class of weight 0.

    Such a row is in no loss, and lets every fold have the coefficients of every class.
    """
    assert rows.classes is not None  # the rows of a classifier
    missing = np.setdiff1d(np.arange(rows.classes.size), rows.targets[train])
    added = [np.flatnonzero(rows.targets == k)[0] for k in missing]
    fold = rows.take(np.append(train, added).astype(train.dtype))
    if not added:
        return fold
    weights = np.ones(len(fold.y)) if fold.weights is None else fold.weights
    return replace(fold, weights=np.where(np.arange(len(fold.y)) < train.size, weights, 0.0))


def checked_ratios(l1_ratios) -> np.ndarray:
    """The shares of l1 to choose from."""
    try:
        ratios = np.asarray(l1_ratios, dtype=np.float64)
    except (TypeError, ValueError):
        ratios = np.empty(0)
    if ratios.ndim != 1 or not ratios.size or not ((ratios >= 0.0) & (ratios <= 1.0)).all():
        raise ValueError(
            "l1_ratios must be an array-like of numbers between 0 and 1; got "
            f"(l1_ratios={l1_ratios!r})"
        )
    return ratios


def _codes(model, X, offset) -> np.ndarray:
    """What ``predict`` says, as codes; rows of the data were checked, as they are once a fit."""
    z = X @ model.coef_.T + model.intercept_
    if offset is not None:
        z += offset.T
    return z.argmax(axis=1) if z.shape[1] > 1 else z[:, 0] > 0.0


def _with_labels(scorer, classes):
    """The scorer, told of all classes where it takes them: a test fold may lack one."""
    known = signature(scorer._score_func).parameters if hasattr(scorer, "_score_func") else ()
    if "labels" not in known:
        return scorer
    own = dict(scorer._kwargs)
    if classes.size == 2 and "pos_label" in known:
        own = {"pos_label": classes[-1], **own}
    return make_scorer(
        scorer._score_func,
        greater_is_better=scorer._sign == 1,
        response_method=scorer._response_method,
        **{"labels": classes, **own},
    )
