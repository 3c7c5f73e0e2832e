"""Coefficients for people and other programs: CSV or JSON, every number to its last digit."""

from __future__ import annotations

import csv
import io
import json
import os
from typing import Any

import numpy as np

from .fitted import is_estimator
from .writing import replacing


def save_coefficients(model: Any, path: str | os.PathLike) -> None:
    """Write the coefficients and intercepts of a fitted estimator as CSV or JSON.

    A CSV file has one line for each feature, the intercept first, and one column for each class or
    target.  A JSON file is one object: ``estimator``, ``features``, ``targets`` (the classes, or
    numbers), ``coefficients`` (a list for each target), ``intercepts``, ``relative_gap``.  Numbers
    are written so that they read back as the same float64.

    Parameters
    ----------
    model : fitted estimator
        Any estimator of adacoord.
    path : str or path-like
        Ends with ``.csv`` or ``.json``.

    Raises
    ------
    ValueError
        If the ending is another one, or ``model`` is not a fitted estimator of adacoord.
    """
    kind = os.path.splitext(os.fspath(path))[1].lower()
    if kind not in (".csv", ".json"):
        raise ValueError(f"path={os.fspath(path)!r}: its name must end with .csv or .json")
    if not is_estimator(model) or not hasattr(model, "coef_"):
        raise ValueError(
            f"model={type(model).__name__}: a fitted estimator of adacoord is needed; call "
            "fit first"
        )
    text = _as_csv(model) if kind == ".csv" else _as_json(model)
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def _table(model: Any) -> tuple[list[str], list[Any], np.ndarray, np.ndarray]:
    """(features, targets, coefficients of shape (targets, features), intercepts)."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    names = getattr(model, "feature_names_in_", None)
    features = [f"x{j}" for j in range(coef.shape[1])] if names is None else [*map(str, names)]
    classes = getattr(model, "classes_", None)
    if classes is None:
        targets: list[Any] = list(range(len(coef)))
    else:  # one row of two classes speaks of the second
        targets = classes.tolist()[-len(coef) :] if len(coef) == 1 else classes.tolist()
    intercepts = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coef))
    return features, targets, coef, intercepts


def _as_csv(model: Any) -> str:
    features, targets, coef, intercepts = _table(model)
    stream = io.StringIO()
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow(["feature", *targets])
    lines.writerow(["(intercept)", *map(repr, intercepts.tolist())])
    for name, column in zip(features, coef.T.tolist(), strict=True):
        lines.writerow([name, *map(repr, column)])
    return stream.getvalue()


def _as_json(model: Any) -> str:
    features, targets, coef, intercepts = _table(model)
    gap = np.asarray(getattr(model, "relative_gap_", np.nan), dtype=np.float64)
    facts = {
        "estimator": type(model).__name__,
        "features": features,
        "targets": targets,
        "coefficients": coef.tolist(),
        "intercepts": intercepts.tolist(),
        "relative_gap": [v if np.isfinite(v) else None for v in gap.ravel().tolist()],
    }
    return json.dumps(facts, indent=1) + "\n"
