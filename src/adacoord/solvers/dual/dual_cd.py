r"""Dual coordinate ascent: ``dcd`` (a new random order each pass) and ``sdca`` (i.i.d. rows).

Problem     max_y D(y), one y_i at a time, for any loss and a penalty with l2 > 0.
Step        y_i+ = dprox(a_i.x, b_i, y_i, s_i),  s_i = N l2 / (W_i |a_i|^2): exact for l2 alone;
            for l1 + l2 the proximal step of prox-SDCA (Shalev-Shwartz and Zhang), since g* is
            (1/l2)-smooth.  x = grad g*(-u) = shrink(v, l1/l2) with v = -u/l2 carried along.
Intercept   One y_i cannot move alone under sum w_i y_i = 0.  A proximal point in c takes the
            constraint's place: c is penalised by (c - c_k)^2/(2 rho) and re-centred each pass
            (the augmented Lagrangian of the constraint, c being its multiplier).
Stops       never: the monitor does.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..base import Solver
from .kernels import dual_pass

#: rho l2 / mean |a_i|^2: fastest at or below 0.1 on a9a, rcv1.subset and mushrooms.
PROXIMAL = 0.1
#: Passes between two computations of v from y itself.
RESYNC = 32


class DualCoordinateAscent(Solver):
    """Dual coordinate ascent in shuffled order; see the module's docstring."""

    name = "dcd"
    check_cost = 1.0
    _state: ClassVar[tuple[str, ...]] = ("v", "c")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.g = problem.penalty  # of the ascent: in a proximal point method not the problem's
        lam, norms = self.g.strong_convexity, problem.matrix.squared_norms
        self.rho = 0.0
        if problem.intercept:
            # at least gamma: where l2 outweighs the features, c is held by the losses alone
            curvature = problem.loss.gamma or 1.0
            self.rho = max(PROXIMAL * float(np.mean(norms)) / lam, curvature)
        with np.errstate(divide="ignore"):  # rows that are never visited
            self.step = self.n_rows / (self.weight * (norms / lam + self.rho))
        self.share = self.weight / self.n_rows
        self.c = self._start[1]
        self._synchronise()

    @property
    def x(self):
        return self.g.conjugate_gradient(self.v.astype(np.float64) * self.g.l2)

    @property
    def intercept(self):
        return self.c

    def _synchronise(self):
        self.v = (self._average() / -self.g.l2).astype(self.problem.matrix.dtype)

    def _order(self) -> np.ndarray:
        return self.rng.permutation(self.rows)

    def _refresh(self):
        if self.passes and self.passes % RESYNC == 0:
            self._synchronise()

    def _pass(self):
        self._refresh()
        if self.rho:
            self.c -= self.rho * float(np.sum(self.share * self.y))  # re-centre
        self._ascend()

    def _ascend(self):
        problem, order = self.problem, self._order()
        self.c = dual_pass(
            *problem.matrix.arrays,
            order,
            problem.b,
            self.share,
            self.step,
            self.y,
            self.v,
            problem.loss.code,
            *problem.loss.constants,
            *self.g.arguments,
            self.rho,
            self.c,
        )
        self._count(order)


class StochasticDualCoordinateAscent(DualCoordinateAscent):
    """SDCA: the same step on rows drawn independently and uniformly."""

    name = "sdca"

    def _order(self):
        return self.rows[self.rng.integers(self.rows.size, size=self.rows.size)]
