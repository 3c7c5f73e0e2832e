r"""Least squares under x >= 0 without a penalty, which no solver of a certified gap takes.

Problem   min 1/2 sum_i w_i (a_i'x + c - b_i)^2 over x >= 0 and c
Pivoting  by blocks on the Gram matrix of columns of length 1 (Portugal, Judice and Vicente 1994;
          Kim and Park 2011): with x = G_FF^-1 q_F on a set F of columns and 0 elsewhere, all
          columns with x_j < 0 leave F, and all that would lower the sum come in; only the last of
          them where that has not helped PATIENCE times.  3 to 8 factors are all it takes where
          columns are not many more than rows, and independent enough
Reduced   where they are not, or the monitor is not content, to the triangle R of
          sqrt(w) [1, A - m, b - m_b] = Q R, m being the means: rows are many, and columns stay as
          they are.  R is made of blocks of rows, so that sparse and tall data need no dense copy;
          its first row and column are the intercept's, and go.  No more rows than columns are left
          as they are.
Solved    then by the active sets of Lawson and Hanson (SciPy's), with columns scaled to length 1:
          in all units the same.  Columns without length (of zeros, constant beside an intercept)
          get 0.

A pass    is all of one or the other (CPU ms, the second and the first: 2,000 x 300 numbers 23 and
          9, 20,000 x 100 36 and 16, 1,000 x 1,500 261 and 95).  There is no duality gap: the
          monitor looks at the slopes.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr
from scipy.optimize import nnls

from ...data.columns import as_scipy
from ...linalg.cholesky import definite
from ...linalg.gram import centred_gram, weighted_gram
from ...linalg.moments import CONSTANT
from ...problem import Problem
from ..base import Solver

#: Numbers that the triangle may have (32 MB).
LARGEST = 2**22
#: Numbers of a block of rows (1 MB; 20,000 x 100 at once: 50 -> 75 ms), and how many times as many
#: rows as columns it has at least.
BLOCK, SQUARES = 2**17, 4
#: Columns for each row, and steps, up to which pivoting by blocks is tried; exchanges of all
#: columns that may fail to leave fewer to exchange; what is not below 0, of slopes of at most 1.
WIDEST, EXCHANGES, PATIENCE, TINY = 2, 50, 3, 1e-12
#: Steps of the active sets, in units of the columns; SciPy's own limit is 3.
STEPS = 10


class NonNegativeLeastSquares(Solver):
    """Least squares with x >= 0 and no penalty; see the module's docstring."""

    name = "newton"
    patient = uses_blas = True
    check_cost = 20.0
    _state = ("point", "c", "stuck", "way")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        n, d = problem.matrix.shape
        if min(n, d) * d > LARGEST:
            raise ValueError(
                f"A has shape {(n, d)}: without a penalty, coefficients of zero or more are found "
                f"by active sets on dense {min(n, d)} x {d} numbers, which is too large; give a "
                "small penalty instead (alpha, l1 or l2 of 1e-8, say)"
            )
        self.point, self.c = self._start[0].astype(np.float64), float(self._start[1])
        self.way = 0  # how many of the two have been gone

    @property
    def x(self):
        return self.point

    @property
    def intercept(self):
        return self.c

    def _pass(self):
        problem, found = self.problem, None
        if self.way == 2:
            self.stuck = True
            return
        if self.way == 0:
            found, self.way = by_pivoting(problem), 1
        if found is None:
            found, self.way = solve_nonnegative(problem), 2
        if found is not None:
            self.point, self.c = found
            self.y = problem.loss.derivative(problem.predict(*found), problem.b)
        self.estimate = 0.0
        self.operations += problem.matrix.nnz * problem.d


