r"""The fallback from a wrong pick of ``auto``: when the first method is given up, and for which.

The rule of :mod:`.rule` looks at sizes and norms before anything has run; what a method does on
the data shows only then.  At each gap check the monitor asks whether a switch is due:

    spent >= max(JUDGED_AFTER, expected(second)/2)  and  left >= FACTOR * expected(second)

``spent`` and ``left`` are of the first method, ``left`` from the rate at which its gap fell while
it spent the later half of that, ``expected`` is what the second one takes from scratch.  All are
work, in units of the entries of A touched by dual ascent, never seconds: same seed, same bits.
A method that crawls from the start thus costs half of what the second one takes, or JUDGED_AFTER.
Both share the budget of passes: the second one has half of those left, and where its own rate then
says that the other half will not do, the first one goes on where it was.

Expected, with kappa = R^2/(n l2 gamma) (R^2 the mean squared row; gamma = 1 for kinks) and to a
relative gap of 1e-6, less for a larger one:

==========  =================================================================================
apdc        APDC_PASS (10 + 4 sqrt(kappa)), twice that with l1 or a sign (rows are caught up)
acf, dcd    50 where there are far more columns than rows, which then hardly meet; otherwise
            30 + 5 kappa, with kinks 30 + 20 kappa; at most NEWTON_JUDGED_AFTER where ACF may turn
            to Newton steps
newton      its seconds by :func:`.rule.newton_time`, in entries; newton-cg by
            :func:`.rule.cg_time`, lbfgs by :func:`.rule.quasi_newton_time`; for a lasso of few
            numbers, to the last digit, ACTIVE_STEPS times :func:`.rule.small_factor`; an interior
            point by :func:`.rule.interior_time`
==========  =================================================================================

Methods that turn to Newton steps by themselves (``acf`` on columns, and on rows where these are
cheap) show next to no progress before the last digits come all at once: 24 runs that touched 100
to 650 times the entries of A had forecasts of up to 1.7 10^6 times on the way.
They get NEWTON_JUDGED_AFTER units before they are judged.  A lasso of few numbers gets less: its
active set can be found by Newton's method (:mod:`~adacoord.solvers.newton.dense`), to which it also
turns where half of the passes are spent, and the rest will not do.  So do losses that are linear
beyond a parabola, whose bends neither descent on columns nor Newton's method sees before it is
within them: they make a program for an interior point (:mod:`~adacoord.solvers.newton.interior`),
which takes over from Newton's method under bounds after as many passes as it takes itself.

Working sets of columns with all their classes are judged by passes, and given up for Newton steps
on all coefficients where these are few (:mod:`~adacoord.solvers.newton.bounded_classes`).

Fitted on w8a, a9a, covtype, rcv1.subset, news20, leukemia, mnist and two random matrices, l2 =
1e-3, 1e-5, 1e-7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..problem import Problem
from ..solvers.newton.size import MOST_COLUMNS, newton_on_classes, small
from ..solvers.registry import (
    SOLVERS,
    Entry,
    admit,
    bent_program,
    classes_by_columns,
    extended,
    left_to_program,
    newton_can,
    newton_cg_can,
)
from .constants import (
    ACF_DENSE,
    ACF_SPARSE,
    ACTIVE_CALLS,
    ACTIVE_STEPS,
    APART,
    APDC_ENTRY,
    APDC_FIRST,
    APDC_PASS,
    APDC_PER_ROOT,
    ASCENT_FIRST,
    ASCENT_PER_KAPPA,
    ASCENT_PER_KAPPA_WITH_KINKS,
    CALLS,
    CG_ENTRY,
    CLASS_PATIENCE,
    COLUMN_ENTRY,
    FACTOR,
    INTERIOR_STEPS,
    JUDGED_AFTER,
    KINKED_PATIENCE,
    NEWTON_JUDGED_AFTER,
    USUAL,
)
from .rule import (
    cg_time,
    choose,
    choose_large,
    dense_classes,
    interior_time,
    kappa,
    newton_time,
    quasi_newton_time,
    rows_meet,
    small_factor,
)

if TYPE_CHECKING:
    from ..api.monitor import History, Switch
    from ..solvers.base import Point, Stepper


#: ACF on columns.
ON_COLUMNS = ("WorkingSetDescent", "GramWorkingSet", "BlockWorkingSet")


@dataclass(frozen=True)
class Fallback:
    """The way on from a wrong pick: when to take it, and what makes the other solver.

    ``due(history, tol, max_passes)`` is asked after each gap check and may look at passes,
    operations and gaps, never at the clock; ``make(start)`` gives the other solver, and its name;
    ``failed(history, tol, max_passes)`` says when that one has had its chance.
    """

    before: str
    due: Callable[[History, float, int], bool]
    make: Callable[[Point], tuple[Stepper, str]]

    def failed(self, history: History, tol: float, max_passes: int) -> bool:
        """Whether the second method has had half of the passes, and needs more than the rest."""
        assert history.switched is not None
        passes, at = history.passes, history.switched.passes
        now = passes[-1]
        if 2 * (now - at) < max_passes - at:
            return False
        half = max(k for k, count in enumerate(passes) if count <= at + 0.5 * (now - at))
        before, gap, relative = history.gap[half], history.gap[-1], history.relative_gap[-1]
        if not gap < before < math.inf or tol == 0.0:
            return True
        rate = math.log(before / gap) / (now - passes[half])
        return now + math.log(max(relative / tol, 1.0)) / rate > max_passes


def fallback(
    problem: Problem,
    first: Entry,
    make: Callable[[Entry, Point | None], Stepper],
    named: bool = False,
) -> Fallback | None:
    """The fallback from ``first`` as a pick for ``problem``, or None where there is no other.

    ``named``: the user asked for it by name, and gets no method of another name.
    """
    if not problem.has_certificate or problem.matrix.blocked:
        return None
    if first.cls in ("SmallNewton", "InteriorPoint"):  # which say themselves when they are stuck
        return _from_small(problem, first, make, named)
    if first.cls == "BoundedNewton":
        return _from_bounded(problem, first, make)
    if first.extended or first.joint:
        return _from_class_columns(problem, first, make, named)
    if named:
        return None
    second = alternative(problem, first)
    if second is None:
        return None
    program = SOLVERS["newton"].program if on_program(problem, first) else None
    entry = program or SOLVERS[second].variant(problem)

    # in a number of steps that hangs on neither gap nor tol
    ends = entry.cls in ("SmallNewton", "InteriorPoint")

    def due(history: History, tol: float, max_passes: int) -> bool:
        digits = math.log(max(tol, 1e-15)) / math.log(USUAL)
        goal = expected(problem, entry) * (1.0 if ends else min(max(digits, 0.2), 2.0))
        unit = work_per_entry(first) / max(problem.matrix.nnz, 1)
        spent, left = forecast(history, tol)
        enough = max(patience(problem, first), 0.5 * goal)
        passes = history.passes[-1]
        if ends and 2 * passes >= max_passes and passes * (1.0 + left / spent) > max_passes:
            return True  # what is left of the passes will not do
        return spent * unit >= enough and left * unit >= FACTOR * goal

    def other(start: Point) -> tuple[Stepper, str]:
        # an interior point has to begin in the middle
        return make(entry, None if entry.cls == "InteriorPoint" else start), second

    return Fallback(first.name, due, other)


def _from_small(problem: Problem, first: Entry, make, named: bool) -> Fallback | None:
    """From Newton's method for small data, or an interior point: made only when it is needed."""
    larger = newton_can(problem)
    if named and not larger:
        return None

    def other(start):
        if extended(problem):  # afresh: where an interior point is stuck its y leads astray
            return make(SOLVERS["newton"].bounded, None), "newton"
        if not larger:
            name = choose_large(problem)
            return make(SOLVERS[name].variant(problem), start), name
        newton = SOLVERS["newton"]
        kinked = newton.kinked if not problem.loss.differentiable else None
        return make(kinked or newton, start), "newton"

    return Fallback(first.name, lambda *_: False, other)


