"""Fits within ``config_context(checkpoint=...)`` go on where they were killed."""

from __future__ import annotations

import dataclasses
import os
import warnings

import numpy as np
import pytest

import adacoord as ac
from adacoord import estimators
from adacoord.api import checkpoint as keeping
from adacoord.io import checkpoints
from adacoord.solvers.dual.dual_cd import DualCoordinateAscent


class Killed(BaseException):
    """In place of kill -9."""


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch):
    """tests/io/test_checkpoints.py is about the disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def data(classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6))
    z = X @ rng.standard_normal((6, classes)) + 0.5 * rng.standard_normal((150, classes))
    return X, np.argmax(z, axis=1)


def fit(model, X, y, path=None, every=0.0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        with ac.config_context(checkpoint=path, checkpoint_every=every):
            return model.fit(X, y)


def fit_killed(monkeypatch, writes, model, X, y, path):
    left = writes

    def write(*args, **kwargs):
        nonlocal left
        checkpoints.write_checkpoint(*args, **kwargs)
        left -= 1
        if left == 0:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(keeping, "write_checkpoint", write)
        with pytest.raises(Killed):
            fit(model, X, y, path)


def assert_same_fit(found, expected):
    for name in ("coef_", "intercept_", "dual_coef_", "dual_gap_", "relative_gap_", "n_iter_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.solver_ == expected.solver_
    pairs = [(found.history_, expected.history_)]
    if isinstance(found.history_, list):
        pairs = zip(found.history_, expected.history_, strict=True)
    for mine, other in pairs:
        np.testing.assert_array_equal(mine.gap, other.gap)


@pytest.mark.parametrize(
    "model",
    [
        ac.LogisticRegression(solver="lbfgs", C=1e4, tol=1e-10),
        ac.LinearSVC(solver="dcd", loss="hinge", max_iter=30),
        ac.ERMClassifier("smooth_hinge", l1=1e-3, l2=1e-3, solver="apdc", max_iter=30),
    ],
)
def test_one_problem(model, monkeypatch, tmp_path):
    X, y = data()
    whole = fit(model.__class__(**model.get_params()), X, y)
    fit_killed(monkeypatch, 5, model, X, y, tmp_path / "c")
    assert sorted(os.listdir(tmp_path)) == ["c", "c.previous"]
    assert_same_fit(fit(model, X, y, tmp_path / "c"), whole)
    assert model.get_params() == whole.get_params()  # nothing of it is the model's


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_one_class_against_the_rest(n_jobs, monkeypatch, tmp_path):
    X, y = data(4)
    model = ac.LinearSVC(solver="dcd", loss="hinge", max_iter=30, n_jobs=n_jobs)
    whole = fit(ac.LinearSVC(**model.get_params()), X, y)
    path = tmp_path / "c"
    for writes in (50, 20, 40):  # 31 of each class
        fit_killed(monkeypatch, writes, model, X, y, path)
    over = [k for k in range(4) if (tmp_path / f"c.{k}").exists() and reason(f"{path}.{k}")]
    assert 0 < len(over) < 4 and not path.exists()
    passes, ascend = [], DualCoordinateAscent._pass
    monkeypatch.setattr(
        DualCoordinateAscent, "_pass", lambda self: passes.append(1) or ascend(self)
    )
    assert_same_fit(fit(model, X, y, path), whole)
    assert 0 < len(passes) < 30 * (4 - len(over))  # those that were over were not run again
    fit(model, X, y, path)
    assert [reason(f"{path}.{k}") for k in range(4)] == ["max_passes"] * 4


def reason(path):
    return checkpoints.read_checkpoint(path)[0]["reason"]


def test_several_targets(monkeypatch, tmp_path):
    X, _ = data()
    Y = X[:, :3] ** 2 + X[:, 3:]
    model = ac.Ridge(solver="spdc", max_iter=20, tol=1e-12)
    whole = fit(ac.Ridge(**model.get_params()), X, Y)
    fit_killed(monkeypatch, 30, model, X, Y, tmp_path / "c")
    assert_same_fit(fit(model, X, Y, tmp_path / "c"), whole)
    assert {name[:3] for name in os.listdir(tmp_path)} == {"c.0", "c.1", "c.2"}


def test_the_scales_of_huber(monkeypatch, tmp_path):
    X, _ = data()
    y = X @ np.arange(6.0) + np.random.default_rng(1).standard_t(2, 150)
    model = ac.HuberRegressor(tol=1e-10)
    whole = fit(ac.HuberRegressor(**model.get_params()), X, y)
    path = tmp_path / "c"
    fit_killed(monkeypatch, 2, model, X, y, path)
    assert sorted(os.listdir(tmp_path)) == ["c.0", "c.0.previous"]
    fit_killed(monkeypatch, 4, model, X, y, path)
    scales = [name for name in os.listdir(tmp_path) if not name.endswith(".previous")]
    assert len(scales) > 1
    assert_same_fit(fit(model, X, y, path), whole)
    assert model.scale_ == whole.scale_


def test_ctrl_c_ends_huber_and_not_a_scale(monkeypatch):
    X, _ = data()
    model, solves = ac.HuberRegressor(tol=1e-10), []
    runner = model._runner()

    def interrupted(problem, start, **how):
        solves.append(problem)
        return dataclasses.replace(runner(problem, start, **how), status="interrupted")

    monkeypatch.setattr(model, "_runner", lambda: interrupted)
    fit(model, X, X[:, 0] ** 3)
    assert len(solves) == 1 and model.relative_gap_ > model.tol


def test_other_data_and_other_parameters_are_refused(tmp_path):
    X, y = data()
    fit(ac.LinearSVC(), X, y, tmp_path / "c")
    with pytest.raises(ValueError, match="other data: A has changed"):
        fit(ac.LinearSVC(), 2.0 * X, y, tmp_path / "c")
    with pytest.raises(ValueError, match="another problem: l2="):
        fit(ac.LinearSVC(C=2.0), X, y, tmp_path / "c")
    with pytest.raises(ValueError, match="other options: seed=0 there"):
        fit(ac.LinearSVC(random_state=1), X, y, tmp_path / "c")


SEARCHES = [name for name in estimators.__all__ if name.endswith("CV")]


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_are_refused(name, tmp_path):
    model = getattr(ac, name)()
    X, y = data()
    with pytest.raises(ValueError, match=r"checkpoint=.*a search over folds.*leave it out"):
        fit(model, X, y, tmp_path / "c")
    assert os.listdir(tmp_path) == [] and not hasattr(model, "coef_")


def test_solve_and_path_within_it(tmp_path):
    X, y = data()
    problem = ac.Problem(X, 2.0 * y - 1.0, "logistic", l1=1e-3, l2=1e-3)
    with ac.config_context(checkpoint=tmp_path / "c"):
        with pytest.raises(ValueError, match="a path solves many problems"):
            ac.path(problem)
        with ac.config_context(n_jobs=1):  # says nothing of checkpoints
            ac.solve(problem)
        ac.solve(problem, checkpoint=tmp_path / "own")
    assert sorted(os.listdir(tmp_path)) == ["c", "own"]
    ac.solve(problem)
    assert sorted(os.listdir(tmp_path)) == ["c", "own"]
