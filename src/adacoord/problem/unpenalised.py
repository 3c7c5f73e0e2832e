"""Without a penalty no dual bounds P: how near to stationary a point is, and whether P ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.summation import gamma

if TYPE_CHECKING:
    from .problem import Problem


def stationarity(problem: Problem, x: np.ndarray, intercept: float | np.ndarray) -> float:
    """See :meth:`Problem.stationarity`."""
    p = problem
    z = p.predict(x, intercept)
    slopes = p.loss.derivative(z, p.b)
    primal = p._mean(p.loss.value(z, p.b))
    to_least = p.relative_gap(primal, p._dual(np.zeros(p.y_shape), np.zeros(p.d)))
    length = np.sqrt(p._mean(np.square(slopes).reshape(p.n, -1).sum(axis=1)))
    if not 0.0 < length < np.inf:
        return to_least
    u, lengths, ones = p.average(slopes), p._column_lengths, 0.0
    if p.intercept:
        w = np.ones(p.n) if p.weights is None else p.weights
        sums = np.sum((w * slopes.T).T, axis=0)
        ones = float(np.max(np.abs(sums))) / np.sqrt(p.n * np.sum(w)) / length
        means, lengths, hidden = _centred_lengths(p)
        u = u - np.multiply.outer(means, sums / p.n)
        hidden = (length * hidden).reshape(-1, *(1,) * len(p._block))
        u = np.sign(u) * np.maximum(np.abs(u) - hidden, 0.0)
    if p.penalty.positive:  # where x = 0, only a pull away from it counts
        u = np.where(np.asarray(x) > 0.0, u, np.minimum(u, 0.0))
    return min(max(float(np.max(np.abs(u).T / lengths)) / length, ones), to_least)


def _centred_lengths(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(weighted means of the columns, lengths of what is left of them without these, what rounding
    may make of a slope along them, of unit length); what rounding hides of a length is taken for
    its own."""
    ones = np.ones(problem.n)
    means, lengths = problem.average(ones) / problem._mean(ones), problem._column_lengths
    rounding = 4.0 * gamma(problem.matrix.tdot_depth(1) + 2)
    left = np.square(lengths) - np.square(means) * problem._mean(ones)
    left = np.sqrt(np.maximum(left, rounding * np.square(lengths)))
    return means, left, rounding * lengths


def separates(problem: Problem, x: np.ndarray, intercept: float | np.ndarray) -> bool:
    """See :meth:`Problem.separates`."""
    if problem.has_certificate or problem.loss.name not in ("logistic", "multinomial"):
        return False
    z = problem.predict(x, intercept)
    if problem.offset is not None:  # which is not scaled
        z = z - problem.offset
    if problem.loss.blocks:
        rows = np.arange(problem.n)
        own = z[rows, problem.b]
        z[rows, problem.b] = -np.inf
        margins = own - z.max(axis=1)
    else:
        margins = problem.b * z
    weighted = margins if problem.weights is None else margins[problem.weights > 0.0]
    return bool((weighted > 0.0).all())
