"""A process for each contender: it can be stopped, and nobody warms anybody else's caches.

The parent says ``("warm", path, options)``, ``("task", path)`` or ``("fit", tol, limit, options)``.
Seconds are CPU seconds of the worker: with one thread that is the time on a machine of its own,
whatever else runs beside (wall-clock seconds of the same fit differed by 2.5x under load).  The
kernel ends a worker that has used its limit; a new one is started when the contender is next
called.
"""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
import pickle
import resource
import signal
import time
import warnings
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from contenders import OURS, PEERS, Peer
from model_peers import MODEL_PEERS

#: Inherited by the workers, who import NumPy only after it is set.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "BLIS_NUM_THREADS",
    ),
    "1",
)
#: Start-up and warm-up are not part of the race, but must end, too (skglm compiles for a minute).
PATIENCE = 300.0
#: Wall-clock seconds that a second of CPU may take on a busy machine.
BUSY = 5.0


class Late(Exception):
    """The answer did not come in time."""


class Failed(Exception):
    """The contender raised an exception, or died."""


@dataclass
class Fit:
    """What a worker hands over: seconds of the fit alone, and the coefficients for the judge."""

    seconds: float
    wall: float
    x: np.ndarray
    told: dict[str, Any] = field(default_factory=dict)


class Worker:
    """A contender in its own process, warmed up on a small problem of the same kind.

    ``cold`` is what a fresh process pays before its first answer: the import of the library and
    the fit of 200 rows (compiled kernels come from the disk cache of whoever keeps one).
    """

    def __init__(self, peer: Peer, path: str, options: dict[str, Any]):
        self.peer, self.path = peer, path
        self.pipe, end = multiprocessing.get_context("spawn").Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(end, peer.name, peer.kind), daemon=True
        )
        self.process.start()
        end.close()
        try:
            self.cold: float = self.ask(("warm", path, options), PATIENCE)
        except Failed:
            self.close()
            raise

    def fit(self, tol: float, limit: float, options: dict[str, Any]) -> Fit:
        """A fit from scratch; :class:`Late` after ``limit`` seconds."""
        return self.ask(("fit", tol, limit, options), BUSY * limit + 10.0)

    def ask(self, message: tuple, seconds: float) -> Any:
        """Send and wait; kills the worker if the answer takes longer than ``seconds``."""
        self.pipe.send(message)
        try:
            if not self.pipe.poll(seconds):
                self.close()
                raise Late
            kind, answer = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join(5.0)
            if self.process.exitcode == -signal.SIGXCPU:
                raise Late from None
            raise Failed(f"its process died, exit code {self.process.exitcode}") from None
        if kind == "error":
            raise Failed(answer)
        return answer

    def load(self, path: str) -> None:
        """Change to another task of the same kind."""
        if path != self.path:
            self.ask(("task", path), PATIENCE)
            self.path = path

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()

    @property
    def alive(self) -> bool:
        return self.process.is_alive()


def serve(pipe: Connection, name: str, kind: str) -> None:
    """The worker's loop: answers with values, or with the sentence of an exception."""
    for stream in (1, 2):  # liblinear and cyanure print from C
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    warnings.simplefilter("ignore")
    (peer,) = [
        p for p in (OURS, *PEERS, *MODEL_PEERS) if p.name == name and p.kind in (kind, "any")
    ]
    task = None
    while True:
        what, *rest = pipe.recv()
        try:
            if what == "warm":
                task = peer.prepare(read(rest[0]))
                small = task.small()
                started = time.process_time()
                importlib.import_module(peer.library)
                options = rest[1]
                if options.get("solver", "auto") == "auto":
                    options = options | peer.warm(task)
                peer.fit(small, peer.ladder[0], **options)
                answer = time.process_time() - started
                # x = 0 may do for the loosest tolerance, and leaves kernels uncompiled; the
                # tightest may take minutes.
                peer.fit(small, peer.ladder[len(peer.ladder) // 2], **options)
            elif what == "task":
                answer, task = None, peer.prepare(read(rest[0]))
            else:
                answer = timed(peer, task, *rest)
            pipe.send(("value", answer))
        except Exception as error:
            pipe.send(("error", f"{type(error).__name__}: {str(error)[:200]}"))


def read(path: str):
    with open(path, "rb") as file:
        return pickle.load(file)


def cpu_seconds() -> float:
    """Of this process; under a limit Linux gives ``time.process_time`` in steps of 4 ms."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(peer: Peer, task, tol: float, limit: float, options: dict[str, Any]) -> Fit:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + limit), hard))
    wall, started = time.perf_counter(), cpu_seconds()
    answer = peer.fit(task, tol, **options)
    seconds, wall = cpu_seconds() - started, time.perf_counter() - wall
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
    x, told = answer if isinstance(answer, tuple) else (answer, {})
    return Fit(seconds, wall, np.asarray(x, dtype=np.float64).reshape(-1), told)
