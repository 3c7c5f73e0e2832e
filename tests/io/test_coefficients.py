"""Coefficients as CSV and JSON: what is read back is what was fitted."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import adacoord as ac
from adacoord.command.cli import app

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)) * [1.0, 1e-3, 1e7]
MODELS = {
    "one target": lambda: ac.Ridge().fit(X, X[:, 0]),
    "two targets": lambda: ac.Ridge().fit(X, X[:, :2]),
    "no intercept": lambda: ac.Lasso(fit_intercept=False).fit(X, X[:, 0]),
    "two classes": lambda: ac.LinearSVC().fit(X, np.where(X[:, 0] > 0.0, "yes", 'no, "never"')),
    "three classes": lambda: ac.LogisticRegression().fit(X, np.digitize(X[:, 0], [-0.5, 0.5])),
    "names": lambda: ac.Ridge().fit(pd.DataFrame(X, columns=["a", "b,c", "ü"]), X[:, 0]),
    "sparse": lambda: ac.LogisticRegression().fit(X, X[:, 0] > 0.0).sparsify(),
}


def wanted(model):
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    coef = np.atleast_2d(coef)
    return coef, np.broadcast_to(model.intercept_, len(coef))


@pytest.mark.parametrize("name", MODELS)
def test_they_read_back_as_they_were(name, tmp_path):
    model = MODELS[name]()
    coef, intercept = wanted(model)
    features = getattr(model, "feature_names_in_", ["x0", "x1", "x2"])
    ac.io.save_coefficients(model, tmp_path / "m.csv")
    with open(tmp_path / "m.csv", newline="", encoding="utf-8") as file:
        head, first, *rest = csv.reader(file)
    assert [line[0] for line in rest] == list(features)
    assert np.array_equal(np.array([line[1:] for line in rest], dtype=float), coef.T)
    assert first[0] == "(intercept)"
    assert np.array_equal(np.array(first[1:], dtype=float), intercept)
    ac.io.save_coefficients(model, tmp_path / "m.JSON")
    facts = json.loads((tmp_path / "m.JSON").read_text("utf-8"))
    assert np.array_equal(facts["coefficients"], coef)
    assert np.array_equal(facts["intercepts"], intercept)
    assert facts["features"] == list(features) and facts["estimator"] == type(model).__name__
    assert head[1:] == [str(t) for t in facts["targets"]]
    if name == "two classes":
        assert facts["targets"] == ["yes"]  # decision values are those of the second class
    if name == "three classes":
        assert facts["targets"] == [0, 1, 2]


def test_what_is_refused(tmp_path):
    model = MODELS["one target"]()
    with pytest.raises(ValueError, match=r"must end with \.csv or \.json"):
        ac.io.save_coefficients(model, tmp_path / "m.txt")
    with pytest.raises(ValueError, match="call fit first"):
        ac.io.save_coefficients(ac.Ridge(), tmp_path / "m.csv")
    assert not list(tmp_path.iterdir())


def test_the_command_line(tmp_path):
    ac.save_model(MODELS["names"](), tmp_path / "m.adacoord")
    where = str(tmp_path / "m.csv")
    done = CliRunner().invoke(app, ["info", str(tmp_path / "m.adacoord"), "--coefficients", where])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "m.csv").read_text("utf-8").count("\n") == 5
    lost = CliRunner().invoke(app, ["info", "--coefficients", where])
    assert "name a model file" in str(lost.exception)
