"""The cross-validated estimators: scikit-learn's choice and a hand-written loop's, certified."""

from __future__ import annotations

import pickle
import time
import warnings

import numpy as np
import pytest
import sklearn
import sklearn.linear_model as sk
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import adacoord as ac

TIGHT = {"tol": 1e-10, "max_iter": 10**5}


def close(a, b, share=1e-4):
    """Within ``share`` of the largest."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    assert a.shape == b.shape
    assert np.max(np.abs(a - b)) <= share * np.max(np.abs(b))


def weights_of(n, seed=2):
    return np.random.default_rng(seed).integers(0, 4, n).astype(float)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


# ---- LassoCV and ElasticNetCV ----------------------------------------------------------------

PENALTIES = {
    "lasso": (ac.LassoCV, sk.LassoCV, {}),
    "lasso-positive": (ac.LassoCV, sk.LassoCV, {"positive": True}),
    "enet": (ac.ElasticNetCV, sk.ElasticNetCV, {"l1_ratio": [0.2, 0.9]}),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("name", PENALTIES)
def test_scikit_learns_choice_of_alpha(diabetes, name, kind, intercept, weighted):
    X, y = diabetes
    ours, theirs, settings = PENALTIES[name]
    settings = {
        **settings,
        "alphas": 12,
        "fit_intercept": intercept,
        "cv": list(KFold(4, shuffle=True, random_state=0).split(X)),
    }
    A = sparse.csr_matrix(X) if kind == "csr" else X
    w = weights_of(len(y)) if weighted else None
    a = ours(**settings).fit(A, y, sample_weight=w)
    b = theirs(**{**settings, "alphas": 12, **TIGHT}).fit(A, y, sample_weight=w)
    np.testing.assert_allclose(a.alphas_, b.alphas_, rtol=1e-10)
    assert a.alpha_ == pytest.approx(b.alpha_, rel=1e-10)
    np.testing.assert_allclose(a.mse_path_, b.mse_path_, rtol=1e-6)
    close(a.coef_, b.coef_)
    assert a.intercept_ == pytest.approx(b.intercept_, rel=1e-4)
    assert getattr(a, "l1_ratio_", None) == getattr(b, "l1_ratio_", None)
    assert a.path_gaps_.shape == a.mse_path_.shape
    assert a.path_gaps_.max() <= a.tol
    assert a.relative_gap_ <= a.tol


def test_hand_written_loop_over_alphas(diabetes):
    X, y = diabetes
    w = weights_of(len(y))
    alphas, folds = [1.0, 0.1, 0.01], list(KFold(3).split(X))
    errors = np.array(
        [
            [
                np.average(
                    (ac.Lasso(alpha).fit(X[train], y[train], w[train]).predict(X[test]) - y[test])
                    ** 2,
                    weights=w[test],
                )
                for train, test in folds
            ]
            for alpha in alphas
        ]
    )
    model = ac.LassoCV(alphas=alphas[::-1], cv=folds).fit(X, y, w)
    np.testing.assert_allclose(model.alphas_, alphas)
    np.testing.assert_allclose(model.mse_path_, errors, rtol=1e-8)
    assert model.alpha_ == alphas[np.argmin(errors.mean(axis=1))]
    np.testing.assert_allclose(model.coef_, ac.Lasso(model.alpha_).fit(X, y, w).coef_, rtol=1e-8)


def test_numbers_of_alphas(diabetes):
    X, y = diabetes
    assert ac.LassoCV(cv=2).fit(X, y).alphas_.shape == (100,)
    for how in ({"alphas": 7}, {"n_alphas": 7}, {"n_alphas": 7, "alphas": None}):
        assert ac.LassoCV(**how, cv=2).fit(X, y).alphas_.shape == (7,)
    both = ac.ElasticNetCV(l1_ratio=[0.5, 1.0], alphas=7, cv=2).fit(X, y)
    assert both.alphas_.shape == (2, 7)
    assert both.mse_path_.shape == (2, 7, 2)
    given = ac.ElasticNetCV(l1_ratio=[0.5, 1.0], alphas=[0.1, 1.0], n_alphas=7, cv=2).fit(X, y)
    np.testing.assert_array_equal(given.alphas_, [1.0, 0.1])
    ridge = ac.ElasticNetCV(l1_ratio=0.0, alphas=[0.1, 0.0], cv=2).fit(X, y)
    assert np.isnan(ridge.path_gaps_[1]).all()
    signed = ac.LassoCV(alphas=[0.1, 0.0], cv=2, positive=True).fit(X, y)
    assert (signed.coef_ >= 0.0).all()
    constant = ac.LassoCV(alphas=3, cv=2).fit(X, np.full(len(y), 2.0))
    assert not constant.coef_.any()


# ---- RidgeCV ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(60, 700), (900, 500)])
@pytest.mark.parametrize("apart", [False, True])
def test_the_decomposition_leaves_nothing_to_solve(shape, apart):
    """Its model of all rows, with weights and several targets, is the start of the last fit."""
    rng = np.random.default_rng(12)
    X = rng.standard_normal(shape) * 3.0 + 1.0
    Y = X[:, :2] + rng.standard_normal((shape[0], 2)) * [0.1, 30.0] + 4.0
    w = rng.exponential(1.0, shape[0])
    w[3] = 0.0
    model = ac.RidgeCV((0.01, 1.0, 1e4), alpha_per_target=apart, tol=1e-6).fit(X, Y, w)
    assert [int(h.passes[-1]) for h in model.history_] == [0, 0]
    assert np.max(model.relative_gap_) <= 1e-6
    for j, alpha in enumerate(np.broadcast_to(model.alpha_, 2)):
        exact = sk.Ridge(alpha, solver="cholesky").fit(X, Y[:, j], w)
        np.testing.assert_allclose(model.coef_[j], exact.coef_, rtol=1e-6, atol=1e-8)
        assert model.intercept_[j] == pytest.approx(exact.intercept_, rel=1e-6)


def ridge_data(shape, seed=0, targets=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.6) + 0.3
    Y = X[:, :3] @ rng.standard_normal((3, targets or 1)) + rng.standard_normal(
        (shape[0], targets or 1)
    )
    return X, (Y if targets else Y[:, 0])


@pytest.mark.parametrize("mode", ["eigen", "svd"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("shape", [(14, 5), (10, 16), (8, 8)], ids=str)
def test_leaving_one_out_is_leaving_one_out(shape, intercept, weighted, targets, kind, mode):
    """The closed form against as many fits as there are rows."""
    X, y = ridge_data(shape, targets=targets)
    w = weights_of(len(y), seed=1) if weighted else np.ones(len(y))
    assert not weighted or (w == 0.0).any()
    alphas = (0.03, 1.0, 20.0)
    left_out = np.stack(
        [
            np.stack(
                [
                    sk.Ridge(alpha, fit_intercept=intercept)
                    .fit(np.delete(X, i, 0), np.delete(y, i, 0), np.delete(w, i))
                    .predict(X[i : i + 1])
                    .reshape(y.shape[1:])
                    for i in range(len(y))
                ]
            )
            for alpha in alphas
        ],
        axis=-1,
    )
    A = sparse.csr_matrix(X) if kind == "csr" else X
    settings = {
        "alphas": alphas,
        "fit_intercept": intercept,
        "gcv_mode": mode,
        "store_cv_results": True,
    }
    given = w if weighted else None
    model = ac.RidgeCV(**settings).fit(A, y, given)
    rows = w.reshape(-1, *[1] * y.ndim)
    squares = rows * np.square(y[..., None] - left_out)
    np.testing.assert_allclose(model.cv_results_, squares, rtol=1e-6, atol=1e-9)
    scores = -squares.reshape(-1, 3).mean(axis=0)
    assert model.alpha_ == alphas[np.argmax(scores)]
    assert model.best_score_ == pytest.approx(scores.max())
    judge = sk.Ridge(model.alpha_, fit_intercept=intercept).fit(X, y, given)
    np.testing.assert_allclose(model.coef_, judge.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, judge.intercept_, rtol=1e-6, atol=1e-9)
    predicted = ac.RidgeCV(**settings, scoring="neg_mean_squared_error").fit(A, y, given)
    np.testing.assert_allclose(predicted.cv_results_, left_out, rtol=1e-6, atol=1e-9)
    best = max(-mean_squared_error(y, left_out[..., k], sample_weight=given) for k in range(3))
    assert predicted.best_score_ == pytest.approx(best)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("cv", [None, 4])
def test_scikit_learns_ridge(diabetes, cv, kind):
    X, y = diabetes
    A = sparse.csr_matrix(X) if kind == "csr" else X
    alphas = np.logspace(-3, 2, 6)
    w = weights_of(len(y)) + 1.0
    for targets in (y, np.column_stack([y, X[:, 2]])):
        a, b = ac.RidgeCV(alphas, cv=cv).fit(A, targets), sk.RidgeCV(alphas, cv=cv).fit(X, targets)
        assert a.alpha_ == b.alpha_
        assert a.best_score_ == pytest.approx(b.best_score_, rel=1e-6)
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)
        with sklearn.config_context(enable_metadata_routing=True):  # theirs then weighs the scores
            b = sk.RidgeCV(alphas, cv=cv).fit(X, targets, sample_weight=w)
        a = ac.RidgeCV(alphas, cv=cv).fit(A, targets, w)
        assert a.alpha_ == b.alpha_
        assert a.best_score_ == pytest.approx(b.best_score_, rel=1e-6)
        np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)
        assert (np.asarray(a.relative_gap_) <= a.tol).all()
    if cv:
        assert a.path_gaps_.shape == (6, 4)
        assert a.path_gaps_.max() <= a.tol


def test_an_alpha_for_each_target():
    X, Y = ridge_data((30, 6), targets=3)
    Y[:, 0] = X[:, 0]
    a, b = (
        c((0.01, 1.0, 100.0), alpha_per_target=True).fit(X, Y) for c in (ac.RidgeCV, sk.RidgeCV)
    )
    np.testing.assert_array_equal(a.alpha_, b.alpha_)
    np.testing.assert_allclose(a.best_score_, b.best_score_)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)
    assert a.relative_gap_.shape == (3,)


def test_scorers_of_ridge(diabetes):
    X, y = diabetes
    w = weights_of(len(y)) + 1.0
    plain = ac.RidgeCV(cv=3, scoring=lambda model, X, y: r2_score(y, model.predict(X))).fit(X, y, w)
    heavy = ac.RidgeCV(cv=3).fit(X, y, w)
    assert plain.best_score_ != heavy.best_score_  # the function takes no weights
    with pytest.raises(ValueError, match="cv!=None and alpha_per_target=True are incompatible"):
        ac.RidgeCV(cv=3, alpha_per_target=True).fit(X, y)
    with pytest.raises(ValueError, match=r"alphas\[1\] == 0.0, must be > 0.0"):
        ac.RidgeCV((1.0, 0.0)).fit(X, y)
    with pytest.raises(ValueError, match="n_samples=1 of positive weight: leaving one out"):
        ac.RidgeCV().fit(X[:5], y[:5], [0, 0, 1, 0, 0])


# ---- classifiers -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("name", ["cancer", "digits", "iris"])
def test_scikit_learns_choice_of_C(name, kind, intercept, weighted, cancer):
    X, y = cancer
    if name != "cancer":
        X, y = (load_digits if name == "digits" else load_iris)(return_X_y=True)
        X, y = X[y < 3] / X.max(), y[y < 3]
        X, y = X[::3], y[::3]
    settings = {
        "Cs": [1e-3, 0.1, 1.0, 10.0],
        "fit_intercept": intercept,
        "scoring": "neg_log_loss",
        "class_weight": "balanced" if weighted else None,
        "cv": list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)),
        "l1_ratios": (0.0,),
        "use_legacy_attributes": False,
    }
    A = sparse.csr_matrix(X) if kind == "csr" else X
    w = 1.0 + weights_of(len(y)) if weighted else None
    a = ac.LogisticRegressionCV(**settings).fit(A, y, sample_weight=w)
    b = sk.LogisticRegressionCV(**settings, solver="newton-cholesky", tol=1e-10).fit(
        A, y, sample_weight=w
    )
    assert a.C_ == b.C_
    assert a.l1_ratio_ == b.l1_ratio_ == 0.0
    np.testing.assert_array_equal(a.Cs_, b.Cs_)
    np.testing.assert_allclose(a.scores_, b.scores_, rtol=1e-6)
    close(a.coef_, b.coef_)
    if intercept:
        close(a.intercept_, b.intercept_)
        sums = (p[..., -1].sum(axis=-1) for p in (a.coefs_paths_, b.coefs_paths_))
        assert name == "cancer" or max(np.abs(s).max() for s in sums) < 1e-8
    close(a.coefs_paths_, b.coefs_paths_)
    assert a.path_gaps_.shape == a.scores_.shape == a.n_iter_.shape
    assert a.path_gaps_.max() <= a.tol
    assert a.score(A, y) == pytest.approx(b.score(A, y), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("l1_ratios", [None, np.array([0.0, 0.3])], ids=["none", "two"])
@pytest.mark.parametrize("classes", [2, 3])
def test_shapes_of_the_attributes(classes, l1_ratios, refit):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], np.array(["a", "b", "c"])[y[y < classes]]
    for legacy in (True, False):
        settings = {
            "Cs": [0.01, 0.1],
            "l1_ratios": l1_ratios,
            "refit": refit,
            "cv": 3,
            "use_legacy_attributes": legacy,
        }
        a = ac.LogisticRegressionCV(**settings, tol=1e-9).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            b = sk.LogisticRegressionCV(
                **settings, solver="saga", max_iter=10**5, tol=1e-9, scoring=None
            ).fit(X, y)
        close(a.coef_, b.coef_)
        np.testing.assert_array_equal(a.C_, b.C_)
        for name in ("C_", "n_iter_", "coef_", "intercept_", "Cs_", "l1_ratios_"):
            assert np.shape(getattr(a, name)) == np.shape(getattr(b, name)), name
        if l1_ratios is not None:
            np.testing.assert_allclose(a.l1_ratio_, b.l1_ratio_)
        for name in ("scores_", "coefs_paths_"):
            found, known = getattr(a, name), getattr(b, name)
            if legacy:
                assert list(found) == list(known)
            for label in known if legacy else [...]:
                close(found[label], known[label], 1e-3)
        assert np.isnan(a.relative_gap_) == (not refit)
        np.testing.assert_array_equal(a.predict(X), b.predict(X))


SEARCHES = {
    "svm": (ac.LinearSVCCV(loss="hinge"), ac.LinearSVC(loss="hinge"), [0.0]),
    "svm-l1": (ac.LinearSVCCV("l1"), ac.LinearSVC("l1"), [1.0]),
    "svm-bias": (ac.LinearSVCCV(intercept_scaling=2.0), ac.LinearSVC(intercept_scaling=2.0), [0.0]),
    "svm-enet": (
        ac.LinearSVCCV("elasticnet", "smooth_hinge", l1_ratios=[0.3, 0.8]),
        ac.LinearSVC("elasticnet", "smooth_hinge"),
        [0.3, 0.8],
    ),
    "logistic-enet": (
        ac.LogisticRegressionCV(l1_ratios=[0.3, 0.8], use_legacy_attributes=False),
        ac.LogisticRegression(),
        [0.3, 0.8],
    ),
    "logistic-l1": (
        ac.LogisticRegressionCV(penalty="l1", use_legacy_attributes=False),
        ac.LogisticRegression(),
        [1.0],
    ),
    "logistic-ovr": (
        ac.LogisticRegressionCV(multi_class="ovr", use_legacy_attributes=False),
        ac.LogisticRegression(multi_class="ovr"),
        [0.0],
    ),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", SEARCHES)
def test_hand_written_loop_over_C(name, classes):
    search, plain, ratios = SEARCHES[name]
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 5)) + 0.5
    y = np.argmax(X[:, :classes] + rng.standard_normal((60, classes)), axis=1)
    w = rng.uniform(0.5, 2.0, 60)
    Cs, folds = [1.0, 0.03, 0.2], list(StratifiedKFold(3).split(X, y))
    scores = np.empty((3, len(ratios), 3))
    for f, (train, test) in enumerate(folds):
        for i, ratio in enumerate(ratios):
            for j, C in enumerate(Cs):
                model = clone(plain).set_params(C=C, l1_ratio=ratio)
                model.fit(X[train], y[train], w[train])
                scores[f, i, j] = np.average(model.predict(X[test]) == y[test], weights=w[test])
    # l1 with more than two classes has no last digits: apdc, to a tolerance
    loose = name in ("logistic-enet", "logistic-l1") and classes == 3
    plain = clone(plain).set_params(tol=1e-9 if loose else 1e-4)
    found = clone(search).set_params(Cs=Cs, cv=folds, tol=plain.tol).fit(X, y, w)
    np.testing.assert_allclose(found.scores_, scores)
    j, i = np.unravel_index(np.argmax(scores.sum(axis=0).T), (3, len(ratios)))
    assert Cs[j] == found.C_
    assert found.l1_ratio_ == ratios[i]
    best = clone(plain).set_params(C=Cs[j], l1_ratio=ratios[i]).fit(X, y, w)
    close(found.coef_, best.coef_, 1e-4 if loose else 1e-7)
    close(found.intercept_, best.intercept_, 1e-4 if loose else 1e-7)
    assert found.path_gaps_.max() <= found.tol
    assert np.max(found.relative_gap_) <= found.tol


def test_the_paths_certificates_hold():
    """More numbers than count as small: P is as near to its least value as the gap says."""
    rng = np.random.default_rng(0)
    X = sparse.random(1500, 300, 0.05, format="csr", random_state=1)
    y = np.where(X @ rng.standard_normal(300) + 0.2 * rng.standard_normal(1500) > 0, 1, -1)
    folds = list(KFold(2).split(X))
    model = ac.LinearSVCCV(loss="hinge", Cs=[0.1, 10.0], cv=folds, tol=1e-3).fit(X, y)
    assert 0.0 < model.path_gaps_.max() <= 1e-3
    for f, (train, _) in enumerate(folds):
        for j, C in enumerate(model.Cs_):
            problem = ac.Problem(
                X[train], y[train], "hinge", l2=1.0 / (train.size * C), intercept=True
            )
            best = ac.solve(problem, tol=1e-9, max_passes=10**5).primal  # no less than the least
            *x, c = model.coefs_paths_[f, 0, j, 0]
            value = problem.primal(np.array(x), float(c))
            assert value - best <= model.path_gaps_[f, 0, j] * value * (1.0 + 1e-6)


@pytest.mark.parametrize("more", [{}, {"penalty_factor": [1.0, 0.1, 2.0]}, {"bounds": (0.1, 2)}])
def test_a_fold_with_one_of_several_classes(more):
    """Its intercepts grow for ever: 1,000 passes for each C, and no gap."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.r_[np.zeros(20, int), np.arange(20) % 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ac.ConvergenceWarning)
        model = ac.LogisticRegressionCV(
            Cs=[0.1, 1.0], l1_ratios=(0.0, 1.0), cv=KFold(2), use_legacy_attributes=False, **more
        ).fit(X, y)
    alone = model.coefs_paths_[1]
    assert model.path_gaps_.max() <= 1e-4 and model.n_iter_[1].max() == 1
    assert (alone[..., 0, -1] > 1e2).all() and (alone[..., 1:, -1] < -1e2).all()
    assert (alone[..., :-1] == (0.1 if "bounds" in more else 0.0)).all()
    assert np.abs(model.intercept_).max() < 1e2


