r"""Coordinate descent on x, along the columns of A: what ``cd`` and ``acf`` share, and ``cd``.

Problem     min P(x, c) for losses with a continuous slope and l1, l2 or both, with or without
            x >= 0; for ``cd`` also with weights and bounds of each column, and offsets
Model       P around (x, c) with phi replaced by its second-order expansion, see
            :mod:`~adacoord.solvers.primal.kernels`: P itself for the squared loss, a proximal
            Newton step for the others (newGLMNET; Yuan, Ho and Lin 2012)
Step        x_j+ = shrink(x_j - g_j/Q_jj, l1/Q_jj), exact for the model; the intercept is always
            at its best for the x of the moment
Search      for losses that are not quadratic t = 1, 1/2, 1/4, ... until
            P(x + t d) <= P(x) + 0.01 t (P'(x).d + g(x + d) - g(x))
``cd``      one sweep over all columns a model, in turn or by adaptive frequencies as printed, for
            reproductions (``acf`` has working sets besides): Algorithm 2 of ACF (Glasmachers and
            Dogan, 2013) with its Algorithm 3 (``order="frequencies"``), or with the rules of its
            Section 3 (``"argmax"``, ``"iid"``; :mod:`~adacoord.sampling.sequences`); a pass is a
            sweep
Stops       never: the monitor does.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...data.columns import Columns
from ...kernels.columns import combine, moments
from ...sampling.frequencies import schedule
from ...sampling.sequences import by_argmax, independently
from ..base import Solver, first_intercept
from ..newton.kernels import expand_rows
from .kernels import linearise, sweep

#: phi'' at least this share of its bound 1/gamma: keeps the model's minimum within reach where
#: phi is flat.  1 after a search that had to go below SHORT (a step that overshot a kink).  Where
#: there is no bound (log links) of |phi'|, which limits the step of a row to 1 in the exponent.
FLOOR, SHORT = 1e-6, 0.1
#: Of the decrease that the slope promises (Armijo); and what P is not known to: near the optimum
#: P rises by rounding alone, while a step still improves y (the gap is linear in its error).
PROMISED, ROUNDING = 0.01, 1e-14
#: Who plans the sweeps of each order.
ORDERS = {"cyclic": None, "frequencies": schedule, "argmax": by_argmax, "iid": independently}


class ColumnDescent(Solver):
    """The model of P, its making and the step to its minimum."""

    #: The model is of point, c, z (and ``before``, the x it started from).
    _state: ClassVar[tuple[str, ...]] = (
        "point",
        "c",
        "z",
        "slopes",
        "h",
        "squares",
        "sums",
        "total",
        "mass",
        "cautious",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        n = problem.n
        self.columns = self._first_columns()
        self.point = problem.penalty.nearest(self._start[0].astype(np.float64))
        self.c = float(first_intercept(problem, start))
        w = np.ones(n) if problem.weights is None else problem.weights
        self.row_weight = w / n
        self.quadratic = problem.loss.name == "squared"
        self.slopes = np.zeros(n)
        self.total, self.mass, self.cautious = 0.0, np.inf, False
        # The squared loss keeps this curvature, and the others take |A^j| from it.
        if problem.weights is None:
            self.h = np.full(1, 1.0 / n)
            self.column_sizes, *found = problem.matrix.column_moments
            self.squares, self.sums = (m / n for m in found)
        else:
            self.h = self.row_weight.copy()
            self.column_sizes, self.squares, self.sums = problem.matrix.weighted_moments(self.h)
        if not problem.intercept:
            self.sums[:] = 0.0
        self.norms = np.sqrt(self.squares)
        if not self.quadratic:
            self.h = np.empty(n)
        self._expanded = None, ()  # the z it is of, and what was found there
        self.z = problem.matrix.dot(self.point) + self.c
        if problem.offset is not None:
            self.z += problem.offset

    def _first_columns(self) -> Columns:
        return self.problem.matrix.columns

    @property
    def x(self):
        return self.point

    @property
    def intercept(self):
        return self.c

    def _predict(self) -> None:
        """z = A x + c from x itself: nothing is left of rounding in running sums."""
        self.z = np.full(self.problem.n, self.c)
        if self.problem.offset is not None:
            self.z += self.problem.offset
        support = np.flatnonzero(self.point)
        touched = combine(*self.columns.arrays, support, self.point[support], self.z)
        self.operations += int(touched)

    def _moments(self, columns) -> None:
        moments(*self.columns.arrays, columns, self.h, self.squares, self.sums)
        if not self.problem.intercept:
            self.sums[columns] = 0.0
        self.operations += int(self.column_sizes[columns].sum())

    def _expansion(self, z=None) -> tuple:
        """(sum w phi, phi', w phi', w phi'') at z, or at the z of the moment, where it is kept.

        What is read of the losses between two steps comes from this one loop over the rows.
        """
        if z is None:
            if self._expanded[0] is not self.z:
                self._expanded = self.z, self._expansion(self.z)
            return self._expanded[1]
        loss, out = self.problem.loss, np.empty((3, z.size))
        arrays = z, self.problem.b, self.row_weight, *out
        return expand_rows(loss.code, *loss.constants, *arrays)[0], *out

    def _loss(self) -> float:
        """The mean loss at z."""
        return self._expansion()[0]

    def _derivative(self) -> np.ndarray:
        return self._expansion()[1]

    def _linearise(self) -> None:
        """Slopes (and curvatures) of the losses at z."""
        p = self.problem
        share = 1.0 if self.cautious else FLOOR
        floors = (0.0, share) if p.loss.steep else (share / p.loss.gamma, 0.0)
        slopes, bends = self._expansion()[2:]
        self.total, mass = linearise(slopes, bends, self.row_weight, *floors, self.slopes, self.h)
        self.mass = mass if p.intercept else np.inf

    @property
    def _model(self) -> tuple:
        """What the kernels take to work on the model."""
        return (
            self.point,
            self.slopes,
            self.h,
            self.squares,
            self.sums,
            self.total,
            self.mass,
            *self.problem.penalty.arguments,
        )

    def _finish(self, columns, before) -> None:
        """From ``before`` (x on ``columns``) to the model's x, or part of the way."""
        dc = -self.total / self.mass
        if self.quadratic:
            self.c += dc
            self._predict()
            return
        penalty = self.problem.penalty
        after = self.point[columns]
        step = after - before
        dz = np.full(self.problem.n, dc)
        self.operations += int(combine(*self.columns.arrays, columns, step, dz))
        mean, _, slopes, _ = self._expansion()
        old, t = penalty.value(before), 1.0
        promised = float(np.sum(slopes * dz)) + penalty.value(after) - old
        goal = mean + old
        goal += ROUNDING * abs(goal)
        while True:
            z = self.z + t * dz
            found = self._expansion(z)
            # an overflow of exp, which may be NaN, is a rise
            if found[0] + penalty.value(after) <= goal + PROMISED * t * promised:
                self.z, self._expanded = z, (z, found)
                break
            t *= 0.5
            if t < 1e-12:  # nothing to gain in this arithmetic
                t, after = 0.0, penalty.nearest(before)
                break
            after = penalty.nearest(before + t * step)  # bounds hold but for rounding
        self.cautious = t < SHORT
        self.point[columns] = after
        self.c += t * dc


