"""Samplers: every row as often as its probability says, no row twice in a batch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adacoord.sampling.batches import Blocks, WeightedBatches, inclusion_probabilities
from adacoord.sampling.single import Uniform, Weighted, alias_table, norm_mixture

WEIGHTS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30).map(np.array)
#: A false alarm in so many tests of one row or one sampler (the seeds are fixed anyway).
RARE = 1e-6


def generator(seed):
    return np.random.Generator(np.random.PCG64(seed))


def heavy(n, seed=0):
    """Pareto weights: the longest row outweighs hundreds of the others."""
    return np.random.default_rng(seed).pareto(0.8, n) + 0.01


def check_single(p, order):
    """Chi-square over the rows that are expected at least five times, the others pooled."""
    counts, expected = np.bincount(order, minlength=p.size), p * order.size
    often = expected >= 5.0
    f, e = counts[often], expected[often]
    if not often.all():
        f, e = np.r_[f, counts[~often].sum()], np.r_[e, expected[~often].sum()]
    assert stats.chisquare(f, e * (f.sum() / e.sum())).pvalue > RARE


def check_batches(p, order, m):
    """Each batch has m different rows; each row is in its share of the batches (binomial)."""
    batches = order.reshape(-1, m)
    assert np.all(np.diff(np.sort(batches, axis=1), axis=1) > 0)
    counts = np.bincount(order, minlength=p.size)
    certain = p >= 1.0
    assert np.all(counts[certain] == batches.shape[0])
    tails = np.minimum(
        stats.binom.cdf(counts, batches.shape[0], p),
        stats.binom.sf(counts - 1, batches.shape[0], p),
    )[~certain]
    assert np.all(tails > RARE / p.size)
    # together: the standardised squares are no larger than independent rows would have them
    z = (counts - p * batches.shape[0])[~certain]
    z /= np.sqrt(p * (1 - p) * batches.shape[0])[~certain]
    if z.size > 1:
        assert np.mean(z**2) < 1.0 + 6.0 * np.sqrt(2.0 / z.size) + 3.0 / z.size


# ---- one row a step ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_uniform(n):
    sampler = Uniform(n)
    np.testing.assert_allclose(sampler.p, 1 / n)
    order = sampler.order(200 * n, generator(1))
    assert order.shape == (200 * n,) and order.min() >= 0 and order.max() < n
    if n > 1:
        check_single(sampler.p, order)


@pytest.mark.parametrize(
    "weights",
    [
        np.ones(1),
        np.array([1.0, 3.0]),
        np.ones(50),
        np.arange(1.0, 40.0),
        heavy(200),
        np.r_[1e-9, 1.0, 1e9],
        np.r_[np.full(99, 1e-3), 1.0],
    ],
    ids=["one", "two", "equal", "linear", "heavy", "extreme", "one long"],
)
def test_weighted(weights):
    p = weights / weights.sum()
    sampler = Weighted(p)
    order = sampler.order(100_000, generator(2))
    assert order.min() >= 0 and order.max() < p.size
    if p.size > 1:
        check_single(p, order)


@settings(max_examples=300, deadline=None)
@given(WEIGHTS)
def test_alias_table_holds_the_probabilities(weights):
    """What each cell keeps, plus what the others give to it, is p exactly."""
    p = weights / weights.sum()
    keep, alias = alias_table(p)
    assert np.all(keep >= 0.0) and np.all(keep <= 1.0 + 1e-12)
    mass = np.minimum(keep, 1.0)
    np.add.at(mass, alias, 1.0 - np.minimum(keep, 1.0))
    np.testing.assert_allclose(mass / p.size, p, rtol=0, atol=1e-14)


def test_norm_mixture():
    # alpha = .25, norms 1 2 5 (sum 8): .75/3 + .25 R_i/8
    np.testing.assert_allclose(
        norm_mixture(np.array([1.0, 2.0, 5.0]), 0.25), [0.28125, 0.3125, 0.40625], rtol=1e-14
    )


# ---- blocks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n, m", [(1, 1), (10, 3), (12, 4), (100, 7), (9, 8), (9, 9), (50, 49)])
def test_blocks_are_a_partition(n, m):
    sampler = Blocks(n, m, generator(3))
    batches = sampler.order(4000, generator(4)).reshape(-1, m)
    blocks = [set(column) for column in batches.T]
    assert sum(map(len, blocks)) == n and set.union(*blocks) == set(range(n))
    sizes = [len(block) for block in blocks]
    assert max(sizes) - min(sizes) <= 1
    for block in blocks:
        np.testing.assert_allclose(sampler.p[list(block)], 1 / len(block), rtol=1e-15)
    assert sampler.p.sum() == pytest.approx(m, rel=1e-12)
    check_batches(sampler.p, batches.ravel(), m)


def test_blocks_are_a_random_partition():
    a, b = Blocks(40, 5, generator(0)), Blocks(40, 5, generator(1))
    assert not np.array_equal(a.order(10, generator(2)), b.order(10, generator(2)))


# ---- given inclusion probabilities -------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(weights=WEIGHTS, data=st.data())
def test_inclusion_probabilities(weights, data):
    """min(1, t w) for one t, summing to m."""
    m = data.draw(st.integers(1, weights.size))
    p = inclusion_probabilities(weights, m)
    assert p.sum() == pytest.approx(m, rel=1e-12)
    assert np.all(p > 0.0) and np.all(p <= 1.0)
    free = p < 1.0
    if free.any():
        ratio = p[free] / weights[free]
        t = ratio[0]
        np.testing.assert_allclose(ratio, t, rtol=1e-10)
        assert np.all(t * weights[~free] >= 1.0 - 1e-10)


@settings(max_examples=300, deadline=None)
@given(norms=WEIGHTS, alpha=st.floats(0.0, 0.99), data=st.data())
def test_inclusion_probabilities_meet_equation_26(norms, alpha, data):
    n = norms.size
    m = data.draw(st.integers(1, n))
    p = inclusion_probabilities(norm_mixture(norms, alpha), m)
    bound = np.minimum(1.0, m * ((1 - alpha) / n + alpha * norms / (n * norms.mean())))
    assert np.all(p >= bound * (1 - 1e-10))


def test_inclusion_probabilities_leave_the_weights_alone():
    weights = heavy(20)
    before = weights.copy()
    inclusion_probabilities(weights, 15)
    np.testing.assert_array_equal(weights, before)


def test_inclusion_probabilities_refuse_more_rows_than_there_are():
    with pytest.raises(ValueError, match=r"batch_size=4.*only 3 rows"):
        inclusion_probabilities(np.ones(3), 4)


@pytest.mark.parametrize(
    "weights, m",
    [
        (np.ones(30), 1),
        (np.ones(30), 7),
        (np.arange(1.0, 31.0), 1),
        (np.arange(1.0, 31.0), 5),
        (np.arange(1.0, 31.0), 28),
        (np.arange(1.0, 31.0), 29),
        (np.arange(1.0, 31.0), 30),
        (heavy(200), 1),
        (heavy(200), 10),
        (heavy(200), 150),
        (heavy(200), 199),
        (heavy(200), 200),
        (heavy(2000, 1), 16),
        (np.r_[np.ones(500), 80.0], 4),
        (np.r_[80.0, np.ones(500)], 8),
        (np.r_[1e6, 1e6, np.ones(50)], 3),
        (np.r_[1e6, 1e6, np.ones(50)], 2),
        (np.ones(1), 1),
        (np.r_[np.full(2, 3.0), np.ones(3)], 2),
    ],
    ids=lambda v: f"{v.size} rows" if isinstance(v, np.ndarray) else f"m={v}",
)
def test_weighted_batches(weights, m):
    sampler = WeightedBatches(weights, m, generator(6))
    assert sampler.batch_size == m
    batches = 20_000
    check_batches(sampler.p, sampler.order(batches, generator(7)), m)


def test_weighted_batches_have_the_certain_rows_always():
    # norms 1 1 1 17 and alpha = 1/2: the long row in every batch, 1/3 for each of the others
    p = norm_mixture(np.array([1.0, 1.0, 1.0, 17.0]), 0.5)
    sampler = WeightedBatches(p, 2, generator(0))
    batches = sampler.order(3000, generator(1)).reshape(-1, 2)
    assert np.all((batches == 3).sum(axis=1) == 1)
    others = batches[batches != 3]
    assert stats.chisquare(np.bincount(others, minlength=3)).pvalue > RARE


def test_equal_weights_make_all_subsets_that_a_reservoir_makes():
    """With equal weights beyond the prefix Chao's is the plain reservoir: pairs are not fixed."""
    n, m = 12, 2
    sampler = WeightedBatches(np.ones(n), m, generator(0))
    pairs = np.sort(sampler.order(60_000, generator(1)).reshape(-1, m), axis=1)
    seen = np.unique(pairs[:, 0] * n + pairs[:, 1]).size
    assert seen > 0.9 * n * (n - 1) / 2


