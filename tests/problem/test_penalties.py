"""The laws that make a penalty one thing: g, its prox, its conjugate, and what holds x_j at 0.

g is written out below, one scalar at a time; every law is held against that, or against a search
over x.  The last test keeps the package from taking penalties apart anywhere else.
"""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import adacoord
from adacoord.kernels.prox import prox
from adacoord.problem.penalties import Penalty

SETTINGS = settings(max_examples=100, deadline=None)
WEIGHTS = st.sampled_from([0.0, 0.03, 0.4, 1.0, 2.5])
PENALTIES = st.builds(Penalty, WEIGHTS, WEIGHTS, st.booleans())
STRONGLY_CONVEX = PENALTIES.filter(lambda p: p.l2 > 0.0)
NUMBERS = st.floats(-10.0, 10.0).map(lambda v: round(v, 3))
VECTORS = st.lists(NUMBERS, min_size=1, max_size=5).map(np.array)
STEPS = st.floats(1e-3, 1e3)


def g(penalty, x):
    """The textbook's, of one number."""
    if penalty.positive and x < 0.0:
        return math.inf
    return penalty.l1 * abs(x) + 0.5 * penalty.l2 * x * x


@SETTINGS
@given(PENALTIES, VECTORS)
def test_value_is_the_textbook_sum(penalty, x):
    assert penalty.value(x) == pytest.approx(sum(g(penalty, t) for t in x), rel=1e-13)


# --- what kind of penalty it is ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "quadratic", "sparse", "coercive"),
    [
        (Penalty(), True, False, False),
        (Penalty(0.0, 1.0), True, False, True),
        (Penalty(1.0, 0.0), False, True, True),
        (Penalty(1.0, 1.0), False, True, True),
        (Penalty(0.0, 0.0, True), False, True, False),
        (Penalty(0.0, 1.0, True), False, True, True),
        (Penalty(1.0, 0.0, True), False, True, True),
    ],
)
def test_kinds(penalty, quadratic, sparse, coercive):
    assert (penalty.quadratic, penalty.sparse, penalty.coercive) == (quadratic, sparse, coercive)
    assert penalty.separable


@SETTINGS
@given(PENALTIES)
def test_kinds_mean_what_they_say(penalty):
    far = [30.0] if penalty.positive else [30.0, -30.0]
    assert penalty.coercive == all(g(penalty, x) > 0.0 for x in far)
    v = np.linspace(-30.0, 30.0, 60_001)
    assert penalty.sparse == (np.count_nonzero(penalty.prox(v, 1.0) == 0.0) > 1)  # not v = 0 alone
    ridge = [0.5 * penalty.l2 * x * x for x in (-3.0, 0.0, 2.0)]
    assert penalty.quadratic == ([g(penalty, x) for x in (-3.0, 0.0, 2.0)] == ridge)


@SETTINGS
@given(PENALTIES, NUMBERS, NUMBERS)
def test_strong_convexity_is_the_largest_that_holds(penalty, x, z):
    if penalty.positive:
        x, z = abs(x), abs(z)
    lam = penalty.strong_convexity
    middle = 0.5 * (g(penalty, x) + g(penalty, z)) - g(penalty, 0.5 * (x + z))
    bound = lam * (x - z) ** 2 / 8.0
    assert middle >= bound - 1e-12 * (1.0 + bound)
    if x * z >= 0.0:  # l1 is linear there
        assert middle == pytest.approx(bound, abs=1e-12 * (1.0 + abs(bound) + g(penalty, x + z)))


@SETTINGS
@given(PENALTIES, st.sampled_from([0.0, 0.2, 3.0]), VECTORS)
def test_plus_quadratic_adds_to_the_value(penalty, mu, x):
    more = penalty.plus_quadratic(mu)
    assert more.value(x) == pytest.approx(penalty.value(x) + 0.5 * mu * np.sum(x * x), rel=1e-12)
    assert more.strong_convexity == penalty.strong_convexity + mu


