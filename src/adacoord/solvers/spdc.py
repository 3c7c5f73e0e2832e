r"""SPDC: stochastic primal-dual coordinates (Zhang and Xiao, JMLR 2017).

The step and what surrounds it are in :mod:`.primal_dual`, the step sizes in :mod:`.spdc_steps`.

Algorithm 1   one row a step, uniform
Algorithm 2   ``batch_size`` rows, one from each of as many disjoint blocks
Algorithm 3   one row, p_i = (1-alpha)/N + alpha R_i/sum R; eq. 26 for batches of them
kappa_i       1/(N p_i), p_i the probability that a batch contains row i
Stops         never: the monitor does, on the gap of the original problem.
"""

from __future__ import annotations

import numpy as np

from ..sampling.batches import Blocks, WeightedBatches
from ..sampling.single import Uniform, Weighted, norm_mixture
from .primal_dual import PrimalDual
from .spdc_steps import optimal_alpha, practical_steps, uniform_steps, weighted_steps


class SPDC(PrimalDual):
    """Stochastic primal-dual coordinates; see the module's docstring.

    Parameters
    ----------
    sampling : {"uniform", "lipschitz", "weighted"}
        ``"weighted"`` is Algorithm 3 with ``alpha`` (by default eq. 25's optimum),
        ``"lipschitz"`` the same mixture with ``alpha`` 1/2 by default.
    steps : {"practical", "theory"}
        ``"theory"``: the printed step sizes.
    batch_size : int
        Rows of a step (Algorithm 2; with weighted sampling eq. 26).
    alpha : float in [0, 1), optional
        The share of the row norms in the sampling probabilities.
    """

    name = "spdc"
    _state = (*PrimalDual._state, "iterations", "sampler_seed")

    def __init__(self, problem, rng, start=None, *, sampling="uniform", steps="practical",
                 batch_size=1, alpha=None):
        _check_options(sampling, steps, batch_size, alpha)
        super().__init__(problem, rng, start, batch_size)
        self.rule, self.alpha = steps, alpha
        self.iterations = 0
        self.sampler_seed = 0
        if self.rows.size:
            if alpha is None and sampling == "weighted":
                self.alpha = optimal_alpha(self.norms, *self._curvatures())
            elif alpha is None and sampling == "lipschitz":
                self.alpha = 0.5
            self.sampler_seed = int(rng.integers(2**62))
            self._make_sampler()

    def _make_sampler(self) -> None:
        N, m = self.n_rows, self.batch_size
        rng = np.random.Generator(np.random.PCG64(self.sampler_seed))
        if self.alpha is None or self.alpha == 0.0:
            self.sampler = Uniform(N) if m == 1 else Blocks(N, m, rng)
        else:
            p = norm_mixture(self.norms, self.alpha)
            self.sampler = Weighted(p) if m == 1 else WeightedBatches(p, m, rng)
        self.kappa = self._spread(1.0 / (N * self.sampler.p))

    def _plan(self):
        p, m, lam, gamma = self.sampler.p, self.batch_size, self.lam, self.gamma
        if self.rule == "practical":
            self.steps = practical_steps(self.norms, p, m, lam, gamma)
        elif self.alpha is None or self.alpha == 0.0:
            self.steps = uniform_steps(self.norms, m, lam, gamma)
        else:
            self.steps = weighted_steps(self.norms, p, m, self.alpha, lam, gamma)
        self.sigma = self._spread(self.steps.sigma)
        return self.steps.theta * lam * self.steps.tau

    def _sweep(self):
        # Batches need not divide a pass: after k passes floor(k N/m) of them are done.
        due = (self.passes + 1) * self.n_rows // self.batch_size - self.iterations
        order = self.rows[self.sampler.order(due, self.rng)]
        self._run(order, self.sigma, self.kappa, self.steps.tau, self.steps.theta)
        self.iterations += due

    def restore(self, state):
        self.sampler_seed = state["sampler_seed"]
        if self.rows.size:
            self._make_sampler()
        super().restore(state)


def _check_options(sampling, steps, batch_size, alpha):
    if sampling not in ("uniform", "lipschitz", "weighted"):
        raise ValueError(
            f'sampling={sampling!r}: spdc takes "uniform", "lipschitz" or "weighted"'
        )
    if steps not in ("practical", "theory"):
        raise ValueError(f'steps={steps!r}: spdc takes "practical" or "theory"')
    if isinstance(batch_size, bool) or not (
        isinstance(batch_size, (int, np.integer)) and batch_size >= 1
    ):
        raise ValueError(f"batch_size={batch_size!r}: it must be a whole number, 1 or more")
    if alpha is not None and not (
        isinstance(alpha, (int, float, np.number)) and 0.0 <= alpha < 1.0
    ):
        raise ValueError(f"alpha={alpha!r}: the mixture weight must be in [0, 1)")
    if alpha is not None and sampling == "uniform":
        raise ValueError(f'alpha={alpha!r}: it is for sampling="weighted" or "lipschitz"')
