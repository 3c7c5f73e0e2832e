"""BLAS on one thread, for the few places that use it.

Its threads wait by spinning, which beside other work is slower than doing without them (the Gram
matrix of 1797 x 576 numbers: 26 ms on two busy cores, 14 ms on one), and its bits depend on their
number.

The number of threads is one for the whole process, or one a thread where OpenBLAS is built with
OpenMP: :class:`_Hold` keeps either at 1 while somebody is inside, and knows what it was.  What is
to be given back is written down before anything is changed, and every step can be taken again, so
that Ctrl-C at any moment leaves nothing held: :class:`one_thread` takes the way out twice then, and
if even that is cut short, the end of the object (a weak reference hears of it) is the way out.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from weakref import ref

# Entered again by the same thread where a signal handler or the end of an object comes in between.
_lock = threading.RLock()


class _Library:
    """The threads of one BLAS."""

    def __init__(self, controller):
        self.get = controller.get_num_threads
        # threadpoolctl 3.7 and later obey one thread of the process and ignore all others in
        # silence; several are what `_Hold` is there for.
        self.set = getattr(controller, "_real_set_num_threads", controller.set_num_threads)
        self.per_thread = getattr(controller, "threading_layer", "") == "openmp" and (
            controller.internal_api == "openblas"
        )


@cache
def _libraries() -> list[_Library]:
    # NumPy and SciPy bring one each: loaded here, none is overlooked
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    # 8 ms: it looks at every library of the process
    controllers = ThreadpoolController().select(user_api="blas").lib_controllers
    return [_Library(controller) for controller in controllers]


@cache
def per_thread() -> bool:
    """Whether some BLAS here has a number of threads for each thread, to be held in each."""
    return any(each.per_thread for each in _libraries())


class _Hold:
    """Some libraries, at one thread while there are users."""

    def __init__(self, per_thread: bool):
        self.per_thread = per_thread
        self.users: dict[int, tuple[ref, int]] = {}  # by id: users, and the threads they are in
        self.before: list[tuple[_Library, int]] = []

    def enter(self, user: ref) -> None:
        self.users[id(user)] = user, threading.get_ident()
        self.settle()

    def leave(self, user: ref) -> None:
        self.users.pop(id(user), None)
        self.settle()

    def settle(self) -> None:
        """Hold if there are users, let go if there are none; both may be begun already."""
        if self.users and not self.before:
            libraries = [each for each in _libraries() if each.per_thread == self.per_thread]
            self.before = [(each, each.get()) for each in libraries]
            for library in libraries:
                library.set(1)
        elif self.before and not self.users:
            for library, threads in self.before:
                library.set(threads)
            self.before = []


class _OfThread(threading.local):
    """What each thread holds for itself."""

    def __init__(self):
        self.hold = _Hold(per_thread=True)


_of_process, _of_thread = _Hold(per_thread=False), _OfThread()


class one_thread:
    """Hold BLAS to one thread; the last of several users gives the threads back.

    By the libraries' own calls: threadpoolctl's context manager takes 60 us.
    """

    def __enter__(self):
        self._inside = ref(self, _leave)
        try:
            with _lock:
                _of_process.enter(self._inside)
                _of_thread.hold.enter(self._inside)
        except BaseException:
            _leave(self._inside)
            raise

    def __exit__(self, *_):
        try:
            _leave(self._inside)
        except BaseException:
            _leave(self._inside)
            raise
        self._inside = None


def _leave(user: ref) -> None:
    with _lock:
        _of_process.leave(user)
        _of_thread.hold.leave(user)


def _after_fork() -> None:
    """In the child only the thread that forked goes on: no other is inside, or has the lock."""
    global _lock
    _lock = threading.RLock()
    me = threading.get_ident()
    _of_process.users = {k: user for k, user in _of_process.users.items() if user[1] == me}
    _of_process.settle()


if hasattr(os, "register_at_fork"):  # not on Windows
    # Forks wait for the lock: who sets a number holds a lock of OpenBLAS, too, which in the child
    # nobody would ever give back.
    os.register_at_fork(
        before=lambda: _lock.acquire(),
        after_in_parent=lambda: _lock.release(),
        after_in_child=_after_fork,
    )
