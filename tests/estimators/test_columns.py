"""``standardize``, ``penalty_factor``, ``bounds`` and ``offset`` of the estimators."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adacoord as ac
from adacoord.estimators import __all__ as NAMES
from adacoord.estimators.columns import deviations


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 8)) * np.exp(rng.standard_normal(8)) + rng.standard_normal(8)
    X[:, 7] = 3.0  # constant
    t = X[:, 0] + 0.3 * X[:, 1] + rng.standard_normal(150)
    return {
        "X": X,
        "regression": t,
        "binary": np.where(t > np.median(t), 1, 0),
        "several": np.digitize(t, np.quantile(t, [0.3, 0.6])),
        "targets": np.column_stack([t, X[:, 1] - t]),
        "counts": np.exp(0.2 * t) + 0.01,
        "offset": rng.standard_normal(150),
    }


MODELS = [
    (ac.Lasso(0.1), "regression"),
    (ac.ElasticNet(0.1), "regression"),
    (ac.Ridge(10.0), "regression"),
    (ac.LinearSVR(C=0.1), "regression"),
    (ac.ERMRegressor("huber", l1=0.01), "regression"),
    (ac.QuantileRegressor(quantile=0.3, alpha=0.1), "regression"),
    (ac.TweedieRegressor(alpha=0.1, l1_ratio=0.5), "regression"),
    (ac.HuberRegressor(alpha=10.0), "regression"),
    (ac.RidgeClassifier(10.0), "binary"),
    (ac.LinearSVC(C=0.1), "binary"),
    (ac.LinearSVC(C=0.1, intercept_scaling=1.0), "several"),
    (ac.LogisticRegression(C=0.1), "binary"),
    (ac.LogisticRegression(C=0.1), "several"),
    (ac.ERMClassifier("hinge", l1=0.01), "binary"),
]
SEARCHES = [
    (ac.LassoCV(), "regression"),
    (ac.ElasticNetCV(solver="acf"), "regression"),
    (ac.RidgeCV(), "regression"),
    (ac.RidgeCV(cv=4), "regression"),
    (ac.LogisticRegressionCV(Cs=3, l1_ratios=(0,), use_legacy_attributes=False), "binary"),
    (ac.LinearSVCCV(Cs=3), "binary"),
]
GROUPED = [
    (ac.GroupLasso(0.1, groups=np.arange(8) // 2), "regression"),
    (ac.GroupLasso(0.1, groups=np.arange(8) // 3, l1_ratio=0.4), "regression"),
    (ac.GroupLassoCV(groups=np.arange(8) // 2, alphas=5, cv=3), "regression"),
    (ac.MultiTaskLasso(0.1), "targets"),
    (ac.MultiTaskElasticNet(0.1), "targets"),
]
COUNTS = [
    (ac.PoissonRegressor(alpha=0.1), "counts"),
    (ac.GammaRegressor(alpha=0.1, l1_ratio=1.0), "counts"),
]


def test_every_class_is_here():
    """No estimator goes without ``standardize``, nor without a test of it."""
    tried = {type(model) for model, _ in MODELS + SEARCHES + GROUPED + COUNTS}
    assert tried == {getattr(ac, name) for name in NAMES}
    assert all("standardize" in getattr(ac, name)().get_params() for name in NAMES)
    # groups have weights of their own, and no bounds
    grouped = {type(model) for model, _ in GROUPED}
    for name in NAMES:
        params = getattr(ac, name)().get_params()
        assert (getattr(ac, name) in grouped) != ({"penalty_factor", "bounds"} <= set(params))


@pytest.mark.parametrize(
    ("model", "kind"), MODELS + SEARCHES + GROUPED + COUNTS, ids=lambda m: type(m).__name__
)
def test_standardize_is_a_scaled_fit_in_the_units_of_the_data(model, kind, rows):
    X, y = rows["X"], rows[kind]
    model = clone(model).set_params(tol=1e-10)
    scaler = StandardScaler(with_mean=False).fit(X)
    scaled = clone(model).fit(scaler.transform(X), y)
    for form in (np.asarray, sparse.csr_matrix, sparse.csc_matrix):
        found = clone(model).set_params(standardize=True).fit(form(X), y)
        np.testing.assert_allclose(found.coef_ * scaler.scale_, scaled.coef_, atol=1e-7)
        np.testing.assert_allclose(found.predict(X), scaled.predict(scaler.transform(X)), atol=1e-6)
    for name in ("alpha_", "C_"):
        if hasattr(scaled, name):
            assert getattr(found, name) == pytest.approx(getattr(scaled, name))
    assert np.max(found.relative_gap_) <= 1e-10
    if kind not in ("several", "targets"):
        assert abs(np.ravel(found.coef_)[7]) <= 1e-9  # the intercept does what a constant would


def test_standardize_weighs_the_rows(rows):
    X, y = rows["X"], rows["regression"]
    w = np.r_[np.zeros(50), np.ones(100)]
    found = ac.Lasso(0.1, standardize=True, tol=1e-10).fit(X, y, sample_weight=w)
    fewer = ac.Lasso(0.1, standardize=True, tol=1e-10).fit(X[50:], y[50:])
    np.testing.assert_allclose(found.coef_, fewer.coef_, atol=1e-8)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array])
def test_deviations_of_sparse_columns_are_those_of_dense_ones(form):
    """Constant columns have none, whatever the weights: no variance of rounding, nor below 0."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 200))
        constant = np.tile([5.0, 1.0, 0.1, 1e-6, 0.0, 3e5], (n, 1))
        t = rng.standard_normal((n, 3)) * (1.0, 1.0, 0.0)
        t[: n // 3, 2] = 1.0
        X = np.column_stack([constant, t[:, 0], t[:, 1] + 1e3, t[:, 2]])
        X = X.astype(rng.choice([np.float32, np.float64]))
        w = np.where(rng.random(n) < 0.3, 0.0, rng.exponential(size=n))
        w[0] = 1.0
        for weights in (None, w):
            dense = deviations(X, weights)
            assert (dense[:6] == 1.0).all()
            np.testing.assert_allclose(deviations(form(X), weights), dense, rtol=1e-9)


def test_standardize_of_float32_keeps_its_certificate(rows):
    X, y = rows["X"].astype(np.float32), rows["regression"]
    found = ac.Lasso(0.1, standardize=True, tol=1e-9).fit(X, y)
    other = ac.Lasso(0.1, standardize=True, tol=1e-9).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(found.coef_, other.coef_, atol=1e-7)
    assert found.relative_gap_ <= 1e-9


@pytest.mark.parametrize(("model", "kind"), MODELS, ids=lambda m: type(m).__name__)
def test_factors_and_bounds_are_those_of_the_problem(model, kind, rows):
    X, y = rows["X"][:, :7], rows[kind]
    factor = np.array([0.0, 1.0, 1.0, 5.0, 1.0, 1.0, 1.0])
    lower, upper = np.array([-0.1] * 7), np.array([0.2] * 6 + [np.inf])
    model = clone(model).set_params(penalty_factor=factor, bounds=(lower, upper), tol=1e-8)
    model.fit(X, y)
    assert (model.coef_ >= lower).all() and (model.coef_ <= upper).all()
    assert np.max(model.relative_gap_) <= 1e-8
    # the penalty of a column is its factor's
    [problem, *_] = model._pose(X, y).problems
    other = clone(model).set_params(penalty_factor=None, bounds=None)
    if hasattr(model, "scale_"):
        other.scale_ = model.scale_
    uniform = other._pose(X, y).problems[0]
    l1, l2, low, high = problem.penalty.by_column(problem.d)
    np.testing.assert_allclose(l1[:7], uniform.penalty.l1 * factor)
    np.testing.assert_allclose(l2[:7], uniform.penalty.l2 * factor)
    np.testing.assert_array_equal((low[:7], high[:7]), (lower, upper))
    both = clone(model).set_params(standardize=True).fit(X, y)
    assert (both.coef_ >= lower - 1e-12).all() and (both.coef_ <= upper + 1e-12).all()


SEARCHED = [
    (ac.LassoCV(alphas=[0.3, 0.1], cv=3), "regression"),
    (ac.ElasticNetCV(alphas=[0.3, 0.1], cv=3), "regression"),
    (ac.RidgeCV([1.0, 10.0], cv=3), "regression"),
    (ac.LogisticRegressionCV(Cs=[0.1, 1.0], l1_ratios=(0.5,), cv=3), "binary"),
    (ac.LinearSVCCV(Cs=[0.1, 1.0], cv=3), "several"),
]


@pytest.mark.parametrize(("model", "kind"), SEARCHED, ids=lambda m: type(m).__name__)
def test_searches_keep_to_factors_and_bounds(model, kind, rows):
    """The models of the path and the one on all rows."""
    X, y = rows["X"][:, :7], rows[kind]
    factor = np.array([0.0, 1.0, 1.0, 5.0, 1.0, 1.0, 1.0])
    bounds = np.full(7, -0.1), np.array([0.2] * 6 + [np.inf])
    model = clone(model).set_params(penalty_factor=factor, bounds=bounds, tol=1e-8)
    if "use_legacy_attributes" in model.get_params():
        model.set_params(use_legacy_attributes=False)
    model.fit(X, y)
    assert (model.coef_ >= bounds[0]).all() and (model.coef_ <= bounds[1]).all()
    assert np.max(model.relative_gap_) <= 1e-8 and np.max(model.path_gaps_) <= 1e-8
    plain = {
        "LassoCV": lambda: ac.Lasso(model.alpha_),
        "ElasticNetCV": lambda: ac.ElasticNet(model.alpha_),
        "RidgeCV": lambda: ac.Ridge(model.alpha_),
        "LogisticRegressionCV": lambda: ac.LogisticRegression(C=model.C_, l1_ratio=0.5),
        "LinearSVCCV": lambda: ac.LinearSVC(C=model.C_),
    }[type(model).__name__]()
    plain.set_params(penalty_factor=factor, bounds=bounds, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)


def test_the_path_of_a_search_is_that_of_the_factors(rows):
    X, y, w = rows["X"], rows["regression"], np.arange(150.0) % 3
    factor = np.linspace(0.5, 4.0, 8)
    found = ac.LassoCV(penalty_factor=factor, cv=3, alphas=8, tol=1e-10).fit(X, y, w)
    other = ac.LassoCV(cv=3, alphas=8, tol=1e-10).fit(X / factor, y, w)
    np.testing.assert_allclose(found.alphas_, other.alphas_, rtol=1e-10)
    np.testing.assert_allclose(found.mse_path_, other.mse_path_, rtol=1e-7)
    np.testing.assert_allclose(found.coef_, other.coef_ / factor, atol=1e-6)
    with pytest.raises(ValueError, match=r"columns without a penalty.*give alphas"):
        ac.LassoCV(penalty_factor=np.arange(8.0)).fit(X, y)
    with pytest.raises(ValueError, match=r"cv=None and bounds are incompatible.*give cv"):
        ac.RidgeCV(bounds=(0.0, None)).fit(X, y)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (ac.LassoCV(alphas=5, cv=3), "regression"),
        (ac.ElasticNetCV(alphas=5, cv=3, solver="acf"), "regression"),
        (ac.GroupLassoCV(groups=np.arange(8) // 2, alphas=5, cv=3), "regression"),
        (ac.RidgeCV(), "regression"),
        (ac.RidgeCV(cv=3, scoring="neg_mean_squared_error"), "targets"),
    ],
    ids=lambda m: type(m).__name__,
)
def test_the_offset_of_a_search_is_one_of_the_targets(model, kind, rows):
    X, y, o = rows["X"], rows[kind], rows["offset"]
    o = o if kind == "regression" else np.column_stack([o, -o])
    found = clone(model).set_params(tol=1e-10).fit(X, y, offset=o)
    other = clone(model).set_params(tol=1e-10).fit(X, y - o)
    np.testing.assert_allclose(found.coef_, other.coef_, atol=1e-7)
    assert found.alpha_ == pytest.approx(other.alpha_)
    for name in ("mse_path_", "best_score_"):
        if hasattr(other, name):
            np.testing.assert_allclose(getattr(found, name), getattr(other, name), rtol=1e-7)
    np.testing.assert_allclose(found.predict(X, offset=o), found.predict(X) + o)


def test_scores_of_a_search_see_the_offset(rows):
    """Of R^2 and of classes y - offset would be another thing."""
    X, y, o = rows["X"], rows["regression"], 3.0 * rows["offset"]
    left_out = np.arange(100, 150)
    folds = [(np.arange(100), left_out)]
    found = ac.RidgeCV([1.0], cv=folds).fit(X, y, offset=o)
    one = ac.Ridge(1.0).fit(X[:100], y[:100], offset=o[:100])
    want = r2_score(y[left_out], one.predict(X[left_out], offset=o[left_out]))
    assert found.best_score_ == pytest.approx(want, abs=1e-5)
    alone = ac.RidgeCV([1.0], scoring="r2", store_cv_results=True).fit(X, y, offset=o)
    assert alone.best_score_ == pytest.approx(r2_score(y, alone.cv_results_[:, 0]))

    for kind, shift in (("binary", o), ("several", np.column_stack([o, -o, 0 * o]))):
        y = rows[kind]
        for scoring in (None, "neg_log_loss"):
            # to the same digits, whoever solves it
            model = ac.LogisticRegressionCV(
                Cs=[1.0], l1_ratios=(0,), cv=folds, scoring=scoring, use_legacy_attributes=False,
                tol=1e-8,
            ).fit(X, y, offset=shift)  # fmt: skip
            one = ac.LogisticRegression(C=1.0, tol=1e-8).fit(X[:100], y[:100], offset=shift[:100])
            given = {"offset": shift[left_out]}
            want = np.mean(one.predict(X[left_out], **given) == y[left_out])
            if scoring:
                want = -log_loss(y[left_out], one.predict_proba(X[left_out], **given))
            assert model.scores_.item() == pytest.approx(want, abs=1e-3)
            again = ac.LogisticRegression(C=1.0, tol=1e-8).fit(X, y, offset=shift)
            np.testing.assert_allclose(model.coef_, again.coef_, atol=2e-3)


def test_positive_is_a_bound(rows):
    X, y = rows["X"], rows["regression"]
    found = ac.Lasso(0.01, bounds=(0, None), tol=1e-10).fit(X, y)
    other = ac.Lasso(0.01, positive=True, tol=1e-10).fit(X, y)
    np.testing.assert_array_equal(found.coef_, other.coef_)


@pytest.mark.parametrize(("model", "kind"), MODELS + GROUPED, ids=lambda m: type(m).__name__)
def test_offset(model, kind, rows):
    X, y, o = rows["X"][:, :7], rows[kind], rows["offset"]
    several = kind == "several"
    if several:
        o = np.column_stack([o, 0.5 * o, -o])
    if kind == "targets":
        o = np.column_stack([o, -o])
    if hasattr(model, "groups"):
        model = clone(model).set_params(groups=np.arange(7) // 2)
    model = clone(model).set_params(tol=1e-9).fit(X, y, offset=o)
    assert np.max(model.relative_gap_) <= 1e-9
    if kind in ("regression", "targets"):
        other = clone(model).fit(X, y - o)
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
        np.testing.assert_allclose(model.predict(X, offset=o), model.predict(X) + o)
        return
    z = model.decision_function(X, offset=o)
    np.testing.assert_allclose(z, model.decision_function(X) + o)
    labels = z.argmax(axis=1) if several else (z > 0).astype(int)
    np.testing.assert_array_equal(model.predict(X, offset=o), model.classes_[labels])
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X, offset=o)
        np.testing.assert_array_equal(p.argmax(axis=1), labels)
        np.testing.assert_allclose(np.log(p), model.predict_log_proba(X, offset=o))


def test_offset_of_several_targets(rows):
    X, o = rows["X"], rows["offset"]
    Y, both = np.column_stack([rows["regression"]] * 2), np.column_stack([o, 2 * o])
    found = ac.Ridge(1.0, tol=1e-10).fit(X, Y, offset=both)
    np.testing.assert_allclose(
        found.coef_, ac.Ridge(1.0, tol=1e-10).fit(X, Y - both).coef_, atol=1e-7
    )


def test_exposure_of_counts(rows):
    X, o = rows["X"][:, :3] * 0.1, rows["offset"]
    rng = np.random.default_rng(1)
    y = rng.poisson(np.exp(X[:, 0] + o))
    model = ac.ERMRegressor("poisson", tol=1e-9).fit(X, y, offset=o)
    np.testing.assert_allclose(model.predict(X, offset=o), np.exp(o) * model.predict(X))
    assert np.sum(model.predict(X, offset=o)) == pytest.approx(y.sum(), rel=1e-6)  # the intercept


@pytest.mark.parametrize(
    "model",
    [ac.PoissonRegressor(alpha=0.01), ac.GammaRegressor(alpha=0.01),
     ac.TweedieRegressor(power=1.4, alpha=0.01, l1_ratio=0.3)],
    ids=lambda m: type(m).__name__,
)  # fmt: skip
def test_exposure_of_a_deviance(model, rows):
    """An offset o is a factor exp(o) of what is expected: b exp(-o), with the weights of that."""
    X, o = rows["X"][:, :3] * 0.1, rows["offset"]
    y = np.random.default_rng(2).gamma(2.0, np.exp(X[:, 0] + o))
    power = {"PoissonRegressor": 1.0, "GammaRegressor": 2.0}.get(type(model).__name__, 1.4)
    found = clone(model).set_params(tol=1e-10).fit(X, y, offset=o)
    w = np.exp((2.0 - power) * o)
    other = clone(model).set_params(tol=1e-10, alpha=model.alpha / w.mean())
    other.fit(X, y * np.exp(-o), sample_weight=w)
    assert found.relative_gap_ <= 1e-10
    np.testing.assert_allclose(found.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(found.predict(X, offset=o), np.exp(o) * found.predict(X))


def test_offsets_can_be_routed(rows):
    X, y, o = rows["X"], rows["regression"], rows["offset"]
    with sklearn.config_context(enable_metadata_routing=True):
        model = ac.Ridge().set_fit_request(offset=True, sample_weight=False)
        found = cross_validate(
            model, X, y, cv=3, params={"offset": o}, return_estimator=True, return_indices=True
        )
        train = found["indices"]["train"][0]
    want = ac.Ridge().fit(X[train], y[train] - o[train])
    np.testing.assert_allclose(found["estimator"][0].coef_, want.coef_, atol=1e-8)


def test_offsets_of_pipelines_and_searches_can_be_routed(rows):
    X, y, o = rows["X"], rows["regression"], rows["offset"]
    with sklearn.config_context(enable_metadata_routing=True):
        model = ac.LassoCV(cv=3, alphas=4, tol=1e-10).set_fit_request(offset=True)
        scaler = StandardScaler()
        found = make_pipeline(scaler, model).fit(X, y, offset=o)[-1]
        z = make_pipeline(
            scaler, ac.Ridge().set_fit_request(offset=True).set_predict_request(offset=True)
        )
        shifted = z.fit(X, y, offset=o).predict(X, offset=o)
        plain = z.predict(X)
    want = ac.LassoCV(cv=3, alphas=4, tol=1e-10).fit(scaler.fit_transform(X), y - o)
    np.testing.assert_allclose(found.coef_, want.coef_, atol=1e-7)
    np.testing.assert_allclose(shifted, plain + o)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"penalty_factor": [1.0, 2.0]}, ["penalty_factor", "(2,)", "8 columns"]),
        ({"penalty_factor": [1.0] * 7 + [-1.0]}, ["penalty_factor", "-1", "position 7"]),
        ({"bounds": (0.0, 1.0, 2.0)}, ["bounds", "3 elements", "(lower, upper)"]),
        ({"bounds": ([0.0, 1.0], None)}, ["bounds", "lower", "(2,)", "8 columns"]),
        ({"bounds": (1.0, 0.0)}, ["lower=1", "upper=0"]),
        ({"bounds": (np.nan, 0.0)}, ["lower", "nan"]),
    ],
)
def test_bad_columns_get_a_sentence(given, words, rows):
    with pytest.raises(ValueError) as caught:
        ac.Lasso(**given).fit(rows["X"], rows["regression"])
    for word in words:
        assert word in str(caught.value)


