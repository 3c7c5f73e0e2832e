r"""Small problems are solved to the last digit, unless ``tol`` asks for little.

Who fits a model to some hundred rows expects *the* solution: the same from repeated rows as from
weights, the same from every solver, digit by digit.  Here it costs milliseconds.

Smooth losses are left to :mod:`._bare_newton`, which goes all the way at once.  Losses with kinks
are first replaced by smooth ones: phi*(v) + (mu/2)(v - y)^2 in place of phi*(v), y the dual point
so far, rounds the kinks off at the width mu and leaves an optimal y where it is (the method of
multipliers).  Some passes of dual ascent find out about where; then mu falls, and as soon as so
few rows are left within the kinks that all of them can be met, :mod:`._polish` guesses the rest.

Where that does not work (no Newton's method for so many columns with l1, a guess that fails) or
another solver was asked for, the solver runs under the monitor, first to ``tol`` and then on (at
most ``RUN_ON`` passes a leg), and the rest is tried again.

What is small: n x d of at most 2^18 numbers.  What is little: a ``tol`` above the estimators'
default.  It is met, and nothing more is done.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from ...api.monitor import History, Progress, read_only
from ...api.solve import Result, run
from ...kernels.codes import MARGIN
from ...linalg.blas import one_thread
from ...problem import Problem
from ...problem.losses import _Quadratic
from ..base import start_point
from ..dual.acf import AdaptiveFrequencies
from ..registry import choose, newton_can
from .bare import BareNewton
from .polish import UNKNOWNS, polish
from .size import system_size

#: Entries (n x d) of a problem that counts as small.
SMALL = 2**18
#: Gaps below this are rounding: of points within it, the newer is better.
ROUNDING = 1e-13
#: Passes that a leg beyond the asked tolerance may take, and those of Newton's method.
RUN_ON, REFINE = 200, 6
#: Relative gaps at which to try again.
TOLERANCES = (1e-6, 1e-8, 1e-10)
#: A larger tol is little: it is met, and that is all.
LITTLE = 1e-4
#: Smoothing widths in units of the targets: the first, each over the one before, the last; the
#: share of rows within kinks that may change in a step that ends a width; and the passes of dual
#: ascent before the first.
WIDEST, NARROWER, NARROWEST, ROUGH, ASCENT = 0.3, 0.3, 1e-8, 0.2, 15


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
    legs = Legs(problem, tol, max_passes, start, options)
    if problem.has_certificate and problem.constant_target is not None:
        legs._look(np.zeros(d), problem.constant_target, np.zeros(n))
        if legs.relative_gap <= tol:
            return legs.result()
    if solver == "auto" and problem.loss.name == "squared" and not problem.has_certificate:
        legs.start = least_norm(problem)
        legs.run(solver, tol, max_passes)  # which confirms it, and no more
        return legs.result()
    if problem.loss.blocks or not problem.has_certificate:
        if solver == "auto" and newton_can(problem) and system_size(problem) <= UNKNOWNS:
            solver = "newton"  # whose digits are the last ones, whatever the weights of the rows
        legs.run(solver, tol, max_passes)
        if legs.solver == "newton":
            legs.run("newton", 1e-13, REFINE)  # each step doubles the digits
        return legs.result()
    if solver == "auto" and legs.directly():
        return legs.result()
    for goal in (tol, *TOLERANCES):
        if goal < legs.relative_gap and (goal == tol or legs.relative_gap <= tol):
            legs.run(solver, goal, max_passes if goal == tol else RUN_ON)
            if legs.polish():
                break
    return legs.result()


def least_norm(problem: Problem) -> Point:
    """Of all least-squares solutions the one with the least |x|, as scikit-learn's ``alpha=0``."""
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    A, b = problem.matrix.dense, problem.b
    a0, b0 = np.zeros(problem.d), 0.0
    if problem.intercept:
        a0, b0 = (w @ A) / w.sum(), float(w @ b) / float(w.sum())
    root = np.sqrt(w)
    with one_thread():
        x = np.linalg.lstsq(root[:, None] * (A - a0), root * (b - b0), rcond=None)[0]
    c = b0 - float(a0 @ x)
    return Point(x, c, A @ x + c - b)


