"""``-``: standard input and output, where the command line is given the name of a file.

What comes in is kept in a temporary file for as long as it is read: a table is not read from its
start to its end, and may not fit into memory.  What goes out is made as every file is, and written
once it is whole.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STANDARD = "-"
_NAME = "standard input"
#: Bytes of text that are looked at to tell what it is.
_HEAD = 2**16


def check_once(*sources: str | None) -> None:
    """Refuse standard input in two places."""
    if sources.count(STANDARD) > 1:
        raise ValueError("-: standard input is given twice, and is there once; name a file")


@contextmanager
def as_file(source: str) -> Iterator[str]:
    """The name of a file to read, for as long as the block: of a copy where that is ``-``.

    The name of the copy ends in what its content says, and stands in no sentence.
    """
    if source != STANDARD:
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, _NAME)
        with open(path, "wb") as copy:
            if sys.stdin is not None:  # closed by who started us
                shutil.copyfileobj(sys.stdin.buffer, copy)
        if not os.path.getsize(path):
            raise ValueError("standard input is empty; pipe the data in, or name a file")
        named = path + _ending(path)
        os.rename(path, named)
        try:
            yield named
        except (ValueError, OSError) as error:
            if path not in str(error):
                raise
            kind = OSError if isinstance(error, OSError) else ValueError
            raise kind(str(error).replace(named, _NAME)) from error


@contextmanager
def to_file(path: Path, ending: str = "") -> Iterator[Path]:
    """Where to write a file: its place, or one whose content then goes to standard output.

    ``ending`` is what the name of the latter ends in.
    """
    if str(path) != STANDARD:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, f"output{ending}")
        yield made
        write_out(made.read_bytes())


def write_out(content: bytes) -> None:
    """To standard output, after what is there already."""
    if sys.stdout is None:  # closed by who started us
        return
    sys.stdout.flush()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # a text stream in its place
        sys.stdout.write(content.decode())
    else:
        stream.write(content)
        stream.flush()


def named(path: Path | None) -> Path | None:
    """A file that is written under its name; None for standard output."""
    return None if path is None or str(path) == STANDARD else path


def _ending(path: str) -> str:
    """What the name of a file of this content ends in."""
    from .svmlight_text import MAGIC, OPEN  # with Numba, which not every command needs

    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"PAR1"):
        return ".parquet"
    packed = next((e for e, magic in MAGIC.items() if head.startswith(magic)), "")
    if packed:
        try:
            with OPEN[packed](path, "rb") as file:
                head = file.read(_HEAD)
        except (EOFError, OSError, ValueError):  # who reads it says so
            head = b""
    return (".svm" if _is_svmlight(head) else ".csv") + packed


def _is_svmlight(head: bytes) -> bool:
    """Whether the first line that says something is a number, and then pairs ``index:value``."""
    for line in head.split(b"\n"):
        words = line.partition(b"#")[0].split()
        if words:
            try:
                float(words[0])
            except ValueError:
                return False
            return all(b":" in word for word in words[1:-1])  # the last one may be cut
    return True
