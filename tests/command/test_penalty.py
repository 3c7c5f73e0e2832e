"""``fit --C``, ``--class-weight`` and ``--cv``, against the same by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

import adacoord as ac
from adacoord.command.search import FACTORS, choose
from adacoord.io import load_model

from .calls import inside


@pytest.mark.parametrize("weights", [None, "balanced", "3:2.5,7:0.5", "7:4"])
def test_liblinear_s_C(files, weights):
    folder, A, label = files
    options = [] if weights is None else ["--class-weight", weights]
    done = inside(
        *("fit", "train.svm", "--C", 0.7, *options, "--model", "m", "--quiet"), cwd=folder
    )
    assert done.returncode == 0, done.stderr
    by_label = {"3:2.5,7:0.5": {3: 2.5, 7: 0.5}, "7:4": {7: 4.0}}.get(weights, weights)
    model = load_model(folder / "m")
    expected = ac.LogisticRegression(C=0.7, class_weight=by_label, tol=1e-9)
    expected.fit(A[:300], label[:300])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-5)
    done = inside("certify", "m", "train.svm", "--json", cwd=folder)
    assert json.loads(done.stdout)["problems"][0]["relative_gap"] < 1e-6  # with its weights


def test_weights_of_words(tables):
    folder, X, words = tables
    done = inside(
        *("fit", "train.csv", "--target", "kind", "--C", 3, "--model", "m", "--quiet"),
        *("--class-weight", "setosa:2, versi color:0.5"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    weights = {"setosa": 2.0, "versi color": 0.5}
    expected = ac.LogisticRegression(C=3, class_weight=weights, tol=1e-9).fit(X[::2], words[::2])
    np.testing.assert_allclose(load_model(folder / "m").coef_, expected.coef_, atol=1e-5)


def naive(model, X, y, folds, seed):
    """The mean score of each factor, each fold and penalty fitted from scratch."""
    labels = hasattr(model, "class_weight")
    split = (StratifiedKFold if labels else KFold)(folds, shuffle=True, random_state=seed)
    scores = np.zeros((folds, FACTORS.size))
    for k, (train, test) in enumerate(split.split(X, y)):
        for j, factor in enumerate(FACTORS):
            one = type(model)(**model.get_params())
            one.set_params(l1=model.l1 * factor, l2=model.l2 * factor).fit(X[train], y[train])
            if labels:
                scores[k, j] = np.mean(one.predict(X[test]) == y[test])
            else:
                z = X[test] @ one.coef_ + one.intercept_
                loss = ac.losses.get_loss(model.loss)
                scores[k, j] = loss.value(z, y[test]).mean()
    return scores.mean(axis=0)


@pytest.mark.parametrize(
    "model",
    [
        ac.ERMClassifier("multinomial", l2=0.01, tol=1e-8),
        ac.ERMClassifier("hinge", l2=0.01, tol=1e-8, class_weight="balanced"),
        ac.ERMRegressor("squared", l1=0.1, l2=0.0, tol=1e-8),
        ac.ERMRegressor("quantile", l2=0.01, tol=1e-8),
    ],
)
def test_a_search_is_what_it_says(tables, model):
    _, X, words = tables
    y = words if hasattr(model, "class_weight") else X @ [1.0, -2.0, 0.0] + np.sin(X[:, 1])
    found = choose(model, X, y, 3, seed=5)
    expected = naive(model, X, y, 3, seed=5)
    if hasattr(model, "class_weight"):
        # a row on the edge of two classes may fall either way
        assert np.abs(found.scores - expected).max() <= 1.01 / len(y)
        assert found.best == np.argmax(found.scores)
    else:
        np.testing.assert_allclose(found.scores, expected, rtol=1e-5)
        assert found.best == np.argmin(expected)
    assert (found.l1, found.l2) == (
        model.l1 * FACTORS[found.best],
        model.l2 * FACTORS[found.best],
    )
    assert found.relative_gap <= 1e-8
    assert not hasattr(model, "coef_")


def test_a_search_on_the_command_line(tables):
    folder, *_ = tables
    fit = ("fit", "train.csv", "--target", "kind", "--cv", 4)
    done = inside(*fit, "--model", "m", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "chosen on 4 folds among 13 penalties: l2 = " in done.stderr
    assert done.stderr.count("fold ") == 4
    model = load_model(folder / "m")
    assert f"l2 = {model.l2:.6g} (accuracy" in done.stderr
    done = inside(*fit, "--json", "--quiet", "--n-jobs", 2, cwd=folder)
    facts = json.loads(done.stdout)
    assert facts["l2"] == model.l2 and facts["cv"]["folds"] == 4
    assert facts["cv"]["best"] == max(facts["cv"]["scores"])
    assert "fold" not in done.stderr.replace("folds", "")
    done = inside("fit", "real.csv", "--target", "y", "--cv", 2, "--l2", 1e-12, cwd=folder)
    assert "it is the " in done.stderr and "est of them: give it as --l1 or --l2" in done.stderr


def test_a_search_that_ends_early_says_so(tables):
    folder, *_ = tables
    done = inside(
        *("fit", "train.csv", "--target", "kind", "--cv", 2, "--loss", "hinge", "--solver", "dcd"),
        *("--max-passes", 2, "--quiet", "--model", "m"),
        cwd=folder,
    )
    assert done.returncode == 3 and (folder / "m").exists()
    assert "points of the folds' paths stopped early" in done.stderr
    assert "Raise max_passes or tol" in done.stderr
