"""Fitted estimators as scikit-learn's own: the same coefficients, without adacoord.

========================================  ====================================================
here                                      there
========================================  ====================================================
LinearSVC, LinearSVR, LogisticRegression, the class of that name
Ridge, RidgeClassifier, Lasso, ElasticNet,
PoissonRegressor, GammaRegressor,
TweedieRegressor, QuantileRegressor,
HuberRegressor, MultiTaskLasso,
MultiTaskElasticNet
GroupLasso                                LinearRegression: there is no class for groups
the same with CV                          the class of that name without CV, with the penalty
                                          that was chosen
ERMClassifier                             LogisticRegression where there are probabilities,
                                          else LinearSVC
ERMRegressor                              HuberRegressor (for log_cosh, too), LinearSVR,
                                          QuantileRegressor, PoissonRegressor, GammaRegressor,
                                          TweedieRegressor or ElasticNet, after the loss
========================================  ====================================================

Probabilities of one class against the rest are those of a ``OneVsRestClassifier`` of
``LogisticRegression``.  Parameters of the same name and meaning are kept; ``tol``, ``solver`` and
``max_iter`` mean something else there, and the penalty of the ERM classes is in another scaling:
they are left as scikit-learn has them, which matters only to who fits the result again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.base import BaseEstimator, is_classifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from ..problem.losses import get_loss

_CLASSES = {
    "LinearSVC": svm.LinearSVC,
    "LinearSVR": svm.LinearSVR,
    "LogisticRegression": linear_model.LogisticRegression,
    "Ridge": linear_model.Ridge,
    "Lasso": linear_model.Lasso,
    "ElasticNet": linear_model.ElasticNet,
    "PoissonRegressor": linear_model.PoissonRegressor,
    "GammaRegressor": linear_model.GammaRegressor,
    "TweedieRegressor": linear_model.TweedieRegressor,
    "QuantileRegressor": linear_model.QuantileRegressor,
    "HuberRegressor": linear_model.HuberRegressor,
    "MultiTaskLasso": linear_model.MultiTaskLasso,
    "MultiTaskElasticNet": linear_model.MultiTaskElasticNet,
    # which has no class for groups: the same coefficients
    "GroupLasso": linear_model.LinearRegression,
}
_SAME = (
    "alpha",
    "C",
    "class_weight",
    "epsilon",
    "fit_intercept",
    "l1_ratio",
    "link",
    "loss",
    "penalty",
    "positive",
    "power",
    "quantile",
)
#: The values that are known there too.
_VALUES = {
    "loss": ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"),
    "penalty": ("l1", "l2"),
}
#: Of each loss of regression its class, and what the loss's parameter is called there.
_REGRESSORS = {
    "squared": (linear_model.ElasticNet, {}),
    "huber": (linear_model.HuberRegressor, {}),
    "log_cosh": (linear_model.HuberRegressor, {}),
    "epsilon_insensitive": (svm.LinearSVR, {"epsilon": "epsilon"}),
    "squared_epsilon_insensitive": (svm.LinearSVR, {"epsilon": "epsilon"}),
    "absolute": (linear_model.QuantileRegressor, {}),
    "quantile": (linear_model.QuantileRegressor, {"q": "quantile"}),
    "poisson": (linear_model.PoissonRegressor, {}),
    "gamma": (linear_model.GammaRegressor, {}),
    "tweedie": (linear_model.TweedieRegressor, {"power": "power"}),
}


class ExportMixin:
    """Adds :meth:`to_sklearn` to the estimators."""

    def to_sklearn(self) -> BaseEstimator:
        """The fitted estimator as one of scikit-learn's, which predicts the same.

        Returns
        -------
        estimator
            Of the class that the module's docstring names; it is independent of this one.
        """
        check_is_fitted(self, "coef_")
        if is_classifier(self):
            return _classifier(self)
        model: Any = self
        return _with_coefficients(_regressor(model), model, model.coef_, model.intercept_)


def _classifier(model) -> BaseEstimator:
    if type(model).__name__ == "RidgeClassifier":
        return _ridge_classifier(model)
    probable = hasattr(model, "predict_proba")
    kind = linear_model.LogisticRegression if probable else svm.LinearSVC
    other = kind(**_shared(model, kind))
    several = len(model.classes_) > 2 and np.ndim(model.relative_gap_) > 0
    if not (probable and several):
        other = _with_coefficients(other, model, model.coef_, model.intercept_)
        other.classes_ = model.classes_.copy()
        return other
    rest = OneVsRestClassifier(other)
    # several rows of each class, or scikit-learn takes the labels for a regression's targets
    rest.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(np.tile(model.classes_, 3))
    if not hasattr(OneVsRestClassifier, "classes_"):  # before 1.8 it asks the binarizer
        rest.classes_ = rest.label_binarizer_.classes_
    rest.estimators_ = []
    for k in range(len(model.classes_)):
        one = kind(**_shared(model, kind))
        one = _with_coefficients(one, model, model.coef_[k : k + 1], model.intercept_[k : k + 1])
        one.classes_ = np.array([0, 1])
        rest.estimators_.append(one)
    rest.n_features_in_ = model.n_features_in_
    return rest


def _ridge_classifier(model) -> BaseEstimator:
    kind = linear_model.RidgeClassifier
    other = _with_coefficients(kind(**_shared(model, kind)), model, model.coef_, model.intercept_)
    # its classes_ are those of the binarizer; several rows of each class, as below
    other._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
    other._label_binarizer.fit(np.tile(model.classes_, 3))
    if not hasattr(kind, "classes_"):  # from 1.9 on they are an attribute
        other.classes_ = model.classes_.copy()
    return other


def _regressor(model) -> BaseEstimator:
    name = type(model).__name__.removesuffix("CV")
    if name in _CLASSES:
        other = _CLASSES[name](**_shared(model, _CLASSES[name]))
        for learnt in ("scale_", "outliers_"):  # HuberRegressor's
            if hasattr(model, learnt):
                setattr(other, learnt, np.copy(getattr(model, learnt))[()])
        return _with_link(other)
    loss = get_loss(model.loss)
    kind, renamed = _REGRESSORS[loss.name]
    other = kind(
        fit_intercept=model.fit_intercept,
        **{there: getattr(loss, here) for here, there in renamed.items()},
    )
    if loss.name == "squared_epsilon_insensitive":
        other.set_params(loss=loss.name)
    return _with_link(other)


def _with_link(other) -> BaseEstimator:
    """A generalised linear model with what its fit makes and its predict asks for."""
    if hasattr(other, "_get_loss"):
        other._base_loss = other._get_loss()
    return other


def _shared(model, kind: Any) -> dict[str, Any]:
    """The parameters that mean the same there; what a search chose in place of what it tried."""
    params = model.get_params(deep=False)
    for name in ("alpha", "C", "l1_ratio"):
        chosen = set(np.ravel(np.asarray(getattr(model, f"{name}_", None))).tolist()) - {None}
        if len(chosen) == 1:  # one for all classes, or targets
            params[name] = chosen.pop()
    known = kind._get_param_names()
    return {
        name: value
        for name, value in params.items()
        if name in _SAME and name in known and (name not in _VALUES or value in _VALUES[name])
    }


def _with_coefficients(other, model, coef, intercept):
    """``other`` with the attributes that a prediction needs."""
    dense = coef.toarray() if sparse.issparse(coef) else np.array(coef)
    other.coef_ = dense
    other.intercept_ = np.array(intercept) if np.ndim(intercept) else float(intercept)
    other.n_features_in_ = model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        other.feature_names_in_ = model.feature_names_in_.copy()
    return other
