"""The problems of ``race.py --models``: penalties of single columns and of groups, bounds, GLMs.

=========  ====================================================================================
dense      normal columns, correlations of 0.5 between neighbours
claims     one-hot columns of ten factors, skewed, as in insurance (sparse)
words      counts of words, columns of falling frequency (sparse, wide)
blocks     normal columns, in groups with a common factor
=========  ====================================================================================

and two of the data sets of ``race.py``.  Targets are made of a tenth to a fifth of the columns, and
noise; ``--seed`` draws others.  The strengths are divisors of the penalty at which x = 0.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from judge import QUANTILE, Task, largest_l1

#: (kind, data, divisor, goal for ours/best peer): "n x d", then "x size" or "x targets".
MODELS = tuple(
    (kind, data, divisor, 1.2)
    for kind, data, divisor in (
        ("adaptive lasso", "rcv1.subset.binary", 30),
        ("adaptive lasso", "dense 500x5000", 10),
        ("adaptive lasso", "dense 500x5000", 100),
        ("adaptive lasso", "dense 20000x200", 30),
        ("group lasso", "blocks 500x5000x10", 10),
        ("group lasso", "blocks 500x5000x10", 50),
        ("group lasso", "words 5000x10000x5", 20),
        ("group lasso", "blocks 10000x500x5", 100),
        ("multitask", "dense 200x3000x20", 10),
        ("multitask", "dense 1000x500x10", 50),
        ("multitask", "dense 300x10000x5", 20),
        ("poisson", "dense 100000x50", 100),
        ("poisson", "dense 10000x300", 1000),
        ("poisson", "claims 100000x400", 100),
        ("poisson", "words 4000x8000", 10),
        ("gamma", "dense 100000x50", 100),
        ("gamma", "dense 10000x300", 1000),
        ("gamma", "claims 100000x400", 100),
        ("l1-poisson", "dense 100000x50", 10),
        ("l1-poisson", "dense 100000x50", 100),
        ("l1-poisson", "dense 10000x300", 30),
        ("l1-poisson", "claims 100000x400", 30),
        ("l1-poisson", "words 4000x8000", 10),
        ("l1-gamma", "dense 100000x50", 100),
        ("l1-gamma", "dense 10000x300", 30),
        ("l1-gamma", "claims 100000x400", 30),
        ("l1-gamma", "words 4000x8000", 10),
        ("l1-quantile", "dense 100000x50", 10),
        ("l1-quantile", "dense 100000x50", 1000),
        ("l1-multinomial", "reuters_r8_tfidf", 10),
        ("l1-multinomial", "reuters_r8_tfidf", 100),
        ("l1-multinomial", "dense 2000x300x8", 20),
        ("nnls", "dense 2000x300", 1),
        ("nnls", "dense 20000x100", 1),
        ("nnls", "dense 1000x1500", 1),
    )
)


def title(kind: str, data: str, divisor: int) -> str:
    short = data.removesuffix(".binary")
    return f"{kind} {short}" + ("" if kind == "nnls" else f" max/{divisor}")


def features(kind: str, n: int, d: int, size: int, rng) -> Any:
    if kind == "dense":
        A = rng.standard_normal((n, d))
        for j in range(1, d):
            A[:, j] = 0.5 * A[:, j - 1] + math.sqrt(0.75) * A[:, j]
        return A
    if kind == "blocks":
        shared = rng.standard_normal((n, d // size))
        return 0.5 * np.repeat(shared, size, axis=1) + rng.standard_normal((n, d))
    if kind == "claims":
        levels = d // 10
        shares = np.geomspace(1.0, 0.02, levels)
        picks = rng.choice(levels, size=(n, 10), p=shares / shares.sum())
        columns = (picks + levels * np.arange(10)).ravel()
        return sparse.csr_matrix((np.ones(10 * n), columns, np.arange(0, 10 * n + 1, 10)), (n, d))
    shares = 1.0 / np.arange(3, d + 3)
    picks = rng.choice(d, size=(n, 60), p=shares / shares.sum()).ravel()
    A = sparse.csr_matrix((np.ones(picks.size), (np.repeat(np.arange(n), 60), picks)), (n, d))
    A.data = np.log1p(A.data)
    return A


@cache
def draw(kind: str, data: str, seed: int) -> tuple[Any, np.ndarray]:
    """(A, b): columns in the order of Fortran where coefficients come and go in groups."""
    form, sizes = data.split()
    n, d, *rest = map(int, sizes.split("x"))
    size = rest[0] if rest and kind == "group lasso" else 1
    targets = rest[0] if rest and kind in ("multitask", "l1-multinomial") else 1
    rng = np.random.default_rng(seed)
    A = features(form, n, d, size, rng)
    chosen = np.repeat(rng.random(d // size) < max(0.1, 10.0 * size / d), size)
    if d * 10 > n * size:
        chosen = np.repeat(rng.permutation(d // size) < 10, size)
    x = rng.standard_normal((d, targets)) * chosen[:, None]
    z = A @ x
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    if kind in ("poisson", "l1-poisson"):
        b = rng.poisson(np.exp(0.5 * z - 0.5)).astype(float)
    elif kind in ("gamma", "l1-gamma"):
        b = rng.gamma(1.5, np.exp(0.5 * z - 0.5) / 1.5)
    elif kind == "l1-quantile":
        b = 1.5 * z + rng.standard_t(3, z.shape)
    elif kind == "l1-multinomial":
        b = np.argmax(2.0 * z + rng.gumbel(size=z.shape), axis=1)
    else:
        b = z + 0.5 * rng.standard_normal(z.shape)
    if kind in ("group lasso", "multitask"):
        A = sparse.csc_matrix(A) if sparse.issparse(A) else np.asfortranarray(A)
    return A, np.asfortranarray(b) if b.ndim == 2 and targets > 1 else b.ravel()


def make_model(kind: str, data: str, divisor: int, seed: int = 0) -> Task:
    name = title(kind, data, divisor)
    if " " in data:
        A, b = draw(kind, data, seed)
    else:
        from race import load

        A, b = load(data)
    n = A.shape[0]
    if kind == "l1-multinomial":
        codes = np.unique(b, return_inverse=True)[1]
        slopes = np.eye(codes.max() + 1)[codes] - 1.0 / (codes.max() + 1)  # at x = 0
        l1 = float(np.abs(A.T @ slopes).max()) / (n * divisor)
        return Task(name, A, codes, "multinomial", l1=l1)
    if kind == "adaptive lasso":
        slopes = np.abs(A.T @ b) / n
        factors = 1.0 / (slopes + 0.1 * slopes.max())  # of marginal effects, as in Zou (2006)
        factors /= factors.mean()
        l1 = factors * (np.max(slopes / factors) / divisor)
        return Task(name, A, b, "squared", l1=l1)
    if kind == "nnls":
        return Task(name, A, b, "squared", positive=True)
    if kind == "group lasso":
        size = int(data.split("x")[-1])
        norms = np.linalg.norm((A.T @ b).reshape(-1, size), axis=1)
        l21 = float(norms.max()) / (n * math.sqrt(size) * divisor)
        return Task(name, A, b, "squared", l21=l21, size=size)
    if kind == "multitask":
        l21 = float(np.linalg.norm(A.T @ b, axis=1).max()) / (n * divisor)
        return Task(name, A, b, "squared", l21=l21)
    loss = kind.removeprefix("l1-")
    top = _largest(A, b, loss) / divisor
    if kind == loss:
        return Task(name, A, b, loss, l2=top, intercept=True)
    return Task(name, A, b, loss, l1=top, intercept=True)


def _largest(A: Any, b: np.ndarray, loss: str) -> float:
    """|A'phi'(c)|_inf/n at x = 0 and the best intercept."""
    if loss == "quantile":
        c = np.quantile(b, QUANTILE)
        slopes = np.where(b > c, -QUANTILE, 1.0 - QUANTILE)
        slopes -= slopes.mean()
    else:
        slopes = b / b.mean() - 1.0 if loss == "gamma" else b - b.mean()
    return largest_l1(A, slopes, "squared")
