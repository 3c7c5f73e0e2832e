"""BLAS on one thread, for the few places that use it.

Its threads wait by spinning, which beside other work is slower than doing without them (the Gram
matrix of 1797 x 576 numbers: 26 ms on two busy cores, 14 ms on one), and its bits depend on their
number.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import cache

_lock = threading.Lock()
_users = 0
_before: list[int] = []


@cache
def _libraries() -> list:
    from threadpoolctl import ThreadpoolController

    # 8 ms: it looks at every library of the process
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def one_thread():
    """Hold BLAS to one thread; the last of several users gives the threads back.

    By the libraries' own calls: threadpoolctl's context manager takes 60 us.
    """
    global _users, _before
    with _lock:
        if _users == 0:
            _before = [library.get_num_threads() for library in _libraries()]
            for library in _libraries():
                library.set_num_threads(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for library, threads in zip(_libraries(), _before, strict=True):
                    library.set_num_threads(threads)
