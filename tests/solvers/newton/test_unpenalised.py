"""Problems without a penalty: solved by Newton's method, and never with a certificate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from smooth_problems import SMOOTH, STORAGES, as_storage, gradient, make

import adacoord as ac


@STORAGES
@pytest.mark.parametrize("loss", [*SMOOTH, "multinomial"])
def test_no_penalty(loss, storage):
    A, b = make("squared" if loss == "multinomial" else loss, 80, 4)
    b = np.arange(80) % 3 if loss == "multinomial" else b
    problem = ac.Problem(as_storage(A, storage), b, loss, intercept=True)
    for solver in ("newton", "auto"):
        result = ac.solve(problem, solver, tol=1e-10)
        assert result.converged and result.status == "stationary, no certificate"
        assert np.isnan([result.gap, result.relative_gap, result.dual]).all()
        assert np.isnan(result.history.gap).all() and result.solver == "newton"
        assert "no certificate" in repr(result) and "relative_gap" not in repr(result)
        g, g_c = gradient(problem, result.x, result.intercept)
        assert np.abs(g).max() < 1e-8 and np.abs(g_c).max() < 1e-8
        assert problem.stationarity(result.x, result.intercept) <= 1e-10
    if loss == "squared":
        other = LinearRegression().fit(A, b)
        np.testing.assert_allclose(result.x, other.coef_, rtol=1e-9)
    if loss == "logistic":
        other = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(A, b)
        np.testing.assert_allclose(result.x, other.coef_[0], rtol=1e-7)
    if loss == "poisson":
        other = PoissonRegressor(alpha=0.0, tol=1e-12, solver="newton-cholesky").fit(A, b)
        np.testing.assert_allclose(result.x, other.coef_, rtol=1e-7)


@STORAGES
def test_no_penalty_and_many_solutions(storage):
    """Duplicate columns, a column of zeros, more columns than rows: one of the minima."""
    A, b = make("squared", 40, 5)
    A[:, 1], A[:, 2] = A[:, 0], 0.0
    result = ac.solve(ac.Problem(as_storage(A, storage), b, intercept=True), "newton", tol=1e-9)
    other = LinearRegression().fit(A, b)
    assert result.converged
    np.testing.assert_allclose(result.x, other.coef_, atol=1e-4)  # the shortest, or nearly so
    np.testing.assert_allclose(A @ result.x + result.intercept, other.predict(A), rtol=1e-8)
    A, b = make("squared", 6, 15)
    result = ac.solve(ac.Problem(as_storage(A, storage), b), "newton", tol=1e-9)
    assert result.converged and result.primal < 1e-20
    A, b = make("squared_hinge", 30, 5)
    b = np.where(A[:, 0] > 0.1, 1.0, -1.0)
    A[:, 0] += b
    result = ac.solve(ac.Problem(as_storage(A, storage), b, "squared_hinge"), "newton", tol=1e-9)
    assert result.converged and result.primal < 1e-20


@STORAGES
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_separable_without_a_penalty(loss, storage):
    A, b = make("logistic", 30, 4)
    b = np.where(A[:, 0] > 0.1, 1.0, -1.0)
    A[:, 0] += b
    if loss == "multinomial":
        b = (b > 0).astype(float)
    with pytest.warns(ac.ConvergenceWarning, match="separate the classes.*no minimum.*l2=1e-8"):
        result = ac.solve(ac.Problem(as_storage(A, storage), b, loss, intercept=True), "newton")
    assert result.status == "no minimum" and not result.converged
    assert np.isfinite(result.x).all() and np.isnan(result.gap)


def test_a_limit_without_a_penalty():
    A, b = make("logistic", 60, 4)
    with pytest.warns(ac.ConvergenceWarning, match="max_passes=1 with slopes at a cosine of"):
        result = ac.solve(ac.Problem(A, b, "logistic"), "newton", tol=1e-12, max_passes=1)
    assert result.status == "max_passes" and "no certificate" in repr(result)


def test_stationarity_is_a_cosine():
    rng = np.random.default_rng(7)
    A, b = rng.standard_normal((30, 3)), rng.standard_normal(30)
    w = rng.exponential(1.0, 30)
    x, c = rng.standard_normal(3), 0.3
    r = A @ x + c - b
    columns = np.c_[A - w @ A / w.sum(), np.ones(30)]
    expected = max(abs(w * r @ a) / np.sqrt((w @ a**2) * (w @ r**2)) for a in columns.T)
    problem = ac.Problem(A, b, sample_weight=w, intercept=True)
    assert problem.stationarity(x, c) == pytest.approx(expected, rel=1e-12)
    units = ac.Problem(A * [1e-6, 1.0, 1e6], b, sample_weight=w, intercept=True)
    scaled = units.stationarity(x / [1e-6, 1.0, 1e6], c)
    assert scaled == pytest.approx(expected, rel=1e-9)
    # nor does the origin count, but for what it hides
    for origin, hidden in ((1e3, 1e-9), (1e6, 1e-3)):
        moved = ac.Problem(A + origin, b, sample_weight=w, intercept=True)
        found = moved.stationarity(x, c - origin * x.sum())
        assert found == pytest.approx(expected, rel=hidden)


@STORAGES
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial", "poisson"])
@pytest.mark.parametrize("origin", [2e3, 1.6e6, 1e8])
def test_columns_far_from_the_origin(loss, storage, origin):
    """Years, timestamps: x = 0 was called stationary, its slopes at a right angle to a column of
    next to constant numbers."""
    A, b = make("logistic" if loss == "multinomial" else loss, 150, 4)
    b = (b > 0).astype(float) if loss == "multinomial" else b
    best = ac.solve(ac.Problem(A, b, loss, intercept=True), "newton", tol=1e-6)
    A[:, 0] += origin
    found = ac.solve(ac.Problem(as_storage(A, storage), b, loss, intercept=True), tol=1e-5)
    assert found.converged and found.primal <= best.primal + 1e-6 * abs(best.primal)


def one_hot(n):
    return np.eye(4)[np.arange(n) % 4]


#: Columns that others, and the intercept, make up; with what is left without them.
REDUNDANT = {
    "constant": lambda A: (np.c_[A, np.full(len(A), 3.7)], A),
    "all levels": lambda A: (np.c_[A, one_hot(len(A))], np.c_[A, one_hot(len(A))[:, 1:]]),
    "both": lambda A: (
        np.c_[np.full(len(A), 1e4), A, one_hot(len(A))],
        np.c_[A, one_hot(len(A))[:, 1:]],
    ),
    "far levels": lambda A: (np.c_[A, one_hot(len(A)) + 1e3], np.c_[A, one_hot(len(A))[:, 1:]]),
    "twice": lambda A: (np.c_[A, 2.1 * A[:, 0] + A[:, 1] + 30.0], A),
}


@STORAGES
@pytest.mark.parametrize("columns", REDUNDANT)
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "poisson", "multinomial"])
@pytest.mark.parametrize("solver", ["newton", "newton-cg"])
def test_columns_that_the_intercept_has(loss, columns, solver, storage):
    """Steps along what rounding left of them had coefficients of 1e15, and predictions of noise."""
    A, b = make("logistic" if loss == "multinomial" else loss, 150, 3)
    b = (b > 0).astype(float) if loss == "multinomial" else b
    redundant, without = REDUNDANT[columns](A)
    best = ac.solve(ac.Problem(without, b, loss, intercept=True), "newton", tol=1e-8)
    problem = ac.Problem(as_storage(redundant, storage), b, loss, intercept=True)
    found = ac.solve(problem, solver, tol=1e-6)
    assert found.converged
    assert found.primal == pytest.approx(best.primal, rel=1e-6)
    assert np.abs(found.x).max() < 1e3 and np.abs(found.intercept).max() < 1e6


@STORAGES
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
def test_lbfgs_without_a_penalty(loss, storage):
    A, b = make(loss, 80, 4)
    problem = ac.Problem(as_storage(A, storage), b, loss, intercept=True)
    result = ac.solve(problem, "lbfgs", tol=1e-8)
    assert result.status == "stationary, no certificate"
    assert np.isnan(result.gap)
    best = ac.solve(problem, "newton", tol=1e-10)
    np.testing.assert_allclose(result.x, best.x, rtol=1e-5, atol=1e-6)


def test_auto_without_a_penalty_and_too_many_columns_for_newton():
    rng = np.random.default_rng(0)
    A = sparse.random(300, 20_000, 0.01, format="csr", random_state=rng)
    b = A @ rng.standard_normal(20_000)
    result = ac.solve(ac.Problem(A, b, intercept=True), tol=1e-6)
    assert result.solver == "newton-cg"
    assert result.converged
    assert result.primal < 1e-8 * np.mean(b**2)
