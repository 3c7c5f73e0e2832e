r"""The problems of the race, and the judge: an objective that belongs to no contender.

.. math:: P(x) = \frac1n \sum_i \phi(a_i^T x, b_i) + l_1 |x|_1 + \frac{l_2}{2} |x|_2^2 +
    l_{21} \sum_G \sqrt{|G|} |x_G|_2

with a column of x per class or target, in float64, with NumPy and SciPy alone.  A contender hands
over its coefficients, the intercept last where there is one; what it believes about its own
objective counts for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, xlogy

#: The quantile that is regressed.
QUANTILE = 0.8


def hinge(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1.0 - b * z)


def logistic(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, -b * z)


def squared(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 0.5 * (z - b) ** 2


def poisson(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Half the deviance, as gamma's: 0 is the least, so that a share of it means something."""
    with np.errstate(over="ignore"):
        return np.exp(z) - b * z - b + xlogy(b, b)


def gamma(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return z + b * np.exp(-z) - np.log(b) - 1.0


def quantile(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(QUANTILE * (b - z), (1.0 - QUANTILE) * (z - b))


def multinomial(z: np.ndarray, b: np.ndarray) -> np.ndarray:
    return logsumexp(z, axis=1) - z[np.arange(b.size), b]


VALUE = {
    "hinge": hinge,
    "logistic": logistic,
    "squared": squared,
    "poisson": poisson,
    "gamma": gamma,
    "quantile": quantile,
    "multinomial": multinomial,
}


@dataclass(frozen=True)
class Task:
    """Data as a user has them (CSR, CSC or a dense array), a loss and its penalty.

    ``l1`` may hold a weight per column; ``size`` columns are a group, under ``l21``; several
    targets are columns of ``b``.
    """

    name: str
    A: Any
    b: np.ndarray
    loss: str
    l1: Any = 0.0
    l2: float = 0.0
    l21: float = 0.0
    size: int = 1
    positive: bool = False
    intercept: bool = False

    @property
    def n(self) -> int:
        return self.A.shape[0]

    @property
    def d(self) -> int:
        return self.A.shape[1]

    @property
    def width(self) -> int:
        """Columns of x: classes, or targets, or 1."""
        if self.b.ndim == 2:
            return self.b.shape[1]
        return int(self.b.max()) + 1 if self.loss == "multinomial" else 1

    @property
    def kind(self) -> str:
        """hinge, logistic, lasso, ...: what decides who can run."""
        if self.l21 > 0.0:
            return "multitask" if self.b.ndim == 2 else "group lasso"
        if self.loss == "squared":
            if np.ndim(self.l1) > 0:
                return "adaptive lasso"
            if self.positive:
                return "nnls"
            return "lasso" if self.l1 > 0.0 else "ridge"
        return f"l1-{self.loss}" if np.max(self.l1) > 0.0 else self.loss

    @property
    def C(self) -> float:
        """liblinear's: the sum of the losses times C, against |x|_1 or |x|^2/2."""
        return 1.0 / (self.n * (self.l1 + self.l2))

    @property
    def group_weights(self) -> np.ndarray:
        return np.full(self.d // self.size, np.sqrt(self.size))

    def objective(self, x: np.ndarray) -> float:
        """P(x) in float64; inf where ``x`` is not a vector of finite numbers, or not allowed."""
        x = np.asarray(x, dtype=np.float64).reshape(-1)
        if x.size != (self.d + self.intercept) * self.width:
            raise ValueError(f"{x.size} coefficients: {self.name} has {self.d} columns")
        if not np.isfinite(x).all():
            return np.inf
        x, c = x[: self.d * self.width], x[self.d * self.width :]
        if self.positive and x.min() < 0.0:
            return np.inf
        if self.width > 1:
            x = x.reshape(self.d, self.width)
        z = self.A @ x
        loss = VALUE[self.loss](z + c if self.intercept else z, self.b)
        penalty = np.sum(self.l1 * np.abs(x)) + 0.5 * self.l2 * np.sum(x * x)
        if self.l21 > 0.0:
            norms = np.linalg.norm(x.reshape(self.d // self.size, -1), axis=1)
            penalty += self.l21 * np.sum(self.group_weights * norms)
        return float(np.sum(loss) / self.n + penalty)

    def small(self, rows: int = 200) -> Task:
        """Some rows of all classes, the same formats: what JIT compilers are warmed up on."""
        if self.loss == "multinomial":
            parts = [self.b == k for k in range(self.width)]
        else:
            first = self.b if self.b.ndim == 1 else self.b[:, 0]
            parts = [first < 0.0, first >= 0.0]
        each = max(2, rows // len(parts))
        kept = np.sort(np.concatenate([np.flatnonzero(part)[:each] for part in parts]))
        A, b = self.A[kept], self.b[kept]
        if not sparse.issparse(A) and self.A.flags.f_contiguous:
            A = np.asfortranarray(A)
        some = replace(self, name=f"{kept.size} rows of {self.name}", A=A, b=b)
        if self.kind in ("lasso", "l1-logistic"):
            return replace(some, l1=0.1 * largest_l1(A, b, self.loss))
        if self.kind in ("hinge", "logistic", "ridge", "multinomial"):
            return replace(some, l2=1.0 / kept.size)
        return replace(some, l1=10.0 * self.l1, l2=10.0 * self.l2, l21=3.0 * self.l21)


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
