"""AIS (Liu, Wang and So, 2021), the doubly stochastic methods: Figures 5 and 6.

The paper tunes one step size for each method and sampling, and prints steps that go with 1/p
(DSPDC) or do not depend on p (SPD1-VR); both are run so, with the signs and the importance
weights that the print lacks.  The package's own steps (``practical``) are the corrected variant:
they are not tuned, and converge on problems where those diverge.
"""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np

from ..solvers.doubly.dspdc import DSPDC
from ..solvers.doubly.spd1vr import SPD1VR
from .ais_runs import (
    CASES,
    END,
    EPOCH,
    SAMPLING,
    curve,
    lead,
    lead_rules,
    row,
    table,
    table2_case,
)
from .entry import PRINTED, Entry, Findings, Panel
from .lab import Case, Lab
from .trace import Trace, mean_trace, trace


class PrintedDSPDC(DSPDC):
    """Algorithm 2's steps: sigma/(n p_i) and tau/(d q_j), xbar = x + dx, and ``m`` to be tuned."""

    def __init__(self, problem, rng, *, m: float, **options):
        self.m = m
        super().__init__(problem, rng, None, steps="theory", **options)

    def _set_steps(self):
        super()._set_steps()
        shortened = 1.0 if self.sampling == "uniform" else 1.0 - max(self.delta_range)
        self.tau *= self.m / shortened
        self.sigma *= self.m / shortened
        self.theta, self.over_q = 1.0, False


class PrintedSPD1VR(SPD1VR):
    """Algorithm 3's steps, which do not depend on the probabilities, and ``m`` to be tuned: v is
    m tenths."""

    def __init__(self, problem, rng, *, m: float, **options):
        super().__init__(problem, rng, None, steps="theory", **options)
        if self.rows.size:
            self.sigma, self.tau = m * self.sigma, m * self.tau
            self._prepare()

    def _steps(self, alpha, beta, B, C):
        ones = np.ones_like(alpha), np.ones_like(beta)
        return super()._steps(*ones, *self._sums(*ones))


#: The package's own steps: the print has no error here.
PRACTICAL = "with practical steps"
#: Passes of a run: (quick, full).
PASSES = {
    "dspdc": {
        "colon-cancer": (4000, 10_000),
        "a2a": (3000, 8000),
        "w8a": (1000, 2000),
        "gisette": (300, 1000),
    },
    "spd1-vr": {
        "colon-cancer": (600, 1500),
        "a2a": (150, 300),
        "w8a": (90, 120),
        "gisette": (30, 90),
    },
}
#: Rows of the quick runs.
QUICK_ROWS = 2500
#: The method as the paper prints its steps, the multipliers it is tuned over, and the seeds:
#: (quick, full) of both.
PRINTED_STEPS = {
    "dspdc": (PrintedDSPDC, ((8, 16, 64, 128), (4, 8, 16, 32, 64, 128, 256)), (1, 2)),
    "spd1-vr": (PrintedSPD1VR, ((1, 2), (1, 2, 4)), (1, 1)),
}


def tuned(case: Case, make, multipliers, passes: int, seeds: int) -> tuple[float, Trace]:
    """(the best multiplier, the mean of its runs); it is chosen by the run of the first seed."""

    def run(m, seed):
        return trace(
            case.problem,
            make(np.random.Generator(np.random.PCG64(seed)), m),
            passes=passes,
            optimum=case.optimum,
            floor=max(END, case.floor),
        )

    first = {m: run(m, 0) for m in multipliers}
    best = min(multipliers, key=lambda m: _merit(first[m], case.optimum))
    return best, mean_trace([first[best], *(run(best, seed) for seed in range(1, seeds))])


def _merit(run: Trace, optimum: float) -> tuple[float, float]:
    """Smaller is better: the passes to the end if it was reached, then how near it came."""
    last = run.primal[-1] - optimum
    return run.to(END, optimum), last if math.isfinite(last) else math.inf


def at_epochs(run: Trace, epoch: int) -> Trace:
    """What was seen at the ends of epochs."""
    kept = run.passes % epoch == 0
    return Trace(*(getattr(run, f.name)[kept] for f in fields(Trace)))


def over_the_run(sampling: str, passes: int) -> dict:
    """Options that let delta rise until the run ends; uniform sampling has no delta."""
    return {"sampling": sampling} | ({} if sampling == "uniform" else {"delta_passes": passes})


def figure(lab: Lab, solver: str) -> Findings:
    """US, LIS and AIS on the four data sets of Table 2."""
    kind, grids, counts = PRINTED_STEPS[solver]
    grid, seeds = lab.choose(*grids), lab.choose(*counts)
    panels, rows, measured = [], [], {}
    for name in CASES:
        case = table2_case(lab, name, lab.choose(QUICK_ROWS, None))
        passes = lab.choose(*PASSES[solver][name])
        printed, own, best = {}, {}, {}
        for label, sampling in SAMPLING.items():
            lab.tell(f"{name}, {label}")
            options = over_the_run(sampling, passes)

            def make(rng, m, case=case, options=options):
                return kind(case.problem, rng, m=m, **options)

            best[label], run = tuned(case, make, grid, passes, seeds)
            printed[label] = at_epochs(run, EPOCH[solver])
            own[label] = at_epochs(
                mean_trace(
                    [
                        trace(
                            case.problem,
                            solver,
                            passes=passes,
                            seed=seed,
                            optimum=case.optimum,
                            floor=max(END, case.floor),
                            **options,
                        )
                        for seed in range(seeds)
                    ]
                ),
                EPOCH[solver],
            )
        tuning = "tuned: " + ", ".join(f"{best[k]:g}" for k in SAMPLING)
        for variant, steps, runs in ((PRINTED, tuning, printed), (PRACTICAL, "practical", own)):
            measured[f"{name}, {variant}"] = lead(runs, case.optimum)
            rows.append(row(name, steps, runs, case.optimum))
        panels.append(
            Panel(
                f"{name}, λ = {CASES[name]:g}",
                [
                    *(curve(k, run, case.optimum) for k, run in printed.items()),
                    *(curve(f"{k}, practical steps", run, case.optimum) for k, run in own.items()),
                ],
            )
        )
    return Findings(
        measured,
        [panels[:2], panels[2:]],
        [table(rows)],
        [
            "Lines: the print's steps, the multiplier tuned for each sampling (named in the table, "
            "US, LIS, AIS); dashes: the package's own steps.",
            "The ratios are of passes to the level that both runs have reached, no lower "
            "than 1e-8. A "
            "pass is as many entries touched as A has; the paper does not define its epoch.",
        ],
    )


def figure5(lab: Lab) -> Findings:
    return figure(lab, "dspdc")


def figure6(lab: Lab) -> Findings:
    return figure(lab, "spd1-vr")


#: "Much faster": a third of the passes saved, on each data set.
RULES = lead_rules(CASES, 2 / 3, PRACTICAL)

ENTRIES = (
    Entry(
        "ais-fig5",
        "Figure 5: DSPDC with US, LIS and AIS",
        "DSPDC converges much faster with AIS than with LIS and US, on all data sets.",
        RULES,
        figure5,
    ),
    Entry(
        "ais-fig6",
        "Figure 6: SPD1-VR with US, LIS and AIS",
        "SPD1-VR converges much faster with AIS than with LIS and US, on all data sets.",
        RULES,
        figure6,
    ),
)
