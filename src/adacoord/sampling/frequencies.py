"""The schedule of ACF (Section 3 of Glasmachers and Dogan, 2013): deterministic frequencies.

Each coordinate collects its frequency in an accumulator; a pass visits it as often as the
accumulator holds whole numbers, in random order.  Frequencies are met to within one visit over
any number of passes, a visit costs no draw from a distribution, and the order is known ahead.
"""

from __future__ import annotations

import numpy as np


class Frequencies:
    """Accumulators of n coordinates, started at random so that the first passes differ."""

    def __init__(self, n: int, rng: np.random.Generator):
        self.accumulators = rng.random(n)
        self.visits = np.zeros(n, dtype=np.int64)

    def order(self, frequencies: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Positions of the next pass: i ``visits[i]`` times, about ``frequencies[i]``."""
        self.accumulators += frequencies
        whole = np.floor(self.accumulators)
        self.accumulators -= whole
        self.visits = whole.astype(np.int64)
        return rng.permutation(np.repeat(np.arange(whole.size), self.visits))
