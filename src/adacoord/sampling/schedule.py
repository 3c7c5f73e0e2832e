"""How much of the probabilities of AIS follows the weights: delta_t of a step or of a pass."""

from __future__ import annotations

import numpy as np

from ..kernels.jit import jit


@jit
def share(delta, time, horizon):
    """delta_t: from the first to the second of ``delta`` until ``horizon``, then constant."""
    return delta[0] + (delta[1] - delta[0]) * min(time / horizon, 1.0)


def check_mixture(delta, kappa, delta_passes) -> None:
    """Refuse options of the mixture that make no distribution."""
    if np.shape(delta) != (2,) or not all(_is_number(v) and 0.0 <= v < 1.0 for v in delta):
        raise ValueError(f"delta={delta!r}: it must be two numbers in [0, 1), the first and last")
    if not (_is_number(kappa) and 0.0 <= kappa < np.inf):
        raise ValueError(f"kappa={kappa!r}: the power must be a finite number, zero or more")
    if not (_is_number(delta_passes) and 1 <= delta_passes < np.inf and delta_passes % 1 == 0):
        raise ValueError(f"delta_passes={delta_passes!r}: it must be a whole number, 1 or more")


def _is_number(value) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
