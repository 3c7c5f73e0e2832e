"""What an estimator is beyond its optimum: invariances, attributes, and scikit-learn's manners."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import warnings
from numbers import Real

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval, InvalidParameterError
from sklearn.utils.validation import validate_data

import adacoord as ac
from adacoord.estimators.base import FLOATS, _faultless

CLASSIFIERS = [
    ac.LinearSVC(loss="hinge"),
    ac.LinearSVC(),
    ac.LinearSVC(loss="smooth_hinge"),
    ac.LinearSVC(penalty="elasticnet"),
    ac.LogisticRegression(),
    ac.LogisticRegression(l1_ratio=0.5),
    ac.ERMClassifier("squared_hinge", l2=0.01),
]
REGRESSORS = [
    ac.LinearSVR(),
    ac.LinearSVR(loss="squared_epsilon_insensitive"),
    ac.Ridge(),
    ac.Lasso(0.1),
    ac.ElasticNet(0.1),
    ac.ERMRegressor("huber", l2=0.01),
    ac.ERMRegressor("quantile", l2=0.01),
]
EVERY = [*CLASSIFIERS, *REGRESSORS]
SUMS = [m for m in EVERY if "C" in m.get_params()]


def data(model, n=50, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    z = X[:, 0] - X[:, 1] + rng.standard_normal(n)
    return X, (z > 0.2).astype(int) if model in CLASSIFIERS else z


def same(a, b, **tolerance):
    tolerance = {"rtol": 1e-7, "atol": 1e-9, **tolerance}
    np.testing.assert_allclose(a.coef_, b.coef_, **tolerance)
    np.testing.assert_allclose(a.intercept_, b.intercept_, **tolerance)


@pytest.mark.parametrize("model", EVERY, ids=str)
def test_integer_weights_are_repeated_rows(model):
    X, y = data(model)
    w = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = clone(model).fit(X, y, sample_weight=w)
    same(weighted, clone(model).fit(np.repeat(X, w, axis=0), np.repeat(y, w)))


@pytest.mark.parametrize("model", SUMS, ids=str)
def test_weights_and_C_are_one(model):
    X, y = data(model)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    scaled = clone(model).set_params(C=model.C / 10.0).fit(X, y, sample_weight=10.0 * w)
    same(clone(model).fit(X, y, sample_weight=w), scaled)


@pytest.mark.parametrize("model", EVERY, ids=str)
def test_duplicated_and_constant_columns(model):
    X, y = data(model)
    plain = clone(model).fit(X, y)
    constant = clone(model).fit(np.column_stack([X, np.full(len(y), 3.0), np.zeros(len(y))]), y)
    assert constant.relative_gap_ <= constant.tol
    np.testing.assert_allclose(constant.coef_.ravel()[:-2], plain.coef_.ravel(), atol=1e-6)
    # a constant is the intercept's business; what is penalised of it stays small
    np.testing.assert_allclose(np.ravel(constant.coef_)[-2:], 0.0, atol=1e-6)
    twice = clone(model).fit(np.column_stack([X, X]), y)
    assert twice.relative_gap_ <= twice.tol


@pytest.mark.parametrize("model", EVERY, ids=str)
def test_attributes(model):
    X, y = data(model)
    model = clone(model).fit(X, y)
    single = model.coef_.ndim == 1
    assert model.coef_.shape == ((6,) if single else (1, 6))
    assert model.dual_coef_.shape == ((50,) if single else (1, 50))
    assert np.ndim(model.intercept_) == (0 if single else 1)
    assert model.n_features_in_ == 6
    assert np.max(model.n_iter_) >= 1
    assert isinstance(model.solver_, str)
    assert 0.0 <= model.relative_gap_ <= model.tol
    assert model.dual_gap_ >= 0.0
    assert (np.diff(model.history_.passes) > 0).all()
    assert len(model.history_.gap) == len(model.history_.seconds)


@pytest.mark.parametrize("model", EVERY, ids=str)
def test_survives_pickle_joblib_and_repr(model, tmp_path):
    X, y = data(model)
    model = clone(model).fit(X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "m.joblib")):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert copy.relative_gap_ == model.relative_gap_
    assert type(model).__name__ in model._repr_html_()
    assert clone(model).get_params() == model.get_params()


def test_same_seed_same_bits():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    a, b = (ac.LinearSVC(loss="hinge", solver="dcd", random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    a, b = (ac.LinearSVC().fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(a.coef_, b.coef_)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_jobs_change_nothing(n_jobs):
    X, y = load_iris(return_X_y=True)
    same(ac.LinearSVC().fit(X, y), ac.LinearSVC(n_jobs=n_jobs).fit(X, y), rtol=0, atol=0)


def test_named_solvers_reach_the_same_optimum():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    auto = ac.LogisticRegression().fit(X, y)
    for solver in ("apdc", "dcd", "spdc"):
        model = ac.LogisticRegression(solver=solver, tol=1e-12, max_iter=10**4).fit(X, y)
        assert model.solver_ == solver
        # a gap of 1e-12 leaves six digits of a coefficient, not all of them
        np.testing.assert_allclose(model.coef_, auto.coef_, rtol=0, atol=1e-5)


def test_a_solver_that_cannot_is_refused_in_a_sentence():
    X, y = load_iris(return_X_y=True)
    assert ac.LinearSVC(loss="hinge", solver="newton").fit(X, y).solver_ == "newton"  # it is small
    with pytest.raises(ValueError, match='solver="dspdc" needs a smooth loss'):
        ac.LinearSVC(loss="hinge", solver="dspdc").fit(X, y)
    with pytest.raises(ValueError, match="'solver' parameter of Lasso must be a str among"):
        ac.Lasso(solver="simplex").fit(X, y)


# ---- warm starts, limits, interrupts ---------------------------------------------------------


def large(seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(1500, 300, 0.05, format="csr", random_state=seed)
    z = X @ rng.standard_normal(300) + 0.2 * rng.standard_normal(1500)
    return X, z


def test_warm_start_is_shorter():
    X, z = large()
    y = z > 0
    model = ac.LinearSVC(loss="hinge", C=1.0, solver="dcd", warm_start=True, max_iter=5000)
    cold = model.fit(X, y).n_iter_
    assert model.fit(X, y).n_iter_ < 0.2 * cold
    fewer = model.fit(X[:1000], y[:1000])  # other rows: the coefficients alone are kept
    assert fewer.relative_gap_ <= fewer.tol
    assert ac.LinearSVC(solver="dcd").fit(X, y).n_iter_ > 1


def test_not_converged_is_said_once_and_known_to_scikit_learn():
    X, z = large()
    with pytest.warns(SklearnConvergenceWarning, match=r"max_iter=2 .* relative gap of") as seen:
        model = ac.LinearSVC(loss="hinge", C=100.0, max_iter=2).fit(X, np.digitize(z, [-0.3, 0.3]))
    assert len(seen) == 1
    assert issubclass(seen[0].category, ac.ConvergenceWarning)
    assert seen[0].filename == __file__
    assert (model.relative_gap_ > model.tol).any()


def test_interrupt_keeps_the_best_so_far(monkeypatch):
    from adacoord.solvers.dual.dual_cd import DualCoordinateAscent

    X, z = large()
    original, calls = DualCoordinateAscent._pass, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        original(self)

    monkeypatch.setattr(DualCoordinateAscent, "_pass", interrupted)
    y = np.digitize(z, [-0.3, 0.3])
    with pytest.warns(ac.ConvergenceWarning, match="3 of 3 problems .* interrupted after"):
        model = ac.LinearSVC(loss="hinge", solver="dcd", tol=1e-12).fit(X, y)
    assert model.coef_.shape == (3, 300)
    assert model.coef_[0].any()
    assert not model.coef_[2].any()
    assert model.relative_gap_[0] < 1.0
    assert model.predict(X).shape == (1500,)


def test_interrupt_of_several_threads_keeps_the_best_so_far(monkeypatch):
    from adacoord.solvers.dual.dual_cd import DualCoordinateAscent

    X, z = large()
    original, ended = DualCoordinateAscent._pass, []

    def interrupted(self):
        if self.passes == 15:
            ended.append(1)
            if len(ended) == 2:  # both are under way
                os.kill(os.getpid(), signal.SIGINT)  # which the main thread gets, as from a key
        original(self)

    monkeypatch.setattr(DualCoordinateAscent, "_pass", interrupted)
    y = np.digitize(z, [-1.0, -0.3, 0.3, 1.0])
    # a process in the background ignores it from birth
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.warns(ac.ConvergenceWarning, match="of 5 problems .* interrupted after"):
            model = ac.LinearSVC(loss="hinge", solver="dcd", tol=0.0, n_jobs=2, max_iter=10**6).fit(
                X, y
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.coef_.shape == (5, 300)
    assert model.coef_[:2].any(axis=1).all() and (model.relative_gap_[:2] < 1.0).all()
    assert not model.coef_[-1].any() and model.solver_ == "dcd"
    assert model.predict(X).shape == (1500,)


def test_an_error_in_one_of_several_threads_is_raised(monkeypatch):
    from adacoord.solvers.dual.dual_cd import DualCoordinateAscent

    def broken(self):
        raise MemoryError("no more of it")

    X, z = large()
    monkeypatch.setattr(DualCoordinateAscent, "_pass", broken)
    with pytest.raises(MemoryError, match="no more of it"):
        ac.LinearSVC(loss="hinge", solver="dcd", n_jobs=2).fit(X, np.digitize(z, [-0.3, 0.3]))


def test_threads_change_nothing():
    X, z = large()
    y = np.digitize(z, [-0.3, 0.3])
    one, two = (ac.LinearSVC(loss="hinge", n_jobs=k).fit(X, y) for k in (None, 3))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_a_class_without_weight():
    X, z = large()
    y, w = np.digitize(z, [-0.3, 0.3]), np.ones(z.size)
    w[y == 1] = 0.0
    with pytest.raises(ValueError, match="class 1 has only rows of zero weight"):
        ac.LinearSVC().fit(X, y, sample_weight=w)
    w[y == 2] = 0.0
    with pytest.raises(ValueError, match=r"y has one class, .*0.*, once rows of zero"):
        ac.LinearSVC().fit(X, y, sample_weight=w)
    with pytest.raises(ValueError, match="class False has only rows of zero weight"):
        ac.LogisticRegression(class_weight={0: 0.0}).fit(X, y > 0)


@pytest.mark.parametrize("alpha", [[0.5, 3.0, 40.0], (0.5, 3.0, 40.0), np.array([0.5, 3.0, 40.0])])
def test_ridge_takes_one_alpha_a_target(alpha):
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    Y = X @ rng.standard_normal((4, 3)) + rng.standard_normal((50, 3))
    found, other = ac.Ridge(alpha).fit(X, Y), Ridge(np.array(alpha)).fit(X, Y)
    np.testing.assert_allclose(found.coef_, other.coef_, rtol=1e-8)
    np.testing.assert_allclose(found.intercept_, other.intercept_, rtol=1e-8)
    one = ac.Ridge([3.0]).fit(X, Y)
    np.testing.assert_allclose(one.coef_[1], found.coef_[1], rtol=1e-12)
    for bad, sentence in (
        ([1.0, 2.0], "2 != 3"),
        ([1.0, -2.0, 3.0], "alpha has the value -2.0"),
        ([1.0, np.nan, 3.0], "alpha has the value nan"),
        ([[1.0, 2.0, 3.0]], "3 != 3|do not correspond"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ac.Ridge(bad).fit(X, Y)


# ---- scikit-learn's manners ------------------------------------------------------------------


def test_import_is_lazy():
    code = (
        "import sys, adacoord; before = 'sklearn' in sys.modules; adacoord.LinearSVC; "
        "print(before, 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_numba_waits_for_the_first_fit():
    code = (
        "import sys, adacoord as ac; ac.solve, ac.path, ac.Problem, ac.LinearSVC, ac.LassoCV; "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_pipeline_and_grid_search():
    X, y = load_breast_cancer(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), ac.LinearSVC())
    search = GridSearchCV(pipe, {"linearsvc__C": [0.01, 0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    assert search.best_estimator_[-1].relative_gap_ <= 1e-4


def test_metadata_routing():
    X, y = load_diabetes(return_X_y=True)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        ridge = ac.Ridge().set_fit_request(sample_weight=True)
        pipe = make_pipeline(scaler, ridge.set_score_request(sample_weight=True))
        w = np.r_[np.ones(len(y) - 5), np.zeros(5)]
        pipe.fit(X, y, sample_weight=w)
        cross_val_score(pipe, X, y, params={"sample_weight": w})
    plain = make_pipeline(StandardScaler(), ac.Ridge())
    np.testing.assert_raises(
        AssertionError,
        np.testing.assert_allclose,
        pipe[-1].coef_,
        plain.fit(X, y)[-1].coef_,
        rtol=1e-7,
    )


def test_sparsify_and_densify():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = ac.LogisticRegression(l1_ratio=1.0, C=0.1).fit(X, y)
    expected = model.predict(X)
    np.testing.assert_array_equal(model.sparsify().predict(X), expected)
    assert sparse.issparse(model.coef_)
    np.testing.assert_array_equal(model.densify().predict(X), expected)
    lasso = ac.Lasso(alpha=0.1).fit(X, y)
    np.testing.assert_array_equal(lasso.sparse_coef_.toarray()[0], lasso.coef_)


def test_probabilities_only_where_the_loss_has_them():
    assert hasattr(ac.LogisticRegression(), "predict_proba")
    assert hasattr(ac.ERMClassifier("logistic"), "predict_proba")
    assert not hasattr(ac.ERMClassifier("hinge"), "predict_proba")
    assert not hasattr(ac.LinearSVC(), "predict_proba")
    X, y = load_iris(return_X_y=True)
    for model in (
        ac.LogisticRegression(),
        ac.ERMClassifier("multinomial", l2=0.01),
        ac.ERMClassifier(l2=0.01),
    ):
        p = model.fit(X, y).predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)


def test_losses_carry_their_parameters():
    X, y = load_diabetes(return_X_y=True)
    model = ac.ERMRegressor(ac.losses.Quantile(q=0.9), l2=1e-6).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.9, abs=0.02)
    with pytest.raises(ValueError, match="use ERMClassifier"):
        ac.ERMRegressor(ac.losses.Hinge()).fit(X, y)
    with pytest.raises(ValueError, match="use ERMRegressor"):
        ac.ERMClassifier(ac.losses.Huber()).fit(X, y > 100)


def test_data_frames():
    pd = pytest.importorskip("pandas")
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = ac.Ridge().fit(X, y)
    assert list(model.feature_names_in_) == list(X.columns)
    np.testing.assert_array_equal(
        model.predict(X), ac.Ridge().fit(X.to_numpy(), y).predict(X.to_numpy())
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[X.columns[::-1]])
    labels = pd.Series(np.where(y > 100, "high", "low"))
    assert set(ac.LinearSVC().fit(X, labels).predict(X)) <= {"high", "low"}
    pl = pytest.importorskip("polars")
    frame = pl.from_dict({name: X[name].to_numpy() for name in X})
    np.testing.assert_array_equal(ac.Ridge().fit(frame, y).coef_, model.coef_)


def test_callbacks():
    callback = pytest.importorskip("sklearn.callback")
    del callback

    class Recorder:
        def __init__(self, stop_after=None):
            self.begun, self.ended, self.coefs, self.stop_after = 0, 0, [], stop_after

        def setup(self, estimator, context):
            self.ready = True

        def on_fit_task_begin(self, estimator, context, **data):
            self.begun += 1

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, **data):
            self.ended += 1
            if fitted_estimator is not None:
                self.coefs.append(fitted_estimator.coef_)
            return self.stop_after is not None and self.ended >= self.stop_after

        def teardown(self, estimator, context):
            self.over = True

    X, z = large()
    for target, subtasks in ((z > 0, 3), (np.digitize(z, [-0.3, 0.3]), 3)):
        recorder = Recorder()
        model = ac.LinearSVC(loss="hinge", solver="dcd").set_callbacks(recorder).fit(X, target)
        assert recorder.begun == recorder.ended >= subtasks + 1
        assert recorder.over
        assert model.coef_.any()
    recorder = Recorder(stop_after=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who asks to stop is not told that it stopped
        model = ac.LinearSVC(loss="hinge", solver="dcd", tol=1e-9).set_callbacks(recorder)
        model.fit(X, z > 0)
    assert model.relative_gap_ > 1e-9


def test_progress_bar(capsys):
    callback = pytest.importorskip("sklearn.callback")
    X, z = large()
    ac.Lasso(alpha=1e-3).set_callbacks(callback.ProgressBar()).fit(X, z)
    search = GridSearchCV(ac.Ridge(), {"alpha": [0.1, 1.0]}, cv=2)
    search.set_callbacks(callback.ProgressBar()).fit(X, z)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [float, int, bool, np.float32])
def test_arrays_without_a_fault_are_what_scikit_learn_hands_back(dtype, order, kind):
    """Its checks are left out only where they change nothing, and note the same."""
    rng = np.random.default_rng(0)
    X = np.array(rng.standard_normal((20, 3)), dtype=dtype, order=order)
    y = rng.integers(0, 2, 20).astype(kind)
    matrix = _faultless(X, y)
    assert matrix is not None and np.shares_memory(matrix.entries, X)
    model, plain = ac.LinearSVC(), ac.LinearSVC()
    checked = validate_data(plain, X, y, accept_sparse=("csr", "csc"), dtype=FLOATS)
    for given, theirs, ours in zip((X, y), checked, model._checked(X, y, None)[:2], strict=True):
        assert ours is given and np.shares_memory(theirs, given)
        np.testing.assert_array_equal(theirs, given)
    assert vars(model) == vars(plain)


@pytest.mark.parametrize("kind", [float, int, np.float32])
@pytest.mark.parametrize("width", [1, 3])
def test_several_targets_without_a_fault_are_what_scikit_learn_hands_back(kind, width):
    """Where the class takes them; what another class says of them is left to scikit-learn."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), rng.integers(0, 9, (20, width)).astype(kind)
    how = {"multi_output": True, "y_numeric": True}
    model, plain = ac.Ridge(), ac.Ridge()
    checked = validate_data(plain, X, y, accept_sparse=("csr", "csc"), dtype=FLOATS, **how)
    ours = model._checked(X, y, None, **how)
    assert ours[1] is y and ours[3] is not None and np.shares_memory(checked[1], y)
    np.testing.assert_array_equal(checked[1], y)
    assert vars(model) == vars(plain)
    assert _faultless(X, y) is None
    assert _faultless(X, y[:, :0], True) is None
    assert _faultless(X, y[:, :, None], True) is None


