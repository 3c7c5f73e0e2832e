"""The certificate is that of what the user holds: coefficients in float32, no penalty, extremes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import adacoord as ac
from adacoord.estimators import __all__ as NAMES
from adacoord.estimators import judge

LONG = np.longdouble


# ---- float32 -----------------------------------------------------------------------------------


def offset_data(seed, sparse_rows=False):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((300, 4)) * [1, 1, 5, 0.1] + [0, 0, 1e5, 1e5]).astype(np.float32)
    z = (X - X.mean(axis=0, dtype=float)) @ [1.0, 2.0, 0.5, 3.0]
    return (sparse.csr_matrix(X) if sparse_rows else X), z + 0.01 * rng.standard_normal(300)


def losses(loss, z, b):
    """phi of each row, in long double."""
    if loss.name == "logistic":
        return np.logaddexp(0, -b * z)
    if loss.name == "multinomial":
        own = z[np.arange(len(b)), b]
        return np.logaddexp.reduce(z, axis=1) - own
    if loss.name == "squared_hinge":
        return (
            np.maximum(0, 1 - b * z) ** 2 / 2
            if loss.constants[0] == 1.0
            else (np.maximum(0, 1 - b * z) ** 2)
        )
    if loss.name == "hinge":
        return np.maximum(0, 1 - b * z)
    if loss.name == "epsilon_insensitive":
        return np.maximum(0, np.abs(z - b) - LONG(loss.epsilon))
    return (z - b) ** 2 / 2


def primal(problem, x, c):
    """P in long double, from the data."""
    A = np.asarray(problem.matrix.dense, dtype=LONG)
    x, b = np.asarray(x, dtype=LONG), problem.b
    z = A @ x + np.asarray(c, dtype=LONG)
    w = np.ones(problem.n, dtype=LONG) if problem.weights is None else LONG(1) * problem.weights
    p = problem.penalty
    return (
        np.sum(w * losses(problem.loss, z, b)) / problem.n
        + LONG(p.l1) * np.sum(np.abs(x))
        + LONG(p.l2) / 2 * np.sum(x * x)
    )


FLOAT32 = [
    ac.Ridge(alpha=1e-3),
    ac.Ridge(alpha=1e-3, fit_intercept=False),
    ac.Ridge(positive=True),
    ac.Lasso(alpha=1e-3),
    ac.ElasticNet(alpha=1e-3),
    ac.LinearSVR(C=10.0),
    ac.LinearSVR(intercept_scaling=0.1),
    ac.ERMRegressor("squared", l2=1e-6),
    ac.LinearSVC(),
    ac.LinearSVC(loss="hinge", intercept_scaling=0.3),
    ac.LogisticRegression(),
    ac.LogisticRegression(multi_class="ovr"),
    ac.LogisticRegression(C=1e4),
    ac.ERMClassifier(),
    ac.RidgeCV(),
    ac.LassoCV(alphas=5, cv=3),
    ac.ElasticNetCV(alphas=5, cv=3),
    ac.LogisticRegressionCV(Cs=3, cv=3),
    ac.LinearSVCCV(Cs=3, cv=3),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", FLOAT32, ids=lambda m: str(m).replace(" ", ""))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_certificate_of_float32_coefficients(model, seed):
    X, z = offset_data(seed, sparse_rows=seed == 2)
    y = np.digitize(z, [-1.0, 1.0]) if hasattr(model, "class_weight") else z
    # how good a point is without rounding, is what float64 data say
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)  # such data are hard for some
        held = clone(model).fit(X, y)
        exact = clone(model).set_params(tol=1e-10).fit(X.astype(np.float64), y)
        points = list(judge.points(held, X, y))
        better = list(judge.points(exact, X, y))
    gaps, relative = np.atleast_1d(held.dual_gap_), np.atleast_1d(held.relative_gap_)
    for k, (_, problem, x, c) in enumerate(points):
        P = primal(problem, x, c)
        least = min(P, primal(problem, *better[k][2:]))
        # of the terms that cancel in a prediction
        terms = np.mean(np.abs(problem.matrix.dense) @ np.abs(x)) + np.max(np.abs(c))
        rounding = 4e-15 * float(terms) * max(1.0, float(P)) + 1e-12 * float(problem.null_value)
        assert P - least <= gaps[k] + rounding
        assert P - least <= (relative[k] + 1e-9) * float(abs(P)) + rounding


def test_the_issues_draw():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((500, 4)) * [1, 1, 5, 0.1] + [0, 0, 1e5, 1e5]).astype(np.float32)
    y = X.astype(float) @ [1, 2, 0.5, 3.0]
    y = y - y.mean() + 0.01 * rng.standard_normal(500)
    model = ac.Ridge(alpha=1e-3).fit(X, y)
    exact = ac.Ridge(alpha=1e-3, tol=1e-7).fit(X.astype(float), y)
    [(_, problem, x, c)], [(_, _, x_best, c_best)] = (
        list(judge.points(m, X, y)) for m in (model, exact)
    )
    assert primal(problem, x, c) <= (1 + 1e-4) * primal(problem, x_best, c_best)
    assert model.coef_.dtype == np.float64  # in float32 it would miss tol


def test_float32_where_it_suffices():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 4)).astype(np.float32)
    model = ac.Ridge().fit(X, X[:, 0])
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert 0.0 < model.relative_gap_ <= 1e-4  # what rounding cost
    assert ac.Ridge(tol=0.0, max_iter=5).fit(X, np.zeros(100)).coef_.dtype == np.float32
    again = ac.Ridge(warm_start=True).fit(X, X[:, 0]).fit(X, X[:, 0])
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-6)
    # a number that float32 has not: nothing overflows
    far = ac.Ridge(alpha=1e-60).fit(X * np.float32(1e-30), 1e20 * X[:, 0])
    assert far.coef_.dtype == np.float64 and np.isfinite(far.coef_).all()


def test_paths_are_kept_in_float64():
    """``path_gaps_`` are the gaps of ``coefs_paths_``."""
    X, z = offset_data(0)
    model = ac.LinearSVCCV(Cs=2, cv=2).fit(X, z > 0)
    assert model.coefs_paths_.dtype == np.float64
    mean = ac.LinearSVCCV(Cs=2, cv=2, refit=False).fit(X, z > 0)
    assert mean.coef_.dtype == np.float32 and np.isnan(mean.dual_gap_)


# ---- x >= 0 without a penalty ------------------------------------------------------------------


def check_optimal(model, X, y, weights=None, tol=1e-9):
    """Karush, Kuhn and Tucker, with slopes in units of columns and targets."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)
    w = np.ones(len(X)) if weights is None else weights
    targets = np.asarray(y, dtype=float).reshape(len(X), -1).T
    intercepts = np.broadcast_to(model.intercept_, len(targets))
    for x, c, b in zip(np.atleast_2d(model.coef_), intercepts, targets, strict=True):
        assert (x >= 0.0).all() and np.isfinite(x).all()
        r = X @ x + c - b
        centre = np.average(X, axis=0, weights=w) if model.fit_intercept else 0.0
        lengths = np.sqrt(w @ (X - centre) ** 2)
        size = np.sqrt(w @ (b * b)) or 1.0
        scale = np.where(lengths > 0.0, lengths, 1.0) * size
        slope = (X - centre).T @ (w * r) / scale
        assert slope.min() >= -tol
        assert np.abs(slope[x > 0.0]).max(initial=0.0) <= tol
        if model.fit_intercept:
            assert abs(w @ r) <= tol * np.sqrt(w.sum()) * size
    assert np.isnan(model.dual_gap_).all() and np.isnan(model.relative_gap_).all()


