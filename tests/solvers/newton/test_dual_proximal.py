"""The Newton steps that ACF turns to where coordinates crawl and columns are few."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import adacoord as ac
from adacoord.problem.losses import LOSSES
from adacoord.solvers.dual.acf import AdaptiveFrequencies
from adacoord.solvers.newton.dual_proximal import (
    OVER,
    SHORT,
    affordable,
    respond,
    slope_along,
    step_length,
)

STORAGES = pytest.mark.parametrize("storage", ["dense", "csr", "unsorted"])


def make(loss, n=200, d=8, storage="dense", seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    A = scale * rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7) / np.arange(1, d + 1)
    A[4] = 0.0
    z = A @ rng.standard_normal(d) + 0.3 + 0.5 * rng.standard_normal(n)
    if LOSSES[loss].task == "classification":
        b = np.where(z > 0, 1.0, -1.0)
    else:
        counts = np.exp(np.clip(z, -3, 2))
        b = {"count": np.floor(counts), "positive": counts}.get(LOSSES[loss].task, z)
    if storage == "dense":
        return A, b
    A = sparse.csr_matrix(A)
    if storage == "unsorted":
        for i in range(n):
            part = slice(A.indptr[i], A.indptr[i + 1])
            A.indices[part], A.data[part] = A.indices[part][::-1].copy(), A.data[part][::-1].copy()
        A.has_sorted_indices = False
    return A, b


def make_solver(problem, seed=0, **options):
    return AdaptiveFrequencies(problem, np.random.Generator(np.random.PCG64(seed)), **options)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_derivative_of_the_response(loss):
    rng = np.random.default_rng(1)
    _, b = make(loss)
    problem = ac.Problem(np.eye(b.size), b, loss, l2=0.1)
    law = (problem.loss.code, *problem.loss.constants)
    z, sigma, e = rng.standard_normal(b.size), 0.7, 1e-6
    center = problem.into_domain(0.3 * rng.standard_normal(b.size))
    y, h, ahead, behind, _ = (np.empty(b.size) for _ in range(5))
    respond(*law, z, b, center, sigma, y, h)
    respond(*law, z + e, b, center, sigma, ahead, _)
    respond(*law, z - e, b, center, sigma, behind, _)
    np.testing.assert_allclose(y, problem.loss.dual_prox(z, b, center, sigma), atol=1e-14)
    smooth = np.abs((ahead - y) - (y - behind)) < 1e-9  # no kink in between
    assert smooth.mean() > 0.9
    np.testing.assert_allclose(h[smooth], ((ahead - behind) / (2 * e))[smooth], atol=1e-4)
    dz, w = rng.standard_normal(b.size), rng.random(b.size)
    respond(*law, z + 0.4 * dz, b, center, sigma, y, h)
    assert slope_along(*law, z, dz, 0.4, b, center, sigma, w) == pytest.approx((w * y) @ dz)


@pytest.mark.parametrize("root", [1e-5, 0.01, 0.3, 0.99, 5.0])
@pytest.mark.parametrize("power", [0.2, 1.0, 5.0])
def test_step_length(root, power):
    def slope(t):  # increasing, -2 at 0, 0 at the root
        return 2.0 * ((t / root) ** power - 1.0)

    t = step_length(slope, 2.0)
    assert 0.0 < t <= 1.0
    assert slope(t) <= OVER * 2.0 and (t == 1.0 or slope(t) >= SHORT * 2.0)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_it_stays_at_the_optimum(loss):
    """Far beyond what rounding lets it improve."""
    A, b = make(loss, seed=7)
    problem = ac.Problem(A, b, loss, l2=1e-6)
    solver = make_solver(problem)
    solver.advance(100)
    gap = problem.gap(solver.x, solver.y)
    solver.advance(300)
    assert gap < 1e-10 and problem.gap(solver.x, solver.y) < 1e-10


@pytest.mark.slow
@STORAGES
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_is_turned_to_and_finds_the_optimum(loss, intercept, storage):
    A, b = make(loss, storage=storage, seed=3)
    w = np.random.default_rng(4).exponential(1.0, b.size)
    w[:20] = 0.0
    problem = ac.Problem(A, b, loss, l2=1e-6, intercept=intercept, sample_weight=w)
    solver = make_solver(problem)
    solver.advance(20)
    # as far as coordinates get in 20 passes (those of log links converge), or by Newton's steps
    assert solver.newton is not None or problem.gap(solver.x, solver.y, solver.intercept) < 1e-8
    result = ac.solve(problem, "acf", tol=1e-9, max_passes=400)
    assert result.converged
    if LOSSES[loss].log_link:  # on which all other solvers crawl
        best = minimize(
            lambda v: problem.primal(v[:8], float(v[8]) * intercept),
            np.zeros(9),
            method="L-BFGS-B",
            options={"maxiter": 2000, "ftol": 1e-13},
        ).fun
        assert result.dual <= best and best == pytest.approx(result.primal, rel=1e-5)
    else:
        other = ac.solve(problem, "apdc", tol=1e-6, max_passes=10**5)
        assert result.dual <= other.primal and other.dual <= result.primal


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_steps_hardly_depend_on_the_penalty(loss):
    A, b = make(loss, n=2000, d=20, seed=5)
    passes = [
        ac.solve(ac.Problem(A, b, loss, l2=l2), "acf", max_passes=2000).passes
        for l2 in (1e-5, 1e-7, 1e-9)
    ]
    assert max(passes) <= 100, passes


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_passes_add_up_and_state_is_whole(loss):
    A, b = make(loss, seed=6)
    problem = ac.Problem(A, b, loss, l2=1e-6, intercept=True)
    whole, parts, other = (make_solver(problem, seed) for seed in (0, 0, 5))
    whole.advance(30)
    assert whole.newton is not None
    for k in (7, 1, 1, 1, 5):
        parts.advance(k)
        other.restore(parts.state())
    for solver in (parts, other):
        solver.advance(15)
        for name in ("x", "y", "intercept", "operations", "passes"):
            np.testing.assert_array_equal(getattr(solver, name), getattr(whole, name), name)


def test_when_it_is_not_for_it():
    A, b = make("hinge")
    rows = np.arange(200)
    assert affordable(ac.Problem(A, b, "hinge", l2=0.1), rows)
    assert not affordable(ac.Problem(A, b, "hinge", l1=0.1, l2=0.1), rows)
    assert not affordable(ac.Problem(A, b, "hinge", l2=0.1, positive=True), rows)
    wide = sparse.random(200, 4000, density=0.01, format="csr", random_state=0)
    assert not affordable(ac.Problem(wide, b, "hinge", l2=0.1), rows)
    long = np.random.default_rng(0).standard_normal((200, 150))
    assert not affordable(ac.Problem(long, b, "smooth_hinge", l2=0.1), rows)
    assert affordable(ac.Problem(long, b, "smooth_hinge", l2=0.1), rows[:20])
    assert affordable(ac.Problem(long, b, "hinge", l2=0.1), rows)
    assert not affordable(ac.Problem(sparse.csr_matrix(long), b, "hinge", l2=0.1), rows)
    for order in ("frequencies", "shrinking"):
        solver = make_solver(ac.Problem(A, b, "hinge", l2=1e-6), order=order)
        solver.advance(50)
        assert solver.newton is None


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("scaled", [True, False])
def test_long_dense_rows_with_kinks(loss, scaled):
    """All rows have curvature at first, and BLAS does not mind; coordinates crawl for ever."""
    rng = np.random.default_rng(5)
    n, d = 2000, 140
    A = rng.standard_normal((n, d))
    b = A[:, :20] @ rng.standard_normal(20) / 4.0 + 0.3 * rng.standard_normal(n)
    if loss == "hinge":
        b = np.where(b > 0.0, 1.0, -1.0)
    if not scaled:
        A = (A + rng.standard_normal(d)) * np.exp(1.5 * rng.standard_normal(d))
    found = ac.solve(ac.Problem(A, b, loss, l2=1.0 / n, intercept=True), tol=1e-4)
    assert found.converged and found.solver in ("acf", "newton") and found.history.switched is None
    assert found.passes < 110
