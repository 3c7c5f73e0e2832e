"""The line search of all Newton methods and of L-BFGS."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adacoord.linalg.line_search import HALF, line_search


def cosh(shift):
    def along(t):
        with np.errstate(over="ignore"):
            return np.cosh(t - shift), np.sinh(t - shift), np.cosh(t - shift)

    return along


@pytest.mark.parametrize("share", [0.1, HALF])
@pytest.mark.parametrize("shift", [1e-3, 0.3, 1.0, 5.0, 100.0])
def test_too_long_and_too_short_a_step(shift, share):
    start, slope, _ = cosh(shift)(0.0)
    t = line_search(cosh(shift), start, slope, share)
    value, end, _ = cosh(shift)(t)
    assert t > 0.0 and value <= start and abs(end) <= share * abs(slope)


def test_overflow():
    def steep(t):  # inf beyond 1e-3
        with np.errstate(over="ignore"):
            return np.exp(1e6 * t) - 2e6 * t, 1e6 * np.exp(1e6 * t) - 2e6, 1e12 * np.exp(1e6 * t)

    assert abs(steep(line_search(steep, 1.0, -1e6))[1]) <= 0.5e6


def test_a_rise_is_refused_though_its_slope_is_small():
    def kinked(t):  # slope -1 up to .1, then .4: the end of a step of 1 lies higher than its start
        return (-t, -1.0, 0.0) if t < 0.1 else (0.4 * (t - 0.1) - 0.1, 0.4, 0.0)

    assert kinked(1.0)[0] > 0.0
    t = line_search(kinked, 0.0, -1.0)
    assert kinked(t)[0] <= 1e-12


@given(
    st.lists(st.floats(-8.0, 8.0), min_size=1, max_size=6),
    st.floats(1e-6, 1e6),
    st.sampled_from([0.1, HALF]),
)
def test_sums_of_smooth_losses_in_any_unit(places, unit, share):
    """phi(s) = log cosh(s - place) along s = unit t, from 20 to the left of all of them."""
    places = np.array(places)

    def along(t):
        s = unit * t - 20.0 - places
        value = np.sum(np.abs(s) + np.log1p(np.exp(-2.0 * np.abs(s))))
        return value, unit * np.sum(np.tanh(s)), unit**2 * np.sum(1.0 - np.tanh(s) ** 2)

    start, slope, _ = along(0.0)
    t = line_search(along, start, slope, share)
    value, end, _ = along(t)
    assert value <= start * (1.0 + 1e-12) and abs(end) <= -share * slope
