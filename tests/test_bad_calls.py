"""Wrong calls of estimators, paths, certificates, stores and files: a sentence each.

What ``Problem`` and ``solve`` refuse is in ``test_bad_input.py``, damaged files in ``tests/io``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import adacoord as ac

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
Y, Z = np.where(X[:, 0] > 0.0, 1, -1), X @ [1.0, 2.0, 0.0, -1.0]
NAN = np.nan
HOLED = X.copy()
HOLED[3, 1] = NAN
FRAME = pd.DataFrame(X, columns=list("abcd"))
SVM, LASSO = ac.Problem(X, Y.astype(float), "hinge", l2=0.1), ac.Problem(X, Z, l1=0.1)


def pairs(*blocks):
    return ac.solve(ac.Problem(list(blocks), loss="squared", l2=0.1))


FITS = {
    "nan": (ac.Lasso(), HOLED, Z, {}, "X contains NaN"),
    "inf target": (ac.Lasso(), X, np.where(Z > 0, np.inf, Z), {}, "y contains infinity"),
    "words": (ac.Lasso(), np.char.add(X.astype(str), "a"), Z, {}, "convert string to float"),
    "one dimension": (ac.Lasso(), X[:, 0], Z, {}, "Expected 2D array"),
    "lengths": (ac.Lasso(), X, Z[:5], {}, r"inconsistent numbers of samples: \[30, 5\]"),
    "no rows": (ac.Lasso(), X[:0], Z[:0], {}, "0 sample"),
    "no columns": (ac.Lasso(), X[:, :0], Z, {}, "0 feature"),
    "complex": (ac.Ridge(), X + 1j, Z, {}, "[Cc]omplex data not supported"),
    "one class": (ac.LinearSVC(), X, np.ones(30), {}, "y has one class, .*at least 2 classes"),
    "real labels": (ac.LinearSVC(), X, Z, {}, "label type: continuous"),
    "labels of two columns": (ac.LinearSVC(), X, np.c_[Y, Y], {}, r"1d array.*\(30, 2\)"),
    "alpha < 0": (ac.Lasso(alpha=-1), X, Z, {}, "'alpha' .* Got -1"),
    "alpha nan": (ac.Ridge(alpha=NAN), X, Z, {}, "'alpha' .* Got nan"),
    "alpha word": (ac.Ridge(alpha="1"), X, Z, {}, "'alpha' .* Got '1'"),
    "C 0": (ac.LinearSVC(C=0), X, Y, {}, "'C' .* Got 0"),
    "C -inf": (ac.LogisticRegression(C=-np.inf), X, Y, {}, "'C' .* Got -inf"),
    "C nan": (ac.LogisticRegression(C=NAN), X, Y, {}, "'C' .* Got nan"),
    "l1_ratio 2": (ac.ElasticNet(l1_ratio=2), X, Z, {}, "'l1_ratio' .* Got 2"),
    "penalty": (ac.LogisticRegression(penalty="l3"), X, Y, {}, "'penalty' .* Got 'l3'"),
    "loss": (ac.LinearSVC(loss="log"), X, Y, {}, "'loss' .* Got 'log'"),
    "loss of a regressor": (ac.ERMRegressor(loss="hinge", l2=0.1), X, Z, {}, "Got 'hinge'"),
    "solver": (ac.LinearSVC(solver="adam"), X, Y, {}, "'solver' .* Got 'adam'"),
    "tol < 0": (ac.LinearSVC(tol=-1), X, Y, {}, "'tol' .* Got -1"),
    "max_iter 0": (ac.LinearSVC(max_iter=0), X, Y, {}, "'max_iter' .* Got 0"),
    "random_state": (ac.LinearSVC(random_state="a"), X, Y, {}, "'random_state' .* Got 'a'"),
    "class_weight": (ac.LinearSVC(class_weight="even"), X, Y, {}, "'class_weight' .* Got 'even'"),
    "class_weight < 0": (ac.LinearSVC(class_weight={1: -1}), X, Y, {}, "value -1 .*zero or more"),
    "weights short": (ac.Ridge(), X, Z, {"sample_weight": [1.0]}, r"\(1,\), expected \(30,\)"),
    "weights < 0": (ac.Ridge(), X, Z, {"sample_weight": -np.ones(30)}, "Negative .*sample_weight"),
    "weights nan": (ac.Ridge(), X, Z, {"sample_weight": np.full(30, NAN)}, "sample_weight .*NaN"),
    "cv 1": (ac.LassoCV(cv=1), X, Z, {}, "'cv' .* Got 1"),
    "cv 31": (ac.LassoCV(cv=31), X, Z, {}, "n_splits=31 greater than .*n_samples=30"),
    "cv word": (ac.LassoCV(cv="five"), X, Z, {}, "'cv' .* Got 'five'"),
    "alphas < 0": (ac.LassoCV(alphas=[-1.0]), X, Z, {}, r"alphas\[0\] == -1.0"),
    "no alphas": (ac.LassoCV(alphas=[]), X, Z, {}, r"alphas=\[\]: there must be one at least"),
    "0 alphas": (ac.LassoCV(alphas=0), X, Z, {}, "'alphas' .* Got 0"),
    "Cs < 0": (ac.LogisticRegressionCV(Cs=[-1.0]), X, Y, {}, r"Cs=\[-1.0\]: .*positive Cs"),
    "scoring": (ac.LogisticRegressionCV(scoring="best"), X, Y, {}, "'scoring' .* Got 'best'"),
    "n_jobs": (ac.LassoCV(n_jobs="two"), X, Z, {}, "'n_jobs' .* Got 'two'"),
    "counts < 0": (
        ac.ERMRegressor(loss="poisson", l2=0.1),
        X,
        Z,
        {},
        'loss="poisson" takes counts',
    ),
}


@pytest.mark.parametrize("model, rows, targets, more, message", FITS.values(), ids=FITS)
def test_fit(model, rows, targets, more, message):
    with pytest.raises(ValueError, match=message):
        model.fit(rows, targets, **more)
    assert not hasattr(model, "coef_")


PREDICTIONS = {
    "columns": (X[:, :3], "X has 3 features, but Ridge is expecting 4"),
    "nan": (HOLED, "X contains NaN"),
    "one dimension": (X[0], "Expected 2D array"),
    "words": (np.full((3, 4), "a"), "numeric|convert string"),
    "no rows": (X[:0], "0 sample"),
    "names": (FRAME.rename(columns={"d": "e"}), "unseen at fit time"),
    "order": (FRAME[list("badc")], "same order"),
}


@pytest.mark.parametrize("rows, message", PREDICTIONS.values(), ids=PREDICTIONS)
def test_predict(rows, message):
    model = ac.Ridge().fit(FRAME if isinstance(rows, pd.DataFrame) else X, Z)
    with pytest.raises(ValueError, match=message):
        model.predict(rows)


@pytest.mark.parametrize("cls", [ac.Ridge, ac.LinearSVC, ac.LassoCV, ac.LogisticRegression])
def test_predict_before_fit(cls):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        cls().predict(X)


CALLS = {
    "n_jobs 0": (lambda t: ac.solve(SVM, n_jobs=0), "n_jobs=0: .*1 or more, or -1"),
    "n_jobs 1.5": (lambda t: ac.solve(SVM, n_jobs=1.5), "n_jobs=1.5: .*whole number"),
    "executor": (lambda t: ac.solve(SVM, executor="cluster"), "executor=str: .*Client"),
    "both": (lambda t: ac.solve(SVM, n_jobs=2, executor=object()), "n_jobs=2 beside executor"),
    "path l1 < 0": (lambda t: ac.path(LASSO, l1=[-1.0]), "l1 has the value -1.0 at position 0"),
    "path l1 nan": (lambda t: ac.path(LASSO, l1=[NAN]), "l1 has the value nan at position 0"),
    "path empty": (lambda t: ac.path(LASSO, l1=[]), r"l1 has shape \(0,\): .*at least one value"),
    "path n_points": (lambda t: ac.path(LASSO, n_points=0), "n_points=0: .*1 or more"),
    "path ratio": (lambda t: ac.path(LASSO, ratio=2), "ratio=2: .*between 0 and 1"),
    "path lengths": (lambda t: ac.path(LASSO, l1=[1, 2], l2=[1, 2, 3]), "l1 has 2 values and l2"),
    "certify x": (lambda t: ac.certify(SVM, np.zeros(3)), r"x has shape \(3,\): .*4 columns"),
    "certify nan": (lambda t: ac.certify(SVM, np.full(4, NAN)), "x has the value nan"),
    "certify word": (lambda t: ac.certify(SVM, "x"), "x has dtype <U1"),
    "certify effort": (lambda t: ac.certify(SVM, np.zeros(4), effort=-1), "effort=-1: "),
    "widths": (lambda t: pairs((X, Z), (X[:, :2], Z)), "block 1 of A has 2 dense .*must be alike"),
    "lengths": (lambda t: pairs((X, Z), (X, Z[:3])), r"block 1 .*targets of shape \(3,\)"),
    "hole": (lambda t: pairs((X, Z), (HOLED, Z)), "block 1 of A has the value nan in row 3"),
    "iterator": (
        lambda t: ac.Problem(iter([(X, Z)]), l2=0.1),
        "A=list_iterator: .*gone through once",
    ),
    "no blocks": (lambda t: ac.Problem([], l2=0.1), r"A has shape \(0,\)"),
    "method": (
        lambda t: ac.solve(ac.Problem([(X, Z)], l2=0.1), "spdc"),
        "needs all rows in memory",
    ),
    "delta": (lambda t: ac.losses.Huber(delta=-1), "delta=-1: .*positive"),
    "q": (lambda t: ac.losses.Quantile(q=1.5), "q=1.5: .*between 0 and 1"),
    "epsilon": (lambda t: ac.losses.EpsilonInsensitive(epsilon=NAN), "epsilon=nan: "),
    "mu": (lambda t: ac.losses.SmoothHinge(mu=0), 'mu=0: .*loss="hinge"'),
    "codes": (lambda t: ac.Problem(X, np.arange(30) % 3 + 1, "multinomial", l2=0.1), "class 0"),
    "codes real": (lambda t: ac.Problem(X, Z, "multinomial", l2=0.1), "takes the class codes 0, 1"),
    "data set": (lambda t: ac.datasets.load("nowhere", download=False), "no data set of this name"),
    "traversal": (lambda t: ac.datasets.load("../etc/passwd"), "name='../etc/passwd': "),
    "bound": (lambda t: ac.solvers.expected_passes(SVM, "magic"), "solver='magic': not a solver"),
    "bound tol": (lambda t: ac.solvers.expected_passes(SVM, "spdc", tol=-1), "tol=-1: "),
    "save a list": (lambda t: ac.save_model([1], t / "m"), "model=list: .*fitted estimator"),
    "save unfitted": (lambda t: ac.save_model(ac.Ridge(), t / "m"), "not fitted"),
    "load a folder": (lambda t: ac.load_model(t), "this is a folder; name the model file"),
    "a file as store": (
        lambda t: ((t / "f").write_text("a"), ac.open_store(t / "f")),
        "f: this is not a folder, as a store is",
    ),
}


@pytest.mark.parametrize("call, message", CALLS.values(), ids=CALLS)
def test_call(call, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        call(tmp_path)


def test_places_that_are_not_there(tmp_path):
    model = ac.Ridge().fit(X, Z)
    with pytest.raises(IsADirectoryError, match="this is a folder; name a file in it"):
        ac.save_model(model, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no such folder .*create it first"):
        ac.save_model(model, tmp_path / "no" / "m")
    with pytest.raises(FileNotFoundError, match="no such store; make it: adacoord convert"):
        ac.open_store(tmp_path / "x")
    assert not list(tmp_path.iterdir())
