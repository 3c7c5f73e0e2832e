r"""Working sets of columns that carry a coefficient for each class or target.

Problem     min P(x, c) for the multinomial loss with l1, l1 + l2 or groups of rows of x (l21), and
            for squares of several targets with any of these: the multitask lasso (dense data of no
            more columns than rows are those of :mod:`.target_set`)
Look        as in :mod:`~adacoord.solvers.primal.working_set`; the slack of a column is the least of
            its classes, or that of its row
Model       with the whole Hessian diag(p) - pp' of the classes (:mod:`.class_kernels`): one
            coefficient after the other for l1, all of a row for groups.  Rows of squares are
            solved exactly, those of classes with the bound 2 max_k H_kk (the Hessian is diagonally
            dominant, so that it is at most twice its diagonal)
Sweeps      of squares in turn over the set and its support, then to where these tend
            (:mod:`.extrapolation`; in CPU ms, 200 x 3,000, 20 targets: 33 -> 26, 300 x 10,000, 5
            targets: 118 -> 88); of classes by adaptive frequencies
Gram        of the columns of the set, for squares on dense or small data: a step is as
            long as the set is wide, not as the data (1,000 x 500, 10 targets, l1_max/50: 54 -> 25
            ms to a gap of 1e-6)
Intercepts  of squares always at their best; of classes by Newton steps during each sweep, on
            dense data with columns centred, x the same
Pass        as many entries as A has, for all classes; a look ends one
Stops       never: the monitor does
"""

from __future__ import annotations

import numpy as np

from ...data.columns import Columns
from ...linalg.blas import one_thread
from ...sampling.frequencies import schedule
from ..base import Solver
from .class_kernels import (
    class_combine,
    class_curvatures,
    class_dots,
    class_expand,
    class_shift,
    class_sweep,
    dense_row_sweep,
    gram_row_sweep,
    row_sweep,
)
from .extrapolation import SWEEPS, InTurn
from .primal_cd import PROMISED, ROUNDING
from .working_set import NOTHING, WorkingSetDescent

#: Columns of a set for each target up to which its Gram matrix is cheaper than sweeps over A;
#: sparse columns are made dense for it up to so many numbers.
GRAM, DENSE = 100, 2**18
#: Sweeps with it: the first, or as many as take so many multiply-adds (a millisecond), but no more
#: than so many passes: where the monitor sees nothing move for 100, it ends the run.
GRAM_SWEEPS, GRAM_STEPS, GRAM_PASSES = 30, 2_000_000, 25
#: Of what the first sweep lowers P by, what ends them.  The gap is about the root of what P is off
#: by: 1e-7, then the next model (1,000 x 500, 10 targets, l1_max/50, in CPU ms: 15.5 with 1e-18,
#: 14.2 with this; with 1e-12 12.3 or 21.4).  NOTHING where they cost nothing.
ENOUGH = 1e-14
#: A column with less of its square left, once its mean is taken off, is constant.
CONSTANT = 1e-13
#: Steps on the intercepts of classes in a sweep: with 1 it takes 1.6 and 2.6 times as long (Reuters
#: R8 at l1_max/100 and /500).
SHIFTS = 4


