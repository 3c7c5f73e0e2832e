"""The sequences of ACF's Section 3 against plain ones, and the frequencies they keep."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adacoord.sampling.frequencies import schedule
from adacoord.sampling.random import uniform
from adacoord.sampling.sequences import GRAIN, by_argmax, independently


def word(seed):
    return np.array([seed], dtype=np.uint64)


def naive_argmax(active, p, accumulators):
    """The paper's sentence, on whole numbers: parts of 1 of the size of GRAIN."""
    one, total, order = round(1 / GRAIN), sum(p[i] for i in active), []
    for _ in active:
        for i in active:
            accumulators[i] += round(p[i] / total * one)
        best = max(active, key=lambda i: accumulators[i])  # the first of several
        accumulators[best] -= one
        order.append(best)
    return order


def naive_draws(active, p, state):
    """Walker's method by Vose's table, two uniform numbers a draw."""
    n, total = len(active), sum(p[i] for i in active)
    keep = [p[i] * (n / total) for i in active]
    alias = list(range(n))
    small, large = [[k for k in range(n) if (keep[k] < 1.0) == poor] for poor in (True, False)]
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        keep[rich] -= 1.0 - keep[poor]
        if keep[rich] < 1.0:
            small.append(large.pop())
    for k in small:  # what rounding left over
        keep[k] = 1.0
    order = []
    for _ in range(n):
        k = min(int(uniform(state) * n), n - 1)
        order.append(active[k if uniform(state) <= keep[k] else alias[k]])
    return order


def preferences(n, seed):
    rng = np.random.default_rng(seed)
    return np.clip(rng.lognormal(0.0, 1.5, n), 1 / 20, 20.0), rng


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_accumulator_against_a_naive_one(seed):
    n = 40
    p, rng = preferences(n, seed)
    ours, theirs = np.zeros(n), [0] * n
    order = np.empty(2 * n, dtype=np.uint32)
    for sweep in range(12):
        active = np.sort(rng.permutation(n)[: n - sweep % 3]).astype(np.uint32)
        visits = by_argmax(active, active.size, p, ours, order, word(seed))
        assert list(order[:visits]) == naive_argmax(active.tolist(), p.tolist(), theirs)
        np.testing.assert_array_equal(ours / GRAIN, theirs)
        p *= rng.lognormal(0.0, 0.3, n)


@pytest.mark.parametrize("seed", range(5))
def test_independent_draws_against_naive_ones(seed):
    n = 40
    p, rng = preferences(n, seed)
    order = np.empty(2 * n, dtype=np.uint32)
    state, other = word(seed), word(seed)
    for sweep in range(12):
        active = np.sort(rng.permutation(n)[: n - sweep]).astype(np.uint32)
        visits = independently(active, active.size, p, np.zeros(n), order, state)
        assert list(order[:visits]) == naive_draws(active.tolist(), p.tolist(), other)


def test_equal_preferences_are_cyclic_by_argmax():
    n = 50
    active, accumulators = np.arange(n, dtype=np.uint32), np.zeros(n)
    order = np.empty(2 * n, dtype=np.uint32)
    for _ in range(3):
        visits = by_argmax(active, n, np.ones(n), accumulators, order, word(0))
        np.testing.assert_array_equal(order[:visits], active)


@pytest.mark.parametrize("plan", [by_argmax, independently, schedule])
def test_frequencies_are_met(plan):
    """To within one visit by accumulators, to within chance by draws."""
    n, sweeps = 30, 400
    p, _ = preferences(n, 3)
    active, accumulators = np.arange(n, dtype=np.uint32), np.zeros(n)
    order, state, count = np.empty(2 * n, dtype=np.uint32), word(9), np.zeros(n)
    for _ in range(sweeps):
        visits = plan(active, n, p, accumulators, order, state)
        np.add.at(count, order[:visits], 1)
    expected = n * sweeps * p / p.sum()
    if plan is independently:
        chi = np.sum((count - expected) ** 2 / expected)
        assert chi < n - 1 + 4 * math.sqrt(2 * (n - 1))
    else:
        assert np.abs(count - expected).max() <= 1.0 + 1e-6


def test_one_coordinate_is_always_taken():
    order = np.empty(2, dtype=np.uint32)
    for plan in (by_argmax, independently):
        active = np.array([7], dtype=np.uint32)
        assert plan(active, 1, np.full(9, 0.3), np.zeros(9), order, word(1)) == 1
        assert order[0] == 7
