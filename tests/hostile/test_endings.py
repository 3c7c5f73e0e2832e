"""Defects that hostile data once brought out: runs without an end, points worse than the start."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import adacoord as ac


def within(seconds: float, program: str) -> str:
    """What a program prints; it is killed, and the test fails, when it takes longer."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        timeout=seconds,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_empty_working_set_ends():
    out = within(
        60,
        """
import numpy as np, adacoord as ac
rng = np.random.default_rng(7); A = rng.standard_normal((100, 3))
b = rng.standard_normal(100) + 1e9
r = ac.solve(ac.Problem(A, b, l1=10., intercept=True), tol=1e-8, max_passes=60, max_seconds=30.)
print(r.status, r.passes)
""",
    )
    status, passes = out.split()
    assert status in ("rounding", "max_passes", "converged") and int(passes) <= 60


@pytest.mark.slow
def test_logistic_regression_with_nothing_left_ends():
    out = within(
        240,
        """
import numpy as np, adacoord as ac
from sklearn.datasets import make_classification
for seed in range(25):
    X, y = make_classification(2700, 100, random_state=seed)
    m = ac.LogisticRegression(l1_ratio=1., C=1e-5, tol=0., max_iter=50).fit(X, y)
    assert m.n_iter_[0] <= 50
print("done")
""",
    )
    assert out == "done\n"


@pytest.mark.slow
def test_a_path_over_timestamps_ends():
    out = within(
        120,
        """
import numpy as np, adacoord as ac
for seed in range(20):
    rng = np.random.default_rng(seed); A = rng.standard_normal((200, 5))
    b = 1.6e12 + rng.integers(0, 86400000, 200)
    assert len(ac.path(ac.Problem(A, b, intercept=True), tol=1e-9)) == 100
print("done")
""",
    )
    assert out == "done\n"


def test_a_pass_ends_whatever_its_steps_do():
    """The guard itself: steps that touch nothing still use up a pass."""
    from adacoord.solvers.primal.working_set import WorkingSetDescent

    rng = np.random.default_rng(0)
    problem = ac.Problem(rng.standard_normal((20, 5)), rng.standard_normal(20), l1=1e3)
    solver = WorkingSetDescent(problem, rng)
    steps = []
    for name in ("_look", "_build", "_sweep"):
        setattr(solver, name, lambda: steps.append(1))
    solver.advance(3)
    assert solver.passes == 3 and len(steps) == 15  # 5 a pass: n of the n d entries each


@pytest.mark.parametrize("solver", ["auto", "dcd", "acf", "sdca"])
@pytest.mark.parametrize("intercept", [False, True])
def test_never_worse_than_the_start(solver, intercept):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((50, 4)) + 1e4, rng.poisson(2.0, 50).astype(float)
    problem = ac.Problem(A, b, "poisson", l2=1e-2, intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        r = ac.solve(problem, solver, max_passes=20)
    assert r.primal <= problem.primal(np.zeros(4)) and np.isfinite(r.gap)
    assert r.primal == problem.primal(r.x, r.intercept)


@pytest.mark.parametrize(
    "loss", [name for name, cls in ac.losses.LOSSES.items() if cls.task == "regression"]
)
@pytest.mark.parametrize("target", [0.3, -3e8, 0.0, 1e-30])
@pytest.mark.parametrize("penalty", [{"l2": 1e-3}, {"l1": 1e-3}, {"l1": 1e-3, "l2": 1e-3}])
def test_constant_targets_need_no_pass(loss, target, penalty):
    A = np.random.default_rng(0).standard_normal((40, 3))
    w = np.where(np.arange(40) == 5, 0.0, 1.0)
    b = np.where(np.arange(40) == 5, 17.0, target)
    for weights, targets in ((None, np.full(40, target)), (w, b)):
        r = ac.solve(
            ac.Problem(A, targets, loss, intercept=True, sample_weight=weights, **penalty), tol=1e-9
        )
        assert r.converged and r.passes == 0 and r.gap == 0.0
        assert not r.x.any() and abs(r.intercept - target) <= (0.1 if "epsilon" in loss else 0.0)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [{}, {"l1": 0.1}, {"l1": 0.1, "l2": 0.1}, {"lower": -1.0}])
@pytest.mark.parametrize("blocks", [False, True])
def test_targets_within_the_tube_need_no_pass(loss, intercept, penalty, blocks):
    """An interior point comes near to y = 0 only, and P = 0 leaves a relative gap no unit."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((60, 4)), 0.05 * rng.uniform(-1.0, 1.0, 60)
    if not penalty and (blocks or "squared" in loss):
        pytest.skip("without a penalty there is no certificate")
    if blocks and "lower" in penalty:
        pytest.skip("blocks take no bounds")
    data = ([(A[:30], b[:30]), (A[30:], b[30:])], None) if blocks else (A, b)
    r = ac.solve(ac.Problem(*data, loss, intercept=intercept, **penalty), tol=1e-9)
    assert r.converged and r.passes == 0 and r.gap == 0.0 and not r.x.any()
