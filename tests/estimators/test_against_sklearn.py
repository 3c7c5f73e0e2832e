"""The same optimum as scikit-learn's classes at a tight tolerance, and a certificate that holds.

Where liblinear penalises the intercept, the judge is another solver of the problem without that
penalty: ``SVC`` and ``SVR`` with a linear kernel, or SciPy's.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.linear_model as sk
from scipy import optimize, sparse
from sklearn import svm

import adacoord as ac

from .reference import LOSS, primal, relative_gap

N, D = 60, 7


def make(kind, dtype, weighted, regression):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)
    X = X.astype(dtype)
    z = X @ rng.standard_normal(D) + 0.4 + 0.8 * rng.standard_normal(N)
    y = z if regression else np.where(z > 0.0, 1, -1)
    w = rng.integers(0, 4, N).astype(float) if weighted else None
    return (sparse.csr_matrix(X) if kind == "csr" else X), y, w


def by_scipy(loss, C):
    """Minimise C sum w phi + |x|^2/2, the intercept free, for a loss with a slope."""

    def fit(X, y, w, intercept):
        A = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        w = np.ones(N) if w is None else w

        def objective(v):
            x, c = v[:D], v[D] if intercept else 0.0
            return C * np.sum(w * LOSS[loss](A @ x + c, y)) + 0.5 * x @ x

        def slope(v):
            x, c = v[:D], v[D] if intercept else 0.0
            z = A @ x + c
            r = {
                "squared_hinge": lambda: -2.0 * y * np.maximum(0.0, 1.0 - y * z),
                "smooth_hinge": lambda: -y * np.clip(1.0 - y * z, 0.0, 1.0),
                "squared_epsilon_insensitive": lambda: 2.0 * (z - y),
            }[loss]()
            g = C * (w * r) @ A + x
            return np.append(g, C * np.sum(w * r)) if intercept else g

        start = np.zeros(D + intercept)
        v = optimize.minimize(
            objective, start, jac=slope, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}
        ).x
        return v[:D], v[D] if intercept else 0.0

    return fit


def by_sklearn(make_model):
    def fit(X, y, w, intercept):
        X = X.astype(np.float64)
        model = make_model(intercept)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # at tolerances it was not made for
            model.fit(X, y, sample_weight=w)
        coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
        return np.ravel(coef), float(np.ravel(model.intercept_)[0] if intercept else 0.0)

    return fit


def hinge(C):
    """SVC leaves the intercept free; LinearSVC serves without one."""

    def model(intercept):
        if intercept:
            return svm.SVC(kernel="linear", C=C, tol=1e-10)
        return svm.LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-10, max_iter=10**6)

    return by_sklearn(model)


def tube(C, epsilon):
    def model(intercept):
        if intercept:
            return svm.SVR(kernel="linear", C=C, epsilon=epsilon, tol=1e-10)
        return svm.LinearSVR(C=C, epsilon=epsilon, fit_intercept=False, tol=1e-10, max_iter=10**6)

    return by_sklearn(model)


def saga(C, l1_ratio):
    return by_sklearn(
        lambda intercept: sk.LogisticRegression(
            C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-9, max_iter=10**5, fit_intercept=intercept
        )
    )


#: estimator, its judge, the name of its loss, and (l1, l2) in the scaling of the papers
CASES = {
    "svc-hinge": (ac.LinearSVC(loss="hinge", C=0.5), hinge(0.5), "hinge", (0, 1 / (0.5 * N))),
    "svc-squared": (
        ac.LinearSVC(C=0.5),
        by_scipy("squared_hinge", 0.5),
        "squared_hinge",
        (0, 1 / (0.5 * N)),
    ),
    "svc-smooth": (
        ac.LinearSVC(loss="smooth_hinge"),
        by_scipy("smooth_hinge", 1.0),
        "smooth_hinge",
        (0, 1 / N),
    ),
    "svr": (ac.LinearSVR(C=0.5), tube(0.5, 0.0), "epsilon_insensitive", (0, 1 / (0.5 * N))),
    "svr-squared": (
        ac.LinearSVR(C=0.5, loss="squared_epsilon_insensitive"),
        by_scipy("squared_epsilon_insensitive", 0.5),
        "squared_epsilon_insensitive",
        (0, 1 / (0.5 * N)),
    ),
    "logistic": (
        ac.LogisticRegression(C=2.0),
        by_sklearn(
            lambda i: sk.LogisticRegression(C=2.0, tol=1e-10, max_iter=10**4, fit_intercept=i)
        ),
        "logistic",
        (0, 1 / (2.0 * N)),
    ),
    "logistic-l1": (ac.LogisticRegression(l1_ratio=1.0), saga(1.0, 1.0), "logistic", (1 / N, 0)),
    "logistic-enet": (
        ac.LogisticRegression(l1_ratio=0.4),
        saga(1.0, 0.4),
        "logistic",
        (0.4 / N, 0.6 / N),
    ),
    "ridge": (
        ac.Ridge(alpha=2.0),
        by_sklearn(lambda i: sk.Ridge(alpha=2.0, tol=1e-12, fit_intercept=i)),
        "squared",
        (0, 2.0 / N),
    ),
    "lasso": (
        ac.Lasso(alpha=0.1),
        by_sklearn(lambda i: sk.Lasso(alpha=0.1, tol=1e-13, max_iter=10**5, fit_intercept=i)),
        "squared",
        (0.1, 0),
    ),
    "enet": (
        ac.ElasticNet(alpha=0.1, l1_ratio=0.3),
        by_sklearn(
            lambda i: sk.ElasticNet(
                alpha=0.1, l1_ratio=0.3, tol=1e-13, max_iter=10**5, fit_intercept=i
            )
        ),
        "squared",
        (0.03, 0.07),
    ),
    "erm": (
        ac.ERMRegressor("squared", l1=0.05, l2=0.05),
        by_sklearn(
            lambda i: sk.ElasticNet(
                alpha=0.1, l1_ratio=0.5, tol=1e-13, max_iter=10**5, fit_intercept=i
            )
        ),
        "squared",
        (0.05, 0.05),
    ),
}
REGRESSION = ("svr", "svr-squared", "ridge", "lasso", "enet", "erm")
MEAN_ONE = ("lasso", "enet", "erm")


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("name", CASES)
def test_same_optimum(name, kind, dtype, intercept, weighted):
    estimator, judge, loss, (l1, l2) = CASES[name]
    X, y, w = make(kind, dtype, weighted, name in REGRESSION)
    model = type(estimator)(**{**estimator.get_params(), "fit_intercept": intercept})
    model.fit(X, y, sample_weight=w)
    coef, c = np.ravel(model.coef_).astype(float), float(np.ravel(model.intercept_)[0])
    right, right_c = judge(X, y, w, intercept)
    both, both_right = np.append(coef, c), np.append(right, right_c)
    assert np.max(np.abs(both - both_right)) <= 1e-4 * np.max(np.abs(both_right))
    rounded = model.coef_.dtype == np.float32  # where that keeps to tol
    assert not rounded or dtype == np.float32

    used = np.ones(N) if w is None else w * N / w.sum() if name in MEAN_ONE else w
    A = X.toarray().astype(float) if kind == "csr" else X.astype(float)
    ours = primal(loss, A, y, used, l1, l2, coef, c)
    best = primal(loss, A, y, used, l1, l2, right, right_c)
    assert ours <= best * (1.0 + 1e-6)

    # the certificate, by the textbook
    gap = relative_gap(loss, A, y, used, l1, l2, intercept, coef, c, np.ravel(model.dual_coef_))
    assert gap <= max(model.tol, 1e-6)
    assert model.relative_gap_ <= model.tol
    assert gap <= model.relative_gap_ + 1e-12
    assert rounded or model.history_.relative_gap[-1] == model.relative_gap_


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("intercept", [False, True])
def test_certificate_of_problems_that_are_not_polished(name, intercept):
    """More numbers than count as small: the gap is what the solver left, and it is enough."""
    estimator, _, loss, (l1, l2) = CASES[name]
    rng = np.random.default_rng(0)
    n, d = 1200, 250
    X = sparse.random(n, d, 0.05, format="csr", random_state=1)
    X.data = rng.standard_normal(X.nnz)
    z = X @ rng.standard_normal(d) + 0.3 + rng.standard_normal(n)
    y = z if name in REGRESSION else np.where(z > 0, 1, -1)
    w = rng.uniform(0.5, 2.0, n)
    model = type(estimator)(**{**estimator.get_params(), "fit_intercept": intercept, "tol": 1e-5})
    model.fit(X, y, sample_weight=w)
    if name in MEAN_ONE:
        w = w * n / w.sum()
    else:
        l1, l2 = l1 * N / n, l2 * N / n
    gap = relative_gap(
        loss,
        X,
        y,
        w,
        l1,
        l2,
        intercept,
        np.ravel(model.coef_),
        np.ravel(model.intercept_)[0],
        np.ravel(model.dual_coef_),
    )
    assert gap <= 1e-5 * (1 + 1e-6)
    # up to 1e-11 of P is taken off D for rounding
    assert gap <= model.relative_gap_ + 1e-12
    assert gap == pytest.approx(model.relative_gap_, rel=1e-4, abs=2e-11)


def test_liblinear_intercept():
    """``intercept_scaling`` is liblinear's penalised bias, to the digit."""
    for kind in ("dense", "csr"):
        X, y, w = make(kind, np.float64, True, False)
        for loss in ("hinge", "squared_hinge"):
            ours = ac.LinearSVC(loss=loss, intercept_scaling=2.0).fit(X, y, w)
            theirs = svm.LinearSVC(loss=loss, intercept_scaling=2.0, tol=1e-10, max_iter=10**6)
            theirs.fit(X, y, w)
            np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-6)
        X, y, w = make(kind, np.float64, True, True)
        ours = ac.LinearSVR(epsilon=0.1, intercept_scaling=2.0).fit(X, y, w)
        theirs = svm.LinearSVR(epsilon=0.1, intercept_scaling=2.0, tol=1e-10, max_iter=10**6)
        theirs.fit(X, y, w)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-5)


