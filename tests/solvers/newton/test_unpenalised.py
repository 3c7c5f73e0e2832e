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
    columns = np.c_[A, np.ones(30)]
    expected = max(abs(w * r @ a) / np.sqrt((w @ a**2) * (w @ r**2)) for a in columns.T)
    problem = ac.Problem(A, b, sample_weight=w, intercept=True)
    assert problem.stationarity(x, c) == pytest.approx(expected, rel=1e-12)
    units = ac.Problem(A * [1e-6, 1.0, 1e6], b, sample_weight=w, intercept=True)
    scaled = units.stationarity(x / [1e-6, 1.0, 1e6], c)
    assert scaled == pytest.approx(expected, rel=1e-9)


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