def _from_bounded(problem: Problem, first: Entry, make) -> Fallback | None:
    """From Newton's method under bounds, whose models see no bend before it is within them."""
    entry = SOLVERS["newton"].program
    if entry is None or not left_to_program(problem):
        return None
    return Fallback(
        first.name,
        lambda history, *_: history.passes[-1] >= INTERIOR_STEPS,
        lambda _: (make(entry, None), entry.name),
    )


def _from_class_columns(problem: Problem, first: Entry, make, named: bool) -> Fallback | None:
    """From working sets of columns with all their classes to Newton's method on all coefficients.

    By passes: on small data most of their time goes into calls.  And back, where that is stuck.
    """
    if first.cls == "BoundedClasses" and not named and classes_by_columns(problem):
        sets = SOLVERS["acf"].variant(problem)
        return Fallback(first.name, lambda *_: False, lambda start: (make(sets, start), sets.name))
    if first.cls != "ClassWorkingSet" or named or not newton_on_classes(problem):
        return None
    unit = ACF_DENSE if problem.matrix.is_dense else ACF_SPARSE
    a_pass = (problem.n_classes or 1) * unit * problem.matrix.nnz + CALLS
    goal = newton_time(problem) / a_pass

    def due(history: History, tol: float, max_passes: int) -> bool:
        spent, left = forecast(history, tol)
        passes = history.passes[-1]
        return passes >= max(CLASS_PATIENCE, 0.5 * goal) and left * passes >= FACTOR * goal * spent

    entry = SOLVERS["lbfgs"].variant(problem)
    return Fallback(first.name, due, lambda start: (make(entry, start), entry.name))


