r"""ACF on working sets: coordinate descent where it matters, for l1 and l1 + l2.

Problem     as in :mod:`~adacoord.solvers.primal.primal_cd`
Look        y = phi'(z), made feasible; u = A'Wy/n over all columns, the gap, and a new set: the
            support of x and the columns nearest to their constraint, (l1 - |u_j|)/|A^j| smallest,
            twice as many as the support (celer; Massias, Gramfort and Salmon 2018), but none that
            the gap proves to be zero
Model       on the columns of the set only; sweeps of adaptive coordinate frequencies (ACF,
            Algorithm 2 and the schedule of Section 3 of Glasmachers and Dogan 2013): columns
            whose steps lower the model more than the average are visited more often
Newton      where sweeps go on crawling though no sign changes any more, a Newton step on the
            support (:mod:`~adacoord.solvers.newton.support`)
Then        more models on the set until its own gap is SHARE of the last, or until the set has
            cost as much as PATIENCE looks
Pass        as many entries as A has; a look ends one
Stops       never: the monitor does.  ``estimate`` is the gap of the last look, which tells the
            monitor when it is worth looking itself.

Measured on rcv1.subset, unit rows (lasso at l1_max/10, /30, /100, /300, and logistic at /10, /30,
/100), in entries touched over nnz to a relative gap of 1e-6:

* a first set of all columns that violate their constraint, for two sweeps, in place of the 100
  that violate it most: lasso 18, 33, 69, 108 against 18, 39, 80, 125; no gain for logistic
* a look as soon as the set has cost one or two: logistic 19, 28, 50 against 20, 38, 67 with
  models until the set's gap is SHARE
* Newton steps as soon as signs are settled: 237 for the lasso at /300 against 125 (sweeps gain a
  factor of 2 each there); but none at all is 81 and 287 against 34 and 113 for the lasso at
  l1_max/100 on leukemia and colon-cancer, whose columns are highly correlated, and 14 and 31 with
  Cholesky in place of conjugate gradients
"""

from __future__ import annotations

import numpy as np

from ...kernels.columns import column_dots
from ...sampling.frequencies import schedule
from ..newton.support import support_newton, support_solve
from .kernels import sweep
from .primal_cd import ColumnDescent

#: Columns of the smallest set; growth over the support.
SMALLEST, GROWTH = 100, 2
#: A set is solved when its gap is this share of that of the last look.
SHARE = 0.3
#: Looks' worth of work on a set before the next look.
PATIENCE = 2
#: Sweeps a model; for losses that are not quadratic no more than bring this share of the first.
SWEEPS, LITTLE = 10, 0.05
#: Sweeps on a first set of all violating columns.
FIRST_SWEEPS = 2
#: A sweep that gains this share of the one before is slow.
SLOW = 0.7
#: What a gap is not known to, relative to P.
ROUNDING = 1e-13
#: Of the Newton step: squared gradient to reach, and iterations.
ACCURACY, ITERATIONS = 1e-4, 50
#: Supports up to this size are solved by Cholesky, going on after so many sign changes.
SMALL, ROUNDS = 100, 20

LOOK, MODEL, SWEEP = range(3)


