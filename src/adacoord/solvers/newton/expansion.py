"""The losses of all rows at a point and along a line: what Newton's methods and L-BFGS ask of them.

``expand(z)``       (sum w phi, phi', w phi', curvature) at the predictions z; the curvature is
                    w phi'', or (probabilities, w) for the multinomial loss
``along(z, dz, t)`` (sum w phi, its slope, its curvature in t) at z + t dz
"""

from __future__ import annotations

import numpy as np

from .kernels import along_line, along_line_blocks, expand_blocks, expand_rows

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
    """The multinomial loss: its Hessian is made of the probabilities."""

    def __init__(self, problem, w):
        self.problem, self.w = problem, w

    def expand(self, z):
        y = np.empty_like(z)
        value = expand_blocks(z, self.problem.b, self.w, y)
        probabilities = y.copy()
        probabilities[np.arange(self.problem.n), self.problem.b] += 1.0
        return value, y, self.w[:, None] * y, (probabilities, self.w)

    def along(self, z, dz, t):
        return along_line_blocks(z, dz, self.problem.b, self.w, t)
