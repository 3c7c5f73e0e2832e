r"""A float32 copy of long dense rows, for the products far from the optimum.

Such products wait for the memory: A in half the bytes, :math:`S = (A - 1 m^T)\,\mathrm{diag}(s)`
with m and 1/s about the means and the deviations of the columns, takes a third of their time
(20,000 x 2,000 numbers, A v with A'D A v: 23 -> 8 ms; the copy takes 40).  Nothing is lost where
columns are far from 0, or of unequal scale.  Products are known to some six digits, which moves a
gap by about their square: until that is of the order of the gap, no step is any worse.

What is made: n d numbers of 4 bytes, at most LARGEST of them, and none where rows are short, or all
of the data are in the cache: there a pass gains little, and the copy takes several.  Of blocks of
rows in memory each has a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...data.blocks import BlockMatrix, Held
from ...data.columns import as_scipy
from ...data.matrix import Matrix
from ...problem import Problem
from .single_kernels import hessian_single, rmatvec_single, round_columns, round_rows

#: Columns, and entries, from which on the copy is worth its price (a fit of 13,645 x 622 numbers,
#: 17 passes: 109 -> 69 ms; 5,000 x 300, 8 passes: 9.9 -> 8.2; 4,438 x 237, 5 passes: as before);
#: and the most entries of it, which are 1 GB.
LONG, LARGE, LARGEST = 128, 2**20, 2**28
#: Columns of float32 from which on they are worth being copied as rows (a fit of 9,174 x 247
#: numbers: 15 -> 18 ms; 7,911 x 407 and 6,000 x 520: as before; 6,000 x 800: 83 -> 56).
LONG_COLUMNS = 512
#: Rows that tell what the means and deviations of columns are about; fewer where they are so long
#: that these are more entries (of 900 x 9,000 numbers 29: the copy takes 8 ms for 13.5).
SAMPLE, SAMPLED, FEWEST = 256, 2**18, 16
#: Rows longer than this many deviations of their columns are too long for float32 sums.
FAR = 1e9


def worth_it(problem: Problem) -> bool:
    """Whether a copy pays for itself: dense rows that are long, of float64 or by columns."""
    m = problem.matrix
    dense = m.is_dense and not problem.loss.blocks
    if isinstance(m, BlockMatrix):
        dense = dense and all(isinstance(piece, Held) for piece in m.pieces)
    least = LONG if m.dtype == np.float64 else LONG_COLUMNS
    dense = dense and (m.dtype == np.float64 or m.by_columns)
    return dense and m.shape[1] >= least and LARGE <= m.nnz <= LARGEST


class SingleCopy:
    """S, and the products with A that it stands in for."""

    def __init__(self, problem: Problem):
        m = problem.matrix
        step = max(1, problem.n // max(min(SAMPLE, SAMPLED // problem.d), FEWEST))
        if isinstance(m, BlockMatrix):
            sample = m.take(np.arange(0, problem.n, step))
        else:
            sample = as_scipy(m)[::step].astype(np.float64)
        self.centre = sample.mean(axis=0) if problem.intercept else np.zeros(problem.d)
        deviation = np.sqrt(np.mean(np.square(sample - self.centre), axis=0))
        self.scale = 1.0 / np.where(deviation > 0.0, deviation, 1.0)
        self.data: Any
        if isinstance(m, BlockMatrix):
            found = list(m.map(_rounded, self.centre, self.scale))
            pieces, longest = [Held(data) for data, _ in found], max(far for _, far in found)
            dtype = np.dtype(np.float32)
            self.data = BlockMatrix(pieces, m.bounds, m.shape[1], dtype, True, m.nnz, m.executor)
        else:
            self.data, longest = _rounded(m, self.centre, self.scale)
        #: Whether all entries are numbers that float32 can add up.
        self.sound = longest <= FAR * FAR

    def hessian(self, v: np.ndarray, shift: float, bend: np.ndarray) -> tuple:
        """(A v + shift, A'(bend (A v + shift)), the sum of what A' is multiplied with)."""
        scaled = (v / self.scale).astype(np.float32)
        at = shift + float(self.centre @ v)
        (av,), (out, total) = self._gather(_hessian, scaled, at, rows=(bend,))
        return av, out / self.scale + total * self.centre, total

    def tdot(self, p: np.ndarray) -> np.ndarray:
        """A'p."""
        (out,) = self._gather(_tdot, rows=(p,))[1]
        return out / self.scale + float(np.sum(p)) * self.centre

    def _gather(self, function: Callable, *common: Any, rows: tuple) -> tuple:
        if isinstance(self.data, BlockMatrix):
            return self.data.gather(function, *common, rows=rows)
        return function(self.data, *common, *rows)


# ---- functions of one block, as those of :mod:`.in_blocks` ---------------------------------------


def _rounded(block: Matrix, centre: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, float]:
    """(the rows of S, the square of the longest)."""
    A = as_scipy(block)
    data = np.empty(A.shape, dtype=np.float32)
    if block.by_columns:
        return data, round_columns(A.T, centre, scale, data)
    return data, round_rows(A, centre, scale, data)


def _hessian(data: np.ndarray, v: np.ndarray, shift: float, bend: np.ndarray) -> tuple:
    av, out = np.empty(len(data)), np.zeros(v.size)
    total = hessian_single(data, v, shift, bend, av, out)
    return (av,), (out, total)


def _tdot(data: np.ndarray, p: np.ndarray) -> tuple:
    out = np.zeros(data.shape[1])
    rmatvec_single(data, p, out)
    return (), (out,)
