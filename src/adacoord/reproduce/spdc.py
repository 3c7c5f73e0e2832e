"""SPDC (Zhang and Xiao, 2017): Figures 2-5, on real data; Figure 1 is in :mod:`.spdc_ridge`, the
tables are in :mod:`.spdc_rates`, what runs is in :mod:`.spdc_races`.

Runs are as long as theory asks (:func:`~.spdc_races.theory_passes`), where that can be paid for.
"""

from __future__ import annotations

import numpy as np

from . import spdc_rates, spdc_ridge
from .entry import PRINTED, Entry, Findings, Panel, Rule, Table
from .lab import Lab
from .spdc_races import (
    BATCH,
    COUNTING,
    METHODS,
    OF_THE_TIME,
    STOCHASTIC,
    Race,
    asdca_applies,
    power,
    race,
    ratio_text,
    theory_passes,
)

#: A guess at what was run, not a correction.
SAME = "at the paper's n λ, with Wolfe's line search"
LOSS = "smooth_hinge"
#: Figures 2 and 3: passes for each lambda, fewer where n is far above d; rows of the quick run.
LAMBDAS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
PASSES = {
    "covtype": (30, 30, 50, 80, 120),
    "rcv1": (50, 50, 100, 200, 300),
    "news20": (30, 30, 60, 120, 200),
}
#: Figure 3: on covtype what theory asks for an accuracy of 1e-6 (19, 25, 50, 128, 377), and as
#: much of it as can be paid for on the others (rcv1 asks 189, 569 and 1,770 from 1e-6 on).
LONG_PASSES = {
    "covtype": (20, 25, 50, 130, 380),
    "rcv1": (30, 40, 120, 300, 500),
    "news20": (20, 25, 50, 80, 120),
}
QUICK_ROWS = {"covtype": 60_000, "rcv1": None, "news20": 6_000}


# ---- Figures 2 and 3 -----------------------------------------------------------------------------


def races_on_real_data(lab: Lab, labels, lambdas, lengths) -> dict[tuple[str, float], Race]:
    """{(set, lambda): race} with unit rows, as in Section 7.2."""
    races = {}
    for name, limits in lengths.items():
        data = lab.data(name, "rows", rows=lab.choose(QUICK_ROWS[name], None))
        for l2, passes in zip(LAMBDAS, limits, strict=True):
            if l2 in lambdas:
                case = lab.case(data, LOSS, l2)
                races[name, l2] = race(lab, case, labels(l2), passes, f"{name}, lambda {power(l2)}")
    return races


def _grid(races: dict, lambdas) -> list[list[Panel]]:
    """Rows: lambda; columns: sets."""
    return [
        [races[name, l2].panel(f"{name}, λ = {power(l2)}") for name in PASSES] for l2 in lambdas
    ]


def _passes_table(races: dict, level: float) -> Table:
    labels = [m for m in METHODS if any(m in r.runs for r in races.values())]
    return Table(
        f"Passes to P - P* = {level:g}",
        ["set", "λ", *labels],
        [
            [name, power(l2), *(r.reached(m, level) if m in r.runs else "-" for m in labels)]
            for (name, l2), r in races.items()
        ],
    )


def figure2(lab: Lab) -> Findings:
    """SPDC against the batch methods."""
    lambdas = lab.choose((1e-4, 1e-6, 1e-8), LAMBDAS)
    races = races_on_real_data(lab, lambda l2: ("SPDC", *BATCH), lambdas, PASSES)
    leads = [races[name, 1e-8].lead("SPDC", *BATCH) for name in PASSES]
    return Findings(
        measured={
            "large": min(races[name, 1e-4].speedup("SPDC", *BATCH) for name in PASSES),
            "ahead": max(leads),
            "behind": -min(leads),
        },
        panels=_grid(races, lambdas),
        tables=[_passes_table(races, 1e-6)],
        remarks=[
            COUNTING,
            "Counted product by product, the batch methods would need twice the passes drawn, and "
            "the first measured number would be twice as large. With practical steps (ours) SPDC "
            "takes fewer passes than drawn here: spdc-fig3 has them for the same problems.",
            "Why: twice the passes is more than L-BFGS takes at λ = 1e-4 on texts. Set-ups tried: "
            "ours, whose nearly exact line search costs no product, takes 1.2 to 1.3 times those "
            "of SPDC on rcv1 and 1.7 on news20; SciPy's, by Wolfe's conditions, 1.5 and 1.6.",
        ],
    )


