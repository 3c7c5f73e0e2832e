"""scikit-learn's linear models, with a certificate: the same names, parameters and optimum."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .classifiers import LinearSVC, LogisticRegression
    from .classifiers_cv import LinearSVCCV, LogisticRegressionCV
    from .erm import ERMClassifier, ERMRegressor
    from .glm import GammaRegressor, PoissonRegressor, TweedieRegressor
    from .groups import GroupLasso, MultiTaskElasticNet, MultiTaskLasso
    from .groups_cv import GroupLassoCV
    from .regressors import ElasticNet, Lasso, LinearSVR, Ridge
    from .regressors_cv import ElasticNetCV, LassoCV
    from .ridge_classifier import RidgeClassifier
    from .ridge_cv import RidgeCV
    from .robust import HuberRegressor, QuantileRegressor

__all__ = [
    "ERMClassifier",
    "ERMRegressor",
    "ElasticNet",
    "ElasticNetCV",
    "GammaRegressor",
    "HuberRegressor",
    "GroupLasso",
    "GroupLassoCV",
    "Lasso",
    "LassoCV",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "PoissonRegressor",
    "QuantileRegressor",
    "MultiTaskElasticNet",
    "MultiTaskLasso",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "TweedieRegressor",
]

# Imported on first use: who fits one model does not wait for the others.
_HOMES = {
    "LinearSVC": "classifiers",
    "LogisticRegression": "classifiers",
    "LinearSVCCV": "classifiers_cv",
    "LogisticRegressionCV": "classifiers_cv",
    "ERMClassifier": "erm",
    "ERMRegressor": "erm",
    "GammaRegressor": "glm",
    "PoissonRegressor": "glm",
    "TweedieRegressor": "glm",
    "GroupLasso": "groups",
    "MultiTaskElasticNet": "groups",
    "MultiTaskLasso": "groups",
    "GroupLassoCV": "groups_cv",
    "ElasticNet": "regressors",
    "Lasso": "regressors",
    "LinearSVR": "regressors",
    "Ridge": "regressors",
    "ElasticNetCV": "regressors_cv",
    "LassoCV": "regressors_cv",
    "RidgeClassifier": "ridge_classifier",
    "RidgeCV": "ridge_cv",
    "HuberRegressor": "robust",
    "QuantileRegressor": "robust",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
