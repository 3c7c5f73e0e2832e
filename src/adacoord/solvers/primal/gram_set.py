r"""Working sets with their Gram matrix: least squares with an l1 on dense data.

Problem     min P(x, c) for the squared loss and l1 or l1 + l2, with or without x >= 0
Look        r = -A'Wy/n, y = Ax + c - b, over all columns from the data; P, D of y scaled to be
            feasible, and with them the ``estimate``; columns with |r_j| > l1 that are not in the
            set yet, the worst first, as many as the support has, come into it
Level       of l1 at which the set is solved: l1 itself, or as much more as holds back the columns
            that violate l1 but did not come in.  Of 20,000 columns and 1,000 rows 950 had a
            coefficient at l1: sets solved at l1 from the first grew to 4,361 columns
Gram        of the set, G = A_S'WA_S/n with centred columns, grows by the products of the columns
            that came in: BLAS, in blocks of rows.  All columns at once where they are few, or where
            most of them would come in
Rough       products of many columns that come in all at once are made in float32, in half the time:
            the gap that is left is then that of the next look, not that of the set.  Where a
            round leaves more than GAINED of it, they are made anew in float64
Solve       min on the set by :mod:`adacoord.kernels.gram_path`, from q = r + Gx, to SHARE of the
            gap: what is wrong in G to rounding is put right by the next look (iterative refinement)
Pass        one such round
Near        a proximal term of what rounding may take from the eigenvalues of G: without it x goes
            far along directions of no curvature (323 x 323 of float32, means of 10^6: P = 1e57)
Stuck       where P rises all the same, or after IDLE rounds that bring neither gap nor P further
Stops       never: the monitor does

Coordinate descent on A itself reads a column for each step; here a step is as long as the set.
"""

from __future__ import annotations

import numpy as np

from ...data.columns import as_scipy
from ...kernels.gram_path import gram_path
from ..base import Solver

#: Columns that come in at a time, at least.
SMALLEST = 100
#: All columns are taken up to this number, where more than one in MANY violates its constraint.
FEW, MANY = 100, 2
#: The gap of the set to reach, over that of the look, and no less than BEST; at most SURE where all
#: columns are in it, or so many sweeps over it cost no more than a look.
SHARE, SURE, BEST, CHEAP = 1e-1, 1e-8, 1e-14, 20
#: Passes of the kernel for one set.
MOST = 1000
#: What P becomes over what it was where rounding in G has taken over; rounds that bring nothing, by
#: the gap, and by P.
RISE, IDLE, BETTER, LESS = 2.0, 30, 0.99, 1.0 - 1e-6
#: Columns that a product takes in the time that one is looked up.
FAR = 20
#: Multiply-adds in a row of BLAS, and on G, that take the time of an entry of A in a pass.
STREAM, ROW = 10, 3
#: Columns whose products pay for the one more round that float32 may ask for (CPU ms to 1e-6,
#: lasso: 6,000 x 350 at l1_max/100 and /1,000 17.4 -> 10.7 and 22.2 -> 16.5, 20,000 x 120 9.8 ->
#: 6.5).
ROUGH = 100
#: What a round may leave of the gap, or float32 will not do.
GAINED = 0.3
#: Entries of a block of rows (2 MB), and rows that the shift of columns is the mean of; none where
#: that is less than the deviation, and a bit is all that is lost (4,275 x 62: .62 -> .55 ms).
BLOCK, SAMPLE = 2**18, 256
#: A column with less of its square left, once its mean is taken off, is constant.
CONSTANT = 1e-13


