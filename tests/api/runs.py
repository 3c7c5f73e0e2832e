"""Runs that are killed between two passes, and what they have to come to all the same."""

from __future__ import annotations

import warnings

import numpy as np

import adacoord as ac
from adacoord.api import checkpoint
from adacoord.io import checkpoints


class Killed(BaseException):
    """In place of kill -9: nothing of the run is left but its checkpoint."""


def solve(problem, solver="auto", **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        return ac.solve(problem, solver, **how)


def solve_killed(monkeypatch, path, writes, problem, solver="auto", **how):
    """Go on from ``path`` until so many checkpoints are written: None, or a result before that."""
    left = writes

    def write(*args, **kwargs):
        nonlocal left
        checkpoints.write_checkpoint(*args, **kwargs)
        left -= 1
        if left == 0:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_checkpoint", write)
        try:
            return solve(problem, solver, checkpoint=path, checkpoint_every=0.0, **how)
        except Killed:
            return None


def assert_same_bits(found, expected):
    """Of all but seconds."""
    for name in ("x", "y", "intercept", "primal", "dual", "gap", "relative_gap"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for name in ("status", "converged", "passes", "solver"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.history.switched == expected.history.switched
    for name in set(found.history.columns) - {"seconds"}:
        mine, other = getattr(found.history, name), getattr(expected.history, name)
        np.testing.assert_array_equal(mine, other, err_msg=f"history.{name}")
        assert mine.dtype == other.dtype, name
    assert (np.diff(found.history.seconds) >= 0.0).all()
    assert found.seconds >= found.history.seconds[-1]


def resumes(monkeypatch, folder, at_least, seed, problem, solver="auto", most=3, **how):
    """A run without interruption, and the same one killed again and again: the same bits."""
    expected = solve(problem, solver, **how)
    rng, count, runs = np.random.default_rng(seed), 0, 0
    while count < at_least:
        path, found, runs = folder / f"{runs}.ckpt", None, runs + 1
        while found is None:
            writes = int(rng.integers(1, most + 1))
            # the first write of a run that goes on is where the last one was killed
            writes += checkpoints.exists(str(path))
            found = solve_killed(monkeypatch, path, writes, problem, solver, **how)
            count += found is None
        assert_same_bits(found, expected)
        assert runs <= at_least, "a run that cannot be killed"
    return expected
