r"""ASDCA, accelerated prox-SDCA (Shalev-Shwartz and Zhang 2014): SDCA in a proximal point method.

Problem     max_y D(y), for smooth losses (gamma > 0) and l2 > 0
Outer step  kappa = R^2/(gamma N) - l2 is added to l2, around a centre xhat:
              (x, y) = argmin_x P(x) + (kappa/2)|x - xhat|^2, by SDCA from the last y,
              xhat+ = x + beta (x - x_last),   beta = (1-eta)/(1+eta),
              eta = sqrt(mu/(mu + kappa)),   mu = l2/2
Inner stop  at a gap of eps_t = (eta/2)(1 - eta/2)^t (P - D at the start), the paper's
            eta xi_{t-1}/(2 (1 + eta^-2)).  It is looked at after every pass, which costs a product
            with A (counted in ``operations``).  The inner x is that of its y, so that the gap is
            mean(phi(z) + phi*(y) - y z) alone.
Condition   l2 <= R^2/(10 N gamma), else kappa = 0 and this is plain SDCA, as the paper has it
Intercept   one more coordinate of feature value |a| on average and no penalty but kappa's: SDCA
            carries c = chat - (|a|^2/kappa) sum W_i y_i/N along
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ..dual.dual_cd import RESYNC, StochasticDualCoordinateAscent

#: Passes an inner problem may take.  SDCA needs about 2 log(1/accuracy) of them; more is rounding.
PATIENCE = 60


class AcceleratedSDCA(StochasticDualCoordinateAscent):
    """Accelerated prox-SDCA; see the module's docstring."""

    name = "asdca"
    check_cost = 0.7
    _state = (
        *StochasticDualCoordinateAscent._state,
        "center",
        "center_c",
        "last",
        "last_c",
        "target",
        "inner",
    )

    def __init__(self, problem, rng, start=None):
        self.kappa = 0.0  # until the parent has made its steps
        self.center, self.center_c, self.target, self.inner = 0.0, 0.0, 0.0, 0
        self.last, self.last_c = 0.0, 0.0
        super().__init__(problem, rng, start)
        if not self.rows.size:
            return
        l2, gamma, N = problem.penalty.strong_convexity, problem.loss.gamma, self.n_rows
        norms = problem.matrix.squared_norms
        feature = (float(np.mean(norms[self.rows])) or 1.0) if problem.intercept else 0.0
        longest = float(np.max(self.weight[self.rows] * (norms[self.rows] + feature)))
        if l2 > longest / (10.0 * N * gamma):
            return
        self.kappa = longest / (gamma * N) - l2
        self.g = problem.penalty.plus_quadratic(self.kappa)
        self.rho = feature / self.kappa
        with np.errstate(divide="ignore"):  # rows that are never visited
            self.step = N / (self.weight * (norms / self.g.strong_convexity + self.rho))
        self.eta = np.sqrt(0.5 * l2 / (0.5 * l2 + self.kappa))
        x, c = self._start
        self.center, self.last = x.astype(np.float64), x.astype(np.float64)
        self.center_c = self.last_c = float(c)
        self.target = 0.5 * self.eta * problem.gap(self.center, self.y, c)
        self._synchronise()

    def _synchronise(self):
        """v and c from y itself."""
        if not self.kappa:
            super()._synchronise()
            return
        v = (self.kappa * self.center - self._average()) / self.g.l2
        self.v = v.astype(self.problem.matrix.dtype)
        self.c = self.center_c - self.rho * float(np.sum(self.weight * self.y)) / self.n_rows

    def _pass(self):
        if not self.kappa:
            super()._pass()
            return
        if self.passes and self.passes % RESYNC == 0:
            self._synchronise()
        self._ascend()
        self.inner += 1
        if self._inner_gap() <= self.target or self.inner == PATIENCE:
            self._extrapolate()

    def _inner_gap(self) -> float:
        problem, rows = self.problem, self.rows
        z = problem.predictions(self.x, self.c)[rows]
        self.operations += problem.matrix.nnz
        y, b, loss = self.y[rows], problem.b[rows], problem.loss
        terms = loss.value(z, b) + loss.conjugate(y, b) - y * z
        return float(np.sum(self.weight[rows] * terms)) / self.n_rows

    def _extrapolate(self) -> None:
        x, c, beta = self.x, self.c, (1.0 - self.eta) / (1.0 + self.eta)
        self.center, self.center_c = x + beta * (x - self.last), c + beta * (c - self.last_c)
        self.last, self.last_c = x, c
        self.target *= 1.0 - 0.5 * self.eta
        self.inner = 0
        self._synchronise()
