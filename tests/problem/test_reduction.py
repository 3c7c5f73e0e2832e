"""Offsets and weights that a change of variables takes away: the same P, D and points."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import adacoord as ac
from adacoord.problem.losses import LOSSES

NAMES = sorted(LOSSES)


def data(name, seed, n=40, d=6):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * np.exp(rng.standard_normal(d))
    b = rng.standard_normal(n)
    task = LOSSES[name].task
    if task == "classification":
        b = np.where(np.arange(n) % 2, 1.0, -1.0)
    elif task not in ("regression",):
        b = rng.poisson(1.5, n) + (0.5 if task == "positive" else 0.0)
    return A, b, 0.7 * rng.standard_normal(n), rng


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.integers(0, 1000), st.booleans(), st.booleans())
def test_the_losses_of_an_offset(name, seed, weighted, intercept):
    """P is the textbook's at z + o, and a dual point bounds it: D by its own definition."""
    A, b, o, rng = data(name, seed)
    w = rng.random(40) + 0.1 if weighted else None
    problem = ac.Problem(A, b, name, l2=0.1, offset=o, sample_weight=w, intercept=intercept)
    x, c = 0.1 * rng.standard_normal(6), 0.2 * intercept
    weights = np.ones(40) if w is None else w
    losses = problem.loss.value(A @ x + c + o, problem.b)
    want = float(np.mean(weights * losses)) + 0.05 * float(x @ x)
    assert problem.primal(x, c) == pytest.approx(want, rel=1e-12)
    np.testing.assert_allclose(problem.predict(x, c), A @ x + c + o, atol=1e-13)
    y, u = problem.feasible_dual(rng.standard_normal(40))
    want = -float(np.mean(weights * (problem.loss.conjugate(y, problem.b) - o * y)))
    assert problem.dual(y) == pytest.approx(want - 5.0 * float(u @ u), rel=1e-10, abs=1e-10)
    assert problem.dual(y) <= problem.primal(x, c) + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_a_reduced_problem_is_the_same_problem(name):
    """P differs by a constant, points by their scales."""
    A, b, o, rng = data(name, 3)
    weights = np.exp(rng.standard_normal(6))
    problem = ac.Problem(A, b, name, l1=0.1 * weights, offset=o, intercept=True)
    reduction = problem.reduction
    inner = reduction.problem
    assert inner.penalty.uniform
    if LOSSES[name].task == "classification":
        assert inner.offset is not None  # solvers add it
    else:
        assert inner.offset is None
    differences = []
    for _ in range(4):
        t, c = 0.1 * rng.standard_normal(6), float(rng.standard_normal())
        differences.append(problem.primal(reduction.x(t), c) - inner.primal(t, c))
        y = inner.feasible_dual(rng.standard_normal(40))[0]
        differences.append(problem.dual(reduction.y(y)) - inner.dual(y))
        point = SimpleNamespace(x=reduction.x(t), intercept=c, y=reduction.y(y))
        back = reduction.point(point)
        np.testing.assert_allclose(back.x, t, rtol=1e-12)
        np.testing.assert_allclose(back.y, y, rtol=1e-12)
    np.testing.assert_allclose(differences, differences[0], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_adaptive_lasso_is_the_lasso_of_scaled_columns(form, dtype):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((80, 12)).astype(dtype)
    b, weights = A @ np.r_[2.0, -1.0, np.zeros(10)] + 0.1, np.exp(rng.standard_normal(12))
    found = ac.solve(ac.Problem(form(A), b, l1=0.1 * weights, intercept=True), tol=1e-10)
    scaled = A.astype(np.float64) / weights
    other = ac.solve(ac.Problem(scaled, b, l1=0.1, intercept=True), tol=1e-10)
    assert found.converged and found.box is None
    np.testing.assert_allclose(found.x, other.x / weights, atol=1e-6)
    assert found.primal == pytest.approx(other.primal, rel=1e-9)


@pytest.mark.parametrize("solver", ["spdc", "apdc", "dcd", "sdca", "newton", "newton-cg", "lbfgs"])
def test_every_solver_takes_what_can_be_reduced(solver):
    A, b, o, rng = data("squared", 5)
    weights = np.exp(0.3 * rng.standard_normal(6))
    problem = ac.Problem(A, b, l2=0.5 * weights, offset=o, intercept=True)
    result = ac.solve(problem, solver, tol=1e-6, max_passes=3000)
    assert result.converged and result.solver == solver
    best = ac.solve(problem, tol=1e-12)
    assert result.primal - best.primal <= 1e-6 * best.primal
    again = ac.solve(problem, solver, tol=1e-6, start=result)
    assert again.passes == 0 or again.primal <= result.primal


def test_exposure_is_an_offset():
    """log(exposure) as an offset of counts: rates weighted by exposure, as the textbook has it."""
    rng = np.random.default_rng(2)
    A, exposure = rng.standard_normal((200, 4)), rng.uniform(0.1, 5.0, 200)
    counts = rng.poisson(exposure * np.exp(A @ [0.5, -0.3, 0.0, 0.1] - 1.0)) + 0.0
    kind = {"l2": 0.01, "intercept": True}
    offset = ac.solve(ac.Problem(A, counts, "poisson", offset=np.log(exposure), **kind), tol=1e-10)
    rates = ac.Problem(A, counts / exposure, "poisson", sample_weight=exposure, **kind)
    rates = ac.solve(rates, tol=1e-10)
    assert offset.converged
    np.testing.assert_allclose(offset.x, rates.x, atol=1e-6)
    np.testing.assert_allclose(offset.y, exposure * rates.y, atol=1e-6)


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie"])
def test_the_best_intercept_beside_an_offset(name):
    A, b, o, rng = data(name, 11)
    w = rng.random(40) + 0.1
    problem = ac.Problem(A, b, name, l1=1.0, offset=o, sample_weight=w, intercept=True)
    slopes = problem.loss.derivative(problem.null_intercept + o, b)
    assert abs(float(w @ slopes)) <= 1e-12 * float(w @ (np.abs(slopes) + 1.0))


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie"])
def test_offsets_that_no_weight_can_hold(name):
    """Their exponential overflows: they stay an offset."""
    A, b, o, _ = data(name, 12)
    problem = ac.Problem(A, b, name, l2=0.1, offset=-400.0 + o, intercept=True)
    assert problem.reduction.problem.offset is not None
    with np.errstate(all="ignore"):
        result = ac.solve(problem, tol=1e-6, max_passes=2000)
    near = ac.solve(ac.Problem(A, b, name, l2=0.1, offset=o, intercept=True), tol=1e-9)
    assert result.converged
    np.testing.assert_allclose(result.x, near.x, atol=1e-2)
    assert result.intercept == pytest.approx(near.intercept + 400.0, abs=1e-2)


def test_paths_take_factors_of_the_weights():
    A, b, _, rng = data("squared", 7)
    weights = np.exp(rng.standard_normal(6))
    problem = ac.Problem(A, b, l1=weights, intercept=True)
    path = ac.path(problem, n_points=5, tol=1e-8)
    assert not path.coefs[0].any() and path.coefs[-1].any()
    single = ac.solve(problem.with_penalty(l1=path.l1[-1] * weights), tol=1e-8)
    np.testing.assert_allclose(path.coefs[-1], single.x, atol=1e-5)
    bare = ac.Problem(A, b, l1=np.r_[0.0, weights[1:]])
    with pytest.raises(ValueError, match="give the factors l1 yourself"):
        ac.path(bare)
    assert len(ac.path(bare, l1=[1.0, 0.1])) == 2


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (np.r_[np.nan, np.zeros(39)], ["offset", "nan", "position 0"]),
        (np.zeros(39), ["offset", "(39,)", "40 rows"]),
        (["a"] * 40, ["offset", "real numbers"]),
        (np.r_[1e200, np.zeros(39)], ["offset", "1e+200", "rescale"]),
    ],
)
def test_bad_offsets_get_a_sentence(offset, words):
    A, b, _, _ = data("squared", 0)
    with pytest.raises(ValueError) as caught:
        ac.Problem(A, b, l2=0.1, offset=offset)
    for word in words:
        assert word in str(caught.value)
    with pytest.raises(ValueError, match=r"offset has shape \(40,\).*\(40, 3\)"):
        ac.Problem(A, np.arange(40) % 3, "multinomial", l2=0.1, offset=np.ones(40))


