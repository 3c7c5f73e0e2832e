"""Blocks of rows on threads against the serial solver that ``auto`` takes, in one run.

    ADACOORD_DATA=... python benchmarks/scale.py [--quick] [--threads 2] [ROW ...]

Each row: the serial solver (``n_jobs=None``) and the block driver, by turns, to a relative gap of
1e-6; the least of three.  ``path`` is the critical path of the block driver in CPU seconds: what
the calling thread spent, and for each map over the blocks the longest share of it when its tasks
are dealt out to the threads in their order, each to the one that is free first.  On an idle
machine ``wall`` agrees with it; on a busy one only ``path`` can be compared.  ``ratio`` is path
over serial; ``alike`` is path over the serial seconds of the same method, where the row names one
that ``auto`` does not take; ``all`` is the CPU of all threads over serial.  A row without a
method's name is what ``n_jobs=2`` gives: where ``auto`` keeps the serial method, it says so.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import NamedTuple

import numpy as np
from scipy import sparse

import adacoord as ac
from adacoord.api.solve import shared_out
from adacoord.parallel.choice import in_blocks
from adacoord.parallel.executors import Threads


class Timed(Threads):
    """Threads that note what their tasks took.

    ``caller`` is what the caller's thread did of them, with what it took to note all that.
    """

    def __init__(self, n_jobs: int):
        super().__init__(n_jobs)
        self.path = self.total = self.caller = 0.0

    def map(self, function, jobs):
        timed, taken = self._timed(function)
        yield from super().map(timed, jobs)
        self._dealt_out(taken)

    def run(self, function, jobs):
        timed, taken = self._timed(function)
        super().run(timed, jobs)
        self._dealt_out(taken)

    def _timed(self, function):
        taken, caller = [], get_ident()

        def timed(*arguments):
            began = time.thread_time()
            result = function(*arguments)
            taken.append(time.thread_time() - began)
            if get_ident() == caller:
                self.caller += taken[-1]
            return result

        return timed, taken

    def _dealt_out(self, taken):
        began = time.thread_time()
        free = np.zeros(self.n_jobs)
        for seconds in taken:
            free[np.argmin(free)] += seconds
        self.path += float(free.max())
        self.total += float(np.sum(taken))
        self.caller += time.thread_time() - began


def table(n: int, d: int, seed: int, loss: str):
    """Correlated columns with means of their own; two thirds of the coefficients are 0."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    A[:, 1:] += 0.5 * A[:, :-1]
    A += rng.standard_normal(d)
    z = (A - A.mean(axis=0)) @ (rng.standard_normal(d) * (rng.random(d) < 0.3)) / d**0.5
    z += 0.5 * rng.standard_normal(n)
    return A, z if loss == "squared" else np.where(z > 0.0, 1.0, -1.0)


def text(n: int, d: int, row: int, seed: int):
    """Rows of ``row`` entries whose columns are as unequal as words are."""
    rng = np.random.default_rng(seed)
    columns = np.minimum((d * rng.random((n, row)) ** 2.5).astype(np.int64), d - 1)
    values = rng.random((n, row)) / row**0.5
    A = sparse.csr_matrix(
        (values.ravel(), columns.ravel(), np.arange(0, n * row + 1, row)), shape=(n, d)
    )
    A.sum_duplicates()
    z = A @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    return A, np.where(z > 0.0, 1.0, -1.0)


