"""P(x) after each pass of a solver, as the papers plot it, and the passes and seconds to a level.

The clock runs while the solver does: looking at P costs no seconds here, and no passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from ..problem import Problem
from ..solvers.base import Solver
from ..solvers.registry import admit


@dataclass(frozen=True)
class Trace:
    """What was seen of a run; ``gap`` is the certified one of the best points so far, or NaN."""

    passes: np.ndarray
    seconds: np.ndarray
    operations: np.ndarray
    primal: np.ndarray
    gap: np.ndarray

    def to(self, level: float, optimum: float, axis: str = "passes") -> float:
        """Passes (or another axis) until P - P* is at most ``level``, for good; inf if never.

        Between two looks the logarithm is interpolated.
        """
        return _crossing(getattr(self, axis), self.primal - optimum, level)

    def to_gap(self, level: float, axis: str = "passes") -> float:
        """The same for the certified gap."""
        return _crossing(getattr(self, axis), self.gap, level)

    def at(self, passes: float, optimum: float) -> float:
        """P - P* after so many passes, or at the end of the run."""
        return float(np.interp(passes, self.passes, self.primal - optimum))


def trace(
    problem: Problem,
    solver: str | Solver,
    *,
    passes: int,
    seed: int = 0,
    optimum: float = -math.inf,
    floor: float = 0.0,
    certify: bool = False,
    judge: Problem | None = None,
    **options,
) -> Trace:
    """Run a solver for so many passes, or until P - ``optimum`` (with ``certify`` the gap) is at
    most ``floor``, or P blows up; P is looked at after each of the first 50 passes, then every
    fiftieth of the passes so far.  P is that of ``judge``, where the problem is a perturbation of
    another one.  ``solver`` may be a stepper that was made already; it has its own seed and
    options.
    """
    judge = problem if judge is None else judge
    made = (
        solver
        if isinstance(solver, Solver)
        else admit(problem, solver, options).load()(
            problem, np.random.Generator(np.random.PCG64(seed)), None, **options
        )
    )
    start = judge.null_value
    seen = [(0, 0.0, 0, start, math.nan)]
    best, dual, spent = start, -math.inf, 0.0
    while made.passes < passes and not made.finished:
        began = perf_counter()
        made.advance(min(max(1, made.passes // 50), passes - made.passes))
        x = made.x
        spent += perf_counter() - began
        with np.errstate(over="ignore", invalid="ignore"):
            primal = judge.primal(x, made.intercept)
            best = min(best, primal)
            if certify:
                dual = max(dual, problem._dual(*problem.feasible_dual(made.y)))
        gap = best - dual if certify else math.nan
        seen.append((made.passes, spent, made.operations, primal, gap))
        if (gap if certify else primal - optimum) <= floor or not primal < 1e6 * abs(start):
            break
    return Trace(*(np.array(column) for column in zip(*seen, strict=True)))


def mean_trace(traces: list[Trace]) -> Trace:
    """The mean of runs with other seeds, over the passes that all of them have.

    P is averaged; runs that ended early at their floor count with their last value.
    """
    longest = max(traces, key=lambda t: t.passes[-1])
    columns = {
        name: np.mean([np.interp(longest.passes, t.passes, getattr(t, name)) for t in traces], 0)
        for name in ("seconds", "operations", "primal", "gap")
    }
    return Trace(passes=longest.passes, **columns)


def speedup(mine: Trace, other: Trace, optimum: float, passes: float, least: float) -> float:
    """Passes of the other over mine, to the P - P* that mine has halfway through ``passes``.

    Where mine is below ``least`` by then, to ``least``; inf if the other never gets there.
    """
    level = max(mine.at(0.5 * passes, optimum), least)
    needed = mine.to(level, optimum)
    return other.to(level, optimum) / needed if needed > 0.0 else math.nan


def lead(mine: Trace, other: Trace, optimum: float, passes: float, least: float) -> float:
    """Digits of P - P* by which mine is ahead of the other when it reaches ``least``, or at the
    end of ``passes``.
    """
    when = min(mine.to(least, optimum), passes)
    return math.log10(max(other.at(when, optimum), least) / max(mine.at(when, optimum), least))


def _crossing(x: np.ndarray, y: np.ndarray, level: float) -> float:
    above = np.flatnonzero(~(y <= level))
    if above.size == 0:
        return float(x[0])
    k = above[-1]
    if k == y.size - 1:
        return math.inf
    if not (math.isfinite(y[k]) and y[k] > 0.0 and y[k + 1] > 0.0 and level > 0.0):
        return float(x[k + 1])
    share = math.log(y[k] / level) / math.log(y[k] / y[k + 1])
    return float(x[k] + share * (x[k + 1] - x[k]))
