"""What each solver can solve, and which one ``auto`` takes.

The registry is consulted before any work: a pair of problem and solver that cannot work is
refused in a sentence that names one that can.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import numpy as np

from ..problem import Problem
from .newton.size import affordable, small, small_system, system_size, too_large


@dataclass(frozen=True)
class Entry:
    """A solver and its contract.

    ``needs`` may hold ``"strongly_convex"`` (l2 > 0), ``"smooth"`` (a loss with gamma > 0),
    ``"differentiable"`` (a loss with a continuous slope) and ``"quadratic"`` (no l1, no sign);
    ``options`` names the keywords it takes, ``blocks`` says whether it takes losses of several
    numbers a row (multinomial), ``unpenalised`` whether it takes l1 = l2 = 0;
    ``columns`` takes its place where there is an l1 and a smooth loss, ``small`` where the data
    are small, ``nonnegative`` for least squares with x >= 0 and no penalty.
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
    nonnegative: Entry | None = None

    def variant(self, problem: Problem) -> Entry:
        """The entry that solves this problem under this name."""
        if self.small is not None and small(problem):
            return self.small
        if self.nonnegative is not None and _nonnegative(problem):
            return self.nonnegative
        sparse = problem.penalty.l1 > 0.0 and problem.loss.gamma > 0.0 and not problem.loss.blocks
        return self.columns if self.columns is not None and sparse else self

    def load(self) -> type:
        """The solver's class; imported here because its kernels import Numba."""
        return getattr(import_module(f".{self.module}", __package__), self.cls)


#: What the doubly stochastic methods need, and the options of adaptive importance sampling.
_SMOOTH = frozenset({"smooth", "strongly_convex"})
_AIS = frozenset({"sampling", "steps", "delta", "kappa", "delta_passes"})

SOLVERS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("spdc", "stochastic primal-dual coordinates (SPDC)", "primal_dual.spdc", "SPDC",
              options=_AIS | {"batch_size", "alpha", "rho"}),
        Entry("adaspdc", "SPDC with step sizes for each block (AdaSPDC)", "primal_dual.adaspdc",
              "AdaSPDC", options=frozenset({"batch_size", "groups"}), blocks=True),
        Entry("apdc", "adaptive primal-dual coordinates (APDC)", "primal_dual.apdc", "APDC",
              blocks=True),
        Entry("dspdc", "doubly stochastic primal-dual coordinates (DSPDC)", "doubly.dspdc", "DSPDC",
              needs=_SMOOTH, options=_AIS),
        Entry("spd1-vr", "variance-reduced primal-dual steps of O(1) (SPD1-VR)", "doubly.spd1vr",
              "SPD1VR", needs=_SMOOTH, options=_AIS),
        Entry("dcd", "dual coordinate ascent, shuffled order", "dual.dual_cd",
              "DualCoordinateAscent", needs=frozenset({"strongly_convex"})),
        Entry("acf", "adaptive coordinate frequencies (ACF): rows of the dual, or columns",
              "dual.acf", "AdaptiveFrequencies", needs=frozenset({"strongly_convex"}),
              options=frozenset({"order", "stop", "eps"}),
              columns=Entry("acf", "working sets with adaptive frequencies", "primal.working_set",
                            "WorkingSetDescent", needs=frozenset({"smooth"}))),
        Entry("cd", "coordinate descent, cyclic order", "primal.primal_cd", "CoordinateDescent",
              needs=frozenset({"smooth"}), options=frozenset({"order"})),
        Entry("sdca", "stochastic dual coordinate ascent, i.i.d. order", "dual.dual_cd",
              "StochasticDualCoordinateAscent", needs=frozenset({"strongly_convex"})),
        Entry("newton", "Newton's method with Cholesky's factorisation", "newton.newton", "Newton",
              needs=frozenset({"differentiable", "quadratic"}), blocks=True, unpenalised=True,
              small=Entry("newton", "Newton's method to the last digit of small problems",
                          "newton.small", "SmallNewton"),
              nonnegative=Entry("newton", "active sets for least squares with x >= 0",
                                "newton.nonnegative", "NonNegativeLeastSquares",
                                unpenalised=True)),
        Entry("asdca", "SDCA inside an accelerated proximal point (ASDCA)", "baselines.asdca",
              "AcceleratedSDCA", needs=_SMOOTH),
        Entry("sag", "stochastic average gradient (SAG)", "baselines.sag",
              "StochasticAverageGradient", needs=frozenset({"smooth"}),
              options=frozenset({"step"})),
        Entry("afg", "accelerated full gradient with a line search (AFG)", "baselines.afg",
              "AcceleratedFullGradient", needs=frozenset({"smooth"})),
        Entry("lbfgs", "L-BFGS with a memory of 30", "baselines.lbfgs", "LimitedMemoryBFGS",
              needs=frozenset({"smooth", "quadratic"}), unpenalised=True),
        Entry("pdhg", "batch primal-dual method of Chambolle and Pock (PDHG)", "baselines.pdhg",
              "PrimalDualHybridGradient", needs=_SMOOTH),
    )
}


