"""Second moments of rows: all that least squares needs to know of them.

With Z = [A - m, b - m_b, 1], W the weights and (m, m_b) a shift, the moments are Z'WZ: the Gram
matrix of the columns, their products with the targets, the sums.  One product of BLAS makes them,
and they can be subtracted: the moments of the rows that train are those of all rows less those of
the rows that test.  Columns like 1e6 + noise would cancel: the shift is by their means over *all*
rows, after which the mean over some of them is a small correction of rank one.  Sparse rows are
not shifted (that would fill them): :attr:`Moments.sizes` knows what was subtracted from what, and
so what rounding may have left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..data.columns import as_scipy
from ..data.matrix import Matrix

#: Bytes that the d x d matrices of a path, or of all folds of a search, may take together (1 GB).
LARGEST = 2**30
#: Entries of a block of shifted rows (2 MB: it stays in the cache).
BLOCK = 2**18
#: The square of a column, over what it was before means were taken off: less is nothing but
#: rounding, and the column is constant.
CONSTANT = 1e-13


def fits(d: int, matrices: int) -> bool:
    """Whether so many Gram matrices of d columns may be held."""
    return 8 * matrices * (d + 2) ** 2 <= LARGEST


@dataclass(frozen=True)
class Moments:
    """Z'WZ of some rows.

    Attributes
    ----------
    products : array of shape (d + 2, d + 2)
    shift : (m, m_b), of shape (d + 1,)
    sizes : roots of the sums of squares that ``products`` were made of, of shape (d + 1,)
    rows : how many there are
    """

    products: np.ndarray
    shift: np.ndarray
    sizes: np.ndarray
    rows: int

    @property
    def mass(self) -> float:
        """The sum of the weights."""
        return float(self.products[-1, -1])

    def __add__(self, other: Moments) -> Moments:
        return replace(
            self,
            products=self.products + other.products,
            sizes=np.hypot(self.sizes, other.sizes),
            rows=self.rows + other.rows,
        )

    def __sub__(self, other: Moments) -> Moments:
        """Of the rows that are not in ``other``; ``sizes`` stay, and rounding with them."""
        return replace(self, products=self.products - other.products, rows=self.rows - other.rows)

    def least_squares(self, intercept: bool, n: float) -> LeastSquares:
        """1/2 (mean squared residual), a sum over the rows divided by ``n``, as a function of x."""
        full, means = self.products[:-1, :-1], np.zeros(self.shift.size)
        if intercept:
            sums = self.products[-1, :-1]
            means = sums / self.mass
            full = full - np.multiply.outer(sums, means)
            means = means + self.shift
        elif self.shift.any():
            raise ValueError("moments that were shifted are those of a problem with an intercept")
        sizes = self.sizes / np.sqrt(n)
        squares = full.diagonal() / n
        gram = np.ascontiguousarray(full[:-1, :-1]) / n
        return LeastSquares(
            gram=gram,
            cross=full[-1, :-1] / n,
            square=max(float(squares[-1]), 0.0),
            moving=squares[:-1] > CONSTANT * np.square(sizes[:-1]),
            means=means[:-1],
            target_mean=float(means[-1]),
            sizes=sizes,
            rows=self.rows,
        )

    def squared_error(self, X: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(sum_i w_i (b_i - a_i.x - c)^2, what it is not known to) of each row x of X and its c."""
        d = self.shift.size - 1
        # the residual is -Z v, with v = (x, -1, c + m.x - m_b)
        V = np.empty((len(X), d + 2))
        V[:, :d], V[:, d], V[:, d + 1] = X, -1.0, c + X @ self.shift[:d] - self.shift[d]
        total = np.einsum("ij,ij->i", V @ self.products, V)
        roots = np.append(self.sizes, np.sqrt(self.mass))
        return total, rounding(self.rows) * np.square(np.abs(V) @ roots)


