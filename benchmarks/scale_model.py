r"""What more rows, and more workers, will cost: a model fitted to small data, tried on larger ones.

    python benchmarks/scale_model.py [--quick] [FAMILY ...]

Each family is one kind of problem, solved in blocks of rows by one thread to a relative gap of
1e-4 with l2 = 1/n (``C`` stays what it is as data grow).  Counted are maps over the blocks, entries
touched, and the bytes that go to a worker and come back where the blocks are on a cluster; measured
are CPU seconds, apart for what runs on blocks and for what runs on the caller's vectors:

    passes  = p0 + p1 log2 n
    entries = e n passes             (for Gram matrices multiply-adds by BLAS count for less)
    work    = a entries              seconds on blocks, which workers share
    driver  = c n passes             seconds on vectors of n numbers, which they do not
    bytes   = s n passes + t d tasks to and from the blocks; tasks are maps times blocks
    T(W)    = work/W + driver + bytes/LINK + tasks TASK

The model is fitted to four sizes and compared with a larger one that it has not seen.  Then it is
asked about 10, 100 and 1,000 times the rows, and about tables of a thousand million rows on 100
workers.  LINK and TASK are what the tables assume of a cluster; everything else is measured.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import adacoord as ac
from adacoord.parallel.choice import in_blocks
from adacoord.parallel.executors import Serial
from scale import table, text

#: Bytes a second between the driver and all workers; seconds of the scheduler for each task
#: (Dask's documentation names 200 microseconds to a millisecond).
LINK, TASK = 1.25e9, 1e-3
#: Rows of the fits, and of the size that the model has not seen.
SIZES, UNSEEN = (12_500, 25_000, 50_000, 100_000), 400_000
#: Columns of the sparse family.
WIDE, ENTRIES = 20_000, 60


class Family(NamedTuple):
    make: Any
    loss: str
    by_l1: bool
    solver: str
    bytes_of_row: int
    d: int
    away: bool = False  # blocks as a cluster has them: all of one is visited in each round
    tol: float = 1e-4
    vectors: int = 20  # of n numbers that the driver holds at most (benchmarks/memory.py)


def _dense(d: int, seed: int, loss: str) -> Any:
    return lambda n: table(n, d, seed, loss)


_sparse = partial(text, d=WIDE, row=ENTRIES, seed=4)
FAMILIES = {
    "newton, dense x 50": Family(
        _dense(50, 1, "logistic"), "logistic", False, "newton", 400, 50, vectors=11
    ),
    "newton-cg, dense x 100": Family(
        _dense(100, 2, "logistic"), "logistic", False, "newton-cg", 800, 100
    ),
    "lasso, dense x 100": Family(
        _dense(100, 3, "squared"), "squared", True, "acf", 800, 100, vectors=26
    ),
    "newton-cg, sparse": Family(_sparse, "logistic", False, "newton-cg", 720, WIDE),
    "rounds, sparse": Family(_sparse, "hinge", False, "dcd", 720, WIDE),
    "rounds away, to 1e-3": Family(_sparse, "hinge", False, "dcd", 720, WIDE, True, 1e-3),
}


class Away:
    """A block as a cluster has it."""

    in_memory, scattered = False, True

    def __init__(self, piece: Any):
        self.piece = piece

    def load(self) -> Any:
        return self.piece.load()


class Counting(Serial):
    """One thread that counts what would travel, and what works on blocks takes."""

    def __init__(self) -> None:
        self.maps = self.tasks = self.travelled = 0
        self.seconds = 0.0

    def map(self, function, jobs):
        self.maps += 1

        def timed(*arguments):
            began = time.thread_time()
            result = function(*arguments)
            self.seconds += time.thread_time() - began
            self.tasks += 1
            self.travelled += _bytes(arguments[1:]) + _bytes(result)
            return result

        yield from super().map(timed, jobs)


def _bytes(values: Any) -> int:
    if isinstance(values, np.ndarray):
        return values.nbytes
    return sum(map(_bytes, values)) if isinstance(values, tuple) else 8


class Run(NamedTuple):
    n: int
    passes: int
    entries: float
    maps: int
    tasks: int
    travelled: float
    work: float
    driver: float


def run(family: Family, n: int, repeats: int) -> Run:
    A, b = family.make(n)
    problem = ac.Problem(A, b, family.loss, l2=1.0 / n, intercept=True)
    if family.by_l1:
        l1 = problem.with_penalty(l1=1.0, l2=0.0).l1_max() / 30.0
        problem = problem.with_penalty(l1=l1, l2=0.0)
    work = driver = np.inf
    for _ in range(repeats):
        executor = Counting()
        blocked = in_blocks(problem, executor)
        if family.away:
            blocked.matrix.pieces = [Away(piece) for piece in blocked.matrix.pieces]
        began = time.process_time()
        result = ac.solve(blocked, family.solver, tol=family.tol, max_passes=1000)
        taken = time.process_time() - began
        assert result.converged, (family, n, result.relative_gap)
        work, driver = min(work, executor.seconds), min(driver, taken - executor.seconds)
    return Run(
        n,
        result.passes,
        float(result.history.operations[-1]),
        executor.maps,
        executor.tasks,
        float(executor.travelled),
        work,
        driver,
    )


class Model:
    """Fitted to runs; see the module's docstring."""

    def __init__(self, family: Family, runs: list[Run]):
        self.family = family
        passes, logs = [r.passes for r in runs], [math.log2(r.n) for r in runs]
        self.slope = max(0.0, float(np.polyfit(logs, passes, 1)[0]))
        self.start = float(np.mean(passes)) - self.slope * float(np.mean(logs))
        # ratios: every size counts alike; the largest tells most of what does not grow
        self.entries = _mean(r.entries / (r.n * r.passes) for r in runs)
        self.maps = _mean(r.maps / r.passes for r in runs)
        self.work = _mean(r.work / r.entries for r in runs[-2:])
        self.driver = _mean(r.driver / (r.n * r.passes) for r in runs[-2:])
        counts = np.array([[r.n * r.passes, family.d * r.tasks] for r in runs], float)
        scale = np.array([r.travelled for r in runs])
        self.of_rows, self.of_columns = np.linalg.lstsq(
            counts / scale[:, None], np.ones(len(runs)), rcond=None
        )[0]

    def passes(self, n: float) -> float:
        return max(1.0, self.start + self.slope * math.log2(n))

    def bytes(self, n: float, d: float, tasks: float) -> float:
        return self.of_rows * n * self.passes(n) + self.of_columns * d * tasks

    def seconds(self, n: float, wider: float = 1.0) -> tuple[float, float]:
        """(on blocks, on the driver); ``wider`` is how many times the entries a row has."""
        work = self.work * self.entries * wider * n * self.passes(n)
        return work, self.driver * n * self.passes(n)


