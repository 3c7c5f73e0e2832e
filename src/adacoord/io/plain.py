"""Model files of format 1: the plain numbers that the command line of 0.1.0 trained.

Such a file holds one row of coefficients, an intercept, the names of the loss and of two labels, a
penalty, and a certificate of numbers and strings, which may be empty.  It comes back as the
``ERMClassifier`` or ``ERMRegressor`` that a fit with this loss and penalty would be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..api.monitor import History
from ..problem.losses import LOSSES, Loss

#: What a certificate calls the attributes of an estimator.
_ATTRIBUTES = {
    "gap": "dual_gap_",
    "relative_gap": "relative_gap_",
    "passes": "n_iter_",
    "solver": "solver_",
}
_KINDS = {"passes": int, "solver": str}


def assemble_plain(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Any:
    """The estimator of such a file's content; an error where that is no model."""
    from .. import estimators

    coef, intercept = _coefficients(arrays["coef"]), _number("intercept", facts["intercept"])
    certificate = facts["certificate"]
    if not isinstance(certificate, dict):
        raise ValueError(f"certificate={certificate!r}: it must be an object")
    params = {
        "loss": _loss(facts["loss"], facts["loss_parameter"]),
        "l1": _number("l1", facts["l1"], least=0.0),
        "l2": _number("l2", facts["l2"], least=0.0),
        "positive": _flag("positive", facts["positive"]),
        "fit_intercept": _flag("fit_intercept", certificate.get("fit_intercept", intercept != 0.0)),
    }
    classes = arrays.get("classes")
    if classes is None:
        model = estimators.ERMRegressor(**params)
        model.coef_, model.intercept_ = coef, intercept
    else:
        model = estimators.ERMClassifier(**params)
        model.coef_, model.intercept_ = coef[None], np.array([intercept])
        model.classes_ = classes
    model.n_features_in_ = coef.size
    for name, attribute in _ATTRIBUTES.items():
        if certificate.get(name) is not None:
            setattr(model, attribute, _KINDS.get(name, float)(certificate[name]))
    if {"passes", "seconds", "primal", "dual", "gap", "relative_gap"} <= certificate.keys():
        model.history_ = _last_check(certificate)
    return model


def _last_check(certificate: dict[str, Any]) -> History:
    """The history of one check that the certificate is; entries touched are not in it."""
    history = History()
    history.append(
        **{
            name: math.nan if name == "operations" else float(certificate[name])
            for name in History.columns
        }
    )
    history.freeze()
    return history


def _coefficients(coef: np.ndarray) -> np.ndarray:
    if coef.dtype.kind not in "biuf" or coef.ndim != 1 or coef.size == 0:
        raise ValueError(
            f"coef has dtype {coef.dtype} and shape {coef.shape}: it must be one "
            "row of real numbers, a coefficient for each column"
        )
    return coef.astype(np.float64)


def _loss(name: Any, parameter: Any) -> str | Loss:
    """The name where the parameter is the default one, else the loss with its parameter."""
    if name not in LOSSES:
        raise ValueError(f"loss={name!r}, which this adacoord does not have")
    kind: Any = LOSSES[name]
    if parameter is None:
        return name
    if kind.parameter is None:
        raise ValueError(f"loss={name!r}, loss_parameter={parameter!r}: this loss has no parameter")
    loss = kind(_number("loss_parameter", parameter))
    return name if loss == kind() else loss


def _number(name: str, value: Any, least: float = -math.inf) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= least):
        wanted = "a finite number" if least < 0 else "a finite number of at least 0"
        raise ValueError(f"{name}={value!r}: it must be {wanted}")
    return number


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name}={value!r}: it must be true or false")
    return value
