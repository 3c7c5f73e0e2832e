"""Newton's method for losses with kinks on data that are not small."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.svm import LinearSVC, LinearSVR

import adacoord as ac
from adacoord.solvers.newton import dual_proximal, size
from adacoord.solvers.newton.dual_proximal import ProximalPoint
from adacoord.solvers.newton.kinked import KinkedNewton

KINKED = ("hinge", "epsilon_insensitive", "absolute", "quantile")
STORAGES = pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sparse.csr_array])


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    monkeypatch.setattr(size, "SMALL", 0)


def make(loss, n=120, d=9, seed=0, units=True):
    """Columns in units of their own, far from 0."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    z = A @ rng.standard_normal(d) + rng.standard_normal(n)
    if units:
        A = A * np.exp(rng.normal(0.0, 1.5, d)) + rng.normal(0.0, 3.0, d)
    return A, np.where(z > 0.0, 1.0, -1.0) if loss == "hinge" else 10.0 * z + 3.0


def point(problem, weight, sigma, seed=1):
    """A stage at a point that is not special."""
    rng = np.random.default_rng(seed)
    newton = ProximalPoint(problem, weight, sigma)
    y = problem.into_domain(0.3 * rng.standard_normal(problem.n))
    newton.begin(0.1 * rng.standard_normal(problem.d), 0.2 * problem.intercept, y)
    return newton


@STORAGES
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("side", [0.0, np.inf])
@pytest.mark.parametrize("loss", KINKED)
def test_a_step_solves_newtons_equations(loss, side, intercept, storage, monkeypatch):
    """On either side of the data: H step = -gradient, H from its definition."""
    monkeypatch.setattr(dual_proximal, "SIDE", side)
    A, b = make(loss, units=False)
    weight = np.random.default_rng(2).exponential(1.0, b.size) / b.size
    problem = ac.Problem(storage(A), b, loss, l2=0.1, intercept=intercept)
    newton = point(problem, weight, 0.5 if loss == "hinge" else 0.05)
    curved = np.flatnonzero(newton.h)
    assert 0 < curved.size < b.size
    dx, dc = newton._direction(curved)
    B = np.column_stack([A, np.ones(b.size)]) if intercept else A
    H = (B.T * newton.h) @ B
    H[np.arange(9), np.arange(9)] += 0.1
    step = np.append(dx, dc) if intercept else dx
    gradient = np.append(newton.gradient, newton.imbalance) if intercept else newton.gradient
    np.testing.assert_allclose(H @ step, -gradient, rtol=1e-6, atol=1e-8 * np.abs(gradient).max())


@STORAGES
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(120, 9), (25, 40)])
@pytest.mark.parametrize("loss", KINKED)
def test_optimum(loss, shape, intercept, weighted, storage):
    """Certified, and no other method finds a better point."""
    A, b = make(loss, *shape)
    weights = np.random.default_rng(3).integers(0, 3, b.size).astype(float) if weighted else None
    problem = ac.Problem(storage(A), b, loss, l2=1e-3, intercept=intercept, sample_weight=weights)
    result = ac.solve(problem, "newton", tol=1e-8, max_passes=500)
    assert result.converged and result.solver == "newton"
    gap = problem.gap(result.x, result.y, result.intercept)
    # each knows rounding as well as it was asked
    assert gap == pytest.approx(result.gap, rel=1e-3, abs=2e-11 * result.primal + 1e-12)

    def primal(t):
        return problem.primal(t[: shape[1]], t[-1] if intercept else 0.0)

    start = np.append(result.x, result.intercept)
    near = minimize(primal, start, method="Powell", options={"maxiter": 3})
    assert result.primal <= near.fun + 1e-8 * abs(near.fun)


def test_against_liblinear():
    A, b = make("hinge", n=300, d=12, units=False)
    theirs = LinearSVC(loss="hinge", C=0.5, fit_intercept=False, tol=1e-10, max_iter=10**6)
    theirs.fit(A, b)
    ours = ac.solve(ac.Problem(A, b, "hinge", l2=1.0 / (300 * 0.5)), "newton", tol=1e-12)
    np.testing.assert_allclose(ours.x, theirs.coef_[0], rtol=1e-5, atol=1e-7)
    A, b = make("epsilon_insensitive", n=300, d=12, units=False)
    theirs = LinearSVR(C=0.5, epsilon=0.3, fit_intercept=False, tol=1e-10, max_iter=10**6)
    theirs.fit(A, b)
    loss = ac.problem.losses.EpsilonInsensitive(epsilon=0.3)
    ours = ac.solve(ac.Problem(A, b, loss, l2=1.0 / (300 * 0.5)), "newton", tol=1e-12)
    np.testing.assert_allclose(ours.x, theirs.coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", KINKED)
def test_its_estimate_is_the_gap(loss):
    """Without an intercept, to rounding: the monitor looks when there is something to see."""
    A, b = make(loss)
    problem = ac.Problem(A, b, loss, l2=1e-3)
    solver = KinkedNewton(problem, np.random.default_rng(0))
    for _ in range(12):
        solver.advance(1)
        gap = problem.gap(solver.x, solver.y)
        primal = problem.primal(solver.x)
        assert solver.estimate == pytest.approx(
            problem.relative_gap(primal, primal - gap), rel=1e-6, abs=1e-12
        )


def test_units_of_the_targets_do_not_matter():
    A, b = make("epsilon_insensitive")
    passes = []
    for unit in (1.0, 1e-6, 1e6):
        loss = ac.problem.losses.EpsilonInsensitive(epsilon=0.1 * unit)
        # P is scaled by unit, and x with it: l2 |x|^2 is, where l2 is divided by it
        result = ac.solve(ac.Problem(A, unit * b, loss, l2=1e-3 / unit), "newton", tol=1e-9)
        assert result.converged
        passes.append(result.passes)
    assert max(passes) <= min(passes) + 2
