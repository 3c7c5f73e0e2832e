"""Column access: the data by columns, in place of or beside the rows of a ``Matrix``.

Methods that move one x_j need the rows that it touches.  From rows, columns cost the memory of
the data once more (dense data too: a walk along a strided column would load a cache line for each
entry), or as much of it as the columns that are worked on.  Data that come by columns (CSC, Fortran
order) are used as they are, and it is the rows that are made when first asked for.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from ..kernels.summation import depth, dot_depth
from ..linalg.blas import one_thread
from .matrix import Matrix, _frozen

#: Rows that are taken at once by products of dense columns with several vectors.
LONG = 1024
#: Entries of a block of dense rows whose columns are copied at once; rows of one, at least, where
#: all columns are (500 x 5,000: 3.1 -> 1.6 ms).
BLOCK, WHOLE = 2**18, 512


class Columns:
    """Columns of a data matrix, as the kernels see them: the rows of its transpose.

    The row kernels of :mod:`adacoord.kernels.rows` take them as they are:
    ``row_add(columns.rows, columns.data, colptr[j], colptr[j + 1], dx, z)`` is z += dx A^j.

    Attributes
    ----------
    shape : (n, d), that of the matrix
    colptr : uint64 array of d+1 column starts
    rows : uint32 or uint64 array, increasing within each column, or None for dense columns
    data : float32 or float64 array of one dimension, read-only
    held : of each column whether it is here (else it is empty), or None for all
    """

    def __init__(self, shape, colptr, rows, data, held=None):
        self.shape, self.held = shape, held
        self.colptr = _frozen(colptr)
        self.rows = None if rows is None else _frozen(rows)
        self.data = _frozen(data)

    @classmethod
    def of(cls, matrix: Matrix) -> Columns:
        """The columns of a matrix of rows: a copy."""
        n, d = matrix.shape
        if matrix.is_dense:
            return cls.of_dense(np.asfortranarray(matrix.data.reshape(n, d)))
        csc = as_scipy(matrix).tocsc()  # a counting sort: rows come out in order
        rows = csc.indices.view(np.uint32 if csc.indices.dtype.itemsize == 4 else np.uint64)
        return cls((n, d), csc.indptr.astype(np.uint64), rows, csc.data)

    @classmethod
    def of_dense(cls, array: np.ndarray) -> Columns:
        """The columns of an array in Fortran order: no copy."""
        n, d = array.shape
        return cls(
            (n, d), np.arange(d + 1, dtype=np.uint64) * np.uint64(n), None, array.T.reshape(-1)
        )

    @classmethod
    def some(cls, matrix: Matrix, wanted: np.ndarray) -> Columns:
        """The columns ``wanted`` of a matrix of rows, a copy; all others are empty."""
        from ..kernels.rows import gather_columns

        n, d = matrix.shape
        held = np.zeros(d, dtype=bool)
        held[wanted] = True
        sizes = np.where(held, matrix.column_moments[0], 0)
        colptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
        data = np.empty(int(colptr[-1]), dtype=matrix.dtype)
        if matrix.is_dense:
            whole, kept = data.reshape(-1, n), np.flatnonzero(held)
            array, step = matrix._array, max(BLOCK // d, WHOLE if kept.size == d else 1)
            for first in range(0, n, step):
                part = slice(first, first + step)
                rows = array[part] if kept.size == d else array[part].take(kept, axis=1)
                whole[:, part] = rows.T
            return cls((n, d), colptr, None, data, held)
        rows = np.empty(data.size, dtype=np.uint32 if n < 2**32 else np.uint64)
        if data.size:
            gather_columns(*matrix.arrays, held, colptr[:-1].copy(), rows, data)
        return cls((n, d), colptr, rows, data, held)

    def has(self, wanted: np.ndarray) -> bool:
        """Whether all columns ``wanted`` are here."""
        return self.held is None or bool(self.held[wanted].all())

    @property
    def arrays(self) -> tuple:
        """(colptr, rows, data): what kernels take."""
        return self.colptr, self.rows, self.data

    @cached_property
    def sizes(self) -> np.ndarray:
        """Stored entries of each column."""
        return np.diff(self.colptr.view(np.int64))


def as_scipy(matrix: Matrix):
    """The matrix as NumPy (dense, in its own order) or SciPy (CSR) has it, without a copy."""
    if matrix.is_dense:
        return matrix._array
    signed = np.int32 if matrix.indices.dtype.itemsize == 4 else np.int64
    csr = sparse.csr_matrix(matrix.shape, dtype=matrix.dtype)
    csr.indptr = matrix.indptr.astype(signed)  # as they are: no check, no copy
    csr.indices, csr.data = matrix.indices.view(signed), matrix.data
    return csr


class ColumnMatrix(Matrix):
    """A matrix that came by columns.  Its rows are a copy, made when first asked for."""

    by_columns = True

    def __init__(self, columns: Columns):
        self.shape = columns.shape
        self.columns = columns

    @cached_property
    def _rows(self) -> tuple:
        c, (n, d) = self.columns, self.shape
        if c.rows is None:
            data = np.ascontiguousarray(c.data.reshape(d, n).T).reshape(-1)
            return _frozen(np.arange(n + 1, dtype=np.uint64) * np.uint64(d)), None, _frozen(data)
        across = Columns.of(Matrix((d, n), *c.arrays))
        return across.arrays

    @property
    def indptr(self) -> np.ndarray:
        return self._rows[0]

    @property
    def indices(self) -> np.ndarray | None:
        return self._rows[1]

    @property
    def data(self) -> np.ndarray:
        return self._rows[2]

    @property
    def dtype(self) -> np.dtype:
        return self.columns.data.dtype

    @property
    def is_dense(self) -> bool:
        return self.columns.rows is None

    @property
    def entries(self) -> np.ndarray:
        return self.columns.data

    @property
    def _array(self) -> np.ndarray:
        return self.columns.data.reshape(self.shape[::-1]).T

    @property
    def nnz(self) -> int:
        return self.columns.data.shape[0]

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Squares of rows, and of columns with their sums: the data are read once for all."""
        from ..kernels.columns import both_moments

        n, d = self.shape
        out = np.zeros(n), np.empty(d), np.empty(d)
        both_moments(*self.columns.arrays, *out)
        return out

    @cached_property
    def squared_norms(self) -> np.ndarray:
        return self._moments[0]

    @cached_property
    def column_moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.columns.sizes, *self._moments[1:]

    def dot(self, x: np.ndarray) -> np.ndarray:
        """A x, in float64: the columns where x is not zero."""
        from ..kernels.columns import combine

        if x.ndim > 1:
            support = np.flatnonzero(x.any(axis=1))
            if not self.is_dense or 2 * support.size > self.shape[1]:
                return super().dot(x)
            with one_thread():  # 542 columns of 300 x 10,000, and 5 x: 9 -> 1 ms
                part = self._array.T[support].astype(np.float64, copy=False)
                return part.T @ x[support].astype(np.float64)
        out, support = np.zeros(self.shape[0]), np.flatnonzero(x)
        combine(*self.columns.arrays, support, x[support].astype(np.float64), out)
        return out

    def tdot(self, v: np.ndarray) -> np.ndarray:
        """A' v, in float64."""
        from ..kernels.rows import matvec

        if v.ndim > 1:
            return self._across(v) if self.is_dense else super().tdot(v)
        out = np.empty(self.shape[1])
        # columns in turn need no prefetching (words of 5,000 x 10,000: .14 -> .09 ms, 10,000 x 500
        # dense: 1.07 -> .92)
        matvec(*self.columns.arrays, np.ascontiguousarray(v, np.float64), out)
        return out

    def _across(self, v: np.ndarray) -> np.ndarray:
        """A' v of several v and dense columns: by BLAS, in blocks of rows (300 x 10,000 numbers and
        5 v: 7.3 -> 2.6 ms against the blocks of rows as they are made for rows)."""
        A, n = self._array, self.shape[0]
        out = np.zeros((v.shape[1], self.shape[1]))
        with one_thread():
            for first in range(0, n, LONG):
                rows = slice(first, first + LONG)
                block = A[rows].astype(np.float64, copy=False)
                out += np.asarray(v[rows], dtype=np.float64).T @ block
        return np.ascontiguousarray(out.T)

    def magnitude_dot(self, x: np.ndarray) -> np.ndarray:
        """|A| |x|, in float64: the columns where x is not zero (10,000 x 500: 8 -> 2 ms)."""
        from ..kernels.columns import column_magnitudes

        several = x.reshape(x.shape[0], -1).astype(np.float64)
        out, support = np.zeros((several.shape[1], self.shape[0])), np.flatnonzero(several.any(1))
        for k, total in enumerate(out):
            column_magnitudes(*self.columns.arrays, support, several[support, k], total)
        return out.T.reshape(-1, *x.shape[1:])

    def column_squares(self, weight: np.ndarray) -> np.ndarray:
        if (weight == 1.0).all():  # known since the entries were checked
            return self._moments[1]
        return self.weighted_moments(np.ascontiguousarray(weight))[1]

    def some_columns(self, wanted: np.ndarray, spare: np.ndarray | None = None) -> Columns:
        return self.columns

    def weighted_moments(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from ..kernels.columns import moments

        d = self.shape[1]
        squares, sums = np.empty(d), np.empty(d)
        moments(*self.columns.arrays, np.arange(d), weight, squares, sums)
        return self.columns.sizes, squares, sums

    def accurate_dot(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from ..kernels.accurate import accurate_rmatvec

        high, low, x = np.zeros(self.shape[0]), np.zeros(self.shape[0]), np.ascontiguousarray(x)
        accurate_rmatvec(*self.columns.arrays, x, np.zeros_like(x), high, low)
        return high, low

    def accurate_tdot(self, v: np.ndarray, v_low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from ..kernels.accurate import accurate_matvec

        high, low = np.empty(self.shape[1]), np.empty(self.shape[1])
        accurate_matvec(*self.columns.arrays, v, high, low)
        return high, low + self.tdot(v_low)

    def dot_depth(self, x: np.ndarray, width: int) -> int:
        return super().dot_depth(x, width) if width > 1 else int(np.count_nonzero(x))

    def tdot_depth(self, width: int) -> int:
        if width > 1:
            return depth(self.shape[0], LONG) if self.is_dense else super().tdot_depth(width)
        return dot_depth(self.shape[0] if self.is_dense else int(self.columns.sizes.max()))