def by_pivoting(problem: Problem) -> tuple[np.ndarray, float] | None:
    """(x, c); None where that is not the way."""
    n, d = problem.matrix.shape
    if d > WIDEST * n or d * d > LARGEST:
        return None
    w = np.ones(n) if problem.weights is None else problem.weights
    means, target_mean = np.zeros(d), 0.0
    if problem.intercept:
        gram, means = centred_gram(problem.matrix, w)
        target_mean = float(np.sum(w * problem.b) / w.sum())
    else:
        gram = weighted_gram(problem.matrix, w)
    b = problem.b - target_mean
    squares, unit = gram.diagonal().copy(), float(np.sqrt(np.sum(w * b * b)))
    kept = squares > CONSTANT * (squares + float(w.sum()) * np.square(means))
    if not (unit > 0.0 and kept.all()):
        return None
    lengths = np.sqrt(squares)
    gram /= lengths
    gram /= lengths[:, None]
    x = pivoted(gram, n * problem.average(b) / lengths / unit, n)
    if x is None:
        return None
    x *= unit / lengths
    return x, target_mean - float(np.sum(means * x)) if problem.intercept else 0.0


def pivoted(gram: np.ndarray, q: np.ndarray, rows: int) -> np.ndarray | None:
    """argmin x'Gx/2 - q.x over x >= 0; None where exchanges of all columns do not find it."""
    inside = q > TINY
    inside[np.argsort(-q)[rows // 2 :]] = False  # the best only: a Gram matrix has no greater rank
    fewest, patience = q.size + 1, PATIENCE
    for _ in range(EXCHANGES):
        x, places = np.zeros(q.size), np.flatnonzero(inside)
        if places.size:
            factor = definite(gram[np.ix_(places, places)])
            if factor is None:
                return None
            x[places] = factor.solve(q[places])
        wrong = np.where(inside, x < 0.0, gram @ x - q < -TINY)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return x
        patience = PATIENCE if count < fewest else patience - 1
        fewest = min(count, fewest)
        if patience < 0:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        inside ^= wrong
    return None


def solve_nonnegative(problem: Problem) -> tuple[np.ndarray, float] | None:
    """(x, c); None where the active sets find no end."""
    n, d = problem.matrix.shape
    R, means, target_mean = _triangle(problem)
    lengths = np.linalg.norm(R[:, :d], axis=0)
    # what is left of a constant column is the rounding of its mean
    weight = 1.0 if problem.weights is None else float(np.max(problem.weights))
    noise = 8.0 * np.finfo(np.float64).eps * np.sqrt(n * weight) * np.abs(means)
    kept = np.flatnonzero(lengths > noise)
    x = np.zeros(d)
    if kept.size:
        unit = float(np.linalg.norm(R[:, d])) or 1.0
        try:
            found, _ = nnls(R[:, kept] / lengths[kept], R[:, d] / unit, maxiter=STEPS * kept.size)
            x[kept] = found / lengths[kept] * unit
        except RuntimeError:  # too many steps
            return None
    return x, target_mean - float(np.sum(means * x)) if problem.intercept else 0.0


def _triangle(problem: Problem) -> tuple[np.ndarray, np.ndarray, float]:
    """(R without the intercept, the means that were subtracted): of d columns and the targets."""
    n, d = problem.matrix.shape
    A, b = as_scipy(problem.matrix), problem.b
    w = np.ones(n) if problem.weights is None else problem.weights
    means, target_mean = np.zeros(d), 0.0
    if problem.intercept:
        means = problem.matrix.tdot(w) / w.sum()
        target_mean = float(np.sum(w * b) / w.sum())
    first = int(problem.intercept)
    width, held = first + d + 1, 0  # held: rows of the triangle so far
    rows = min(n, max(SQUARES * width, BLOCK // width))
    room = np.empty((width + rows, width), order="F")
    for i in range(0, n, rows):
        part = slice(i, min(i + rows, n))
        stack = room[: held + part.stop - i]
        block = stack[held:]
        np.subtract(
            A[part] if problem.matrix.is_dense else A[part].toarray(), means, out=block[:, first:-1]
        )
        np.subtract(b[part], target_mean, out=block[:, -1])
        if first:
            block[:, 0] = 1.0
        if problem.weights is not None:
            block *= np.sqrt(w[part])[:, None]
        if n <= width:  # there is nothing to reduce, and the means are off already
            return stack[:, first:], means, target_mean
        triangle = qr(stack, overwrite_a=True, mode="r", check_finite=False)[0]
        held = min(len(stack), width)
        room[:held] = triangle[:held]
    return room[first:held, first:].copy(order="F"), means, target_mean
