"""What ``users.py`` measures models by: the objective that scikit-learn documents of an estimator.

In float64, with NumPy and SciPy alone.  One departure: liblinear penalises the bias of LinearSVC
and LinearSVR and our default does not, so theirs minimises another function; the bias is left out
for both, as it is in their documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp


def objective(kind: str, model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """What ``model`` should have made small: one number, or one per point of a path."""
    X = X.astype(np.float64)
    if kind == "path":
        r = (y - y.mean())[:, None] - (X - X.mean(axis=0)) @ model.coefs_
        return 0.5 * np.mean(r**2, axis=0) + model.alphas_ * np.abs(model.coefs_).sum(axis=0)
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    z = X @ coef.T + np.asarray(model.intercept_, dtype=np.float64)
    half, weight = 0.5 * np.sum(coef**2), strength(model)
    if kind in ("logistic", "svc", "ridge classes"):
        return of_classes(kind, model, z, np.searchsorted(model.classes_, y), half, weight)
    z = z if y.ndim == 2 else z[:, 0]
    if kind == "ridge":
        return np.array(np.sum((z - y) ** 2) + 2.0 * weight * half)
    if kind in ("lasso", "multitask"):
        ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
        sizes = np.abs(coef) if kind == "lasso" else np.linalg.norm(coef, axis=0)
        penalty = ratio * sizes.sum() + (1.0 - ratio) * half
        return np.array(0.5 * np.sum((z - y) ** 2) / len(y) + weight * penalty)
    if kind == "svr":
        return np.array(weight * np.sum(np.abs(z - y)) + half)
    if kind == "quantile":
        losses = np.where(y > z, model.quantile, model.quantile - 1.0) * (y - z)
        return np.array(np.mean(losses) + weight * np.abs(coef).sum())
    if kind == "huber":
        size, epsilon = np.abs(y - z) / model.scale_, model.epsilon
        losses = np.where(size < epsilon, size**2, (2.0 * size - epsilon) * epsilon)
        return np.array(model.scale_ * np.sum(1.0 + losses) + 2.0 * weight * half)
    power = {"poisson": 1.0, "gamma": 2.0}.get(kind) or model.power
    return np.array(np.mean(half_deviance(power, z, y)) + weight * half)


def half_deviance(power: float, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Up to what does not depend on z: of exp(z), and with power 0 of z."""
    if power == 0.0:
        return 0.5 * (z - y) ** 2
    if power == 1.0:
        return np.exp(z) - y * z
    if power == 2.0:
        return z + y * np.exp(-z)
    return np.exp((2.0 - power) * z) / (2.0 - power) - y * np.exp((1.0 - power) * z) / (1.0 - power)


def of_classes(kind: str, model: Any, z: np.ndarray, codes, half: float, weight: float):
    """The objective of a classifier."""
    if kind == "logistic" and z.shape[1] > 1:
        losses = logsumexp(z, axis=1) - z[np.arange(codes.size), codes]
        return np.array(weight * np.sum(losses) + half)
    wanted = np.arange(z.shape[1]) if z.shape[1] > 1 else np.array([1])
    margin = np.where(codes[:, None] == wanted, 1.0, -1.0) * z
    if kind == "ridge classes":
        return np.array(np.sum((1.0 - margin) ** 2) + 2.0 * weight * half)
    if kind == "logistic":
        losses = np.logaddexp(0.0, -margin)
    else:
        losses = np.maximum(0.0, 1.0 - margin) ** (1 if model.loss == "hinge" else 2)
    return np.array(weight * np.sum(losses) + half)


def strength(model: Any) -> float:
    """C or alpha: as given, or as a cross-validation chose it."""
    for name in ("C_", "alpha_", "C", "alpha", "l2"):
        if hasattr(model, name):
            return float(np.ravel(getattr(model, name))[0])
    raise ValueError(f"{model}: has neither C nor alpha")


def mean_error(model: Any) -> float:
    """The error that a cross-validation found for its choice: the smaller the better."""
    if hasattr(model, "mse_path_"):
        return float(np.min(np.mean(model.mse_path_, axis=-1)))
    if hasattr(model, "best_score_"):
        return -float(model.best_score_)
    scores = model.scores_
    scores = next(iter(scores.values())) if isinstance(scores, dict) else np.asarray(scores)
    return 1.0 - float(np.max(np.mean(scores, axis=0)))
