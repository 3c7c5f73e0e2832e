"""Newton's method for small data: its kernels against naive loops, its points by certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adacoord as ac
from adacoord.problem.losses import LOSSES
from adacoord.solvers.newton import dense
from adacoord.solvers.newton.dense import DenseNewton
from adacoord.solvers.newton.dense_kernels import (
    descend,
    expand_data,
    move,
    whole_step,
)
from adacoord.solvers.newton.kernels import family
from adacoord.solvers.newton.small import rounded

SMOOTH = [name for name, cls in LOSSES.items() if cls().differentiable]


def minimise(problem, x, c):
    """Iterations to the end."""
    newton = DenseNewton(problem)
    newton.begin(x, c, (problem.loss.code, *problem.loss.constants), problem.b)
    while not newton.ended:
        newton.iterate()
    assert not newton.failed
    return newton


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("fill", [True, False])
def test_expansion(make_data, loss, fill):
    """Against the losses' own derivatives, and differences of these."""
    rng = np.random.default_rng(0)
    A, b = make_data(30, 4, task=LOSSES[loss].task)
    A.flags.writeable = False
    z, w = rng.standard_normal(30), rng.random(30) * (rng.random(30) < 0.8)
    phi = LOSSES[loss]()
    y, bend, slope = np.empty(30), np.zeros(30), np.empty(5)
    bent = np.empty((30 if fill else 0, 5))
    law = *family(phi.code), phi.code, *phi.constants
    total, rows, flips = expand_data(A, *law, z, b, w, y, bend, bent, slope)
    np.testing.assert_allclose(total, np.sum(w * phi.value(z, b)), rtol=1e-12)
    np.testing.assert_allclose(y, phi.derivative(z, b), atol=1e-12)
    B = np.column_stack([A, np.ones(30)])
    np.testing.assert_allclose(slope, B.T @ (w * y), atol=1e-12)
    h = 1e-6
    second = (phi.derivative(z + h, b) - phi.derivative(z - h, b)) / (2 * h)
    np.testing.assert_allclose(bend, w * second, atol=1e-8)
    assert rows == flips == np.count_nonzero(bend)
    if fill:
        np.testing.assert_allclose(bent[:rows].T @ bent[:rows], (B.T * bend) @ B, atol=1e-12)
    assert expand_data(A, *law, z, b, w, y, bend, bent, slope)[2] == 0


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", SMOOTH)
def test_whole_step(make_data, loss, intercept, settled):
    """Against NumPy: taken near the optimum, refused where the slope would turn round."""
    rng, n, d, l2, phi = np.random.default_rng(2), 40, 4, 0.1, LOSSES[loss]()
    A, b = make_data(n, d, task=phi.task)
    A.flags.writeable = False
    B, w = np.column_stack([A, np.ones(n)])[:, : d + intercept], rng.random(n) / n
    x, c = 0.1 * rng.standard_normal(d), 0.2 * intercept
    z, y = A @ x + c, np.empty(n)
    bend, bent, slope = np.zeros(n), np.empty((n, d + 1)), np.empty(d + 1)
    law = *family(phi.code), phi.code, *phi.constants
    value, _, _ = expand_data(A, *law, z, b, w, y, bend, bent, slope)
    gradient = slope[: d + intercept].copy()
    gradient[:d] += l2 * x
    H = (B.T * (w / (phi.gamma or 1.0))) @ B + l2 * np.eye(d + intercept)  # an upper bound
    expected = -np.linalg.solve(H, gradient)
    for scale, fits in ((1.0, True), (1e-4, False)):
        factor = np.asfortranarray(np.linalg.cholesky(H * scale))
        expand_data(A, *law, z, b, w, y, bend, bent, slope)
        step, dz, trial, moving = np.empty(d + intercept), np.empty(n), np.empty(n), x.copy()
        arrays = step, dz, trial, y, bend, bent, slope
        taken, along, total, rows, _, moved = whole_step(
            A, factor, settled, l2, *law, b, w, moving, c, z, value, *arrays, 1.0, 1e-14
        )
        np.testing.assert_allclose(step, expected / scale, rtol=1e-9)
        np.testing.assert_allclose(dz, B @ step, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(along, gradient @ step, rtol=1e-9)
        assert taken == fits
        np.testing.assert_array_equal(moving, x + step[:d] if fits else x)
        if fits:
            np.testing.assert_allclose(trial, z + dz, rtol=1e-12)
            np.testing.assert_allclose(total, np.sum(w * phi.value(z + dz, b)), rtol=1e-12)
            np.testing.assert_allclose(slope[d], np.sum(w * phi.derivative(z + dz, b)), atol=1e-12)
            assert rows == np.count_nonzero(bend)
            shares = [
                np.abs(v).max() / np.abs(u).max() for v, u in ((step[:d], moving), (dz, trial))
            ]
            np.testing.assert_allclose(moved, max(shares), rtol=1e-12)


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 0.3, 5.0]))
@settings(max_examples=50, deadline=None)
def test_descent_ends_where_no_coordinate_moves(seed, positive, l1):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((8, 5))
    H, g0, x0 = B.T @ B + 0.1 * np.eye(5), rng.standard_normal(5), rng.standard_normal(5)
    x0 = np.maximum(x0, 0.0) if positive else x0
    x, g = x0.copy(), g0.copy()
    descend(H, g, x, l1, positive, 3000)
    np.testing.assert_allclose(g, g0 + H @ (x - x0), atol=1e-9)
    pull = x - g  # a proximal step of length 1 leaves x where it is
    fixed = (
        np.maximum(pull - l1, 0.0)
        if positive
        else np.sign(pull) * np.maximum(np.abs(pull) - l1, 0.0)
    )
    np.testing.assert_allclose(x, fixed, atol=1e-8)