# ---- orders and generators ---------------------------------------------------------------------

SAMPLERS = {
    "uniform": lambda rng: Uniform(60),
    "weighted": lambda rng: Weighted(heavy(60) / heavy(60).sum()),
    "blocks": lambda rng: Blocks(60, 7, rng),
    "weighted batches": lambda rng: WeightedBatches(heavy(60), 7, rng),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_order_depends_on_the_generator_alone(name):
    sampler = SAMPLERS[name](generator(0))
    first = sampler.order(50, generator(5))
    assert first.shape == (50 * sampler.batch_size,)
    sampler.order(31, generator(8))  # a sampler keeps no memory of what it drew
    np.testing.assert_array_equal(sampler.order(50, generator(5)), first)
    np.testing.assert_array_equal(SAMPLERS[name](generator(0)).order(50, generator(5)), first)
    assert not np.array_equal(sampler.order(50, generator(6)), first)

    rng = generator(9)
    sampler.order(3, rng)
    state = rng.bit_generator.state
    continued = sampler.order(20, rng)
    rng.bit_generator.state = state
    np.testing.assert_array_equal(sampler.order(20, rng), continued)
    assert rng.bit_generator.state != state


@pytest.mark.parametrize("name", SAMPLERS)
def test_no_iterations_no_rows(name):
    sampler = SAMPLERS[name](generator(0))
    assert sampler.order(0, generator(0)).size == 0


@pytest.mark.parametrize("name", SAMPLERS)
def test_probabilities_sum_to_the_batch_size(name):
    sampler = SAMPLERS[name](generator(0))
    assert sampler.p.sum() == pytest.approx(sampler.batch_size, rel=1e-12)
    assert np.all(sampler.p > 0.0) and np.all(sampler.p <= 1.0)
