"""Column access: the data of a :class:`~adacoord.matrix.Matrix` a second time, by columns.

Methods that move one x_j need the rows that it touches.  The copy costs the memory of the data
once more (dense data too: a walk along a strided column would load a cache line for each entry).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from .matrix import Matrix, _frozen


class Columns:
    """Columns of a data matrix, as the kernels see them: the rows of its transpose.

    The row kernels of :mod:`adacoord._rows` take them as they are:
    ``row_add(columns.rows, columns.data, colptr[j], colptr[j + 1], dx, z)`` is z += dx A^j.

    Attributes
    ----------
    shape : (n, d), that of the matrix
    colptr : uint64 array of d+1 column starts
    rows : uint32 or uint64 array, increasing within each column, or None for dense columns
    data : float32 or float64 array of one dimension, read-only
    """

    def __init__(self, matrix: Matrix):
        n, d = self.shape = matrix.shape
        if matrix.is_dense:
            colptr = np.arange(d + 1, dtype=np.uint64) * np.uint64(n)
            rows, data = None, matrix.data.reshape(n, d).T.reshape(-1)
        else:
            csc = as_scipy(matrix).tocsc()  # a counting sort: rows come out in order
            colptr, rows, data = csc.indptr.astype(np.uint64), csc.indices, csc.data
            rows = rows.view(np.uint32 if rows.dtype.itemsize == 4 else np.uint64)
        self.colptr = _frozen(colptr)
        self.rows = None if rows is None else _frozen(rows)
        self.data = _frozen(data)

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
        from .solvers.primal_kernels import moments

        d = self.shape[1]
        out = np.empty(d), np.empty(d)
        moments(*self.arrays, np.arange(d), np.ones(1), *out)
        return out


def as_scipy(matrix: Matrix):
    """The matrix as NumPy (dense) or SciPy (CSR) has it, without a copy of the data."""
    if matrix.is_dense:
        return matrix.data.reshape(matrix.shape)
    signed = np.int32 if matrix.indices.dtype.itemsize == 4 else np.int64
    csr = sparse.csr_matrix(matrix.shape, dtype=matrix.dtype)
    csr.indptr = matrix.indptr.astype(signed)  # as they are: no check, no copy
    csr.indices, csr.data = matrix.indices.view(signed), matrix.data
    return csr
