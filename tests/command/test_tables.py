"""The commands on tables: columns by name, labels that are words."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest

import adacoord as ac
from adacoord.io import load_model

from .calls import inside


def test_words_are_fitted_predicted_and_certified(tables):
    folder, X, words = tables
    done = inside(
        *("fit", "train.csv", "--target", "kind", "--test", "test.csv", "--model", "m"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    labels = "setosa, versi color, virginica"
    assert f"Training multinomial logistic regression on 3 labels ({labels})" in done.stderr
    model = load_model(folder / "m")
    assert model.feature_names_in_.tolist() == ["petal, length", "width", "depth"]
    assert model.classes_.tolist() == labels.split(", ")
    reference = ac.ERMClassifier("multinomial", l2=1 / 90, tol=1e-6).fit(X[::2], words[::2])
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-6)

    # the columns of test.csv stand in another order, beside one that nobody asked for
    expected = reference.predict(X[1::2])
    accuracy = f"accuracy {np.mean(expected == words[1::2]):.4%} on 90 rows"
    assert f"test: {accuracy}" in done.stdout
    done = inside("predict", "m", "test.csv", cwd=folder)
    assert done.returncode == 0 and done.stderr == accuracy + "\n"
    assert done.stdout.splitlines() == expected.tolist()
    done = inside("predict", "m", "new.csv", "--proba", cwd=folder)  # no targets, no accuracy
    assert done.returncode == 0 and done.stderr == ""
    p = np.array([line.split() for line in done.stdout.splitlines()], float)
    np.testing.assert_allclose(p, reference.predict_proba(X[1::2]), atol=1e-6)

    done = inside("certify", "m", "train.csv", cwd=folder)
    assert done.returncode == 0 and "of the optimum" in done.stdout
    done = inside("info", "m", cwd=folder)
    assert "3 features: petal, length, width, depth, of the target kind" in done.stdout
    done = inside("info", "m", "--coefficients", "-", cwd=folder)
    assert done.stdout.startswith("feature,setosa,versi color,virginica\n(intercept),")
    assert "ERMClassifier" in done.stderr


def test_two_words_and_quantities(tables):
    folder, X, _ = tables
    done = inside("fit", "two.csv", "--target", "kind", "--model", "m", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Training logistic regression on 2 labels (setosa, versi color)" in done.stderr
    assert load_model(folder / "m").loss == "logistic"
    done = inside("predict", "m", "two.csv", cwd=folder)
    assert set(done.stdout.splitlines()) == {"setosa", "versi color"}

    done = inside("fit", "real.csv", "--target", "y", "--model", "m", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Training ridge regression on targets that are quantities" in done.stderr
    done = inside("predict", "m", "real.csv", cwd=folder)
    assert done.stderr.startswith("R^2 0.99")
    found = np.array(done.stdout.split(), float)
    model = load_model(folder / "m")
    np.testing.assert_allclose(found, X @ model.coef_ + model.intercept_, rtol=1e-12)
    done = inside("fit", "real.csv", "--target", "y", "--l1", 0.1, "--quiet", cwd=folder)
    assert "Training the lasso on targets that are quantities" in done.stderr
    # targets of another kind are not compared with
    done = inside("predict", "m", "test.csv", "--target", "kind", cwd=folder)
    assert done.returncode == 0 and done.stderr == ""


def test_accuracy_of_svmlight_and_labels_that_are_unknown(irises):
    folder, *_ = irises
    assert inside("fit", "train.svm", "--model", "m", "--quiet", cwd=folder).returncode == 0
    done = inside("predict", "m", "test.svm", cwd=folder)
    assert done.stderr.startswith("accuracy ") and done.stderr.endswith("% on 120 rows\n")
    (folder / "odd.svm").write_text("9 1:2\n1 1:3\n")
    done = inside("predict", "m", "odd.svm", cwd=folder)
    assert done.stderr.endswith("on 2 rows, 1 of them with labels that the model does not know\n")
    (folder / "t.csv").write_text("a,b,c,d,y\n1,2,3,4,one\n")
    done = inside("predict", "m", "t.csv", "--target", "y", cwd=folder)  # by position, no names
    assert done.stderr.startswith("accuracy 0.0000% on 1 rows, 1 of them with labels")


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs pyarrow")
def test_parquet(tables):
    from pyarrow import csv, parquet

    folder, *_ = tables
    for name in ("train", "test"):
        parquet.write_table(csv.read_csv(folder / f"{name}.csv"), folder / f"{name}.parquet")
    outputs = []
    for kind in ("csv", "parquet"):
        done = inside(
            *("fit", f"train.{kind}", "--target", "kind", "--model", kind, "--quiet"), cwd=folder
        )
        assert done.returncode == 0, done.stderr
        outputs += [inside("predict", kind, f"test.{of}", cwd=folder) for of in ("csv", "parquet")]
    assert len({(done.stdout, done.stderr) for done in outputs}) == 1
    assert "accuracy" in outputs[0].stderr


def test_arrays(tables):
    folder, X, _ = tables
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", X @ [1, 2, 3])
    done = inside("fit", "X.npy", "--target", "y.npy", "--model", "m", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    done = inside("predict", "m", "X.npy", cwd=folder)
    assert len(done.stdout.split()) == 180 and done.stderr == ""
    done = inside("predict", "m", "X.npy", "--target", "y.npy", cwd=folder)
    assert done.stderr.startswith("R^2 0.99")


def test_compare(tables):
    folder, *_ = tables
    done = inside(
        *("compare", "train.csv", "--target", "kind", "--solvers", "apdc", "--quiet"),
        *("--report", "r.html"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "apdc" in done.stdout and "multinomial" in done.stderr
    assert "--target kind" in (folder / "r.html").read_text()


def test_data_by_name(tables, monkeypatch):
    folder, *_ = tables
    monkeypatch.setenv("ADACOORD_DATA", str(folder))
    (folder / "small.svm").write_text("1 1:2 2:1\n-1 1:1 2:3\n" * 20)
    for command in (
        ("fit", "small", "--test", "small", "--model", "m", "--quiet"),
        ("predict", "m", "small"),
        ("certify", "m", "small"),
        ("convert", "small", "store"),
        ("compare", "small", "--quiet", "--solvers", "newton"),
    ):
        done = inside(*command, cwd=folder)
        assert done.returncode == 0, (command, done.stderr)
    assert ac.open_store(folder / "store").shape == (40, 2)
    done = inside("fit", "smal", cwd=folder)
    assert done.returncode == 2 and "did you mean small" in done.stderr


def test_zero_based(tmp_path):
    (tmp_path / "t.svm").write_text("1 0:2 1:1\n-1 0:1 1:3\n" * 20)
    assert inside("fit", "t.svm", cwd=tmp_path).returncode == 2
    for command in (
        ("fit", "t.svm", "--test", "t.svm", "--model", "m", "--quiet"),
        ("predict", "m", "t.svm"),
        ("certify", "m", "t.svm"),
        ("compare", "t.svm", "--quiet", "--solvers", "newton", "--report", "r.html"),
    ):
        done = inside(*command, "--zero-based", cwd=tmp_path)
        assert done.returncode == 0, (command, done.stderr)
    assert load_model(tmp_path / "m").n_features_in_ == 2
    assert "--zero-based" in (tmp_path / "r.html").read_text()


def test_json(tables):
    folder, X, words = tables

    def told(*command):
        done = inside(*command, "--json", cwd=folder)
        assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr
        return json.loads(done.stdout)

    fitted = told(
        *("fit", "train.csv", "--target", "kind", "--test", "test.csv", "--model", "m", "--quiet")
    )
    model = load_model(folder / "m")
    names = model.__dict__.pop("feature_names_in_").tolist()  # X has none
    assert fitted["classes"] == model.classes_.tolist() and fitted["converged"] is True
    assert (fitted["loss"], fitted["l2"], fitted["rows"]) == ("multinomial", 1 / 90, 90)
    [problem] = fitted["problems"]
    assert problem["relative_gap"] == model.relative_gap_ <= 1e-6
    predicted = told("predict", "m", "test.csv", "--proba")
    assert predicted["predictions"] == model.predict(X[1::2]).tolist()
    assert np.shape(predicted["probabilities"]) == (90, 3)
    assert predicted["score"] == fitted["test"]
    assert fitted["test"]["accuracy"] == np.mean(np.array(predicted["predictions"]) == words[1::2])
    assert "score" not in told("predict", "m", "new.csv")
    [certified] = told("certify", "m", "train.csv")["problems"]
    assert certified["objective"] == pytest.approx(problem["objective"], rel=1e-12)
    assert certified["gap"] == certified["objective"] - certified["bound"] >= 0.0
    compared = told("compare", "real.csv", "--target", "y", "--solvers", "newton,lbfgs", "--quiet")
    assert [row["solver"] for row in compared["solvers"]] == ["newton", "lbfgs"]
    assert compared["solvers"][0]["passes_to"]["1e-3"] >= 1 and compared["problem"]["n"] == 180
    assert told("info")["adacoord"] == ac.__version__
    about = told("info", "m")
    assert about["features"] == names and about["target"] == "kind"
    assert about["params"]["loss"] == "multinomial"

    done = inside("fit", "real.csv", "--target", "y", "--l2", 0, "--json", "--quiet", cwd=folder)
    assert json.loads(done.stdout)["problems"][0]["gap"] is None  # JSON has no NaN
    done = inside(
        *("fit", "train.csv", "--target", "kind", "--solver", "dcd", "--loss", "hinge"),
        *("--max-passes", 1, "--l2", 1e-7, "--json", "--quiet"),
        cwd=folder,
    )
    assert done.returncode == 3 and json.loads(done.stdout)["converged"] is False
    assert "problems stopped early" in done.stderr
