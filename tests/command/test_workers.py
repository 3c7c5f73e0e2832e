"""``adacoord fit`` with several threads, on stores, and on a cluster that does not answer."""

import sys

import numpy as np
import pytest

import adacoord as ac
from adacoord.command import training
from adacoord.io import convert, save_svmlight

from .calls import inside


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Rows of 5 MB, which are cut, in a file and in a store."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(2)
    A = np.round(rng.standard_normal((9_000, 60)), 3)
    label = np.where(A[:, 0] - A[:, 1] + rng.standard_normal(9_000) > 0, 1, -1)
    save_svmlight(folder / "train.svm", A, label)
    convert(folder / "train.svm", folder / "store")
    return folder


@pytest.mark.parametrize("data", ["train.svm", "store"])
def test_same_model_for_any_number_of_threads(large, data):
    coefs = []
    for n in (1, 2, 4):
        done = inside("fit", data, "--n-jobs", n, "--model", f"m{n}", "--quiet", cwd=large)
        assert done.returncode == 0, done.stderr
        model = ac.load_model(large / f"m{n}")
        assert model.n_jobs is None
        coefs.append(model.coef_)
    assert np.array_equal(coefs[0], coefs[1])
    assert np.array_equal(coefs[0], coefs[2])


def test_stores_are_fitted_evaluated_predicted_and_certified(large):
    done = inside("fit", "store", "--test", "store", "--model", "m", "--quiet", cwd=large)
    assert done.returncode == 0, done.stderr
    assert "certified within" in done.stdout
    assert "test: accuracy" in done.stdout
    of_store = inside("predict", "m", "store", cwd=large)
    assert of_store.stdout == inside("predict", "m", "train.svm", cwd=large).stdout
    assert of_store.stdout.count("\n") == 9_000
    assert "Within" in inside("certify", "m", "store", cwd=large).stdout


def test_stores_of_another_width(large, files):
    folder, _, _ = files
    convert(folder / "train.svm", folder / "narrow")
    assert inside("fit", large / "store", "--model", "m", "--quiet", cwd=folder).returncode == 0
    done = inside("predict", "m", "narrow", cwd=folder)
    assert done.returncode == 2
    assert "the store has 6 columns, and 60 are needed" in done.stderr


def test_wrong_numbers_of_threads(files):
    done = inside("fit", "train.svm", "--n-jobs", 0, cwd=files[0])
    assert done.returncode == 2
    assert "n_jobs=0: it must be a whole number of threads" in done.stderr
    done = inside("fit", "train.svm", "--n-jobs", 2, "--scheduler", "tcp://here:1", cwd=files[0])
    assert done.returncode == 2
    assert "give one of the two" in done.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "tcp://"])
def test_a_scheduler_that_does_not_answer(files, monkeypatch, address):
    pytest.importorskip("distributed", reason='needs pip install "adacoord[dask]"')
    monkeypatch.setattr(training, "CONNECTING", 0.3)
    done = inside("fit", "train.svm", "--scheduler", address, "--model", "m", cwd=files[0])
    assert done.returncode == 2
    assert f"--scheduler {address}: no Dask scheduler answers there" in done.stderr
    assert not (files[0] / "m").exists()


def test_a_scheduler_without_dask(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = inside("fit", "train.svm", "--scheduler", "tcp://127.0.0.1:1", cwd=files[0])
    assert done.returncode == 2
    assert 'pip install "adacoord[dask]"' in done.stderr
