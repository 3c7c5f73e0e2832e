"""Column access: the data by columns, in place of or beside the rows of a ``Matrix``.

Methods that move one x_j need the rows that it touches.  From rows, columns cost the memory of
the data once more (dense data too: a walk along a strided column would load a cache line for each
entry).  Data that come by columns (CSC, Fortran order) are used as they are, and it is the rows
that are made when first asked for.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from .matrix import Matrix, _frozen


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
    """

    def __init__(self, shape, colptr, rows, data):
        self.shape = shape
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

    @property
    def arrays(self) -> tuple:
        """(colptr, rows, data): what kernels take."""
        return self.colptr, self.rows, self.data

    @cached_property
    def sizes(self) -> np.ndarray:
        """Stored entries of each column."""
        return np.diff(self.colptr.view(np.int64))

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """(sum_i a_ij^2, sum_i a_ij) for each column, in float64."""
        from ..kernels.columns import moments

        d = self.shape[1]
        out = np.empty(d), np.empty(d)
        moments(*self.arrays, np.arange(d), np.ones(1), *out)
        return out


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
    def squared_norms(self) -> np.ndarray:
        from ..kernels.columns import row_squares

        out = np.zeros(self.shape[0])
        row_squares(*self.columns.arrays, out)
        return out

    def dot(self, x: np.ndarray) -> np.ndarray:
        """A x, in float64: the columns where x is not zero."""
        from ..kernels.columns import combine

        if x.ndim > 1:
            return super().dot(x)
        out, support = np.zeros(self.shape[0]), np.flatnonzero(x)
        combine(*self.columns.arrays, support, x[support].astype(np.float64), out)
        return out

    def tdot(self, v: np.ndarray) -> np.ndarray:
        """A' v, in float64."""
        from ..kernels.columns import column_dots

        if v.ndim > 1:
            return super().tdot(v)
        out, d = np.empty(self.shape[1]), self.shape[1]
        column_dots(*self.columns.arrays, np.arange(d), np.ascontiguousarray(v, np.float64), out)
        return out
