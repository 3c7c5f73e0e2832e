"""``certify``: how far from optimal is this point, whoever made it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from ..problem import Problem
from ..problem.inputs import check_flag
from ..problem.rounding import SHARP
from ..solvers.base import Point
from ..solvers.registry import admit, classes_by_columns, extended, joint
from .rigorous import check_supported, exact_gap

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

    def _repr_html_(self) -> str:
        from .views import table

        proved = "none" if np.isnan(self.gap) else f"{self.relative_gap:.2e}"
        return table(
            self.note,
            {
                "certified relative gap": proved,
                "P(x)": self.primal,
                "bound on the optimum": self.dual,
                "gap": self.gap,
            },
        )


def certify(
    problem: Problem,
    x: np.ndarray,
    intercept: float | np.ndarray = 0.0,
    *,
    effort: int = 10,
    rigorous: bool = False,
) -> Certificate:
    r"""Bound :math:`P(x, c) - P^*` for any x, from any library.

    The dual point starts as :math:`y_i = \phi_i'(a_i^T x + c)`, which is tight at the optimum of
    a smooth loss.  A loss with kinks (hinge, absolute, quantile, epsilon-insensitive) leaves
    y_i open on the rows that sit at a kink, so y is then improved by dual ascent, first on those
    rows, then on all of them.  Any effort gives a valid bound; more effort a tighter one.  (Data in
    blocks of rows have ascent on all rows, and for l2 > 0 alone.)

    Parameters
    ----------
    problem : Problem
    x : array of shape (d,), or (d, K) with K classes
    intercept : float, or array of shape (K,)
    effort : int
        Passes over the data to spend on the dual point.
    rigorous : bool
        Evaluate P and D of the best dual point once more, by a checker that shares no code with the
        rest, in exact rational arithmetic (losses with logarithms: in intervals, which takes
        python-flint, ``pip install "adacoord[rigorous]"``).  For small and medium problems: about
        3 s for a million entries.  The gap is the exact one, rounded up.

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
    if check_flag(rigorous, "rigorous"):
        check_supported(problem)
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
        bound = problem.bound(x, intercept, primal, y, u, problem._dual(y, u))
        return Certificate(primal, bound, np.inf, np.inf, y, "P is infinite at this point.")
    value, bound, spent = -np.inf, -np.inf, 0
    for candidate, passes in _candidates(problem, x, intercept, effort):
        feasible, u = problem.feasible_dual(candidate)
        dual = problem._dual(feasible, u)
        box = problem.penalty.box_cost(x, u)
        if dual - box > value:
            value, y = dual - box, feasible
            bound = problem.bound(x, intercept, primal, y, u, dual, tol=SHARP)
        spent = passes
        if primal - value <= 0.5 * (primal - bound):  # the rest is rounding
            break
    gap, how = primal - bound, f"in {spent} passes"
    if rigorous:
        exact = exact_gap(problem, x, intercept, y)
        primal, bound, gap = exact.primal, exact.dual, exact.gap
        how = f"in {exact.how}; the bound is rounded up"
    relative = problem.relative_gap(primal, bound)
    note = f"Within {gap:.3g} of the optimum ({relative:.2e} relative), proved {how}."
    wide = problem.penalty.outside(x)
    if wide is not None:
        held = np.flatnonzero(np.isfinite(wide))
        note += (
            f" {held.size} of {problem.d} columns have neither a penalty nor bounds: the optimum "
            f"is that among all x with |x_j| <= {wide.ravel()[held].min():.3g} or more there, 1000 "
            "times their size."
        )
    return Certificate(primal, bound, gap, relative, y, note)


def _candidates(
    problem: Problem, x: np.ndarray, intercept: float | np.ndarray, effort: int
) -> Iterator[tuple[np.ndarray, int]]:
    """Better and better dual points, with the passes spent on them."""
    z = problem.predict(x, intercept)
    y = problem.loss.derivative(z, problem.b)
    yield y, 0
    if problem.loss.blocks and not classes_by_columns(problem):  # smooth, and beyond what is below
        return
    kinked = not problem.loss.differentiable
    if kinked:
        y, distance = _across_kinks(problem, z)
        yield y, 0
    reduction = problem.reduction
    improved = _improved(
        reduction.problem,
        reduction.point(SimpleNamespace(x=x, intercept=intercept, y=y)),
        distance if kinked else None,
        effort,
    )
    for y, passes in improved:
        yield reduction.y(y), passes


def _improved(
    problem: Problem, start: Point, distance: np.ndarray | None, effort: int
) -> Iterator[tuple[np.ndarray, int]]:
    """The same from a start on; ``distance`` is that of each row from a kink, where there are."""
    rng = np.random.Generator(np.random.PCG64(0))
    if joint(problem) or problem.loss.blocks:
        sets = admit(problem, "acf", {}).load()(problem, rng, start)
        for k in range(effort):
            sets.advance(1)
            yield sets.y, k + 1
        return
    if extended(problem):
        newton = admit(problem, "newton", {}).load()(problem, rng, start)
        for k in range(effort):
            newton.advance(1)
            yield newton.y, k + 1
        return
    if problem.matrix.blocked:
        if problem.penalty.strong_convexity > 0.0:
            from ..solvers.dual.rounds import DualRounds

            rounds = DualRounds(problem, rng, start)
            for k in range(effort):
                rounds.advance(1)
                yield rounds.y, k + 1
        return
    if problem.penalty.strong_convexity == 0.0:
        from ..solvers.primal_dual.spdc import SPDC

        spdc = SPDC(problem, rng, start)
        for k in range(effort):
            spdc.advance(1)
            yield spdc.y, k + 1
        return
    from ..solvers.dual.dual_cd import DualCoordinateAscent

    solver = DualCoordinateAscent(problem, rng, start)
    rows, left = solver.rows, effort * solver.rows.size
    if distance is not None:
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