def rows(quick: bool):
    """(name, data, loss, whether by l1, solver); "auto" is what ``n_jobs=2`` gives."""
    shapes = [(60_000, 60), (20_000, 300)] if quick else [(400_000, 100), (100_000, 1_000)]
    for n, d in shapes:
        kinds = (
            ("newton", "logistic", False, "newton"),
            ("logistic", "logistic", False, "auto"),
            ("ridge", "squared", False, "auto"),
            ("lasso", "squared", True, "auto"),
            ("l1-logistic", "logistic", True, "auto"),
        )
        for seed, (kind, loss, by_l1, solver) in enumerate(kinds):
            yield f"{kind} {n} x {d}", partial(table, n, d, seed, loss), loss, by_l1, solver
    sources = {"text": partial(text, *((40_000, 8_000) if quick else (400_000, 50_000)), 60, 5)}
    if folder := os.environ.get("ADACOORD_DATA"):
        file = Path(folder) / "rcv1.subset.binary.svm.xz"
        sources["rcv1.subset"] = partial(ac.io.load_svmlight, file)
    for name, load in sources.items():
        for loss in ("smooth_hinge", "hinge", "logistic"):
            yield f"{loss} {name}", load, loss, False, "auto"
            yield f"rounds {loss} {name}", load, loss, False, "dcd"
            if loss != "hinge":
                yield f"newton-cg {loss} {name}", load, loss, False, "newton-cg"


class Measured(NamedTuple):
    """CPU seconds: of ``auto``, of the same method serially, of the critical path, of all."""

    serial: float
    alike: float
    path: float
    total: float
    wall: float
    results: list


def measure(problem, solver: str, threads: int, repeats: int) -> Measured:
    """By turns; the least of several."""
    serial = alike = path = total = wall_serial = wall = np.inf
    results = [None, None]
    for _ in range(repeats):
        began, cpu = time.perf_counter(), time.process_time()
        results[0] = ac.solve(problem, tol=1e-6, max_passes=3000)
        serial = min(serial, time.process_time() - cpu)
        wall_serial = min(wall_serial, time.perf_counter() - began)
        cpu = time.process_time()
        if solver not in ("auto", results[0].solver):
            ac.solve(problem, solver, tol=1e-6, max_passes=300)
            alike = min(alike, time.process_time() - cpu)
        else:
            alike = serial
        executor = Timed(threads)
        began, cpu = time.perf_counter(), time.thread_time()
        results[1] = ac.solve(in_blocks(problem, executor), solver, tol=1e-6, max_passes=300)
        driver = time.thread_time() - cpu - executor.caller
        wall = min(wall, time.perf_counter() - began)
        executor.close()
        path = min(path, driver + executor.path)
        total = min(total, driver + executor.total)
    return Measured(serial, alike, path, total, wall / wall_serial, results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("rows", nargs="*", help="words that the names of rows begin with")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"{'':30s} {'serial':>9s} {'path':>8s} {'ratio':>6s} {'alike':>6s} {'all':>6s} {'wall':>6s}"
    )
    for name, load, loss, by_l1, solver in rows(given.quick):
        if given.rows and not any(name.startswith(word) for word in given.rows):
            continue
        A, b = load()
        problem = ac.Problem(A, b, loss, l2=1.0 / A.shape[0], intercept=True)
        if by_l1:
            l1 = problem.with_penalty(l1=1.0, l2=0.0).l1_max() / 30.0
            problem = problem.with_penalty(l1=l1, l2=0.0)
        with shared_out(problem, "auto", {}, given.threads, None) as asked:
            shares = asked.matrix.blocked
        if solver == "auto" and not shares:
            one = ac.solve(problem, tol=1e-6, max_passes=3000)
            print(f"{name:30s} {'':9s} {'':8s}   1.00  auto keeps the serial {one.solver}")
            continue
        found = measure(problem, solver, given.threads, given.repeats)
        one, other = found.results
        print(
            f"{name:30s} {found.serial:8.3f}s {found.path:7.3f}s "
            f"{found.path / found.serial:6.2f} {found.path / found.alike:6.2f} "
            f"{found.total / found.serial:6.2f} {found.wall:6.2f}  {one.solver} {one.passes} -> "
            f"{other.solver} {other.passes}"
            + ("" if other.converged else f", not converged: {other.relative_gap:.0e}"),
            flush=True,
        )


if __name__ == "__main__":
    main()
