r"""The last digits of a small problem: Newton's method on its optimality conditions.

A certificate of 1e-8 leaves coefficients with four good digits.  Near the optimum it is known
which rows sit at a kink of their loss and which coefficients are zero; given these, the
conditions

.. math::

    \tfrac1n A_S^T (w y) + l_2 x_S + l_1 \mathrm{sign}(x_S) = 0, \qquad \sum_i w_i y_i = 0,
    \qquad y_i = \phi_i'(z_i) \;\text{or}\; z_i = \text{the kink}, \qquad z = A x + c

are smooth, and one linear system away (semi-smooth Newton, or the primal-dual active set method).
S holds the columns that are not zero, K the rows at a kink; both are guessed anew before each
step, from the proximal steps that leave an optimal point where it is.  When a guess comes back
the same, the system was the right one and the point is exact to rounding.

For smooth losses and l2 alone there is nothing to guess, and this is Newton's method: from x = 0
it mostly gets there by itself, at a fraction of what a solver under the monitor's eyes costs.

Nothing here is trusted: who calls :func:`polish` judges the point by its certificate.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ._blas import one_thread
from .matrix import Matrix
from .problem import Problem

#: Unknowns of the largest system: what a step costs stays below some 20 ms.
UNKNOWNS = 400
#: Steps of one attempt.
STEPS = 20
#: Systems of a smaller reciprocal condition number are solved by their singular values.
SINGULAR = 1e-13


def polish(
    problem: Problem, x: np.ndarray, intercept: float, y: np.ndarray, steps: int = STEPS
):
    """(x, intercept, y) exact to rounding, and the steps it took; None where no guess settles."""
    with one_thread(), np.errstate(all="ignore"):
        conditions = Conditions(problem)
        x, c, y = conditions.inside(x), float(intercept), np.asarray(y, dtype=np.float64)
        last, changes = None, np.inf
        for step in range(1, min(steps, STEPS) + 1):
            guess = conditions.guess(x, c, y)
            if last is not None:
                before = changes
                changes = sum(int(np.sum(a != b)) for a, b in zip(guess, last, strict=True))
                # Attempts that succeed change less of the guess each time (6, 2, 0); those that
                # do not wander about.
                if changes >= before > 0:
                    return None
            new = conditions.step(x, c, y, guess)
            if new is None or not all(np.isfinite(part).all() for part in new):
                return None
            moved = max(_share(new[0] - x, new[0]), _share(new[2] - y, new[2]))
            x, c, y = new
            if moved <= 1e-11 and changes == 0:
                return (conditions.outside(x), c, y), step
            last = guess
    return None


def _share(change: np.ndarray, of: np.ndarray) -> float:
    size = float(np.max(np.abs(of), initial=0.0))
    return float(np.max(np.abs(change), initial=0.0)) / size if size > 0.0 else 0.0


class Conditions:
    """The optimality conditions of one problem, on a dense copy of its data.

    Without l1 and signs x lies in the span of the rows: where they are fewer than the columns,
    an orthogonal basis of theirs takes the place of the columns.
    """

    def __init__(self, problem: Problem):
        self.problem, penalty = problem, problem.penalty
        self.A, self.basis = dense(problem.matrix), None
        self.sparse = penalty.l1 > 0.0 or penalty.positive
        if not self.sparse and problem.n < problem.d:
            self.basis, triangle = np.linalg.qr(self.A.T)
            self.A = np.ascontiguousarray(triangle.T)
        self.w = (np.ones(problem.n) if problem.weights is None else problem.weights) / problem.n
        self.kinked = not problem.loss.differentiable
        # the columns of what is unknown on the primal side: x and c
        self.B = np.column_stack([self.A, np.ones(problem.n)]) if problem.intercept else self.A
        # Proximal steps of the size of the curvature they meet.
        norms = problem.matrix.squared_norms
        self.dual_step = 1.0 / max(float(np.mean(norms)), 1e-300)
        self.primal_step = 1.0 / max(float(np.sum(self.w * norms)), 1e-300)

    def inside(self, x):
        x = np.asarray(x, dtype=np.float64)
        return x if self.basis is None else self.basis.T @ x

    def outside(self, x):
        return x if self.basis is None else self.basis @ x

    def guess(self, x, c, y):
        """Which rows are at a kink, which columns are not zero, and their signs."""
        problem, penalty = self.problem, self.problem.penalty
        z = self.A @ x + c
        rows = self._at_kink(self._dual_prox(z, y)) if self.kinked else np.zeros(0, dtype=bool)
        if not self.sparse:
            return rows, np.ones(x.size, dtype=bool), np.zeros(x.size)
        slopes = y if self.kinked else problem.loss.derivative(z, problem.b)
        moved = x - self.primal_step * (self.A.T @ (self.w * slopes) + penalty.l2 * x)
        size = moved if penalty.positive else np.abs(moved)
        columns = size > self.primal_step * penalty.l1
        return rows, columns, np.where(columns, np.sign(moved), 0.0)

    def _dual_prox(self, z, y):
        return self.problem.loss.dual_prox(z, self.problem.b, y, self.dual_step)

    def _at_kink(self, v):
        epsilon = self.problem.loss.constants[1]
        lo, hi = self.problem._domain
        free = (v > lo) & (v < hi) & (self.w > 0.0)
        return free & (v != 0.0) if epsilon > 0.0 else free

    def step(self, x, c, y, guess):
        """Solve the linear system that the guess leaves; None where it is too large, or has none.

        Unknown are x_S, c and the y of the rows at kinks; the other y_i are given by the loss.
        """
        problem, penalty = self.problem, self.problem.penalty
        rows, columns, signs = guess
        S, K = np.flatnonzero(columns), np.flatnonzero(rows)
        if S.size + K.size > UNKNOWNS:
            return None
        x = np.where(columns, x, 0.0)
        z = self.A @ x + c
        B = self.B
        if S.size < x.size:
            B = B[:, np.append(S, x.size) if problem.intercept else S]
        m = B.shape[1]
        M, right = np.zeros((m + K.size, m + K.size)), np.zeros(m + K.size)
        if self.kinked:
            v = self._dual_prox(z, y)
            y = np.where(rows, y, v)
            wK, epsilon = self.w[K], problem.loss.constants[1]
            M[:m, m:] = B[K].T * wK
            M[m:, :m] = M[:m, m:].T
            right[m:] = wK * (problem.b[K] + epsilon * np.sign(v[K]) - z[K])
        else:
            y, curvature = self._expand(z)
            M[:m, :m] = _gram(B, self.w * curvature)
        M[np.arange(S.size), np.arange(S.size)] += penalty.l2
        right[:m] = -(B.T @ (self.w * y))
        right[: S.size] -= penalty.l2 * x[S] + penalty.l1 * signs[S]
        delta = _solve_symmetric(M, right, exact=not self.kinked)
        if delta is None:
            return None
        x[S] += delta[: S.size]
        if problem.intercept:
            c = c + float(delta[m - 1])
        if self.kinked:
            y[K] += delta[m:]
        else:
            y = problem.loss.derivative(self.A @ x + c, problem.b)
        return x, c, y

    def _expand(self, z):
        """phi' and phi''."""
        from .solvers.newton_kernels import expand_rows

        loss, n = self.problem.loss, self.problem.n
        y, p, curvature = np.empty(n), np.empty(n), np.empty(n)
        expand_rows(loss.code, *loss.constants, z, self.problem.b, np.ones(n), y, p, curvature)
        return y, curvature


