"""ACF's frequencies: the adaptation and the schedule."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adacoord.sampling.frequencies import schedule, shuffle, updated_frequency
from adacoord.sampling.random import uniform


def word(seed):
    return np.array([seed], dtype=np.uint64)


@settings(deadline=None)
@given(st.floats(0.05, 20.0), st.floats(0.0, 1e6), st.floats(1e-6, 1e6))
def test_algorithm_2(p, decrease, mean):
    new = updated_frequency(p, decrease, mean)
    naive = p * math.exp(min(0.2 * (decrease / mean - 1.0), 3.0))
    assert new == pytest.approx(min(max(naive, 1 / 20), 20.0), rel=1e-12)


@pytest.mark.parametrize("p", [0.06, 1.0, 19.9])
def test_a_step_that_brings_nothing_has_the_bits_of_the_formula(p):
    assert updated_frequency(p, 0.0, 0.7) == max(p * math.exp(0.2 * (0.0 / 0.7 - 1.0)), 1 / 20)


def test_no_mean_no_change():
    assert updated_frequency(1.5, 0.0, 0.0) == 1.5


def test_a_coordinate_at_a_bound_sinks_to_the_least():
    p = 1.0
    for _ in range(15):  # 20 = exp(.2 * 15)
        p = updated_frequency(p, 0.0, 1.0)
    assert p == pytest.approx(1 / 20, rel=1e-2)
    assert updated_frequency(p, 0.0, 1.0) == 1 / 20


def naive_schedule(active, p, accumulators, state):
    """Algorithm 3, then Fisher and Yates."""
    order = []
    share = len(active) / sum(p[i] for i in active)
    for i in active:
        accumulators[i] += p[i] * share
        whole = math.floor(accumulators[i])
        order += [i] * whole
        accumulators[i] -= whole
    for t in range(len(order) - 1, 0, -1):
        k = min(int(uniform(state) * (t + 1)), t)
        order[t], order[k] = order[k], order[t]
    return order


@pytest.mark.parametrize("seed", range(5))
def test_algorithm_3_against_a_naive_one(seed):
    rng = np.random.default_rng(seed)
    n = 40
    p = np.clip(rng.lognormal(0.0, 1.5, n), 1 / 20, 20.0)
    ours, theirs = rng.random(n), None
    theirs = ours.copy()
    order = np.empty(2 * n, dtype=np.uint32)
    state, other = word(seed), word(seed)
    for sweep in range(30):
        active = np.sort(rng.permutation(n)[: n - sweep]).astype(np.uint32)
        visits = schedule(active, active.size, p, ours, order, state)
        assert list(order[:visits]) == naive_schedule(list(active), p, theirs, other)
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_equal_preferences_visit_each_once():
    for n, value in ((1, 1.0), (3, 1.0), (7, 20.0), (1000, 1.0)):
        active = np.arange(n, dtype=np.uint32)
        accumulators = np.random.default_rng(n).random(n)
        order, state = np.empty(2 * n, dtype=np.uint32), word(n)
        for _ in range(20):
            visits = schedule(active, n, np.full(n, value), accumulators, order, state)
            np.testing.assert_array_equal(np.sort(order[:visits]), active)


def test_nobody_waits_longer_than_400_sweeps():
    n = 300
    p = np.full(n, 20.0)
    p[::10] = 1 / 20
    active, accumulators = np.arange(n, dtype=np.uint32), np.zeros(n)
    order, state, last = np.empty(2 * n, dtype=np.uint32), word(0), np.full(n, -1)
    longest = 0
    for sweep in range(1000):
        visits = schedule(active, n, p, accumulators, order, state)
        assert visits <= 2 * n
        seen = np.unique(order[:visits])
        longest = max(longest, int((sweep - last[seen]).max()))
        last[seen] = sweep
    assert 300 < longest <= 400  # sum p/(n pmin) = 360: the bound is nearly met
    assert (last >= 600).all()


def test_shuffle_is_a_fair_permutation():
    counts = np.zeros((4, 4))
    state = word(7)
    for _ in range(8000):
        order = np.arange(4, dtype=np.uint32)
        shuffle(order, 4, state)
        counts[np.arange(4), order] += 1
    assert np.abs(counts - 2000).max() < 5 * math.sqrt(8000 * 3 / 16)
