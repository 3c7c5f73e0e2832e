r"""An interior point for losses with kinks and l1 alone: the linear program that they make.

Problem     min P(x, c) for phi_i(z) = max of v (z - b_i) over v in [lo_i, hi_i] (hinge, absolute,
            quantile) and g = l1 |x|_1
Program     |x_j| is such a loss, too, of a row e_j without an intercept.  With v_i = w_i y_i/n, and
            B of the rows [A, 1] and [I, 0], the dual is

                min b.v  with  B'v = 0,  L <= v <= U

            whose multipliers are (x, c): b - B(x, c) = r - t, r, t >= 0 those of the bounds
Step        of the conditions r (v - L) = mu, t (U - v) = mu: q = 1/(r/(v - L) + t/(U - v)),
            (B' diag(q) B) d(x, c) = right side, or the same on the side of the rows
            (:mod:`.interior_systems`); predictor and corrector by the same factor (Mehrotra 1992;
            for quantile regression Portnoy and Koenker 1997)
Lengths     SHORT of the way to the bounds, of v and of the multipliers each
A pass      is one iteration: the Gram matrix, its factor, and four products with A and A'
Shown       ``estimate`` is the gap of the program; the monitor looks when that is small
Stops       never: the monitor does.  ``stuck`` where rounding leaves no step

6,000 x 50, quantile, l1_max/10 and /1000, to 1e-6: 19 and 16 iterations, .07 and .06 s, where APDC
takes 835 passes (1.5 s) and more than 1,500.  Hinge, 800 x 3,000 sparse and 388 x 1,425: .15 s,
where APDC is far from it after 1,000 passes.  10,000 x 50: .09 and .06 s, where HiGHS, which
:mod:`.small` asks for a vertex, takes 7 and 15 (``benchmarks/race.py --models``).
"""

from __future__ import annotations

import math

import numpy as np

from ..base import Solver, start_point
from .interior_systems import back_of, smaller_side, times

#: The share of the way to the nearest bound that a step goes.
SHORT = 0.9995
#: How near to the bounds v may start, as a share of their distance.
INSIDE = 0.1
#: Steps shorter than this, or a complementarity that falls by less, are idle; so many iterations
#: in a row are rounding (a corrector may raise it once).
LEAST, IDLE = 1e-5, 4
#: What rounding leaves of B'v, as a share of l1.
CLOSED = 1e-9


