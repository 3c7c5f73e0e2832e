"""AIS (Liu, Wang and So, 2021): Figure 4, Tables 3-6; the others' modules are put together here.

SPDC runs with the steps of Theorem 1 (as printed); with tau and sigma of SPDC's Algorithm 1 for all
samplings and sigma for every row (eq. 10: as the proofs and figures have it); with those and
sigma/(n p_i) (Theorem 2); and with the package's practical steps.  In all but the last AIS has
the weights |pi_i|^kappa of each row's last step, updated at every draw, and LIS has AIS's delta_t,
which grows from 0.2 to 0.8 over the run; with practical steps AIS averages its weights and draws
rows in pieces, LIS has the share 1/2.
"""

from __future__ import annotations

import math
from time import process_time
from typing import Any

import numpy as np

from ..solvers.registry import SOLVERS
from . import ais_doubly, ais_theory
from .ais_runs import (
    CASES,
    END,
    EPOCH,
    FIGURES,
    PRACTICAL,
    SAMPLING,
    curve,
    horizon,
    lead,
    lead_rules,
    row,
    table,
    table2_case,
)
from .entry import PRINTED, Entry, Findings, Panel, Rule, Table
from .lab import Case, Lab
from .trace import Trace, mean_trace

THEOREM2 = "Theorem 2"
#: How tables name the steps.
STEPS = {PRINTED: "Theorem 1", THEOREM2: THEOREM2, FIGURES: "constant", PRACTICAL: "practical"}
_UNIFORM: dict[str, Any] = {"steps": "theory"}
_LIPSCHITZ: dict[str, Any] = {"sampling": "lipschitz", "delta": (0.2, 0.8)}
_ADAPTIVE: dict[str, Any] = {"sampling": "adaptive", "weights": "last"}
#: Options of ``spdc``; delta grows over the run wherever there is one.  Theorem 2 is about AIS
#: alone: the others are those of the figures.
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    PRINTED: {
        "US": _UNIFORM,
        "LIS": _LIPSCHITZ | {"steps": "theory"},
        "AIS": _ADAPTIVE | {"steps": "theory"},
    },
    THEOREM2: {
        "US": _UNIFORM,
        "LIS": _LIPSCHITZ | {"steps": "constant"},
        "AIS": _ADAPTIVE | {"steps": "theory2"},
    },
    FIGURES: {
        "US": _UNIFORM,
        "LIS": _LIPSCHITZ | {"steps": "constant"},
        "AIS": _ADAPTIVE | {"steps": "constant"},
    },
    PRACTICAL: {label: {"sampling": sampling} for label, sampling in SAMPLING.items()},
}
#: Section 4.1, after Zhang and Xiao: the data sets and lambdas of Table 3.
TABLE3 = [(name, l2) for l2 in (1e-4, 1e-6, 1e-8) for name in ("rcv1", "covtype")]

#: Passes of its runs, at most.
LONGEST = 400

#: What the reader of a comparison has to know.
REMARKS = [
    "Lines: steps that do not depend on p, those of SPDC's Algorithm 1 for all three samplings "
    "(eq. 10, and eq. 20 of Theorem 2's proof). Runs are as long as SPDC's theory predicts to "
    "1e-8; the ratios are of passes to the level that both have reached.",
    "Set-ups tried: Theorem 1's steps (as printed), which are shorter by 1 - 0.8 for AIS and LIS, "
    "where US has those of Algorithm 1: that factor costs more than the sampling saves; Theorem "
    "2's, sigma/(n p_i), with which AIS saves less than with constant ones; and practical ones, "
    "with which it averages its weights, draws in pieces, and delta grows over ten passes.",
]


def runs_of(
    lab: Lab, case: Case, seeds: int, most: int, variants: tuple[str, ...] = tuple(OPTIONS)
) -> dict[str, dict[str, Trace]]:
    """The mean run, of at most so many passes, of every sampling in the variants."""
    passes = horizon(case.problem, most)
    runs: dict[str, dict[str, Trace]] = {}
    for variant in variants:
        runs[variant] = {}
        for label, options in OPTIONS[variant].items():
            lab.tell(f"{case.data.name}, lambda {case.l2:g}, {label}, {STEPS[variant]}")
            grows = {"delta_passes": passes} if "delta" in options or "weights" in options else {}
            runs[variant][label] = mean_trace(
                [
                    lab.trace(
                        case,
                        "spdc",
                        passes=passes,
                        floor=max(END, case.floor),
                        seed=seed,
                        **options,
                        **grows,
                    )
                    for seed in range(seeds)
                ]
            )
    return runs


