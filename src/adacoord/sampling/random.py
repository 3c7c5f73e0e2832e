"""Random numbers inside kernels: one 64-bit word of state, the same bits on every machine."""

from __future__ import annotations

import numpy as np

from ..kernels.jit import jit


@jit
def uniform(state):
    """A number in (0, 1]: splitmix64, so that the kernel needs no generator of its own."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (np.float64(z >> np.uint64(11)) + 1.0) * (1.0 / 9007199254740992.0)
