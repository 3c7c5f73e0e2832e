"""What each solver can solve.

The registry is consulted before any work: a pair of problem and solver that cannot work is
refused in a sentence that names one that can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module

from ..linalg.moments import fits
from ..problem import Problem
from ..problem.column_penalty import ColumnPenalty
from ..problem.group_penalty import GroupPenalty
from .newton.size import LARGEST, small, system_size, too_large

#: Matrices of the size of the set that its Gram matrix takes: sums, that of centred columns, its
#: part that is worked on, and a factor.
SET_MATRICES = 4
#: Columns that are few, and rows per column that are many, for Gram matrices of log links.
MOST_TALL, TALL = 100, 20
#: Entries up to which least squares with an l1 are solved to the last digit: beyond, descent on
#: columns to 1e-4 takes down to a third of the time (561 x 360, a support of 203: 9.0 -> 4.3 ms;
#: 517 x 201 sparse: 4.7 -> 1.7; 100 x 40 the other way, .5 -> .8).
SMALL_LASSO = 2**13
#: Where descent on the columns of dense data takes less time than their Gram matrix: in tables of
#: more entries than LEAST, and of at most SQUARE times as many rows as columns or the reverse; with
#: an l2 of at least STEEP mean squares of a column, of at most LEVEL times as many rows as columns,
#: or of MANY columns, whose products are long (36 elastic nets, 8,000 x 450, 12,000 x 600, 10,000 x
#: 800: geometric mean .65, the least .33, the most 1.4; of 280 to 350 columns .85 and 1.8; of 120
#: columns and fewer 1.35).
#: Time of the one over that of the other on drawn tables up to 4e6 entries, l1_max/3 to /500: with
#: such an l2, geometric means on four seeds .65, .44, .43, .49, the least .06, the most 2.8 (more
#: than 1.2 in 18 of 153 fits, 1 to 10 ms each); square ones with l1 alone .67, .22 and 2.0 (27
#: fits; at l1_max/500 the Gram matrix is twice as fast, on correlated columns more).
LEAST, SQUARE, STEEP, LEVEL, MANY = 2**17, 3, 0.01, 8, 400


@dataclass(frozen=True)
class Entry:
    """A solver and its contract.

    ``needs`` may hold ``"strongly_convex"`` (l2 > 0), ``"smooth"`` (a loss with gamma > 0),
    ``"differentiable"`` (a loss with a continuous slope) and ``"quadratic"`` (no l1, no sign);
    ``options`` names the keywords it takes, ``blocks`` says whether it takes losses of several
    numbers a row (multinomial), ``unpenalised`` whether it takes l1 = l2 = 0;
    ``columns`` takes its place where there is an l1 and a loss with a continuous slope, ``small``
    where the data are small, ``kinked`` for losses without a continuous slope, ``program`` for
    those of them with more than an l2, and smooth ones that are linear beyond a parabola
    (:func:`kinked_program`, :func:`bent_program`), ``nonnegative`` for least squares
    with x >= 0 and no penalty, ``gram`` for least squares on dense data whose Gram matrix fits,
    ``tall`` for log links on dense data of few columns,
    ``classes`` for losses of several numbers a row, ``bounded`` where columns have weights or
    bounds of their own or margins have an offset (:func:`extended`); ``row_blocks`` says whether it
    works on data in blocks of rows, where otherwise ``in_blocks`` takes its place, ``extended``
    whether it takes what ``bounded`` is for; ``groups`` takes its place for groups of columns,
    ``class_columns`` for several targets, and for several classes with an l1 or groups (both are
    ``joint``: they take what no other does).
    """

    name: str
    summary: str
    module: str
    cls: str
    needs: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    blocks: bool = False
    unpenalised: bool = False
    columns: Entry | None = None
    small: Entry | None = None
    kinked: Entry | None = None
    program: Entry | None = None
    nonnegative: Entry | None = None
    gram: Entry | None = None
    tall: Entry | None = None
    classes: Entry | None = None
    bounded: Entry | None = None
    row_blocks: bool = False
    in_blocks: Entry | None = None
    extended: bool = False
    groups: Entry | None = None
    class_columns: Entry | None = None
    joint: bool = False

    def variant(self, problem: Problem) -> Entry:
        """The entry that solves this problem under this name."""
        entry = self._variant(problem)
        if not problem.matrix.blocked or entry.row_blocks:
            return entry
        if entry.in_blocks is None:
            able = ", ".join(
                e.name
                for e in SOLVERS.values()
                if (e.row_blocks or e.in_blocks) and e.name != self.name
            )
            raise ValueError(
                f'solver="{self.name}" needs all rows in memory, and these data are blocks of '
                f'rows; use solver="auto", or one of {able}'
            )
        return entry.in_blocks

    def _variant(self, problem: Problem) -> Entry:
        if problem.loss.blocks and self.class_columns is not None and classes_by_columns(problem):
            columns = self.class_columns
            return columns.gram if columns.gram and dense_targets(problem) else columns
        if problem.penalty.grouped:
            return self.groups or self
        if self.program is not None and (kinked_program(problem) or bent_program(problem)):
            return self.program
        if extended(problem):
            return self.bounded or self
        if self.small is not None and small(problem):
            return self.small
        if self.nonnegative is not None and nonnegative_least_squares(problem):
            return self.nonnegative
        if self.kinked is not None and not problem.loss.differentiable:
            return self.kinked
        if self.classes is not None and problem.loss.blocks:
            return self.classes if problem.penalty.quadratic else self.bounded or self
        if self.gram is not None and dense_least_squares(problem):
            return self.gram
        if self.tall is not None and tall_log_link(problem):
            return self.tall
        if self.columns is not None and by_columns(problem):
            return self.columns._variant(problem)
        return self

    def load(self) -> type:
        """The solver's class; imported here because its kernels import Numba."""
        return getattr(import_module(f".{self.module}", __package__), self.cls)


