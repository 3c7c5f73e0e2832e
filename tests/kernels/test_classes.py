"""The block kernels that no solver's own test looks at."""

from __future__ import annotations

import numpy as np
import pytest

from adacoord.kernels import classes
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


@pytest.mark.parametrize("n, K", [(1, 2), (3, 1), (8, 5), (37, 3)])
def test_rows_of_a_few_numbers(n, K):
    rng = np.random.default_rng(n)
    a, b, w = rng.standard_normal((n, K)), rng.standard_normal((n, K)), rng.random(n)
    out, mean = np.empty(n), np.empty(K)
    classes.row_products(a, b, out)
    np.testing.assert_allclose(out, (a * b).sum(axis=1), atol=1e-14)
    for weight in (None, w):
        y, sums = a.copy(), (a if weight is None else w[:, None] * a).sum(axis=0)
        classes.centre_rows(y, weight, 7.0, mean)
        np.testing.assert_allclose(mean, sums / 7.0, atol=1e-14)
        np.testing.assert_array_equal(y, a - mean)