def _gram(B, weight):
    """B' diag(weight) B over the rows that have a weight: few, for the losses of margins."""
    rows = np.flatnonzero(weight)
    if rows.size < 0.7 * weight.size:
        B, weight = B[rows], weight[rows]
    return (B.T * weight) @ B


def _solve_symmetric(M, right, exact):
    """The shortest solution: degenerate optima leave directions that are free.

    Where there is none, as where no row bends in the direction of the intercept, None if it has
    to be ``exact``: more rows guessed at a kink than fit there leave the next guess a better one.
    """
    scale = np.sqrt(np.maximum(np.abs(M).max(axis=1, initial=0.0), 1e-300))
    scaled, right = M / np.outer(scale, scale), right / scale
    factors, pivots, failed = lapack.dgetrf(scaled)
    if not failed:
        condition, failed = lapack.dgecon(factors, np.abs(scaled).sum(axis=0).max(initial=0.0))
        if condition > SINGULAR and not failed:
            return lapack.dgetrs(factors, pivots, right)[0] / scale
    if not (np.isfinite(scaled).all() and np.isfinite(right).all()):
        return None  # an overflow: no step is worth trying
    delta = np.linalg.lstsq(scaled, right, rcond=SINGULAR)[0]
    missed = np.max(np.abs(scaled @ delta - right), initial=0.0)
    if exact and missed > 1e-6 * np.max(np.abs(right), initial=0.0):
        return None
    return delta / scale


def dense(matrix: Matrix) -> np.ndarray:
    """The data as a float64 array."""
    if matrix.is_dense:
        return np.asarray(matrix.data, dtype=np.float64).reshape(matrix.shape)
    out = np.zeros(matrix.shape)
    rows = np.repeat(np.arange(matrix.shape[0]), matrix.row_sizes)
    out[rows, matrix.indices.astype(np.intp)] = matrix.data
    return out
