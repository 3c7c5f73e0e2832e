"""Several problems at a time: threads, since kernels release the GIL, that end when asked to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from ..linalg.blas import one_thread


def side_by_side(
    work: Callable[[Any, Event], Any], items: Iterable, jobs: int, stop: Event
) -> list:
    """``work(item, stop)`` of each item, ``jobs`` at a time; none is under way any more at the end.

    ``stop`` is set by Ctrl-C and by the first error, which is raised: work is to end soon then.
    What Ctrl-C left undone is begun all the same, with ``stop`` set.
    """
    items = list(items)
    todo = deque(range(len(items)))
    results: dict[int, Any] = {}
    errors: list[BaseException] = []
    busy: set[object] = set()
    told: SimpleQueue = SimpleQueue()

    def attempt(k: int) -> None:
        try:
            results[k] = work(items[k], stop)
        except BaseException as error:
            errors.append(error)
            stop.set()

    def worker() -> None:
        me = object()
        busy.add(me)  # before it looks for work: once that is gone, none is begun unseen
        try:
            while not errors:
                attempt(todo.popleft())
        except IndexError:
            pass
        finally:
            busy.discard(me)
            told.put(None)

    threads = [Thread(target=worker) for _ in range(jobs)]

    def finish() -> None:
        """Do all that is left to do; when interrupted, once more."""
        if not stop.is_set():
            for thread in threads:
                thread.start()
            for _ in threads:
                told.get()
        todo.clear()
        while busy:
            with suppress(Empty):
                told.get(timeout=0.1)
        if not errors:
            for k in range(len(items)):
                if k not in results:
                    attempt(k)

    with one_thread():  # for all of them at once
        while True:
            try:
                finish()
                break
            except KeyboardInterrupt:
                stop.set()
            except BaseException as error:
                errors.append(error)
                stop.set()
    if errors:
        raise errors[0]
    return [results[k] for k in range(len(items))]
