r"""What stands in for the Hessian in conjugate gradients: M ~ H, M^-1 r for O(d) or O(d^2).

Points are arrays of d + 1 rows, the last one the intercept's (zeros where there is none), and one
column per class for the multinomial loss.  With an intercept, H in the coordinates
(dx, dc + m.dx), m the mean of the rows weighted by the curvature, is the Hessian of the centred
columns beside a number for c: columns far from 0 are no harder than centred ones.  There M is

diagonal    the variances of the columns by the curvature, summed over the classes and shared out
            among them by their curvature, + l2: columns of unequal scale are no harder either
factor      dense data only: Cholesky of each class's own Hessian, on SAMPLE d rows (or all of
            them) drawn in proportion to their curvature: correlated columns are no harder either.
            H M^-1 then has eigenvalues within (1 +- 1/sqrt(SAMPLE))^2 or so

The diagonal comes first and follows the curvature; the factor takes its place when conjugate
gradients have made as many passes as it costs, so that this is never more than twice as much work
as the better of the two.  The factor is made anew when they have done so again, and the curvature
has moved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrs

from ...data.columns import as_scipy
from ...linalg.cholesky import Cholesky
from ...problem import Problem
from .kernels import spread_columns, spread_rows
from .systems import RIDGE

#: Rows of the sample, in columns.
SAMPLE = 4
#: The curvature has moved when it differs by this share of its sum.
MOVED = 0.3
#: Multiply-adds of BLAS in the time in which conjugate gradients handle an entry of A: for one
#: number per row, and for several, which are products of matrices themselves.
BLAS, BLAS_BLOCKS = 12.0, 2.0
#: Bytes of factors that may be held.
LARGEST = 2**28


class Preconditioner:
    """M; see the module's docstring."""

    def __init__(self, problem: Problem, rng: np.random.Generator):
        self.problem, self.rng = problem, rng
        n, d, classes = problem.n, problem.d, problem.n_classes or 1
        self.rows = min(n, SAMPLE * d)
        work = (self.rows * d**2 + d**3 / 3) / (BLAS_BLOCKS if problem.loss.blocks else BLAS)
        fits = problem.matrix.is_dense and 8 * classes * d**2 <= LARGEST
        #: Passes that the factor costs.
        self.price = work / (n * d) if fits else np.inf
        self.centre = np.zeros(d)
        self.diagonal = np.zeros((d + 1, *problem.x_shape[1:]))
        self.factor = np.zeros((0, d, d))
        self.curvature = np.zeros(0)  # what all of it was made for
        self.spent = 0  # passes since the factor was made, or from the start

    _state = ("centre", "diagonal", "factor", "curvature", "spent")

    def state(self) -> dict:
        return {f"preconditioner_{name}": np.array(getattr(self, name)) for name in self._state}

    def restore(self, state: dict) -> None:
        for name in self._state:
            value = state[f"preconditioner_{name}"]
            setattr(self, name, int(value) if name == "spent" else value.copy())

    def due(self, curvature: Callable[[], np.ndarray]) -> bool:
        """Whether a factor is worth its price by now."""
        return self.spent >= self.price and (self.factor.size == 0 or self._moved(curvature()))

    def follow(self, D: np.ndarray) -> int:
        """Make M for the curvature D, of shape (n,) or (n, K); returns the entries touched."""
        if self.due(lambda: D):
            return self._factorise(D)
        if self.factor.size or not self._moved(D):
            return 0
        return self._scale(D)

    def _moved(self, D: np.ndarray) -> bool:
        if self.curvature.size == 0:
            return True
        return float(np.sum(np.abs(D - self.curvature))) > MOVED * float(np.sum(D))

    def _centre(self, total: np.ndarray) -> None:
        if self.problem.intercept:
            self.centre = self.problem.matrix.tdot(total) / float(np.sum(total))

    def _held(self, D: np.ndarray) -> np.ndarray:
        """What holds the intercepts: the sums of the curvature, none of them next to nothing."""
        sums = np.sum(D, axis=0)
        return np.maximum(sums, 1e-10 * np.max(sums))

    def _scale(self, D: np.ndarray) -> int:
        m, l2, d = self.problem.matrix, self.problem.penalty.l2, self.problem.d
        total = D.reshape(D.shape[0], -1).sum(axis=1)
        self._centre(total)
        spread, seen = np.zeros(d), np.zeros(d)
        if m.by_columns:
            spread_columns(*m.columns.arrays, total, self.centre, spread, seen)
        else:
            spread_rows(*m.arrays, total, self.centre, spread, seen)
        if not m.is_dense:
            spread += np.maximum(np.sum(total) - seen, 0.0) * np.square(self.centre)
        held = self._held(D)
        self.diagonal[:d] = np.multiply.outer(spread, held / np.sum(held)) + l2
        self.diagonal[d] = held
        self.diagonal[self.diagonal <= 0.0] = 1.0  # columns of zeros
        self.curvature = D
        return (1 + self.problem.intercept) * m.nnz

    def _factorise(self, D: np.ndarray) -> int:
        m, l2, d = self.problem.matrix, self.problem.penalty.l2, self.problem.d
        total = D.reshape(D.shape[0], -1).sum(axis=1)
        times = np.ones(total.size)
        if self.rows < total.size:
            chance = total / np.sum(total)
            drawn = self.rng.multinomial(self.rows, chance)
            times = np.divide(drawn, self.rows * chance, out=np.zeros_like(chance), where=drawn > 0)
        self._centre(total)
        sample = np.flatnonzero(times)
        block = as_scipy(m)[sample] - self.centre
        factors = []
        for weight in D[sample].reshape(sample.size, -1).T:
            rows = np.sqrt(times[sample] * weight)[:, None] * block
            H = rows.T @ rows
            np.einsum("ii->i", H)[:] += l2
            factors.append(Cholesky(H, RIDGE if l2 == 0.0 else 0.0).factor)
        self.factor = np.array(factors)
        self.diagonal[d] = self._held(D)
        self.curvature, self.spent = D, 0
        return self.problem.intercept * m.nnz + int(self.price * m.nnz)

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
            out[:d] = dpotrs(self.factor[0], inner, lower=1)[0]
        else:
            for k, factor in enumerate(self.factor):
                out[:d, k] = dpotrs(factor, inner[:, k], lower=1)[0]
        out[d] = 0.0
        if self.problem.intercept:
            out[d] = r[d] / self.diagonal[d] - self.centre @ out[:d]
        if r.ndim > 1:  # what all classes share changes no probability
            out -= out.mean(axis=1, keepdims=True)
        return out