@dataclass(frozen=True)
class LeastSquares:
    """x'Gx/2 - q.x + square/2, with the intercept at its best.

    Attributes
    ----------
    gram, cross, square : G, q and the squared length of the targets, over n
    moving : the columns that are not constant
    means, target_mean : the intercept is target_mean - means.x (both 0 where there is none)
    sizes : lengths of the columns and of the targets, before means were taken off them
    rows : that the sums are over
    """

    gram: np.ndarray
    cross: np.ndarray
    square: float
    moving: np.ndarray
    means: np.ndarray
    target_mean: float
    sizes: np.ndarray
    rows: int

    def intercepts(self, X: np.ndarray) -> np.ndarray:
        """The best intercept for each row of X."""
        return self.target_mean - X @ self.means


def rounding(rows: int) -> float:
    """What a sum over so many rows is not known to, in units of its terms' sum."""
    return float(np.finfo(np.float64).eps) * (2.0 + 0.125 * rows**0.5)


def means(matrix: Matrix, b: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(m, m_b): a shift to take off all rows; zeros for sparse rows, which are not shifted."""
    n, d = matrix.shape
    if not matrix.is_dense:
        return np.zeros(d + 1)
    w = np.ones(n) if weights is None else weights
    sums = matrix.tdot(w) if matrix.blocked else as_scipy(matrix).T @ w
    return np.append(sums, np.sum(w * b)) / w.sum()


def moments(
    matrix: Matrix,
    b: np.ndarray,
    weights: np.ndarray | None,
    shift: np.ndarray,
    rows: np.ndarray | None = None,
) -> Moments:
    """Of all rows, or of those with the indices ``rows``; of data in blocks, of all."""
    n = matrix.shape[0]
    count = n if rows is None else rows.size
    if matrix.blocked:
        of_rows = (b,) if weights is None else (b, weights)
        products = matrix.gather(_block_products, shift, rows=of_rows)[1][0]
    elif matrix.is_dense:
        products = _dense_products(as_scipy(matrix), b, weights, shift, rows)
    else:
        products = _sparse_products(matrix, b, weights, rows)
    sizes = np.sqrt(np.maximum(products.diagonal()[:-1], 0.0))
    return Moments(products, shift, sizes, count)


def _block_products(block: Matrix, shift: np.ndarray, b, weights=None) -> tuple:
    return (), (moments(block, b, weights, shift).products,)


def _dense_products(A, b, weights, shift, rows) -> np.ndarray:
    """Block by block, each shifted, in float64."""
    (n, d), consecutive = A.shape, rows is None
    first, last = 0, n
    if rows is not None:
        consecutive = rows.size > 0 and bool((np.diff(rows) == 1).all())
        first, last = (int(rows[0]), int(rows[-1]) + 1) if consecutive else (0, rows.size)
    out = np.zeros((d + 2, d + 2))
    step = max(BLOCK // (d + 2), d + 2)
    order: Literal["C", "F"] = "F" if A.flags.f_contiguous and not A.flags.c_contiguous else "C"
    room = np.empty((min(step, last - first), d + 2), order=order)
    for i in range(first, last, step):
        part = slice(i, min(i + step, last)) if consecutive else rows[i : min(i + step, last)]
        block = A[part] if consecutive or order == "C" else A.T.take(part, axis=1).T
        Z = room[: len(block)]
        np.subtract(block, shift[:d], out=Z[:, :d])
        np.subtract(b[part], shift[d], out=Z[:, d])
        Z[:, d + 1] = 1.0
        if weights is not None:
            Z *= np.sqrt(weights[part])[:, None]
        out += Z.T @ Z
    return out


def _sparse_products(matrix: Matrix, b, weights, rows) -> np.ndarray:
    from ..kernels.gram import sparse_gram

    n, d = matrix.shape
    w = np.ones(n) if weights is None else weights
    if rows is not None:
        kept = np.zeros(n)
        kept[rows] = w[rows]
        w = kept
    out = np.zeros((d + 2, d + 2))
    gram = np.zeros((d, d))
    sparse_gram(*matrix.arrays, w, gram)
    out[:d, :d] = gram
    targets = np.stack([w * b, w], axis=1)
    out[:d, d:] = np.stack([matrix.tdot(column) for column in targets.T], axis=1)
    out[d:, :d] = out[:d, d:].T
    out[d, d], out[d + 1, d + 1] = np.sum(w * b * b), np.sum(w)
    out[d, d + 1] = out[d + 1, d] = np.sum(w * b)
    return out
