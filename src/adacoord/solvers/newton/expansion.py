"""The losses of all rows at a point and along a line: what Newton's methods and L-BFGS ask of them.

``expand(z)``       (sum w phi, phi', w phi', curvature) at the predictions z; the curvature is
                    w phi'', or y itself for the multinomial loss
``along(z, dz, t)`` (sum w phi, its slope, its curvature in t) at z + t dz
"""

from __future__ import annotations

import numpy as np

from .kernels import along_blocks, along_line, expand_rows, softmax_rows

#: Curvature below this share of the bound 1/gamma is none: the bound then takes its place.
FLAT = 1e-10


def expansion(problem):
    """That of the problem's loss; the weights are w/n."""
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    return (Blocks if problem.loss.blocks else Scalars)(problem, w / problem.n)


class Scalars:
    """The losses of one number per row."""

    def __init__(self, problem, w):
        self.problem, self.w, self.total = problem, w, float(np.sum(w))
        self.arguments = problem.loss.code, *problem.loss.constants

    def expand(self, z):
        y, p, D = np.empty_like(z), np.empty_like(z), np.empty_like(z)
        value, curvature = expand_rows(*self.arguments, z, self.problem.b, self.w, y, p, D)
        gamma = self.problem.loss.gamma
        if gamma * curvature <= FLAT * self.total and gamma > 0.0:
            D = self.w / gamma
        return value, y, p, D

    def along(self, z, dz, t):
        return along_line(*self.arguments, z, dz, self.problem.b, self.w, t)


class Blocks:
    """The multinomial loss: its Hessian is made of y = p - e_b, p the probabilities.

    NumPy's exp takes many numbers at a time (0.7 ns each; in a kernel 5): all of them first, sums
    and products in one more pass.  The end of a line search is expanded next, and known then.
    """

    def __init__(self, problem, w):
        self.problem, self.w = problem, w
        self.rows = np.arange(problem.n)
        self.last = None

    def _at(self, z):
        """(sum w phi, y) at z."""
        if self.last is None or not np.array_equal(self.last[0], z):
            e = z - z.max(axis=1, keepdims=True)
            own = e[self.rows, self.problem.b]
            np.exp(e, out=e)
            self.last = z, softmax_rows(e, own, self.problem.b, self.w), e
        return self.last[1:]

    def expand(self, z):
        value, y = self._at(z)
        return value, y, self.w[:, None] * y, y

    def along(self, z, dz, t):
        point = t * dz
        point += z
        value, y = self._at(point)
        return value, *along_blocks(y, self.problem.b, self.w, dz)
