"""Who is at work in a run: the first solver, or the fallback's, while the first one waits."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..solvers.base import Point, Stepper

if TYPE_CHECKING:
    from ..auto.fallback import Fallback
    from .monitor import History


#: Passes, and checks, without progress after which a steady solver is stuck.
IDLE, LOOKS = 100, 5
#: Progress: of P by more than its rounding, relative to P; or of the gap, relative to the gap.
ROUNDING, FALLEN = 1e-13, 1e-6


class Turns:
    """The solvers of a run, made when their turn comes.

    ``solver`` is the one at work.  Where what ``fallback`` makes is due, once at the most, its
    solver goes on from the best points so far; where that one fails, or is stuck, the first goes on
    where it was.  ``spent`` are the passes and operations of the one that is not at work.
    """

    def __init__(
        self, make: Callable[[], Stepper], fallback: Callable[[], Fallback | None] | None = None
    ):
        self._make, self._fallback = make, fallback
        self._solver: Stepper | None = None
        self.waiting: Stepper | None = None  # the first, while the second has its turn
        self.spent = 0, 0
        self.since = 0  # passes of the run when its turn began
        self._asked = False  # for a fallback, which most runs that end at a first check never need
        self._other: Fallback | None = None
        self._start: Point | None = None  # of the second

    @property
    def begun(self) -> bool:
        """Whether a solver has been made."""
        return self._solver is not None

    @property
    def solver(self) -> Stepper:
        assert self._solver is not None
        return self._solver

    def begin(self) -> Stepper:
        """The first solver."""
        with np.errstate(all="ignore"):
            self._solver = self._make()
        return self._solver

    def next(self, history: History, best: Point, tol: float, max_passes: int) -> str:
        """After a check: let the other one go on where it is its turn; "stuck" if there is none."""
        solver = self.solver
        stuck = solver.stuck or (solver.steady and idle(history, self.since))
        if not self._asked:
            self._asked = True
            self._other = None if self._fallback is None else self._fallback()
        other = self._other
        if self.waiting is not None:
            assert other is not None
            if stuck or other.failed(history, tol, max_passes):
                self.spent, self.since = (solver.passes, solver.operations), history.passes[-1]
                history.switched = None
                self._solver, self.waiting, self._other = self.waiting, None, None
        elif other is not None and (stuck or other.due(history, tol, max_passes)):
            self._start = SimpleNamespace(x=best.x, intercept=best.intercept, y=best.y)
            second, name = other.make(self._start)
            history.switch(solver.passes, other.before, name)
            self.spent, self.since = (solver.passes, solver.operations), history.passes[-1]
            self._solver, self.waiting = second, solver
            if stuck:
                self.waiting = self._other = None
        elif stuck:
            return "stuck"
        return ""

    # ---- from one process to another ----------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain arrays and numbers, for :meth:`restore` of the same problem and options."""
        out: dict[str, Any] = {
            "solver": self.solver.state(),
            "passes": self.spent[0],
            "operations": self.spent[1],
            "since": int(self.since),
            "asked": self._asked,
            "ready": self._other is not None,
        }
        if self._start is not None:
            point = self._start
            out["start"] = {"x": point.x, "intercept": point.intercept, "y": point.y}
        if self.waiting is not None:
            out["waiting"] = self.waiting.state()
        return out

    def restore(self, state: dict[str, Any], switched: bool) -> Stepper:
        """The solver at work; ``switched``: it is the second."""
        self.spent, self.since = (state["passes"], state["operations"]), state["since"]
        self._asked = state["asked"]
        other = self._fallback() if self._fallback is not None and self._asked else None
        self._other = other if state["ready"] else None
        first = state.get("waiting") if switched else state["solver"]
        if "start" in state:
            self._start = SimpleNamespace(**state["start"])
        if first is not None:
            self.begin().restore(first)
        if switched:
            assert other is not None and self._start is not None
            self.waiting = self._solver
            self._solver, _ = other.make(self._start)
            self._solver.restore(state["solver"])
        return self.solver


def idle(history: History, since: int) -> bool:
    """Whether neither P nor the gap has fallen for long, all of it after ``since`` passes."""
    passes = history.passes
    last = len(passes) - 1 - LOOKS
    while last >= 0 and passes[last] > passes[-1] - IDLE:
        last -= 1
    if last < 0 or passes[last] < since:
        return False
    gap, before = history.gap[-1], history.gap[last]
    lowest, lower = min(history.primal[: last + 1]), min(history.primal[last + 1 :])
    fallen = gap < (1.0 - FALLEN) * before or lower < lowest - ROUNDING * abs(lowest)
    return math.isfinite(gap) and not fallen
