"""From a piece of svmlight text to its rows, or to the first thing that is wrong with it.

Every check looks at one line only.  So the first thing wrong of a file is that of its first bad
piece, wherever the text is cut and whichever thread parses what.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from . import svmlight_kernel as kernel

_TOKEN = re.compile(rb"[^\s#]+")


class Rows(NamedTuple):
    """The rows of a piece; ``lines`` counts its line ends, with or without a row before them."""

    b: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    width: int
    lines: int


class Refusal(NamedTuple):
    """What is wrong with a piece, and where: lines and columns are counted from 0."""

    line: int
    column: int
    reason: str


def parse(text: np.ndarray, zero_based: bool) -> Rows | Refusal:
    """Parse a piece; indices are int32 if all of the piece's are that small."""
    colons, lines = kernel.count(text)
    for index_type in (np.int32, np.int64):
        b, indptr = np.empty(lines), np.empty(lines + 1, np.int64)
        indices: np.ndarray = np.empty(colons, index_type)
        values = np.empty(colons)
        # Rarely used, and then sparsely: the system gives memory only to the pages written to.
        inexact = np.empty((colons + lines, 3), np.int64)
        first, widest = 0 if zero_based else 1, np.iinfo(index_type).max
        code, position, rows, entries, n_inexact, largest, ordered = kernel.parse(
            text, first, widest, b, indptr, indices, values, inexact
        )
        if code != kernel.TOO_WIDE:
            break
    wrong = [] if code == kernel.DONE else [(position, code)]
    wrong += _round_correctly(text, b, values, inexact[:n_inexact])
    b, indptr = b[:rows], indptr[: rows + 1]
    indices, values = indices[:entries], values[:entries]
    if not ordered and (wrong or _sort_repeats(indptr, indices, values)):
        wrong += _first_repeated(text.tobytes())
    if wrong:
        return _refusal(text.tobytes(), *min(wrong))
    return Rows(b, indptr, indices, values, largest + 1, lines)


def joined(pieces: Iterable[Rows]) -> Rows:
    """Put pieces below one another as they come; row pointers are int64."""
    b, indptr = _Growing(np.float64), _Growing(np.int64)
    indices, values = _Growing(np.int32), _Growing(np.float64)
    indptr.append(np.zeros(1, np.int64))
    entries = width = lines = 0
    for piece in pieces:
        b.append(piece.b)
        indptr.append(piece.indptr[1:] + entries)
        indices.append(piece.indices)
        values.append(piece.values)
        entries += int(piece.indptr[-1])
        width, lines = max(width, piece.width), lines + piece.lines
    return Rows(b.whole(), indptr.whole(), indices.whole(), values.whole(), width, lines)


class _Growing:
    """An array that parts are appended to.

    Room that nothing is written to costs no memory: the peak for 200 MB of text is 350 MB, that of
    a list of parts and their concatenation 500 MB.
    """

    def __init__(self, dtype: type):
        self._array: np.ndarray = np.empty(0, dtype)
        self._size = 0

    def append(self, part: np.ndarray) -> None:
        size, dtype = self._size + part.size, np.promote_types(self._array.dtype, part.dtype)
        if size > self._array.size or dtype != self._array.dtype:
            larger = np.empty(max(size, 2 * self._array.size), dtype)
            larger[: self._size] = self._array[: self._size]
            self._array = larger
        self._array[self._size : size] = part
        self._size = size

    def whole(self) -> np.ndarray:
        """Return all that was appended; this object is not to be used any more."""
        self._array.resize(self._size, refcheck=False)  # gives the rest back, copies nothing
        return self._array


def index_type_of(entries: int, shape: tuple[int, int]) -> np.dtype:
    """Return the type of the index arrays of a matrix: int32 where that holds all of them."""
    return np.dtype(np.int32 if max(entries, *shape) <= np.iinfo(np.int32).max else np.int64)


def _round_correctly(text: np.ndarray, b, values, inexact: np.ndarray) -> list[tuple[int, int]]:
    """Replace the numbers the kernel could not round exactly by Python's reading of them.

    Returns the position and the code of the first that is infinite, if any.
    """
    content = text.data
    numbers = np.array([float(content[i:j]) for i, j in inexact[:, :2].tolist()])
    slots = inexact[:, 2]
    values[slots[slots >= 0]] = numbers[slots >= 0]
    b[-1 - slots[slots < 0]] = numbers[slots < 0]
    infinite = np.flatnonzero(np.isinf(numbers))[:1]
    return [
        (int(inexact[k, 0]), kernel.BAD_LABEL if slots[k] < 0 else kernel.BAD_VALUE)
        for k in infinite
    ]


def _sort_repeats(indptr, indices, values) -> bool:
    """Sort the indices within each row, in place; return whether one appears twice."""
    width = int(indices.max()) + 1
    A = sparse.csr_matrix((values, indices, indptr), shape=(indptr.size - 1, width), copy=False)
    A.sort_indices()
    indices[:], values[:] = A.indices, A.data
    return not A.has_canonical_format


def _first_repeated(text: bytes) -> list[tuple[int, int]]:
    """Return the position and the code of the first index that appears twice in its row, if any.

    What stands behind something that is wrong already does not matter.
    """
    position = 0
    for line in text.split(b"\n"):
        seen = set()
        for token in _TOKEN.finditer(line.partition(b"#")[0]):
            index, colon, _ = token[0].partition(b":")
            if colon and index.lstrip(b"0") in seen:
                return [(position + token.start(), kernel.REPEATED)]
            if colon:  # the label has none
                seen.add(index.lstrip(b"0"))
        position += len(line) + 1
    return []


def _refusal(text: bytes, position: int, code: int) -> Refusal:
    """Return what is wrong with the token that holds ``position``."""
    start = text.rfind(b"\n", 0, position) + 1
    line = text[start : text.index(b"\n", position)]
    token = next(t for t in _TOKEN.finditer(line) if t.end() > position - start)
    shown = token[0].decode("utf-8", "backslashreplace")
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    reason = f"{_reason(code, token[0])}, got {shown!r}"
    return Refusal(text.count(b"\n", 0, start), token.start(), reason)


def _reason(code: int, token: bytes) -> str:
    if code == kernel.BAD_LABEL:
        if b":" in token:
            return "a line must start with its label, and this one starts with a feature"
        if b"," in token:
            return "a row must have one label, and this one has several (multi-label)"
        if _is_not_finite(token):
            return "a label must be a finite number"
        return "a line must start with its label, a number"
    if code == kernel.BAD_VALUE:
        if _is_not_finite(token.partition(b":")[2]):
            return "a value must be a finite number"
        return "a value must be a number, in the form index:value"
    return {
        kernel.BAD_INDEX: "a feature must read index:value, with a whole number as its index",
        kernel.INDEX_ZERO: "indices start at 1; the file seems zero-based (pass zero_based=True)",
        kernel.REPEATED: "an index must not appear twice in a row",
        kernel.TOO_WIDE: "an index must have at most 18 digits",
    }[code]


def _is_not_finite(token: bytes) -> bool:
    try:
        return not math.isfinite(float(token))
    except ValueError:
        return False
