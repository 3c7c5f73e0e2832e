"""The runs of SPDC's figures: its methods and their rivals on one problem, compared by passes.

All step sizes are the paper's (``steps="theory"``); SAG runs with the step gamma/R^2.  A pass of
the batch methods is one gradient with its function value: a product with A and one with its
transpose, the work of a pass of SPDC.  (Their ``passes`` elsewhere in the package count each
product, so they are halved here.)  L-BFGS comes twice: ours, whose line search costs no product
and is nearly exact, and :func:`wolfe_lbfgs`, as everybody had it, which evaluates f and f' for
every step it tries.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..problem import Problem
from .entry import Curve, Panel
from .lab import Case, Lab
from .trace import Trace, lead, speedup

#: How the paper names its methods, and what runs them.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "SPDC": ("spdc", {"steps": "theory"}),
    "SDCA": ("sdca", {}),
    "SAG": ("sag", {"step": 1.0}),
    "AFG": ("afg", {}),
    "L-BFGS": ("lbfgs", {}),
    "L-BFGS, Wolfe": ("scipy", {}),
    "ASDCA": ("asdca", {}),
    "SPDC, practical": ("spdc", {"steps": "practical"}),
    "weighted SPDC": ("spdc", {"steps": "theory", "sampling": "weighted"}),
}
BATCH, STOCHASTIC = ("AFG", "L-BFGS"), ("SAG", "SDCA")
OF_THE_TIME = ("AFG", "L-BFGS, Wolfe")
#: Curves end at this P - P*, and a method that is there has arrived.
FLOOR, ARRIVED = 1e-10, 1e-8
COUNTING = (
    "A pass of AFG and L-BFGS is one gradient with its function value (two products with "
    "A), which is the work of a pass of SPDC."
)


@dataclass(frozen=True)
class Race:
    """The runs of some methods on one problem."""

    case: Case
    passes: int
    runs: dict[str, Trace]

    def speedup(self, mine: str, *others: str) -> float:
        """Passes of the best of the others over mine; see :func:`.trace.speedup`."""
        return min(
            speedup(self.runs[mine], self.runs[o], self.case.optimum, self.passes, ARRIVED)
            for o in others
        )

    def lead(self, mine: str, *others: str) -> float:
        """Digits by which mine is ahead of the best of the others; see :func:`.trace.lead`."""
        return min(
            lead(self.runs[mine], self.runs[o], self.case.optimum, self.passes, ARRIVED)
            for o in others
        )

    def panel(self, title: str, labels=None) -> Panel:
        return Panel(
            title,
            [
                Curve(label, run.passes, run.primal - self.case.optimum)
                for label, run in self.runs.items()
                if labels is None or label in labels
            ],
        )

    def reached(self, label: str, level: float) -> str:
        """Passes to P - P* <= level, as a table has it."""
        return passes_text(self.runs[label].to(level, self.case.optimum))


def power(value: float) -> str:
    """A power of ten, as figures have it."""
    return f"{value:.0e}".replace("e-0", "e-")


def passes_text(value: float) -> str:
    """Passes, as tables have them."""
    return f"{value:.0f}" if np.isfinite(value) else "more"


def ratio_text(value: float) -> str:
    """A ratio of passes, as tables have it."""
    return f"{value:.2f}" if np.isfinite(value) else "more"


def theory_passes(case: Case, accuracy: float = 1e-8) -> int:
    """Passes that theory asks for: ln(1/eps)(1 + 2 sqrt(kappa/n))."""
    problem = case.problem
    kappa = float(problem.matrix.squared_norms.max()) / (case.l2 * problem.loss.gamma)
    return int(np.ceil(np.log(1.0 / accuracy) * (1.0 + 2.0 * np.sqrt(kappa / problem.n))))


class _Enough(Exception):
    """Thrown through SciPy's loop, which has no other end from inside an evaluation."""


def wolfe_lbfgs(problem: Problem, passes: int, optimum: float, floor: float) -> Trace:
    """SciPy's L-BFGS-B with a memory of 30: the best P after each evaluation of P and P'."""
    values = [problem.null_value]

    def evaluate(x):
        z = problem.matrix.dot(x)
        value = problem._mean(problem.loss.value(z, problem.b)) + problem.penalty.value(x)
        values.append(min(values[-1], value))
        if values[-1] - optimum <= floor or len(values) > passes:
            raise _Enough
        slope = problem.average(problem.loss.derivative(z, problem.b))
        return value, slope + problem.penalty.l2 * x

    with suppress(_Enough):
        minimize(
            evaluate,
            np.zeros(problem.d),
            jac=True,
            method="L-BFGS-B",
            options={"maxcor": 30, "maxiter": passes, "maxfun": passes, "ftol": 0.0, "gtol": 0.0},
        )
    counts = np.arange(len(values), dtype=float)
    nothing = np.full(counts.size, np.nan)
    return Trace(counts, nothing, counts * 2 * problem.matrix.nnz, np.array(values), nothing)


def race(lab: Lab, case: Case, labels, passes: int, what: str, floor: float = FLOOR) -> Race:
    """Run the methods on the case, or take their runs from earlier figures."""
    runs = {}
    for label in labels:
        lab.tell(f"{what}, {label}")
        solver, options = METHODS[label]
        if solver == "scipy":
            runs[label] = lab.once(
                (id(case), solver, passes, floor),
                lambda: wolfe_lbfgs(case.problem, passes, case.optimum, floor),
            )
            continue
        products = 2 if label in BATCH else 1
        run = lab.trace(case, solver, passes=products * passes, floor=floor, **options)
        runs[label] = replace(run, passes=run.passes / products)
    return Race(case, passes, runs)


def asdca_applies(case: Case) -> bool:
    """ASDCA asks for lambda <= R^2/(10 n gamma)."""
    problem = case.problem
    R2 = float(problem.matrix.squared_norms.max())
    return bool(case.l2 <= R2 / (10.0 * problem.n * problem.loss.gamma))