#: What the doubly stochastic methods need, and the options of adaptive importance sampling.
_SMOOTH = frozenset({"smooth", "strongly_convex"})
_AIS = frozenset({"sampling", "steps", "delta", "kappa", "delta_passes"})

#: Coordinate methods on data in blocks of rows.
_ROUNDS = Entry(
    "dcd",
    "rounds of dual coordinate ascent, each block by itself",
    "dual.rounds",
    "DualRounds",
    needs=frozenset({"strongly_convex"}),
    row_blocks=True,
)
_BLOCK_SETS = Entry(
    "acf",
    "working sets with their Gram matrix, added up over the blocks",
    "primal.block_set",
    "BlockWorkingSet",
    needs=frozenset({"differentiable"}),
    row_blocks=True,
)

SOLVERS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "spdc",
            "stochastic primal-dual coordinates (SPDC)",
            "primal_dual.spdc",
            "SPDC",
            options=_AIS | {"batch_size", "n_jobs", "alpha", "weights", "rho", "groups", "kinks"},
            blocks=True,
        ),
        Entry(
            "adaspdc",
            "SPDC with step sizes for each block (AdaSPDC)",
            "primal_dual.adaspdc",
            "AdaSPDC",
            options=frozenset({"batch_size", "n_jobs", "groups", "kinks"}),
            blocks=True,
        ),
        Entry(
            "apdc",
            "adaptive primal-dual coordinates (APDC)",
            "primal_dual.apdc",
            "APDC",
            blocks=True,
        ),
        Entry(
            "dspdc",
            "doubly stochastic primal-dual coordinates (DSPDC)",
            "doubly.dspdc",
            "DSPDC",
            needs=_SMOOTH,
            options=_AIS | {"multiplier"},
        ),
        Entry(
            "spd1-vr",
            "variance-reduced primal-dual steps of O(1) (SPD1-VR)",
            "doubly.spd1vr",
            "SPD1VR",
            needs=_SMOOTH,
            options=_AIS,
        ),
        Entry(
            "dcd",
            "dual coordinate ascent, shuffled order",
            "dual.dual_cd",
            "DualCoordinateAscent",
            needs=frozenset({"strongly_convex"}),
            in_blocks=replace(_ROUNDS, name="dcd"),
        ),
        Entry(
            "acf",
            "adaptive coordinate frequencies (ACF): rows of the dual, or columns",
            "dual.acf",
            "AdaptiveFrequencies",
            needs=frozenset({"strongly_convex"}),
            options=frozenset({"order", "stop", "eps", "frequencies"}),
            in_blocks=replace(_ROUNDS, name="acf"),
            groups=Entry(
                "acf",
                "working sets of groups of columns",
                "primal.group_set",
                "GroupWorkingSet",
                needs=frozenset({"differentiable"}),
                extended=True,
                joint=True,
            ),
            class_columns=Entry(
                "acf",
                "working sets of columns, each with the coefficients of all classes or targets",
                "primal.class_set",
                "ClassWorkingSet",
                needs=frozenset({"smooth"}),
                blocks=True,
                extended=True,
                joint=True,
                gram=Entry(
                    "acf",
                    "working sets with their Gram matrix, of several targets",
                    "primal.target_set",
                    "TargetWorkingSet",
                    blocks=True,
                    joint=True,
                ),
            ),
            columns=Entry(
                "acf",
                "working sets with adaptive frequencies",
                "primal.working_set",
                "WorkingSetDescent",
                needs=frozenset({"differentiable"}),
                in_blocks=_BLOCK_SETS,
                tall=_BLOCK_SETS,
                gram=Entry(
                    "acf",
                    "working sets with their Gram matrix",
                    "primal.gram_set",
                    "GramWorkingSet",
                    in_blocks=_BLOCK_SETS,
                ),
            ),
        ),
        Entry(
            "cd",
            "coordinate descent, cyclic order",
            "primal.primal_cd",
            "CoordinateDescent",
            needs=frozenset({"differentiable"}),
            options=frozenset({"order"}),
            extended=True,
        ),
        Entry(
            "sdca",
            "stochastic dual coordinate ascent, i.i.d. order",
            "dual.dual_cd",
            "StochasticDualCoordinateAscent",
            needs=frozenset({"strongly_convex"}),
        ),
        Entry(
            "newton",
            "Newton's method with Cholesky's factorisation",
            "newton.newton",
            "Newton",
            needs=frozenset({"differentiable", "quadratic"}),
            blocks=True,
            unpenalised=True,
            in_blocks=Entry(
                "newton",
                "Newton's method with sums over the blocks",
                "newton.block_newton",
                "BlockNewton",
                needs=frozenset({"differentiable", "quadratic"}),
                row_blocks=True,
                unpenalised=True,
            ),
            small=Entry(
                "newton",
                "Newton's method to the last digit of small problems",
                "newton.small",
                "SmallNewton",
            ),
            kinked=Entry(
                "newton",
                "semismooth Newton steps on the proximal point of the dual",
                "newton.kinked",
                "KinkedNewton",
                needs=frozenset({"strongly_convex", "quadratic"}),
                row_blocks=True,
            ),
            program=Entry(
                "newton",
                "interior point of the program of kinks, l1 and bounds",
                "newton.interior",
                "InteriorPoint",
                row_blocks=True,
                extended=True,
            ),
            bounded=Entry(
                "newton",
                "Newton's method for weights and bounds of each column, and offsets",
                "newton.bounded",
                "BoundedNewton",
                unpenalised=True,
                extended=True,
            ),
            nonnegative=Entry(
                "newton",
                "active sets for least squares with x >= 0",
                "newton.nonnegative",
                "NonNegativeLeastSquares",
                unpenalised=True,
            ),
        ),
        Entry(
            "newton-cg",
            "Newton's method with preconditioned conjugate gradients",
            "newton.newton_cg",
            "NewtonCG",
            needs=frozenset({"differentiable", "quadratic"}),
            blocks=True,
            row_blocks=True,
            unpenalised=True,
        ),
        Entry(
            "asdca",
            "SDCA inside an accelerated proximal point (ASDCA)",
            "baselines.asdca",
            "AcceleratedSDCA",
            needs=_SMOOTH,
        ),
        Entry(
            "sag",
            "stochastic average gradient (SAG)",
            "baselines.sag",
            "StochasticAverageGradient",
            needs=frozenset({"smooth"}),
            options=frozenset({"step", "lipschitz"}),
        ),
        Entry(
            "afg",
            "accelerated full gradient with a line search (AFG)",
            "baselines.afg",
            "AcceleratedFullGradient",
            needs=frozenset({"smooth"}),
        ),
        Entry(
            "lbfgs",
            "L-BFGS with a memory of 30",
            "baselines.lbfgs",
            "LimitedMemoryBFGS",
            needs=frozenset({"smooth", "quadratic"}),
            blocks=True,
            row_blocks=True,
            unpenalised=True,
            bounded=Entry(
                "lbfgs",
                "L-BFGS-B for several classes: weights and bounds of each column, and offsets",
                "newton.bounded_classes",
                "BoundedClasses",
                blocks=True,
                unpenalised=True,
                extended=True,
            ),
            classes=Entry(
                "lbfgs",
                "L-BFGS for several classes, from a preconditioner on",
                "newton.quasi_newton",
                "QuasiNewton",
                needs=frozenset({"smooth", "quadratic"}),
                blocks=True,
                unpenalised=True,
            ),
        ),
        Entry(
            "pdhg",
            "batch primal-dual method of Chambolle and Pock (PDHG)",
            "baselines.pdhg",
            "PrimalDualHybridGradient",
            needs=_SMOOTH,
        ),
    )
}


