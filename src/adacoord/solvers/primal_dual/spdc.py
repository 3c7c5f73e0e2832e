r"""SPDC: stochastic primal-dual coordinates (Zhang and Xiao, JMLR 2017).

The step and what surrounds it are in :mod:`.primal_dual`, the step sizes in :mod:`.spdc_steps`.

Algorithm 1   one row a step, uniform
Algorithm 2   ``batch_size`` rows, one from each of as many disjoint blocks
Algorithm 3   one row, p_i = (1-alpha)/N + alpha R_i/sum R; eq. 26 for batches of them
Blocks        ``groups`` of rows in place of rows, with their spectral norms for R_i, and losses of
              several numbers a row, as Section 3 of AdaSPDC has them (:mod:`.row_blocks`)
kappa_i       1/(N p_i), p_i the probability that a batch contains row i
Stops         never: the monitor does, on the gap of the original problem.
"""

from __future__ import annotations

import numpy as np

from ...sampling.batches import Blocks, WeightedBatches
from ...sampling.schedule import check_mixture
from ...sampling.single import Uniform, Weighted, norm_mixture
from .row_blocks import RowBlocks
from .spdc_ais import POWER, Adaptive, ideal_frequencies
from .spdc_steps import icml_steps, optimal_alpha, practical_steps, uniform_steps, weighted_steps

#: delta of adaptive sampling, as in the paper.
DELTA = (0.2, 0.8)