def figure3(lab: Lab) -> Findings:
    """SPDC against the stochastic methods."""
    lambdas = lab.choose((1e-4, 1e-6, 1e-8), LAMBDAS)
    races = races_on_real_data(
        lab,
        lambda l2: ("SPDC", *STOCHASTIC, *["ASDCA"] * (l2 <= 1e-6), "SPDC, practical"),
        lambdas,
        LONG_PASSES,
    )
    unmet = [
        f"{name} at {power(l2)}"
        for (name, l2), r in races.items()
        if "ASDCA" in r.runs and not asdca_applies(r.case)
    ]
    wide = [races[name, l2] for name in ("rcv1", "news20") for l2 in lambdas if l2 <= 1e-6]
    return Findings(
        measured={
            "large": max(_spread(races[name, 1e-4], ("SPDC", *STOCHASTIC)) for name in PASSES),
            "small": min(races[name, 1e-8].speedup("SPDC", *STOCHASTIC) for name in PASSES),
            "asdca": min(r.speedup("SPDC", "ASDCA") for r in wide),
            "covtype": races["covtype", 1e-8].speedup("SPDC", "ASDCA"),
        },
        panels=_grid(races, lambdas),
        tables=[_passes_table(races, 1e-6)],
        remarks=[f"λ > R²/(10 n γ), where ASDCA is plain SDCA: {', '.join(unmet)}."] * bool(unmet)
        + [
            "Runs on covtype are as long as theory asks, ln(1e6)(1 + 2 sqrt(κ/n)): after 120 "
            "passes at λ = 1e-8, where earlier runs ended, SAG is still level with SPDC."
        ],
    )


def _spread(r: Race, labels) -> float:
    """Passes of the slowest over those of the fastest, to 1e-6."""
    needed = [r.runs[label].to(1e-6, r.case.optimum) for label in labels]
    return max(needed) / min(needed) if np.isfinite(needed).any() else np.nan


# ---- Figure 4 ------------------------------------------------------------------------------------


def figure4(lab: Lab) -> Findings:
    """The larger sets, and a part of each to compare with; then sets as hard as the paper's."""
    limits = {"rcv1-test": (40, 100), "news20": (40, 100), "rcv1": (100, 300)}
    sizes = {
        "rcv1-test": lab.choose((1_500, 15_000), (6_000, None)),
        "news20": lab.choose((800, QUICK_ROWS["news20"]), (4_000, None)),
    }
    races = {}
    for name, both in sizes.items():
        for size, rows in zip(("part", "whole"), both, strict=True):
            data = lab.data(name, "rows", rows=rows)
            for l2, passes in zip((1e-6, 1e-8), limits[name], strict=True):
                case = lab.case(data, LOSS, l2)
                labels = ("SPDC", *STOCHASTIC, *BATCH, *["ASDCA"] * (l2 == 1e-8))
                races[name, size, l2] = race(
                    lab, case, labels, passes, f"{name} ({size}), lambda {power(l2)}"
                )
    # the part is rcv1 itself, as large as the paper's; the whole has the kappa/n of RCV1-test
    scaled_races = {}
    data = lab.data("rcv1", "rows", rows=lab.choose(8_000, None))
    for l2, limit in zip((1e-6, 1e-8), limits["rcv1"], strict=True):
        for size, factor in (("part", 1.0), ("whole", 677_399 / data.A.shape[0])):
            case = lab.case(data, LOSS, l2 * factor)
            passes = limit if size == "part" else theory_passes(case, 1e-6)
            labels = ("SPDC", *STOCHASTIC, *OF_THE_TIME, *["ASDCA"] * (l2 == 1e-8))
            what = f"rcv1, lambda {case.l2:.2g}"
            scaled_races["rcv1", size, l2] = race(lab, case, labels, passes, what)
    measured = _growth(races, BATCH, "") | _growth(scaled_races, OF_THE_TIME, " same")
    return Findings(
        measured=measured,
        panels=[
            [races[name, "whole", l2].panel(f"{name}, λ = {power(l2)}") for name in sizes]
            + [scaled_races["rcv1", "whole", l2].panel(f"rcv1 as hard as rcv1-test, {power(l2)}")]
            for l2 in (1e-6, 1e-8)
        ],
        tables=[
            Table(
                "Digits by which SPDC leads the best batch / the better of SAG and SDCA / ASDCA, "
                "when it is at 1e-8 or at the end",
                ["set", "λ of the paper", "λ", "rows", "batch", "SAG, SDCA", "ASDCA"],
                [
                    [
                        name,
                        power(l2),
                        f"{r.case.l2:.2g}",
                        f"{r.case.problem.n:,}",
                        f"{r.lead('SPDC', *batch):.2f}",
                        f"{r.lead('SPDC', *STOCHASTIC):.2f}",
                        f"{r.lead('SPDC', 'ASDCA'):.2f}" if "ASDCA" in r.runs else "-",
                    ]
                    for found, batch in ((races, BATCH), (scaled_races, OF_THE_TIME))
                    for (name, _, l2), r in found.items()
                ],
            )
        ],
        remarks=[
            COUNTING,
            "The paper's sets of both many rows and many columns are not at hand; mnist and "
            "news20, a part of each against the whole, are in their place at the printed λ.",
            "What more rows change is κ/n: 40 and 4,000 on RCV1, 1.5 and 148 on RCV1-test. So "
            "rcv1, which is as large as the paper's, is run at the printed λ and, in RCV1-test's "
            "place, at λ 677,399/n; L-BFGS has Wolfe's line search there.",
        ],
    )