def extended(problem: Problem) -> bool:
    """Whether columns have weights or bounds of their own, or predictions an offset, that no change
    of variables takes away (:mod:`adacoord.problem.reduction`)."""
    return not problem.penalty.uniform or problem.offset is not None


def joint(problem: Problem) -> bool:
    """Whether coefficients are bound together by groups, or by several targets of the squares."""
    return problem.penalty.grouped or (problem.loss.blocks and not problem.loss.simplex)


def by_columns(problem: Problem) -> bool:
    """Whether coordinate methods work on columns: an l1, or x >= 0 with an l2, and a loss with a
    continuous slope.

    x >= 0 with an l2 alone was left to the rows: on 36 drawn dense tables, 40,000 x 8 to 300 x
    3,000 numbers, squared, logistic and Poisson, these take 3 to 500 times as long.
    """
    penalty, loss = problem.penalty, problem.loss
    signed = penalty.positive and penalty.strong_convexity > 0.0
    return (penalty.l1 > 0.0 or signed) and loss.differentiable and not loss.blocks


def classes_by_columns(problem: Problem) -> bool:
    """Several targets or classes, on working sets of columns: groups, l1, or squares."""
    penalty = problem.penalty
    if problem.matrix.blocked or not penalty.uniform or penalty.positive:
        return False
    return penalty.has_threshold or joint(problem)


