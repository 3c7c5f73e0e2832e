r"""Working sets on data in blocks of rows: what blocks give is added up, the set is solved here.

Problem     min P(x, c) for a loss with a continuous slope and l1 or l1 + l2, with or without
            x >= 0, or x >= 0 and l2 alone
Look        z = Ax + c with the best c, y = phi'(z), u = A'Wy/n over all columns, P, D of y made
            feasible, and with them the ``estimate``.  For the squared loss the model knows the best
            c but for rounding, and each block is read once for z and u
Set         the support, and the columns that violate their constraint at y, the worst first, as
            many as the support has; l1 is raised for the set to what holds the others back
Model       P around (x, c) with phi replaced by its second-order expansion: P itself for the
            squared loss, a proximal Newton step for the others.  Its Hessian on the set,
            G = A_S' diag(w phi''/n) A_S with columns centred by these weights (which eliminates
            c), is added up over the blocks; for the squared loss it only grows
Rough       products of many dense columns are made in float32, in half the time; where a round
            leaves more than GAINED of the gap (for other losses than the squared one: of a small
            gap), in float64 from then on
Solve       min of the model on the set by :mod:`adacoord.kernels.gram_path`, on one core
Search      t = 1, 1/2, 1/4, ... until P has fallen by 0.01 of what the slope promises; the squared
            loss takes t = 1
Pass        one such round: the Gram matrix, a product with A, one with A'
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
from ..newton.in_blocks import evaluate
from .gram_set import (
    BEST,
    BLOCK,
    CHEAP,
    CONSTANT,
    FEW,
    GAINED,
    MOST,
    ROUGH,
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
#: The gap from which on a round that gains little may be float32's doing; before it is that of
#: losses that are not quadratic (18 fits of logistic, huber and squared hinge, 40,000 x 100 to
#: 20,000 x 200: 2 to 8 rounds to 1e-9, in float32 throughout as many as in float64).
NEAR = 1e-4
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
        "value",
        "u",
        "weighed",
        "members",
        "raw",
        "sums",
        "shift",
        "cautious",
        "estimate",
        "stuck",
        "begun",
        "rough",
        "exact",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.losses = expansion(problem)
        self.law = problem.loss.code, *problem.loss.constants
        self.quadratic = problem.loss.name == "squared"
        self.point = self._start[0].astype(np.float64)
        self.c = float(first_intercept(problem, start))
        #: A x, which the squared loss makes anew with u; the sum of the losses; A'Wy/n
        self.ax, self.value, self.u = np.zeros(0), 0.0, np.zeros(problem.d)
        self.weighed = np.zeros(0)  # A'w/n, of the squared loss
        self.members = np.empty(0, dtype=np.int64)
        #: sum_i D_i (a_ij - s_j)(a_ik - s_k) and sum_i D_i (a_ij - s_j), with a shift s
        self.raw, self.sums, self.shift = np.empty((0, 0)), np.empty(0), np.empty(0)
        self.cautious, self.begun = False, False
        #: whether the Gram matrix is of float32, and whether it may not be
        self.rough, self.exact = False, False
        self.patient = start is None  # zero need not be looked at twice

    @property
    def x(self):
        return self.point

    @property
    def intercept(self):
        return self.c

    def restore(self, state):
        super().restore(state)
        if self.begun and not self.quadratic:
            self._expand()

    def _pass(self):
        if not self.begun:
            self._begin()
        before, gap, primal = self.point.copy(), self.estimate, self._primal()
        level = self._grow()
        self._solve(level)
        moved = self._search(before)
        if moved:
            self._look()
        enough = level > 0.0 or self.estimate <= GAINED * gap
        if not self.quadratic:
            enough = enough or gap > NEAR
        if self.rough and not (moved and enough):
            if self._primal() > primal:
                self.point = before
                self._look()
            self.members = np.empty(0, dtype=np.int64)  # all of it anew
            self.rough, self.exact = False, True
        elif not moved:  # rounding has the rest
            self.stuck = True

    def _begin(self) -> None:
        problem = self.problem
        if not self.quadratic:
            self.ax = problem.matrix.dot(self.point)
            self.operations += problem.matrix.nnz if self.point.any() else 0
            self._centre()
        elif problem.intercept and not self.point.any():
            self.c = problem.matrix.rowwise(np.vdot, rows=(self.losses.w, problem.b))
            self.c = float(self.c) / self.losses.total
        self.begun = True
        self._look()

    # ---- looks ----------------------------------------------------------------------------------

    def _expand(self) -> None:
        """The losses at the point: their sum, w phi' and the curvature of the model."""
        rowwise, loss = self.problem.matrix.rowwise, self.problem.loss
        self.value, self.slope, self.p, self.bend = self.losses.expand(self.ax + self.c)
        share = 1.0 if self.cautious else FLOOR
        floor = (share, None) if loss.steep else (share, loss.gamma)
        self.mass, self.residual = rowwise(_curved, *floor, rows=(self.losses.w, self.p, self.bend))

    def _centre(self) -> None:
        """The best intercept, and y."""
        problem = self.problem
        if problem.intercept:
            self.c = best_shift(
                self.law, self.ax, self.c, problem.b, self.losses.w, problem.matrix.rowwise
            )
        self._expand()
        self.y = problem._repaired(self.slope)

    def _primal(self) -> float:
        return self.value + self.problem.penalty.value(self.point)

    def _look(self) -> None:
        """The correlations of all columns, and the gap that they prove."""
        problem, penalty = self.problem, self.problem.penalty
        if self.quadratic:
            self._show()
            square, scale = 2.0 * self.value, penalty.feasible_scale(self.u)
            # D = -t^2 |y|^2/2 - t b.y - g*(-t u), with b.y = (z - y).y and z.y = x.u
            inner = square - float(np.sum(self.point * self.u))
            dual = scale * inner - 0.5 * scale**2 * square - penalty.conjugate(-scale * self.u)
        else:
            self.u = problem.average(self.y)
            self.operations += problem.matrix.nnz
            dual = problem._dual(*problem._scaled(self.y, self.u))
        self.estimate = problem.relative_gap(self._primal(), dual)

    def _show(self) -> None:
        """What there is to know of a new x, with the best intercept: of the squared loss."""
        problem, w = self.problem, self.losses.w
        new = problem.intercept and not self.weighed.size
        (self.y,), (self.value, slope, _, self.u, weighed) = problem.matrix.gather(
            evaluate, problem.loss, self.point, self.c, new, rows=(problem.b, w)
        )
        self.operations += problem.matrix.nnz * (2 if self.point.any() else 1)
        self.weighed = weighed if new else self.weighed
        # once more for what rounding left of the mean, as in :mod:`.gram_set`
        for _ in range(2 if problem.intercept else 0):
            shift = slope / self.losses.total
            self.value, slope = problem.matrix.rowwise(_shifted, shift, rows=(self.y, w))
            self.u -= shift * self.weighed
            self.c -= shift

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
        single = problem.matrix.is_dense and members.size >= ROUGH and not self.exact
        _, (raw, sums) = problem.matrix.gather(
            set_gram, members, old, shift, single, rows=(self._curvature,)
        )
        if single and not np.isfinite(raw).all():  # too large for float32
            self.members, self.rough, self.exact = np.empty(0, dtype=np.int64), False, True
            self._extend(members)
            return
        self.rough = single or (self.rough and old > 0)
        whole = np.zeros((members.size, members.size))
        whole[:, old:] = raw
        whole[old:, :old] = raw[:old].T
        if old:
            whole[:old, :old], sums = self.raw, np.concatenate([self.sums, sums])
        self.members, self.raw, self.sums, self.shift = members, whole, sums, shift
        n = problem.n
        self.operations += n * members.size + n * members.size * new.size // STREAM

    @property
    def _curvature(self) -> np.ndarray:
        return self.losses.w if self.quadratic else self.bend

    @cached_property
    def _near_means(self) -> np.ndarray:
        """The means of some rows, evenly spaced."""
        n = self.problem.n
        return self.problem.matrix.take(np.arange(0, n, max(1, n // SAMPLE))).mean(axis=0)

    # ---- the solution on it ---------------------------------------------------------------------

    def _solve(self, level: float) -> None:
        """The model's x on the set."""
        problem, members = self.problem, self.members
        mass = self.losses.total if self.quadratic else self.mass
        gram = self.raw.copy()
        squares = gram.diagonal() + np.square(self.shift) * mass
        self.centre = self.shift
        if problem.intercept:
            gram -= np.multiply.outer(self.sums, self.sums / mass)
            self.centre = self.shift + self.sums / mass
        x, r = self.point[members], -self.u[members]
        q = r + gram @ x
        residual = 2.0 * self.value if self.quadratic else self.residual
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

    def _search(self, before: np.ndarray) -> bool:
        """From ``before`` to the model's x, or part of the way; whether anything moved."""
        problem, penalty = self.problem, self.problem.penalty
        step = self.point - before
        if not step.any():
            return False
        dc = -float(np.sum(self.centre * step[self.members])) if problem.intercept else 0.0
        if self.quadratic:
            self.c += dc
            return True
        dz = problem.matrix.dot(step)
        self.operations += problem.matrix.nnz
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
        self._centre()
        return True


def _curved(
    share: float, gamma: float | None, w: np.ndarray, p: np.ndarray, bend: np.ndarray
) -> tuple[float, float]:
    """The curvature is ``share`` of its bound at least; (its sum, sum p^2 over it)."""
    floor = np.abs(p) if gamma is None else w / gamma
    floor *= share
    np.maximum(bend, floor, out=bend)
    squares = np.divide(np.square(p), bend, where=bend > 0.0, out=np.zeros_like(p))
    return float(np.sum(bend)), float(np.sum(squares))


def _shifted(shift: float, y: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """y -= shift; (sum w y^2/2, sum w y)."""
    y -= shift
    weighted = w * y
    return 0.5 * float(np.vdot(weighted, y)), float(np.sum(weighted))


def set_gram(
    block: Matrix,
    columns: np.ndarray,
    old: int,
    shift: np.ndarray,
    single: bool,
    weight: np.ndarray,
) -> tuple:
    """Products of ``columns`` with those from ``old`` on, and sums of these, of a block.

    (), (sum_i w_i (a_ij - s_j)(a_ik - s_k), sum_i w_i (a_ik - s_k)); sparse rows are not shifted.
    ``single``: products of dense rows in float32.
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
    kind = np.dtype(np.float32 if single else np.float64)
    root = np.sqrt(weight)
    alike = root.size > 0 and bool((root == root[0]).all())  # squared loss: two passes fewer
    scale = root.astype(kind)
    rows = max(BLOCK // max(size, 1), size)
    room = np.empty((min(rows, block.shape[0]), size), kind)
    for i in range(0, block.shape[0], rows):
        part = data[i : i + rows] if block.is_dense else data[i : i + rows].toarray()
        if not whole:  # quicker along rows than an index is, and a copy of all columns
            part = part.take(columns, axis=1) if part.flags.c_contiguous else part[:, columns]
        centred = np.subtract(part, shift, out=room[: len(part)], casting="same_kind")
        if alike:
            sums += centred[:, old:].sum(axis=0)
        else:
            centred *= scale[i : i + rows, None]
            sums += scale[i : i + rows] @ centred[:, old:]
        raw += centred.T @ (centred[:, old:] if old else centred)
    if alike:
        raw *= root[0] ** 2
        sums *= root[0] ** 2
    return (), (raw, sums)
