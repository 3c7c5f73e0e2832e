"""The float32 copy of long dense rows: against NumPy in float64, and what may not depend on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adacoord as ac
from adacoord.solvers.newton import single
from adacoord.solvers.newton.newton_cg import NewtonCG


@pytest.fixture
def copied(monkeypatch):
    """Copies of small data, too."""
    monkeypatch.setattr(single, "LONG", 1)
    monkeypatch.setattr(single, "LARGE", 1)


def table(n, d, rng, means=1.0, order="C"):
    """Columns of unequal scale and with means that are not 0."""
    scale = np.exp(rng.normal(0.0, 2.0, d))
    return np.asarray(rng.standard_normal((n, d)) * scale + means * scale, order=order)


def pose(A, rng, loss="logistic", **kind):
    z = A @ (rng.standard_normal(A.shape[1]) / A.std(axis=0)) / A.shape[1] ** 0.5
    z -= z.mean()
    targets = {
        "poisson": rng.poisson(np.exp(0.5 * z)).astype(float),
        "huber": z + rng.standard_normal(len(A)),
        "squared": z + rng.standard_normal(len(A)),
    }
    return ac.Problem(A, targets.get(loss, np.where(z > 0.0, 1.0, -1.0)), loss, **kind)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 40),
    d=st.integers(1, 300),
    seed=st.integers(0, 2**16),
    means=st.sampled_from([0.0, 1.0, 1e6]),
    order=st.sampled_from(["C", "F"]),
    intercept=st.booleans(),
)
def test_products_are_those_of_the_data(n, d, seed, means, order, intercept):
    rng = np.random.default_rng(seed)
    A = table(n, d, rng, means, order)
    problem = pose(A, rng, l2=0.1, intercept=intercept)
    copy = single.SingleCopy(problem)
    assert copy.sound
    v, shift, bend = rng.standard_normal(d) / A.std(axis=0), 0.7, rng.random(n)
    av, hv, total = copy.hessian(v, shift, bend)
    # of what S is made of: without an intercept nothing is taken off large means
    about = A - (copy.centre if intercept else 0.0)
    size = np.abs(about) @ np.abs(v) + abs(copy.centre @ v) * 1e-9 + 1.0
    assert np.all(np.abs(av - (A @ v + shift)) <= 1e-6 * size)
    bent = bend * av
    assert total == pytest.approx(np.sum(bent), rel=1e-9, abs=1e-9 * np.sum(np.abs(bent)))
    large = np.abs(about).T @ np.abs(bent) + np.abs(copy.centre) * np.sum(np.abs(bent)) * 1e-9
    assert np.all(np.abs(hv - A.T @ bent) <= 1e-6 * large + 1e-300)
    p = rng.standard_normal(n)
    large = np.abs(about).T @ np.abs(p) + np.abs(copy.centre) * np.sum(np.abs(p)) * 1e-9
    assert np.all(np.abs(copy.tdot(p) - A.T @ p) <= 1e-6 * large + 1e-300)


def test_a_block_and_a_bit():
    """More rows than one block has, and not a multiple of four of them."""
    rng = np.random.default_rng(0)
    problem = pose(table(157, 2**11, rng), rng, l2=0.1, intercept=True)
    copy, v, p = single.SingleCopy(problem), rng.standard_normal(2**11), rng.standard_normal(157)
    A = problem.matrix.dense
    v /= A.std(axis=0)
    av, hv, _ = copy.hessian(v, 0.0, np.ones(157))
    np.testing.assert_allclose(av, A @ v, atol=2e-4)
    np.testing.assert_allclose(hv / A.std(axis=0), A.T @ av / A.std(axis=0), atol=2e-2)
    np.testing.assert_allclose(copy.tdot(p) / A.std(axis=0), A.T @ p / A.std(axis=0), atol=2e-4)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber", "poisson", "squared"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("tol", [1e-4, 1e-11])
def test_every_tolerance_is_reached(copied, loss, intercept, tol):
    """Where float32 ends, the data themselves go on; no certificate comes from the copy."""
    rng = np.random.default_rng(3)
    problem = pose(table(300, 40, rng), rng, loss, l2=1e-3, intercept=intercept)
    result = ac.solve(problem, "newton-cg", tol=tol)
    assert result.converged and result.relative_gap <= tol
    gap = problem.gap(result.x, result.y, result.intercept)
    assert problem.relative_gap(result.primal, result.primal - gap) <= tol
    newton = ac.solve(problem, "newton", tol=1e-12)
    assert result.primal - newton.primal <= tol * abs(newton.primal) + 1e-14


def test_as_many_passes_as_with_the_data(copied, monkeypatch):
    rng = np.random.default_rng(4)
    problem = pose(table(400, 60, rng, means=1e5), rng, l2=1e-4, intercept=True)
    passes = ac.solve(problem, "newton-cg", tol=1e-4).passes
    monkeypatch.setattr(single, "LONG", 10**9)
    assert passes <= ac.solve(problem, "newton-cg", tol=1e-4).passes + 2


def test_given_up_where_float32_cannot(copied):
    """An entry that its column's sample knows nothing of."""
    rng = np.random.default_rng(5)
    A = table(700, 20, rng)
    A[1, 3] = 1e60
    problem = pose(A, rng, l2=1e-3)
    assert not single.SingleCopy(problem).sound
    solver = NewtonCG(problem, rng)
    solver.advance(2)
    assert solver.exact and np.isfinite(solver.x).all()


