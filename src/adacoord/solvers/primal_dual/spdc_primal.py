"""The primal side of SPDC: x, u and xbar, each as one kernel of :mod:`.spdc_kernels` holds them.

All have ``load(x, u)`` (start with xbar = x), ``refresh(u)`` (replace u, keep x and xbar),
``run(...)`` (the steps of an order, or of one that is drawn and written to it as the steps are
made, by ``draw``), ``settle()`` (bring everything to the present: at the end of
a pass, before ``x`` is read), ``x``, ``u``, and ``state`` (the arrays that make it up).  A
``team`` makes the passes, unless rows are drawn one by one.
"""

from __future__ import annotations

import numpy as np

from ...data.matrix import Matrix
from ...kernels.lagged import fill_tables
from .spdc_ais import adaptive_dense, adaptive_scaled, adaptive_stamped
from .spdc_kernels import (
    add_pending,
    dense_pass,
    flush,
    scaled_pass,
    settle_stamped,
    stamped_pass,
)
from .team import Team


class DensePrimal:
    """Plain vectors."""

    def __init__(self, matrix: Matrix, m: int, team: Team | None = None):
        self.matrix, self.team = matrix, team or Team(matrix)
        self.state = {"vectors": np.zeros((4, matrix.shape[1]), dtype=matrix.dtype)}

    def load(self, x, u):
        vectors = self.state["vectors"]
        vectors[0], vectors[1], vectors[2], vectors[3] = x, x, u, 0.0

    def refresh(self, u):
        self.state["vectors"][2] = u

    @property
    def x(self):
        return self.state["vectors"][0].astype(np.float64)

    @property
    def u(self):
        return self.state["vectors"][2]

    def run(self, order, starts, rows, duals, steps, penalty, intercept, draw=None):
        matrix = self.matrix.indptr, self.matrix.data

        def work(share):
            rest = *penalty.arguments, *intercept, share, *self.state["vectors"]
            if draw is None:
                dense_pass(*matrix, order, starts, *rows, *duals, *steps, *rest)
            else:
                adaptive_dense(draw, matrix, order, starts, rows, duals, steps, rest)

        self.team.run(work)

    def settle(self):
        """Plain vectors are always at the present."""


class ScaledPrimal:
    """x = s z - G u; between passes s = 1 and G = 0, and z also holds the pending e of xbar."""

    def __init__(self, matrix: Matrix, m: int, team: Team | None = None):
        self.matrix, self.team = matrix, team or Team(matrix)
        self.state = {
            "zu": np.zeros((matrix.shape[1], 2), dtype=matrix.dtype),
            "pending": np.zeros(m, dtype=np.uint32),
            "scales": np.zeros(m),
            "scale": np.array([1.0, 0.0, 1.0, 0.0]),
        }

    def load(self, x, u):
        self.state["zu"][:, 0] = x
        self.state["zu"][:, 1] = u
        self.state["scales"][:] = 0.0
        self.state["scale"][:] = 1.0, 0.0, 1.0, 0.0

    def refresh(self, u):
        self.state["zu"][:, 1] = u

    @property
    def x(self):
        zu = self.state["zu"].copy()
        add_pending(*self.matrix.arrays, self.state["pending"], self.state["scales"], -1.0, zu)
        return zu[:, 0].astype(np.float64)

    @property
    def u(self):
        return self.state["zu"][:, 1]

    def run(self, order, starts, rows, duals, steps, penalty, intercept, draw=None):
        s, matrix = self.state, self.matrix.arrays
        _, lam, _ = penalty.arguments

        def work(share):
            rest = lam, *intercept, share, s["zu"], s["pending"], s["scales"], s["scale"]
            if draw is None:
                scaled_pass(*matrix, order, starts, *rows, *duals, *steps, *rest)
            else:
                adaptive_scaled(draw, matrix, order, starts, rows, duals, steps, rest)

        self.team.run(work)

    def settle(self):
        s = self.state
        everything = np.array([0, s["zu"].shape[0]])
        waiting = s["pending"], s["scales"], s["scale"][0], s["scale"][1]
        flush(*self.matrix.arrays, *waiting, s["zu"], everything)
        s["scale"][:2] = 1.0, 0.0


class Clock:
    """tau and theta by time, and what a coordinate has missed: the tables of ``fill_tables``."""

    def __init__(self):
        self.time = 0
        self._clock, self._missed = np.zeros((1, 4)), np.zeros((1, 2))

    def set(self, tau: np.ndarray, theta: np.ndarray, lam: float, ahead: float) -> int:
        """Start at 0 with these steps; how many of them fit."""
        if self._clock.shape[0] <= tau.size:
            self._clock, self._missed = np.zeros((tau.size + 1, 4)), np.zeros((tau.size + 1, 2))
        self.time = 0
        return fill_tables(self._clock, self._missed, tau, theta, lam, ahead)

    @property
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        return self._clock, self._missed


class StampedPrimal:
    """x_j at the time of its last use; all of them at the present between passes."""

    def __init__(self, matrix: Matrix, m: int, team: Team | None = None):
        self.matrix, self.team = matrix, team or Team(matrix)
        self.state = {
            "vectors": np.zeros((matrix.shape[1], 4), dtype=matrix.dtype),
            "ahead": np.zeros(1),  # theta of the last step
        }
        self._stamp = np.zeros(matrix.shape[1], dtype=np.int32)
        self._clock = Clock()
        self._shrinkage = 0.0, False  # l1 and positive of the steps to catch up with

    def load(self, x, u):
        vectors = self.state["vectors"]
        vectors[:, 0], vectors[:, 1], vectors[:, 2], vectors[:, 3] = x, x, u, 0.0
        self._stamp[:] = 0
        self._clock.time = 0

    def refresh(self, u):
        self.state["vectors"][:, 2] = u

    @property
    def x(self):
        return self.state["vectors"][:, 0].astype(np.float64)

    @property
    def u(self):
        return self.state["vectors"][:, 2]

    def run(self, order, starts, rows, duals, steps, penalty, intercept, draw=None):
        (tau, theta), (l1, lam, positive) = steps, penalty.arguments
        self._shrinkage, clock, done = (l1, positive), self._clock, 0
        while done < tau.size:
            self.settle()
            fit = clock.set(tau[done:], theta[done:], lam, self.state["ahead"][0])
            here = self.state["vectors"], self._stamp, clock.time
            part, batches = order[done : done + fit], starts[done : done + fit + 1]

            def work(share, here=here, part=part, batches=batches):
                matrix, rest = self.matrix.arrays, (l1, positive, *intercept, share)
                if draw is not None:  # batches of one row
                    return adaptive_stamped(
                        draw, matrix, part, starts, rows, duals, rest, *here, clock.tables
                    )
                return stamped_pass(
                    *matrix, order, batches, *rows, *duals, *rest, *here, *clock.tables
                )

            clock.time = self.team.run(work)
            done += fit
            self.state["ahead"][0] = theta[done - 1]

    def settle(self):
        settle_stamped(
            self.state["vectors"],
            self._stamp,
            self._clock.time,
            *self._clock.tables,
            *self._shrinkage,
        )
        self._clock.time = 0