def _mean(values) -> float:
    values = list(values)
    return float(np.exp(np.mean(np.log(values))))


def size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000.0 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000.0
    raise AssertionError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the rows")
    parser.add_argument("families", nargs="*", help="words that the names of families begin with")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    shrink = 4 if given.quick else 1
    models = {}
    print(f"{'family':24s} {'rows':>9s} passes   maps entries/n/pass  on blocks  on vectors")
    for name, family in FAMILIES.items():
        if given.families and not any(name.startswith(word) for word in given.families):
            continue
        runs = [run(family, n // shrink, 3) for n in SIZES]
        model = models[name] = Model(family, runs)
        unseen = run(family, UNSEEN // shrink, 2)
        for r in [*runs, unseen]:
            print(
                f"{name:24s} {r.n:9d} {r.passes:6d} {r.maps:6d} "
                f"{r.entries / r.n / r.passes:15.1f} {r.work:9.3f}s {r.driver:10.3f}s"
                + ("  not seen by the model" if r is unseen else ""),
                flush=True,
            )
        work, driver = model.seconds(unseen.n)
        total, measured = work + driver, unseen.work + unseen.driver
        travelled = model.bytes(unseen.n, family.d, unseen.tasks)
        print(
            f"{'':24s} model: {model.passes(unseen.n):.1f} passes, {total:.3f} s "
            f"({total / measured - 1.0:+.0%}), {size(travelled)} between driver and workers "
            f"({travelled / unseen.travelled - 1.0:+.0%})\n",
            flush=True,
        )
    growth(models)
    cluster(models)


def growth(models: dict) -> None:
    print("100,000 rows and 10, 100, 1,000 times as many on one thread, from a store:")
    print(f"{'family':24s} {'rows':>7s} {'data':>8s} {'memory':>8s} passes  seconds")
    for name, model in models.items():
        for times in (1, 10, 100, 1000):
            n = 1e5 * times
            data = n * model.family.bytes_of_row
            held = 2 * min(data / 8, 2**25) + 8 * model.family.vectors * n
            print(
                f"{name:24s} {n:7.0e} {size(data):>8s} {size(held):>8s} {model.passes(n):6.1f} "
                f"{sum(model.seconds(n)):8.3g}"
            )


def cluster(models: dict) -> None:
    print("\n1e9 rows on 100 workers that hold two partitions each:")
    n, workers, blocks = 1e9, 100, 200
    for name, model in models.items():
        sparse, d = "dense" not in name, 100
        wider = (d / model.family.d) ** (2 if name.startswith("newton,") else 1)
        if sparse:
            d, wider = 1_000_000, 1.0
        work, driver = model.seconds(n, wider)
        tasks = blocks * model.maps * model.passes(n)
        if name == "rounds, sparse":  # of blocks in memory
            continue
        travelled = model.bytes(n, d, tasks)
        total = work / workers + driver + travelled / LINK + tasks * TASK
        print(
            f"{name:24s} x {d:9,d}: {size(n * (720 if sparse else 8 * d))}; "
            f"{model.passes(n):.0f} passes, {model.maps * model.passes(n):.0f} maps; workers "
            f"{work / workers:.0f} s, driver {driver:.0f} s, {size(travelled)} in "
            f"{travelled / LINK:.0f} s, tasks {tasks * TASK:.0f} s: {total / 60.0:.0f} min; "
            f"the driver holds {size(8 * model.family.vectors * n)}"
        )


if __name__ == "__main__":
    main()