class Legs:
    """One run after the other, each from where the last one ended; the best points of them all."""

    def __init__(self, problem: Problem, tol: float, max_passes: int, start, options: dict):
        self.problem, self.tol, self.left, self.options = problem, tol, max_passes, options
        self.start = start
        self.point = Point(*start_point(problem, start))
        self.primal, self.dual = np.inf, -np.inf if problem.has_certificate else np.nan
        self.value = self.dual  # of D as evaluated; ``dual`` is the bound that it proves
        self.history = History()
        self.solver, self.status = "newton", ""
        self.passes, self.operations, self.began = 0, 0, perf_counter()
        self.bare = BareNewton(problem) if BareNewton.affordable(problem) else None

    @property
    def relative_gap(self) -> float:
        return self.problem.relative_gap(self.primal, self.dual)

    @property
    def over(self) -> bool:
        return self.left < 1 or self.status in ("interrupted", "callback", "no minimum")

    # ---- ways to the optimum; each says whether there is nothing left to do ---------------

    def directly(self) -> bool:
        """By Newton's method alone."""
        if not self.problem.loss.differentiable:
            return self._through_kinks()
        return self.bare is not None and self.polish()

    def _through_kinks(self) -> bool:
        problem = self.problem
        if self.start is not None and self.polish(degenerate=False):
            return True
        unit = 1.0 if problem.loss.code == MARGIN else float(np.std(problem.b)) or 1.0
        sparse = problem.penalty.l1 > 0.0 or problem.penalty.positive
        self._ascend()
        if self._shown():
            return True
        width, before = WIDEST, 0
        while width >= NARROWEST and not self.over:
            within = self._round_off(width * unit, 1e-4 * width)
            if within is None:
                return bool(self.status)
            if self._shown():
                return True
            # More rows than columns cannot be met, unless some repeat others: then they stay as
            # many.  How many columns are not zero is not known beforehand.
            crowd = sparse or within > problem.d + 1
            if (sparse or not crowd or within == before) and self.polish(degenerate=crowd):
                return True
            width, before = width * NARROWER, within
        return bool(self.status)

    def _ascend(self) -> None:
        """Some passes of dual ascent for the losses of margins, whose y come to rest at bounds."""
        problem, passes = self.problem, min(ASCENT, self.left)
        if problem.penalty.l1 > 0.0 or problem.penalty.positive or problem.loss.code != MARGIN:
            return
        rng = np.random.Generator(np.random.PCG64(self.options["seed"]))
        solver = AdaptiveFrequencies(problem, rng, self.start)
        if self._attempt(lambda: solver.advance(passes) or True):
            self._spend(passes, solver.operations)
            self._move(Point(solver.x, solver.intercept, solver.y))

    def _round_off(self, mu: float, tol: float) -> int | None:
        """Solve the problem with kinks rounded off; the rows within them, None if it failed."""
        other, p, found = rounded(self.problem, mu, self.point.y), self.point, None
        if self.bare is not None:
            law = other.loss.code, *other.loss.constants
            rough = 0.0 if self.bare.sparse else ROUGH
            found = self._attempt(
                lambda: self.bare.minimise(p.x, p.intercept, self.left, law, other.b, rough))
        if found is not None:
            self._spend(found.steps, 3 * found.steps * self.problem.matrix.nnz)
            self._move(found)
            return found.bent
        if choose(other) == "apdc":  # which rounds kinks off itself
            return None
        self.run("auto", tol, RUN_ON, other)
        return None if self.over or not self.point.converged else 0

    def polish(self, degenerate: bool = True) -> bool:
        """Try to end it here."""
        if self.status or self._enough:
            return True
        p = self.point
        if self.problem.loss.differentiable and self.bare is not None:
            found = self._attempt(lambda: self.bare.minimise(p.x, p.intercept, self.left))
            if found is not None:
                found = found, found.steps
        else:
            found = self._attempt(lambda: polish(
                self.problem, p.x, p.intercept, p.y, self.left, degenerate))
            if found is not None:
                found = Point(*found[0]), found[1]
        if found is not None:
            point, steps = found
            self._spend(steps, 3 * steps * self.problem.matrix.nnz)
            self._judge(point)
            if self.relative_gap <= 1e3 * ROUNDING:
                return True
        return self.over

    def _attempt(self, method):
        try:
            return method()
        except KeyboardInterrupt:
            self.status = "interrupted"
            return None

    def run(self, solver: str, tol: float, passes: int, other: Problem | None = None) -> None:
        """Run the solver on the problem, or on ``other`` in its place."""
        if self.over:
            return
        options = dict(self.options)
        if options["callback"] is not None:
            options["callback"] = lambda progress: self._relay(progress, other is not None)
        leg = run(other or self.problem, solver, tol=tol, max_passes=min(passes, self.left),
                  start=self.start, **options)
        self._move(leg)
        self.solver = leg.solver
        if leg.status not in ("converged", "max_passes", "rounding"):
            self.status = leg.status
        if leg.history.switched is not None:
            switched = leg.history.switched
            self.history.switched = switched._replace(passes=self.passes + switched.passes)
        operations = leg.history.operations  # none after an interrupt before the first look
        self._spend(leg.passes, int(operations[-1]) if len(operations) else 0)
        self._look(leg.x, leg.intercept, leg.y)

    # ---- what they share ------------------------------------------------------------------

    @property
    def _enough(self) -> bool:
        """Whether little was asked for, and is there."""
        return self.tol > LITTLE and self.relative_gap <= self.tol

    def _shown(self) -> bool:
        """Judge the point where somebody waits for it: it costs as much as a step or two."""
        if self.tol > LITTLE or self.options["callback"] is not None:
            self._judge(self.point)
        return self._enough

    def _move(self, point) -> None:
        self.start = self.point = point

    def _judge(self, point) -> None:
        """Look at a point, and let the callback look at what is best."""
        self._look(point.x, point.intercept, point.y)
        callback = self.options["callback"]
        if callback is not None and callback(Progress(
            self.passes, perf_counter() - self.began, self.primal, self.dual,
            self.primal - self.dual, self.relative_gap, self.tol, read_only(self.x),
            read_only(self.intercept),
        )):
            self.status = "callback"

    def _relay(self, progress: Progress, of_another: bool):
        """What a leg tells the callback, in terms of all legs and of the problem itself."""
        progress = replace(
            progress, passes=self.passes + progress.passes,
            seconds=perf_counter() - self.began, tol=self.tol,
        )
        if self.problem.has_certificate:
            primal, dual = progress.primal, max(self.dual, progress.dual)
            if of_another:
                primal = self.problem.primal(progress.x, progress.intercept)
                dual = self.dual
            if primal > self.primal:
                primal = self.primal
                progress = replace(
                    progress, x=read_only(self.x), intercept=read_only(self.intercept))
            progress = replace(
                progress, primal=primal, dual=dual, gap=primal - dual,
                relative_gap=self.problem.relative_gap(primal, dual),
            )
        return self.options["callback"](progress)

    def _spend(self, passes: int, operations: int) -> None:
        self.passes, self.left = self.passes + passes, self.left - passes
        self.operations += operations

    def _look(self, x, c, y) -> None:
        """Judge a point by the problem's own certificate, and keep what is best."""
        problem, value = self.problem, np.nan
        with np.errstate(over="ignore", invalid="ignore"):
            primal = problem.primal(x, c)
            if problem.has_certificate:
                y, u = problem.feasible_dual(y)
                value = problem._dual(y, u)
            rounding = ROUNDING * abs(primal)
            if primal <= self.primal + rounding:
                self.primal, self.x, self.intercept = primal, x, c
            if not value < self.value - rounding:
                self.value, self.y, self.u = value, y, u if problem.has_certificate else None
            if problem.has_certificate:
                self.dual = problem.bound(
                    self.x, self.intercept, self.primal, self.y, self.u, self.value
                )
        dual = value
        self.history.append(
            passes=self.passes, seconds=perf_counter() - self.began, operations=self.operations,
            primal=primal, dual=dual, gap=self.primal - self.dual,
            relative_gap=self.relative_gap,
        )

    def result(self) -> Result:
        """The best points, and what it took to find them."""
        if not self.history.passes:  # interrupted before anything was found
            self._look(self.point.x, self.point.intercept, self.point.y)
        self.history.freeze()
        relative_gap = self.relative_gap
        status = self.status or ("converged" if relative_gap <= self.tol else "max_passes")
        if status == "max_passes" and self.primal - self.value <= 0.5 * (self.primal - self.dual):
            status = "rounding"
        return Result(
            x=self.x, intercept=self.intercept, y=self.y, primal=self.primal, dual=self.dual,
            gap=self.primal - self.dual, relative_gap=relative_gap,
            converged=status in ("converged", "stationary, no certificate"), status=status,
            passes=self.passes, seconds=perf_counter() - self.began, history=self.history,
            solver=self.solver,
        )
