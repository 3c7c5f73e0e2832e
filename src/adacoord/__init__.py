r"""adacoord: regularised linear models to a certified optimum.

Notation, once, for the whole package:

.. math::

    P(x, c) = \frac1n \sum_i w_i \phi_i(a_i^T x + c) + g(x), \qquad
    D(y) = -\frac1n \sum_i w_i \phi_i^*(y_i) - g^*(-u)

=============  ================================================================
A, a_i, b_i    data matrix (n x d), its rows, the targets
phi, w_i       the loss and the weight of a row
g, l1, l2      the penalty l1 |x|_1 + l2/2 |x|_2^2 (l2 is lambda in the papers)
x, c           coefficients and (unpenalised) intercept: the primal point
y, u           the dual point, and (1/n) sum_i w_i y_i a_i
gap            P(x, c) - D(y) >= P(x, c) - P*: the certificate
gamma          phi is (1/gamma)-smooth
tau, sigma     primal and dual step sizes; theta the extrapolation
p_i            the probability of drawing row i
R_i, R, Rbar   |a_i|_2, its maximum and its mean
pass           n visits of a row
=============  ================================================================
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

# Imported on first use: `import adacoord` alone costs next to nothing.
_HOMES = {
    "Problem": "problem",
    "solve": "api.solve",
    "Result": "api.solve",
    "certify": "api.certify",
    "Certificate": "api.certify",
    "path": "api.path",
    "Path": "api.path",
    "config_context": "parallel.config",
    "ConvergenceWarning": "exceptions",
    "CheckpointWarning": "exceptions",
    **dict.fromkeys(
        (
            "LinearSVC",
            "LinearSVR",
            "LogisticRegression",
            "Ridge",
            "Lasso",
            "ElasticNet",
            "LinearSVCCV",
            "LogisticRegressionCV",
            "RidgeCV",
            "LassoCV",
            "ElasticNetCV",
            "PoissonRegressor",
            "GammaRegressor",
            "TweedieRegressor",
            "QuantileRegressor",
            "HuberRegressor",
            "RidgeClassifier",
            "GroupLasso",
            "GroupLassoCV",
            "MultiTaskLasso",
            "MultiTaskElasticNet",
            "ERMClassifier",
            "ERMRegressor",
        ),
        "estimators",
    ),
    "enet_path": "estimators.paths",
    "lasso_path": "estimators.paths",
    "save_model": "io",
    "load_model": "io",
    "open_store": "io",
}
_MODULES = {
    "datasets": "datasets",
    "io": "io",
    "losses": "problem.losses",
    "solvers": "solvers",
}

__all__ = [*_HOMES, *_MODULES, "__version__"]

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import io as io
    from . import solvers as solvers
    from .api.certify import Certificate as Certificate
    from .api.certify import certify as certify
    from .api.path import Path as Path
    from .api.path import path as path
    from .api.solve import Result as Result
    from .api.solve import solve as solve
    from .estimators import ElasticNet as ElasticNet
    from .estimators import ElasticNetCV as ElasticNetCV
    from .estimators import ERMClassifier as ERMClassifier
    from .estimators import ERMRegressor as ERMRegressor
    from .estimators import GammaRegressor as GammaRegressor
    from .estimators import GroupLasso as GroupLasso
    from .estimators import GroupLassoCV as GroupLassoCV
    from .estimators import HuberRegressor as HuberRegressor
    from .estimators import Lasso as Lasso
    from .estimators import LassoCV as LassoCV
    from .estimators import LinearSVC as LinearSVC
    from .estimators import LinearSVCCV as LinearSVCCV
    from .estimators import LinearSVR as LinearSVR
    from .estimators import LogisticRegression as LogisticRegression
    from .estimators import LogisticRegressionCV as LogisticRegressionCV
    from .estimators import MultiTaskElasticNet as MultiTaskElasticNet
    from .estimators import MultiTaskLasso as MultiTaskLasso
    from .estimators import PoissonRegressor as PoissonRegressor
    from .estimators import QuantileRegressor as QuantileRegressor
    from .estimators import Ridge as Ridge
    from .estimators import RidgeClassifier as RidgeClassifier
    from .estimators import RidgeCV as RidgeCV
    from .estimators import TweedieRegressor as TweedieRegressor
    from .estimators.paths import enet_path as enet_path
    from .estimators.paths import lasso_path as lasso_path
    from .exceptions import CheckpointWarning as CheckpointWarning
    from .exceptions import ConvergenceWarning as ConvergenceWarning
    from .io import load_model as load_model
    from .io import open_store as open_store
    from .io import save_model as save_model
    from .parallel.config import config_context as config_context
    from .problem import Problem as Problem
    from .problem import losses as losses


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{_MODULES[name]}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
