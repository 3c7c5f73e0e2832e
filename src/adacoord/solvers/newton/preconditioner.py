r"""What stands in for the Hessian in conjugate gradients: M ~ H, M^-1 r for O(d) or O(d^2).

Points are arrays of d + 1 rows, the last one the intercept's (zeros where there is none), and one
column per class for the multinomial loss.  With an intercept, H in the coordinates
(dx, dc + m.dx), m the mean of the rows weighted by the curvature, is the Hessian of the centred
columns beside a number for c: columns far from 0 are no harder than centred ones.  There M is

diagonal    the variances of the columns by the curvature, summed over the classes and shared out
            among them by their curvature, + l2: columns of unequal scale are no harder either.
            With WIDE times as many columns as rows the same number for all: steps then stay
            combinations of the rows, on which H is far from l2 (300 x 2,400, squared, scales from 1
            to 1e-3: 117 -> 39 passes to 1e-6; 400 x 3,000, huber 103 -> 52, Poisson 129 -> 87,
            logistic 60 -> 57)
factor      dense data only: Cholesky of each class's own Hessian, on 8 d rows or more drawn in
            proportion to their curvature, or on all of them: correlated columns are no harder
            either.  H M^-1 then has eigenvalues within (1 +- 1/sqrt(8))^2 or so (:mod:`.size`)

The diagonal comes first and follows the curvature; the factor takes its place when conjugate
gradients have made as many passes as it costs, or WAIT times as many where :mod:`.pairs` help them,
so that this is never more than a few times as much work as the better of the two.  The factor is
made anew when they have done so again, and the curvature has moved.  The squared loss has one
system to solve: there it is made once as many passes as independent columns would take, or more,
have shown that what is left, at the rate of their later half, costs more; on more columns than
rows, which stall on the way, when they have cost as much.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrs

from ...linalg.cholesky import Cholesky
from ...problem import Problem
from .in_blocks import sample_grams
from .in_blocks import spread as spread_block
from .kernels import curvature_blocks, distance, spread_columns
from .size import EASY_NATS, easy_passes, factor_price, factor_rows
from .systems import RIDGE, VANISHING

#: Dense rows that are enough for the variances of columns, to some 3 percent.
ENOUGH = 2048
#: Columns per row from which on their scales do not matter.
WIDE = 2
#: The curvature has moved when the shares of the rows in it differ by this, or its sum by this
#: factor.
MOVED, GREW = 0.5, 4.0
#: Prices of the factor that conjugate gradients spend before it is made, where they keep pairs.
WAIT = 2.0


class Preconditioner:
    """M; see the module's docstring."""

    def __init__(self, problem: Problem, w: np.ndarray, rng: np.random.Generator):
        self.problem, self.w, self.rng = problem, w, rng
        d = problem.d
        self.rows = factor_rows(problem)
        #: Passes that the factor costs.
        self.price = factor_price(problem)
        # pairs leave it less to do: two to three times its price was best on 15 random tables
        self.wait = 1.0 if problem.loss.blocks else WAIT
        self.squared = problem.loss.name == "squared"
        self.easy = easy_passes(problem) if self.squared else 0.0
        self.centre = np.zeros(d)
        self.diagonal = np.zeros((d + 1, *problem.x_shape[1:]))
        #: What is added to the Hessian where there is no l2: see :data:`.systems.RIDGE`.
        self.ridge = np.zeros(problem.x_shape)
        self.factor = np.zeros((0, d, d))
        self.curvature = np.zeros(0)  # what all of it was made for
        self.spent = 1  # passes since the factor was made; what costs one is made at once
        #: The logarithm of what the squared residual has fallen by, after each pass (squared loss).
        self.fallen = np.zeros(0)

    _state = ("centre", "diagonal", "ridge", "factor", "curvature", "spent", "fallen")

    def state(self) -> dict:
        return {f"preconditioner_{name}": np.array(getattr(self, name)) for name in self._state}

    def restore(self, state: dict) -> None:
        for name in self._state:
            value = state[f"preconditioner_{name}"]
            setattr(self, name, value.copy() if value.ndim else value.item())

    @property
    def first_due(self) -> bool:
        """Whether there is no factor yet, and it is worth its price by now."""
        if self.factor.size:
            return False
        if not self.squared or self.price <= 1.0:
            return self._affordable
        if self.problem.n < self.problem.d:
            return self.spent >= self.price
        if self.fallen.size < self.easy:
            return False
        half = self.fallen.size // 2
        rate = max(self.fallen[-1] - self.fallen[half - 1], 1e-3) / (self.fallen.size - half)
        return (EASY_NATS - self.fallen[-1]) / rate >= self.price

    @property
    def _affordable(self) -> bool:
        return self.spent >= self.wait * self.price

    def note(self, fallen: float) -> None:
        """What a pass has brought on the squared loss."""
        if self.factor.size == 0 and self.price < np.inf:
            self.fallen = np.append(self.fallen, fallen)

    def follow(self, curvature: np.ndarray) -> int:
        """Make M for what :meth:`.expansion.Scalars.expand` says; returns the entries touched."""
        worth = self.first_due or (self._affordable and self._moved(curvature))
        if not worth and (self.factor.size or not self._moved(curvature)):
            return 0
        rows, classes = self._sums(curvature)
        self.curvature = curvature
        if not worth and self.problem.matrix.is_dense and rows.size > 2 * ENOUGH:
            some, times = np.unique(self.rng.integers(rows.size, size=ENOUGH), return_counts=True)
            rows = _sparse(some, rows[some] * (times * (rows.size / ENOUGH)), rows.size)
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
        now, then = float(np.sum(curvature)), float(self.diagonal[-1])
        if not 1.0 / GREW < now / then < GREW:
            return True
        return distance(curvature, self.curvature, 1.0 / now, 1.0 / then) > MOVED

    def _sums(self, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The diagonals of the rows' Hessians, summed over the classes and over the rows."""
        if not self.problem.loss.blocks:
            return curvature, np.sum(curvature)
        rows, classes = np.empty(self.problem.n), np.empty(curvature.shape[1])
        curvature_blocks(curvature, self.problem.b, self.w, rows, classes)
        return rows, classes

    def _scale(self, rows: np.ndarray) -> None:
        m, d, held = self.problem.matrix, self.problem.d, self.diagonal[-1]
        wide = WIDE * self.problem.n <= d and self.problem.penalty.l2 > 0.0
        if wide:  # no pass over the data for one number
            mean = (rows @ m.squared_norms / np.sum(rows) - self.centre @ self.centre) / d
            spread = np.full(d, max(mean, 0.0) * np.sum(rows))
        elif m.by_columns:
            spread, seen = np.zeros(d), np.zeros(d)
            spread_columns(*m.columns.arrays, rows, self.centre, spread, seen)
        else:
            spread, seen = m.gather(spread_block, self.centre, rows=(rows,))[1]
        if not (wide or m.is_dense):
            spread += np.maximum(np.sum(rows) - seen, 0.0) * np.square(self.centre)
        self.diagonal[:-1] = np.multiply.outer(spread, held / np.sum(held))
        self._regularise(self.diagonal[:-1])
        self.diagonal[:-1] += self.problem.penalty.l2 + self.ridge
        self.diagonal[self.diagonal <= 0.0] = 1.0  # columns of zeros

    def _regularise(self, variances: np.ndarray) -> None:
        """The ridge of an unpenalised problem, of the diagonal of its Hessian."""
        if self.problem.penalty.l2 == 0.0:
            self.ridge = RIDGE * variances
            self.ridge += np.multiply.outer(VANISHING * np.square(self.centre), self.diagonal[-1])

    def _factorise(self, rows: np.ndarray, curvature: np.ndarray) -> None:
        times = np.ones(rows.size)
        if self.rows < rows.size:
            times = drawn_times(self.rows, rows, self.rng)
        D = curvature.reshape(rows.size, -1)
        if self.problem.loss.blocks:
            D = D.copy()
            D[np.arange(rows.size), self.problem.b] += 1.0
            D *= (1.0 - D) * self.w[:, None]
        _, (grams,) = self.problem.matrix.gather(sample_grams, self.centre, rows=(times, D))
        self._regularise(np.einsum("kii->ik", grams).reshape(self.problem.x_shape))
        least = self.problem.penalty.l2 + self.ridge.reshape(self.problem.d, -1).T
        self.factor = np.empty(grams.shape)
        for k, H in enumerate(grams):
            np.einsum("ii->i", H)[:] += least[k]
            self.factor[k] = Cholesky(H).factor.T
        self.spent = 0

    def eliminate(self, r: np.ndarray) -> np.ndarray:
        """The residual r for x in the coordinates of the centred columns."""
        if not self.problem.intercept:
            return r[:-1]
        return r[:-1] - (self.centre * r[-1] if r.ndim == 1 else np.outer(self.centre, r[-1]))

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
            # a product: NumPy's mean of short rows takes 20 ns for each
            out -= (out @ np.full(r.shape[1], 1.0 / r.shape[1]))[:, None]
        return out


def drawn_times(size: int, share: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """How often each row is drawn in ``size`` draws by ``share``, over how often it would be.

    One draw from each of ``size`` equal parts of the sum, by bisection: NumPy's multinomial draws a
    number for each row (400,000 rows: 12 -> 2 ms).
    """
    ends = np.cumsum(share)
    drawn = np.arange(size) + rng.random(size)
    drawn *= ends[-1] / size
    last = np.searchsorted(ends, ends[-1])  # of those that have a share
    drawn = np.minimum(np.searchsorted(ends, drawn, side="right"), last)
    first = np.flatnonzero(np.diff(drawn, prepend=-1))
    rows, times = drawn[first], np.diff(first, append=size)
    return _sparse(rows, times * (ends[-1] / size) / share[rows], share.size)


def _sparse(rows: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """``values`` in these rows and zeros in all others, whose memory nobody has to write to."""
    out = np.zeros(size)
    out[rows] = values
    return out
