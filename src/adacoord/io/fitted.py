"""A fitted estimator as plain arrays and JSON, and back; nothing in between can run code.

The class is a name out of ``adacoord.estimators.__all__``, its parameters go through the
constructor, and what ``fit`` left behind (the attributes whose names end with ``_``) is set.

=====================  =========================================================================
in JSON                in Python
=====================  =========================================================================
null, true, 1, .5, ""  themselves
{"array": k}           array k of the file; a NumPy scalar if it has no dimensions
{"objects": k}         an object array of strings (pandas' columns, labels), kept as array k
{"sparse": [...]}      a CSR matrix: shape, then its three arrays
{"list"/"tuple": [..]} ... of such values
{"dict": [[k, v]..]}   ... of such values
{"loss": [name, p]}    a loss and its parameter
{"history": {...}}     a :class:`~adacoord.api.monitor.History`
=====================  =========================================================================
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from ..api.monitor import History, Switch
from ..problem.losses import BLOCK_LOSSES, LOSSES, Loss

_LOSSES = LOSSES | BLOCK_LOSSES


def is_estimator(model: Any) -> bool:
    """Whether it is of a class that :func:`dismantle` takes: exactly, a subclass has its own."""
    from .. import estimators

    name = type(model).__name__
    return name in estimators.__all__ and type(model) is getattr(estimators, name)


def dismantle(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(arrays, facts) of a fitted estimator."""
    name = type(model).__name__
    learnt = {k: v for k, v in vars(model).items() if _is_learnt(k)}
    if "coef_" not in learnt:
        raise ValueError(f"model={name}(): it is not fitted; call fit before save_model")
    check_fitted(model)
    writer = _Writer()
    params = model.get_params(deep=False)
    facts = {  # in the order of their names: the same model, the same bytes
        "estimator": name,
        "params": {k: writer.pack(k, params[k]) for k in sorted(params)},
        "learnt": {k: writer.pack(k, learnt[k]) for k in sorted(learnt)},
    }
    return writer.arrays, facts


def assemble(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Any:
    """The estimator that :func:`dismantle` took apart; ValueError where that is not one."""
    from .. import estimators

    name = facts["estimator"]
    if name not in estimators.__all__:
        raise ValueError(f"it is a {name!r}, which this adacoord does not have")
    cls = getattr(estimators, name)
    params = {k: _unpack(v, arrays) for k, v in facts["params"].items()}
    unknown = sorted(set(params) - set(cls._get_param_names()))
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r} in this adacoord")
    model = cls(**params)
    for key, value in facts["learnt"].items():
        if not _is_learnt(key) or hasattr(cls, key):
            raise ValueError(f"{key!r} is not what a fit leaves behind")
        setattr(model, key, _unpack(value, arrays))
    return model


def check_fitted(model: Any) -> None:
    """Refuse parameters, coefficients and classes with which nothing could be predicted."""
    model._validate_params()
    coef, intercept = model.coef_, model.intercept_
    values = coef.data if sparse.issparse(coef) else coef
    for name, array in (("coef_", values), ("intercept_", np.asarray(intercept))):
        if not _is_plain(array) or array.dtype.kind not in "biuf":
            raise ValueError(
                f"{name}={array!r}: an array of finite numbers is needed; fit the model again"
            )
    rows = coef.shape[0] if coef.ndim == 2 else 1
    if coef.ndim not in (1, 2) or coef.shape[-1] != model.n_features_in_:
        raise ValueError(
            f"coef_ has shape {coef.shape}, and n_features_in_="
            f"{model.n_features_in_!r} columns are needed; fit the model again"
        )
    if np.shape(intercept) not in ((), (rows,)):
        raise ValueError(
            f"intercept_ has shape {np.shape(intercept)}, and one intercept for each "
            f"of the {rows} row(s) of coef_ is needed; fit the model again"
        )
    if is_classifier(model):
        labels = model.classes_
        if not _is_plain(labels) or labels.ndim != 1 or len({*labels.tolist()}) < labels.size:
            raise ValueError(
                f"classes_={labels!r}: different labels are needed, finite numbers "
                "or strings; fit the model again"
            )
        if labels.size < 2 or (rows != labels.size and (rows, labels.size) != (1, 2)):
            raise ValueError(
                f"coef_ has {rows} row(s) for {labels.size} class(es), and one for "
                "each, or one for two, is needed; fit the model again"
            )


def _is_learnt(name: str) -> bool:
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def _is_plain(array: Any) -> bool:
    """Whether it is an array of finite numbers or of strings."""
    if not isinstance(array, np.ndarray):
        return False
    if array.dtype.kind == "O":
        return all(isinstance(v, str) for v in array.flat)
    return array.dtype.kind in "biuU" or (
        array.dtype.kind == "f" and bool(np.isfinite(array).all())
    )


class _Writer:
    """Collects the arrays of the values that it packs."""

    def __init__(self):
        self.arrays: dict[str, np.ndarray] = {}

    def pack(self, name: str, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Loss) and _LOSSES.get(value.name) is type(value):
            return {"loss": [value.name, getattr(value, value.parameter or "", None)]}
        if isinstance(value, History):
            kept = {f.name: getattr(value, f.name) for f in fields(value)}
            return {"history": {k: self.pack(f"{name}.{k}", v) for k, v in kept.items()}}
        if sparse.issparse(value):
            m = sparse.csr_matrix(value)
            parts = (list(m.shape), m.data, m.indices, m.indptr)
            return {"sparse": [self.pack(name, part) for part in parts]}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.pack(f"{name}[{i}]", v) for i, v in enumerate(value)]}
        if isinstance(value, dict):
            pairs = value.items()
            return {
                "dict": [[self.pack(name, k), self.pack(f"{name}[{k!r}]", v)] for k, v in pairs]
            }
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
            if array.dtype.kind in "biufU":
                return {"array": self._keep(array)}
            if array.dtype.kind == "O" and _is_plain(array):
                return {"objects": self._keep(array.astype(str))}
        raise ValueError(
            f"{name}={value!r}: a model file holds numbers, strings, arrays of them and losses, "
            f"and this is of type {type(value).__name__}; replace it with set_params before saving"
        )

    def _keep(self, array: np.ndarray) -> str:
        key = f"a{len(self.arrays)}"
        self.arrays[key] = array
        return key


def _unpack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise ValueError("a list stands where a value should")
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        array = arrays[content]
        return array if array.ndim else array[()]
    if kind == "objects":
        return arrays[content].astype(object)
    if kind in ("list", "tuple", "sparse"):
        parts = [_unpack(v, arrays) for v in content]
        if kind == "sparse":
            shape, *csr = parts
            matrix = sparse.csr_matrix(tuple(csr), shape=tuple(shape))
            matrix.check_format()  # indices out of range would read foreign memory
            return matrix
        return parts if kind == "list" else tuple(parts)
    if kind == "dict":
        return {_unpack(k, arrays): _unpack(v, arrays) for k, v in content}
    if kind == "loss":
        name, parameter = content
        loss: Any = _LOSSES[name]
        return loss() if parameter is None else loss(parameter)
    if kind == "history":
        history = History(**{k: _unpack(v, arrays) for k, v in content.items()})
        history.switched = Switch(*history.switched) if history.switched else None
        return history
    raise ValueError(f"{kind!r} is not a kind of value")
