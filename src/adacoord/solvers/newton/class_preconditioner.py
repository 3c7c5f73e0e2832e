r"""What stands in for the Hessian of several classes on dense data: M ~ H, M^-1 r.

Points are arrays of d + 1 rows, the last one the intercept's, and one column per class.  As in
:mod:`.preconditioner` the columns of A are centred, and classes are coupled by nothing but that
what they share changes no probability.  For class k, with the curvature D = w p_k (1 - p_k), M is

axes        sum(D) S + l2, S the second moments of the centred columns: one decomposition into
            axes for all classes, and exact where probabilities do not depend on the row, as at
            x = 0.  Until it is worth its price, S is its diagonal
blocks      A' diag(D) A + l2: each class's own Hessian, inverted

D is made anew every EVERY passes; the next form takes its place when PATIENCE times as many passes
have been made as it costs.  Iterations of L-BFGS to 1e-4 with the diagonal, axes, blocks: 7,316 x
23 of 32 classes 42, 18, 17; 3,000 x 20 of 300 noisy clusters 221, 250, 150.
"""

from __future__ import annotations

import numpy as np

from ...data.columns import as_scipy
from ...data.matrix import principal_axes, sampled_rows
from ...problem import Problem
from .class_kernels import curvature_rows, pairs_of_entries
from .kernels import curvature_blocks

#: Passes after which the curvature is looked at again.
EVERY = 8
#: Passes that a form has to wait for, in units of those that it costs; passes that are no matter.
PATIENCE, AT_ONCE = 4.0, 2.0
#: Multiply-adds of BLAS in the time of: an entry of a prediction in a pass, beside the products;
#: an entry of A that is copied and scaled; a pair of entries of a row; an entry of a matrix that is
#: decomposed or inverted, times its rows.
ENTRY, SCALED, PAIR, DECOMPOSED, INVERTED = 50, 30, 20, 40, 4
#: ... and of the calls of a pass.
CALLS = 5_000_000
#: Numbers in a block of pairs.
CACHED = 2**17
#: Bytes of inverses that may be held.
LARGEST = 2**28
#: Of the diagonal, for definiteness; of the largest variance, or of the square of a mean, where
#: nothing but rounding is left.
RIDGE, VANISHING = 1e-10, 1e-12


