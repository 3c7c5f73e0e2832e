"""The rows of ``users.py``: data (``users_data.py``), and two models each.

A row names an estimator of ours and scikit-learn's, both at their defaults.  ``tuned`` rows are
those the library was tuned on, with shapes that stay; ``unseen`` ones draw shape, noise,
correlation and scale from the seed, and ``real`` ones are data sets of ``ADACOORD_DATA`` (or, where
one is not there, data of its shape: the row then says so).

Its ``kind`` is the formula of ``users_judge.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from users_data import Data, clusters, dense, drawn, movielens, one_hot, real, text, wrapped


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    name : what ``--rows`` is matched against
    group : tuned, unseen or real
    kind : the formula of ``users_judge.objective``
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


# ---- rows -----------------------------------------------------------------------------------

WEAK = (("alpha", 1e-4),)
#: The power of a Poisson number of gamma variates.
WEIGHED = (("power", 1.5),)
HINGE = (("loss", "hinge"),)
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
        Row(
            "Poisson large",
            "tuned",
            "poisson",
            dense("count", 20_000, 2_000),
            "PoissonRegressor",
            WEAK,
        ),
        Row(
            "Poisson medium",
            "tuned",
            "poisson",
            dense("count", 5_000, 300),
            "PoissonRegressor",
            WEAK,
            True,
        ),
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
        row(
            "Poisson",
            "poisson",
            drawn("count", (3_000, 10_000), (50, 500)),
            "PoissonRegressor",
            (),
            True,
        ),
        row(
            "Poisson weak",
            "poisson",
            drawn("count", (3_000, 8_000), (50, 300)),
            "PoissonRegressor",
            WEAK,
        ),
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
        *others(row),
    ]


def others(row) -> list[Row]:
    """The classes that nobody measured at first."""
    r, c = "regression", "labels"
    words = wrapped(lambda rng: text(rng, 6_000, 15_000, 50), r, "text", informative=1_000)
    topics = wrapped(lambda rng: text(rng, 8_000, 20_000, 50), c, "text", informative=2_000)
    small, medium = ((300, 2_000), (8, 40)), ((3_000, 9_000), (60, 300))
    return [
        row("Gamma", "gamma", drawn("amount", *medium), "GammaRegressor", (), True),
        row("Gamma weak", "gamma", drawn("amount", *medium), "GammaRegressor", WEAK),
        row("Tweedie", "tweedie", drawn(r, *medium), "TweedieRegressor"),
        row("Tweedie 1.5", "tweedie", drawn("count", *medium), "TweedieRegressor", WEIGHED),
        row("Poisson small", "poisson", drawn("count", *small), "PoissonRegressor"),
        row("Huber small", "huber", drawn(r, *small), "HuberRegressor", (), True),
        row("Huber medium", "huber", drawn(r, *medium, scaled=True), "HuberRegressor"),
        row("Quantile small", "quantile", drawn(r, *small), "QuantileRegressor", (), True),
        row("Quantile medium", "quantile", drawn(r, (2_000, 5_000), (20, 60)), "QuantileRegressor"),
        row("RidgeClassifier", "ridge classes", drawn(c, *medium), "RidgeClassifier", (), True),
        row(
            "RidgeClassifier classes",
            "ridge classes",
            drawn(c, (1_000, 8_000), (15, 80), (4, 12)),
            "RidgeClassifier",
        ),
        row("RidgeClassifier text", "ridge classes", topics, "RidgeClassifier"),
        row("MultiTaskLasso small", "multitask", drawn("targets", *small), "MultiTaskLasso"),
        row("MultiTaskLasso", "multitask", drawn("targets", *medium), "MultiTaskLasso", (), True),
        row("MultiTaskElasticNet", "multitask", drawn("targets", *medium), "MultiTaskElasticNet"),
        row("Ridge targets", "ridge", drawn("targets", *medium), "Ridge", (), True),
        row("Ridge small", "ridge", drawn(r, *small), "Ridge"),
        row("Ridge text", "ridge", words, "Ridge"),
        row("Lasso small", "lasso", drawn(r, *small), "Lasso", (), True),
        row("Lasso text", "lasso", words, "Lasso", (("alpha", 1e-2),)),
        row("ElasticNet small", "lasso", drawn(r, *small), "ElasticNet"),
        row("LassoCV wide", "lasso", drawn(r, (100, 300), (800, 3_000)), "LassoCV"),
        row("LassoCV text", "lasso", words, "LassoCV"),
        row("SVC small", "svc", drawn(c, *small), "LinearSVC", (), True),
        row("SVC text", "svc", topics, "LinearSVC"),
        row("SVR text", "svr", words, "LinearSVR"),
        row("RidgeCV small", "ridge", drawn(r, *small), "RidgeCV"),
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
