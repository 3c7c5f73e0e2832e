r"""AdaSPDC: SPDC with its own step sizes for each block (Zhu and Storkey, 2015, Algorithm 1).

Problem     blocks A_i of rows (one row each, unless ``groups`` says otherwise; K classes of a
            sample for multinomial), R_i their spectral norms, m of N blocks a step
Step        that of :mod:`.primal_dual`, with
            sigma_i = sqrt(N lambda/(m gamma))/(2 R_i)                              (10)
            tau_t   = sqrt(m gamma/(N lambda))/(2 R_t), R_t = max R_i of the step   (12)
            theta_t = 1 - 1/(N/m + R_t sqrt(N/(m lambda gamma)))                    (15)
            (In print (9) has phi for phi*, and the ridge step the wrong sign of b.)
Guard       Theorem 1 does not hold as it stands: rows of which every second one is 100 times
            shorter make it diverge.  When the gap is above 10x the best one seen, tau_t (and
            theta_t with it) is from then on no longer than the shortest there was, and the best
            point is taken up again.
Kinks       by continuation, as in SPDC; or directly, with theta_t = 1 (eq. 8)
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ...sampling.batches import Blocks
from ...sampling.single import Uniform
from .row_blocks import RowBlocks

#: Passes between two looks at the gap, and the growth that makes a divergence.
EVERY, DIVERGED = 4, 10.0
#: A gap below this share of P(0) counts as this much: the stage of a lasso may begin with a gap of
#: 1e-17, and a solved problem's is noise; neither's growth is a divergence.
NOISE = 1e-10


class AdaSPDC(RowBlocks):
    """Adaptive stochastic primal-dual coordinate descent; see the module's docstring.

    Parameters
    ----------
    batch_size : int
        Blocks of a step.
    n_jobs : int, optional
        Threads that share the rows of a step, as in
        :class:`~adacoord.solvers.primal_dual.spdc.SPDC`.
    groups : array of shape (n,), optional
        A label for each row: rows of equal labels make one block A_i, whose dual variables move
        together.  Numbers or strings; by default each row is its own block.
    kinks : {"continuation", "direct"}
        Losses that are not smooth and penalties that are not strongly convex: by ever smaller
        perturbations, or as they are, with theta_t = 1.  Of no effect on other problems.
    """

    name = "adaspdc"
    _state = (
        *RowBlocks._state,
        "frozen",
        "shortest",
        "best_gap",
        "best_x",
        "best_y",
        "best_c",
    )
    best_gap: float
    best_x: np.ndarray
    best_y: np.ndarray
    best_c: np.ndarray

    def __init__(
        self,
        problem,
        rng,
        start=None,
        *,
        batch_size=1,
        n_jobs=None,
        groups=None,
        kinks="continuation",
    ):
        super().__init__(
            problem, rng, start, batch_size=batch_size, n_jobs=n_jobs, groups=groups, kinks=kinks
        )
        self.frozen, self.shortest = False, np.inf
        self.noise = NOISE * abs(problem.null_value)
        self._forget_best()
        self._make_sampler()

    def _make_sampler(self) -> None:
        rng = np.random.Generator(np.random.PCG64(self.sampler_seed))
        N, m = self.n_blocks, self.blocks
        self.sampler = Uniform(N) if m == 1 else Blocks(N, m, rng)

    def _plan(self):
        N, m, lam, gamma = self.n_blocks, self.blocks, self.lam, self.gamma
        self.sigma = self._per_row(np.sqrt(N * lam / (m * gamma)) / 2.0 / self.radius)
        self.kappa = self._inverse_probabilities()
        tau, theta = self._primal_steps(self.radius)
        return float(np.max(lam * tau * theta))

    def _primal_steps(self, radius):
        """tau_t and theta_t for the largest radius of a step."""
        ratio = self.n_blocks / self.blocks
        tau = np.sqrt(self.gamma / (ratio * self.lam)) / (2.0 * radius)
        if self.general:
            return tau, np.ones_like(tau)
        theta = 1.0 - 1.0 / (ratio + radius * np.sqrt(ratio / (self.lam * self.gamma)))
        return tau, theta

    def _sweep(self):
        picks = self._draw()
        radius = self.radius[picks].max(axis=1)
        if radius.size:
            self.shortest = min(self.shortest, 1.0 / radius.max())
        if self.frozen:
            radius = np.full_like(radius, 1.0 / self.shortest)
        order, starts = self._rows_of(picks)
        self._run(order, self.sigma, self.kappa, *self._primal_steps(radius), starts)
        if not self.perturbed and self.passes % EVERY == 0:
            self.primal.settle()
            self._guard(sum(self._gap_parts(self.primal.x)))

    def _guard(self, gap: float) -> None:
        """Freeze tau when the gap blows up, and take up the best point."""
        blown_up = gap > DIVERGED * max(self.best_gap, self.noise)
        if not np.isfinite(gap) or (blown_up and not self.frozen):
            self.frozen = True
            self.y[...] = self.best_y
            self.bias[0] = self.best_c
            self._load(self.best_x)
        elif gap < self.best_gap:
            self.best_gap, self.best_x, self.best_y = gap, self.primal.x, self.y.copy()
            self.best_c = np.copy(self.bias[0])

    def _look_at_stage(self, primal_part, dual_part):
        self._guard(primal_part + dual_part)
        super()._look_at_stage(primal_part, dual_part)

    def _begin_stage(self):
        super()._begin_stage()
        self._forget_best()  # its gap was that of another perturbation

    def _forget_best(self) -> None:
        self.best_gap = np.inf
        self.best_x, self.best_y = self.center_x, self.y.copy()
        self.best_c = np.copy(self.bias[0])
