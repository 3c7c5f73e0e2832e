"""How long a user waits: import, first solve with a warm cache, first solve with none.

    python benchmarks/startup.py

Each figure is the minimum of five fresh processes (of two for the cold compile).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

SCRIPT = """
import time, sys
t0 = time.perf_counter()
import adacoord as ac
t1 = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
A = rng.standard_normal((200, 10)); b = np.sign(A @ rng.standard_normal(10))
t2 = time.perf_counter()
r = ac.solve(ac.Problem(A, b, loss="logistic", l2=1e-2), {solver!r})
t3 = time.perf_counter()
assert r.converged
assert not any(m in sys.modules for m in ("sklearn", "rich", "typer", "matplotlib"))
print(t1 - t0, t3 - t2)
"""


def run(solver: str, cache: str) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(solver=solver)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
    )
    imported, solved = map(float, done.stdout.split())
    return imported, solved


def main() -> None:
    for solver in ("auto", "spdc", "dcd"):
        cold = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(run(solver, cache)[1])
        with tempfile.TemporaryDirectory() as cache:
            run(solver, cache)
            warm = [run(solver, cache) for _ in range(5)]
        print(
            f"solver={solver!r}: import {min(w[0] for w in warm):.2f} s (goal < 0.6), "
            f"first solve {min(w[1] for w in warm):.2f} s (goal < 1.5), "
            f"cold compile {min(cold):.1f} s (goal < 20)"
        )


if __name__ == "__main__":
    main()
