"""ACF's Appendix B: seconds and iterations of linear SVMs (the runs are those of ``acf_svm.py``).

Iterations are compared as sweeps, iterations over n: the sets at hand do not have the paper's n.
"""

from __future__ import annotations

import math

from .acf_svm import (
    ACF,
    EPS,
    GAP,
    LIBLINEAR,
    ORDERS,
    OURS,
    SAME,
    TEXTS,
    Contest,
    contest,
    cover_type,
    share_above_one,
    typical,
    whole,
)
from .acf_svm_figures import SHRINKING
from .acf_svm_paper import COSTS, PAPER, printed_sweeps
from .entry import CORRECTED, PRINTED, Entry, Findings, Rule, Table
from .lab import Lab

#: How far the number of sweeps may be from the printed one, either way.
WITHIN = 1.25


def appendix_b(lab: Lab) -> Findings:
    """Seconds and iterations, the paper's beside ours, and where the runs ended."""
    covtype, every = contest(lab, "covtype"), whole(lab)
    texts = [contest(lab, name) for name in TEXTS]
    contests = [covtype, *texts]

    def fewer(stops, acf=ACF):
        ratios = (
            r for c in texts for stop in stops for r in c.ratios(SAME, stop, "visits", 1.0, acf)
        )
        return share_above_one(list(ratios))

    ends = [
        (eps, found.fits[SAME, eps, C], found.fits[ACF, eps, C])
        for found in contests
        for eps in EPS
        for C in found.costs
    ]
    ends = [(eps, base, acf) for eps, base, acf in ends if base.done and acf.done]
    gaps = [acf.gap / base.gap for _, base, acf in ends if min(base.gap, acf.gap) > 0.0]
    duals = [abs(a.dual - b.dual) / abs(b.dual) for eps, b, a in ends if eps == EPS[1]]
    measured = {
        f"sweeps {name} {eps:g}": farthest(found, eps)
        for name, eps, found in judged(every, contests)
    }
    measured |= {
        "fewer": fewer(EPS),
        "covtype": typical(cover_type(lab, SAME, EPS, "visits")),
        "gaps": typical(gaps),
        "duals": max(duals, default=math.nan),
        "fewer gap": fewer(("gap",)),
        "covtype gap": typical(cover_type(lab, SAME, ("gap",), "visits")),
        "fewer ours": fewer(("gap",), OURS),
        "covtype ours": typical(cover_type(lab, SAME, ("gap",), "visits", OURS)),
    }
    tables = [_sweeps([every, *contests])]
    tables += [_times(contests, stop) for stop in (*EPS, "gap")]
    return Findings(
        measured,
        tables=[*tables, _gaps(contests)],
        remarks=[
            "Why: the printed counts are those of ACF without shrinking; with it they are about "
            f"half. At ε = {EPS[0]:g} ours are within a factor of "
            f"{max(measured[f'sweeps {name} {EPS[0]:g}'] for name in ('covtype', 'rcv1')):.3g}. At "
            f"{EPS[1]:g} those on rcv1 (ours are {texts[1].rows:,} documents, not the paper's "
            f"20,242) are off by up to {measured[f'sweeps rcv1 {EPS[1]:g}']:.2g}, on cover type "
            f"({covtype.rows:,} rows) by {measured[f'sweeps covtype {EPS[1]:g}']:.2g}.",
            f"Set-ups tried for ε = {EPS[1]:g}: p set to 1 again before the sweep that checks the "
            "rule, which leaves them so; 2ε, about what max |slope| <= ε asks: off by 1.7 and "
            "1.4. The print has some counts at both ε, digit by digit: liblinear's on cover type "
            "up to C = 10, ACF's on news20 up to C = 100. None of ours are the same at both.",
            "Set-ups tried for the iterations: by the rule, to an equal gap, and to an equal gap "
            "with shrinking. To a gap ACF need not wait for the rows it seldom visits, as the rule "
            f"makes it: on cover type it takes {measured['covtype gap']:.2g} of liblinear's "
            f"iterations so, {measured['covtype ours']:.2g} with shrinking, "
            f"{measured['covtype']:.2g} by the rule; on texts it is behind at C = 1 alone, and "
            "only where no row rests.",
        ],
    )


def judged(every: Contest, contests: list[Contest]) -> list[tuple[str, float, Contest]]:
    """The runs whose sweeps are judged: cover type (all rows at the larger eps) and rcv1."""
    covtype, _, rcv1 = contests
    return [
        ("covtype", EPS[0], every),
        ("covtype", EPS[1], covtype),
        ("rcv1", EPS[0], rcv1),
        ("rcv1", EPS[1], rcv1),
    ]


