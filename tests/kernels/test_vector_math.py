"""The exp and log1p of loops, against NumPy's in long double."""

from __future__ import annotations

import numpy as np

from adacoord.kernels.jit import FAST, jit
from adacoord.kernels.vector_math import exp, log1p


@jit(fastmath=FAST)
def exps(x, out):
    """In a loop whose sums may be rearranged: the functions may not be."""
    total = 0.0
    for i in range(np.uint64(x.shape[0])):
        out[i] = exp(x[i])
        total += out[i]
    return total


@jit(fastmath=FAST)
def logs(x, out):
    total = 0.0
    for i in range(np.uint64(x.shape[0])):
        out[i] = log1p(x[i])
        total += out[i]
    return total


def worst(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error, in ulps."""
    return float(np.max(np.abs(found - exact) / exact)) / np.finfo(float).eps


def test_exp():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            np.linspace(-708.0, 709.0, 100_001),
            rng.standard_normal(100_001),
            rng.standard_normal(10_001) * 1e-9,
            np.log(2.0) * (np.arange(-1000, 1000) + 0.5),  # between two powers
        ]
    )
    x = x[(x >= -708.0) & (x <= 709.0)]
    out = np.empty_like(x)
    exps(x, out)
    assert worst(out, np.exp(x.astype(np.longdouble))) < 1.0


def test_exp_at_its_ends():
    x = np.array([0.0, -0.0, -709.0, -np.inf, 709.1, 1e300, np.inf, np.nan])
    out = np.empty_like(x)
    exps(x, out)
    assert list(out[:2]) == [1.0, 1.0]
    assert not out[2:4].any() and (out[4:7] == np.inf).all() and np.isnan(out[7])


def test_log1p():
    rng = np.random.default_rng(0)
    e = np.concatenate([np.linspace(1e-6, 1.0, 100_001), np.exp(-rng.exponential(20.0, 100_001))])
    out = np.empty_like(e)
    logs(e, out)
    assert worst(out, np.log1p(e.astype(np.longdouble))) < 2.0
    edge = np.empty(2)
    logs(np.array([0.0, np.nan]), edge)
    assert edge[0] == 0.0 and np.isnan(edge[1])
