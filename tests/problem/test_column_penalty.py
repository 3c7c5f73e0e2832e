"""The laws of a penalty with weights and bounds of each column, and the box of those without.

g is written out below, one scalar at a time; every law is held against that, or against a search.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import adacoord as ac
from adacoord.problem.column_penalty import FAR, ColumnPenalty, as_penalty
from adacoord.problem.penalties import Penalty

SETTINGS = settings(max_examples=150, deadline=None)
WEIGHT = st.sampled_from([0.0, 0.03, 0.4, 2.5])
NUMBER = st.floats(-10.0, 10.0).map(lambda v: round(v, 3))
LOWER = st.sampled_from([-np.inf, -2.0, 0.0, 0.5])
UPPER = st.sampled_from([np.inf, 3.0, 0.5])
#: (l1, l2, lower, upper, v) of a column
COLUMN = st.tuples(WEIGHT, WEIGHT, LOWER, UPPER, NUMBER)
COLUMNS = st.lists(COLUMN, min_size=1, max_size=5)
SIZE = 0.02  # the box is 20


def penalty_of(columns):
    l1, l2, lower, upper, v = map(np.array, zip(*columns, strict=True))
    return ColumnPenalty(l1, l2, lower, upper, np.full(l1.size, SIZE)), v


def g(column, x):
    """The textbook's, of one number."""
    l1, l2, lower, upper, _ = column
    return l1 * abs(x) + 0.5 * l2 * x * x if lower <= x <= upper else math.inf


def inside(column):
    """Points of the domain of g, within the box where there is one."""
    l1, l2, lower, upper, _ = column
    far = 500.0
    if l1 == l2 == 0.0:
        far = FAR * max([SIZE, *(abs(end) for end in (lower, upper) if np.isfinite(end))])
    return np.linspace(max(lower, -far), min(upper, far), 40_001)


@SETTINGS
@given(COLUMNS)
def test_value_is_the_textbook_sum(columns):
    penalty, x = penalty_of(columns)
    want = sum(g(column, t) for column, t in zip(columns, x, strict=True))
    assert penalty.value(x) == pytest.approx(want, rel=1e-13)
    assert np.isfinite(penalty.value(penalty.nearest(x)))


@SETTINGS
@given(COLUMNS, st.floats(1e-3, 1e3))
def test_prox_is_the_minimiser(columns, step):
    penalty, v = penalty_of(columns)
    for column, at, near in zip(columns, penalty.prox(v, step), v, strict=True):
        least = g(column, at) + (at - near) ** 2 / (2.0 * step)
        for z in (column[2], column[3], 0.0, 0.3, -1.0, at + 1e-3, at - 1e-3):
            value = g(column, z) + (z - near) ** 2 / (2.0 * step)
            if np.isfinite(value):  # 1/step-strongly convex
                assert value >= least + (z - at) ** 2 / (2.0 * step) - 1e-9 * (1.0 + abs(value))


@SETTINGS
@given(COLUMN)
@example((0.0, 0.0, -np.inf, np.inf, 1.0))
@example((0.0, 0.0, 0.5, np.inf, -2.0))
@example((0.4, 0.0, -np.inf, 3.0, -0.5))
@example((0.4, 0.0, -2.0, np.inf, -9.0))
def test_conjugate_is_the_supremum(column):
    penalty, v = penalty_of([column])
    x = inside(column)
    values = x * v - column[0] * np.abs(x) - 0.5 * column[1] * x * x
    got, found = penalty.conjugate(v), float(values.max())
    spacing = float(x[1] - x[0]) if x.size > 1 else 0.0
    if got == np.inf:
        assert column[1] == 0.0 and column[0] > 0.0
        assert abs(x[np.argmax(values)]) == 500.0  # it grows to the end of the search
        return
    assert found <= got + 1e-9 * (1.0 + abs(got))
    # between two points of the grid it rises by no more than its kink and its curvature allow
    between = column[0] * spacing + 0.5 * column[1] * spacing**2
    assert got <= found + between + 1e-9 * (1.0 + abs(got))
    at = penalty.conjugate_gradient(v)
    assert float(at[0] * v[0]) - g(column, at[0]) == pytest.approx(got, rel=1e-9, abs=1e-9)


@SETTINGS
@given(COLUMN)
def test_slack_is_the_subdifferential_at_zero(column):
    penalty, u = penalty_of([column])
    held = g(column, 0.0) == 0.0 and all(
        u[0] * t + g(column, t) >= 0.0 for s in (1e-3, 1e-6) for t in (s, -s)
    )
    assert (penalty.slack(u)[0] >= 0.0) == held


@SETTINGS
@given(COLUMNS)
def test_feasible_scale_is_the_largest(columns):
    penalty, u = penalty_of(columns)
    t = penalty.feasible_scale(u)
    assert 0.0 < t <= 1.0
    assert np.isfinite(penalty.conjugate(-t * u))
    if t < 1.0:
        assert penalty.conjugate(-(t + 1e-6) * u) == np.inf


