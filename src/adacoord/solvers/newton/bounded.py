r"""Newton's method for weights and bounds of each column, and for offsets, any loss of one number.

Problem     min P(x, c) with g(x) = sum_j l1_j |x_j| + l2_j/2 x_j^2 on lower <= x <= upper, and
            z = A x + c + o
Set         the columns that are not at rest: neither at 0 with |u_j| <= l1_j, nor at a bound that
            the slope pushes against
Model       P around (x, c) with the second-order expansion of the losses, on these columns and the
            intercept, with a little damping (Levenberg's: columns without any curvature, and rows
            where the loss is flat), which long steps lower and short ones raise.  Up to
            MOST columns: their Gram matrix, solved by sweeps of coordinates and Newton steps on
            those away from kinks and bounds (:func:`solve_model`).  More: sweeps along the columns
            of A as in :mod:`~adacoord.solvers.primal.primal_cd`
Search      t = 1, 1/2, 1/4, ... until P falls by a share of what the slope promises; short steps
            raise the damping
Kinks       the losses' Moreau envelopes around a dual point y^k, which are smooth, in the place of
            the losses: the proximal point of the dual, by stages as in :mod:`.dual_proximal`
A pass      is one model and its search
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ...data.columns import as_scipy
from ...kernels.columns import moments
from ...linalg.cholesky import Cholesky
from ..base import Solver, first_intercept, start_point
from ..primal.kernels import sweep
from .bounded_kernels import smoothed_losses, sweep_model
from .dual_proximal import respond, sigma_with_kinks
from .expansion import expansion

#: Columns of a Gram matrix: a factorisation of 1,000 takes 30 ms.
MOST = 1000
#: Sweeps of a larger model; no more than bring this share of the first.
PASSES, LITTLE = 10, 0.05
#: Rounds of sweeps and Newton steps of a model, and the sweeps of each.
ROUNDS, SWEEPS = 40, 4
#: Models in a row that were not solved in these: all are solved thoroughly from then on.  (At
#: once takes up to 5 times as long on 200 x 500; never is 5 ms a pass, for ever, on tiny data.)
PATIENCE = 3
#: Curvature of a row, as a share of its bound 1/gamma: at least so many times the damping.
FLOOR = 1e4
#: Damping as a share of the columns' own curvature: first, least, most.
FIRST, LEAST, DAMPED = 1e-10, 1e-20, 1.0
#: A column whose variance is a smaller share of its square than this is constant.
CONSTANT = 1e-12
#: Of the decrease that the slope promises (Armijo), and what P is not known to.
PROMISED, ROUNDING = 0.01, 1e-14
#: A search that ends below this raises the damping.
SHORT = 0.1
#: sigma from stage to stage, and the largest over the first; that of a start, which is near.
GROWTH, LARGEST, NEAR = 3.0, 1e8, 100.0
#: A stage is solved when a model promises this share of its proximal term.
SOLVED = 0.1


class BoundedNewton(Solver):
    """Newton's method under bounds; see the module's docstring."""

    name = "newton"
    uses_blas = True
    check_cost = 0.2  # a check costs a product, a model many
    steady = True
    _state = ("point", "c", "z", "center", "sigma", "first", "damping", "unsolved")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        x, _, y = start_point(problem, start)
        self.point = problem.penalty.nearest(x)
        self.c = float(first_intercept(problem, start))
        self.columns = problem.penalty.by_column(problem.d)
        A = as_scipy(problem.matrix)
        self.A = A if problem.matrix.is_dense else sparse.csc_array(A)
        self.losses = expansion(problem)
        self.squares = own_squares(problem, self.losses.w)
        self.kinked = not problem.loss.differentiable
        self.damping, self.unsolved = FIRST, 0
        self.z = problem.predictions(self.point, self.c)
        self.center = y
        self.sigma = self.first = 1.0
        if self.kinked:
            first = sigma_with_kinks(self.z, problem.b) or 1.0
            self.sigma = self.first = first if start is None else NEAR * first

    @property
    def x(self):
        return self.point

    @property
    def intercept(self):
        return self.c

    # ---- the losses, or their envelopes --------------------------------------------------

    def _expand(self):
        """(sum w phi, phi', w phi', w phi'') at z."""
        problem, w = self.problem, self.losses.w
        if not self.kinked:
            return self.losses.expand(self.z, min(FLOOR * self.damping, 1.0))
        y, h = np.empty(problem.n), np.empty(problem.n)
        law = problem.loss.code, *problem.loss.constants
        respond(*law, self.z, problem.b, self.center, self.sigma, y, h)
        return self._value(self.z, 0.0), y, w * y, w * h

    def _value(self, dz, t):
        """sum w phi at z + t dz."""
        problem, w = self.problem, self.losses.w
        if not self.kinked:
            return self.losses.along(self.z, dz, t)[0]
        law = problem.loss.code, *problem.loss.constants
        return smoothed_losses(*law, self.z, dz, t, problem.b, self.center, self.sigma, w)

    # ---- a pass --------------------------------------------------------------------------

    def _pass(self):
        problem, penalty = self.problem, self.problem.penalty
        value, y, p, D = self._expand()
        u, total = problem.matrix.tdot(p), float(np.sum(p))
        self.operations += problem.matrix.nnz
        chosen = self._free(u)
        B = self.A if chosen.size == problem.d else self.A[:, chosen]
        if chosen.size <= MOST:
            new, dc = self._by_gram(B, chosen, u, total, D)
        else:
            new, dc = self._by_sweeps(chosen, total, p, D)
        after = self.point.copy()
        after[chosen] = new
        step = new - self.point[chosen]
        dz = B @ step + dc
        self.operations += 2 * problem.matrix.nnz
        old = penalty.value(self.point)
        promised = float(u[chosen] @ step) + total * dc + penalty.value(after) - old
        t, x = search(
            lambda t: self._value(dz, t), penalty, self.point, after, value + old, promised
        )
        self.damping = damped(self.damping, t)
        if t > 0.0:
            self.point, self.c = x, self.c + t * dc
        self.z = problem.predictions(self.point, self.c)
        self.operations += problem.matrix.nnz
        if t == 1.0 and not self.kinked:  # the slopes of the model, which know what z rounds away
            w = self.losses.w
            self.y = y + np.divide(D, w, out=np.zeros_like(D), where=w > 0.0) * dz
        else:
            self._respond(-promised, value + old)

    def _respond(self, promised: float, value: float) -> None:
        """y at the new point; the next stage, where this one is solved."""
        self.y = self._expand()[1]
        if not self.kinked:
            return
        moved = float(np.sum(self.losses.w * np.square(self.y - self.center))) / (2.0 * self.sigma)
        if promised <= SOLVED * moved or promised <= 0.0:
            self.center = self.y
            if moved > ROUNDING * abs(value):
                self.sigma = min(GROWTH * self.sigma, LARGEST * self.first)
            else:  # there, but for what sigma makes of the rounding of z
                self.sigma = max(self.sigma / GROWTH, self.first)

    def _free(self, u):
        """The columns of the next model."""
        x, (l1, _, low, high) = self.point, self.columns
        moved = self.problem.penalty.prox(x - u, 1.0)
        rest = (moved == x) & ((x == low) | (x == high) | ((x == 0.0) & (l1 > 0.0)))
        return np.flatnonzero(~rest)

    def _by_gram(self, B, chosen, u, total, D):
        """(x of the chosen columns, dc) of the model's minimum."""
        H, mean, mass = self._model(B, chosen, D)
        v, thorough = self.point[chosen], self.unsolved >= PATIENCE
        given = (a[chosen] for a in self.columns)
        solved = solve_model(H, u[chosen] - mean * total, v, *given, ROUNDS, thorough)
        self.unsolved = 0 if solved and not thorough else self.unsolved + 1
        return v, -float(mean @ (v - self.point[chosen])) - total / mass

    def _by_sweeps(self, chosen, total, slopes, D):
        """The same of some sweeps along the columns."""
        problem, x, arrays = self.problem, self.point.copy(), self.problem.matrix.columns.arrays
        squares, sums = np.zeros(problem.d), np.zeros(problem.d)
        moments(*arrays, chosen, D, squares, sums)
        squares += self.damping * self._scale(D) * self.squares
        mass, left = float(np.sum(D)) * (1.0 + self.damping), total
        if not problem.intercept:
            sums[:], mass = 0.0, np.inf
        first, idle = 0.0, np.zeros(0)
        for _ in range(PASSES):
            left, lowered, touched, *_ = sweep(
                *arrays, chosen, x, slopes, D, squares, sums, left, mass,
                *problem.penalty.arguments, idle, 0.0, 0.0,
            )  # fmt: skip
            self.operations += int(touched)
            first = first or lowered
            if lowered <= LITTLE * first:
                break
        return x[chosen], -left / mass

    def _scale(self, D):
        """What curvature is of the order of."""
        return self.sigma if self.kinked else float(np.sum(D)) / self.losses.total

    def _model(self, B, chosen, D):
        """The Hessian of the losses on the chosen columns B, their means, and the mass of these.

        With an intercept the columns are centred, by the weights D: the best intercept of a step
        dx is that of dx = 0, less mean.dx, and large means take no digits from H.
        """
        mean, total, damping = np.zeros(chosen.size), np.inf, self.damping * self._scale(D)
        if self.problem.intercept:
            total = float(np.sum(D))
            mean = B.T @ (D / total if total > 0.0 else self.losses.w / self.losses.total)
        root = np.sqrt(D)
        if sparse.issparse(B):
            bent = sparse.diags_array(root) @ B.astype(np.float64)
            H = (bent.T @ bent).toarray()
            if self.problem.intercept:
                H -= total * np.outer(mean, mean)
        else:
            curved = root > 0.0
            few = 2 * np.count_nonzero(curved) < root.size  # with kinks
            bent = B[curved] - mean if few else B - mean
            bent *= root[curved, None] if few else root[:, None]
            H = bent.T @ bent
        np.einsum("ii->i", H)[:] += damping * self.squares[chosen]
        return H, mean, total + damping * self.losses.total


