r"""AFG: accelerated full gradients with an adaptive line search (Nesterov 2004, 2013).

Problem     min_x f(x) + g(x), f the mean of smooth losses, g = l1|x|_1 + l2/2 |x|^2; l2 = 0 too
Iteration   scheme (2.2.8) of Nesterov 2004 with the l2 of g counted to the smooth part:  with M
            the guess at the smoothness of f and L = M + l2,
              alpha in (0, 1):  L alpha^2 = (1-alpha) gamma + alpha l2 =: gamma+
              q = (alpha gamma v + gamma+ x)/(gamma + alpha l2)
              x+ = argmin <f'(q), x> + (M/2)|x - q|^2 + g(x)
              v+ = x + (x+ - x)/alpha
            P - P* falls by the factor 1 - alpha an iteration, alpha -> sqrt(l2/L).
Line search M is doubled while f(x+) > f(q) + <f'(q), x+ - q> + (M/2)|x+ - q|^2 (both halves of
            the iteration are then made anew: gamma+ and q depend on M), and lowered by a tenth
            after each success
Pass        f'(q) is one (A q is a combination of products at hand), A x+ another: an iteration is
            two passes, a rejected one too
Intercept   at its best for every x and q: f(x) = min_c f(x, c) is as smooth as f
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from .full_gradient import FullGradient
from .row_kernels import model_error

#: What M is multiplied with after a success and a failure.  Passes to 1e-5 for 0.5, 0.8, 0.9, 0.95
#: and 1 (never lower): 292, 231, 242, 292, > 1500 on w8a and 542, 370, 337, 353, 517 on rcv1.subset
#: (smooth hinge, l2 = 1e-4 and 1e-5).
LOWER, RAISE = 0.9, 2.0


class AcceleratedFullGradient(FullGradient):
    """Accelerated full gradient; see the module's docstring."""

    name = "afg"
    _turns = ("_gradient_step", "_judge")
    _state = ("point", "z", "c", "turn", "v", "zv", "curvature", "guess", "trial", "probe_c")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        self.v, self.zv = self.point.copy(), self.z.copy()
        self.trial, self.probe_c = self.point.copy(), self.c
        # the largest of min(n, d) eigenvalues is no less than their mean
        squares = problem._mean(problem.matrix.squared_norms) / problem.loss.gamma
        self.guess = (squares / min(problem.n, problem.d)) or 1.0
        self.curvature = self.guess + problem.penalty.strong_convexity

    def _rates(self) -> tuple[float, float]:
        """(alpha, gamma+)."""
        l2, gamma = self.problem.penalty.strong_convexity, self.curvature
        L, p = self.guess + l2, gamma - l2
        alpha = (np.sqrt(p * p + 4.0 * L * gamma) - p) / (2.0 * L)
        return alpha, L * alpha * alpha

    def _mix(self, v: np.ndarray, x: np.ndarray) -> np.ndarray:
        alpha, _ = self._rates()
        l2 = self.problem.penalty.strong_convexity
        share = alpha * self.curvature / (self.curvature + alpha * l2)
        return x + share * (v - x)

    def _gradient_step(self):
        problem, M = self.problem, self.guess
        z = self._mix(self.zv, self.z)
        self.probe_c = self._best_intercept(z, self.c)
        gradient = problem.average(self._slopes(z, self.probe_c))
        model = problem.penalty.plus_quadratic(M)
        self.trial = model.conjugate_gradient(M * self._mix(self.v, self.point) - gradient)

    def _judge(self):
        z = self.problem.matrix.dot(self.trial)
        c = self._best_intercept(z, self.probe_c)
        if not self._short_enough(z, c):
            self.guess *= RAISE
            return
        alpha, self.curvature = self._rates()
        self.v = self.point + (self.trial - self.point) / alpha
        self.zv = self.z + (z - self.z) / alpha
        self.point, self.z, self.c = self.trial, z, c
        self.y = self._slopes(z, c)
        self.guess *= LOWER

    def _short_enough(self, z: np.ndarray, c: float) -> bool:
        """Whether f lies below its quadratic model at the trial point.

        Where the difference drowns in the rounding of f, half the change of the slope along the
        step stands in for it (equal to second order, and exact for the squared loss).
        """
        move = self.trial - self._mix(self.v, self.point)
        excess, bend, value = model_error(
            *self.loss, self._mix(self.zv, self.z), self.probe_c, z, c, self.problem.b, self.share
        )
        allowed = 0.5 * self.guess * float(np.sum(move * move))
        return bool(bend <= allowed * (1.0 + 1e-12) and excess <= allowed + 1e-12 * abs(value))
