"""Blocks of rows: cut by the data alone, about equal, never more than asked for."""

from __future__ import annotations

import numpy as np
import pytest

from adacoord.data.partition import BLOCK_BYTES, LEAST_BYTES, MIN_BLOCKS, TOGETHER, block_bounds


def check(bounds, n):
    assert bounds.dtype == np.int64 and bounds[0] == 0 and bounds[-1] == n
    assert (np.diff(bounds) > 0).all()


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize(
    "n, d", [(1, 1), (1, 10**9), (7, 3), (10**5, 4), (10**6, 64), (10**9, 100)]
)
def test_dense_blocks_are_equal_shares_of_the_bytes(n, d, itemsize):
    bounds = block_bounds((n, d), itemsize)
    check(bounds, n)
    row, total = d * itemsize, n * d * itemsize
    sizes = np.diff(bounds) * row
    assert sizes.max() <= max(BLOCK_BYTES, 2 * LEAST_BYTES) + row
    if total >= MIN_BLOCKS * LEAST_BYTES and n >= 100 * MIN_BLOCKS:
        assert sizes.size >= MIN_BLOCKS
    else:
        assert sizes.size == max(1, min(n, total // LEAST_BYTES))
    assert sizes.max() - sizes.min() <= 2 * row
    if MIN_BLOCKS < sizes.size < n:
        assert sizes.size % TOGETHER == 0  # threads that share them out do not wait for one


@pytest.mark.parametrize("seed", range(5))
def test_csr_blocks_are_equal_shares_of_the_bytes(seed):
    rng = np.random.default_rng(seed)
    n, d = 20_000, 1_000
    counts = rng.geometric(0.02, n) * (rng.random(n) < 0.8)
    counts[rng.integers(n)] = 200_000  # one long row
    indptr = np.concatenate([[0], np.cumsum(counts)])
    bounds = block_bounds((n, d), 8, indptr)
    check(bounds, n)
    sizes = np.diff(indptr[bounds]) * 12 + np.diff(bounds) * 8
    assert sizes.size <= MIN_BLOCKS
    assert sizes.max() <= sizes.sum() / MIN_BLOCKS + counts.max() * 12 + 8
    for same in (indptr.astype(np.uint64), indptr.astype(np.int32)):
        np.testing.assert_array_equal(block_bounds((n, d), 8, same), bounds)


def test_rows_without_entries_are_cut_too():
    n = 10**7
    bounds = block_bounds((n, 5), 8, np.broadcast_to(np.int64(0), n + 1))
    check(bounds, n)
    assert bounds.size - 1 == MIN_BLOCKS


def test_long_csr_rows_beyond_32_bits():
    n = 1000
    indptr = np.arange(n + 1) * 2**32
    bounds = block_bounds((n, 2**33), 8, indptr)
    np.testing.assert_array_equal(bounds, np.arange(n + 1))
