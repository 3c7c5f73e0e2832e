"""What reading svmlight text costs: adacoord against scikit-learn, same file, one run.

Usage: ``python benchmarks/svmlight.py [MEGABYTES]``.  The file is generated: 60 entries a row out
of 50,000 columns with up to six digits, 200 MB unless told otherwise.  A second, a tenth of it,
has full-precision numbers, 16 or 17 digits each; both come once more as .gz.  The readers take
turns and the least of three counts; the first call, which compiles or loads the kernels, is made
on a small file.  Arrays are compared bit for bit.

CPU is that of all threads, user and system.  The critical path is that of the calling thread, or
an equal share of the others' where that is more: the wall-clock seconds of a machine with nothing
else to do.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from adacoord.io import load_svmlight, save_svmlight

REPEATS = 3
BYTES_A_ROW = 882  # of the generated file


def seconds(call: Callable[[], object]) -> tuple[float, float, float, object]:
    """Return the seconds of one call (CPU, CPU of this thread, wall), and what it returns."""
    clocks = (time.process_time, time.thread_time, time.perf_counter)
    before = [clock() for clock in clocks]
    result = call()
    cpu, caller, wall = (clock() - start for clock, start in zip(clocks, before, strict=True))
    return cpu, caller, wall, result


def generate(rows: int, digits: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return a random matrix of about 60 entries a row, and labels."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 50_000, (rows, 60)), axis=1)
    kept = np.diff(columns, axis=1, prepend=-1) > 0
    values = np.round(rng.random(int(kept.sum())), digits)
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    A = sparse.csr_matrix((values, columns[kept], indptr), shape=(rows, 50_000))
    return A, np.where(rng.random(rows) < 0.5, 1.0, -1.0)


def same(ours, theirs) -> bool:
    """Whether two readers gave the same numbers; their index arrays may differ in type."""
    (A, b), (A2, b2) = ours, theirs
    indices = all(np.array_equal(getattr(A, k), getattr(A2, k)) for k in ("indices", "indptr"))
    bits = A.data.tobytes() == A2.data.tobytes() and b.tobytes() == b2.tobytes()
    return indices and bits and A.shape == A2.shape


def compare(name: str, path: Path, megabytes: float) -> None:
    """Print the least CPU time of the readers on ``path``, and their ratios."""
    readers: dict[str, tuple[int, Callable[[], object]]] = {
        "scikit-learn": (1, lambda: load_svmlight_file(str(path), zero_based=False)),
        "adacoord": (1, lambda: load_svmlight(path)),
        "adacoord, n_jobs=2": (2, lambda: load_svmlight(path, n_jobs=2)),
    }
    taken: dict[str, list[tuple[float, float, float]]] = {reader: [] for reader in readers}
    theirs = load_svmlight_file(str(path), zero_based=False)
    for _ in range(REPEATS):
        for reader, (threads, call) in readers.items():
            cpu, caller, wall, result = seconds(call)
            taken[reader].append((cpu, max(caller, (cpu - caller) / threads), wall))
            if not same(result, theirs):
                raise AssertionError(f"{name}: {reader} differs from scikit-learn")
            del result  # the next one finds the same memory
    print(f"{name}, {megabytes:.0f} MB of text; identical arrays")
    print(f"  {'':<20}{'CPU s':>8}{'critical':>10}{'wall':>8}{'MB/CPU s':>10}{'ratio':>8}")
    best = {reader: np.min(times, axis=0) for reader, times in taken.items()}
    for reader, (cpu, critical, wall) in best.items():
        ratio = best["scikit-learn"][0] / cpu
        print(
            f"  {reader:<20}{cpu:8.2f}{critical:10.2f}{wall:8.2f}{megabytes / cpu:10.0f}"
            f"{ratio:7.1f}x"
        )


def main() -> int:
    """Run the comparison on a file of as many megabytes as the command line says."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 200.0
    with tempfile.TemporaryDirectory() as scratch:
        small = Path(scratch, "small.svm")
        save_svmlight(small, *generate(100, 6))
        for n_jobs in (None, 2):
            cpu = seconds(partial(load_svmlight, small, n_jobs=n_jobs))[0]
            print(f"first call, n_jobs={n_jobs}: {cpu:.2f} CPU s")
        for name, digits, share in (("six digits", 6, 1.0), ("full precision", 17, 0.1)):
            path = Path(scratch, "data.svm")
            rows = int(megabytes * 1e6 * share / BYTES_A_ROW)
            saving = seconds(partial(save_svmlight, path, *generate(rows, digits)))[0]
            size = path.stat().st_size / 1e6
            print(f"save_svmlight, {size:.0f} MB: {saving:.1f} CPU s")
            compare(name, path, size)
            packed = Path(scratch, "data.svm.gz")
            with path.open("rb") as source, gzip.open(packed, "wb", 1) as target:
                shutil.copyfileobj(source, target)
            compare(f"{name}, .gz", packed, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