class WorkingSetDescent(ColumnDescent):
    """Gap-safe working sets with an ACF inner solver; see the module's docstring."""

    name = "acf"
    check_cost = 4.0
    _state = (
        *ColumnDescent._state,
        "phase",
        "set",
        "before",
        "spent",
        "models",
        "sweeps",
        "first",
        "frequency",
        "accumulator",
        "random",
        "average",
        "learning",
        "dual",
        "gap",
        "estimate",
        "most",
        "set_entries",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        d = problem.d
        self.frequency, self.accumulator = np.ones(d), rng.random(d)
        self.random = rng.integers(2**63, size=1, dtype=np.uint64)
        self.average, self.learning = 0.0, False
        self.set, self.before = np.empty(0, dtype=np.int64), np.empty(0)
        self.phase, self.spent, self.models, self.sweeps, self.first = LOOK, 0, 0, 0, 0.0
        self.dual, self.gap, self.estimate = -np.inf, np.inf, np.inf
        self.most = self.set_entries = 0
        self._entries = max(problem.matrix.nnz, 1)
        self._order = np.empty(2 * d + 1, dtype=np.int64)
        self._work = np.empty((3, problem.n))

    def _pass(self):
        """As many entries as A has, counting n at least for each step, which looks at all losses.

        So a pass ends whatever its steps do: an empty set costs no entries, and with a gap of
        less than nothing (or NaN) the steps would take turns for ever.
        """
        work, least = 0, self.problem.n
        while work < self._entries:
            before = self.operations
            if self.phase == LOOK:
                self._look()
            elif self.phase == MODEL:
                self._build()
            else:
                self._sweep()
            work += max(self.operations - before, least)

    # ---- looks ----------------------------------------------------------------------------------

    def _look(self) -> None:
        """The gap over all columns, and the set to work on next."""
        problem, penalty = self.problem, self.problem.penalty
        slope = self._derivative()
        y, u = problem.feasible_dual(slope)
        self.operations += self._entries
        primal, dual = self._loss() + penalty.value(self.point), problem._dual(y, u)
        if dual > self.dual:
            self.dual, self.y = dual, y
        self.gap = primal - self.dual
        self.estimate = problem.relative_gap(primal, self.dual)
        support = self.point != 0.0
        size = max(SMALLEST, GROWTH * int(np.count_nonzero(support)))
        sweeps = SWEEPS
        if self.quadratic and not support.any():
            # u may have been scaled to be feasible: who violates is seen in what it was
            scaled = np.abs(y).max() / max(np.abs(slope).max(), np.finfo(float).tiny)
            violating = int(np.count_nonzero(penalty.slack(u, scaled) < 0.0))
            if size < violating <= problem.n:
                size, sweeps = violating, FIRST_SWEEPS
        gap = max(primal - dual, 0.0) + ROUNDING * abs(primal)
        self._choose(penalty.slack(u), support, size, gap)
        self.phase, self.spent, self.models, self.most = MODEL, 0, 0, sweeps
        self.learning = False

    def _choose(self, slack, support, size, gap) -> None:
        """The support, and the columns nearest to the constraint: ``size`` of them in all.

        D is gamma-strongly concave, so that y* is within sqrt(2 gap/gamma) of y (in the mean
        square by w): a column further from its constraint than that has x*_j = 0 (gap-safe
        screening; Ndiaye, Fercoq, Gramfort and Salmon 2017), and is in no set.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = slack / self.norms
        distance[self.norms == 0.0] = np.inf  # zeros: in no set, unless x_j has yet to become 0
        distance[distance > np.sqrt(2.0 * gap / self.problem.loss.gamma)] = np.inf
        distance[support] = -np.inf
        chosen = np.arange(self.problem.d)
        if size < chosen.size:
            chosen = np.sort(np.argpartition(distance, size - 1)[:size])
        self.set = chosen[distance[chosen] < np.inf]
        self.set_entries = int(self.columns.sizes[self.set].sum())

    # ---- work on the set ------------------------------------------------------------------------

    def _build(self) -> None:
        """A model at the point reached, or a look where the set has had enough."""
        self._linearise()
        if self.models and (
            self.spent >= PATIENCE * self._entries or self._set_gap() <= SHARE * self.gap
        ):
            self.phase = LOOK
            return
        if not self.quadratic:
            self._moments(self.set)
        self.before = self.point[self.set]
        self.phase, self.sweeps, self.first = SWEEP, 0, 0.0

    def _set_gap(self) -> float:
        """The gap of the problem with the columns of the set alone."""
        problem, penalty = self.problem, self.problem.penalty
        if self.set.size == 0:  # x = 0, and the gap of the last look proves it
            return 0.0
        u = np.empty(self.set.size)
        column_dots(*self.columns.arrays, self.set, self.slopes, u)
        self._charge(self.set_entries)
        primal = self._loss() + penalty.value(self.point)
        y, scale = self._derivative(), penalty.feasible_scale(u)
        if scale < 1.0:
            y, u = y * scale, u * scale
        return primal - problem._dual(y, u)

    def _sweep(self) -> None:
        """One sweep; after the last one, on to the model's minimum."""
        size = self.set.size
        visits = schedule(
            self.set, size, self.frequency, self.accumulator, self._order, self.random
        )
        self.total, lowered, touched, self.average, flips = sweep(
            *self.columns.arrays,
            self._order[:visits],
            *self._model,
            self.frequency,
            self.average,
            1.0 / size if self.learning and size else 0.0,
        )
        self._charge(int(touched))
        if not self.learning:
            self.average, self.learning = lowered / max(size, 1), True
        self.sweeps += 1
        self.first = self.first or lowered
        if (
            self.sweeps < self.most
            and lowered > 0.0
            and (self.quadratic or lowered > LITTLE * self.first)
        ):
            return
        if self.sweeps == SWEEPS and flips == 0 and lowered > SLOW**SWEEPS * self.first:
            self._newton()
        before = self.operations
        self._finish(self.set, self.before)
        self.spent += self.operations - before
        self.models += 1
        self.phase = MODEL

    def _newton(self) -> None:
        support = self.set[self.point[self.set] != 0.0]
        *model, _ = self._model
        if support.size <= SMALL:
            self.total, touched = support_solve(
                *self.columns.arrays, support, *model, ROUNDS, *self._work[:2]
            )
        else:
            self.total, touched = support_newton(
                *self.columns.arrays, support, *model, ACCURACY, ITERATIONS, *self._work
            )
        self._charge(int(touched))

    def _charge(self, entries: int) -> None:
        self.operations += entries
        self.spent += entries