class SPDC(RowBlocks):
    """Stochastic primal-dual coordinates; see the module's docstring.

    Parameters
    ----------
    sampling : {"uniform", "lipschitz", "weighted", "adaptive", "ideal"}
        ``"weighted"`` is Algorithm 3 with ``alpha`` (by default eq. 25's optimum),
        ``"lipschitz"`` the same mixture with ``alpha`` 1/2 by default, or with the growing share
        ``delta`` (LIS of the AIS paper), ``"adaptive"`` SPDC-AIS (:mod:`.spdc_ais`), ``"ideal"``
        the same with exact gradient maps, at O(n d) a step.
    steps : {"practical", "theory", "theory2", "constant", "icml2015"}
        ``"theory"``: the printed step sizes; ``"theory2"``, for adaptive sampling only, those of
        the second theorem of AIS; ``"constant"``: tau, sigma and theta of Algorithm 1 under any
        sampling, sigma_i = sigma for every row (eq. 10 of AIS, what its Figure 4 shows);
        ``"icml2015"``, for weighted sampling of single rows only, those of the paper's first
        version, with ``alpha`` 1/2: the rival of AdaSPDC's authors.
    batch_size : int
        Rows of a step (Algorithm 2; with weighted sampling eq. 26).
    n_jobs : int, optional
        Threads that share the rows of a batch, -1 for as many as there are processors; the same
        bits for any number.  They pay for long rows and a ``batch_size`` below n/kappa, kappa =
        R^2/(l2 gamma): see :mod:`.team`.
    alpha : float in [0, 1), optional
        The share of the row norms in the sampling probabilities.
    kappa : float
        The power of the gradient maps in the adaptive weights.
    delta : (float, float), optional
        The share of the weights in the probabilities (eq. 13), at the first step and from
        ``delta_passes`` on; it changes with every draw.  (0.2, 0.8) by default for adaptive
        sampling.
    delta_passes : int, optional
        10 by default; the paper takes those of the whole run.
    weights : {"averaged", "last"}
        Of adaptive sampling: ``"last"`` is |pi_i|^kappa of a row's last step, updated after every
        draw, as in Algorithm 1 of AIS; ``"averaged"`` is its mean with the weight before, and rows
        are drawn in pieces of up to 256 (faster, and safe with long steps).
    rho : float, optional
        The constant of Assumption 1 of AIS, for ``"theory2"``.
    groups : array of shape (n,), optional
        A label for each row: rows of equal labels make one block, whose dual variables move
        together; ``batch_size`` then counts blocks.  Not for adaptive sampling.
    kinks : {"continuation", "direct"}
        Losses that are not smooth and penalties that are not strongly convex: by ever smaller
        perturbations (Section 3), or as they are, with theta = 1 (:mod:`.base`; not for adaptive
        sampling).  Of no effect on other problems.
    """

    name = "spdc"
    _state = (*RowBlocks._state, "tree", "before")

    def __init__(
        self,
        problem,
        rng,
        start=None,
        *,
        sampling="uniform",
        steps="practical",
        batch_size=1,
        n_jobs=None,
        alpha=None,
        kappa=0.5,
        delta=None,
        delta_passes=None,
        weights="averaged",
        rho=None,
        groups=None,
        kinks="continuation",
    ):
        adaptive = sampling in ("adaptive", "ideal")
        _check_options(sampling, steps, batch_size, alpha, adaptive)
        _check_weights(sampling, batch_size, alpha, kappa, delta, delta_passes, weights)
        _check_rho(rho, steps)
        by_weights = adaptive or delta is not None  # rows are drawn one by one, by a tree
        if by_weights and (groups is not None or problem.loss.blocks):
            seen = "groups" if groups is not None else f'loss="{problem.loss.name}"'
            raise ValueError(
                f"{seen} with sampling={sampling!r}: adaptive sampling, and a share delta that "
                'grows, draw single rows of one number each; use sampling="uniform" or '
                '"weighted"'
            )
        if by_weights and kinks == "direct":
            raise ValueError(
                f'kinks="direct" with sampling={sampling!r}: theta = 1 is for fixed probabilities; '
                'use sampling="uniform" or "weighted", or kinks="continuation"'
            )
        super().__init__(
            problem, rng, start, batch_size=batch_size, n_jobs=n_jobs, groups=groups, kinks=kinks
        )
        self.sampling, self.rule, self.alpha = sampling, steps, alpha
        self.before = self.center_x  # x one step ago
        self.ais = None
        if self.rows.size:
            if steps == "icml2015":
                self.alpha = 0.5
            elif alpha is None and sampling == "weighted":
                self.alpha = optimal_alpha(self.radius, *self._curvatures())
            elif alpha is None and sampling == "lipschitz" and delta is None:
                self.alpha = 0.5
            if by_weights:
                self.ais = Adaptive(
                    np.ones(self.n_rows) if adaptive else self.norms,
                    float(kappa),
                    DELTA if delta is None else delta,
                    delta_passes,
                    rho,
                    adaptive,
                    weights == "averaged",
                )
            self._make_sampler()

    @property
    def tree(self) -> np.ndarray:
        """The weights of the rows, where they are drawn by :class:`.spdc_ais.Adaptive`."""
        return np.zeros(0) if self.ais is None else self.ais.tree

    @tree.setter
    def tree(self, value: np.ndarray) -> None:
        if self.ais is not None:
            self.ais.tree = value

    def _make_sampler(self) -> None:
        N, m = self.n_blocks, self.blocks
        rng = np.random.Generator(np.random.PCG64(self.sampler_seed))
        if self.alpha is None or self.alpha == 0.0:
            self.sampler = Uniform(N) if m == 1 else Blocks(N, m, rng)
        else:
            p = norm_mixture(self.radius, self.alpha)
            self.sampler = Weighted(p) if m == 1 else WeightedBatches(p, m, rng)
        self.kappa = self._inverse_probabilities()

    def _plan(self):
        norms, p, m, lam, gamma = self.radius, self.sampler.p, self.blocks, self.lam, self.gamma
        if self.ais is not None:
            self.steps = self.ais.steps(self.rule, norms, self.problem.d, lam, gamma)
        elif self.rule == "practical":
            self.steps = practical_steps(norms, p, m, lam, gamma)
        elif self.rule == "icml2015":
            self.steps = icml_steps(norms, p, lam, gamma)
        elif self.rule == "constant" or self.alpha is None or self.alpha == 0.0:
            self.steps = uniform_steps(norms, m, lam, gamma)
        else:
            self.steps = weighted_steps(norms, p, m, self.alpha, lam, gamma)
        self.sigma = self._per_row(self.steps.sigma)
        self.theta = 1.0 if self.general else self.steps.theta
        return self.theta * lam * self.steps.tau

    def _sweep(self):
        tau, theta = self.steps.tau, self.theta
        if self.ais is not None:
            self._adaptive_sweep()
            return
        order, starts = self._rows_of(self._draw())
        self._run(order, self.sigma, self.kappa, tau, theta, starts)

    def _adaptive_sweep(self) -> None:
        tau, theta, base = self.steps.tau, self.steps.theta, self.sigma
        if (longer := self.ais.longer(self.rule)) != 1.0:
            tau, base = longer * tau, base / longer
            theta = 1.0 / (1.0 + 2.0 * self.lam * tau)
        step, sigma = self.passes * self.n_rows, base.copy()
        if self.sampling != "ideal":
            random = self.rng.integers(2**63, size=1, dtype=np.uint64)
            draw = self.ais.draw(step, random, self.rows, base, self.rule)
            self._run(np.empty_like(self.rows), sigma, self.kappa, tau, theta, draw=draw)
            return
        for t in range(step, step + self.n_rows):
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
                self.ais.delta(t),
                self.ais.kappa,
                self.delta_y,
                self.center_y,
            )
            self.operations += self.problem.matrix.nnz  # for A xbar
            k = int(np.searchsorted(np.cumsum(frequency), self.rng.random() * frequency.sum()))
            i = self.rows[min(k, self.n_rows - 1)]
            f = frequency[min(k, self.n_rows - 1)]
            sigma[i] = base[i] * f ** POWER[self.rule]
            self.kappa[i] = 1.0 / f
            self.before = x
            self._run(np.array([i]), sigma, self.kappa, tau, theta)
            self.primal.settle()

    def _load(self, x):
        super()._load(x)
        self.before = np.asarray(x, dtype=np.float64)


