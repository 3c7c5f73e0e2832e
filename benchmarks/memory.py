"""Peak memory of fits: of data in memory, and of stores under a limit that they do not fit in.

    python benchmarks/memory.py [--size MB] [held | stored] [ROW ...]

Every fit runs in a process of its own.  Its *base* is what the process has once it has imported
the package and solved a small problem by the same method: the interpreter with its libraries and
compiled kernels.

held    arrays of about ``--size`` megabytes (200).  ``peak`` is the resident memory at its highest
        less what it was before the fit, which has the arrays in it; ``allowed`` is 0.3 times the
        bytes of the arrays, and 10 vectors of n + d numbers.
stored  a store of thousands of megabytes (or ``--size``) is trained on to a relative gap of 1e-4
        by a process that may allocate a quarter of that, interpreter and all (``RLIMIT_DATA``).
        ``peak`` is the resident memory at its highest; ``ceiling`` the base, two blocks, and one
        vector of n + 4 d numbers; ``vectors`` is how many of these are beyond base and blocks.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

import adacoord as ac

#: Estimators of the first table, with what makes their problems worth solving.
HELD = {
    "LinearSVC": {},
    "LogisticRegression": {},
    "Lasso": {"alpha": 0.01},
    "Ridge": {},
}


class Row(NamedTuple):
    """A row of the second table; a table of ``size`` megabytes and d dense columns."""

    loss: str
    solver: str
    size: float
    d: int
    vectors: int  # of n + 4 d numbers that training takes at most
    l1: float = 0.0  # as a share of the largest


STORED = {
    "newton": Row("logistic", "newton", 3600.0, 50, 11),
    "lasso": Row("squared", "auto", 2000.0, 200, 26, l1=0.05),
    "hinge": Row("hinge", "auto", 2000.0, 300, 26),
}
DENSE, SPARSE, ENTRIES = 50, 20_000, 60


def status(field: str) -> int:
    """A line of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def rows(n: int, d: int, entries: int, seed: int, truth: np.ndarray, classes: bool):
    """Dense rows, or sparse ones with columns as unequal as words are; targets with noise."""
    rng = np.random.default_rng(seed)
    if entries == 0:
        X = rng.standard_normal((n, d))
        noise = rng.standard_normal(n)
    else:
        columns = np.minimum((d * rng.random(n * entries) ** 2.5).astype(np.int32), d - 1)
        starts = np.arange(0, n * entries + 1, entries, dtype=np.int32)
        X = sparse.csr_matrix((rng.random(n * entries), columns, starts), shape=(n, d))
        X.sum_duplicates()
        noise = 0.1 * rng.standard_normal(n)
    z = X @ truth + noise
    return X, np.where(z > 0.0, 1.0, -1.0) if classes else z


def coefficients(d: int) -> np.ndarray:
    rng = np.random.default_rng(d)
    return rng.standard_normal(d) * (rng.random(d) < 0.3)


def count(megabytes: float, d: int, entries: int) -> int:
    return int(megabytes * 1e6 / (12 * entries if entries else 8 * d))


# ---- data in memory ------------------------------------------------------------------------------


def held_child(name: str, kind: str, megabytes: float) -> dict:
    """Fit once on few rows, then on all of them."""
    d, entries = (DENSE, 0) if kind == "dense" else (SPARSE, ENTRIES)
    n, truth = count(megabytes, d, entries), coefficients(d)

    def fit(X, y, **how):
        return getattr(ac, name)(**HELD[name], **how).fit(X, y)

    def data(n, seed):
        X, y = rows(n, d, entries, seed, truth, name in ("LinearSVC", "LogisticRegression"))
        return X.tocsc() if kind == "csc" else X, y

    for few in (min(n, 2_000), min(n, 20_000)):
        fit(*data(few, 1))
    if name == "LinearSVC" and entries:  # what auto takes of many rows: code is no part of the data
        fit(*data(2_000, 1), solver="apdc")
    X, y = data(n, 0)
    Path("/proc/self/clear_refs").write_text("5")  # the highest so far is forgotten
    before = status("VmRSS")
    model = fit(X, y)
    given = y.nbytes + (
        X.nbytes if kind == "dense" else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    )
    return {
        "solver": model.solver_,
        "given": given,
        "peak": status("VmHWM") - before,
        "allowed": 0.3 * given + 80 * (n + d),
        "vectors": (status("VmHWM") - before) / (8 * (n + d)),
    }


