"""For benchmark_elastic_net (a file of its ``solvers/``)."""

import warnings

import numpy as np
from benchopt import BaseSolver

import adacoord as ac


class Solver(BaseSolver):
    """min |y - X beta|^2 / (2 n) + lmbda (rho |beta|_1 + (1 - rho) |beta|^2 / 2)"""

    name = "adacoord"
    sampling_strategy = "tolerance"
    requirements = ["pip::adacoord"]

    def set_objective(self, X, y, l1_ratio, lmbda, fit_intercept):
        l1, l2 = lmbda * l1_ratio, lmbda * (1.0 - l1_ratio)
        self.problem = ac.Problem(X, y, l1=l1, l2=l2, intercept=fit_intercept)
        self.run(1.0)  # compiles

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ac.ConvergenceWarning)
            self.result = ac.solve(self.problem, tol=min(tol, 1.0), max_passes=100_000)

    def get_result(self):
        return {
            "beta": np.append(self.result.x, self.result.intercept)
            if self.problem.intercept
            else self.result.x
        }
