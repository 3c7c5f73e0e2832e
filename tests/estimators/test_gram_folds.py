"""Folds by their moments: the same as by their rows, certified, and one pass over the data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

import adacoord as ac
from adacoord.api import gram
from adacoord.estimators import gram_folds
from adacoord.linalg import moments

FOLDS = {
    "blocks": KFold(4),
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "some rows": ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0),
    "in time": TimeSeriesSplit(4),
    "most rows tested": [
        (np.arange(110, 120), np.arange(110)),
        (np.arange(110), np.arange(110, 120)),
    ],
}


def make(n=120, d=8, seed=0, mean=0.0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    b = A[:, :3] @ rng.standard_normal(3) + 0.5 * rng.standard_normal(n) + 2.0
    return A + mean, b


def both(monkeypatch, model, X, y, w=None):
    """The fit with moments, and without."""
    quick = model().fit(X, y, sample_weight=w)
    with monkeypatch.context() as without:
        without.setattr(gram, "possible", lambda _: False)
        slow = model().fit(X, y, sample_weight=w)
    return quick, slow


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", FOLDS)
def test_the_same_as_by_rows(name, intercept, weighted, monkeypatch):
    X, y = make()
    w = np.random.default_rng(1).integers(0, 3, 120).astype(float) if weighted else None

    def model():
        return ac.ElasticNetCV(
            l1_ratio=[0.5, 1.0], alphas=9, cv=FOLDS[name], fit_intercept=intercept
        )

    quick, slow = both(monkeypatch, model, X, y, w)
    np.testing.assert_allclose(quick.alphas_, slow.alphas_, rtol=1e-12)
    np.testing.assert_allclose(quick.mse_path_, slow.mse_path_, rtol=1e-6)
    assert quick.alpha_ == pytest.approx(slow.alpha_) and quick.l1_ratio_ == slow.l1_ratio_
    np.testing.assert_allclose(quick.coef_, slow.coef_, atol=1e-6)
    assert quick.path_gaps_.max() <= quick.tol and quick.relative_gap_ <= quick.tol


def constant():
    X, y = make()
    X[:, 2], X[:, 3], X[40, 3] = 7.0, 0.0, 1.0  # of one fold only
    return X, y


HOSTILE = {
    "mean 1e6": make(mean=1e6),
    "float32": (make()[0].astype(np.float32), make()[1]),
    "fortran": (np.asfortranarray(make()[0]), make()[1]),
    "csr": (sparse.csr_matrix(make()[0]), make()[1]),
    "csc, mean 1e6": (sparse.csc_matrix(make(mean=1e6)[0]), make()[1]),
    "duplicates": (np.hstack([make()[0]] * 2), make()[1]),
    "constant columns": constant(),
    "constant target": (make()[0], np.full(120, 3.0)),
    "targets 1e6": (make()[0], make()[1] + 1e6),
    "n = d": make(40, 40),
    "n < d": make(30, 50),
}


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data(name, positive, monkeypatch):
    X, y = HOSTILE[name]

    def model():
        return ac.LassoCV(alphas=8, eps=1e-2, cv=4, positive=positive, tol=1e-6)

    quick, slow = both(monkeypatch, model, X, y)
    # where rounding leaves no more than tol, errors are known to its root
    known = 2e-3 if name == "csc, mean 1e6" else 1e-5
    np.testing.assert_allclose(
        quick.mse_path_, slow.mse_path_, rtol=known, atol=1e-9 if "target" in name else 0.0
    )
    assert quick.path_gaps_.max() <= 1e-6 and quick.relative_gap_ <= 1e-6
    assert quick.alpha_ == pytest.approx(slow.alpha_, rel=1e-9)
    if name == "float32":
        assert quick.coef_.dtype == np.float32


def test_one_pass_over_the_data(monkeypatch):
    """Folds that share out the rows: each row is in one block of moments, once."""
    X, y = make()
    seen, real = [], moments._dense_products

    def counted(A, b, weights, shift, rows):
        seen.append(A.shape[0] if rows is None else rows.size)
        return real(A, b, weights, shift, rows)

    monkeypatch.setattr(moments, "_dense_products", counted)
    ac.LassoCV(cv=5).fit(X, y)
    assert sum(seen) == 120 and len(seen) == 5


def test_the_limit_of_memory_holds_for_all_folds(monkeypatch):
    X, y = make()
    calls, real = [], gram_folds.GramFolds.walk

    def counted(*args):
        calls.append(1)
        return real(*args)

    monkeypatch.setattr(gram_folds.GramFolds, "walk", counted)
    for matrices, expected in ((4 + 4 + 1, 4), (4 + 4, 0)):
        monkeypatch.setattr(moments, "LARGEST", 8 * matrices * 10**2)
        ac.LassoCV(alphas=3, cv=4).fit(X, y)
        assert len(calls) == expected
        calls.clear()
    monkeypatch.setattr(moments, "LARGEST", 8 * 9 * 10**2)
    ac.LassoCV(alphas=3, cv=4, n_jobs=2).fit(X, y)  # two at a time take more
    ac.LassoCV(alphas=3, cv=4, solver="cd").fit(X, y)
    assert not calls


def test_threads_and_interrupts(monkeypatch):
    X, y = make()
    one, two = (ac.LassoCV(alphas=20, n_jobs=jobs).fit(X, y) for jobs in (None, 2))
    np.testing.assert_array_equal(one.mse_path_, two.mse_path_)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    real, calls = gram.gram_path, []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(gram, "gram_path", interrupted)
    for jobs in (1, 2):
        calls.clear()
        model = ac.LassoCV(alphas=5, n_jobs=jobs)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert not hasattr(model, "coef_")


def test_what_is_left_undone_is_solved_on_the_rows(monkeypatch):
    """A kernel that gets nowhere: every point is certified all the same."""
    X, y = make()
    real = gram.gram_path

    def lazy(loss, penalties, tol, max_passes, **how):
        return real(loss, penalties, tol, 1, **how)

    monkeypatch.setattr(gram, "gram_path", lazy)
    model = ac.LassoCV(alphas=6, eps=1e-4, tol=1e-9).fit(X + 3.0 * X[:, :1], y)
    assert model.path_gaps_.max() <= 1e-9 and model.relative_gap_ <= 1e-9
