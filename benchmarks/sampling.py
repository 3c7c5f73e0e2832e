"""Adaptive (AIS) against Lipschitz (LIS) and uniform (US) sampling in SPDC, in one run.

    ADACOORD_DATA=... python benchmarks/sampling.py [--quick] [--practical]

Smoothed hinge on twelve problems: the l2 of the paper's Table 2 (of its Table 3 for rcv1 and
covtype) and a hundredth of it; passes to a relative gap of 1e-6, looked at after each pass, mean of
five seeds (of one with --quick), for theory, theory2 (AIS only), constant and practical steps
(those alone with --practical).  With constant steps LIS has AIS's delta_t, and AIS the weights of
the last step: the paper's Figure 4.  gisette is not at hand: mnist's 4 against 9, dense, stands in;
of covtype 50,000 rows drawn at random are taken.  "-" is more than 2000 passes.  AIS/US is of
passes and, in brackets, of entries touched: AIS may draw longer rows.  Then the cost of a pass
against US's: the least processor time of passes that take turns.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import adacoord as ac
from adacoord.solvers.primal_dual.spdc import SPDC

#: name: the file, and the larger l2
DATA = {
    "colon-cancer": ("colon-cancer", 1.0),
    "a2a": ("a2a", 1e-2),
    "w8a": ("w8a", 1e-2),
    "mnist 4/9": ("mnist", 1e-1),
    "rcv1": ("rcv1.subset.binary", 1e-4),
    "covtype": ("covtype.binary.scale", 1e-4),
}
SAMPLING = ("uniform", "lipschitz", "adaptive")
#: What AIS's figures have beside constant steps.
CONSTANT = {"uniform": {}, "lipschitz": {"delta": (0.2, 0.8)}, "adaptive": {"weights": "last"}}
LIMIT, ROWS = 2000, 50_000


def load(folder: Path, name: str):
    A, b = ac.io.load_svmlight(folder / f"{DATA[name][0]}.svm.xz")
    if name.startswith("mnist"):
        kept = (b == 4) | (b == 9)
        return A[kept].toarray() / 255.0, np.where(b[kept] == 4, 1.0, -1.0)
    if name == "covtype":
        kept = np.sort(np.random.default_rng(0).choice(b.size, ROWS, replace=False))
        A, b = A[kept], b[kept]
    return (A.toarray() if A.nnz > 0.5 * np.prod(A.shape) else A), b


def passes_to(problem: ac.Problem, seed: int, limit: int, **options) -> tuple[float, float]:
    """(passes, entries touched in units of those of A)."""
    solver = SPDC(problem, np.random.Generator(np.random.PCG64(seed)), **options)
    primal, dual = np.inf, -np.inf
    for passes in range(1, limit + 1):
        solver.advance(1)
        primal = min(primal, problem.primal(solver.x))
        dual = max(dual, problem.dual(problem.feasible_dual(solver.y)[0]))
        if primal - dual <= 1e-6 * max(abs(primal), abs(dual)):
            return passes, solver.operations / problem.matrix.nnz
    return np.inf, np.inf


def pass_costs(problem: ac.Problem, turns: int) -> list[float]:
    solvers = [SPDC(problem, np.random.Generator(np.random.PCG64(0)), sampling=s) for s in SAMPLING]
    best = [np.inf] * len(solvers)
    for _ in range(turns):
        for k, solver in enumerate(solvers):
            started = time.process_time()
            solver.advance(1)
            best[k] = min(best[k], time.process_time() - started)
    return best


def means_of(problem: ac.Problem, steps: str, seeds: int) -> dict[str, np.ndarray]:
    """Mean passes and entries by sampling."""
    means = {}
    for sampling in SAMPLING:
        if steps == "theory2" and sampling != "adaptive":
            continue
        options = CONSTANT[sampling] if steps == "constant" else {}
        runs = [
            passes_to(problem, seed, LIMIT, sampling=sampling, steps=steps, **options)
            for seed in range(seeds)
        ]
        means[sampling] = np.mean(runs, axis=0)
    return means


def geometric(values) -> float:
    return float(np.exp(np.mean(np.log(values))))


def main(quick: bool, practical: bool) -> None:
    if not (folder := os.environ.get("ADACOORD_DATA")):
        sys.exit("set ADACOORD_DATA to the folder of the data sets")
    gains, costs = [], []
    for name, (_, paper) in DATA.items():
        A, b = load(Path(folder), name)
        for l2 in (paper, paper / 100):
            problem = ac.Problem(A, b, "smooth_hinge", l2=l2)
            print(f"{name}, {A.shape[0]} x {A.shape[1]}, l2 = {l2:g}: US / LIS / AIS")
            for steps in ("theory", "theory2", "constant", "practical")[3 * practical :]:
                means = means_of(problem, steps, 1 if quick else 5)
                text = " / ".join(
                    f"{v[0]:.1f}" if np.isfinite(v[0]) else "-" for v in means.values()
                )
                print(f"  {steps:9s}  {text:28s}", flush=True)
            gains.append(means["adaptive"] / means["uniform"])
            print(f"  AIS/US, practical: {gains[-1][0]:.2f} ({gains[-1][1]:.2f})")
        best = pass_costs(problem, 20 if A.shape[0] > 10_000 else 200)
        costs.append(best[2] / best[0])
        print(
            f"  a pass: US {1e3 * best[0]:.3g} ms, LIS {best[1] / best[0]:.2f}x, "
            f"AIS {costs[-1]:.2f}x",
            flush=True,
        )
    passes, entries = np.transpose(gains)
    print(
        f"AIS/US with practical steps, {passes.size} problems: passes {geometric(passes):.2f} "
        f"(geometric mean; {passes.min():.2f} to {passes.max():.2f}), entries "
        f"{geometric(entries):.2f}; cost of a pass: {min(costs):.2f} to {max(costs):.2f}"
    )


if __name__ == "__main__":
    main("--quick" in sys.argv[1:], "--practical" in sys.argv[1:])
