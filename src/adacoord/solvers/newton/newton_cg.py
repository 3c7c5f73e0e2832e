r"""Newton's method with preconditioned conjugate gradients (truncated Newton), at any size.

Problem     min P(x, c) for a loss with a continuous slope and g(x) = l2/2 |x|^2; l2 = 0 too
Step        H s = -gradient by conjugate gradients, H v = A'(D (A v))/n + l2 v, D = diag(w phi''),
            preconditioned (:mod:`.preconditioner`, :mod:`.pairs`), until what the residual r costs,
            r'M^-1 r, is LINEAR times what the expansion at z costs, or less (with classes
            LINEAR_CLASSES times)
Line        A s is the sum of the products that made s, so that a trial costs O(n) and no entry of
            A (:mod:`adacoord.linalg.line_search`)
Intercept   one more coordinate without a penalty; data are never centred, the preconditioner is
Squared     P is its own model: x takes each step of conjugate gradients as it is made, and there
            is no end to them; the residual is computed anew every RESYNC passes, and kept
            orthogonal to the first ones (:mod:`.residuals`)
Far         from the optimum products are with a float32 copy of long dense rows (:mod:`.single`);
            where the gap is below EXACT, with A again, and z is computed anew.  For the squared
            loss such products serve to the end: the residual is computed from A where it is no more
            than DOUBTFUL times what they may have put into it (iterative refinement)
Multinomial A V, then w (P (AV) - P sum_k P_k (AV)_k) for each row, then A': products of matrices
A pass      is one step of conjugate gradients, a product with A and one with A' (the rows are read
            once for both).  The pass that ends them makes the gradient at the new point, one more
            product; ``operations`` counts all of it
Dual        y = phi'(z): then the gap is |gradient|^2/(2 l2).  On the way to x + s the slopes of the
            expansion, y = phi'(z) + phi''(z) A s: then it is |r|^2/(2 l2), which needs no gradient,
            and what y lacks of phi'(z + A s): that is of the order |A s|^4, and not divided by l2,
            so that the last Newton step of all need not be made.  ``estimate`` is of the better one
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ...linalg.line_search import ROUNDING, line_search
from ..base import Solver, first_intercept
from .expansion import Squares, expansion, shares
from .in_blocks import hessian
from .kernels import hessian_blocks
from .pairs import Pairs
from .preconditioner import Preconditioner
from .residuals import Residuals
from .single import SingleCopy, worth_it

#: Passes between two computations of A x.  Conjugate gradients forget a little of what they know
#: where the residual is corrected (condition 1e8, squared, to 1e-10: 1250 passes for 32, 1000 for
#: 128 or none).
RESYNC = 128
#: The most passes that conjugate gradients get for a step.
MOST = 200
#: See above; from 1 to 100 it makes little difference.  (Passes on Reuters' 8 classes, C = .1, 1,
#: 10, by 1, 4, 16, 64, 200: 14, 12, 12, 12, 12; 26, 25, 24, 24, 26; 63, 54, 45, 42, 44; 33 at C = 1
#: until the residual had fallen to min(1/2, sqrt(|g|/|g_0|)) of the gradient.)
LINEAR, LINEAR_CLASSES = 4.0, 16.0
#: The gap from which on float32 products will not do; some six digits of them are right.
EXACT = 1e-5
#: What float32 puts into a residual, as a share of each change of it (2e-8 to 1e-7 of the first one
#: on four tables of 700 x 6,000 to 6,000 x 350, up to 36 times that where columns have scales of
#: their own), and the times of it at which that is too much (from 4 to 64 it makes little
#: difference).
SINGLE, DOUBTFUL = 2.0**-24, 16.0
#: The square of a residual from A, over the one before, from which on float32 gains too little
#: (columns far from 0, badly conditioned).
GAINED = 1e-2


class NewtonCG(Solver):
    """Truncated Newton; see the module's docstring."""

    name = "newton-cg"
    uses_blas = True
    check_cost = 4.0  # a check costs one pass, but ``estimate`` says when it is worth that
    look_cost = 1.8
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
        "inner",
        "synced",
        "ended",
        "offered",
        "behind",
        "exact",
        "doubt",
        "from_data",
        "estimate",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.quadratic = problem.loss.name == "squared"
        self.losses = Squares(problem, shares(problem)) if self.quadratic else expansion(problem)
        self._single = None
        self.preconditioner = Preconditioner(problem, self.losses.w, rng)
        # looked at when there is something to show; what it starts from may be enough
        self.patient = problem.has_certificate and start is None
        self.product = problem.matrix.nnz
        x = problem.null_point if start is None else problem._check_x(start.x)
        self._start_from(x, first_intercept(problem, start))
        if start is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                if not self._primal() <= problem.null_value:  # worse than zero, or overflows
                    self._start_from(np.zeros(problem.x_shape), problem.no_intercept)
        self.gradient, self.step = np.zeros_like(self.point), np.zeros_like(self.point)
        self.residual, self.direction = np.zeros_like(self.point), np.zeros_like(self.point)
        self.moved = self._unmoved()  # A step
        self.pairs = Pairs(problem, self.point.size)
        self.residuals = Residuals(problem, self.point.size)
        self.ended = False  # whether the step is to be taken
        self.offered = False  # whether x and y are those of the step so far
        self.behind = np.inf  # the estimate where the step begins
        self.exact = not (problem.has_certificate and worth_it(problem))
        if self.quadratic and not self.exact:
            self.look_cost = 2.4  # it reads A, a pass half of it (900 x 9,000: 3.8 ms for 1.6)
        self.doubt = 0.0  # what float32 products may have put into the residual
        self.from_data = np.inf  # the square of the last one that was made without them
        self.rho = 0.0  # |residual|^2 in the norm of M^-1
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
        return self.point[:-1] + self.step[:-1] if self.offered else self.point[:-1]

    @property
    def intercept(self):
        c = self.point[-1] + self.step[-1] if self.offered else self.point[-1]
        return c.copy() if self.problem.loss.blocks else float(c)

    def state(self):
        out = super().state()
        for part in (self.preconditioner, self.pairs, self.residuals):
            out |= part.state()
        return out

    def restore(self, state):
        for part in (self.preconditioner, self.pairs, self.residuals):
            part.restore(state)
        others = ("preconditioner_", "pairs_", "residuals_")
        super().restore({k: v for k, v in state.items() if not k.startswith(others)})
        self._at = None

    def _rough(self):
        """The data for products far from the optimum (:mod:`.single`); None for A itself."""
        if self.exact:
            self._single = None
        elif self._single is None:
            self._single = SingleCopy(self.problem)
            self.operations += self.product if self.passes == 0 else 0  # later: restored
            self.exact = not self._single.sound
        return None if self.exact else self._single

    # ---- the losses at z -----------------------------------------------------------------

    def _predict(self):
        """z from the point itself: clears what running sums have rounded away."""
        self.z = self.problem.matrix.dot(self.point[:-1])
        self.z += self.point[-1]
        self._at = None

    def _expanded(self):
        """(sum w phi, phi', w phi', what the Hessian is made of) at z."""
        if self._at is None:
            self._at = self.losses.expand(self.z)
        return self._at

    def _primal(self):
        penalty = 0.5 * self.problem.penalty.l2 * _dot(self.point[:-1], self.point[:-1])
        return self._expanded()[0] + penalty

    def _differentiate(self):
        """y, the gradient at the point, and the gap that it means."""
        _, self.y, p, _ = self._expanded()
        # where least squares end up is for A to say
        data = (None if self.quadratic else self._rough()) or self.problem.matrix
        self.gradient[:-1] = data.tdot(p)
        self.gradient[:-1] += self.problem.penalty.l2 * self.point[:-1]
        self.gradient[-1] = np.sum(p, axis=0) if self.problem.intercept else 0.0
        self.operations += self.product
        self._estimate(self.gradient)
        self.behind = self.estimate
        if not (self.exact or self.quadratic) and self.behind <= EXACT:
            self.exact = True
            self._predict()
            self._differentiate()

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
        elif (rough := self._rough()) is not None:
            av, out[:-1], total = rough.hessian(v[:-1], float(v[-1]), curvature)
        else:
            (av,), (out[:-1], total) = m.gather(hessian, v[:-1], v[-1], rows=(curvature,))
        if self.problem.intercept:
            out[-1] = total
        out[:-1] += (self.problem.penalty.l2 + self.preconditioner.ridge) * v[:-1]
        self.operations += 2 * self.product
        return av, out

    def _estimate(self, gradient):
        """The gap of y = phi'(z), but for what its balance takes; see Problem.stationarity too."""
        problem = self.problem
        if problem.has_certificate:
            g = self.preconditioner.eliminate(gradient)
            gap = _dot(g, g) / (2.0 * problem.penalty.l2)
            primal = self._primal()
            self.estimate = problem.relative_gap(primal, primal - gap)
        else:
            p, total = self._expanded()[1:3], float(np.sum(self.losses.w))
            length = np.sqrt(_dot(p[0], p[1]))
            cosine = float(np.max(np.abs(gradient[:-1]).T / problem._column_lengths))
            cosine = max(cosine, float(np.max(np.abs(gradient[-1]))) / np.sqrt(total))
            self.estimate = cosine / length if length > 0.0 else 0.0

    # ---- a pass --------------------------------------------------------------------------

    def _pass(self):
        self.estimate = np.inf  # was for one look
        if self.ended:
            self._take()
        elif self.first < 0.0:
            self._differentiate()
        if self.inner == 0:
            self._begin()
        self.preconditioner.spent += 1
        if not self.rho > 0.0:  # nothing is left to do
            return
        v = self.direction
        av, hv = self._hessian(v)
        bend = _dot(v, hv)
        t = self.rho / bend if bend > 0.0 else 0.0
        if not self.quadratic:
            self.pairs.note(v, hv, bend)
        # in place: new arrays of many classes cost more than the sums (23,560 x 8: .5 -> .3 ms)
        hv *= t
        self.residual -= hv
        if self.quadratic and not self.exact:
            self.doubt += SINGLE * _dot(hv, hv) ** 0.5
        self.residuals.leave_out(self.residual)
        self.inner += 1
        if self.quadratic:
            self._follow(t * v, t, av)
        else:
            self.step += np.multiply(v, t, out=hv)
            if self.inner == 1:
                self.moved = av
                self.problem.matrix.rowwise(_scale, t, rows=(av,))
            else:
                self.problem.matrix.rowwise(_add, t, rows=(av, self.moved))
        solved = self._precondition(self.residual)
        rho = _dot(self.residual, solved)
        # to what float32 had put into it, the directions so far are not conjugate
        if self.exact or not (self.quadratic and self.synced == self.passes > 0):
            v *= rho / self.rho
            v += solved
        else:
            self.direction = solved.copy()
        self.rho = rho
        if self.quadratic and rho > 0.0:
            self.residuals.note(self.residual, solved, rho)
            self.preconditioner.note(2.0 * np.log(self.first) - np.log(rho))
        ended = t == 0.0 or self.preconditioner.first_due
        if self.quadratic:
            self.inner *= not ended
            return
        linear = LINEAR_CLASSES if self.problem.loss.blocks else LINEAR
        enough = rho <= linear * self._offer()
        self.ended = ended or enough or self.inner >= MOST
        if self.ended and not self.offered:
            self._take()

    def _take(self):
        """Make the step, and the gradient where it ends."""
        t = self._searched()
        self._follow(t * self.step, t, self.moved)
        self._differentiate()
        self.inner, self.ended, self.offered = 0, False, False

    def _offer(self):
        """Show the point that the step has got to, if it is better than that where it began.

        Returns what the slopes of the expansion lack there.
        """
        problem, (_, y, _, curvature) = self.problem, self._expanded()
        value, lacking, cut, slopes = self.losses.follow(self.z, self.moved, y, curvature)
        if problem.has_certificate:
            r = self.preconditioner.eliminate(self.residual)
            l2, x = problem.penalty.l2, self.point[:-1] + self.step[:-1]
            primal = value + 0.5 * l2 * _dot(x, x)
            gap = lacking + (_dot(r, r) ** 0.5 + cut) ** 2 / (2.0 * l2)
            estimate = problem.relative_gap(primal, primal - gap)
            self.offered = estimate < self.behind
            if self.offered:
                self.y, self.estimate = slopes, estimate
            else:
                self.y, self.estimate = y, self.behind if self.inner == 1 else np.inf
        return lacking

    def _precondition(self, r):
        """M^-1 r."""
        return self.pairs.solve(r, self.preconditioner.solve)

    def _begin(self):
        """Conjugate gradients from the gradient on: at the point itself, for the squared loss."""
        if self.quadratic and self.first >= 0.0:
            self.doubt = 0.0
            self._predict()
            self.operations += self.product
            self._differentiate()
        self.operations += self.preconditioner.follow(self._expanded()[3])
        self.step, self.moved = np.zeros_like(self.point), self._unmoved()
        self.residual = -self.gradient
        self.pairs.begin()
        self.direction = self._precondition(self.residual)
        self.rho = _dot(self.residual, self.direction)
        self.from_data = _dot(self.residual, self.residual)
        self.residuals.begin()
        self.residuals.note(self.residual, self.direction, self.rho)
        size = np.sqrt(max(self.rho, 0.0))
        self.first = size if self.first < 0.0 else self.first

    def _unmoved(self):
        return np.zeros((0,) if self.quadratic else self.z.shape)

    def _follow(self, step, t, moved):
        """Take a step, t of what moves the predictions by ``moved``."""
        self.point = self.point + step
        if self.problem.loss.blocks:  # who expanded it keeps it
            self.z = self.z + t * moved
        else:
            self.problem.matrix.rowwise(_add, t, rows=(moved, self.z))
        self._at = None
        doubtful = self.doubt > 0.0 and (
            _dot(self.residual, self.residual) <= (DOUBTFUL * self.doubt) ** 2
        )
        if doubtful or self.passes - self.synced >= RESYNC:
            self.synced, self.doubt = self.passes, 0.0
            self._predict()
            self.operations += self.product
            if self.quadratic:
                self._differentiate()
                self.residual = -self.gradient
                self.residuals.begin()  # what it has of them is true
                before, self.from_data = self.from_data, _dot(self.residual, self.residual)
                if doubtful and self.from_data > GAINED * before:
                    self.exact, self.inner = True, 0
        if self.quadratic:
            self.y, self.gradient = self._expanded()[1], -self.residual
            self._estimate(self.gradient)

    def _searched(self):
        """The length of the step, by the line search."""
        x, s, l2 = self.point[:-1], self.step[:-1], self.problem.penalty.l2
        constant = 0.5 * l2 * _dot(x, x)
        tilt, bend = l2 * _dot(x, s), l2 * _dot(s, s)

        def along(t):
            value, first, second = self.losses.along(self.z, self.moved, t)
            value += constant + t * (tilt + 0.5 * t * bend)
            return value, first + tilt + t * bend, second + bend

        value, slope = self._expanded()[0] + constant, _dot(self.gradient, self.step)
        return line_search(along, value, slope) if -slope > ROUNDING * abs(value) else 1.0


# ---- functions of rows, for :meth:`Matrix.rowwise` -----------------------------------------------


def _scale(t: float, v: np.ndarray) -> float:
    v *= t
    return 0.0


def _add(t: float, v: np.ndarray, out: np.ndarray) -> float:
    """out += t v, for a v that nobody needs any more."""
    if t != 1.0:
        v *= t
    out += v
    return 0.0


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """The sum of a b, by one call: some ten are made in a pass (300 x 20 numbers, 9 passes: 1.6 ->
    1.3 ms)."""
    return float(np.vdot(a, b))