def unequal(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([1e6 * rng.standard_normal(n), rng.standard_normal(n)])
    return X, X @ [1e-6, 3.0] + 0.01 * rng.standard_normal(n)


FREE = [
    ac.Ridge(alpha=0.0, positive=True),
    ac.Lasso(alpha=0.0, positive=True),
    ac.ElasticNet(alpha=0.0, positive=True),
    ac.ERMRegressor(l2=0.0, positive=True),
]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("model", FREE, ids=lambda m: type(m).__name__)
def test_columns_of_unequal_scale(model, intercept):
    X, t = unequal()
    model = clone(model).set_params(fit_intercept=intercept).fit(X, t)
    np.testing.assert_allclose(model.coef_, [1e-6, 3.0], rtol=5e-3)
    check_optimal(model, X, t)
    assert model.solver_ == "newton" and model.n_iter_ == 1


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "shape", ["tall", "wide", "duplicates", "zeros", "constant", "offset", "one row", "targets"]
)
def test_nonnegative_least_squares(shape, weighted, storage, intercept):
    rng = np.random.default_rng(5)
    n, d = {"wide": (20, 50), "one row": (1, 3)}.get(shape, (60, 8))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d)
    y = X @ np.where(rng.random(d) < 0.5, 1.0, -1.0) + rng.standard_normal(n) + 5.0
    tol = 1e-9
    if shape == "duplicates":
        X[:, 1], X[:, 3] = X[:, 0], 2.0 * X[:, 0]
    elif shape == "zeros":
        X[:, [0, 4]] = 0.0
    elif shape == "constant":
        X[:, 0], X[:, 1] = 0.1, 1e7 / 3.0
    elif shape == "offset":
        X, tol = rng.standard_normal((n, d)) + 1e6, 1e-7
        y = X @ np.arange(-3.0, 5.0)
    elif shape == "targets":
        y = np.column_stack([y, -y, np.zeros(n)])
    w = np.where(rng.random(n) < 0.2, 0.0, rng.random(n) + 0.5) if weighted and n > 1 else None
    model = ac.Ridge(alpha=0.0, positive=True, fit_intercept=intercept)
    check_optimal(model.fit(storage(X), y, w), X, y, w, tol)
    if shape == "constant" and intercept:
        assert not model.coef_[:2].any()