def held(megabytes: float, wanted: list[str]) -> None:
    print(f"{'':30s} {'given':>8s} {'peak':>8s} {'allowed':>8s}  in vectors of n + d")
    for name in HELD:
        for kind in ("dense", "csr", "csc"):
            if (wanted and name not in wanted) or (kind == "csc" and name != "Lasso"):
                continue
            found = child("held", name, kind, megabytes)
            print(
                f"{name:19s} {kind:10s} {found['given'] / 1e6:5.0f} MB {found['peak'] / 1e6:5.0f} "
                f"MB {found['allowed'] / 1e6:5.0f} MB  {found['vectors']:5.1f}  {found['solver']}"
                + ("" if found["peak"] <= found["allowed"] else "  MORE THAN ALLOWED"),
                flush=True,
            )


# ---- data on disk --------------------------------------------------------------------------------


def pose(row: str, store):
    given = STORED[row]
    problem = ac.Problem(store, None, given.loss, l2=1.0 / store.shape[0], intercept=True)
    if given.l1:
        l1 = problem.with_penalty(l1=1.0, l2=0.0).l1_max() * given.l1
        problem = problem.with_penalty(l1=l1, l2=0.0)
    return problem


def stored_child(row: str, path: str, small: str, given: str) -> dict:
    """Solve the small problem, then the large one under the limit: "+" beyond what there is."""
    warnings.simplefilter("ignore")
    solver = STORED[row].solver
    ac.solve(pose(row, ac.open_store(small)), solver, tol=1e-4)
    base, limit = status("VmRSS"), int(given)
    if given.startswith("+"):
        limit += status("VmData")
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    store = ac.open_store(path)
    began = time.process_time()
    result = ac.solve(pose(row, store), solver, tol=1e-4, max_passes=3000)
    return {
        "solver": result.solver,
        "passes": result.passes,
        "gap": result.relative_gap,
        "converged": bool(result.converged),
        "base": base,
        "peak": status("VmHWM"),
        "seconds": time.process_time() - began,
    }


def make_store(path: Path, megabytes: float, row: str):
    loss, d = STORED[row].loss, STORED[row].d
    n, truth = count(megabytes, d, 0), coefficients(d)
    size = max(1, count(16.0, d, 0))
    pieces = (
        rows(min(size, n - first), d, 0, first + 1, truth, loss != "squared")
        for first in range(0, n, size)
    )
    return ac.io.convert(pieces, path)


def bytes_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())


def stored(megabytes: float | None, wanted: list[str]) -> None:
    print(
        f"{'':8s} {'store':>8s} {'limit':>8s} {'base':>8s} {'blocks':>8s} {'peak':>8s} "
        f"{'ceiling':>8s}  vectors"
    )
    for row in STORED:
        if wanted and row not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            whole, small = Path(folder, "store"), Path(folder, "small")
            store = make_store(whole, megabytes or STORED[row].size, row)
            make_store(small, 4.0, row)
            size, (n, d) = bytes_of(whole), store.shape
            found = child("stored", row, whole, small, size // 4)
            blocks = 2 * size / (store.bounds.size - 1)
            ceiling = found["base"] + blocks + 8 * (n + 4 * d)
            vectors = (found["peak"] - found["base"] - blocks) / (8 * (n + 4 * d))
            figures = (size, size // 4, found["base"], blocks, found["peak"], ceiling)
            print(
                f"{row:8s} "
                + " ".join(f"{figure / 1e6:5.0f} MB" for figure in figures)
                + f"  {vectors:5.1f}  {n} x {d}, {found['solver']} {found['passes']}, "
                + f"{found['seconds']:.0f} s"
                + ("" if found["converged"] else f", not converged: {found['gap']:.0e}"),
                flush=True,
            )


def child(*arguments: object) -> dict:
    done = subprocess.run(
        [sys.executable, __file__, "--child", *map(str, arguments)], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        what, *given = sys.argv[2:]
        if what == "held":
            print(json.dumps(held_child(given[0], given[1], float(given[2]))))
        else:
            print(json.dumps(stored_child(*given)))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, help="megabytes of data")
    parser.add_argument("table", nargs="?", choices=["held", "stored"])
    parser.add_argument("rows", nargs="*", help="of the table")
    given = parser.parse_args()
    if given.table != "stored":
        held(given.size or 200.0, given.rows)
    if given.table != "held":
        stored(given.size, given.rows)


if __name__ == "__main__":
    main()