def test_names_of_features_are_forgotten():
    pandas = pytest.importorskip("pandas")
    X, y = data(ac.Ridge())
    model = ac.Ridge().fit(pandas.DataFrame(X, columns=list("abcdef")), y)
    assert list(model.feature_names_in_) == list("abcdef")
    assert not hasattr(model.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("where", ["X", "y"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_faults_are_left_to_scikit_learn(where, value):
    """Sums that overflow, too, and without a warning."""
    X, y = data(ac.Ridge())
    array = {"X": X, "y": y}[where]
    array[:2] = value
    assert _faultless(X, y) is None
    with pytest.raises(ValueError, match=r"NaN|infinity|1e\+308"):
        ac.Ridge().fit(X, y)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (ac.Lasso, "alpha"),
        (ac.ElasticNet, "l1_ratio"),
        (ac.ERMRegressor, "l2"),
        (ac.LassoCV, "tol"),
    ],
)
def test_numbers_of_other_floats(make, name, kind):
    """A float32 once warned that the largest float64 overflows; tol took a kernel of its own."""
    X, y = np.eye(12)[:, :4] + 0.1, np.arange(12.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = make(**{name: kind(0.125)}).fit(X, y)
    assert np.array_equal(made.coef_, make(**{name: 0.125}).fit(X, y).coef_)


def test_parameters_are_checked_again_when_they_change():
    """Also where they are equal, and only their types differ; what was refused is, again."""
    X, y = data(ac.Ridge())
    model = ac.Ridge(fit_intercept=True).fit(X, y)
    for wrong in ({"fit_intercept": 1}, {"tol": -1.0}, {"solver": "none"}, {"max_iter": 1.0}):
        for _ in range(2):
            with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
                clone(model).set_params(**wrong).fit(X, y)
    assert clone(model).set_params(tol=np.float64(1e-3)).fit(X, y).relative_gap_ <= 1e-3


def test_parameters_are_checked_again_when_a_class_is_given_other_constraints(monkeypatch):
    X, y = data(ac.Ridge())
    ac.Ridge(alpha=3.0).fit(X, y)
    little = {"alpha": [Interval(Real, 0.0, 1.0, closed="both")]}
    monkeypatch.setattr(
        ac.Ridge, "_parameter_constraints", ac.Ridge._parameter_constraints | little
    )
    with pytest.raises(InvalidParameterError, match="alpha"):
        ac.Ridge(alpha=3.0).fit(X, y)
