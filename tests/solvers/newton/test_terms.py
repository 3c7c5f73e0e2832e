"""Losses with kinks or bends, and penalties, as sums of terms max v (s - b) - bend v^2/2."""

import numpy as np
import pytest

import adacoord as ac
from adacoord.solvers.newton.terms import terms_of

PENALTIES = (
    {},
    {"l1": 0.3},
    {"l1": 0.3, "l2": 0.2},
    {"l1": 0.1, "positive": True},
    {"l2": np.arange(4.0), "lower": -0.5},
    {"l1": [0.0, 0.1, 0.2, 0.3], "upper": [0.0, 1.0, np.inf, 0.7]},
    {"lower": [-1.0, 0.0, -np.inf, -0.2], "upper": [0.5, 2.0, 0.0, np.inf]},
)
LOSSES = (
    "hinge",
    "absolute",
    "quantile",
    ac.losses.EpsilonInsensitive(0.4),
    ac.losses.SmoothHinge(0.3),
    ac.losses.Huber(0.6),
)


def most(low, high, bend, t):
    """max of v t - bend v^2/2 over low <= v <= high, one at a time."""
    if bend > 0.0:
        v = min(max(t / bend, low), high)
        return v * t - 0.5 * bend * v * v
    ends = [end * t for end in (low, high) if np.isfinite(end)]
    inside = [0.0] if low <= 0.0 <= high else []
    outside = (high == np.inf and t > 0.0) or (low == -np.inf and t < 0.0)
    return np.inf if outside else max(ends + inside)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("further", [False, True])
def test_their_sum_is_the_objective_without_its_l2(loss, penalty, further):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((7, 4))
    b = np.where(rng.random(7) < 0.5, 1.0, -1.0)
    both = {"offset": rng.standard_normal(7), "sample_weight": rng.random(7)} if further else {}
    problem = ac.Problem(A, b, loss, **penalty, **both)
    terms = terms_of(problem)
    for x in (np.zeros(4), np.full(4, 0.3), rng.standard_normal(4), -rng.random(4)):
        z = A @ x
        parts = map(most, terms.low, terms.high, terms.bend, terms.spread(z, x) - terms.b)
        square = 0.5 * float(np.sum(problem.penalty.by_column(4)[1] * x * x))
        assert sum(parts) + square == pytest.approx(problem.primal(x), rel=1e-12)
    rows, columns = terms.gathered(np.arange(float(terms.b.size)))
    s, t = rng.standard_normal(7), rng.standard_normal(4)
    both_ways = np.arange(float(terms.b.size)) @ terms.spread(s, t)
    assert rows @ s + columns @ t == pytest.approx(both_ways)
