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
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..linalg.blas import one_thread
from ..problem import Problem
from ..solvers.base import Point, Stepper, start_point
from .turns import Turns

if TYPE_CHECKING:
    from ..auto.fallback import Fallback
    from .checkpoint import Checkpoints

Values = TypeVar("Values", bound=float | np.ndarray)


#: Endings after which a run can go on from its checkpoint: it was asked to stop.
PAUSED = ("callback", "max_seconds")


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

    def to_frame(self) -> Any:
        """A pandas frame, one row for each gap check."""
        from .views import history_frame

        return history_frame(self)

    def switch(self, passes: int, before: str, after: str) -> None:
        self.switched = Switch(passes, before, after)

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
        checkpoints: Checkpoints | None = None,
    ):
        self.problem = problem
        self.tol, self.max_passes, self.max_seconds = tol, max_passes, max_seconds
        self.callback, self.show, self.checkpoints = callback, show, checkpoints
        self.history = History()
        self.certified = problem.has_certificate
        # x = 0, or what bounds have nearest to it, is the least that is offered: no run returns a
        # point worse than that
        self.best_primal = problem.null_value
        self.x, self.intercept = problem.null_point, problem.no_intercept
        self.y, self._u = problem.loss.start(problem.b), np.zeros(problem.x_shape)
        #: the predictions of x, once they were computed
        self._z: np.ndarray | None = None
        #: D(y) as evaluated, and the bound on P* that it proves
        self._dual_value = self.best_dual = -math.inf if self.certified else math.nan
        #: the point that the run starts from, with its P and D
        self._first: tuple[Any, Any, Any, float, float] | None = None
        self.passes = 0  # once the run is over
        self._left = 0  # passes to the next check
        self._unseen = False  # whether the start is yet to be looked at
        self.over = ""  # the reason why the run that is taken up again had ended
        self.earlier = 0.0  # seconds of the run before it was taken up again

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
        if not found or self.best_primal - self._dual_value > 0.5 * self.gap:
            return False
        box = self.problem.penalty.box_cost(self.x, self._u)  # which better points need not pay
        return self.best_primal - self._dual_value + box <= 0.5 * self.gap

    def run(
        self,
        make_solver: Callable[[], Stepper],
        start: Point | None = None,
        fallback: Callable[[], Fallback | None] | None = None,
    ) -> str:
        """Advance the solver until a reason to stop; returns that reason.

        ``start`` is looked at as it is (a dual method keeps only its y), of a solver that descends
        from there only where that did not get to ``tol``.  When what ``fallback``
        makes is due, once at the most, its solver goes on from the best points so far; limits hold
        for both.  Where that one fails, or is stuck, the first goes on where it was.
        One of ``"converged"``, ``"max_passes"``, ``"max_seconds"``, ``"callback"``,
        ``"interrupted"``, ``"rounding"`` where P - D is within what float64 can tell and that is
        more than ``tol``, ``"stuck"`` where the solver can do no better, or the name of the
        published rule by which the solver is ``finished``; without a penalty also ``"stationary,
        no certificate"`` and ``"no minimum"``.
        """
        self._started = time.perf_counter()
        self.turns = turns = Turns(make_solver, fallback)
        checkpoints = self.checkpoints
        try:
            with checkpoints.listening() if checkpoints else nullcontext():
                reason = self._run(turns, start)
        except KeyboardInterrupt:
            reason = "interrupted"
            if turns.begun:  # any (x, y) is a valid point, wherever it was interrupted
                self._look(turns.solver.x, turns.solver.intercept, turns.solver.y)
            if self._unseen:
                self._look(*start_point(self.problem, start))
        self.history.freeze()
        if turns.begun:
            self.passes = self._passes(turns.solver)
        return reason

    def _run(self, turns: Turns, start: Point | None) -> str:
        if self.checkpoints is None or not self.checkpoints.resume(self):
            reason = self._begin(turns, start)
        elif self.over:
            return self.over
        else:  # a callback may have ended a run that was over anyway
            over = self._left == 0 and self._passes(turns.solver) >= self.max_passes
            reason = "max_passes" if over else ""
        while not reason:
            if self._left == 0:
                reason = turns.next(self.history, self, self.tol, self.max_passes)
                if reason:
                    break
                self._left = self._interval(turns.solver)
            self._advance(turns.solver)
            self._left = 0
            reason = self.check(turns.solver)
        paused = reason in PAUSED
        if self.checkpoints and paused:
            self.checkpoints.end(self, "")
        if self._unseen and reason != "converged":  # it may prove more than what came after it
            self._look(*start_point(self.problem, start))
            if self.relative_gap <= self.tol:
                reason = "converged"
        if self.checkpoints and not paused:
            self.checkpoints.end(self, reason)
        return reason

    def _begin(self, turns: Turns, start: Point | None) -> str:
        """The first looks, and how far it is to the next; a reason to stop where they have one."""
        if self.problem.constant_target is not None:
            zero = np.zeros(self.problem.x_shape)
            self._look(zero, self.problem.constant_target, np.zeros(self.problem.y_shape))
        elif self.best_primal == 0.0:  # all targets in the tube: solvers only come near to y = 0
            self._look(self.x, self.intercept, np.zeros(self.problem.y_shape))
        solver = turns.begin()
        self._unseen = start is not None and solver.descends
        if start is not None and not self._unseen:
            point = start_point(self.problem, start)
            self._first = *point, *self._look(*point)
        # a patient solver is looked at when it says so, unless nothing is left to do
        reason = self.check(solver) if not solver.patient or self._all_rounding else ""
        self._left = self._interval(solver)
        return reason

    def _interval(self, solver: Stepper) -> int:
        """Passes to the next check."""
        step = sooner(check_interval(solver.passes, solver.check_cost), self.history, self.tol)
        return min(step, self.max_passes - self._passes(solver))

    def _advance(self, solver: Stepper) -> None:
        """Up to the next check; what overflows on the way is seen there."""
        # held once for all of them: 40 us each time
        with one_thread() if solver.uses_blas else nullcontext(), np.errstate(all="ignore"):
            for left in range(self._left, 0, -1):
                self._left = left
                if self.checkpoints is not None:
                    self.checkpoints.visit(self)
                solver.advance(1)
                # a solver that believes to be there is looked at, not believed
                if solver.estimate <= self.tol or solver.stuck:
                    return
                if self.callback is not None and self._due(solver):
                    return
                if self.max_seconds is not None and self._late(self.seconds):
                    return

    def _due(self, solver: Stepper) -> bool:
        """Whether a callback has waited long enough for a look at a patient solver.

        (One-hot ridge, 12 passes of conjugate gradients: half of the time went into 12 looks.)
        """
        last = self.history.passes[-1] if len(self.history.passes) else 0
        waited = self._passes(solver) - last >= check_interval(0, solver.look_cost)
        return waited and solver.patient and solver.estimate < math.inf

    def _late(self, seconds: float) -> bool:
        """Whether this call has had its seconds; those before a checkpoint do not count."""
        return self.max_seconds is not None and seconds - self.earlier >= self.max_seconds

    def _passes(self, solver: Stepper) -> int:
        return self.turns.spent[0] + solver.passes

    @property
    def seconds(self) -> float:
        return self.earlier + time.perf_counter() - self._started

    def check(self, solver: Stepper) -> str:
        """Evaluate the solver's point; the reason to stop, or an empty string."""
        # a y that is made of the predictions is the judge's to make (:attr:`.Solver.offers_slopes`)
        made = solver.offers_slopes and self._first is None
        point: Any = solver.x, solver.intercept, None if made else solver.y
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
            operations=self.turns.spent[1] + solver.operations,
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
        if self._late(seconds):
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
        self, x: np.ndarray, intercept: float | np.ndarray, y: np.ndarray | None
    ) -> tuple[float, float]:
        """P and D of a point, which is kept if it is the best of its kind.

        ``y`` is None for what the slopes of the losses are there.
        """
        # A solver may wander off for a while: an infinite P or D is simply not the best.
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(intercept).all() and np.isfinite(x).all()
            dual, z = math.nan, None
            if self.certified and finite:
                z, feasible, u = self.problem.looked_at(x, intercept, y)
            elif self.certified:
                feasible, u = self.problem.feasible_dual(self.y if y is None else y)
            elif finite:
                z = self.problem.predictions(x, intercept)
            if self.certified:
                dual = self.problem._dual(feasible, u)
            primal = math.inf if z is None else self.problem._primal_at(z, x)
            best = self.best_primal
            if not self.certified and math.isfinite(best):  # P cannot see the last digits of x
                best += 1e-14 * abs(best)
            lower, higher = primal < best, False
            if lower:
                self.best_primal, self.x, self.intercept = primal, x.copy(), copy(intercept)
                self._z = z
                if not self.certified:
                    assert y is not None  # there is nothing to share
                    self.y = y.copy()
            if self.certified:
                higher = self._worth(dual, u) > self._worth(self._dual_value, self._u)
            if higher:
                self._dual_value, self.y, self._u = dual, feasible, u
            if self.certified and (lower or higher):
                self.best_dual = self.problem.bound(
                    self.x,
                    self.intercept,
                    self.best_primal,
                    self.y,
                    self._u,
                    self._dual_value,
                    self._z,
                    self.tol,
                )
        return primal, dual

    def _worth(self, dual: float, u: np.ndarray) -> float:
        """What D, as evaluated at a y of average u, says of points as far out as the best x."""
        return dual - self.problem.penalty.box_cost(self.x, u)


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