class InteriorPoint(Solver):
    """Predictor-corrector steps on the linear program; see the module's docstring."""

    name = "newton"
    patient = uses_blas = True
    check_cost = 2.0
    _state = ("point", "c", "v", "r", "t", "mu", "idle", "estimate", "stuck")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        n, d = problem.n, problem.d
        x, c, _ = start_point(problem, start)
        self.point, self.c = x.astype(np.float64), float(c)
        if start is None and problem.intercept and problem.loss.task == "regression":
            self.c = problem._mean(problem.b)
        w = np.ones(n) if problem.weights is None else problem.weights
        self.w, l1 = w / n, np.full(d, problem.penalty.l1)
        low, high = problem._domain
        self.low = np.concatenate([self.w * low, -l1])
        self.high = np.concatenate([self.w * high, l1])
        self.live = self.high > self.low
        self.b = np.concatenate([problem.b, np.zeros(d)])
        room = self.high - self.low
        self.v = np.clip(0.0, self.low + INSIDE * room, self.high - INSIDE * room)
        away = self._away()
        size = float(np.mean(np.abs(away[:n]))) or 1.0
        self.r, self.t = np.maximum(away, 0.0) + size, np.maximum(-away, 0.0) + size
        self.mu = self._complementarity(self.v, self.r, self.t)
        self.idle, self.estimate = 0, math.inf
        self.system = smaller_side(problem)
        self._cost = self.system.cost + 8 * problem.matrix.nnz

    @property
    def x(self):
        """The point, with 0 for each x_j that is nearer to 0 than |u_j| is to l1."""
        problem = self.problem
        slack = np.minimum(self.v - self.low, self.high - self.v)[problem.n :] / problem.penalty.l1
        spread = float(np.mean(np.abs(problem.b - np.mean(problem.b)))) or 1.0
        small = np.abs(self.point) * problem._column_lengths < slack * spread
        return np.where(small, 0.0, self.point)

    @property
    def intercept(self):
        return self.c

    def _pass(self):
        if not self.stuck:
            self._iterate()
            self.operations += self._cost

    # ---- what is measured -----------------------------------------------------------------------

    def _away(self) -> np.ndarray:
        """b - B (x, c)."""
        return self.b - times(self.problem, self.point, self.c)

    def _complementarity(self, v, r, t) -> float:
        live = self.live
        sums = np.sum(((v - self.low) * r)[live]) + np.sum(((self.high - v) * t)[live])
        return float(sums) / (2.0 * max(int(np.count_nonzero(live)), 1))

    # ---- an iteration ---------------------------------------------------------------------------

    def _iterate(self) -> None:
        live = self.live
        below = np.where(live, self.v - self.low, 1.0)
        above = np.where(live, self.high - self.v, 1.0)
        q = np.where(live, 1.0 / (self.r / below + self.t / above), 0.0)
        self.system.factorise(q)
        away, back = self._away(), back_of(self.problem, self.v)
        wrong = away - self.r + self.t

        def direction(at_r, at_t, refine):
            xi = wrong - at_r / below + self.r + at_t / above - self.t
            dx, dc, dv = self.system.direction(xi, back, refine)
            dr = at_r / below - self.r - self.r / below * dv
            dt = at_t / above - self.t + self.t / above * dv
            return dx, dc, dv, np.where(live, dr, 0.0), np.where(live, dt, 0.0)

        _, _, dv, dr, dt = direction(0.0, 0.0, refine=False)
        along, across = self._lengths(below, above, dv, dr, dt)
        ahead = self._complementarity(
            self.v + along * dv, self.r + across * dr, self.t + across * dt
        )
        goal = self.mu * min(max(ahead / self.mu, 0.0), 1.0) ** 3
        dx, dc, dv, dr, dt = direction(goal - dv * dr, goal + dv * dt, refine=True)
        along, across = self._lengths(below, above, dv, dr, dt)
        if not math.isfinite(along + across + dc + float(np.sum(dx))):
            self.stuck = True
            return
        self.v = self.v + along * dv
        self.r, self.t = self.r + across * dr, self.t + across * dt
        self.point, self.c = self.point + across * dx, self.c + across * dc
        before, self.mu = self.mu, self._complementarity(self.v, self.r, self.t)
        idle = max(along, across) < LEAST or self.mu > (1.0 - LEAST) * before
        self.idle = self.idle + 1 if idle else 0
        self.stuck = self.idle >= IDLE
        self._show((1.0 - along) * back[0])

    def _lengths(self, below, above, dv, dr, dt) -> tuple[float, float]:
        """How far v, and how far the multipliers, may go."""
        along = max(float(np.max(-dv / below)), float(np.max(dv / above)))
        live = self.live
        across = max(
            float(np.max((-dr / self.r)[live], initial=0.0)),
            float(np.max((-dt / self.t)[live], initial=0.0)),
        )
        return SHORT / max(along, SHORT), SHORT / max(across, SHORT)

    def _show(self, open_) -> None:
        """y, and the relative gap of the program, as soon as B'v = 0."""
        n = self.problem.n
        w = np.where(self.w > 0.0, self.w, 1.0)
        self.y = np.where(self.w > 0.0, self.v[:n] / w, 0.0)
        away = self.r - self.t  # b - B (x, c)
        primal = float(np.sum(np.maximum(-self.high * away, -self.low * away)))
        dual = -float(np.sum(self.b * self.v))
        gap = self.problem.relative_gap(primal, dual)
        missing = float(np.max(np.abs(open_))) / self.problem.penalty.l1
        self.estimate = gap if missing <= max(CLOSED, gap) else math.inf
