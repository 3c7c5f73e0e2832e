r"""SAG, the stochastic average gradient (Le Roux, Schmidt and Bach 2012), with proximal steps.

Problem     min_x (1/N) sum_i W_i phi_i(a_i.x) + g(x), for smooth losses
Step        row i drawn uniformly:  y_i+ = phi_i'(a_i.x),  u += W_i (y_i+ - y_i) a_i/N,
            x+ = prox_{tau g}(x - tau u)
Steps       tau = step/L with L = max_i W_i |a_i|^2/gamma.  ``step=1`` is what SPDC's authors run
            (gamma/R^2), 1/16 what is proved (Schmidt, Le Roux and Bach 2017, Theorem 1).
            ``lipschitz="norm"`` takes L = max_i sqrt(W_i) |a_i|/gamma, without the square, as
            Section 4.2 of AdaSPDC's paper prints it ("L = max |a_i|", a quarter of it for the
            logistic loss): that is the constant of phi_i, not of its slope, shorter steps where
            R < 1 and steps that no proof allows where R > 1.  The penalty is in the prox, so that
            L has no l2 in it; with l1 this is the method in practice, not one with a proof.
Sparse      the lagged updates of :mod:`..spdc_kernels`, O(nnz of the row) a step.  They fit as
            they are: SPDC with sigma -> inf has dprox = phi', with theta = 0 it does not
            extrapolate, and with kappa = 1/N its direction is u with the new y_i in it.
Intercept   one more coordinate without a penalty, as in SPDC
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ..primal_dual.base import PrimalDual

#: A sigma at which the dual prox is phi' to the last bit, and sigma^2 still a number.
ENDLESS = 1e100


class StochasticAverageGradient(PrimalDual):
    """Stochastic average gradient; see the module's docstring.

    Parameters
    ----------
    step : float in (0, 1]
        The step in units of 1/L.
    lipschitz : {"slope", "norm"}
        What L is: the largest Lipschitz constant of the slopes phi_i', or (as AdaSPDC's authors
        print it) without the square of the norm.
    """

    name = "sag"

    def __init__(self, problem, rng, start=None, step=1.0, lipschitz="slope"):
        if isinstance(step, bool) or not (
            isinstance(step, (int, float, np.number)) and 0.0 < step <= 1.0
        ):
            raise ValueError(
                f"step={step!r}: the step of sag in units of 1/L must be positive and at most 1; "
                "1/16 is proved to converge, 1 usually does"
            )
        if lipschitz not in ("slope", "norm"):
            raise ValueError(
                f'lipschitz={lipschitz!r}: sag takes "slope" (L = max |a_i|^2/gamma) or "norm" '
                "(L = max |a_i|/gamma, as printed by AdaSPDC's authors)"
            )
        super().__init__(problem, rng, start)
        self.step = float(step)
        self.lipschitz = lipschitz
        self.perturbed = False  # needs no curvature of g

    def _curvatures(self):
        return self.problem.penalty.strong_convexity, self.problem.loss.gamma

    def _plan(self):
        R = float(np.max(self.norms))
        self.tau = self.step * self.gamma / (R * R if self.lipschitz == "slope" else R)
        self.sigma = self._spread(np.full(self.n_rows, ENDLESS))
        self.kappa = self._spread(np.full(self.n_rows, 1.0 / self.n_rows))
        return 0.0  # nothing is extrapolated

    def _sweep(self):
        order = self.rows[self.rng.integers(self.n_rows, size=self.n_rows)]
        self._run(order, self.sigma, self.kappa, self.tau, 0.0)
