r"""Huber's regression with its scale: the certificate of the coefficients and the scale together.

.. math::

    \min_{x, c, \sigma \ge \sigma_0} J =
    \frac1n \sum_i w_i \Big(\sigma + \sigma H\big(r_i/\sigma\big)\Big)
    + \frac{\alpha}{n} |x|^2, \qquad r_i = a_i^T x + c - b_i

with :math:`H(t) = t^2` for :math:`|t| \le \varepsilon`, :math:`2 \varepsilon |t| - \varepsilon^2`
beyond (Huber's Proposal 2, as scikit-learn's ``HuberRegressor``; columns may have weights of their
own, and bounds), is convex in all of them: each term is the perspective of a convex function.  For
a fixed scale it is

.. math:: J = \bar w \sigma + \tfrac2\sigma P_\sigma(x, c)

where :math:`P_\sigma` has the loss ``Huber(delta=epsilon sigma)`` and ``l2 = alpha sigma/n``.
Since :math:`H \ge vt - v^2/4` for :math:`|v| \le 2 \varepsilon`,

.. math:: J \ge \frac1n \sum_i w_i v_i r_i + \sigma\Big(\bar w - \frac1n \sum_i w_i \frac{v_i^2}{4}
    \Big) + \frac\alpha n |x|^2

so that every v of a mean square (by w) of at most 4, balanced where there is an intercept, proves
the bound that is least over x at :math:`\sigma = \sigma_0`, whatever the scale: with
:math:`v = 2y/(\sigma s)`, y a dual point of :math:`P_\sigma` and :math:`s \ge 1` what makes the
mean square small enough.  At the optimum s = 1, :math:`\sigma^2 \bar w = \frac1n \sum w_i y_i^2`
(or :math:`\sigma = \sigma_0`), and there is no gap.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .problem import Problem
from .rounding import SHARP

#: Newton steps to the scale of residuals, at most, their accuracy, and the least slope they go by.
STEPS, ACCURACY, LEAST_SLOPE = 30, 1e-9, 0.05
#: How far one goes, in logarithms.
FARTHEST = 2.0


class Joint(NamedTuple):
    """J at a point, a bound on its least value, and the scale that its residuals ask for."""

    primal: float
    dual: float
    scale: float


def judge(
    problem: Problem,
    x: np.ndarray,
    intercept: float,
    y: np.ndarray,
    scale: float,
    least: float,
    proved: float | None = None,
) -> Joint:
    """J(x, c, scale) and its bound by ``y``; ``problem`` is that of the scale, ``least`` sigma_0.

    What rounding may hide of P - D is taken from the bound.  Without a penalty there is none.
    ``proved``: what a feasible ``y`` is known to prove of P, by a run that came to its end.
    """
    weight = 1.0 if problem.weights is None else float(problem.weights.sum()) / problem.n
    z = problem.predictions(x, intercept)
    inner = problem._primal_at(z, x)
    primal = weight * scale + 2.0 / scale * inner
    if not problem.has_certificate:
        return Joint(primal, -math.inf, own_scale(problem, z - problem.b, scale, weight, least))
    y, u = problem.feasible_dual(y) if proved is None else (y, problem.average(y))
    wanted = math.sqrt(problem._mean(np.square(y)) / weight)
    dual = problem._dual(y, u)
    if proved is None:
        proved = problem.bound(x, intercept, inner, y, u, dual, z, SHARP)
    hidden = max(min(inner, dual) - proved, 0.0)
    shrink = min(scale / wanted, 1.0) if wanted > 0.0 else 1.0
    linear = -problem._mean(y * problem._dual_targets)
    bound = shrink * linear - problem.penalty.conjugate(-shrink * u) - hidden
    bound *= 2.0 / scale
    bound += least * weight * max(1.0 - (shrink * wanted / scale) ** 2, 0.0)
    return Joint(primal, bound, own_scale(problem, z - problem.b, scale, weight, least))


def own_scale(problem: Problem, r: np.ndarray, scale: float, weight: float, least: float) -> float:
    r"""The scale that is best for residuals as they are; ``problem`` is that of ``scale``.

    The root of :math:`\frac1n \sum_i w_i \min(|r_i|, \varepsilon \sigma)^2 = \bar w \sigma^2`, or
    sigma_0 above it: x hardly moves with the scale, so that coefficients and scales in turn take 2
    or 3 of them.  By Newton's method in logarithms.
    """
    epsilon, size = problem.loss.constants[3] / scale, np.abs(r)
    for _ in range(STEPS):
        units = size / scale
        square = problem._mean(np.square(np.minimum(units, epsilon))) / weight
        if not 0.0 < square < math.inf:
            return least if square == 0.0 else scale
        beyond = problem._mean((units >= epsilon).astype(np.float64)) / weight
        slope = max(1.0 - epsilon * epsilon * beyond / square, LEAST_SLOPE)
        step = 0.5 * math.log(square) / slope
        before = scale
        scale = max(scale * math.exp(min(max(step, -FARTHEST), FARTHEST)), least)
        if abs(scale - before) <= ACCURACY * before:
            break
    return scale
