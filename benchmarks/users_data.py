"""The data of ``users.py``: tables, text and labels as people bring them, each from a generator.

:func:`dense` has a fixed shape, :func:`drawn` draws it, :func:`real` is a data set of
``ADACOORD_DATA`` (or, where it is not there, data of its shape: it then says so).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

Data = tuple[Any, np.ndarray, str]


def table(
    rng: np.random.Generator,
    n: int,
    d: int,
    *,
    correlation: float = 0.0,
    scaled: bool = True,
    dtype: Any = np.float64,
    order: str = "C",
) -> np.ndarray:
    """Rows with a common factor; unscaled columns differ by decades and are not centred."""
    X = rng.standard_normal((n, d))
    if correlation:
        X *= np.sqrt(1.0 - correlation)
        X += np.sqrt(correlation) * rng.standard_normal((n, 1))
    if not scaled:
        X += rng.standard_normal(d)
        X *= np.exp(1.5 * rng.standard_normal(d))
    return np.asarray(X, dtype=dtype, order=order)


def signal(rng: np.random.Generator, X: Any, informative: int) -> np.ndarray:
    """A linear function of some columns, of mean 0 and deviation 1."""
    d = X.shape[1]
    kept = rng.choice(d, min(d, informative), replace=False)
    z = X[:, kept].astype(np.float64)
    if not sparse.issparse(z):
        z = (z - z.mean(axis=0)) / z.std(axis=0)
    z = z @ rng.standard_normal(kept.size)
    return (z - z.mean()) / max(z.std(), 1e-12)


def regression(rng, X, noise: float, informative: int = 30, size: float = 30.0) -> np.ndarray:
    """Targets of deviation ``size``, which makes alpha = 1 a penalty that keeps some columns."""
    z = signal(rng, X, informative)
    return size * (z + noise * rng.standard_normal(z.size))


def labels(rng, X, noise: float, classes: int = 2, informative: int = 50) -> np.ndarray:
    """The class of the largest of several noisy signals."""
    scores = np.column_stack([signal(rng, X, informative) for _ in range(classes)])
    y = np.argmax(scores + noise * rng.standard_normal(scores.shape), axis=1)
    y[:classes] = np.arange(classes)
    return y


def counts(rng, X, informative: int = 20) -> np.ndarray:
    return rng.poisson(np.exp(np.clip(0.5 * signal(rng, X, informative), -4.0, 4.0))).astype(float)


def one_hot(rng, n: int, groups: tuple[int, ...]) -> sparse.csr_matrix:
    """One of each group of columns is set in a row, early ones more often."""
    columns, first = [], 0
    for size in groups:
        columns.append(first + (size * rng.random(n) ** 2).astype(np.int64))
        first += size
    indices = np.column_stack(columns).ravel()
    indptr = np.arange(0, indices.size + 1, len(groups))
    return sparse.csr_matrix((np.ones(indices.size), indices, indptr), shape=(n, first))


def text(rng, n: int, d: int, length: int) -> sparse.csr_matrix:
    """Unit rows with words of falling frequency."""
    indices = (d * rng.random((n, length)) ** 3).astype(np.int64).ravel()
    indptr = np.arange(0, indices.size + 1, length)
    X = sparse.csr_matrix((np.ones(indices.size), indices, indptr), shape=(n, d))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags(1.0 / norms) @ X)


def real(name: str, instead: Callable[[np.random.Generator], Data], *, dense: bool = False):
    """A file of ``ADACOORD_DATA``, or ``instead``."""

    def data(rng: np.random.Generator) -> Data:
        folder = os.environ.get("ADACOORD_DATA")
        if not folder or not (Path(folder) / f"{name}.svm.xz").exists():
            X, y, said = instead(rng)
            return X, y, f"{said}, in place of {name}"
        from adacoord.io import load_svmlight

        X, y = load_svmlight(Path(folder) / f"{name}.svm.xz")
        return (X.toarray() if dense else X), y, f"{name}, {shape(X)}"

    return data


def shape(X: Any) -> str:
    n, d = X.shape
    return f"{n:,} x {d:,}"


#: What is said of the targets, not of the table.
ABOUT = ("noise", "classes", "informative", "size")


def dense(task: str, n: int, d: int, **how: Any):
    """Data of a fixed shape."""

    def data(rng: np.random.Generator) -> Data:
        made = dict(how)
        about = {key: made.pop(key) for key in ABOUT if key in made}
        X = table(rng, n, d, **made)
        return X, target(task, rng, X, **about), describe(X, task, about, made)

    return data


def target(task: str, rng, X, **about: Any) -> np.ndarray:
    if task == "count":
        return counts(rng, X)
    if task == "amount":
        return rng.gamma(2.0, 0.5 * np.exp(np.clip(0.5 * signal(rng, X, 20), -4.0, 4.0)))
    about = {"noise": 0.5} | about
    if task == "targets":
        return np.column_stack([regression(rng, X, **about) for _ in range(rng.integers(3, 13))])
    return {"regression": regression, "labels": labels}[task](rng, X, **about)


def describe(X: Any, task: str, about: dict[str, Any], made: dict[str, Any]) -> str:
    parts = [shape(X)]
    parts += [f"{about['classes']} classes"] if "classes" in about else []
    parts += ["unscaled"] if not made.get("scaled", True) else []
    parts += ["float32"] if made.get("dtype") is np.float32 else []
    parts += ["Fortran"] if made.get("order") == "F" else []
    if made.get("correlation"):
        parts.append(f"correlation {made['correlation']:.1f}")
    if "noise" in about:
        parts.append(f"noise {about['noise']:.1f}")
    return ", ".join(parts)


def drawn(task: str, n: tuple[int, int], d: tuple[int, int], classes=None, **how: Any):
    """Data whose shape, noise, correlation and (unless given) scale the generator draws."""

    def between(rng, low: int, high: int) -> int:
        return round(np.exp(rng.uniform(np.log(low), np.log(high))))

    def data(rng: np.random.Generator) -> Data:
        about: dict[str, Any] = (
            {} if task in ("count", "amount") else {"noise": rng.uniform(0.1, 1.5)}
        )
        if classes is not None:
            about["classes"] = between(rng, *classes)
        made = {
            "correlation": float(rng.choice([0.0, 0.3, 0.8])),
            "scaled": bool(rng.random() < 0.6),
            **how,
        }
        return dense(task, between(rng, *n), between(rng, *d), **about, **made)(rng)

    return data


def wrapped(make: Callable[[np.random.Generator], Any], task: str, words: str, **about: Any):
    """Sparse data, and targets that follow from it."""

    def data(rng: np.random.Generator) -> Data:
        X = make(rng)
        return X, target(task, rng, X, **about), f"{words} {shape(X)}"

    return data


def clusters(n: int, d: int, classes: int, wrong: float, scaled: bool = True):
    """A cloud of rows per class, and a share of labels that are wrong."""

    def data(rng: np.random.Generator) -> Data:
        y = np.append(np.arange(classes), rng.integers(classes, size=n - classes))
        X = 3.0 * rng.standard_normal((classes, d))[y] + rng.standard_normal((n, d))
        if not scaled:
            X *= np.exp(1.5 * rng.standard_normal(d))
        lies = np.flatnonzero(rng.random(n) < wrong)
        y[lies] = rng.integers(classes, size=lies.size)
        words = f"{shape(X)}, {classes} clusters{'' if scaled else ', unscaled'}"
        return X, y, f"{words}, {wrong:.0%} wrong"

    return data


def movielens(rng: np.random.Generator) -> Data:
    X = one_hot(rng, 100_000, (943, 1682))
    return X, np.clip(np.rint(3.5 + regression(rng, X, 0.7, size=1.0)), 1, 5), shape(X)
