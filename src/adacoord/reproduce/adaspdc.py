"""AdaSPDC (Zhu and Storkey, 2015): Figures 1-3.

As in its Section 4: one row a step, SPDC with uniform and with weighted sampling at their
theoretical steps, SAG at the best of five steps from 1/(16 L) to 1/L, means over runs with other
seeds, a column of ones for the bias, rows as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .entry import Curve, Entry, Findings, Panel, Rule, Table
from .lab import Case, Lab
from .spdc import passes_text, power, ridge_data
from .trace import Trace, lead, mean_trace

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "SDCA": ("sdca", {}),
    "SPDC": ("spdc", {"steps": "theory"}),
    "weighted SPDC": ("spdc", {"steps": "theory", "sampling": "weighted"}),
    "AdaSPDC": ("adaspdc", {}),
}
OTHERS = ("SDCA", "SAG", "SPDC", "weighted SPDC")
#: Steps of SAG in units of 1/L.
SAG_STEPS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
FLOOR, ARRIVED = 1e-10, 1e-8
#: Figures 2 and 3: {set: (rows, passes, runs)}.
QUICK = {"w8a": (None, 40, 1), "covtype": (60_000, 20, 1), "rcv1": (None, 40, 1)}
FULL = {"w8a": (None, 60, 10), "covtype": (None, 20, 5), "rcv1": (None, 60, 10)}


def best_sag_step(lab: Lab, case: Case, passes: int) -> float:
    """The step with the smallest P at the end."""

    def end(step):
        last = lab.trace(case, "sag", passes=passes, floor=FLOOR, step=step).primal[-1]
        return last if np.isfinite(last) else np.inf

    return min(SAG_STEPS, key=end)


def runs_of(lab: Lab, case: Case, sag_step: float, passes: int, seeds: int, what: str):
    """({label: mean run}, the largest standard deviation of log10(P - P*) at the end)."""
    methods = {**METHODS, "SAG": ("sag", {"step": sag_step})}
    means, spread = {}, 0.0
    for label, (solver, options) in methods.items():
        lab.tell(f"{what}, {label}")
        traces = [
            lab.trace(case, solver, passes=passes, floor=FLOOR, seed=seed, **options)
            for seed in range(seeds)
        ]
        ends = [np.log10(max(t.primal[-1] - case.optimum, FLOOR)) for t in traces]
        spread = max(spread, float(np.std(ends)))
        means[label] = mean_trace(traces)
    return means, spread


def ahead(means: dict[str, Trace], case: Case, passes: int, *others: str) -> float:
    """Digits by which AdaSPDC leads the best of the others; see :func:`.trace.lead`."""
    return min(lead(means["AdaSPDC"], means[o], case.optimum, passes, ARRIVED) for o in others)


def _panel(title: str, case: Case, means: dict[str, Trace]) -> Panel:
    return Panel(
        title, [Curve(label, run.passes, run.primal - case.optimum) for label, run in means.items()]
    )


def _tables(results: dict, level: float) -> list[Table]:
    """``results``: {problem: (case, mean runs, passes, step of SAG)}."""
    labels = (*OTHERS, "AdaSPDC")
    return [
        Table(
            f"Passes to P - P* = {level:g}, and SAG's step in units of 1/L",
            ["problem", *labels, "step"],
            [
                [
                    name,
                    *(passes_text(means[m].to(level, case.optimum)) for m in labels),
                    f"{step:g}",
                ]
                for name, (case, means, _, step) in results.items()
            ],
        ),
        Table(
            "Digits of P - P* by which AdaSPDC leads, at the end or when it is at 1e-8",
            ["problem", *OTHERS],
            [
                [name, *(f"{ahead(means, case, passes, m):.2f}" for m in OTHERS)]
                for name, (case, means, passes, _) in results.items()
            ],
        ),
    ]


def _spread_remark(spreads: list[float]) -> str:
    return (
        "Between runs log10(P - P*) at the end has a standard deviation of "
        f"{max(spreads):.2f} at most."
    )


def figure1(lab: Lab) -> Findings:
    """Ridge regression, n = d = 1000, lambda from 1e-3 to 1e-6, 300 passes."""
    size = lab.choose(400, 1000)
    data = ridge_data(size, size, np.random.default_rng(0))
    passes, seeds = 300, lab.choose(2, 10)
    results, panels, spreads = {}, [], []
    for l2 in lab.choose((1e-4, 1e-6), (1e-3, 1e-4, 1e-5, 1e-6)):
        case, what = lab.case(data, "squared", l2), f"λ = {power(l2)}"
        step = best_sag_step(lab, case, passes)
        means, spread = runs_of(lab, case, step, passes, seeds, what)
        results[what] = case, means, passes, step
        panels.append(_panel(what, case, means))
        spreads.append(spread)
    case, means, *_ = results["λ = 1e-6"]
    return Findings(
        measured={
            "spdc": ahead(means, case, passes, "SPDC"),
            "weighted": ahead(means, case, passes, "weighted SPDC"),
            "all": min(ahead(m, c, passes, *OTHERS) for c, m, *_ in results.values()),
        },
        panels=[panels[:2], panels[2:]] if len(panels) > 2 else [panels],
        tables=_tables(results, 1e-3),
        remarks=[
            f"Means of {seeds} runs (the paper: 10).",
            _spread_remark(spreads),
            *["n = d = 400 only."] * lab.quick,
        ],
    )


def _real_data(lab: Lab, loss: str) -> Findings:
    sets = lab.choose(QUICK, FULL)
    lambdas = lab.choose((1e-5, 1e-7), (1e-5, 1e-6, 1e-7))
    results, panels, leads, spreads = {}, [], {}, []
    for name, (rows, passes, seeds) in sets.items():
        data = lab.data(name, bias=True, rows=rows)
        cases = [lab.case(data, loss, l2) for l2 in lambdas]
        lab.tell(f"{name}, steps of SAG")
        step = best_sag_step(lab, cases[-1], passes)
        row = []
        for case in cases:
            what = f"{name}, λ = {power(case.l2)}"
            means, spread = runs_of(lab, case, step, passes, seeds, what)
            results[what] = case, means, passes, step
            leads[name, case.l2] = ahead(means, case, passes, *OTHERS)
            row.append(_panel(what, case, means))
            spreads.append(spread)
        panels.append(row)
    return Findings(
        measured={
            **{name: min(v for (n, _), v in leads.items() if n == name) for name in sets},
            "small": float(np.mean([v for (_, l2), v in leads.items() if l2 == 1e-7])),
        },
        panels=panels,
        tables=_tables(results, 1e-5),
        remarks=[
            "Means of "
            + ", ".join(f"{seeds} ({name})" for name, (_, _, seeds) in sets.items())
            + " runs (the paper: 10).",
            *[_spread_remark(spreads)] * (max(spreads) > 0.0),
            'The paper\'s row "covertype" has the numbers of RCV1 (20,242 x 47,236, 0.16 %): '
            "both are run. url, quantum and protein are not at hand and left out.",
            "The step of SAG was chosen for each set at the smallest lambda, as the best of five.",
            _norms_remark(results),
        ],
    )


def _norms_remark(results: dict) -> str:
    said = {}
    for case, *_ in results.values():
        norms = np.sqrt(case.problem.matrix.squared_norms)
        said[case.data.name] = f"{case.data.name} {norms.max() / norms.mean():.2f}"
    return (
        "R over the mean norm, bias included: "
        + ", ".join(said.values())
        + "; where it is near 1, AdaSPDC is SPDC."
    )


def figure2(lab: Lab) -> Findings:
    """Smoothed hinge."""
    return _real_data(lab, "smooth_hinge")


def figure3(lab: Lab) -> Findings:
    """Logistic loss."""
    return _real_data(lab, "logistic")


_REAL = (
    *(
        Rule(
            name,
            "digits of P - P* by which AdaSPDC leads the best other method at the end (or "
            f"when it is at 1e-8), {name}, worst lambda",
            at_least=-0.3,
        )
        for name in FULL
    ),
    Rule("small", "the same, mean of the sets at lambda = 1e-7", at_least=0.3),
)
_CLAIM = (
    "AdaSPDC performs better than or comparably with SDCA, SAG and SPDC of either sampling, "
    "and especially well for small lambda."
)

ENTRIES = (
    Entry(
        "ada-fig1",
        "Figure 1: ridge regression on synthetic data, n = d = 1000",
        "AdaSPDC converges substantially faster than the others, particularly on ill-conditioned "
        "problems: 100 times closer than both variants of SPDC at lambda = 1e-6, 300 passes.",
        (
            Rule(
                "spdc",
                "digits of P - P* by which AdaSPDC leads SPDC after 300 passes, lambda = 1e-6",
                at_least=2.0,
            ),
            Rule("weighted", "the same against SPDC with weighted sampling", at_least=2.0),
            Rule("all", "the same against the best other method, worst lambda", at_least=0.0),
        ),
        figure1,
    ),
    Entry("ada-fig2", "Figure 2: smoothed hinge, real data", _CLAIM, _REAL, figure2),
    Entry("ada-fig3", "Figure 3: logistic loss, real data", _CLAIM, _REAL, figure3),
)
