"""Where data are cut into blocks of rows: by the data alone, never by who computes.

The same rows make the same blocks in an array, a memory map and a store, and so the same sums in
the same order, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Bytes of a block: enough to hide what starting one costs, little enough to hold two.
BLOCK_BYTES = 2**25
#: Data of more than ``MIN_BLOCKS * LEAST_BYTES`` bytes have this many blocks for the cores to
#: share; smaller ones have blocks of ``LEAST_BYTES``, or one.
MIN_BLOCKS, LEAST_BYTES = 8, 2**18
#: More blocks than that are a multiple of this: two threads that share out 11 wait for one.
TOGETHER = 4
#: Widths up to this one have int32 indices.
INT32_WIDTH = 2**31 - 1


def block_bounds(
    shape: tuple[int, int], itemsize: int, indptr: np.ndarray | None = None
) -> np.ndarray:
    """The first row of each block, and behind them the number of rows: an int64 array.

    Parameters
    ----------
    shape : (n, d)
        Of the whole data.
    itemsize : int
        Bytes of a number: 4 or 8.
    indptr : array of n + 1 whole numbers, optional
        The row starts of CSR data, which may be a memory map: few of its pages are looked at.
        None for dense rows.

    Notes
    -----
    Counted is what a block takes in memory: the numbers and, for CSR, the indices (int32 where
    the width fits, however they came) and the row starts.
    """
    n, d = shape
    if indptr is None:
        return _bounds(n, lambda rows: rows * (d * itemsize))
    entry = itemsize + (4 if d <= INT32_WIDTH else 8)
    return _bounds(n, lambda rows: indptr[rows].astype(np.int64) * entry + rows * 8)


def _bounds(n: int, bytes_before: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Cut where ``bytes_before`` (of an array of row numbers) passes equal shares of the bytes."""
    total = int(bytes_before(np.array([n]))[0])
    count = max(-(-total // BLOCK_BYTES), min(MIN_BLOCKS, total // LEAST_BYTES), 1)
    if count > MIN_BLOCKS:
        count = -(-count // TOGETHER) * TOGETHER
    count = min(count, n)
    shares = np.array([total * k // count for k in range(1, count)], dtype=np.int64)
    first, last = np.zeros(shares.size, np.int64), np.full(shares.size, n, np.int64)
    while (first < last).any():  # all cuts at once, by bisection: the bytes of no row are stored
        middle = (first + last) // 2
        short = bytes_before(middle) < shares
        first = np.where(short & (first < last), middle + 1, first)
        last = np.where(short, last, middle)
    return np.unique(np.concatenate([[0], first, [n]])).astype(np.int64)