class ClassWorkingSet(InTurn, WorkingSetDescent):
    """Gap-safe working sets of columns for several classes or targets; see the module."""

    uses_blas = True
    check_cost = 4.0  # a check asks for the fallback, too
    narrows = False  # u is of all classes
    most_sweeps = 2 * (SWEEPS + 1)
    least_gain = ENOUGH
    _state = (
        *WorkingSetDescent._state,
        *InTurn.turns,
        "least_gain",
        *("p", "dc", "system", "curvature", "gram", "gram_of", "place", "q", "pull"),
    )

    def __init__(self, problem, rng, start=None):
        Solver.__init__(self, problem, rng, start)
        n, d, K = problem.n, problem.d, problem.n_classes
        self.quadratic = not problem.loss.simplex
        self.columns, self.centre = problem.matrix.columns, np.zeros(d)
        self.column_sizes = self.columns.sizes
        w = np.ones(n) if problem.weights is None else problem.weights
        self.row_weight = w / n
        self.point = np.array(self._start[0], dtype=np.float64, order="C")
        self.h = self.row_weight
        self.squares, self.sums = np.empty(d), np.empty(d)
        self._moments(np.arange(d))
        self.mass = float(self.row_weight.sum()) if problem.intercept else np.inf
        if not self.quadratic and problem.intercept and problem.matrix.is_dense:
            self.centre = self.sums / self.mass
            whole = self.columns.data.reshape(d, n) - self.centre[:, None]
            self.columns = Columns((n, d), self.columns.colptr, None, whole.reshape(-1))
        # a centred column is no longer: screening goes by the columns as they are
        self.norms = np.sqrt(self.squares)
        # of a dense column with the slopes of each target in turn: vectors are long
        self.long = self.quadratic and self.columns.rows is None
        self.slopes = np.zeros((n, K), order="F" if self.long else "C")
        self.total, self.dc = np.zeros(K), np.zeros(K)
        self.c = self._start[1] + self.centre @ self.point
        self.p, self.system = np.empty((0, K)), np.zeros((K, K))
        if self.quadratic:
            centred = self.squares - self.sums * (self.sums / self.mass)
            self.curvature = np.where(centred > CONSTANT * self.squares, centred, 0.0)
        else:
            self.p, self.squares = np.empty((n, K)), np.zeros((d, K))
            self.curvature = np.zeros(d)
            self.sums[:] = 0.0
        self.cautious = False
        self._expanded = None, ()  # the z it is of, and what was found there
        self.gram, self.gram_of = np.empty((0, 0)), np.empty(0, dtype=np.int64)
        self.place, self.q = np.zeros(d, dtype=np.int64), np.empty((K, 0))
        self._begin(rng, start)
        self._no_turns()
        self.room = np.inf  # all columns are here
        self._room = np.empty((6, K))
        self._everything = np.arange(d)
        self._predict()
        self.operations = 0

    @property
    def intercept(self):
        return self.c - self.centre @ self.point if self.problem.intercept else self.c

    def restore(self, state):
        super().restore(state)
        if self.long:  # what was copied is in rows, and sums have their bits from the order
            self.slopes = np.asfortranarray(self.slopes)

    def _support(self):
        return (self.point != 0.0).any(axis=1)

    def _slack(self, u):
        slack = self.problem.penalty.slack(u)
        # of 8 numbers each NumPy's least takes 35 ns; of 8 long rows .8 -> .1 ms in all (23,559)
        return slack if slack.ndim == 1 else np.ascontiguousarray(slack.T).min(axis=0)

    def _set_columns(self):
        return self._everything if self.problem.penalty.grouped else self.set

    def _predict(self):
        p = self.problem
        self.z = np.zeros(p.y_shape) + self.c
        if p.offset is not None:
            self.z += p.offset
        support = np.flatnonzero(self._support())
        if support.size == 0:
            return
        if self.long:  # 2,000 x 100, 3 targets: 240 -> 90 us
            with one_thread():
                self.z += self._dense(support).T @ self.point[support]
            self.operations += support.size * p.n
            return
        self.operations += int(
            class_combine(*self.columns.arrays, support, self.point[support], self.z)
        )

    def _expansion(self, z=None):
        """(the mean loss, phi', probabilities) of classes at z, or at the z of the moment, where
        it is kept."""
        if z is None:
            if self._expanded[0] is not self.z:
                self._expanded = self.z, self._expansion(self.z)
            return self._expanded[1]
        y, p = np.empty(z.shape), np.empty(z.shape)
        return float(class_expand(z, self.problem.b, self.row_weight, y, p)), y, p

    def _loss(self):
        if self.quadratic:
            squares = np.square(self.z - self.problem.b)
            return 0.5 * float(np.sum(self.row_weight[:, None] * squares))
        return self._expansion()[0]

    def _derivative(self):
        if self.quadratic:
            return self.problem.loss.derivative(self.z, self.problem.b)
        return self._expansion()[1]

    def _linearise(self):
        p = self.problem
        if self.quadratic:
            np.multiply(self.row_weight[:, None], self.z - p.b, out=self.slopes)
            self.total = self.slopes.sum(axis=0) if p.intercept else np.zeros(p.n_classes)
            return
        _, y, self.p = self._expansion()
        np.multiply(self.row_weight[:, None], y, out=self.slopes)
        self.dc = np.zeros(p.n_classes)
        if p.intercept:
            weighted = self.row_weight[:, None] * self.p
            # what all classes share changes nothing: the mean takes its place
            self.system = np.diag(weighted.sum(axis=0)) - weighted.T @ self.p
            self.system += self.mass / p.n_classes**2 + 1e-10 * self.mass * np.eye(p.n_classes)

    def _curve(self):
        if self.quadratic:
            self._by_gram()
            return
        class_curvatures(*self.columns.arrays, self.set, self.p, self.row_weight, self.squares)
        self.curvature[self.set] = 2.0 * self.squares[self.set].max(axis=1)
        self._charge(self.set_entries)

    def _by_gram(self) -> None:
        """The Gram matrix of the set and its slopes, or neither where sweeps over A are cheaper."""
        n, K, size = self.problem.n, self.slopes.shape[1], self.set.size
        small = self.problem.matrix.is_dense or size * n <= DENSE
        if not small or not 0 < size <= min(n, GRAM * K):
            self.q, self.least_gain = np.empty((K, 0)), ENOUGH
            return
        sums = self.sums[self.set]
        if not np.array_equal(self.set, self.gram_of):
            self.gram = self._set_gram(sums)
            self.gram_of = self.set
            self.place[self.set] = np.arange(size)
        if self.models == 0 and self.pull.size:  # as the look has them (1,000 x 500: .5 of 15 ms)
            self.q = np.ascontiguousarray(self.pull[self.set].T)
        else:
            self.q = np.ascontiguousarray(self._dots().T - np.outer(self.total / self.mass, sums))
            self._charge(self.set_entries)
        # to the last digit where that costs nothing
        longest = int(GRAM_PASSES * self._entries) // max(n, size * size)
        cheap = GRAM_STEPS // (size * size * K)
        self.most = max(GRAM_SWEEPS, min(cheap, longest))
        self.least_gain = NOTHING if cheap >= GRAM_SWEEPS else ENOUGH

    def _set_gram(self, sums: np.ndarray) -> np.ndarray:
        """Of centred columns; a part of the last where the set is."""
        if np.isin(self.set, self.gram_of, assume_unique=True).all():
            places = self.place[self.set]
            return self.gram[np.ix_(places, places)]
        self._charge(self.set_entries)
        part = self._dense_set().astype(np.float64, copy=False)
        if self.problem.weights is None:  # no second copy (1,000 x 500: 1.9 of 8.7 ms)
            gram = part @ part.T
            gram *= self.row_weight[0]
        else:
            part = part * np.sqrt(self.row_weight)
            gram = part @ part.T
        gram -= np.outer(sums, sums / self.mass)
        return gram

    def _dense(self, columns: np.ndarray) -> np.ndarray:
        """Some columns of dense data, one a row."""
        whole = self.columns.data.reshape(-1, self.problem.n)
        return whole if columns.size == len(whole) else whole[columns]

    def _dense_set(self) -> np.ndarray:
        """The columns of the set, one a row."""
        colptr, rows, data = self.columns.arrays
        if rows is None:
            return self._dense(self.set)
        part = np.zeros((self.set.size, self.problem.n))
        for a, j in enumerate(self.set):
            entries = slice(int(colptr[j]), int(colptr[j + 1]))
            part[a, rows[entries]] = data[entries]
        return part

    def _dots(self) -> np.ndarray:
        """The products of the columns of the set with the slopes."""
        if self.long:
            return self._dense_set() @ self.slopes
        part = np.empty((self.set.size, self.slopes.shape[1]))
        class_dots(*self.columns.arrays, self.set, self.slopes, part)
        return part

    def _set_average(self):
        part = self._dots()
        if not self.problem.penalty.grouped:
            return part
        u = np.zeros(self.problem.x_shape)
        u[self.set] = part
        return u

    def _visits(self, room):
        return self._counted(*(self._in_turn() if self.quadratic else self._by_frequency()))

    def _by_frequency(self):
        """A step on each unit of the set, or as many on those that bring more.

        Returns the decrease of the model, the entries touched and the sign changes.
        """
        size = self.set.size
        visits = schedule(
            self.set, size, self.frequency, self.accumulator, self._order, self.random
        )
        found = self._visit(self._order[:visits], 1.0 / size if self.learning and size else 0.0)
        if not self.learning:
            self.average, self.learning = found[0] / max(size, 1), True
        return found

    def _image(self):
        linear = self.q if self.q.size else self.slopes.T
        return np.concatenate([linear.ravel(), self.total])

    def _parts(self, image):
        """Slopes of the set, or all of them (a row for each target), and the sums of these."""
        K = self.total.size
        return image[:-K].reshape(K, -1), image[-K:]

    def _move(self, x, image):
        linear, self.total = self._parts(image)
        self.point[self.set] = x
        if self.q.size:
            self.q = linear
        else:
            self.slopes[:] = linear.T

    def _rise(self, x, image):
        linear, total = self._parts(image)
        step, penalty = x - self.point[self.set], self.problem.penalty
        if self.q.size:
            smooth = float(np.sum((linear + self.q) * step.T))
        else:
            squares = np.square(linear) - np.square(self.slopes.T)
            weighted = self.row_weight > 0.0
            smooth = float(np.sum(squares[:, weighted] / self.row_weight[weighted]))
            smooth -= float(total @ total - self.total @ self.total) / self.mass
        other = self.point.copy()
        other[self.set] = x
        return 0.5 * smooth + penalty.value(other) - penalty.value(self.point)

    def _visit(self, order, eta):
        if self.quadratic or not self.problem.intercept:
            return self._steps(order, eta)
        found = [self._steps(part, eta) for part in np.array_split(order, SHIFTS)]
        lowered, touched, flips = zip(*found, strict=True)
        return sum(lowered), sum(int(t) for t in touched), sum(flips)

    def _steps(self, order, eta):
        """Steps on the columns of ``order``, after one on the intercepts of classes."""
        penalty, columns = self.problem.penalty, self.columns.arrays
        if not self.quadratic and self.problem.intercept:
            step = -np.linalg.solve(self.system, self.slopes.sum(axis=0))
            class_shift(self.slopes, self.p, self.row_weight, step)
            self.dc += step
        if penalty.grouped:
            thresholds, l1, l2 = penalty.arguments
        else:
            thresholds, (l1, l2, _) = np.zeros(self.problem.d), penalty.arguments
        if not (self.quadratic or penalty.grouped):
            lowered, touched, self.average, flips = class_sweep(
                *columns,
                order,
                self.point,
                self.slopes,
                self.p,
                self.row_weight,
                self.squares,
                l1,
                l2,
                self.frequency,
                self.average,
                eta,
                self._room[0],
            )
            return lowered, touched, flips
        if self.q.size:
            lowered, touched, self.average, flips = gram_row_sweep(
                order,
                self.place,
                self.point,
                self.gram,
                self.q,
                self.curvature,
                self.sums,
                self.total,
                thresholds,
                l1,
                l2,
                self.frequency,
                self.average,
                eta,
                self._room,
            )
            return lowered, touched, flips
        if self.long:
            lowered, touched, self.average, flips = dense_row_sweep(
                self.columns.colptr,
                self.columns.data,
                order,
                self.point,
                self.slopes.T,
                self.row_weight,
                self.curvature,
                self.sums,
                self.total,
                self.mass,
                thresholds,
                l1,
                l2,
                self.frequency,
                self.average,
                eta,
                self._room,
            )
            return lowered, touched, flips
        lowered, touched, self.average, flips = row_sweep(
            *columns,
            order,
            self.point,
            self.slopes,
            self.p,
            self.row_weight,
            self.curvature,
            self.sums,
            self.total,
            self.mass,
            thresholds,
            l1,
            l2,
            self.frequency,
            self.average,
            eta,
            self._room,
        )
        return lowered, touched, flips

    def _finish(self, columns, before):
        if self.quadratic:
            self.c = self.c - self.total / self.mass
            self._predict()
            return
        penalty = self.problem.penalty
        after, t = self.point[columns], 1.0
        step, dz = after - before, np.zeros(self.z.shape) + self.dc
        self.operations += int(class_combine(*self.columns.arrays, columns, step, dz))
        loss, y, _ = self._expansion()
        old = penalty.value(before)
        promised = float(np.einsum("i,ik,ik", self.row_weight, y, dz)) + penalty.value(after) - old
        goal = loss + old
        goal += ROUNDING * abs(goal)
        while True:
            z = self.z + t * dz
            found = self._expansion(z)
            if found[0] + penalty.value(after) <= goal + PROMISED * t * promised:
                self.z, self._expanded = z, (z, found)
                break
            t *= 0.5
            if t < 1e-12:  # nothing to gain in this arithmetic
                t, after = 0.0, before
                break
            after = before + t * step
        self.point[columns] = after
        self.c = self.c + t * self.dc

    def _newton(self):
        """None: the model has the whole Hessian of the classes as it is."""
