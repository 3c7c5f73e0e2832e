r"""The problems of the race, and the judge: an objective that belongs to no contender.

.. math:: P(x) = \frac1n \sum_i \phi(a_i^T x, b_i) + l_1 |x|_1 + \frac{l_2}{2} |x|_2^2

with a column of x per class for the multinomial loss, in float64, with NumPy and SciPy alone.  A
contender hands over its coefficients; what it believes about its own objective counts for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp


def hinge(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1.0 - b * z)


def logistic(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, -b * z)


def squared(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 0.5 * (z - b) ** 2


def multinomial(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return logsumexp(z, axis=1) - z[np.arange(b.size), b]


VALUE = {"hinge": hinge, "logistic": logistic, "squared": squared, "multinomial": multinomial}


@dataclass(frozen=True)
class Task:
    """Data as a user has them (CSR, or a dense C-ordered array), a loss and one penalty."""

    name: str
    A: Any
    b: np.ndarray
    loss: str
    l1: float = 0.0
    l2: float = 0.0

    @property
    def n(self) -> int:
        return self.A.shape[0]

    @property
    def d(self) -> int:
        return self.A.shape[1]

    @property
    def width(self) -> int:
        """Columns of x: classes, or 1."""
        return int(self.b.max()) + 1 if self.loss == "multinomial" else 1

    @property
    def kind(self) -> str:
        """hinge, logistic, lasso, ridge, multinomial or l1-logistic: what decides who can run."""
        if self.loss == "squared":
            return "lasso" if self.l1 > 0.0 else "ridge"
        return f"l1-{self.loss}" if self.l1 > 0.0 else self.loss

    @property
    def C(self) -> float:
        """liblinear's: the sum of the losses times C, against |x|_1 or |x|^2/2."""
        return 1.0 / (self.n * (self.l1 + self.l2))

    def objective(self, x: np.ndarray) -> float:
        """P(x) in float64; inf where ``x`` is not a vector of finite numbers."""
        x = np.asarray(x, dtype=np.float64).reshape(-1)
        if x.size != self.d * self.width:
            raise ValueError(f"{x.size} coefficients: {self.name} has {self.d} columns")
        if self.loss == "multinomial":
            x = x.reshape(self.d, self.width)
        if not np.isfinite(x).all():
            return np.inf
        loss = VALUE[self.loss](self.A @ x, self.b)
        penalty = self.l1 * np.sum(np.abs(x)) + 0.5 * self.l2 * np.sum(x * x)
        return float(np.mean(loss) + penalty)

    def small(self, rows: int = 200) -> Task:
        """Some rows of all classes, the same formats: what JIT compilers are warmed up on."""
        if self.loss == "multinomial":
            parts = [self.b == k for k in range(self.width)]
        else:
            parts = [self.b < 0.0, self.b >= 0.0]
        each = max(2, rows // len(parts))
        kept = np.sort(np.concatenate([np.flatnonzero(part)[:each] for part in parts]))
        A, b = self.A[kept], self.b[kept]
        share = 0.1 * largest_l1(A, b, self.loss) if self.l1 > 0.0 else 0.0
        l2 = 1.0 / kept.size if self.l2 > 0.0 else 0.0
        return Task(f"{kept.size} rows of {self.name}", A, b, self.loss, share, l2)


def largest_l1(A: Any, b: np.ndarray, loss: str) -> float:
    """lambda_max, the smallest l1 with x = 0 for an optimum: |A'phi'(0)|_inf / n."""
    slope = {"squared": b, "logistic": 0.5 * b}[loss]
    return float(np.max(np.abs(A.T @ slope))) / A.shape[0]


def unit_rows(A: Any) -> Any:
    """Rows of length one; rows of zeros stay.  Formats stay, too."""
    if sparse.issparse(A):
        norms = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
    else:
        norms = np.linalg.norm(A, axis=1)
    scale = 1.0 / np.where(norms > 0.0, norms, 1.0)
    if not sparse.issparse(A):
        return A * scale[:, None]
    A = A.copy()
    A.data *= np.repeat(scale, np.diff(A.indptr))
    return A
