"""Files to train on and to test with."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from adacoord.io import save_svmlight


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((400, 6)) * (rng.random((400, 6)) < 0.7)
    label = np.where(A[:, 0] - A[:, 1] + 0.5 + 0.5 * rng.standard_normal(400) > 0, 7, 3)
    save_svmlight(tmp_path / "train.svm", A[:300], label[:300])
    save_svmlight(tmp_path / "test.svm.gz", A[300:], label[300:])
    save_svmlight(tmp_path / "real.svm", A, A @ np.arange(6) + 2.0)
    return tmp_path, A, label


@pytest.fixture
def irises(tmp_path):
    """Three classes of 40 rows, and as many to test on; their labels are 1, 2 and 5."""
    rng = np.random.default_rng(3)
    label = np.repeat([1.0, 2.0, 5.0], 80)
    A = rng.standard_normal((240, 4)) + 2.0 * (label[:, None] == [1.0, 2.0, 5.0, 9.0])
    save_svmlight(tmp_path / "train.svm", A[::2], label[::2])
    save_svmlight(tmp_path / "test.svm", A[1::2], label[1::2])
    return tmp_path, A, label


@pytest.fixture
def tables(tmp_path):
    """Irises in CSV: two words (two.csv), three (train.csv, test.csv), quantities (real.csv)."""
    rng = np.random.default_rng(4)
    code = np.repeat([0, 1, 2], 60)
    X = np.round(rng.standard_normal((180, 3)) + 2.0 * (code[:, None] == [0, 1, 2]), 4)
    words = np.array(["setosa", "versi color", "virginica"], dtype=object)[code]
    names = ["petal, length", "width", "depth"]

    def write(name, columns):
        with open(tmp_path / name, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))

    def features(rows):
        return dict(zip(names, X[rows].T.tolist(), strict=True))

    write("train.csv", {"kind": words[::2], **features(slice(None, None, 2))})
    test = {"id": [f"row {i}" for i in range(90)], **features(slice(1, None, 2))}
    write("test.csv", {name: test[name] for name in reversed(test)} | {"kind": words[1::2]})
    write("new.csv", {name: test[name] for name in reversed(test)})
    write("two.csv", {**features(code < 2), "kind": words[code < 2]})
    write("real.csv", {**features(slice(None)), "y": np.round(X @ [1, 2, 3] + 0.5, 4)})
    return tmp_path, X, words
