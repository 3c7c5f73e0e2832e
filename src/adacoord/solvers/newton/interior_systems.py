r"""The systems of an interior point: (dx, dc) and dv = Q (B (dx, dc) - xi) with B'dv = -``back``.

B has the rows [A, 1] and [I, 0], and Q = diag(D, E) is positive.

By columns   (B'QB)(dx, dc) = B'Q xi - back: d x d, the intercept eliminated, which centres the
             columns.  What is left of B'dv = -back costs the bound of the judge as much as x may
             be: it is solved for again, until it is of the size of rounding
By rows      dv_E = -back - A'dv_D makes B'dv what it should be, and dx = xi_E + dv_E/E; for dv_D
             = R w, R = sqrt(D), it remains to solve (I + R A E^-1 A'R) w = R (A (xi_E - back/E) -
             xi_D + dc): n x n, and 1'dv_D gives dc
"""

from __future__ import annotations

import numpy as np

from ...data.columns import as_scipy
from ...kernels.gram import sparse_gram
from ...linalg.cholesky import Cholesky
from ...linalg.gram import weighted_gram
from ...problem import Problem

#: Entries of a block of dense columns (2 MB), and columns of one at least.
BLOCK, NARROW = 2**18, 256
#: Refinements at most (rarely more than one), and what sums leave, beside their terms' length.
REFINEMENTS, ROUNDING = 4, 1e-15


def times(problem: Problem, x: np.ndarray, c: float) -> np.ndarray:
    """B (x, c)."""
    return np.concatenate([problem.matrix.dot(x) + c, x])


def back_of(problem: Problem, v: np.ndarray) -> tuple[np.ndarray, float]:
    """B'v."""
    n = problem.n
    total = float(np.sum(v[:n])) if problem.intercept else 0.0
    return problem.matrix.tdot(v[:n]) + v[n:], total


def smaller_side(problem: Problem, bare: bool):
    """The system of ``problem``; ``bare`` says that some column has no term at all, and E a 0."""
    rows = problem.n < problem.d and not problem.matrix.blocked and not bare
    return ByRows(problem) if rows else ByColumns(problem)


class ByColumns:
    """d x d."""

    def __init__(self, problem: Problem):
        self.problem, self.matrix = problem, problem.matrix
        n, d = problem.n, problem.d
        pairs = n * d * (d + 1) if self.matrix.is_dense else self.matrix.nnz * d
        self.cost = pairs // 2 + d**3 // 6
        self.lengths, self.root = problem._column_lengths, n**0.5

    def factorise(self, q: np.ndarray) -> None:
        n, self.q = self.problem.n, q
        self.mass = np.sum(q[:n])  # 0 where all underflow: NaN, which ends the run
        self.centre = self.matrix.tdot(q[:n]) / self.mass if self.problem.intercept else None
        H = weighted_gram(self.matrix, q[:n], self.centre)
        np.einsum("ii->i", H)[:] += q[n:]
        self.factor = Cholesky(H)

    def direction(self, xi, back, refine: bool) -> tuple[np.ndarray, float, np.ndarray]:
        gx, gc = back_of(self.problem, self.q * xi)
        dx, dc = self._solve(gx - back[0], gc - back[1])
        dv = self.q * (times(self.problem, dx, dc) - xi)
        for _ in range(REFINEMENTS if refine else 0):
            gx, gc = back_of(self.problem, dv)
            gx, gc = back[0] + gx, back[1] + gc
            size = ROUNDING * float(np.linalg.norm(dv[: self.problem.n]))
            if abs(gc) <= size * self.root and (np.abs(gx) <= size * self.lengths).all():
                break
            ex, ec = self._solve(-gx, -gc)
            dv = dv + self.q * times(self.problem, ex, ec)
            dx, dc = dx + ex, dc + ec
        return dx, dc, dv

    def _solve(self, gx, gc) -> tuple[np.ndarray, float]:
        if self.centre is None:
            return self.factor.solve(gx), 0.0
        dx = self.factor.solve(gx - self.centre * gc)
        return dx, float(gc / self.mass - np.sum(self.centre * dx))


class ByRows:
    """n x n."""

    def __init__(self, problem: Problem):
        self.problem, self.matrix = problem, problem.matrix
        n, d = problem.n, problem.d
        pairs = d * n * (n + 1) if self.matrix.is_dense else self.matrix.nnz * n
        self.cost = pairs // 2 + n**3 // 6
        self.centre = np.zeros(d)
        if problem.intercept:  # any will do: dc takes up what it adds
            self.centre = self.matrix.tdot(np.ones(n)) / n

    def factorise(self, q: np.ndarray) -> None:
        n = self.problem.n
        self.root, self.E = np.sqrt(q[:n]), q[n:]
        M = self._kernel(1.0 / self.E)
        M *= self.root[:, None]
        M *= self.root
        np.einsum("ii->i", M)[:] += 1.0
        self.factor = Cholesky(M)

    def _kernel(self, F: np.ndarray) -> np.ndarray:
        """A_c diag(F) A_c' of the centred data."""
        m, (n, d) = self.matrix, self.matrix.shape
        K = np.zeros((n, n))
        if m.is_dense:
            A, root, step = as_scipy(m), np.sqrt(F), max(BLOCK // n, NARROW)
            for first in range(0, d, step):
                part = slice(first, first + step)
                block = A[:, part] - self.centre[part]
                block *= root[part]
                K += block @ block.T
            return K
        sparse_gram(*m.columns.arrays, F, K)
        if self.centre.any():
            across = m.dot(F * self.centre)
            K -= across
            K -= across[:, None]
            K += float(np.sum(F * np.square(self.centre)))
        return K

    def direction(self, xi, back, refine: bool) -> tuple[np.ndarray, float, np.ndarray]:
        n, root = self.problem.n, self.root
        inner = xi[n:] - (back[0] - self.centre * back[1]) / self.E
        w, dc = self._solve(root * (self._times(inner) - xi[:n]), -back[1])
        dx, dv = self._columns(xi, back, w)
        if refine:  # what is left of the rows: P is not what the program says of it by as much
            left = root * (self._times(dx) + dc - xi[:n]) - w
            ew, ec = self._solve(left, 0.0)
            w, dc = w + ew, dc + ec
            dx, dv = self._columns(xi, back, w)
        return dx, dc - float(np.sum(self.centre * dx)), dv

    def _times(self, x) -> np.ndarray:
        """A_c x."""
        return self.matrix.dot(x) - float(np.sum(self.centre * x))

    def _columns(self, xi, back, w) -> tuple[np.ndarray, np.ndarray]:
        """(dx, dv) that go with the w of the rows."""
        n = self.problem.n
        dv = np.concatenate([self.root * w, -back[0]])
        dv[n:] -= self.matrix.tdot(dv[:n])
        return xi[n:] + dv[n:] / self.E, dv

    def _solve(self, right, total) -> tuple[np.ndarray, float]:
        """(w, dc) with (I + R K R) w = right + R dc and 1'R w = total, for an intercept."""
        w = self.factor.solve(right)
        if not self.problem.intercept:
            return w, 0.0
        one = self.factor.solve(self.root)
        dc = (total - np.sum(self.root * w)) / np.sum(self.root * one)  # NaN: as by columns
        return w + dc * one, float(dc)
