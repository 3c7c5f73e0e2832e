"""Several problems at a time: threads, since kernels release the GIL, that end when asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import Event
from typing import Any

from ..linalg.blas import one_thread


def side_by_side(work: Callable[[Any, Event], Any], items: Iterable, jobs: int) -> list:
    """``work(item, stop)`` of each item, ``jobs`` at a time; none is under way any more at the end.

    ``stop`` is set by Ctrl-C and by the first error, which is raised: work is to end soon then.
    """
    stop = Event()
    # held here: OpenBLAS hears of it from the main thread only
    with one_thread(), ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work, item, stop) for item in items]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            stop.set()
        else:
            failed = [future for future in done if future.exception()]
            if failed:
                stop.set()
                raise failed[0].exception()
        return [future.result() for future in futures]
