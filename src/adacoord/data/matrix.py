"""One access layer over dense, CSR and CSC data.

``as_matrix`` accepts what users have (NumPy, any SciPy sparse format, anything
``numpy.asarray`` takes; float32/float64; int32/int64 indices; read-only, memory-mapped,
unsorted) and copies only where the kernels could not read the data as they are: other number
types, other sparse formats, and rows that name a column twice.  CSC and Fortran order stay
columns, see :mod:`adacoord.data.columns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..linalg.blas import one_thread

#: The longest row, and the shortest of the longest row: their squares, times weights, penalties
#: and numbers of rows, stay within float64.
LARGEST, SMALLEST = 1e100, 1e-100
#: Entries of A whose absolute values are held at a time.
BLOCK = 2**20


class Matrix:
    """Rows of a data matrix, as the kernels see them.

    Attributes
    ----------
    shape : (n, d)
    indptr : uint64 array of n+1 row starts
    indices : uint32 or uint64 array, or None for dense rows
    data : float32 or float64 array of one dimension, read-only
    """

    def __init__(self, shape, indptr, indices, data):
        self.shape: tuple[int, int] = shape
        # Read-only views: one compiled signature serves writable arrays and memory maps.
        self.indptr = _frozen(indptr)
        self.indices = None if indices is None else _frozen(indices)
        self.data = _frozen(data)

    #: Whether the data came by columns, and rows would be a copy.
    by_columns = False

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def is_dense(self) -> bool:
        return self.indices is None

    @property
    def entries(self) -> np.ndarray:
        """The stored entries, in the order that they came in."""
        return self.data

    @property
    def nnz(self) -> int:
        """Stored entries (all n*d of them for dense data)."""
        return self.data.shape[0]

    @property
    def arrays(self) -> tuple:
        """(indptr, indices, data): what every kernel takes first."""
        return self.indptr, self.indices, self.data

    @cached_property
    def row_sizes(self) -> np.ndarray:
        """Stored entries of each row."""
        return np.diff(self.indptr.view(np.int64))

    @cached_property
    def squared_norms(self) -> np.ndarray:
        """|a_i|^2 for each row, in float64."""
        from ..kernels.rows import squared_norms

        out = np.empty(self.shape[0])
        squared_norms(self.indptr, self.data, out)
        return out

    @cached_property
    def zero_rows(self) -> np.ndarray:
        """Rows without an entry but 0; a row of tiny numbers is none, though its norm may be 0."""
        rows = np.flatnonzero(self.squared_norms == 0.0)
        if rows.size == 0:
            return rows
        return rows[self.magnitude_dot(np.ones(self.shape[1]))[rows] == 0.0]

    # What small problems need: n x d numbers, made when first asked for and shared by the classes
    # of a fit.

    @cached_property
    def dense(self) -> np.ndarray:
        """The data as a float64 array of rows; a view where it is one already."""
        if self.is_dense:
            return _frozen(np.asarray(self.data, dtype=np.float64).reshape(self.shape))
        out = np.zeros(self.shape)
        rows = np.repeat(np.arange(self.shape[0]), self.row_sizes)
        out[rows, self.indices.astype(np.intp)] = self.data
        return _frozen(out)

    @cached_property
    def row_space(self) -> tuple[np.ndarray, np.ndarray]:
        """(Q, T), A = T Q' with Q orthogonal: for fewer rows than columns."""
        basis, triangle = np.linalg.qr(self.dense.T)
        return basis, _frozen(np.ascontiguousarray(triangle.T))

    @cached_property
    def gram(self) -> np.ndarray:
        """[A, 1]'[A, 1]."""
        A, (n, d) = self.dense, self.shape
        out = np.empty((d + 1, d + 1))
        out[:d, :d] = A.T @ A
        out[d, :d] = out[:d, d] = A.sum(axis=0)
        out[d, d] = n
        return out

    @cached_property
    def columns(self):
        """The same data by :class:`~adacoord.data.columns.Columns`, made when first asked for."""
        from .columns import Columns

        return Columns.of(self)

    def dot(self, x: np.ndarray) -> np.ndarray:
        """A x, accumulated in float64 whatever the data's type; ``x`` may have K columns."""
        from ..kernels.classes import matmat
        from ..kernels.rows import matvec

        out = np.zeros(self.shape[:1] + x.shape[1:])
        if not x.any():
            return out
        x = np.ascontiguousarray(x, dtype=np.float64)
        if x.ndim > 1 and self.is_dense:
            with one_thread():
                for rows, block in self._dense_blocks():
                    np.matmul(block, x, out=out[rows])
            return out
        (matvec if x.ndim == 1 else matmat)(*self.arrays, x, out)
        return out

    def tdot(self, v: np.ndarray) -> np.ndarray:
        """A' v, accumulated in float64 whatever the data's type; ``v`` may have K columns."""
        from ..kernels.classes import rmatmat
        from ..kernels.rows import rmatvec

        out = np.zeros(self.shape[1:] + v.shape[1:])
        v = np.ascontiguousarray(v, dtype=np.float64)
        if v.ndim > 1 and self.is_dense:
            with one_thread():
                for rows, block in self._dense_blocks():
                    out += block.T @ v[rows]
            return out
        (rmatvec if v.ndim == 1 else rmatmat)(*self.arrays, v, out)
        return out

    @property
    def _array(self) -> np.ndarray:
        """Dense data as an array of two dimensions: a view."""
        return self.data.reshape(self.shape)

    def _dense_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of dense rows in float64, for BLAS: views, or copies of a block at a time.

        Several columns at once go through BLAS (A X of 20,000 x 100 with 10 columns: 5.1 -> 2.1
        ms); for a single one the kernels are as fast, and their bits never change.
        """
        n, d = self.shape
        data = self._array
        size = n if self.dtype == np.float64 else max(1, BLOCK // d)
        for first in range(0, n, size):
            rows = slice(first, first + size)
            yield rows, data[rows].astype(np.float64, copy=False)

    def magnitude_dot(self, x: np.ndarray) -> np.ndarray:
        """|A| |x| in float64; of columns or several x a block at a time, as they are stored."""
        n, d = self.shape
        if x.ndim == 1 and not self.by_columns:  # 6,733 x 265 numbers: 4.5 -> 1.2 ms
            from ..kernels.rows import magnitudes

            out = np.empty(n)
            magnitudes(*self.arrays, np.ascontiguousarray(x, dtype=np.float64), out)
            return out
        starts, indices, data = self.columns.arrays if self.by_columns else self.arrays
        major, minor = (d, n) if self.by_columns else (n, d)
        x, out, first = np.abs(x), np.zeros((n, *x.shape[1:])), 0
        while first < major:
            last = int(np.searchsorted(starts, int(starts[first]) + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), major)
            part = slice(int(starts[first]), int(starts[last]))
            block = np.abs(data[part], dtype=np.float64)
            if indices is None:
                block = block.reshape(last - first, minor)
            else:
                pointers = (starts[first : last + 1] - starts[first]).astype(np.int64)
                block = sparse.csr_array(
                    (block, indices[part].astype(np.int64), pointers), shape=(last - first, minor)
                )
            if self.by_columns:
                out += block.T @ x[first:last]
            else:
                out[first:last] = block @ x
            first = last
        return out


def as_matrix(A: Any, name: str = "A") -> Matrix:
    """Check ``A`` and wrap it as a :class:`Matrix`, without a copy where none is needed."""
    if isinstance(A, Matrix):
        return A
    matrix = _from_sparse(A, name) if sparse.issparse(A) else _from_dense(A, name)
    _check_finite(matrix, name)
    return matrix


def _frozen(array: np.ndarray) -> np.ndarray:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _float_type(dtype: np.dtype, name: str) -> np.dtype:
    if dtype in (np.float32, np.float64):
        return dtype
    if dtype.kind == "f" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    if dtype.kind in "fiub":
        return np.dtype(np.float64)
    raise ValueError(
        f"{name} has dtype {dtype}: the data must be real numbers; convert them with "
        f"{name}.astype(float) or encode the columns that are not numbers"
    )


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{name} has shape {shape}: it must have two dimensions, rows (samples) by columns "
            f"(features); reshape it with {name}.reshape(-1, 1) if it is a single column"
        )
    if shape[0] == 0 or shape[1] == 0:
        raise ValueError(f"{name} has shape {shape}: it needs at least one row and one column")


def _from_dense(A: Any, name: str) -> Matrix:
    if np.ma.is_masked(A):
        raise ValueError(f"{name} has masked entries: impute them first, for example with filled()")
    try:
        array = np.asarray(A)
    except ValueError as error:  # ragged lists
        raise ValueError(f"{name} cannot be read as an array of numbers: {error}") from None
    _check_shape(array.shape, name)
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            _float_type(array.dtype, name)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        from .columns import ColumnMatrix, Columns

        return ColumnMatrix(
            Columns.of_dense(np.asfortranarray(array, dtype=_float_type(array.dtype, name)))
        )
    array = np.ascontiguousarray(array, dtype=_float_type(array.dtype, name))
    n, d = array.shape
    return Matrix((n, d), np.arange(n + 1, dtype=np.uint64) * np.uint64(d), None, array.reshape(-1))


def _from_sparse(A: Any, name: str) -> Matrix:
    _check_shape(A.shape, name)
    dtype = _float_type(A.dtype, name)
    _check_indices(A, name)  # before a conversion trusts them
    by_columns = A.format == "csc"
    kept = A if by_columns or A.format == "csr" else A.tocsr()
    if not kept.has_canonical_format and _has_duplicates(kept):
        kept = kept.copy()
        kept.sum_duplicates()
    if by_columns and not kept.has_sorted_indices:
        kept = kept.sorted_indices()
    starts = kept.indptr.astype(np.uint64)
    nnz = int(starts[-1])
    data = np.ascontiguousarray(kept.data[:nnz], dtype=dtype)
    indices = _unsigned(kept.indices[:nnz])
    if by_columns:
        from .columns import ColumnMatrix, Columns

        return ColumnMatrix(Columns(kept.shape, starts, indices, data))
    return Matrix(kept.shape, starts, indices, data)


def _unsigned(indices: np.ndarray) -> np.ndarray:
    """A view of int32 or int64 indices; others (int16, foreign byte order) are converted."""
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    return np.ascontiguousarray(indices).view(np.uint32 if indices.itemsize == 4 else np.uint64)


def _check_indices(A: Any, name: str) -> None:
    """Kernels (and scipy) do not check bounds: broken indices would reach foreign memory."""

    def outside(indices, size):
        return indices.size > 0 and (indices.min() < 0 or indices.max() >= size)

    broken = False
    if A.format in ("csr", "csc"):
        major, minor = A.shape if A.format == "csr" else A.shape[::-1]
        broken = bool(
            A.indptr.shape[0] != major + 1
            or A.indptr[0] != 0
            or np.any(np.diff(A.indptr) < 0)
            or A.indptr[-1] > min(A.indices.shape[0], A.data.shape[0])
            or outside(A.indices[: A.indptr[-1]], minor)
        )
    elif A.format == "coo":
        broken = outside(A.row, A.shape[0]) or outside(A.col, A.shape[1])
    if broken:
        raise ValueError(
            f"{name} is not a valid {A.format.upper()} matrix of shape {A.shape}: its indices "
            "point outside it; rebuild it from valid ones"
        )


def _has_duplicates(A: Any) -> bool:
    """Of a CSR or CSC matrix."""
    from ..kernels.rows import has_duplicates

    return has_duplicates(
        _frozen(A.indptr.astype(np.uint64)),
        _frozen(_unsigned(A.indices)),
        np.full(A.shape[1 if A.format == "csr" else 0], -1, dtype=np.int64),
    )


def _check_finite(matrix: Matrix, name: str) -> None:
    """Finite entries, and rows whose squared norms are numbers with room above and below."""
    # A sum of squares is finite only if every entry is: the norms, needed anyway, are the test.
    norms = matrix.squared_norms
    bad = np.flatnonzero(~(norms <= LARGEST * LARGEST))
    if bad.size:
        i = int(bad[0])
        row = matrix.data[int(matrix.indptr[i]) : int(matrix.indptr[i + 1])].astype(np.float64)
        worst = row[np.argmax(np.where(np.isfinite(row), np.abs(row), np.inf))]
        raise ValueError(
            f"{name} has the value {worst} in row {i}: every entry must be a finite number, and "
            f"rows no longer than {LARGEST:g}; drop or impute missing values, or rescale the "
            "columns"
        )
    if norms.max() < SMALLEST * SMALLEST and matrix.entries.any():
        worst = np.abs(matrix.entries).max()
        raise ValueError(
            f"{name} has no entry larger than {worst:g}: the squares of such numbers vanish; "
            f"rescale the columns, for example by 2.0**{-int(np.floor(np.log2(worst)))}"
        )
