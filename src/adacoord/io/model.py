"""Fitted models and their files.

A file is a digested npz (see :mod:`adacoord.io.digested`), arrays and JSON.  Format 1 holds a
:class:`Model`, the plain numbers that the command line trains; format 2 a fitted estimator (see
:mod:`adacoord.io.fitted`).  Loading one checks the digest first and never runs code.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .digested import read_digested, write_digested

_KIND = "MODEL"
_PLAIN, _FITTED = 1, 2
_FACTS = ("intercept", "loss", "loss_parameter", "l1", "l2", "positive", "certificate")


@dataclass(frozen=True, eq=False)
class Model:
    """A linear model, what it was trained for, and the proof of how well.

    Parameters
    ----------
    coef : array of shape (d,)
        Coefficients; kept as a read-only float64 copy.
    intercept : float
        Added to every decision value.
    loss : str
        Name of the loss, such as ``"logistic"``.
    loss_parameter : float or None
        The loss's own parameter, where it has one.
    classes : array of two labels or None
        For classification; ``classes[1]`` is the one encoded as +1.  None for regression.
    l1, l2 : float
        The penalty the model was trained with.
    positive : bool
        Whether the coefficients were held non-negative.
    certificate : dict
        Plain numbers and strings: primal, dual, gap, relative_gap, passes, solver, ...
    format_version : int
        Version of the file format.
    """

    coef: np.ndarray
    intercept: float = 0.0
    loss: str = "squared"
    loss_parameter: float | None = None
    classes: np.ndarray | None = None
    l1: float = 0.0
    l2: float = 0.0
    positive: bool = False
    certificate: dict[str, Any] = field(default_factory=dict)
    format_version: int = _PLAIN

    def __post_init__(self) -> None:
        parameter = self.loss_parameter
        checked = {
            "coef": _coefficients(self.coef),
            "intercept": _number("intercept", self.intercept),
            "loss": _name(self.loss),
            "loss_parameter": None if parameter is None else _number("loss_parameter", parameter),
            "classes": None if self.classes is None else _two_labels(self.classes),
            "l1": _number("l1", self.l1, least=0.0),
            "l2": _number("l2", self.l2, least=0.0),
            "positive": _flag("positive", self.positive),
            "certificate": _plain(self.certificate),
        }
        if self.format_version != _PLAIN:
            raise ValueError(f"format_version={self.format_version!r}: this adacoord writes "
                             f"format {_PLAIN}; leave the argument out")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def decision_function(self, A) -> np.ndarray:
        """Return ``A @ coef + intercept``, one float64 a row; ``A`` is dense or sparse."""
        from scipy.sparse import issparse

        if not issparse(A):
            A = np.asarray(A)
        if A.ndim != 2:
            raise ValueError(f"A has {A.ndim} dimension(s): it must have 2, a row for each "
                             "sample; reshape a single sample with A.reshape(1, -1)")
        if A.dtype.kind not in "biufO":
            raise ValueError(f"A has dtype {A.dtype}: it must hold real numbers; convert it first")
        if A.shape[1] != self.coef.size:
            raise ValueError(f"A has {A.shape[1]} columns, and the model was trained on "
                             f"{self.coef.size}; give it the columns of its training data")
        if A.dtype.kind == "O":
            A = A.astype(np.float64)
        z = A @ self.coef + self.intercept
        if not np.isfinite(z).all():
            row = int(np.argmin(np.isfinite(z)))
            raise ValueError(f"A gives a decision value of {z[row]} in row {row}: it must hold "
                             "finite numbers; remove or fill in NaN and infinite entries")
        return z

    def predict(self, A) -> np.ndarray:
        """Return one prediction a row: a label of ``classes``, ``exp(z)`` for poisson, or z."""
        z = self.decision_function(A)
        if self.classes is not None:
            return self.classes[(z > 0).astype(np.intp)]
        return np.exp(z) if self.loss == "poisson" else z

    def predict_proba(self, A) -> np.ndarray:
        """Return the probabilities of ``classes[0]`` and ``classes[1]``; logistic loss only."""
        if self.loss != "logistic" or self.classes is None:
            kind = "regression" if self.classes is None else "classification"
            raise ValueError(f"loss={self.loss!r} ({kind}) gives no probabilities: use "
                             "decision_function, or train a classifier with loss='logistic'")
        z = self.decision_function(A)
        return np.exp(-np.logaddexp(0.0, np.column_stack((z, -z))))  # no overflow, no 1 - p


def save_model(model: Any, path: str | os.PathLike) -> None:
    """Write ``model`` to ``path`` in one step: a killed process leaves the old file whole.

    Parameters
    ----------
    model : Model or fitted estimator
        Any estimator of adacoord, with its parameters and all that ``fit`` left behind.
    path : str or path-like
        The same model always gives the same bytes.
    """
    if isinstance(model, Model):
        arrays = {"coef": model.coef}
        if model.classes is not None:
            arrays["classes"] = model.classes
        facts = {name: getattr(model, name) for name in _FACTS}
        write_digested(path, _KIND, model.format_version, arrays, facts)
        return
    from .fitted import dismantle, is_estimator

    if not is_estimator(model):
        raise ValueError(f"model={type(model).__name__}: save_model takes a fitted estimator of "
                         "adacoord or an adacoord.io.Model; for others use their own library")
    write_digested(path, _KIND, _FITTED, *dismantle(model))


def load_model(path: str | os.PathLike) -> Any:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    Model or estimator
        What was saved.

    Raises
    ------
    ValueError
        If the file is not a model file, is damaged, or was written by a newer adacoord.
    """
    version, arrays, facts = read_digested(path, _KIND, _FITTED)
    try:
        if version == _FITTED:
            from .fitted import assemble

            return assemble(arrays, facts)
        return Model(
            coef=arrays["coef"],
            classes=arrays.get("classes"),
            format_version=version,
            **{name: facts[name] for name in _FACTS},
        )
    except Exception as error:  # content that nobody's program wrote raises whatever it likes
        lacking = isinstance(error, KeyError)
        reason = f"it lacks {error}" if lacking else str(error) or type(error).__name__
        raise ValueError(f"{os.fspath(path)}: the digest of this file is right but it does not "
                         f"hold a model ({reason}); save the model again") from error