def judged(lab: Lab, cases: dict[str, Case], seeds: int, most: int = 2500) -> Findings:
    """Run and compare, in panels of two columns; ``cases`` by the name that the rules have."""
    measured, rows, panels = {}, [], []
    for name, case in cases.items():
        runs = runs_of(lab, case, seeds, most)
        for variant, found in runs.items():
            if variant != THEOREM2:
                measured[f"{name}, {variant}"] = lead(found, case.optimum)
            rows.append(row(name, STEPS[variant], found, case.optimum))
        drawn = {
            **runs[FIGURES],
            "AIS, Theorem 1": runs[PRINTED]["AIS"],
            **{f"{label}, practical steps": run for label, run in runs[PRACTICAL].items()},
        }
        panels.append(
            Panel(
                f"{case.data.name}, λ = {case.l2:g}",
                [curve(label, run, case.optimum) for label, run in drawn.items()],
            )
        )
    return Findings(
        measured, [panels[k : k + 2] for k in range(0, len(panels), 2)], [table(rows)], REMARKS
    )


def figure4(lab: Lab) -> Findings:
    """SPDC on the data sets of Table 2."""
    found = judged(lab, {name: table2_case(lab, name) for name in CASES}, lab.choose(1, 5))
    found.remarks = [
        *found.remarks,
        "Why: with constant steps AIS saves less the larger kappa/n: two fifths on the three sets "
        "that take US 20 passes, a seventh on colon-cancer, which takes it 120 (and less as lambda "
        "falls in ais-table3). Practical steps save half there.",
    ]
    return found


def table3(lab: Lab) -> Findings:
    """SPDC on rcv1 and covtype with small lambda."""
    rows = {"rcv1": lab.choose(4000, 12_000), "covtype": lab.choose(10_000, 20_000)}
    found = judged(
        lab,
        {
            title(name, l2): lab.case(lab.data(name, "rows", rows=rows[name]), "smooth_hinge", l2)
            for name, l2 in TABLE3
        },
        1,
        lab.choose(200, LONGEST),
    )
    found.remarks = [
        *found.remarks,
        "One run each; in five with constant steps at λ = 1e-4 and 1e-6 AIS takes 0.59 to 0.88 of "
        "the passes. Rows have the norm 1, as in the SPDC paper whose settings these are; LIS then "
        f"draws uniformly. Runs end after {LONGEST} passes, fewer than theory asks for at λ = "
        "1e-8. There the weights of the last step are not safe: on rcv1 AIS with constant steps "
        "comes to 1e-7 after 209 passes and then diverges as delta grows, so its ratio is of "
        "passes to 2e-4.",
        "With practical steps on covtype, λ = 1e-4, AIS leads to 1e-6 and falls behind after it: "
        "its tau is too short there (with twice that tau it takes 9.6 passes to 1e-8, not 18).",
    ]
    return found


def title(name: str, l2: float) -> str:
    """A cell of Table 3."""
    return f"{name}, λ = {l2:g}"


# ---- seconds a pass ------------------------------------------------------------------------------

#: Tables 4-6: seconds an epoch of US, LIS and AIS.
PAPER_SECONDS = {
    "spdc": {
        "colon-cancer": (0.0042, 0.0043, 0.0049),
        "gisette": (3.01, 3.09, 3.34),
        "a2a": (0.0060, 0.0067, 0.008),
        "w8a": (0.796, 0.839, 0.895),
    },
    "dspdc": {
        "colon-cancer": (0.0150, 0.0185, 0.0195),
        "gisette": (2.05, 2.21, 2.30),
        "a2a": (0.0126, 0.0131, 0.0134),
        "w8a": (9.01, 9.29, 9.38),
    },
    "spd1-vr": {
        "colon-cancer": (0.0080, 0.0120, 0.0135),
        "gisette": (5.936, 6.033, 6.399),
        "a2a": (0.0235, 0.0270, 0.0295),
        "w8a": (2.621, 3.0425, 3.1155),
    },
}


