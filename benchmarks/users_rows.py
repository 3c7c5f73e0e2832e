"""The rows of ``users.py``: data as people bring them, two models each, and their objective.

A row names an estimator of ours and scikit-learn's, both at their defaults.  ``tuned`` rows are
those the library was tuned on, with shapes that stay; ``unseen`` ones draw shape, noise,
correlation and scale from the seed, and ``real`` ones are data sets of ``ADACOORD_DATA`` (or, where
one is not there, data of its shape: the row then says so).

:func:`objective` is what scikit-learn documents of the estimator, in float64, with NumPy and SciPy
alone.  One departure: liblinear penalises the bias of LinearSVC and LinearSVR and our default does
not, so theirs minimises another function; the bias is left out for both, as it is in their
documents.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

Data = tuple[Any, np.ndarray, str]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    name : what ``--rows`` is matched against
    group : tuned, unseen or real
    kind : the formula of :func:`objective`
    data : from a generator to (X, y, description)
    model : the name of the class in both libraries, or (ours, theirs)
    settings : of both; what is not a default is a part of the name
    quick : whether ``--quick`` keeps it
    """

    name: str
    group: str
    kind: str
    data: Callable[[np.random.Generator], Data]
    model: str | tuple[str, str]
    settings: tuple[tuple[str, Any], ...] = ()
    quick: bool = False

    def models(self) -> tuple[Any, Any]:
        """(ours, theirs), not fitted."""
        import sklearn.linear_model
        import sklearn.svm

        import adacoord

        ours, theirs = (self.model, self.model) if isinstance(self.model, str) else self.model
        if self.kind == "path":
            return Walk(ours), Walk(theirs)
        settings = dict(self.settings)
        home = sklearn.svm if theirs.startswith("LinearSV") else sklearn.linear_model
        other = getattr(home, theirs)(**settings)
        if self.kind == "poisson":
            settings = {"loss": "poisson", "l2": other.alpha}
        return getattr(adacoord, ours)(**settings), other


class Walk:
    """A path function with the shape of an estimator: 100 points on centred data."""

    def __init__(self, library: str):
        self.library = library

    def fit(self, X, y) -> Walk:
        X, y = X - X.mean(axis=0), y - y.mean()
        if self.library == "adacoord":
            import adacoord as ac

            path = ac.path(ac.Problem(X, y), tol=1e-4)
            self.alphas_, self.coefs_ = path.l1, path.coefs.T
            self.relative_gap_ = path.relative_gap
        else:
            from sklearn.linear_model import lasso_path

            self.alphas_, self.coefs_, _ = lasso_path(X, y)
        return self


# ---- the judge ------------------------------------------------------------------------------


