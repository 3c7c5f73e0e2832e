"""scikit-learn's linear models, with a certificate: the same names, parameters and optimum."""

from .classifiers import LinearSVC, LogisticRegression
from .classifiers_cv import LinearSVCCV, LogisticRegressionCV
from .erm import ERMClassifier, ERMRegressor
from .regressors import ElasticNet, Lasso, LinearSVR, Ridge
from .regressors_cv import ElasticNetCV, LassoCV
from .ridge_cv import RidgeCV

__all__ = [
    "ERMClassifier",
    "ERMRegressor",
    "ElasticNet",
    "ElasticNetCV",
    "Lasso",
    "LassoCV",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Ridge",
    "RidgeCV",
]
