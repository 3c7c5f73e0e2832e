"""What each solver can solve.

The registry is consulted before any work: a pair of problem and solver that cannot work is
refused in a sentence that names one that can.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from ..linalg.moments import fits
from ..problem import Problem
from .newton.size import small, system_size, too_large

#: Matrices of the size of the set that its Gram matrix takes: sums, that of centred columns, its
#: part that is worked on, and a factor.
SET_MATRICES = 4


@dataclass(frozen=True)
class Entry:
    """A solver and its contract.

    ``needs`` may hold ``"strongly_convex"`` (l2 > 0), ``"smooth"`` (a loss with gamma > 0),
    ``"differentiable"`` (a loss with a continuous slope) and ``"quadratic"`` (no l1, no sign);
    ``options`` names the keywords it takes, ``blocks`` says whether it takes losses of several
    numbers a row (multinomial), ``unpenalised`` whether it takes l1 = l2 = 0;
    ``columns`` takes its place where there is an l1 and a smooth loss, ``small`` where the data
    are small, ``kinked`` for losses without a continuous slope, ``nonnegative`` for least squares
    with x >= 0 and no penalty, ``gram`` for least squares on dense data whose Gram matrix fits.
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
    nonnegative: Entry | None = None
    gram: Entry | None = None

    def variant(self, problem: Problem) -> Entry:
        """The entry that solves this problem under this name."""
        if self.small is not None and small(problem):
            return self.small
        if self.nonnegative is not None and nonnegative_least_squares(problem):
            return self.nonnegative
        if self.kinked is not None and not problem.loss.differentiable:
            return self.kinked
        if self.gram is not None and dense_least_squares(problem):
            return self.gram
        sparse = problem.penalty.l1 > 0.0 and problem.loss.gamma > 0.0 and not problem.loss.blocks
        return self.columns.variant(problem) if self.columns is not None and sparse else self

    def load(self) -> type:
        """The solver's class; imported here because its kernels import Numba."""
        return getattr(import_module(f".{self.module}", __package__), self.cls)


#: What the doubly stochastic methods need, and the options of adaptive importance sampling.
_SMOOTH = frozenset({"smooth", "strongly_convex"})
_AIS = frozenset({"sampling", "steps", "delta", "kappa", "delta_passes"})

SOLVERS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "spdc",
            "stochastic primal-dual coordinates (SPDC)",
            "primal_dual.spdc",
            "SPDC",
            options=_AIS | {"batch_size", "alpha", "rho"},
        ),
        Entry(
            "adaspdc",
            "SPDC with step sizes for each block (AdaSPDC)",
            "primal_dual.adaspdc",
            "AdaSPDC",
            options=frozenset({"batch_size", "groups"}),
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
            options=_AIS,
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
        ),
        Entry(
            "acf",
            "adaptive coordinate frequencies (ACF): rows of the dual, or columns",
            "dual.acf",
            "AdaptiveFrequencies",
            needs=frozenset({"strongly_convex"}),
            options=frozenset({"order", "stop", "eps"}),
            columns=Entry(
                "acf",
                "working sets with adaptive frequencies",
                "primal.working_set",
                "WorkingSetDescent",
                needs=frozenset({"smooth"}),
                gram=Entry(
                    "acf",
                    "working sets with their Gram matrix",
                    "primal.gram_set",
                    "GramWorkingSet",
                ),
            ),
        ),
        Entry(
            "cd",
            "coordinate descent, cyclic order",
            "primal.primal_cd",
            "CoordinateDescent",
            needs=frozenset({"smooth"}),
            options=frozenset({"order"}),
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
            options=frozenset({"step"}),
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
            unpenalised=True,
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


def nonnegative_least_squares(problem: Problem) -> bool:
    """Least squares with x >= 0 and no penalty."""
    return (
        problem.loss.name == "squared" and problem.penalty.positive and not problem.has_certificate
    )


def dense_least_squares(problem: Problem) -> bool:
    """The squared loss on dense data that are not small, where the Gram matrix of any set of
    columns that may be wanted fits (``linalg.moments.LARGEST``): of all of them, or for l1 alone of
    not many more than there are rows."""
    most = problem.d
    if problem.penalty.strong_convexity == 0.0:
        most = min(most, 2 * problem.n)
    return (
        problem.loss.name == "squared"
        and problem.matrix.is_dense
        and not small(problem)
        and fits(most, SET_MATRICES)
    )


def newton_can(problem: Problem) -> bool:
    """Whether Newton's method takes the problem and its system fits into memory."""
    strong = problem.loss.differentiable or problem.penalty.strong_convexity > 0.0
    return strong and problem.penalty.quadratic and not too_large(problem)


def lbfgs_can(problem: Problem) -> bool:
    """Whether L-BFGS takes the problem, with or without a penalty."""
    return problem.loss.gamma > 0.0 and problem.penalty.quadratic


def newton_cg_can(problem: Problem) -> bool:
    """Whether Newton's method with conjugate gradients takes the problem."""
    return problem.loss.differentiable and problem.penalty.quadratic


#: What the solvers that need no penalty can do without one.
_CAN = {"newton": newton_can, "newton-cg": newton_cg_can, "lbfgs": lbfgs_can}


def admit(problem: Problem, name: str, options: dict) -> Entry:
    """The entry of the solver called ``name``; refused where it cannot take the problem."""
    penalty = problem.penalty
    if not isinstance(name, str) or name not in SOLVERS:
        raise ValueError(f"solver={name!r}: not a solver; use one of auto, {', '.join(SOLVERS)}")
    entry = SOLVERS[name].variant(problem)
    if not problem.has_certificate and not entry.unpenalised:
        able = [e.name for e in SOLVERS.values() if e.unpenalised and _CAN[e.name](problem)]
        raise ValueError(
            f'l1=0.0 and l2=0.0: without a penalty there is no duality gap, and solver="{name}" '
            "cannot solve it; add a small penalty such as l2=1e-8"
            + "".join(f', or use solver="{other}"' for other in able)
        )
    if "quadratic" in entry.needs and not penalty.quadratic:
        seen = f"l1={penalty.l1!r}" if penalty.l1 > 0.0 else "positive=True"
        raise ValueError(f'{seen}: solver="{name}" takes no penalty but l2; use solver="apdc"')
    if "differentiable" in entry.needs and not problem.loss.differentiable:
        raise ValueError(
            f'loss="{problem.loss.name}": solver="{name}" needs a smooth loss; use '
            'solver="apdc", or a smooth loss such as "smooth_hinge"'
        )
    if name == "newton" and not small(problem) and too_large(problem):
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
            f'solver="apdc" for l1 alone'
        )
    if problem.loss.blocks and not entry.blocks:
        raise ValueError(
            f'loss="{problem.loss.name}": solver="{name}" takes one number a row; use '
            'solver="apdc" or "adaspdc"'
        )
    if "smooth" in entry.needs and problem.loss.gamma == 0.0:
        raise ValueError(
            f'loss="{problem.loss.name}": solver="{name}" needs a smooth loss; use '
            'solver="apdc" or "spdc", or a smooth loss such as "smooth_hinge"'
        )
    unknown = sorted(set(options) - entry.options)
    if unknown:
        takes = ", ".join(sorted(entry.options)) or "no options"
        raise ValueError(
            f'{unknown[0]}={options[unknown[0]]!r}: solver="{name}" has no such option; it '
            f"takes {takes}"
        )
    return entry
