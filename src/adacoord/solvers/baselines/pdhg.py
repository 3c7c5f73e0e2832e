r"""PDHG: the batch primal-dual method of Chambolle and Pock (2011), their Algorithm 3.

Problem     min_x max_y (1/N) sum_i W_i (y_i a_i.x - phi_i*(y_i)) + g(x), for smooth losses
            (gamma > 0) and l2 > 0
Iteration   y_i+ = dprox(a_i.xbar, b_i, y_i, s),   u = (1/N) sum_i W_i y_i+ a_i,
            x+ = prox_{tau g}(x - tau u),   xbar = x+ + theta (x+ - x)
Steps       with |A| the largest singular value of the rows sqrt(W_i) a_i and
            mu = 2 sqrt(N l2 gamma)/|A|:  tau = mu/(2 l2),  s = mu/(2 gamma),  theta = 1/(1 + mu)
            (SPDC's Table 2: sqrt(N gamma/l2)/|A| and, in units of 1/N, N sqrt(N l2/gamma)/|A|);
            the error falls by theta an iteration
|A|         by power iterations to 0.1 %, plus 2 % as they come from below; their products count
            in ``operations`` and in no pass
Pass        u is one, A x+ another: an iteration is two passes
Intercept   one more coordinate, of a feature as long as the rows and no penalty (not covered by
            the theorem)
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from .full_gradient import FullGradient

#: Power iterations: their end by relative change and by number, and the margin on the result.
PRECISION, ITERATIONS, MARGIN = 1e-3, 100, 1.02


class PrimalDualHybridGradient(FullGradient):
    """Batch Chambolle-Pock; see the module's docstring."""

    name = "pdhg"
    _turns = ("_dual_step", "_primal_step")
    _state = ("point", "z", "c", "turn", "ahead", "u", "uc")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        l2, gamma, N = problem.penalty.strong_convexity, problem.loss.gamma, self.n_rows
        self.feature = 0.0
        if problem.intercept:
            self.feature = float(np.sqrt(np.mean(problem.matrix.squared_norms[self.rows]))) or 1.0
        mu = 2.0 * np.sqrt(N * l2 * gamma) / (self._largest() or 1.0)
        self.tau, self.s, self.theta = 0.5 * mu / l2, 0.5 * mu / gamma, 1.0 / (1.0 + mu)
        self.ahead = self.z + self.c  # A xbar + cbar
        self.u, self.uc = np.zeros(problem.d), 0.0

    def _largest(self) -> float:
        """|A|, with the column of the intercept."""
        problem, before = self.problem, 0.0
        v = np.random.Generator(np.random.PCG64(0)).standard_normal(problem.d + 1)
        for _ in range(ITERATIONS):
            v /= np.sqrt(np.sum(v * v))
            z = self.weight * (problem.matrix.dot(v[:-1]) + self.feature * v[-1])
            v = np.append(problem.matrix.tdot(z), self.feature * np.sum(z))
            self.operations += 2 * problem.matrix.nnz
            found = float(np.sqrt(np.sqrt(np.sum(v * v))))
            if found == 0.0 or abs(found - before) <= PRECISION * found:
                break
            before = found
        return MARGIN * found

    def _dual_step(self):
        problem = self.problem
        self.y = problem.loss.dual_prox(self.ahead, problem.b, self.y, self.s)
        self.u = problem.average(self.y)
        self.uc = self.feature * float(np.sum(self.share * self.y))

    def _primal_step(self):
        problem = self.problem
        model = problem.penalty.plus_quadratic(1.0 / self.tau)
        self.point = model.conjugate_gradient(self.point / self.tau - self.u)
        c = self.c - self.feature * self.tau * self.uc
        z = problem.matrix.dot(self.point)
        self.ahead = z + c + self.theta * (z - self.z + c - self.c)
        self.z, self.c = z, c