def test_folds_that_lack_a_class():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    folds = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in range(3)]
    for model in (
        ac.LogisticRegressionCV(scoring="neg_log_loss"),
        ac.LinearSVCCV(),
        ac.LogisticRegressionCV(multi_class="ovr"),
        ac.LogisticRegressionCV(fit_intercept=False),
    ):
        model.set_params(Cs=[0.1, 1.0], cv=folds).fit(X, y)
        assert model.path_gaps_.max() <= model.tol
        assert model.score(X, y) > (0.8 if model.scoring is None else -1.0)
    two, label = X[y < 2], y[y < 2]
    for intercept in (True, False):  # one class alone, and then the other
        model = ac.LinearSVCCV(loss="hinge", Cs=[0.1], cv=folds_of(label), fit_intercept=intercept)
        assert model.fit(two, label).coef_.shape == (1, 4)
        assert not intercept or not model.scores_.any()  # who knows one class names no other


def folds_of(label):
    return [(np.flatnonzero(label == k), np.flatnonzero(label != k)) for k in (0, 1)]


# ---- manners ---------------------------------------------------------------------------------

EVERY = [
    ac.LassoCV(alphas=5),
    ac.ElasticNetCV(alphas=5),
    ac.RidgeCV(),
    ac.RidgeCV(cv=3),
    ac.LogisticRegressionCV(Cs=3),
    ac.LinearSVCCV(Cs=[0.1, 1.0]),
]


