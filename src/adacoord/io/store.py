"""A store: data on disk as a folder of ``.npy`` files, read a block of rows at a time.

=========================  ========================================================================
``binsparse.json``         the header: binsparse's descriptor (format CSR or DMATR, the shape, the
                           number and the types of the stored values) and under ``adacoord`` the
                           version of the format, the row bounds of the blocks and the SHA-256 of
                           the numbers in each file
``binsparse.json.sha256``  the header's own SHA-256, checked before the header is parsed
``pointers_to_1.npy``      CSR: n + 1 row starts, int64
``indices_1.npy``          CSR: column numbers, int32 where the width fits, increasing in each row
``values.npy``             the stored values, by rows; a single one where all are the same (iso)
``targets.npy``            n numbers
=========================  ========================================================================

Every array has one dimension, as binsparse has it.  No file is parsed but the header: what a
``.npy`` file starts with follows from the header, and is compared.  No file is opened but these.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..data.partition import INT32_WIDTH

HEADER, DIGEST = "binsparse.json", "binsparse.json.sha256"
POINTERS, INDICES, VALUES, TARGETS = "pointers_to_1", "indices_1", "values", "targets"
#: The newest format that this adacoord reads, and the one that it writes.
FORMAT = 1
#: The longest header: the bounds of a million blocks, or 32 TB of data.
HEADER_BYTES = 2**24
#: Where the numbers of each ``.npy`` file start.
START = 128
#: Bytes that are read at a time where nothing is kept.
CHUNK = 2**20

_REMEDY = "copy the store again from the original, or convert the data again"
_INT64 = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Description:
    """What a header says.

    Attributes
    ----------
    shape : (n, d)
    nnz : stored values, as if ``iso`` were False
    dtype : of the values
    index_dtype : of CSR's column numbers; None for dense rows
    iso : whether all values are the same, and one is stored
    bounds : first row of each block, and n
    sha256 : of the numbers of each file, by the file's name
    """

    shape: tuple[int, int]
    nnz: int
    dtype: np.dtype
    index_dtype: np.dtype | None
    iso: bool
    bounds: np.ndarray
    sha256: dict[str, str]

    @property
    def arrays(self) -> dict[str, tuple[np.dtype, int]]:
        """The type and the length of each array, by its name."""
        values = {
            VALUES: (self.dtype, 1 if self.iso else self.nnz),
            TARGETS: (np.dtype(np.float64), self.shape[0]),
        }
        if self.index_dtype is None:
            return values
        pointers = {POINTERS: (np.dtype(np.int64), self.shape[0] + 1)}
        return {**pointers, INDICES: (self.index_dtype, self.nnz), **values}

    def to_json(self) -> bytes:
        types = {name: dtype.name for name, (dtype, _) in self.arrays.items() if name != TARGETS}
        if self.iso:
            types[VALUES] = f"iso[{types[VALUES]}]"
        header = {
            "binsparse": {
                "version": "0.1",
                "format": "DMATR" if self.index_dtype is None else "CSR",
                "shape": list(self.shape),
                "number_of_stored_values": self.nnz,
                "data_types": types,
            },
            "adacoord": {
                "format": FORMAT,
                "bounds": self.bounds.tolist(),
                "sha256": self.sha256,
            },
        }
        return json.dumps(header).encode("ascii") + b"\n"

    @classmethod
    def from_json(cls, content: bytes) -> Description:
        """Read a header that may hold anything.

        ValueError says what is wrong with it, NotImplementedError that it is of another version.
        """
        try:
            header = json.loads(content)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        own = _entry("the header", header, "adacoord", dict)
        version = _entry("adacoord", own, "format", int)
        if version != FORMAT:
            raise NotImplementedError(
                f"the store has format {_shown(version)}, and this adacoord reads format {FORMAT}; "
                "upgrade adacoord, or convert the data again"
            )
        matrix = _entry("the header", header, "binsparse", dict)
        kind = _entry("binsparse", matrix, "format", str)
        if kind not in ("CSR", "DMATR"):
            raise ValueError(f"format is {kind!r}, and not 'CSR' or 'DMATR'")
        shape = _entry("binsparse", matrix, "shape", list)
        if len(shape) != 2 or not all(_is_count(size, 1) for size in shape):
            raise ValueError(f"shape is {_shown(shape)}, and not two whole numbers of 1 or more")
        n, d = shape
        nnz = _entry("binsparse", matrix, "number_of_stored_values", int)
        if not _is_count(nnz, 0) or (kind == "DMATR" and nnz != n * d):
            raise ValueError(f"number_of_stored_values is {_shown(nnz)} for the shape {n} x {d}")
        types = dict(_entry("binsparse", matrix, "data_types", dict))
        values = types.pop(VALUES, None)
        iso = isinstance(values, str) and values.startswith("iso[") and values.endswith("]")
        values = values[4:-1] if iso else values
        if values not in ("float32", "float64") or (iso and (kind == "DMATR" or nnz == 0)):
            raise ValueError(f"the data type of the values is {_shown(values)}")
        index: str | None = None
        if kind == "CSR":
            index = "int32" if d <= INT32_WIDTH else "int64"
            expected = {POINTERS: "int64", INDICES: index}
        else:
            expected = {}
        if types != expected:
            raise ValueError(f"data_types are {_shown(types)}, and not {expected}")
        described = cls(
            (n, d),
            nnz,
            np.dtype(values),
            None if index is None else np.dtype(index),
            iso,
            _bounds(_entry("adacoord", own, "bounds", list), n),
            _entry("adacoord", own, "sha256", dict),
        )
        files = sorted(map(file_of, described.arrays))
        if sorted(described.sha256) != files:
            raise ValueError(f"sha256 names {_shown(sorted(described.sha256))}, and not {files}")
        return described


def file_of(array: str) -> str:
    """The name of an array's file."""
    return f"{array}.npy"