def nonnegative_least_squares(problem: Problem) -> bool:
    """Least squares with x >= 0 and no penalty."""
    return (
        problem.loss.name == "squared" and problem.penalty.positive and not problem.has_certificate
    )


def kinked_program(problem: Problem) -> bool:
    """A loss with kinks and more than one l2: a program for an interior point, of rows or columns
    whose Gram matrix is not absurd.  (A column whose bounds meet has no inside.)"""
    if problem.loss.differentiable:
        return False
    if not extended(problem) and (problem.penalty.quadratic or small(problem)):
        return False
    return _has_program(problem)


def bent_program(problem: Problem) -> bool:
    """A smooth loss that is linear beyond a parabola, with an l1: such a program, too, for which
    descent on columns is left where it crawls."""
    if extended(problem) or small(problem):  # have a method that goes to the last digit
        return False
    return problem.penalty.has_threshold and left_to_program(problem)


def left_to_program(problem: Problem) -> bool:
    """Whether what crawls on a smooth loss may be left to an interior point."""
    bent = problem.loss.differentiable and problem.loss.straight and problem.has_certificate
    return bent and not problem.matrix.blocked and _has_program(problem)


def _has_program(problem: Problem) -> bool:
    """Whether columns are apart, all of them with room, and the matrix is not absurd."""
    penalty = problem.penalty
    if isinstance(penalty, GroupPenalty):
        return False
    _, _, lower, upper = penalty.by_column(1 if penalty.uniform else problem.d)
    by_rows = penalty.uniform and not problem.matrix.blocked
    size = min(problem.n, problem.d) if by_rows else problem.d
    return 8 * size**2 <= LARGEST and not bool((lower == upper).any())


