r"""What rounding may hide: the difference between P - D as evaluated and in exact arithmetic.

Every term of P and D is known to about an ulp, every prediction z_i = a_i.x + c to about an ulp of
|a_i|.|x| + |z_i| (exactly, where x = 0), and u likewise: P and D are off by at most about

.. math::

    \epsilon \Big(\sum |\text{terms of } P \text{ and } D|
    + \tfrac1n \sum_i w_i \big[\,|\phi_i'|\,(|a_i|\cdot|x| + |z_i|)
    + |y_i|\,|a_i|\cdot|\hat x|\,\big]\Big)

with :math:`\hat x = \nabla g^*(-u)`, x itself at the optimum.  Besides, an unpenalised intercept
turns what is left of :math:`s = \frac1n\sum_i w_i y_i` into an error of :math:`|c s|`, and an
l1 without l2 turns what :math:`|u|` is beyond l1 into one of that times :math:`|x|_1`.

Sums of m terms round like sqrt(m) ulps, rarely like m (Higham and Mary 2019): the factor
:func:`_growth`.  It is a bound of the order of the error, not to the last digit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .problem import Problem

EPS = float(np.finfo(np.float64).eps)
#: A cheap bound of at most this share of P - D, or of P itself, is as good as a sharp one.
NEGLIGIBLE, INVISIBLE = 0.01, 1e-13


def allowance(
    problem: Problem,
    x: np.ndarray,
    c: float | np.ndarray,
    y: np.ndarray,
    u: np.ndarray,
    primal: float,
    dual: float,
) -> float:
    """What to take from D(y), so that P(x, c) - D is a bound whatever rounding did.

    ``u`` is the average of ``y``.  By norms of whole vectors first; by one product with |A| for
    each of x and its dual counterpart where that is not small beside P - D.
    """
    if not (math.isfinite(primal) and math.isfinite(dual)):
        return 0.0
    penalty = problem.penalty
    smooth = penalty.strong_convexity > 0.0  # g*
    other = penalty.conjugate_gradient(-u) if smooth else x
    size = _length(other)
    conjugate = 0.5 * penalty.strong_convexity * size * size if smooth else 0.0  # 0 * inf
    imbalance = _imbalance(problem, c, y)
    if not smooth:
        imbalance += float(np.max(penalty.excess(-u), initial=0.0)) * float(np.abs(x).sum())
    terms = abs(primal) + abs(dual) + 2.0 * conjugate
    if problem.loss.name != "poisson":  # whose slopes have no bound
        total = imbalance + EPS * (terms + _by_norms(problem, x, c, y, size, primal))
        if total <= max(NEGLIGIBLE * (primal - dual), INVISIBLE * max(abs(primal), abs(dual))):
            return total
    return imbalance + EPS * (terms + _by_rows(problem, x, c, y, other))


def _growth(length: int) -> float:
    return 1.0 + 0.125 * length**0.5


def _imbalance(problem: Problem, c: float | np.ndarray, y: np.ndarray) -> float:
    """|c s|, with what the sum itself may have lost."""
    if not problem.intercept:
        return 0.0
    weighted = y if problem.weights is None else (problem.weights * y.T).T
    left = np.abs(weighted.sum(axis=0)) + EPS * np.abs(weighted).sum(axis=0)
    return float((np.abs(c) * left).sum()) / problem.n


def _by_norms(
    problem: Problem,
    x: np.ndarray,
    c: float | np.ndarray,
    y: np.ndarray,
    other: float,
    primal: float,
) -> float:
    """The sum over the rows, by the inequality of Cauchy and Schwarz; ``other`` is a length."""
    loss = problem.loss
    rows, mass, targets = problem._scales
    if loss.gamma > 0.0:  # losses that are 0 at least: phi'^2 <= 2 phi/gamma
        slopes = (2.0 * max(primal, 0.0) / loss.gamma) ** 0.5
    else:
        slopes = max(abs(end) for end in loss.constants[2:]) * mass
    squares = np.square(y)
    y_size = problem._mean(squares if y.ndim == 1 else squares.sum(axis=1)) ** 0.5
    at_x = rows * _length(x) * _growth(problem.d)
    if at_x > 0.0:
        at_x += _length(c) * mass
    at_other = rows * other * _growth(problem.n)
    return slopes * at_x + y_size * at_other + 2.0 * targets * y_size


def _length(x: float | np.ndarray) -> float:
    return float(np.square(x).sum()) ** 0.5


def _by_rows(
    problem: Problem, x: np.ndarray, c: float | np.ndarray, y: np.ndarray, other: np.ndarray
) -> float:
    """The sum over the rows, row by row."""
    loss, b = problem.loss, problem.b
    with np.errstate(over="ignore", invalid="ignore"):
        z = problem.predict(x, c)
        sizes = problem.matrix.magnitude_dot(x)
        at_x = sizes * _growth(problem.d)
        at_x += np.where(at_x > 0.0, np.abs(z), 0.0)
        # kinks, and exp: a slope within what z is not known to
        slopes = np.maximum(
            np.abs(loss.derivative(z + EPS * at_x, b)), np.abs(loss.derivative(z - EPS * at_x, b))
        )
        if other is not x:  # with l2; else they are the same
            sizes = problem.matrix.magnitude_dot(other)
        at_other = sizes * _growth(problem.n)
        sums = slopes * at_x + np.abs(y) * at_other
    if not loss.blocks:
        sums += 2.0 * np.abs(b * y)
    total = problem._mean(sums.reshape(problem.n, -1).sum(axis=1))
    return total if np.isfinite(total) else 0.0
