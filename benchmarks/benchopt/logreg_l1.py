"""For benchmark_logreg_l1 (a file of its ``solvers/``)."""

import warnings

from benchopt import BaseSolver

import adacoord as ac


class Solver(BaseSolver):
    """min sum log(1 + exp(-y X beta)) + lmbd |beta|_1"""

    name = "adacoord"
    sampling_strategy = "tolerance"
    requirements = ["pip::adacoord"]

    def set_objective(self, X, y, lmbd):
        self.problem = ac.Problem(X, y, "logistic", l1=lmbd / len(y))
        self.run(1.0)  # compiles

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ac.ConvergenceWarning)
            self.result = ac.solve(self.problem, tol=min(tol, 1.0), max_passes=100_000)

    def get_result(self):
        return {"beta": self.result.x}
