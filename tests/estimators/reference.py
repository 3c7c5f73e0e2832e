"""The certificate by the textbook: P, D and feasibility in float64, from numbers alone."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy


def _hinge(z, b):
    return np.maximum(0.0, 1.0 - b * z)


LOSS = {
    "hinge": _hinge,
    "squared_hinge": lambda z, b: _hinge(z, b) ** 2,
    "smooth_hinge": lambda z, b: np.where(
        b * z >= 1, 0.0, np.where(b * z <= 0, 0.5 - b * z, 0.5 * (1.0 - b * z) ** 2)
    ),
    "logistic": lambda z, b: np.logaddexp(0.0, -b * z),
    "squared": lambda z, b: 0.5 * (z - b) ** 2,
    "epsilon_insensitive": lambda z, b, eps=0.0: np.maximum(0.0, np.abs(z - b) - eps),
    "squared_epsilon_insensitive": lambda z, b, eps=0.0: np.maximum(0.0, np.abs(z - b) - eps) ** 2,
}


def _entropy(v, b):
    q = -b * v
    return xlogy(q, q) + xlogy(1.0 - q, 1.0 - q)


CONJUGATE = {
    "hinge": lambda v, b: b * v,
    "squared_hinge": lambda v, b: b * v + v**2 / 4.0,
    "smooth_hinge": lambda v, b: b * v + v**2 / 2.0,
    "logistic": _entropy,
    "squared": lambda v, b: b * v + v**2 / 2.0,
    "epsilon_insensitive": lambda v, b: b * v,
    "squared_epsilon_insensitive": lambda v, b: b * v + v**2 / 4.0,
}


def in_domain(name, v, b):
    """Whether the conjugate is finite, to rounding."""
    small = 1e-12
    if name in ("hinge", "smooth_hinge", "logistic"):
        return np.all((-b * v >= -small) & (-b * v <= 1.0 + small))
    if name == "squared_hinge":
        return np.all(b * v <= small)
    if name == "epsilon_insensitive":
        return np.all(np.abs(v) <= 1.0 + small)
    return True


def primal(name, A, b, w, l1, l2, x, c):
    """P(x, c)."""
    losses = LOSS[name](A @ x + c, b)
    return np.mean(w * losses) + l1 * np.abs(x).sum() + 0.5 * l2 * x @ x


def relative_gap(name, A, b, w, l1, l2, intercept, x, c, y):
    """(P - D)/max(|P|, |D|); infinite where y is not feasible."""
    A = np.asarray(A.toarray() if hasattr(A, "toarray") else A, dtype=np.float64)
    x, c, y = (np.asarray(a, dtype=np.float64) for a in (x, c, y))
    p = primal(name, A, b, w, l1, l2, x, c)
    u = A.T @ (w * y) / len(b)
    if not in_domain(name, y, b):
        return np.inf
    if intercept and abs(np.sum(w * y)) > 1e-9 * np.sum(w * np.abs(y)):
        return np.inf
    if l2 == 0.0:
        if np.max(np.abs(u)) > l1 * (1.0 + 1e-9):
            return np.inf
        conjugate = 0.0
    else:
        conjugate = np.sum(np.maximum(np.abs(u) - l1, 0.0) ** 2) / (2.0 * l2)
    d = -np.mean(w * CONJUGATE[name](y, b)) - conjugate
    return (p - d) / max(abs(p), abs(d))
