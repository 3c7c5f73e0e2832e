r"""Working sets on data in blocks of rows: what blocks give is added up, the set is solved here.

Problem     min P(x, c) for a loss with a continuous slope and l1 or l1 + l2, with or without
            x >= 0, or x >= 0 and l2 alone
Look        z = Ax + c with the best c, y = phi'(z), u = A'Wy/n over all columns, P, D of y made
            feasible, and with them the ``estimate``
Set         the support, and the columns that violate their constraint at y, the worst first, as
            many as the support has; l1 is raised for the set to what holds the others back
Model       P around (x, c) with phi replaced by its second-order expansion: P itself for the
            squared loss, a proximal Newton step for the others.  Its Hessian on the set,
            G = A_S' diag(w phi''/n) A_S with columns centred by these weights (which eliminates
            c), is added up over the blocks; for the squared loss it only grows
Solve       min of the model on the set by :mod:`adacoord.kernels.gram_path`, on one core
Search      t = 1, 1/2, 1/4, ... until P has fallen by 0.01 of what the slope promises; the squared
            loss takes t = 1
Pass        one such round: a product with A', the Gram matrix, a product with A
Stops       never: the monitor does

A column that gap-safe rules prove to be zero is within its constraint, and never comes in.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...data.columns import as_scipy
from ...data.matrix import Matrix
from ...kernels.gram_path import gram_path
from ..base import Solver, first_intercept
from ..baselines.row_kernels import best_shift
from ..newton.expansion import expansion
from .gram_set import (
    BEST,
    BLOCK,
    CHEAP,
    CONSTANT,
    FEW,
    MOST,
    SAMPLE,
    SHARE,
    SMALLEST,
    STREAM,
    SURE,
)

#: phi'' at least this share of its bound 1/gamma (of |phi'| for log links, which have none); all
#: of it after a search that went below SHORT.
FLOOR, SHORT = 1e-6, 0.1
#: Of the decrease that the slope promises; and what P is not known to.
PROMISED, ROUNDING = 0.01, 1e-14
#: Rows of a product that BLAS has enough to do with.
WIDE = 1000
#: Stored entries, as a share of all, from which BLAS takes the columns of a set.
FULL = 0.05


class BlockWorkingSet(Solver):
    """Working sets on row blocks; see the module's docstring."""

    name = "acf"
    check_cost = 1.0
    uses_blas = True
    _state = (
        "point",
        "c",
        "ax",
        "u",
        "members",
        "raw",
        "sums",
        "shift",
        "cautious",
        "estimate",
        "stuck",
        "begun",
        "looked",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.losses = expansion(problem)
        self.law = problem.loss.code, *problem.loss.constants
        self.quadratic = problem.loss.name == "squared"
        self.point = self._start[0].astype(np.float64)
        self.c = float(first_intercept(problem, start))
        self.ax, self.u = np.zeros(problem.n), np.zeros(problem.d)
        self.members = np.empty(0, dtype=np.int64)
        #: sum_i D_i (a_ij - s_j)(a_ik - s_k) and sum_i D_i (a_ij - s_j), with a shift s
        self.raw, self.sums, self.shift = np.empty((0, 0)), np.empty(0), np.empty(0)
        self.cautious, self.begun = False, False
        self.looked = False  # whether u is that of y
        self.patient = start is None  # zero need not be looked at twice

    @property
    def x(self):
        return self.point

    @property
    def intercept(self):
        return self.c

    def restore(self, state):
        super().restore(state)
        if self.begun:
            self._expand()

    def _pass(self):
        if not self.begun:
            self.ax = self.problem.matrix.dot(self.point)
            self.operations += self.problem.matrix.nnz if self.point.any() else 0
            self.begun = True
            self._centre()
        if not self.looked:
            self._look()
        level = self._grow()
        before = self.point.copy()
        goal = self._solve(level)
        moved = self._search(before)
        if not moved:  # rounding has the rest
            self.stuck = True
            return
        self._centre()
        if self.quadratic and self.members.size == self.problem.d:  # G has seen all columns
            self.looked, self.estimate = False, goal
        else:
            self._look()

    # ---- looks ----------------------------------------------------------------------------------

    def _expand(self) -> None:
        """The losses at the point: their sum, w phi' and the curvature of the model."""
        z = self.ax + self.c
        self.value, self.slope, self.p, self.bend = self.losses.expand(z)
        if not self.quadratic:
            loss, share = self.problem.loss, 1.0 if self.cautious else FLOOR
            floor = np.abs(self.p) if loss.steep else self.losses.w / loss.gamma
            self.bend = np.maximum(self.bend, share * floor)

    def _centre(self) -> None:
        """The best intercept, and y."""
        problem = self.problem
        if problem.intercept and self.quadratic:
            residual = problem.b - self.ax
            residual *= self.losses.w
            self.c = float(np.sum(residual)) / self.losses.total
        elif problem.intercept:
            self.c = best_shift(*self.law, self.ax, self.c, problem.b, self.losses.w)
        self._expand()
        # residuals are a dual point as they are, with the best intercept
        self.y = self.slope if self.quadratic else problem._repaired(self.slope)

    def _look(self) -> None:
        """The correlations of all columns, and the gap that they prove."""
        problem, penalty = self.problem, self.problem.penalty
        self.u = problem.average(self.y)
        self.operations += problem.matrix.nnz
        y, u = problem._scaled(self.y, self.u)
        self.primal = self.value + penalty.value(self.point)
        self.estimate = problem.relative_gap(self.primal, problem._dual(y, u))
        self.looked = True

    # ---- the set --------------------------------------------------------------------------------

    def _grow(self) -> float:
        """Columns that violate their constraint come in; by what l1 is raised for the set."""
        problem, d = self.problem, self.problem.d
        slack = problem.penalty.slack(self.u)
        moved = self.point != 0.0
        slack[moved] = -np.inf
        wanted = np.flatnonzero(slack < 0.0)
        support = int(np.count_nonzero(moved))
        size, level = support + max(SMALLEST, support), 0.0
        if d <= FEW or (problem.n >= d and 4 * wanted.size >= 3 * d):
            wanted = np.arange(d)
        elif wanted.size > size:
            order = np.argpartition(slack[wanted], size)
            level = -float(slack[wanted[order[size]]])
            wanted = wanted[order[:size]]
        if not self.quadratic:  # the curvature has changed: all of it anew
            self.members = np.empty(0, dtype=np.int64)
        new = np.setdiff1d(wanted, self.members)
        if self.members.size and new.size:
            kept = np.flatnonzero(np.isin(self.members, wanted))
            if 2 * kept.size < self.members.size:
                self.members, self.sums = self.members[kept], self.sums[kept]
                self.shift, self.raw = self.shift[kept], self.raw[np.ix_(kept, kept)]
        if new.size:
            self._extend(new)
        return level

    def _extend(self, new: np.ndarray) -> None:
        """Products of the new columns with those of the set, added up over the blocks."""
        problem, old = self.problem, self.members.size
        members = np.concatenate([self.members, new])
        shift = np.zeros(members.size)
        if problem.intercept and problem.matrix.is_dense:
            # any shift will do, and one near the means cancels nothing
            shift[:old] = self.shift if old else 0.0
            shift[old:] = self._near_means[new]
        _, (raw, sums) = problem.matrix.gather(set_gram, members, old, shift, rows=(self.bend,))
        whole = np.zeros((members.size, members.size))
        whole[:, old:] = raw
        whole[old:, :old] = raw[:old].T
        if old:
            whole[:old, :old], sums = self.raw, np.concatenate([self.sums, sums])
        self.members, self.raw, self.sums, self.shift = members, whole, sums, shift
        n = problem.n
        self.operations += n * members.size + n * members.size * new.size // STREAM

    @cached_property
    def _near_means(self) -> np.ndarray:
        """The means of some rows, evenly spaced."""
        n = self.problem.n
        return self.problem.matrix.take(np.arange(0, n, max(1, n // SAMPLE))).mean(axis=0)

    # ---- the solution on it ---------------------------------------------------------------------

    def _solve(self, level: float) -> float:
        """The model's x on the set, to the relative gap returned."""
        problem, members = self.problem, self.members
        mass = float(np.sum(self.bend))
        gram = self.raw.copy()
        squares = gram.diagonal() + np.square(self.shift) * mass
        self.centre = self.shift
        if problem.intercept:
            gram -= np.multiply.outer(self.sums, self.sums / mass)
            self.centre = self.shift + self.sums / mass
        x, r = self.point[members], -self.u[members]
        q = r + gram @ x
        residual = float(
            np.sum(
                np.divide(self.p**2, self.bend, where=self.bend > 0.0, out=np.zeros_like(self.p))
            )
        )
        square = residual + float(np.sum((q + r) * x))
        l1, l2, positive = problem.penalty.arguments
        goal = max(SHARE * min(self.estimate, 1.0), BEST)
        cheap = members.size == problem.d or CHEAP * members.size**2 <= problem.matrix.nnz
        if self.quadratic and cheap:
            goal = min(goal, SURE)
        X, taken, work = np.empty((1, members.size)), np.zeros(1, dtype=np.int64), np.zeros(1)
        gram_path(
            gram,
            q,
            square,
            gram.diagonal() > CONSTANT * squares,
            np.array([l1 + level]),
            np.array([l2]),
            positive,
            goal,
            goal,
            np.finfo(np.float64).eps * square,
            MOST,
            np.inf,
            x,
            X,
            taken,
            work,
        )
        self.point = self.point.copy()
        self.point[members] = X[0]
        self.operations += int(work[0]) // STREAM
        return goal

    def _search(self, before: np.ndarray) -> bool:
        """From ``before`` to the model's x, or part of the way; whether anything moved."""
        problem, penalty = self.problem, self.problem.penalty
        step = self.point - before
        if not step.any():
            return False
        if self.quadratic:
            self.ax = problem.matrix.dot(self.point)
            self.operations += problem.matrix.nnz
            return True
        dz, dc = problem.matrix.dot(step), 0.0
        self.operations += problem.matrix.nnz
        if problem.intercept:
            dc = -float(np.sum(self.centre * step[self.members]))
        z, line = self.ax + self.c, dz + dc
        old, t = penalty.value(before), 1.0
        promised = float(np.sum(self.p * line)) + penalty.value(self.point) - old
        goal = self.value + old
        goal += ROUNDING * abs(goal)
        while True:
            value = self.losses.along(z, line, t)[0] + penalty.value(self.point)
            if value <= goal + PROMISED * t * promised:
                break
            t *= 0.5
            if t < 1e-12:
                self.point = before
                return False
            self.point = before + t * step
        self.cautious = t < SHORT
        self.ax, self.c = self.ax + t * dz, self.c + t * dc
        return True


def set_gram(
    block: Matrix, columns: np.ndarray, old: int, shift: np.ndarray, weight: np.ndarray
) -> tuple:
    """Products of ``columns`` with those from ``old`` on, and sums of these, of a block.

    (), (sum_i w_i (a_ij - s_j)(a_ik - s_k), sum_i w_i (a_ik - s_k)); sparse rows are not shifted.
    """
    data, size = as_scipy(block), columns.size
    raw, sums = np.zeros((size, size - old)), np.zeros(size - old)
    if not block.is_dense:
        picked = data[:, columns].astype(np.float64)
        if picked.nnz < FULL * picked.shape[0] * size:
            scaled = picked[:, old:].multiply(weight[:, None]).tocsc()
            return (), (np.asarray((picked.T @ scaled).todense()), picked[:, old:].T @ weight)
        data, shift = picked, np.zeros(size)
    whole = not block.is_dense or np.array_equal(columns, np.arange(block.shape[1]))
    root = np.sqrt(weight)
    alike = root.size > 0 and bool((root == root[0]).all())  # squared loss: two passes fewer
    rows = max(BLOCK // max(size, 1), size)
    room = np.empty((min(rows, block.shape[0]), size))
    for i in range(0, block.shape[0], rows):
        part = data[i : i + rows] if block.is_dense else data[i : i + rows].toarray()
        if not whole:  # quicker along rows than an index is, and a copy of all columns
            part = part.take(columns, axis=1) if part.flags.c_contiguous else part[:, columns]
        centred = np.subtract(part, shift, out=room[: len(part)])
        if alike:
            sums += centred[:, old:].sum(axis=0)
        else:
            centred *= root[i : i + rows, None]
            sums += root[i : i + rows] @ centred[:, old:]
        raw += centred.T @ (centred[:, old:] if old else centred)
    if alike:
        raw *= root[0] ** 2
        sums *= root[0] ** 2
    return (), (raw, sums)
