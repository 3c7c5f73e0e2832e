r"""Newton's method for losses with kinks, where one side of the data is small.

Problem     min P(x, c) for a loss without a continuous slope (hinge, epsilon_insensitive, absolute,
            quantile) and g(x) = l2/2 |x|^2
Method      the proximal point of the dual from the start (:mod:`.dual_proximal`): each stage is a
            problem with the kinks rounded off around the last dual point, solved by Newton steps
A pass      is one step
Dual        y = dprox(z): P - D is known with the next gradient, and is the ``estimate``
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ..base import Solver, start_point
from .dual_proximal import ProximalPoint, split_state

#: sigma of the first stage, for predictions and slopes of the order of 1.  (20,000 x 100, hinge
#: and epsilon_insensitive, l2 = 1e-4 and 1e-6: 33 to 75 steps; with .1 42 to 75, with .01 45 to
#: 72, with what coordinate ascent would begin with 30 to 90.)
FIRST = 1.0


class KinkedNewton(Solver):
    """Newton's method for kinks; see the module's docstring."""

    name = "newton"
    uses_blas = True
    patient = True
    check_cost = 2.0
    _state = ("estimate",)

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        w = np.ones(problem.n) if problem.weights is None else problem.weights
        self.newton = ProximalPoint(problem, w / problem.n, FIRST / self._scale(w))
        self.newton.begin(*start_point(problem, start))

    def _scale(self, w: np.ndarray) -> float:
        """What predictions are of the order of: margins of 1, or the targets' deviation."""
        problem = self.problem
        if problem.loss.task == "classification":
            return 1.0
        total = float(np.sum(w))
        away = problem.b - (float(w @ problem.b) / total if problem.intercept else 0.0)
        return float(np.sqrt(w @ np.square(away) / total)) or 1.0

    @property
    def x(self):
        return self.newton.x

    @property
    def intercept(self):
        return self.newton.c

    def state(self):
        return super().state() | self.newton.state()

    def restore(self, state):
        own, rest = split_state(state)
        super().restore(rest)
        self.newton.restore(own)

    def _pass(self):
        problem, newton = self.problem, self.newton
        self.operations += newton.step()
        self.y, l2 = newton.y, problem.penalty.l2
        losses = problem._mean(problem.loss.value(newton.z, problem.b))
        conjugates = problem._mean(problem.loss.conjugate(self.y, problem.b))
        primal = losses + 0.5 * l2 * float(np.sum(np.square(newton.x)))
        dual = -conjugates - float(np.sum(np.square(newton.u))) / (2.0 * l2)
        self.estimate = problem.relative_gap(primal, dual)
