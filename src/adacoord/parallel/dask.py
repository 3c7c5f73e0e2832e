"""Blocks on a Dask cluster.

A block is loaded by one task and stays on the worker that ran it; a function of it is another
task, whose small arguments travel with it and whose large ones, common to all blocks, are a task of
their own, so that each worker gets them once.  Every result comes back to the driver, which holds
all vectors: nothing that a worker knows cannot be made again from the data, so that workers may
die, join and restart at any time.  Tasks are plain: none is bound to a worker, nothing is
scattered, no actor (a partition pinned to a worker hung after that worker was killed).

Dask makes lost tasks again by itself; what it gives up (``KilledWorker``: a task that was with too
many workers as they died), or neither works on nor tells us of within a while, is submitted again
under other keys.  Workers that join get their share of the blocks.
"""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..data.matrix import Matrix
from ..linalg.blas import one_thread
from .executors import Job

#: Seconds that a result is waited for before we look what became of it; twice as many each time
#: after, up to MOST: a busy cluster gets to it at last.
PATIENCE, MOST = 20.0, 600.0
#: How often a task is submitted again before the cluster is given up; seconds between two of them.
ATTEMPTS, PAUSE = 40, 0.25
#: Seconds without a single worker after which the cluster is given up.
DESERTED = 300.0
#: Seconds between two looks for workers that have joined.
LOOK = 1.0
#: Bytes of an argument that is sent once for all blocks; of those that Dask would warn of.
COMMON, LARGE = 2**16, 2**22


class Cluster:
    """A Dask client as an executor."""

    remote = True

    def __init__(self, client: Any):
        self.client = client
        self._blocks: dict[int, tuple[Any, Any]] = {}  # by id: the piece, and where it is loaded
        self._given_up: set[int] = set()  # pieces, by id, that were lost with their workers
        self._workers: set[str] | None = None  # those that the blocks were shared out to
        self._looked = 0.0

    def map(self, function: Callable, jobs: Iterable[Job]) -> Iterator[Any]:
        jobs = list(jobs)
        self._welcome()
        sent = _Sent(self.client, jobs)
        waiting = [self._submit(function, job, sent) for job in jobs]
        try:
            for k, job in enumerate(jobs):
                yield self._result(function, job, sent, waiting[k])
                waiting[k] = None
        finally:
            for future in waiting:
                if future is not None:
                    future.release()

    def hold(self, pieces: Iterable[Any]) -> None:
        """Have lazy pieces computed together: what they have in common is computed once."""
        pieces = list(pieces)
        futures = self.client.compute([piece.delayed for piece in pieces])
        for piece, future in zip(pieces, futures, strict=True):
            self._blocks[id(piece)] = piece, future

    def close(self) -> None:
        """Let go of the blocks."""
        for _, future in self._blocks.values():
            future.release()
        self._blocks.clear()

    # ---- tasks --------------------------------------------------------------------------

    def _submit(self, function: Callable, job: Job, sent: _Sent) -> Any:
        piece, *arguments = job
        block = piece.load() if getattr(piece, "sequential", False) else self._block(piece)
        arguments = [sent.where(argument) for argument in arguments]
        return _submitted(self.client, "run", _on_worker, function, block, *arguments)

    def _block(self, piece: Any) -> Any:
        """The block of a piece on some worker."""
        known = self._blocks.get(id(piece))
        if known is not None and known[1].status in ("cancelled", "error", "lost"):
            known[1].release()  # or what it failed for would count for the next one
            self._given_up.add(id(piece))
            known = None
        if known is None:
            known = self._blocks[id(piece)] = piece, self._load(piece)
        return known[1]

    def _load(self, piece: Any, **preferred: Any) -> Any:
        # A task of the user's that Dask has given up keeps its key, and fails again at once: after
        # that the partition is one task of ours.
        lazy = hasattr(piece, "delayed")
        if lazy and not (id(piece) in self._given_up and piece.whole):
            return self.client.compute(piece.delayed, **preferred)
        return _submitted(self.client, "load", _load, piece, **preferred)

    def _result(self, function: Callable, job: Job, sent: _Sent, future: Any) -> Any:
        """The result of a task, submitted again where the cluster has lost it."""
        patience, attempt, deserted = PATIENCE, 0, 0.0
        while True:
            started = time.monotonic()
            try:
                return future.result(timeout=patience)
            except _lost() as error:
                last = error
            waited = time.monotonic() - started
            if self.client.status in ("closing", "closed"):
                raise RuntimeError("the Dask client was closed before the fit had ended") from last
            late = waited >= patience
            patience = min(2.0 * patience, MOST)
            if late and not self.client.nthreads():
                deserted += waited
                patience = PATIENCE
                if deserted >= DESERTED:
                    raise RuntimeError(
                        f"the cluster has had no worker for {deserted:.0f} s; start some, or fit "
                        "without executor="
                    ) from last
                continue
            if late and self._under_way(future, job[0]):
                continue
            attempt += 1
            if attempt == ATTEMPTS:
                raise RuntimeError(
                    f"the cluster did not finish a task in {ATTEMPTS} attempts "
                    f"({type(last).__name__}: {last}); see that it has workers with enough memory "
                    "for a block"
                ) from last
            future.release()
            if attempt > 1:
                time.sleep(PAUSE)
            self._forget(job[0])
            sent.forget()
            future = self._submit(function, job, sent)

    def _under_way(self, future: Any, piece: Any) -> bool:
        """Whether a worker is on the task, or on the block that it waits for.

        Dask itself looks after workers that no longer answer.
        """
        keys = {future.key}
        if id(piece) in self._blocks:
            keys.add(self._blocks[id(piece)][1].key)
        return any(key in keys for held in self.client.processing().values() for key in held)

    def _forget(self, piece: Any) -> None:
        """A load that was lost with its workers is made anew."""
        known = self._blocks.get(id(piece))
        if known is not None and known[1].status == "pending":
            del self._blocks[id(piece)]
            known[1].release()
            self._given_up.add(id(piece))

    # ---- workers that join --------------------------------------------------------------

    def _welcome(self) -> None:
        """Load a share of the blocks on workers that have joined.

        By itself Dask works where a block is, so that they would stay idle.
        """
        if time.monotonic() - self._looked < LOOK:
            return
        threads = self.client.nthreads()
        self._looked = time.monotonic()
        joined = set(threads) - (self._workers if self._workers is not None else set(threads))
        self._workers = set(threads)
        if not joined or not self._blocks:
            return
        blocks = list(self._blocks.items())
        where = self.client.who_has([future for _, (_, future) in blocks])
        fair = len(blocks) / sum(threads.values())
        held: dict[str, list[int]] = {worker: [] for worker in threads}
        for name, (_, future) in blocks:
            for worker in list(where.get(future.key, ()))[:1]:
                held.setdefault(worker, []).append(name)
        for worker in joined:
            room = int(fair * threads[worker]) - len(held[worker])
            for _ in range(room):
                fullest = max(held, key=lambda w: len(held[w]) / threads.get(w, 1))
                if len(held[fullest]) <= fair * threads.get(fullest, 1):
                    break
                self._move(held[fullest].pop(), worker)

    def _move(self, name: int, worker: str) -> None:
        """Load a block again, on this worker if it still lives: a wish, no bond."""
        piece, _ = self._blocks[name]
        self._blocks[name] = piece, self._load(piece, workers=[worker], allow_other_workers=True)


