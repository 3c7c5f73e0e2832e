"""``lasso_path``, ``enet_path``, ``Lasso.path``: scikit-learn's points, with certificates."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest
import sklearn.linear_model as sk
from scipy import sparse

import adacoord as ac

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 8))
Y = X @ [1.0, -2.0, 0.5, 0, 0, 0, 0, 3.0] + 0.3 * rng.standard_normal(60) + 1.0


def objective(coef, alpha, l1_ratio):
    loss = np.mean((X @ coef - Y) ** 2) / 2
    return loss + alpha * (l1_ratio * np.abs(coef).sum() + (1 - l1_ratio) / 2 * coef @ coef)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_the_path_of_scikit_learn(storage, positive, l1_ratio):
    how = {"l1_ratio": l1_ratio, "positive": positive, "return_n_iter": True, "tol": 1e-10}
    alphas, coefs, gaps, passes = ac.enet_path(storage(X), Y, n_alphas=20, **how)
    theirs = sk.enet_path(storage(X), Y, alphas=alphas, max_iter=100_000, **how)
    np.testing.assert_array_equal(alphas, theirs[0])
    np.testing.assert_allclose(coefs, theirs[1], atol=1e-6)
    assert coefs.shape == (8, 20) and len(passes) == 20 and min(passes) >= 1
    for k, alpha in enumerate(alphas):
        best = min(objective(c[:, k], alpha, l1_ratio) for c in (coefs, theirs[1]))
        assert gaps[k] >= objective(coefs[:, k], alpha, l1_ratio) - best - 1e-14
        assert gaps[k] <= 1e-10 * best * (1 + 1e-6)


def test_the_default_grid():
    for ours, theirs in ((ac.lasso_path, sk.lasso_path), (ac.enet_path, sk.enet_path)):
        found, expected = ours(X, Y), theirs(X, Y, alphas=100)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        assert found[1].shape == expected[1].shape and not found[1][:, 0].any()
    np.testing.assert_array_equal(
        ac.lasso_path(X, Y, alphas=5)[0], ac.lasso_path(X, Y, n_alphas=5)[0]
    )
    assert ac.lasso_path(X, Y, alphas=[0.1, 3.0, 1.0])[0].tolist() == [3.0, 1.0, 0.1]


@pytest.mark.parametrize("columns", [1, 3])
def test_several_targets(columns):
    """Of shape (n_targets, n_features, n_alphas), the multitask elastic net of scikit-learn."""
    several = np.column_stack([Y, X[:, 0] - Y, X[:, 3]])[:, :columns]
    for l1_ratio in (0.0, 0.4, 1.0):
        how = {"l1_ratio": l1_ratio, "alphas": [1.0, 0.3, 0.02], "tol": 1e-11}
        alphas, coefs, gaps, passes = ac.enet_path(X, several, return_n_iter=True, **how)
        theirs = sk.enet_path(X, several, max_iter=100_000, **how)
        np.testing.assert_array_equal(alphas, theirs[0])
        np.testing.assert_allclose(coefs, theirs[1], atol=1e-6)
        assert coefs.shape == (columns, 8, 3) and len(gaps) == len(passes) == 3
    np.testing.assert_allclose(
        ac.lasso_path(X, several, alphas=5)[0], sk.lasso_path(X, several, alphas=5)[0], rtol=1e-12
    )
    with pytest.raises(ValueError, match="positive=True is not allowed for multi-output"):
        ac.lasso_path(X, several, positive=True)
    with pytest.raises(ValueError, match="lasso_path is of l1 alone"):
        ac.lasso_path(X, Y, l1_ratio=0.5)


def test_the_arguments_of_scikit_learn():
    for ours, theirs in ((ac.lasso_path, sk.lasso_path), (ac.enet_path, sk.enet_path)):
        assert set(signature(theirs).parameters) <= set(signature(ours).parameters)


def test_static_methods():
    for model in (ac.Lasso, ac.ElasticNet(0.1)):
        _, coefs, _ = model.path(X, Y, l1_ratio=0.5, alphas=[0.5, 0.1])
        np.testing.assert_allclose(coefs, ac.enet_path(X, Y, alphas=[0.5, 0.1])[1])
    assert ac.ElasticNetCV.path is ac.enet_path and ac.LassoCV.path is ac.lasso_path


def test_a_target_of_zeros():
    _, coefs, gaps = ac.lasso_path(X, np.zeros(60), alphas=3)
    assert not coefs.any() and not gaps.any()


@pytest.mark.parametrize(
    "how, words",
    [
        ({"nonsense": 1}, "nonsense=1: Unexpected parameters"),
        ({"l1_ratio": 2.0}, "l1_ratio=2.0: it must be between"),
        ({"l1_ratio": 0.0}, "l1_ratio=0.0: without an l1"),
        ({"alphas": [0.1, -1.0]}, "alphas=.*: a number of points"),
        ({"fit_intercept": True}, "fit_intercept and sample_weight: this path has neither"),
    ],
)
def test_bad_arguments_get_a_sentence(how, words):
    with pytest.raises(ValueError, match=words):
        ac.enet_path(X, Y, **how)


def test_few_passes_are_told():
    wide = np.random.default_rng(1).standard_normal((40, 3000))
    with pytest.warns(ac.ConvergenceWarning, match="max_iter=1"):
        ac.lasso_path(wide, wide[:, :9].sum(axis=1), alphas=[1e-3], max_iter=1, tol=1e-12)
