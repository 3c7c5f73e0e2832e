"""Generalised linear models: scikit-learn's optimum, and SciPy's with an l1."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model as sk
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.metrics import d2_tweedie_score

import adacoord as ac

N, D = 80, 5
PAIRS = [
    (ac.PoissonRegressor, sk.PoissonRegressor, {}),
    (ac.GammaRegressor, sk.GammaRegressor, {}),
    (ac.TweedieRegressor, sk.TweedieRegressor, {"power": 0}),
    (ac.TweedieRegressor, sk.TweedieRegressor, {"power": 1}),
    (ac.TweedieRegressor, sk.TweedieRegressor, {"power": 1.2}),
    (ac.TweedieRegressor, sk.TweedieRegressor, {"power": 1.9, "link": "log"}),
    (ac.TweedieRegressor, sk.TweedieRegressor, {"power": 2}),
]
each = pytest.mark.parametrize(
    "ours, theirs, how", PAIRS, ids=lambda v: getattr(v, "__name__", str(v))
)


def make(weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)
    y = rng.gamma(2.0, np.exp(0.4 * X @ rng.standard_normal(D) + 0.3)) + 1e-3
    return X, y, rng.integers(0, 4, N).astype(float) if weighted else None


def half_deviance(model, z, y):
    power = {"PoissonRegressor": 1, "GammaRegressor": 2}.get(type(model).__name__)
    power = model.power if power is None else power
    if power == 0:
        return (z - y) ** 2 / 2
    if power == 1:
        return np.exp(z) - y * z
    if power == 2:
        return z + y * np.exp(-z)
    return y * np.exp((1 - power) * z) / (power - 1) + np.exp((2 - power) * z) / (2 - power)


def objective(model, X, y, w, coef, intercept):
    l1, l2 = model.alpha * model.l1_ratio, model.alpha * (1 - model.l1_ratio)
    mean = np.average(half_deviance(model, X @ coef + intercept, y), weights=w)
    return mean + l1 * np.abs(coef).sum() + l2 / 2 * coef @ coef


@each
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_optimum_of_scikit_learn(ours, theirs, how, storage, weighted, fit_intercept):
    X, y, w = make(weighted)
    data = sparse.csr_matrix(X) if storage == "csr" else X
    how = {**how, "alpha": 0.1, "fit_intercept": fit_intercept}
    mine = ours(**how, tol=1e-11).fit(data, y, w)  # 5e-12 is what can be proved
    other = theirs(**how, tol=1e-10, max_iter=10_000).fit(data, y, w)
    values = [objective(mine, X, y, w, m.coef_, m.intercept_) for m in (mine, other)]
    assert values[0] == pytest.approx(values[1], rel=1e-8)
    assert values[0] <= values[1] + 1e-12 * abs(values[1])
    np.testing.assert_allclose(mine.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(mine.predict(data), other.predict(data), rtol=1e-4)
    assert mine.score(data, y, w) == pytest.approx(other.score(data, y, w), abs=1e-6)
    assert 0.0 <= mine.relative_gap_ <= 1e-11


@each
@pytest.mark.parametrize("l1_ratio", [0.4, 1.0])
def test_l1_by_scipy(ours, theirs, how, l1_ratio):
    X, y, w = make(True)
    model = ours(**how, alpha=0.1, l1_ratio=l1_ratio, tol=1e-12).fit(X, y, w)

    def split(v):
        return objective(model, X, y, w, v[:D] - v[D : 2 * D], v[-1]) + model.alpha * l1_ratio * (
            v[: 2 * D].sum() - np.abs(v[:D] - v[D : 2 * D]).sum()
        )

    start = np.append(np.maximum([model.coef_, -model.coef_], 0.0) + 0.1, model.intercept_)
    found = minimize(
        split,
        start,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * D) + [(None, None)],
        options={"maxiter": 10_000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-10},
    )
    at = objective(model, X, y, w, model.coef_, model.intercept_)
    assert at <= found.fun + 1e-10 and at >= found.fun - 1e-6


@each
def test_score_is_the_deviance_explained(ours, theirs, how):
    X, y, w = make(True)
    model = ours(**how, alpha=0.1).fit(X, y)
    power = {"PoissonRegressor": 1, "GammaRegressor": 2}.get(ours.__name__, how.get("power"))
    expected = d2_tweedie_score(y, model.predict(X), sample_weight=w, power=power)
    assert model.score(X, y, w) == pytest.approx(expected, abs=1e-12)
    assert model.score(X, np.full(N, 2.0)) in (0.0, 1.0)


@pytest.mark.parametrize(
    "how, words",
    [
        ({"power": 3}, "power=3: its deviance is not convex"),
        ({"power": 0.5}, "power=0.5: its deviance is not convex, or there|power=0.5: its deviance"),
        ({"power": -1.0}, "power=-1.0: its deviance"),
        ({"power": 1, "link": "identity"}, "link='identity': with power=1 .* use link=\"log\""),
        ({"power": 0, "link": "log"}, "link='log': with power=0 .* use link=\"identity\""),
    ],
)
def test_what_is_not_convex_is_refused(how, words):
    X, y, _ = make()
    with pytest.raises(ValueError, match=words):
        ac.TweedieRegressor(**how).fit(X, y)


@pytest.mark.parametrize(
    "model, value", [(ac.PoissonRegressor(), -1.0), (ac.GammaRegressor(), 0.0)]
)
def test_targets_out_of_range(model, value):
    X, y, _ = make()
    y[3] = value
    with pytest.raises(ValueError, match="b has the value"):
        model.fit(X, y)
    model.fit(X, np.abs(y) + 1.0)
    with pytest.raises(ValueError, match="b has the value"):
        model.score(X, y)


def test_warm_start_and_clone():
    X, y, _ = make()
    model = ac.GammaRegressor(alpha=0.1, warm_start=True, tol=1e-10).fit(X, y)
    before = model.coef_.copy()
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, before, atol=1e-8)
    assert clone(model).get_params() == model.get_params()


def test_certify_judges_it():
    X, y, _ = make()
    from adacoord.estimators import judge

    model = ac.TweedieRegressor(power=1.5, alpha=0.1, l1_ratio=0.5, tol=1e-9).fit(X, y)
    [(_, problem, x, c)] = judge.points(model, X, y)
    assert ac.certify(problem, x, c).relative_gap <= 1e-8