class GramWorkingSet(Solver):
    """Working sets with their Gram matrix; see the module's docstring."""

    name = "acf"
    check_cost = 1.0
    uses_blas = True
    _state = (
        "point",
        "c",
        "members",
        "raw",
        "sums",
        "shift",
        "u",
        "estimate",
        "stuck",
        "looked",
        "begun",
        "rough",
        "exact",
        "least",
        "lowest",
        "idle",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.point, self.c = self._start[0].astype(np.float64), self._start[1]
        self.members = np.empty(0, dtype=np.int64)
        #: sum_i w_i (a_ij - s_j)(a_ik - s_k) and sum_i w_i (a_ij - s_j), with a shift s
        self.raw, self.sums, self.shift = np.empty((0, 0)), np.empty(0), np.empty(0)
        #: -r, and whether it is that of y; whether y is that of x
        self.u, self.looked, self.begun = np.zeros(problem.x_shape), False, False
        #: whether the Gram matrix is of float32, and whether it may not be
        self.rough, self.exact = False, False
        #: the least estimate and P, and the rounds since
        self.least, self.lowest, self.idle = np.inf, np.inf, 0
        self.mass = float(problem.n if problem.weights is None else problem.weights.sum())
        self.level = 0.0  # of the set that is being solved: not a state
        #: ``raw``, and what ``_centred`` made of it: not a state either
        self._made: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._data = as_scipy(problem.matrix)
        self.patient = start is None  # zero need not be looked at twice

    @property
    def x(self):
        return self.point

    @property
    def intercept(self):
        return self.c

    def _pass(self):
        self.patient = False
        if not self.begun:
            self._predict()
            self.begun = True
        if not self.looked:
            self._look()
        before, gap, primal = self.point.copy(), self.estimate, self._primal()
        self._wait(primal)
        self._grow()
        self._solve()
        moved = not np.array_equal(before, self.point)
        if not (moved or self.rough):  # rounding has the rest
            self.stuck = True
            return
        if moved:
            self._show()
        rises = self.level == 0.0 and not self._primal() <= RISE * primal
        if rises or (self.rough and not (moved and self.estimate <= GAINED * gap)):
            self.point = before
            self._show()
            if self.rough:
                self._make_exact()
            else:
                self.stuck = True

    def _wait(self, primal: float) -> None:
        """Count the rounds that have brought nothing."""
        better = self.estimate < BETTER * self.least or primal < LESS * self.lowest
        self.least, self.lowest = min(self.least, self.estimate), min(self.lowest, primal)
        self.idle = 0 if better else self.idle + 1
        self.stuck = self.idle >= IDLE

    def _primal(self) -> float:
        """P, of the y of the moment."""
        return 0.5 * self._square() + self.problem.penalty.value(self.point)

    def _square(self) -> float:
        """The mean of |y_i|^2."""
        return self.problem._mean(np.square(self.y))

    def _show(self) -> None:
        """What there is to know of a new x."""
        self._predict()
        self.looked = False
        if self.rough or self.members.size < self.problem.d:  # else the kernel has seen all columns
            self._look()

    def _predict(self) -> None:
        """y and the best intercept, from x and the data."""
        problem = self.problem
        support = np.flatnonzero(self._moved())
        if FAR * support.size < problem.d:
            predicted = self._data[:, support].astype(np.float64) @ self.point[support]
        else:
            predicted = problem.matrix.dot(self.point)
        residual = predicted - problem.b
        self.c = problem.no_intercept
        # once more for what rounding left of the mean: columns of mean 10^6 would make 10^6 times
        # that of it in their correlations, and 60 rounds left a gap of 1e-3 (60 x 20)
        for _ in range(2 if problem.intercept else 0):
            self.c = self.c - self._centre(residual)
        self.y = residual
        self.operations += problem.matrix.nnz

    def _centre(self, residual: np.ndarray) -> float | np.ndarray:
        """The mean by the weights, which is taken off."""
        mean = self.problem._mean(residual) * (self.problem.n / self.mass)
        residual -= mean
        return mean

    def _moved(self) -> np.ndarray:
        """Of the columns, those that have a coefficient."""
        return self.point != 0.0

    def _slack(self) -> np.ndarray:
        return self.problem.penalty.slack(self.u)

    def _look(self) -> None:
        """The correlations of all columns, and the gap that they prove."""
        problem, penalty = self.problem, self.problem.penalty
        self.u = problem.average(self.y)
        self.operations += problem.matrix.nnz
        square = self._square()
        value = penalty.value(self.point)
        scale = penalty.feasible_scale(self.u)
        # D = -t^2 |y|^2/2 - t b.y - g*(-t u), with b.y = (z - y).y and z.y = x.u
        inner = square - float(np.sum(self.point * self.u))
        dual = scale * inner - 0.5 * scale**2 * square - penalty.conjugate(-scale * self.u)
        self.estimate = problem.relative_gap(0.5 * square + value, dual)
        self.looked = True

    # ---- the set --------------------------------------------------------------------------------

    def _grow(self) -> None:
        """Columns that violate their constraint come into the set; sets ``level``."""
        problem, d = self.problem, self.problem.d
        self.level = 0.0
        if self.members.size == d:
            return
        slack, moved = self._slack(), self._moved()
        slack[moved] = -np.inf
        wanted = np.flatnonzero(slack < 0.0)
        support = int(np.count_nonzero(moved))
        size = self._most(support)
        few = d <= FEW and MANY * wanted.size > d
        if few or (problem.n >= d and 4 * wanted.size >= 3 * d):
            wanted = np.arange(d)
        elif wanted.size > size:
            order = np.argpartition(slack[wanted], size)
            self.level = -float(slack[wanted[order[size]]])
            wanted = wanted[order[:size]]
        held, asked = np.zeros(d, dtype=bool), np.zeros(d, dtype=bool)
        held[self.members] = asked[wanted] = True
        new = np.flatnonzero(asked & ~held)
        if new.size:
            self._drop(asked)
            self._extend(new)

    def _most(self, support: int) -> int:
        """The columns that may be in the set, beside a support of so many."""
        return support + max(SMALLEST, support)

    @property
    def _rough_pays(self) -> bool:
        """Whether products of all columns are quicker in float32, with one more round."""
        return self.problem.d >= ROUGH

    def _drop(self, asked: np.ndarray) -> None:
        """Members that are no longer asked for leave a set of which they are the greater part."""
        kept = np.flatnonzero(asked[self.members])
        if 2 * kept.size < self.members.size:
            self.members, self.sums = self.members[kept], self.sums[kept]
            self.raw = self.raw[np.ix_(kept, kept)]

    def _make_exact(self) -> None:
        """The Gram matrix in float64."""
        members, self.members = self.members, np.empty(0, dtype=np.int64)
        self.raw, self.sums = np.empty((0, 0)), np.empty(0)
        self.rough, self.exact = False, True
        self._extend(members)

    def _extend(self, new: np.ndarray) -> None:
        """Products of the new columns with those of the set, in blocks of rows."""
        problem, A, old = self.problem, self._data, self.members.size
        self._made = None  # it need not be held any more
        n, d = A.shape
        members = np.concatenate([self.members, new])
        size = members.size
        shift = np.zeros(size)
        if problem.intercept:
            sample = A[:: max(1, n // SAMPLE)][:, members].astype(np.float64, copy=False)
            means, squares = sample.mean(axis=0), np.square(sample).mean(axis=0)
            shift = np.where(2.0 * np.square(means) > squares, means, 0.0)
        shifted = bool(shift.any())
        whole = size == d and bool((members == np.arange(d)).all())
        raw, sums = np.zeros((size, size)), np.zeros(size)
        step = max(BLOCK // size, size)
        rough = whole and self._rough_pays and not self.exact
        room = np.empty((min(step, n), size), np.float32 if rough else np.float64)
        for i in range(0, n, step):
            part = slice(i, min(i + step, n))
            block = A[part]
            if not whole:  # take is quicker along rows, and would copy all columns
                rows = A.flags.c_contiguous
                block = block.take(members, axis=1) if rows else block[:, members]
            # shifts and casts are a third of the time where rows are short (40,000 x 60: 5.5 -> 4.9
            # ms without; 6,000 x 350, cast: 9.4 -> 8.7)
            if shifted:
                block = np.subtract(block, shift, out=room[: len(block)], casting="same_kind")
            elif block.dtype != room.dtype:
                np.copyto(room[: len(block)], block, casting="same_kind")
                block = room[: len(block)]
            root = np.ones(len(block), block.dtype)
            if problem.weights is not None:
                root = np.sqrt(problem.weights[part]).astype(block.dtype)
                block = np.multiply(block, root[:, None], out=room[: len(block)])
            if problem.intercept:
                sums[old:] += root @ block[:, old:]
            raw[:, old:] += block.T @ (block[:, old:] if old else block)
        raw[old:, :old] = raw[:old, old:].T
        raw[:old, :old], sums[:old] = self.raw, self.sums
        self.members, self.raw, self.sums, self.shift = members, raw, sums, shift
        self.operations += n * size + n * size * new.size // STREAM
        self.rough = rough
        if rough and not np.isfinite(raw).all():  # too large for float32
            self._make_exact()

    # ---- the solution on it ---------------------------------------------------------------------

    def _solve(self) -> None:
        problem, members = self.problem, self.members
        gram, moving = self._centred()
        x = self.point[members]
        r = -self.u[members]
        q = r + gram @ x
        square = self._square() + float(np.sum((q + r) * x))
        x[~moving] = 0.0
        self.point[members], gap, work = self._minimise(gram, q, square, moving, x)
        self.operations += int(work) // ROW
        if members.size == problem.d and not self.rough:
            self.estimate = gap

    def _centred(self) -> tuple[np.ndarray, np.ndarray]:
        """The Gram matrix of the set, and which of its columns are not constant."""
        problem = self.problem
        if self._made is not None and self._made[0] is self.raw:
            return self._made[1:]
        gram = self.raw / problem.n
        squares = gram.diagonal() + np.square(self.shift) * (self.mass / problem.n)
        if problem.intercept:
            gram -= np.multiply.outer(self.sums, self.sums / (self.mass * problem.n))
        moving = gram.diagonal() > CONSTANT * squares
        if not self.rough:  # a step too far is taken back there
            np.einsum("ii->i", gram)[:] += self.members.size * np.finfo(np.float64).eps * squares
        self._made = self.raw, gram, moving
        return gram, moving

    def _minimise(self, gram, q, square, moving, x):
        """(the minimum on the set, its gap, multiply-adds) of x'Gx/2 - q.x + square/2 + g(x)."""
        problem, size = self.problem, x.size
        l1, l2, positive = problem.penalty.arguments
        X, taken, work = np.empty((1, size)), np.zeros(1, dtype=np.int64), np.zeros(1)
        goal = max(SHARE * min(self.estimate, 1.0), BEST)
        if size == problem.d or CHEAP * size**2 <= problem.matrix.nnz:
            goal = min(goal, SURE)
        gram_path(
            gram,
            q,
            square,
            moving,
            np.array([l1 + self.level]),
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
        return X[0], goal, work[0]
