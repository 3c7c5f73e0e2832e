"""One way to make a folder: it is there whole, or nothing is.

The folder is filled beside its target under a temporary name, synced, and renamed.  A lock is
held on it meanwhile, as :mod:`adacoord.io.writing` does for files: a temporary folder without a
lock is nobody's, and the next run for the same target removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator

from .writing import _sync_folder, fcntl


@contextlib.contextmanager
def making_folder(
    path: str | os.PathLike, replaces: Callable[[str], bool] | None = None
) -> Iterator[str]:
    """Make the folder ``path``; it appears once the block has ended and all of it is on disk.

    Parameters
    ----------
    path : str or path-like
        The folder to make.  A symbolic link stays one: the folder that it names is made.
    replaces : callable, optional
        Whether a folder that stands there may be replaced, and removed with all that is in it;
        None for no.  The old one goes when the new one is whole.  (Killed between the two renames
        that this takes, there is neither.)

    Yields
    ------
    str
        The temporary folder to put files into; who writes them syncs them.
    """
    name, target = os.fspath(path), os.path.realpath(path)
    _check_target(name, target, replaces)
    _remove_abandoned(target)
    with _locked_folder(name, target) as temporary:
        try:
            yield temporary
            _sync_folder(temporary)
            if os.path.lexists(target):
                _check_target(name, target, replaces)  # it may be new
                with _locked_folder(name, target) as aside:
                    _replace(target, temporary, os.path.join(aside, "replaced"))
            else:
                os.rename(temporary, target)
        except OSError as error:
            if error.filename is None and error.errno is not None:  # a write does not say to what
                error.filename = name
            raise
    _sync_folder(os.path.dirname(target))


def _replace(target: str, new: str, aside: str) -> None:
    try:
        os.rename(target, aside)
        os.rename(new, target)
    except BaseException:  # Ctrl-C may come between the two
        if os.path.lexists(aside) and not os.path.lexists(target):
            os.rename(aside, target)
        raise


def _check_target(name: str, target: str, replaces: Callable[[str], bool] | None) -> None:
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"{name}: there is no such folder to make it in ({folder!r} does not exist; create it "
            "first)"
        )
    if not os.path.lexists(target):
        return
    if replaces is None:
        raise FileExistsError(
            f"{name}: this is there already; name another, or have it replaced (force=True, or "
            "--force on the command line)"
        )
    if not (os.path.isdir(target) and replaces(target)):
        raise FileExistsError(
            f"{name}: this is not a store, and would be removed; name another folder"
        )


@contextlib.contextmanager
def _locked_folder(name: str, target: str) -> Iterator[str]:
    """A new, locked folder beside ``target``; what is left of it in the end is removed."""
    folder, base = os.path.split(target)
    while True:
        temporary = os.path.join(folder, f".{base}.{secrets.token_hex(8)}.tmp")
        try:
            os.mkdir(temporary)
        except OSError as error:
            raise type(error)(
                f"{name}: no folder can be made in {folder!r} ({error.strerror}); name another "
                "place, or change this one"
            ) from None
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(_locked(temporary, wait=True))
            except FileNotFoundError:  # taken for abandoned before it was locked
                continue
            stack.callback(_remove, temporary)
            yield temporary
            return


@contextlib.contextmanager
def _locked(path: str, wait: bool) -> Iterator[None]:
    """Hold the lock of a folder; OSError if it is gone, or another's and that is not waited for."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if wait:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(path)  # it may have gone meanwhile
        yield
    finally:
        os.close(descriptor)


def _remove(folder: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # renamed
        shutil.rmtree(folder)


def _remove_abandoned(target: str) -> None:
    """Remove what killed processes left beside ``target``."""
    folder, base = os.path.split(target)
    pattern = re.compile(re.escape(f".{base}.") + r"[0-9a-f]{16}\.tmp")
    for path in (os.path.join(folder, name) for name in os.listdir(folder)):
        left = pattern.fullmatch(os.path.basename(path)) and not os.path.islink(path)
        if left and os.path.isdir(path):
            # it is locked, or gone, or not ours
            with contextlib.suppress(OSError), _locked(path, wait=False):
                shutil.rmtree(path)