def _nonnegative(problem: Problem) -> bool:
    """Least squares with x >= 0 and no penalty."""
    return (problem.loss.name == "squared" and problem.penalty.positive
            and not problem.has_certificate)


def newton_can(problem: Problem) -> bool:
    """Whether Newton's method takes the problem and its system fits into memory."""
    penalty = problem.penalty
    return (
        problem.loss.differentiable and penalty.l1 == 0.0 and not penalty.positive
        and not too_large(problem)
    )


def lbfgs_can(problem: Problem) -> bool:
    """Whether L-BFGS takes the problem, with or without a penalty."""
    penalty, loss = problem.penalty, problem.loss
    return loss.gamma > 0.0 and not loss.blocks and penalty.l1 == 0.0 and not penalty.positive


#: What the solvers that need no penalty can do without one.
_CAN = {"newton": newton_can, "lbfgs": lbfgs_can}


def conditioning(problem: Problem) -> float:
    """n l2 gamma/R^2, with the mean R^2 of the rows, and gamma = 1 for losses with kinks."""
    squares = float(np.mean(problem.matrix.squared_norms)) or 1.0
    return problem.n * problem.penalty.l2 * (problem.loss.gamma or 1.0) / squares


def rows_meet(problem: Problem) -> bool:
    """Whether rows have columns in common; where they have not, dual ascent needs few passes.

    Margins put up with more of it than residuals: most duals of a classifier come to rest.
    """
    classifies = problem.loss.task == "classification"
    return problem.n >= (2.0 if classifies else 0.5) * problem.d


def choose(problem: Problem) -> str:
    """The solver ``auto`` takes.

    Newton's method where its systems are cheap (:mod:`.newton_size`).  ACF on working sets of
    columns wherever there is an l1 and a smooth loss, unless l2 makes the problem
    well-conditioned and outweighs l1: then dual ascent.  rcv1.subset, a9a and leukemia,
    squared and logistic, l1 = l1_max/10 and /100, l2 = l1/100 and l1, to 1e-6: ACF is 1.6 to 100
    times faster than APDC on all 24; 0.6 to 200 times as fast as dual ascent, behind it by more
    than a tenth only on a9a (161 ms against 97, squared, and 280 against 242, logistic).

    ACF on rows for l2 alone, wherever duals come to rest at bounds, Newton steps are cheap or the
    problem is well-conditioned; APDC for what is left.  Seconds to a relative gap of 1e-6, ACF /
    APDC (unit rows; one run on a busy machine: compare, do not quote):

    ======================  ======================================================================
    few columns             a9a, C = 100: hinge .39/1.66, logistic .29/.66, squared .11/.89
    more columns than rows  rcv1.subset: hinge .46/2.5 (C = 1), 1.5/16 (100); logistic .53/.91 (100)
    ... regression          rcv1.subset, squared: .45/1.3 (C = 1), 2.7/2.3 (10), 10 or more/5 (100)
    tall, many columns      mnist: hinge .37/1.3 (C = 1), logistic .36/.68 (1), 3.8/1.5 (100)
    ======================  ======================================================================

    APDC needs about the square root of the passes of dual ascent, at two to three times their
    cost (five, with an l1).  Poisson's dual is a barrier, which only dual ascent copes with.
    What is wrong all the same, :mod:`adacoord.auto.fallback` repairs.
    """
    if small(problem) or _nonnegative(problem):
        return "newton"
    if problem.loss.blocks and newton_can(problem) and small_system(problem):
        return "newton"
    return choose_large(problem)


