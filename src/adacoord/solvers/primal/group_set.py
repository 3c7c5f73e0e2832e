r"""Block coordinate descent on working sets of groups: the group lasso and the sparse group lasso.

Problem     min P(x, c) for smooth losses and g(x) = l21 sum_G w_G |x_G| + l1 |x|_1 + l2/2 |x|^2
Look        as in :mod:`~adacoord.solvers.primal.working_set`, with groups in the place of columns:
            the set is the support and the groups of least slack l21 w_G - |S(u_G)| over the
            length of A_G, u before it was scaled to be feasible, and none that the gap proves to
            be zero (S is nonexpansive, so that |S(u*_G)| <= |S(u_G)| + |A_G| |y* - y|)
Model       as there; a visit to a group takes x_G to the minimum of the model over x_G, by
            proximal steps on the Gram matrix of the group (:mod:`.group_kernels`)
Sweeps      in turn over the set and its support, then to where these tend
            (:mod:`.extrapolation`)
Newton      on the support (:mod:`~adacoord.solvers.newton.group_support`) where sweeps crawl, once
            they have cost as much as that does
Pass        as many entries as A has; a look ends one
Stops       never: the monitor does

Measured in CPU ms to a gap of 1e-6, one thread (``race.py --models --only group``, seed 0): 500 x
5,000 in groups of 10 at the 10th and 50th part of the largest l21, 17 and 105; 10,000 x 500 in
groups of 5 at the 100th, 22; words at the 20th, 17.
"""

from __future__ import annotations

import numpy as np

from ...kernels.columns import column_dots, combine
from ...kernels.gram import sparse_gram
from ...linalg.moments import fits
from ..newton.group_support import group_newton
from .extrapolation import SWEEPS, InTurn
from .group_kernels import UNKNOWN, by_rows, group_sweep
from .working_set import SLOW, WorkingSetDescent

#: Numbers in the Gram matrices of all groups (256 MB); groups beyond it go without.
MOST = 2**25
#: Of what the first sweep lowers P by, what ends those on a set that may lack groups: its first
#: sweep is of what came in, and the next look brings more than sweeps that go on (CPU ms: words of
#: 3,000 x 6,000 in groups of 3 at the 20th part 13.5 -> 8.0, 2,000 x 3,000 in groups of 7 at the
#: 30th 75 -> 60, 500 x 5,000 in groups of 10 at the 10th 19 -> 20).
ENOUGH = 1e-4
#: Proximal steps on the Gram matrix of a group, for each of its columns, that cost as much as its
#: eigenvectors do.
EIGEN = 5
#: Sweeps on a set before they may be called slow.
SETTLED = 2
#: Multiply-adds of BLAS that take the time of an entry of A in a sweep, of dense and of sparse
#: data; entries for each pair of a Gram matrix of sparse columns; steps of Newton's method on a
#: support, and what each costs for each number of its matrix beside the factor, in entries.  (CPU
#: ms, words, 435 columns: the Gram matrix of 2.0 million pairs 1.9, a step 1.4, an entry in a sweep
#: .66 ns; of dense data .15 to .25 ns.)
BLAS_DENSE, BLAS_SPARSE, PAIR, STEPS, OVERHEAD = 5, 15, 1.4, 2, 2
#: Matrices of the size of a support that these steps hold.
MATRICES = 6


