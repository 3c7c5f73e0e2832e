r"""Newton's method on dense rows: one iteration at a time, for every loss with a continuous slope.

Problem     min P(x, c) for a loss with a continuous slope, l2, l1 and x >= 0 in any mixture
Step        d = -H^{-1} grad by Cholesky's factorisation, H = l2 I + [A, 1]' diag(w phi'') [A, 1]/n
            over the rows that have a curvature: few, for the losses of margins.  With l1 or signs
            the least point of the model grad.d + d'Hd/2 + g(x + d): coordinate descent on H finds
            the support, Cholesky the values on it
Line        t = 1 where the slope along the step fell to half of what it was, else by
            :mod:`adacoord.linalg.line_search`; with l1 or signs Armijo's rule
Settled     where no row has gained or lost its curvature (for losses that are not quadratic: and
            the step was short) H is kept, and what is left costs two products with A
Ends        when a step changes nothing, or no less than the one before
Iteration   a step; for losses of the quadratic family and l2 alone, on few columns, the first one
            takes all of them in a kernel (514 x 34 numbers, epsilon_insensitive: a step of 20 us
            took 35 more in calls), unless a system has no solution to rounding

Data whose rows are fewer than their columns are turned into a triangle first: without l1 and
signs x lies in the span of the rows.  A step takes 40 us on 569 x 30 numbers and 110 us on
1797 x 64.

:mod:`.newton` is another loop for another trade: there a product with A (sparse, of classes, n x n)
is what costs, here the calls between products do, so that all but Cholesky is one kernel.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from ...kernels.codes import MARGIN
from ...linalg.cholesky import SINGULAR, Cholesky, definite, solve_symmetric
from ...linalg.line_search import HALF, ROUNDING, line_search
from ...problem import Problem
from .dense_kernels import descend, expand_data, move, newton_steps, whole_step
from .kernels import along_line, family
from .size import MOST_COLUMNS

#: Columns that are not too many where there are zeros to be found; ``size.MOST_COLUMNS`` where no
#: coordinate descent on working sets can take its place.  (n x d = 2^18, lasso and l1 logistic
#: regression against ``acf`` and a polish: 2.8 and 9.3 ms against 6.8 and 19 with 100
#: columns, 1.6 and 22 against 6.6 and 16 with 200.)
COLUMNS = 128
#: Steps of one attempt.
STEPS = 200
#: Columns, and one for an intercept, up to which compiled steps keep up with BLAS.
COMPILED = 64
#: Steps after which the least points of models are found by active sets, and the changes of a set.
STRUGGLE, MOST_CHANGES = 20, 400
#: Models whose active sets had no end: no others will.  (150 x 400 with a row of 10^6 times the
#: others took 2 s for each of up to STEPS.)
ENDLESS = 3
#: A step that changes less than this share of x and z is the last; H is kept below the other.
LAST, SHORT = 1e-11, 1e-3
#: Sweeps of coordinate descent on a model before a look at the signs; twice as many before the
#: next, up to ENOUGH for a model that will change and MOST for the last one.
SWEEPS, ENOUGH, MOST = 16, 64, 128
#: Of the decrease that the slope promises (Armijo).
PROMISED = 0.01


class DenseNewton:
    """The data of one problem, made ready, and an iteration on them; see the module's docstring.

    ``begin`` says where and for which loss, ``iterate`` takes a step; then ``ended`` tells whether
    it was the last one (``failed``: a system has no solution, or the steps no end), and ``x``,
    ``c``, ``y`` and ``bent``, the number of rows with a curvature, are those of the point.
    """

    def __init__(self, problem: Problem):
        self.problem, penalty = problem, problem.penalty
        self.sparse = penalty.sparse
        self.A, self.basis = problem.matrix.dense, None
        if not self.sparse and problem.n < problem.d:
            self.basis, self.A = problem.matrix.row_space
        self.n, self.d = self.A.shape
        self.m = self.d + problem.intercept
        #: whether rows that all bend alike have the Gram matrix that all classes share
        self.shared = problem.weights is None and self.basis is None
        self.exact = True  # whether the last step was to the least point of its model
        self.operations = 0  # multiply-adds
        w = problem.weights
        self.w = np.full(self.n, 1.0 / self.n) if w is None else w / problem.n

    @cached_property
    def _work(self):
        """y, bend, the rows that bend (none where all of them do, always) and slope; then a step,
        what it changes z by, and room for another z."""
        n, d = self.A.shape
        rows = 0 if self.shared and self.problem.loss.name == "squared" else n
        expansion = np.empty(n), np.empty(n), np.empty((rows, d + 1)), np.empty(d + 1)
        return *expansion, np.empty(self.m), np.empty(n), np.empty(n)

    @staticmethod
    def affordable(problem: Problem) -> bool:
        """Whether this is the way to solve a small problem."""
        penalty = problem.penalty
        return penalty.quadratic or problem.d <= (COLUMNS if penalty.l1 > 0.0 else MOST_COLUMNS)

    @property
    def y(self) -> np.ndarray:
        return self._work[0]

    @property
    def x(self) -> np.ndarray:
        return self.t if self.basis is None else self.basis @ self.t

    def begin(self, x, c, law, b, rough=0.0) -> None:
        """From (x, c), for the loss ``law`` (a code and four constants) and the targets ``b``.

        ``rough`` lets it end as soon as no more than this share of the rows with a curvature has
        changed in a step.
        """
        self.law, self.family, self.b, self.rough = law, family(law[0]), b, rough
        x = np.asarray(x, dtype=np.float64)
        self.t = x.copy() if self.basis is None else self.basis.T @ x
        self.c, self.exact = float(c), True
        self._work[1][:] = 0.0
        self.z = self.A @ self.t + self.c if self.t.any() else np.full(self.n, self.c)
        self._expand()
        self.settled, self.moved, self.taken, self.endless = False, np.inf, 0, 0
        self.ended = self.failed = False
        self.factor: Cholesky | None = None
        bent = self._work[2].shape[0] > 0  # rows of their own, and not the Gram matrix of all
        self.at_once = self.law[0] <= MARGIN and bent and not self.sparse and self.m <= COMPILED

    def iterate(self) -> None:
        """One step, or all of them."""
        self.ended = self._at_once() if self.at_once else self._iterate()
        self.failed = self.failed or not math.isfinite(self.c + self.t.sum())
        if self.taken >= STEPS and not self.ended:
            self.failed = True
        self.ended = self.ended or self.failed

    #: What ``state()`` holds beside the arrays of an expansion; some are made by a first step.
    _state = (
        "t",
        "c",
        "z",
        "value",
        "bent",
        "settled",
        "moved",
        "taken",
        "at_once",
        "endless",
        "exact",
        "ended",
        "failed",
        "flat",
        "H",
        "mean",
        "mass",
    )

    def state(self) -> dict:
        """Plain arrays and numbers, for :meth:`restore` after the same ``begin``."""
        out = {name: np.copy(getattr(self, name)) for name in self._state if hasattr(self, name)}
        return out | {f"work{k}": array.copy() for k, array in enumerate(self._work)}

    def restore(self, state: dict) -> None:
        for name, value in state.items():
            if name.startswith("work"):
                self._work[int(name[4:])][...] = value
            else:
                setattr(self, name, value.copy() if value.ndim else value.item())
        if not self.sparse and hasattr(self, "H"):
            self.factor = definite(self.H)

    def _expand(self) -> int:
        self.value, self.bent, flips = expand_data(
            self.A, *self.family, *self.law, self.z, self.b, self.w, *self._work[:4]
        )
        return flips

    def _at_once(self) -> bool:
        """All steps, as far as H has a factor; whether they came to their end."""
        self.at_once = False
        y, bend, rows, slope, step, dz, trial = self._work
        longest = float(self.problem.matrix.squared_norms.max()) ** 0.5
        ended, self.c, self.value, self.bent, taken, work, swapped = newton_steps(
            self.A, *self.law, self.problem.penalty.l2, self.b, self.w, self.t, self.c,
            self.z, self.value, self.bent, np.empty((self.m, self.m)), step, dz, trial, y,
            bend, rows, slope, longest, self.rough, LAST, SINGULAR, STEPS,
        )  # fmt: skip
        if swapped:
            self.z, self._work = trial, (*self._work[:6], self.z)
        self.taken += taken
        self.operations += work + 3 * self.A.size * taken
        return ended

    def _iterate(self) -> bool:
        self.operations += 3 * self.A.size
        if not self.settled:
            self.operations += int(self.bent) * self.m**2 // 2 + self.m**3 // 6
            self._curve(self.bent, self.law)
        settled, before = self.settled and self.exact, self.moved
        t, flips = self._whole_step() if self.factor is not None else self._searched_step()
        self.taken += 1
        if self.failed:
            return True
        if self.exact and (self.moved <= LAST or (settled and self.moved > 0.5 * before)):
            return True
        self.settled = (
            t == 1.0
            and flips == 0
            and not self.flat
            and (self.law[0] <= MARGIN or self.moved < SHORT)
        )
        if self.settled and self.factor is not None and self._next_change() <= LAST:
            return True
        return bool(self.rough) and t == 1.0 and flips <= self.rough * self.bent

    def _whole_step(self) -> tuple[float, int]:
        """(t, flips) of a step by the factor of H."""
        assert self.factor is not None
        y, bend, rows, slope, step, dz, trial = self._work
        l2 = self.problem.penalty.l2
        taken, along, value, bent, flips, moved = whole_step(
            self.A, self.factor.factor, self.settled, l2, *self.family, *self.law,
            self.b, self.w, self.t, self.c,
            self.z, self.value, step, dz, trial, y, bend, rows, slope, HALF, ROUNDING,
        )  # fmt: skip
        dc = float(step[self.d]) if self.m > self.d else 0.0
        if not taken:
            return self._move(step[: self.d], dc, dz, self._search(dz, step[: self.d], along))
        self._work = *self._work[:6], self.z
        self.z, self.value, self.bent, self.moved = trial, value, bent, moved
        self.c += dc
        return 1.0, flips

    def _next_change(self) -> float:
        """At most what the next step would change of x and z, in units of their largest."""
        assert self.factor is not None
        gradient = self._work[3][: self.m].copy()
        gradient[: self.d] += self.problem.penalty.l2 * self.t
        step = self.factor.solve(gradient)
        dx, size = step[: self.d], float(np.abs(self.t).max())
        largest = float(np.abs(self.z).max())
        if not (size > 0.0 and largest > 0.0):
            return np.inf
        row = float(self.problem.matrix.squared_norms.max()) ** 0.5
        dz = row * float(dx @ dx) ** 0.5 + float(np.abs(step[self.d :]).sum())
        return max(float(np.abs(dx).max()) / size, dz / largest)

    def _searched_step(self) -> tuple[float, int]:
        """(t, flips) of a step with zeros and signs, or where H has no factor."""
        d, m = self.d, self.m
        gradient = self._work[3][:m].copy()
        gradient[:d] += self.problem.penalty.l2 * self.t
        step = (
            self._sparse_step(self.t, gradient, self.settled)
            if self.sparse
            else self._solve(gradient)
        )
        if step is None:
            self.failed = True
            return 0.0, 0
        dx, dc = step[:d], float(step[d]) if m > d else 0.0
        dz = self.A @ dx + dc
        search = self._sparse_search if self.sparse else self._search
        return self._move(dx, dc, dz, search(dz, dx, float(gradient @ step)))

    def _move(self, dx, dc, dz, t) -> tuple[float, int]:
        self.moved = move(self.t, dx, self.z, dz, t)
        self.c += t * dc
        if self.settled:  # nothing is left of rounding in running sums
            self.z = self.A @ self.t + self.c
        return t, self._expand()

    # ---- systems ------------------------------------------------------------------------

    def _curve(self, rows, law) -> None:
        """H at the point that was expanded last, and its factor."""
        problem, m = self.problem, self.m
        self.flat = rows == 0
        if rows == self.n and law[0] <= MARGIN and self.shared:
            H = problem.matrix.gram[:m, :m] / (self.n * law[1])
        elif rows:
            B = self._work[2][:rows, :m]
            H = B.T @ B
        else:  # the bound on its curvature takes its place
            B = np.column_stack([self.A, np.ones(self.n)])[:, :m]
            H = (B.T * (self.w / (law[1] or problem.loss.gamma or 1.0))) @ B
        H.reshape(-1)[: self.d * (m + 1) : m + 1] += problem.penalty.l2
        if self.sparse:
            self._eliminate(H)
        else:
            self.H, self.factor = H, definite(H)

    def _solve(self, gradient):
        """Without a factor: with an intercept, more columns than rows, hardly a penalty, say."""
        step = solve_symmetric(self.H, -gradient, exact=True)
        # with kinks rounded off another width follows: less than the whole step will do
        if step is None and self.rough:
            return solve_symmetric(self.H, -gradient, exact=False)
        return step

    # ---- zeros and signs ----------------------------------------------------------------

    def _eliminate(self, H) -> None:
        """H with the intercept at its best for each x."""
        d = self.d
        self.mean = np.zeros(d)
        if self.m > d:
            self.mass = H[d, d]
            self.mean = H[:d, d] / self.mass
        self.H = H[:d, :d] - np.outer(self.mean, H[:d, d]) if self.m > d else H
        self.factor = None

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
        if step is None and self.taken >= STRUGGLE:
            step = self._exactly(x, reduced, new)
            self.endless += step is None
            if self.endless == ENDLESS:
                return None
        self.exact = step is not None
        if step is None:
            step = new - x
        if self.m == d:
            return step
        return np.concatenate([step, [-total / self.mass - self.mean @ step]])

    def _on_support(self, x, gradient, signs):
        """The step to the model's least point of these signs, if it is the least of all."""
        penalty, S = self.problem.penalty, np.flatnonzero(signs)
        step = np.where(signs == 0.0, -x, 0.0)
        slopes = gradient + self.H @ step
        if S.size:
            right = -(slopes[S] + penalty.l1 * signs[S])
            H = self.H[S][:, S]
            factor = definite(H)
            if factor is None:  # columns that repeat others
                values = solve_symmetric(H, right, exact=True)
                if values is None:
                    return None
            else:
                values = factor.solve(right)
            step[S] = values
            slopes = gradient + self.H @ step
        beyond = penalty.slack(slopes) < -1e-9 * np.abs(slopes).max()
        right = np.sign(x + step) == signs
        return step if right.all() and not beyond[signs == 0.0].any() else None

    def _exactly(self, x, gradient, new):
        """The step to the model's least point by active sets, from ``new``; None without an end.

        The least point of the signs, as far as they allow: one that stops it leaves the set, and
        the zero that is furthest beyond its threshold joins it.  Sets as large as the number of
        rows, where coordinate descent crawls for ever, have a flat direction: along that, to the
        next zero.
        """
        penalty, H = self.problem.penalty, self.H
        point, signs = new.copy(), np.sign(new)
        for _ in range(MOST_CHANGES + self.d):
            S = np.flatnonzero(signs)
            slopes = gradient + H @ (point - x)
            if S.size:
                crowded = penalty.l2 == 0.0 and S.size > self.n
                S = S[: self.n + 1] if crowded else S  # these are dependent already
                part, right = H[np.ix_(S, S)], -(slopes[S] + penalty.l1 * signs[S])
                factor, most = None if crowded else definite(part), 1.0
                if factor is None:
                    flat, most = np.linalg.eigh(part)[1][:, 0], np.inf
                    move = flat if float(right @ flat) >= 0.0 else -flat
                else:
                    move = factor.solve(right)
                back = move * signs[S] < 0.0
                reach = np.where(back, -point[S] / np.where(back, move, 1.0), np.inf)
                first = int(np.argmin(reach))
                t = min(most, float(reach[first]))
                if not np.isfinite(t):
                    return None
                point[S] += t * move
                if t < most:
                    point[S[first]] = signs[S[first]] = 0.0
                    continue
                slopes = gradient + H @ (point - x)
            slack = np.where(signs == 0.0, penalty.slack(slopes), np.inf)
            worst = int(np.argmin(slack))
            if slack[worst] >= -1e-10 * np.max(np.abs(slopes)):
                return point - x
            signs[worst] = -np.sign(slopes[worst])
        return None

    # ---- lines --------------------------------------------------------------------------

    def _search(self, dz, dx, slope):
        l2, x, value = self.problem.penalty.l2, self.t, self.value
        constant, tilt, bend = 0.5 * l2 * float(x @ x), l2 * float(x @ dx), l2 * float(dx @ dx)
        value += constant
        if -slope <= ROUNDING * abs(value):  # refinement
            return 1.0

        def along(t):
            total, first, second = along_line(*self.law, t, self.z, dz, self.b, self.w)
            total += constant + t * (tilt + 0.5 * t * bend)
            return total, first + tilt + t * bend, second + bend

        return line_search(along, value, slope)

    def _sparse_search(self, dz, dx, slope):
        g, l1, x = self.problem.penalty.value, self.problem.penalty.l1, self.t
        value = self.value + g(x)
        promised = slope + l1 * float(np.abs(x + dx).sum() - np.abs(x).sum())
        t, goal = 1.0, value + ROUNDING * abs(value)

        def at(t):
            losses = along_line(*self.law, t, self.z, dz, self.b, self.w)[0]
            return losses + g(x + t * dx)

        while not at(t) <= goal + PROMISED * t * promised:  # an overflow of exp is a rise
            t *= 0.5
            if t < 1e-12:
                return 0.0
        while self.flat and at(2.0 * t) < at(t):  # a bound says nothing of how far it is
            t *= 2.0
        return t