def lasso(problem: Problem) -> bool:
    """Least squares with an l1 (or x >= 0), not of very few entries: for descent on columns."""
    squared = problem.loss.name == "squared" and by_columns(problem)
    return squared and problem.n * problem.d > SMALL_LASSO


def dense_least_squares(problem: Problem) -> bool:
    """The squared loss on dense data that are not small, where the Gram matrix of any set of
    columns that may be wanted fits (``linalg.moments.LARGEST``): of all of them, or for l1 alone of
    not many more than there are rows; not where descent is quicker without (``STEEP``)."""
    matrix, l2 = problem.matrix, problem.penalty.strong_convexity
    (n, d), most = matrix.shape, problem.d
    if l2 == 0.0:
        most = min(most, 2 * n)
    held = matrix.is_dense and not matrix.blocked
    suited = held and lasso(problem) and fits(most, SET_MATRICES)
    if not suited or n * d <= LEAST:
        return suited
    if n <= SQUARE * d and d <= SQUARE * n:
        return False
    return (n > LEVEL * d and d < MANY) or l2 * d < STEEP * matrix.mean_square


def dense_targets(problem: Problem) -> bool:
    """Squares of several targets on dense data of no more columns than rows, where the Gram matrix
    of all of them fits.

    (Time over that of :mod:`.primal.class_set`, 1,000 x 500 of 10 targets, 500 x 250 of 4, 3,000 x
    300 of 20, l1_max/5 to /200, to 1e-4: .5 to 1.0; 150 x 600 of 5 1.0 to 1.3.)
    """
    suited = problem.matrix.is_dense and problem.n >= problem.d and not problem.loss.simplex
    if not suited or extended(problem) or not problem.penalty.has_threshold:
        return False
    return fits(problem.d, SET_MATRICES)


def tall_log_link(problem: Problem) -> bool:
    """A log link on dense data whose rows are many times their few columns.

    A Gram matrix of these costs less than the sweeps that it saves (``race.py --models``): Poisson,
    100,000 x 50, l1 = l1_max/100, 82 ms for 165; 10,000 x 300, l1_max/30, 165 for 88.
    """
    return (
        problem.loss.log_link
        and problem.matrix.is_dense
        and problem.d <= MOST_TALL
        and problem.n >= TALL * problem.d
    )


def able_to_extend(problem: Problem) -> str:
    """The solver that takes an extended problem."""
    return "lbfgs" if problem.loss.blocks else "newton"


def newton_can(problem: Problem) -> bool:
    """Whether Newton's method takes the problem and its system fits into memory."""
    if extended(problem):
        return not problem.loss.blocks
    strong = problem.loss.differentiable or problem.penalty.strong_convexity > 0.0
    if problem.matrix.blocked and problem.loss.blocks:  # conjugate gradients take it
        return False
    return strong and problem.penalty.quadratic and not too_large(problem)


def lbfgs_can(problem: Problem) -> bool:
    """Whether L-BFGS takes the problem, with or without a penalty."""
    if extended(problem):
        return problem.loss.blocks
    return problem.loss.gamma > 0.0 and problem.penalty.quadratic


def newton_cg_can(problem: Problem) -> bool:
    """Whether Newton's method with conjugate gradients takes the problem."""
    smooth = problem.loss.differentiable and problem.penalty.quadratic
    return smooth and not extended(problem)


#: What the solvers that need no penalty can do without one.
_CAN = {"newton": newton_can, "newton-cg": newton_cg_can, "lbfgs": lbfgs_can}