def test_threads_work_on_what_a_problem_is_reduced_to():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((4000, 30))
    b, o = A[:, 0] + rng.standard_normal(4000), rng.standard_normal(4000)
    weights = np.exp(0.3 * rng.standard_normal(30))
    problem = ac.Problem(A, b, l2=0.1 * weights, offset=o, intercept=True)
    found = ac.solve(problem, "newton-cg", n_jobs=2, tol=1e-9)
    best = ac.solve(problem, "newton", tol=1e-9)
    assert found.converged
    assert found.primal - best.primal <= 1e-9 * best.primal
    np.testing.assert_allclose(found.x, best.x, atol=1e-4)


def test_callbacks_see_the_points_of_the_problem_asked():
    A, b, o, rng = data("squared", 8)
    problem = ac.Problem(A, b, l1=0.01 * np.exp(rng.standard_normal(6)), offset=o)
    seen = []
    result = ac.solve(problem, "spdc", tol=1e-6, max_passes=5000, callback=seen.append)
    assert result.converged is not None and seen
    assert problem.primal(seen[-1].x) == pytest.approx(seen[-1].primal, rel=1e-12)


def test_copies_are_reduced_anew():
    A, b, o, _ = data("squared", 9)
    problem = ac.Problem(A, b, l2=0.1, offset=o)
    assert problem.reduction is problem.reduction
    other = problem.with_penalty(l2=np.linspace(0.1, 0.6, 6))
    assert other.reduction.x_scale is not None
    assert problem.reduction.x_scale is None


