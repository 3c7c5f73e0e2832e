"""What every reader of data gives: some rows at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

#: About so many bytes of numbers, or of text, make a chunk.
CHUNK_BYTES = 2**23


class Chunk(NamedTuple):
    """Rows, their targets, and the part of the whole that has been read; None if unknown."""

    X: Any
    y: Any
    done: float | None
