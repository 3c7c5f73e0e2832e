"""``QuantileRegressor``, ``HuberRegressor`` and ``RidgeClassifier``: scikit-learn's optima."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

import adacoord as ac
from adacoord.problem import concomitant
from adacoord.problem.losses import Huber

N, D = 90, 4


def make(weighted=False, seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * (rng.random((n, D)) < 0.8)
    y = X @ rng.standard_normal(D) + 0.7 + rng.standard_t(1.5, n)
    return X, y, rng.integers(0, 4, n).astype(float) if weighted else None


# ---- quantiles ---------------------------------------------------------------------------------


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.85])
@pytest.mark.parametrize("alpha", [1e-3, 0.05, 10.0])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_quantiles(quantile, alpha, storage, weighted, fit_intercept):
    X, y, w = make(weighted)
    data = sparse.csr_matrix(X) if storage == "csr" else X
    how = {"quantile": quantile, "alpha": alpha, "fit_intercept": fit_intercept}
    mine = ac.QuantileRegressor(**how, tol=1e-9).fit(data, y, w)
    other = sk.QuantileRegressor(**how).fit(data, y, w)

    def value(m):
        r = y - X @ m.coef_ - m.intercept_
        loss = np.average(np.maximum(quantile * r, (quantile - 1) * r), weights=w)
        return loss + alpha * np.abs(m.coef_).sum()

    assert value(mine) == pytest.approx(value(other), rel=1e-8)
    assert mine.relative_gap_ <= 1e-9


@pytest.mark.parametrize("quantile", [0.5, 0.8])
def test_no_penalty(quantile):
    X, y, _ = make()
    model = ac.QuantileRegressor(quantile=quantile, alpha=0.0, tol=1e-8).fit(X, y)
    other = sk.QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(other.intercept_, abs=1e-6)
    assert model.relative_gap_ <= 1e-8


@pytest.mark.slow
def test_quantiles_of_many_rows():
    """Where scikit-learn once asked for 61 TiB: some tens of d x d systems."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 50))
    y = X[:, :5].sum(axis=1) + rng.standard_t(3, 100_000)
    model = ac.QuantileRegressor(quantile=0.9, alpha=1e-3, tol=1e-6).fit(X, y)
    assert model.relative_gap_ <= 1e-6 and model.n_iter_ <= 40
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.9, abs=0.01)


# ---- Huber's, with its scale -------------------------------------------------------------------


def joint(X, y, w, coef, intercept, scale, epsilon, alpha):
    w = np.ones(len(y)) if w is None else w
    r = np.abs(X @ coef + intercept - y)
    with np.errstate(over="ignore", divide="ignore"):  # scales that SciPy tries may be 0
        near = np.minimum(r / scale, epsilon)
    H = near * (2 * r - scale * near)  # times the scale
    return (np.sum(w * (scale + H)) + alpha * coef @ coef) / len(y)


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1.0, 100.0])
@pytest.mark.parametrize("epsilon", [1.1, 1.35, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_huber_with_its_scale(alpha, epsilon, weighted, fit_intercept):
    X, y, w = make(weighted)
    how = {"alpha": alpha, "epsilon": epsilon, "fit_intercept": fit_intercept}
    mine = ac.HuberRegressor(**how, tol=1e-10).fit(X, y, w)
    other = sk.HuberRegressor(**how, tol=1e-8, max_iter=20_000).fit(X, y, w)
    values = [
        joint(X, y, w, m.coef_, m.intercept_, m.scale_, epsilon, alpha) for m in (mine, other)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-8)
    assert values[0] <= values[1] + 1e-10 * values[1]
    assert mine.scale_ == pytest.approx(other.scale_, rel=1e-3)
    np.testing.assert_array_equal(
        mine.outliers_, np.abs(X @ mine.coef_ + mine.intercept_ - y) > epsilon * mine.scale_
    )
    if alpha > 0.0:
        assert 0.0 <= mine.relative_gap_ <= 1e-10
        assert mine.dual_gap_ <= 1e-10 * values[0] * (1 + 1e-6)
    else:
        assert np.isnan(mine.relative_gap_)


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 100.0])
def test_the_least_epsilon(alpha):
    """Where scales near 0 are as good as any: a value no larger than scikit-learn's, and proved."""
    X, y, _ = make()
    mine = ac.HuberRegressor(epsilon=1.0, alpha=alpha, tol=1e-8).fit(X, y)
    other = sk.HuberRegressor(epsilon=1.0, alpha=alpha, tol=1e-8, max_iter=20_000).fit(X, y)
    values = [joint(X, y, None, m.coef_, m.intercept_, m.scale_, 1.0, alpha) for m in (mine, other)]
    assert values[0] <= values[1] * (1 + 1e-8) and mine.relative_gap_ <= 1e-8


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.floats(1e-3, 10.0),
    epsilon=st.floats(1.0, 3.0),
    intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_the_joint_gap_is_never_less_than_the_distance(seed, alpha, epsilon, intercept, weighted):
    """At any scale, coefficients and dual point, against the optimum over all three by SciPy."""
    rng = np.random.default_rng(seed)
    X, y, w = make(weighted, seed, n=12)
    w = w + 0.5 if weighted else None

    def value(v):
        return joint(X, y, w, v[:D], v[D] * intercept, np.exp(v[-1]), epsilon, alpha)

    best = min(
        minimize(value, np.append(np.zeros(D + 1), start), method="BFGS", tol=1e-12).fun
        for start in (-1.0, 0.5)
    )
    scale = float(np.exp(rng.normal()))
    problem = ac.Problem(
        X, y, Huber(epsilon * scale), l2=alpha * scale / 12, sample_weight=w, intercept=intercept
    )
    x, c = rng.standard_normal(D), float(rng.standard_normal()) * intercept
    slopes = problem.loss.derivative(problem.predict(x, c), y)
    for dual in (slopes, 10.0 * rng.standard_normal(12), np.zeros(12)):
        found = concomitant.judge(problem, x, c, dual, scale, 0.0)
        assert found.primal == pytest.approx(joint(X, y, w, x, c, scale, epsilon, alpha))
        assert found.dual <= best + 1e-9 * (1.0 + best)


