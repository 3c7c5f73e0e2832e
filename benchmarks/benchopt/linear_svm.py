"""For benchmark_linear_svm_binary_classif_no_intercept (a file of its ``solvers/``)."""

import warnings

from benchopt import BaseSolver

import adacoord as ac


class Solver(BaseSolver):
    """min C sum max(0, 1 - y X beta) + |beta|^2 / 2"""

    name = "adacoord"
    sampling_strategy = "tolerance"
    requirements = ["pip::adacoord"]

    def set_objective(self, X, y, C):
        self.problem = ac.Problem(X, y, "hinge", l2=1.0 / (len(y) * C))
        self.run(1.0)  # compiles

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ac.ConvergenceWarning)
            self.result = ac.solve(self.problem, tol=min(tol, 1.0), max_passes=100_000)

    def get_result(self):
        return {"beta": self.result.x}
