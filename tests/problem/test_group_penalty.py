"""The penalty of groups against its definitions, and what is said of wrong groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import adacoord as ac
from adacoord.problem.group_penalty import GroupPenalty, as_groups


@st.composite
def penalties(draw):
    d = draw(st.integers(1, 7))
    labels = draw(st.lists(st.integers(0, 3), min_size=d, max_size=d))
    l1, l2 = draw(st.sampled_from([(0.0, 0.0), (0.3, 0.0), (0.0, 0.5), (0.2, 0.7)]))
    return as_groups(labels, None, draw(st.floats(0.05, 2.0)), l1, l2, d)


@st.composite
def penalties_and_vectors(draw, count=1):
    penalty = draw(penalties())
    number = st.floats(-5.0, 5.0, allow_subnormal=False)
    shape = draw(st.sampled_from([(penalty.index.size,), (penalty.index.size, 3)]))
    size = int(np.prod(shape))
    found = [
        np.array(draw(st.lists(number, min_size=size, max_size=size))).reshape(shape)
        for _ in range(count)
    ]
    return penalty, *found


def naive(p: GroupPenalty, x: np.ndarray) -> float:
    total = 0.0
    for group, weight in enumerate(p.weights):
        total += p.l21 * weight * np.linalg.norm(np.ravel(x[p.index == group]))
    return total + p.l1 * np.abs(x).sum() + 0.5 * p.l2 * np.square(x).sum()


@given(penalties_and_vectors())
def test_value(case):
    penalty, x = case
    assert penalty.value(x) == pytest.approx(naive(penalty, x), rel=1e-12, abs=1e-12)


@given(penalties_and_vectors(2), st.floats(0.01, 3.0))
def test_prox_is_a_minimum(case, step):
    """Nothing around it, and nothing on the way to another point, is better."""
    penalty, v, other = case
    x = penalty.prox(v, step)

    def cost(t):
        return naive(penalty, t) + np.square(t - v).sum() / (2.0 * step)

    best = cost(x)
    for share in (1.0, 0.1, 1e-3, 1e-5):
        for target in (other, np.zeros_like(v), v):
            assert cost(x + share * (target - x)) >= best - 1e-12 * (1.0 + abs(best))


@given(penalties_and_vectors(2))
def test_conjugate_bounds_and_is_attained(case):
    """g(x) + g*(v) >= x.v for every x, with equality where the conjugate is attained."""
    penalty, v, x = case
    v = penalty.feasible_scale(v) * v
    conjugate = penalty.conjugate(v)
    assert naive(penalty, x) + conjugate >= np.sum(x * v) - 1e-9 * (1.0 + np.abs(x * v).sum())
    if penalty.strong_convexity > 0.0:
        at = penalty.conjugate_gradient(v)
        attained = np.sum(at * v) - naive(penalty, at)
        assert attained == pytest.approx(conjugate, rel=1e-9, abs=1e-9)


@given(penalties_and_vectors())
def test_feasible_scale_is_the_largest(case):
    penalty, u = case
    t = penalty.feasible_scale(u)
    assert 0.0 < t <= 1.0
    assert np.isfinite(penalty.conjugate(-t * u))
    if t < 1.0:
        assert penalty.conjugate(-(t + 1e-5) * u) == np.inf
    if penalty.strong_convexity > 0.0:
        assert t == 1.0


@given(penalties_and_vectors())
def test_slack_says_where_zero_is_optimal(case):
    penalty, u = case
    slack = penalty.slack(u)
    zero = penalty.norms(penalty.prox(-u, 1.0)) == 0.0
    clear = np.abs(slack) > 1e-9
    assert np.array_equal(zero[clear], slack[clear] > 0.0)


def test_critical_factor_is_where_the_last_group_goes():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 9)), rng.standard_normal(40)
    for l1 in (0.0, 0.05):
        problem = ac.Problem(A, b, l21=0.1, l1=l1, groups=np.arange(9) // 3, intercept=True)
        factor = problem.l1_max()
        at = [problem.with_penalty(l1=s * l1, l21=s * 0.1) for s in (1.001 * factor, 0.99 * factor)]
        assert not ac.solve(at[0], tol=1e-9).x.any()
        assert ac.solve(at[1], tol=1e-9).x.any()


def test_large_and_small_numbers():
    penalty = as_groups([0, 0, 1], None, 1.0, 0.0, 0.0, 3)
    x = np.array([3e200, 4e200, 0.0])
    assert penalty.value(x) == pytest.approx(np.sqrt(2.0) * 5e200)
    assert penalty.value(x * 1e-390) == pytest.approx(np.sqrt(2.0) * 5e-190)


def test_against_a_general_minimiser():
    """Of a smooth P away from zeros of groups, by L-BFGS."""
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((30, 6)), 3.0 * rng.standard_normal(30)
    problem = ac.Problem(A, b, l21=0.01, l2=0.1, groups=[0, 1, 0, 1, 0, 1])
    found = minimize(lambda x: problem.primal(x), np.ones(6), method="BFGS", tol=1e-12)
    assert ac.solve(problem, tol=1e-12).primal == pytest.approx(found.fun, rel=1e-9)


A, B = np.ones((4, 3)), np.arange(4.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"groups": [0, 1]}, r"groups has shape \(2,\): A has 3 columns"),
        ({"groups": [0.0, np.nan, 1.0]}, "groups has the value nan at position 1"),
        ({"groups": [None, 1, 2]}, "groups has dtype object"),
        (
            {"groups": [0, 0, 1], "group_weights": [1.0]},
            r"shape \(1,\).*2 groups",
        ),
        ({"groups": [0, 0, 1], "group_weights": [1.0, -1.0]}, "value -1 at position 1"),
        ({"groups": [0, 0, 1], "group_weights": [1.0, np.nan]}, "value nan at position 1"),
        ({"groups": [0, 0, 1], "group_weights": [1.0, 0.0]}, "value 0 at position 1.*no penalty"),
        ({"groups": [0, 0, 1], "l21": 0.0}, "l21=0.0: groups need the weight"),
        ({"groups": [0, 0, 1], "l21": -1.0}, "l21=-1.0: the penalty must be finite"),
        ({"groups": [0, 0, 1], "l21": np.nan}, "l21=nan"),
        ({"groups": [0, 0, 1], "l1": [1.0, 2.0, 3.0]}, "l1=.*must be a number"),
        ({"groups": [0, 0, 1], "positive": True}, "groups of columns take no bounds"),
        ({"groups": [0, 0, 1], "loss": "absolute"}, 'loss="absolute": groups need a smooth loss'),
    ],
)
def test_bad_groups(wrong, words):
    with pytest.raises(ValueError, match=words):
        ac.Problem(A, B, **{"l21": 1.0, **wrong})


def test_several_targets_take_rows_only():
    with pytest.raises(ValueError, match="each column is a group by itself"):
        ac.Problem(A, np.ones((4, 2)) * B[:, None], l21=1.0, groups=[0, 0, 1])


@pytest.mark.parametrize("solver", ["cd", "dcd", "newton", "apdc", "lbfgs", "newton-cg", "sag"])
def test_other_solvers_refuse(solver):
    problem = ac.Problem(A, B, l21=1.0, l2=0.1, groups=[0, 0, 1])
    with pytest.raises(ValueError, match=f'solver="{solver}" takes no groups.*use solver="acf"'):
        ac.solve(problem, solver)
