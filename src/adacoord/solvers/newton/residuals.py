r"""The first residuals of conjugate gradients, to which the later ones are kept orthogonal.

In exact arithmetic r_k' M^-1 r_i = 0 for i < k.  Where few eigenvalues of M^-1 H are far above
the others, rounding brings their directions back after some steps, as if they had more copies, and
a pass is lost for each (Greenbaum 1989); one product with the residuals that are remembered keeps
them away.  Passes to 1e-6 of least squares with a common factor of all columns: 6,000 x 350 10 ->
9, 900 x 9,000, each column with a scale of its own, 38 -> 32.
"""

from __future__ import annotations

import numpy as np

from ...problem import Problem

#: Residuals that are remembered at most, the share of a pass that they may take, and bytes.
MOST, SHARE, LARGEST = 32, 0.1, 2**28
#: Of the first r' M^-1 r: what is below it may be rounding, which is orthogonal to nothing.
LEAST = 1e-20


class Residuals:
    """r_i and M^-1 r_i, over the root of r_i' M^-1 r_i."""

    _state = ("r", "solved", "count", "first")

    def __init__(self, problem: Problem, size: int):
        # 2 numbers of each coordinate are read for each of them, and A twice in a pass
        share = int(SHARE * problem.matrix.nnz / max(problem.d, 1))
        most = min(MOST, share, LARGEST // (16 * size)) if problem.loss.name == "squared" else 0
        self.r, self.solved = np.zeros((most, size)), np.zeros((most, size))
        self.count, self.first = 0, 0.0

    def state(self) -> dict:
        return {f"residuals_{name}": np.array(getattr(self, name)) for name in self._state}

    def restore(self, state: dict) -> None:
        for name in self._state:
            value = state[f"residuals_{name}"]
            setattr(self, name, value.copy() if value.ndim else value.item())

    def begin(self) -> None:
        """Another system, or another M."""
        self.count = 0

    def note(self, r: np.ndarray, solved: np.ndarray, rho: float) -> None:
        """rho = r' M^-1 r, with M^-1 r ``solved``."""
        self.first = self.first if self.count else rho
        if rho > LEAST * self.first and self.count < len(self.r):
            root = np.sqrt(rho)
            np.divide(r, root, out=self.r[self.count])
            np.divide(solved, root, out=self.solved[self.count])
            self.count += 1

    def leave_out(self, r: np.ndarray) -> None:
        """r without what it has of them."""
        if self.count:
            r -= (self.solved[: self.count] @ r) @ self.r[: self.count]
