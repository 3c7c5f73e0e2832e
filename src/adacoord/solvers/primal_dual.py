r"""What the primal-dual coordinate methods (SPDC, AdaSPDC, APDC) share.

Problem     min_x max_y (1/n) sum_i (y_i a_i.x - phi_i*(y_i)) + g(x)
Step        for each row i of a batch:  y_i+ = dprox(a_i.xbar, b_i, y_i, sigma_i)
            x+ = prox_{tau g}(x - tau (u + sum_i kappa_i dy_i a_i)),  u += sum_i dy_i a_i/N,
            xbar+ = x+ + theta (x+ - x),  starting from xbar = x
Intercept   one more primal coordinate, of feature value beta and penalty 0
Sparse      a step costs O(nnz of the rows) by the kernels of :mod:`.spdc_kernels`
Kinks       Section 3 of SPDC, for losses that are not smooth (gamma = 0) and penalties that are
            not strongly convex (l2 = 0): (delta/2)(y_i - y_i^k)^2 and/or (delta/2)|x - x^k|^2 are
            added.  The paper centres them at 0 and needs delta ~ the accuracy; centred at the
            last stage's point (x^k, y^k) they vanish at the solution, so that delta need only
            fall slowly (continuation: each stage starts where the last one ended).

A method fills in ``_plan`` (step sizes of a stage) and ``_sweep`` (one pass).
"""

from __future__ import annotations

import numpy as np

from .base import Solver
from .spdc_primal import DensePrimal, ScaledPrimal, StampedPrimal

#: Passes between two computations of u from y itself.
RESYNC = 32
#: Condition number over N of the first stage of the continuation.
FIRST_STAGE = 1.0
#: A stage lasts until its predicted contraction is exp(-STAGE).
STAGE = 0.5
#: Condition number of stage k: (1 + k/PATIENCE)^2 times the first, so that stages get longer in
#: proportion to their number.  (Growing it geometrically is as fast at first, but starves small
#: problems of stages: 1e-5 after 20,000 passes where this takes 400.)
PATIENCE = 2.0


class PrimalDual(Solver):
    """Stages, the primal point in its three forms, and the intercept."""

    check_cost = 0.4
    _state = ("stage", "stage_ends", "center_x", "center_y", "bias")

    def __init__(self, problem, rng, start=None, batch_size=1):
        super().__init__(problem, rng, start)
        self.batch_size = min(int(batch_size), self.n_rows)
        norms = problem.matrix.squared_norms[self.rows]
        self.beta = 0.0
        if problem.intercept:
            self.beta = float(np.sqrt(norms.mean())) or 1.0
        self.norms = np.sqrt(self.weight[self.rows] * (norms + self.beta**2))
        self.stage = -1
        self.stage_ends = 0
        x, c = self._start
        c = c / self.beta if self.beta else 0.0
        self.bias = np.array([c, c, 0.0, 1.0 / self.n_rows])
        self.center_x, self.center_y = x, self.y.copy()
        self.primal = None
        self.perturbed = problem.penalty.l2 == 0.0 or problem.loss.gamma == 0.0
        self._change = np.zeros(self.batch_size)
        self._moves = np.zeros(problem.n)

    # ---- to be filled in ----------------------------------------------------------------

    def _plan(self) -> tuple[float, float]:
        """Choose the steps of a stage of curvatures ``lam`` and ``gamma``.

        Returns
        -------
        rate, shift : the predicted contraction of one iteration, and theta lambda tau
        """
        raise NotImplementedError

    def _sweep(self) -> None:
        """One pass, by calls of :meth:`_run`."""
        raise NotImplementedError

    # ---- the stages of the continuation -------------------------------------------------

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
        self._load(x)
        if self.perturbed:
            per_pass = self.rate * self.n_rows / self.batch_size
            self.stage_ends = self.passes + int(np.ceil(STAGE / per_pass))

    def _set_stage(self, stage: int) -> None:
        """Everything that follows from the number of the stage alone."""
        self.stage = stage
        self.lam, self.gamma = self._curvatures(stage)
        self.delta_y = self.gamma - self.problem.loss.gamma
        self.rate, shift = self._plan()
        penalty = self.problem.penalty
        kind = DensePrimal if self.problem.matrix.is_dense else StampedPrimal
        # The scaled form divides by 1 - theta lambda tau: not for extremely strong penalties.
        if kind is StampedPrimal and penalty.l1 == 0.0 and not penalty.positive and shift < 0.5:
            kind = ScaledPrimal
        if type(self.primal) is not kind:
            self.primal = kind(self.problem.matrix, self.batch_size)

    def _load(self, x: np.ndarray) -> None:
        """Start from ``x`` and the present y, with xbar = x."""
        self.primal.load(x, self._shifted_average())
        self.bias[1] = self.bias[0]
        self.bias[2] = self.beta * float(np.sum(self.weight * self.y)) / self.n_rows

    def _shifted_average(self) -> np.ndarray:
        """u, less the linear part of (delta/2)|x - x^k|^2."""
        return self._average() - (self.lam - self.problem.penalty.l2) * self.center_x

    # ---- the stepper --------------------------------------------------------------------

    @property
    def x(self):
        return self.center_x.astype(np.float64) if self.primal is None else self.primal.x

    @property
    def intercept(self):
        return self.beta * float(self.bias[0])

    def _pass(self):
        if self.stage < 0 or (self.perturbed and self.passes >= self.stage_ends):
            self._begin_stage(self.stage + 1)
        elif self.passes % RESYNC == 0:
            self.primal.refresh(self._shifted_average())
        self._sweep()
        self.primal.settle()

    def _run(self, order, sigma, kappa, tau: float, theta: float) -> None:
        """The steps of ``order`` (rows of the data); ``sigma`` and ``kappa`` for every row."""
        problem, penalty = self.problem, self.problem.penalty
        self.primal.run(
            order,
            (self.batch_size, problem.b, self.weight, sigma, kappa),
            (self.y, self._moves, self.center_y, self.delta_y, problem.loss.code,
             *problem.loss.constants),
            (tau, theta, self.lam),
            (penalty.l1, penalty.positive),
            (self.beta, self.bias, self._change),
        )
        self._count(order)

    def _spread(self, values: np.ndarray) -> np.ndarray:
        """Values of the visited rows, at their places among all rows."""
        out = np.zeros(self.problem.n)
        out[self.rows] = values
        return out

    def state(self):
        primal = {} if self.primal is None else self.primal.state
        return super().state() | {f"primal_{k}": v.copy() for k, v in primal.items()}

    def restore(self, state):
        super().restore({k: v for k, v in state.items() if not k.startswith("primal_")})
        self.primal = None
        if self.stage >= 0:
            self._restore_plan()
            for name, array in self.primal.state.items():
                array[...] = state[f"primal_{name}"]

    def _restore_plan(self) -> None:
        """Rebuild what follows from the restored attributes."""
        self._set_stage(self.stage)
