"""Lagged updates against the steps they stand for, one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adacoord.kernels.lagged import catch_up, fill_tables

NUMBER = st.floats(-10, 10).map(lambda v: 0.0 if abs(v) < 1e-6 else v)


def prox(x, u, tau, l1, l2, positive):
    """argmin_v l1 |v| + l2 v^2/2 + u v + (v - x)^2/(2 tau), v >= 0 where ``positive``."""
    pull = x - tau * u
    size = max((pull if positive else abs(pull)) - tau * l1, 0.0)
    return float(np.copysign(size, pull)) / (1.0 + tau * l2)


def tables(tau, lam):
    """The tables of steps ``tau``, as ``catch_up`` takes them."""
    clock, missed = np.zeros((tau.size + 1, 4)), np.zeros((tau.size + 1, 2))
    assert fill_tables(clock, missed, tau, np.zeros(tau.size), lam, 0.0) == tau.size
    return clock, missed


@settings(max_examples=1000, deadline=None)
@given(
    x=NUMBER,
    u=NUMBER,
    since=st.integers(0, 20),
    k=st.integers(0, 60),
    tau=st.floats(1e-3, 10),
    spread=st.floats(0, 2),
    lam=st.floats(1e-4, 3),
    l1=st.one_of(st.just(0.0), st.floats(1e-6, 10)),
    positive=st.booleans(),
)
def test_catch_up(x, u, since, k, tau, spread, lam, l1, positive):
    """k explicit proximal steps, whether x keeps its sign, stops at 0 or crosses it."""
    taus = tau * np.exp(spread * np.sin(np.arange(since + k)))
    assume(np.log1p(lam * taus).sum() < 100.0 * np.log(10.0))  # there the tables are filled anew
    clock, missed = tables(taus, lam)
    x = abs(x) if positive else x
    want = x
    for t in range(since, since + k):
        want = prox(want, u, taus[t], l1, lam, positive)
    got = catch_up(x, u, np.uint64(since), np.uint64(since + k), clock, missed, l1, positive)
    scale = abs(x) + min(taus[since:].sum(), 1 / lam) * (abs(u) + l1)
    assert got == pytest.approx(want, rel=0, abs=1e-13 * (scale + 1e-300) * (1 + since + k))


@pytest.mark.parametrize(
    "x, u",
    [
        (1.0, 3.0),
        (-1.0, -3.0),
        (1.0, 0.5),
        (-1.0, -0.5),
        (0.0, 3.0),
        (0.0, 0.5),
        (2.0, -1.0),
        (1.0, 1.0),
    ],
)
def test_catch_up_through_zero(x, u):
    """Each case of Section 6.2, at every number of missed steps; l1 = 1, tau = .1, l2 = .5."""
    clock, missed = tables(np.full(41, 0.1), 0.5)
    want = x
    for k in range(41):
        got = catch_up(x, u, np.uint64(0), np.uint64(k), clock, missed, 1.0, False)
        assert got == pytest.approx(want, rel=1e-12, abs=1e-14)
        want = prox(want, u, 0.1, 1.0, 0.5, False)


def test_tables_end_before_they_underflow():
    clock, missed = np.zeros((101, 4)), np.zeros((101, 2))
    fit = fill_tables(clock, missed, np.full(100, 1e3), np.zeros(100), 1.0, 0.0)
    assert fit == 34  # 1001^-34 is the first power below 1e-100
    assert np.isfinite(missed[: fit + 1]).all() and (clock[: fit + 1, 0] > 0.0).all()
