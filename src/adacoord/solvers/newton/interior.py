r"""An interior point for losses with kinks or narrow bends, and any separable penalty: the linear
or quadratic program that they make.

Problem     min P(x, c) for phi_i(z) = max of v (z - b_i) - epsilon |v| - alpha v^2/2 over v in
            [lo_i, hi_i] (hinge, absolute, quantile, epsilon-insensitive; with an alpha smooth
            hinge and Huber) and g(x) = sum_j l1_j |x_j| + l2_j/2 x_j^2 on lower <= x <= upper
Program     a sum of terms max_{L <= v <= U} v (s - b) - bend v^2/2, with s of a row or of a column
            (:mod:`.terms`).  With B of the rows [A, 1] and [I, 0], one for each term, the dual is

                min b.v + |v|^2_bend/2 + |x|^2_l2/2  with  B'v + l2 x = 0,  L <= v <= U

            whose multipliers are (x, c): b + bend v - B(x, c) = r - t, r, t >= 0 of the bounds
Step        of the conditions r (v - L) = mu, t (U - v) = mu: q = 1/(bend + r/(v - L) + t/(U - v)),
            (B' diag(q) B + l2) d(x, c) = right side, or the same on the side of the rows
            (:mod:`.interior_systems`); predictor and corrector by the same factor (Mehrotra 1992;
            for quantile regression Portnoy and Koenker 1997)
Lengths     SHORT of the way to the bounds, of v and of the multipliers each; with an l2 or a bend
            one for both, which these bind together
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
from .interior_systems import smaller_side
from .terms import terms_of

#: The share of the way to the nearest bound that a step goes.
SHORT = 0.9995
#: How near to the bounds v may start, as a share of their distance.
INSIDE = 0.1
#: Steps shorter than this, or a complementarity that falls by less, are idle; so many iterations
#: in a row are rounding (a corrector may raise it once).
LEAST, IDLE = 1e-5, 4
#: Steps shorter than this are made again, towards the middle.
BLOCKED = 0.1
#: What exact zeros may cost: so many times the gap.  (Where rows are few and all at their kinks, P
#: rises with all that is left out of x: 100 x 400, quantile, x >= 0, gaps of 1e-11 and 3e-6.)
COSTS = 10.0
#: A rounding of a number near 1.
UNIT = 2.0**-52
#: The relative gap from which on zeros are looked for.
WORTH = 1e-3
#: What rounding leaves of B'v, as a share of what it costs.
CLOSED = 1e-9


class InteriorPoint(Solver):
    """Predictor-corrector steps on the program; see the module's docstring."""

    name = "newton"
    patient = uses_blas = True
    check_cost = 2.0
    _state = ("point", "c", "v", "r", "t", "mu", "idle", "estimate", "stuck", "shown_x", "shown_c")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        x, c, _ = start_point(problem, start)
        self.point, self.c = x.astype(np.float64), float(c)
        if start is None and problem.intercept and problem.loss.task == "regression":
            self.c = problem._mean(problem.b)
        self.terms = terms_of(problem)
        self.low, self.high, self.b = self.terms.low, self.terms.high, self.terms.b
        self.live = self.high > self.low
        self.below, self.above = self.live & (self.low > -np.inf), self.live & (self.high < np.inf)
        self.l1, self.l2 = problem.penalty.by_column(problem.d)[:2]
        self.bend = self.terms.bend
        self.bound_together = bool((self.l2 > 0.0).any() or (self.bend > 0.0).any())
        self.lengths = problem._column_lengths
        self.v = self._first_dual()
        away = self._away()
        size = self._first_multipliers(away)
        self.r = np.where(self.below, np.maximum(away, 0.0) + size, 0.0)
        self.t = np.where(self.above, np.maximum(-away, 0.0) + size, 0.0)
        self.mu = self._complementarity(self.v, self.r, self.t)
        self.idle, self.estimate = 0, math.inf
        self.shown_x, self.shown_c = problem.penalty.nearest(self.point), self.c
        bare = self.l2 + self.terms.gathered(1.0 * self.live)[1] == 0.0
        self.system = smaller_side(problem, bool(bare.any()))
        self._cost = self.system.cost + 8 * problem.matrix.nnz

    def _first_dual(self) -> np.ndarray:
        """0, or what is nearest to it well inside the bounds."""
        low, high = self.low, self.high
        room = high - low
        half = np.isinf(room) & self.live  # a bound of x: as large as an average of slopes may be
        slopes = np.subtract(*reversed(self.problem._domain))
        usual = self.problem._mean(slopes) * self.lengths / math.sqrt(self.problem.n)
        room[half] = (self.terms.spread(np.zeros(self.problem.n), usual) / INSIDE)[half]
        return np.clip(0.0, low + INSIDE * room, high - INSIDE * room)

    def _first_multipliers(self, away: np.ndarray) -> np.ndarray:
        """What both sides of a term have beside b - B (x, c): the same complementarity for all.

        (Weights of 1e-6 to 1e6 ended after four iterations where all had the same size.)
        """
        room = self._inside(self.v)
        rows = self.terms.of_rows
        usual = float(np.mean(room[rows] * np.abs(away[rows]))) or 1.0
        return np.divide(usual, room, out=np.zeros(room.size), where=self.live)

    @property
    def x(self):
        return self.shown_x

    @property
    def intercept(self):
        return self.shown_c

    def _pass(self):
        if not self.stuck:
            self._iterate()
            self.operations += self._cost

    # ---- what is measured -----------------------------------------------------------------------

    def _away(self) -> np.ndarray:
        """b + bend v - B (x, c)."""
        z = self.problem.matrix.dot(self.point) + self.c
        return self.b + self.bend * self.v - self.terms.spread(z, self.point)

    def _back(self) -> tuple[np.ndarray, float]:
        """B'v + l2 x, and the sum of v that goes with the intercept."""
        rows, columns = self.terms.gathered(self.v)
        total = float(np.sum(rows)) if self.problem.intercept else 0.0
        return self.problem.matrix.tdot(rows) + columns + self.l2 * self.point, total

    def _complementarity(self, v, r, t) -> float:
        below, above = self.below, self.above
        sums = np.sum((v[below] - self.low[below]) * r[below])
        sums += np.sum((self.high[above] - v[above]) * t[above])
        sides = np.count_nonzero(below) + np.count_nonzero(above)
        return float(sums) / max(int(sides), 1)

    # ---- an iteration ---------------------------------------------------------------------------

    def _iterate(self) -> None:
        problem = self.problem
        below = np.where(self.below, self.v - self.low, 1.0)
        above = np.where(self.above, self.high - self.v, 1.0)
        pull = self.bend + self.r / below + self.t / above
        q = np.divide(1.0, pull, out=np.zeros(pull.size), where=pull > 0.0)
        shares = self._factorise(q)
        back = self._back()
        wrong = self._away() - self.r + self.t

        def direction(at_r, at_t, refine):
            at_r = np.where(self.below, at_r, 0.0) / below
            at_t = np.where(self.above, at_t, 0.0) / above
            xi = wrong - at_r + self.r + at_t - self.t
            dx, dc, dv = self._direction(q, shares, xi, back, refine)
            dr = at_r - self.r - self.r / below * dv
            dt = at_t - self.t + self.t / above * dv
            return dx, dc, dv, np.where(self.below, dr, 0.0), np.where(self.above, dt, 0.0)

        _, _, dv, dr, dt = direction(0.0, 0.0, refine=False)
        along, across = self._lengths(below, above, dv, dr, dt)
        ahead = self._complementarity(
            self.v + along * dv, self.r + across * dr, self.t + across * dt
        )
        goal = self.mu * min(max(ahead / self.mu, 0.0), 1.0) ** 3
        step = direction(goal - dv * dr, goal + dv * dt, refine=True)
        along, across = self._lengths(below, above, *step[2:])
        if min(along, across) < BLOCKED:  # the corrector led astray: back to the middle
            other = direction(self.mu, self.mu, refine=True)
            lengths = self._lengths(below, above, *other[2:])
            if min(lengths) > min(along, across):
                step, (along, across) = other, lengths
        dx, dc, dv, dr, dt = step
        if not math.isfinite(along + across + dc + float(np.sum(dx))):
            self.stuck = True
            return
        before = self._room()
        self.v = self.v + along * dv
        self.r, self.t = self.r + across * dr, self.t + across * dt
        self.point, self.c = self.point + across * dx, self.c + across * dc
        held = self._held(before)
        had, self.mu = self.mu, self._complementarity(self.v, self.r, self.t)
        idle = max(along, across) < LEAST or self.mu > (1.0 - LEAST) * had
        self.idle = self.idle + 1 if idle else 0
        self.stuck = self.idle >= IDLE or self.mu <= 0.0
        bound = self._judge((1.0 - along) * back[0], (1.0 - across) * wrong)
        self.shown_x, self.shown_c = problem.penalty.nearest(self.point), self.c
        if self.estimate <= WORTH:
            self._show(held, bound)

    def _factorise(self, q: np.ndarray) -> np.ndarray:
        """Factorise the system of these q; the share of each term in the sum of its own."""
        rows, columns = self.terms.gathered(q)
        self.system.factorise(np.concatenate([rows, columns + self.l2]))
        sums = self.terms.spread(rows, columns)
        return np.divide(q, sums, out=np.zeros(q.size), where=sums > 0.0)

    def _direction(self, q, shares, xi, back, refine) -> tuple[np.ndarray, float, np.ndarray]:
        """(dx, dc) and dv = q (B (dx, dc) - xi) with B'dv + l2 dx = -back.

        The terms of a row, or a column, are one to the system: dv is their sum, and shared out.
        """
        terms, n = self.terms, self.terms.n
        rows, columns = terms.gathered(shares * xi)
        own = terms.gathered(q)[1]
        own = np.divide(own, own + self.l2, out=np.zeros(terms.d), where=own > 0.0)
        right = np.concatenate([rows, own * columns])
        dx, dc, dv = self.system.direction(right, back, refine)
        sums = terms.spread(dv[:n], dv[n:] - self.l2 * dx)
        return dx, dc, shares * sums + q * (terms.spread(rows, columns) - xi)

    def _lengths(self, below, above, dv, dr, dt) -> tuple[float, float]:
        """How far v, and how far the multipliers, may go."""
        low, high = self.below, self.above
        along = max(
            float(np.max((-dv / below)[low], initial=0.0)),
            float(np.max((dv / above)[high], initial=0.0)),
        )
        across = max(
            float(np.max((-dr[low] / self.r[low]), initial=0.0)),
            float(np.max((-dt[high] / self.t[high]), initial=0.0)),
        )
        if self.bound_together:
            along = across = max(along, across)
        return SHORT / max(along, SHORT), SHORT / max(across, SHORT)

    def _room(self) -> tuple[np.ndarray, np.ndarray]:
        """How far x is from the kink or bound of each term, and v from its ends."""
        far = np.abs(self.point - self.terms.layers(self.b))
        return far, self.terms.layers(self._inside(self.v))

    def _inside(self, v: np.ndarray) -> np.ndarray:
        """How far v is from its nearer bound."""
        return np.minimum(v - self.low, self.high - v)

    def _held(self, before: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Which terms hold x_j where they are: those whose distance falls faster than their slack.

        Of the two one goes to 0 with mu, and the other does not, in any units (El-Bakry, Tapia and
        Zhang 1994).
        """
        far, slack = self._room()
        return self.terms.layers(self.live) & (far * before[1] < before[0] * slack)

    def _show(self, held: np.ndarray, bound: float) -> None:
        """The point at the kinks and bounds that hold it, unless that costs.

        What that changes of the predictions, the columns that are free make up for: by the system
        of the last step, in which those that are held hardly move.
        """
        problem, x = self.problem, self.shown_x
        for at, kink in zip(held, self.terms.layers(self.b), strict=True):
            x = np.where(at, kink, x)
        missing = problem.matrix.dot(self.shown_x - x)
        none = np.zeros(problem.d)
        dx, dc, _ = self.system.direction(np.concatenate([missing, none]), (none, 0.0), True)
        x, c = problem.penalty.nearest(np.where(held.any(axis=0), x, x + dx)), self.c + dc
        least = problem._primal(self.shown_x, self.c)
        # at the end the bound may be above by rounding
        if problem._primal(x, c) - least <= COSTS * max(least - bound, UNIT * abs(least)):
            self.shown_x, self.shown_c = x, c

    def _judge(self, open_: np.ndarray, wrong: np.ndarray) -> float:
        """y, D of the program, and its relative gap with what B'v + l2 x costs where it is not 0.

        What is ``wrong`` with b + bend v - B (x, c) = r - t costs P as much as v may be, and what
        is open of B'v + l2 x = 0 as much as x is.
        """
        problem = self.problem
        rows = self.terms.gathered(self.v)[0]
        w = np.ones(problem.n) if problem.weights is None else problem.weights
        self.y = np.divide(rows * problem.n, w, out=np.zeros(problem.n), where=w > 0.0)
        s = self.bend * self.v - self.r + self.t  # B (x, c) - b
        low, high = np.where(self.below, self.low, 0.0), np.where(self.above, self.high, 0.0)
        square = 0.5 * float(np.sum(self.l2 * np.square(self.point)))
        most = np.maximum(np.maximum(high, -low), np.abs(self.v))
        best = np.where(s > 0.0, high, low)
        bent = self.bend > 0.0
        best[bent] = np.clip(s[bent] / self.bend[bent], low[bent], high[bent])
        primal = square + float(np.sum(best * (s - 0.5 * self.bend * best)))
        missed = float(np.sum((most * np.abs(wrong))[self.live]))
        missed += float(np.sum(np.abs(open_ * self.point)))
        dual = -square - float(np.sum((self.b + 0.5 * self.bend * self.v) * self.v))
        gap = problem.relative_gap(primal + missed, dual)
        missing = float(np.max(np.abs(open_) * self._price(max(abs(primal), abs(dual)))))
        self.estimate = gap if missing <= CLOSED else gap + missing
        return dual

    def _price(self, value: float) -> np.ndarray:
        """What a slope that is left open costs the bound of the judge, as a share of ``value``.

        An l1 alone scales y by it; without any penalty it costs as much as the box is wide.
        """
        alone = (self.l2 == 0.0) & (self.l1 > 0.0)
        price = np.divide(1.0, self.l1, out=np.zeros(self.l1.size), where=alone)
        wide = self.problem.penalty.outside(self.point)
        if wide is not None:
            price = np.where(np.isfinite(wide), wide / max(value, 1e-300), price)
        return price
