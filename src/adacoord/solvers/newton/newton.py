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
Dual        the slopes of the expansion, y = phi'(z) + phi''(z) dz, whose A'y is -l2 (x + dx) by
            the system just solved: the gap is what they lack of phi'(z + dz), of the order |dz|^4,
            and needs no gradient.  Multinomial: y = phi', which closes the gap at the optimum
Stops       never: the monitor does
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...kernels.summation import UNIT
from ...linalg.blas import one_thread
from ...linalg.line_search import HALF, NOISE, ROUNDING, line_search
from ..base import Solver, first_intercept, start_point
from .expansion import expansion
from .size import SMALL
from .systems import smaller_side

#: A step that changes less than this share of x is the last; so is one that changes no less than
#: the one before, once they are short.
LAST, LATE = 1e-11, 1e-6
#: ... and of those that get shorter as a root does, the last but one, from this length on.
SHORT = 0.03
#: Columns whose products take the time of all else in an iteration, which is that of a look.
#: (A look over an iteration, 245,057 x 3, 50,000 x 10, 20,000 x 30, 100 and 300, logistic: 1.4, .8,
#: .4, .1, .1; the first with a callback: 27.6 -> 19.1 ms.)
LOOK = 30.0


class Newton(Solver):
    """Newton's method; see the module's docstring."""

    name = "newton"
    uses_blas = True
    check_cost = 0.2  # without a penalty, after every iteration: it costs two of many products
    steady = True
    _state = ("t", "c", "moved", "estimate")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.losses = expansion(problem)
        self.system = smaller_side(problem)
        # in float64 whatever the data
        x = problem.null_point if start is None else problem._check_x(start.x).copy()
        self.c = first_intercept(problem, start)
        shortest = start is None and least_norm_wanted(problem)
        if shortest:
            x, self.c = least_norm(problem)
        self.unproven = start is not None and problem.loss.blocks  # seen where it is expanded
        with np.errstate(over="ignore", invalid="ignore"):
            judged = start is not None and not self.unproven
            if judged and not problem.primal(x, self.c) <= problem.null_value:
                x, self.c, _ = start_point(problem, None)  # worse than zero, or overflows
        self.start_x = x
        self.point = None  # what the losses are at (t, c)
        self.residual = None  # z - b there, for the squared loss
        self.fixed = problem.loss.name == "squared"
        self.factorised = False
        self.offers_slopes = self.fixed and problem.has_certificate
        self.moved = np.inf
        # looked at when there is something to show, small problems at their last digit; but what
        # it starts from may be enough
        certified = problem.has_certificate
        size = problem.n * problem.d * (problem.n_classes or 1)
        self.to_the_last = certified and size <= SMALL
        self.patient = certified and (start is None or self.to_the_last)
        self.descends = self.to_the_last and not self.fixed
        if certified:
            self.check_cost = 2.0
        self.look_cost = LOOK / (LOOK + problem.d)

    @cached_property
    def t(self):
        """The coefficients that the system works with; of a start once a step is made."""
        return self.system.start(self.start_x)

    @property
    def x(self):
        return self.system.x(self.t) if "t" in vars(self) else self.start_x

    @property
    def intercept(self):
        return self.c

    @property
    def y(self):
        if self._y is None:  # after a step for the squared loss: who asks for it has it made
            self._y = self.residual = self._residual()
        return self._y

    @y.setter
    def y(self, y):
        self._y = y

    def restore(self, state):
        super().restore(state)
        self.point = self.residual = None

    def _pass(self):
        self.operations += 2 * self.problem.matrix.nnz
        if self.fixed:
            self._refine()
            return
        system = self.system
        self.operations += system.cost
        if self.point is None:
            self.point = self._at(self.t, self.c)
            first = self.unproven and self.passes == 0
            if first and not self.point.value <= self.problem.null_value:
                self.t, self.c = np.zeros_like(self.t), self.problem.no_intercept
                self.point = self._at(self.t, self.c)
        here = self.point
        system.factorise(here.curvature)
        dt, dc = system.step(self.t, system.gradient(self.t, here.p), self._total(here))
        t, there = 1.0, self._at(self.t + dt, self.c + dc)
        adx = there.ax - here.ax
        slope = self._slope(here, self.t, dt, dc, adx)
        end = self._slope(there, self.t + dt, dt, dc, adx)
        fallen = abs(end) <= -HALF * slope and there.value <= here.value + NOISE * abs(here.value)
        if -slope > ROUNDING * abs(here.value) and not fallen:
            t = self._search(here, dt, dc, slope)
            there = self._at(self.t + t * dt, self.c + t * dc)
        if not self.to_the_last and self.problem.has_certificate:
            self._estimate(here, there, adx, dt, dc, t)
        else:
            self.y = there.y
        self.t, self.c, self.point = self.t + t * dt, self.c + t * dc, there
        if self.to_the_last:
            self._measure(t * dt)

    def _total(self, at: _Point) -> Any:
        """The slope of P along the intercept."""
        return np.sum(at.p, axis=0) if self.problem.intercept else 0.0

    def _refine(self):
        """A step for the squared loss: P is its own expansion, so the whole of it is taken."""
        problem, system = self.problem, self.system
        w = self.losses.w
        # a step of float32 is known to some six digits of it: the next one, if any, to the last
        rough = self.passes == 0 and problem.has_certificate and not self.to_the_last
        rough = rough and system.single
        if self.residual is None:
            self.residual = self._residual()
        if rough:
            system.factorise(w, single=True)
        if rough or self.factorised:
            gradient = system.gradient(self.t, w * self.residual)
        else:
            gradient = system.both(w, self.t, self.residual)
        self.operations += 0 if self.factorised else system.cost
        self.factorised = not rough
        dt, dc = system.step(self.t, gradient, float(w @ self.residual))
        self.t, self.c = self.t + dt, self.c + dc
        self.y = self.residual = None
        if self.to_the_last:
            self._measure(dt)
        elif problem.has_certificate:
            self.estimate = 0.0

    def _residual(self) -> np.ndarray:
        if not self.t.any():
            return self.c - self.problem.b
        residual = self.system.predict(self.t)
        if self.c != 0.0:
            residual += self.c
        residual -= self.problem.b
        return residual

    def _at(self, t, c) -> _Point:
        """P, its slopes and its curvature."""
        ax = self.system.predict(t)
        value, y, p, curvature = self.losses.expand(_plus(ax, c))
        value += 0.5 * self.problem.penalty.l2 * float(np.vdot(t, self.system.dual(t, ax)))
        return _Point(ax, y, value, p, curvature)

    def _slope(self, at: _Point, t, dt, dc, adx) -> float:
        """Of P along (dt, dc), from the slopes of the losses at t."""
        l2 = self.problem.penalty.strong_convexity
        penalty = l2 * float(np.vdot(t, self.system.dual(dt, adx)))
        return float(np.vdot(at.p, _plus(adx, dc))) + penalty

    def _search(self, here: _Point, dt, dc, slope) -> float:
        """The length of the step: P along it is the losses, and a parabola for the penalty."""
        l2, system = self.problem.penalty.l2, self.system
        adx = system.predict(dt)
        z, dz = here.ax + self.c, adx + dc
        x, dx = system.dual(self.t, here.ax), system.dual(dt, adx)
        constant = 0.5 * l2 * float(np.vdot(self.t, x))
        tilt, bend = l2 * float(np.vdot(dt, x)), l2 * float(np.vdot(dt, dx))

        def along(t):
            total, first, second = self.losses.along(z, dz, t)
            total += constant + t * (tilt + 0.5 * t * bend)
            return total, first + tilt + t * bend, second + bend

        self.operations += self.problem.matrix.nnz
        return line_search(along, here.value, slope)

    def _measure(self, moved) -> None:
        """Small problems are looked at when a step is the last."""
        size = float(np.max(np.abs(self.t), initial=0.0))
        length = float(np.max(np.abs(moved), initial=0.0)) / (size if size > 0.0 else 1.0)
        before, self.moved = self.moved, length
        last = length <= LAST or LATE > length > 0.5 * before
        if self.problem.loss.blocks and length < before < SHORT:
            # each is about the square of the one before: the next one need not be made
            last = last or length * (length / before) ** 2 <= LAST
        self.estimate = 0.0 if last else np.inf

    def _estimate(self, here: _Point, there: _Point, adx, dt, dc, t: float) -> None:
        """The gap, and the y that it is of, after t times a step (dt, dc)."""
        l2 = self.problem.penalty.l2
        if t == 1.0 and not self.problem.loss.blocks:
            lacking, cut, self.y = self.losses.follow_known(
                _plus(here.ax, self.c), _plus(adx, dc), here.y, here.curvature,
                there.y, there.curvature,
            )  # fmt: skip
            gap = lacking + cut * cut / (2.0 * l2)
        else:  # that of y = phi', but for what its balance takes
            gradient = self.system.gradient(self.t + t * dt, there.p)
            gap = self.system.square(gradient, self._total(there)) / (2.0 * l2)
            self.y = there.y
        self.estimate = self.problem.relative_gap(there.value, there.value - gap)


def _plus(ax: np.ndarray, c: Any) -> np.ndarray:
    """ax + c; no copy where c is 0."""
    return ax + c if np.any(c) else ax


class _Point(NamedTuple):
    """What the losses are at (t, c): predictions, slopes, P, weighted slopes, curvature."""

    ax: np.ndarray
    y: np.ndarray
    value: float
    p: np.ndarray
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
    rows = root[:, None] * (A - a0)
    # singular values that are the rounding of A - a0 are none
    rounding = 2.0 * UNIT * float(np.linalg.norm(a0) * np.linalg.norm(root))
    least = float(np.linalg.norm(rows)) / min(rows.shape) ** 0.5  # of the largest one
    rcond = max(2.0 * UNIT * max(rows.shape), rounding / least if least > 0.0 else 0.0)
    with one_thread():
        x = np.linalg.lstsq(rows, root * (b - b0), rcond=rcond)[0]
    return x, b0 - float(a0 @ x)
