"""The sum tree: draws by weight, exact sums for ever, no corner that breaks it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adacoord.kernels.jit import jit
from adacoord.sampling.random import uniform
from adacoord.sampling.tree import (
    FLOOR,
    mixture_draw,
    mixture_draws,
    tree_build,
    tree_draw,
    tree_rebuild,
    tree_update,
    tree_updates,
)

WEIGHTS = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=70).map(np.array)
#: A false alarm in so many tests (the seeds are fixed anyway).
RARE = 1e-6


@jit
def many(tree, n, delta, state, out):
    for k in range(out.shape[0]):
        out[k], _ = mixture_draw(tree, n, delta, uniform(state))


@jit
def churn(tree, index, weights):
    for k in range(index.shape[0]):
        tree_update(tree, index[k], weights[k])


def draws(tree, n, delta, size, seed=1):
    out = np.empty(size, dtype=np.int64)
    many(tree, n, delta, np.array([seed], dtype=np.uint64), out)
    return out


def leaves(tree, n):
    return tree[tree.size // 2 :][:n]


def naive_draw(weights, u):
    """The first index whose cumulative weight reaches u of the sum."""
    sums = np.cumsum(weights)
    return min(int(np.searchsorted(sums, u * sums[-1])), weights.size - 1)


def check(p, order):
    """Chi-square over the indices expected at least five times, the others pooled."""
    counts, expected = np.bincount(order, minlength=p.size), p * order.size
    often = expected >= 5.0
    f, e = counts[often], expected[often]
    if not often.all():
        f, e = np.r_[f, counts[~often].sum()], np.r_[e, expected[~often].sum()]
    assert stats.chisquare(f, e * (f.sum() / e.sum())).pvalue > RARE


# ---- the generator -----------------------------------------------------------------------------


def test_splitmix64():
    """The first numbers of the published algorithm for the seed 1234567."""
    state = np.array([1234567], dtype=np.uint64)
    words = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    for word in words:
        assert uniform(state) == ((word >> 11) + 1) / 2**53


def test_uniform_is_uniform():
    state = np.array([3], dtype=np.uint64)
    u = np.array([uniform(state) for _ in range(20_000)])
    assert u.min() > 0.0 and u.max() <= 1.0
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.03


# ---- the tree ----------------------------------------------------------------------------------


@given(WEIGHTS)
@settings(deadline=None)
def test_every_node_is_the_sum_of_its_children(weights):
    tree = tree_build(weights)
    m = tree.size // 2
    assert m & (m - 1) == 0 and m >= weights.size > m // 2
    np.testing.assert_array_equal(leaves(tree, weights.size), weights)
    assert not tree[m + weights.size :].any()
    for k in range(1, m):
        assert tree[k] == tree[2 * k] + tree[2 * k + 1]
    assert tree[1] == pytest.approx(weights.sum(), rel=1e-13)


@given(WEIGHTS, st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=30))
@settings(deadline=None)
def test_draws_are_those_of_cumulative_sums(weights, numbers):
    """Whole weights, so that neither way of summing rounds and ties are ties in both."""
    weights = np.ceil(weights)
    tree = tree_build(weights)
    for u in [*numbers, 1.0, 5e-324]:
        assert tree_draw(tree, u) == naive_draw(weights, u)


@pytest.mark.parametrize("n", [7, 1000, 100_000])
@pytest.mark.parametrize("delta", [0.0, 0.5, 0.8, 1.0])
def test_draws_match_the_weights(n, delta):
    weights = np.random.default_rng(n).pareto(0.8, n) + 0.01
    p = (1 - delta) / n + delta * weights / weights.sum()
    check(p, draws(tree_build(weights), n, delta, max(200_000, 10 * n)))


@pytest.mark.parametrize("n", [7, 1000, 100_000])
def test_draws_match_the_weights_after_updates(n):
    rng = np.random.default_rng(n)
    tree = tree_build(np.ones(n))
    churn(tree, rng.integers(n, size=2 * n), rng.exponential(1.0, 2 * n))
    weights = leaves(tree, n)
    check(weights / weights.sum(), draws(tree, n, 1.0, max(200_000, 10 * n)))


@pytest.mark.parametrize("n", [1, 2, 7, 64, 65, 1000])
def test_probabilities(n):
    """What mixture_draw says of p is what eq. 13 says, for each index."""
    weights = np.random.default_rng(n).exponential(1.0, n)
    tree = tree_build(weights)
    for delta in (0.0, 0.2, 0.8):
        want = (1 - delta) + delta * n * weights / weights.sum()
        seen = dict(mixture_draw(tree, n, delta, u) for u in np.linspace(1e-9, 1.0, 20 * n))
        for i, np_i in seen.items():
            assert np_i == pytest.approx(want[i], rel=1e-12)


def test_sums_are_exact_after_a_million_updates():
    """Weights over 24 orders of magnitude: adding differences would have lost the small ones."""
    n = 1000
    rng = np.random.default_rng(0)
    tree = tree_build(rng.random(n))
    churn(tree, rng.integers(n, size=10**6), 10.0 ** rng.uniform(-12, 12, 10**6))
    churn(tree, np.arange(n), 1e-12 * rng.random(n))  # and down again
    fresh = tree_build(leaves(tree, n).copy())
    np.testing.assert_array_equal(tree, fresh)
    again = tree.copy()
    again[: again.size // 2] = -1.0
    tree_rebuild(again)
    np.testing.assert_array_equal(again[1:], tree[1:])
    assert tree[1] == pytest.approx(leaves(tree, n).sum(), rel=1e-13)


# ---- corners -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 7, 100])
def test_weights_that_are_all_zero_are_equal(n):
    tree = tree_build(np.zeros(n))
    assert tree[1] > 0.0 and np.all(leaves(tree, n) == FLOOR)
    order = draws(tree, n, 0.8, 20_000)
    assert order.min() == 0 and order.max() == n - 1
    if n > 1:
        check(np.full(n, 1 / n), order)
    assert mixture_draw(tree, n, 0.8, 0.9)[1] == pytest.approx(1.0, rel=1e-12)
    tree_update(tree, n - 1, 2.0)  # one weight that matters, and the floor is nothing
    assert tree[1] == 2.0 and tree_draw(tree, 0.01) == n - 1


def test_one_weight():
    tree = tree_build(np.array([3.0]))
    assert tree.size == 2 and tree[1] == 3.0
    assert [tree_draw(tree, u) for u in (1e-300, 0.5, 1.0)] == [0, 0, 0]
    tree_update(tree, 0, 5.0)
    assert tree[1] == 5.0
    for delta in (0.0, 0.5):
        assert mixture_draw(tree, 1, delta, 0.7) == (0, 1.0)


@pytest.mark.parametrize("n", [3, 5, 9, 1000, 1025])
def test_the_padding_is_never_drawn(n):
    """u = 1 and weights whose sums round: the last real leaf is the last."""
    weights = np.random.default_rng(n).random(n) * 10.0 ** -np.arange(n).clip(0, 300)
    for w in (weights, weights[::-1].copy(), np.full(n, 0.1)):
        tree = tree_build(w)
        for u in (1.0, np.nextafter(1.0, 0.0), 1 - 1e-15, 0.999):
            assert 0 <= tree_draw(tree, u) < n
        assert draws(tree, n, 1.0, 50_000).max() < n


def test_zero_weights_are_not_drawn_beside_others():
    weights = np.array([0.0, 1.0, 0.0, 0.0, 2.0, 0.0])
    assert set(draws(tree_build(weights), 6, 1.0, 50_000)) == {1, 4}


# ---- many at a time ----------------------------------------------------------------------------


def batch_of_draws(tree, n, delta, size, state):
    """(indices, n p_i) of one call."""
    out, frequencies = np.full(size, -7, dtype=np.int64), np.full(size, np.nan)
    nodes, targets = np.zeros(size, np.uint64), np.zeros(size)
    mixture_draws(tree, n, delta, state, out, frequencies, nodes, targets)
    return out, frequencies


def batch_of_updates(tree, index, weights):
    tree_updates(
        tree,
        np.asarray(index, dtype=np.int64),
        np.asarray(weights, dtype=float),
        np.zeros(len(index), np.uint64),
    )


@given(
    WEIGHTS, st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]), st.integers(0, 40), st.integers(0, 2**63)
)
@settings(deadline=None)
def test_many_draws_are_single_draws(weights, delta, size, seed):
    """Bit for bit, from the same random numbers, which both use up alike."""
    n, tree = weights.size, tree_build(weights)
    state, other = (np.array([seed], dtype=np.uint64) for _ in range(2))
    before = tree.copy()
    index, frequencies = batch_of_draws(tree, n, delta, size, state)
    for k in range(size):
        assert (index[k], frequencies[k]) == mixture_draw(tree, n, delta, uniform(other))
    assert state[0] == other[0]
    np.testing.assert_array_equal(tree, before)


@given(WEIGHTS, st.lists(st.tuples(st.integers(0, 10**6), st.floats(0.0, 1e9)), max_size=40))
@settings(deadline=None)
def test_many_updates_are_single_updates(weights, changes):
    """Bit for bit the tree of its leaves; the last of several weights for one leaf counts."""
    index, new = [i % weights.size for i, _ in changes], [w for _, w in changes]
    tree, single = tree_build(weights), tree_build(weights)
    batch_of_updates(tree, index, new)
    for i, w in zip(index, new, strict=True):
        tree_update(single, i, w)
        weights[i] = w
    np.testing.assert_array_equal(tree[1:], tree_build(weights)[1:])
    np.testing.assert_array_equal(tree[1:], single[1:])


def test_many_updates_over_a_long_run():
    """Pieces of every size up to all leaves, over 24 orders of magnitude."""
    n = 1000
    rng = np.random.default_rng(1)
    tree = tree_build(np.ones(n))
    for size in (1, 2, 31, 62, 256, 511, 512, 513, 1000, 1024, 3000):
        for _ in range(20):
            batch_of_updates(tree, rng.integers(n, size=size), 10.0 ** rng.uniform(-12, 12, size))
        np.testing.assert_array_equal(tree[1:], tree_build(leaves(tree, n).copy())[1:])


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_the_same_leaf_several_times_in_one_call(n):
    tree = tree_build(np.ones(n))
    batch_of_updates(tree, [n - 1] * 5, [3.0, 4.0, 4.0, 1.0, 2.0])
    assert leaves(tree, n)[n - 1] == 2.0 and tree[1] == n + 1.0
    batch_of_updates(tree, [0, n - 1, 0], [5.0, 0.0, 5.0])
    want = np.ones(n)
    want[0] = 5.0
    want[n - 1] = 0.0 if n > 1 else 5.0
    np.testing.assert_array_equal(tree[1:], tree_build(want)[1:])


def test_no_draws_and_no_updates():
    tree = tree_build(np.arange(1.0, 8.0))
    before, state = tree.copy(), np.array([5], dtype=np.uint64)
    index, frequencies = batch_of_draws(tree, 7, 0.5, 0, state)
    assert index.size == frequencies.size == 0 and state[0] == 5
    batch_of_updates(tree, [], [])
    np.testing.assert_array_equal(tree, before)


@pytest.mark.parametrize("n", [7, 1000, 100_000])
@pytest.mark.parametrize("delta", [0.2, 0.8, 1.0])
def test_many_draws_match_the_weights(n, delta):
    """n = 7 is the tree of the paper's Fig. 1; in pieces of 256, with updates in between."""
    rng = np.random.default_rng(n)
    weights = rng.pareto(0.8, n) + 0.01
    tree, state = tree_build(rng.random(n)), np.array([n], dtype=np.uint64)
    for part in np.array_split(rng.permutation(n), max(n // 256, 1)):
        batch_of_updates(tree, part, weights[part])
    p = (1 - delta) / n + delta * weights / weights.sum()
    parts = [batch_of_draws(tree, n, delta, 256, state) for _ in range(max(800, n // 25))]
    index, frequencies = (np.concatenate(v) for v in zip(*parts, strict=True))
    check(p, index)
    np.testing.assert_allclose(frequencies, n * p[index], rtol=1e-11)


@pytest.mark.parametrize("n", [3, 5, 9, 1000, 1025])
def test_many_draws_avoid_the_padding(n):
    weights = np.random.default_rng(n).random(n) * 10.0 ** -np.arange(n).clip(0, 300)
    for w in (weights, weights[::-1].copy(), np.full(n, 0.1), np.zeros(n)):
        state = np.array([n], dtype=np.uint64)
        index, frequencies = batch_of_draws(tree_build(w), n, 1.0, 20_000, state)
        assert index.min() >= 0 and index.max() < n and np.isfinite(frequencies).all()
