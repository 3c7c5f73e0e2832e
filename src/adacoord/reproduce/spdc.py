"""SPDC (Zhang and Xiao, 2017): Figures 1-5 and Table 1.

All step sizes are the paper's (``steps="theory"``); SAG runs with the step gamma/R^2.
"""

from __future__ import annotations

import numpy as np

from .entry import Curve, Entry, Findings, Panel, Rule
from .lab import Data, Lab
from .trace import trace

#: How the paper names its methods, and what runs them.
METHODS = {
    "SPDC": ("spdc", {"steps": "theory"}), "SDCA": ("sdca", {}), "SAG": ("sag", {"step": 1.0}),
    "AFG": ("afg", {}), "L-BFGS": ("lbfgs", {}), "ASDCA": ("asdca", {}),
}


def ridge_data(n: int, d: int, rng: np.random.Generator) -> Data:
    """Section 7.1: a ~ N(0, diag(j^-2)), b = a.1 + N(0, 1)."""
    A = rng.standard_normal((n, d)) / np.arange(1, d + 1)
    return Data("synthetic ridge", A, A.sum(axis=1) + rng.standard_normal(n))


def figure1(lab: Lab) -> Findings:
    """Ridge regression, lambda from 1e-3 to 1e-6, 300 passes."""
    data = ridge_data(500, 500, np.random.default_rng(0))
    limit = 300
    panels, reached = [], {}
    for l2 in (1e-3, 1e-4, 1e-5, 1e-6):
        case, curves = lab.case(data, "squared", l2), []
        for label, (solver, options) in METHODS.items():
            if label == "ASDCA" and l2 > 0.1 * case.problem.matrix.squared_norms.max() / 500:
                continue  # it asks for lambda <= R^2/(10 n gamma)
            lab.tell(f"lambda {l2:g}, {label}")
            run = trace(case.problem, solver, passes=limit, optimum=case.optimum,
                        floor=1e-12, **options)
            curves.append(Curve(label, run.passes, run.primal - case.optimum))
            reached[label, l2] = np.log10(max(run.primal[-1] - case.optimum, 1e-12))
        panels.append(Panel(f"λ = {l2:g}", curves))
    ahead = {m: reached[m, 1e-6] - reached["SPDC", 1e-6] for m in METHODS}
    return Findings(
        measured={"others": min(ahead[m] for m in ("SAG", "SDCA", "L-BFGS")),
                  "asdca": ahead["ASDCA"]},
        panels=[panels[:2], panels[2:]],
    )


ENTRIES = (
    Entry(
        "spdc-fig1", "Figure 1: ridge regression on synthetic data, n = d = 500",
        "when the condition number exceeds n, SPDC converges substantially faster than SAG, SDCA "
        "and L-BFGS, and than ASDCA for small lambda.",
        (
            Rule("others", "digits of P - P* by which SPDC leads the best of SAG, SDCA and L-BFGS "
                 "after 300 passes, lambda = 1e-6", at_least=1.0),
            Rule("asdca", "the same against ASDCA", at_least=1.0),
        ),
        figure1,
    ),
)
