"""The block kernels that no solver's own test looks at."""

from __future__ import annotations

import numpy as np
import pytest

from adacoord.kernels.classes import stationary


@pytest.mark.parametrize("K", [1, 2, 7, 40])
@pytest.mark.parametrize("spread", [0.0, 30.0])
def test_stationary_distribution(K, spread):
    """What flows into a state flows out of it, to its own last digits whatever the scales."""
    rng = np.random.default_rng(K)
    rates = rng.random((K, K)) * np.exp(spread * rng.standard_normal(K))
    np.fill_diagonal(rates, 0.0)
    s = np.empty(K)
    stationary(rates.copy(), s)
    assert np.all(s > 0.0)
    np.testing.assert_allclose(s * rates.sum(axis=1), s @ rates, rtol=1e-12)


def test_states_that_never_leave_come_first_and_take_all():
    rates = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [3.0, 4.0, 0.0]])
    s = np.empty(3)
    stationary(rates, s)
    np.testing.assert_array_equal(s, [1.0, 0.0, 0.0])
