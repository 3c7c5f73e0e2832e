"""When a steady solver is stuck."""

from __future__ import annotations

import numpy as np
import pytest

from adacoord.api.monitor import History
from adacoord.api.turns import IDLE, LOOKS, idle


def history(passes, primal, gap):
    out = History()
    for k, p, g in zip(passes, primal, gap, strict=True):
        out.append(passes=k, primal=p, gap=g)
    return out


EVERY_TEN = range(0, 2 * IDLE, 10)
SAME = [1.0] * len(EVERY_TEN)


def falling(rate):
    return [1.0 - rate * k for k in range(len(SAME))]


def test_no_progress_is_idle():
    assert idle(history(EVERY_TEN, SAME, SAME), since=0)
    # what rounding makes of P and of the gap is none
    assert idle(history(EVERY_TEN, falling(1e-16), falling(1e-9)), since=0)


@pytest.mark.parametrize(
    ("primal", "gap"), [(falling(1e-12), SAME), (SAME, falling(1e-5)), (SAME, [np.nan] * len(SAME))]
)
def test_some_is_not(primal, gap):
    """Nor is a run without a certificate."""
    assert not idle(history(EVERY_TEN, primal, gap), since=0)


def test_a_turn_is_given_its_time():
    assert not idle(history(EVERY_TEN, SAME, SAME), since=IDLE)
    assert not idle(history(EVERY_TEN[: IDLE // 10], SAME[: IDLE // 10], SAME[: IDLE // 10]), 0)
    assert not idle(history([0, 5 * IDLE], SAME[:2], SAME[:2]), since=0)
    assert LOOKS > 1