def own_squares(problem, w):
    """sum_i w_i a_ij^2 of each column, which it is damped by; centred with an intercept."""
    squares, total = problem.matrix.column_squares(w), float(np.sum(w))
    if not problem.intercept:
        return squares
    mean = problem.matrix.tdot(w) / total
    return np.maximum(squares - total * mean * mean, CONSTANT * squares)


def search(value, penalty, before, after, start, promised):
    """(t, x): the step from ``before`` towards ``after``, halved until P falls as it should.

    ``value(t)`` are the losses there, ``start`` is P before, ``promised`` its slope over the step;
    a slope that rises is rounding of the model's, and promises nothing.
    """
    goal, promised = start + ROUNDING * abs(start), min(promised, 0.0)
    t, x = 1.0, after
    while not value(t) + penalty.value(x) <= goal + PROMISED * t * promised:
        t *= 0.5
        if t < 1e-12:  # nothing to gain in this arithmetic
            return 0.0, before
        x = penalty.nearest(before + t * (after - before))
    return t, x


def damped(damping: float, t: float) -> float:
    """The damping of the next model, after a step of length t."""
    return min(max(damping * (100.0 if t < SHORT else 0.1), LEAST), DAMPED)


def solve_model(H, r, v, l1, l2, low, high, rounds, thorough=False) -> bool:
    """min_t r.(t - v) + (t - v)'H(t - v)/2 + g(t); ``v`` becomes t, ``r`` its slopes.

    Sweeps of coordinates find who is at a kink or a bound; a Newton step on the others goes to the
    minimum where none of them gets there, and else ends at those that do (projected, where that
    lowers the model; else at the first of them).  Returns whether the minimum was found: sweeps
    may let go for ever who was just stopped.  ``thorough``: they have to wait for the minimum of
    those that are left; so no set of them comes twice, and there is an end.
    """
    first, start = r.copy(), v.copy()

    def model(r, v):
        return 0.5 * float((first + r) @ (v - start)) + float(
            np.abs(v) @ (l1 + 0.5 * l2 * np.abs(v))
        )

    kinks, settled = l1 > 0.0, False
    for _ in range(rounds):
        changed = sweep_model(H, r, v, l1, l2, low, high, SWEEPS)
        if settled and changed == 0:
            return True
        settled = False
        while not settled:  # with fewer of them each time
            F = np.flatnonzero((v > low) & (v < high) & ~((v == 0.0) & kinks))
            if F.size == 0:
                if changed == 0:
                    return True
                break
            part = H[np.ix_(F, F)] + np.diag(l2[F])
            right = -(r[F] + l2[F] * v[F] + l1[F] * np.sign(v[F]))
            step = Cholesky(part).solve(right)
            if not np.isfinite(step).all():
                return False
            at = v[F]
            end = at + step
            crosses = kinks[F] & (end * at <= 0.0)
            aim = np.clip(np.where(crosses, 0.0, end), low[F], high[F])
            settled = bool((aim == end).all())
            value = model(r, v)
            trial = v.copy()
            trial[F] = aim
            slopes = r + H[:, F] @ (aim - at)
            if not settled and not model(slopes, trial) < value:
                trial[F] = first_stop(at, step, crosses, low[F], high[F])
                slopes = r + H[:, F] @ (trial[F] - at)
            v[:], r[:] = trial, slopes
            if not thorough:
                break
    return False


def first_stop(at, step, crosses, low, high):
    """From ``at`` along ``step`` to the first kink or bound, which is met exactly."""
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where(crosses, -at / step, np.inf)
        wall = np.where(step > 0.0, (high - at) / step, (low - at) / step)
    wall = np.where(step == 0.0, np.inf, wall)
    t = min(float(np.fmin(zero, wall).min()), 1.0)
    end = at + t * step
    end = np.where(wall <= t, np.where(step > 0.0, high, low), end)
    return np.clip(np.where(zero <= t, 0.0, end), low, high)
