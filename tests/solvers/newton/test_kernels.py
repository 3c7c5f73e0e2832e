"""The loops of Newton's methods with one loss in them, against the table of losses row by row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr, softmax

import adacoord as ac
from adacoord.problem.losses import get_loss
from adacoord.solvers.baselines.row_kernels import best_shift
from adacoord.solvers.newton.class_kernels import follow_class_rows
from adacoord.solvers.newton.kernels import along_line, expand_rows, follow_rows

LOSSES = ["logistic", "squared", "huber", "log_cosh", "poisson", "gamma", ac.losses.Tweedie(1.3)]
each = pytest.mark.parametrize("loss", LOSSES, ids=str)


def make(loss, n=50, seed=0):
    loss, rng = get_loss(loss), np.random.default_rng(seed)
    z, dz, w = 2.0 * rng.standard_normal(n), 0.1 * rng.standard_normal(n), rng.random(n) / n
    w[:5] = 0.0
    b = {
        "classification": np.where(z > 0, 1.0, -1.0),
        "count": rng.integers(0, 5, n) * 1.0,
        "positive": rng.gamma(2.0, 1.0, n),
    }.get(loss.task, rng.standard_normal(n))
    return loss, (loss.code, *loss.constants), z, dz, b, w


def second(loss, z, b, h=1e-5):
    return (loss.derivative(z + h, b) - loss.derivative(z - h, b)) / (2 * h)


@each
def test_expansion(loss):
    loss, law, z, _, b, w = make(loss)
    y, p, bend = (np.empty(50) for _ in range(3))
    total, curvature = expand_rows(*law, z, b, w, y, p, bend)
    assert total == pytest.approx(np.sum(w * loss.value(z, b)), rel=1e-13)
    np.testing.assert_allclose(y, loss.derivative(z, b), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(p, w * y)
    if loss.name != "huber":  # whose curvature jumps
        np.testing.assert_allclose(bend, w * second(loss, z, b), rtol=1e-6, atol=1e-9)
    assert curvature == pytest.approx(bend.sum())


@each
def test_along_a_line(loss):
    loss, law, z, dz, b, w = make(loss)
    value, slope, bend = along_line(*law, 0.7, z, dz, b, w)
    at = z + 0.7 * dz
    assert value == pytest.approx(np.sum(w * loss.value(at, b)), rel=1e-13)
    assert slope == pytest.approx(np.sum(w * loss.derivative(at, b) * dz), rel=1e-12)
    if loss.name != "huber":
        assert bend == pytest.approx(np.sum(w * second(loss, at, b) * dz * dz), rel=1e-6)


@each
def test_slopes_that_follow(loss):
    """What they lack is Fenchel and Young's, to leading order of dz at least."""
    loss, law, z, dz, b, w = make(loss)
    y, p, bend, out = (np.empty(50) for _ in range(4))
    expand_rows(*law, z, b, w, y, p, bend)
    dz *= 0.1
    value, lacking, cut = follow_rows(*law, z, dz, b, w, y, bend, out, *loss.domain(b))
    kept = w > 0.0
    at = z + dz
    assert value == pytest.approx(np.sum(w * loss.value(at, b)), rel=1e-13)
    young = loss.value(at, b) + loss.conjugate(out, b) - out * at
    assert lacking == pytest.approx(np.sum((w * young)[kept]), rel=0.2, abs=1e-14)
    low, high = loss.domain(b)
    assert (out >= low).all() and (out <= high).all()
    with np.errstate(invalid="ignore"):
        free = (y + bend / w * dz)[kept]
    assert cut == pytest.approx(np.sum(w[kept] * np.abs(free - out[kept])), abs=1e-15)


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_slopes_beyond_the_domain_are_cut(loss):
    loss, law, z, _, b, w = make(loss)
    dz = np.full(50, 3.0 if loss.name == "gamma" else -3.0)
    y, p, bend, out = (np.empty(50) for _ in range(4))
    expand_rows(*law, z, b, w, y, p, bend)
    _, lacking, cut = follow_rows(*law, z, dz, b, w, y, bend, out, *loss.domain(b))
    ends = np.ones(50) if loss.name == "gamma" else -b
    np.testing.assert_array_equal(out[5:], ends[5:])  # rows of no weight stay
    assert cut == pytest.approx(np.sum(2.0 * bend)) and lacking > 0.0


@pytest.mark.parametrize("size", [0.05, 3.0])
def test_slopes_of_classes_that_follow(size):
    """On the simplex; what they lack is the divergence, to leading order, and so is what is cut."""
    rng = np.random.default_rng(0)
    z, b, w = 2.0 * rng.standard_normal((40, 5)), rng.integers(5, size=40), rng.random(40)
    w[7] = 0.0
    dz, eye = size * rng.standard_normal((40, 5)), np.eye(5)[b]
    p, q = softmax(z, axis=1), softmax(z + dz, axis=1)
    out = np.empty((40, 5))
    lacking, cut = follow_class_rows(p - eye, q - eye, b, w, dz, out)
    line = p * (1.0 + dz - (p * dz).sum(axis=1, keepdims=True))
    inside = np.maximum(line, 0.0)
    inside /= inside.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(out + eye, inside, atol=1e-14)
    np.testing.assert_allclose(out.sum(axis=1), 0.0, atol=1e-15)
    divergence = w @ rel_entr(inside, q).sum(axis=1)
    assert lacking == pytest.approx(divergence, rel=0.2 if size < 1.0 else 0.7)
    moved = w @ np.linalg.norm(inside - line, axis=1)
    if size < 1.0:
        assert (line > 0.0).all() and cut == 0.0
    else:
        assert moved <= cut <= 4.0 * moved


def whole(function, *common, rows):
    """As :meth:`Matrix.rowwise`."""
    return function(*common, *rows)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "logistic"])
@pytest.mark.parametrize("near", [-3.0, 0.0, 900.0])
def test_the_best_intercept(loss, near):
    loss, law, z, _, b, w = make(loss)
    found = best_shift(law, z, near, b, w, whole)
    best = minimize_scalar(lambda c: np.sum(w * loss.value(z + c, b)), bracket=(-1, 1), tol=1e-12)
    assert np.sum(w * loss.value(z + found, b)) <= best.fun + 1e-14
    assert abs(np.sum(w * loss.derivative(z + found, b))) <= 1e-12


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_overflows_are_infinite_and_rows_of_no_weight_do_not_count(loss):
    loss, law, z, _, b, w = make(loss)
    b += 1.0
    far = np.where(np.arange(50) < 5, -800.0 if loss.name == "gamma" else 800.0, z)
    y, p, bend = (np.empty(50) for _ in range(3))
    total, _ = expand_rows(*law, far, b, w, y, p, bend)
    assert np.isfinite(total) and not p[:5].any()
    far[:] = far[0]
    assert expand_rows(*law, far, b, w, y, p, bend)[0] == np.inf