def _coefficients(value: Any) -> np.ndarray:
    coef = np.asarray(value)
    if coef.dtype.kind not in "biuf" or coef.ndim != 1:
        raise ValueError(f"coef has dtype {coef.dtype} and shape {coef.shape}: it must be one "
                         "row of real numbers, a coefficient for each column")
    coef = np.array(coef, dtype=np.float64)
    if not np.isfinite(coef).all():
        raise ValueError("coef holds NaN or infinite numbers: a model needs finite coefficients; "
                         "train it again")
    coef.setflags(write=False)
    return coef


def _number(name: str, value: Any, least: float = -math.inf) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number >= least):
        wanted = "a finite number" if least < 0 else "a finite number of at least 0"
        raise ValueError(f"{name}={value!r}: it must be {wanted}")
    return number


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r}: it must be True or False")
    return bool(value)


def _name(loss: Any) -> str:
    if not isinstance(loss, str) or not loss:
        raise ValueError(f"loss={loss!r}: it must be the name of a loss, such as 'logistic'")
    return str(loss)


def _two_labels(value: Any) -> np.ndarray:
    classes = np.array(value)
    if classes.dtype.kind == "O" and all(isinstance(label, str) for label in classes.flat):
        classes = classes.astype(str)  # labels out of pandas
    right = classes.dtype.kind in "biufU" and classes.shape == (2,) and classes[0] != classes[1]
    if not right or (classes.dtype.kind == "f" and not np.isfinite(classes).all()):
        raise ValueError(f"classes={value!r}: they must be two different labels, finite numbers "
                         "or strings, the positive one last; for regression give None")
    classes.setflags(write=False)
    return classes


def _plain(certificate: Any) -> dict[str, Any]:
    if not isinstance(certificate, Mapping):
        raise ValueError(f"certificate={certificate!r}: it must be a dict of numbers and strings")
    plain = {}
    for key, value in certificate.items():
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(key, str) or not isinstance(value, (bool, int, float, str, type(None))):
            raise ValueError(f"certificate[{key!r}]={value!r}: keys must be strings, and values "
                             "plain numbers, strings or None; convert it or leave it out")
        plain[key] = value
    return plain