def _growth(races: dict, batch: tuple[str, ...], key: str) -> dict[str, float]:
    """How SPDC's leads change from the part to the whole, and the worst ratios on the whole."""
    pairs = [
        (r, races[name, "whole", l2]) for (name, size, l2), r in races.items() if size == "part"
    ]

    def growth(others) -> float:
        return float(np.mean([w.lead("SPDC", *others) - p.lead("SPDC", *others) for p, w in pairs]))

    return {
        f"batch{key}": growth(batch),
        f"stochastic{key}": growth(STOCHASTIC),
        f"all{key}": min(w.speedup("SPDC", *STOCHASTIC, *batch) for _, w in pairs),
        f"asdca{key}": min(w.speedup("SPDC", "ASDCA") for _, w in pairs if "ASDCA" in w.runs),
    }


# ---- Figure 5 ------------------------------------------------------------------------------------


def shorter_radius(norms: np.ndarray, l2: float, gamma: float) -> float:
    """R/R_a with R_a = 1/((1-a)/R + a/Rbar) of Theorem 6, a by (25): what the rate gains."""
    from ..solvers.primal_dual.spdc_steps import optimal_alpha

    alpha, R = optimal_alpha(norms, l2, gamma), norms.max()
    return float((1.0 - alpha) + alpha * R / norms.mean())


def figure5(lab: Lab) -> Findings:
    """Uniform against weighted sampling, rows of mean norm 1, lambda 1e-8."""
    sets = {"covtype": 30_000, "mnist-parity": 6_000, "w8a": None}
    longest = {"covtype": 500, "mnist-parity": 400, "w8a": 2_000}
    races, ratios, theory = {}, {}, {}
    for name, rows in sets.items():
        data = lab.data(name, "mean", rows=lab.choose(rows, None))
        case = lab.case(data, LOSS, 1e-8)
        passes = min(theory_passes(case, 1e-6), lab.choose(200, longest[name]))
        norms = np.sqrt(case.problem.matrix.squared_norms)
        ratios[name] = norms.max() / norms.mean()
        # rows of zeros are never drawn
        theory[name] = shorter_radius(norms[norms > 0.0], case.l2, case.problem.loss.gamma)
        races[name] = race(lab, case, ("SPDC", "weighted SPDC"), passes, name)
    gains = {name: r.speedup("weighted SPDC", "SPDC") for name, r in races.items()}
    return Findings(
        measured={
            "all": min(gains.values()),
            "unequal": gains[max(ratios, key=ratios.__getitem__)],
        },
        panels=[[r.panel(f"{name}, R/R̄ = {ratios[name]:.2f}") for name, r in races.items()]],
        tables=[
            Table(
                "Passes of uniform over those of weighted sampling",
                ["set", "R/R̄", "uniform / weighted", "theory: R/R_α"],
                [
                    [name, f"{ratios[name]:.2f}", ratio_text(gains[name]), f"{theory[name]:.2f}"]
                    for name in sets
                ],
            )
        ],
        remarks=[
            "The rows of rcv1 and news20 as they are at hand have norm 1: R/R̄ = 1, α* = 0, "
            "and both samplings are the same; w8a and mnist's even against odd digits are in "
            "their place.",
            "The sentence under (25) is the wrong way round: α* is 0 for well-conditioned "
            "problems and grows with the condition number.",
            "Runs are as long as theory asks for uniform sampling, ln(1e6)(1 + 2 sqrt(κ/n)), but "
            "for mnist (400 passes of 2,100) and w8a (2,000 of 4,400).",
        ],
    )