def admit(problem: Problem, name: str, options: dict) -> Entry:
    """The entry of the solver called ``name``; refused where it cannot take the problem, reduced
    as it is solved."""
    problem = problem.reduction.problem
    penalty = problem.penalty
    if not isinstance(name, str) or name not in SOLVERS:
        raise ValueError(f"solver={name!r}: not a solver; use one of auto, {', '.join(SOLVERS)}")
    entry = SOLVERS[name].variant(problem)
    blocked = problem.matrix.blocked
    instead = "auto" if blocked else "apdc"  # on blocks what is able depends on the rest
    if joint(problem) and not entry.joint:
        seen = penalty.words if penalty.grouped else "b has several columns"
        raise ValueError(
            f'{seen}: solver="{name}" takes no groups of coefficients; use solver="acf", or "auto"'
        )
    if extended(problem) and not entry.extended:
        if isinstance(penalty, ColumnPenalty) and penalty.absent:  # kinks, within a box
            raise ValueError(
                f'l1=0.0 and l2=0.0: solver="{name}" needs a penalty; use '
                f'solver="{able_to_extend(problem)}", or a small penalty such as l2=1e-8'
            )
        seen = problem.penalty.words if not problem.penalty.uniform else "offset"
        raise ValueError(
            f'{seen}: solver="{name}" takes no weights or bounds of single columns, and no offset '
            f'of the loss "{problem.loss.name}"; use solver="{able_to_extend(problem)}"'
            + ', or "cd"'
            * (problem.loss.gamma > 0.0 and not problem.loss.blocks)
        )
    if not problem.has_certificate and not entry.unpenalised:
        able = [e.name for e in SOLVERS.values() if e.unpenalised and _CAN[e.name](problem)]
        raise ValueError(
            f'l1=0.0 and l2=0.0: without a penalty there is no duality gap, and solver="{name}" '
            "cannot solve it; add a small penalty such as l2=1e-8"
            + "".join(f', or use solver="{other}"' for other in able)
        )
    if "quadratic" in entry.needs and not penalty.quadratic:
        seen = f"l1={penalty.l1!r}" if penalty.l1 > 0.0 else "positive=True"
        raise ValueError(f'{seen}: solver="{name}" takes no penalty but l2; use solver="{instead}"')
    if "differentiable" in entry.needs and not problem.loss.differentiable:
        raise ValueError(
            f'loss="{problem.loss.name}": solver="{name}" needs a smooth loss; use '
            f'solver="{instead}", or a smooth loss such as "smooth_hinge"'
        )
    fits_anyway = small(problem) or entry.extended
    if name == "newton" and not fits_anyway and too_large(problem):
        size = system_size(problem)
        remedy = (
            'use solver="auto"'
            if problem.has_certificate or newton_cg_can(problem)
            else ("use another solver, which needs a penalty such as l2=1e-8")
        )
        raise ValueError(
            f'A has shape {problem.matrix.shape}: solver="newton" would factorise a matrix of '
            f"{size} x {size} numbers ({8e-9 * size * size:.0f} GB); {remedy}"
        )
    if "strongly_convex" in entry.needs and penalty.strong_convexity == 0.0:
        raise ValueError(
            f'l2=0.0: solver="{name}" needs a strongly convex penalty; use l2 > 0, or '
            f'solver="{instead}" for l1 alone'
        )
    if blocked and problem.loss.blocks and name == "newton":
        raise ValueError(
            f'loss="{problem.loss.name}": on data in blocks of rows use solver="newton-cg" in '
            'place of "newton"'
        )
    if problem.loss.blocks and not entry.blocks:
        raise ValueError(
            f'loss="{problem.loss.name}": solver="{name}" takes one number a row; use '
            + ('solver="auto"' if blocked else 'solver="apdc", "spdc" or "adaspdc"')
        )
    if "smooth" in entry.needs and problem.loss.gamma == 0.0:
        raise ValueError(
            f'loss="{problem.loss.name}": solver="{name}" needs a smooth loss; use '
            + ('solver="auto"' if blocked else 'solver="apdc" or "spdc"')
            + ', or a smooth loss such as "smooth_hinge"'
        )
    unknown = sorted(set(options) - entry.options)
    if unknown:
        takes = ", ".join(sorted(entry.options)) or "no options"
        raise ValueError(
            f'{unknown[0]}={options[unknown[0]]!r}: solver="{name}" has no such option; it '
            f"takes {takes}"
        )
    return entry
