r"""Newton's method with Cholesky's factorisation, for problems with a small side.

Problem     min P(x, c) for a loss with a continuous slope and g(x) = l2/2 |x|^2; l2 = 0 too
Step        (dx, dc) of :mod:`.newton_systems`; where phi' has kinks (smooth_hinge, huber, ...)
            one of its slopes is the curvature there.  d x d, or n x n where n < d and l2 > 0
Line        :mod:`adacoord.linalg.line_search`: O(n) a trial, no product with A
Squared     the Hessian never changes: one factorisation, and each further pass is a step of
            iterative refinement
A pass      is one iteration: two products with A and one with A' (n x n: with K = A A'), the Gram
            matrix (each pair of entries of a row once) and the factorisation (m^3/6).
            ``operations`` counts all of it
Dual        y = phi'(Ax + c), which closes the gap at the optimum
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ...linalg.blas import one_thread
from ...linalg.line_search import ROUNDING, line_search
from ..base import Solver, start_point
from .expansion import expansion
from .kernels import line_start
from .size import SMALL
from .systems import smaller_side

#: A step that changes less than this share of x is the last; so is one that changes no less than
#: the one before, once they are short.
LAST, LATE = 1e-11, 1e-6


class Newton(Solver):
    """Newton's method; see the module's docstring."""

    name = "newton"
    uses_blas = True
    check_cost = 0.2  # a check after every iteration: it costs two of its many products
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
        if problem.n * problem.d * (problem.n_classes or 1) <= SMALL and not shortest:
            # small problems are solved to the last digit, and looked at when they are
            self.patient, self.check_cost = True, 2.0

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
        l2, losses, system = self.problem.penalty.l2, self.losses, self.system
        if self.point is None:
            self._expand()
        ax, value, p, curvature = self.point
        if not (self.fixed and self.factorised):
            system.factorise(curvature)
            self.factorised = True
        dt, dc = system.step(self.t, p)
        adx = system.predict(dt)
        z, dz = ax + self.c, adx + dc
        # P along the step: the losses, and a parabola for the penalty
        xx, xdx, dxdx, slope = line_start(
            self.t.ravel(),
            dt.ravel(),
            system.dual(self.t, ax).ravel(),
            system.dual(dt, adx).ravel(),
            p.ravel(),
            dz.ravel(),
        )
        constant, tilt, bend = 0.5 * l2 * xx, l2 * xdx, l2 * dxdx
        value, slope = value + constant, slope + tilt

        def along(t):
            total, first, second = losses.along(z, dz, t)
            total += constant + t * (tilt + 0.5 * t * bend)
            return total, first + tilt + t * bend, second + bend

        t = 1.0
        if -slope > ROUNDING * abs(value):
            t = line_search(along, value, slope)
        self.t, self.c = self.t + t * dt, self.c + t * dc
        self._expand()
        if self.patient:
            size = float(np.max(np.abs(self.t), initial=0.0))
            before, self.moved = (
                self.moved,
                float(np.max(np.abs(t * dt), initial=0.0)) / (size if size > 0.0 else 1.0),
            )
            last = self.moved <= LAST or LATE > self.moved > 0.5 * before
            self.estimate = 0.0 if last else np.inf
        self.operations += 3 * self.problem.matrix.nnz
        if self.passes == 0 or not self.fixed:
            self.operations += system.cost

    def _expand(self):
        """The losses at (t, c): A x, their sum, w phi' and the curvatures; and y = phi'."""
        ax = self.system.predict(self.t)
        value, self.y, p, curvature = self.losses.expand(ax + self.c)
        self.point = ax, value, p, curvature


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