def npy_start(dtype: np.dtype, length: int) -> bytes:
    """What the ``.npy`` file of an array starts with: ``START`` bytes.

    NumPy's own writer is not asked because these bytes may not change with its version: they are
    compared, and written last, when the length is known, into the room left for them.
    """
    text = f"{{'descr': '{dtype.newbyteorder('<').str}', 'fortran_order': False, "
    text += f"'shape': ({length},), }}"
    start = b"\x93NUMPY\x01\x00" + (START - 10).to_bytes(2, "little")
    return start + text.encode("ascii").ljust(START - 11) + b"\n"


class Store:
    """Data in a folder that ``adacoord convert`` made; see :func:`open_store`.

    Attributes
    ----------
    path : str
    shape : (n, d)
    dtype : numpy.dtype
        float32 or float64.
    nnz : int
        Stored entries; n d for dense data.
    is_sparse : bool
    bounds : int64 array
        The first row of each block, and behind them n: block k has the rows ``bounds[k]`` to
        ``bounds[k + 1] - 1``.  They follow from the data alone.
    """

    def __init__(self, path: str, description: Description, digest: str, stamps: dict):
        self.path = path
        self.shape, self.dtype, self.nnz = description.shape, description.dtype, description.nnz
        self.is_sparse = description.index_dtype is not None
        self.bounds = description.bounds
        self._description, self._digest, self._stamps = description, digest, stamps

    def __repr__(self) -> str:
        n, d = self.shape
        kind = f"sparse, {self.nnz} entries" if self.is_sparse else "dense"
        return (
            f"Store({self.path!r}: {n} x {d}, {kind} of {self.dtype}, {self.bounds.size - 1} "
            f"block{'s' * (self.bounds.size > 2)})"
        )

    def __reduce__(self):
        return _reopen, (self.path, self._digest)

    @property
    def targets(self) -> np.ndarray:
        """The targets, float64: a new array each time, for they may be long."""
        return self._read(TARGETS, 0, self.shape[0])

    def read(self, k: int) -> sparse.csr_matrix | np.ndarray:
        """The rows of block ``k``, in new arrays.

        Dense rows come as an array in C order.  CSR has int64 row starts, and int32 column
        numbers where the width fits.  Files are read, not mapped: mapped pages count as memory
        of the process.  Column numbers are checked, since compiled code does not.
        """
        if not 0 <= k < self.bounds.size - 1:
            raise IndexError(f"block {k}: this store has the blocks 0 to {self.bounds.size - 2}")
        first, last = int(self.bounds[k]), int(self.bounds[k + 1])
        d = self.shape[1]
        if not self.is_sparse:
            return self._read(VALUES, first * d, (last - first) * d).reshape(last - first, d)
        pointers = self._read(POINTERS, first, last - first + 1)
        start, stop = int(pointers[0]), int(pointers[-1])
        ends = (start == 0 or first > 0) and (stop == self.nnz or last < self.shape[0])
        if not (ends and 0 <= start <= stop <= self.nnz and (np.diff(pointers) >= 0).all()):
            raise self._damaged(
                POINTERS, f"the starts of the rows {first} to {last} are not rising"
            )
        indices = self._read(INDICES, start, stop - start)
        if indices.size and not (indices.min() >= 0 and indices.max() < d):
            raise self._damaged(
                INDICES,
                f"the rows {first} to {last - 1} have columns beyond the {d} that there are",
            )
        if self._description.iso:
            values = np.full(stop - start, self._read(VALUES, 0, 1)[0])
        else:
            values = self._read(VALUES, start, stop - start)
        pointers -= start
        return _csr((last - first, d), pointers, indices, values)

    @property
    def A(self) -> sparse.csr_matrix | np.ndarray:
        """The whole matrix over read-only memory maps; iso values are an array in memory."""
        if not self.is_sparse:
            return self._map(VALUES).reshape(self.shape)
        values = self._map(VALUES)
        if self._description.iso:
            values = np.full(self.nnz, values[0])
        return _csr(self.shape, self._map(POINTERS), self._map(INDICES), values)

    def verify(self) -> None:
        """Read every file and compare its checksum; a ValueError names the first damaged one."""
        _reopen(self.path, self._digest)
        for name in self._description.arrays:
            digest = hashlib.sha256()
            with self._open(name) as file:
                file.seek(START)
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
            if digest.hexdigest() != self._description.sha256[file_of(name)]:
                raise self._damaged(name, "the numbers in it are not those that were written")

    @contextmanager
    def _open(self, name: str) -> Iterator[io.FileIO]:
        path = os.path.join(self.path, file_of(name))
        with open(path, "rb", buffering=0) as file:
            if _stamp(os.fstat(file.fileno())) != self._stamps[name]:
                raise ValueError(
                    f"{path}: the file has changed since the store was opened; open it anew"
                )
            yield file

    def _read(self, name: str, first: int, count: int) -> np.ndarray:
        out = np.empty(count, self._description.arrays[name][0])
        view = out.view(np.uint8).data
        with self._open(name) as file:
            file.seek(START + first * out.itemsize)
            while view and (got := file.readinto(view)):  # a single read stops at 2 GB
                view = view[got:]
        if view:
            raise self._damaged(name, f"it ends {len(view)} bytes too soon")
        return out

    def _map(self, name: str) -> np.ndarray:
        dtype, length = self._description.arrays[name]
        with self._open(name) as file:
            return np.memmap(file, dtype, "r", START, (length,))

    def _damaged(self, name: str, what: str) -> ValueError:
        return ValueError(f"{os.path.join(self.path, file_of(name))}: {what}; {_REMEDY}")


