r"""SPDC: stochastic primal-dual coordinates (Zhang and Xiao, JMLR 2017).

Problem     min_x max_y (1/n) sum_i (y_i a_i.x - phi_i*(y_i)) + g(x)
Step        for each row i of a batch (one row in Algorithms 1 and 3, m in Algorithm 2):
              y_i+ = dprox(a_i.xbar, b_i, y_i, sigma_i)
            x+ = prox_{tau g}(x - tau (u + sum_i dy_i a_i/(N p_i))),  u += sum_i dy_i a_i/N,
            xbar+ = x+ + theta (x+ - x),  starting from xbar = x
Steps       :mod:`.spdc_steps`; sampling: :mod:`adacoord.sampling`
Intercept   one more primal coordinate, of feature value beta and penalty 0
Sparse      Section 6: a step costs O(nnz of the rows) by the kernels of :mod:`.spdc_kernels`
Kinks       Section 3, for losses that are not smooth (gamma = 0) and penalties that are not
            strongly convex (l2 = 0): (delta/2)(y_i - y_i^k)^2 and/or (delta/2)|x - x^k|^2 are
            added.  The paper centres them at 0 and needs delta ~ the accuracy; centred at the
            last stage's point (x^k, y^k) they vanish at the solution, so that delta need only
            fall slowly (continuation: each stage starts where the last one ended).
Stops       never: the monitor does, on the gap of the original problem.
"""

from __future__ import annotations

import numpy as np

from ..sampling.batches import Blocks, WeightedBatches
from ..sampling.single import Uniform, Weighted, norm_mixture
from .base import Solver
from .spdc_primal import DensePrimal, ScaledPrimal, StampedPrimal
from .spdc_steps import (
    Steps,
    optimal_alpha,
    practical_steps,
    uniform_steps,
    weighted_steps,
)

#: Passes between two computations of u from y itself.
RESYNC = 32
#: Condition number over N of the first stage of the continuation.
FIRST_STAGE = 1.0
#: A stage lasts until its predicted contraction is exp(-STAGE).
STAGE = 0.5
#: Condition number of stage k: (1 + k/PATIENCE)^2 times the first, so that stages get longer in
#: proportion to their number.  (Growing it geometrically is as fast at first, but starves small
#: problems of stages: 1e-5 after 20,000 passes where this takes 200.)
PATIENCE = 2.0


