"""scikit-learn's own test modules, with our classes in the place of theirs.

A module is executed once more while ``sklearn.linear_model`` and ``sklearn.svm`` offer our
classes, so that imports and parametrised lists alike pick them up.
"""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack
from types import ModuleType, SimpleNamespace
from unittest import mock

import sklearn.linear_model
import sklearn.svm

import adacoord as ac

#: Names of scikit-learn's methods: ours choose by themselves.
SOLVERS = {
    "svd",
    "cholesky",
    "sparse_cg",
    "lsqr",
    "sag",
    "saga",
    "lbfgs",
    "newton-cg",
    "liblinear",
    "newton-cholesky",
}


def _stand_in(cls, **defaults):
    """Makes one of ours from a call that names one of scikit-learn's methods."""

    def make(*args, **kwargs):
        kwargs = {**defaults, **kwargs}
        if kwargs.get("solver") in SOLVERS:
            del kwargs["solver"]
        return cls(*args, **kwargs)

    make.__name__ = cls.__name__
    return make


def _with_loss(name):
    """One of ours that has scikit-learn's private loss, of which its tests make their data."""

    def _get_loss(self):
        known = {k: v for k, v in self.get_params().items() if k in ("power", "link")}
        return getattr(sklearn.linear_model, name)(**known)._get_loss()

    return type(name, (getattr(ac, name),), {"_get_loss": _get_loss, "__module__": __name__})


STAND_INS = {
    "LinearSVC": _stand_in(ac.LinearSVC, intercept_scaling=1.0),
    "LinearSVR": _stand_in(ac.LinearSVR, intercept_scaling=1.0),
    "LogisticRegression": _stand_in(ac.LogisticRegression),
    "Ridge": _stand_in(ac.Ridge),
    "Lasso": ac.Lasso,
    "ElasticNet": ac.ElasticNet,
    "MultiTaskLasso": ac.MultiTaskLasso,
    "MultiTaskElasticNet": ac.MultiTaskElasticNet,
    "RidgeCV": ac.RidgeCV,
    "LassoCV": ac.LassoCV,
    "ElasticNetCV": ac.ElasticNetCV,
    "LogisticRegressionCV": _stand_in(ac.LogisticRegressionCV),
    "RidgeClassifier": _stand_in(ac.RidgeClassifier),
    "QuantileRegressor": ac.QuantileRegressor,
    "HuberRegressor": ac.HuberRegressor,
    **{
        name: _with_loss(name)
        for name in ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
    },
    "lasso_path": ac.lasso_path,
    "enet_path": ac.enet_path,
}


def load(name: str) -> ModuleType:
    """A copy of a test module of scikit-learn that tests our classes."""
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    with ExitStack() as stack:
        for home in (sklearn.linear_model, sklearn.svm):
            ours = {k: v for k, v in STAND_INS.items() if hasattr(home, k)}
            stack.enter_context(mock.patch.multiple(home, **ours))
        spec.loader.exec_module(module)
    module.svm = SimpleNamespace(**{**vars(sklearn.svm), **STAND_INS})
    for key, value in STAND_INS.items():
        if hasattr(module, key):
            setattr(module, key, value)
    return module