class GroupWorkingSet(InTurn, WorkingSetDescent):
    """Gap-safe working sets of groups; see the module's docstring."""

    uses_blas = True
    narrows = False  # u is of all groups
    # the gap is about the root of what P is off by: 1e-6 is near where sweeps bring so little
    most_sweeps, first_sweeps, least_gain = 2 * (SWEEPS + 1), 4, 1e-12
    check_cost = 8.0

    _state = (
        *WorkingSetDescent._state,
        *InTurn.turns,
        *("blocks", "bounds", "built", "effort", "spectrum", "gram", "gram_of", "last"),
    )

    def __init__(self, problem, rng, start=None):
        index, m = problem.penalty.index, problem.penalty.weights.size
        self.members = np.argsort(index, kind="stable").astype(np.int64)
        sizes = np.bincount(index, minlength=m)
        self.pointers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.index = index
        super().__init__(problem, rng, start)
        self.norms = np.sqrt(np.bincount(index, self.norms**2, m))
        ends = np.cumsum(sizes.astype(np.int64) ** 2)
        self.starts = np.where(ends <= MOST, ends - sizes.astype(np.int64) ** 2, -1)
        self.blocks = np.zeros(int(ends[ends <= MOST].max(initial=0)))
        self.bounds, self.built = np.zeros(m), np.full(m, UNKNOWN)
        #: Proximal steps of each group, and how many are as dear as its eigenvectors, which need
        #: an equation for |x_G|.
        self.effort, self.spectrum = np.zeros(m, dtype=np.int64), np.zeros(problem.d)
        one_threshold = problem.penalty.thresholds * float(problem.penalty.l1 == 0.0)
        able = (one_threshold > 0.0) & (sizes > 1) & (self.starts >= 0)
        self._dear = np.where(able, EIGEN * sizes, np.iinfo(np.int64).max)
        self._turned = np.empty(int((sizes[able] ** 2).max(initial=0)))
        self._column, self._room = np.zeros(problem.n), np.empty((5, int(sizes.max())))
        self._moving = np.empty(int(sizes.max()), dtype=np.int64)
        self._everything = np.arange(problem.d)
        self._no_turns()
        self.gram, self.gram_of = np.empty((0, 0)), self._everything[:0]
        self.last = np.zeros(2)  # what the last two sweeps have lowered the model by

    def _unit_sizes(self):
        index, m = self.problem.penalty.index, self.problem.penalty.weights.size
        return np.bincount(index, self.column_sizes, m).astype(np.int64)

    def _support(self):
        there = np.zeros(self.bounds.size, dtype=bool)
        there[self.index[self.point != 0.0]] = True
        return there

    def _set_columns(self):
        return self._everything  # g is not a sum over columns: all of it is looked at

    def _members(self, units):
        starts, sizes = self.pointers[units], self.pointers[units + 1] - self.pointers[units]
        ends = np.cumsum(sizes)
        return self.members[np.arange(sizes.sum()) + np.repeat(starts - ends + sizes, sizes)]

    def _set_average(self):
        columns = self._members(self.set)
        u, part = np.zeros(self.problem.d), np.empty(columns.size)
        column_dots(*self.columns.arrays, columns, self.slopes, part)
        u[columns] = part
        return u

    def _curve(self):
        """The Gram matrices of groups are made as these move."""
        if not self.quadratic:
            self._moments(self._members(self.set))
            self.built[self.set], self.effort[self.set] = UNKNOWN, 0

    def _visits(self, room):
        lowered, flips = self._counted(*self._in_turn())
        self.last[:] = self.last[1], lowered
        return lowered, flips

    def _crawls(self, lowered):
        return self.sweeps > SETTLED and lowered > SLOW * self.last[0]

    @property
    def _enough(self):
        enough = super()._enough
        return enough if self.complete else max(enough, ENOUGH)

    def _visit(self, order, eta):
        self.total, lowered, touched, flips = group_sweep(
            *self.columns.arrays,
            order,
            self.pointers,
            self.members,
            self.point,
            self.slopes,
            self.h,
            self.sums,
            self.total,
            self.mass,
            self.blocks,
            self.starts,
            self.bounds,
            self.built,
            self.effort,
            self._dear,
            self.spectrum,
            self._turned,
            *self.problem.penalty.arguments,
            self._room,
            self._moving,
            self._column,
        )
        return lowered, touched, flips

    def _image(self):
        return np.append(self.slopes, self.total)

    def _move(self, x, image):
        self.point[self.inside], self.slopes[:], self.total = x, image[:-1], float(image[-1])

    def _rise(self, x, image):
        other = self.point.copy()
        other[self.inside] = x
        h, here, penalty = self.h, self._image(), self.problem.penalty
        # of rows without a curvature, and so without a weight, slopes are 0
        weight = np.divide(1.0, h, out=np.zeros_like(h), where=h > 0.0)
        smooth = float(np.sum(weight * (np.square(image[:-1]) - np.square(here[:-1]))))
        smooth -= (image[-1] ** 2 - here[-1] ** 2) / self.mass
        return 0.5 * smooth + penalty.value(other) - penalty.value(self.point)

    def _newton(self):
        """On the support, once sweeps have cost what the factor of its Gram matrix does."""
        penalty, support = self.problem.penalty, np.flatnonzero(self.point)
        size, entries = support.size, int(self.columns.sizes[support].sum())
        known = self.quadratic and np.array_equal(support, self.gram_of)
        dense = self.columns.rows is None
        blas = BLAS_DENSE if dense else BLAS_SPARSE
        price = STEPS * size**2 * (size / (3.0 * blas) + OVERHEAD)
        if not known:
            price += 0.5 * entries * (size / blas if dense else PAIR * entries / self.problem.n)
        if price > self.operations or not fits(size, MATRICES):
            return
        if not known:
            self.gram, self.gram_of = self._support_gram(support), support
        g, image = np.empty(size), np.zeros(self.problem.n)
        column_dots(*self.columns.arrays, support, self.slopes, g)
        g -= self.sums[support] * (self.total / self.mass)
        before = self.point[support]
        after = group_newton(self.gram, g, before, penalty.index[support], *penalty.arguments)
        combine(*self.columns.arrays, support, after - before, image)
        self._charge(int(price) + 2 * entries)
        self.slopes += self.h * image
        self.total += float(self.sums[support] @ (after - before))
        self.point[support] = after

    def _support_gram(self, support: np.ndarray) -> np.ndarray:
        """Of centred columns, under the model's curvature."""
        (colptr, rows, data), n = self.columns.arrays, self.problem.n
        if rows is None:
            part = np.stack([data[int(colptr[j]) : int(colptr[j + 1])] for j in support])
            part = part * np.sqrt(self.h)
            gram = part @ part.T
        else:  # rows in two loops over the entries (words, 435 columns: 4.1 -> 2.3 ms in all)
            entries = int(self.columns.sizes[support].sum())
            ends, places = np.zeros(n + 2, dtype=np.uint64), np.empty(entries, dtype=np.uint32)
            values = np.empty(entries)
            by_rows(colptr, rows, data, support, ends, places, values)
            gram = np.zeros((support.size, support.size))
            h = np.broadcast_to(self.h, n).copy()
            sparse_gram(ends[:-1], places, values, h, gram)
        if self.problem.intercept:  # else sums are 0 (490 columns: 1.7 of 4.2 ms)
            gram -= np.multiply.outer(self.sums[support], self.sums[support] / self.mass)
        return gram