def test_liblinear_intercept_of_a_logistic_regression(three_classes):
    how = {"solver": "liblinear", "intercept_scaling": 2.0, "C": 0.3}
    for kind in ("dense", "csr"):
        X, y, w = make(kind, np.float64, True, False)
        ours = ac.LogisticRegression(**how, tol=1e-10).fit(X, y, w)
        theirs = sk.LogisticRegression(**how, tol=1e-10, max_iter=10**6).fit(X, y, w)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    # of all classes at once: the coefficient of one more column, if that is what is asked for
    X, y, w = three_classes
    one = ac.LogisticRegression(**how, tol=1e-10).fit(X, y, w)
    wider = np.column_stack([X, np.full(len(X), 2.0)])
    two = ac.LogisticRegression(C=0.3, tol=1e-10, fit_intercept=False).fit(wider, y, w)
    np.testing.assert_allclose(one.coef_, two.coef_[:, :-1], atol=1e-7)
    np.testing.assert_allclose(one.intercept_, 2.0 * two.coef_[:, -1], atol=1e-7)
    assert one.set_params(warm_start=True).fit(X, y, w).n_iter_ <= 2
    search = ac.LogisticRegressionCV(Cs=[0.3], cv=2, intercept_scaling=2.0, tol=1e-10)
    np.testing.assert_allclose(search.fit(X, y, w).intercept_, one.intercept_, atol=1e-6)


