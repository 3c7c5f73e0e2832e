"""One way to write a file: it is there whole, or what stood there before is.

A regular file is written beside its target under a temporary name, synced, and renamed.  A lock
is held on the temporary file meanwhile.  The system drops the lock with the process, also with a
killed one, so a temporary file without a lock is nobody's: the next write to the same target
removes it.

Devices, FIFOs and the process's own output are written to as they are: a rename would put a file
in their place.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

try:
    import fcntl
except ImportError:  # Windows: an open file cannot be removed there, which does the lock's work
    fcntl = None  # type: ignore[assignment]  # and who locks asks for it


@contextlib.contextmanager
def replacing(path: str | os.PathLike, previous: str | None = None) -> Iterator[BinaryIO]:
    """Open ``path`` for writing; a regular file appears once it is whole and on disk.

    Parameters
    ----------
    path : str or path-like
        The file to write.  If the block raises, or the process is killed, a regular file that
        stood there before is untouched.  A new one keeps its permissions and its owner.  A
        symbolic link stays one: the file that it names is replaced.
    previous : str, optional
        Where the file that stood there goes.  Killed between the two renames that this takes, it
        is at ``previous``, and there is none at ``path``.

    Yields
    ------
    BinaryIO
        What to write to; it may not be seekable.
    """
    name = os.fspath(path)
    try:
        old = _status(name)
        if old is not None and _is_stream(old):
            with open(_open_stream(name, old), "wb") as file:
                yield cast(BinaryIO, file)
            return
        target = os.path.realpath(name)
        _remove_abandoned(target)
        descriptor, temporary = _temporary(name, target, old)
        try:
            with open(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if fcntl is not None:
                    _rename(temporary, target, previous)  # while the lock is held
            if fcntl is None:
                _rename(temporary, target, previous)  # only closed files can be renamed there
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.remove(temporary)
            raise
        _sync_folder(os.path.dirname(target))
    except OSError as error:
        if error.filename is None and error.errno is not None:  # a write does not say to what
            error.filename = name
        raise


def _rename(temporary: str, target: str, previous: str | None) -> None:
    if previous is not None:
        with contextlib.suppress(FileNotFoundError):  # the first one
            os.replace(target, previous)
    os.replace(temporary, target)


def check_writable(path: str | os.PathLike) -> None:
    """Raise the OSError that :func:`replacing` would raise now; leaves nothing behind."""
    name = os.fspath(path)
    old = _status(name)
    if not _is_stream(old):
        descriptor, temporary = _temporary(name, os.path.realpath(name), old)
        os.close(descriptor)
        os.remove(temporary)


def check_outputs(inputs: Iterable[Path | None] = (), **options: Path | None) -> None:
    """Refuse files that cannot be written, or are read, before the work that they are to hold.

    ``options`` are the command line's, and so named in the errors.
    """
    for option, path in options.items():
        if path is not None:
            try:
                check_writable(path)
            except OSError as error:
                raise ValueError(f"--{option} {error}") from None
            if path.is_file() and any(p and p.exists() and path.samefile(p) for p in inputs):
                raise ValueError(
                    f"--{option} {path}: this file is read, and would be overwritten; name another"
                )


def _status(name: str) -> os.stat_result | None:
    """What stands at ``name``, if anything; OSError if it cannot be written."""
    target = os.path.realpath(name)
    if os.path.isdir(target):
        raise IsADirectoryError(f"{name}: this is a folder; name a file in it")
    try:
        old = os.stat(name)
    except (FileNotFoundError, NotADirectoryError):  # a file may stand where its folder should
        old = None
    folder = os.path.dirname(target)
    if old is None and not os.path.isdir(folder):
        raise FileNotFoundError(
            f"{name}: there is no such folder to write it to ({folder!r} does "
            "not exist; create it first)"
        )
    if old is not None and not os.access(name, os.W_OK):  # a rename would not ask
        raise PermissionError(
            f"{name}: this file may not be written to; change its permissions "
            "(chmod u+w), or name another"
        )
    return old


def _is_stream(old: os.stat_result | None) -> bool:
    return old is not None and (not stat.S_ISREG(old.st_mode) or _own_output(old) is not None)


def _own_output(old: os.stat_result) -> int | None:
    """The descriptor of standard output or error, if it is this file."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):  # it may be closed
            if os.path.samestat(old, os.fstat(descriptor)):
                return descriptor
    return None


def _open_stream(name: str, old: os.stat_result) -> int:
    own = _own_output(old)
    if own is None:
        return os.open(name, os.O_WRONLY)
    # Opened anew, a file would be written from its start, over what is there.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return os.dup(own)


def _temporary(name: str, target: str, old: os.stat_result | None) -> tuple[int, str]:
    """(descriptor, name) of a new, locked file beside ``target``, with the old one's mode."""
    folder, base = os.path.split(target)
    while True:
        temporary = os.path.join(folder, f".{base}.{secrets.token_hex(8)}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(temporary, flags, 0o666 if old is None else 0o600)
        except OSError as error:
            raise type(error)(
                f"{name}: no file can be made in {folder!r} ({error.strerror}); "
                "name another folder, or change this one"
            ) from None
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.name != "posix":
            return descriptor, temporary
        if os.fstat(descriptor).st_nlink == 0:  # taken for abandoned before it was locked
            os.close(descriptor)
            continue
        if old is not None:
            with contextlib.suppress(OSError):  # only root may give a file away
                os.fchown(descriptor, old.st_uid, old.st_gid)
            with contextlib.suppress(OSError):  # a file system without modes
                os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
        return descriptor, temporary


def _remove_abandoned(target: str) -> None:
    """Remove what killed processes left beside ``target``."""
    folder, base = os.path.split(target)
    pattern = re.compile(re.escape(f".{base}.") + r"[0-9a-f]{16}\.tmp")
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):  # it is locked, or gone, or not ours
                    _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    if fcntl is None:
        os.remove(path)
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.remove(path)
    finally:
        os.close(descriptor)


def _sync_folder(folder: str) -> None:
    """The rename itself is durable only once its folder is synced."""
    if os.name == "posix" and os.access(folder, os.R_OK):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