def choose_large(problem: Problem) -> str:
    """The same without regard to :mod:`.newton.small`: what goes on where that is stuck."""
    from .newton import dual_proximal as dual_newton

    penalty, gamma = problem.penalty, problem.loss.gamma
    if newton_can(problem) and (penalty.l2 == 0.0 or affordable(problem)):
        return "newton"
    if not problem.has_certificate and lbfgs_can(problem):
        return "lbfgs"
    if problem.loss.blocks:
        return "apdc"
    good = conditioning(problem)
    if penalty.l1 > 0.0 and gamma > 0.0:
        rows = float(np.mean(problem.matrix.squared_norms)) ** 0.5
        return "dcd" if good > 1.0 and penalty.l1 * rows <= penalty.l2 else "acf"
    if penalty.l2 == 0.0:
        return "apdc"
    if penalty.l1 > 0.0 or penalty.positive:
        if problem.loss.name == "poisson":
            return "dcd"
        easy = good > (0.03 if gamma == 0.0 and problem.loss.task == "classification" else 0.3)
        return ("dcd" if gamma else "acf") if easy else "apdc"
    easy = good > (0.3 if gamma else 0.03)
    if easy or not rows_meet(problem) or problem.loss.name == "poisson":
        return "acf"
    # with kinks few rows keep their curvature, but far from the optimum they are too many
    turns = dual_newton.within_reach(problem) if good > 1e-3 else (
        dual_newton.affordable(problem, problem.active))
    return "acf" if turns else "apdc"


def resolve(problem: Problem, solver: str, options: dict) -> Entry:
    """Check the solver against the problem and its options; ``auto`` is resolved here."""
    penalty = problem.penalty
    name = choose(problem) if solver == "auto" else solver
    if not isinstance(name, str) or name not in SOLVERS:
        raise ValueError(
            f"solver={solver!r}: not a solver; use one of auto, {', '.join(SOLVERS)}"
        )
    entry = SOLVERS[name].variant(problem)
    if not problem.has_certificate and not entry.unpenalised:
        able = [e.name for e in SOLVERS.values() if e.unpenalised and _CAN[e.name](problem)]
        raise ValueError(
            f'l1=0.0 and l2=0.0: without a penalty there is no duality gap, and solver="{name}" '
            "cannot solve it; add a small penalty such as l2=1e-8"
            + "".join(f', or use solver="{other}"' for other in able)
        )
    if "quadratic" in entry.needs and (penalty.l1 > 0.0 or penalty.positive):
        seen = f"l1={penalty.l1!r}" if penalty.l1 > 0.0 else "positive=True"
        raise ValueError(
            f'{seen}: solver="{name}" takes no penalty but l2; use solver="apdc"'
        )
    if "differentiable" in entry.needs and not problem.loss.differentiable:
        raise ValueError(
            f'loss="{problem.loss.name}": solver="{name}" needs a smooth loss; use '
            'solver="apdc", or a smooth loss such as "smooth_hinge"'
        )
    if name == "newton" and not small(problem) and too_large(problem):
        size = system_size(problem)
        remedy = 'use solver="auto"' if problem.has_certificate or lbfgs_can(problem) else (
            "use another solver, which needs a penalty such as l2=1e-8")
        raise ValueError(
            f'A has shape {problem.matrix.shape}: solver="newton" would factorise a matrix of '
            f"{size} x {size} numbers ({8e-9 * size * size:.0f} GB); {remedy}"
        )
    if "strongly_convex" in entry.needs and penalty.l2 == 0.0:
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
