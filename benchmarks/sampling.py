"""Adaptive (AIS) against Lipschitz (LIS) and uniform (US) sampling in SPDC, in one run.

    ADACOORD_DATA=... python benchmarks/sampling.py [--quick]

Smoothed hinge at the l2 of the paper's Table 2 and at a hundredth of it: passes to a relative gap
of 1e-6, looked at after each pass, mean of five seeds (of one with --quick), for theory, theory2
(AIS only) and practical steps.  gisette is not at hand: mnist's 4 against 9, dense, stands in.
"-" is more than 2000 passes.  Then the cost of a pass against US's: the minimum of passes that
take turns.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import adacoord as ac
from adacoord.solvers.primal_dual.spdc import SPDC

#: name: the paper's l2
DATA = {"colon-cancer": 1.0, "a2a": 1e-2, "w8a": 1e-2, "mnist 4/9": 1e-1}
SAMPLING = ("uniform", "lipschitz", "adaptive")
LIMIT = 2000


def load(folder: Path, name: str):
    A, b = ac.io.load_svmlight(folder / f"{name.split()[0]}.svm.xz")
    if name.startswith("mnist"):
        kept = (b == 4) | (b == 9)
        return A[kept].toarray() / 255.0, np.where(b[kept] == 4, 1.0, -1.0)
    return (A.toarray() if A.nnz > 0.5 * np.prod(A.shape) else A), b


def passes_to(problem: ac.Problem, seed: int, limit: int, **options) -> float:
    solver = SPDC(problem, np.random.Generator(np.random.PCG64(seed)), **options)
    primal, dual = np.inf, -np.inf
    for passes in range(1, limit + 1):
        solver.advance(1)
        primal = min(primal, problem.primal(solver.x))
        dual = max(dual, problem.dual(problem.feasible_dual(solver.y)[0]))
        if primal - dual <= 1e-6 * max(abs(primal), abs(dual)):
            return passes
    return np.inf


def pass_costs(problem: ac.Problem, turns: int) -> list[float]:
    solvers = [SPDC(problem, np.random.Generator(np.random.PCG64(0)), sampling=s) for s in SAMPLING]
    best = [np.inf] * len(solvers)
    for _ in range(turns):
        for k, solver in enumerate(solvers):
            started = time.perf_counter()
            solver.advance(1)
            best[k] = min(best[k], time.perf_counter() - started)
    return best


def main(quick: bool) -> None:
    if not (folder := os.environ.get("ADACOORD_DATA")):
        sys.exit("set ADACOORD_DATA to the folder of the data sets")
    gains, costs = [], []
    for name, paper in DATA.items():
        A, b = load(Path(folder), name)
        for l2 in (paper, paper / 100):
            problem = ac.Problem(A, b, "smooth_hinge", l2=l2)
            print(f"{name}, {A.shape[0]} x {A.shape[1]}, l2 = {l2:g}: US / LIS / AIS")
            for steps in ("theory", "theory2", "practical"):
                means = []
                for sampling in SAMPLING:
                    if steps == "theory2" and sampling != "adaptive":
                        means.append(np.nan)
                        continue
                    counts = [
                        passes_to(problem, seed, LIMIT, sampling=sampling, steps=steps)
                        for seed in range(1 if quick else 5)
                    ]
                    means.append(np.mean(counts))
                text = " / ".join(
                    "" if np.isnan(v) else f"{v:.1f}" if np.isfinite(v) else "-" for v in means
                )
                print(f"  {steps:9s}  {text:28s}", flush=True)
            gains.append(means[2] / means[0])
            print(f"  AIS/US passes, practical: {gains[-1]:.2f}")
        best = pass_costs(problem, 20 if A.shape[0] > 10_000 else 200)
        costs.append(best[2] / best[0])
        print(
            f"  a pass: US {1e3 * best[0]:.3g} ms, LIS {best[1] / best[0]:.2f}x, "
            f"AIS {costs[-1]:.2f}x",
            flush=True,
        )
    print(
        f"AIS/US passes, practical steps: mean {np.mean(gains):.2f}, geometric mean "
        f"{np.exp(np.mean(np.log(gains))):.2f}; cost of a pass: "
        f"{min(costs):.2f} to {max(costs):.2f}"
    )


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