def test_bad_offsets_get_a_sentence(rows):
    X, y, m = rows["X"], rows["regression"], rows["several"]
    with pytest.raises(ValueError, match=r"offset has shape \(3,\).*150 rows"):
        ac.Lasso().fit(X, y, offset=np.ones(3))
    with pytest.raises(ValueError, match="offset has the value nan at position 0"):
        ac.Lasso().fit(X, y, offset=np.r_[np.nan, np.ones(149)])
    with pytest.raises(ValueError, match=r"offset has shape \(150,\).*\(150, 3\)"):
        ac.LogisticRegression().fit(X, m, offset=np.ones(150))
    model = ac.Lasso().fit(X, y)
    with pytest.raises(ValueError, match=r"offset has shape \(3,\)"):
        model.predict(X, offset=np.ones(3))


def test_blocks_of_rows_say_what_they_do_not_take(rows):
    blocks = [(rows["X"][:80], rows["regression"][:80]), (rows["X"][80:], rows["regression"][80:])]
    with pytest.raises(ValueError, match="standardize=True: data in blocks of rows"):
        ac.Ridge(standardize=True).fit(blocks, None)
    o = rows["offset"]
    found = ac.Ridge(tol=1e-10).fit(blocks, None, offset=o)
    want = ac.Ridge(tol=1e-10).fit(rows["X"], rows["regression"], offset=o)
    np.testing.assert_allclose(found.coef_, want.coef_, atol=1e-6)


def test_model_files_keep_them(rows, tmp_path):
    model = ac.Lasso(0.1, penalty_factor=np.arange(8.0), bounds=(0, np.inf), standardize=True)
    model.fit(rows["X"], rows["regression"])
    ac.save_model(model, tmp_path / "m.adacoord")
    loaded = ac.load_model(tmp_path / "m.adacoord")
    np.testing.assert_array_equal(loaded.penalty_factor, model.penalty_factor)
    assert loaded.bounds == (0, np.inf) and loaded.standardize
    np.testing.assert_array_equal(loaded.predict(rows["X"]), model.predict(rows["X"]))
