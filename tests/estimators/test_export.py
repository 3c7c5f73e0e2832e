"""``to_sklearn``: scikit-learn's own class, with the same predictions."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import adacoord as ac
from adacoord import estimators
from adacoord.estimators.export import _REGRESSORS
from adacoord.problem.losses import LOSSES


def to_sklearn(model):
    return model.to_sklearn()


X = np.random.default_rng(0).standard_normal((90, 4))
Z = X @ [1.0, -2.0, 0.5, 0.0] + 0.3
TWO, THREE = np.where(Z > 0, "yes", "no"), np.searchsorted([-1.0, 1.0], Z) + 1.0
COUNTS = np.floor(np.exp(np.clip(Z, -2, 2)))


def same(model, data=X):
    """The export, whose predictions are the model's."""
    other = to_sklearn(model)
    assert type(other).__module__.startswith("sklearn.")
    one, two = model.predict(data), other.predict(data)
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(one, two)
    else:
        np.testing.assert_allclose(one, two, rtol=1e-12)
    for name in ("decision_function", "predict_proba"):
        assert hasattr(model, name) == hasattr(other, name), name
        if hasattr(model, name):
            np.testing.assert_allclose(
                getattr(other, name)(data), getattr(model, name)(data), rtol=1e-9, atol=1e-14
            )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(other)).predict(data)
    return other


@pytest.mark.parametrize("name", estimators.__all__)
def test_every_estimator(name):
    model = getattr(estimators, name)()
    targets = TWO if hasattr(model, "class_weight") else Z
    if get_tags(model).target_tags.positive_only:
        targets = np.exp(Z)
    if name.startswith("MultiTask"):
        targets = np.column_stack([targets, X[:, 0]])
    other = same(model.fit(X, targets))
    if not name.startswith(("ERM", "LinearSVCCV", "GroupLasso")):
        assert type(other).__name__ == name.removesuffix("CV")
    assert other.coef_ is not model.coef_


@pytest.mark.parametrize(
    "model",
    [
        ac.LinearSVC(loss="hinge", C=3.0),
        ac.LogisticRegression(),
        ac.LogisticRegression(multi_class="ovr"),
        ac.ERMClassifier("logistic"),
        ac.ERMClassifier("multinomial"),
        ac.ERMClassifier("smooth_hinge"),
        ac.LinearSVCCV(Cs=[0.1, 1.0], cv=2),
        ac.LogisticRegressionCV(Cs=[0.1, 1.0], cv=2),
        ac.RidgeClassifier(),
    ],
)
def test_several_classes(model):
    other = same(model.fit(X, THREE))
    np.testing.assert_array_equal(other.classes_, [1.0, 2.0, 3.0])
    same(model.fit(sparse.csr_matrix(X), THREE), sparse.csr_matrix(X))


@pytest.mark.parametrize(
    "loss",
    [
        "squared",
        "huber",
        "epsilon_insensitive",
        "squared_epsilon_insensitive",
        "absolute",
        ac.losses.Quantile(0.9),
        "poisson",
        "gamma",
        ac.losses.Tweedie(1.3),
        "log_cosh",
    ],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_loss_of_regression(loss, fit_intercept):
    targets = COUNTS + 0.5 if loss == "gamma" else COUNTS
    other = same(ac.ERMRegressor(loss, l2=0.1, fit_intercept=fit_intercept).fit(X, targets))
    assert other.fit_intercept == fit_intercept
    if loss == ac.losses.Quantile(0.9):
        assert other.quantile == 0.9


def test_no_loss_is_forgotten():
    assert set(_REGRESSORS) == {name for name, c in LOSSES.items() if c.task != "classification"}


def targets_of(model):
    """Targets that it takes."""
    if hasattr(model, "class_weight"):
        return THREE
    targets = np.exp(Z) if get_tags(model).target_tags.positive_only else Z
    return np.column_stack([Z, -Z]) if type(model).__name__.startswith("MultiTask") else targets


@pytest.mark.parametrize("name", estimators.__all__)
def test_skops(name):
    """Files that nobody has to trust (but for one link function of scikit-learn's own)."""
    sio = pytest.importorskip("skops.io", reason="skops is not installed")
    model = getattr(estimators, name)()
    model.fit(X, targets_of(model))
    written = sio.dumps(model.to_sklearn())
    trusted = sio.get_untrusted_types(data=written)
    assert all(kind.startswith("sklearn._loss.") for kind in trusted)
    back = sio.loads(written, trusted=trusted)
    np.testing.assert_array_equal(back.predict(X), model.to_sklearn().predict(X))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", estimators.__all__)
def test_onnx(name):
    """skl2onnx writes what onnxruntime reads, without Python's classes."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model, rows = getattr(estimators, name)(), X.astype(np.float32)
    y = targets_of(model)
    if hasattr(model, "class_weight"):
        y = y.astype(np.int64)
    model.fit(rows, y)
    written = skl2onnx.to_onnx(model.to_sklearn(), rows[:1]).SerializeToString()
    session = runtime.InferenceSession(written, providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: rows})[0]
    np.testing.assert_allclose(np.ravel(found), np.ravel(model.predict(rows)), rtol=1e-4, atol=1e-5)


def test_parameters():
    found = to_sklearn(ac.LinearSVC(loss="hinge", C=3.0, class_weight="balanced").fit(X, TWO))
    assert (found.loss, found.C, found.class_weight) == ("hinge", 3.0, "balanced")
    search = ac.LassoCV(cv=3).fit(X, Z)
    assert to_sklearn(search).alpha == search.alpha_
    search = ac.LogisticRegressionCV(Cs=[0.1, 1.0], cv=2).fit(X, THREE)
    assert search.C_[0] == to_sklearn(search).C
    targets = np.column_stack([Z, -Z])
    np.testing.assert_array_equal(same(ac.Ridge(alpha=[1.0, 2.0]).fit(X, targets)).alpha, [1, 2])
    # and one that can be fitted again, to the same optimum
    model = ac.LogisticRegression(C=0.3, tol=1e-10).fit(X, THREE)
    again = to_sklearn(model).set_params(tol=1e-10).fit(X, THREE)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-6)


def test_names_of_features():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    same(ac.Ridge().fit(frame, Z), frame)


def test_a_model_of_an_old_file():
    model = ac.ERMClassifier("hinge")
    with pytest.raises(NotFittedError):
        to_sklearn(model)
    model.coef_, model.intercept_, model.classes_ = np.ones((1, 4)), np.zeros(1), np.array([3, 7])
    model.n_features_in_ = 4
    same(model)
