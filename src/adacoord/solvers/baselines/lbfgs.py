r"""L-BFGS with a memory of 30 (Nocedal and Wright 2006, Algorithm 7.5), as a stepper.

Problem     min_x f(x) + (l2/2)|x|^2, f the mean of smooth losses; l2 = 0 too, no l1
Iteration   p = -H f'(x) by the two-loop recursion over the last 30 pairs (s, r) of changes of x
            and of the gradient, H_0 = (s.r/r.r) I;  x += t p
Line search f along p is known from z = A x and A p: a trial costs O(n) and no entry of A.  t is
            accepted where |h'(t)| <= 0.1 |h'(0)|, which implies Wolfe's conditions in the form of
            Hager and Zhang (2005) for delta <= 0.45 (:mod:`adacoord.linalg.line_search`)
Pass        A p is one, the gradient another; A x is computed anew every 32 iterations
Intercept   one more coordinate, as long as the rows are on average
Classes     several of them are :mod:`adacoord.solvers.newton.quasi_newton`'s
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import FAST, jit
from ...linalg.line_search import line_search
from ..newton.expansion import expansion
from .full_gradient import FullGradient

MEMORY = 30
#: The derivative a line search leaves, in units of that at its start.  Passes to 1e-6 for 0.01,
#: 0.1, 0.5 and 0.9: 180, 190, 210, 231 on w8a, 110 for all of them on rcv1.subset (l2 = 1e-5).
EXACT = 0.1
#: Iterations between two computations of A x.
RESYNC = 32


class LimitedMemoryBFGS(FullGradient):
    """L-BFGS with a memory of 30; see the module's docstring."""

    name = "lbfgs"
    _turns = ("_turn_to", "_move", "_refresh")
    _state = (
        "point",
        "z",
        "c",
        "turn",
        "iterations",
        "value",
        "gradient",
        "direction",
        "step",
        "pairs_s",
        "pairs_r",
        "pairs",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.losses = expansion(problem)
        self.feature = 0.0
        if problem.intercept:
            norms = problem.matrix.squared_norms[self.rows]
            self.feature = float(np.sqrt(np.mean(norms))) or 1.0
        size = problem.d + 1  # the last number is the intercept's
        self.gradient, self.direction = np.zeros(size), np.zeros(size)
        self.pairs_s, self.pairs_r = np.zeros((MEMORY, size)), np.zeros((MEMORY, size))
        self.pairs = self.iterations = 0
        self.step = self.value = 0.0  # the last t; the sum of the losses

    def _turn_to(self):
        """The gradient, and from it the next direction."""
        problem = self.problem
        if self.iterations == 0:
            self._expand()
        gradient = np.empty_like(self.gradient)
        gradient[:-1] = problem.average(self.y) + problem.penalty.l2 * self.point
        gradient[-1] = self.feature * (self.share @ self.y)
        if self.step > 0.0:
            s, r = self.step * self.direction, gradient - self.gradient
            # convex: never negative but for rounding
            if np.sum(s * r) > 1e-14 * np.sqrt(np.sum(s * s) * np.sum(r * r)):
                place = self.pairs % MEMORY
                self.pairs_s[place], self.pairs_r[place] = s, r
                self.pairs += 1
        self.gradient = gradient
        self.direction = two_loops(gradient, self.pairs_s, self.pairs_r, self.pairs)
        if np.sum(self.direction * gradient) >= 0.0:  # rounding has spoilt the memory
            self.pairs, self.direction = 0, -gradient

    def _move(self):
        p, l2 = self.direction, self.problem.penalty.l2
        dz, shift = self.problem.matrix.dot(p[:-1]), self.feature * p[-1]
        here, along = self.z + self.c, dz + shift
        # P along p: the losses, and a parabola for the penalty
        constant = 0.5 * l2 * float(np.sum(np.square(self.point)))
        tilt, bend = l2 * float(np.sum(self.point * p[:-1])), l2 * float(np.sum(p[:-1] * p[:-1]))

        def line(t: float) -> tuple[float, float, float]:
            value, first, second = self.losses.along(here, along, t)
            value += constant + t * (tilt + 0.5 * t * bend)
            return value, first + tilt + t * bend, second + bend

        slope = float(np.sum(p * self.gradient))
        self.step = line_search(line, self.value + constant, slope, EXACT) if slope < 0.0 else 0.0
        self.point = self.point + self.step * p[:-1]
        self.c = self.c + self.step * shift
        self.z = self.z + self.step * dz
        self._expand()
        self.iterations += 1
        return None if self.iterations % RESYNC == 0 else 0

    def _refresh(self):
        self.z = self.problem.matrix.dot(self.point)
        self._expand()

    def _expand(self):
        self.value, self.y, _, _ = self.losses.expand(self.z + self.c)


@jit(fastmath=FAST)
def _dot(a, b):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@jit
def two_loops(gradient, s, r, pairs):
    """-H gradient of the last ``pairs`` changes, kept in a ring."""
    memory = s.shape[0]
    kept = min(pairs, memory)
    q = -gradient
    weights = np.zeros(kept)
    for age in range(kept):
        k = (pairs - 1 - age) % memory
        weights[age] = _dot(s[k], q) / _dot(s[k], r[k])
        q -= weights[age] * r[k]
    if kept > 0:
        k = (pairs - 1) % memory
        q *= _dot(s[k], r[k]) / _dot(r[k], r[k])
    for back in range(kept):
        age = kept - 1 - back
        k = (pairs - 1 - age) % memory
        q += (weights[age] - _dot(r[k], q) / _dot(s[k], r[k])) * s[k]
    return q
