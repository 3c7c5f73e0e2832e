"""For benchmark_quantile_regression (a file of its ``solvers/``)."""

import warnings

import numpy as np
from benchopt import BaseSolver

import adacoord as ac


class Solver(BaseSolver):
    """min mean pinball(y - X beta) + lmbd |beta|_1"""

    name = "adacoord"
    sampling_strategy = "tolerance"
    requirements = ["pip::adacoord"]

    def set_objective(self, X, y, lmbd, quantile, fit_intercept):
        loss = ac.losses.Quantile(q=quantile)
        self.problem = ac.Problem(X, y, loss, l1=lmbd, intercept=fit_intercept)
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
