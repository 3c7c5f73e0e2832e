r"""What stands in for the Hessian in conjugate gradients: M ~ H, M^-1 r for O(d) or O(d^2).

Points are arrays of d + 1 rows, the last one the intercept's (zeros where there is none), and one
column per class for the multinomial loss.  With an intercept, H in the coordinates
(dx, dc + m.dx), m the mean of the rows weighted by the curvature, is the Hessian of the centred
columns beside a number for c: columns far from 0 are no harder than centred ones.  There M is

diagonal    the variances of the columns by the curvature, summed over the classes and shared out
            among them by their curvature, + l2: columns of unequal scale are no harder either
factor      dense data only: Cholesky of each class's own Hessian, on SAMPLE d rows or more drawn in
            proportion to their curvature, or on all of them: correlated columns are no harder
            either.  H M^-1 then has eigenvalues within (1 +- 1/sqrt(SAMPLE))^2 or so

The diagonal comes first and follows the curvature; the factor takes its place when conjugate
gradients have made as many passes as it costs, so that this is never more than twice as much work
as the better of the two.  The factor is made anew when they have done so again, and the curvature
has moved.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrs

from ...data.columns import as_scipy
from ...linalg.cholesky import Cholesky
from ...problem import Problem
from .kernels import curvature_blocks, spread_columns, spread_rows
from .systems import RIDGE

#: Rows of the sample, in columns.
SAMPLE = 8
#: Dense rows that are enough for the variances of columns, to some 3 percent.
ENOUGH = 2048
#: The curvature has moved when the shares of the rows in it differ by this, or its sum by this
#: factor.
MOVED, GREW = 0.5, 4.0
#: Multiply-adds of BLAS in the time in which conjugate gradients handle an entry of A: for one
#: number per row, and for several, which are products of matrices themselves.
BLAS, BLAS_BLOCKS = 20.0, 10.0
#: Multiply-adds of BLAS in the time in which an entry of A is copied and scaled for it.
SCALED = 30
#: Bytes of factors that may be held.
LARGEST = 2**28


class Preconditioner:
    """M; see the module's docstring."""

    def __init__(self, problem: Problem, w: np.ndarray, rng: np.random.Generator):
        self.problem, self.w, self.rng = problem, w, rng
        n, d, classes = problem.n, problem.d, problem.n_classes or 1
        rate = BLAS_BLOCKS if problem.loss.blocks else BLAS
        # few rows have a share in many classes; and more rows are better while they cost little
        self.rows = min(n, max(SAMPLE * d * classes, int(rate * n / (d + SCALED))))
        work = (self.rows * d * (d + SCALED) + d**3 / 3) / rate
        fits = problem.matrix.is_dense and 8 * classes * d**2 <= LARGEST
        #: Passes that the factor costs.
        self.price = work / (n * d) if fits else np.inf
        self.centre = np.zeros(d)
        self.diagonal = np.zeros((d + 1, *problem.x_shape[1:]))
        self.factor = np.zeros((0, d, d))
        self.curvature = np.zeros(0)  # what all of it was made for
        self.spent = 1  # passes since the factor was made; what costs one is made at once

    _state = ("centre", "diagonal", "factor", "curvature", "spent")

    def state(self) -> dict:
        return {f"preconditioner_{name}": np.array(getattr(self, name)) for name in self._state}

    def restore(self, state: dict) -> None:
        for name in self._state:
            value = state[f"preconditioner_{name}"]
            setattr(self, name, int(value) if name == "spent" else value.copy())

    @property
    def first_due(self) -> bool:
        """Whether there is no factor yet, and it is worth its price by now."""
        return self.factor.size == 0 and self.spent >= self.price

    def follow(self, curvature: np.ndarray) -> int:
        """Make M for what :meth:`.expansion.Scalars.expand` says; returns the entries touched."""
        worth = self.first_due or (self.spent >= self.price and self._moved(curvature))
        if not worth and (self.factor.size or not self._moved(curvature)):
            return 0
        rows, classes = self._sums(curvature)
        self.curvature = curvature
        if not worth and self.problem.matrix.is_dense and rows.size > 2 * ENOUGH:
            chance = ENOUGH / rows.size
            rows = np.where(self.rng.random(rows.size) < chance, rows / chance, 0.0)
        if self.problem.intercept:
            self.centre = self.problem.matrix.tdot(rows) / float(np.sum(rows))
        # what holds the intercepts: none of it next to nothing
        self.diagonal[-1] = np.maximum(classes, 1e-10 * np.max(classes))
        touched = self.problem.intercept * self.problem.matrix.nnz
        if worth:
            self._factorise(rows, curvature)
            return touched + int(self.price * self.problem.matrix.nnz)
        self._scale(rows)
        return touched + self.problem.matrix.nnz

    def _moved(self, curvature: np.ndarray) -> bool:
        """Whether the curvature is far from that which M was made for."""
        if self.curvature.size == 0:
            return True
        if self.problem.loss.blocks:  # changes of the probabilities, and of what they weigh
            away = float(self.w @ np.abs(curvature - self.curvature).sum(axis=1))
            return away > MOVED * float(np.sum(self._sums(curvature)[0]))
        now, then = float(np.sum(curvature)), float(np.sum(self.curvature))
        away = float(np.sum(np.abs(curvature / now - self.curvature / then)))
        return away > MOVED or not 1.0 / GREW < now / then < GREW

    def _sums(self, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The diagonals of the rows' Hessians, summed over the classes and over the rows."""
        if not self.problem.loss.blocks:
            return curvature, np.sum(curvature)
        rows, classes = np.empty(self.problem.n), np.empty(curvature.shape[1])
        curvature_blocks(curvature, self.problem.b, self.w, rows, classes)
        return rows, classes

    def _scale(self, rows: np.ndarray) -> None:
        m, d, held = self.problem.matrix, self.problem.d, self.diagonal[-1]
        spread, seen = np.zeros(d), np.zeros(d)
        if m.by_columns:
            spread_columns(*m.columns.arrays, rows, self.centre, spread, seen)
        else:
            spread_rows(*m.arrays, rows, self.centre, spread, seen)
        if not m.is_dense:
            spread += np.maximum(np.sum(rows) - seen, 0.0) * np.square(self.centre)
        self.diagonal[:-1] = np.multiply.outer(spread, held / np.sum(held))
        self.diagonal[:-1] += self.problem.penalty.l2
        self.diagonal[self.diagonal <= 0.0] = 1.0  # columns of zeros

    def _factorise(self, rows: np.ndarray, curvature: np.ndarray) -> None:
        times = np.ones(rows.size)
        if self.rows < rows.size:
            chance = rows / np.sum(rows)
            drawn = self.rng.multinomial(self.rows, chance)
            times = np.divide(drawn, self.rows * chance, out=np.zeros_like(chance), where=drawn > 0)
        sample = np.flatnonzero(times)
        D = curvature[sample].reshape(sample.size, -1)
        if self.problem.loss.blocks:
            D[np.arange(sample.size), self.problem.b[sample]] += 1.0
            D *= (1.0 - D) * self.w[sample, None]
        D *= times[sample, None]
        block, l2 = as_scipy(self.problem.matrix)[sample] - self.centre, self.problem.penalty.l2
        self.factor = np.empty((D.shape[1], self.problem.d, self.problem.d))
        for k, weight in enumerate(D.T):
            scaled = np.sqrt(np.maximum(weight, 1e-100))[:, None] * block
            H = scaled.T @ scaled
            np.einsum("ii->i", H)[:] += l2
            self.factor[k] = Cholesky(H, RIDGE if l2 == 0.0 else 0.0).factor.T
        self.spent = 0

    def eliminate(self, r: np.ndarray) -> np.ndarray:
        """The residual r for x in the coordinates of the centred columns."""
        if not self.problem.intercept:
            return r[:-1]
        return r[:-1] - np.multiply.outer(self.centre, r[-1])

    def solve(self, r: np.ndarray) -> np.ndarray:
        """M^-1 r."""
        d, out = self.problem.d, np.empty_like(r)
        inner = self.eliminate(r)
        if self.factor.size == 0:
            out[:d] = inner / self.diagonal[:d]
        elif r.ndim == 1:
            out[:d] = dpotrs(self.factor[0].T, inner, lower=1)[0]
        else:
            for k, factor in enumerate(self.factor):
                out[:d, k] = dpotrs(factor.T, inner[:, k], lower=1)[0]
        out[d] = 0.0
        if self.problem.intercept:
            out[d] = r[d] / self.diagonal[d] - self.centre @ out[:d]
        if r.ndim > 1:  # what all classes share changes no probability
            out -= out.mean(axis=1, keepdims=True)
        return out
