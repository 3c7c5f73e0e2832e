"""``keep_dual``: what a fit leaves behind of its dual points, and how large pickles are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

import adacoord as ac
from adacoord import estimators
from adacoord.estimators import base
from adacoord.estimators.judge import points

X = np.random.default_rng(0).standard_normal((60, 3))
Z = X @ [1.0, -2.0, 0.5] + 0.3


def targets_of(model):
    """Targets that it takes."""
    if hasattr(model, "class_weight"):
        return np.where(Z > 0, 1, 0)
    if get_tags(model).target_tags.positive_only:
        return np.exp(Z)
    return np.column_stack([Z, -Z]) if type(model).__name__.startswith("MultiTask") else Z


@pytest.mark.parametrize("name", estimators.__all__)
def test_every_estimator(name, monkeypatch):
    model = getattr(estimators, name)()
    y = targets_of(model)
    assert hasattr(model.fit(X, y), "dual_coef_")  # small
    assert not hasattr(clone(model).set_params(keep_dual=False).fit(X, y), "dual_coef_")
    monkeypatch.setattr(base, "SMALL_DUAL", model.dual_coef_.nbytes - 1)
    kept = clone(model).set_params(keep_dual=True).fit(X, y)
    np.testing.assert_array_equal(kept.dual_coef_, model.dual_coef_)
    # another fit of the same estimator drops what the last one left
    large = model.fit(X, y)
    assert not hasattr(large, "dual_coef_")
    np.testing.assert_array_equal(large.predict(X), kept.predict(X))


def test_a_warm_start_has_its_point(monkeypatch):
    monkeypatch.setattr(base, "SMALL_DUAL", 0)
    y = np.where(Z > 0, 1, 0)
    model = ac.LinearSVC(loss="hinge", solver="dcd", tol=1e-8, warm_start=True).fit(X, y)
    assert model.dual_coef_.shape == (1, 60)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first
    # told not to, it starts from the slopes of the losses
    model.set_params(keep_dual=False).fit(X, y)
    assert not hasattr(model, "dual_coef_")
    assert model.fit(X, y).relative_gap_ <= 1e-8


def test_what_needs_no_dual_point(tmp_path):
    y = np.where(Z > 0, 1, 0)
    model = ac.LogisticRegression(keep_dual=False).fit(X, y)
    [(_, problem, x, c)] = points(model, X, y)
    assert ac.certify(problem, x, c).relative_gap < 1e-4
    ac.save_model(model, tmp_path / "m.adacoord")
    back = ac.load_model(tmp_path / "m.adacoord")
    assert back.keep_dual is False and not hasattr(back, "dual_coef_")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    np.testing.assert_array_equal(model.to_sklearn().predict(X), model.predict(X))


def test_pickle_of_many_rows():
    rng = np.random.default_rng(1)
    rows, centres = rng.standard_normal((200_000, 20)), rng.standard_normal((20, 10))
    labels = (rows @ centres + rng.gumbel(size=(len(rows), 10))).argmax(axis=1)
    model = ac.LinearSVC(tol=1e-2).fit(rows, labels)
    assert len(pickle.dumps(model)) < 20_000
