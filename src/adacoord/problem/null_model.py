"""x = 0 with the best intercept: what it is worth, and a dual point that proves it optimal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .multiclass import into_domain
from .repair import balanced

if TYPE_CHECKING:
    from .problem import Problem


def null_value_with_intercept(problem: Problem) -> float:
    """P(0, c) with the best c."""
    if not problem.intercept or not problem.penalty.uniform:
        return problem.null_value
    if problem.loss.task == "targets":
        return problem._mean(problem.loss.value(_targets(problem), problem.b))
    if problem.loss.blocks and problem.offset is not None:
        return problem.null_value
    if problem.loss.blocks:  # the entropy of the shares of the classes
        weights = np.bincount(problem.b, problem.weights, problem._block[0]) / problem.n
        kept = weights[weights > 0.0]
        return float(-np.sum(kept * np.log(kept / kept.sum())))
    z = _predictions(problem, problem.null_intercept)
    return problem._mean(problem.loss.value(z, problem.b))


def null_dual(problem: Problem) -> np.ndarray:
    """A dual point that proves x = 0 optimal for large l1: a balanced subgradient there.

    Subgradients left and right of the best intercept are mixed so that they balance, which
    settles the rows at a kink.
    """
    if not problem.intercept:
        return problem.loss.derivative(_predictions(problem, 0.0), problem.b)
    if problem.loss.task == "targets":
        return balanced(problem, problem.loss.derivative(_targets(problem), problem.b))
    if problem.loss.blocks and problem.offset is not None:
        raise ValueError(
            "offset: the l1 that makes every coefficient 0 is not known for several classes "
            "with an intercept and an offset; give the l1 yourself"
        )
    if problem.loss.blocks:  # the best intercepts make every row the shares of the classes
        shares = np.bincount(problem.b, problem.weights, problem._block[0])
        rows = np.tile(shares / shares.sum(), (problem.n, 1))
        return balanced(problem, into_domain(rows, problem.b))

    low, high = null_intercept(problem)
    width = 1e-9 * (1.0 + abs(low))
    left, right = _slopes(problem, low - width), _slopes(problem, high + width)
    below, above = problem._mean(left), problem._mean(right)
    share = below / (below - above) if above > below else 0.0
    return balanced(problem, left + share * (right - left))


def _targets(problem: Problem) -> np.ndarray:
    """z at x = 0 with the best intercepts of several targets."""
    z = np.zeros(problem.y_shape) if problem.offset is None else problem.offset
    return z + np.average(problem.b - z, axis=0, weights=problem.weights)


def _slopes(problem: Problem, c: float) -> np.ndarray:
    return problem.loss.derivative(_predictions(problem, c), problem.b)


def _predictions(problem: Problem, c: float) -> np.ndarray:
    """z at x = 0."""
    return np.full(problem.y_shape, c) if problem.offset is None else problem.offset + c


def null_intercept(problem: Problem) -> tuple[float, float]:
    """Two numbers next to one another with the best c for x = 0 between them.

    By bisection on the (monotone) slope; the mean, for the squared loss, and its logarithm for
    log links.
    """
    without: Any = problem.b, None
    if problem.offset is not None:
        without = problem.loss.without_offset(problem.b, problem.offset)
    loss = problem.loss
    mean = loss.name == "squared" or (loss.log_link and problem._mean(problem.b) > 0.0)
    if mean and without is not None:
        w = np.ones(problem.n) if problem.weights is None else problem.weights
        b, factor = without
        centre = problem._mean(b) * (problem.n / float(np.sum(w)))
        if factor is not None:
            centre = float(np.sum(w * factor * b)) / float(np.sum(w * factor))
        centre = float(np.log(centre)) if loss.log_link else centre
        return centre, centre

    def slope(c: float) -> float:
        return problem._mean(_slopes(problem, c))

    low, high = -1.0, 1.0
    while slope(low) > 0.0 and low > -1e300:
        low *= 2.0
    while slope(high) < 0.0 and high < 1e300:
        high *= 2.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if slope(middle) < 0.0:
            low = middle
        else:
            high = middle
    return low, high