def test_descent_leaves_columns_of_zeros_at_zero():
    H, x = np.diag([2.0, 0.0]), np.array([1.0, 3.0])
    descend(H, np.array([1.0, 0.0]), x, 0.5, False, 5)
    np.testing.assert_allclose(x, [0.25, 0.0])


def test_moves_are_shares():
    x, z = np.array([1.0, -3.0]), np.array([2.0, 0.0])
    assert move(x, np.array([2.0, 0.0]), z, np.array([0.0, 1.0]), 0.5) == 1.0 / 3.0
    np.testing.assert_array_equal(x, [2.0, -3.0])
    np.testing.assert_array_equal(z, [2.0, 0.5])
    assert move(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2), 1.0) == 0.0


PENALTIES = [
    {"l2": 0.02},
    {"l1": 0.02},
    {"l1": 0.02, "l2": 0.02},
    {"l2": 0.02, "positive": True},
    {"l1": 0.02, "positive": True},
]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(60, 8), (12, 30)], ids=str)
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_point_is_optimal(make_data, loss, penalty, shape, weighted, intercept):
    A, b = make_data(*shape, task=LOSSES[loss].task)
    w = np.random.default_rng(3).integers(0, 3, shape[0]) if weighted else None
    p = ac.Problem(A, b, loss, sample_weight=w, intercept=intercept, **penalty)
    found = minimise(p, np.zeros(p.d), 0.0)
    assert p.gap(found.x, found.y, found.c) <= 1e-11 * abs(p.primal(found.x, found.c))
    assert 0 < found.taken <= 50
    assert intercept or found.c == 0.0


