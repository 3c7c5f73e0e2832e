r"""ACF's Table 3: the lasso by columns in turn ("uniform") and by adaptive frequencies.

The paper's lambda is n l1 (its squared losses are summed), and its rule is that of liblinear: no
component of the gradient of the sum, less what the kink of :math:`\lambda|x_j|` takes, is above
0.001.  It counts steps ("iterations") and the entries of their inner products ("operations").
Both methods are ``cd``, one sweep of d steps a pass; the rule is looked at from outside, after
each of the first 20 passes and then every twentieth of the passes so far.  One run serves both
variants: as printed by the rule, corrected at a certified relative gap of 0.001.  Ours, ``acf``,
adapts frequencies on working sets of columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..api.solve import run
from ..problem import Problem
from ..solvers.primal.primal_cd import CoordinateDescent
from .entry import CORRECTED, PRINTED, Entry, Findings, Rule, Table
from .lab import Lab

EPS = GAP = 1e-3
#: A column of the table.
OURS = "ours: entries"
#: By data set and lambda: iterations and operations of uniform CD and of ACF.
PAPER = {
    "rcv1": {
        0.001: (7.06e8, 2.24e10, 7.50e7, 4.63e9),
        0.01: (9.21e7, 2.92e9, 1.86e7, 1.36e9),
        0.1: (4.95e7, 1.57e9, 4.14e6, 4.43e8),
        1.0: (2.36e7, 7.48e8, 1.53e6, 2.24e8),
        10.0: (5.38e6, 1.71e8, 1.21e6, 1.79e8),
        100.0: (4.25e5, 1.35e7, 2.36e5, 8.20e6),
    },
    "news20": {
        0.1: (2.64e9, 1.78e10, 3.88e7, 1.49e9),
        1.0: (1.47e9, 9.89e9, 3.19e7, 7.50e8),
        10.0: (3.78e8, 2.54e9, 2.30e7, 1.98e8),
        100.0: (6.78e6, 4.55e7, 9.49e6, 6.42e7),
    },
}


@dataclass(frozen=True)
class Work:
    """What a run had spent when it met a rule, or (``done`` false) when it gave up."""

    iterations: int
    operations: int
    primal: float
    done: bool

    def shows(self, what: str) -> str:
        return ("" if self.done else "> ") + f"{getattr(self, what):.2e}"


def violation(problem: Problem, x: np.ndarray) -> float:
    """The largest component of n P's slope at x that is not held by the kink of |x_j|."""
    n, l1 = problem.n, problem.penalty.l1
    slope = problem.average(problem.loss.derivative(problem.predict(x), problem.b))
    held = np.maximum(np.abs(slope) - l1, 0.0)
    return n * float(np.where(x == 0.0, held, np.abs(slope + l1 * np.sign(x))).max(initial=0.0))


