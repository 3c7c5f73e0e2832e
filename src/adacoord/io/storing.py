"""Write a store from chunks of rows, holding one chunk at a time.

How many rows there will be, how wide they are and whether all values are the same is known at
the end only.  So each file leaves room for its start, values are written once a second one
appears, and column numbers are written again, as int64, once one does not fit int32.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..data.matrix import _check_indices, _float_type
from ..data.partition import INT32_WIDTH, block_bounds
from .folders import making_folder
from .store import (
    CHUNK,
    DIGEST,
    HEADER,
    INDICES,
    POINTERS,
    START,
    TARGETS,
    VALUES,
    Description,
    digest_line,
    file_of,
    is_store,
    npy_start,
)

#: Bytes of a chunk that are looked at and written at a time.
_PIECE = 2**23


@contextlib.contextmanager
def writing_store(path: str | os.PathLike, *, force: bool = False) -> Iterator[StoreWriter]:
    """Make a store; it is there once the block has ended, whole, or not at all.

    ``force`` replaces a store that stands there (and nothing else).
    """
    with making_folder(path, is_store if force else None) as folder:
        writer = StoreWriter(folder, os.fspath(path))
        try:
            yield writer
            writer.finish()
        finally:
            writer.close()


class StoreWriter:
    """``append(X, y)`` rows; the first ones decide between dense and sparse, and the type."""

    def __init__(self, folder: str, name: str):
        self.folder, self.name = folder, name
        self.rows = self.width = 0
        self._sparse: bool | None = None
        self._files: dict[str, _ArrayFile] = {}
        self._value: np.ndarray | None = None  # the one value of all entries so far

    def append(self, X: Any, y: Any) -> None:
        """Write rows and their targets; they are called by their numbers in the store.

        Sparse rows may be wider than those before them; dense ones may not.
        """
        X = X if sparse.issparse(X) else np.asarray(X)
        y = np.asarray(y)
        if X.ndim != 2 or y.shape != (X.shape[0],):
            raise ValueError(
                f"rows {self.rows} on: X has shape {X.shape} and y has shape {y.shape}; X must "
                "have a row for each target"
            )
        if X.shape[0] == 0:
            return
        if X.shape[1] == 0:
            raise ValueError(f"rows {self.rows} on: X has no columns; give at least one")
        dtype = _float_type(X.dtype, "X")
        _float_type(y.dtype, "y")
        if sparse.issparse(X):
            _check_indices(X, "X")
            X = X.tocsr()
        if self._sparse is None:
            self._begin(sparse.issparse(X), dtype, X.shape[1])
        self._check_alike(X, dtype)
        size = max(1, _PIECE * X.shape[0] // max(X.nnz * 12 if self._sparse else X.nbytes, 1))
        for first in range(0, X.shape[0], size):
            rows = slice(first, first + size)
            self._append_piece(X[rows], y[rows].astype(np.float64))

    def finish(self) -> None:
        """Write the rest of all files, the header last: a folder without it is no store."""
        if self.rows == 0:
            raise ValueError(f"{self.name}: there are no rows to store; give at least one")
        nnz = self.rows * self.width
        index_dtype = None
        if self._sparse:
            nnz = self._files[INDICES].length
            index_dtype = self._files[INDICES].dtype
        iso = self._value is not None
        if self._value is not None:
            self._files[VALUES].write(self._value)
        sha256 = {file_of(name): file.finish() for name, file in self._files.items()}
        shape, dtype = (self.rows, self.width), self._files[VALUES].dtype
        indptr = (
            np.memmap(self._files[POINTERS].path, np.int64, "r", START) if self._sparse else None
        )
        bounds = block_bounds(shape, dtype.itemsize, indptr)
        del indptr
        header = Description(shape, nnz, dtype, index_dtype, iso, bounds, sha256).to_json()
        self._write(DIGEST, digest_line(hashlib.sha256(header).hexdigest()))
        self._write(HEADER, header)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _begin(self, is_sparse: bool, dtype: np.dtype, width: int) -> None:
        self._sparse = is_sparse
        types = {VALUES: dtype, TARGETS: np.dtype(np.float64)}
        if is_sparse:
            types |= {POINTERS: np.dtype(np.int64), INDICES: np.dtype(np.int32)}
        else:
            self.width = width
        for name, kind in types.items():
            self._files[name] = _ArrayFile(os.path.join(self.folder, file_of(name)), kind)
        if is_sparse:
            self._files[POINTERS].write(np.zeros(1, np.int64))

    def _check_alike(self, X: Any, dtype: np.dtype) -> None:
        if sparse.issparse(X) != self._sparse:
            raise ValueError(
                f"rows {self.rows} on: X is {'dense' if self._sparse else 'sparse'} and the rows "
                "before are not; make all chunks of one kind"
            )
        if not self._sparse and X.shape[1] != self.width:
            raise ValueError(
                f"rows {self.rows} on: X has {X.shape[1]} columns and the rows before have "
                f"{self.width}; give all chunks the same columns"
            )
        if dtype.itemsize > self._files[VALUES].dtype.itemsize:
            raise ValueError(
                f"rows {self.rows} on: X has dtype {dtype} and the rows before have "
                f"{self._files[VALUES].dtype}; convert all chunks to {dtype}"
            )

    def _append_piece(self, X: Any, y: np.ndarray) -> None:
        files = self._files
        if self._sparse:
            if not X.has_canonical_format:
                X = X.copy()  # the caller's stays as it is
                X.sum_duplicates()
            nnz = int(X.indptr[-1])
            values = np.asarray(X.data[:nnz], files[VALUES].dtype)
            self._check_finite(values, y, lambda i: np.searchsorted(X.indptr, i, "right") - 1)
            self._set_width(max(self.width, X.shape[1]))
            files[POINTERS].write(X.indptr[1:].astype(np.int64) + files[INDICES].length)
            self._append_values(values)  # counts the indices of the pieces before
            files[INDICES].write(X.indices[:nnz])
        else:
            values = np.ascontiguousarray(X, files[VALUES].dtype).reshape(-1)
            self._check_finite(values, y, lambda i: i // self.width)
            files[VALUES].write(values)
        files[TARGETS].write(y)
        self.rows += y.size

    def _append_values(self, values: np.ndarray) -> None:
        """Write the values, or none as long as all are the same, bit for bit."""
        file, before = self._files[VALUES], self._files[INDICES].length
        bits = values.view(f"u{values.itemsize}")
        if before == 0 and self._value is None and file.length == 0 and values.size:
            self._value = values[:1].copy()
        if self._value is not None:
            if (bits == self._value.view(bits.dtype)).all():
                return
            for first in range(0, before, CHUNK):
                file.write(np.full(min(CHUNK, before - first), self._value[0]))
            self._value = None
        file.write(values)

    def _check_finite(self, values: np.ndarray, y: np.ndarray, row_of) -> None:
        for name, numbers, row in (("X", values, row_of), ("y", y, int)):
            bad = np.flatnonzero(~np.isfinite(numbers))[:1]
            if bad.size:
                raise ValueError(
                    f"{name} has the value {numbers[bad[0]]} in row {self.rows + int(row(bad[0]))}"
                    " (counted from 0): every number must be finite; drop or impute missing values"
                )

    def _set_width(self, width: int) -> None:
        self.width = width
        if width > INT32_WIDTH and self._files[INDICES].dtype == np.int32:
            self._files[INDICES] = self._files[INDICES].as_type(np.dtype(np.int64))

    def _write(self, name: str, content: bytes) -> None:
        with open(os.path.join(self.folder, name), "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


class _ArrayFile:
    """A ``.npy`` file of one dimension that grows."""

    def __init__(self, path: str, dtype: np.dtype):
        self.path, self.dtype, self.length = path, dtype, 0
        self._digest = hashlib.sha256()
        self._file = open(path, "x+b")  # noqa: SIM115
        self._file.write(bytes(START))

    def write(self, array: np.ndarray) -> None:
        content = np.ascontiguousarray(array, self.dtype)
        self._file.write(content.data)
        self._digest.update(content.data)
        self.length += content.size

    def as_type(self, dtype: np.dtype) -> _ArrayFile:
        """The same numbers in another type, under the same name."""
        other = _ArrayFile(f"{self.path}.new", dtype)
        try:
            self._file.seek(START)
            while chunk := self._file.read(CHUNK):
                other.write(np.frombuffer(chunk, self.dtype))
            self.close()
            os.replace(other.path, self.path)
        except BaseException:
            other.close()
            raise
        other.path = self.path
        return other

    def finish(self) -> str:
        """Write what the file starts with, sync it; the SHA-256 of its numbers."""
        self._file.seek(0)
        self._file.write(npy_start(self.dtype, self.length))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.close()
        return self._digest.hexdigest()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # of what is given up; else all is on disk
            self._file.close()
