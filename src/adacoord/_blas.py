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
_limit = None


@cache
def _controller():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # 8 ms: it looks at every library of the process


@contextmanager
def one_thread():
    """Hold BLAS to one thread (15 us); the last of several users gives the threads back."""
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