def test_tall_data_by_blocks(monkeypatch):
    from adacoord.solvers.newton import nonnegative

    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6))
    y = X @ [1.0, -1.0, 2.0, 0.0, -0.5, 0.3] + rng.standard_normal(500)
    whole = ac.Lasso(alpha=0.0, positive=True).fit(X, y)
    monkeypatch.setattr(nonnegative, "by_pivoting", lambda problem: None)
    monkeypatch.setattr(nonnegative, "BLOCK", 300)
    parts = ac.Lasso(alpha=0.0, positive=True).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-12)


@pytest.mark.parametrize("kind", [ac.ElasticNetCV, ac.LassoCV])
def test_alpha_zero_on_a_path(kind):
    X, t = unequal()
    model = kind(alphas=[1.0, 0.0], positive=True, cv=3).fit(X, t)
    assert model.alpha_ == 0.0
    np.testing.assert_allclose(model.coef_, [1e-6, 3.0], rtol=5e-3)
    check_optimal(model, X, t)
    assert np.isnan(model.path_gaps_[1]).all() and (model.path_gaps_[0] <= 1e-4).all()


def test_nonnegative_in_parts_and_refused():
    X, t = unequal()
    mixed = ac.Ridge(alpha=[0.0, 1.0], positive=True).fit(X, np.column_stack([t, t]))
    assert np.isnan(mixed.dual_gap_[0]) and mixed.relative_gap_[1] <= 1e-4
    with pytest.raises(ValueError, match=r"A has shape \(2100, 2100\).*give a small penalty"):
        ac.Lasso(alpha=0.0, positive=True).fit(sparse.eye(2100, format="csr"), np.ones(2100))
    with pytest.raises(ValueError, match="add a small penalty"):
        ac.Ridge(alpha=0.0, positive=True, solver="cd").fit(X, t)
    other = ac.ERMRegressor("huber", l2=0.0, positive=True, tol=1e-6).fit(X, t)  # within a box
    assert other.relative_gap_ <= 1e-6 and (other.coef_ >= 0.0).all()


