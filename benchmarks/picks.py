"""What ``auto`` picks, what it repairs, and the best of the methods it could have picked.

    ADACOORD_DATA=... python benchmarks/picks.py [--quick] [--l2 1e-4,1e-6] [--tol 1e-6]
        [--limit 6] [--seed 0] [NAME ...]

For each data set, loss and l2: ``auto`` as it is, its first pick without repair, and the other
candidates, to a relative gap of --tol with an intercept, no run longer than --limit seconds of
processor time (and the others not much longer than ``auto``).  Seconds are of the processor, BLAS
on one thread, the least of up to five where short; ``x`` are entries of A touched over its entries.
A line ends with BEHIND where a candidate was more than 1.3 times as fast as ``auto`` (and by more
than 1 ms), with WRONG where it was more than twice as fast, and SLOWED where the repair made it
more than 1.3 times slower than the first pick alone.

NAME is ``race``, the problems of ``race.py`` (to 1e-6), or ``users``, what the estimators of
``users.py`` pose at their defaults (to 1e-4; without what takes folds or scales); a data set of the
folder; or random: ``words``, ``gaussian``, and ``NxD``, ``NxD/K``
(dense tables of N rows and D columns, for two or K classes, counts and numbers; ``u`` before it
leaves the columns in units of their own, ``f`` makes it float32).  --seed draws others.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import re
import time
import zlib
from pathlib import Path

import numpy as np
from scipy import sparse

import adacoord as ac
import race
from adacoord.api.solve import run
from adacoord.auto.rule import choose
from adacoord.solvers.newton.size import system_size
from adacoord.solvers.registry import admit, newton_can
from contenders import pose
from users_rows import ROWS

NAMES = ("w8a", "a9a", "covtype", "rcv1", "news20", "leukemia", "mnist", "words", "gaussian")
TABLES = (
    *("100000x10", "20000x100", "u20000x100", "6000x350", "u6000x350", "12000x1500", "f10000x768"),
    *("1500x1500", "1000x5000", "5000x50/10", "u5000x50/10", "20000x100/10", "3000x20/100"),
    *("3000x20/300", "2000x600/5"),
)
#: A table: units of their own, float32, rows, columns, classes.
TABLE = re.compile(r"(u?)(f?)(\d+)x(\d+)(?:/(\d+))?")
#: Seconds that do not matter.
LITTLE = 1e-3
#: The methods that ``auto`` could take.
CANDIDATES = ("newton", "newton-cg", "lbfgs", "acf", "apdc", "dcd", "cd")
KINDS = (
    ("hinge", 0.0),
    ("smooth_hinge", 0.0),
    ("logistic", 0.0),
    ("squared", 0.0),
    ("hinge", 1e-4),
    ("logistic", 1e-4),
)


def table(units: str, single: str, n: int, d: int, classes: int, rng):
    """(A, z): correlated columns, and the margins (or, with classes, noisy codes) of a model."""
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) * rng.random(d)
    if units:
        A = A * np.exp(rng.normal(0.0, 1.5, d)) + rng.normal(0.0, 3.0, d)
    spread = A.std(axis=0)
    weights = rng.standard_normal((d, classes or 1)) * (rng.random((d, 1)) < 0.5) / spread[:, None]
    z = A @ weights
    z = 2.0 * (z - z.mean(axis=0)) / z.std(axis=0)
    z = np.argmax(z + rng.gumbel(size=z.shape), axis=1) if classes else z[:, 0]
    if classes:
        z = np.unique(z, return_inverse=True)[1]
    return np.ascontiguousarray(A, dtype=np.float32 if single else np.float64), z


def problems(name: str, folder: Path, asked):
    """(words, problem, tol) of a name."""
    if name == "race":
        for kind, file, strength, *_ in race.CASES:
            yield race.title(kind, file, strength), pose(race.make_task(kind, file, strength)), 1e-6
    elif name == "users":
        for row in ROWS:
            model, _ = row.models()
            if row.kind in ("path", "huber") or type(model).__name__.endswith("CV"):
                continue
            seed = [asked.seed, zlib.crc32(row.name.encode())]
            X, y, said = row.data(np.random.default_rng(seed))
            yield f"{row.name} ({said})", model._pose(X, y, None, None).problems[0], 1e-4
    else:
        for loss, l1, bare in bare_problems(name, folder, asked.seed):
            for l2 in map(float, asked.l2.split(",")):
                words = f"{name:12} {loss:12} l1={l1:g} l2={l2:g}"
                yield words, bare.with_penalty(l1=l1, l2=l2), asked.tol


def bare_problems(name: str, folder: Path, seed: int):
    """(loss, l1, problem without a penalty) of a data set."""
    rng = np.random.default_rng(seed)
    found = TABLE.fullmatch(name)
    if found is None:
        A, b = data(name, folder, rng)
        for loss, l1 in KINDS:
            yield loss, l1, ac.Problem(A, b, loss, intercept=True)
        return
    n, d, classes = (int(group or 0) for group in found.groups()[2:])
    A, z = table(found[1], found[2], n, d, classes, rng)
    if classes:
        yield "multinomial", 0.0, ac.Problem(A, z, "multinomial", intercept=True)
        return
    signs = np.where(z + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    targets = {
        "squared": z + rng.standard_normal(n),
        "epsilon_insensitive": z + rng.standard_normal(n),
        "poisson": rng.poisson(np.exp(0.5 * z)).astype(float),
    }
    for loss in ("logistic", "squared_hinge", "hinge", *targets):
        yield loss, 0.0, ac.Problem(A, targets.get(loss, signs), loss, intercept=True)


def data(name: str, folder: Path, rng):
    """(A, b); parts of the large ones, two classes of mnist, and two that are random."""
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


def timed(problem: ac.Problem, solver: str, tol: float, limit: float):
    """(seconds, result), of the fastest of some runs where they are short."""
    found = []
    while not found or (sum(seconds for seconds, _ in found) < 1.0 and len(found) < 5):
        began = time.process_time()
        result = run(
            problem,
            solver,
            tol=tol,
            max_passes=1000,
            options={},
            callback=lambda _, began=began: time.process_time() - began > limit,
        )
        found.append((time.process_time() - began, result))
    return min(found, key=lambda pair: pair[0])


def candidates(problem: ac.Problem) -> list[str]:
    """Those of CANDIDATES that can solve it, and whose matrices are not too large."""

    def can(name: str) -> bool:
        if name == "newton" and newton_can(problem) and system_size(problem) > 3000:
            return False
        try:
            admit(problem, name, {})
        except ValueError:
            return False
        return True

    return [name for name in CANDIDATES if can(name)]


def compare(problem: ac.Problem, tol: float, limit: float) -> tuple[str, bool, bool, bool]:
    """A line of the table; whether the pick was behind, wrong, and slowed by the repair."""
    first = choose(problem)
    auto = timed(problem, "auto", tol, limit)
    runs = {first: timed(problem, first, tol, limit) if auto[1].history.switched else auto}
    others = min(limit, 1.2 * max(auto[0], 0.05))
    runs |= {s: timed(problem, s, tol, others) for s in candidates(problem) if s != first}
    done = {s: seconds for s, (seconds, result) in runs.items() if result.converged}
    best = min(done.values(), default=np.inf)
    reached = auto[0] if auto[1].converged else np.inf
    behind, wrong = best < min(reached / 1.3, reached - LITTLE), best < 0.5 * reached
    slowed = first in done and auto[0] > 1.3 * done[first]

    def text(seconds, result):
        touched = result.history.operations[-1] / problem.matrix.nnz
        return f"{1e3 * seconds:.1f} ms {touched:.0f}x" + (
            "" if result.converged else f" ({result.relative_gap:.0e})"
        )

    line = f"auto = {auto[1].method}: {text(*auto)}; " + ", ".join(
        f"{s} {text(*pair)}" for s, pair in runs.items()
    )
    verdict = " WRONG" if wrong and behind else " BEHIND" * behind
    return line + verdict + " SLOWED" * slowed, behind, wrong and behind, slowed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES + TABLES)
    parser.add_argument("--l2", default="1e-4,1e-6")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--limit", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a9a, words and three tables")
    asked = parser.parse_args()
    folder = Path(os.environ.get("ADACOORD_DATA", "."))
    behind = wrong = slowed = total = 0
    quick = ("a9a", "words", "u6000x350", "20000x100", "5000x50/10")
    for name in quick if asked.quick else asked.names:
        for words, problem, tol in problems(name, folder, asked):
            for solver in candidates(problem):  # compile
                run(problem, solver, tol=1e-2, max_passes=2, options={})
            line, *verdicts = compare(problem, tol, asked.limit)
            behind, wrong, slowed = np.add((behind, wrong, slowed), verdicts)
            total += 1
            print(f"{words}: {line}", flush=True)
    print(
        f"of {total}: {behind} more than 1.3 times as slow as the best candidate, {wrong} more "
        f"than twice, {slowed} slowed by a repair"
    )


if __name__ == "__main__":
    main()
