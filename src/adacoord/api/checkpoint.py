"""Checkpoints: what of a run is kept, when, and whether a file is of this run.

The monitor calls :meth:`Checkpoints.visit` before each pass and :meth:`Checkpoints.end` when a run
is over; no solver knows of it.  A file holds the state of the solvers (with their samplers and
random generators), the monitor's best points and history, who is at work, and facts about the
problem and the options, which say whose run it is.  What was kept between two passes goes on to the
same bits as a run that was never interrupted; the seconds alone differ.

SIGTERM and SIGINT are noted while a run has a checkpoint, and acted upon before the next pass, when
one last checkpoint is written; a second signal is acted upon at once.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..exceptions import CheckpointWarning
from ..io.checkpoints import Tree, check_place, previous_of, read_checkpoint, write_checkpoint
from ..problem import Problem
from ..problem.fingerprint import digest, fingerprint, plain

if TYPE_CHECKING:
    from ..solvers.base import Point
    from ..solvers.registry import Entry
    from .monitor import Monitor

#: What of the monitor is kept as it is.
_KEPT = ("x", "intercept", "y", "_u", "_z", "best_primal", "best_dual", "_dual_value", "_left")


class Checkpoints:
    """The checkpoint of one run.

    Parameters
    ----------
    path : str or path-like
    every : float
        Seconds between two of them; 0 for one before each pass.
    """

    def __init__(self, path: str | os.PathLike, every: float = 60.0):
        _check(path, every)
        self.path, self.every = os.fspath(path), every
        check_place(self.path)
        self.identity: dict[str, Any] = {}  # whose run it is, by :func:`identify`
        self._next = time.monotonic() + every
        self._sound = True  # whether what stands at the path may become the previous one
        self._pending: int | None = None  # a signal that is yet to be acted upon
        self._before: dict[int, Callable[..., Any] | int] = {}  # who listened to signals

    # ---- what is kept -------------------------------------------------------------------

    def resume(self, monitor: Monitor) -> bool:
        """Put a monitor where its run was; whether there is one to go on with."""
        tree, wrong = read_checkpoint(self.path)
        if tree is None:
            return False
        for message in wrong:
            self._sound = False
            warnings.warn(
                f"{message}. Going on from the checkpoint before it, {previous_of(self.path)!r}.",
                CheckpointWarning,
                stacklevel=2,
            )
        try:
            check_identity(self.path, tree["identity"], self.identity)
            unpack(monitor, tree)
        except (KeyError, TypeError, AttributeError) as error:  # none of our programs wrote it
            raise ValueError(
                f"checkpoint={self.path!r}: its digest is right, but it does not hold a run "
                f"({error!r}); remove it to start from the beginning"
            ) from error
        return True

    def visit(self, monitor: Monitor) -> None:
        """Between two passes: write a checkpoint where it is time to, or a signal has come."""
        if self._pending is None and time.monotonic() < self._next:
            return
        self._write(monitor, "")
        self._act()

    def end(self, monitor: Monitor, reason: str) -> None:
        """The last checkpoint, with the reason why the run is over; then a signal that is late."""
        self._write(monitor, reason)
        self._act()

    def _write(self, monitor: Monitor, reason: str) -> None:
        try:
            write_checkpoint(self.path, packed(monitor, self.identity, reason), keep=self._sound)
            self._sound = True
        except OSError as error:  # a full disk is no reason to lose the run itself
            warnings.warn(
                f"checkpoint={self.path!r} could not be written ({error}); the run goes on, and it "
                f"is tried again after {self.every:g} s",
                CheckpointWarning,
                stacklevel=2,
            )
        self._next = time.monotonic() + self.every

    # ---- signals ------------------------------------------------------------------------

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note SIGTERM and SIGINT; only the main thread may, and only what somebody listens to."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                before = signal.getsignal(number)
                if before is not None and before != signal.SIG_IGN:
                    self._before[number] = before
                    signal.signal(number, self._note)
            yield
        finally:
            for listened, who in self._before.items():
                signal.signal(listened, who)
            self._act()  # on one that came in the last moment

    def _note(self, number: int, frame: Any) -> None:
        again, self._pending = self._pending is not None, number
        if again:
            self._act()

    def _act(self) -> None:
        """Do with a signal what would have been done with it."""
        number, self._pending = self._pending, None
        if number is None:
            return
        before = self._before[number]
        if callable(before):
            before(number, None)
        else:
            signal.signal(number, before)
            signal.raise_signal(number)


def _check(path: Any, every: Any) -> None:
    if not (isinstance(path, (str, os.PathLike)) and os.fspath(path)):
        raise ValueError(f"checkpoint={path!r}: it must be the name of a file, or None")
    if isinstance(every, bool) or not (
        isinstance(every, (int, float, np.number)) and 0.0 <= every < np.inf
    ):
        raise ValueError(
            f"checkpoint_every={every!r}: it must be a number of seconds, zero or more"
        )


def packed(monitor: Monitor, identity: dict[str, Any], reason: str) -> Tree:
    """The tree of a run; with a ``reason``, of one that is over."""
    history = monitor.history
    tree: Tree = {
        "identity": identity,
        "reason": reason,
        "seconds": monitor.seconds,
        "passes": monitor._passes(monitor.turns.solver),
        "unseen": monitor._unseen,
        "monitor": {name: getattr(monitor, name) for name in _KEPT},
        "history": {name: np.asarray(getattr(history, name)) for name in history.columns},
        "switched": None if history.switched is None else list(history.switched),
    }
    if not reason:
        tree["turns"] = monitor.turns.state()
    return tree


def unpack(monitor: Monitor, tree: Tree) -> None:
    """Put a monitor, and who was at work, where :func:`packed` found them."""
    for name in _KEPT:
        value, before = tree["monitor"][name], getattr(monitor, name)
        if name != "_z" and np.shape(value) != np.shape(before):
            raise TypeError(f"{name} has shape {np.shape(value)}, and not {np.shape(before)}")
        setattr(monitor, name, value)
    for name in monitor.history.columns:
        setattr(monitor.history, name, tree["history"][name].tolist())
    if tree["switched"] is not None:
        monitor.history.switch(*tree["switched"])
    monitor.passes, monitor._unseen = tree["passes"], tree["unseen"]
    monitor.earlier = tree["seconds"]
    monitor.over = tree["reason"]
    if not monitor.over:
        with np.errstate(all="ignore"):
            monitor.turns.restore(tree["turns"], switched=tree["switched"] is not None)


# ---- whose run it is -----------------------------------------------------------------------------


def identify(
    problem: Problem,
    solver: str,
    entry: Entry,
    options: dict[str, Any],
    start: Point | None,
    **limits: float,
) -> dict[str, Any]:
    """Plain facts of all that the bits of a run hang on, but the machine.

    How many threads or workers there are is none of them; whether the data are in blocks is.
    """
    method = f"{entry.name} ({entry.cls})"
    asked = {name: plain(value) for name, value in options.items() if name != "n_jobs"}
    from_where = None if start is None else digest(start.x, np.asarray(start.intercept), start.y)
    return {
        "version": minor_version(),
        "problem": fingerprint(problem),
        "options": {"solver": solver, "method": method, "start": from_where, **limits, **asked},
    }


def minor_version() -> str:
    """Checkpoints go on within one."""
    return ".".join(__version__.split(".")[:2])


def check_identity(path: str, kept: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse the checkpoint of another run, and say in what it differs."""
    remedy = "name another file, or remove it to start from the beginning"
    if kept["version"] != now["version"]:
        raise ValueError(
            f"checkpoint={path!r}: it was written by adacoord {kept['version']}, and this is "
            f"{now['version']}: another minor version need not take the same steps; {remedy}"
        )
    for section, what in (("problem", "another problem"), ("options", "a run with other options")):
        for name in sorted({*kept[section], *now[section]}, key=_data_last):
            then, here = kept[section].get(name), now[section].get(name)
            if then == here or (_is_nan(then) and _is_nan(here)):
                continue
            if name in ("A", "b", "sample_weight"):
                raise ValueError(
                    f"checkpoint={path!r}: it is of other data: {name} has changed since; {remedy}"
                )
            shown = f"{name} has changed since"
            if not (_is_digest(then) or _is_digest(here)):
                shown = f"{name}={then!r} there, and {name}={here!r} now"
            raise ValueError(f"checkpoint={path!r}: it is of {what}: {shown}; {remedy}")


def _data_last(name: str) -> tuple[bool, str]:
    """By name, but numbers before digests: they are clearer."""
    return name in ("A", "b", "sample_weight"), name


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
