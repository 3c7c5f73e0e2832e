"""``GroupLasso``, ``GroupLassoCV`` and the multitask classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model

import adacoord as ac


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20))
    w = np.zeros(20)
    w[4:8] = [1.0, -2.0, 1.5, 1.0]
    return X, X @ w + 0.3 * rng.standard_normal(80) + 2.0, np.arange(20) // 4


def objective(model, X, y, groups, weights=None):
    """From the formula of the docstring."""
    v = np.ones(len(y)) if weights is None else weights
    residual = y - X @ model.coef_ - model.intercept_
    total = 0.5 * np.sum(v * residual**2) / v.sum()
    r = model.l1_ratio
    for g in np.unique(groups):
        part = model.coef_[groups == g]
        total += model.alpha * (1.0 - r) * np.sqrt(part.size) * np.linalg.norm(part)
    return total + model.alpha * r * np.abs(model.coef_).sum()


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4])
@pytest.mark.parametrize("weighted", [False, True])
def test_objective(data, l1_ratio, weighted):
    X, y, groups = data
    weights = np.random.default_rng(1).random(80) + 0.1 if weighted else None
    model = ac.GroupLasso(0.1, groups=groups, l1_ratio=l1_ratio, tol=1e-10)
    model.fit(X, y, sample_weight=weights)
    best = objective(model, X, y, groups, weights)
    assert model.relative_gap_ <= 1e-10
    assert best == pytest.approx(model.history_.primal.min(), rel=1e-12)
    rng = np.random.default_rng(2)
    for _ in range(20):
        other = ac.GroupLasso(0.1, groups=groups, l1_ratio=l1_ratio)
        other.coef_ = model.coef_ + 1e-3 * rng.standard_normal(20)
        other.intercept_ = model.intercept_
        assert objective(other, X, y, groups, weights) > best
    assert {g for g in range(5) if model.coef_[groups == g].any()} == {1}


def test_sparse_data_and_file(data, tmp_path):
    X, y, groups = data
    dense = ac.GroupLasso(0.1, groups=groups, tol=1e-10).fit(X, y)
    other = ac.GroupLasso(0.1, groups=groups, tol=1e-10).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(dense.coef_, other.coef_, atol=1e-6)
    ac.save_model(dense, tmp_path / "m.adacoord")
    loaded = ac.load_model(tmp_path / "m.adacoord")
    assert np.array_equal(loaded.predict(X), dense.predict(X))
    np.testing.assert_allclose(dense.to_sklearn().predict(X), dense.predict(X))
    assert sparse.issparse(dense.sparse_coef_)


def test_cross_validation(data):
    X, y, groups = data
    model = ac.GroupLassoCV(groups=groups, alphas=12, cv=4, tol=1e-6).fit(X, y)
    assert model.path_gaps_.shape == model.mse_path_.shape == (12, 4)
    assert model.path_gaps_.max() <= 1e-6
    assert model.alpha_ == model.alphas_[np.argmin(model.mse_path_.mean(axis=1))]
    plain = ac.GroupLasso(model.alpha_, groups=groups, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)
    # at the first alpha nothing is left, just below it something is
    assert not ac.GroupLasso(1.0001 * model.alphas_[0], groups=groups).fit(X, y).coef_.any()
    assert ac.GroupLasso(0.98 * model.alphas_[0], groups=groups).fit(X, y).coef_.any()
    one_fold = np.arange(60), np.arange(60, 80)
    fold = ac.GroupLassoCV(groups=groups, alphas=[0.1], cv=[one_fold], tol=1e-9).fit(X, y)
    alone = ac.GroupLasso(0.1, groups=groups, tol=1e-9).fit(X[:60], y[:60])
    error = np.mean((alone.predict(X[60:]) - y[60:]) ** 2)
    assert fold.mse_path_[0, 0] == pytest.approx(error, rel=1e-4)


def test_threads_give_the_same(data):
    X, y, groups = data
    one, two = (
        ac.GroupLassoCV(groups=groups, alphas=5, cv=3, n_jobs=n).fit(X, y) for n in (None, 2)
    )
    assert np.array_equal(one.mse_path_, two.mse_path_)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ac.MultiTaskLasso(0.2, tol=1e-12), linear_model.MultiTaskLasso(0.2, tol=1e-12)),
        (
            ac.MultiTaskElasticNet(0.2, l1_ratio=0.3, tol=1e-12, fit_intercept=False),
            linear_model.MultiTaskElasticNet(0.2, l1_ratio=0.3, tol=1e-12, fit_intercept=False),
        ),
    ],
)
def test_multitask_against_sklearn(data, ours, theirs, tmp_path):
    X = data[0]
    rng = np.random.default_rng(3)
    Y = X[:, :5] @ rng.standard_normal((5, 3)) + 0.1 * rng.standard_normal((80, 3)) + 1.0
    theirs.set_params(max_iter=100_000).fit(X, Y)
    ours.fit(X, Y)
    assert ours.relative_gap_ <= 1e-12
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
    assert type(ours.to_sklearn()) is type(theirs)
    ac.save_model(ours, tmp_path / "m.adacoord")
    assert np.array_equal(ac.load_model(tmp_path / "m.adacoord").coef_, ours.coef_)
    again = ours.set_params(warm_start=True).fit(X, Y)
    np.testing.assert_allclose(again.coef_, theirs.coef_, atol=1e-6)


def test_one_target_in_a_column(data):
    X, y, _ = data
    model = ac.MultiTaskLasso(0.1, tol=1e-10).fit(X, y[:, None])
    lasso = ac.Lasso(0.1, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, lasso.coef_[None], atol=1e-6)
    assert model.predict(X).shape == (80, 1)


def test_bad_input(data):
    X, y, groups = data
    with pytest.raises(ValueError, match="For mono-task outputs, use Lasso"):
        ac.MultiTaskLasso().fit(X, y)
    with pytest.raises(ValueError, match=r"groups has shape \(3,\): A has 20 columns"):
        ac.GroupLasso(groups=[0, 1, 2]).fit(X, y)
    with pytest.raises(ValueError, match="group_weights has the value -1 at position 0"):
        ac.GroupLasso(groups=groups, group_weights=[-1.0, 1.0, 1.0, 1.0, 1.0]).fit(X, y)
    with pytest.raises(ValueError, match=r"alphas=.*larger than 0"):
        ac.GroupLassoCV(groups=groups, alphas=[0.0, 1.0]).fit(X, y)
    with pytest.raises(ValueError, match='solver="dcd" takes no groups'):
        ac.GroupLasso(groups=groups, solver="dcd").fit(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The max_iter was reached")  # of theirs
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_multinomial_with_l1_gets_to_tol(l1_ratio):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # saga crawls on the columns as they are
    model = ac.LogisticRegression(C=1.0, l1_ratio=l1_ratio, tol=1e-8).fit(X, y)
    assert model.relative_gap_ <= 1e-8
    assert model.solver_ in ("acf", "lbfgs")  # columns, or Newton's steps after them
    theirs = linear_model.LogisticRegression(
        C=1.0, l1_ratio=l1_ratio, solver="saga", tol=1e-10, max_iter=2000
    ).fit(X, y)

    def cost(m):
        z = X @ m.coef_.T + m.intercept_
        loss = np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) + z.max(1) - z[np.arange(150), y]
        sizes = np.abs(m.coef_).sum(), np.square(m.coef_).sum()
        return loss.sum() + l1_ratio * sizes[0] + 0.5 * (1.0 - l1_ratio) * sizes[1]

    assert cost(model) <= cost(theirs) * (1.0 + 1e-8)
    assert cost(model) == pytest.approx(cost(theirs), rel=1e-4)
