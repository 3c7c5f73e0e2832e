"""What ``auto`` picks, what it repairs, and the best of the methods it could have picked.

    ADACOORD_DATA=... python benchmarks/picks.py [--quick] [--l2 1e-4,1e-6] [--limit 6] [NAME ...]

For each data set, loss and l2: ``auto`` as it is, its first pick without repair, and the other
candidates, to a relative gap of 1e-6 with an intercept, no run longer than --limit seconds of
processor time (and the others not much longer than ``auto``).  Seconds are of the processor, the
least of two where short; ``x`` are entries of A touched over its entries.  A line ends with
WRONG where a candidate was more than twice as fast as ``auto``, and SLOWED where the repair
made it more than 1.3 times slower than the first pick alone.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from scipy import sparse

import adacoord as ac
from adacoord.api.solve import run
from adacoord.auto.rule import choose
from adacoord.solvers.newton.size import system_size
from adacoord.solvers.registry import newton_can

NAMES = ("w8a", "a9a", "covtype", "rcv1", "news20", "leukemia", "mnist", "words", "gaussian")
KINDS = (
    ("hinge", 0.0),
    ("smooth_hinge", 0.0),
    ("logistic", 0.0),
    ("squared", 0.0),
    ("hinge", 1e-4),
    ("logistic", 1e-4),
)


def data(name: str, folder: Path):
    """(A, b); parts of the large ones, two classes of mnist, and two that are random."""
    rng = np.random.default_rng(0)
    if name == "words":
        n, d, long = 8000, 20_000, 40
        columns = (d * rng.random(n * long) ** 3).astype(int)
        A = sparse.csr_matrix((np.ones(n * long), (np.repeat(np.arange(n), long), columns)), (n, d))
        A.sum_duplicates()
        A.data[:] = long**-0.5
        return A, rng.choice([-1.0, 1.0], n)
    if name == "gaussian":
        A = rng.standard_normal((6000, 800)) / np.sqrt(800)
        return A, np.sign(A @ rng.standard_normal(800) + 0.5 * rng.standard_normal(6000))
    files = {
        "covtype": "covtype.binary.scale",
        "rcv1": "rcv1.subset.binary",
        "news20": "news20.rebuilt.binary",
        "leukemia": "leukemia.golub",
    }
    A, b = ac.io.load_svmlight(folder / f"{files.get(name, name)}.svm.xz")
    rows = np.arange(b.size)
    if name == "mnist":
        rows = np.flatnonzero((b == 4) | (b == 9))
        A = A / A.max()
    elif name in ("covtype", "news20"):
        rows = rng.permutation(b.size)[: 40_000 if name == "covtype" else 3000]
    A, b = sparse.csr_matrix(A)[rows], b[rows]
    A = A[:, np.flatnonzero(A.getnnz(axis=0))]
    return (A.toarray() if name == "leukemia" else A), np.where(b == b.max(), 1.0, -1.0)


def timed(problem: ac.Problem, solver: str, limit: float):
    """(seconds, result), of the faster of two runs where they are short."""
    found = []
    for _ in range(2):
        began = time.process_time()
        result = run(
            problem,
            solver,
            tol=1e-6,
            max_passes=1000,
            options={},
            callback=lambda _, began=began: time.process_time() - began > limit,
        )
        found.append((time.process_time() - began, result))
        if found[-1][0] > 1.0:
            break
    return min(found, key=lambda pair: pair[0])


def candidates(problem: ac.Problem) -> list[str]:
    if problem.penalty.l1 > 0.0:
        return ["acf", "apdc", "dcd", *(["cd"] if problem.loss.gamma else [])]
    newton = newton_can(problem) and system_size(problem) <= 3000
    return ["acf", "apdc", "dcd", *(["newton"] if newton else [])]


def compare(problem: ac.Problem, limit: float) -> tuple[str, bool, bool]:
    """A line of the table; whether the pick was wrong, and whether the repair slowed it."""
    first = choose(problem)
    auto = timed(problem, "auto", limit)
    runs = {first: timed(problem, first, limit) if auto[1].history.switched else auto}
    others = min(limit, 1.2 * max(auto[0], 0.05))
    runs |= {s: timed(problem, s, others) for s in candidates(problem) if s != first}
    done = {s: seconds for s, (seconds, result) in runs.items() if result.converged}
    best = min(done.values(), default=np.inf)
    wrong = best < (0.5 * auto[0] if auto[1].converged else np.inf)
    slowed = first in done and auto[0] > 1.3 * done[first]

    def text(seconds, result):
        touched = result.history.operations[-1] / problem.matrix.nnz
        return f"{seconds:.2f} s {touched:.0f}x" + (
            "" if result.converged else f" ({result.relative_gap:.0e})"
        )

    line = f"auto = {auto[1].method}: {text(*auto)}; " + ", ".join(
        f"{s} {text(*pair)}" for s, pair in runs.items()
    )
    return line + " WRONG" * wrong + " SLOWED" * slowed, wrong, slowed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--l2", default="1e-4,1e-6")
    parser.add_argument("--limit", type=float, default=6.0)
    parser.add_argument("--quick", action="store_true", help="a9a and words only")
    asked = parser.parse_args()
    folder = Path(os.environ.get("ADACOORD_DATA", "."))
    wrong = slowed = total = 0
    for name in ("a9a", "words") if asked.quick else asked.names:
        A, b = data(name, folder)
        for l2 in map(float, asked.l2.split(",")):
            for loss, l1 in KINDS:
                problem = ac.Problem(A, b, loss, l1=l1, l2=l2, intercept=True)
                for solver in candidates(problem):  # compile
                    run(problem, solver, tol=1e-2, max_passes=2, options={})
                line, is_wrong, is_slowed = compare(problem, asked.limit)
                wrong, slowed, total = wrong + is_wrong, slowed + is_slowed, total + 1
                print(f"{name:9} {loss:12} l1={l1:g} l2={l2:g}: {line}", flush=True)
    print(
        f"{wrong} of {total} more than twice as slow as the best candidate, {slowed} slowed by "
        "a repair"
    )


if __name__ == "__main__":
    main()
