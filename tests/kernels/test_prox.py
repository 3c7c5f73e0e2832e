"""The proximal step of the penalty, against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adacoord.kernels.prox import dead_zone, shrink


@settings(max_examples=200, deadline=None)
@given(v=st.floats(-10, 10), threshold=st.floats(0, 5), positive=st.booleans())
def test_soft_thresholding(v, threshold, positive):
    found = shrink(v, *dead_zone(threshold, positive))
    size = max((v if positive else abs(v)) - threshold, 0.0)
    assert found == pytest.approx(np.copysign(size, v), abs=1e-15 * (1 + abs(v)))
    # no other point has a smaller threshold |x| + (x - v)^2/2
    for other in (found + 1e-3, found - 1e-3, 0.0, v):
        if not positive or other >= 0.0:
            assert threshold * abs(found) + (found - v) ** 2 / 2 <= (
                threshold * abs(other) + (other - v) ** 2 / 2 + 1e-12
            )
    assert not positive or found >= 0.0


def test_shrink_stays_in_the_type_of_its_arguments():
    from numba import njit

    @njit
    def kind(v, low, high):
        return np.array([shrink(v, low, high)])

    single = (np.float32(v) for v in (2.0, -0.5, 0.5))
    assert kind(*single).dtype == np.float32