def _check_options(sampling, steps, batch_size, alpha, adaptive):
    if sampling not in ("uniform", "lipschitz", "weighted", "adaptive", "ideal"):
        raise ValueError(
            f'sampling={sampling!r}: spdc takes "uniform", "lipschitz", "weighted", "adaptive" '
            'or "ideal"'
        )
    if steps not in ("practical", "theory", "theory2", "constant", "icml2015"):
        raise ValueError(
            f'steps={steps!r}: spdc takes "practical", "theory", "theory2", "constant" or '
            '"icml2015"'
        )
    if steps == "icml2015" and (sampling != "weighted" or alpha is not None or batch_size != 1):
        raise ValueError(
            f'steps="icml2015" with sampling={sampling!r}, alpha={alpha!r}, batch_size='
            f'{batch_size!r}: it is for sampling="weighted", batch_size=1 and alpha=None (which '
            'means 1/2 there); use steps="theory"'
        )
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


def _check_weights(sampling, batch_size, alpha, kappa, delta, delta_passes, weights):
    """What :class:`.spdc_ais.Adaptive` takes, and when."""
    check_mixture(
        DELTA if delta is None else delta, kappa, 1 if delta_passes is None else delta_passes
    )
    if weights not in ("averaged", "last"):
        raise ValueError(f'weights={weights!r}: spdc takes "averaged" or "last"')
    if sampling not in ("adaptive", "ideal") and kappa != 0.5:
        raise ValueError(
            f'kappa={kappa!r} with sampling={sampling!r}: it is for sampling="adaptive" or "ideal"'
        )
    if sampling != "adaptive" and weights != "averaged":
        raise ValueError(
            f'weights={weights!r} with sampling={sampling!r}: it is for sampling="adaptive"'
        )
    if sampling in ("adaptive", "ideal") or (delta is None and delta_passes is None):
        return
    seen = f"delta={delta!r}, delta_passes={delta_passes!r}"
    if sampling != "lipschitz":
        raise ValueError(
            f"{seen} with sampling={sampling!r}: they are for "
            'sampling="adaptive", "ideal" or "lipschitz"'
        )
    if delta is None:
        raise ValueError(
            f'{seen} with sampling="lipschitz": its share is constant unless delta is given, as '
            "in delta=(0.2, 0.8)"
        )
    if alpha is not None:
        raise ValueError(
            f"alpha={alpha!r} and {seen}: give the share that stays or the one that grows"
        )
    if batch_size != 1:
        raise ValueError(
            f"batch_size={batch_size!r} with delta={delta!r}: a share that grows draws one row a "
            "step; use batch_size=1, or alpha"
        )


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