def test_only_where_it_pays(monkeypatch):
    rng = np.random.default_rng(6)
    A = rng.standard_normal((30, 8))
    assert not single.worth_it(pose(A, rng, l2=1.0))
    monkeypatch.setattr(single, "LONG", 8)
    monkeypatch.setattr(single, "LARGE", A.size)
    assert single.worth_it(pose(A, rng, l2=1.0))
    assert not single.worth_it(pose(A.astype(np.float32), rng, l2=1.0))
    by_columns = np.asfortranarray(A, dtype=np.float32)
    assert not single.worth_it(pose(by_columns, rng, l2=1.0))
    monkeypatch.setattr(single, "LONG_COLUMNS", 8)
    assert single.worth_it(pose(by_columns, rng, l2=1.0))
    monkeypatch.setattr(single, "LARGEST", A.size - 1)
    assert not single.worth_it(pose(A, rng, l2=1.0))


@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
def test_least_squares_are_refined_from_the_data(copied, shape):
    """Products of float32 to the end; where they may have put too much into the residual, it comes
    from A."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal(shape)
    b = A @ rng.standard_normal(shape[1]) + rng.standard_normal(shape[0])
    problem = ac.Problem(A, b, l2=1e-1)
    solver = NewtonCG(problem, rng)
    scale = np.linalg.norm(A.T @ b) / problem.n
    least, synced = np.inf, set()
    for _ in range(60):
        solver.advance(1)
        synced.add(solver.synced)
        true = -(A.T @ (A @ solver.x - b) / problem.n + 1e-1 * solver.x)
        off = np.linalg.norm(true - solver.residual[:-1])
        assert off <= 8.0 * solver.doubt + 1e-14 * scale
        least = min(least, problem.gap(solver.x, solver.y))
        if least <= 1e-12 * problem.primal(solver.x):
            break
    assert len(synced) > 1 and not solver.exact
    assert least <= 1e-12 * problem.primal(solver.x)


def test_least_squares_leave_float32_where_it_is_not_enough(copied):
    """Means of 1e5 deviations and no intercept: the copy is good to 1e-2 of a deviation."""
    rng = np.random.default_rng(9)
    A = rng.standard_normal((400, 30)) + 1e5 * (1.0 + rng.random(30))
    b = A @ rng.standard_normal(30) / 30**0.5 + rng.standard_normal(400)
    problem = ac.Problem(A, b, l2=1e-2)
    solver = NewtonCG(problem, rng)
    solver.advance(200)
    assert solver.exact
    result = ac.solve(problem, "newton-cg", tol=1e-5, max_passes=1000)
    assert result.converged
    best = ac.solve(problem, "newton").primal
    assert result.primal - best <= 1e-5 * best


@pytest.mark.parametrize("l2", [1e-3, 1.1e-2])
def test_least_squares_from_a_start_nearby(copied, l2):
    rng = np.random.default_rng(10)
    problem = pose(table(300, 40, rng), rng, "squared", l2=1e-2, intercept=True)
    start = ac.solve(problem, "newton-cg", tol=1e-10)
    result = ac.solve(problem.with_penalty(l2=l2), "newton-cg", tol=1e-10, start=start)
    assert result.converged
    best = ac.solve(problem.with_penalty(l2=l2), "newton").primal
    assert result.primal - best <= 1e-10 * best


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_restored_in_the_middle(copied, loss):
    rng = np.random.default_rng(7)
    problem = pose(table(300, 40, rng), rng, loss, l2=1e-4, intercept=True)

    def solver():
        return NewtonCG(problem, np.random.Generator(np.random.PCG64(0)))

    whole, part, other = solver(), solver(), solver()
    part.advance(4)
    assert not part.exact
    other.restore(part.state())
    whole.advance(40)
    other.advance(36)
    assert whole.exact or loss == "squared"
    np.testing.assert_array_equal(whole.x, other.x)
    np.testing.assert_array_equal(whole.y, other.y)
