r"""Newton's method for small data: losses of one number per row, any penalty, to the last digit.

Who fits a model to some hundred rows expects *the* solution: the same from repeated rows as from
weights, the same from every solver, digit by digit.  Here it costs milliseconds.

Problem     min P(x, c) with a penalty, n x d of at most 2^18 numbers (:func:`.size.small`)
Smooth      :mod:`.dense`, to its end; with l1 and many columns coordinate descent on working sets,
            and then :mod:`.active_set`
Bends       smooth hinge and Huber with zeros or signs to be found, and bends so narrow that models
            say nothing of the next point: an :mod:`.interior` point, and :mod:`.dense` from there
Kinks       the loss is rounded off around the dual point y: phi*(v) + (mu/2)(v - y)^2 in place of
            phi*(v) leaves an optimal y where it is (the augmented Lagrangian; the proximal point
            method on the dual).  Some passes of dual ascent find out about where; then mu falls,
            and as soon as :mod:`.active_set` guesses so few rows at a kink that all of them can
            be met, it takes over
Programs    kinks and no l2 make a linear program: an :mod:`.interior` point, to its end (absolute,
            quantile and hinge with l1, CPU ms, HiGHS -> interior: 690 x 26 35 -> 5, 5,000 x 50
            920 -> 25, 300 x 300 120 -> 22, 60 x 2,000 115 -> 12); where that does not do HiGHS,
            and :mod:`.active_set` for its last digits
A pass      is one iteration of whatever is at work: of :mod:`.dense` on few columns it may be all
            of its steps
Shown       ``estimate`` is infinite until there is something to look at: the monitor need not look
            at each iteration, which costs as much as two.  A point that may do for who asks for
            little is offered on the way
Stops       never: the monitor does.  ``stuck`` says that another method may go on
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...kernels.codes import MARGIN
from ...problem import Problem
from ...problem.quadratic_losses import Quadratic
from ..base import Solver, first_intercept
from .active_set import ActiveSet
from .dense import STRUGGLE, DenseNewton
from .size import MOST_COLUMNS

#: The stages, by the numbers that ``state()`` knows them by.
DIRECT, ASCEND, ROUND, FINISH, DESCEND, PROGRAM, STUCK, INTERIOR = range(8)
#: Relative gaps of the coordinate descent at which to guess the rest.
TOLERANCES = (1e-6, 1e-8, 1e-10)
#: Passes of coordinate descent that has not come to its end, before Newton's method takes over.
RUN_ON = 60
#: Where an interior point is at its end, at what gap it is worth a look if it cannot go on, and
#: what it offers on the way; and its iterations, at most (10 to 30 are taken).
CENTRED, NEAR, OFFERED, ITERATIONS = 1e-13, 1e-10, 1e-3, 60
#: The share of the columns' squares beside their means below which they are far from 0.
FAR = 0.01
#: A tol above this is little: points on the way are offered.  (The estimators' default asks for
#: the solution.)
LITTLE = 1e-4
#: Smoothing widths in units of the targets: the first, of margins and of other losses, each over
#: the one before, the last.  (36 tables of epsilon_insensitive and quantile, 300 x 8 to 2,000 x 60,
#: C and l2 over four decades: a tenth less time from .1 on than from .3.)
WIDEST_MARGIN, WIDEST, NARROWER, NARROWEST = 0.3, 0.1, 0.3, 1e-8
#: The share of rows within kinks that may change in a step that ends a width, the width from which
#: on none may (digits, epsilon_insensitive, a tiny l2: the rows wander about otherwise), and the
#: passes of dual ascent before the first width.
ROUGH, FINE, ASCENT = 0.2, 1e-4, 15


@dataclass(frozen=True)
class Point:
    """A primal and a dual point: what a run starts from."""

    x: np.ndarray
    intercept: float
    y: np.ndarray

    def state(self) -> dict:
        return {"x": self.x.copy(), "intercept": self.intercept, "y": self.y.copy()}


@dataclass(frozen=True)
class Rounded(Quadratic):
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


def rounded(problem: Problem, mu: float, y: np.ndarray) -> tuple[Rounded, np.ndarray]:
    """The loss with its kinks rounded off at the width ``mu``, around ``y``, and its targets.

    bv + epsilon |v| + (mu/2)(v - y)^2 is again of that kind, with the target b - mu y.  Its slope
    is the dual prox at y with the step 1/mu, which is what :mod:`.dual_proximal` works with: there
    for every loss, here as a loss, so that Newton's method and coordinate descent take it.
    """
    _, epsilon, lo, hi = problem.loss.constants
    return Rounded(problem.loss.code, (mu, epsilon, lo, hi)), problem.b - mu * y


class SmallNewton(Solver):
    """Newton's method for small data; see the module's docstring.

    The stages take turns: each is a method that makes one iteration and names the next stage.
    """

    name = "newton"
    check_cost = 20.0
    patient = uses_blas = True
    _state = ("base_x", "base_c", "base_y", "stage", "width", "within", "tries")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.base_x = self._start[0].astype(np.float64)
        self.base_c = float(first_intercept(problem, start))
        self.base_y = self.y
        penalty = problem.penalty
        self.sparse = penalty.sparse
        self.dense = self._dense_newton() if DenseNewton.affordable(problem) else None
        self.width, self.within, self.tries = self._widest, 0, 0
        self.inner, self.engine = None, None
        self.shown = None
        if problem.loss.differentiable:
            self.stage = DIRECT if self.dense is not None else DESCEND
            # descent has a point to show after each pass (62 x 2,000, lasso at l1_max/100, with a
            # callback: 7.0 -> 4.2 ms)
            self.look_cost = 2.0
            quadratic = problem.loss.name == "squared"  # a start may be the solution: look first
            self.descends = self.stage == DIRECT and not (self.sparse or quadratic)
        elif penalty.l2 == 0.0 or self.sparse:
            self.stage = INTERIOR
            if start is None and problem.intercept and problem.loss.code != MARGIN:
                self.base_c = problem._mean(problem.b)
        elif start is not None:
            self.stage = FINISH
        else:
            self.stage = self._first_stage
            if problem.intercept and problem.loss.code != MARGIN:  # a first step that is not blind
                self.base_c = problem._mean(problem.b)

    @property
    def _first_stage(self) -> int:
        """Dual ascent for the losses of margins, whose y come to rest at bounds."""
        return ROUND if self.sparse or self.problem.loss.code != MARGIN else ASCEND

    @property
    def _widest(self) -> float:
        return WIDEST_MARGIN if self.problem.loss.code == MARGIN else WIDEST

    @property
    def x(self):
        return self.base_x if self.shown is None else self.shown.x

    @property
    def intercept(self):
        return self.base_c if self.shown is None else self.shown.intercept

    def state(self):
        """The whole state; that of what is at work goes in under its own names."""
        out = super().state()
        for name, part in (("engine", self.engine), ("inner", self.inner), ("shown", self.shown)):
            if part is not None:
                out |= {f"{name}.{key}": value for key, value in part.state().items()}
        return out

    def restore(self, state):
        parts: dict[str, dict] = {"engine": {}, "inner": {}, "shown": {}}
        for key, value in state.items():
            name, _, rest = key.partition(".")
            if rest:
                parts[name][rest] = value
        super().restore({key: value for key, value in state.items() if "." not in key})
        if self.stage in (DIRECT, ROUND) and parts["engine"] and self.dense is None:
            self.dense = self._dense_newton()  # where coordinate descent had crawled
        self.engine = self.inner = self.shown = None
        if parts["inner"]:
            self.inner = self._make_inner()
            self.inner.restore(parts["inner"])
        if parts["engine"]:
            self._begin()
            self.engine.restore(parts["engine"])
        if parts["shown"]:
            self.shown = Point(**parts["shown"])

    def _pass(self):
        self.estimate, self.shown = math.inf, None
        (
            self._direct,
            self._ascend,
            self._round,
            self._finish,
            self._descend,
            self._program,
            self._stuck,
            self._interior,
        )[self.stage]()
        self.y = self.base_y if self.shown is None else self.shown.y

    # ---- stages: one iteration each ---------------------------------------------------------

    def _direct(self) -> None:
        """Newton's method on the loss itself."""
        if self.engine is None:
            self._begin()
        if self._iterated():
            self._move()
            self.estimate = 0.0
            self._leave(STUCK)
        elif self.engine is None or self.engine.taken >= STRUGGLE:
            self._turn_interior()

    def _ascend(self) -> None:
        """Some passes of dual ascent, to find out about where."""
        if self.inner is None:
            self.inner = self._make_inner()
        self._descended()
        if self.inner.passes >= ASCENT:
            self._move_to(self.inner)
            self._offer()
            self._leave(ROUND)

    def _round(self) -> None:
        """Newton's method, or coordinate descent, on the loss with its kinks rounded off."""
        if self.engine is None and self.inner is None:
            if self.dense is not None:
                self._begin()
            elif self.problem.penalty.l1 > 0.0:
                self.inner = self._make_inner()
            else:
                self._leave(STUCK)
                return
        if self.engine is not None:
            if not self._iterated():
                return
            self._move()
            within = 0 if self.sparse else int(self.engine.bent)
        else:
            self._descended()
            if self.inner.estimate > 1e-4 * self.width:
                if self.inner.passes >= RUN_ON:
                    self._turn_dense(ROUND)
                return
            z = self.inner.problem.predictions(self.inner.x, self.inner.intercept)
            y = self.inner.problem.loss.derivative(z, self.inner.problem.b)
            self._move_to(Point(self.inner.x.copy(), self.inner.intercept, y))
            within = 0
        self._offer()
        # More rows than columns cannot be met, unless some repeat others: then they stay as
        # many.  How many columns are not zero is not known beforehand.
        crowd = self.sparse or within > self.problem.d + 1
        again, self.within = within == self.within, within
        self.width *= NARROWER
        self._leave(FINISH if self.sparse or not crowd or again else self._narrower)

    def _finish(self) -> None:
        """A guess of what is at a kink and what is zero, solved."""
        if self.engine is None:
            self._begin()
        engine = self.engine
        engine.iterate()
        self.operations += 3 * self.problem.matrix.nnz
        if not engine.ended:
            return
        if not engine.failed:
            self.shown = Point(engine.x, engine.c, engine.y)
            self.estimate = 0.0
        if self.problem.loss.differentiable:
            self._leave(DESCEND, keep=True)
        elif self.tries < 0:
            self._leave(STUCK)
        elif self.width == self._widest:
            self._leave(self._first_stage)
        else:
            self._leave(self._narrower)

    @property
    def _narrower(self) -> int:
        return ROUND if self.width >= NARROWEST else STUCK

    def _descend(self) -> None:
        """Coordinate descent on working sets, until a guess is worth its while."""
        if self.problem.penalty.l1 == 0.0:
            self._leave(STUCK)
            return
        if self.inner is None:
            self.inner = self._make_inner()
        self._descended()
        self._move_to(self.inner)
        estimate = self.inner.estimate
        if self.tries < len(TOLERANCES) and estimate <= TOLERANCES[self.tries]:
            while self.tries < len(TOLERANCES) and estimate <= TOLERANCES[self.tries]:
                self.tries += 1
            self._leave(FINISH, keep=True)
            return
        self.estimate = estimate if self.tries == len(TOLERANCES) else max(estimate, 1.01 * LITTLE)
        if self.inner.passes >= RUN_ON and self.tries == 0:
            self._turn_dense(DIRECT)

    def _interior(self) -> None:
        """The program, by an interior point."""
        if self.inner is None:
            self.inner = self._make_inner()
        self._descended()
        inner = self.inner
        ended = inner.estimate <= CENTRED or inner.stuck or inner.passes >= ITERATIONS
        if inner.estimate <= (NEAR if ended else OFFERED):
            x = inner.x
            self._move_to(Point(x, inner.intercept - self._shift(x), inner.y))
            self._offer()
        if ended:
            if inner.estimate <= NEAR:
                self.estimate = 0.0
            if self.problem.loss.differentiable:
                self._leave(DIRECT if self.dense is not None else STUCK)
            else:
                self._leave(PROGRAM if self.problem.penalty.l2 == 0.0 else ROUND)

    def _program(self) -> None:
        """The linear program, by HiGHS."""
        from .program import solve_program

        found = solve_program(self.problem)
        self.operations += 20 * self.problem.matrix.nnz
        self.tries = -1  # after which there is one guess, and no rounding off without an l2
        if found is None:
            self._leave(STUCK)
            return
        self._move_to(Point(*found))
        self.estimate = 0.0
        self._leave(FINISH)

    def _turn_interior(self) -> bool:
        """To an interior point, once, where models of the loss lead astray."""
        if self.tries < 0 or not self.problem.loss.straight:
            return False
        self.tries = -1
        self._leave(INTERIOR)
        return True

    def _turn_dense(self, stage: int) -> None:
        """From coordinate descent, which crawls, to Newton's method on all columns."""
        if stage == DIRECT and self._turn_interior():
            return
        if self.problem.d > MOST_COLUMNS:
            self._leave(STUCK)
            return
        self.dense = self._dense_newton()
        self._leave(stage)

    def _stuck(self) -> None:
        self.stuck = True

    # ---- what they share --------------------------------------------------------------------

    def _begin(self) -> None:
        """The engine of this stage, at the base point."""
        x, c, y, problem = self.base_x, self.base_c, self.base_y, self.problem
        if self.stage == FINISH:
            self.engine = self._active_set
            crowd = self.sparse or self.within > problem.d + 1
            self.engine.begin(x, c, y, degenerate=crowd or problem.loss.differentiable)
            return
        self.engine, loss, b, rough = self.dense, problem.loss, problem.b, 0.0
        if self.stage == ROUND:
            loss, b = rounded(problem, self.width * self.unit, y)
            rough = 0.0 if self.sparse or self.width < FINE else ROUGH
        self.engine.begin(x, c + self._shift(x), (loss.code, *loss.constants), b, rough)

    def _make_inner(self) -> Solver:
        """The coordinate method of this stage, at the base point."""
        if self.stage == ASCEND:
            from ..dual.acf import AdaptiveFrequencies

            return AdaptiveFrequencies(self.problem, self.rng, self._base())
        if self.stage == INTERIOR:
            from .interior import InteriorPoint

            c = self.base_c + self._shift(self.base_x)
            problem = self._centred if self._shifted else self.problem
            return InteriorPoint(problem, self.rng, Point(self.base_x, c, self.base_y))
        from ..primal.working_set import WorkingSetDescent

        problem = self.problem
        if self.stage == ROUND:
            problem = copy(problem)
            for cached in (
                "null_value",
                "_target_square",
                "_scales",
                "_dual_targets",
                "constant_target",
            ):
                problem.__dict__.pop(cached, None)
            problem.loss, problem.b = rounded(problem, self.width * self.unit, self.base_y)
        return WorkingSetDescent(problem, self.rng, self._base())

    @cached_property
    def unit(self) -> float:
        """What widths are multiples of."""
        b = self.problem.b
        if self.problem.loss.code == MARGIN:
            return 1.0
        return math.sqrt(np.square(b - b.sum() / b.size).sum() / b.size) or 1.0

    @cached_property
    def _active_set(self) -> ActiveSet:
        return ActiveSet(self.problem)

    @cached_property
    def _far(self) -> bool:
        """Whether columns are so far from 0 that :mod:`.dense` is given them centred.

        Newton's systems hold the squares of their means beside an l2 (187 x 191 with means of
        1,000, least squares, l2 = 1e-5: stuck at a gap of 2e-5; of 50,000: 1).
        """
        matrix = self.problem.matrix
        if not self.problem.intercept:
            return False
        return matrix.mean_square - float(matrix.means @ matrix.means) < FAR * matrix.mean_square

    def _dense_newton(self) -> DenseNewton:
        return DenseNewton(self._centred if self._far else self.problem)

    @property
    def _shifted(self) -> bool:
        """Whether what is at work sees centred columns: sparse ones only where they are far."""
        if self.stage == INTERIOR:
            return self.problem.intercept and self.problem.matrix.is_dense
        return self._far

    def _shift(self, x: np.ndarray) -> float:
        """What the intercept is larger by for what is at work: centring changes nothing else."""
        return float(self.problem.matrix.means @ x) if self._shifted else 0.0

    @cached_property
    def _centred(self) -> Problem:
        """The problem with centred columns: of means of 10^6 products would leave ten digits."""
        problem = self.problem
        return Problem(
            problem.matrix.centred,
            problem.b,
            problem.loss,
            l1=problem.penalty.l1,
            l2=problem.penalty.l2,
            positive=problem.penalty.positive,
            intercept=True,
            sample_weight=problem.weights,
            offset=problem.offset,
        )

    def _base(self) -> Point:
        return Point(self.base_x, self.base_c, self.base_y)

    def _iterated(self) -> bool:
        """An iteration of the engine; whether it was the last.  A failure leaves the point."""
        engine, before = self.engine, self.engine.operations
        engine.iterate()
        self.operations += engine.operations - before
        if engine.failed:
            self._leave(STUCK)
            return False
        return engine.ended

    def _descended(self) -> None:
        before = self.inner.operations
        self.inner.advance(1)
        self.operations += self.inner.operations - before

    def _move(self) -> None:
        x = self.engine.x.copy()
        self._move_to(Point(x, self.engine.c - self._shift(x), self.engine.y.copy()))

    def _move_to(self, point) -> None:
        self.base_x, self.base_c = np.array(point.x, dtype=np.float64), float(point.intercept)
        self.base_y = point.y.copy()

    def _offer(self) -> None:
        """A point that may do, where little was asked for."""
        self.estimate = 1.01 * LITTLE

    def _leave(self, stage: int, keep: bool = False) -> None:
        self.stage, self.engine = stage, None
        if not keep:
            self.inner = None
