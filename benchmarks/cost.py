"""What a pass costs, against scipy's ``A @ x`` plus ``A.T @ y`` in the same run.

    ADACOORD_DATA=... python benchmarks/cost.py [NAME ...]

Kernels are warmed up first; what is compared alternates, and the minimum of 15 rounds counts.
Without ADACOORD_DATA a generated text-like matrix stands in, and says so.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import adacoord as ac
from adacoord.solvers.registry import SOLVERS

ROUNDS = 15
#: (label, solver, l1, dtype, options, the ratio it should stay below on rcv1.subset)
CASES = (
    ("spdc, l2", "spdc", 0.0, np.float64, {}, 3.0),
    ("spdc, l2, weighted", "spdc", 0.0, np.float64, {"sampling": "weighted"}, None),
    ("spdc, l2, batches of 16", "spdc", 0.0, np.float64, {"batch_size": 16}, None),
    ("spdc, l2, float32", "spdc", 0.0, np.float32, {}, None),
    ("spdc, l1 + l2", "spdc", 1e-5, np.float64, {}, None),
    ("spdc, l2, adaptive", "spdc", 0.0, np.float64, {"sampling": "adaptive"}, None),
    ("adaspdc, l2", "adaspdc", 0.0, np.float64, {}, None),
    ("apdc, l2", "apdc", 0.0, np.float64, {}, 2.5),
    ("apdc, l1 + l2", "apdc", 1e-5, np.float64, {}, 6.0),
    ("dcd, l2", "dcd", 0.0, np.float64, {}, 1.6),
    ("dcd, l2, float32", "dcd", 0.0, np.float32, {}, None),
    ("dcd, l1 + l2", "dcd", 1e-5, np.float64, {}, None),
    ("sdca, l2", "sdca", 0.0, np.float64, {}, None),
)


def load(name: str):
    folder = os.environ.get("ADACOORD_DATA")
    if folder:
        A, b = ac.io.load_svmlight(Path(folder) / f"{name}.svm.xz")
        return name, A, b
    from adacoord.command.demo import text_like

    return "generated text-like data (ADACOORD_DATA is not set)", *text_like()


def seconds(call) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def main(names: list[str]) -> None:
    for name in names or ["rcv1.subset.binary"]:
        title, A, b = load(name)
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
        runs = {"A @ x + A.T @ y": lambda A=A, x=x, y=y: (A @ x, A.T @ y)}
        for label, solver, l1, dtype, options, _ in CASES:
            problem = ac.Problem(A.astype(dtype), b, loss="smooth_hinge", l1=l1, l2=1e-5)
            stepper = SOLVERS[solver].load()(problem, np.random.default_rng(0), **options)
            stepper.advance(3)
            runs[label] = lambda stepper=stepper: stepper.advance(1)
        best = dict.fromkeys(runs, np.inf)
        for _ in range(ROUNDS):
            for label, call in runs.items():
                best[label] = min(best[label], seconds(call))
        reference = best["A @ x + A.T @ y"]
        print(f"\n{title}: {A.shape[0]} x {A.shape[1]}, {A.nnz} entries")
        print(f"{'A @ x + A.T @ y':28s} {1e3 * reference:8.2f} ms")
        for label, *_, limit in CASES:
            goal = f"   goal <= {limit}" if limit and "rcv1" in title else ""
            print(
                f"{label:28s} {1e3 * best[label]:8.2f} ms   ratio "
                f"{best[label] / reference:5.2f}{goal}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
