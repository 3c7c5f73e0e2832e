"""Newton steps on the support of groups, against many proximal steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adacoord.solvers.newton import group_support
from adacoord.solvers.newton.group_support import group_newton


def make(seed: int, d: int = 12):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((d + 3, d)) + 2.0 * rng.standard_normal((d + 3, 1))
    index = np.sort(rng.integers(0, 4, d)) * 2  # groups without a member, too
    return root.T @ root / d, rng.standard_normal(d), rng.standard_normal(d), index, rng


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.2]), st.sampled_from([0.0, 0.3]))
def test_the_model_is_lowered_and_signs_are_kept(seed, l1, l2):
    B, g, x, index, rng = make(seed)
    thresholds = rng.random(8)

    def value(v):
        step, norms = v - x, np.sqrt(np.bincount(index, v * v, 8))
        smooth = g @ step + 0.5 * step @ B @ step + 0.5 * l2 * v @ v
        return smooth + thresholds @ norms + l1 * np.abs(v).sum()

    before = x.copy()
    new = group_newton(B, g, x, index, thresholds, l1, l2)
    assert np.array_equal(x, before)
    assert value(new) <= value(x)
    if l1 > 0.0:
        assert (new * x >= 0.0).all()


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_minimum_where_no_group_goes(l2):
    B, g, x, index, _ = make(3)
    thresholds, g = np.full(8, 0.05), 0.1 * g
    new = group_newton(B, g, x, index, thresholds, 0.0, l2)
    norms = np.sqrt(np.bincount(index, new * new, 8))
    slope = (
        g + B @ (new - x) + l2 * new + (thresholds / np.where(norms > 0, norms, 1.0))[index] * new
    )
    assert np.abs(slope).max() < 1e-6


def test_no_factor_for_what_rounding_hides(monkeypatch):
    B, g, x, index, _ = make(3)
    thresholds, g = np.full(8, 0.05), 0.1 * g
    best = x
    for _ in range(3):  # to where no value shows what is missing
        best, g = (
            (new := group_newton(B, g, best, index, thresholds, 0.0, 0.3)),
            g + B @ (new - best),
        )
    factors, factor = [], group_support.Cholesky
    monkeypatch.setattr(group_support, "Cholesky", lambda H: factors.append(1) or factor(H))
    near = best + 1e-7
    found = group_newton(B, g + B @ (near - best), near, index, thresholds, 0.0, 0.3)
    assert len(factors) == 1
    np.testing.assert_allclose(found, best, atol=1e-12)


def test_one_factor_where_it_will_do(monkeypatch):
    B, g, x, index, _ = make(3)
    thresholds, g = np.full(8, 0.05), 0.1 * g
    made, factor = [], group_support.Cholesky
    monkeypatch.setattr(group_support, "Cholesky", lambda H: (made.append(1), factor(H))[1])
    new = group_newton(B, g, x, index, thresholds, 0.0, 0.3)
    once = len(made)
    monkeypatch.setattr(group_support, "_conjugate_gradients", lambda *how: None)
    other = group_newton(B, g, x, index, thresholds, 0.0, 0.3)
    np.testing.assert_allclose(new, other, atol=1e-6)
    assert once < len(made) - once


def test_conjugate_gradients_give_up_on_another_matrix():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((40, 40))
    H, right = root @ root.T + 1e-6 * np.eye(40), rng.standard_normal(40)
    near = group_support.Cholesky(H * 1.1)
    found = group_support._conjugate_gradients(lambda v: H @ v, near, right)
    np.testing.assert_allclose(H @ found, right, atol=1e-6)
    far = group_support.Cholesky(np.eye(40))
    assert group_support._conjugate_gradients(lambda v: H @ v, far, right) is None
    assert group_support._conjugate_gradients(lambda v: -(H @ v), near, right) is None
