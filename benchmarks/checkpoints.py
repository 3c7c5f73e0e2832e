"""What a checkpoint costs: the digest of the data, and a write, beside a pass over the data.

    python benchmarks/checkpoints.py

CPU seconds, the least of several, all in one process.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

import adacoord as ac
from adacoord.api.checkpoint import Checkpoints
from adacoord.problem.fingerprint import digest_matrix


def least(function, times=5):
    """(CPU, elapsed) seconds."""
    found = []
    for _ in range(times):
        cpu, clock = time.process_time(), time.perf_counter()
        function()
        found.append((time.process_time() - cpu, time.perf_counter() - clock))
    return np.min(found, axis=0)


def tables():
    rng = np.random.default_rng(0)
    yield "dense, 200,000 x 100", rng.standard_normal((200_000, 100))
    yield (
        "sparse, 200,000 x 50,000, 80 a row",
        sparse.random_array((200_000, 50_000), density=80 / 50_000, format="csr", rng=rng),
    )


def writes(problem, solver, folder):
    """Seconds of each checkpoint of some passes."""
    seconds, write = [], Checkpoints._write

    def timed(self, *args):
        cpu, clock = time.process_time(), time.perf_counter()
        write(self, *args)
        seconds.append((time.process_time() - cpu, time.perf_counter() - clock))

    Checkpoints._write = timed
    try:
        path = Path(folder) / solver
        ac.solve(
            problem, solver, checkpoint=path, checkpoint_every=0.0, callback=lambda p: p.passes >= 5
        )
        return np.min(seconds, axis=0), os.path.getsize(path)
    finally:
        Checkpoints._write = write


def main():
    for name, A in tables():
        n, d = A.shape
        b = np.sign(np.random.default_rng(1).standard_normal(n))
        problem = ac.Problem(A, b, "logistic", l2=1e-6)
        matrix, x = problem.matrix, np.ones(d)
        matrix.dot(x)
        (digested, _), (product, _) = (
            least(lambda m=matrix: digest_matrix(m)),
            least(lambda m=matrix, x=x: m.dot(x)),
        )
        size = sum(a.nbytes for a in matrix.arrays if a is not None)
        print(
            f"{name}: {size / 1e6:.0f} MB, digest {digested:.3f} s ({size / digested / 1e9:.2f} "
            f"GB/s), a product with A {product:.3f} s"
        )
        with tempfile.TemporaryDirectory() as folder:
            for solver in ("dcd", "apdc", "newton-cg"):
                (cpu, clock), bytes_ = writes(problem, solver, folder)
                print(
                    f"  {solver}: a checkpoint of {bytes_ / 1e6:.1f} MB takes {cpu:.3f} s of CPU, "
                    f"{clock:.3f} s in all"
                )


if __name__ == "__main__":
    main()
