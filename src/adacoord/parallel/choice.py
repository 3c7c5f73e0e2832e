"""From ``n_jobs=`` and ``executor=`` to who works on the blocks."""

from __future__ import annotations

import os
from copy import copy
from typing import Any

import numpy as np

from ..data.blocks import BlockMatrix
from ..problem import Problem
from .config import is_client
from .executors import Executor, Serial, Threads


def executor_for(n_jobs: Any, executor: Any) -> Executor:
    """The executor that a user's ``n_jobs`` and ``executor`` ask for."""
    if executor is None:
        return Threads(count(n_jobs)) if count(n_jobs) > 1 else Serial()
    if n_jobs is not None:
        raise ValueError(
            f"n_jobs={n_jobs!r} beside executor=: a cluster has its own number of workers; "
            "give one of the two"
        )
    if is_client(executor):
        if executor.status in ("closing", "closed"):
            raise ValueError(
                f"executor={executor!r}: this client is closed; connect another one, "
                "dask.distributed.Client(address)"
            )
        from .dask import Cluster

        return Cluster(executor)
    if hasattr(executor, "map") and hasattr(executor, "close"):
        return executor
    raise ValueError(f"executor={type(executor).__name__}: it must be a dask.distributed.Client")


def count(n_jobs: Any) -> int:
    """A number of threads; negative ones count from the number of cores, as joblib's do."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(
            f"n_jobs={n_jobs!r}: it must be a whole number of threads, 1 or more, or -1 for all "
            "cores; None is the serial solver"
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return int(n_jobs) if n_jobs > 0 else max(1, (cores or 1) + 1 + int(n_jobs))


def in_blocks(problem: Problem, executor: Executor) -> Problem:
    """The same problem, worked on in blocks of rows by ``executor``.

    Blocks on a cluster stay there: threads of this process would have to fetch them each time.
    """
    other, matrix = copy(problem), problem.matrix
    if not isinstance(matrix, BlockMatrix):
        other.matrix = BlockMatrix.of(matrix, executor)
    elif not matrix.executor.remote or (executor.remote and not _same(matrix.executor, executor)):
        other.matrix = matrix.with_executor(executor)
    return other


def _same(one: Any, other: Any) -> bool:
    """Whether they work on the same cluster: who has the blocks already keeps them."""
    return one.client is other.client
