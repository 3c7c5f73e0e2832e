"""The commands, by their exit codes and what they leave on disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.io import load_model, save_model, save_svmlight
from adacoord.io.digested import write_digested

from .calls import adacoord, inside


@pytest.mark.slow
def test_fit_predict_info(files):
    folder, A, label = files
    done = adacoord(
        "fit",
        folder / "train.svm",
        "--l2",
        1e-3,
        "--model",
        folder / "m.adacoord",
        "--test",
        folder / "test.svm.gz",
    )
    assert done.returncode == 0, done.stderr
    assert "certified within" in done.stdout
    assert "test: accuracy" in done.stdout
    assert "converged" in done.stderr  # the progress line

    model = load_model(folder / "m.adacoord")
    b = np.where(label[:300] == 7, 1.0, -1.0)
    problem = ac.Problem(A[:300], b, loss="logistic", l2=1e-3, intercept=True)
    certificate = ac.certify(problem, model.coef_[0], model.intercept_[0], effort=50)
    assert certificate.relative_gap < 2e-6
    assert model.relative_gap_ <= 1e-6
    assert (type(model), model.tol, model.verbose) == (ac.ERMClassifier, 1e-6, 0)

    done = adacoord(
        "predict", folder / "m.adacoord", folder / "test.svm.gz", "-o", folder / "out.txt"
    )
    assert done.returncode == 0, done.stderr
    predicted = np.loadtxt(folder / "out.txt")
    z = A[300:] @ model.coef_[0] + model.intercept_
    np.testing.assert_array_equal(predicted, np.where(z > 0, 7, 3))

    done = adacoord("predict", folder / "m.adacoord", folder / "test.svm.gz", "--proba")
    np.testing.assert_allclose(np.array(done.stdout.split(), float), 1 / (1 + np.exp(-z)))

    done = adacoord("info", folder / "m.adacoord")
    assert "l1=0.0, l2=0.001, loss='logistic'" in done.stdout
    assert "2 classes: 3, 7" in done.stdout


@pytest.mark.slow
def test_defaults_follow_the_targets(files):
    folder, A, _ = files
    done = adacoord("fit", folder / "real.svm", "--model", folder / "r", "--quiet")
    assert done.returncode == 0, done.stderr
    model = load_model(folder / "r")
    assert (type(model), model.loss, model.l2) == (ac.ERMRegressor, "squared", 1 / 400)
    assert "R^2 0.99" in done.stdout
    assert "pass" not in done.stderr
    # the closed form, intercept not penalised
    b = A @ np.arange(6) + 2.0
    centred = A - A.mean(axis=0)
    x = np.linalg.solve(centred.T @ centred / 400 + np.eye(6) / 400, centred.T @ b / 400)
    np.testing.assert_allclose(model.coef_, x, atol=1e-3)


@pytest.mark.slow
def test_unseen_columns_are_dropped_and_missing_ones_added(files):
    folder, A, label = files
    adacoord("fit", folder / "train.svm", "--model", folder / "m", "--quiet")
    wide = sparse.hstack([sparse.csr_matrix(A), sparse.csr_matrix(np.ones((400, 3)))]).tocsr()
    save_svmlight(folder / "wide.svm", wide, label)
    save_svmlight(folder / "narrow.svm", A[:, :2], label)
    for name in ("wide", "narrow"):
        done = adacoord("predict", folder / "m", folder / f"{name}.svm")
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.split()) == 400


@pytest.mark.slow
def test_not_converged_is_exit_3_and_still_writes(files):
    folder, *_ = files
    done = adacoord(
        "fit", folder / "train.svm", "--l2", 1e-7, "--max-passes", 1, "--model", folder / "m"
    )
    assert done.returncode == 3
    assert "stopped at max_passes=1 with a relative gap of" in done.stderr
    model = load_model(folder / "m")
    assert model.relative_gap_ > model.tol == 1e-6 and model.n_iter_ == 1


@pytest.mark.slow
def test_fit_without_a_penalty_says_that_nothing_is_certified(files):
    folder, *_ = files
    done = adacoord("fit", folder / "real.svm", "--l2", 0, "--model", folder / "m")
    assert done.returncode == 0, done.stderr
    assert "no certificate" in done.stdout and "certified within" not in done.stdout
    assert np.isnan(load_model(folder / "m").dual_gap_)
    assert "no certificate" in adacoord("info", folder / "m").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "absent.svm"], "absent.svm"),
        (["fit", "bad.svm"], "bad.svm:2:3: "),
        (["fit", "train.svm", "--loss", "logit"], "loss='logit': not a loss"),
        (["fit", "train.svm", "--l2", "-1"], "l2=-1.0: the penalty must be finite, zero or more"),
        (["fit", "train.svm", "--solver", "sgd"], "solver='sgd': not a solver"),
        (["fit", "real.svm", "--loss", "hinge"], "loss='hinge' takes labels, which are whole"),
        (["fit", "one.svm", "--loss", "hinge"], "have the single value 7: loss='hinge' needs rows"),
        (["fit", "train.svm", "--max-passes", "0"], "max_passes=0: it must be a whole number"),
        (["fit", "train.svm", "--tol", "-1"], "tol=-1.0: the relative gap to reach must be"),
        (
            ["fit", "train.svm", "--loss", "hinge", "--l2", "0", "--solver", "dcd"],
            "needs a penalty",
        ),
        (["predict", "train.svm", "train.svm"], "train.svm"),
        (["info", "absent"], "absent"),
        (["fit", "train.svm", "--model", "no/such/m"], "there is no such folder"),
        (["fit", "train.svm", "--test", "absent.svm"], "absent.svm"),
        (["fit", "wide.svm", "--quiet"], "the largest index is 999999999999999, and there are"),
        (["fit", "wider.svm", "--quiet"], "takes 0.8 GB; correct the index, or number the columns"),
        (["certify", "m", "wider.svm"], "the largest index is 100000000, and there are only 2"),
        (["compare", "wider.svm"], "the largest index is 100000000, and there are only 2"),
        (
            ["compare", "iris.svm", "--loss", "hinge"],
            "--loss hinge: 3 labels make 3 problems, each class against the rest, and compare runs",
        ),
        (
            ["fit", "train.svm", "--test", "iris.svm"],
            "--test iris.svm: the file has the label 1, and train.svm has 3, 7; label both alike",
        ),
        (["fit", "train.svm", "--model", "folder"], "--model folder: this is a folder"),
        (["fit", "train.svm", "--model", "bad.svm/m"], "--model bad.svm/m: there is no such"),
        (["predict", "m", "train.svm", "-o", "folder"], "--output folder: this is a folder"),
        (["predict", "m", "train.svm", "-o", "no/p"], "--output no/p: there is no such folder"),
        (["compare", "train.svm", "--csv", "folder"], "--csv folder: this is a folder"),
        (["compare", "train.svm", "--report", "folder"], "--report folder: this is a folder"),
        (["compare", "train.svm", "--plot", "p.svg/p.svg"], "--plot p.svg/p.svg: there is no such"),
        (["fit", "train.svm", "--model", "./train.svm"], "--model train.svm: this file is read"),
        (["predict", "m", "train.svm", "-o", "m"], "--output m: this file is read, and would be"),
        (["compare", "train.svm", "--csv", "train.svm"], "--csv train.svm: this file is read"),
        (["reproduce", "spdc-fig1"], "reproduction.md: this is a folder"),
        (["certify", "odd", "train.svm"], "loss='logistic', loss_parameter=0.5: this loss has no"),
        (["info", "new"], "new: this model file has format 4, and this adacoord reads formats up"),
        (["predict", "m", "train.svm", "--proba"], "--proba: Ridge gives no probabilities; leave"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(files, arguments, message):
    folder, *_ = files
    (folder / "bad.svm").write_text("1 1:2\n1 x:3\n")
    (folder / "wide.svm").write_text("1 1:2\n-1 999999999999999:3\n")
    (folder / "wider.svm").write_text("1 1:2\n-1 100000000:3\n")
    save_svmlight(folder / "iris.svm", np.eye(9), [1, 2, 3] * 3)
    save_svmlight(folder / "one.svm", np.eye(9), [7] * 9)
    save_model(ac.Ridge().fit([[1.0], [2.0]], [1.0, 2.0]), folder / "m")
    write_digested(
        folder / "odd",
        "MODEL",
        1,
        {"coef": np.ones(1), "classes": np.array([3, 7])},
        {
            "loss": "logistic",
            "loss_parameter": 0.5,
            "intercept": 0.0,
            "l1": 0.0,
            "l2": 0.0,
            "positive": False,
            "certificate": {},
        },
    )
    write_digested(folder / "new", "MODEL", 4, {}, {})
    (folder / "folder").mkdir()
    (folder / "reproduction.md").mkdir()
    before = sorted(folder.iterdir())
    done = inside(*arguments, cwd=folder)
    assert done.returncode == 2
    assert [p for p in sorted(folder.iterdir()) if p.name != "reproduction"] == before
    said = ("Problem(", "Training ")
    lines = [line for line in done.stderr.splitlines() if not line.startswith(said)]
    assert len(lines) == 1
    assert message in lines[0]
    assert "Traceback" not in done.stderr


def test_whole_numbers_are_quantities_where_that_is_said_or_plain(files):
    folder, A, _ = files
    save_svmlight(folder / "counts.svm", A, np.rint(3 * A[:, 0]))  # with rare ones
    save_svmlight(folder / "years.svm", A, np.arange(400))  # too many to be classes
    for name, why in (
        ("counts", r"the value -?\d+ is on \d rows? only"),
        ("years", "they are more than 100"),
    ):
        done = inside("fit", folder / f"{name}.svm", "--quiet")
        assert done.returncode == 0 and "R^2" in done.stdout, done.stderr
        assert re.search(
            rf"\d+ whole-number targets \(.*\.\.\.\): taken as quantities, for a "
            rf"regression, because .*{why}; if they are classes, say --loss "
            "multinomial",
            done.stderr,
        ), done.stderr
    for arguments in (["--loss", "squared"], ["--loss", "huber"]):
        done = inside("fit", folder / "counts.svm", "--quiet", *arguments)
        assert done.returncode == 0 and "R^2" in done.stdout, done.stderr
        assert "taken as" not in done.stderr
    done = inside("fit", folder / "train.svm", "--quiet", "--loss", "squared")  # two labels
    assert done.returncode == 0 and "R^2" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "loss, problems, said",
    [
        (
            None,
            1,
            "3 whole-number targets (1, 2, 5), each on 40 rows or more: taken as classes; if "
            "they are quantities, say --loss squared",
        ),
        ("multinomial", 1, ""),
        ("logistic", 3, "3 such problems: each of the labels 1, 2, 5 against the rest"),
        ("hinge", 3, "3 such problems: each of the labels 1, 2, 5 against the rest"),
    ],
)
def test_several_labels(irises, loss, problems, said):
    folder, A, label = irises
    done = inside(
        "fit",
        folder / "train.svm",
        "--test",
        folder / "test.svm",
        "--model",
        folder / "m",
        *([] if loss is None else ["--loss", loss]),
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stderr.splitlines() or not said
    assert done.stderr.count("converged") == problems  # a progress line each
    assert done.stdout.count("certified within") == problems
    assert done.stdout.count("against the rest: objective") == (problems if problems > 1 else 0)
    accuracy = float(done.stdout.split("test: accuracy ")[1].split("%")[0])
    assert accuracy > 80.0

    model = load_model(folder / "m")
    reference = ac.ERMClassifier(loss or "multinomial", l2=1 / 120, tol=1e-6).fit(
        A[::2], label[::2]
    )
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-2)
    assert type(model) is ac.ERMClassifier and np.max(model.relative_gap_) <= 1e-6

    done = inside("predict", folder / "m", folder / "test.svm")
    found = np.array(done.stdout.split(), float)
    np.testing.assert_array_equal(found, model.predict(A[1::2]))
    assert 100 * np.mean(found == label[1::2]) == pytest.approx(accuracy, abs=1e-3)
    done = inside("predict", folder / "m", folder / "test.svm", "--proba")
    if loss == "hinge":
        assert done.returncode == 2
        assert "--proba: ERMClassifier with loss='hinge' gives no probabilities" in done.stderr
    else:
        p = np.array([line.split() for line in done.stdout.splitlines()], float)
        np.testing.assert_allclose(p, model.predict_proba(A[1::2]), rtol=1e-12)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)

    done = inside("certify", folder / "m", folder / "train.svm", "--effort", 300)
    assert len(done.stdout.splitlines()) == problems, done.stderr
    for line in done.stdout.splitlines():
        assert float(line.split("optimum (")[1].split(" relative")[0]) < 1e-4, line
    done = inside("info", folder / "m")
    assert f"loss='{loss or 'multinomial'}'" in done.stdout and "3 classes: 1, 2, 5" in done.stdout


def test_several_labels_that_end_badly(irises):
    folder, A, label = irises
    done = inside(
        "fit",
        folder / "train.svm",
        "--loss",
        "hinge",
        "--l2",
        1e-7,
        "--solver",
        "dcd",
        "--max-passes",
        1,
        "--model",
        folder / "m",
        "--quiet",
    )
    assert done.returncode == 3, done.stderr
    assert "problems stopped early; the worst: dcd stopped at max_passes=1" in done.stderr
    assert load_model(folder / "m").coef_.shape == (3, 4)
    save_svmlight(folder / "more.svm", A, np.where(label == 5.0, 6.0, label))
    done = inside("fit", folder / "train.svm", "--test", folder / "more.svm")
    assert done.returncode == 2 and "the file has the label 6, and" in done.stderr
    assert "has 1, 2, 5; label both alike" in done.stderr
    done = inside("certify", folder / "m", folder / "more.svm")
    assert done.returncode == 2 and "give the data it was trained on" in done.stderr


def test_compare_takes_several_labels(irises):
    folder, *_ = irises
    done = inside("compare", folder / "train.svm", "--quiet", "--report", folder / "r.html")
    assert done.returncode == 0 and "apdc" in done.stdout, done.stderr
    assert "Multinomial()" in done.stderr and "taken as classes" in done.stderr


@pytest.mark.slow
def test_one_class_in_the_test_file_is_enough(files):
    folder, A, label = files
    save_svmlight(folder / "seven.svm", A[label == 7], label[label == 7])
    done = adacoord("fit", folder / "train.svm", "--quiet", "--test", folder / "seven.svm")
    assert done.returncode == 0 and "test: accuracy" in done.stdout, done.stderr


def test_usage_error_is_exit_2():
    done = adacoord("fit")
    assert done.returncode == 2
    assert "Missing argument" in done.stderr


def test_version():
    done = inside("--version")
    assert (done.returncode, done.stdout) == (0, f"adacoord {ac.__version__}\n")


@pytest.mark.parametrize(
    "typed, offered", [("adacoord cert", "certify"), ("adacoord fit --class", "--class-weight")]
)
def test_the_tab_key(typed, offered):
    completing = {"_ADACOORD_COMPLETE": "complete_bash", "COMP_WORDS": typed}
    completing["COMP_CWORD"] = str(typed.count(" "))
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'adacoord'; import adacoord.__main__"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **completing},
    )
    assert done.stdout.split() == [offered], done.stderr
    assert "--install-completion" in inside("--help").stdout


def test_nothing_lower_imports_the_command_line():
    package = Path(ac.__file__).parent
    for file in package.rglob("*.py"):
        if file.parent.name != "command" and file.name != "__main__.py":
            assert "from ..command" not in file.read_text(), file


def test_info_lists_the_installation():
    done = adacoord("info")
    assert done.returncode == 0
    for word in (f"adacoord {ac.__version__}", "numba", "cached", "smooth_hinge", "spdc"):
        assert word in done.stdout


@pytest.mark.slow
def test_demo():
    done = adacoord("demo")
    assert done.returncode == 0, done.stderr
    assert "breast cancer" in done.stdout
    assert done.stdout.count("liblinear (tol=") == 3
    assert done.stdout.count("certified") == 4


def test_text_like_is_shaped_like_text():
    from adacoord.command.demo import text_like

    A, b = text_like(500, 2000)
    assert A.shape == (500, 2000)
    assert A.has_canonical_format
    np.testing.assert_allclose(np.asarray(A.multiply(A).sum(axis=1)).ravel(), 1.0)
    assert set(b) == {-1.0, 1.0}
    assert 0.3 < np.mean(b > 0) < 0.7