# --- the prox ------------------------------------------------------------------------------------


@SETTINGS
@given(PENALTIES, VECTORS, STEPS, NUMBERS)
@example(Penalty(0.4, 0.0, True), np.array([-2.0, 0.1, 2.0]), 1.0, 0.3)
def test_prox_is_the_minimiser(penalty, v, step, other):
    x = penalty.prox(v, step)
    other = abs(other) if penalty.positive else other
    for at, near in zip(x, v, strict=True):
        least = g(penalty, at) + (at - near) ** 2 / (2.0 * step)
        for z in (other, 0.0, at + 1e-3, max(at - 1e-3, 0.0) if penalty.positive else at - 1e-3):
            value = g(penalty, z) + (z - near) ** 2 / (2.0 * step)
            # 1/step-strongly convex: this holds for the minimiser and for no other point
            assert value >= least + (z - at) ** 2 / (2.0 * step) - 1e-10 * (1.0 + abs(value))


@SETTINGS
@given(PENALTIES, VECTORS, STEPS)
def test_moreau(penalty, v, step):
    """v = x + step w with x = prox(v) and w in the subdifferential of g at x."""
    x = penalty.prox(v, step)
    w = (v - x) / step
    room = 1e-9 * (1.0 + np.abs(v).max() / step)
    if penalty.strong_convexity > 0.0:
        found = penalty.conjugate_gradient(w)
        np.testing.assert_allclose(found, x, rtol=0, atol=room / penalty.strong_convexity)
    else:
        assert penalty.excess(w).max() <= room
        w = np.clip(w, -np.inf if penalty.positive else -penalty.l1, penalty.l1)
    total = penalty.value(x) + penalty.conjugate(w)
    assert total == pytest.approx(np.sum(x * w), rel=1e-8, abs=1e-8 * (1.0 + np.sum(np.abs(v))))


@SETTINGS
@given(PENALTIES, VECTORS, STEPS)
def test_prox_takes_a_step_for_each_coordinate_and_is_the_kernels(penalty, v, step):
    steps = step * (1.0 + np.arange(v.size))
    x = penalty.prox(v, steps)
    for j in range(v.size):
        alone = penalty.prox(v[j : j + 1], steps[j])[0]
        assert x[j] == alone == prox(v[j], steps[j], *penalty.arguments)


def test_arguments_make_the_same_penalty():
    for penalty in (Penalty(), Penalty(0.1, 0.2, True)):
        assert Penalty(*penalty.arguments) == penalty


# --- the conjugate -------------------------------------------------------------------------------


@SETTINGS
@given(PENALTIES, NUMBERS)
@example(Penalty(0.4, 0.0), 0.4)
@example(Penalty(0.4, 0.0), -0.41)
@example(Penalty(0.4, 0.0, True), -5.0)
def test_conjugate_is_the_supremum(penalty, v):
    # the maximiser is within |v|/l2, at most 334 here
    x = np.linspace(0.0 if penalty.positive else -400.0, 400.0, 60_001)
    values = x * v - penalty.l1 * np.abs(x) - 0.5 * penalty.l2 * x * x
    got, found = penalty.conjugate(np.array([v])), values.max()
    if got == np.inf:
        assert penalty.strong_convexity == 0.0
        assert found >= 399.0 * 5e-4  # grows with the grid: v has three digits
    else:
        spacing = 800.0 / 60_000
        assert found <= got + 1e-9 * (1.0 + got)
        assert got <= found + 0.5 * penalty.l2 * spacing**2 + 1e-9 * (1.0 + got)


@SETTINGS
@given(STRONGLY_CONVEX, VECTORS)
def test_conjugate_gradient_attains_the_supremum(penalty, v):
    x = penalty.conjugate_gradient(v)
    attained = np.sum(x * v) - sum(g(penalty, t) for t in x)
    assert attained == pytest.approx(penalty.conjugate(v), rel=1e-12, abs=1e-12)


# --- zeros, and feasible points ------------------------------------------------------------------


