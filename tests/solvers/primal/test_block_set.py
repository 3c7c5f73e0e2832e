"""Working sets on blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest

import adacoord as ac
from adacoord.data.blocks import BlockMatrix
from adacoord.parallel.choice import in_blocks
from adacoord.parallel.executors import Serial, Threads
from adacoord.problem import Problem
from adacoord.solvers.primal import block_set
from adacoord.solvers.primal.block_set import BlockWorkingSet

LOSSES = "squared", "logistic", "huber", "squared_hinge"
BOUNDS = np.array([0, 200, 501, 600])


def make(loss="squared", n=600, d=40, mean=3.0, share=0.02, positive=False, scale=1.0, **how):
    rng = np.random.default_rng(d)
    A = rng.standard_normal((n, d))
    A[:, 1:] += 0.5 * A[:, :-1]
    A = scale * (A + mean * rng.standard_normal(d))
    z = (A - A.mean(axis=0)) @ (rng.standard_normal(d) * (rng.random(d) < 0.3)) / scale
    z += rng.standard_normal(n)
    b = z + 100.0 if loss in ("squared", "huber") else np.where(z > 0.0, 1.0, -1.0)
    whole = Problem(A, b, loss, l1=1.0, intercept=True, positive=positive, **how)
    l1 = share * whole.l1_max()
    return Problem(A, b, loss, l1=l1, intercept=True, positive=positive, **how)


def cut(problem, executor=None):
    out = in_blocks(problem, executor or Serial())
    out.matrix = BlockMatrix.of(problem.matrix, executor or Serial(), BOUNDS)
    return out


def solver(problem, start=None, seed=0):
    return BlockWorkingSet(cut(problem), np.random.default_rng(seed), start)


@pytest.mark.parametrize("rough", [0, np.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_passes_add_up_and_state_continues(loss, rough, monkeypatch):
    monkeypatch.setattr(block_set, "ROUGH", rough)
    monkeypatch.setattr(block_set, "FEW", 10)
    monkeypatch.setattr(block_set, "SMALLEST", 5)
    problem = make(loss)
    whole, parts, other = (solver(problem, seed=k) for k in range(3))
    whole.advance(6)
    for k in (1, 0, 2):
        parts.advance(k)
    state = parts.state()
    for key, value in state.items():
        assert np.asarray(value).dtype.kind in "biuf", key
    other.restore(state)
    for s in (parts, other):
        s.advance(3)
        for name in ("x", "y", "intercept", "passes", "operations", "estimate"):
            np.testing.assert_array_equal(getattr(s, name), getattr(whole, name), err_msg=name)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_rough_products_are_refined(loss, weighted, positive, monkeypatch):
    """float32 will do: what it gets wrong is seen by the next look."""
    monkeypatch.setattr(block_set, "ROUGH", 0)
    how = {"sample_weight": np.random.default_rng(2).random(600)} if weighted else {}
    problem = make(loss, positive=positive, **how)
    s = solver(problem)
    s.advance(1)
    assert s.rough and not s.exact
    if loss == "squared":
        gram = problem.matrix.dense[:, s.members] - s.shift
        gram = (gram.T * s.losses.w) @ gram
        np.testing.assert_allclose(s.raw, gram, rtol=0.0, atol=1e-5 * gram.max())
        assert np.abs(s.raw - gram).max() > 0.0
    found = ac.solve(cut(problem), "acf", tol=1e-10)
    monkeypatch.setattr(block_set, "ROUGH", np.inf)
    same = ac.solve(cut(problem), "acf", tol=1e-10)
    assert found.converged and found.passes <= same.passes + 1
    assert found.primal == pytest.approx(same.primal, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e25])
def test_what_float32_cannot_tell(loss, scale, monkeypatch):
    """Squares that vanish or overflow, and a column that is nearly another: float64 takes over."""
    monkeypatch.setattr(block_set, "ROUGH", 0)
    plain = make(loss, share=0.01)
    problem = plain
    if scale == 1e-8:
        A = plain.matrix.dense.copy()
        A[:, 5] = A[:, 6] + scale * A[:, 5]
        problem = Problem(A, plain.b, loss, l1=plain.penalty.l1, intercept=True)
    else:
        problem = make(loss, share=0.01, scale=scale)
    s = solver(problem)
    with np.errstate(all="ignore"):  # as within a run
        s.advance(20)
    assert s.exact or scale == 1e-8
    found = ac.solve(cut(problem), "acf", tol=1e-8)
    assert found.converged
    if scale != 1e-8:
        expected = ac.solve(cut(plain), "acf", tol=1e-9).primal
        assert found.primal == pytest.approx(expected, rel=2e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_bits_whoever_works(loss, monkeypatch):
    monkeypatch.setattr(block_set, "ROUGH", 0)
    problem = make(loss)
    one = ac.solve(cut(problem), "acf", tol=1e-9)
    for k in (1, 2, 4):
        executor = Threads(k)
        other = ac.solve(cut(problem, executor), "acf", tol=1e-9)
        executor.close()
        assert np.array_equal(one.x, other.x) and np.array_equal(one.y, other.y)
        assert (one.intercept, one.primal, one.passes) == (
            other.intercept, other.primal, other.passes,
        )  # fmt: skip


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_the_look_of_one_pass_is_that_of_the_data(mean, share):
    """z, the best intercept and u of a read in which the intercept is guessed."""
    problem = make(mean=mean, share=share)
    s = solver(problem)
    for _ in range(3):
        s.advance(1)
        z = problem.matrix.dense @ s.x + s.intercept
        size = (np.abs(problem.matrix.dense) @ np.abs(s.x)).max() + 100.0
        np.testing.assert_allclose(s.y, z - problem.b, rtol=0.0, atol=1e-14 * size)
        assert abs(np.sum(s.y)) <= 1e-12 * np.abs(s.y).sum()
        u = problem.average(s.y)
        size = np.abs(problem.matrix.dense).max() * np.abs(s.y).mean()
        np.testing.assert_allclose(s.u, u, rtol=0.0, atol=1e-13 * size)
        assert s.value == pytest.approx(0.5 * np.mean(np.square(s.y)), rel=1e-12)


def test_start():
    problem = make()
    found = ac.solve(cut(problem), "acf", tol=1e-10)
    again = ac.solve(cut(problem), "acf", tol=found.relative_gap + 1e-13, start=found)
    assert again.converged and again.passes <= 1
    lower = ac.solve(cut(problem.with_penalty(0.5 * problem.penalty.l1)), "acf", start=found)
    assert lower.converged