@pytest.mark.parametrize("density", [1.0, 0.3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float32_and_sparse_data(make_data, density, dtype):
    A, b = make_data(80, 10, density, dtype=dtype)
    p = ac.Problem(A, b, "logistic", l2=0.01, intercept=True)
    found = minimise(p, np.zeros(10), 0.0)
    assert p.gap(found.x, found.y, found.c) <= 1e-13


def test_a_long_way(make_data):
    """Starts far off, where full steps do not do, and where the loss is flat."""
    A, b = make_data(80, 6)
    for loss in ("logistic", "squared_hinge", "smooth_hinge"):
        p = ac.Problem(A, b, loss, l2=1e-3, intercept=True)
        at_zero = minimise(p, np.zeros(6), 0.0)
        for scale in (30.0, -30.0):
            found = minimise(p, scale * at_zero.x, 50.0)
            np.testing.assert_allclose(found.x, at_zero.x, rtol=1e-8)


def test_collinear_columns_of_a_lasso(make_data):
    A, b = make_data(60, 5, task="regression")
    p = ac.Problem(
        np.column_stack([A, A[:, :2], np.ones(60)]), b, "squared", l1=0.01, intercept=True
    )
    r = minimise(p, np.zeros(8), 0.0)
    assert p.gap(r.x, r.y, r.c) <= 1e-9 * p.primal(r.x, r.c)
    plain = ac.Problem(A, b, "squared", l1=0.01, intercept=True)
    s = minimise(plain, np.zeros(5), 0.0)
    np.testing.assert_allclose(p.primal(r.x, r.c), plain.primal(s.x, s.c), rtol=1e-9)


def test_gram_is_shared_by_the_classes(make_data):
    A, b = make_data(40, 5)
    matrix = ac.Problem(A, b, "squared_hinge", l2=0.1).matrix
    B = np.column_stack([A, np.ones(40)])
    np.testing.assert_allclose(matrix.gram, B.T @ B, atol=1e-12)
    assert matrix.gram is matrix.gram
    assert not matrix.dense.flags.writeable
    wide = ac.Problem(A.T.copy(), b[:5], "squared", l2=0.1).matrix
    basis, triangle = wide.row_space
    np.testing.assert_allclose(triangle @ basis.T, A.T, atol=1e-12)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-12)


def ended(problem, monkeypatch, columns, law, b, rough):
    """An engine that has come to its end, with ``columns`` up to which steps are compiled."""
    monkeypatch.setattr(dense, "COMPILED", columns)
    newton = DenseNewton(problem)
    newton.begin(np.zeros(problem.d), 0.0, law, b, rough)
    while not newton.ended:
        newton.iterate()
    return newton


@pytest.mark.parametrize("rough", [0.0, 0.2])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("width", [0.5, 1e-3])
@pytest.mark.parametrize("shape", [(200, 7), (12, 20)])
@pytest.mark.parametrize("loss", ["hinge", "quantile", "epsilon_insensitive"])
def test_all_steps_at_once_are_the_steps(loss, shape, width, intercept, rough, monkeypatch):
    rng = np.random.default_rng(3)
    A = rng.standard_normal(shape)
    b = A @ rng.standard_normal(shape[1]) + rng.standard_normal(shape[0])
    b = np.sign(b) if loss == "hinge" else b
    w = rng.integers(0, 3, shape[0]).astype(float)
    problem = ac.Problem(A, b, loss, l2=0.01, intercept=intercept, sample_weight=w)
    law, targets = rounded(problem, width, np.zeros(shape[0]))
    law = law.code, *law.constants
    at_once = ended(problem, monkeypatch, 64, law, targets, rough)
    steps = ended(problem, monkeypatch, 0, law, targets, rough)
    assert not (at_once.failed or steps.failed)
    assert at_once.taken == steps.taken and at_once.bent == steps.bent
    np.testing.assert_allclose(at_once.x, steps.x, atol=1e-9)
    np.testing.assert_allclose(at_once.z, steps.z, atol=1e-9)
    np.testing.assert_allclose(at_once.y, steps.y, atol=1e-9 / width)
    assert at_once.c == pytest.approx(steps.c, abs=1e-9)
    assert at_once.value == pytest.approx(steps.value, rel=1e-9)
    assert at_once.operations == pytest.approx(steps.operations, rel=1e-2)


def test_without_a_factor_steps_are_taken_one_by_one(monkeypatch):
    """A column twice, and hardly a penalty: the systems are singular to rounding."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((60, 3))
    A = np.column_stack([A, A[:, 0]])
    problem = ac.Problem(A, A @ np.ones(4) + rng.standard_normal(60), "huber", l2=1e-18)
    law = problem.loss.code, *problem.loss.constants
    at_once = ended(problem, monkeypatch, 64, law, problem.b, 0.0)
    steps = ended(problem, monkeypatch, 0, law, problem.b, 0.0)
    assert not at_once.failed and at_once.taken == steps.taken
    np.testing.assert_allclose(at_once.z, steps.z, atol=1e-9)
