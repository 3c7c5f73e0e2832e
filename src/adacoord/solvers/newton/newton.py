r"""Newton's method with Cholesky's factorisation, for problems with a small side.

Problem     min P(x, c) for a loss with a continuous slope and g(x) = l2/2 |x|^2; l2 = 0 too
Step        (dx, dc) of :mod:`.newton_systems`; where phi' has kinks (smooth_hinge, huber, ...)
            one of its slopes is the curvature there.  d x d, or n x n where n < d and l2 > 0
Line        :mod:`adacoord.linalg.line_search`: O(n) a trial, no product with A
Squared     the Hessian never changes: one factorisation, and each further pass is a step of
            iterative refinement
A pass      is one iteration: a product with A and one with A' (n x n: with K = A A'), the Gram
            matrix (each pair of entries of a row once) and the factorisation (m^3/6).
            ``operations`` counts all of it
Dual        y = phi'(Ax + c), which closes the gap at the optimum
Stops       never: the monitor does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...linalg.blas import one_thread
from ...linalg.line_search import HALF, NOISE, ROUNDING, line_search
from ..base import Solver, start_point
from .expansion import expansion
from .size import SMALL
from .systems import smaller_side

#: A step that changes less than this share of x is the last; so is one that changes no less than
#: the one before, once they are short.
LAST, LATE = 1e-11, 1e-6


class Newton(Solver):
    """Newton's method; see the module's docstring."""

    name = "newton"
    uses_blas = True
    check_cost = 0.2  # without a penalty, after every iteration: it costs two of many products
    _state = ("t", "c", "moved", "estimate")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.losses = expansion(problem)
        self.system = smaller_side(problem)
        x, self.c, _ = start_point(problem, start)  # in float64 whatever the data
        shortest = start is None and least_norm_wanted(problem)
        if shortest:
            x, self.c = least_norm(problem)
        with np.errstate(over="ignore", invalid="ignore"):
            if start is not None and not problem.primal(x, self.c) <= problem.null_value:
                x, self.c, _ = start_point(problem, None)  # worse than zero, or overflows
        self.t = self.system.start(x)
        self.point = None  # what the losses are at (t, c)
        self.fixed = problem.loss.name == "squared"
        self.factorised = False
        self.moved = np.inf
        # looked at when there is something to show; small problems at their last digit
        self.patient = problem.has_certificate
        size = problem.n * problem.d * (problem.n_classes or 1)
        self.to_the_last = self.patient and size <= SMALL
        if self.patient:
            self.check_cost = 2.0

    @property
    def x(self):
        return self.system.x(self.t)

    @property
    def intercept(self):
        return self.c

    def restore(self, state):
        super().restore(state)
        self.point = None

    def _pass(self):
        system = self.system
        if self.point is None:
            self.point = self._at(self.t, self.c)
        here = self.point
        if not (self.fixed and self.factorised):
            system.factorise(here.curvature)
            self.factorised = True
        dt, dc = system.step(self.t, here.gradient, here.total)
        t, there = 1.0, self._at(self.t + dt, self.c + dc)
        slope, end = (self._slope(at, dt, dc, there.ax - here.ax) for at in (here, there))
        fallen = abs(end) <= -HALF * slope and there.value <= here.value + NOISE * abs(here.value)
        if -slope > ROUNDING * abs(here.value) and not fallen:
            t = self._search(here, dt, dc, slope)
            there = self._at(self.t + t * dt, self.c + t * dc)
        self.t, self.c, self.point, self.y = self.t + t * dt, self.c + t * dc, there, there.y
        self._estimate(t * dt)
        self.operations += 2 * self.problem.matrix.nnz
        if self.passes == 0 or not self.fixed:
            self.operations += system.cost

    def _at(self, t, c) -> _Point:
        """P, its gradient and its curvature."""
        ax = self.system.predict(t)
        value, y, p, curvature = self.losses.expand(ax + c)
        value += 0.5 * self.problem.penalty.l2 * float(np.sum(t * self.system.dual(t, ax)))
        return _Point(ax, y, value, self.system.gradient(t, p), np.sum(p, axis=0), curvature)

    def _slope(self, at: _Point, dt, dc, adx) -> float:
        return float(np.sum(at.gradient * self.system.dual(dt, adx)) + np.sum(at.total * dc))

    def _search(self, here: _Point, dt, dc, slope) -> float:
        """The length of the step: P along it is the losses, and a parabola for the penalty."""
        l2, system = self.problem.penalty.l2, self.system
        adx = system.predict(dt)
        z, dz = here.ax + self.c, adx + dc
        x, dx = system.dual(self.t, here.ax), system.dual(dt, adx)
        constant = 0.5 * l2 * float(np.sum(self.t * x))
        tilt, bend = l2 * float(np.sum(dt * x)), l2 * float(np.sum(dt * dx))

        def along(t):
            total, first, second = self.losses.along(z, dz, t)
            total += constant + t * (tilt + 0.5 * t * bend)
            return total, first + tilt + t * bend, second + bend

        self.operations += self.problem.matrix.nnz
        return line_search(along, here.value, slope)

    def _estimate(self, moved) -> None:
        """What the gap of y = phi' is: |gradient|^2/(2 l2), but for what its balance takes."""
        if self.to_the_last:
            size = float(np.max(np.abs(self.t), initial=0.0))
            length = float(np.max(np.abs(moved), initial=0.0)) / (size if size > 0.0 else 1.0)
            before, self.moved = self.moved, length
            last = length <= LAST or LATE > length > 0.5 * before
            self.estimate = 0.0 if last else np.inf
        elif self.patient:
            at = self.point
            gap = self.system.square(at.gradient, at.total) / (2.0 * self.problem.penalty.l2)
            self.estimate = self.problem.relative_gap(at.value, at.value - gap)


class _Point(NamedTuple):
    """What the losses are at (t, c): predictions, slopes, P, its gradient, sum_i p_i, curvature."""

    ax: np.ndarray
    y: np.ndarray
    value: float
    gradient: np.ndarray
    total: np.ndarray
    curvature: Any


def least_norm_wanted(problem) -> bool:
    """Whether there may be many solutions, of which users expect the shortest."""
    return (
        problem.loss.name == "squared"
        and not problem.has_certificate
        and problem.n * problem.d <= SMALL
    )


def least_norm(problem) -> tuple[np.ndarray, float]:
    """Of all least-squares solutions the one with the least |x|, as scikit-learn's ``alpha=0``."""
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    A, b = problem.matrix.dense, problem.b
    a0, b0 = np.zeros(problem.d), 0.0
    if problem.intercept:
        a0, b0 = (w @ A) / w.sum(), float(w @ b) / float(w.sum())
    root = np.sqrt(w)
    with one_thread():
        x = np.linalg.lstsq(root[:, None] * (A - a0), root * (b - b0), rcond=None)[0]
    return x, b0 - float(a0 @ x)
