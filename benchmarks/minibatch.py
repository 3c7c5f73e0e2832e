"""Mini-batches of SPDC on two threads: when they pay.

    ADACOORD_DATA=... python benchmarks/minibatch.py [--quick]

Passes to a relative gap of 1e-6 for each batch size m (smoothed hinge, l2 = 1e-2 and 1e-4), beside
n/kappa, from which on they grow; and the CPU time of a pass alone, and of the longer of the two
shares of two threads, each made without waiting for the other: the critical path, which a busy
machine does not change.  The wall clock of two threads comes to that plus two meetings per batch,
where two processors are free.  Seconds to the gap are the product: two threads pay where it is
below that of m = 1.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import adacoord as ac
from adacoord.kernels.jit import jit
from adacoord.kernels.team import MEMBERS, meet
from adacoord.solvers.primal_dual.spdc import SPDC
from adacoord.solvers.primal_dual.team import Team

BATCHES = (1, 16, 64, 256, 1024)
L2 = (1e-2, 1e-4)


def problems(folder: Path):
    """(name, l2 -> problem)."""
    text, labels = ac.io.load_svmlight(folder / "rcv1.subset.binary.svm.xz")
    yield "rcv1.subset, l2", lambda l2: ac.Problem(text, labels, "smooth_hinge", l2=l2)
    yield "... l1 + l2", lambda l2: ac.Problem(text, labels, "smooth_hinge", l1=1e-5, l2=l2)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20_000, 1_000)) / np.sqrt(1_000)
    b = np.where(A @ rng.standard_normal(1_000) + 0.3 * rng.standard_normal(20_000) > 0, 1.0, -1.0)
    yield "dense 20,000 x 1,000", lambda l2: ac.Problem(A, b, "smooth_hinge", l2=l2)


def make(problem: ac.Problem, m: int, jobs: int | None = None) -> SPDC:
    rng = np.random.Generator(np.random.PCG64(0))
    return SPDC(problem, rng, batch_size=m, n_jobs=jobs)


def share_times(problem: ac.Problem, m: int, repeats: int) -> tuple[float, float]:
    """CPU milliseconds of a pass alone, and of the longer share of two threads."""
    solver = make(problem, m)
    team = Team(problem.matrix, 2)
    spent = [np.inf] * 3

    class Timed:
        """Makes one share of a pass, and times it."""

        def __init__(self, which: int):
            self.which = which

        def run(self, work):
            share = (solver.team.shares() + team.shares())[self.which]
            share[-1][MEMBERS] = 1  # nobody waits
            began = time.thread_time()
            out = work(share)
            spent[self.which] = min(spent[self.which], time.thread_time() - began)
            return out

    solver.advance(1)
    for _ in range(repeats):
        for which in (0, 1, 2) if m > 1 else (0,):
            saved = solver.state()
            solver.primal.team = Timed(which)
            solver.advance(1)
            solver.restore(saved)  # half a pass is no pass
    return 1e3 * spent[0], 1e3 * max(spent[1:])


@jit
def _meets(gate, times):
    for _ in range(times):
        meet(gate)


def barrier_cost(repeats: int = 500, times: int = 100) -> float:
    """Microseconds of one meeting of two threads, at best."""
    team = Team(ac.Problem(np.ones((2, 16)), np.ones(2), l2=1.0).matrix, 2)
    best = np.inf

    def work(share):
        nonlocal best
        meet(share[-1])
        began = time.perf_counter()
        _meets(share[-1], times)
        if share[0] == 0:
            best = min(best, time.perf_counter() - began)

    for _ in range(repeats):
        team.run(work)
    return 1e6 * best / times


def main() -> None:
    quick = "--quick" in sys.argv
    folder = Path(os.environ["ADACOORD_DATA"])
    print(f"a meeting of two threads: {barrier_cost():.2f} us")
    for name, pose in problems(folder):
        both = [pose(l2) for l2 in L2]
        R2 = float(both[0].matrix.squared_norms.max())
        print(f"{name}: n/kappa = " + ", ".join(f"{both[0].n * l2 / R2:.3g}" for l2 in L2))
        print(f"{'m':>6s} {'passes':>12s} {'alone ms':>9s} {'share ms':>9s} {'ratio':>6s}")
        for m in BATCHES[:3] if quick else BATCHES:
            passes = [
                ac.solve(p, "spdc", batch_size=m, tol=1e-6, max_passes=3000).passes for p in both
            ]
            alone, share = share_times(both[1], m, 3 if quick else 9)
            told = f"{m:6d} {passes[0]:5d}, {passes[1]:5d} {alone:9.2f}"
            print(told + (f" {share:9.2f} {share / alone:6.2f}" if m > 1 else ""), flush=True)


if __name__ == "__main__":
    main()
