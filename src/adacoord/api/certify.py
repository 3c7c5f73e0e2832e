"""``certify``: how far from optimal is this point, whoever made it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from ..problem import Problem

#: Rows this close to a kink (in units of the spread of the targets) are worked on first.
NEAR_KINK = (1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class Certificate:
    """A bound on how far a point is from optimal.

    Attributes
    ----------
    primal : P at the point
    dual : the best D found, less what rounding may hide: a lower bound on P*
    gap : primal - dual >= P - P*; NaN if the problem has no certificate
    relative_gap : the gap over max(|P|, |D|, 1e-12 |P(0)|)
    y : the feasible dual point that proves it
    note : a sentence
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    y: np.ndarray
    note: str


def certify(
    problem: Problem, x: np.ndarray, intercept: float | np.ndarray = 0.0, *, effort: int = 10
) -> Certificate:
    r"""Bound :math:`P(x, c) - P^*` for any x, from any library.

    The dual point starts as :math:`y_i = \phi_i'(a_i^T x + c)`, which is tight at the optimum of
    a smooth loss.  A loss with kinks (hinge, absolute, quantile, epsilon-insensitive) leaves
    y_i open on the rows that sit at a kink, so y is then improved by dual ascent, first on those
    rows, then on all of them.  Any effort gives a valid bound; more effort a tighter one.

    Parameters
    ----------
    problem : Problem
    x : array of shape (d,), or (d, K) with K classes
    intercept : float, or array of shape (K,)
    effort : int
        Passes over the data to spend on the dual point.

    Returns
    -------
    Certificate
    """
    if not isinstance(problem, Problem):
        raise ValueError(
            f"problem={type(problem).__name__}: make one with adacoord.Problem(A, b, loss=..., "
            "l2=...)"
        )
    if isinstance(effort, bool) or not isinstance(effort, (int, np.integer)) or effort < 0:
        raise ValueError(f"effort={effort!r}: it must be a whole number of passes, zero or more")
    x = problem._check_x(x)
    if not np.isfinite(x).all():
        bad = x[~np.isfinite(x)][0]
        raise ValueError(f"x has the value {bad}: only finite points can be certified")
    intercept = problem._check_intercept(intercept)
    primal = problem.primal(x, intercept)
    y = problem.loss.start(problem.b)
    if not problem.has_certificate:
        return Certificate(
            primal,
            -np.inf,
            np.nan,
            np.nan,
            y,
            "Without a penalty (l1 = l2 = 0) there is no duality gap: nothing is certified.",
        )
    if not np.isfinite(primal):
        y, u = problem.feasible_dual(y)
        return Certificate(
            primal, problem._dual(y, u), np.inf, np.inf, y, "P is infinite at this point."
        )
    value, bound, spent = -np.inf, -np.inf, 0
    for candidate, passes in _candidates(problem, x, intercept, effort):
        feasible, u = problem.feasible_dual(candidate)
        dual = problem._dual(feasible, u)
        if dual > value:
            value, y = dual, feasible
            bound = problem.bound(x, intercept, primal, y, u, value)
        spent = passes
        if primal - value <= 0.5 * (primal - bound):  # the rest is rounding
            break
    gap, relative = primal - bound, problem.relative_gap(primal, bound)
    note = f"Within {gap:.3g} of the optimum ({relative:.2e} relative), proved in {spent} passes."
    return Certificate(primal, bound, gap, relative, y, note)


def _candidates(
    problem: Problem, x: np.ndarray, intercept: float | np.ndarray, effort: int
) -> Iterator[tuple[np.ndarray, int]]:
    """Better and better dual points, with the passes spent on them."""
    z = problem.predict(x, intercept)
    y = problem.loss.derivative(z, problem.b)
    yield y, 0
    if problem.loss.blocks:  # smooth, and beyond the coordinate ascent below
        return
    kinked = problem.loss.gamma == 0.0 and problem.loss.name != "poisson"
    if kinked:
        y, distance = _across_kinks(problem, z)
        yield y, 0
    start = SimpleNamespace(x=x, intercept=intercept, y=y)
    rng = np.random.Generator(np.random.PCG64(0))
    if problem.penalty.l2 == 0.0:
        from ..solvers.primal_dual.spdc import SPDC

        spdc = SPDC(problem, rng, start)
        for k in range(effort):
            spdc.advance(1)
            yield spdc.y, k + 1
        return
    from ..solvers.dual.dual_cd import DualCoordinateAscent

    solver = DualCoordinateAscent(problem, rng, start)
    rows, left = solver.rows, effort * solver.rows.size
    if kinked:
        budget = left // (len(NEAR_KINK) + 1)
        for width in NEAR_KINK:
            near = rows[distance[rows] <= width]
            if near.size:
                solver.rows = near
                solver.advance(budget // near.size)
                left -= budget // near.size * near.size
                yield solver.y, effort - left // rows.size
    solver.rows = rows
    for k in range(effort - left // max(rows.size, 1), effort):
        solver.advance(1)
        yield solver.y, k + 1


def _across_kinks(problem: Problem, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A subgradient with its jumps made slopes, and each row's distance from a kink.

    A kink is where the residual z - b is +epsilon or -epsilon (0 for losses without a tube); at
    the kink itself the subgradient is put halfway, and it reaches its ends NEAR_KINK[0] away.
    Distances are in units of the spread of the targets.
    """
    loss, b = problem.loss, problem.b
    spread = 1.0
    if loss.task == "regression":
        spread = float(np.mean(np.abs(b - np.median(b)))) or 1.0
    epsilon = loss.constants[1]
    low, high = problem._domain
    residual = (z - b) / spread
    side = np.sign(residual) * epsilon / spread
    if epsilon > 0.0:  # one kink on each side: from 0 to an end of the domain
        low, high = np.where(side > 0.0, 0.0, low), np.where(side > 0.0, high, 0.0)
    y = np.clip(0.5 * (low + high) + (residual - side) / NEAR_KINK[0], low, high)
    return y, np.abs(residual - side)
