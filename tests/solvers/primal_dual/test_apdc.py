"""APDC: its step against a naive one, its schedule, its balance and its safeguard."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.sampling.frequencies import Frequencies
from adacoord.solvers.primal_dual import apdc
from adacoord.solvers.primal_dual.apdc import APDC, static_rates


def make(n=40, d=8, seed=0, loss="smooth_hinge"):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6) * rng.exponential(1.0, (n, 1))
    A[3] = 0.0
    z = A @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    return A, (z if loss == "squared" else np.where(z > 0, 1.0, -1.0))


def solver_of(problem, seed=0):
    return APDC(problem, np.random.Generator(np.random.PCG64(seed)))


def prox(v, tau, l1, l2):
    return np.sign(v) * np.maximum(np.abs(v) - tau * l1, 0.0) / (1.0 + tau * l2)


@pytest.mark.parametrize("l1", [0.0, 0.02], ids=["l2", "l1+l2"])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_step_is_the_one_in_the_docstring(l1, storage, intercept, monkeypatch):
    """y_i at x itself; x by u + dy a_i (1/N + theta/(N p_i)); four passes, one correction."""
    A, b = make()
    l2 = 0.01
    problem = ac.Problem(storage(A), b, "smooth_hinge", l1, l2, intercept=intercept)
    solver = solver_of(problem)
    calls = []
    run = solver._run
    monkeypatch.setattr(
        solver, "_run", lambda *args: (calls.append([np.copy(v) for v in args]), run(*args))
    )
    solver.advance(4)
    assert len(calls) == 4
    N, beta, W = solver.n_rows, solver.beta, solver.weight
    A1 = np.hstack([A, np.full((len(b), 1), beta)])
    x, y, u = np.zeros(9), np.zeros(len(b)), np.zeros(9)
    weights = np.r_[np.full(8, l1), 0.0], np.r_[np.full(8, l2), 0.0]
    for order, sigma, kappa, tau, theta in calls:
        assert theta == 0.0
        np.testing.assert_allclose(  # sigma_i tau R_i^2 = .9 N p_i, kappa_i = 1/N + theta/(N p_i)
            (sigma * tau * W * (A1**2).sum(axis=1))[solver.rows],
            0.9 * (1 - solver.mu) / (kappa[solver.rows] - 1 / N),
            rtol=1e-10,
        )
        for i in order:
            z, s = A1[i] @ x, sigma[i]
            free = (y[i] + s * (z - b[i])) / (1 + s)
            dy = -b[i] * np.clip(-b[i] * free, 0, 1) - y[i]
            g = W[i] * dy
            x = prox(x - tau * (u + kappa[i] * g * A1[i]), tau, *weights)
            y[i] += dy
            u += g * A1[i] / N
    np.testing.assert_allclose(solver.x, x[:8], rtol=0, atol=1e-11 * (1 + np.abs(x).max()))
    np.testing.assert_allclose(solver.y, y, rtol=0, atol=1e-11)
    assert solver.intercept == pytest.approx(beta * x[8], abs=1e-11)


def test_static_rates():
    norms = np.random.default_rng(0).exponential(1.0, 200)
    mu, tau, p = static_rates(norms, 1e-3, 0.5)
    assert p.sum() == pytest.approx(1.0)
    assert tau == pytest.approx(mu / (2 * 1e-3 * (1 - mu)))
    np.testing.assert_allclose(
        p, mu / 2 * (1 + np.sqrt(1 + 8 * tau * norms**2 / (200 * 0.5 * mu))), rtol=1e-6
    )
    assert np.all(np.diff(p[np.argsort(norms)]) >= 0)  # long rows are visited more often


def test_frequencies_are_met_to_within_a_visit():
    rng = np.random.default_rng(0)
    frequencies = rng.exponential(1.0, 50)
    schedule = Frequencies(50, rng)
    visits = np.zeros(50)
    for passes in range(1, 30):
        order = schedule.order(frequencies, rng)
        visits += np.bincount(order, minlength=50)
        assert np.all(np.abs(visits - passes * frequencies) < 1.0)


def test_gap_parts_sum_to_the_gap():
    A, b = make()
    problem = ac.Problem(A, b, "logistic", l1=0.01, l2=0.01)
    solver = solver_of(problem)
    solver.advance(3)
    primal_part, dual_part = solver._gap_parts(solver.primal.x)
    rows = solver.rows  # the row of zeros is not the solver's business
    const = (len(b) - rows.size) / len(b)
    y = solver.y.copy()
    y[np.setdiff1d(np.arange(len(b)), rows)] = problem.loss.derivative(0.0, b[3])
    assert const > 0
    assert primal_part + dual_part == pytest.approx(problem.gap(solver.x, y), rel=1e-9)


def test_safeguard_takes_up_the_best_point(monkeypatch):
    """With a coupling far beyond what is stable the run must still end at the optimum."""
    monkeypatch.setattr(apdc, "COUPLING", 60.0)
    rng = np.random.default_rng(0)
    A = 1.0 + 0.05 * rng.standard_normal((200, 5))
    problem = ac.Problem(A, rng.standard_normal(200), "squared", l2=1e-3)
    solver = solver_of(problem)
    assert solver.coupling == 60.0
    result = ac.solve(problem, "apdc", tol=1e-8, max_passes=2000)
    assert result.converged
    solver.advance(result.passes)
    assert solver.coupling < 60.0
    assert np.isfinite(solver.x).all()


@pytest.mark.parametrize("seed", range(12))
def test_converges_whatever_the_data(seed):
    """Nearly parallel rows, long rows, small penalties, weights, intercepts."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(10, 80)), int(rng.integers(1, 12))
    A = np.outer(1 + 9 * (rng.random(n) < 0.2), rng.standard_normal(d))
    A = A + 10.0 ** rng.uniform(-3, 0) * rng.standard_normal((n, d))
    loss = ["squared", "logistic", "smooth_hinge"][seed % 3]
    b = rng.standard_normal(n) if loss == "squared" else np.where(rng.random(n) < 0.5, 1.0, -1.0)
    b[:2] = 1.0, -1.0
    l2 = 10.0 ** rng.uniform(-5, -2) * float(np.mean((A**2).sum(axis=1)))
    problem = ac.Problem(
        A,
        b,
        loss,
        l2=l2,
        intercept=bool(seed % 2),
        sample_weight=rng.exponential(1.0, n) if seed % 4 == 0 else None,
    )
    result = ac.solve(problem, "apdc", tol=1e-9, max_passes=20_000)
    assert result.converged
    other = ac.solve(problem, "dcd", tol=1e-6, max_passes=20_000)
    assert result.dual <= other.primal + 1e-12
    assert result.primal <= other.primal + 1e-12
