"""Rows of ``.npy`` files and of SciPy's sparse ``.npz`` files, some at a time, in bounded memory.

Neither holds targets: a second ``.npy`` file does.  Files are read, not mapped: mapped pages
count as memory of the process.
"""

from __future__ import annotations

import lzma
import math
import os
import zipfile
import zlib
from collections.abc import Generator
from contextlib import ExitStack, nullcontext
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from .chunks import CHUNK_BYTES, Chunk

_DAMAGE = (
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
)
#: What the names of these files end in.
ARRAYS = (".npy", ".npz")
#: Row starts that are looked at together.
_STARTS = 2**16


def array_chunks(path: str | os.PathLike, targets: str | os.PathLike | None) -> Generator[Chunk]:
    """Rows of a file whose name ends in one of ``ARRAYS``; ``targets`` may be None."""
    dense = os.path.splitext(path)[1].lower() == ".npy"
    return (dense_chunks if dense else sparse_chunks)(path, targets)


def dense_chunks(path: str | os.PathLike, targets: str | os.PathLike | None) -> Generator[Chunk]:
    """Rows of a two-dimensional array in a ``.npy`` file."""
    with open(path, "rb") as file, _opened(targets) as target_file:
        array = _Array(file, os.fspath(path))
        if len(array.shape) != 2:
            raise ValueError(
                f"{array.name}: the array has shape {array.shape}; it must have two dimensions, "
                "rows by columns"
            )
        n, d = array.shape
        y = _target_array(target_file, targets, n, array.name)
        size = max(1, CHUNK_BYTES // max(d * array.dtype.itemsize, 1))
        for first in range(0, n, size):
            count = min(size, n - first)
            if array.fortran:
                X = np.empty((count, d), array.dtype)
                for j in range(d):
                    array.skip_to(j * n + first)
                    X[:, j] = array.take(count)
            else:
                X = array.take(count * d).reshape(count, d)
            yield Chunk(X, y and y.take(count), (first + count) / n)


def sparse_chunks(path: str | os.PathLike, targets: str | os.PathLike | None) -> Generator[Chunk]:
    """Rows of a CSR matrix in a file by ``scipy.sparse.save_npz``."""
    name = os.fspath(path)
    with ExitStack() as stack:
        archive = stack.enter_context(_open_archive(path))
        members = {}
        for part in ("format", "shape", "indptr", "indices", "data"):
            try:
                member = stack.enter_context(archive.open(f"{part}.npy"))
            except KeyError:
                raise ValueError(
                    f"{name}: there is no {part}.npy in it, as in a CSR matrix by "
                    "scipy.sparse.save_npz; save one so"
                ) from None
            except _DAMAGE as error:
                raise _unreadable(name, error) from error
            members[part] = _Array(member, f"{name}: {part}.npy")
        kind = members["format"].text()
        if kind != "csr":
            raise ValueError(
                f"{name}: the matrix has format {kind!r}, which cannot be read by rows; save it "
                "with scipy.sparse.save_npz(path, A.tocsr())"
            )
        whole = all(members[part].dtype.kind in "iu" for part in ("shape", "indptr", "indices"))
        if members["shape"].shape != (2,) or not whole:
            raise ValueError(
                f"{name}: the matrix does not have two dimensions, or indices that are not whole "
                "numbers; save it again with scipy.sparse.save_npz"
            )
        n, d = members["shape"].take(2).tolist()
        y = _target_array(stack.enter_context(_opened(targets)), targets, n, name)
        parts = members["indptr"], members["indices"], members["data"]
        yield from _csr_chunks(name, n, d, *parts, y)


def _csr_chunks(
    name: str, n: int, d: int, indptr: _Array, indices: _Array, data: _Array, y: _Array | None
) -> Generator[Chunk]:
    entries = CHUNK_BYTES // 16
    nnz = math.prod(indices.shape)
    start = 0
    zero = int(indptr.take(1)[0]) == 0
    for first in range(0, n, _STARTS):
        ends = indptr.take(min(_STARTS, n - first)).astype(np.int64)
        if not zero or (np.diff(ends, prepend=start) < 0).any() or ends[-1] > nnz:
            raise ValueError(
                f"{name}: the row starts after row {first} do not rise from 0 to {nnz}, the number "
                "of indices; save the matrix again"
            )
        i = 0
        while i < ends.size:
            j = max(int(np.searchsorted(ends, start + entries, "right")), i + 1)
            stop = int(ends[j - 1])
            starts = np.concatenate([[start], ends[i:j]]) - start
            part = data.take(stop - start), indices.take(stop - start), starts
            X = sparse.csr_matrix(part, shape=(j - i, d))
            yield Chunk(X, y and y.take(j - i), (first + j) / n)
            start, i = stop, j


class _Array:
    """An array in the ``.npy`` format, read from its start on."""

    def __init__(self, stream: Any, name: str):
        self.name, self._stream = name, stream
        try:
            version = np.lib.format.read_magic(stream)
            if version == (1, 0):
                header = np.lib.format.read_array_header_1_0(stream)
            else:  # 3.0 is for names of fields, and there are none
                header = np.lib.format.read_array_header_2_0(stream)
        except _DAMAGE as error:
            raise ValueError(
                f"{name}: this cannot be read as a .npy array ({error}); save it with numpy.save"
            ) from error
        self.shape, self.fortran, self.dtype = header
        self._start = stream.tell()
        if self.dtype.hasobject or min(self.shape, default=0) < 0:
            raise ValueError(
                f"{name}: the array has dtype {self.dtype} and shape {self.shape}; it must hold "
                "numbers: convert it with astype(float)"
            )

    def text(self) -> str:
        """The content of a short text, as SciPy has it in bytes or in Unicode."""
        value = self.take(1)[0] if self.shape == () and 0 < self.dtype.itemsize < 100 else b"?"
        return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)

    def take(self, count: int) -> np.ndarray:
        """The next numbers."""
        out = np.empty(count, self.dtype)
        view = out.view(np.uint8).data
        try:
            while view and (got := self._stream.readinto(view)):
                view = view[got:]
        except _DAMAGE as error:
            raise _unreadable(self.name, error) from error
        if view:
            raise ValueError(
                f"{self.name}: the file ends before the array of shape {self.shape} does; copy it "
                "again, or save the array again"
            )
        return out

    def skip_to(self, position: int) -> None:
        """Go to a number, by how many stand before it in the file."""
        self._stream.seek(self._start + position * self.dtype.itemsize)


def _opened(targets: str | os.PathLike | None) -> Any:
    return nullcontext() if targets is None else open(targets, "rb")


def _target_array(
    file: BinaryIO | None, path: str | os.PathLike | None, n: int, rows_of: str
) -> _Array | None:
    if file is None or path is None:
        return None
    array = _Array(file, os.fspath(path))
    if array.shape not in ((n,), (n, 1)):
        raise ValueError(
            f"{array.name}: the targets have shape {array.shape}, and {rows_of} has {n} rows; give "
            "a target for each"
        )
    return array


def _open_archive(path: str | os.PathLike) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise _unreadable(os.fspath(path), error) from error


def _unreadable(name: str, error: BaseException) -> ValueError:
    return ValueError(f"{name}: the file is truncated or corrupt ({error}); copy or save it again")
