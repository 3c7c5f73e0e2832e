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

    ``needs`` may hold ``"strongly_convex"`` (l2 > 0) and ``"smooth"`` (a loss with gamma > 0);
    ``options`` names the keywords it takes.
    """

    name: str
    summary: str
    module: str
    cls: str
    needs: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()

    def load(self) -> type:
        """The solver's class; imported here because its kernels import Numba."""
        return getattr(import_module(f".{self.module}", __package__), self.cls)


SOLVERS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("spdc", "stochastic primal-dual coordinates (SPDC)", "spdc", "SPDC",
              options=frozenset({"sampling", "steps", "batch_size", "alpha"})),
        Entry("dcd", "dual coordinate ascent, shuffled order", "dual_cd",
              "DualCoordinateAscent", needs=frozenset({"strongly_convex"})),
        Entry("sdca", "stochastic dual coordinate ascent, i.i.d. order", "dual_cd",
              "StochasticDualCoordinateAscent", needs=frozenset({"strongly_convex"})),
    )
}


def choose(problem: Problem) -> str:
    """The solver ``auto`` takes.

    SPDC where there are more rows than columns and dual ascent would need many passes: it takes
    about R^2/(n lambda gamma) of them per digit, SPDC the square root of that (w8a, smoothed
    hinge, l2 = 1e-5: 47 passes against 264).  For kinked losses SPDC wins there too (w8a, hinge,
    l2 = 1e-4: 152 against 400).  With n <= d dual ascent is better conditioned than that bound
    tells.  Poisson's dual is a barrier, which only dual ascent copes with.
    """
    lam, gamma = problem.penalty.l2, problem.loss.gamma
    if lam == 0.0:
        return "spdc"
    if problem.n <= problem.d or problem.loss.name == "poisson":
        return "dcd"
    norm = float(np.mean(problem.matrix.squared_norms))
    return "dcd" if problem.n * lam * gamma > 0.3 * norm else "spdc"


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
    if "strongly_convex" in entry.needs and penalty.l2 == 0.0:
        raise ValueError(
            f'l2=0.0: solver="{name}" needs a strongly convex penalty; use l2 > 0, or '
            f'solver="spdc" for l1 alone'
        )
    unknown = sorted(set(options) - entry.options)
    if unknown:
        takes = ", ".join(sorted(entry.options)) or "no options"
        raise ValueError(
            f'{unknown[0]}={options[unknown[0]]!r}: solver="{name}" has no such option; it '
            f"takes {takes}"
        )
    return entry
