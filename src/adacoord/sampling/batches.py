"""Batches of m different rows: from disjoint blocks, or with given inclusion probabilities."""

from __future__ import annotations

import math

import numpy as np

from ..kernels.jit import jit
from .random import uniform


class Blocks:
    """One row from each of m disjoint blocks of rows (Algorithm 2 of SPDC).

    The blocks are a random partition into sizes that differ by at most one, so m need not
    divide N; p_i is one over the size of i's block.
    """

    def __init__(self, n: int, batch_size: int, rng: np.random.Generator):
        self.batch_size = batch_size
        self._rows = rng.permutation(n)
        self._starts = (np.arange(batch_size + 1) * n) // batch_size
        sizes = np.diff(self._starts)
        self.p = np.empty(n)
        self.p[self._rows] = np.repeat(1.0 / sizes, sizes)

    def order(self, iterations: int, rng: np.random.Generator) -> np.ndarray:
        picks = rng.integers(
            self._starts[:-1], self._starts[1:], size=(iterations, self.batch_size)
        )
        return self._rows[picks].ravel()


class WeightedBatches:
    """m different rows, row i with probability p_i (eq. 26 of SPDC, by Chao's method).

    p_i = min(1, t w_i) with t such that they sum to m: rows with p_i = 1 are in every batch, the
    others are sampled without replacement by Chao (1982).
    """

    def __init__(self, weights: np.ndarray, batch_size: int, rng: np.random.Generator):
        self.batch_size = batch_size
        self.p = inclusion_probabilities(weights, batch_size)
        self._always = np.flatnonzero(self.p >= 1.0)
        rest = np.flatnonzero(self.p < 1.0)
        self._rest = rng.permutation(rest)
        self._sums = np.cumsum(self.p[self._rest])
        self._m = batch_size - self._always.size

    def order(self, iterations: int, rng: np.random.Generator) -> np.ndarray:
        out = np.empty((iterations, self.batch_size), dtype=np.int64)
        out[:, : self._always.size] = self._always
        if self._m:
            picks = np.empty((iterations, self._m), dtype=np.int64)
            seed = rng.integers(2**63, size=1, dtype=np.uint64)
            chao(self.p[self._rest], self._sums, picks, seed)
            out[:, self._always.size :] = self._rest[picks]
        return out.ravel()


def inclusion_probabilities(weights: np.ndarray, m: int) -> np.ndarray:
    """min(1, t w_i) summing to ``m``."""
    if m > weights.size:
        raise ValueError(f"batch_size={m}: there are only {weights.size} rows to choose from")
    p = m * weights / weights.sum()
    capped = p >= 1.0
    while True:
        free = ~capped
        if not free.any():
            return np.ones(weights.size)
        p[free] = (m - capped.sum()) * weights[free] / weights[free].sum()
        p[capped] = 1.0
        over = free & (p >= 1.0)
        if not over.any():
            return p
        capped |= over


@jit
def _search(sums, value, low):
    """The first index >= low with sums[index] >= value (the last one at the most)."""
    high = sums.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def chao(weights, sums, out, state):
    """Fill each row of ``out`` with m different indices, index i included with probability
    m weights[i]/sum(weights) (Chao, Biometrika 69, 1982).

    Chao's reservoir lets item i in with probability a_i = m w_i/S_i, S_i the sum so far, in the
    place of a member chosen at random, which keeps every inclusion probability proportional to
    its weight.  Two changes of cost, none of law: the prefix in which some a_i could exceed 1 is
    sampled systematically, and the items after it are not looked at one by one.  Proposals with
    probability 1 - (S_{i-1}/S_i)^{2m} >= a_i (as a_i <= 3/4 there) telescope, so the next one is
    found by bisection in the sums, and is then thinned to a_i: O(m log N) proposals a batch.
    """
    m = out.shape[1]
    n = weights.shape[0]
    largest = weights.max()
    prefix = _search(sums, min(m * largest / 0.75, sums[n - 1]), m - 1) + 1
    for batch in range(out.shape[0]):
        stride = sums[prefix - 1] / m
        position = stride * (1.0 - uniform(state))
        i = 0
        for k in range(m):
            i = _search(sums[:prefix], position + k * stride, i)
            out[batch, k] = i
        i = prefix - 1
        while i < n - 1:
            # P(no proposal up to j) = (S_i/S_j)^{2m}: the next j has S_j >= S_i / U^{1/(2m)}
            target = sums[i] * math.exp(-math.log(uniform(state)) / (2.0 * m))
            if target > sums[n - 1]:
                break
            i = _search(sums, target, i + 1)
            accept = m * weights[i] / sums[i]
            proposal = 1.0 - math.exp(2.0 * m * math.log(sums[i - 1] / sums[i]))
            if uniform(state) * proposal <= accept:
                out[batch, int(uniform(state) * m) % m] = i
