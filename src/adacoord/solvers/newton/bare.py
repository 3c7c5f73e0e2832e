r"""Newton's method for small data, bare: no monitor, no choices, everything in dense arrays.

Problem     min P(x, c) for a loss with a continuous slope, l2, l1 and x >= 0 in any mixture
Step        d = -H^{-1} grad by Cholesky's factorisation, H = l2 I + [A, 1]' diag(w phi'') [A, 1]/n
            over the rows that have a curvature: few, for the losses of margins.  With l1 or signs
            the least point of the model grad.d + d'Hd/2 + g(x + d): coordinate descent on H finds
            the support, Cholesky the values on it
Line        t = 1 where the slope along the step fell to half of what it was, else by
            :func:`.solvers.newton.line_search`; with l1 or signs Armijo's rule
Settled     where no row has gained or lost its curvature (for losses that are not quadratic: and
            the step was short) H is kept, and what is left costs two products with A
Ends        when a step changes nothing, or no less than the one before

Data whose rows are fewer than their columns are turned into a triangle first: without l1 and
signs x lies in the span of the rows.

A step takes 70 us on 569 x 30 numbers and 170 us on 1797 x 64; as a solver under the monitor's
eyes it took 0.5 ms and more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from ...kernels.codes import MARGIN
from ...linalg.blas import one_thread
from ...problem import Problem
from .bare_kernels import descend, expand_data, move
from .kernels import along_line
from .newton import ROUNDING, line_search
from .polish import SINGULAR, reciprocal_condition, solve_symmetric

#: Columns that are not too many where there are zeros to be found.  (n x d = 2^18, lasso and l1
#: logistic regression against ``acf`` and a polish: 2.8 and 9.3 ms against 6.8 and 19 with 100
#: columns, 1.6 and 22 against 6.6 and 16 with 200.)
COLUMNS = 128
#: Steps of one attempt.
STEPS = 50
#: A step that changes less than this share of x and z is the last; H is kept below the other.
LAST, SHORT = 1e-11, 1e-3
#: Sweeps of coordinate descent on a model before a look at the signs; twice as many before the
#: next, up to ENOUGH for a model that will change and MOST for the last one.
SWEEPS, ENOUGH, MOST = 16, 64, 128
#: Of the decrease that the slope promises (Armijo).
PROMISED = 0.01


@dataclass(frozen=True)
class Found:
    """A point; ``bent`` rows have a curvature there."""

    x: np.ndarray
    intercept: float
    y: np.ndarray
    steps: int
    bent: int


class BareNewton:
    """The data of one problem, made ready; see the module's docstring."""

    def __init__(self, problem: Problem):
        self.problem, penalty = problem, problem.penalty
        self.sparse = penalty.l1 > 0.0 or penalty.positive
        self.A, self.basis = problem.matrix.dense, None
        if not self.sparse and problem.n < problem.d:
            self.basis, self.A = problem.matrix.row_space
        self.n, self.d = self.A.shape
        self.m = self.d + problem.intercept
        #: whether rows that all bend alike have the Gram matrix that all classes share
        self.shared = problem.weights is None and self.basis is None
        self.exact = True  # whether the last step was to the least point of its model
        self.w = (np.ones(self.n) if problem.weights is None else problem.weights) / problem.n

    @cached_property
    def _work(self):
        """y, bend, slope and the rows that bend (none where all of them do, always)."""
        n, d = self.A.shape
        rows = 0 if self.shared and self.problem.loss.name == "squared" else n
        return np.empty(n), np.empty(n), np.empty(d + 1), np.empty((rows, d + 1))

    @staticmethod
    def affordable(problem: Problem) -> bool:
        """Whether this is the way to solve a small problem."""
        sparse = problem.penalty.l1 > 0.0 or problem.penalty.positive
        return not problem.loss.blocks and (not sparse or problem.d <= COLUMNS)

    def minimise(self, x, c, steps=STEPS, law=None, b=None, rough=0.0) -> Found | None:
        """The optimum, from (x, c); None where a system has no solution, or the steps no end.

        ``law`` (a code and four constants, see :mod:`.losses`) and ``b`` may take the place of
        the problem's own.  ``rough`` lets it end as soon as no more than this share of the rows
        that bend has changed in a step.
        """
        problem = self.problem
        if law is None:
            law, b = (problem.loss.code, *problem.loss.constants), problem.b
        x = np.asarray(x, dtype=np.float64)
        x = x.copy() if self.basis is None else self.basis.T @ x
        with one_thread(), np.errstate(all="ignore"):
            found = self._minimise(x, float(c), min(steps, STEPS), law, b, rough)
        if found is None or not (np.isfinite(found[0]).all() and np.isfinite(found[1])):
            return None
        x, *rest = found
        return Found(x if self.basis is None else self.basis @ x, *rest)

    def _minimise(self, x, c, steps, law, b, rough):
        A, w, d, m = self.A, self.w, self.d, self.m
        l2, search = self.problem.penalty.l2, self._sparse_search if self.sparse else self._search
        y, bend, slope, bent = self._work
        bend[:] = 0.0
        z = A @ x + c
        value, rows, _ = expand_data(A, *law, z, b, w, y, bend, bent, slope)
        settled, moved, taken = False, np.inf, 0
        while taken < steps:
            gradient = slope[:m].copy()
            gradient[:d] += l2 * x
            if not settled:
                self._curve(rows, law)
            settled_before = settled and self.exact
            s = self._sparse_step(x, gradient, settled) if self.sparse else self._solve(gradient)
            if s is None:
                return None
            dx, dc = s[:d], float(s[d]) if m > d else 0.0
            dz = A @ dx + dc
            t = search(law, b, z, dz, x, dx, value, float(gradient @ s))
            before, moved = moved, move(x, dx, z, dz, t)
            c, taken = c + t * dc, taken + 1
            if settled:  # nothing is left of rounding in running sums
                z = A @ x + c
            value, rows, flips = expand_data(A, *law, z, b, w, y, bend, bent, slope)
            if self.exact and (moved <= LAST or (settled_before and moved > 0.5 * before)):
                break
            settled = t == 1.0 and flips == 0 and not self.flat and (
                law[0] <= MARGIN or moved < SHORT)
            if rough and t == 1.0 and flips <= rough * rows:
                break
        else:
            if steps == STEPS:
                return None
        return x, c, y.copy(), taken, int(rows)

    # ---- systems ------------------------------------------------------------------------

    def _curve(self, rows, law) -> None:
        """H at the point that was expanded last, and its factor."""
        problem, m = self.problem, self.m
        self.flat = rows == 0
        if rows == self.n and law[0] <= MARGIN and self.shared:
            H = problem.matrix.gram[:m, :m] / (self.n * law[1])
        elif rows:
            B = self._work[3][:rows, :m]
            H = B.T @ B
        else:  # the bound on its curvature takes its place
            B = np.column_stack([self.A, np.ones(self.n)])[:, :m]
            H = (B.T * (self.w / (law[1] or problem.loss.gamma))) @ B
        H.ravel()[: self.d * (m + 1) : m + 1] += problem.penalty.l2
        if self.sparse:
            self._eliminate(H)
        else:
            self.H = H
            self.factor, failed = lapack.dpotrf(H.T, lower=1)
            self.singular = failed or reciprocal_condition(self.factor) < SINGULAR

    def _solve(self, gradient):
        if self.singular:  # as with an intercept, more columns than rows and next to no penalty
            return solve_symmetric(self.H, -gradient, exact=True)
        return lapack.dpotrs(self.factor, -gradient, lower=1)[0]

    # ---- zeros and signs ----------------------------------------------------------------

    def _eliminate(self, H) -> None:
        """H with the intercept at its best for each x."""
        d = self.d
        self.mean = np.zeros(d)
        if self.m > d:
            self.mass = H[d, d]
            self.mean = H[:d, d] / self.mass
        self.H = H[:d, :d] - np.outer(self.mean, H[:d, d]) if self.m > d else H

    def _sparse_step(self, x, gradient, settled):
        """From x to the least point of the model, or near it where the model will change."""
        d, penalty = self.d, self.problem.penalty
        total = gradient[d] if self.m > d else 0.0
        reduced = gradient[:d] - self.mean * total
        new, slopes = x.copy(), reduced.copy()
        step, signs = None, np.sign(x)
        if self.exact:  # perhaps on the support of the model before
            step = self._on_support(x, reduced, signs)
        sweeps = SWEEPS
        while step is None and sweeps <= (MOST if settled else ENOUGH):
            descend(self.H, slopes, new, penalty.l1, penalty.positive, sweeps)
            before, signs, sweeps = signs, np.sign(new), 2 * sweeps
            if (signs == before).all():
                step = self._on_support(x, reduced, signs)
        self.exact = step is not None
        if step is None:
            step = new - x
        if self.m == d:
            return step
        return np.append(step, -total / self.mass - self.mean @ step)

    def _on_support(self, x, gradient, signs):
        """The step to the model's least point of these signs, if it is the least of all."""
        penalty, S = self.problem.penalty, np.flatnonzero(signs)
        step = np.where(signs == 0.0, -x, 0.0)
        slopes = gradient + self.H @ step
        if S.size:
            right = -(slopes[S] + penalty.l1 * signs[S])
            H = self.H[np.ix_(S, S)]
            factor, failed = lapack.dpotrf(H, lower=1)
            if failed or reciprocal_condition(factor) < SINGULAR:  # columns that repeat others
                values = solve_symmetric(H, right, exact=True)
                if values is None:
                    return None
            else:
                values = lapack.dpotrs(factor, right, lower=1)[0]
            step[S] = values
            slopes = gradient + self.H @ step
        pull = -slopes if penalty.positive else np.abs(slopes)
        beyond = pull > penalty.l1 + 1e-9 * np.max(np.abs(slopes), initial=0.0)
        right = np.sign(x + step) == signs
        return step if right.all() and not beyond[signs == 0.0].any() else None

    # ---- lines --------------------------------------------------------------------------

    def _search(self, law, b, z, dz, x, dx, value, slope):
        l2, w = self.problem.penalty.l2, self.w
        constant, tilt, bend = 0.5 * l2 * float(x @ x), l2 * float(x @ dx), l2 * float(dx @ dx)
        value += constant
        if -slope <= ROUNDING * abs(value):  # refinement
            return 1.0

        def along(t):
            total, first, second = along_line(*law, z, dz, b, w, t)
            total += constant + t * (tilt + 0.5 * t * bend)
            return total, first + tilt + t * bend, second + bend

        return line_search(along, value, slope)

    def _sparse_search(self, law, b, z, dz, x, dx, value, slope):
        g, l1 = self.problem.penalty.value, self.problem.penalty.l1
        value += g(x)
        promised = slope + l1 * float(np.abs(x + dx).sum() - np.abs(x).sum())
        t, goal = 1.0, value + ROUNDING * abs(value)

        def at(t):
            return along_line(*law, z, dz, b, self.w, t)[0] + g(x + t * dx)

        while at(t) > goal + PROMISED * t * promised:
            t *= 0.5
            if t < 1e-12:
                return 0.0
        while self.flat and at(2.0 * t) < at(t):  # a bound says nothing of how far it is
            t *= 2.0
        return t
