"""For benchmark_ridge (a file of its ``solvers/``)."""

import warnings

import numpy as np
from benchopt import BaseSolver

import adacoord as ac


class Solver(BaseSolver):
    """min |y - X beta|^2 / 2 + lmbd |beta|^2 / 2"""

    name = "adacoord"
    sampling_strategy = "tolerance"
    requirements = ["pip::adacoord"]

    def set_objective(self, X, y, lmbd, fit_intercept):
        n = len(y)
        self.problem = ac.Problem(X, y, l2=lmbd / n, intercept=fit_intercept)
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
