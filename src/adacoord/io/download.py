"""Fetch a file over HTTP so that it is whole or absent, and what was fetched is not lost.

The bytes go to ``<file>.part``; an interrupted download goes on from there, by an HTTP range that
the server grants only if the file is still the one that was begun (``If-Range`` with its ETag or
date).  The file takes its name once its length and its digest are right.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

#: Seconds without a byte after which a connection is given up, and fruitless attempts in a row
#: after which the download is.
TIMEOUT, ATTEMPTS = 30.0, 4
#: Seconds to wait before the second attempt; doubled for each further one.
PAUSE = 1.0
_CHUNK = 1 << 18
_BROKEN = (OSError, http.client.HTTPException)  # URLError and timeouts are OSErrors

Report = Callable[[int, int | None], None]


def download(
    url: str,
    target: str | os.PathLike,
    *,
    sha256: str | None = None,
    report: Report | None = None,
) -> None:
    """Fetch ``url`` to the file ``target``, resuming what an earlier call left behind.

    Parameters
    ----------
    url : str
        http or https.
    target : str or path-like
        The file to make; its folder exists.  It appears in one step, when it is whole.
    sha256 : str, optional
        The digest it must have.
    report : callable, optional
        Called with the bytes so far and the bytes in all (None where the server does not say).

    Raises
    ------
    OSError
        A sentence that names the URL, what went wrong and what to do.
    """
    target = Path(target)
    part = target.with_name(target.name + ".part")
    with _only_one(target.with_name(target.name + ".lock")):
        if target.exists():  # another process was faster
            return
        _fetch(url, part, report)
        found = digest(part)
        if sha256 is not None and found != sha256:
            _forget(part)
            raise OSError(
                f"{url}: what came has the SHA-256 {found[:16]}..., not {sha256[:16]}...; it was "
                "removed. Try again; if that does not help, the file at its source has changed"
            )
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, target)
        _validator(part).unlink(missing_ok=True)


def digest(path: str | os.PathLike) -> str:
    """The SHA-256 of a file, in hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(url: str, part: Path, report: Report | None) -> None:
    """Fill ``part``, with another attempt wherever one made progress."""
    fruitless, size = 0, part.stat().st_size if part.exists() else 0
    while True:
        try:
            if _attempt(url, part, report):
                return
            reason = "the connection ended early"
        except urllib.error.HTTPError as error:
            error.close()
            if error.code < 500 and error.code not in (408, 416, 429):
                raise OSError(
                    f"{url}: the server says {error.code} {error.reason}; the address may have "
                    "changed: download the file by hand into the folder ADACOORD_DATA names"
                ) from None
            if error.code == 416:  # there is no such range: what is here is of another file
                _forget(part)
            reason = f"the server says {error.code} {error.reason}"
        except _BROKEN as error:
            reason = _reason(error)
        now = part.stat().st_size if part.exists() else 0
        fruitless = 0 if now > size else fruitless + 1
        size = now
        if fruitless >= ATTEMPTS:
            kept = f" {size} bytes are kept and will be built upon." if size else ""
            raise OSError(
                f"{url}: could not be downloaded ({reason}).{kept} Check the connection and try "
                "again, or put the file into the folder that ADACOORD_DATA names"
            )
        time.sleep(PAUSE * 2.0 ** max(fruitless - 1, 0) if fruitless else 0.0)


def _attempt(url: str, part: Path, report: Report | None) -> bool:
    """One connection; whether the file is whole at its end."""
    size = part.stat().st_size if part.exists() else 0
    validator = _read(_validator(part))
    if size and not validator:  # nothing would show that the file has changed meanwhile
        _forget(part)
        size = 0
    request = urllib.request.Request(url, headers={"User-Agent": "adacoord"})
    if size:
        request.add_header("Range", f"bytes={size}-")
        request.add_header("If-Range", validator)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        start, total = _range(response)
        if start not in (0, size):
            raise http.client.HTTPException(f"the server sent bytes from {start}, not {size}")
        # a weak ETag does not promise the same bytes
        tag = response.headers.get("ETag", "")
        tag = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")
        _validator(part).write_text(tag)
        with open(part, "ab" if start else "wb") as file:
            done = start
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                if report:
                    report(done, total)
    return total is None or done == total


def _range(response) -> tuple[int, int | None]:
    """(first byte of the answer, bytes of the whole file)."""
    if response.status == 206:
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if not found:
            raise http.client.HTTPException("the server sent a part without saying which")
        return int(found[1]), int(found[2])
    length = response.headers.get("Content-Length")
    return 0, None if length is None else int(length)


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", error)
    if isinstance(inner, TimeoutError):
        return f"no byte came for {TIMEOUT:g} seconds"
    return str(inner) or type(inner).__name__


def _validator(part: Path) -> Path:
    return part.with_name(part.name + ".etag")


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator(part).unlink(missing_ok=True)


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Let one process at a time write the file (where the system has such locks)."""
    try:
        import fcntl
    except ImportError:  # Windows: an open file cannot be renamed there, which ends the race
        yield
        return
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed, or its process ends
        yield
