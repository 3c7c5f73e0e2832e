"""Who runs the functions of blocks: this thread, or several.

``map(function, jobs)`` gives ``function(block, *arguments)`` for each job ``(piece, *arguments)``,
in the order of the jobs.  A piece is a block or knows where to load it from
(:mod:`adacoord.data.blocks`); an executor holds as many loaded blocks as it works on, and one more.
The functions are pure, and their results the same wherever they run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from itertools import count
from operator import itemgetter
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np

from ..linalg.blas import one_thread, per_thread

Job = tuple[Any, ...]


class Executor(Protocol):
    """What a :class:`~adacoord.data.blocks.BlockMatrix` asks of an executor."""

    #: Whether it works in other processes, which hold the blocks.
    remote: bool

    def map(self, function: Callable, jobs: Iterable[Job]) -> Iterator[Any]:
        """The results, in order."""

    def close(self) -> None:
        """Give back what was taken: threads, blocks on workers."""


class Serial:
    """One block after the other; the next one is read while the last is worked on."""

    remote = False

    def map(self, function: Callable, jobs: Iterable[Job]) -> Iterator[Any]:
        jobs = list(jobs)
        with one_thread(), np.errstate(all="ignore"):
            if all(piece.in_memory for piece, *_ in jobs):
                for piece, *arguments in jobs:
                    yield function(piece.load(), *arguments)
                return
            with ThreadPoolExecutor(1, "adacoord-read") as reader:
                ahead = reader.submit(jobs[0][0].load)
                for k, (_, *arguments) in enumerate(jobs):
                    block = ahead.result()
                    if k + 1 < len(jobs):
                        ahead = reader.submit(jobs[k + 1][0].load)
                    result = function(block, *arguments)
                    del block  # or a third one would be held
                    yield result

    def run(self, function: Callable, jobs: Iterable[Job]) -> None:
        """``map`` for functions that give nothing back."""
        for _ in self.map(function, jobs):
            pass

    def close(self) -> None:
        """Nothing was taken."""


class Threads:
    """``n_jobs`` threads: kernels and BLAS release the interpreter's lock.

    The threads are started with the first job and end with :meth:`close`.
    """

    remote = False

    def __init__(self, n_jobs: int):
        self.n_jobs = n_jobs
        self._pool: ThreadPoolExecutor | None = None

    def map(self, function: Callable, jobs: Iterable[Job]) -> Iterator[Any]:
        jobs = list(jobs)
        if all(piece.in_memory for piece, *_ in jobs):
            return self._map_held(self._started(), function, jobs)
        return self._map_loaded(self._started(), function, jobs)

    def run(self, function: Callable, jobs: Iterable[Job]) -> None:
        """``map`` for functions that give nothing back.

        The caller takes blocks in memory, too, and is not woken for each of them (logistic on
        100,000 x 1,000 numbers in 24 blocks, 31 products: 21 -> 9 ms of its own).
        """
        jobs = list(jobs)
        if not all(piece.in_memory for piece, *_ in jobs):
            for _ in self._map_loaded(self._started(), function, jobs):
                pass
            return
        turn = count()
        failed: list[tuple[int, BaseException]] = []

        def work() -> None:
            while not failed and (k := next(turn)) < len(jobs):
                try:
                    _run(function, jobs[k])
                except BaseException as error:  # which the caller is to raise
                    failed.append((k, error))

        with one_thread():
            others = range(min(self.n_jobs, len(jobs)) - 1)
            workers = [self._started().submit(work) for _ in others]
            try:
                work()
            finally:
                turn = count(len(jobs))  # Ctrl-C: nobody begins another
                for worker in workers:
                    worker.exception()
        if failed:
            raise min(failed, key=itemgetter(0))[1]

    def _started(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_jobs, "adacoord")
        return self._pool

    def _map_held(
        self, pool: ThreadPoolExecutor, function: Callable, jobs: list[Job]
    ) -> Iterator[Any]:
        """Threads take the next block as they are free.

        A future for each block costs the caller more (newton-cg on ten blocks of 400,000 x 100
        numbers: 53 -> 42 ms of the caller's thread).
        """
        found: SimpleQueue = SimpleQueue()
        turn, stopped = count(), False

        def work() -> None:
            while not stopped and (k := next(turn)) < len(jobs):
                try:
                    found.put((k, _run(function, jobs[k]), None))
                except BaseException as error:  # which the caller is to see
                    found.put((k, None, error))

        waiting: dict[int, Any] = {}
        with one_thread():
            workers = [pool.submit(work) for _ in range(min(self.n_jobs, len(jobs)))]
            try:
                for k in range(len(jobs)):
                    while k not in waiting:
                        at, result, error = found.get()
                        waiting[at] = result, error
                    result, error = waiting.pop(k)
                    if error is not None:
                        raise error
                    yield result
                    del result
            finally:  # Ctrl-C, or nobody wants the rest
                stopped = True
                for worker in workers:
                    worker.exception()

    def _map_loaded(
        self, pool: ThreadPoolExecutor, function: Callable, jobs: list[Job]
    ) -> Iterator[Any]:
        """Of blocks that have to be loaded no more than are worked on, and one."""
        running: deque[Future] = deque()
        with one_thread():
            try:
                for job in jobs:
                    if not job[0].in_memory and len(running) > self.n_jobs:
                        yield running.popleft().result()
                    if getattr(job[0], "sequential", False):
                        job = (_Loaded(job[0].load()), *job[1:])
                    running.append(pool.submit(_run, function, job))
                while running:
                    yield running.popleft().result()
            finally:  # Ctrl-C, or nobody wants the rest
                for future in running:
                    future.cancel()
                for future in running:
                    if not future.cancelled():
                        future.exception()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def __getstate__(self) -> dict:
        return {"n_jobs": self.n_jobs, "_pool": None}


class _Loaded:
    """A block that could not wait to be loaded."""

    def __init__(self, block: Any):
        self.block = block

    def load(self) -> Any:
        return self.block


def _run(function: Callable, job: Job) -> Any:
    piece, *arguments = job
    # most builds of BLAS have one number of threads for the process, which the caller holds
    with one_thread() if per_thread() else nullcontext(), np.errstate(all="ignore"):
        return function(piece.load(), *arguments)