class CoordinateDescent(ColumnDescent):
    """Coordinate descent over all columns; see the module's docstring.

    Parameters
    ----------
    order : {"cyclic", "frequencies", "argmax", "iid"}
        All but ``"cyclic"`` visit columns whose steps bring more than the mean more often, from
        the second sweep on; the first gives the mean.  A sweep is planned by Algorithm 3 of ACF,
        by the deterministic rule of its Section 3 (d operations per step: for few columns), or
        drawn independently.
    """

    name = "cd"
    check_cost = 1.0
    _state = (*ColumnDescent._state, "frequency", "accumulators", "word", "average", "visits")

    def __init__(self, problem, rng, start=None, order="cyclic"):
        super().__init__(problem, rng, start)
        if not isinstance(order, str) or order not in ORDERS:
            raise ValueError(
                f"order={order!r}: not an order of columns; use one of {', '.join(ORDERS)}"
            )
        self.plan, d = ORDERS[order], problem.d
        self.adapts = self.plan is not None
        self.frequency, self.accumulators = np.ones(d if self.adapts else 0), np.empty(0)
        self.word, self.average, self.visits = np.zeros(1, dtype=np.uint64), 0.0, 0
        if self.adapts:
            self.accumulators = np.zeros(d) if order == "argmax" else rng.random(d)
            self.word = rng.integers(2**63, size=1, dtype=np.uint64)
        self._everything = np.arange(d)
        self._room = np.empty(2 * d if self.adapts else 0, dtype=np.int64)
        self.order = self._everything  # of the last sweep

    def _pass(self):
        before, eta = self.point.copy(), 0.0
        if self.plan is not None:
            size = self.plan(
                self._everything,
                before.size,
                self.frequency,
                self.accumulators,
                self._room,
                self.word,
            )
            self.order, eta = self._room[:size], 1.0 / before.size if self.visits else 0.0
        self._linearise()
        if not self.quadratic:
            self._moments(self._everything)
        self.total, lowered, touched, self.average, _ = sweep(
            *self.columns.arrays, self.order, *self._model, self.frequency, self.average, eta
        )
        if not self.visits:
            self.average = lowered / max(self.order.size, 1)
        self.visits += self.order.size
        self.operations += int(touched)
        self._finish(self._everything, before)
        self.y = self._derivative()
