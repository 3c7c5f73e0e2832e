r"""APDC: adaptive primal-dual coordinates, the adaptivity of four papers at once.

Step        that of :mod:`.primal_dual` with the extrapolation on the dual side alone:
            xbar = x, kappa_i = 1/N + theta/(N p_i)
AIS         row i is visited N p_i times a pass, N p_i = (1-delta) N p0_i + delta N w_i/sum w, with
            w_i = sqrt(|dy_i|/sigma_i) of its last visit: rows that still move are visited more
ACF         ... by accumulators (:mod:`adacoord.sampling.frequencies`) in place of a sum tree
AdaSPDC     sigma_i = c N p_i/(T R_i^2): each row its own step, tied to how often it is visited
SPDC        p0, tau0 and theta = 1 - mu from the static problem: mu is the largest rate for which
            p0_i = (mu/2)(1 + sqrt(1 + 8 tau0 R_i^2/(N gamma mu))), tau0 = mu/(2 lambda (1-mu))
            still sum to 1
Balance     T = rho tau; every fourth pass the gap is split into its primal and its dual part,
            G_x + G_y, and rho *= (G_x/G_y)^(eta/(1 + pass/20)): the side that lags gets the
            longer steps
Safeguard   no proof covers adaptive p and rho together: when the gap stays above 10x the best
            one, c and delta are halved and the best point is taken up again
Kinks       losses that are not smooth: gamma by continuation (as gamma -> 0 also tau0 -> 0)
"""

from __future__ import annotations

import numpy as np

from ...sampling.frequencies import Frequencies
from .base import PrimalDual

#: sigma_i T R_i^2 in units of N p_i, and the share of what rows do in how often they are visited.
COUPLING, ADAPTIVE = 0.9, 0.5
#: tau over tau0: the static analysis is that cautious.
BOOST = 1.9
#: The exponent of the balance, and its bounds for one correction and in all.
BALANCE, CORRECTION, EXTREME = 0.5, 2.0, 1e4
#: Passes between two corrections: each costs half a pass, and needs a few passes to show.
EVERY = 4
#: A gap so many times the best one, at so many checks in a row, is a divergence (the first passes
#: may well go up before they go down).
DIVERGED, STRIKES = 10.0, 3


class APDC(PrimalDual):
    """Adaptive primal-dual coordinates; see the module's docstring."""

    name = "apdc"
    check_cost = 0.5
    _state = (
        *PrimalDual._state,
        "liveliness",
        "accumulators",
        "rho",
        "coupling",
        "adaptive",
        "strikes",
        "best_gap",
        "best_x",
        "best_y",
        "best_c",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.liveliness = np.ones(self.n_rows)
        self.schedule = Frequencies(self.n_rows, rng)
        self.rho, self.coupling, self.adaptive = 1.0, COUPLING, ADAPTIVE
        self._forget_best()

    @property
    def accumulators(self) -> np.ndarray:
        return self.schedule.accumulators

    @accumulators.setter
    def accumulators(self, value: np.ndarray) -> None:
        self.schedule.accumulators = value

    def _plan(self):
        self.mu, self.tau, self.static = static_rates(self.norms, self.lam, self.gamma)
        return 0.0  # nothing extrapolated on the primal side

    def _begin_stage(self):
        super()._begin_stage()
        self._forget_best()  # its gap was that of another perturbation

    def _forget_best(self):
        self.best_gap, self.strikes = np.inf, 0
        self.best_x, self.best_y = self.center_x, self.y.copy()
        self.best_c = np.copy(self.bias[0])

    def _sweep(self):
        N = self.n_rows
        w = self.liveliness + 1e-3 * self.liveliness.max() + 1e-300
        frequency = N * ((1.0 - self.adaptive) * self.static + self.adaptive * w / w.sum())
        tau = self.rho * BOOST * self.tau
        sigma = self._spread(self.coupling * frequency / (tau * self.norms**2))
        kappa = self._spread(1.0 / N + (1.0 - self.mu) / frequency)
        order = self.rows[self.schedule.order(frequency, self.rng)]
        self._run(order, sigma, kappa, tau, 0.0)
        if not self._learn(sigma):
            self._restart()
        elif not self.perturbed and self.passes % EVERY == 0:
            self.primal.settle()
            self._balance(*self._gap_parts(self.primal.x))

    def _learn(self, sigma: np.ndarray) -> bool:
        """w_i = sqrt(|dy_i|/sigma_i), for the rows that were visited; False if it has diverged."""
        size = np.abs(self._moves[self.rows]) * np.sqrt(self.weight[self.rows])
        if not np.isfinite(size.sum()):
            self._moves[:] = 0.0
            return False
        visited = self.schedule.visits > 0
        self.liveliness[visited] = np.sqrt(size / sigma[self.rows])[visited]
        return True

    def _balance(self, primal_part: float, dual_part: float) -> None:
        """Correct rho by the two parts of the gap, or take up the best point after a divergence."""
        gap = primal_part + dual_part
        self.strikes = self.strikes + 1 if gap > DIVERGED * self.best_gap else 0
        if self.strikes == STRIKES or not np.isfinite(gap):
            self._restart()
            return
        if gap < self.best_gap:
            self.best_gap, self.best_x = gap, self.primal.x
            self.best_c = np.copy(self.bias[0])
            self.best_y = self.y.copy()
        if primal_part > 0.0 and dual_part > 0.0:
            exponent = BALANCE / (1.0 + self.passes / 20.0)
            change = (primal_part / dual_part) ** exponent
            self.rho *= min(max(change, 1.0 / CORRECTION), CORRECTION)
            self.rho = min(max(self.rho, 1.0 / EXTREME), EXTREME)

    def _look_at_stage(self, primal_part, dual_part):
        self._balance(primal_part, dual_part)
        super()._look_at_stage(primal_part, dual_part)

    def _restart(self) -> None:
        """Take up the best point again, more cautiously."""
        self.strikes = 0
        self.coupling *= 0.5
        self.adaptive *= 0.5
        self.rho = 1.0
        self.y[...] = self.best_y
        self.bias[0] = self.best_c
        self._load(self.best_x)


def static_rates(norms: np.ndarray, lam: float, gamma: float) -> tuple[float, float, np.ndarray]:
    """(mu, tau0, p0) of the module's docstring, mu by bisection."""
    N, squares = norms.size, norms**2

    def probabilities(mu: float) -> np.ndarray:
        tau = mu / (2.0 * lam * (1.0 - mu))
        return 0.5 * mu * (1.0 + np.sqrt(1.0 + 8.0 * tau * squares / (N * gamma * mu)))

    low, high = 1e-18, 1.0 - 1e-9
    for _ in range(80):
        mu = np.sqrt(low * high)
        if np.sum(probabilities(mu)) < 1.0:
            low = mu
        else:
            high = mu
    p = probabilities(mu)
    return mu, mu / (2.0 * lam * (1.0 - mu)), p / p.sum()
