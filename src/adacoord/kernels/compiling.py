"""Tell people what they are waiting for when kernels are compiled (the first run on a machine)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once if a kernel is compiled inside the block; never if all are cached."""
    from numba.core import event

    class Listener(event.Listener):
        told = False

        def on_start(self, event):
            if not self.told:
                self.told = True
                tell()

        def on_end(self, event):
            pass

    with event.install_listener("numba:compile", Listener()):
        yield
