"""Does ``ac.solve(problem)`` with its defaults get there, whatever the problem?

    python benchmarks/robust.py [seconds]

Every loss under l2 = 1/n, a tiny l2, l1 and both, with and without an intercept, on scikit-learn's
bundled sets (diabetes; breast_cancer raw and scaled; digits as classes and as targets) and on
random dense and sparse data, wide, square and tall.  A problem counts as missed when the relative
gap of 1e-6 is not reached, or not within ``seconds`` (2 unless given) of processor time, kernels
warm.  Prints what is missed, and how the processor seconds are distributed.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import StandardScaler

import adacoord as ac
from adacoord.problem.losses import BLOCK_LOSSES, LOSSES, get_loss

TOL = 1e-6
SHAPES = {"wide": (60, 400), "square": (150, 150), "tall": (1000, 20)}


def data_sets():
    """(name, A, real targets or None, class codes or None)."""
    yield ("diabetes", *load_diabetes(return_X_y=True), None)
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast_cancer", X, None, y
    yield "breast_cancer scaled", StandardScaler().fit_transform(X), None, y
    X, y = load_digits(return_X_y=True)
    yield "digits", X, y.astype(float), y
    for name, (n, d) in SHAPES.items():
        rng = np.random.default_rng(n)
        A = rng.standard_normal((n, d))
        for storage, density in (("dense", 1.0), ("sparse", 0.1)):
            B = A * (rng.random((n, d)) < density)
            z = B @ (rng.standard_normal(d) * (rng.random(d) < 0.3)) + rng.standard_normal(n)
            codes = np.digitize(z, np.quantile(z, (0.3, 0.6)))
            yield (f"{name} {storage}", B if density == 1.0 else sparse.csr_array(B), z, codes)


def targets(loss, real, codes):
    """What the loss takes of a set, or None."""
    if loss.task == "multiclass":
        return codes if codes is not None and codes.max() > 1 else None
    if loss.task == "classification":
        return None if codes is None else np.where(codes > codes.mean(), 1.0, -1.0)
    if real is None:
        return None
    return np.round(np.abs(real) / np.std(real) * 3.0) if loss.task == "count" else real


def problems():
    """(name, problem) of the whole grid."""
    for name, A, real, codes in data_sets():
        n = A.shape[0]
        for loss in map(get_loss, (*LOSSES, *BLOCK_LOSSES)):
            b = targets(loss, real, codes)
            if b is None:
                continue
            # with an intercept: centred columns and targets all on one side have none without
            top = ac.Problem(A, b, loss, l2=1.0 / n, intercept=True).l1_max()
            for intercept in (False, True):
                base = ac.Problem(A, b, loss, l2=1.0 / n, intercept=intercept)
                tiny = 1e-4 * float(np.mean(base.matrix.squared_norms)) / n**2
                for kind, penalty in {
                    "l2": {"l2": 1.0 / n},
                    "l2 tiny": {"l2": tiny},
                    "l1": {"l1": 0.05 * top, "l2": 0.0},
                    "both": {"l1": 0.05 * top, "l2": 1.0 / n},
                }.items():
                    words = f"{name}, {loss.name}, {kind}{', intercept' * intercept}"
                    yield words, base.with_penalty(**{"l1": 0.0, **penalty})


def main() -> None:
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    warnings.simplefilter("ignore", ac.ConvergenceWarning)
    times, missed, solvers, warm = [], [], Counter(), set()
    for words, problem in problems():
        key = problem.loss.name, problem.matrix.is_dense, problem.penalty.l1 > 0, problem.penalty.l2
        if key not in warm:  # kernels are compiled once
            ac.solve(problem, max_seconds=2 * limit)
            warm.add(key)
        began = time.process_time()
        result = ac.solve(problem, tol=TOL, max_seconds=5 * limit)
        seconds = time.process_time() - began
        times.append(seconds)
        solvers[result.method.split(" ")[0]] += 1
        if not result.converged or seconds > limit:
            missed.append(words)
            print(
                f"{words}: {result.method}, {result.status}, relative gap "
                f"{result.relative_gap:.1e} after {result.passes} passes, {seconds:.2f} s",
                flush=True,
            )
    quantiles = ", ".join(f"{q:.0%} {np.quantile(times, q):.4f}" for q in (0.5, 0.9, 0.99, 1.0))
    print(
        f"{len(missed)} of {len(times)} missed; seconds: {quantiles}; "
        + ", ".join(f"{name} {count}" for name, count in solvers.most_common())
    )


if __name__ == "__main__":
    main()