@pytest.mark.parametrize("model", EVERY, ids=str)
def test_copies_types_and_threads(model):
    X, y = load_iris(return_X_y=True)
    one = clone(model).fit(X, y)
    many = clone(model).set_params(n_jobs=2).fit(X, y)
    for other in (many, pickle.loads(pickle.dumps(one))):
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert clone(one).get_params() == model.get_params()
    single = clone(model).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, one.coef_, rtol=1e-3, atol=1e-4)
    assert np.max(one.relative_gap_) <= 1e-10
    assert type(model).__name__ in one._repr_html_()


def test_what_stopped_early_is_said_once():
    rng = np.random.default_rng(0)
    X = sparse.random(1500, 300, 0.05, format="csr", random_state=0)
    z = X @ rng.standard_normal(300)
    for model, target in (
        (ac.LinearSVCCV(loss="hinge", Cs=[1.0, 100.0]), z > 0),
        (ac.LinearSVCCV(loss="hinge", Cs=[1.0, 100.0], refit=False), z > 0),
        (ac.LassoCV(alphas=4, solver="cd"), z),
    ):
        model.set_params(cv=2, max_iter=1)
        with pytest.warns(ac.ConvergenceWarning, match=r"\d of \d points of the folds") as seen:
            model.fit(X, target)
        assert len(seen) == 1
        assert seen[0].filename == __file__


