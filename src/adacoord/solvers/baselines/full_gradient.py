r"""What the methods with full gradients share: products with A, one a pass, and the best intercept.

Pass        one product with A or A': as many entries touched as A has.  A gradient with its value
            is two passes.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..base import Solver
from .row_kernels import best_shift, slopes


class FullGradient(Solver):
    """One product with A a pass, by turns: ``_turns`` names the methods that make them."""

    check_cost = 2.0
    #: The methods that follow one another, a product each; ``turn`` is the next one.
    _turns: ClassVar[tuple[str, ...]]

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.loss = problem.loss.code, *problem.loss.constants
        weights = np.ones(problem.n) if problem.weights is None else problem.weights
        self.share = weights / problem.n
        x, self.c = self._start
        self.point = x.astype(np.float64)
        self.z = problem.matrix.dot(self.point)
        if self.point.any():
            self.operations += problem.matrix.nnz
        self.turn = 0

    @property
    def x(self):
        return self.point

    @property
    def intercept(self):
        return self.c

    def _pass(self):
        """A turn returns the next one by returning its number, or None for the one in order."""
        after = getattr(self, self._turns[self.turn])()
        self.turn = (self.turn + 1) % len(self._turns) if after is None else after
        self.operations += self.problem.matrix.nnz

    def _slopes(self, z: np.ndarray, c: float) -> np.ndarray:
        """phi'(z + c): the dual point that predictions suggest."""
        out = np.empty_like(z)
        slopes(*self.loss, z, c, self.problem.b, out)
        return out

    def _best_intercept(self, z: np.ndarray, near: float) -> float:
        """argmin_c (1/n) sum_i w_i phi_i(z_i + c), searched from ``near``; 0 without an intercept.

        With c at its best the loss is a function of x alone, no less smooth than before, and the
        slopes balance: they are a feasible dual point.
        """
        if not self.problem.intercept:
            return 0.0
        rowwise = self.problem.matrix.rowwise
        return best_shift(self.loss, z, near, self.problem.b, self.share, rowwise)
