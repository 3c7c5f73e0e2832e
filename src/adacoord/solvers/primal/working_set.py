r"""ACF on working sets: coordinate descent where it matters, for l1 and l1 + l2.

Problem     as in :mod:`~adacoord.solvers.primal.primal_cd`
Look        y = phi'(z), made feasible; u = A'Wy/n over all columns, the gap, and a new set: the
            support of x and the columns nearest to their constraint (of u before y was made
            feasible), (l1 - |u_j|)/|A^j| smallest, twice as many as the support (celer; Massias,
            Gramfort and Salmon 2018), but none that the gap proves to be zero; these are left out
            of the next looks, too
Columns     of data by rows: those of the set are copied, with as many of the next nearest as ROOM
            lets, so that few looks call for others.  A set has no more entries than that, unless
            the support has
Model       on the columns of the set only; sweeps of adaptive coordinate frequencies (ACF,
            Algorithm 2 and the schedule of Section 3 of Glasmachers and Dogan 2013): columns
            whose steps lower the model more than the average are visited more often
Newton      where sweeps go on crawling though no sign changes any more, a Newton step on the
            support (:mod:`~adacoord.solvers.newton.support`)
Then        more models on the set until its own gap is SHARE of the last, or until the set has
            cost as much as PATIENCE looks
Pass        as many entries as A has; a look ends one
Stops       never: the monitor does.  ``estimate`` is the gap of the last look, which tells the
            monitor when it is worth looking itself

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

from ...data.columns import Columns
from ...kernels.columns import column_dots
from ..newton.support import support_newton, support_solve
from .kernels import sweeps
from .primal_cd import ColumnDescent

#: Columns of the smallest set; growth over the support.
SMALLEST, GROWTH = 100, 2
#: A set is solved when its gap is this share of that of the last look.
SHARE = 0.3
#: Looks' worth of work on a set before the next look.
PATIENCE = 2
#: Sweeps a model; for losses that are not quadratic no more than bring this share of the first.
SWEEPS, LITTLE = 10, 0.05
#: Of the entries of A, the share that is held by columns; all of them for data up to so many bytes
#: of numbers.  A fit on 160 MB of sparse rows takes 58 MB beside them, 181 with all columns; in
#: seconds, lasso at l1_max/3, /10, /30, /100: .19, .45, .73, 1.19 for .25, .43, .76, 1.21 with all.
ROOM, SMALL_DATA = 0.22, 2**25
#: Columns beside the support, at least, where that is not enough.
FEWEST = 10
#: Of the entries of A, the share in a set from which on all columns are held: sets that grow on
#: would be copied again and again (20,000 x 1,000 dense, a support of 541: .80 -> .66 s).
MOST = 0.4
#: Looks are at those columns only that may be in the support, once they have this share of the
#: entries of A or less; what a column costs beside its entries, in entries.  (rcv1.subset,
#: logistic, l1_max/10: columns with .69, .20, .14, .12 of the entries in the last four of 8 looks,
#: 57 -> 52 ms; /100: .84, .69, .38 in the last three of 11.)
FEWER, COLUMN = 0.9, 8
#: Sweeps on a first set of all violating columns.
FIRST_SWEEPS = 2
#: A sweep that gains this share of the one before is slow; of the first, what x is not known to.
SLOW, NOTHING = 0.7, 1e-30
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
    # a look of the monitor's costs two passes, and ``estimate`` says when there is one to be had
    check_cost = 10.0
    steady = True
    #: Whether looks may leave out units that are proved to be zero.
    narrows = True
    #: Sweeps of a model, and of the first; a sweep that brings less, of the first one, is the last.
    most_sweeps, first_sweeps, least_gain = SWEEPS, FIRST_SWEEPS, 0.0
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
        "complete",
        "left",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self._begin(rng, start)

    def _begin(self, rng, start):
        """No set yet: the first step is a look."""
        self.patient = start is None  # zero need not be looked at twice
        problem = self.problem
        self.narrows = self.narrows and problem.penalty.uniform
        #: Entries of what a set is made of: columns here, groups of columns elsewhere.
        self.sizes = self._unit_sizes()
        units = self.sizes.size
        self.frequency, self.accumulator = np.ones(units), rng.random(units)
        self.random = rng.integers(2**63, size=1, dtype=np.uint64)
        self.average, self.learning = 0.0, False
        self.set, self.before = np.empty(0, dtype=np.int64), np.empty(0)
        self.phase, self.spent, self.models, self.sweeps, self.first = LOOK, 0, 0, 0, 0.0
        self.dual, self.gap, self.estimate = -np.inf, np.inf, np.inf
        self.most = self.set_entries = 0
        #: The units that the next look is at; those left out are proved to be zero.  Empty: all.
        self.left = np.empty(0, dtype=np.int64)
        self.pull = np.empty(0)  # u of the last look, before y was scaled
        #: Whether the set has all columns that the gap does not prove to be zero.
        self.complete = False
        self._entries = max(problem.matrix.nnz, 1)
        #: Entries of a set, at most; by what the data are, not by what has been copied of them.
        matrix = problem.matrix
        few = matrix.by_columns or matrix.nnz * matrix.dtype.itemsize <= SMALL_DATA
        self.room = np.inf if few else ROOM * matrix.nnz
        self._order = np.empty(2 * units + 1, dtype=np.int64)
        self._work = np.empty((3, problem.n))

    def _first_columns(self) -> Columns:
        return self.problem.matrix.some_columns(np.empty(0, dtype=np.int64))

    def _unit_sizes(self) -> np.ndarray:
        return self.column_sizes

    def _members(self, units: np.ndarray) -> np.ndarray:
        """The columns of some units."""
        return units

    def _support(self) -> np.ndarray:
        """Of the units, those that are not 0."""
        return self.point != 0.0

    def _slack(self, u: np.ndarray) -> np.ndarray:
        return self.problem.penalty.slack(u)

    def _set_columns(self) -> np.ndarray:
        """The columns that work on the set may move."""
        return self.set

    def _pass(self):
        """As many entries as A has, counting n at least for each step, which looks at all losses.

        So a pass ends whatever its steps do: an empty set costs no entries, and with a gap of
        less than nothing (or NaN) the steps would take turns for ever.
        """
        self.patient = False
        work, least = 0, self.problem.n
        while work < self._entries:
            before = self.operations
            if self.phase == LOOK:
                self._look()
            else:
                self._hold()  # after a restart it has yet to
                if self.phase == MODEL:
                    self._build()
                elif self._sweep(self._entries - work):
                    return
            work += max(self.operations - before, least)

    # ---- looks ----------------------------------------------------------------------------------

    def _look(self) -> None:
        """The gap over the columns that may be in the support, and the set to work on next."""
        problem, penalty = self.problem, self.problem.penalty
        repaired = problem._repaired(self._derivative())
        pull = self._pulled(repaired)
        self.pull, (y, u) = pull, problem._scaled(repaired, pull)
        primal, dual = self._loss() + penalty.value(self.point), problem._dual(y, u)
        if dual > self.dual:
            self.dual, self.y = dual, y
        self.gap = primal - self.dual
        self.estimate = problem.relative_gap(primal, self.dual)
        support, slack = self._support(), self._slack(pull)
        count = int(np.count_nonzero(support))
        size = max(SMALLEST, GROWTH * count)
        sweeps = self.most_sweeps
        if self.quadratic and not count:
            violating = int(np.count_nonzero(slack < 0.0))
            if size < min(violating, problem.n):
                size, sweeps = min(violating, problem.n), self.first_sweeps
        gap = max(primal - dual, 0.0) + ROUNDING * abs(primal)
        self._choose(slack, slack if u is pull else self._slack(u), support, size, gap)
        self.phase, self.spent, self.models, self.most = MODEL, 0, 0, sweeps
        self.learning = False

    def _pulled(self, y: np.ndarray) -> np.ndarray:
        """u of the slopes on the columns ``left``.

        The others have been proved to be zero: the problem without them has the same P*, and what
        is a bound on it there is one here.
        """
        left = self.left
        if left.size == 0:
            self.operations += self._entries
            return self.problem.average(y)
        self._hold()
        u = np.empty(left.size)
        column_dots(*self.columns.arrays, left, self.row_weight * y, u)
        self.operations += int(self.sizes[left].sum())
        return u

    def _choose(self, pulled, slack, support, size, gap) -> None:
        """The support, and the columns nearest to the constraint: ``size`` of them in all.

        By their slack ``pulled`` before y was scaled to be feasible: after it, what violates its
        constraint by half as much as the worst may have more of a ``slack`` than what never did
        (words of 5,000 x 10,000: the group that lowered P most was left out of two sets).

        D is gamma-strongly concave, so that y* is within sqrt(2 gap/gamma) of y (in the mean
        square by w): a column further from its constraint than that has x*_j = 0 (gap-safe
        screening; Ndiaye, Fercoq, Gramfort and Salmon 2017), and is in no set.  Log links have no
        gamma, and no screening.  ``slack`` is that of the units ``left``.
        """
        gamma, left, norms, inside = self.problem.loss.gamma, self.left, self.norms, support
        if left.size:
            norms, inside = norms[left], support[left]
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = pulled / norms
        distance[norms == 0.0] = np.inf  # zeros: in no set, unless x_j has yet to become 0
        if gamma > 0.0:
            distance[slack > np.sqrt(2.0 * gap / gamma) * norms] = np.inf
        distance[inside] = -np.inf
        near = np.flatnonzero(distance < np.inf)  # nor is a NaN
        away = distance[near]
        units = near if left.size == 0 else left[near]
        chosen = np.arange(units.size)
        if size < units.size:
            chosen = np.sort(np.argpartition(away, size - 1)[:size])
        self.set = units[chosen]
        self.complete = self.set.size == units.size
        room = max(self.room, GROWTH * float(self.sizes[support].sum()))
        if self.sizes[self.set].sum() > room:
            nearest = self.set[np.argsort(away[chosen], kind="stable")]
            least = np.count_nonzero(support) + FEWEST
            self.set = np.sort(nearest[: max(self._fitting(nearest, room), least)])
            self.complete = False
        self.set_entries = int(self.sizes[self.set].sum())
        self._hold(units, away)
        self._narrow(units)

    def _narrow(self, units: np.ndarray) -> None:
        """Look at these only from now on, where their columns are held and that is less work."""
        work = int(self.sizes[units].sum()) + COLUMN * units.size
        held = self.room == np.inf or self.complete
        narrow = self.narrows and held and work <= FEWER * self._entries
        self.left = units if narrow else np.empty(0, dtype=np.int64)

    def _fitting(self, units: np.ndarray, room: float) -> int:
        """How many of the first units have no more entries than ``room``."""
        return int(np.searchsorted(np.cumsum(self.sizes[units]), room, side="right"))

    def _hold(self, units: np.ndarray | None = None, away: np.ndarray | None = None) -> None:
        """Have the columns of the set, and the nearest others: ``units``, by how far ``away``."""
        if self.columns.held is None:
            return
        wanted, matrix = self._members(self.set), self.problem.matrix
        if self.columns.has(wanted):
            return
        spare = None
        if self.room == np.inf or self.set_entries > MOST * self._entries:
            spare = np.arange(matrix.shape[1])
        elif units is not None and away is not None:
            nearest = units[np.argsort(away)]
            spare = self._members(nearest[: self._fitting(nearest, self.room)])
        self.columns = Columns.some(matrix, np.empty(0, dtype=np.int64))  # those held may go
        self.columns = matrix.some_columns(wanted, spare)

    # ---- work on the set ------------------------------------------------------------------------

    def _build(self) -> None:
        """A model at the point reached, or a look where the set has had enough."""
        self._linearise()
        if self.models and (
            self.spent >= PATIENCE * self._entries or self._set_gap() <= SHARE * self.gap
        ):
            self.phase = LOOK
            return
        self._curve()
        self.before = self.point[self._set_columns()]
        self.phase, self.sweeps, self.first = SWEEP, 0, 0.0

    def _curve(self) -> None:
        """What steps need of the curvature on the set."""
        if not self.quadratic:
            self._moments(self.set)

    def _set_gap(self) -> float:
        """The gap of the problem with the columns of the set alone."""
        problem, penalty = self.problem, self.problem.penalty
        if self.set.size == 0:  # x = 0, and the gap of the last look proves it
            return 0.0
        u = self._set_average()
        self._charge(self.set_entries)
        primal = self._loss() + penalty.value(self.point)
        y, scale = self._derivative(), penalty.feasible_scale(u)
        if scale < 1.0:
            y, u = y * scale, u * scale
        return primal - problem._dual(y, u)

    def _set_average(self) -> np.ndarray:
        """u on the set."""
        u = np.empty(self.set.size)
        column_dots(*self.columns.arrays, self.set, self.slopes, u)
        return u

    def _sweep(self, room: int) -> bool:
        """A sweep, or more while ``room`` entries last; after the last, to the model's minimum.

        Whether that is known to be the minimum over all columns.
        """
        lowered, flips = self._visits(room)
        if self._goes_on(lowered, flips):
            return False
        if flips == 0 and self._crawls(lowered):
            self._newton()
        before = self.operations
        self._finish(self._set_columns(), self.before)
        self.spent += self.operations - before
        self.models += 1
        self.phase = MODEL
        # sweeps on all columns that may move have ended by themselves, not in rounding: a look of
        # our own would say no more than the monitor's (500 x 50, 5 targets: 1.10 -> .95 ms)
        ended = self.quadratic and self.least_gain > 0.0 and lowered <= self.least_gain * self.first
        seen = self.first > ROUNDING * (abs(self.dual) + self.gap)
        if not (self.complete and ended and seen):
            return False
        self.phase, self.y, self.estimate = LOOK, self._derivative(), 0.0
        return True

    def _goes_on(self, lowered: float, flips: int) -> bool:
        """Whether another sweep follows."""
        return self.sweeps < self.most and lowered > self._enough * self.first

    def _crawls(self, lowered: float) -> bool:
        """Whether sweeps that end with one that brings so little are slow."""
        return self.sweeps == self.most_sweeps and lowered > SLOW**self.most_sweeps * self.first

    @property
    def _enough(self) -> float:
        """What of the first sweep the last one has brought."""
        return self.least_gain if self.quadratic else max(self.least_gain, LITTLE)

    def _visits(self, room: int) -> tuple[float, int]:
        """Steps on each unit of the set, or as many on those that bring more.

        Returns what the last sweep has lowered the model by, and its sign changes.
        """
        self.total, lowered, touched, self.average, flips, self.first, count = sweeps(
            *self.columns.arrays,
            self.set,
            *self._model,
            self.frequency,
            self.accumulator,
            self._order,
            self.random,
            self.average,
            self.learning,
            self.first,
            self.most - self.sweeps,
            self._enough,
            room,
        )
        self.learning = True
        self._charge(int(touched))
        self.sweeps += count
        return lowered, flips

    def _counted(self, lowered: float, touched: int, flips: int) -> tuple[float, int]:
        """The same of one sweep."""
        self._charge(int(touched))
        self.sweeps += 1
        self.first = self.first or lowered
        return lowered, flips

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