# ---- targets, penalties and weights at the ends of the scale -----------------------------------


@pytest.mark.parametrize("value", [0.0, 3.0, -1e-5, 1e8, 0.1])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        ac.Ridge(),
        ac.Lasso(),
        ac.ElasticNet(),
        ac.LinearSVR(),
        ac.LinearSVR(loss="squared_epsilon_insensitive"),
        ac.Ridge(positive=True),
        ac.Ridge(alpha=0.0),
        ac.Lasso(alpha=0.0, positive=True),
        ac.RidgeCV(),
        ac.RidgeCV(cv=3),
        ac.LassoCV(alphas=5, cv=3),
        ac.ElasticNetCV(alphas=5, cv=3),
        ac.ERMRegressor(),
        ac.ERMRegressor("huber"),
        ac.ERMRegressor("absolute"),
    ],
    ids=lambda m: str(m).replace(" ", ""),
)
def test_constant_targets(model, intercept, value):
    """No warning (they are errors here), and the right answer."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) + 1.0
    y = np.full(60, value)
    model = clone(model).set_params(fit_intercept=intercept).fit(X, y)
    if intercept or value == 0.0:
        scale = abs(value) or 1.0
        assert np.abs(model.coef_).max() <= 1e-9 * scale
        assert np.abs(model.predict(X) - value).max() <= 1e-9 * scale
    assert np.isfinite(model.coef_).all() and not model.relative_gap_ > 1e-4


@pytest.mark.parametrize(
    "model",
    [
        ac.Ridge(),
        ac.LinearSVR(),
        ac.LinearSVR(epsilon=1.0),
        ac.Lasso(),
        ac.ElasticNet(),
        ac.LinearSVR(loss="squared_epsilon_insensitive"),
    ],
)
@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e150, 1e200, 1e300])
def test_huge_and_tiny_targets(model, scale):
    """A model with a certificate or a warning, or a sentence."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        try:
            found = clone(model).fit(A, np.sign(A[:, 0]) * scale)
        except ValueError as error:
            assert ":" in str(error)
            return
    assert np.isfinite(found.coef_).all() and not np.isnan(found.relative_gap_)


@pytest.mark.parametrize(
    "model",
    [
        ac.LogisticRegression(),
        ac.LogisticRegression(l1_ratio=1.0),
        ac.LinearSVC(),
        ac.LinearSVC(loss="hinge"),
        ac.LinearSVR(),
        ac.LogisticRegressionCV(),
        ac.LinearSVCCV(),
    ],
    ids=lambda m: str(m).replace(" ", ""),
)
@pytest.mark.parametrize("C", [1e308, 1e-320])
def test_C_beyond_float64(model, C):
    X = np.random.default_rng(0).standard_normal((30, 3))
    y = X[:, 0] + X[:, 1] ** 2 > 0.5
    name = "Cs" if hasattr(model, "Cs") else "C"
    model = clone(model).set_params(**{name: [C] if name == "Cs" else C})
    with pytest.raises(ValueError, match=r"C=1e(\+308|-320).*beyond .* give C nearer to 1"):
        model.fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        ac.Ridge(),
        ac.Lasso(),
        ac.ElasticNet(),
        ac.RidgeCV(cv=3),
        ac.LassoCV(),
        ac.ElasticNetCV(),
    ],
    ids=lambda m: str(m),
)
def test_alpha_beyond_float64(model):
    X = np.random.default_rng(0).standard_normal((30, 3))
    name = "alphas" if hasattr(model, "alphas") else "alpha"
    with pytest.raises(ValueError, match=r"alpha=5e-324.*beyond .* nearer to 1"):
        clone(model).set_params(**{name: [5e-324] if name == "alphas" else 5e-324}).fit(X, X[:, 0])


