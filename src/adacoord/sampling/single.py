"""One row a step: uniformly, or from fixed probabilities by Walker's alias table."""

from __future__ import annotations

import numpy as np

from ..kernels.jit import jit


class Uniform:
    """Each row with probability 1/N, with replacement (Algorithm 1 of SPDC)."""

    batch_size = 1

    def __init__(self, n: int):
        self.p = np.full(n, 1.0 / n)

    def order(self, iterations: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(self.p.size, size=iterations)


class Weighted:
    """Row i with probability p_i, with replacement, O(1) a draw (Algorithm 3 of SPDC)."""

    batch_size = 1

    def __init__(self, p: np.ndarray):
        self.p = p
        self._keep, self._alias = alias_table(p)

    def order(self, iterations: int, rng: np.random.Generator) -> np.ndarray:
        cell = rng.integers(self.p.size, size=iterations)
        return np.where(rng.random(iterations) < self._keep[cell], cell, self._alias[cell])


def norm_mixture(norms: np.ndarray, alpha: float) -> np.ndarray:
    """Eq. 20 of SPDC: p_i = (1-alpha)/N + alpha R_i/sum R."""
    return (1.0 - alpha) / norms.size + alpha * norms / norms.sum()


@jit
def alias_table(p):
    """Walker's table by Vose's construction: cell k keeps k with probability keep[k] and gives
    alias[k] otherwise."""
    n = p.shape[0]
    keep = p * (n / p.sum())
    alias = np.arange(n)
    small, large = np.empty(n, np.int64), np.empty(n, np.int64)
    smalls = larges = 0
    for k in range(n):
        if keep[k] < 1.0:
            small[smalls] = k
            smalls += 1
        else:
            large[larges] = k
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        poor, rich = small[smalls], large[larges - 1]
        alias[poor] = rich
        keep[rich] -= 1.0 - keep[poor]
        if keep[rich] < 1.0:
            larges -= 1
            small[smalls] = rich
            smalls += 1
    for k in range(smalls):  # what rounding left over
        keep[small[k]] = 1.0
    return keep, alias