def descend(problem: Problem, order: str, limit: int) -> dict[str, Work]:
    """Coordinate descent until it has met the rule and the gap, or for ``limit`` passes."""
    solver = CoordinateDescent(problem, np.random.Generator(np.random.PCG64(0)), order=order)
    sizes, entries = solver.columns.sizes, int(solver.columns.sizes.sum())
    best, dual, operations = math.inf, -math.inf, 0
    found: dict[str, Work] = {}
    while True:
        for _ in range(min(max(1, solver.passes // 20), limit - solver.passes)):
            solver.advance(1)
            operations += int(sizes[solver.order].sum()) if solver.adapts else entries
        primal = problem.primal(solver.x)
        best = min(best, primal)
        dual = max(dual, problem._dual(*problem.feasible_dual(solver.y)))
        last = solver.passes >= limit
        for variant, met in (
            (PRINTED, violation(problem, solver.x) <= EPS),
            (CORRECTED, problem.relative_gap(best, dual) <= GAP),
        ):
            if variant not in found and (met or last):
                found[variant] = Work(solver.visits, operations, primal, met)
        if len(found) == 2:
            return found


def ours(problem: Problem) -> str:
    """Entries that ``acf`` touches until the gap is certified, looks at all columns included."""
    result = run(problem, "acf", tol=GAP, max_passes=2000, options={})
    touched = float(result.history.operations[-1])
    return Work(0, int(touched), result.primal, result.converged).shows("operations")


def table3(lab: Lab) -> Findings:
    """rcv1 and news20 over the paper's lambdas."""
    chosen = lab.choose(
        {"rcv1": (1.0, 10.0, 100.0), "news20": (10.0, 100.0)},
        {name: tuple(paper) for name, paper in PAPER.items()},
    )
    pairs: list[list[dict[str, Work]]] = []
    rows: dict[str, list[list[str]]] = {PRINTED: [], CORRECTED: []}
    for name, lambdas in chosen.items():
        data = lab.data(name, normalize="rows")
        limit = lab.choose(1000, {"rcv1": 2000, "news20": 700}[name])
        for value in lambdas:
            problem = Problem(data.A, data.b, l1=value / data.b.size)
            found = []
            for order in ("cyclic", "frequencies"):
                lab.tell(f"{name}, lambda {value:g}, {order}")
                found.append(descend(problem, order, limit))
            pairs.append(found)
            for variant, table in rows.items():
                uniform, adaptive = (run[variant] for run in found)
                paper = [f"{v:.2e}" for v in PAPER[name][value]]
                table.append(
                    [
                        name,
                        f"{value:g}",
                        uniform.shows("iterations"),
                        uniform.shows("operations"),
                        adaptive.shows("iterations"),
                        adaptive.shows("operations"),
                        *paper,
                    ]
                )
            rows[CORRECTED][-1].append(ours(problem))
    columns = [
        "data",
        "λ = n l1",
        "uniform: iterations",
        "operations",
        "ACF: iterations",
        "operations",
        "paper, uniform",
        "",
        "paper, ACF",
        "",
    ]
    measured: dict[str, float] = {}
    for variant in rows:
        measured |= {
            f"{key} {variant}": value
            for key, value in judge(
                [(uniform[variant], adaptive[variant]) for uniform, adaptive in pairs]
            ).items()
        }
    return Findings(
        measured,
        tables=[
            Table("By the rule ε = 0.001, as printed", columns, rows[PRINTED]),
            Table(
                "To a certified relative gap of 0.001 (the paper's numbers are those of its rule)",
                [*columns, OURS],
                rows[CORRECTED],
            ),
        ],
        remarks=[
            "E2006-tfidf is not at hand, and left out.",
            "Ours is ACF on working sets (`acf`), counted in entries touched: with updates and "
            "looks at all columns, which the paper's operations leave out.",
            'Runs marked ">" had not finished when they were given up, and count with what they '
            "had spent; where neither finished the pair is left out.",
        ],
    )


def judge(pairs: list[tuple[Work, Work]]) -> dict[str, float]:
    """Ratios of work, uniform over ACF, and how far apart the two ended."""
    some = [(u, a) for u, a in pairs if u.done or a.done]
    apart = [abs(u.primal - a.primal) / abs(u.primal) for u, a in some if u.done and a.done]
    by = {
        what: [getattr(u, what) / getattr(a, what) for u, a in some]
        for what in ("iterations", "operations")
    }
    return {
        "slower": 1.0 / min(by["operations"], default=math.nan),
        "iterations": max(by["iterations"], default=math.nan),
        "operations": max(by["operations"], default=math.nan),
        "quality": max(apart, default=math.nan),
    }


def _rules(variant: str) -> tuple[Rule, ...]:
    return (
        Rule(
            f"slower {variant}",
            "operations of ACF over those of uniform CD, at worst",
            at_most=1.5,
            variant=variant,
        ),
        Rule(
            f"iterations {variant}",
            "iterations of uniform CD over those of ACF, at best",
            at_least=10.0,
            variant=variant,
        ),
        Rule(f"operations {variant}", "the same in operations", at_least=10.0, variant=variant),
        Rule(
            f"quality {variant}",
            "largest relative difference of the two objective values",
            at_most=1e-3,
            variant=variant,
        ),
    )


TABLE3 = Entry(
    "acf-table3",
    "Table 3: the lasso, uniform coordinate descent against ACF",
    "ACF is never significantly slower than uniform coordinate descent, and in some cases faster "
    "by one to two orders of magnitude, at solutions of equal quality.",
    (*_rules(PRINTED), *_rules(CORRECTED)),
    table3,
)