@SETTINGS
@given(COLUMNS, st.sampled_from([0.1, 1.0, 30.0]))
def test_the_box_of_a_point_is_far_beyond_it_and_costs_what_the_conjugate_says(columns, factor):
    penalty, u = penalty_of(columns)
    x = penalty.nearest(np.full(u.size, factor * SIZE))
    box = penalty.outside(x)
    bare = np.array([l1 == l2 == 0.0 and not (a > -9 and b < 9) for l1, l2, a, b, _ in columns])
    if box is None:
        assert not bare.any()
        assert penalty.box_cost(x, u) == 0.0
        return
    assert (np.isfinite(box) == bare).all()
    assert (box[bare] >= FAR * np.abs(x[bare])).all()
    # the same penalty with that box to begin with
    wide = ColumnPenalty(
        penalty.l1, penalty.l2, penalty.lower, penalty.upper, np.where(bare, box, FAR) / FAR
    )
    scaled = penalty.feasible_scale(u) * u
    assert penalty.conjugate(-scaled) + penalty.box_cost(x, scaled) == pytest.approx(
        wide.conjugate(-scaled), rel=1e-12, abs=1e-12
    )


# --- one penalty for all, in other units ---------------------------------------------------------


@SETTINGS
@given(
    st.lists(st.floats(0.01, 100.0), min_size=2, max_size=5).map(np.array),
    WEIGHT,
    WEIGHT,
    st.booleans(),
)
def test_a_penalty_in_other_units_is_uniform(deviation, l1, l2, positive):
    lower, upper = (np.full(deviation.size, end) for end in (-np.inf, np.inf))
    if positive:
        lower[:] = 0.0
    penalty = ColumnPenalty(
        l1 * deviation, l2 * deviation**2, lower, upper, np.ones(deviation.size)
    )
    found = penalty.uniformed()
    if l1 == l2 == 0.0:
        assert found is None
        return
    t = np.abs(np.linspace(-2.0, 3.0, deviation.size))
    assert found.penalty.value(t) == pytest.approx(penalty.value(found.scale * t), rel=1e-11)
    assert found.penalty.positive == positive


def test_other_penalties_are_not():
    one, none = np.ones(2), np.full(2, np.inf)
    two = np.array([1.0, 2.0])
    assert ColumnPenalty(two, one, -none, none, one).uniformed() is None
    assert ColumnPenalty(two - 1.0, 0.0 * one, -none, none, one).uniformed() is None
    assert ColumnPenalty(two, 0.0 * one, -one, none, one).uniformed() is None
    assert ColumnPenalty(two, 0.0 * one, -none, none, one).uniformed() is not None


def test_what_is_uniform_stays_a_plain_penalty():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((20, 3)), rng.standard_normal(20)
    for given_, want in [
        ({"l1": [0.1, 0.1, 0.1], "l2": 0.2}, Penalty(0.1, 0.2)),
        ({"l2": 0.2, "lower": 0}, Penalty(0.0, 0.2, True)),
        ({"l2": 0.2, "lower": [0.0, 0.0, 0.0], "upper": np.inf}, Penalty(0.0, 0.2, True)),
        ({"l1": 0.1, "lower": -np.inf}, Penalty(0.1, 0.0)),
    ]:
        assert ac.Problem(A, b, **given_).penalty == want
    problem = ac.Problem(A, b, l1=[0.1, 0.2, 0.0], lower=-1.0)
    assert not problem.penalty.uniform
    other = problem.with_penalty(l2=0.3)
    np.testing.assert_array_equal(other.penalty.l1, [0.1, 0.2, 0.0])
    np.testing.assert_array_equal(other.penalty.l2, [0.3] * 3)
    np.testing.assert_array_equal(other.penalty.lower, [-1.0] * 3)
    assert "l1=0..0.2" in repr(problem) and "lower=-1" in repr(problem)


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"l1": [0.1, -1.0, 0.0]}, ["l1", "-1", "position 1", "zero or more"]),
        ({"l2": [0.1, np.nan, 0.0]}, ["l2", "nan", "position 1"]),
        ({"l1": [0.1, 0.2]}, ["l1", "(2,)", "3 columns", "(3,)"]),
        ({"l1": [[0.1, 0.2, 0.3]]}, ["l1", "(1, 3)"]),
        ({"l1": ["a", "b", "c"]}, ["l1", "real numbers"]),
        ({"l1": [1e-200, 1.0, 1.0]}, ["l1", "1e-200", "rescale"]),
        ({"l2": 1.0, "lower": 1.0, "upper": 0.0}, ["lower=1", "upper=0", "position 0"]),
        ({"l2": 1.0, "lower": [0.0, np.nan, 0.0]}, ["lower", "nan", "position 1"]),
        ({"l2": 1.0, "lower": np.inf}, ["lower", "inf"]),
        ({"l2": 1.0, "upper": [1.0, 2.0]}, ["upper", "(2,)", "3 columns"]),
        ({"l2": 1.0, "upper": "one"}, ["upper='one'"]),
        ({"l2": 1.0, "upper": -1.0, "positive": True}, ["upper", "-1", "positive"]),
    ],
)
def test_bad_input_gets_a_sentence(given_, words):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError) as caught:
        ac.Problem(rng.standard_normal((20, 3)), rng.standard_normal(20), **given_)
    for word in words:
        assert word in str(caught.value)


def test_blocks_of_rows_take_one_penalty():
    rng = np.random.default_rng(0)
    blocks = [(rng.standard_normal((5, 3)), rng.standard_normal(5)) for _ in range(2)]
    with pytest.raises(ValueError, match="blocks of rows take one l1"):
        ac.Problem(blocks, l1=[0.1, 0.2, 0.3])


def test_as_penalty_asks_for_sizes_only_where_they_are_needed():
    def size():
        raise AssertionError

    assert as_penalty(0.1, 0.2, False, None, None, 3, size, False) == Penalty(0.1, 0.2)
