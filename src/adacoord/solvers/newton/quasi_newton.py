r"""L-BFGS for several classes, from a preconditioner on: ``lbfgs`` with the multinomial loss.

Problem     min P(x, c) for the multinomial loss and g(x) = l2/2 |x|^2; l2 = 0 too
Step        s = -H gradient by the two loops over the last MEMORY changes of the point and of the
            gradient (Nocedal and Wright 2006, Algorithm 7.4), H_0 = M^-1
            (:mod:`.class_preconditioner`; :mod:`.preconditioner` for sparse data) times the
            curvature along the last change
Line        :mod:`adacoord.linalg.line_search`, to SHARE of the slope: t = 1 is taken nearly always
A pass      is one step: the value and the gradient at its end, and where it is searched for.  Of
            dense data a block of rows is read once for predictions, probabilities and gradient,
            while it is in the cache; of all of them only y is kept
Far         from the optimum all of that is in float32, with a copy of dense rows (:mod:`.single`),
            until what a step may gain is near what float32 can tell, or a step gains next to none
            of it (20,000 x 100, 10 classes: a pass 8.0 -> 3.2 ms; the copy takes 2)
Start       at the logarithms of the shares of the classes, which the intercepts are for x = 0
Dual        y = phi'(Ax + c): the gap is |gradient|^2/(2 l2), which ``estimate`` is made of
Stops       never: the monitor does.

Newton's method with conjugate gradients throws away with each step what it has learnt of the
Hessian.  Products with A to 1e-4, 1e-6 and 1e-8: 2 x 12, 18, 22 against 2 x 26, 36, 36 (5,000 x 50,
10 classes), 2 x 45, 59, 75 against 2 x 93, 124, 124 (4,000 x 25, 49 noisy clusters).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...linalg.line_search import ROUNDING, line_search
from ..base import Solver, start_point
from .class_kernels import backward, forward, shift_rows, slope_rows
from .class_preconditioner import ClassPreconditioner
from .expansion import expansion
from .preconditioner import Preconditioner
from .single import LARGEST, SingleCopy

MEMORY = 20
#: The share of the slope that a step may leave.
SHARE = 0.9
#: Multiply-adds of a product from which on float32 is worth its copy.
LARGE = 2**20
#: What float32 may be off by, as a share of P, and of the predictions by the root of the rows; the
#: share of a step's slope that P has to fall by.
ROUGH, FALL = 1e-6, 1e-2


class _Losses(NamedTuple):
    """The losses at a point: their sum, phi', and the gradient of P."""

    value: float
    y: np.ndarray
    gradient: np.ndarray