def test_progress_is_shown(capsys):
    X, y = load_iris(return_X_y=True)
    ac.LogisticRegressionCV(Cs=2, cv=3, verbose=1).fit(X, y)
    assert "fold 3 of 3: 2 points" in capsys.readouterr().err


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_of_the_paths_is_an_interrupt(monkeypatch, n_jobs):
    from adacoord.solvers.dual.dual_cd import DualCoordinateAscent

    X, y = load_iris(return_X_y=True)
    original, calls = DualCoordinateAscent._pass, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        original(self)

    monkeypatch.setattr(DualCoordinateAscent, "_pass", interrupted)
    model = ac.LinearSVCCV(solver="dcd", n_jobs=n_jobs, Cs=[1.0], tol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "coef_")
    seen = len(calls)
    time.sleep(0.2)
    assert len(calls) == seen  # no thread goes on


def test_metadata_is_routed():
    X, y = load_iris(return_X_y=True)
    groups, w = np.arange(150) % 5, weights_of(150) + 1.0
    with sklearn.config_context(enable_metadata_routing=True):
        cv = GroupKFold(5).set_split_request(groups=True)
        known = list(GroupKFold(5).split(X, y, groups))
        for model in (ac.LassoCV(alphas=3), ac.RidgeCV(), ac.LogisticRegressionCV(Cs=2)):
            by_group = clone(model).set_params(cv=cv).fit(X, y, groups=groups)
            by_list = clone(model).set_params(cv=known).fit(X, y)
            np.testing.assert_array_equal(by_group.coef_, by_list.coef_)
        scores = []
        for asked in (True, False):
            scorer = sklearn.metrics.get_scorer("accuracy").set_score_request(sample_weight=asked)
            model = ac.LogisticRegressionCV(Cs=2, scoring=scorer, cv=known)
            model.set_fit_request(sample_weight=True).fit(X, y, sample_weight=w)
            scores.append(model.scores_[0])
            right = model.predict(X) == y
            given = {"sample_weight": w} if asked else {}
            assert model.score(X, y, **given) == pytest.approx(
                np.average(right, weights=w if asked else None)
            )
        assert (scores[0] != scores[1]).any()
    with pytest.raises(ValueError, match="groups"):
        ac.LassoCV().fit(X, y, groups=groups)