def objective(kind: str, model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """What ``model`` should have made small: one number, or one per point of a path."""
    X = X.astype(np.float64)
    if kind == "path":
        r = (y - y.mean())[:, None] - (X - X.mean(axis=0)) @ model.coefs_
        return 0.5 * np.mean(r**2, axis=0) + model.alphas_ * np.abs(model.coefs_).sum(axis=0)
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    z = X @ coef.T + np.asarray(model.intercept_, dtype=np.float64)
    half = 0.5 * np.sum(coef**2)
    weight = strength(model)
    if kind == "ridge":
        return np.array(np.sum((z[:, 0] - y) ** 2) + 2.0 * weight * half)
    if kind == "lasso":
        ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
        penalty = ratio * np.abs(coef).sum() + (1.0 - ratio) * half
        return np.array(0.5 * np.mean((z[:, 0] - y) ** 2) + weight * penalty)
    if kind == "poisson":
        return np.array(np.mean(np.exp(z[:, 0]) - y * z[:, 0]) + weight * half)
    if kind == "svr":
        return np.array(weight * np.sum(np.abs(z[:, 0] - y)) + half)
    codes = np.searchsorted(model.classes_, y)
    if kind == "logistic" and len(coef) > 1:
        losses = logsumexp(z, axis=1) - z[np.arange(y.size), codes]
    else:
        wanted = np.arange(len(coef)) if len(coef) > 1 else np.array([1])
        margin = np.where(codes[:, None] == wanted, 1.0, -1.0) * z
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


# ---- data -----------------------------------------------------------------------------------


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


# ---- rows -----------------------------------------------------------------------------------


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
    about = {"noise": 0.5} | about
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
        about: dict[str, Any] = {} if task == "count" else {"noise": rng.uniform(0.1, 1.5)}
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


POISSON = ("ERMRegressor", "PoissonRegressor")
HINGE = (("loss", "hinge"),)
#: ERMRegressor's default where scikit-learn's is 1.
WEAK = (("alpha", 1e-4),)
F32 = {"dtype": np.float32}


def tuned() -> list[Row]:
    """The table of the issue that asked for these rows."""
    ten = dense("labels", 5_000, 50, classes=10)
    return [
        Row("LassoCV tall", "tuned", "lasso", dense("regression", 50_000, 50), "LassoCV"),
        Row("LassoCV medium", "tuned", "lasso", dense("regression", 5_000, 300), "LassoCV"),
        Row("LassoCV small", "tuned", "lasso", dense("regression", 1_000, 20), "LassoCV", (), True),
        Row(
            "path medium",
            "tuned",
            "path",
            dense("regression", 5_000, 300),
            ("adacoord", "sklearn"),
            (),
            True,
        ),
        Row("Lasso medium", "tuned", "lasso", dense("regression", 6_000, 350), "Lasso", (), True),
        Row("ElasticNet medium", "tuned", "lasso", dense("regression", 6_000, 350), "ElasticNet"),
        Row("Lasso tall", "tuned", "lasso", dense("regression", 40_000, 60), "Lasso"),
        Row(
            "Lasso wide",
            "tuned",
            "lasso",
            dense("regression", 1_000, 20_000, informative=200, size=300.0),
            "Lasso",
        ),
        Row(
            "Lasso few columns",
            "tuned",
            "lasso",
            real("cpuact", dense("regression", 8_192, 21, scaled=False), dense=True),
            "Lasso",
            (),
            True,
        ),
        Row(
            "Logistic 300 noisy classes",
            "tuned",
            "logistic",
            clusters(3_000, 20, 300, 0.3, scaled=False),
            "LogisticRegression",
        ),
        Row(
            "Logistic 100 classes",
            "tuned",
            "logistic",
            clusters(3_000, 20, 100, 0.0),
            "LogisticRegression",
            (),
            True,
        ),
        Row("Logistic 10 classes", "tuned", "logistic", ten, "LogisticRegression", (), True),
        Row(
            "Logistic 10 classes tall",
            "tuned",
            "logistic",
            dense("labels", 20_000, 100, classes=10),
            "LogisticRegression",
        ),
        Row("LogisticCV 10 classes", "tuned", "logistic", ten, "LogisticRegressionCV"),
        Row(
            "Logistic large",
            "tuned",
            "logistic",
            dense("labels", 20_000, 2_000),
            "LogisticRegression",
        ),
        Row(
            "Logistic float32",
            "tuned",
            "logistic",
            dense("labels", 10_000, 768, correlation=0.3, **F32),
            "LogisticRegression",
        ),
        Row(
            "Logistic few columns",
            "tuned",
            "logistic",
            dense("labels", 245_057, 3, scaled=False),
            "LogisticRegression",
            (),
            True,
        ),
        Row("Poisson large", "tuned", "poisson", dense("count", 20_000, 2_000), POISSON, WEAK),
        Row("Poisson medium", "tuned", "poisson", dense("count", 5_000, 300), POISSON, WEAK, True),
        Row("SVC large", "tuned", "svc", dense("labels", 20_000, 2_000), "LinearSVC"),
        Row("SVC hinge medium", "tuned", "svc", dense("labels", 6_000, 350), "LinearSVC", HINGE),
        Row(
            "SVR medium",
            "tuned",
            "svr",
            dense("regression", 6_000, 350, noise=0.1, size=1.0),
            "LinearSVR",
        ),
        Row("RidgeCV wide", "tuned", "ridge", dense("regression", 900, 9_000), "RidgeCV"),
        Row(
            "Ridge one-hot",
            "tuned",
            "ridge",
            real("movielens100k_onehot", movielens),
            "Ridge",
            (),
            True,
        ),
        Row("Ridge few columns", "tuned", "ridge", dense("regression", 40_000, 8), "Ridge"),
    ]


def unseen() -> list[Row]:
    """What nobody tuned on: other shapes with each seed."""

    def row(name, kind, data, model, settings=(), quick=False):
        return Row(f"unseen {name}", "unseen", kind, data, model, settings, quick)

    r, c = "regression", "labels"
    return [
        row("LassoCV tall", "lasso", drawn(r, (10_000, 40_000), (30, 90)), "LassoCV"),
        row("LassoCV medium", "lasso", drawn(r, (2_000, 6_000), (100, 280)), "LassoCV"),
        row("LassoCV small", "lasso", drawn(r, (300, 2_000), (8, 40)), "LassoCV", (), True),
        row("ElasticNetCV", "lasso", drawn(r, (500, 4_000), (15, 120)), "ElasticNetCV"),
        row("path", "path", drawn(r, (2_000, 8_000), (100, 400)), ("adacoord", "sklearn")),
        row("Lasso Fortran", "lasso", drawn(r, (3_000, 9_000), (150, 500), order="F"), "Lasso"),
        row("Lasso wide", "lasso", drawn(r, (300, 800), (3_000, 9_000)), "Lasso", (), True),
        row("ElasticNet tall", "lasso", drawn(r, (20_000, 60_000), (20, 90)), "ElasticNet"),
        row(
            "Logistic small",
            "logistic",
            drawn(c, (300, 1_500), (8, 40)),
            "LogisticRegression",
            (),
            True,
        ),
        row(
            "Logistic medium unscaled",
            "logistic",
            drawn(c, (3_000, 9_000), (80, 300), scaled=False),
            "LogisticRegression",
        ),
        row(
            "Logistic medium",
            "logistic",
            drawn(c, (5_000, 15_000), (200, 900), scaled=True),
            "LogisticRegression",
            (),
            True,
        ),
        row(
            "Logistic float32 Fortran",
            "logistic",
            drawn(c, (4_000, 12_000), (200, 700), order="F", scaled=True, **F32),
            "LogisticRegression",
        ),
        row(
            "Logistic wide",
            "logistic",
            drawn(c, (200, 800), (2_000, 8_000), scaled=True),
            "LogisticRegression",
        ),
        row(
            "Logistic 3 to 8 classes",
            "logistic",
            drawn(c, (1_000, 8_000), (15, 80), (3, 8)),
            "LogisticRegression",
            (),
            True,
        ),
        row(
            "Logistic 20 to 60 classes",
            "logistic",
            drawn(c, (2_000, 8_000), (20, 100), (20, 60), scaled=True),
            "LogisticRegression",
        ),
        row(
            "Logistic 150 to 250 classes",
            "logistic",
            drawn(c, (2_000, 5_000), (15, 40), (150, 250), scaled=True),
            "LogisticRegression",
        ),
        row(
            "LogisticCV 2 classes",
            "logistic",
            drawn(c, (500, 3_000), (10, 60), scaled=True),
            "LogisticRegressionCV",
        ),
        row("Poisson", "poisson", drawn("count", (3_000, 10_000), (50, 500)), POISSON, (), True),
        row("Poisson weak", "poisson", drawn("count", (3_000, 8_000), (50, 300)), POISSON, WEAK),
        row(
            "Logistic clusters",
            "logistic",
            lambda rng: clusters(4_000, 25, int(rng.integers(40, 200)), 0.1)(rng),
            "LogisticRegression",
        ),
        row("SVR unit targets", "svr", drawn(r, (3_000, 8_000), (100, 400), size=1.0), "LinearSVR"),
        row("SVC medium", "svc", drawn(c, (3_000, 9_000), (100, 600)), "LinearSVC", (), True),
        row("SVC hinge", "svc", drawn(c, (2_000, 8_000), (50, 400)), "LinearSVC", HINGE),
        row("SVC 4 to 12 classes", "svc", drawn(c, (1_000, 5_000), (20, 90), (4, 12)), "LinearSVC"),
        row("SVR small", "svr", drawn(r, (300, 2_000), (8, 60)), "LinearSVR", (), True),
        row("SVR medium", "svr", drawn(r, (3_000, 8_000), (100, 400), scaled=True), "LinearSVR"),
        row("Ridge few columns", "ridge", drawn(r, (20_000, 90_000), (4, 15)), "Ridge", (), True),
        row("Ridge medium float32", "ridge", drawn(r, (3_000, 12_000), (100, 600), **F32), "Ridge"),
        row("Ridge wide", "ridge", drawn(r, (300, 1_200), (3_000, 9_000)), "Ridge"),
        row("RidgeCV tall", "ridge", drawn(r, (2_000, 9_000), (30, 300)), "RidgeCV"),
        row("RidgeCV wide", "ridge", drawn(r, (200, 600), (2_000, 6_000)), "RidgeCV"),
        row(
            "Ridge one-hot",
            "ridge",
            wrapped(lambda rng: one_hot(rng, 60_000, (500, 3_000, 40)), r, "one-hot"),
            "Ridge",
        ),
        row(
            "Logistic text",
            "logistic",
            wrapped(lambda rng: text(rng, 12_000, 30_000, 60), c, "text", informative=3_000),
            "LogisticRegression",
        ),
    ]


def sets() -> list[Row]:
    """Real data."""

    def row(name, kind, data, model, settings=(), quick=False):
        return Row(f"real {name}", "real", kind, data, model, settings, quick)

    words = wrapped(lambda rng: text(rng, 20_000, 45_000, 75), "labels", "text", informative=4_000)
    adult = wrapped(lambda rng: one_hot(rng, 32_000, (20,) * 10), "labels", "one-hot")
    ids = wrapped(lambda rng: one_hot(rng, 32_000, (1_700,) * 9), "labels", "one-hot")
    r8 = wrapped(
        lambda rng: text(rng, 7_600, 23_000, 60), "labels", "text", classes=8, informative=2_000
    )
    letter = dense("labels", 20_000, 16, classes=26)
    return [
        row("Logistic rcv1", "logistic", real("rcv1.subset.binary", words), "LogisticRegression"),
        row("SVC rcv1", "svc", real("rcv1.subset.binary", words), "LinearSVC"),
        row("Ridge rcv1", "ridge", real("rcv1.subset.binary", words), "Ridge"),
        row(
            "Logistic adult",
            "logistic",
            real("adult_onehot", adult),
            "LogisticRegression",
            (),
            True,
        ),
        row("SVC amazon", "svc", real("amazon_access_onehot", ids), "LinearSVC"),
        row("SVC reuters 8 classes", "svc", real("reuters_r8_tfidf", r8), "LinearSVC", (), True),
        row("Logistic reuters", "logistic", real("reuters_r8_tfidf", r8), "LogisticRegression"),
        row(
            "Logistic letter",
            "logistic",
            real("letter", letter, dense=True),
            "LogisticRegression",
        ),
        row(
            "SVC usps",
            "svc",
            real("usps", dense("labels", 9_298, 256, classes=10), dense=True),
            "LinearSVC",
        ),
        row(
            "Logistic spambase unscaled",
            "logistic",
            real("spambase", dense("labels", 4_601, 57, scaled=False), dense=True),
            "LogisticRegression",
            (),
            True,
        ),
    ]


ROWS = [*tuned(), *unseen(), *sets()]
