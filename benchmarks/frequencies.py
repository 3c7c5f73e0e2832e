"""Uniform against adaptive frequencies (ACF), as visits and as entries touched, at equal gap.

    ADACOORD_DATA=... python benchmarks/frequencies.py [--quick] [--gap 1e-3] [--limit 2000]

The paper's Appendix B (hinge, by C) and Table 3 (lasso, by l1; the paper's lambda is n l1) on the
data at hand, unit rows, no intercept.  The paper stops by liblinear's eps, which flatters ACF; here
every run stops at the same certified relative gap, looked at after each pass.  ``visits`` are steps
on coordinates, ``entries`` entries of A touched.  A run that has not got there after --limit passes
is marked ">" and counts with what it had spent.

Hinge: shuffled (every row once a sweep), with liblinear's shrinking, ACF with shrinking.  Lasso:
cyclic over all columns; working sets with every column of the set once a sweep; the same with ACF.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

import adacoord as ac
from adacoord.solvers.dual.acf import AdaptiveFrequencies
from adacoord.solvers.dual.dual_cd import DualCoordinateAscent
from adacoord.solvers.primal.primal_cd import CoordinateDescent
from adacoord.solvers.primal.working_set import WorkingSetDescent

HINGE = {
    "rcv1.subset.binary": (1, 10, 100, 1000),
    "news20.rebuilt.binary": (1, 10, 100),
    "w8a": (1, 10, 100),
    "a9a": (1, 10),
    "covtype.binary.scale": (1,),
}
LASSO = {
    "rcv1.subset.binary": (10, 30, 100, 300),
    "news20.rebuilt.binary": (10, 100),
    "a9a": (10, 100),
}


class UniformWorkingSets(WorkingSetDescent):
    """Working sets whose columns are visited once a sweep each: no frequency is ever learnt."""

    def _sweep(self):
        self.learning = False
        super()._sweep()


def load(folder: Path, name: str):
    A, b = ac.io.load_svmlight(folder / f"{name}.svm.xz")
    norms = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
    return sparse.diags(1.0 / np.where(norms > 0.0, norms, 1.0)) @ A, b


def run(problem: ac.Problem, make, gap: float, limit: int) -> tuple[float, str]:
    """Entries touched over nnz to ``gap``, and how the table says it."""
    solver = make(problem, np.random.Generator(np.random.PCG64(0)))
    primal, dual, mark = np.inf, -np.inf, ">"
    while solver.passes < limit:
        solver.advance(1)
        primal = min(primal, problem.primal(solver.x))
        dual = max(dual, problem._dual(*problem.feasible_dual(solver.y)))
        if problem.relative_gap(primal, dual) <= gap:
            mark = " "
            break
    entries = solver.operations / problem.matrix.nnz
    return entries, f"{mark}{solver.passes:5d} p {entries:8.1f} x nnz"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="rcv1.subset and a9a only")
    arguments.add_argument("--gap", type=float, default=1e-3)
    arguments.add_argument("--limit", type=int, default=2000)
    given = arguments.parse_args()
    if not (folder := os.environ.get("ADACOORD_DATA")):
        sys.exit("set ADACOORD_DATA to the folder of the data sets")
    gains: dict[str, list[float]] = {"hinge": [], "lasso": []}
    for kind, table in (("hinge", HINGE), ("lasso", LASSO)):
        if kind == "hinge":
            contenders = {
                "shuffled": DualCoordinateAscent,
                "shrinking": lambda p, rng: AdaptiveFrequencies(p, rng, order="shrinking"),
                "ACF": lambda p, rng: AdaptiveFrequencies(p, rng, order="frequencies"),
            }
        else:
            contenders = {
                "cyclic": CoordinateDescent,
                "sets": UniformWorkingSets,
                "sets, ACF": WorkingSetDescent,
            }
        print(f"{kind}: " + ", ".join(contenders) + f", to a relative gap of {given.gap:g}")
        for name, values in table.items():
            if given.quick and name not in ("rcv1.subset.binary", "a9a"):
                continue
            A, b = load(Path(folder), name)
            for value in values:
                if kind == "hinge":
                    problem = ac.Problem(A, b, "hinge", l2=1.0 / (A.shape[0] * value))
                    label = f"C = {value}"
                else:
                    largest = ac.Problem(A, b, l1=1.0).l1_max()
                    problem = ac.Problem(A, b, l1=largest / value)
                    label = f"l1_max/{value}, n l1 = {A.shape[0] * largest / value:.3g}"
                found = [run(problem, make, given.gap, given.limit) for make in contenders.values()]
                gains[kind].append(found[1][0] / found[2][0])
                print(
                    f"  {name[:12]:12s} {label:28s} " + "  ".join(text for _, text in found),
                    flush=True,
                )
    for kind, values in gains.items():
        print(
            f"{kind}: entries of the uniform order with shrinking or sets / with ACF: geometric "
            f"mean {np.exp(np.mean(np.log(values))):.2f}, from {min(values):.2f} to "
            f"{max(values):.2f}"
        )


if __name__ == "__main__":
    main()