def farthest(found: Contest, eps: float) -> float:
    """The sweeps of ACF as published over those printed, or the other way round, at worst."""
    paper = printed_sweeps(found.name, "ACF", eps)
    ratios = [ours / paper[k] for k, ours in enumerate(found.sweeps(ACF, eps))]
    return max(max(r, 1.0 / r) for r in ratios)


def _sweeps(contests: list[Contest]) -> Table:
    rows = []
    for found in contests:
        for eps in EPS:
            if (ACF, eps, found.costs[0]) not in found.fits:
                continue
            lines = [(label, found.sweeps(label, eps)) for label in ORDERS]
            for method in ("ACF", "liblinear"):
                lines.append((f"{method}, paper", printed_sweeps(found.name, method, eps)))
            for label, values in lines:
                cells = [f"{v:.1f}" for v in values] + [""] * (len(COSTS) - len(values))
                rows.append([f"{found.name}, {found.rows:,}", f"{eps:g}", label, *cells])
    return Table(
        "Sweeps (iterations over n) by liblinear's rule",
        ["data, rows", "ε", "method", *(f"C = {C:g}" for C in COSTS)],
        rows,
    )


def _times(contests: list[Contest], stop: float | str) -> Table:
    rows = []
    for found in contests:
        for label in (LIBLINEAR, *ORDERS) if stop in EPS else ORDERS:
            cells = []
            for C in COSTS:
                fit = found.fits.get((label, stop, C))
                cells.append(
                    ""
                    if fit is None
                    else fit.shows("seconds", ".3g")
                    + ("" if math.isnan(fit.visits) else f" ({fit.visits:.2e})")
                )
            rows.append([found.name, label, *cells])
        if stop in EPS:
            for method in ("liblinear", "ACF"):
                rows.append(
                    [
                        found.name,
                        f"{method}, paper",
                        *(f"{s:,g} ({v:.2e})" for s, v in PAPER[found.name, method, stop]),
                    ]
                )
    rule = f"liblinear's rule, ε = {stop:g}" if stop in EPS else f"to a relative gap of {GAP:g}"
    return Table(
        f'Seconds (iterations; liblinear does not tell its own), {rule}; ">": given up',
        ["data", "method", *(f"C = {C:g}" for C in COSTS)],
        rows,
    )


def _gaps(contests: list[Contest]) -> Table:
    rows = []
    for found in contests:
        for eps in EPS:
            for label in ORDERS:
                cells = (found.fits.get((label, eps, C)) for C in COSTS)
                rows.append(
                    [
                        found.name,
                        f"{eps:g}",
                        label,
                        *("" if fit is None else fit.shows("gap", ".1e") for fit in cells),
                    ]
                )
    return Table(
        "The relative gap where liblinear's rule stops",
        ["data", "ε", "method", *(f"C = {C:g}" for C in COSTS)],
        rows,
    )


def _iterations(keys: tuple[str, str], how: str, variant: str) -> tuple[Rule, Rule]:
    return (
        Rule(
            keys[0],
            f"share of the cases with C >= 1 on news20 and rcv1 with fewer iterations of ACF{how}",
            at_least=0.9,
            variant=variant,
        ),
        Rule(
            keys[1],
            f"iterations of ACF over liblinear's algorithm on cover type{how}, geometric mean",
            at_least=1.0,
            variant=variant,
        ),
    )


APPENDIX_B = Entry(
    "acf-appendix-b",
    "Appendix B: seconds and iterations of linear SVMs",
    "from C = 1 on ACF needs fewer iterations than liblinear on texts, more on cover type, and "
    "both end at solutions of the same quality.",
    (
        *(
            Rule(
                f"sweeps {name} {eps:g}",
                f"sweeps of ACF over those printed, or the other way round, at worst: {name}, "
                f"ε = {eps:g}",
                at_most=WITHIN,
            )
            for name in ("covtype", "rcv1")
            for eps in EPS
        ),
        *_iterations(("fewer", "covtype"), "", PRINTED),
        Rule(
            "duals",
            "largest relative difference of the two dual objectives, ε = 0.001",
            at_most=1e-4,
        ),
        Rule(
            "gaps",
            "relative gap of ACF over that of liblinear's algorithm at equal ε, geometric mean",
            at_most=2.0,
        ),
        *_iterations(("fewer gap", "covtype gap"), ", at equal gap", CORRECTED),
        *_iterations(("fewer ours", "covtype ours"), ", at equal gap", SHRINKING),
    ),
    appendix_b,
)
