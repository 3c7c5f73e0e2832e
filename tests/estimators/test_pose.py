"""A fit is posed, then solved: the same problems for ``fit`` and ``certify``, data as they came."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

import adacoord as ac
from adacoord.data import matrix
from adacoord.data.columns import ColumnMatrix
from adacoord.estimators import __all__ as NAMES
from adacoord.estimators import base, judge
from adacoord.estimators.recipes import with_bias
from adacoord.solvers.registry import SOLVERS

SMALL = {"Cs": 3, "alphas": 3, "cv": 3}


def made(name, **how):
    """A model of the class, with a short search."""
    cls = getattr(ac, name)
    known = cls().get_params()
    short = {k: v for k, v in SMALL.items() if k in known and name != "RidgeCV"}
    return cls(**{**short, **how})


EVERY = [made(name) for name in NAMES]
SEARCHES = [model for model in EVERY if hasattr(model, "cv")]
VARIANTS = [
    *EVERY,
    ac.LinearSVC(intercept_scaling=2.0, class_weight="balanced"),
    ac.LinearSVC(class_weight={0: 3.0}),
    ac.LinearSVR(intercept_scaling=2.0),
    ac.LogisticRegression(multi_class="ovr", class_weight={0: 3.0}, fit_intercept=False),
    ac.LogisticRegression(penalty="l1", class_weight="balanced"),
    ac.LogisticRegression(C=np.inf),
    ac.ERMClassifier("multinomial"),
    ac.ERMRegressor("huber", l1=0.1, positive=True),
    ac.Ridge(alpha=0.0, positive=True),
    ac.RidgeCV(cv=3),
    ac.RidgeCV(fit_intercept=False),
    ac.LinearSVCCV(Cs=2, cv=3, penalty="elasticnet", l1_ratios=(0.2, 0.8), intercept_scaling=1.0),
    ac.LogisticRegressionCV(Cs=2, cv=3, l1_ratios=[0.0, 0.5], use_legacy_attributes=False),
    ac.ElasticNetCV(alphas=3, cv=3, l1_ratio=[0.2, 0.8]),
]


def named(model):
    return str(model).replace(" ", "")


def data(model, classes=3, n=90, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    z = X[:, 0] - X[:, 1] + rng.standard_normal(n)
    if hasattr(model, "class_weight"):
        z = np.digitize(z, [-0.4, 0.4]) if classes == 3 else (z > 0.2).astype(int)
    if get_tags(model).target_tags.positive_only:
        z = np.exp(z)
    if isinstance(model, ac.MultiTaskElasticNet):
        z = np.column_stack([z, X[:, 2] + 0.1 * z])
    return X, z


class Seen:
    """``run`` as ever, and the problems (also those that go together) and solvers it was given."""

    def __init__(self, monkeypatch):
        self.problems, self.solvers, self._run = [], [], base.run
        self._together = base.solve_together
        monkeypatch.setattr(base, "run", self)
        monkeypatch.setattr(base, "solve_together", self.together)

    def together(self, problems, tol):
        self.problems += problems
        return self._together(problems, tol)

    def __call__(self, problem, solver, **how):
        self.problems.append(problem)
        self.solvers.append(solver)
        return self._run(problem, solver, **how)


def same_problem(a, b):
    np.testing.assert_array_equal(a.matrix.dense, b.matrix.dense)
    np.testing.assert_array_equal(a.b, b.b)
    assert (a.weights is None) == (b.weights is None)
    if a.weights is not None:
        np.testing.assert_array_equal(a.weights, b.weights)
    assert (a.loss, a.intercept) == (b.loss, b.intercept)
    for field in fields(a.penalty):
        assert np.array_equal(getattr(a.penalty, field.name), getattr(b.penalty, field.name))


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("model", VARIANTS, ids=named)
def test_what_is_posed_is_what_is_solved(model, weighted, monkeypatch):
    X, y = data(model)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    seen = Seen(monkeypatch)
    model = clone(model).fit(X, y, sample_weight=w)
    posed = model._pose(X, y, w)
    assert 1 <= len(posed.problems) <= len(seen.problems)
    for a, b in zip(posed.problems, seen.problems[-len(posed.problems) :], strict=True):
        same_problem(a, b)
    assert (posed.rows.classes is None) == (not hasattr(model, "classes_"))


def test_several_targets():
    X, z = data(ac.Ridge())
    Y = np.column_stack([z, X[:, 2], -z])
    for model in (ac.Ridge([0.1, 1.0, 10.0]), ac.ElasticNet(0.1), ac.RidgeCV()):
        model.fit(X, Y)
        headings, problems, points, _ = zip(*judge.points(model, X, Y), strict=True)
        assert headings == ("target 0: ", "target 1: ", "target 2: ")
        np.testing.assert_array_equal(points, model.coef_)
        np.testing.assert_array_equal([p.b for p in problems], Y.T)
    apart = ac.RidgeCV([0.1, 1.0, 10.0], alpha_per_target=True).fit(X, Y)
    penalties = [p.penalty.l2 for _, p, _, _ in judge.points(apart, X, Y)]
    np.testing.assert_allclose(penalties, apart.alpha_ / len(X))
    with pytest.raises(ValueError, match="3 != 1; give one alpha, or one per target"):
        list(judge.points(apart, X, z))
    with pytest.raises(ValueError, match="make 1 problems, and the model has 3 rows"):
        list(judge.points(ac.Ridge().fit(X, Y), X, z))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", VARIANTS, ids=named)
def test_a_fit_is_judged_without_another(model, classes, monkeypatch):
    """No search, no solution; the certificate is that of the fit, and the fit is as it was."""
    X, y = data(model, classes)
    model = clone(model).fit(X, y)
    before = dict(vars(model))

    def forbidden(*_, **__):
        raise AssertionError("certify solves nothing of a fit")

    monkeypatch.setattr(base, "run", forbidden)
    for name in ("_walk", "_leave_one_out"):
        if hasattr(model, name):
            monkeypatch.setattr(type(model), name, forbidden)
    points = list(judge.points(model, X, y))
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())
    gaps = np.atleast_1d(model.dual_gap_)
    duals = np.atleast_2d(model.dual_coef_)
    duals = duals.T[None] if points[0][1].loss.blocks else duals
    assert len(points) == len(gaps)
    for (_, problem, x, c), gap, dual in zip(points, gaps, duals, strict=True):
        if isinstance(model, ac.HuberRegressor):  # whose certificate is one of its scale, too
            assert problem.gap(x, dual, c) <= gap
        elif np.isnan(gap):
            assert not problem.has_certificate
        else:
            P = problem.primal(x, c)
            # rounding is bounded as well as each of the two was asked for
            assert problem.gap(x, dual, c) == pytest.approx(gap, abs=2e-11 * abs(P), rel=1e-6)


# ---- rows stay rows, columns stay columns ------------------------------------------------------


def by_columns(kind, dtype, n=3000, d=1200):
    rng = np.random.default_rng(0)
    if kind == "fortran":
        X = np.asfortranarray(rng.standard_normal((n, d)).astype(dtype))
    else:
        X = sparse.random(2 * n, 2 * d, 0.1, format="csc", random_state=0, dtype=dtype)
    return X, X @ np.where(np.arange(X.shape[1]) < 5, 1.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["fortran", "csc"])
def test_columns_are_not_copied(kind, dtype, monkeypatch):
    X, z = by_columns(kind, dtype)
    model = ac.Lasso(alpha=0.1 * np.abs(X.T @ (z - z.mean())).max() / len(z))
    [problem] = model._pose(X, z).problems
    assert problem.matrix.by_columns
    if kind == "csc":
        assert np.shares_memory(problem.matrix.columns.data, X.data)
        assert np.shares_memory(problem.matrix.columns.rows, X.indices)
        size = X.data.nbytes + X.indices.nbytes
    else:
        assert np.shares_memory(problem.matrix.columns.data, X)
        size = X.nbytes

    def forbidden(*_, **__):
        raise AssertionError("rows were made of columns")

    monkeypatch.setattr(matrix, "BLOCK", 2**14)  # entries that the judge holds at a time
    monkeypatch.setattr(ColumnMatrix, "_rows", property(forbidden))
    monkeypatch.setattr(sparse.csc_matrix, "tocsr", forbidden)
    assert model.fit(X, z).solver_ == "acf"  # compiled now
    tracemalloc.start()
    try:
        model.fit(X, z)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * size
    assert 0 < np.count_nonzero(model.coef_) < 100


@pytest.mark.parametrize(
    "name, layout",
    [
        ("C", np.ascontiguousarray),
        ("F", np.asfortranarray),
        ("csr", sparse.csr_matrix),
        ("csc", sparse.csc_matrix),
        ("csc", sparse.csc_array),
        ("coo", sparse.coo_matrix),
        ("sliced", lambda X: np.repeat(X, 2, axis=1)[:, ::2]),
    ],
)
def test_layouts(name, layout):
    rows = np.random.default_rng(0).standard_normal((40, 3))
    X = layout(rows)
    [problem] = ac.Ridge()._pose(X, rows[:, 0]).problems
    assert problem.matrix.by_columns == (name in ("F", "csc"))
    np.testing.assert_array_equal(problem.matrix.dense, rows)
    fold = ac.Ridge()._rows(X, rows[:, 0], None).take(np.array([3, 1, 30]))
    [part] = ac.Ridge()._posed(fold, ac.Ridge()._recipe(fold)).problems
    assert part.matrix.by_columns == problem.matrix.by_columns
    np.testing.assert_array_equal(part.matrix.dense, rows[[3, 1, 30]])
    np.testing.assert_array_equal(part.b, rows[[3, 1, 30], 0])
    if name in ("C", "F"):
        assert np.shares_memory(problem.matrix.entries, X)
    elif name in ("csr", "csc"):
        assert np.shares_memory(problem.matrix.entries, X.data)


@pytest.mark.parametrize("layout", [np.asfortranarray, sparse.csc_matrix, sparse.csc_array])
@pytest.mark.parametrize("model", EVERY, ids=named)
def test_columns_make_the_same_model(model, layout):
    X, y = data(model)
    rows, columns = clone(model).fit(X, y), clone(model).fit(layout(X), y)
    np.testing.assert_allclose(columns.coef_, rows.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(columns.predict(layout(X)) > 0, rows.predict(X) > 0)
    for name in ("alpha_", "C_"):
        if hasattr(rows, name):
            np.testing.assert_allclose(getattr(columns, name), getattr(rows, name))


@pytest.mark.parametrize("layout", [np.asfortranarray, sparse.csc_matrix])
def test_the_bias_is_one_more_column(layout):
    X = layout(np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32))
    wide = with_bias(X, 2.0)
    assert wide.format == "csc" if sparse.issparse(X) else wide.flags.f_contiguous
    assert wide.dtype == np.float32 and wide.shape == (30, 5)
    assert with_bias(X, 0.1).dtype == np.float64  # which float32 has not


# ---- solvers by name ---------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", VARIANTS, ids=named)
def test_what_ran_can_be_asked_for(model, classes):
    if isinstance(model, ac.LogisticRegressionCV) and model.l1_ratios:
        model = clone(model).set_params(l1_ratios=[0.5])  # which not every solver of 0 takes
    X, y = data(model, classes)
    first = clone(model).fit(X, y)
    assert first.solver_ in SOLVERS
    again = clone(model).set_params(solver=first.solver_).fit(X, y)
    assert again.solver_ == first.solver_
    np.testing.assert_allclose(again.coef_, first.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("model", EVERY, ids=named)
def test_scikit_learns_names_are_taken(model):
    X, y = data(model)
    for solver in sorted(base.SKLEARN_SOLVERS):
        found = clone(model).set_params(solver=solver, max_iter=10**5).fit(X, y)
        assert found.solver_ in SOLVERS
        assert np.max(found.relative_gap_) <= found.tol


def test_ours_of_that_name_where_it_takes_the_problem():
    X, y = data(ac.LinearSVC(), classes=2)
    assert ac.LogisticRegression(solver="lbfgs").fit(X, y).solver_ == "lbfgs"
    assert ac.Ridge(solver="sag").fit(X, X[:, 0] + y).solver_ == "sag"
    assert ac.LogisticRegression(l1_ratio=0.5, solver="lbfgs").fit(X, y).solver_ != "lbfgs"
    assert ac.LinearSVC(loss="hinge", solver="sag").fit(X, y).solver_ != "sag"
    auto = ac.LogisticRegression().fit(X, y)
    for solver in ("liblinear", "newton-cholesky", "saga"):
        other = ac.LogisticRegression(solver=solver).fit(X, y)
        assert other.solver_ == auto.solver_
        np.testing.assert_array_equal(other.coef_, auto.coef_)
    # what only we have is refused, not replaced, where it cannot
    with pytest.raises(ValueError, match='solver="dspdc" needs a smooth loss'):
        ac.LinearSVC(loss="hinge", solver="dspdc").fit(X, y)


@pytest.mark.parametrize("model", SEARCHES, ids=named)
def test_scikit_learns_names_on_folds(model, monkeypatch):
    X, y = data(model)
    seen = Seen(monkeypatch)
    clone(model).set_params(solver="liblinear").fit(X, y)
    assert set(seen.solvers) == {"auto"}


@pytest.mark.parametrize("name", ["LogisticRegressionCV", "LinearSVCCV"])
def test_a_mean_of_models_has_no_solver_of_its_own(name):
    model = made(name, refit=False)
    X, y = data(model)
    model.fit(X, y)
    assert model.solver_ == "auto"
    clone(model).set_params(solver=model.solver_).fit(X, y)


def test_several_solvers_are_auto():
    X, z = data(ac.Ridge(), n=400, d=120)
    model = ac.Ridge([0.0, 1.0], positive=True).fit(X, np.column_stack([z, z]))
    assert len(model.history_) == 2
    assert model.solver_ in {"auto", *SOLVERS}
    model.set_params(solver=model.solver_).fit(X, np.column_stack([z, z]))


# ---- what a fit shows and keeps ----------------------------------------------------------------


@pytest.mark.parametrize("model", EVERY, ids=named)
def test_verbose_shows_how_it_goes(model, capsys):
    X, y = data(model)
    found = clone(model).fit(X, y)
    assert capsys.readouterr() == ("", "")
    clone(model).set_params(verbose=1).fit(X, y)
    shown = capsys.readouterr()
    assert not shown.out
    assert found.solver_ in shown.err and "gap" in shown.err
    if hasattr(model, "cv") and not isinstance(model, ac.RidgeCV):
        assert "fold 3 of 3" in shown.err


def test_verbose_of_several_problems_at_a_time(capsys):
    X, y = data(ac.LinearSVC())
    found = ac.LinearSVC(verbose=1, n_jobs=2).fit(X, y)
    lines = sorted(capsys.readouterr().err.strip().split("\n"))
    assert [line[:16] for line in lines] == [f"problem {k} of 3: " for k in (1, 2, 3)]
    assert found.solver_ in lines[0]


def test_the_history_is_the_monitors():
    X, y = data(ac.LinearSVC(), classes=2, n=600, d=300)
    checks = []
    [problem] = ac.LinearSVC(loss="hinge")._pose(X, y).problems
    result = ac.solve(problem, "dcd", tol=1e-4, callback=lambda p: checks.append(p.passes))
    model = ac.LinearSVC(loss="hinge", solver="dcd").fit(X, y)
    assert list(model.history_.passes) == [*checks, result.passes] and len(checks) > 3
    assert (np.diff(model.history_.operations) > 0).all()


def test_warm_starts_with_a_penalised_bias():
    X, y = data(ac.LinearSVC(), n=600, d=100)
    model = ac.LinearSVC(
        loss="hinge", solver="dcd", intercept_scaling=1.0, warm_start=True, max_iter=10**5
    )
    cold = model.fit(X, y).n_iter_
    assert model.fit(X, y).n_iter_ < 0.2 * cold
    # of another shape, or without a dual point that fits
    assert model.fit(X[:, 1:], y).coef_.shape == (3, 99)
    assert np.max(model.fit(X[:500, 1:], y[:500]).relative_gap_) <= model.tol


def test_a_refused_pose_leaves_the_model_as_it_was():
    X, y = data(ac.LinearSVC())
    model = ac.LinearSVC().fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="class 2 has only rows of zero weight"):
        model.fit(X, y, sample_weight=y != 2)
    assert vars(model) == before
