"""Files to train on and to test with."""

from __future__ import annotations

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
