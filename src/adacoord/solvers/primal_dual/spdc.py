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

from ...sampling.batches import Blocks, WeightedBatches
from ...sampling.schedule import check_mixture
from ...sampling.single import Uniform, Weighted, norm_mixture
from .base import PrimalDual
from .spdc_ais import Adaptive, ideal_frequencies
from .spdc_steps import optimal_alpha, practical_steps, uniform_steps, weighted_steps


class SPDC(PrimalDual):
    """Stochastic primal-dual coordinates; see the module's docstring.

    Parameters
    ----------
    sampling : {"uniform", "lipschitz", "weighted", "adaptive", "ideal"}
        ``"weighted"`` is Algorithm 3 with ``alpha`` (by default eq. 25's optimum),
        ``"lipschitz"`` the same mixture with ``alpha`` 1/2 by default, ``"adaptive"`` SPDC-AIS
        (:mod:`.spdc_ais`), ``"ideal"`` the same with exact gradient maps, at O(n d) a step.
    steps : {"practical", "theory", "theory2"}
        ``"theory"``: the printed step sizes; ``"theory2"``, for adaptive sampling only, those of
        the second theorem of AIS.
    batch_size : int
        Rows of a step (Algorithm 2; with weighted sampling eq. 26).
    alpha : float in [0, 1), optional
        The share of the row norms in the sampling probabilities.
    kappa : float
        The power of the gradient maps in the adaptive weights.
    delta : (float, float)
        Their share in the probabilities, at first and from ``delta_passes`` on.
    delta_passes : int, optional
        By default what theory predicts to a gap of 1e-6, from 10 to 100.
    rho : float, optional
        The constant of Assumption 1 of AIS, for ``"theory2"``.
    """

    name = "spdc"
    _state = (*PrimalDual._state, "iterations", "sampler_seed", "weights", "before")

    def __init__(
        self,
        problem,
        rng,
        start=None,
        *,
        sampling="uniform",
        steps="practical",
        batch_size=1,
        alpha=None,
        kappa=0.5,
        delta=(0.2, 0.8),
        delta_passes=None,
        rho=None,
    ):
        adaptive = sampling in ("adaptive", "ideal")
        _check_options(sampling, steps, batch_size, alpha, adaptive)
        check_mixture(delta, kappa, 1 if delta_passes is None else delta_passes)
        _check_rho(rho, steps)
        if not adaptive and (kappa, *delta, delta_passes) != (0.5, 0.2, 0.8, None):
            raise ValueError(
                f"kappa={kappa!r}, delta={delta!r}, delta_passes={delta_passes!r} with "
                f'sampling={sampling!r}: they are for sampling="adaptive" or "ideal"'
            )
        super().__init__(problem, rng, start, batch_size)
        self.sampling, self.rule, self.alpha = sampling, steps, alpha
        self.iterations = 0
        self.sampler_seed = 0
        self.before = self.center_x  # x one step ago
        self.ais = None
        if self.rows.size:
            if alpha is None and sampling == "weighted":
                self.alpha = optimal_alpha(self.norms, *self._curvatures())
            elif alpha is None and sampling == "lipschitz":
                self.alpha = 0.5
            self.sampler_seed = int(rng.integers(2**62))
            if adaptive:
                self.ais = Adaptive(self.n_rows, kappa, delta, delta_passes, rho)
            self._make_sampler()

    @property
    def weights(self) -> np.ndarray:
        """The tree of the adaptive sampling."""
        return np.zeros(0) if self.ais is None else self.ais.tree

    @weights.setter
    def weights(self, value: np.ndarray) -> None:
        if self.ais is not None:
            self.ais.tree = value

    def _make_sampler(self) -> None:
        N, m = self.n_rows, self.batch_size
        rng = np.random.Generator(np.random.PCG64(self.sampler_seed))
        self.sampler: Uniform | Blocks | Weighted | WeightedBatches
        if self.alpha is None or self.alpha == 0.0:
            self.sampler = Uniform(N) if m == 1 else Blocks(N, m, rng)
        else:
            p = norm_mixture(self.norms, self.alpha)
            self.sampler = Weighted(p) if m == 1 else WeightedBatches(p, m, rng)
        self.kappa = self._spread(1.0 / (N * self.sampler.p))

    def _plan(self):
        p, m, lam, gamma = self.sampler.p, self.batch_size, self.lam, self.gamma
        if self.ais is not None:
            self.steps = self.ais.steps(self.rule, self.norms, lam, gamma)
        elif self.rule == "practical":
            self.steps = practical_steps(self.norms, p, m, lam, gamma)
        elif self.alpha is None or self.alpha == 0.0:
            self.steps = uniform_steps(self.norms, m, lam, gamma)
        else:
            self.steps = weighted_steps(self.norms, p, m, self.alpha, lam, gamma)
        self.sigma = self._spread(self.steps.sigma)
        return self.steps.theta * lam * self.steps.tau

    def _sweep(self):
        tau, theta = self.steps.tau, self.steps.theta
        if self.ais is not None:
            self._adaptive_sweep(tau, theta)
            return
        # Batches need not divide a pass: after k passes floor(k N/m) of them are done.
        due = (self.passes + 1) * self.n_rows // self.batch_size - self.iterations
        order = self.rows[self.sampler.order(due, self.rng)]
        self._run(order, self.sigma, self.kappa, tau, theta)
        self.iterations += due

    def _adaptive_sweep(self, tau: float, theta: float) -> None:
        delta = self.ais.delta(self.passes, self.steps.rate)
        base, sigma = self.sigma, self.sigma.copy()
        if self.sampling == "adaptive":
            random = self.rng.integers(2**63, size=1, dtype=np.uint64)
            draw = self.ais.draw(delta, random, self.rows, base, self.rule != "practical")
            self._run(np.empty_like(self.rows), sigma, self.kappa, tau, theta, draw=draw)
            return
        for _ in range(self.n_rows):
            x = self.primal.x
            xbar = x + theta * (x - self.before)
            z = self.problem.predictions(xbar, self.beta * self.bias[1])
            frequency = ideal_frequencies(
                self.problem,
                self.rows,
                self.weight,
                base,
                z,
                self.y,
                delta,
                self.ais.kappa,
                self.delta_y,
                self.center_y,
            )
            self.operations += self.problem.matrix.nnz  # for A xbar
            k = int(np.searchsorted(np.cumsum(frequency), self.rng.random() * frequency.sum()))
            i = self.rows[min(k, self.n_rows - 1)]
            f = frequency[min(k, self.n_rows - 1)]
            sigma[i] = base[i] * f if self.rule == "practical" else base[i] / f
            self.kappa[i] = 1.0 / f
            self.before = x
            self._run(np.array([i]), sigma, self.kappa, tau, theta)
            self.primal.settle()

    def _load(self, x):
        super()._load(x)
        self.before = np.asarray(x, dtype=np.float64)

    def restore(self, state):
        self.sampler_seed = state["sampler_seed"]
        if self.rows.size:
            self._make_sampler()
        super().restore(state)