class _Sent:
    """Large arguments that all jobs have in common: tasks of their own, made when asked for."""

    def __init__(self, client: Any, jobs: list[Job]):
        self.client = client
        self._futures: dict[int, Any] = {}
        self._common: set[int] = set()
        if len(jobs) > 1:
            for argument in jobs[0][1:]:
                everywhere = all(any(argument is a for a in job[1:]) for job in jobs[1:])
                if isinstance(argument, np.ndarray) and argument.nbytes >= COMMON and everywhere:
                    self._common.add(id(argument))

    def where(self, argument: Any) -> Any:
        """The argument, or the task that gives it."""
        if id(argument) not in self._common:
            return argument
        known = self._futures.get(id(argument))
        if known is None or known.status in ("cancelled", "error", "lost"):
            known = _submitted(self.client, "send", _same, argument)
            self._futures[id(argument)] = known
        return known

    def forget(self) -> None:
        """Send again what has not arrived."""
        for name, future in list(self._futures.items()):
            if future.status != "finished":
                del self._futures[name]


def _submitted(client: Any, what: str, function: Callable, *arguments: Any, **how: Any) -> Any:
    key = f"adacoord-{what}-{uuid.uuid4().hex}"
    if all(_size(argument) < LARGE for argument in arguments):
        return client.submit(function, *arguments, key=key, pure=False, **how)
    with warnings.catch_warnings():  # rows in memory are large, and have to travel
        warnings.filterwarnings("ignore", "Sending large graph")
        return client.submit(function, *arguments, key=key, pure=False, **how)


def _size(argument: Any) -> int:
    block = getattr(argument, "block", argument)
    if isinstance(block, Matrix) and not block.blocked:
        return block.data.nbytes
    return getattr(block, "nbytes", 0)


def _lost() -> tuple[type[BaseException], ...]:
    """What tells that a task was lost with its workers, not that it failed."""
    from asyncio import CancelledError, TimeoutError
    from concurrent.futures import CancelledError as Cancelled

    from dask.distributed import TimeoutError as Late
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    return (
        KilledWorker,
        FutureCancelledError,
        CancelledError,
        Cancelled,
        TimeoutError,
        Late,
        CommClosedError,
    )


# ---- on workers ----------------------------------------------------------------------------------


def _same(argument: Any) -> Any:
    return argument


def _load(piece: Any) -> Matrix:
    return piece.load()


def _on_worker(function: Callable, block: Matrix, *arguments: Any) -> Any:
    with one_thread(), np.errstate(all="ignore"):
        return function(block, *arguments)
