"""``n_jobs`` at every door: the same bits for 1, 2 and 4."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import adacoord as ac
from adacoord.data.blocks import BlockMatrix
from adacoord.estimators import base


def test_solve(case, monkeypatch):
    problem, how = case
    calls = []
    real = BlockMatrix._jobs
    monkeypatch.setattr(
        BlockMatrix,
        "_jobs",
        lambda self, *args, **more: calls.append(1) or real(self, *args, **more),
    )
    results = [ac.solve(problem, n_jobs=n, **how) for n in (1, 2, 4)]
    assert calls  # in blocks, not by the serial method
    assert results[0].converged
    serial = ac.solve(problem, tol=1e-7)
    assert results[0].primal == pytest.approx(serial.primal, rel=2 * how["tol"])
    for other in results[1:]:
        assert np.array_equal(results[0].x, other.x)
        assert np.array_equal(results[0].y, other.y)
        assert np.array_equal(results[0].intercept, other.intercept)
        assert results[0].history.gap.tolist() == other.history.gap.tolist()


def text(loss):
    """Sparse rows that are many for each column, as easy as text."""
    rng, n, d, row = np.random.default_rng(2), 30_000, 4_000, 40
    columns = np.minimum((d * rng.random((n, row)) ** 2.5).astype(np.int64), d - 1)
    A = sparse.csr_matrix(
        (rng.random(n * row) / row**0.5, columns.ravel(), np.arange(0, n * row + 1, row)),
        shape=(n, d),
    )
    A.sum_duplicates()
    z = A @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    return ac.Problem(A, np.where(z > 0, 1.0, -1.0), loss, l2=1.0 / n, intercept=True)


def test_conjugate_gradients_take_the_place_of_dual_ascent():
    """Where two threads are expected to end them sooner; rounds never do."""
    problem = text("logistic")
    one, two, four = (ac.solve(problem, n_jobs=n) for n in (1, 2, 4))
    assert ac.solve(problem).solver == "acf" and one.solver == "newton-cg"
    for other in (two, four):
        assert np.array_equal(one.x, other.x) and np.array_equal(one.y, other.y)
    serial, shared = (ac.solve(text("hinge"), tol=1e-3, n_jobs=n) for n in (None, 2))
    assert serial.solver == shared.solver == "acf"
    assert np.array_equal(serial.x, shared.x)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_path(rows, loss, penalty):
    """Least squares with an l1 on Gram matrices, which are added up over the blocks."""
    A, z = rows()
    b = z if loss == "squared" else np.where(z > 0, 1.0, -1.0)
    problem = ac.Problem(A, b, loss, intercept=True, sample_weight=1.0 + (z > 1.0))
    along = {penalty: problem.l1_max() * np.geomspace(0.5, 0.01, 5)}
    paths = [ac.path(problem, **along, tol=1e-7, n_jobs=n) for n in (1, 2, 4)]
    serial = ac.path(problem, **along, tol=1e-8)
    assert paths[0].converged.all()
    np.testing.assert_allclose(paths[0].primal, serial.primal, rtol=2e-7)
    for other in paths[1:]:
        assert np.array_equal(paths[0].coefs, other.coefs)
        assert np.array_equal(paths[0].gap, other.gap)


def test_path_of_rows_that_come_in_pairs(rows):
    A, z = rows(600, 9)
    parts = [(A[k : k + 250], z[k : k + 250]) for k in range(0, 600, 250)]
    found = ac.path(ac.Problem(parts, intercept=True), n_points=7, tol=1e-8)
    want = ac.path(ac.Problem(A, z, intercept=True), n_points=7, tol=1e-8)
    assert found.converged.all()
    np.testing.assert_allclose(found.primal, want.primal, rtol=2e-8)


def test_a_path_of_a_solver_with_threads_of_its_own(rows):
    A, z = rows(400, 9)
    problem = ac.Problem(A, np.where(z > 0, 1.0, -1.0), "logistic")
    how = {"l2": [1e-1, 1e-2], "solver": "spdc", "batch_size": 64, "tol": 1e-3}
    one, two = (ac.path(problem, n_jobs=n, **how) for n in (1, 2))
    assert one.converged.all()
    assert np.array_equal(one.coefs, two.coefs)


def test_a_path_by_a_method_without_blocks_is_refused(rows):
    A, z = rows()
    with pytest.raises(ValueError, match=r'"apdc" has no form for blocks.*solver="auto"'):
        ac.path(ac.Problem(A, z), n_points=3, solver="apdc", n_jobs=2)


ESTIMATORS = {
    "LinearSVC": (ac.LinearSVC(), "three"),
    "LogisticRegression": (ac.LogisticRegression(), "three"),
    "ERMClassifier": (ac.ERMClassifier("logistic", l2=1e-3), "three"),
    "LinearSVR": (ac.LinearSVR(loss="squared_epsilon_insensitive"), "real"),
    "Ridge": (ac.Ridge(), "two"),
    "Lasso": (ac.Lasso(alpha=0.01), "real"),
    "ElasticNet": (ac.ElasticNet(alpha=0.01), "real"),
    "ERMRegressor": (ac.ERMRegressor("huber", l2=1e-3), "real"),
    "LassoCV": (ac.LassoCV(alphas=5, cv=3), "real"),
    "ElasticNetCV": (ac.ElasticNetCV(alphas=5, cv=3), "real"),
    "RidgeCV": (ac.RidgeCV(alphas=(0.1, 1.0), cv=3), "real"),
    "LogisticRegressionCV": (ac.LogisticRegressionCV(Cs=3, cv=3), "binary"),
    "LinearSVCCV": (ac.LinearSVCCV(Cs=3, cv=3), "binary"),
    "RidgeClassifier": (ac.RidgeClassifier(), "three"),
    "PoissonRegressor": (ac.PoissonRegressor(), "positive"),
    "GammaRegressor": (ac.GammaRegressor(), "positive"),
    "TweedieRegressor": (ac.TweedieRegressor(power=1.5), "positive"),
    "QuantileRegressor": (ac.QuantileRegressor(alpha=0.01), "real"),
    "HuberRegressor": (ac.HuberRegressor(alpha=0.01), "real"),
    "GroupLasso": (ac.GroupLasso(alpha=0.01, groups=np.arange(45) // 3), "real"),
    "GroupLassoCV": (ac.GroupLassoCV(groups=np.arange(45) // 3, alphas=5, cv=3), "real"),
    "MultiTaskLasso": (ac.MultiTaskLasso(alpha=0.01), "two"),
    "MultiTaskElasticNet": (ac.MultiTaskElasticNet(alpha=0.01), "two"),
}


def test_every_estimator_is_here():
    assert set(ESTIMATORS) == {
        name for name in ac.__all__ if hasattr(getattr(ac, name), "get_params")
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(rows, name):
    """Classes, targets and folds side by side first, then blocks within a problem."""
    model, kind = ESTIMATORS[name]
    A, z = rows()
    y = {
        "real": z,
        "binary": z > 0,
        "three": np.digitize(z, [-1.0, 1.0]),
        "two": np.stack([z, np.abs(z)], axis=1),
        "positive": np.exp(z / np.abs(z).max()),
    }[kind]
    fits = [clone(model).set_params(n_jobs=n).fit(A, y) for n in (1, 2, 4)]
    for other in fits[1:]:
        assert np.array_equal(fits[0].coef_, other.coef_)
        assert np.array_equal(fits[0].intercept_, other.intercept_)
        assert np.array_equal(fits[0].dual_gap_, other.dual_gap_)


@pytest.mark.parametrize(("n_jobs", "threads"), [(1, [1, 1]), (2, [1, 1]), (4, [2, 2])])
def test_threads_left_over_share_the_rows(rows, monkeypatch, n_jobs, threads):
    """Of four threads and two targets, each target has two."""
    seen = []
    real = base.run

    def run(problem, *args, **how):
        executor = how.get("executor")
        seen.append(how.get("n_jobs") or getattr(executor, "n_jobs", 1))
        return real(problem, *args, **how)

    monkeypatch.setattr(base, "run", run)
    A, z = rows()
    ac.Ridge(n_jobs=n_jobs).fit(A, np.stack([z, np.abs(z)], axis=1))
    assert seen == threads


def test_blocks_are_cut_once_for_all_problems(rows):
    A, z = rows()
    problem = ac.Problem(A, z, l2=1.0)
    ac.solve(problem, n_jobs=2)
    pieces, _ = vars(problem.matrix)["row_blocks"]
    again = BlockMatrix.of(problem.with_penalty(l2=0.1).matrix, None)
    assert again.pieces is pieces
    assert len(pieces) > 1
