r"""L-BFGS with a memory of 30 (Nocedal and Wright 2006, Algorithm 7.5), as a stepper.

Problem     min_x f(x) + (l2/2)|x|^2, f the mean of smooth losses; l2 = 0 too, no l1
Iteration   p = -H f'(x) by the two-loop recursion over the last 30 pairs (s, r) of changes of x
            and of the gradient, H_0 = (s.r/r.r) I;  x += t p
Line search f along p is known from z = A x and A p: a trial costs O(n) and no entry of A.  t is
            accepted where |h'(t)| <= 0.1 |h'(0)|, which implies Wolfe's conditions in the form of
            Hager and Zhang (2005) for delta <= 0.45, by secants within a bracket from t = 1.
            Derivatives alone, since values drown in rounding near the optimum; h is convex, so
            that its derivative is increasing.
Pass        A p is one, the gradient another; A x is computed anew every 32 iterations
Intercept   one more coordinate, as long as the rows are on average
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import FAST, jit
from .full_gradient import FullGradient
from .row_kernels import along_line

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
        "gradient",
        "direction",
        "step",
        "pairs_s",
        "pairs_r",
        "pairs",
    )

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.feature = 0.0
        if problem.intercept:
            norms = problem.matrix.squared_norms[self.rows]
            self.feature = float(np.sqrt(np.mean(norms))) or 1.0
        size = problem.d + 1
        self.gradient, self.direction = np.zeros(size), np.zeros(size)
        self.pairs_s, self.pairs_r = np.zeros((MEMORY, size)), np.zeros((MEMORY, size))
        self.pairs = self.iterations = 0
        self.step = 0.0  # the last t

    def _turn_to(self):
        """The gradient, and from it the next direction."""
        problem = self.problem
        slopes = self._slopes(self.z, self.c)
        gradient = np.append(
            problem.average(slopes) + problem.penalty.l2 * self.point,
            self.feature * float(np.sum(self.share * slopes)),
        )
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
        problem, p = self.problem, self.direction
        along = problem.matrix.dot(p[:-1]) + self.feature * p[-1]
        self.step = self._search(along)
        self.point = self.point + self.step * p[:-1]
        self.c += self.feature * self.step * p[-1]
        # A x + c moves by t (A p + c_p); z itself holds no c
        self.z = self.z + self.step * (along - self.feature * p[-1])
        self.y = self._slopes(self.z, self.c)
        self.iterations += 1
        return None if self.iterations % RESYNC == 0 else 0

    def _refresh(self):
        self.z = self.problem.matrix.dot(self.point)
        self.y = self._slopes(self.z, self.c)

    def _search(self, along: np.ndarray) -> float:
        """t with |h'(t)| <= EXACT |h'(0)|, or the best of 60 trials."""
        l2, p = self.problem.penalty.l2, self.direction[:-1]
        linear, square = l2 * float(np.sum(self.point * p)), l2 * float(np.sum(p * p))
        here = self.z + self.c

        def derivative(t: float) -> float:
            slope = along_line(*self.loss, here, along, t, self.problem.b, self.share)
            return slope + linear + t * square

        start = derivative(0.0)
        if start >= 0.0:
            return 0.0
        low, at_low, high, at_high, t = 0.0, start, np.inf, np.nan, 1.0
        for _ in range(60):
            at = derivative(t)
            if abs(at) <= -EXACT * start:
                return t
            if at < 0.0:
                low, at_low = t, at
            else:
                high, at_high = t, at
            if high == np.inf:
                t *= 4.0
            else:
                share = at_low / (at_low - at_high)
                t = low + min(max(share, 0.05), 0.95) * (high - low)
        return low


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
