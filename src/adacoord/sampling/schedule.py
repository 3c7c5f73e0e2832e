"""How much of the probabilities of AIS follows the gradient maps: delta_t, pass by pass."""

from __future__ import annotations

import numpy as np


def share(delta: tuple[float, float], passes: int, horizon: float) -> float:
    """delta_t: from the first to the second of ``delta`` over ``horizon`` passes, then constant."""
    low, high = delta
    return low + (high - low) * min(passes / horizon, 1.0)


def check_mixture(delta, kappa, delta_passes) -> None:
    """Refuse options of the mixture that make no distribution."""
    if np.shape(delta) != (2,) or not all(0.0 <= v < 1.0 for v in delta):
        raise ValueError(f"delta={delta!r}: it must be two numbers in [0, 1), the first and last")
    if isinstance(kappa, bool) or not (np.isscalar(kappa) and 0.0 <= kappa < np.inf):
        raise ValueError(f"kappa={kappa!r}: the power must be zero or more")
    if isinstance(delta_passes, bool) or delta_passes != int(delta_passes) or delta_passes < 1:
        raise ValueError(f"delta_passes={delta_passes!r}: it must be a whole number, 1 or more")
