r"""The last digits of problems with kinks: Newton's method on the optimality conditions.

A certificate of 1e-8 leaves coefficients with four good digits.  Near the optimum it is known
which rows sit at a kink of their loss and which coefficients are zero; given these, the
conditions

.. math::

    \tfrac1n A_S^T (w y) + l_2 x_S + l_1 \mathrm{sign}(x_S) = 0, \qquad \sum_i w_i y_i = 0,
    \qquad y_i = \phi_i'(z_i) \;\text{or}\; z_i = \text{the kink}, \qquad z = A x + c

are linear in what is unknown, x_S, c and the y of the rows at kinks (semi-smooth Newton, or the
primal-dual active set method).  S holds the columns that are not zero, K the rows at a kink; both
are guessed anew before each step, from the proximal steps that leave an optimal point where it
is.  When a guess comes back the same, the system was the right one and the point is exact to
rounding.

Losses without kinks need no guess of rows and are left to :mod:`.dense`; where that has too many
columns, S alone is guessed here.

Nothing here is trusted: who uses it has the point judged by its certificate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...linalg.cholesky import definite, solve_symmetric
from ...problem import Problem
from .dual_proximal import respond
from .kernels import expand_rows

#: Unknowns of the largest indefinite system: what a step costs stays below some 20 ms.
UNKNOWNS = 400
#: Steps of one attempt.
STEPS = 20
#: A step of the same guess that changes less than this share of x and y is the last.
LAST = 1e-11


class ActiveSet:
    """Guess, solve, guess again; one of each an iteration.

    ``begin`` says where; ``iterate`` takes a step, then ``ended`` tells whether it was the last,
    ``failed`` that no guess settles, and ``x``, ``c``, ``y`` are the point, exact to rounding
    unless it failed.  ``degenerate``: whether to go on with more rows at kinks than can be met by
    themselves (of which some repeat others), which takes singular values: 5 ms on 1797 x 64
    numbers.
    """

    def __init__(self, problem: Problem):
        self.conditions = Conditions(problem)

    def begin(self, x, c, y, degenerate: bool = True) -> None:
        self.conditions.degenerate = degenerate
        self.t, self.c = self.conditions.inside(x), float(c)
        self.y = np.asarray(y, dtype=np.float64)
        self.last: Guess | None = None
        self.changes, self.moved, self.taken = np.inf, np.inf, 0
        self.ended = self.failed = False

    _state = ("t", "c", "y", "changes", "moved", "taken", "ended", "failed")

    def state(self) -> dict:
        """Plain arrays and numbers, for :meth:`restore` after the same ``begin``."""
        out = {name: np.copy(getattr(self, name)) for name in self._state}
        if self.last is not None:
            for name in ("rows", "signs"):
                if getattr(self.last, name) is not None:
                    out[f"last_{name}"] = getattr(self.last, name).copy()
        return out

    def restore(self, state: dict) -> None:
        for name in self._state:
            setattr(self, name, state[name].copy() if state[name].ndim else state[name].item())
        if self.taken:
            self.last = Guess(state.get("last_rows"), state.get("last_signs"))

    @property
    def x(self) -> np.ndarray:
        return self.conditions.outside(self.t)

    def iterate(self) -> None:
        self.ended = self._iterate()
        if self.taken >= STEPS and not self.ended:
            self.ended = self.failed = True

    def _iterate(self) -> bool:
        self.taken += 1
        guess = self.conditions.guess(self.t, self.c, self.y)
        before, last = self.changes, self.moved
        if self.last is not None:
            self.changes = guess.differs(self.last)
            # Attempts that succeed change less of the guess each time (6, 2, 0); those that do
            # not wander about.
            self.failed = self.changes >= max(before, 1)
        new = None if self.failed else self.conditions.step(self.t, self.c, self.y, guess)
        if new is None or not math.isfinite(new[1] + new[0].sum() + new[2].sum()):
            self.failed = True
            return True
        self.moved = max(_share(new[0] - self.t, new[0]), _share(new[2] - self.y, new[2]))
        self.t, self.c, self.y = new
        self.last = guess
        if self.changes or self.moved <= LAST:
            return self.changes == 0
        # the same system once more, and no nearer to its end: more rows than can be met
        self.failed = before == 0 and self.moved > 0.5 * last
        return self.failed


def _share(change: np.ndarray, of: np.ndarray) -> float:
    size = float(np.abs(of).max())
    return float(np.abs(change).max()) / size if size > 0.0 else 0.0


class Guess(NamedTuple):
    """Which rows are at a kink and which columns are not zero; z and v are those it came from.

    ``rows`` is None for losses without kinks; ``signs`` of the columns, None where none can be 0.
    """

    rows: np.ndarray | None
    signs: np.ndarray | None
    z: np.ndarray | None = None
    v: np.ndarray | None = None

    def differs(self, other: Guess) -> int:
        """In how many rows and columns."""
        rows = 0 if self.rows is None else int(np.count_nonzero(self.rows != other.rows))
        if self.signs is None:
            return rows
        return rows + int(np.count_nonzero(self.signs != other.signs))


class Conditions:
    """The optimality conditions of one problem, on a dense copy of its data.

    Without l1 and signs x lies in the span of the rows: where they are fewer than the columns,
    an orthogonal basis of theirs takes the place of the columns.
    """

    def __init__(self, problem: Problem):
        self.degenerate = True
        self.problem, penalty = problem, problem.penalty
        self.A, self.basis = problem.matrix.dense, None
        self.sparse = penalty.sparse
        if not self.sparse and problem.n < problem.d:
            self.basis, self.A = problem.matrix.row_space
        self.w = (np.ones(problem.n) if problem.weights is None else problem.weights) / problem.n
        self.kinked = not problem.loss.differentiable
        self.law = problem.loss.code, *problem.loss.constants
        # Proximal steps of the size of the curvature they meet: in y that is |a|^2/(n l2).
        # (LinearSVR, epsilon = 10, on diabetes: 15 and 37 passes at C = 20 and 1e4 instead of 114
        # and 141 with steps that leave out n l2.)
        norms = problem.matrix.squared_norms
        mean = max(float(norms.sum()) / problem.n, 1e-300)
        self.dual_step = (problem.n * penalty.l2 or 1.0) / mean
        self.primal_step = 1.0 / max(float((self.w * norms).sum()), 1e-300)

    def inside(self, x):
        x = np.asarray(x, dtype=np.float64)
        return x if self.basis is None else self.basis.T @ x

    def outside(self, x):
        return x if self.basis is None else self.basis @ x

    def guess(self, x, c, y) -> Guess:
        """From the proximal steps that leave an optimal point where it is."""
        penalty = self.problem.penalty
        z = self.A @ x + c
        v, rows = self._respond(z, y) if self.kinked else (None, None)
        if not self.sparse:
            return Guess(rows, None, z, v)
        slopes = y if self.kinked else self.problem.loss.derivative(z, self.problem.b)
        moved = x - self.primal_step * (self.A.T @ (self.w * slopes) + penalty.l2 * x)
        return Guess(rows, np.sign(penalty.prox(moved, self.primal_step)), z, v)

    def _respond(self, z, y):
        """The dual prox, and the rows it leaves at a kink: where it still answers to z."""
        v, h = np.empty(z.size), np.empty(z.size)
        respond(*self.law, z, self.problem.b, y, self.dual_step, v, h)
        return v, self.w * h > 0.0

    def step(self, x, c, y, guess):
        """Solve the linear system that the guess leaves; None where it is too large, or has none.

        Unknown are x_S, c and the y of the rows at kinks; the other y_i are given by the loss.
        """
        penalty, A, z, v = self.problem.penalty, self.A, guess.z, guess.v
        S, signs = slice(None), 0.0
        if self.sparse:
            S = guess.signs.nonzero()[0]
            x, signs = np.where(guess.signs != 0.0, x, 0.0), penalty.l1 * guess.signs[S]
            z = A @ x + c
            v = self._respond(z, y)[0] if self.kinked else None
            A = A[:, S]
        if self.kinked:
            K = guess.rows.nonzero()[0]
            y = np.where(guess.rows, y, v)
            kinks = self.problem.b[K]
            if self.law[2] > 0.0:
                kinks = kinks + self.law[2] * np.sign(v[K])
            solve, B, given = self._at_kinks, A[K], kinks - z[K]
        else:
            if A.shape[1] > UNKNOWNS:
                return None
            y, given = self._expand(z)
            solve, B = self._on_columns, A
        p = self.w * y
        found = solve(B, A.T @ p + penalty.l2 * x[S] + signs, float(p.sum()), given)
        if found is None:
            return None
        dx, dc, dp = found
        x, c = x.copy(), c + dc
        x[S] += dx
        if self.kinked and K.size == 0 and self.problem.intercept:
            c, y = self._balanced(self.A @ x)
        elif self.kinked:
            y[K] += dp / self.w[K]
        else:
            y = self.problem.loss.derivative(self.A @ x + c, self.problem.b)
        return x, c, y

    def _at_kinks(self, B, gradient, total, missing):
        """(dx, dc, dp) with l2 dx + B'dp = -gradient, sum dp = -total, B dx + dc = missing.

        By Cholesky's factorisation of BB'/l2, bordered by the intercept, where the rows are
        independent; a tenth of what the whole system costs.
        """
        l2, intercept, k = self.problem.penalty.l2, self.problem.intercept, len(B)
        if l2 > 0.0 and k == 0:  # nothing holds c: see _balanced
            return -gradient / l2, 0.0, np.zeros(0)
        if l2 > 0.0 and k <= B.shape[1] + intercept:
            G = B @ B.T / l2
            # sum dp = -total, times any number, may be added to each equation: it makes the
            # intercept's ones part of a matrix that is definite with up to d + 1 rows
            shift = float(G.trace()) / k if intercept else 0.0
            G += shift
            factor = definite(G)
            if factor is not None:
                right = -(missing + B @ gradient / l2) - shift * total
                dp = factor.solve(right)
                dc = 0.0
                if intercept:
                    ones = factor.solve(np.ones(k))
                    dc = -(total + float(dp.sum())) / float(ones.sum())
                    dp = dp + dc * ones
                return -(gradient + B.T @ dp) / l2, dc, dp
        d = gradient.size
        m = d + intercept
        if m + k > UNKNOWNS or (l2 > 0.0 and not self.degenerate):
            return None
        M, right = np.zeros((m + k, m + k)), np.zeros(m + k)
        M[np.arange(d), np.arange(d)] = l2
        M[m:, :d] = B
        M[m:, d:m] = 1.0
        M[:m, m:] = M[m:, :m].T
        right[:d], right[d:m], right[m:] = -gradient, -total, missing
        delta = solve_symmetric(M, right, exact=False)
        if delta is None:
            return None
        return delta[:d], float(delta[d]) if intercept else 0.0, delta[m:]

    def _balanced(self, z):
        """(c, y): the best c for the predictions z without one, and slopes that sum to 0 there.

        The sum of the slopes jumps where c takes a row over a kink, by the height of that; the
        row at which it changes its sign is the one that stays there.
        """
        b, (_, _, epsilon, *_) = self.problem.b, self.law
        lo, hi = (np.broadcast_to(end, z.shape) for end in self.problem._ends)
        kinks, jumps = b - z, self.w * (hi - lo)
        if epsilon > 0.0:
            kinks = np.concatenate([kinks - epsilon, kinks + epsilon])
            jumps = np.concatenate([-self.w * lo, self.w * hi])
        order = np.argsort(kinks)
        sums = np.cumsum(jumps[order]) + float((self.w * lo).sum())
        at = order[min(int(np.searchsorted(sums, 0.0)), order.size - 1)]
        c, row = float(kinks[at]), at % z.size
        y = self.problem.loss.derivative(z + c, b)
        y[row] = 0.0
        y[row] = np.clip(-float((self.w * y).sum()) / self.w[row], lo[row], hi[row])
        return c, y

    def _on_columns(self, B, gradient, total, curvature):
        """(dx, dc, None) of a Newton step."""
        d, intercept = gradient.size, self.problem.intercept
        if intercept:
            B, gradient = np.column_stack([B, np.ones(len(B))]), np.append(gradient, total)
        weight = self.w * curvature
        M = (B.T * weight) @ B
        M[np.arange(d), np.arange(d)] += self.problem.penalty.l2
        delta = solve_symmetric(M, -gradient, exact=True)
        if delta is None:
            return None
        return delta[:d], float(delta[d]) if intercept else 0.0, None

    def _expand(self, z):
        """phi' and phi''."""
        n = self.problem.n
        y, p, curvature = np.empty(n), np.empty(n), np.empty(n)
        expand_rows(*self.law, z, self.problem.b, np.ones(n), y, p, curvature)
        return y, curvature
