"""Feasible dual points by blocks are those of the whole."""

import numpy as np
import pytest

import adacoord as ac
from adacoord.parallel.choice import in_blocks
from adacoord.parallel.executors import Serial, Threads
from adacoord.problem.losses import LOSSES


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"multinomial"}))
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_repaired(loss, intercept, weighted, monkeypatch):
    monkeypatch.setattr("adacoord.data.partition.LEAST_BYTES", 2**9)
    rng = np.random.default_rng(7)
    A = rng.standard_normal((200, 4))
    A[11] = 0.0
    b = rng.poisson(2.0, 200).astype(float) + 0.5 * (loss == "gamma")
    if ac.losses.get_loss(loss).task == "classification":
        b = np.where(rng.random(200) < 0.3, 1.0, -1.0)
    w = rng.exponential(1.0, 200) * (rng.random(200) < 0.9) if weighted else None
    whole = ac.Problem(A, b, loss, l2=0.1, intercept=intercept, sample_weight=w)
    for executor in (Serial(), Threads(2)):
        parts = in_blocks(whole, executor)
        assert len(parts.matrix.pieces) > 3
        for scale, away in ((1.0, 0.0), (0.3, 0.9), (10.0, -3.0), (1.0, 50.0)):
            y = scale * rng.standard_normal(200) + away
            kept = y.copy()
            one, other = whole._repaired(y), parts._repaired(y)
            np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-13)
            assert np.array_equal(y, kept)
            if intercept:
                mean = np.average(other, weights=w)
                assert abs(mean) <= 1e-13 * max(1.0, np.abs(other).max())
        executor.close()
