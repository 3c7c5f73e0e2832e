"""The primal side of SPDC for losses of K classes: X, U and Xbar of shape (d, K).

The kernels are those of :mod:`.block_kernels`, the interface is that of :mod:`.spdc_primal`.
Here the same object serves every penalty: CSR data are held as X = s Z - G U while the penalty is
l2 alone, and under time stamps otherwise; which, is settled by the first ``run`` after a ``load``.
"""

from __future__ import annotations

import numpy as np

from ...data.matrix import Matrix
from .block_kernels import (
    add_pending_blocks,
    dense_blocks,
    flush_blocks,
    scaled_blocks,
    settle_blocks,
    stamped_blocks,
)
from .spdc_primal import Clock
from .team import Team

#: What ``scale[5]`` of CSR data says about how x is held.
OPEN, SCALED, STAMPED = 0.0, 1.0, 2.0


class BlockPrimal:
    """X of shape (d, K) for dense or CSR rows.

    Parameters
    ----------
    matrix : Matrix
    m : int
        Rows of a batch, at most.
    n_classes : int
    team : Team, optional
        Who makes the passes.
    """

    def __new__(cls, matrix: Matrix, m: int, n_classes: int, team: Team | None = None):
        return object.__new__(_DenseBlocks if matrix.is_dense else _SparseBlocks)

    def __init__(self, matrix: Matrix, m: int, n_classes: int, team: Team | None = None):
        self.matrix, self.m, self.n_classes = matrix, m, n_classes
        self.team = team or Team(matrix)
        self.state: dict[str, np.ndarray] = {}

    def load(self, x: np.ndarray, u: np.ndarray) -> None:
        """Start from ``x`` and ``u``, with xbar = x."""
        raise NotImplementedError

    def refresh(self, u: np.ndarray) -> None:
        """Replace u; x and xbar stay."""
        raise NotImplementedError

    def run(self, order, starts, rows, duals, steps, penalty, intercept) -> None:
        """The steps of ``order``; see :func:`.block_kernels.dense_blocks` for the arguments."""
        raise NotImplementedError

    def settle(self) -> None:
        """Bring everything to the present."""

    @property
    def x(self) -> np.ndarray:
        """X of the present."""
        raise NotImplementedError

    @property
    def u(self) -> np.ndarray:
        """U of the present."""
        raise NotImplementedError


class _DenseBlocks(BlockPrimal):
    """Plain vectors, one a class: the loops over the columns are the long ones."""

    def __init__(self, matrix, m, n_classes, team=None):
        super().__init__(matrix, m, n_classes, team)
        vectors = np.zeros((4, n_classes, matrix.shape[1]), dtype=matrix.dtype)
        self.state = {"vectors": vectors}

    def load(self, x, u):
        vectors = self.state["vectors"]
        vectors[0], vectors[1], vectors[2], vectors[3] = x.T, x.T, u.T, 0.0

    def refresh(self, u):
        self.state["vectors"][2] = u.T

    @property
    def x(self):
        return np.ascontiguousarray(self.state["vectors"][0].T, dtype=np.float64)

    @property
    def u(self):
        return self.state["vectors"][2].T

    def run(self, order, starts, rows, duals, steps, penalty, intercept):
        matrix = self.matrix.indptr, self.matrix.data
        given = *matrix, order, starts, *rows, *duals[:4], *steps, *penalty.arguments, *intercept
        self.team.run(lambda share: dense_blocks(*given, share, *self.state["vectors"]))


class _SparseBlocks(BlockPrimal):
    """X and U side by side; between passes both are of the present, X with the pending e of xbar.

    ``scale`` is (s, G, keep, pull, theta of the last step, OPEN or SCALED or STAMPED).
    """

    def __init__(self, matrix, m, n_classes, team=None):
        super().__init__(matrix, m, n_classes, team)
        d = matrix.shape[1]
        self.state = {
            "xu": np.zeros((d, 2 * n_classes), dtype=matrix.dtype),
            "before": np.zeros((d, n_classes), dtype=matrix.dtype),
            "pending": np.zeros(m, dtype=np.uint32),
            "scales": np.zeros((m, n_classes)),
            "scale": np.array([1.0, 0.0, 1.0, 0.0, 0.0, OPEN]),
        }
        self._direction = np.zeros((d if m > 1 else 1, n_classes), dtype=matrix.dtype)
        self._stamp = np.zeros(d, dtype=np.int32)
        self._clock = Clock()
        self._shrinkage = 0.0, False  # l1 and positive of the steps to catch up with

    def load(self, x, u):
        s, K = self.state, self.n_classes
        s["xu"][:, :K], s["xu"][:, K:], s["before"][:] = x, u, x
        s["scales"][:] = 0.0
        s["scale"][:] = 1.0, 0.0, 1.0, 0.0, 0.0, OPEN
        self._stamp[:] = 0
        self._clock.time = 0

    def refresh(self, u):
        self.settle()
        self.state["xu"][:, self.n_classes :] = u

    @property
    def x(self):
        self.settle()
        s = self.state
        xu = s["xu"].copy()
        add_pending_blocks(*self.matrix.arrays, s["pending"], s["scales"], -1.0, xu)
        return xu[:, : self.n_classes].astype(np.float64)

    @property
    def u(self):
        return self.state["xu"][:, self.n_classes :]

    def run(self, order, starts, rows, duals, steps, penalty, intercept):
        s, (tau, theta), (l1, lam, positive) = self.state, steps, penalty.arguments
        # The scaled form divides by 1 - theta lambda tau: not for extremely strong penalties.
        scaled = penalty.quadratic and np.max(theta * lam * tau) < 0.5
        if s["scale"][5] == OPEN:
            s["scale"][5] = SCALED if scaled else STAMPED
        elif s["scale"][5] == SCALED and not scaled:
            self.load(self.x, self.u.copy())
            s["scale"][5] = STAMPED
        if s["scale"][5] == SCALED:
            given = *self.matrix.arrays, order, starts, *rows, *duals[:4], *steps, lam, *intercept
            held = s["xu"], s["pending"], s["scales"], s["scale"][:4]
            self.team.run(lambda share: scaled_blocks(*given, share, *held))
            return
        clock, done = self._clock, 0
        while done < tau.size:
            self.settle()
            self._shrinkage = l1, positive
            fit = clock.set(tau[done:], theta[done:], lam, s["scale"][4])
            batches = *self.matrix.arrays, order, starts[done : done + fit + 1]
            given = *batches, *rows, *duals[:4], l1, positive, *intercept
            held = s["xu"], s["before"], self._direction, self._stamp, clock.time, *clock.tables
            clock.time = self.team.run(
                lambda share, given=given, held=held: stamped_blocks(*given, share, *held)
            )
            done += fit
            s["scale"][4] = theta[done - 1]

    def settle(self):
        s = self.state
        if s["scale"][5] == SCALED:
            if s["scale"][0] != 1.0 or s["scale"][1] != 0.0:
                flush_blocks(
                    *self.matrix.arrays,
                    s["pending"],
                    s["scales"],
                    s["scale"][0],
                    s["scale"][1],
                    s["xu"],
                    np.array([0, s["xu"].shape[0]]),
                )
                s["scale"][:2] = 1.0, 0.0
        elif self._clock.time > 0:
            settle_blocks(
                s["xu"],
                s["before"],
                self._stamp,
                self._clock.time,
                *self._clock.tables,
                *self._shrinkage,
            )
            self._clock.time = 0