@SETTINGS
@given(PENALTIES, NUMBERS)
@example(Penalty(0.4, 0.0), 0.4)
@example(Penalty(0.4, 1.0, True), 7.0)
@example(Penalty(0.0, 0.0, True), 0.0)
def test_pull_and_slack_are_the_subdifferential_at_zero(penalty, u):
    """x = 0 minimises u x + g(x), as the loss's slope u has it, where the pull is at most l1."""
    held = all(u * t + g(penalty, t) >= 0.0 for s in (1e-3, 1e-6, 1e-9) for t in (s, -s))
    at = np.array([u])
    assert (penalty.pull(at)[0] <= penalty.l1) == held
    assert (penalty.slack(at)[0] >= 0.0) == held
    assert (penalty.critical_l1(at) <= penalty.l1) == held
    assert (penalty.prox(-at, 1.0)[0] == 0.0) == held


@SETTINGS
@given(PENALTIES, VECTORS)
@example(Penalty(0.4, 0.0, True), np.array([5.0, -0.3]))
@example(Penalty(0.0, 0.0), np.array([1.0]))
def test_feasible_scale_is_the_largest(penalty, u):
    t = penalty.feasible_scale(u)
    assert 0.0 <= t <= 1.0
    assert np.isfinite(penalty.conjugate(-t * u))
    if t < 1.0:
        assert penalty.conjugate(-(t + 1e-6) * u) == np.inf
    if penalty.coercive:
        assert t > 0.0
    if penalty.strong_convexity > 0.0:
        assert t == 1.0


@pytest.mark.parametrize("positive", [False, True])
def test_problem_scales_and_counts_by_the_penalty(positive):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 6)), rng.standard_normal(30)
    problem = adacoord.Problem(A, b, l1=0.01, positive=positive)
    y, u = problem.feasible_dual(-b)
    raw = -A.T @ b / 30
    worst = (-raw if positive else np.abs(raw)).max()
    np.testing.assert_allclose(y, -b * 0.01 / worst, rtol=1e-12)
    np.testing.assert_allclose(u, raw * 0.01 / worst, rtol=1e-12)
    assert problem.l1_max() == pytest.approx(worst, rel=1e-12)
    other = problem.with_penalty(l2=0.5)
    assert other.penalty == Penalty(0.01, 0.5, positive)


# --- one seam ------------------------------------------------------------------------------------

#: Who may read ``.l1`` and ``.positive``, and why.
READERS = {
    "problem/penalties.py": "the penalty itself",
    "problem/column_penalty.py": "the penalty itself, of each column",
    "problem/group_penalty.py": "the penalty itself, of groups",
    "problem/problem.py": "writes it down (repr)",
    "problem/unpenalised.py": "the sign, all that there is of it",
    "report": "writes problems down and poses them anew",
    "reproduce": "poses the papers' problems and prints their l1",
    "api": "poses problems",
    "command": "poses problems",
    "estimators": "pose problems",
    "io": "writes problems down",
    "auto/rule.py": "weighs l1 against l2",
    "solvers/registry.py": "which method takes an l1, and says what it cannot take",
    "solvers/newton/small.py": "which stage takes an l1",
    "solvers/newton/dense.py": "signs and thresholds of the model's active set",
    "solvers/newton/active_set.py": "the optimality conditions on an active set",
    "solvers/newton/program.py": "the cost of a linear program",
    "solvers/newton/interior.py": "the cost of a linear program",
}


def test_nobody_else_takes_a_penalty_apart():
    """Solvers ask the penalty (quadratic? prox? pull?), so that a new one is one file's matter."""
    root = Path(adacoord.__file__).parent
    found = []
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root)
        if any(str(part) in READERS for part in (path, *path.parents)):
            continue
        found += [
            f"{path}:{node.lineno}: .{node.attr}"
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and node.attr in ("l1", "positive")
        ]
    assert not found, "ask the Penalty instead (see its table): " + ", ".join(found)
