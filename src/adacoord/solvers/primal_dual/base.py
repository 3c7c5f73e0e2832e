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
            fall slowly.  A stage ends when its gap is below what its perturbation costs; one that
            was short makes the next perturbation much smaller, one that was long a little.
            ``kinks="direct"`` leaves the problem as it is and takes theta = 1, as AdaSPDC's paper
            states it of general convex problems under its eq. 8 (Chambolle and Pock's method):
            O(1/T), the product of tau and sigma as the method has it, their ratio that of the
            continuation's first stage.

A method fills in ``_plan`` (step sizes of a stage) and ``_sweep`` (one pass).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..base import Solver
from .block_primal import BlockPrimal
from .spdc_primal import DensePrimal, ScaledPrimal, StampedPrimal
from .team import Team

#: Passes between two computations of u from y itself.
RESYNC = 32
#: Rows whose part of a gap is taken at a time.
TOGETHER = 2**15
#: Condition number over N of the first stage of the continuation.
FIRST_STAGE = 1.0
#: A stage is solved until its gap is this share of what its perturbation costs, looked at every
#: LOOK passes.  (Stages of a length predicted from the step sizes solve far too well: APDC on w8a,
#: hinge, l2 = 1e-5: 919 passes against 45.)
STAGE_GAP, LOOK = 1.0, 2
#: Stages of at most SHORT passes let the condition number grow fast, longer ones slowly; one that
#: is not solved after LONG passes (and some for its condition number) ends, and lets it fall.
SHORT, LONG = 10, 60
FAST_GROWTH, SLOW_GROWTH, DECLINE = 2.0, 1.2, 0.7


class PrimalDual(Solver):
    """Stages, the primal point in its three forms, and the intercept."""

    check_cost = 0.4
    _state: ClassVar[tuple[str, ...]] = (
        "stage",
        "stage_began",
        "stage_over",
        "growth",
        "center_x",
        "center_y",
        "bias",
    )

    def __init__(self, problem, rng, start=None, batch_size=1, kinks="continuation", jobs=1):
        if kinks not in ("continuation", "direct"):
            raise ValueError(
                f'kinks={kinks!r}: it must be "continuation" (smoothed less and less) or "direct" '
                "(as they are, with theta = 1)"
            )
        super().__init__(problem, rng, start)
        check_batch_size(batch_size, problem.n)
        self.team = Team(problem.matrix, jobs)
        self.batch_size = min(int(batch_size), self.n_rows)
        norms = problem.matrix.squared_norms[self.rows]
        self.beta = 0.0
        if problem.intercept:
            # as long as the rows, but longer where l2 outweighs them (tau is then too short for c)
            held = 4.0 * problem.penalty.strong_convexity * (problem.loss.gamma or 1.0)
            self.beta = float(np.sqrt(max(norms.mean(), held))) or 1.0
        self.norms = np.sqrt(self.weight[self.rows] * (norms + self.beta**2))
        self.stage, self.stage_began, self.stage_over, self.growth = -1, 0, True, 1.0
        x, c = self._start
        c = np.asarray(c) / (self.beta or 1.0)
        self.bias = np.stack([c, c, np.zeros_like(c), np.full_like(c, 1.0 / self.n_rows)])
        self.center_x, self.center_y = x, self.y.copy()
        self.primal = None
        kinked = problem.penalty.strong_convexity == 0.0 or problem.loss.gamma == 0.0
        self.perturbed = kinked and kinks == "continuation"
        self.general = kinked and kinks == "direct"  # nothing but convex: theta = 1
        self._change = np.zeros((self.batch_size, *c.shape))
        self._moves = np.zeros(problem.n)

    # ---- to be filled in ----------------------------------------------------------------

    def _plan(self) -> float:
        """Choose the steps of a stage of curvatures ``lam`` and ``gamma``; theta lambda tau."""
        raise NotImplementedError

    def _sweep(self) -> None:
        """One pass, by calls of :meth:`_run`."""
        raise NotImplementedError

    # ---- the stages of the continuation -------------------------------------------------

    def _curvatures(self) -> tuple[float, float]:
        """(lambda, gamma) of the problem a stage solves; the original's wherever positive.

        Without stages those of the first, which nothing is perturbed by: the step sizes' ratio.
        """
        lam, gamma = self.problem.penalty.strong_convexity, self.problem.loss.gamma
        condition = FIRST_STAGE * self.growth * self.n_rows / float(np.mean(self.norms**2))
        if lam > 0.0 and gamma > 0.0:
            return lam, gamma
        if lam > 0.0:
            return lam, min(1.0 / (condition * lam), self._dual_scale())
        if gamma == 0.0:
            gamma = self._dual_scale() / np.sqrt(self.growth)
        return 1.0 / (condition * gamma), gamma

    def _dual_scale(self) -> float:
        """A width of smoothing that is large for this loss: its kinks are that far apart."""
        if self.problem.loss.task == "classification":
            return 1.0
        return float(np.mean(np.abs(self.problem.b - np.median(self.problem.b)))) or 1.0

    def _begin_stage(self) -> None:
        """Centre the next perturbation at the present point and start from it."""
        if self.stage >= 0:
            length = self.passes - self.stage_began
            self.growth *= (
                FAST_GROWTH
                if length <= SHORT
                else SLOW_GROWTH
                if length < self._patience()
                else DECLINE
            )
        self.stage += 1
        self.stage_began, self.stage_over = self.passes, False
        x = self.x
        self.center_x, self.center_y = x, self.y.copy()
        self._set_up()
        self._load(x)

    def _set_up(self) -> None:
        """Everything that follows from the state alone."""
        self.lam, self.gamma = self._curvatures()
        self.delta_x = self.delta_y = 0.0
        if self.perturbed:
            self.delta_x = self.lam - self.problem.penalty.strong_convexity
            self.delta_y = self.gamma - self.problem.loss.gamma
        self.g = self.problem.penalty.plus_quadratic(self.delta_x)  # but for its linear part
        shift = self._plan()
        kind: type[DensePrimal | ScaledPrimal | StampedPrimal]
        kind = DensePrimal if self.problem.matrix.is_dense else StampedPrimal
        # The scaled form divides by 1 - theta lambda tau: not for extremely strong penalties.
        if kind is StampedPrimal and self.g.quadratic and shift < 0.5:
            kind = ScaledPrimal
        if self.problem.loss.blocks:
            if self.primal is None:
                classes = self.problem.n_classes
                assert classes is not None
                self.primal = BlockPrimal(self.problem.matrix, self.batch_size, classes, self.team)
        elif type(self.primal) is not kind:
            self.primal = kind(self.problem.matrix, self.batch_size, self.team)

    def _look_at_stage(self, primal_part: float, dual_part: float) -> None:
        """End the stage if its problem is solved well enough."""
        enough = STAGE_GAP * self._perturbation()
        late = self.passes + 1 >= self.stage_began + self._patience()
        self.stage_over = bool(late or primal_part + dual_part <= enough)

    def _patience(self) -> float:
        """Passes a stage may take: a digit or so takes the root of its condition number."""
        return LONG + 4.0 * np.sqrt(FIRST_STAGE * self.growth)

    def _perturbation(self) -> float:
        """What the stage's solution pays for being away from the centre."""
        dy = np.square(self.y - self.center_y)
        dx = np.square(self.primal.x - self.center_x)
        dual = 0.5 * self.delta_y * float(np.sum(self.weight * dy.T)) / self.n_rows
        return dual + 0.5 * self.delta_x * float(np.sum(dx))

    def _gap_parts(self, x: np.ndarray) -> tuple[float, float]:
        """(G_x, G_y) of the stage's problem: both zero at its solution and nowhere else.

        Where g is not strongly convex, those of t y, with t <= 1 such that g* is finite.
        """
        self.operations += self.problem.matrix.nnz  # for A x
        u = self.primal.u.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite has diverged
            t = self.g.feasible_scale(u)
            return self._primal_part(x, t * u), self._dual_part(x, t)

    def _primal_part(self, x: np.ndarray, u: np.ndarray) -> float:
        """g(x) + g*(-u) + u.x."""
        g = self.g
        return max(g.value(x) + g.conjugate(-u) + float(np.sum(u * x)), 0.0)

    def _dual_part(self, x: np.ndarray, scale: float) -> float:
        """mean(phi(z) + phi*(y) - y z), z = A x, at ``scale`` times the present y.

        Some rows at a time: a dozen vectors of all of them are more memory than all else here.
        """
        z = self.problem.predictions(x, self.intercept)
        parts = range(0, self.rows.size, TOGETHER)
        total = sum(self._dual_sum(z, self.rows[k : k + TOGETHER], scale) for k in parts)
        return max(total / self.n_rows, 0.0)

    def _dual_sum(self, z: np.ndarray, rows: np.ndarray, scale: float) -> float:
        problem, z = self.problem, z[rows]
        b, y, w = problem.b[rows], scale * self.y[rows], self.weight[rows]
        loss, delta, center = problem.loss, self.delta_y, self.center_y[rows]
        if delta > 0.0:  # phi of the perturbed loss is attained at its dual prox
            v = loss.dual_prox(z, b, center, 1.0 / delta)
            value = v * z - loss.conjugate(v, b) - 0.5 * delta * (v - center) ** 2
            conjugate = loss.conjugate(y, b) + 0.5 * delta * (y - center) ** 2
        else:
            value, conjugate = loss.value(z, b), loss.conjugate(y, b)
        inner = (y * z).sum(axis=1) if loss.blocks else y * z
        return float(np.sum(w * (value + conjugate - inner)))

    def _load(self, x: np.ndarray) -> None:
        """Start from ``x`` and the present y, with xbar = x."""
        self.primal.load(x, self._shifted_average())
        self.bias[1] = self.bias[0]
        # the transposes serve y of shape (n,) and, for blocks, (n, K)
        self.bias[2] = self.beta * np.sum(self.weight * self.y.T, axis=-1) / self.n_rows

    def _shifted_average(self) -> np.ndarray:
        """u, less the linear part of (delta/2)|x - x^k|^2."""
        return self._average() - self.delta_x * self.center_x

    # ---- the stepper --------------------------------------------------------------------

    @property
    def x(self):
        return self.center_x.astype(np.float64) if self.primal is None else self.primal.x

    @property
    def intercept(self):
        c = self.beta * self.bias[0]
        return c if self.problem.loss.blocks else float(c)

    def _pass(self):
        if self.stage_over:
            self._begin_stage()
        elif self.passes % RESYNC == 0:
            self.primal.refresh(self._shifted_average())
        self._sweep()
        self.primal.settle()
        if self.perturbed and (self.passes - self.stage_began) % LOOK == 0:
            self._look_at_stage(*self._gap_parts(self.primal.x))

    def _run(self, order, sigma, kappa, tau, theta, starts=None, **draw) -> None:
        """The steps of ``order`` (rows of the data), with ``sigma`` and ``kappa`` for every row.

        Batch k is ``order[starts[k]:starts[k+1]]`` (by default batches of ``batch_size``);
        ``tau`` and ``theta`` are one number each, or one for each batch.  With ``draw``
        (:class:`.spdc_ais.Adaptive`) the rows are drawn, and their sigma and kappa set, as the
        steps are made.
        """
        problem = self.problem
        if starts is None:
            starts = np.append(np.arange(0, order.size, self.batch_size), order.size)
        self.primal.run(
            order,
            starts,
            (problem.b, self.weight, sigma, kappa),
            (
                self.y,
                self._moves,
                self.center_y,
                self.delta_y,
                problem.loss.code,
                *problem.loss.constants,
            ),
            (one_each(tau, starts.size - 1), one_each(theta, starts.size - 1)),
            self.g,
            (self.beta, self.bias, self._change),
            **draw,
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
            self._set_up()
            for name, array in self.primal.state.items():
                array[...] = state[f"primal_{name}"]


def check_batch_size(batch_size, n: int) -> None:
    """Refuse what is not a number of rows that A has."""
    if isinstance(batch_size, bool) or not (
        isinstance(batch_size, (int, np.integer)) and batch_size >= 1
    ):
        raise ValueError(f"batch_size={batch_size!r}: it must be a whole number, 1 or more")
    if batch_size > n:
        raise ValueError(f"batch_size={batch_size}: A has {n} rows; use that many at the most")


def one_each(value: float | np.ndarray, size: int) -> np.ndarray:
    """``value`` for each of ``size`` steps."""
    return np.full(size, value) if np.ndim(value) == 0 else np.asarray(value)
