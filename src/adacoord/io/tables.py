"""Tables, whose columns have names: CSV text, and Parquet by pyarrow (the extra ``tables``)."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from .chunks import Chunk
from .csv_table import CsvTable
from .svmlight_text import compression

#: What the names of tables end in.
CSV, PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
#: Bytes of a column of a Parquet file that are read at a time.
_BUFFER = 2**16
#: Bytes of numbers that are decoded at a time: pyarrow holds up to 40 times as many.
_BLOCK = 2**20


class Table(Protocol):
    """A file of rows whose columns have names."""

    name: str
    columns: list[str]

    def chunks(
        self, features: Sequence[str], target: str | None, labels: bool = False
    ) -> Generator[Chunk]:
        """Rows of the columns ``features``, and of ``target`` if there is one.

        With ``labels`` the targets may be words: they come as they stand in the file.
        """
        ...


def ending(path: str | os.PathLike) -> str:
    """What the name of a file ends in, but for how it is compressed."""
    name = os.fspath(path)
    return os.path.splitext(name[: len(name) - len(compression(name))])[1].lower()


def open_table(path: str | os.PathLike, max_bytes: float | None = None) -> Table:
    """The table at ``path``, by what its name ends in."""
    if ending(path) in CSV:
        return CsvTable(path, max_bytes)
    return ParquetTable(path)


def features_beside(table: Table, target: str | None) -> list[str]:
    """The columns that are not the target; refused where that is not one, or no other is."""
    columns = table.columns
    if target is None or columns.count(target) != 1:
        raise ValueError(
            f"target={target!r}: name the column of {table.name} that holds the targets (--target "
            f"on the command line); the columns are {listed(columns)}"
        )
    check_columns(table)
    if len(columns) < 2:
        raise ValueError(f"{table.name}: there is no column but the target; give at least one more")
    return [column for column in columns if column != target]


def check_columns(table: Table) -> None:
    """Refuse names that do not tell columns apart."""
    if len(set(table.columns)) < len(table.columns):
        raise ValueError(
            f"{table.name}: two columns have the same name ({listed(table.columns)}); rename one"
        )


def listed(columns: Sequence[str]) -> str:
    """The first few names."""
    return ", ".join(map(repr, columns[:8])) + ", ..." * (len(columns) > 8)


class ParquetTable:
    """A Parquet file; rows are float32 where NumPy's promotion of the types is, else float64."""

    def __init__(self, path: str | os.PathLike):
        self.name = os.fspath(path)
        if find_spec("pyarrow") is None:
            raise ValueError(
                f"{self.name}: Parquet needs pyarrow; install it with pip install "
                '"adacoord[tables]", or save the table as CSV'
            )
        open(path, "rb").close()  # pyarrow's errors about missing files are not about one
        from pyarrow import parquet

        with _saying(self.name):
            # Left to itself, pyarrow holds the bytes of whole row groups (of 170 MB: 251 -> 103).
            self._file = parquet.ParquetFile(self.name, pre_buffer=False, buffer_size=_BUFFER)
            self._schema = self._file.schema_arrow
        self.columns: list[str] = self._schema.names

    def chunks(
        self, features: Sequence[str], target: str | None, labels: bool = False
    ) -> Generator[Chunk]:
        """As :class:`Table` says."""
        dtype = np.result_type(*(self._type(column) for column in features))
        dtype = np.dtype(np.float32 if dtype in (np.float16, np.float32) else np.float64)
        words = labels and target is not None and self._holds_words(target)
        if target is not None and not words:
            self._type(target)
        read = [*features, *([] if target is None else [target])]
        batches = self._file.iter_batches(max(1, _BLOCK // (8 * len(read))), columns=read)
        rows, count = 0, self._file.metadata.num_rows
        while True:
            with _saying(self.name):
                batch = next(batches, None)
            if batch is None:
                return
            X = np.empty((batch.num_rows, len(features)), dtype)
            for j, column in enumerate(features):
                X[:, j] = self._values(batch, column, rows)
            y = None if target is None else self._values(batch, target, rows)
            rows += batch.num_rows
            yield Chunk(X, y.astype(object) if y is not None and words else y, rows / count)

    def _type(self, column: str) -> np.dtype:
        """In NumPy's terms."""
        kind = self._schema.field(column).type
        try:
            found = np.dtype(kind.to_pandas_dtype())
        except (NotImplementedError, TypeError):
            found = np.dtype(object)
        if found.kind not in "biuf":
            raise ValueError(
                f"{self.name}: the column {column!r} has type {kind}; it must hold numbers: encode "
                "it, or leave it out"
            )
        return found

    def _holds_words(self, column: str) -> bool:
        from pyarrow import types

        kind = self._schema.field(column).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return types.is_string(kind) or types.is_large_string(kind)

    def _values(self, batch: Any, column: str, rows: int) -> np.ndarray:
        values = batch.column(batch.schema.get_field_index(column))
        if values.null_count:
            row = rows + int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
            raise ValueError(
                f"{self.name}: the column {column!r} has no value in row {row} (counted from 0); "
                "drop or impute missing values"
            )
        return values.to_numpy(zero_copy_only=False)


@contextmanager
def _saying(name: str) -> Iterator[None]:
    """Say which file it is that pyarrow cannot read."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{name}: the table cannot be read ({reason}); correct it, or save it again"
        ) from error