def alternative(problem: Problem, first: Entry) -> str | None:
    """The method to turn to, of those that take the problem the one expected to be fastest."""
    if on_active_sets(problem, first) or on_program(problem, first):
        return "newton"
    if problem.penalty.strong_convexity == 0.0:
        return None  # nothing but continuation
    if first.name == "newton" and problem.loss.differentiable:
        return None  # it does not crawl
    others = [] if problem.loss.steep else ["apdc"]  # whose dual is a barrier
    if newton_can(problem):
        others.append("newton")
    if newton_cg_can(problem):
        others.append("newton-cg")
    if dense_classes(problem):
        others.append("lbfgs")
    if not problem.loss.blocks:
        others.append("acf")
    entries = [SOLVERS[name].variant(problem) for name in others if name != first.name]
    if not entries:
        return None
    return min(entries, key=lambda entry: expected(problem, entry)).name


def on_active_sets(problem: Problem, first: Entry) -> bool:
    """Whether descent on columns may be left to Newton's method on few numbers."""
    few = small(problem) and problem.d <= MOST_COLUMNS
    return few and first.cls in ON_COLUMNS


def on_program(problem: Problem, first: Entry) -> bool:
    """Whether descent on columns, or Newton's method, may be left to an interior point."""
    crawls = first.cls in (*ON_COLUMNS, "Newton", "NewtonCG")
    return crawls and left_to_program(problem)


def lesson(problem: Problem, switched: Switch | None) -> str:
    """The solver to begin with after a switch at another penalty: not again the wrong one."""
    if switched is None:
        return "auto"
    problem = problem.reduction.problem
    first = admit(problem, choose(problem), {})
    if on_active_sets(problem, first):
        return "auto"  # from the last point on descent may do
    if on_program(problem, first) and not bent_program(problem):
        return "auto"  # of that name there is another one
    same = (first.name, alternative(problem, first)) == (switched.before, switched.after)
    return switched.after if same else "auto"


def expected(problem: Problem, entry: Entry) -> float:
    """Work to a relative gap of USUAL, from scratch."""
    unit = ACF_DENSE if problem.matrix.is_dense else ACF_SPARSE
    if entry.cls == "SmallNewton":
        each = small_factor(problem) + ACTIVE_CALLS
        return ACTIVE_STEPS * each / (unit * max(problem.matrix.nnz, 1))
    if entry.cls == "InteriorPoint":
        return interior_time(problem) / (unit * max(problem.matrix.nnz, 1))
    times = {"newton": newton_time, "newton-cg": cg_time, "lbfgs": quasi_newton_time}
    if entry.name in times:
        return times[entry.name](problem) / (unit * max(problem.matrix.nnz, 1))
    plain = problem.penalty.quadratic
    if entry.name == "apdc":
        passes = APDC_FIRST + APDC_PER_ROOT * math.sqrt(kappa(problem))
        return (1.0 if plain else 2.0) * APDC_PASS * passes
    rows = APART
    if rows_meet(problem) or not plain:
        slope = ASCENT_PER_KAPPA if problem.loss.gamma else ASCENT_PER_KAPPA_WITH_KINKS
        rows = ASCENT_FIRST + slope * kappa(problem)
    return min(rows, NEWTON_JUDGED_AFTER) if may_turn(problem, entry) else rows


def patience(problem: Problem, entry: Entry) -> float:
    """Work that a method gets before it is judged: Newton's stages with kinks seem to crawl."""
    if on_active_sets(problem, entry) or on_program(problem, entry):
        return JUDGED_AFTER
    if entry.cls == "KinkedNewton":
        return KINKED_PATIENCE * expected(problem, entry)
    return NEWTON_JUDGED_AFTER if may_turn(problem, entry) else JUDGED_AFTER


def may_turn(problem: Problem, entry: Entry) -> bool:
    """Whether the method may turn to Newton steps by itself."""
    from ..solvers.newton import dual_proximal as dual_newton  # its kernels import Numba

    if entry.cls in ON_COLUMNS:
        return True
    return entry.name == "acf" and dual_newton.within_reach(problem)


def work_per_entry(entry: Entry) -> float:
    """Work that touching an entry of A is."""
    if entry.name == "apdc":
        return APDC_ENTRY
    if entry.name in ("newton-cg", "lbfgs"):
        return CG_ENTRY
    return COLUMN_ENTRY if entry.cls in ON_COLUMNS else 1.0


def forecast(history: History, tol: float) -> tuple[float, float]:
    """(entries spent, entries left to ``tol``), from the rate over the later half of the work.

    By P - D and not by its ratio to P, which stays near 1 while P itself still falls.
    """
    spent = history.operations[-1]
    half = max(
        (k for k, entries in enumerate(history.operations) if entries <= 0.5 * spent), default=-1
    )
    if half < 0:  # a single look, so far
        return spent, 0.0
    before, now, relative = history.gap[half], history.gap[-1], history.relative_gap[-1]
    if relative <= tol:
        return spent, 0.0
    if not now < before < math.inf or tol == 0.0:
        return spent, math.inf
    rate = math.log(before / now) / (spent - history.operations[half])
    return spent, math.log(relative / tol) / rate
