"""Model files of released versions load for ever.

``samples/0.1.0`` was written by that version: ``command-*`` by its ``adacoord fit``, ``model-*`` by
its ``io.Model`` (both format 1), the others by ``save_model`` of fitted estimators (format 2).
``expected.json`` holds what it predicted with them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import adacoord as ac
from adacoord.command.cli import app
from adacoord.problem.losses import get_loss

FOLDER = Path(__file__).parent / "samples" / "0.1.0"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
X, MODELS = np.array(EXPECTED["X"]), EXPECTED["models"]
PLAIN = sorted(name for name in MODELS if name.startswith(("command-", "model-")))


def sample(name):
    return FOLDER / f"{name}.adacoord"


def test_the_samples_are_those_that_are_expected():
    assert {path.stem for path in FOLDER.glob("*.adacoord")} == set(MODELS) and len(MODELS) == 35
    for name in MODELS:
        version = 1 if name in PLAIN else 2
        assert sample(name).read_bytes().startswith(b"ADACOORD-MODEL-%d\n" % version)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_file_of_0_1_0(name, tmp_path):
    model, expected = ac.load_model(sample(name)), MODELS[name]
    check(model, expected)
    ac.save_model(model, tmp_path / "m")
    assert (tmp_path / "m").read_bytes().startswith(b"ADACOORD-MODEL-3\n")
    check(ac.load_model(tmp_path / "m"), expected)


def check(model, expected):
    predicted = model.predict(X)
    if hasattr(model, "classes_"):
        assert predicted.tolist() == expected["predict"]
    else:
        np.testing.assert_allclose(predicted, expected["predict"], rtol=1e-12)
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, "classes_"):
            assert hasattr(model, name) == (name in expected)
        if hasattr(model, name):
            np.testing.assert_allclose(getattr(model, name)(X), expected[name], rtol=1e-12)
    np.testing.assert_array_equal(np.squeeze(model.coef_), np.squeeze(expected["coef"]))
    np.testing.assert_array_equal(np.squeeze(model.intercept_), np.squeeze(expected["intercept"]))
    for name, attribute in (
        ("gap", "dual_gap_"),
        ("relative_gap", "relative_gap_"),
        ("passes", "n_iter_"),
        ("solver", "solver_"),
    ):
        if name in expected.get("certificate", {}):
            np.testing.assert_array_equal(getattr(model, attribute), expected["certificate"][name])


@pytest.mark.parametrize("name", PLAIN)
def test_plain_numbers_become_an_estimator(name):
    model, facts = ac.load_model(sample(name)), MODELS[name]["params"]
    loss = get_loss(model.loss)
    margins = loss.task == "classification"
    assert type(model) is (ac.ERMClassifier if margins else ac.ERMRegressor)
    assert loss.name == facts["loss"]
    assert facts["parameter"] == (getattr(loss, loss.parameter) if loss.parameter else None)
    assert (model.l1, model.l2, model.positive) == (facts["l1"], facts["l2"], facts["positive"])
    assert model.fit_intercept == ("no-intercept" not in name and name != "model-bare")
    model.set_params(**model.get_params())._validate_params()
    if name.startswith("command-"):
        assert model.history_.passes == [model.n_iter_] and model.history_.seconds[0] >= 0.0
        np.testing.assert_allclose(
            model.history_.primal - model.history_.dual, model.dual_gap_, atol=1e-15
        )


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_command_line_takes_them(name, tmp_path):
    ac.io.save_svmlight(tmp_path / "x.svm", X, np.zeros(len(X)))
    done = CliRunner().invoke(app, ["predict", str(sample(name)), str(tmp_path / "x.svm")])
    assert done.exit_code == 0, done.exception
    assert len(done.stdout.splitlines()) == len(X)
    done = CliRunner().invoke(app, ["info", str(sample(name))])
    assert done.exit_code == 0 and "coefficients are not zero" in done.stdout
    if name.endswith("unpenalised"):
        assert "no certificate" in done.stdout
