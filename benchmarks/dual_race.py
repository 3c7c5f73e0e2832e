"""ACF against liblinear (and lbfgs), at equal objective, in one run.

    ADACOORD_DATA=... python benchmarks/dual_race.py [--quick]

Unit rows, no intercept, l2 = 1/(n C), one thread.  Ours is the time of ``solve`` to a certified
relative gap of 1e-6.  A peer climbs its own tolerances from scratch; its time is that of the first
rung whose objective, in float64, is within 1e-6 of the best dual value.  A peer that has not got
there after LIMIT seconds counts with its last rung, and is marked ">".  Kernels are warmed up;
ours is the least of three runs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

import adacoord as ac

LIMIT = 60.0
RACES = (  # data, loss, C, the goal for ours/best peer
    ("w8a", "hinge", 1, 1.0), ("w8a", "hinge", 100, 0.3),
    ("rcv1.subset.binary", "logistic", 1, 0.9), ("rcv1.subset.binary", "logistic", 100, 0.5),
    ("rcv1.subset.binary", "hinge", 1, 0.4), ("rcv1.subset.binary", "hinge", 10, 0.2),
    ("rcv1.subset.binary", "hinge", 100, 0.15), ("rcv1.subset.binary", "hinge", 1000, 0.1),
    ("covtype.binary.scale", "hinge", 1, 0.8),
    ("news20.rebuilt.binary", "hinge", 1, 1.0), ("news20.rebuilt.binary", "hinge", 100, 0.2),
)


def peers(loss: str, C: float):
    """Name and a constructor by tolerance."""
    common = {"C": C, "fit_intercept": False, "max_iter": 10**6}
    if loss == "hinge":
        yield "liblinear", lambda tol: LinearSVC(
            loss="hinge", dual=True, tol=tol, random_state=0, **common)
        return
    yield "liblinear", lambda tol: LogisticRegression(
        solver="liblinear", dual=True, tol=tol, random_state=0, **common)
    for solver in ("lbfgs", "newton-cg"):
        yield solver, lambda tol, s=solver: LogisticRegression(solver=s, tol=tol, **common)


def climb(make, problem, A, b, target: float) -> tuple[float, bool]:
    """(seconds of the first rung that reaches the target, whether one did)."""
    for k in range(1, 10):
        began = time.perf_counter()
        model = make(10.0**-k).fit(A, b)
        seconds = time.perf_counter() - began
        if problem.primal(np.ravel(model.coef_)) <= target:
            return seconds, True
        if seconds > LIMIT:
            break
    return seconds, False


def main(quick: bool) -> None:
    folder = os.environ.get("ADACOORD_DATA")
    if not folder:
        sys.exit("set ADACOORD_DATA to the folder of the data sets")
    warnings.simplefilter("ignore")
    loaded, A, b = "", None, None
    for name, loss, C, goal in RACES[: 4 if quick else None]:
        if name != loaded:
            A, b = ac.io.load_svmlight(Path(folder) / f"{name}.svm.xz")
            A, b, loaded = normalize(A), np.where(b == b.max(), 1.0, -1.0), name
        problem = ac.Problem(A, b, loss, l2=1.0 / (b.size * C))
        runs = [ac.solve(problem, "acf", max_passes=5000) for _ in range(4)][1:]
        ours = min(runs, key=lambda r: r.seconds)
        found = {p: climb(make, problem, A, b, ours.dual * (1 + 1e-6))
                 for p, make in peers(loss, C)}
        best = min(seconds for seconds, _ in found.values())
        print(f"{name:22s} {loss:8s} C={C:<5g} acf {ours.seconds:7.3f} s, {ours.passes:4d} passes, "
              f"{ours.history.operations[-1] / A.nnz:6.1f} x nnz; ratio {ours.seconds / best:.3f} "
              f"(goal {goal}); " + ", ".join(
                  f"{p} {'' if there else '>'}{seconds:.3g} s"
                  for p, (seconds, there) in found.items()), flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv)
