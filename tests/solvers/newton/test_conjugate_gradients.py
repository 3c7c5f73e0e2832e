"""What conjugate gradients work with: the factor, residuals they remember, steps on wide data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from smooth_problems import SMOOTH, as_storage, make

import adacoord as ac
from adacoord.solvers.newton import newton_cg
from adacoord.solvers.newton.newton_cg import NewtonCG


def make_solver(problem, seed=0):
    return NewtonCG(problem, np.random.default_rng(seed))


def correlated(n=2000, d=150, correlation=0.0, l2=1e-4):
    """Least squares with neighbouring columns of a given correlation."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((n, d))
    for j in range(1, d):
        A[:, j] = correlation * A[:, j - 1] + (1.0 - correlation**2) ** 0.5 * A[:, j]
    return ac.Problem(A, A @ rng.standard_normal(d) + rng.standard_normal(n), l2=l2)


def test_least_squares_make_a_factor_where_the_rest_would_cost_more():
    """Independent columns: passes as expected, no factor; correlated ones: one, and few more."""
    easy, hard = make_solver(correlated()), make_solver(correlated(correlation=0.95))
    expected = int(np.ceil(easy.preconditioner.easy))
    assert easy.preconditioner.easy == hard.preconditioner.easy < 10.0
    for solver in (easy, hard):
        assert 1.0 < solver.preconditioner.price < 20.0
        solver.advance(expected + 1)
    assert easy.preconditioner.factor.size == 0 and easy.estimate < 1e-5
    hard.advance(expected)
    assert hard.preconditioner.factor.size > 0
    hard.advance(12)
    assert hard.estimate < 1e-6
    plain = make_solver(correlated(correlation=0.95))
    plain.preconditioner.price = np.inf
    plain.advance(hard.passes)
    assert plain.estimate > 100.0 * hard.estimate


def test_least_squares_of_more_columns_than_rows_make_one_late():
    """Where their passes have cost as much, whatever they seem to promise."""
    solver = make_solver(correlated(60, 80, l2=1e-6))
    price = int(np.ceil(solver.preconditioner.price))
    solver.advance(price - 1)
    assert solver.preconditioner.factor.size == 0
    solver.advance(3)
    assert solver.preconditioner.factor.size > 0 and solver.estimate < 1e-9


def common_factor(n=80, d=900, l2=1e-4):
    """Least squares with one eigenvalue far above the others."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((n, d)) + 2.0 * rng.standard_normal((n, 1))
    return ac.Problem(A, rng.standard_normal(n) + A[:, 0], l2=l2)


def passes_to(solver, tol, most=400):
    while solver.passes < most:
        solver.advance(1)
        if solver.estimate <= tol:
            break
    return solver.passes


def test_residuals_stay_orthogonal_to_the_first_ones():
    problem = common_factor()
    kept, forgetful = make_solver(problem), make_solver(problem)
    forgetful.residuals.r = forgetful.residuals.r[:0]
    seen = []
    for _ in range(12):
        kept.advance(1)
        seen.append(kept.residual / np.sqrt(kept.rho))
    # for 12 passes M is one number
    products = np.array(seen) @ np.array(seen).T * (seen[0] @ seen[0]) ** -1
    np.testing.assert_allclose(products, np.eye(12), atol=1e-9)
    gap = problem.gap(kept.x, kept.y)
    assert gap == pytest.approx(kept.estimate * problem.primal(kept.x), rel=1e-3)
    assert passes_to(make_solver(problem), 1e-9) < passes_to(forgetful, 1e-9) - 2


def test_a_residual_computed_anew_forgets_the_others(monkeypatch):
    """What the true residual has of the first ones is an error that is still there."""
    monkeypatch.setattr(newton_cg, "RESYNC", 7)
    problem = common_factor(60, 130, l2=1e-5)
    result = ac.solve(problem, "newton-cg", tol=1e-9, max_passes=2000)
    assert result.converged
    reference = Ridge(alpha=60 * 1e-5, fit_intercept=False, solver="cholesky")
    best = reference.fit(problem.matrix.dense, problem.b).coef_
    assert problem.primal(result.x) - problem.primal(best) <= 1e-9 * result.primal


def unequal(loss, n, d, storage):
    """Columns of unequal scale."""
    A, b = make("squared" if loss == "multinomial" else loss, n, d, 0)
    if loss == "multinomial":
        b = np.arange(n) % 3
    return ac.Problem(as_storage(A * np.logspace(-1, 1, d), storage), b, loss, l2=0.1)


@pytest.mark.parametrize("loss", [*SMOOTH, "multinomial"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_steps_on_wide_data_are_combinations_of_rows(loss, storage):
    problem = unequal(loss, 12, 40, storage)
    solver = make_solver(problem)
    solver.preconditioner.price = np.inf
    solver.advance(4)
    rows = problem.matrix.dense
    x = np.reshape(solver.x, (40, -1))
    inside = rows.T @ np.linalg.lstsq(rows @ rows.T, rows @ x, rcond=None)[0]
    np.testing.assert_allclose(inside, x, atol=1e-10 * np.abs(x).max())
    tall = make_solver(unequal(loss, 60, 40, storage))
    tall.preconditioner.price = np.inf
    tall.advance(1)
    assert np.ptp(tall.preconditioner.diagonal[:-1], axis=0).max() > 0.0
