"""APDC against uniform SPDC (theory and practical steps), AdaSPDC and dual ascent, in one run.

    ADACOORD_DATA=... python benchmarks/primal_dual.py [--quick] [--cap SECONDS] [NAME ...]

Passes and seconds to a relative gap of 1e-6: smoothed hinge and logistic, l2 from 1e-4 to 1e-7.
Seconds include the gap checks; kernels are warmed up first.  A run that ends before 1e-6 (3000
passes, or the cap of 60 s) counts with what it had spent, and is marked ">": such a ratio is less
favourable to APDC than the true one.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import adacoord as ac

NAMES = ("w8a", "a9a", "rcv1.subset.binary", "covtype.binary.scale")
CONTENDERS = (
    ("apdc", {}),
    ("spdc", {"steps": "theory"}),
    ("spdc", {}),
    ("adaspdc", {}),
    ("dcd", {}),
)


def label(solver: str, options: dict) -> str:
    return " ".join([solver, *options.values()])


def main(names: tuple[str, ...], cap: float) -> None:
    folder = os.environ.get("ADACOORD_DATA")
    if not folder:
        sys.exit("set ADACOORD_DATA to the folder of the data sets")
    warnings.simplefilter("ignore", ac.ConvergenceWarning)
    ratios: dict[str, list[float]] = {label(*c): [] for c in CONTENDERS[1:]}
    faster = []
    for name in names:
        A, b = ac.io.load_svmlight(Path(folder) / f"{name}.svm.xz")
        n, d = A.shape
        for loss in ("smooth_hinge", "logistic"):
            for l2 in (1e-4, 1e-5, 1e-6, 1e-7):
                problem = ac.Problem(A, b, loss=loss, l2=l2)
                row, spent = [], {}
                for solver, options in CONTENDERS:
                    ac.solve(problem, solver, max_passes=1, **options)
                    r = ac.solve(problem, solver, max_passes=3000, max_seconds=cap, **options)
                    spent[label(solver, options)] = r
                    mark = " " if r.converged else ">"
                    row.append(f"{mark}{r.passes:5d} p {r.seconds:7.2f} s")
                ours = spent["apdc"]
                for other, values in ratios.items():
                    values.append(ours.passes / spent[other].passes)
                hard = n * l2 * problem.loss.gamma / np.mean(problem.matrix.squared_norms)
                if n > d and hard < 0.1:
                    faster.append(spent["dcd"].seconds / ours.seconds)
                print(f"{name[:12]:12s} {loss:12s} {l2:.0e}  {'  '.join(row)}", flush=True)
    print("columns: " + ", ".join(label(*c) for c in CONTENDERS))
    for other, values in ratios.items():
        print(f"passes, apdc/{other}: geometric mean {np.exp(np.mean(np.log(values))):.3f}")
    print(
        f"seconds, dcd/apdc where n > d and n l2 gamma/R^2 < 0.1: at least {min(faster):.1f}, "
        f"geometric mean {np.exp(np.mean(np.log(faster))):.1f} over {len(faster)} problems"
    )


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("names", nargs="*", default=NAMES)
    arguments.add_argument("--quick", action="store_true", help="the first two data sets")
    arguments.add_argument("--cap", type=float, default=60.0)
    given = arguments.parse_args()
    main(tuple(given.names)[: 2 if given.quick else None], given.cap)