def test_where_zero_is_out_of_bounds_the_null_value_is_that_of_the_penalty():
    A, b, _, _ = data("squared", 10)
    problem = ac.Problem(A, b, l1=np.linspace(0.1, 0.6, 6), lower=1.0, upper=2.0)
    before = problem.null_value
    other = problem.with_penalty(l1=10.0)
    one = np.ones(6)
    np.testing.assert_array_equal(other.null_point, one)
    assert other.null_value == other.primal(one) > before == problem.primal(one)


def test_an_offset_without_a_penalty():
    """No certificate, as without an offset; and separable classes are told by what is scaled."""
    rng = np.random.default_rng(6)
    A, o = rng.standard_normal((200, 3)), rng.standard_normal(200)
    b = np.where(A[:, 0] + o + rng.logistic(size=200) > 0, 1.0, -1.0)
    result = ac.solve(ac.Problem(A, b, "logistic", offset=o, intercept=True), tol=1e-8)
    assert result.status == "stationary, no certificate"
    pinned = ac.Problem(
        np.column_stack([A, o]), b, "logistic", lower=[-50.0] * 3 + [1.0], upper=[50.0] * 3 + [1.0],
        intercept=True,
    )  # fmt: skip
    np.testing.assert_allclose(result.x, ac.solve(pinned, tol=1e-12).x[:3], atol=1e-5)
    apart = ac.Problem(A, np.sign(A[:, 0]), "logistic", offset=-3.0 * A[:, 0])
    assert not apart.separates(np.array([2.0, 0.0, 0.0]) * -1.0)
    assert apart.separates(np.array([2.0, 0.0, 0.0]))