def test_errors_are_sentences(diabetes):
    X, y = diabetes
    label = y > 100
    for model, text in (
        (ac.ElasticNetCV(l1_ratio=[0.5, 2.0]), r"l1_ratio=\[0.5, 2.0\]: it must be a number betw"),
        (ac.ElasticNetCV(l1_ratio=0.0), "Automatic alpha grid generation is not supported"),
        (ac.LassoCV(alphas=[1.0, -1.0]), r"alphas\[1\] == -1.0, must be >= 0.0"),
    ):
        with pytest.raises(ValueError, match=text):
            model.fit(X, y)
    with pytest.raises(ValueError, match="use MultiTaskLassoCV of scikit-learn; y has 2 columns"):
        ac.LassoCV().fit(X, np.column_stack([y, y]))
    for model, text in (
        (ac.LogisticRegressionCV(Cs=[1.0, 0.0]), r"Cs=\[1.0, 0.0\]: it must be a number of Cs, or"),
        (ac.LogisticRegressionCV(l1_ratios=[2.0]), "l1_ratios must be an array-like of numbers"),
        (ac.LogisticRegressionCV(penalty="elasticnet"), "l1_ratios must be an array-like"),
        (ac.LinearSVCCV("elasticnet", l1_ratios=["a"]), "l1_ratios must be an array-like"),
    ):
        with pytest.raises(ValueError, match=text):
            model.fit(X, label)
    w = np.r_[np.zeros(200), np.ones(len(y) - 200)]
    with pytest.raises(ValueError, match="zero for every row of a test fold"):
        ac.LassoCV(cv=KFold(4)).fit(X, y, w)
    with pytest.raises(ValueError, match="zero for every row of a test fold"):
        ac.LogisticRegressionCV(cv=KFold(4)).fit(X, label, w)