def _check_options(sampling, steps, batch_size, alpha, adaptive):
    if sampling not in ("uniform", "lipschitz", "weighted", "adaptive", "ideal"):
        raise ValueError(
            f'sampling={sampling!r}: spdc takes "uniform", "lipschitz", "weighted", "adaptive" '
            'or "ideal"'
        )
    if steps not in ("practical", "theory", "theory2"):
        raise ValueError(f'steps={steps!r}: spdc takes "practical", "theory" or "theory2"')
    if steps == "theory2" and not adaptive:
        raise ValueError(
            f'steps="theory2" with sampling={sampling!r}: it is for sampling="adaptive" or '
            '"ideal"; use steps="theory"'
        )
    if adaptive and batch_size != 1:
        raise ValueError(
            f"batch_size={batch_size!r} with sampling={sampling!r}: adaptive sampling draws one "
            'row a step; use batch_size=1, or sampling="weighted"'
        )
    if alpha is not None and not (
        isinstance(alpha, (int, float, np.number)) and 0.0 <= alpha < 1.0
    ):
        raise ValueError(f"alpha={alpha!r}: the mixture weight must be in [0, 1)")
    if alpha is not None and sampling not in ("weighted", "lipschitz"):
        raise ValueError(f'alpha={alpha!r}: it is for sampling="weighted" or "lipschitz"')


def _check_rho(rho, steps):
    if rho is None:
        return
    if isinstance(rho, bool) or not (
        isinstance(rho, (int, float, np.number)) and 0.0 <= rho < np.inf
    ):
        raise ValueError(
            f"rho={rho!r}: the constant of Assumption 1 must be a finite number, zero or more"
        )
    if steps != "theory2":
        raise ValueError(f'rho={rho!r} with steps={steps!r}: it is for steps="theory2"')
