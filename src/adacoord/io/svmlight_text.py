"""The text of a file, plain or compressed, in pieces of whole lines.

One piece is in memory at a time, whatever the size of the file; a line is never cut, so the
longest one has to fit.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Generator
from contextlib import nullcontext
from typing import Any

import numpy as np

from . import svmlight_kernel as kernel

MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00"}
OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_DAMAGE = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)
#: A compressed file may expand to so many bytes, or to so many times its size if that is more.
#: Real data sets expand 3 to 15 times; a file made for the purpose, more than 10,000 times.
_EXPANDED, _RATIO = 1 << 28, 100


def compression(path: str | os.PathLike) -> str:
    """Return the ending of ``path`` that says how it is compressed, or nothing."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    return ending if ending in MAGIC else ""


def pieces(
    path: str | os.PathLike, size: int, max_bytes: float | None = None
) -> Generator[np.ndarray]:
    """Cut the text of ``path`` at line ends, after about ``size`` bytes each.

    Each piece is a uint8 array of its own that ends in a newline; the last line gets one if the
    file does not give it.  ``max_bytes`` bounds what a compressed file may expand to, as in
    :func:`adacoord.io.load_svmlight`.
    """
    with open(path, "rb") as file:
        _check_name(path, file.peek(8))
        ending = compression(path)
        stream = _Expanding(path, file, max_bytes) if ending else nullcontext(file)
        with stream as source:
            yield from _whole_lines(source, size)


def _whole_lines(stream, size: int) -> Generator[np.ndarray]:
    text, held = np.empty(size + 1, np.uint8), 0  # one byte is left for the last newline
    while got := stream.readinto(text[held:-1]):
        held += got
        if held < text.size - 1:
            continue
        cut = kernel.after_last_line(text[:held])
        if cut == 0:  # a long line: twice the room each time, so that copies stay few
            text = np.concatenate((text, np.empty(text.size, np.uint8)))
            continue
        piece, rest = text[:cut], text[cut:held]
        held = rest.size
        text = np.empty(held + size + 1, np.uint8)
        text[:held] = rest
        yield piece
    if held:
        text[held] = ord("\n")
        yield text[: held + 1]


class _Expanding:
    """A compressed stream that says in a sentence what is wrong with its file."""

    def __init__(self, path: str | os.PathLike, file, max_bytes: float | None):
        self._name, self._ending = os.fspath(path), compression(path)
        self._size = os.fstat(file.fileno()).st_size
        self._most = max_bytes or max(_EXPANDED, _RATIO * self._size)
        self._read = 0
        self._stream = OPEN[self._ending](file)

    def __enter__(self) -> _Expanding:
        return self

    def __exit__(self, *exception) -> None:
        self._stream.close()

    def readinto(self, buffer) -> int:
        try:
            got = self._stream.readinto(buffer)
        except _DAMAGE as error:
            raise ValueError(
                f"{self._name}: this {self._ending} file is truncated or corrupt ({error}); copy "
                "or download it again"
            ) from error
        self._read += got
        if self._read > self._most:
            raise ValueError(
                f"{self._name}: this {self._ending} file of {self._size} bytes expands to more "
                f"than max_bytes={self._most}; if you trust it, pass a larger max_bytes, or "
                "decompress it first"
            )
        return got


def _check_name(path: str | os.PathLike, start: bytes) -> None:
    """Refuse a file whose content is not what its name says."""
    name, ending = os.fspath(path), compression(path)
    found = next((e for e, magic in MAGIC.items() if start.startswith(magic)), "")
    if ending and found != ending:
        raise ValueError(
            f"{name}: the name ends in {ending} but the content does not start as a "
            f"{ending} file does; rename it after what it holds, or copy it again"
        )
    if found and not ending:
        raise ValueError(
            f"{name}: the content is that of a {found} file; rename it to end in {found}"
        )
