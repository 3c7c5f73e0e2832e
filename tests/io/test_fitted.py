"""Model files of fitted estimators: all of them come back as they were, and nothing else does."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.linear_model import Ridge as OtherRidge
from sklearn.utils import get_tags
from typer.testing import CliRunner

import adacoord as ac
from adacoord import estimators, load_model, save_model
from adacoord.api.monitor import History, Switch
from adacoord.command.cli import app
from adacoord.io import fitted, load_svmlight, save_svmlight
from adacoord.io.digested import read_digested, write_digested


def table(n=60, d=6, seed=0, dtype=np.float64):
    X = np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)
    return X, X @ np.arange(1.0, d + 1.0)


def labels(z, names):
    """As many classes as names, of about the same size."""
    ends = np.quantile(z, np.linspace(0, 1, len(names) + 1)[1:-1])
    return np.asarray(names)[np.searchsorted(ends, z)]


def plain(name, **how):
    """A fit of the class to what it takes."""
    X, z = table()
    model = getattr(estimators, name)(**how)
    target = labels(z, [0, 1]) if is_classifier(model) else z
    if get_tags(model).target_tags.positive_only:
        target = np.exp(z / 4)
    if name.startswith("MultiTask"):
        target = np.column_stack([z, X[:, 0]])
    return model.fit(X, target), X


def assert_same(one, two):
    assert type(one) is type(two), (one, two)
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype and one.shape == two.shape
        np.testing.assert_array_equal(one, two)
    elif sp.issparse(one):
        assert_same(one.toarray(), two.toarray())
    elif isinstance(one, History):
        for f in fields(History):
            assert_same(getattr(one, f.name), getattr(two, f.name))
    elif isinstance(one, dict):
        assert set(one) == set(two)
        for key in one:
            assert_same(one[key], two[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert_same(a, b)
    else:
        assert repr(one) == repr(two)


def round_trip(model, folder):
    save_model(model, folder / "m.adacoord")
    back = load_model(folder / "m.adacoord")
    assert type(back) is type(model)
    assert_same(vars(back), {k: v for k, v in vars(model).items() if k in vars(back)})
    learnt = {k for k in vars(model) if k.endswith("_") and not k.startswith("_")}
    assert learnt | set(model.get_params()) <= set(vars(back))
    save_model(back, folder / "again.adacoord")
    assert (folder / "m.adacoord").read_bytes() == (folder / "again.adacoord").read_bytes()
    return back


@pytest.mark.parametrize("name", estimators.__all__)
def test_every_estimator(name, tmp_path):
    model, X = plain(name)
    back = round_trip(model, tmp_path)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "names", [[3, 1], ["no", "yes"], [False, True], [2.0, 5.0], ["a", "b", "long name"], [7, 8, 9]]
)
@pytest.mark.parametrize("name", ["LinearSVC", "LogisticRegression", "ERMClassifier"])
def test_labels(name, names, tmp_path):
    X, z = table()
    model = getattr(estimators, name)().fit(X, labels(z, names))
    back = round_trip(model, tmp_path)
    assert back.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


def test_labels_out_of_pandas_stay_objects(tmp_path):
    X, z = table()
    model = ac.LogisticRegression().fit(X, labels(z, ["no", "yes"]).astype(object))
    assert round_trip(model, tmp_path).classes_.dtype == object


def test_several_targets_and_penalties(tmp_path):
    X, z = table()
    targets = np.column_stack([z, -2 * z, z**2])
    for model in (ac.Ridge(alpha=np.array([1.0, 2.0, 3.0])), ac.Lasso(alpha=0.1)):
        back = round_trip(model.fit(X, targets), tmp_path)
        assert back.coef_.shape == (3, 6) and len(back.history_) == 3
        np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_float32_and_sparse_coefficients(tmp_path):
    X, z = table(dtype=np.float32)
    model = ac.LinearSVC(penalty="l1").fit(sp.csr_matrix(X), labels(z, [0, 1, 2])).sparsify()
    back = round_trip(model, tmp_path)
    assert back.coef_.dtype == np.float32 and sp.issparse(back.coef_)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    lasso = ac.Lasso(0.1).fit(X, z)
    assert round_trip(lasso, tmp_path).sparse_coef_.dtype == np.float32


def test_names_of_features(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, z = table()
    frame = pandas.DataFrame(X, columns=[f"column {i}" for i in range(6)])
    back = round_trip(ac.Ridge().fit(frame, z), tmp_path)
    assert back.feature_names_in_.dtype == object
    back.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame.rename(columns={"column 0": "other"}))


def test_parameters_of_all_kinds(tmp_path):
    X, z = table()
    y = labels(z, [3, 4])
    model = ac.LinearSVC(
        class_weight={3: 2.0, np.int64(4): 0.5},
        C=np.float64(2.0),
        random_state=5,
        intercept_scaling=1.0,
        dual=True,
    ).fit(X, y)
    assert round_trip(model, tmp_path).class_weight == {3: 2.0, 4: 0.5}
    y[::4] = 7 - y[::4]  # nothing separates them any more
    assert np.isinf(round_trip(ac.LogisticRegression(C=np.inf).fit(X, y), tmp_path).C)
    for loss in (ac.losses.Huber(delta=0.7), ac.losses.Quantile(0.9), ac.losses.Absolute()):
        back = round_trip(ac.ERMRegressor(loss, l2=0.1).fit(X, z), tmp_path)
        assert back.loss == loss
    many = ac.ERMClassifier("multinomial", l2=0.1).fit(X, labels(z, [0, 1, 2]))
    assert round_trip(many, tmp_path).coef_.shape == (3, 6)


def test_a_repaired_history(tmp_path):
    model, _ = plain("Ridge")
    model.history_.switched = Switch(7, "acf", "apdc")
    assert round_trip(model, tmp_path).history_.switched.after == "apdc"


def test_a_loaded_one_goes_on(tmp_path):
    X, z = table(500, 6)
    y = labels(z, [0, 1])
    model = ac.LogisticRegression(warm_start=True, tol=1e-8).fit(X, y)
    back = round_trip(model, tmp_path).fit(X, y)
    assert back.n_iter_[0] <= 2 < model.n_iter_[0] and back.relative_gap_ <= 1e-8
    assert "LogisticRegression" in repr(back) and pickle.loads(pickle.dumps(back)).tol == 1e-8


# --- refusals ---------------------------------------------------------------------------------


class Own(estimators.Ridge):
    """A user's subclass, which only the user's program has."""


def test_what_is_not_saved(tmp_path):
    X, z = table()
    path = tmp_path / "m.adacoord"
    with pytest.raises(ValueError, match=r"model=Ridge\(\): it is not fitted; call fit"):
        save_model(ac.Ridge(), path)
    for foreign in (OtherRidge().fit(X, z), Own().fit(X, z), {"coef_": z}, None):
        with pytest.raises(ValueError, match=f"model={type(foreign).__name__}: save_model takes"):
            save_model(foreign, path)
    with pytest.raises(ValueError, match=r"random_state=RandomState.*set_params"):
        save_model(ac.Ridge(random_state=np.random.RandomState(0)).fit(X, z), path)
    mixed = ac.Ridge().fit(X, z)
    mixed.extra_ = np.array([1, "a", None], dtype=object)
    with pytest.raises(ValueError, match="extra_=array"):
        save_model(mixed, path)
    assert not path.exists()


@pytest.fixture
def saved(tmp_path):
    save_model(plain("LinearSVC")[0], tmp_path / "m.adacoord")
    return tmp_path / "m.adacoord"


def test_damage_is_refused(saved):
    whole = saved.read_bytes()
    for size in (0, 10, 90, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"damaged|not an adacoord model"):
            load_model(saved)
    for place in range(0, len(whole), len(whole) // 50):
        changed = bytearray(whole)
        changed[place] ^= 1
        saved.write_bytes(changed)
        with pytest.raises(ValueError, match=r"damaged|not an adacoord model|reads formats up to"):
            load_model(saved)


def test_a_format_of_the_future(saved):
    _, arrays, facts = read_digested(saved, "MODEL", 3)
    write_digested(saved, "MODEL", 4, arrays, facts)
    with pytest.raises(ValueError, match="has format 4, and this adacoord reads formats up to 3"):
        load_model(saved)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"estimator": "Popen"}, "a 'Popen', which this adacoord does not have"),
        ({"estimator": "annotations"}, "does not have"),
        ({"estimator": ["Ridge"]}, "does not hold a model"),
        ({"params": {"new": 1}}, "LinearSVC has no parameter 'new'"),
        ({"params": None}, "does not hold a model"),
        ({"learnt": {"fit": 1}}, "'fit' is not what a fit leaves behind"),
        ({"learnt": {"__class__": 1}}, "'__class__' is not"),
        ({"learnt": {"_x_": 1}}, "'_x_' is not"),
        ({"learnt": {"coef_": {"array": "nowhere"}}}, "it lacks 'nowhere'"),
        ({"learnt": {"coef_": {"eval": "1"}}}, "'eval' is not a kind of value"),
        ({"learnt": {"coef_": {"array": "a0", "list": []}}}, "does not hold a model"),
        ({"learnt": {"coef_": [1, 2]}}, "a list stands where"),
        ({"learnt": {"coef_": {"loss": ["os.system", None]}}}, "lacks 'os.system'"),
        ({"learnt": {"coef_": {"history": {"fit": 1}}}}, "does not hold a model"),
        ({"learnt": {"coef_": {"sparse": [{"list": [1, 2]}]}}}, "does not hold a model"),
    ],
)
def test_a_right_digest_over_wrong_content(saved, change, message):
    _, arrays, facts = read_digested(saved, "MODEL", 3)
    write_digested(saved, "MODEL", 3, arrays, facts | change)
    with pytest.raises(ValueError, match=message):
        load_model(saved)


@pytest.mark.parametrize(
    "attribute, value, message",
    [
        ("coef_", np.full((1, 6), np.nan), "coef_=array.*an array of finite numbers"),
        ("coef_", np.full((1, 6), np.inf), "coef_=array.*an array of finite numbers"),
        ("coef_", sp.csr_matrix([[np.nan] * 6]), "coef_=array.*an array of finite numbers"),
        ("coef_", np.array([["a"] * 6]), "coef_=array.*an array of finite numbers"),
        ("coef_", 1.0, r"coef_=1\.0: an array of finite numbers"),
        ("coef_", [[1.0] * 6], "coef_=.*an array of finite numbers"),
        ("coef_", np.ones((1, 5)), r"coef_ has shape \(1, 5\), and n_features_in_=6 columns"),
        ("coef_", np.ones((1, 1, 6)), r"coef_ has shape \(1, 1, 6\)"),
        ("coef_", np.ones((3, 6)), r"intercept_ has shape \(1,\)"),
        ("n_features_in_", 7, r"coef_ has shape \(1, 6\), and n_features_in_=7 columns"),
        ("intercept_", np.array([np.nan]), r"intercept_=array\(\[nan\]\): an array of finite"),
        ("intercept_", np.inf, r"intercept_=array\(inf\): an array of finite"),
        ("intercept_", np.ones(2), r"intercept_ has shape \(2,\), and one intercept for each"),
        ("intercept_", "x", "intercept_=array.*an array of finite"),
        ("classes_", np.array([0.0, np.nan]), "classes_=array.*different labels"),
        ("classes_", np.array([1, 1]), "classes_=array.*different labels"),
        ("classes_", np.array([[0, 1]]), "classes_=array.*different labels"),
        ("classes_", np.array([0]), r"coef_ has 1 row\(s\) for 1 class"),
        ("classes_", np.array([0, 1, 2]), r"coef_ has 1 row\(s\) for 3 class"),
        ("classes_", [0, 1], "classes_=.*different labels"),
    ],
)
def test_what_nothing_could_be_predicted_with(saved, attribute, value, message, monkeypatch):
    model = load_model(saved)
    setattr(model, attribute, value)
    with pytest.raises(ValueError, match=message):
        save_model(model, saved)
    monkeypatch.setattr(fitted, "check_fitted", lambda model: None)  # a file by somebody else
    save_model(model, saved)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=f"it does not hold a model .{message}"):
        load_model(saved)


def test_sparse_indices_out_of_range(saved):
    arrays = {"d": np.ones(1), "i": np.array([99]), "p": np.array([0, 1])}
    parts = [{"list": [1, 3]}, *({"array": k} for k in "dip")]
    facts = {"estimator": "LinearSVC", "params": {}, "learnt": {"coef_": {"sparse": parts}}}
    write_digested(saved, "MODEL", 3, arrays, facts)
    with pytest.raises(ValueError, match="does not hold a model"):
        load_model(saved)


# --- the command line -------------------------------------------------------------------------


def command(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def files(tmp_path):
    """A data file with classes 1, 2, 3, and a function that trains on it and saves."""
    X, z = table(80)
    y = labels(z, [1.0, 2.0, 3.0])
    save_svmlight(tmp_path / "train.svm", sp.csr_matrix(X), y)
    save_svmlight(tmp_path / "two.svm", sp.csr_matrix(X), np.minimum(y, 2.0))
    save_svmlight(tmp_path / "real.svm", sp.csr_matrix(X), z)

    def train(model, target):
        save_model(
            model.fit(X, {"train": y, "two": np.minimum(y, 2.0), "real": z}[target]),
            tmp_path / "m.adacoord",
        )
        return model, X, tmp_path / "m.adacoord", tmp_path / f"{target}.svm"

    return train


def test_predict(files):
    model, X, path, data = files(ac.LogisticRegression(), "train")
    run = command("predict", path, data)
    np.testing.assert_array_equal(np.array(run.stdout.split(), float), model.predict(X))
    rows = command("predict", path, data, "--proba").stdout.splitlines()
    found = np.array([row.split() for row in rows], float)
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-12)
    model, X, path, data = files(ac.Lasso(0.1), "real")
    run = command("predict", path, data)
    np.testing.assert_allclose(np.array(run.stdout.split(), float), model.predict(X), rtol=1e-12)
    run = command("predict", path, data, "--proba")
    assert isinstance(run.exception, ValueError)
    assert "--proba: Lasso gives no probabilities" in str(run.exception)
    words = ac.LinearSVC().fit(X, np.where(X[:, 0] > 0, "up", "down"))
    save_model(words, path)
    assert command("predict", path, data).stdout.split() == list(words.predict(X))


@pytest.mark.parametrize(
    "model, target, headings",
    [
        (ac.LinearSVC(tol=1e-8, class_weight="balanced"), "two", [""]),
        (ac.LinearSVC(tol=1e-8, intercept_scaling=2.0, C=3.0), "two", [""]),
        (
            ac.LinearSVC(tol=1e-8, penalty="l1"),
            "train",
            [f"{k}.0 against the rest: " for k in (1, 2, 3)],
        ),
        (ac.LogisticRegression(tol=1e-8), "train", [""]),
        (ac.LinearSVC(loss="hinge", tol=1e-8), "two", [""]),
        (ac.Ridge(tol=1e-8, fit_intercept=False), "real", [""]),
        (ac.ElasticNet(0.1, tol=1e-8), "real", [""]),
        (ac.LinearSVR(tol=1e-8), "real", [""]),
        (ac.ERMRegressor(ac.losses.Huber(0.5), tol=1e-8), "real", [""]),
    ],
)
def test_certify(files, model, target, headings):
    _, _, path, data = files(model, target)
    lines = command("certify", path, data, "--effort", "300").stdout.splitlines()
    assert len(lines) == len(headings)
    for line, heading in zip(lines, headings, strict=True):
        assert line.startswith(heading + "objective ")
        assert float(line.split("optimum (")[1].split(" relative")[0]) < 1e-4, line
    # a worse model is found out
    model.coef_ = model.coef_ * 0.5
    save_model(model, path)
    worse = command("certify", path, data).stdout
    assert float(worse.split("optimum (")[1].split(" relative")[0]) > 1e-3


def test_certify_refuses_other_data(files, tmp_path):
    _, _, path, _ = files(ac.LinearSVC(), "train")
    run = command("certify", path, tmp_path / "two.svm")
    assert "the data have the labels 1.0, 2.0, and the model knows 1.0, 2.0, 3.0" in str(
        run.exception
    )


def test_certify_of_what_the_command_line_trained(tmp_path, files):
    files(ac.LinearSVC(), "two")
    for loss, data in (("logistic", "two"), ("huber", "real"), ("hinge", "two")):
        for intercept in ("--intercept", "--no-intercept"):
            path = tmp_path / "trained.adacoord"
            command(
                "fit",
                tmp_path / f"{data}.svm",
                "--loss",
                loss,
                "--model",
                path,
                intercept,
                "--quiet",
            )
            assert load_model(path).loss == loss
            line = command("certify", path, tmp_path / f"{data}.svm", "--effort", "300").stdout
            assert float(line.split("optimum (")[1].split(" relative")[0]) < 1e-4, line
    run = command("certify", path, tmp_path / "train.svm")
    assert "the data have the labels 1.0, 2.0, 3.0, and the model knows 1.0, 2.0" in str(
        run.exception
    )


def bound(line):
    """(P, P - D) of a line of certify."""
    return float(line.split("objective ")[1].split(". ")[0]), float(
        line.split("Within ")[1].split(" of ")[0]
    )


@pytest.mark.parametrize(
    "model, target",
    [
        (None, "real"),
        (ac.Ridge(alpha=1e-3, tol=1e-10), "real"),
        (ac.Lasso(1e-3, tol=1e-10), "real"),
        (ac.LinearSVC(tol=1e-8), "two"),
        (ac.LinearSVC(tol=1e-8, intercept_scaling=1.0), "two"),
        (ac.LinearSVC(tol=1e-8, penalty="l1"), "train"),
        (ac.LogisticRegression(tol=1e-8), "train"),
        (ac.LogisticRegression(tol=1e-8, warm_start=True), "two"),
        (ac.ERMRegressor("huber"), "real"),
    ],
)
def test_certify_on_data_of_another_width(files, tmp_path, model, target):
    """The problem is that of the data given: the model is 0 on columns that it does not have."""
    X, _ = table(80)
    path, data = tmp_path / "m.adacoord", tmp_path / f"{target}.svm"
    files(ac.Ridge(), "real")  # for the data files
    A, b = load_svmlight(data)
    narrow, wide = tmp_path / "narrow.svm", tmp_path / "wide.svm"
    save_svmlight(narrow, A[:, :2], b)
    save_svmlight(wide, sp.hstack([A, sp.csr_matrix((len(b), 3)), sp.csr_matrix(b[:, None])]), b)
    if model is None:
        command("fit", narrow, "--l2", "1e-4", "--model", path, "--quiet", "--tol", "1e-10")
    else:
        save_model(model.fit(X[:, :2], b), path)
    own = command("certify", path, narrow, "--effort", "300").stdout.splitlines()
    assert own and all(bound(line)[1] < 1e-3 * bound(line)[0] for line in own)
    for file in (data, wide):
        lines = command("certify", path, file, "--effort", "300").stdout.splitlines()
        assert len(lines) == len(own)
        for line, before in zip(lines, own, strict=True):  # the same P, and now a lower P*
            assert bound(line)[0] == pytest.approx(bound(before)[0], rel=1e-6)
        assert any(bound(line)[1] > 0.1 * bound(line)[0] for line in lines)
    # and the reverse: a model with columns that the data lack
    if model is None:
        command("fit", wide, "--l2", "1e-4", "--model", path, "--quiet", "--tol", "1e-10")
        x = load_model(path).coef_
    else:
        wider = model.fit(load_svmlight(wide)[0], b)
        save_model(wider, path)
        x = wider.coef_
    assert x.shape[-1] == 10
    lines = command("certify", path, narrow, "--effort", "300").stdout.splitlines()
    assert len(lines) == len(own)
    for line, before in zip(lines, own, strict=True):
        primal, gap = bound(line)
        assert gap >= 0.99 * (primal - bound(before)[0]) - 1e-9  # P* is that of two columns
        assert primal >= bound(before)[0] - bound(before)[1] - 1e-9


def test_info(files):
    _, _, path, _ = files(ac.LinearSVC(penalty="l1"), "train")
    text = command("info", path).stdout
    assert "LinearSVC(C=1.0, " in text and "penalty='l1'" in text
    assert "3 classes: 1, 2, 3" in text and text.count("relative gap: ") == 1
    assert "of 18 coefficients are not zero" in text


def test_no_warning_on_the_way(saved):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(saved)