class ClassPreconditioner:
    """M; see the module's docstring."""

    def __init__(self, problem: Problem, w: np.ndarray):
        self.problem, self.w = problem, w
        n, d, classes = problem.n, problem.d, problem.n_classes or 1
        self.array = as_scipy(problem.matrix)
        each = n * classes * (2 * d + ENTRY) + CALLS
        sample = len(range(n)[sampled_rows(n, d)])
        #: Passes that the axes cost, and the blocks: by pairs of entries, or class by class.
        self.axes_price = (sample * d * (d / 2 + SCALED) + DECOMPOSED * d**3) / each
        pairs, one_by_one = d * (d / 2) * (classes + PAIR), classes * d * (d / 2 + SCALED)
        self.by_pairs = pairs < one_by_one
        fits = 8 * classes * d**2 <= LARGEST
        work = n * min(pairs, one_by_one) + INVERTED * classes * d**3
        self.blocks_price = work / each if fits else np.inf
        self.centre, self.spread, self.axes = np.zeros(d), np.zeros(0), np.zeros((0, 0))
        self.diagonal = np.zeros((d + 1, classes))
        self.inverse = np.zeros((0, d, d))
        self.spent = self.due = 0  # passes so far, and those after which M is made anew

    _state = ("centre", "spread", "axes", "diagonal", "inverse", "spent", "due")

    def state(self) -> dict:
        return {f"preconditioner_{name}": np.array(getattr(self, name)) for name in self._state}

    def restore(self, state: dict) -> None:
        for name in self._state:
            value = state[f"preconditioner_{name}"]
            setattr(self, name, int(value) if name in ("spent", "due") else value.copy())

    def follow(self, y: np.ndarray) -> int:
        """Make M for the slopes y where it is time to; returns the entries touched."""
        if self.spent < self.due:
            return 0
        held = np.empty(y.shape[1])
        curvature_blocks(y, self.problem.b, self.w, np.empty(self.problem.n), held)
        # what holds the intercepts: none of it next to nothing
        self.diagonal[-1] = np.maximum(held, 1e-10 * np.max(held))
        cost, wait = self._look_at_columns(), EVERY
        if self.spent >= PATIENCE * self.blocks_price:
            self._invert(y)
            cost += self.blocks_price
            wait = max(wait, int(PATIENCE * self.blocks_price))
        self.diagonal[:-1] = np.multiply.outer(self.spread, self.diagonal[-1])
        self.diagonal[:-1] += self.problem.penalty.l2
        self.diagonal[self.diagonal <= 0.0] = 1.0  # columns of zeros
        self.due = self.spent + wait
        return int(2.0 * cost * self.problem.matrix.nnz)

    def _look_at_columns(self) -> float:
        """Means, variances and, once they are worth it, axes; returns the passes that it cost."""
        problem = self.problem
        turned = self.axes_price <= max(AT_ONCE, self.spent / PATIENCE)
        if self.axes.size or (self.spread.size and not turned):
            return 0.0
        if turned and problem.intercept and problem.weights is None:
            self.centre, self.spread, self.axes = problem.matrix.principal_axes
        else:
            self.centre, self.spread, self.axes = principal_axes(
                self.array, problem.weights, problem.intercept, turned
            )
        self.spread = np.maximum(self.spread, VANISHING * np.max(self.spread))
        return self.axes_price if turned else 1.0

    def _invert(self, y: np.ndarray) -> None:
        """The inverses of the Hessians of the classes, with columns scaled to a diagonal of 1."""
        problem, D = self.problem, np.empty_like(y)
        curvature_rows(y, problem.b, self.w, D)
        H = self._by_pairs(D) if self.by_pairs else self._one_by_one(D)
        corner = np.einsum("kii->ki", H)
        # columns that are constant have a variance of rounding
        corner += problem.penalty.l2 + VANISHING * np.outer(self.diagonal[-1], self.centre**2)
        corner[corner <= 0.0] = 1.0  # columns of zeros
        scale = 1.0 / np.sqrt(corner)
        H *= scale[:, :, None] * scale[:, None, :]
        corner += RIDGE
        inverse = np.linalg.inv(H)
        inverse += inverse.transpose(0, 2, 1).copy()
        inverse *= 0.5 * (scale[:, :, None] * scale[:, None, :])
        self.inverse = inverse

    def _by_pairs(self, D: np.ndarray) -> np.ndarray:
        """The Hessians of all classes as one product: D' by the products of entries of a row."""
        (n, d), classes = self.array.shape, D.shape[1]
        size = d * (d + 1) // 2
        step = max(1, CACHED // size)
        pairs, sums = np.empty((step, size)), np.zeros((classes, size))
        for first in range(0, n, step):
            block = self.array[first : first + step].astype(np.float64, copy=False)
            part = pairs[: len(block)]
            pairs_of_entries(block, self.centre, part)
            sums += D[first : first + step].T @ part
        H = np.empty((classes, d, d))
        lower = np.tril_indices(d)
        H[:, lower[0], lower[1]] = sums
        H[:, lower[1], lower[0]] = sums
        return H

    def _one_by_one(self, D: np.ndarray) -> np.ndarray:
        (n, d), classes = self.array.shape, D.shape[1]
        H, root = np.zeros((classes, d, d)), np.sqrt(np.maximum(D, 1e-100))
        step = max(1, CACHED // d)
        for first in range(0, n, step):
            rows = slice(first, first + step)
            block = self.array[rows] - self.centre
            for k in range(classes):
                scaled = root[rows, k, None] * block
                H[k] += scaled.T @ scaled
        return H

    def eliminate(self, r: np.ndarray) -> np.ndarray:
        """The residual r for x in the coordinates of the centred columns."""
        if not self.problem.intercept:
            return r[:-1]
        return r[:-1] - np.multiply.outer(self.centre, r[-1])

    def solve(self, r: np.ndarray) -> np.ndarray:
        """M^-1 r."""
        d, out = self.problem.d, np.empty_like(r)
        inner = self.eliminate(r)
        if self.inverse.size:
            out[:d] = np.matmul(self.inverse, inner.T[:, :, None])[:, :, 0].T
        elif self.axes.size:
            np.matmul(self.axes, (self.axes.T @ inner) / self.diagonal[:d], out=out[:d])
        else:
            out[:d] = inner / self.diagonal[:d]
        out[d] = 0.0
        if self.problem.intercept:
            out[d] = r[d] / self.diagonal[d] - self.centre @ out[:d]
        out -= out.mean(axis=1, keepdims=True)  # what all classes share changes no probability
        return out
