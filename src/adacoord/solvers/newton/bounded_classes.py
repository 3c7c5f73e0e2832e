r"""Several classes: weights and bounds of each column, and offsets, by L-BFGS-B and by Newton.

Problem     min P(X, c) for the multinomial loss, g(X) = sum_jk l1_j |x_jk| + l2_j/2 x_jk^2 on
            lower_j <= x_jk <= upper_j, and z = A X + c + o
Variables   x = p - m with p, m >= 0 where there is an l1, which is l1 (p + m) then: smooth under
            bounds, for the method of Byrd, Lu, Nocedal and Zhu (1995) as SciPy has it
A pass      is up to ITERATIONS of its iterations, with a memory of its own; or, where no more than
            MOST_CLASSES coefficients are away from their kinks and bounds and these are few, or
            lower P no more, a Newton step on those as in :mod:`.bounded`: P alone leaves half of
            the digits
Stops       never: the monitor does; ``stuck`` where nothing lowers P any more.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse

from ...data.columns import as_scipy
from ..base import Solver, start_point
from .bounded import DAMPED, FIRST, PATIENCE, ROUNDS, damped, own_squares, search, solve_model
from .expansion import expansion
from .size import FEW, MOST_CLASSES

#: Iterations of a pass, and the steps that are remembered.
ITERATIONS, MEMORY = 100, 30
#: Passes without progress after which there is none to be had.
IDLE = 3


class BoundedClasses(Solver):
    """L-BFGS-B for several classes; see the module's docstring."""

    name = "lbfgs"
    uses_blas = True
    check_cost = 0.1
    _state = ("up", "down", "c", "value", "idle", "stuck", "damping", "unsolved")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        x, c, _ = start_point(problem, start)
        x = problem.penalty.nearest(x)
        shape = (problem.d, 1)
        self.threshold, self.ridge, low, high = (
            a.reshape(shape) for a in problem.penalty.by_column(problem.d)
        )
        split = self.threshold > 0.0
        self.up, self.down = np.where(split, np.maximum(x, 0.0), x), np.where(split, -x, 0.0)
        self.down = np.maximum(self.down, 0.0)
        self.c = np.array(c, dtype=np.float64)
        ends = [
            (
                np.where(split, np.maximum(low, 0.0), low),
                np.where(split, np.maximum(high, 0.0), high),
            ),
            (
                np.where(split, np.maximum(-high, 0.0), 0.0),
                np.where(split, np.maximum(-low, 0.0), 0.0),
            ),
        ]
        free = np.full(self.c.shape, np.inf if problem.intercept else 0.0)
        lows, highs = (
            np.concatenate([np.broadcast_to(e[k], x.shape).ravel() for e in ends] + [f])
            for k, f in ((0, -free), (1, free))
        )
        self.bounds = optimize.Bounds(lows, highs)
        self.losses = expansion(problem)
        self.squares = own_squares(problem, self.losses.w)
        A = as_scipy(problem.matrix)
        self.A = A if problem.matrix.is_dense else sparse.csc_array(A)
        self.value, self.idle, self.stuck = np.inf, 0, False
        self.damping, self.unsolved = FIRST, 0

    @property
    def x(self):
        return self.up - self.down

    @property
    def intercept(self):
        return self.c.copy()

    def _parts(self, v):
        size, shape = self.up.size, self.up.shape
        return v[:size].reshape(shape), v[size : 2 * size].reshape(shape), v[2 * size :]

    def _evaluate(self, v):
        """(P, its gradient) in the variables of L-BFGS-B."""
        problem, (up, down, c) = self.problem, self._parts(v)
        x = up - down
        value, _, p, _ = self.losses.expand(problem.predictions(x, c))
        value += float(np.sum(self.threshold * (up + down)) + 0.5 * np.sum(self.ridge * x * x))
        smooth = problem.matrix.tdot(p) + self.ridge * x
        self.operations += 2 * problem.matrix.nnz
        threshold = np.broadcast_to(self.threshold, x.shape)
        total = p.sum(axis=0) if problem.intercept else np.zeros_like(c)
        parts = (smooth + threshold).ravel(), (threshold - smooth).ravel(), total
        return value, np.concatenate(parts)

    def _pass(self):
        problem, x = self.problem, self.x
        value, _, p, _ = self.losses.expand(problem.predictions(x, self.c))
        u = problem.matrix.tdot(p)
        self.operations += 2 * problem.matrix.nnz
        free = self._free(x, u)
        count = int(np.count_nonzero(free))
        if count <= FEW or (self.idle and count <= MOST_CLASSES):
            self._newton(value, u, p, free)
        else:
            self._quasi_newton()
        self.y = problem.loss.derivative(problem.predictions(self.x, self.c), problem.b)

    def _free(self, x, u):
        """The coefficients that are not held by a kink or a bound."""
        low, high = (a[:, None] for a in self.problem.penalty.by_column(self.problem.d)[2:])
        moved = self.problem.penalty.prox(x - u, 1.0)
        held = (x == low) | (x == high) | ((x == 0.0) & (self.threshold > 0.0))
        return ~((moved == x) & held)

    def _newton(self, value, u, p, free):
        """A Newton step on the ``free`` coefficients and the intercepts."""
        problem, penalty, x, w = self.problem, self.problem.penalty, self.x, self.losses.w
        n_classes, y = x.shape[1], self.losses.expand(problem.predictions(x, self.c))[1]
        probability = y.copy()
        probability[np.arange(problem.n), problem.b] += 1.0
        chosen = [np.flatnonzero(free[:, k]) for k in range(n_classes)]
        parts = [self._columns(J) for J in chosen]
        sizes = np.cumsum([0] + [part.shape[1] for part in parts])
        H = np.empty((sizes[-1], sizes[-1]))
        for k in range(n_classes):
            for m in range(k, n_classes):
                bend = w * probability[:, k] * ((k == m) - probability[:, m])
                block = parts[k].T @ (parts[m] * bend[:, None])
                rows, columns = slice(*sizes[k : k + 2]), slice(*sizes[m : m + 2])
                H[rows, columns] = block
                H[columns, rows] = block.T
        total, ends = p.sum(axis=0), (0.0, 0.0, -np.inf, np.inf)
        by_column = problem.penalty.by_column(problem.d)

        def laid_out(values, of_intercept):
            """Of each class the chosen coefficients, and the intercept."""
            return np.concatenate(
                [
                    np.append(values(k, J), [of_intercept(k)] * problem.intercept)
                    for k, J in enumerate(chosen)
                ]
            )

        r = laid_out(lambda k, J: u[J, k], lambda k: total[k])
        v = laid_out(lambda k, J: x[J, k], lambda k: self.c[k])
        given = [
            laid_out(lambda k, J, a=a: a[J], lambda k, end=end: end)
            for a, end in zip(by_column, ends, strict=True)
        ]
        curvature = float(np.mean(w @ (probability * (1.0 - probability))))
        own = laid_out(lambda k, J: self.squares[J], lambda k: w.sum())
        np.einsum("ii->i", H)[:] += self.damping * curvature / w.sum() * own
        before, slopes, thorough = v.copy(), r.copy(), self.unsolved >= PATIENCE
        solved = solve_model(H, r, v, *given, ROUNDS, thorough)
        self.unsolved = 0 if solved and not thorough else self.unsolved + 1
        after, dc = x.copy(), np.zeros_like(self.c)
        for k, J in enumerate(chosen):
            part = v[sizes[k] : sizes[k + 1]]
            after[J, k] = part[: J.size]
            if problem.intercept:
                dc[k] = part[-1] - self.c[k]
        old, z = penalty.value(x), problem.predictions(x, self.c)
        dz = problem.matrix.dot(after - x) + dc
        promised = float(slopes @ (v - before)) + penalty.value(after) - old
        t, new = search(
            lambda t: self.losses.expand(z + t * dz)[0], penalty, x, after, value + old, promised
        )
        if t > 0.0 or self.damping == DAMPED:  # else more of it may help
            self._note(value + old)
        self.damping = damped(self.damping, t)
        self.c = self.c + t * dc
        split = self.threshold > 0.0
        self.up = np.where(split, np.maximum(new, 0.0), new)
        self.down = np.where(split, np.maximum(-new, 0.0), 0.0)

    def _columns(self, J):
        """Dense columns, and ones for the intercept."""
        B = self.A[:, J]
        B = B.toarray() if sparse.issparse(B) else B
        B = B.astype(np.float64, copy=False)
        return np.column_stack([B, np.ones(len(B))]) if self.problem.intercept else B

    def _note(self, value):
        """Whether P has fallen."""
        self.idle = 0 if value < self.value else self.idle + 1
        self.value, self.stuck = min(value, self.value), self.idle >= IDLE

    def _quasi_newton(self):
        start = np.concatenate([self.up.ravel(), self.down.ravel(), self.c])
        found = optimize.minimize(
            self._evaluate,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds,
            options={"maxiter": ITERATIONS, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0},
        )
        up, down, self.c = self._parts(found.x)
        both = np.where(
            self.threshold > 0.0, np.minimum(up, down), 0.0
        )  # what cancels costs l1 twice
        self.up, self.down = up - both, down - both
        self._note(found.fun)