class QuasiNewton(Solver):
    """L-BFGS for several classes; see the module's docstring."""

    name = "lbfgs"
    uses_blas = True
    patient = True
    descends = True
    check_cost = 10.0  # two passes, but ``estimate`` says when it is worth that
    look_cost = 2.0
    _state = (
        "point",
        "value",
        "gradient",
        "pairs_s",
        "pairs_r",
        "pairs",
        "begun",
        "estimate",
        "exact",
        "noise",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.losses = expansion(problem)
        w = self.losses.w
        self.preconditioner = (
            ClassPreconditioner(problem, w)
            if problem.matrix.is_dense
            else Preconditioner(problem, w, rng)
        )
        x, c = self._start
        self._start_from(x, shares(problem) if start is None and problem.intercept else c)
        m = problem.matrix
        products = m.nnz * problem.y_shape[1]
        self.exact = not (m.is_dense and products >= LARGE and m.nnz <= LARGEST)
        self.noise = 0.0  # of P, while it is not
        self._single = None
        self.y = start_point(problem, start)[2]
        self.spare = np.empty((0, 0))  # for the next y
        self.value, self.gradient = np.inf, np.zeros_like(self.point)
        size = self.point.size
        self.pairs_s, self.pairs_r = np.zeros((MEMORY, size)), np.zeros((MEMORY, size))
        self.pairs = 0  # of changes, the last of which are kept
        self.begun = False

    def _start_from(self, x, c):
        self.point = np.vstack([x, c])
        self.point -= self.point.mean(axis=1, keepdims=True)  # what changes no probability

    @property
    def x(self):
        return self.point[:-1]

    @property
    def intercept(self):
        return self.point[-1].copy()

    def state(self):
        return super().state() | self.preconditioner.state()

    def restore(self, state):
        self.preconditioner.restore(state)
        super().restore({k: v for k, v in state.items() if not k.startswith("preconditioner_")})

    def _pass(self):
        if not self.begun:
            self._begin()
        self.operations += self.preconditioner.follow(self.y)
        self.preconditioner.spent += 1
        step, slope = self._direction()
        if not self.exact and not -slope > self.noise:
            self._turn_exact()
            step, slope = self._direction()
        if slope < 0.0:
            before = self.value
            t = self._move(step, slope)
            if not self.exact and not before - self.value >= FALL * t * -slope:
                self._turn_exact()
        self._estimate()

    def _turn_exact(self):
        """From float32 to float64, at the point where it is."""
        self.exact, self._single = True, None
        self._take(self.point, self._at(self.point))

    def _begin(self):
        self._take(self.point, self._at(self.point))
        if (
            not self.value <= self.problem.null_value
        ):  # a start worse than zero, or one that overflows
            self._start_from(np.zeros(self.problem.x_shape), self.problem.no_intercept)
            self._take(self.point, self._at(self.point))
        self.begun = True

    def _estimate(self):
        """The gap of y = phi', but for what its balance takes; see Problem.stationarity too."""
        problem, gradient = self.problem, self.gradient
        if problem.has_certificate:
            g = self.preconditioner.eliminate(gradient)
            gap = float(np.vdot(g, g)) / (2.0 * problem.penalty.l2)
            self.estimate = problem.relative_gap(self.value, self.value - gap)
        else:
            w = self.losses.w
            length = np.sqrt(float(w @ np.sum(np.square(self.y), axis=1)))
            cosine = float(np.max(np.abs(gradient[:-1]).T / problem._column_lengths))
            cosine = max(cosine, float(np.max(np.abs(gradient[-1]))) / np.sqrt(np.sum(w)))
            self.estimate = cosine / length if length > 0.0 else 0.0

    # ---- the direction -------------------------------------------------------------------

    def _direction(self):
        """(-H gradient, its slope)."""
        shape, weights = self.point.shape, np.empty(MEMORY)
        q = -self.gradient.ravel()
        backward(q, self.pairs_s, self.pairs_r, self.pairs, weights)
        step = self.preconditioner.solve(q.reshape(shape)).ravel()
        if self.pairs:
            last = (self.pairs - 1) % MEMORY
            s, r = self.pairs_s[last], self.pairs_r[last]
            solved = self.preconditioner.solve(r.reshape(shape)).ravel()
            step *= np.vdot(s, r) / np.vdot(r, solved)
        forward(step, self.pairs_s, self.pairs_r, self.pairs, weights)
        slope = float(np.vdot(step, self.gradient))
        if not slope < 0.0 and self.pairs:  # rounding has spoilt the memory
            self.pairs = 0
            return self._direction()
        return step.reshape(shape), slope

    def _remember(self, s, r):
        s, r = s.ravel(), r.ravel()
        # convex: never negative but for rounding
        if np.vdot(s, r) > 1e-14 * math.sqrt(np.vdot(s, s) * np.vdot(r, r)):
            place = self.pairs % MEMORY
            self.pairs_s[place], self.pairs_r[place] = s, r
            self.pairs += 1

    # ---- the step ------------------------------------------------------------------------

    def _move(self, step, slope):
        point, gradient, tried = self.point, self.gradient, {}

        def along(t):
            tried.clear()
            end = tried[t] = self._at(point + t * step)
            first = float(np.vdot(end.gradient, step))
            return end.value, first, (first - slope) / t

        if -slope > ROUNDING * abs(self.value):
            t = line_search(along, self.value, slope, SHARE)
        else:
            t = 1.0
        self._take(point + t * step, tried[t] if t in tried else self._at(point + t * step))
        self._remember(t * step, self.gradient - gradient)
        return t

    def _take(self, point, losses):
        self.spare = self.y
        self.point, (self.value, self.y, self.gradient) = point, losses

    def _at(self, point):
        """The losses at a point, their slopes in ``spare``."""
        problem, copy = self.problem, self._rough()
        m, real = problem.matrix, np.float64 if copy is None else np.float32
        if self.spare.dtype != real or self.spare.shape != problem.y_shape:
            self.spare = np.empty(problem.y_shape, dtype=real)
        self.operations += 2 * m.nnz
        x, l2 = point[:-1], problem.penalty.l2
        if copy is not None:
            inner = (x / copy.scale[:, None]).astype(real)
            shift = (point[-1] + copy.centre @ x).astype(real)
            size = m.block_rows(2 * inner.shape[1])
            starts = range(0, problem.n, size)
            blocks = ((rows := slice(k, k + size), copy.data[rows]) for k in starts)
            value, sums, total = self._by_blocks(blocks, inner, shift)
            sums = sums / copy.scale[:, None] + np.multiply.outer(copy.centre, total)
            longest = float(np.sqrt(np.max(np.sum(np.square(inner), axis=0))))
            self.noise = ROUGH * (value + longest) / np.sqrt(problem.n)
        elif m.is_dense:
            value, sums, total = self._by_blocks(m.dense_blocks(2 * x.shape[1]), x, point[-1])
        else:
            value, self.spare[:], p, _ = self.losses.expand(m.dot(x) + point[-1])
            sums, total = m.tdot(p), np.sum(p, axis=0)
        gradient = np.vstack([sums + l2 * x, total if problem.intercept else np.zeros_like(total)])
        return _Losses(value + 0.5 * l2 * float(np.vdot(x, x)), self.spare, gradient)

    def _by_blocks(self, blocks, x, c):
        """(sum w phi, A' w phi', sum w phi'), a block of rows at a time, in the type of x."""
        problem, y = self.problem, self.spare
        b, w, n = problem.b, self.losses.w, problem.n
        value, own, ones = 0.0, np.empty(n, dtype=x.dtype), np.ones(n, dtype=x.dtype)
        sums, total = np.zeros(x.shape), np.zeros(x.shape[1])
        for rows, block in blocks:
            e = y[rows]
            np.matmul(block, x, out=e)
            shift_rows(e, c, b[rows], own[rows])
            np.exp(e, out=e)  # many at a time: 0.7 ns each, in a kernel 5
            value += slope_rows(e, own[rows], b[rows], w[rows])
            p = e if problem.weights is None else w[rows, None].astype(x.dtype) * e
            sums += block.T @ p
            total += ones[rows] @ p
        if problem.weights is None:
            sums *= w[0]
            total *= w[0]
        return value, sums, total

    def _rough(self):
        """The data for products far from the optimum; None for A itself."""
        if not self.exact and self._single is None:
            self._single = SingleCopy(self.problem)
            self.exact = not self._single.sound
        return None if self.exact else self._single


def shares(problem) -> np.ndarray:
    """The best intercepts for x = 0; of classes without weight not much worse than the others'."""
    mass = np.bincount(problem.b, problem.weights, problem.n_classes)
    logs = np.log(np.maximum(mass, 0.1 * np.min(mass[mass > 0.0])))
    return logs
