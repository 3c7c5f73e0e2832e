"""scikit-learn's linear models, with a certificate: the same names, parameters and optimum."""

from .classifiers import LinearSVC, LogisticRegression
from .erm import ERMClassifier, ERMRegressor
from .regressors import ElasticNet, Lasso, LinearSVR, Ridge

__all__ = [
    "ERMClassifier", "ERMRegressor", "ElasticNet", "Lasso", "LinearSVC", "LinearSVR",
    "LogisticRegression", "Ridge",
]
