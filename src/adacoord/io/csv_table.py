"""Rows of CSV text, some at a time, in bounded memory.

The first line names the columns.  The delimiter is the one of comma, semicolon and tab that is in
it most often.  Text is UTF-8, plain or compressed; blank lines are skipped, and names, numbers and
labels may have blanks around them.  Python's reader splits the lines (quotes, and line ends within
them), NumPy makes numbers of them: slower than pyarrow, which is no part of the core.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Generator, Sequence
from contextlib import closing
from itertools import chain, islice
from operator import itemgetter
from typing import Any

import numpy as np

from .chunks import Chunk
from .svmlight_text import compression, pieces

#: Bytes of text, and values of it, that are held at a time; a value takes some 60 bytes.
_PIECE, _VALUES = 2**20, 2**17
_DELIMITERS = ",;\t"
#: What to do about words in a column of features, and in targets that are to be numbers.
FEATURE = "encode the column as numbers, or leave it out"
TARGET = "targets are numbers here: encode labels as 0, 1, ..."


class CsvTable:
    """A CSV file, read once: the names of its ``columns``, then chunks of what is in them.

    ``max_bytes`` bounds what a compressed file may expand to, as in
    :func:`adacoord.io.load_svmlight`.
    """

    def __init__(self, path: str | os.PathLike, max_bytes: float | None = None):
        self.name = os.fspath(path)
        self._size = None if compression(path) else os.stat(path).st_size
        self._read = 0
        lines = self._lines(pieces(path, _PIECE, max_bytes))
        blank, first = 0, ""
        for first in lines:
            if first.strip():
                break
            blank += 1
        if not first.strip():
            raise ValueError(
                f"{self.name}: the file is empty; its first line must name the columns"
            )
        self._delimiter = max(_DELIMITERS, key=first.count)
        self._rows = self._split(chain([first], lines), blank)
        self.columns = [column.strip() for column in next(self._rows)[1]]
        if all(_is_number(column) for column in self.columns):
            raise ValueError(
                f"{self.name}: the first line holds numbers ({first.strip()[:40]}), and it must "
                "name the columns; put a line of names before it"
            )

    def chunks(
        self, features: Sequence[str], target: str | None, labels: bool = False
    ) -> Generator[Chunk]:
        """Rows of ``features`` in float64, and ``target``: as text where it may hold ``labels``."""
        where = {column: j for j, column in enumerate(self.columns)}
        chosen = [where[column] for column in features]
        pick: Any = itemgetter(*chosen) if len(chosen) > 1 else lambda row: [row[chosen[0]]]
        size = max(1, _VALUES // len(self.columns))
        with closing(self._rows):
            while numbered := list(islice(self._rows, size)):
                places, rows = zip(*numbered, strict=True)
                X = self._numbers(list(map(pick, rows)), features, places)
                y = None
                if target is not None:
                    values = [row[where[target]].strip() for row in rows]
                    y = (
                        self._labels(values, target, places)
                        if labels
                        else self._numbers([[v] for v in values], [target], places, TARGET)[:, 0]
                    )
                yield Chunk(X, y, min(self._read / self._size, 1.0) if self._size else None)

    def _lines(self, text: Generator[np.ndarray]) -> Generator[str]:
        encoding = "utf-8-sig"  # a byte order mark, which Excel writes, is no part of a name
        with closing(text):
            for piece in text:
                self._read += piece.size
                try:
                    decoded = piece.tobytes().decode(encoding)
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{self.name}: this is not UTF-8 text ({error.reason}); save the table "
                        "again as CSV in UTF-8"
                    ) from None
                encoding = "utf-8"
                yield from io.StringIO(decoded, newline="")

    def _split(self, lines: Any, before: int) -> Generator[tuple[int, list[str]]]:
        """(line, values) of each row, the names first; ``before`` lines have been skipped."""
        width = 0
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        try:
            for row in reader:
                if len(row) < 2 and not "".join(row).strip():
                    continue  # a blank line
                width = width or len(row)
                if len(row) != width:
                    raise ValueError(
                        f"{self.name}:{before + reader.line_num}: this line has {len(row)} "
                        f"value{'s' * (len(row) > 1)}, and the first one names {width} "
                        f"column{'s' * (width > 1)}; correct the line, or quote values that hold "
                        f"a {self._delimiter!r}"
                    )
                yield before + reader.line_num, row
        except csv.Error as error:
            raise ValueError(
                f"{self.name}:{before + reader.line_num}: this line cannot be read ({error}); is "
                "a quote not closed?"
            ) from None

    def _numbers(
        self,
        rows: Sequence[Sequence[str]],
        columns: Sequence[str],
        places: Sequence[int],
        advice: str = FEATURE,
    ) -> np.ndarray:
        try:
            X = np.array(rows, dtype=np.float64)
            if np.isfinite(X).all() and not any("_" in "".join(row) for row in rows):
                return X
        except ValueError:
            pass
        for line, row in zip(places, rows, strict=True):
            for column, value in zip(columns, row, strict=True):
                if not _is_number(value) or not math.isfinite(float(value)):
                    raise self._refusal(line, column, value.strip(), advice)
        raise AssertionError("NumPy and Python read the same numbers")

    def _labels(self, values: list[str], column: str, places: Sequence[int]) -> np.ndarray:
        if "" in values:
            raise self._refusal(places[values.index("")], column, "")
        return np.array(values, dtype=object)

    def _refusal(self, line: int, column: str, value: str, advice: str = FEATURE) -> ValueError:
        where = f"{self.name}:{line}: the column {column!r}"
        if not value:
            return ValueError(f"{where} has no value; drop or impute missing values")
        return ValueError(f"{where} holds {value[:40]!r}, which is not a finite number; {advice}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python's own grouping of digits
