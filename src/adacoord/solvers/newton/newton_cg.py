r"""Newton's method with preconditioned conjugate gradients (truncated Newton), at any size.

Problem     min P(x, c) for a loss with a continuous slope and g(x) = l2/2 |x|^2; l2 = 0 too
Step        H s = -gradient by conjugate gradients, H v = A'(D (A v))/n + l2 v, D = diag(w phi''),
            preconditioned (:mod:`.preconditioner`), until the residual has fallen to
            min(1/2, sqrt(|g|/|g_0|)) of the gradient g, in the norm of M^-1 (Nocedal and Wright
            2006, Algorithm 7.1: superlinear)
Line        A s is the sum of the products that made s, so that a trial costs O(n) and no entry of
            A (:mod:`adacoord.linalg.line_search`)
Intercept   one more coordinate without a penalty; data are never centred, the preconditioner is
Squared     P is its own model: x takes each step of conjugate gradients as it is made, and there
            is no end to them; the residual is computed anew every RESYNC passes
Multinomial A V, then w (P (AV) - P sum_k P_k (AV)_k) for each row, then A': products of matrices
A pass      is one step of conjugate gradients, a product with A and one with A' (the rows are read
            once for both).  The pass that ends them makes the gradient at the new point, one more
            product; ``operations`` counts all of it
Dual        y = phi'(Ax + c): then the gap is |gradient|^2/(2 l2), which ``estimate`` is made of
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ...linalg.line_search import ROUNDING, line_search
from ..base import Solver, start_point
from .expansion import expansion
from .kernels import hessian_blocks, hessian_rows
from .preconditioner import Preconditioner

#: Passes between two computations of A x.  Conjugate gradients forget a little of what they know
#: where the residual is corrected (condition 1e8, squared, to 1e-10: 1250 passes for 32, 1000 for
#: 128 or none).
RESYNC = 128
#: The least that conjugate gradients reduce the residual by, and the most passes they get for it.
LOOSE, MOST = 0.5, 200


class NewtonCG(Solver):
    """Truncated Newton; see the module's docstring."""

    name = "newton-cg"
    uses_blas = True
    check_cost = 4.0  # a check costs one pass, but ``estimate`` says when it is worth that
    _state = (
        "point",
        "z",
        "gradient",
        "first",
        "step",
        "moved",
        "residual",
        "direction",
        "rho",
        "goal",
        "inner",
        "synced",
        "estimate",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.losses = expansion(problem)
        self.preconditioner = Preconditioner(problem, self.losses.w, rng)
        self.quadratic = problem.loss.name == "squared"
        self.product = problem.matrix.nnz
        self._start_from(*start_point(problem, start)[:2])
        if start is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                if not self._primal() <= problem.null_value:  # worse than zero, or overflows
                    self._start_from(np.zeros(problem.x_shape), problem.no_intercept)
        self.gradient, self.step = np.zeros_like(self.point), np.zeros_like(self.point)
        self.residual, self.direction = np.zeros_like(self.point), np.zeros_like(self.point)
        self.moved = np.zeros_like(self.z)  # A step
        self.rho = self.goal = 0.0  # |residual|^2 in the norm of M^-1, and where it is enough
        self.first = -1.0  # that of the first gradient, once there is one
        self.inner = 0  # steps of conjugate gradients since they were begun
        self.synced = 0  # the passes after which A x was computed last

    def _start_from(self, x, c):
        problem = self.problem
        self.point = np.zeros((problem.d + 1, *problem.x_shape[1:]))
        self.point[:-1], self.point[-1] = x, c
        if problem.loss.blocks:  # what all classes share changes no probability
            shared = self.point.mean(axis=1, keepdims=True)
            # left where it is rounding: a start that is taken as it is need not be judged again
            if np.abs(shared).max() > 1e-12 * np.abs(self.point).max():
                self.point -= shared
        self.operations += self.product if self.point.any() else 0
        self._predict()

    @property
    def x(self):
        return self.point[:-1]

    @property
    def intercept(self):
        return self.point[-1].copy() if self.problem.loss.blocks else float(self.point[-1])

    def state(self):
        return super().state() | self.preconditioner.state()

    def restore(self, state):
        self.preconditioner.restore(state)
        super().restore({k: v for k, v in state.items() if not k.startswith("preconditioner_")})
        self._at = None

    # ---- the losses at z -----------------------------------------------------------------

    def _predict(self):
        """z from the point itself: clears what running sums have rounded away."""
        self.z = self.problem.matrix.dot(self.point[:-1]) + self.point[-1]
        self._at = None

    def _expanded(self):
        """(sum w phi, phi', w phi', what the Hessian is made of) at z."""
        if self._at is None:
            self._at = self.losses.expand(self.z)
        return self._at

    def _primal(self):
        penalty = 0.5 * self.problem.penalty.l2 * float(np.sum(np.square(self.point[:-1])))
        return self._expanded()[0] + penalty

    def _differentiate(self):
        """y, the gradient at the point, and the gap that it means."""
        _, self.y, p, _ = self._expanded()
        self.gradient[:-1] = self.problem.matrix.tdot(p) + self.problem.penalty.l2 * self.x
        self.gradient[-1] = np.sum(p, axis=0) if self.problem.intercept else 0.0
        self.operations += self.product
        self._estimate(self.gradient)

    def _hessian(self, v):
        """(A v, H v)."""
        m, out = self.problem.matrix, np.zeros_like(v)
        curvature = self._expanded()[3]
        if self.problem.loss.blocks:
            av = m.dot(v[:-1])
            av += v[-1]
            bent = np.empty_like(av)
            hessian_blocks(curvature, self.problem.b, self.losses.w, av, bent)
            out[:-1], total = m.tdot(bent), np.sum(bent, axis=0)
        elif m.by_columns:
            av = m.dot(v[:-1]) + v[-1]
            bent = curvature * av
            out[:-1], total = m.tdot(bent), np.sum(bent)
        else:
            av = np.empty_like(self.z)
            total = hessian_rows(*m.arrays, v[:-1], v[-1], curvature, av, out[:-1])
        if self.problem.intercept:
            out[-1] = total
        out[:-1] += self.problem.penalty.l2 * v[:-1]
        self.operations += 2 * self.product
        return av, out

    def _estimate(self, gradient):
        """The gap of y = phi'(z), but for what its balance takes; see Problem.stationarity too."""
        problem = self.problem
        if problem.has_certificate:
            g = self.preconditioner.eliminate(gradient)
            gap = float(np.sum(np.square(g))) / (2.0 * problem.penalty.l2)
            primal = self._primal()
            self.estimate = problem.relative_gap(primal, primal - gap)
        else:
            p, total = self._expanded()[1:3], float(np.sum(self.losses.w))
            length = np.sqrt(float(np.sum(p[0] * p[1])))
            cosine = float(np.max(np.abs(gradient[:-1]).T / problem._column_lengths))
            cosine = max(cosine, float(np.max(np.abs(gradient[-1]))) / np.sqrt(total))
            self.estimate = cosine / length if length > 0.0 else 0.0

    # ---- a pass --------------------------------------------------------------------------

    def _pass(self):
        self.estimate = np.inf  # was for one look
        if self.first < 0.0:
            self._differentiate()
        if self.inner == 0:
            self._begin()
        self.preconditioner.spent += 1
        if not self.rho > 0.0:  # nothing is left to do
            return
        v = self.direction
        av, hv = self._hessian(v)
        bend = float(np.sum(v * hv))
        t = self.rho / bend if bend > 0.0 else 0.0
        self.residual -= t * hv
        self.inner += 1
        if self.quadratic:
            self._follow(t * v, t * av)
        else:
            self.step += t * v
            av *= t
            self.moved += av
        solved = self.preconditioner.solve(self.residual)
        rho = float(np.sum(self.residual * solved))
        self.direction = solved + (rho / self.rho) * v
        self.rho = rho
        ended = t == 0.0 or self.preconditioner.first_due
        if self.quadratic:
            self.inner *= not ended
        elif ended or rho <= self.goal or self.inner >= MOST:
            self._follow(*self._searched())
            self._differentiate()
            self.inner = 0

    def _begin(self):
        """Conjugate gradients from the gradient on."""
        self.operations += self.preconditioner.follow(self._expanded()[3])
        self.step, self.moved = np.zeros_like(self.point), np.zeros_like(self.z)
        self.residual = -self.gradient
        self.direction = self.preconditioner.solve(self.residual)
        self.rho = float(np.sum(self.residual * self.direction))
        size = np.sqrt(max(self.rho, 0.0))
        self.first = size if self.first < 0.0 else self.first
        if self.first > 0.0:
            self.goal = min(LOOSE, np.sqrt(size / self.first)) ** 2 * self.rho

    def _follow(self, step, moved):
        """Take a step of which the predictions are known."""
        self.point = self.point + step
        self.z = self.z + moved
        self._at = None
        if self.passes - self.synced >= RESYNC:
            self.synced = self.passes
            self._predict()
            self.operations += self.product
            if self.quadratic:
                self._differentiate()
                self.residual = -self.gradient
        if self.quadratic:
            self.y, self.gradient = self._expanded()[1], -self.residual
            self._estimate(self.gradient)

    def _searched(self):
        """(t step, t A step) of the line search."""
        x, s, l2 = self.point[:-1], self.step[:-1], self.problem.penalty.l2
        constant = 0.5 * l2 * float(np.sum(x * x))
        tilt, bend = l2 * float(np.sum(x * s)), l2 * float(np.sum(s * s))

        def along(t):
            value, first, second = self.losses.along(self.z, self.moved, t)
            value += constant + t * (tilt + 0.5 * t * bend)
            return value, first + tilt + t * bend, second + bend

        value, slope = self._expanded()[0] + constant, float(np.sum(self.gradient * self.step))
        t = line_search(along, value, slope) if -slope > ROUNDING * abs(value) else 1.0
        return t * self.step, t * self.moved
