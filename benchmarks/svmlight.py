"""Seconds to read svmlight text: adacoord against scikit-learn, same file, one run.

Usage: ``ADACOORD_DATA=<folder> python benchmarks/svmlight.py``.  The file is RCV1 (subset,
1.85 million entries), decompressed first; the readers take turns and the least of three counts.
A second table is for full-precision text, 16 or 17 digits a number.
"""

from __future__ import annotations

import lzma
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sklearn.datasets import load_svmlight_file

from adacoord.io import load_svmlight, save_svmlight

REPEATS = 3


def seconds(call: Callable[[], object]) -> float:
    """Return the wall-clock seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(name: str, path: Path) -> None:
    """Print the best time of both readers on ``path``, and their ratio."""
    readers = {
        "scikit-learn": lambda: load_svmlight_file(str(path), zero_based=False),
        "adacoord": lambda: load_svmlight(path),
    }
    times = {reader: [] for reader in readers}
    for _ in range(REPEATS):
        for reader, call in readers.items():
            times[reader].append(seconds(call))
    best = {reader: min(t) for reader, t in times.items()}
    print(f"{name} ({path.stat().st_size / 1e6:.1f} MB), seconds, min of {REPEATS}")
    for reader, least in best.items():
        print(f"  {reader:<14}{least:8.3f}")
    print(f"  {'ratio':<14}{best['scikit-learn'] / best['adacoord']:8.1f}x")


def main() -> int:
    """Run the comparison; needs the folder named by ADACOORD_DATA."""
    folder = os.environ.get("ADACOORD_DATA")
    if not folder:
        print("ADACOORD_DATA is not set; point it at the folder of the data files")
        return 2
    source = Path(folder, "rcv1.subset.binary.svm.xz")
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch, "rcv1.svm")
        plain.write_bytes(lzma.decompress(source.read_bytes()))
        first = seconds(lambda: load_svmlight(plain))
        print(f"adacoord, first call, with compilation or its cache: {first:.3f} s")
        compare("rcv1.subset, as distributed", plain)
        A, b = load_svmlight(plain)
        A.data /= 3.0
        precise = Path(scratch, "precise.svm")
        saving = seconds(lambda: save_svmlight(precise, A, b))
        print(f"save_svmlight, {A.nnz} entries: {saving:.2f} s")
        compare("rcv1.subset / 3, full precision", precise)
    return 0


if __name__ == "__main__":
    sys.exit(main())