def seconds_a_pass(case: Case, solver: str, turns: int) -> dict[str, float]:
    """The least seconds of a pass with each sampling, in turns.

    Processor time: the kernels run on one core, and a busy machine then does not count.
    """
    made = {
        label: SOLVERS[solver].load()(
            case.problem, np.random.Generator(np.random.PCG64(0)), sampling=sampling
        )
        for label, sampling in SAMPLING.items()
    }
    # up to some 500,000 entries at once: a pass over small data is too short for the clock
    passes = EPOCH[solver] * min(max(1, 500_000 // max(case.problem.matrix.nnz, 1)), 20)
    best = dict.fromkeys(SAMPLING, math.inf)
    for turn in range(turns + 1):
        for label, stepper in made.items():
            began = process_time()
            stepper.advance(passes)
            if turn > 0:  # the first turn compiles
                best[label] = min(best[label], (process_time() - began) / passes)
    return best


def seconds_table(lab: Lab, solver: str) -> Findings:
    """Seconds a pass on the four data sets, ours and the paper's."""
    rows, measured = [], {}
    for name, paper in PAPER_SECONDS[solver].items():
        lab.tell(name)
        ours = seconds_a_pass(table2_case(lab, name), solver, lab.choose(7, 25))
        measured[name] = ours["AIS"] / ours["US"]
        for k, (label, value) in enumerate(ours.items()):
            rows.append(
                [
                    name,
                    label,
                    f"{value:.2e}",
                    f"{value / ours['US']:.2f}",
                    f"{paper[k]:g}",
                    f"{paper[k] / paper[0]:.2f}",
                ]
            )
    columns = ["data set", "sampling", "seconds", "over US", "paper's seconds", "over US, paper"]
    return Findings(
        measured,
        tables=[Table("Seconds a pass", columns, rows)],
        remarks=[
            "Processor seconds of a pass; the paper's machine and epochs are others, so what is "
            "compared is AIS over US.",
            *[
                "Why: LIS takes nearly as long as AIS, so it is the draws by p and q that cost, "
                "not the gradient maps. But for colon-cancer our passes are 50 to 200 times "
                "shorter than the paper's, in which draws did not show."
            ]
            * (solver == "spd1-vr"),
        ],
    )


def table4(lab: Lab) -> Findings:
    return seconds_table(lab, "spdc")


def table5(lab: Lab) -> Findings:
    return seconds_table(lab, "dspdc")


def table6(lab: Lab) -> Findings:
    return seconds_table(lab, "spd1-vr")


#: "Notably sharper": a fifth of the passes saved, on each problem.
SHARPER = 0.8
#: "Does not differ much": no more than the paper's own largest ratio (colon-cancer, Table 6).
SLIGHTLY = 1.7


def _seconds_entry(number: int, method: str, run) -> Entry:
    return Entry(
        f"ais-table{number}",
        f"Table {number}: seconds of a pass of {method}",
        f"a pass of {method} takes only slightly longer with AIS than with US.",
        tuple(
            Rule(name, f"{name}: seconds of a pass with AIS over US", at_most=SLIGHTLY)
            for name in CASES
        ),
        run,
    )


_FIGURES = {entry.name: entry for entry in (*ais_theory.ENTRIES, *ais_doubly.ENTRIES)}
ENTRIES = (
    _FIGURES["ais-fig2"],
    _FIGURES["ais-fig3"],
    _FIGURES["ais-table1"],
    Entry(
        "ais-fig4",
        "Figure 4: SPDC with US, LIS and AIS",
        "SPDC-AIS always exhibits a notably sharper convergence rate than SPDC-LIS and SPDC-US.",
        lead_rules(CASES, SHARPER),
        figure4,
    ),
    _FIGURES["ais-fig5"],
    _FIGURES["ais-fig6"],
    Entry(
        "ais-table3",
        "Table 3: SPDC with US, LIS and AIS for small lambda",
        "on RCV1 and Covtype, too, SPDC-AIS always exhibits a notably sharper convergence rate.",
        lead_rules([title(*k) for k in TABLE3], SHARPER),
        table3,
    ),
    _seconds_entry(4, "SPDC", table4),
    _seconds_entry(5, "DSPDC", table5),
    _seconds_entry(6, "SPD1-VR", table6),
)
