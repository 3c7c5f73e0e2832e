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

from ..kernels.summation import depth, dot_depth, row_block
from ..linalg.blas import one_thread

#: The longest row, and the shortest of the longest row: their squares, times weights, penalties
#: and numbers of rows, stay within float64.
LARGEST, SMALLEST = 1e100, 1e-100
#: Entries of A whose absolute values or squares are held at a time.
BLOCK = 2**20
#: Entries of a block of rows, with their products, that stays in the cache (1 MB: A X and A' V of
#: 20,000 x 100 with 10 columns take 2.0 and 2.5 ms as a whole, 1.1 and 1.4 ms in blocks).
CACHED = 2**17
#: Entries of the rows that functions go through several times before the next ones (2 MB): less
#: and calls take as long as the memory, more and the cache that cores share is full (a step of
#: Newton's method, two products with A and two with A', 133,332 x 100 numbers in parts of 2^15,
#: 2^17, 2^18, 2^20: 24.8, 15.6, 14.7, 14.5 ms, as a whole 25.3; 16,000 x 1,000: 29.4, 15.2, 12.6,
#: 13.0, as a whole 18.3).
PART = 2**18
#: Rows that are enough for second moments: of all, and per column.
ENOUGH, PER_COLUMN = 2048, 16
#: Rows that are enough to see whether columns are of one scale.
FEW = 32


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

    def __reduce__(self):  # what comes out of a pickle is read-only again: one signature
        return Matrix, (self.shape, *self.arrays)

    #: Whether the data came by columns, and rows would be a copy.
    by_columns = False
    #: Whether the rows are in several places (:class:`~adacoord.data.blocks.BlockMatrix`).
    blocked = False

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
        squared_norms(*self.arrays, out)
        return out

    @cached_property
    def mean_square(self) -> float:
        """The mean of |a_i|^2."""
        return float(np.mean(self.squared_norms))

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
    def means(self) -> np.ndarray:
        """Of the columns."""
        return np.ones(self.shape[0]) @ self.dense / self.shape[0]

    @cached_property
    def centred(self) -> Matrix:
        """The data less these."""
        return as_matrix(self.dense - self.means)

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
        out[d, :d] = out[:d, d] = (
            np.ones(n) @ A
        )  # NumPy sums short rows one by one: 6 times as long
        out[d, d] = n
        return out

    @cached_property
    def columns_that_count(self) -> float:
        """(sum_j v_j)^2 / sum_j v_j^2 of the variances v_j of the columns; d where rows are more.

        As many columns of one scale would make the rows as alike (1,159 x 5,837 numbers whose
        columns differ by decades: 25).  Of dense data, from some rows.
        """
        n, d = self.shape
        if n >= d or not self.is_dense or self.blocked:
            return float(d)
        some = self._array[:: max(1, n // FEW)].astype(np.float64)
        some -= some.mean(axis=0)
        variances = np.einsum("ij,ij->j", some, some)
        square = float(variances @ variances)
        return float(variances.sum()) ** 2 / square if square > 0.0 else float(d)

    @cached_property
    def principal_axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """:func:`principal_axes` of the centred columns, made once for a path of penalties."""
        return principal_axes(self._array)

    @cached_property
    def columns(self):
        """The same data by :class:`~adacoord.data.columns.Columns`, made when first asked for."""
        from .columns import Columns

        return Columns.of(self)

    #: Of the columns, those that somebody works on, see :meth:`some_columns`.
    _held = None

    def some_columns(self, wanted: np.ndarray, spare: np.ndarray | None = None):
        """Columns among which are those ``wanted`` (their numbers); others may be empty.

        Made of rows, and kept until others are wanted: then ``wanted`` and ``spare`` are made.
        """
        from .columns import Columns

        if "columns" in vars(self):  # all of them have been made
            return self.columns
        if self._held is None or not self._held.has(wanted):
            self._held = None  # two of them would be too many
            if spare is not None:  # by marks: NumPy's union takes 5 ms for 47,236 columns
                marks = np.zeros(self.shape[1], dtype=bool)
                marks[wanted] = marks[spare] = True
                wanted = np.flatnonzero(marks)
            self._held = Columns.some(self, wanted)
        return self._held

    @cached_property
    def column_moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each column the number of stored entries, and the sums of their squares and values."""
        return self.weighted_moments(np.ones(1))

    def weighted_moments(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same with a weight for each row, or one for all."""
        from ..kernels.rows import column_moments

        n, d = self.shape
        if self.is_dense:
            weight = np.broadcast_to(weight, n)
            return np.full(d, n), self.column_squares(weight), self.tdot(weight)
        out = np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d)
        column_moments(*self.arrays, weight, *out)
        return out

    def dot(self, x: np.ndarray) -> np.ndarray:
        """A x, accumulated in float64 whatever the data's type; ``x`` may have K columns.

        Of dense data the columns of A x stay together where those of x are.
        """
        from ..kernels.classes import matmat
        from ..kernels.rows import matvec

        if x.ndim > 1 and self.is_dense and x.T.flags.c_contiguous and x.any():
            x, out = x.astype(np.float64, copy=False), np.empty((x.shape[1], self.shape[0]))
            with one_thread():
                for rows, block in self.dense_blocks(x.shape[1]):
                    np.matmul(x.T, block.T, out=out[:, rows])
            return out.T
        out = np.zeros(self.shape[:1] + x.shape[1:])
        if not x.any():
            return out
        x = np.ascontiguousarray(x, dtype=np.float64)
        if x.ndim > 1 and self.is_dense:
            with one_thread():
                for rows, block in self.dense_blocks(x.shape[1]):
                    np.matmul(block, x, out=out[rows])
            return out
        (matvec if x.ndim == 1 else matmat)(*self.arrays, x, out)
        return out

    def tdot(self, v: np.ndarray) -> np.ndarray:
        """A' v, accumulated in float64 whatever the data's type; ``v`` may have K columns."""
        from ..kernels.classes import rmatmat
        from ..kernels.rows import rmatvec

        out = np.zeros(self.shape[1:] + v.shape[1:])
        if not v.any():  # where a dual method starts
            return out
        if v.ndim > 1 and self.is_dense:
            v = v.astype(np.float64, copy=False)
            with one_thread():
                for rows, block in self.dense_blocks(v.shape[1]):
                    out += block.T @ v[rows]
            return out
        v = np.ascontiguousarray(v, dtype=np.float64)
        cut = row_block(*self.shape, self.nnz)
        (rmatvec if v.ndim == 1 else rmatmat)(*self.arrays, v, cut, np.zeros_like(out), out)
        return out

    def both(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(A x, A' v), as :meth:`dot` and :meth:`tdot` have them; of vectors, A is read once where
        it is beyond the cache."""
        if self.nnz <= CACHED or self.by_columns or not x.any():
            return self.dot(x), self.tdot(v)
        if x.ndim > 1:
            return self._both_products(x, v) if self.is_dense else (self.dot(x), self.tdot(v))
        from ..kernels.rows import SHORT, both_products

        if self.is_dense and self.shape[1] <= SHORT:
            return self.dot(x), self.tdot(v)
        x = np.ascontiguousarray(x, dtype=np.float64)
        v = np.ascontiguousarray(v, dtype=np.float64)
        z, out = np.empty(self.shape[0]), np.zeros(self.shape[1])
        cut = row_block(*self.shape, self.nnz)
        both_products(*self.arrays, x, v, cut, np.zeros_like(out), z, out)
        return z, out

    def _both_products(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """:meth:`both` of several columns, of dense data: a block after the other (20,000 x 300 by
        5: 10.8 -> 8.7 ms)."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        v = np.ascontiguousarray(v, dtype=np.float64)
        z, out = np.empty((self.shape[0], x.shape[1])), np.zeros((self.shape[1], v.shape[1]))
        with one_thread():
            for rows, block in self.dense_blocks(x.shape[1]):
                np.matmul(block, x, out=z[rows])
                out += block.T @ v[rows]
        return z, out

    def accurate_dot(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A x = high + low in twice the working precision; ``x`` is a vector."""
        from ..kernels.accurate import accurate_matvec

        high, low = np.empty(self.shape[0]), np.empty(self.shape[0])
        accurate_matvec(*self.arrays, np.ascontiguousarray(x), high, low)
        return high, low

    def accurate_tdot(self, v: np.ndarray, v_low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A' (v + v_low) = high + low, likewise."""
        from ..kernels.accurate import accurate_rmatvec

        high, low = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        accurate_rmatvec(*self.arrays, v, v_low, high, low)
        return high, low

    def dot_depth(self, x: np.ndarray, width: int) -> int:
        """Roundings that a product a_ij x_j goes through on its way into A x.

        ``width`` columns were taken at once, of which x is one, or all.
        """
        longest = self.shape[1] if self.is_dense else int(self.row_sizes.max())
        return dot_depth(longest) if width == 1 else longest  # BLAS has an order of its own

    def tdot_depth(self, width: int) -> int:
        """The same of a_ij v_i in A' v."""
        n = self.shape[0]
        if width > 1 and self.is_dense:
            return depth(n, self.block_rows(width))
        return depth(n, row_block(*self.shape, self.nnz))

    def some_rows(self, first: int, last: int) -> Matrix:
        """Rows as a matrix of their own: views, but for the row starts."""
        indptr, indices, data = self.arrays
        a, b = indptr[first], indptr[last]
        part = slice(int(a), int(b))
        out = Matrix(
            (last - first, self.shape[1]),
            indptr[first : last + 1] - a,
            None if indices is None else indices[part],
            data[part],
        )
        if "squared_norms" in vars(self):
            out.__dict__["squared_norms"] = self.squared_norms[first:last]
        return out

    def in_cache(self) -> Iterator[tuple[slice, Matrix]]:
        """Parts that stay in the cache while somebody goes through them more than once.

        Data by columns are one.
        """
        n = self.shape[0]
        step = n if self.by_columns else max(PART * n // max(self.nnz, 1), 1)
        if step >= n:
            yield slice(0, n), self
            return
        for first in range(0, n, step):
            last = min(first + step, n)
            yield slice(first, last), self.some_rows(first, last)

    def gather(self, function, *common: Any, rows: tuple[np.ndarray, ...] = ()) -> tuple:
        """What a function of a block gives of all rows: here there is one block."""
        return function(self, *common, *rows)

    def rowwise(self, function, *common: Any, rows: tuple[np.ndarray, ...]) -> Any:
        """What a function of vectors with an entry for each row adds up to: here at once."""
        return function(*common, *rows)

    def column_squares(self, weight: np.ndarray) -> np.ndarray:
        """sum_i weight_i a_ij^2."""
        from ..kernels.rows import column_squares

        out = np.zeros(self.shape[1])
        column_squares(*self.arrays, np.ascontiguousarray(weight, dtype=np.float64), out)
        return out

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Dense rows (their indices increase), in float64: a copy."""
        return self._array[rows].astype(np.float64, copy=False)

    @property
    def _array(self) -> np.ndarray:
        """Dense data as an array of two dimensions: a view."""
        return self.data.reshape(self.shape)

    def dense_blocks(self, width: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of dense rows in float64, for products of ``width`` columns by BLAS.

        Several columns at once go through BLAS; for a single one the kernels are as fast, and
        their bits never change.
        """
        data, size = self._array, self.block_rows(width)
        for first in range(0, self.shape[0], size):
            rows = slice(first, first + size)
            yield rows, data[rows].astype(np.float64, copy=False)

    def block_rows(self, width: int) -> int:
        """Rows of such a block, which stays in the cache."""
        return max(CACHED // (self.shape[1] + width), 64)

    def magnitude_dot(self, x: np.ndarray) -> np.ndarray:
        """|A| |x| in float64; of several x a block of rows at a time."""
        n, d = self.shape
        if x.ndim == 1:  # 6,733 x 265 numbers: 4.5 -> 1.2 ms
            from ..kernels.rows import magnitudes

            out = np.empty(n)
            magnitudes(*self.arrays, np.ascontiguousarray(x, dtype=np.float64), out)
            return out
        starts, indices, data = self.arrays
        x, out, first = np.abs(x), np.zeros((n, *x.shape[1:])), 0
        while first < n:
            last = int(np.searchsorted(starts, int(starts[first]) + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), n)
            part = slice(int(starts[first]), int(starts[last]))
            block = np.abs(data[part], dtype=np.float64)
            if indices is None:
                block = block.reshape(last - first, d)
            else:
                pointers = (starts[first : last + 1] - starts[first]).astype(np.int64)
                block = sparse.csr_array(
                    (block, indices[part].astype(np.int64), pointers), shape=(last - first, d)
                )
            out[first:last] = block @ x
            first = last
        return out


def as_matrix(A: Any, name: str = "A") -> Matrix:
    """Check ``A`` and wrap it as a :class:`Matrix`, without a copy where none is needed."""
    if isinstance(A, Matrix):
        return A
    matrix = _from_sparse(A, name) if sparse.issparse(A) else _from_dense(A, name)
    check_finite(matrix, name)
    return matrix


def sampled_rows(n: int, d: int) -> slice:
    """Rows that are enough for the second moments of d columns, evenly spaced."""
    return slice(None, None, max(1, n // max(ENOUGH, PER_COLUMN * d)))


def principal_axes(
    A: np.ndarray, weights: np.ndarray | None = None, centred: bool = True, turned: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(means, variances, axes) of the columns of A by ``weights``, from a sample of rows.

    About the means, or about 0; and along principal axes, or along the columns (no axes then).
    """
    kept = sampled_rows(*A.shape)
    block = A[kept].astype(np.float64)
    share = np.ones(len(block)) if weights is None else weights[kept]
    share = share / max(float(np.sum(share)), np.finfo(np.float64).tiny)
    means = share @ block if centred else np.zeros(A.shape[1])
    block -= means
    if not turned:
        return means, share @ np.square(block), np.zeros((0, 0))
    block *= np.sqrt(share)[:, None]
    with one_thread():
        variances, axes = np.linalg.eigh(block.T @ block)
    return means, np.maximum(variances, 0.0), axes


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
    return Matrix((n, d), np.arange(0, n * d + 1, d, dtype=np.uint64), None, array.reshape(-1))


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


def check_rows(matrix: Matrix, name: str, first: int = 0) -> float:
    """Finite entries, and rows whose squared norms are numbers with room above: the largest.

    ``first`` is the number of the first row.
    """
    # A sum of squares is finite only if every entry is: the norms, needed anyway, are the test.
    largest = float(matrix.squared_norms.max())
    if not largest <= LARGEST * LARGEST:
        i = int(np.argmin(matrix.squared_norms <= LARGEST * LARGEST))
        row = matrix.data[int(matrix.indptr[i]) : int(matrix.indptr[i + 1])].astype(np.float64)
        worst = row[np.argmax(np.where(np.isfinite(row), np.abs(row), np.inf))]
        raise ValueError(
            f"{name} has the value {worst} in row {first + i}: every entry must be a finite "
            f"number, and rows no longer than {LARGEST:g}; drop or impute missing values, or "
            "rescale the columns"
        )
    return largest


def check_scale(norms: np.ndarray, name: str) -> None:
    """Room below, for the longest row; rows of zeros have norm 0."""
    longest = float(norms.max(initial=0.0))
    if 0.0 < longest < SMALLEST * SMALLEST:
        raise ValueError(
            f"{name} has no row longer than {longest**0.5:g}: the squares of such numbers vanish; "
            "rescale the columns"
        )


def check_finite(matrix: Matrix, name: str) -> None:
    """Finite entries, and rows whose squared norms are numbers with room above and below."""
    if check_rows(matrix, name) < SMALLEST * SMALLEST and matrix.entries.any():
        worst = np.abs(matrix.entries).max()
        raise ValueError(
            f"{name} has no entry larger than {worst:g}: the squares of such numbers vanish; "
            f"rescale the columns, for example by 2.0**{-int(np.floor(np.log2(worst)))}"
        )
