"""The threads of a mini-batch: a pass by all of them is one compiled call each.

They meet twice per batch (:mod:`adacoord.kernels.team`).  A meeting of two costs 1.4 us at best, a
loop by ``prange`` 1.5 us, handing a batch to a thread pool 10 us (a busy machine of two cores);
``prange`` was left alone because OpenMP's threads do not survive a fork and Numba's own end the
process when two threads call them.  ``benchmarks/minibatch.py``, smoothed hinge, CPU time of the
longer share of two threads over that of a pass alone, without the meetings:

====================  ====  ====  ====  =====
m                       16    64   256  1,024
====================  ====  ====  ====  =====
rcv1.subset, l2        .73   .67   .66    .53
rcv1.subset, l1 + l2  1.17  1.01   .92    .80
dense 20,000 x 1,000   .69   .72   .63    .58
====================  ====  ====  ====  =====

When it pays: passes to a gap grow once m > n/kappa.  For m = 1, 16, 64, 256 both sets take 12, 12,
16 and 17 at l2 = 1e-2 (n/kappa = 247 and 169), but 15, 28, 50 and 95 at l2 = 1e-4 (2.5 and 1.7).
So two threads pay on long rows and well-conditioned problems: on the dense set at l2 = 1e-2 they
take .6 of the time of m = 1 with m = 16, and .7 with m = 64, meetings included.  Rows of text, 75
entries, want more than two: 1.2 times the time of m = 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from ...data.matrix import Matrix
from ...kernels.team import GATE, GIVEN_UP, MEMBERS

#: Dense columns are dealt out by so many: a cache line belongs to one thread.
LINE = 8


def count_jobs(n_jobs: int | None, batch_size: int) -> int:
    """Threads that ``n_jobs`` asks for (None: one, -1: as many as there are processors)."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(
            f"n_jobs={n_jobs!r}: it must be a whole number of threads, -1 for as many as there are "
            "processors, or None"
        )
    jobs = int(n_jobs) if n_jobs > 0 else max((os.cpu_count() or 1) + 1 + int(n_jobs), 1)
    if batch_size == 1 and n_jobs != 1:
        raise ValueError(
            f"n_jobs={n_jobs} with batch_size=1: the rows of a batch are what threads share; use "
            "batch_size=64 or more, or n_jobs=None"
        )
    return jobs


class Team:
    """``jobs`` threads that make each pass together; one is a plain call.

    Parameters
    ----------
    matrix : Matrix
        The data: each thread owns a range of its columns, with about as many entries as the
        others'.  (Rows that are not sorted by column cannot be cut: the first thread owns all.)
    jobs : int
    """

    def __init__(self, matrix: Matrix, jobs: int = 1):
        self.jobs = jobs
        self.edges = column_edges(matrix, jobs)
        self.cuts = matrix.indptr if jobs == 1 else row_cuts(matrix, self.edges)
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_pool": None}

    def shares(self) -> list[tuple]:
        """What the kernels are given, one for each thread."""
        gate = np.zeros(GATE, dtype=np.int64)
        gate[MEMBERS] = self.jobs
        return [(part, self.jobs, self.cuts, self.edges, gate) for part in range(self.jobs)]

    def run(self, work: Callable[[tuple], Any]) -> Any:
        """``work(share)`` of every thread; what the first one's, made here, returns.

        None is under way any more when this ends, by Ctrl-C or an error too.
        """
        shares = self.shares()
        gate = shares[0][-1]
        if self.jobs == 1:
            return work(shares[0])

        def join(share: tuple) -> None:
            try:
                work(share)
            except BaseException:
                gate[GIVEN_UP] = 1
                raise

        pool, others = self._threads(), []
        try:
            for share in shares[1:]:
                others.append(pool.submit(join, share))
            out = work(shares[0])
        except BaseException:
            gate[GIVEN_UP] = 1  # the others wait for one who will not come
            raise
        finally:
            _finish(others)
        for other in others:
            other.result()
        return out

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._process != os.getpid():  # a fork has no threads
            self._pool = ThreadPoolExecutor(self.jobs - 1, "adacoord-batch")
            self._process = os.getpid()
        return self._pool


def _finish(others: list[Future]) -> None:
    """Wait for all, and only then let Ctrl-C through."""
    interrupt = None
    while True:
        try:
            wait(others)
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def column_edges(matrix: Matrix, jobs: int) -> np.ndarray:
    """Where the columns of each thread begin, and the end."""
    d = matrix.shape[1]
    if matrix.is_dense:
        edges = -(-d * np.arange(jobs + 1) // (jobs * LINE)) * LINE
        return np.minimum(edges, d)
    edges = np.full(jobs + 1, d)
    edges[0] = 0
    if jobs > 1 and _is_sorted(matrix):
        counts = np.cumsum(np.bincount(matrix.indices.astype(np.intp), minlength=d))
        edges[1:-1] = np.searchsorted(counts, counts[-1] * np.arange(1, jobs) / jobs)
    return edges


def row_cuts(matrix: Matrix, edges: np.ndarray) -> np.ndarray:
    """Where the entries of each row in each thread's columns begin, row by row, and the end."""
    begins = matrix.indptr[:-1].astype(np.int64)
    cuts = np.empty((begins.size, edges.size - 1), dtype=np.int64)
    cuts[:, 0] = begins
    for part in range(1, edges.size - 1):
        if matrix.is_dense:
            cuts[:, part] = begins + edges[part]
        else:
            below = np.append(0, np.cumsum(matrix.indices < edges[part]))
            ends = matrix.indptr[1:].astype(np.int64)
            cuts[:, part] = begins + below[ends] - below[begins]
    out = np.append(cuts.ravel(), matrix.nnz).astype(np.uint64)
    out.flags.writeable = False  # as indptr is: one compiled signature serves both
    return out


def _is_sorted(matrix: Matrix) -> bool:
    """Whether the columns of every row ascend."""
    ascends = matrix.indices[1:] > matrix.indices[:-1]
    breaks = matrix.indptr[1:-1].astype(np.int64)
    ascends[breaks[(breaks > 0) & (breaks < matrix.nnz)] - 1] = True
    return bool(ascends.all())