def test_the_joint_gap_closes_at_the_optimum():
    X, y, _ = make()
    model = ac.HuberRegressor(alpha=1.0, tol=1e-12).fit(X, y)
    [problem] = model._pose(X, y).problems
    found = concomitant.judge(
        problem, model.coef_, float(model.intercept_), model.dual_coef_, model.scale_, 0.0
    )
    assert found.primal - found.dual == pytest.approx(model.dual_gap_, abs=1e-13)
    assert found.scale == pytest.approx(model.scale_, rel=1e-10)


def test_what_a_run_has_proved_is_not_proved_again():
    X, y, w = make(True)
    scale, alpha = 0.7, 0.1
    problem = ac.Problem(
        X, y, Huber(1.35 * scale), l2=alpha * scale / N, sample_weight=w, intercept=True
    )
    run = ac.solve(problem, tol=1e-4)
    point = problem, run.x, run.intercept, run.y, scale, 1e-9
    known, anew = concomitant.judge(*point, run.dual), concomitant.judge(*point)
    assert known == pytest.approx(anew, rel=1e-7) and known.dual <= anew.dual + 1e-14


def test_no_residuals():
    """The scale is at its least, which is a bound that is certified, too."""
    X, _, _ = make()
    model = ac.HuberRegressor().fit(X, X @ np.arange(D) + 3.0)
    np.testing.assert_allclose(model.coef_, np.arange(D), atol=1e-4)
    assert model.scale_ < 1e-6 and model.relative_gap_ <= 1e-4
    constant = ac.HuberRegressor().fit(X, np.full(N, 2.0))
    assert constant.intercept_ == pytest.approx(2.0) and not constant.coef_.any()


def test_few_passes_are_told():
    X, y, _ = make()
    with pytest.warns(ac.ConvergenceWarning, match="scales with a relative gap"):
        ac.HuberRegressor(max_iter=1, tol=1e-12).fit(X, y)


def test_huber_warm_start():
    X, y, _ = make()
    model = ac.HuberRegressor(warm_start=True, tol=1e-9).fit(X, y)
    cold, scale = model.n_iter_, model.scale_
    model.fit(X, y)
    assert model.n_iter_ <= cold and model.scale_ == pytest.approx(scale, rel=1e-6)


# ---- least squares on labels -------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"b": 3.0}])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_ridge_classifier(classes, class_weight, weighted, fit_intercept, storage):
    X, z, w = make(weighted)
    y = np.array(list("abc"))[np.searchsorted(np.quantile(z, [0.3, 0.7][: classes - 1]), z)]
    data = sparse.csr_matrix(X) if storage == "csr" else X
    how = {"alpha": 0.7, "class_weight": class_weight, "fit_intercept": fit_intercept}
    mine = ac.RidgeClassifier(**how, tol=1e-12).fit(data, y, w)
    other = sk.RidgeClassifier(**how, tol=1e-12).fit(data, y, w)
    np.testing.assert_allclose(mine.coef_, np.atleast_2d(other.coef_), atol=1e-7)
    intercepts = np.broadcast_to(other.intercept_, mine.intercept_.shape)
    np.testing.assert_allclose(mine.intercept_, intercepts, atol=1e-7)
    np.testing.assert_array_equal(mine.predict(data), other.predict(data))
    np.testing.assert_array_equal(mine.classes_, other.classes_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("start", [1e-3, 0.5, 40.0])
@pytest.mark.parametrize("epsilon", [1.1, 1.35, 5.0])
def test_the_scale_of_residuals_is_a_root(epsilon, start, weighted):
    """Against bisection of what only falls as the scale grows."""
    rng = np.random.default_rng(2)
    r = rng.standard_t(2, 200)
    w = rng.integers(0, 3, 200).astype(float) if weighted else np.ones(200)

    def excess(scale):
        return np.mean(w * np.minimum(np.abs(r), epsilon * scale) ** 2) - np.mean(w) * scale**2

    low, high = 1e-6, 1e3
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    loss = Huber(delta=epsilon * start)
    problem = ac.Problem(np.ones((200, 1)), r, loss, l2=1.0, sample_weight=w if weighted else None)
    found = concomitant.own_scale(problem, r, start, float(np.mean(w)), 1e-9)
    assert found == pytest.approx(low, rel=1e-6)
    assert concomitant.own_scale(problem, 0.0 * r, start, 1.0, 0.25) == 0.25
