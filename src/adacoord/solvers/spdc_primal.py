"""The primal side of SPDC: x, u and xbar, each as one kernel of :mod:`.spdc_kernels` holds them.

All have ``load(x, u)`` (start with xbar = x), ``refresh(u)`` (replace u, keep x and xbar),
``run(...)`` (the steps of an order), ``settle()`` (bring everything to the present: at the end of
a pass, before ``x`` is read), ``x``, ``u``, and ``state`` (the arrays that make it up).
"""

from __future__ import annotations

import numpy as np

from ..matrix import Matrix
from .spdc_kernels import (
    add_pending,
    dense_pass,
    flush,
    scaled_pass,
    settle_stamped,
    stamped_pass,
)


class DensePrimal:
    """Plain vectors."""

    def __init__(self, matrix: Matrix, m: int):
        self.matrix = matrix
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

    def run(self, order, rows, duals, steps, penalty, intercept):
        dense_pass(
            self.matrix.indptr, self.matrix.data, order, *rows, *duals, *steps, *penalty,
            *intercept, *self.state["vectors"],
        )

    def settle(self):
        """Plain vectors are always at the present."""


class ScaledPrimal:
    """x = s z - G u; between passes s = 1 and G = 0, and z also holds the pending e of xbar."""

    def __init__(self, matrix: Matrix, m: int):
        self.matrix = matrix
        self.state = {
            "zu": np.zeros((matrix.shape[1], 2), dtype=matrix.dtype),
            "pending": np.zeros(m, dtype=np.uint32),
            "scales": np.zeros(m),
            "scale": np.array([1.0, 0.0, 1.0]),
        }

    def load(self, x, u):
        self.state["zu"][:, 0] = x
        self.state["zu"][:, 1] = u
        self.state["scales"][:] = 0.0
        self.state["scale"][:] = 1.0, 0.0, 1.0

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

    def run(self, order, rows, duals, steps, penalty, intercept):
        s = self.state
        scaled_pass(
            *self.matrix.arrays, order, *rows, *duals, *steps, *intercept,
            s["zu"], s["pending"], s["scales"], s["scale"],
        )

    def settle(self):
        s = self.state
        flush(*self.matrix.arrays, s["pending"], s["scales"], s["scale"][0], s["scale"][1], s["zu"])
        s["scale"][:2] = 1.0, 0.0


class StampedPrimal:
    """x_j at the time of its last use; all of them at the present between passes."""

    def __init__(self, matrix: Matrix, m: int):
        self.matrix = matrix
        self.state = {"vectors": np.zeros((matrix.shape[1], 4), dtype=matrix.dtype)}
        self._stamp = np.zeros(matrix.shape[1], dtype=np.int32)
        self._time = 0
        self._steps = (0.0, 0.0), (0.0, False)
        self._tables = (0.0, 0.0), np.empty(0), np.empty(0)

    def load(self, x, u):
        vectors = self.state["vectors"]
        vectors[:, 0], vectors[:, 1], vectors[:, 2], vectors[:, 3] = x, x, u, 0.0
        self._stamp[:] = 0
        self._time = 0

    def refresh(self, u):
        self.state["vectors"][:, 2] = u

    @property
    def x(self):
        return self.state["vectors"][:, 0].astype(np.float64)

    @property
    def u(self):
        return self.state["vectors"][:, 2]

    def run(self, order, rows, duals, steps, penalty, intercept):
        tau, _, lam = steps
        self._steps = (tau, lam), penalty
        self._grow_tables(self._time + order.size + 1, tau, lam)
        self._time = stamped_pass(
            *self.matrix.arrays, order, *rows, *duals, *steps, *penalty, *intercept,
            self.state["vectors"], self._stamp, self._time, *self._tables[1:],
        )

    def settle(self):
        steps, penalty = self._steps
        settle_stamped(
            self.state["vectors"], self._stamp, self._time, *self._tables[1:], *steps, *penalty
        )
        self._time = 0

    def _grow_tables(self, size: int, tau: float, lam: float) -> None:
        """q^k and tau (q + ... + q^k) for every number of steps a coordinate can be behind."""
        key, powers, _ = self._tables
        if key == (tau, lam) and powers.size >= size:
            return
        exponents = -np.log1p(lam * tau) * np.arange(size + size // 8)
        # tau (q + ... + q^k) = (1 - q^k)/lambda
        self._tables = (tau, lam), np.exp(exponents), -np.expm1(exponents) / lam