def test_no_penalty_is_still_no_penalty():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    model = ac.LogisticRegression(C=np.inf).fit(X, X[:, 0] + rng.standard_normal(200) > 0)
    assert np.isnan(model.dual_gap_) and np.isfinite(model.coef_).all()


# ---- a fit leaves what it found, and nothing else ----------------------------------------------


def learnt(model):
    return {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}


@pytest.mark.parametrize(
    "first, then",
    [
        (ac.RidgeCV(cv=3), {"cv": None}),
        (ac.RidgeCV(store_cv_results=True), {"store_cv_results": False}),
        (ac.RidgeCV(store_cv_results=True), {"store_cv_results": False, "cv": 3}),
        (ac.LogisticRegressionCV(Cs=2, cv=3), {"refit": False}),
        (ac.LogisticRegressionCV(Cs=2, cv=3, refit=False), {"refit": True}),
        (ac.LinearSVCCV(Cs=2, cv=3), {"refit": False}),
        (ac.Ridge(warm_start=True), {"alpha": 2.0}),
        (ac.LogisticRegression(warm_start=True), {"C": 2.0}),
        (ac.ElasticNetCV(alphas=3, cv=3), {"l1_ratio": [0.1, 0.9]}),
    ],
    ids=lambda v: str(v).replace(" ", ""),
)
def test_nothing_is_left_of_an_earlier_fit(first, then):
    X = np.random.default_rng(0).standard_normal((60, 3))
    y = X[:, 0] > 0 if hasattr(first, "class_weight") else X[:, 0]
    again = clone(first).fit(X, y).set_params(**then).fit(X, y)
    fresh = clone(first).set_params(**then).fit(X, y)
    assert learnt(again) == learnt(fresh)


def test_bad_input_leaves_the_model_as_it_was():
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = ac.Ridge().fit(X, X[:, 0])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X * np.nan, X[:, 0])
    np.testing.assert_array_equal(model.coef_, before)


# ---- what cannot be certified, and small folds -------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [ac.LogisticRegressionCV(Cs=2, cv=3, refit=False), ac.LinearSVCCV(Cs=2, cv=3, refit=False)],
)
def test_a_mean_of_models_is_not_certified(model):
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = clone(model).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match=r"refit=False\): .* nothing to certify; fit it with"):
        list(judge.points(model, X, X[:, 0] > 0))


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith("CV")])
def test_default_folds_of_few_rows(name):
    X = np.random.default_rng(0).standard_normal((9, 2))
    model = getattr(ac, name)()
    if hasattr(model, "class_weight"):
        assert model.fit(X, np.arange(9) % 3).path_gaps_.shape[0] == 3
    elif name != "RidgeCV":  # which leaves out one row at a time
        assert model.fit(X[:4], X[:4, 0]).path_gaps_.shape[1] == 4


def test_interrupt_between_two_targets(monkeypatch):
    """Of a named solver: ``auto`` solves them together."""
    from adacoord.estimators import base

    original, calls = base.run, []

    def interrupted(*args, **how):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*args, **how)

    X = np.random.default_rng(0).standard_normal((60, 3))
    monkeypatch.setattr(base, "run", interrupted)
    with pytest.warns(ac.ConvergenceWarning, match="2 of 3 problems .* interrupted"):
        model = ac.Ridge(solver="newton").fit(X, X)
    assert model.coef_[0].any() and not model.coef_[1:].any()
    calls[:] = [1]
    with pytest.raises(KeyboardInterrupt):  # nothing is there
        ac.Ridge(solver="newton").fit(X, X)
