"""Sums of rows against exact ones, and NumPy's."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from adacoord.kernels.summation import UNIT, gamma, pairwise_depth
from adacoord.kernels.sums import product_sum, squared_distance, sum_and_size


@pytest.mark.parametrize("n", [0, 1, 23, 24, 25, 127, 1000, 5001])
@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_within_what_is_counted(n, scale):
    """A term goes through no more roundings than :func:`pairwise_depth` says of NumPy's sums."""
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((2, n)) * np.exp(3.0 * rng.standard_normal((2, n))) + scale
    exact = [Fraction(float(a)) for a in x], [Fraction(float(a)) for a in y]
    known = gamma(pairwise_depth(n) + 4)

    def close(found, terms):
        return abs(Fraction(found) - sum(terms)) <= known * sum(map(abs, terms))

    assert close(product_sum(x, y), [a * b for a, b in zip(*exact, strict=True)])
    apart = [Fraction(float(a - b)) for a, b in zip(x, y, strict=True)]
    assert close(squared_distance(x, y), [a * a for a in apart])
    total, size = sum_and_size(x - scale)
    terms = [Fraction(float(a)) for a in x - scale]
    assert close(total, terms)
    assert size == pytest.approx(float(sum(map(abs, terms))), rel=n * UNIT + UNIT)


def test_what_cancels_is_left():
    """The roundings between pieces are made good."""
    x = np.concatenate([np.full(24, 1e16), np.ones(24), np.full(24, -1e16)])
    assert sum_and_size(x)[0] == 24.0
    assert product_sum(x, np.ones(72)) == 24.0


@pytest.mark.parametrize("at", [0, 30, 99])
def test_no_number_stays_none(at):
    x = np.ones(100)
    x[at] = np.inf
    assert product_sum(x, x) == squared_distance(x, np.zeros(100)) == np.inf
    assert sum_and_size(x) == (np.inf, np.inf)
    x[at] = np.nan
    for found in (product_sum(x, x), squared_distance(x, x), *sum_and_size(x)):
        assert math.isnan(found)
