r"""Newton's method with Cholesky's factorisation on data in blocks of rows.

Problem     that of :mod:`.newton`, for losses of one number a row, at any n: d x d systems
Step        that of :class:`.systems.Primal`
A pass      is one iteration, and loads each block twice: for the Gram matrix at (x, c), and for
            everything at (x, c) + (dx, dc), with the dual point on the way.  What a block gives is
            sums; no vector with a number for each row is kept but the dual point, so that what
            travels, and what the driver holds, hardly grows with n
Line        t = 1 is nearly always taken; else A x and A dx are made once, and a trial costs O(n)
Squared     the Hessian never changes: one factorisation, and each further pass is a step of
            iterative refinement
Dual        that of :mod:`.newton`
Stops       never: the monitor does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...linalg.line_search import HALF, NOISE, ROUNDING, line_search
from ..base import Solver, start_point
from .expansion import FLAT, expansion
from .in_blocks import curvature_gram, evaluate, evaluate_step
from .systems import Primal


class BlockNewton(Solver):
    """Newton's method in blocks; see the module's docstring."""

    name = "newton"
    uses_blas = True
    check_cost = 0.2  # without a penalty, after every iteration
    _state = ("t", "c", "estimate")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.losses = expansion(problem)
        self.system = Primal(problem)
        self.t, self.c, _ = start_point(problem, start)
        with np.errstate(over="ignore", invalid="ignore"):
            if start is not None and not problem.primal(self.t, self.c) <= problem.null_value:
                self.t, self.c, _ = start_point(problem, None)  # worse than zero, or overflows
        self.at: _Sums | None = None  # what the losses add up to at (t, c)
        self.fixed = problem.loss.name == "squared"
        self.factorised = False
        self.patient = problem.has_certificate
        if self.patient:
            self.check_cost = 2.0

    @property
    def x(self):
        return self.t

    @property
    def intercept(self):
        return self.c

    def restore(self, state):
        super().restore(state)
        self.at = None

    def _pass(self):
        problem, l2, system = self.problem, self.problem.penalty.l2, self.system
        here = self.at or self._evaluate(self.t, self.c)
        flat = self._flat(here)
        if not (self.fixed and self.factorised):
            self._factorise(here, flat)
            self.factorised = True
        dx, dc = system.step(self.t, here.gradient + l2 * self.t, here.slope)
        x, c, t = self.t + dx, self.c + dc, 1.0
        if self.fixed:  # P is its own expansion
            there, lacking, cut = self._evaluate(x, c, here), 0.0, 0.0
        else:
            (self.y,), (lacking, cut, *sums) = problem.matrix.gather(
                evaluate_step, problem.loss, self.t, self.c, x, c, flat, rows=self._rows
            )
            there = self._sums(sums, x)
        slope, end = self._slope(here, self.t, dx, dc), self._slope(there, x, dx, dc)
        fallen = abs(end) <= -HALF * slope and there.value <= here.value + NOISE * abs(here.value)
        if -slope > ROUNDING * abs(here.value) and not fallen:
            t = self._search(here, dx, dc, slope)
            x, c = self.t + t * dx, self.c + t * dc
            there = self._evaluate(x, c, here)
        self.t, self.c, self.at = x, c, there
        if self.patient:
            if t == 1.0:
                if cut > 0.0:
                    cut *= float(np.max(problem.matrix.squared_norms)) ** 0.5
                gap = lacking + cut * cut / (2.0 * l2)
            else:  # that of y = phi', but for what its balance takes
                gap = system.square(there.gradient + l2 * x, there.slope) / (2.0 * l2)
            self.estimate = problem.relative_gap(there.value, there.value - gap)
        self.operations += 2 * problem.matrix.nnz
        if self.passes == 0 or not self.fixed:
            self.operations += system.cost

    @property
    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        return self.problem.b, self.losses.w

    def _sums(self, sums, x) -> _Sums:
        value, *others = sums
        return _Sums(value + 0.5 * self.problem.penalty.l2 * float(np.sum(x * x)), *others)

    def _evaluate(self, x, c, before: _Sums | None = None) -> _Sums:
        """P and its derivatives, and y = phi'; the squared loss bends as it did before."""
        known = before.spread if before is not None and self.fixed else None
        (self.y,), sums = self.problem.matrix.gather(
            evaluate, self.problem.loss, x, c, known is None, rows=self._rows
        )
        at = self._sums(sums, x)
        return at if known is None else at._replace(spread=known)

    def _flat(self, here: _Sums) -> float:
        """phi'' to take the place of one that vanishes; 0 where it does not."""
        gamma = self.problem.loss.gamma
        return 1.0 / gamma if gamma > 0.0 and gamma * here.mass <= FLAT * self.losses.total else 0.0

    def _factorise(self, here: _Sums, flat: float) -> None:
        problem, mass, spread = self.problem, here.mass, here.spread
        if flat:
            mass, spread = self.losses.total * flat, problem.matrix.tdot(self.losses.w) * flat
        centre = spread / mass if problem.intercept else None
        (gram,) = problem.matrix.gather(
            curvature_gram, problem.loss, self.t, self.c, centre, flat, rows=self._rows
        )[1]
        self.system.take(gram, centre, mass)

    def _slope(self, at: _Sums, x, dx, dc) -> float:
        """Of P along (dx, dc)."""
        penalty = self.problem.penalty.l2 * float(np.sum(x * dx))
        return float(np.sum(at.gradient * dx)) + at.slope * dc + penalty

    def _search(self, here: _Sums, dx, dc, slope) -> float:
        """The length of the step."""
        matrix, l2 = self.problem.matrix, self.problem.penalty.l2
        z, dz = matrix.dot(self.t) + self.c, matrix.dot(dx) + dc
        constant = 0.5 * l2 * float(np.sum(self.t * self.t))
        tilt, bend = l2 * float(np.sum(dx * self.t)), l2 * float(np.sum(dx * dx))

        def along(t):
            total, first, second = self.losses.along(z, dz, t)
            total += constant + t * (tilt + 0.5 * t * bend)
            return total, first + tilt + t * bend, second + bend

        self.operations += 2 * matrix.nnz
        return line_search(along, here.value, slope)


class _Sums(NamedTuple):
    """What the losses add up to: P, sum p, sum D, A'p, A'D; p = w phi', D = w phi''."""

    value: float
    slope: float
    mass: float
    gradient: np.ndarray
    spread: np.ndarray
