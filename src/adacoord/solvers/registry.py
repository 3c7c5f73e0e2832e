"""What each solver can solve, and which one ``auto`` takes.

The registry is consulted before any work: a pair of problem and solver that cannot work is
refused in a sentence that names one that can.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import numpy as np

from ..problem import Problem


@dataclass(frozen=True)
class Entry:
    """A solver and its contract.

    ``needs`` may hold ``"strongly_convex"`` (l2 > 0), ``"smooth"`` (a loss with gamma > 0) and
    ``"quadratic"`` (no l1, no sign);
    ``options`` names the keywords it takes, ``blocks`` says whether it takes losses of several
    numbers a row (multinomial).
    """

    name: str
    summary: str
    module: str
    cls: str
    needs: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    blocks: bool = False

    def load(self) -> type:
        """The solver's class; imported here because its kernels import Numba."""
        return getattr(import_module(f".{self.module}", __package__), self.cls)


#: What the doubly stochastic methods need, and the options of adaptive importance sampling.
_SMOOTH = frozenset({"smooth", "strongly_convex"})
_AIS = frozenset({"sampling", "steps", "delta", "kappa", "delta_passes"})

SOLVERS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("spdc", "stochastic primal-dual coordinates (SPDC)", "spdc", "SPDC",
              options=_AIS | {"batch_size", "alpha", "rho"}),
        Entry("adaspdc", "SPDC with step sizes for each block (AdaSPDC)", "adaspdc", "AdaSPDC",
              options=frozenset({"batch_size", "groups"}), blocks=True),
        Entry("apdc", "adaptive primal-dual coordinates (APDC)", "apdc", "APDC",
              blocks=True),
        Entry("dspdc", "doubly stochastic primal-dual coordinates (DSPDC)", "dspdc", "DSPDC",
              needs=_SMOOTH, options=_AIS),
        Entry("spd1-vr", "variance-reduced primal-dual steps of O(1) (SPD1-VR)", "spd1vr",
              "SPD1VR", needs=_SMOOTH, options=_AIS),
        Entry("dcd", "dual coordinate ascent, shuffled order", "dual_cd",
              "DualCoordinateAscent", needs=frozenset({"strongly_convex"})),
        Entry("sdca", "stochastic dual coordinate ascent, i.i.d. order", "dual_cd",
              "StochasticDualCoordinateAscent", needs=frozenset({"strongly_convex"})),
        Entry("asdca", "SDCA inside an accelerated proximal point (ASDCA)", "baselines.asdca",
              "AcceleratedSDCA", needs=_SMOOTH),
        Entry("sag", "stochastic average gradient (SAG)", "baselines.sag",
              "StochasticAverageGradient", needs=frozenset({"smooth"}),
              options=frozenset({"step"})),
        Entry("afg", "accelerated full gradient with a line search (AFG)", "baselines.afg",
              "AcceleratedFullGradient", needs=frozenset({"smooth"})),
        Entry("lbfgs", "L-BFGS with a memory of 30", "baselines.lbfgs", "LimitedMemoryBFGS",
              needs=frozenset({"smooth", "quadratic"})),
        Entry("pdhg", "batch primal-dual method of Chambolle and Pock (PDHG)", "baselines.pdhg",
              "PrimalDualHybridGradient", needs=_SMOOTH),
    )
}


def choose(problem: Problem) -> str:
    """The solver ``auto`` takes.

    Dual ascent needs about R^2/(n lambda gamma) passes per digit, APDC the square root of that
    or less, at two to three times the cost of a pass: dual ascent for well-conditioned smooth
    problems, APDC for all others (rcv1.subset, hinge, C = 1: 60 passes against 1000; logistic,
    C = 100: 15 against 110; C = 1: 9 against 10).  Poisson's dual is a barrier, which only dual
    ascent copes with.
    """
    lam, gamma = problem.penalty.l2, problem.loss.gamma
    if problem.loss.blocks:
        return "apdc"
    if problem.loss.name == "poisson" and lam > 0.0:
        return "dcd"
    norm = float(np.mean(problem.matrix.squared_norms))
    return "dcd" if problem.n * lam * gamma > 0.3 * norm else "apdc"


def resolve(problem: Problem, solver: str, options: dict) -> Entry:
    """Check the solver against the problem and its options; ``auto`` is resolved here."""
    penalty = problem.penalty
    if not problem.has_certificate:
        raise ValueError(
            "l1=0.0 and l2=0.0: without a penalty there is no duality gap, and none of "
            f"{', '.join(SOLVERS)} can solve it; add a small penalty such as l2=1e-8"
        )
    name = choose(problem) if solver == "auto" else solver
    if not isinstance(name, str) or name not in SOLVERS:
        raise ValueError(
            f"solver={solver!r}: not a solver; use one of auto, {', '.join(SOLVERS)}"
        )
    entry = SOLVERS[name]
    if "quadratic" in entry.needs and (penalty.l1 > 0.0 or penalty.positive):
        seen = f"l1={penalty.l1!r}" if penalty.l1 > 0.0 else "positive=True"
        raise ValueError(
            f'{seen}: solver="{name}" takes no penalty but l2; use solver="apdc"'
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