@pytest.fixture(scope="module")
def three_classes():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 5))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + rng.standard_normal((90, 3)), axis=1)]
    return X, y, rng.integers(1, 4, 90).astype(float)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0, "b": 0.5, "c": 1.0}])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_multinomial(three_classes, class_weight, fit_intercept):
    X, y, w = three_classes
    settings = {"class_weight": class_weight, "fit_intercept": fit_intercept}
    ours = ac.LogisticRegression(**settings).fit(X, y, w)
    theirs = sk.LogisticRegression(tol=1e-10, max_iter=10**4, **settings).fit(X, y, w)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert ours.relative_gap_ <= 1e-10
    assert list(ours.classes_) == ["a", "b", "c"]


@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0, "b": 0.5, "c": 1.0}])
def test_one_against_the_rest(three_classes, class_weight):
    """liblinear weighs only the one class of each problem: so does LinearSVC."""
    X, y, w = three_classes
    ours = ac.LinearSVC(class_weight=class_weight, fit_intercept=False).fit(X, y, w)
    theirs = svm.LinearSVC(
        class_weight=class_weight, fit_intercept=False, tol=1e-10, max_iter=10**6
    ).fit(X, y, w)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)
    assert ours.dual_gap_.shape == (3,)
    assert (ours.relative_gap_ <= 1e-4).all()
    logistic = ac.LogisticRegression(multi_class="ovr").fit(X, y, w)
    for k, label in enumerate("abc"):
        one = sk.LogisticRegression(tol=1e-10).fit(X, y == label, w)
        np.testing.assert_allclose(logistic.coef_[k], one.coef_[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(logistic.predict_proba(X).sum(axis=1), 1.0)


def test_many_targets_and_signs():
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal((40, 6)), rng.standard_normal((40, 3))
    for ours, theirs in (
        (ac.Ridge(alpha=np.array([0.1, 1.0, 5.0])), sk.Ridge(alpha=np.array([0.1, 1.0, 5.0]))),
        (ac.Ridge(positive=True), sk.Ridge(positive=True, tol=1e-12)),
        (ac.Lasso(alpha=0.05), sk.Lasso(alpha=0.05, tol=1e-13)),
        (ac.Lasso(alpha=0.05, positive=True), sk.Lasso(alpha=0.05, positive=True, tol=1e-13)),
        (
            ac.ElasticNet(alpha=0.1, positive=True),
            sk.ElasticNet(alpha=0.1, positive=True, tol=1e-13),
        ),
    ):
        ours.fit(X, Y)
        theirs.fit(X, Y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-6)
        assert ours.dual_gap_.shape == (3,)
        assert ours.predict(X).shape == (40, 3)


def test_no_penalty_has_no_certificate():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((80, 4)), rng.standard_normal(80)
    labels = X[:, 0] + 2.0 * rng.standard_normal(80) > 0
    plain = sk.LinearRegression().fit(X, y)
    for model in (ac.Ridge(alpha=0.0), ac.Lasso(alpha=0.0), ac.ElasticNet(alpha=0.0)):
        model.fit(X, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-7)
        assert np.isnan(model.dual_gap_)
        assert np.isnan(model.relative_gap_)
    signed = sk.LinearRegression(positive=True).fit(X, y)
    for model in (ac.Ridge(alpha=0.0, positive=True), ac.Lasso(alpha=0.0, positive=True)):
        model.fit(X, y)
        np.testing.assert_allclose(model.coef_, signed.coef_, atol=1e-7)
        assert np.isnan(model.dual_gap_)
    free = sk.LogisticRegression(C=np.inf, tol=1e-10).fit(X, labels)
    for model in (ac.LogisticRegression(C=np.inf), ac.LogisticRegression(penalty=None)):
        model.fit(X, labels)
        np.testing.assert_allclose(model.coef_, free.coef_, rtol=1e-4)
        assert np.isnan(model.dual_gap_)


def test_poisson():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((80, 4))
    y = rng.poisson(np.exp(0.3 * X[:, 0] + 0.5))
    ours = ac.ERMRegressor("poisson", l2=0.1).fit(X, y)
    theirs = sk.PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4)