def open_store(path: str | os.PathLike) -> Store:
    """Open a folder that ``adacoord convert`` or :func:`adacoord.io.convert` made.

    Parameters
    ----------
    path : str or path-like
        The folder.

    Returns
    -------
    Store
        Its header is checked, and the size of every file; :meth:`Store.verify` checks the rest.
        It pickles as its path.

    Raises
    ------
    ValueError
        For what is not a store, is damaged, or comes from a newer adacoord.
    """
    folder = os.path.abspath(path)
    if not os.path.isdir(folder):
        if not os.path.lexists(folder):
            raise FileNotFoundError(f"{folder}: there is no such store; make it: adacoord convert")
        raise ValueError(
            f"{folder}: this is not a folder, as a store is; make one of the file: adacoord convert"
        )
    content = _small_file(folder, HEADER, HEADER_BYTES)
    digest = hashlib.sha256(content).hexdigest()
    if _small_file(folder, DIGEST, 1024) != digest_line(digest):
        raise ValueError(
            f"{os.path.join(folder, HEADER)}: the header is damaged (its SHA-256 is not the one in "
            f"{DIGEST}); {_REMEDY}"
        )
    try:
        description = Description.from_json(content)
    except NotImplementedError as error:
        raise ValueError(f"{os.path.join(folder, HEADER)}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{os.path.join(folder, HEADER)}: {error}; {_REMEDY}") from None
    stamps = {
        name: _checked_file(os.path.join(folder, file_of(name)), *facts)
        for name, facts in description.arrays.items()
    }
    return Store(folder, description, digest, stamps)