class SPDC(Solver):
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
    check_cost = 0.4
    _state = ("stage", "stage_ends", "iterations", "center_x", "center_y", "bias", "sampler_seed")

    def __init__(self, problem, rng, start=None, *, sampling="uniform", steps="practical",
                 batch_size=1, alpha=None):
        _check_options(sampling, steps, batch_size, alpha)
        super().__init__(problem, rng, start)
        self.rule, self.alpha = steps, alpha
        self.batch_size = min(int(batch_size), self.n_rows)
        norms = problem.matrix.squared_norms[self.rows]
        self.beta = 0.0
        if problem.intercept:
            self.beta = float(np.sqrt(norms.mean())) or 1.0
        self.norms = np.sqrt(self.weight[self.rows] * (norms + self.beta**2))
        self.iterations = 0
        self.stage = -1
        self.stage_ends = 0
        self.sampler_seed = 0
        x, c = self._start
        c = c / self.beta if self.beta else 0.0
        self.bias = np.array([c, c, 0.0, 1.0 / self.n_rows])
        self.center_x, self.center_y = x, self.y.copy()
        self.primal = None
        self.perturbed = problem.penalty.l2 == 0.0 or problem.loss.gamma == 0.0
        self._l2_only = problem.penalty.l1 == 0.0 and not problem.penalty.positive
        self._change = np.zeros(self.batch_size)
        self._moves = np.zeros(problem.n)
        if self.rows.size:
            lam, gamma = self._curvatures(0)
            if alpha is None and sampling == "weighted":
                self.alpha = optimal_alpha(self.norms, lam, gamma)
            elif alpha is None and sampling == "lipschitz":
                self.alpha = 0.5
            self.sampler_seed = int(rng.integers(2**62))
            self._make_sampler()

    # ---- the stages of Section 3 --------------------------------------------------------

    def _curvatures(self, stage: int) -> tuple[float, float]:
        """(lambda, gamma) of the problem a stage solves; the original's wherever positive."""
        lam, gamma = self.problem.penalty.l2, self.problem.loss.gamma
        growth = (1.0 + stage / PATIENCE) ** 2
        condition = FIRST_STAGE * growth * self.n_rows / float(np.mean(self.norms**2))
        if lam > 0.0 and gamma > 0.0:
            return lam, gamma
        if lam > 0.0:
            return lam, min(1.0 / (condition * lam), self._dual_scale())
        if gamma == 0.0:
            gamma = self._dual_scale() / np.sqrt(growth)
        return 1.0 / (condition * gamma), gamma

    def _dual_scale(self) -> float:
        """A width of smoothing that is large for this loss: its kinks are that far apart."""
        if self.problem.loss.task == "classification":
            return 1.0
        return float(np.mean(np.abs(self.problem.b - np.median(self.problem.b)))) or 1.0

    def _begin_stage(self, stage: int) -> None:
        """Centre the perturbation of ``stage`` at the present point and start from it."""
        x = self.x
        self.center_x, self.center_y = x, self.y.copy()
        self._set_stage(stage)
        self.primal.load(x, self._shifted_average())
        self.bias[1] = self.bias[0]
        self.bias[2] = self.beta * float(np.sum(self.weight * self.y)) / self.n_rows
        if self.perturbed:
            per_pass = self.steps.rate * self.n_rows / self.batch_size
            self.stage_ends = self.passes + int(np.ceil(STAGE / per_pass))

    def _set_stage(self, stage: int) -> None:
        """Everything that follows from the number of the stage alone."""
        self.stage = stage
        problem = self.problem
        self.lam, gamma = self._curvatures(stage)
        self.delta_y = gamma - problem.loss.gamma
        self.steps = self._make_steps(self.lam, gamma)
        self.sigma = np.zeros(problem.n)
        self.sigma[self.rows] = self.steps.sigma
        kind = DensePrimal if problem.matrix.is_dense else StampedPrimal
        # The scaled form divides by 1 - theta lambda tau: not for extremely strong penalties.
        if kind is StampedPrimal and self._l2_only and self.lam * self.steps.tau < 0.5:
            kind = ScaledPrimal
        if type(self.primal) is not kind:
            self.primal = kind(problem.matrix, self.batch_size)

    def _shifted_average(self) -> np.ndarray:
        """u, less the linear part of (delta/2)|x - x^k|^2."""
        return self._average() - (self.lam - self.problem.penalty.l2) * self.center_x

    # ---- sampling and steps -------------------------------------------------------------

    def _make_sampler(self) -> None:
        N, m = self.n_rows, self.batch_size
        rng = np.random.Generator(np.random.PCG64(self.sampler_seed))
        if self.alpha is None or self.alpha == 0.0:
            self.sampler = Uniform(N) if m == 1 else Blocks(N, m, rng)
        else:
            p = norm_mixture(self.norms, self.alpha)
            self.sampler = Weighted(p) if m == 1 else WeightedBatches(p, m, rng)
        self.kappa = np.zeros(self.problem.n)
        self.kappa[self.rows] = 1.0 / (N * self.sampler.p)

    def _make_steps(self, lam: float, gamma: float) -> Steps:
        p, m = self.sampler.p, self.batch_size
        if self.rule == "practical":
            return practical_steps(self.norms, p, m, lam, gamma)
        if self.alpha is None or self.alpha == 0.0:
            return uniform_steps(self.norms, m, lam, gamma)
        return weighted_steps(self.norms, p, m, self.alpha, lam, gamma)

    # ---- the stepper --------------------------------------------------------------------

    @property
    def x(self):
        return self.center_x.astype(np.float64) if self.primal is None else self.primal.x

    @property
    def intercept(self):
        return self.beta * float(self.bias[0])

    def _pass(self):
        problem, penalty = self.problem, self.problem.penalty
        if self.stage < 0 or (self.perturbed and self.passes >= self.stage_ends):
            self._begin_stage(self.stage + 1)
        elif self.passes % RESYNC == 0:
            self.primal.refresh(self._shifted_average())
        # Batches need not divide a pass: after k passes floor(k N/m) of them are done.
        due = (self.passes + 1) * self.n_rows // self.batch_size - self.iterations
        order = self.rows[self.sampler.order(due, self.rng)]
        self.primal.run(
            order,
            (self.batch_size, problem.b, self.weight, self.sigma, self.kappa),
            (self.y, self._moves, self.center_y, self.delta_y, problem.loss.code,
             *problem.loss.constants),
            (self.steps.tau, self.steps.theta, self.lam),
            (penalty.l1, penalty.positive),
            (self.beta, self.bias, self._change),
        )
        self.primal.settle()
        self.iterations += due
        self._count(order)

    def state(self):
        primal = {} if self.primal is None else self.primal.state
        return super().state() | {f"primal_{k}": v.copy() for k, v in primal.items()}

    def restore(self, state):
        super().restore({k: v for k, v in state.items() if not k.startswith("primal_")})
        self.primal = None
        if self.stage >= 0:
            self._make_sampler()
            self._set_stage(self.stage)
            for name, array in self.primal.state.items():
                array[...] = state[f"primal_{name}"]


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
    if alpha is not None and not (isinstance(alpha, (int, float)) and 0.0 <= alpha < 1.0):
        raise ValueError(f"alpha={alpha!r}: the mixture weight must be in [0, 1)")
    if alpha is not None and sampling == "uniform":
        raise ValueError(f'alpha={alpha!r}: it is for sampling="weighted" or "lipschitz"')
