r"""Small problems are solved to the last digit, whatever ``tol`` asks for.

Who fits a model to some hundred rows expects *the* solution: the same from repeated rows as from
weights, the same from every solver, digit by digit.  Here it costs milliseconds.  After the
solver has met ``tol``, :mod:`._polish` guesses the rest; where a guess fails, the solver goes on
for a while (at most ``RUN_ON`` passes a leg) and it is tried again.

Losses with kinks are first replaced by smooth ones: phi*(v) + (mu/2)(v - y)^2 in place of
phi*(v), y the dual point so far, rounds the kinks off at the width mu and leaves an optimal y
where it is (the method of multipliers).  With l2 alone these are Newton's, and with mu falling
their solutions soon lead to where a guess succeeds.

What is small: n x d of at most 2^18 numbers.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from ._polish import UNKNOWNS, polish
from ._solve import Result, run
from .losses import MARGIN, _Quadratic
from .monitor import History, Progress
from .problem import Problem
from .solvers.base import start_point
from .solvers.newton_size import system_size
from .solvers.registry import choose, newton_can

#: Entries (n x d) of a problem that counts as small.
SMALL = 2**18
#: Gaps below this are rounding: of points within it, the newer is better.
ROUNDING = 1e-13
#: Passes that a leg beyond the asked tolerance may take, and those of Newton's method.
RUN_ON, REFINE = 200, 6
#: Relative gaps at which to try again; and smoothing widths, in units of the targets.
TOLERANCES = (1e-6, 1e-8, 1e-10)
WIDTHS = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)


@dataclass(frozen=True)
class Point:
    """A primal and a dual point: what a run starts from."""

    x: np.ndarray
    intercept: float | np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Rounded(_Quadratic):
    """A loss with its kinks rounded off: (mu/2) v^2 added to its conjugate."""

    kind: int
    numbers: tuple[float, float, float, float]
    name = "rounded"
    task = "any"

    @property
    def code(self):
        return self.kind

    @property
    def constants(self):
        return self.numbers


def rounded(problem: Problem, mu: float, y: np.ndarray) -> Problem:
    """The problem with the kinks of its loss rounded off at the width ``mu``, around ``y``.

    bv + epsilon |v| + (mu/2)(v - y)^2 is again of that kind, with the target b - mu y.
    """
    _, epsilon, lo, hi = problem.loss.constants
    other = copy(problem)
    other.__dict__.pop("null_value", None)  # all else that is cached is the same
    other.loss = Rounded(problem.loss.code, (mu, epsilon, lo, hi))
    other.b = problem.b - mu * y
    return other


def solve_well(
    problem: Problem, solver: str = "auto", *, tol, max_passes, seed=0, start=None, callback=None,
    verbose=False,
) -> Result:
    """:func:`._solve.run`, and to the last digit where the problem is small."""
    options = {"seed": seed, "callback": callback, "verbose": verbose, "options": {}}
    n, d = problem.matrix.shape
    if n * d > SMALL:
        return run(problem, solver, tol=tol, max_passes=max_passes, start=start, **options)
    legs = Legs(problem, max_passes, start, options)
    if problem.loss.blocks or not problem.has_certificate:
        if solver == "auto" and newton_can(problem) and system_size(problem) <= UNKNOWNS:
            solver = "newton"  # whose digits are the last ones, whatever the weights of the rows
        legs.run(solver, tol, max_passes)
        if legs.solver == "newton":
            legs.run("newton", 1e-13, REFINE)  # each step doubles the digits
        return legs.result(tol)
    if solver == "auto" and (
        legs.polish() if problem.loss.differentiable else _by_rounding(problem, legs)
    ):
        return legs.result(tol)
    for goal in (tol, *TOLERANCES):
        if goal < legs.relative_gap and (goal == tol or legs.relative_gap <= tol):
            legs.run(solver, goal, max_passes if goal == tol else RUN_ON)
            if legs.polish():
                break
    return legs.result(tol)


def _by_rounding(problem: Problem, legs: Legs) -> bool:
    """Lead a problem with kinks to where a guess succeeds; False where that does not work."""
    unit = 1.0 if problem.loss.code == MARGIN else float(np.std(problem.b)) or 1.0
    for width in WIDTHS:
        other = rounded(problem, width * unit, legs.point.y)
        if not legs.newton(other):
            if choose(other) == "apdc":  # which rounds kinks off itself
                return False
            legs.run("auto", 1e-4 * width, RUN_ON, other)
            if legs.over or not legs.point.converged:
                return bool(legs.status)
        if legs.polish():
            return True
    return False


class Legs:
    """One run after the other, each from where the last one ended; the best points of them all."""

    def __init__(self, problem: Problem, max_passes: int, start, options: dict):
        self.problem, self.left, self.options = problem, max_passes, options
        self.start = start
        self.point = Point(*start_point(problem, start))
        self.primal, self.dual = np.inf, -np.inf if problem.has_certificate else np.nan
        self.history = History()
        self.solver, self.status = "newton", ""
        self.passes, self.operations, self.began = 0, 0, perf_counter()

    @property
    def relative_gap(self) -> float:
        return self.problem.relative_gap(self.primal, self.dual)

    @property
    def over(self) -> bool:
        return self.left < 1 or self.status in ("interrupted", "callback", "no minimum")

    def run(self, solver: str, tol: float, passes: int, other: Problem | None = None) -> None:
        """Run the solver on the problem, or on ``other`` in its place."""
        if self.over:
            return
        leg = run(other or self.problem, solver, tol=tol, max_passes=min(passes, self.left),
                  start=self.start, **self.options)
        self.start = self.point = leg
        self.solver = leg.solver
        if leg.status not in ("converged", "max_passes"):
            self.status = leg.status
        operations = leg.history.operations  # none after an interrupt before the first look
        self._spend(leg.passes, int(operations[-1]) if len(operations) else 0)
        self._look(leg.x, leg.intercept, leg.y)

    def newton(self, other: Problem) -> bool:
        """Bare Newton's method on ``other``; whether it got there."""
        found = self._newton(other)
        if found is not None:
            self.start = self.point = found
            self._look(found.x, found.intercept, found.y)
        return found is not None

    def polish(self) -> bool:
        """Try to end it here; True if there is nothing left to do."""
        if self.status:
            return True
        found = self._newton(self.problem)
        if found is not None:
            self._look(found.x, found.intercept, found.y)
            self._report()
            if self.relative_gap <= 1e3 * ROUNDING:
                return True
        return self.over

    def _newton(self, problem: Problem) -> Point | None:
        p = self.point
        try:
            found = polish(problem, p.x, p.intercept, p.y, steps=self.left)
        except KeyboardInterrupt:
            self.status = "interrupted"
            return None
        if found is None:
            return None
        point, steps = found
        self._spend(steps, 3 * steps * problem.matrix.nnz)
        return Point(*point)

    def _spend(self, passes: int, operations: int) -> None:
        self.passes, self.left = self.passes + passes, self.left - passes
        self.operations += operations

    def _report(self) -> None:
        callback = self.options["callback"]
        if callback is not None and callback(Progress(
            self.passes, perf_counter() - self.began, self.primal, self.dual,
            self.primal - self.dual, self.relative_gap, 0.0, self.x, self.intercept,
        )):
            self.status = "callback"

    def _look(self, x, c, y) -> None:
        """Judge a point by the problem's own certificate, and keep what is best."""
        problem, dual = self.problem, np.nan
        with np.errstate(over="ignore", invalid="ignore"):
            primal = problem.primal(x, c)
            if problem.has_certificate:
                y, u = problem.feasible_dual(y)
                dual = problem._dual(y, u)
        rounding = ROUNDING * abs(primal)
        if primal <= self.primal + rounding:
            self.primal, self.x, self.intercept = primal, x, c
        if not dual < self.dual - rounding:
            self.dual, self.y = dual, y
        self.history.append(
            passes=self.passes, seconds=perf_counter() - self.began, operations=self.operations,
            primal=primal, dual=dual, gap=self.primal - self.dual,
            relative_gap=self.relative_gap,
        )

    def result(self, tol: float) -> Result:
        """The best points, and what it took to find them."""
        if not self.history.passes:  # interrupted before anything was found
            self._look(self.point.x, self.point.intercept, self.point.y)
        self.history.freeze()
        relative_gap = self.relative_gap
        status = self.status or ("converged" if relative_gap <= tol else "max_passes")
        return Result(
            x=self.x, intercept=self.intercept, y=self.y, primal=self.primal, dual=self.dual,
            gap=max(self.primal - self.dual, 0.0) if relative_gap >= 0.0 else np.nan,
            relative_gap=relative_gap,
            converged=status in ("converged", "stationary, no certificate"), status=status,
            passes=self.passes, seconds=perf_counter() - self.began, history=self.history,
            solver=self.solver,
        )