def digest_line(digest: str) -> bytes:
    """What stands in ``DIGEST``: ``sha256sum -c`` reads it."""
    return f"{digest}  {HEADER}\n".encode("ascii")


def is_store(folder: str) -> bool:
    """Whether a folder holds the files of a store, whole or damaged, or nothing."""
    known = {HEADER, DIGEST, *map(file_of, (POINTERS, INDICES, VALUES, TARGETS))}
    names = set(os.listdir(folder))
    return names <= known and (HEADER in names or not names)


def _reopen(path: str, digest: str) -> Store:
    """The store that was opened before: in another process it may be another one by now."""
    store = open_store(path)
    if store._digest != digest:
        raise ValueError(
            f"{path}: another store has taken the place of the one that was opened; open it anew"
        )
    return store


def _small_file(folder: str, name: str, most: int) -> bytes:
    """The content of a file that is no longer than ``most`` bytes, or it is not read."""
    path = os.path.join(folder, name)
    size = _size(path)
    if size > most:
        raise ValueError(f"{path}: the file has {size} bytes, and may have {most}; {_REMEDY}")
    with open(path, "rb") as file:
        return file.read(most + 1)


def _checked_file(path: str, dtype: np.dtype, length: int) -> tuple[int, int]:
    """The stamp of an array's file of the right size and start."""
    size, expected = _size(path), START + length * dtype.itemsize
    if size != expected:
        raise ValueError(
            f"{path}: the file has {size} bytes, and {length} numbers of type {dtype} take "
            f"{expected}; {_REMEDY}"
        )
    with open(path, "rb", buffering=0) as file:
        if file.read(START) != npy_start(dtype, length):
            raise ValueError(
                f"{path}: the file does not start as that of {length} numbers of type {dtype} "
                f"does; {_REMEDY}"
            )
        return _stamp(os.fstat(file.fileno()))


def _size(path: str) -> int:
    """The size of a regular file: to open a FIFO could wait for ever."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise ValueError(
            f"{path}: there is no such file, which every store of this kind has; give a folder "
            "that adacoord convert made"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: this is not a regular file; {_REMEDY}")
    return status.st_size


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _csr(shape, pointers, indices, values) -> sparse.csr_matrix:
    """A CSR matrix of these very arrays; SciPy's constructor would make the index types equal."""
    matrix = sparse.csr_matrix(shape, dtype=values.dtype)
    matrix.indptr, matrix.indices, matrix.data = pointers, indices, values
    matrix.has_canonical_format = True  # as it was written
    return matrix


def _entry(where: str, mapping: Any, key: str, kind: type) -> Any:
    value = mapping.get(key) if isinstance(mapping, dict) else None
    if type(value) is not kind:  # True is an int, too
        raise ValueError(f"{where} has {key}={_shown(value)}, which should be a {kind.__name__}")
    return value


def _is_count(value: Any, least: int) -> bool:
    return type(value) is int and least <= value <= _INT64


def _bounds(values: list, n: int) -> np.ndarray:
    if not all(_is_count(value, 0) for value in values):
        raise ValueError("bounds are not all whole numbers")
    bounds = np.array(values, dtype=np.int64)
    rising = bounds.size > 1 and bounds[0] == 0 and bounds[-1] == n and (np.diff(bounds) > 0).all()
    if not rising:
        raise ValueError(f"bounds are {_shown(values)}, and do not rise from 0 to {n}")
    bounds.flags.writeable = False
    return bounds


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not write out numbers of thousands of digits
        return "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."
