"""The judge of users.py knows scikit-learn's objectives, and a row that breaks the rule is seen."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.linear_model as sk
from sklearn import svm

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import users
from users_data import dense, drawn, one_hot, real, text
from users_judge import mean_error, objective
from users_rows import ROWS, Row, Walk

TIGHT = {"tol": 1e-10, "max_iter": 10**6}
#: Without a bias, which liblinear penalises.
BARE = {"fit_intercept": False, **TIGHT}
ESTIMATORS = [
    ("ridge", sk.Ridge(alpha=3.0), None),
    ("lasso", sk.Lasso(alpha=2.0, **TIGHT), None),
    ("lasso", sk.ElasticNet(alpha=0.7, l1_ratio=0.3, **TIGHT), None),
    ("logistic", sk.LogisticRegression(C=0.2, **TIGHT), 2),
    ("logistic", sk.LogisticRegression(C=0.2, **TIGHT), 4),
    ("svc", svm.LinearSVC(C=0.03, **BARE), 2),
    ("svc", svm.LinearSVC(C=0.03, **BARE), 3),
    ("svc", svm.LinearSVC(C=0.03, loss="hinge", **BARE), 2),
    ("svr", svm.LinearSVR(C=0.02, **BARE), None),
    ("poisson", sk.PoissonRegressor(alpha=0.5, **TIGHT), "count"),
    ("gamma", sk.GammaRegressor(alpha=0.5, **TIGHT), "amount"),
    ("tweedie", sk.TweedieRegressor(alpha=0.5, **TIGHT), None),
    ("tweedie", sk.TweedieRegressor(power=1.5, alpha=0.5, **TIGHT), "count"),
    ("huber", sk.HuberRegressor(alpha=30.0, **TIGHT), None),
    ("quantile", sk.QuantileRegressor(quantile=0.3, alpha=0.03), None),
    ("ridge", sk.Ridge(alpha=3.0), "targets"),
    ("ridge classes", sk.RidgeClassifier(alpha=3.0), 2),
    ("ridge classes", sk.RidgeClassifier(alpha=3.0), 3),
    ("multitask", sk.MultiTaskLasso(alpha=2.0, **TIGHT), "targets"),
    ("multitask", sk.MultiTaskElasticNet(alpha=2.0, l1_ratio=0.4, **TIGHT), "targets"),
]


def made(target):
    task = target if isinstance(target, str) else "labels" if target else "regression"
    how = {"classes": target} if task == "labels" else {}
    X, y, _ = dense(task, 150, 6, **how)(np.random.default_rng(4))
    return X, y


@pytest.mark.parametrize(("kind", "model", "target"), ESTIMATORS, ids=lambda v: str(v)[:40])
def test_scikit_learn_ends_at_the_minimum_of_the_judges_objective(kind, model, target):
    X, y = made(target)
    model.fit(X, y)
    coef, c = model.coef_.copy(), model.intercept_
    least = objective(kind, model, X, y)

    def at(step, shift=0.0):
        model.coef_, model.intercept_ = coef + step, c + shift
        return objective(kind, model, X, y)

    rng = np.random.default_rng(0)
    steps = [0.01 * coef, *(0.003 * rng.standard_normal((8, *coef.shape)))]
    for step in steps:  # a wrong weight of the loss or of the penalty has its minimum elsewhere
        rise = at(step) - least, at(-step) - least
        assert min(rise) > 0.0
        if kind in ("ridge", "logistic", "poisson"):
            assert rise[0] == pytest.approx(rise[1], rel=0.1)
    if model.fit_intercept:
        shift = 0.01 * np.eye(1, np.size(c))[0] if np.ndim(c) else 0.01
        assert min(at(0.0, shift), at(0.0, -shift)) > least


def test_the_judge_sums_over_a_path():
    X, y = made(None)
    walk = Walk("sklearn").fit(X, y)
    values = objective("path", walk, X, y)
    assert values.shape == (100,)
    i = 40
    model = sk.Lasso(alpha=walk.alphas_[i], tol=1e-10).fit(X, y)
    assert values[i] == pytest.approx(objective("lasso", model, X, y), rel=1e-4)


@pytest.mark.parametrize("kind", ["svc", "svr"])
def test_the_bias_is_not_penalised(kind):
    X, y = made(2 if kind == "svc" else None)
    model = (svm.LinearSVC(C=0.03) if kind == "svc" else svm.LinearSVR(C=0.02)).fit(X, y)
    value = objective(kind, model, X, y)
    model.coef_ = model.coef_ * 0.0
    model.intercept_ = np.full(1, 1e-9 if kind == "svc" else 0.0)
    assert objective(kind, model, X, y) == pytest.approx(
        0.03 * y.size if kind == "svc" else 0.02 * np.abs(y).sum(), rel=1e-6
    )
    assert value < objective(kind, model, X, y)


def said(row: Row) -> dict:
    told: dict = {}
    users.measure(row, 0, told.update)
    return told


@pytest.mark.parametrize(
    "row",
    [
        Row("tiny", "tuned", "ridge", dense("regression", 60, 4), "Ridge"),
        Row("tiny", "tuned", "lasso", drawn("regression", (50, 60), (3, 5)), "LassoCV"),
    ],
    ids=["Ridge", "LassoCV"],
)
def test_a_row_tells_what_it_found(row, monkeypatch):
    monkeypatch.setattr(users, "REPEATS", 1)
    monkeypatch.setattr(users, "limit", lambda: None)  # this process is to go on
    told = said(row)
    assert told["done"]
    assert told["ours"] > 0.0 and told["theirs"] > 0.0
    assert told["worse"] <= told["allowed"] and told["gap"] <= 1e-4
    assert told["our_warnings"] == []
    assert set(users.faults(told)) <= {"slow"}
    assert "tiny" in users.line(row, told)
    json.dumps(told)


def test_what_breaks_the_rule_is_named():
    fine = {
        "done": True,
        "ours": 0.1,
        "theirs": 0.1,
        "worse": 9e-5,
        "allowed": 1e-4,
        "our_warnings": [],
        "their_warnings": [],
    }
    assert users.faults(fine) == []
    assert users.faults(fine | {"ours": 0.13}) == ["slow"]
    assert users.faults(fine | {"ours": 0.0014, "theirs": 0.001}) == []
    assert users.faults(fine | {"ours": 0.0016, "theirs": 0.001}) == ["slow"]
    assert users.faults(fine | {"worse": 2e-4}) == ["worse objective"]
    assert users.faults(fine | {"worse": np.nan}) == ["worse objective"]
    assert users.faults(fine | {"our_warnings": ["ConvergenceWarning"]}) == ["warns"]
    both = {"our_warnings": ["ConvergenceWarning"], "their_warnings": ["ConvergenceWarning"]}
    assert users.faults(fine | both) == []
    cut = {"theirs": 2.0, "end": "ours cut after 60 s"}
    assert users.faults(cut) == ["ours cut after 60 s"]
    assert users.ratio(cut) == 30.0
    first, second = ROWS[0].name, ROWS[1].name
    lines = users.summary({first: fine, second: fine | {"ours": 0.4}})
    assert lines[0].startswith("all       2 rows: geometric mean 2.00, worst 4.00")
    assert lines[0].endswith("1 break the rule")


def test_the_rows_are_what_they_are_said_to_be(monkeypatch):
    monkeypatch.delenv("ADACOORD_DATA", raising=False)
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    groups = [row.group for row in ROWS]
    assert groups.count("unseen") >= groups.count("tuned") > 20
    assert sum(row.quick for row in ROWS) == pytest.approx(len(ROWS) / 3, abs=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in ROWS:
            ours, theirs = row.models()
            assert type(ours).__module__.startswith(("adacoord", "users_rows"))
            assert type(theirs).__module__.startswith(("sklearn", "users_rows"))
    rng = np.random.default_rng(0)
    _, _, words = real("movielens", lambda rng: (np.eye(2), np.ones(2), "2 x 2"))(rng)
    assert words == "2 x 2, in place of movielens"
    X = one_hot(rng, 50, (3, 4))
    assert X.shape == (50, 7) and (np.asarray(X.sum(axis=1)) == 2.0).all()
    X = text(rng, 20, 100, 8)
    assert np.asarray(X.multiply(X).sum(axis=1)) == pytest.approx(1.0)


def test_errors_of_a_cross_validation():
    X, y = made(None)
    lasso = sk.LassoCV(cv=3).fit(X, y)
    assert mean_error(lasso) == lasso.mse_path_.mean(axis=-1).min()
    ridge = sk.RidgeCV().fit(X, y)
    assert mean_error(ridge) == -ridge.best_score_
    X, y = made(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        logistic = sk.LogisticRegressionCV(cv=3).fit(X, y)
    assert 0.0 <= mean_error(logistic) < 0.9


@pytest.mark.slow
def test_finished_rows_are_not_run_again(tmp_path, monkeypatch, capsys):
    out = tmp_path / "rows.json"
    command = ["users.py", "--rows", "^unseen SVR small$", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    users.main()
    first = json.loads(out.read_text())
    assert list(first) == ["unseen SVR small"] and first["unseen SVR small"]["done"]
    monkeypatch.setattr(users, "run", None)
    users.main()
    assert capsys.readouterr().out.count("unseen SVR small") >= 2
    assert json.loads(out.read_text()) == first


@pytest.mark.slow
def test_a_row_that_takes_too_long_is_cut(tmp_path):
    """With LIMIT = 0 the next full second ends the child."""
    script = tmp_path / "cut.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(Path(users.__file__).parent)!r})\n"
        "import users\n"
        "users.LIMIT = 0.0\n"
        "users.__file__ = __file__\n"
        "if '--child' in sys.argv:\n"
        "    users.main()\n"
        "else:\n"
        "    [row] = [row for row in users.ROWS if row.name == 'SVR medium']\n"
        "    print(users.run(row, 0)['end'])\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert ran.stdout.strip() == "theirs cut after 0 s", ran.stderr
