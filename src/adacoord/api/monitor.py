"""The judge: when to look, what to keep, when to stop.

The monitor recomputes P, D and the gap in float64 from (x, y) and the data.  A solver's running
sums never count, and no solver decides that it has converged.  It keeps the best primal and the
best dual point seen, which need not be of the same moment: P_best - D_best is a certificate all
the same.  What rounding may hide is taken from D (:mod:`adacoord.problem.rounding`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..linalg.blas import one_thread
from ..problem import Problem
from ..solvers.base import Point, Stepper, start_point

if TYPE_CHECKING:
    from ..auto.fallback import Fallback

Values = TypeVar("Values", bound=float | np.ndarray)


class Switch(NamedTuple):
    """A change of method during a run: after how many passes, from which, to which."""

    passes: int
    before: str
    after: str


def _growing() -> Any:
    """A column of :class:`History` while the run goes on: a list, whatever the type says."""
    return []


@dataclass
class History:
    """What each gap check saw; arrays once the run is over.

    ``passes``, ``seconds`` and ``operations`` (entries of A touched) are cumulative; ``gap`` is
    that of the best points so far, ``primal`` and ``dual`` are those of the moment.  ``switched``
    is the :class:`Switch` by which a wrong pick of ``auto`` was put right, or None (also where the
    second method failed and the first went on).
    """

    passes: np.ndarray = field(default_factory=_growing)
    seconds: np.ndarray = field(default_factory=_growing)
    operations: np.ndarray = field(default_factory=_growing)
    primal: np.ndarray = field(default_factory=_growing)
    dual: np.ndarray = field(default_factory=_growing)
    gap: np.ndarray = field(default_factory=_growing)
    relative_gap: np.ndarray = field(default_factory=_growing)
    switched: Switch | None = None
    #: The names of the arrays.
    columns: ClassVar[tuple[str, ...]] = (
        "passes",
        "seconds",
        "operations",
        "primal",
        "dual",
        "gap",
        "relative_gap",
    )

    def append(self, **values: float) -> None:
        for name, value in values.items():
            getattr(self, name).append(value)

    def freeze(self) -> None:
        for name in self.columns:
            setattr(self, name, np.asarray(getattr(self, name)))


@dataclass(frozen=True)
class Progress:
    """What a callback is given at each gap check; ``x`` and ``intercept`` are the best so far.

    ``switched`` is that of :class:`History`.
    """

    passes: int
    seconds: float
    primal: float
    dual: float
    gap: float
    relative_gap: float
    tol: float
    x: np.ndarray
    intercept: float | np.ndarray
    switched: Switch | None = None


class Monitor:
    """Runs one solver to one tolerance."""

    def __init__(
        self,
        problem: Problem,
        *,
        tol: float,
        max_passes: int,
        max_seconds: float | None = None,
        callback: Callable[[Progress], object] | None = None,
        show: Callable[[Progress], None] | None = None,
    ):
        self.problem = problem
        self.tol, self.max_passes, self.max_seconds = tol, max_passes, max_seconds
        self.callback, self.show = callback, show
        self.history = History()
        self.certified = problem.has_certificate
        # x = 0 is the least that is offered: no run returns a point worse than that
        self.best_primal = problem.null_value
        self.x, self.intercept = np.zeros(problem.x_shape), problem.no_intercept
        self.y, self._u = problem.loss.start(problem.b), np.zeros(problem.x_shape)
        #: D(y) as evaluated, and the bound on P* that it proves
        self._dual_value = self.best_dual = -math.inf if self.certified else math.nan
        #: the point that the run starts from, with its P and D
        self._first: tuple[Any, Any, Any, float, float] | None = None
        self._spent = 0, 0  # passes and operations of a solver that another took over from

    @property
    def relative_gap(self) -> float:
        if not self.certified:
            return math.nan
        return self.problem.relative_gap(self.best_primal, self.best_dual)

    @property
    def gap(self) -> float:
        return self.best_primal - self.best_dual

    @property
    def _all_rounding(self) -> bool:
        """Whether no better points could prove more than half of what is missing."""
        found = math.isfinite(self.gap)  # nothing is proved before there is a bound
        return found and self.best_primal - self._dual_value <= 0.5 * self.gap

    def run(
        self,
        make_solver: Callable[[], Stepper],
        start: Point | None = None,
        fallback: Callable[[], Fallback | None] | None = None,
    ) -> str:
        """Advance the solver until a reason to stop; returns that reason.

        ``start`` is looked at as it is (a dual method keeps only its y).  When what ``fallback``
        makes is due, once at the most, its solver goes on from the best points so far; limits hold
        for both.  Where that one fails, or is stuck, the first goes on where it was.
        One of ``"converged"``, ``"max_passes"``, ``"max_seconds"``, ``"callback"``,
        ``"interrupted"``, ``"rounding"`` where P - D is within what float64 can tell and that is
        more than ``tol``, ``"stuck"`` where the solver can do no better, or the name of the
        published rule by which the solver is ``finished``; without a penalty also ``"stationary,
        no certificate"`` and ``"no minimum"``.
        """
        self._started = time.perf_counter()
        solver: Stepper | None = None
        other: Fallback | None = None
        first: Stepper | None = None  # while the fallback's solver has its turn
        try:
            if self.problem.constant_target is not None:
                zero = np.zeros(self.problem.x_shape)
                self._look(zero, self.problem.constant_target, np.zeros(self.problem.y_shape))
            with np.errstate(all="ignore"):
                solver = make_solver()
            if start is not None:
                point = start_point(self.problem, start)
                self._first = *point, *self._look(*point)
            # a patient solver is looked at when it says so, unless nothing is left to do
            reason = self.check(solver) if not solver.patient or self._all_rounding else ""
            while not reason:
                step = check_interval(solver.passes, solver.check_cost)
                step = sooner(step, self.history, self.tol)
                step = min(step, self.max_passes - self._passes(solver))
                self._advance(solver, step)
                reason = self.check(solver)
                if reason:
                    break
                if fallback is not None:  # which most runs that end at a first check never need
                    other, fallback = fallback(), None
                if first is not None:
                    assert other is not None
                    if solver.stuck or other.failed(self.history, self.tol, self.max_passes):
                        self._spent = solver.passes, solver.operations
                        self.history.switched = None
                        solver, first, other = first, None, None
                elif other is not None and (solver.stuck or other.due(self.history, self.tol)):
                    first, solver = solver, self._take_over(solver, other)
                    if first.stuck:
                        first = other = None
                elif solver.stuck:
                    reason = "stuck"
        except KeyboardInterrupt:
            reason = "interrupted"
            if solver is not None:  # any (x, y) is a valid point, wherever it was interrupted
                self._look(solver.x, solver.intercept, solver.y)
        self.history.freeze()
        self.passes = 0 if solver is None else self._passes(solver)
        return reason

    def _advance(self, solver: Stepper, passes: int) -> None:
        """Up to so many passes; what overflows on the way is seen at the next look."""
        # held once for all of them: 40 us each time
        with one_thread() if solver.uses_blas else nullcontext(), np.errstate(all="ignore"):
            for _ in range(passes):
                solver.advance(1)
                # a solver that believes to be there is looked at, not believed
                if solver.estimate <= self.tol or solver.stuck:
                    return
                if self.callback is not None and solver.patient and solver.estimate < math.inf:
                    return
                if self.max_seconds is not None and self.seconds >= self.max_seconds:
                    return

    def _take_over(self, solver: Stepper, fallback: Fallback) -> Stepper:
        """The solver that goes on from the best points of ``solver``."""
        other, name = fallback.make(SimpleNamespace(x=self.x, intercept=self.intercept, y=self.y))
        self.history.switched = Switch(solver.passes, fallback.before, name)
        self._spent = solver.passes, solver.operations
        return other

    def _passes(self, solver: Stepper) -> int:
        return self._spent[0] + solver.passes

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def check(self, solver: Stepper) -> str:
        """Evaluate the solver's point; the reason to stop, or an empty string."""
        point = solver.x, solver.intercept, solver.y
        if self._first is not None and all(map(np.array_equal, self._first, point)):
            primal, dual = self._first[3:]  # a solver that starts where the start was
        else:
            primal, dual = self._look(*point)
        self._first = None
        seconds, passes = self.seconds, self._passes(solver)
        gap, relative_gap = self.gap, self.relative_gap
        self.history.append(
            passes=passes,
            seconds=seconds,
            operations=self._spent[1] + solver.operations,
            primal=primal,
            dual=dual,
            gap=gap,
            relative_gap=relative_gap,
        )
        if self.show:
            self.show(self._progress(passes, seconds))
        if self.certified:
            if relative_gap <= self.tol:
                return "converged"
            if self._all_rounding:
                return "rounding"
        elif reason := self._without_certificate():
            return reason
        if solver.finished:
            return solver.finished
        if self.callback and self.callback(self._progress(passes, seconds)):
            return "callback"
        if passes >= self.max_passes:
            return "max_passes"
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return "max_seconds"
        return ""

    def _progress(self, passes: int, seconds: float) -> Progress:
        return Progress(
            passes,
            seconds,
            self.best_primal,
            self.best_dual,
            self.gap,
            self.relative_gap,
            self.tol,
            read_only(self.x),
            read_only(self.intercept),
            self.history.switched,
        )

    def _without_certificate(self) -> str:
        """Where no gap can be had (l1 = l2 = 0): the angle between the slopes and the columns."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.stationarity = self.problem.stationarity(self.x, self.intercept)
        if self.problem.separates(self.x, self.intercept):
            return "no minimum"
        return "stationary, no certificate" if self.stationarity <= self.tol else ""

    def _look(
        self, x: np.ndarray, intercept: float | np.ndarray, y: np.ndarray
    ) -> tuple[float, float]:
        """P and D of a point, which is kept if it is the best of its kind."""
        # A solver may wander off for a while: an infinite P or D is simply not the best.
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(intercept).all() and np.isfinite(x).all()
            primal = self.problem._primal(x, intercept) if finite else math.inf
            if self.certified:
                feasible, u = self.problem.feasible_dual(y)
                dual = self.problem._dual(feasible, u)
            else:
                dual = math.nan
            best = self.best_primal
            if not self.certified and math.isfinite(best):  # P cannot see the last digits of x
                best += 1e-14 * abs(best)
            better = primal < best, dual > self._dual_value
            if better[0]:
                self.best_primal, self.x, self.intercept = primal, x.copy(), copy(intercept)
                if not self.certified:
                    self.y = y.copy()
            if better[1]:
                self._dual_value, self.y, self._u = dual, feasible, u
            if self.certified and any(better):
                self.best_dual = self.problem.bound(
                    self.x, self.intercept, self.best_primal, self.y, self._u, self._dual_value
                )
        return primal, dual


def read_only(x: Values) -> Values:
    """``x`` for a callback's eyes only: what it wrote there would belie the certificate."""
    if not isinstance(x, np.ndarray):
        return x
    view: Any = x.view()
    view.flags.writeable = False
    return view


def check_interval(passes: int, check_cost: float) -> int:
    """Passes to the next check, after ``passes`` of them.

    A function of the pass count alone, so that a run is the same whatever the clock does.
    Checks stay below about a fifth of the time, and later a twentieth of the passes.
    """
    return max(math.ceil(5.0 * check_cost), passes // 20, 1)


#: The soonest check after another, in intervals: a prediction that fails may be made again.
SOONEST = 0.4


def sooner(interval: int, history: History, tol: float) -> int:
    """``interval``, or less where the last two checks say that ``tol`` is nearer.

    The gap falls geometrically more often than not.  (Logistic, rcv1.subset, C = 1: 9.8e-6 after
    5 passes, 3e-11 after 10; the check after 7 saves a quarter of the run.)
    """
    gaps, passes = history.relative_gap[-2:], history.passes[-2:]
    if len(gaps) < 2 or not 0.0 < tol < gaps[1] < gaps[0] < math.inf:
        return interval
    left = (passes[1] - passes[0]) * math.log(gaps[1] / tol) / math.log(gaps[0] / gaps[1])
    return min(interval, max(math.ceil(min(left, interval)), math.ceil(SOONEST * interval)))