ENTRIES = (
    spdc_ridge.FIGURE1,
    Entry(
        "spdc-fig2",
        "Figure 2: SPDC against batch methods, smoothed hinge",
        "SPDC is substantially faster than AFG and L-BFGS for relatively large lambda; as lambda "
        "decreases to 1e-8, the batch methods become comparable to it.",
        (
            Rule(
                "large",
                "passes of the better batch method over those of SPDC, to what SPDC has "
                "halfway (1e-8 at least), lambda = 1e-4, worst of three sets",
                at_least=2.0,
            ),
            Rule(
                "ahead",
                "digits of P - P* by which SPDC leads the better batch method at the "
                "end, lambda = 1e-8, largest of three sets",
                at_most=1.0,
            ),
            Rule("behind", "digits by which SPDC is behind it, largest of three sets", at_most=1.0),
        ),
        figure2,
    ),
    Entry(
        "spdc-fig3",
        "Figure 3: SPDC against stochastic methods, smoothed hinge",
        "the stochastic methods are comparable for relatively large lambda; SPDC is faster than "
        "SAG and SDCA when lambda is small, and faster than ASDCA on RCV1 and News20, while ASDCA "
        "is faster on Covtype.",
        (
            Rule(
                "large",
                "passes to 1e-6 of the slowest of SPDC, SAG and SDCA over those of the "
                "fastest, lambda = 1e-4, worst of three sets",
                at_most=3.0,
            ),
            Rule(
                "small",
                "passes of the better of SAG and SDCA over those of SPDC, to what SPDC "
                "has halfway, lambda = 1e-8, worst of three sets",
                at_least=1.5,
            ),
            Rule(
                "asdca",
                "the same for ASDCA, on rcv1 and news20, worst lambda of those up to 1e-6",
                at_least=1.0,
            ),
            Rule("covtype", "the same for ASDCA, on covtype, lambda = 1e-8", at_most=1.0),
        ),
        figure3,
    ),
    Entry(
        "spdc-fig4",
        "Figure 4: larger sets, smoothed hinge",
        "on more rows SPDC has a more significant advantage over the batch methods, and a less "
        "significant one over SAG and SDCA; it is always comparable or better, than ASDCA too.",
        tuple(
            Rule(f"{key}{suffix}", f"{text}{where}", variant=variant, **bound)
            for variant, suffix, where in (
                (PRINTED, "", ", two sets and two lambdas"),
                (SAME, " same", ", rcv1 with the κ/n of RCV1 and of RCV1-test, two lambdas"),
            )
            for key, text, bound in (
                (
                    "batch",
                    "digits that SPDC's lead over the better batch method grows by from a "
                    "part of the rows to all, mean",
                    {"at_least": 0.1},
                ),
                (
                    "stochastic",
                    "the same for its lead over the better of SAG and SDCA",
                    {"at_most": -0.1},
                ),
                (
                    "all",
                    "passes of the best other method but ASDCA over those of SPDC, to what SPDC "
                    "has halfway, all rows, worst",
                    {"at_least": 0.7},
                ),
                ("asdca", "the same for ASDCA, lambda = 1e-8, worst", {"at_least": 0.7}),
            )
        ),
        figure4,
    ),
    Entry(
        "spdc-fig5",
        "Figure 5: uniform against weighted sampling, lambda = 1e-8",
        "on rows of unequal norms weighted sampling converges faster, significantly so when "
        "R/Rbar is large.",
        (
            Rule(
                "all",
                "passes of uniform over those of weighted sampling, to what weighted has "
                "halfway, worst of three sets",
                at_least=1.05,
            ),
            Rule("unequal", "the same on the set with the largest R/Rbar", at_least=1.5),
        ),
        figure5,
    ),
    spdc_rates.TABLE1,
    spdc_rates.TABLE2,
)
