"""What the entries of the AIS paper share: its data sets, its samplings, and how they are compared.

Two runs are compared by the passes to a level that both have reached: ``LEVEL`` if they got that
far, what the worse of them ended at otherwise.
"""

from __future__ import annotations

import math

import numpy as np

from ..problem import Problem
from .entry import PRINTED, Curve, Rule, Table
from .lab import Case, Lab
from .trace import Trace

#: The variants beside the print: what the proofs and the figures have (steps that do not depend on
#: p, eq. 10), and the package's own steps.
FIGURES, PRACTICAL = "as the proofs and figures have it", "with practical steps"
#: Table 2: the data sets and their lambda.
CASES = {"colon-cancer": 1.0, "a2a": 1e-2, "w8a": 1e-2, "gisette": 1e-1}
#: The samplings by the paper's names.
SAMPLING = {"US": "uniform", "LIS": "lipschitz", "AIS": "adaptive"}
#: P - P* of the comparisons; P(0) is 1/2 for the smoothed hinge.
LEVEL = 1e-8
#: Runs end below this.
END = 1e-10
#: Passes of an epoch: x moves at the end of each only.
EPOCH = {"spdc": 1, "dspdc": 1, "spd1-vr": 3}
#: Rows of gisette.
ROWS = {"gisette": 6000}


def table2_case(lab: Lab, name: str, rows: int | None = None) -> Case:
    """A problem of the paper's Table 2, on at most ``rows`` rows."""
    kept = [k for k in (rows, ROWS.get(name)) if k is not None]
    return lab.case(lab.data(name, rows=min(kept, default=None)), "smooth_hinge", CASES[name])


def horizon(problem: Problem, most: int = 2500) -> int:
    """The passes that SPDC's theory predicts to ``LEVEL`` (uniform sampling), 20 to ``most``:
    ln(1/eps) (1 + 2 sqrt(kappa/n)), kappa = R^2/(lambda gamma).

    The paper's delta_t grows over the length of the run, which it does not print.
    """
    lam, gamma = problem.penalty.strong_convexity, problem.loss.gamma
    kappa = problem.matrix.squared_norms.max() / (lam * gamma)
    passes = math.log(1.0 / LEVEL) * (1.0 + 2.0 * math.sqrt(kappa / problem.n))
    return int(min(max(math.ceil(passes), 20), most))


def ratio(run: Trace, other: Trace, optimum: float, axis: str = "passes") -> float:
    """Passes (or another axis) of a run over those of another, to the level that both have reached.

    A run that ends where it began, or worse, or not at a number, never reaches any level.
    """
    last, start = (run.primal[-1] - optimum, other.primal[-1] - optimum), run.primal[0] - optimum
    moved = [v < start for v in last]
    if not all(moved):
        return math.inf if moved[1] else 0.0 if moved[0] else math.nan
    level = max(LEVEL, *last)
    passes = run.to(level, optimum, axis), other.to(level, optimum, axis)
    return passes[0] / passes[1] if passes[1] > 0.0 else math.nan


def lead(runs: dict[str, Trace], optimum: float, axis: str = "passes") -> float:
    """Passes of AIS over those of US, or of LIS: the larger ratio."""
    return float(np.max([ratio(runs["AIS"], runs[k], optimum, axis) for k in ("US", "LIS")]))


def table(rows: list[list[str]]) -> Table:
    """The table of a comparison, of rows by :func:`row`."""
    return Table(
        f"Passes to P - P* = {LEVEL:g} (or where the run ended), and their ratios",
        ["problem", "steps", *SAMPLING, "AIS/US", "AIS/LIS"],
        rows,
    )


def row(problem: str, steps: str, runs: dict[str, Trace], optimum: float) -> list[str]:
    """A row of :func:`table`."""

    def reached(run: Trace) -> str:
        passes = run.to(LEVEL, optimum)
        return f"({run.primal[-1] - optimum:.1e})" if math.isinf(passes) else cell(passes)

    return [
        problem,
        steps,
        *(reached(runs[k]) for k in SAMPLING),
        *(cell(ratio(runs["AIS"], runs[k], optimum)) for k in ("US", "LIS")),
    ]


def curve(label: str, run: Trace, optimum: float) -> Curve:
    """P - P* against passes."""
    return Curve(label, run.passes, np.maximum(run.primal - optimum, 0.1 * END))


def cell(value: float) -> str:
    """A number of a table."""
    if math.isnan(value):
        return "-"
    return "never" if math.isinf(value) else f"{value:.3g}"


def lead_rules(
    names, bound: float, variants: tuple[str, ...] = (PRINTED, FIGURES, PRACTICAL)
) -> tuple[Rule, ...]:
    """A rule a problem and a variant: passes of AIS over those of the better of US and LIS."""
    return tuple(
        Rule(
            f"{name}, {variant}",
            f"{name}: passes of AIS over those of the better of US and LIS",
            at_most=bound,
            variant=variant,
        )
        for variant in variants
        for name in names
    )
