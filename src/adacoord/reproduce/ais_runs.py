"""What the entries of the AIS paper share: its data sets, its samplings, and how they are compared.

Two runs are compared by the passes to a level that both have reached: ``LEVEL`` if they got that
far, what the slowest reached otherwise.
"""

from __future__ import annotations

import math

import numpy as np

from ..problem import Problem
from .entry import Curve, Rule
from .lab import Case, Lab
from .trace import Trace

#: Table 2: the data sets and their lambda.
CASES = {"colon-cancer": 1.0, "a2a": 1e-2, "w8a": 1e-2, "gisette": 1e-1}
#: The samplings by the paper's names.
SAMPLING = {"US": "uniform", "LIS": "lipschitz", "AIS": "adaptive"}
#: P - P* of the comparisons; P(0) is 1/2 for the smoothed hinge.
LEVEL = 1e-8
#: Runs end below this.
END = 1e-10
#: Rows of gisette.
ROWS = {"gisette": 6000}


def table2_case(lab: Lab, name: str, rows: int | None = None) -> Case:
    """A problem of the paper's Table 2, on at most ``rows`` rows."""
    kept = [k for k in (rows, ROWS.get(name)) if k is not None]
    return lab.case(lab.data(name, rows=min(kept, default=None)), "smooth_hinge", CASES[name])


def horizon(problem: Problem, digits: float = 6.0) -> int:
    """The passes that SPDC's theory predicts to 10^-digits (uniform sampling), from 20 to 300.

    The paper's delta_t grows over the length of the run, which it does not print.
    """
    lam, gamma = problem.penalty.l2, problem.loss.gamma
    R = math.sqrt(problem.matrix.squared_norms.max())
    passes = math.log(10.0) * digits * (1.0 + 2.0 * R / math.sqrt(problem.n * lam * gamma))
    return int(min(max(math.ceil(passes), 20), 300))


def common_passes(runs: dict[str, Trace], optimum: float) -> tuple[float, dict[str, float]]:
    """(level, passes of each run to it): ``LEVEL``, or what the slowest run has reached.

    A run that ends where it began, or worse, or not at a number, never reaches any level.
    """
    last = {k: run.primal[-1] - optimum for k, run in runs.items()}
    moved = {k: v for k, v in last.items() if v < runs[k].primal[0] - optimum}
    level = max([LEVEL, *moved.values()])
    return level, {k: runs[k].to(level, optimum) if k in moved else math.inf for k in runs}


def lead(passes: dict[str, float]) -> float:
    """Passes of AIS over those of the better of US and LIS."""
    other = min(passes["US"], passes["LIS"])
    if math.isinf(other):
        return math.nan if math.isinf(passes["AIS"]) else 0.0
    return passes["AIS"] / other if other > 0.0 else math.nan


def curve(label: str, run: Trace, optimum: float) -> Curve:
    """P - P* against passes."""
    return Curve(label, run.passes, np.maximum(run.primal - optimum, 0.1 * END))


def cell(value: float) -> str:
    """A number of a table."""
    if math.isnan(value):
        return "-"
    return "never" if math.isinf(value) else f"{value:.3g}"


def rules_for(names, text: str, bound: float, variant: str) -> tuple[Rule, ...]:
    """A rule a name: passes of AIS over those of the better of US and LIS."""
    return tuple(Rule(f"{name}, {variant}", f"{name}: {text}", at_most=bound, variant=variant)
                 for name in names)
