"""Row blocks: a matrix whose rows are in several places.

A :class:`BlockMatrix` is K blocks of rows, cut by the data alone (:mod:`.partition`), and an
executor that runs functions of a block on them (:mod:`adacoord.parallel`).  What is added up is
added in the order of the blocks, so that the bits are the same whoever does the work.  Blocks are

* views of arrays in memory,
* read from a :class:`~adacoord.io.store.Store` when they are worked on,
* the pairs (X, y) of anything that can be iterated over again and again,
* partitions of a Dask collection (:mod:`adacoord.parallel.collections`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import sparse

from ..kernels.summation import LONG, depth
from .columns import as_scipy
from .matrix import Matrix, _unsigned, as_matrix, check_rows, check_scale
from .partition import block_bounds

if TYPE_CHECKING:
    from ..parallel.executors import Executor


class Piece(Protocol):
    """Where a block is; a small object that other processes may get."""

    @property
    def in_memory(self) -> bool: ...

    def load(self) -> Matrix: ...


@dataclass(frozen=True)
class Held:
    """A block in memory; or what else its functions take for one."""

    block: Any
    in_memory = True

    def load(self) -> Any:
        return self.block


@dataclass(frozen=True)
class Stored:
    """A block of a store, read when it is worked on."""

    store: Any
    k: int
    in_memory = False

    def load(self) -> Matrix:
        return _unchecked(self.store.read(self.k))


class _NoBlock:
    """In the place of a block, for functions that need none."""

    in_memory = True

    def load(self) -> None:
        return None


_NO_BLOCK = _NoBlock()


class Pairs:
    """The blocks of an iterable of pairs (X, y), each taken from it when its turn comes."""

    def __init__(self, source: Iterable):
        self.source, self._next = source, 0
        self._iterator: Iterator[Any] = iter(())

    def take(self, k: int) -> Any:
        """The k-th pair: by going on, or from the beginning."""
        if k < self._next:
            self._next, self._iterator = 0, iter(self.source)
        elif self._next == 0:
            self._iterator = iter(self.source)
        while True:
            try:
                pair = next(self._iterator)
            except StopIteration:
                raise ValueError(
                    f"A gave {self._next} blocks of rows, and more the first time: it must give "
                    "the same pairs (X, y) each time it is iterated over; a list does"
                ) from None
            self._next += 1
            if self._next > k:
                return pair


@dataclass(frozen=True)
class Turn:
    """One block of :class:`Pairs`; ``sequential``: to be loaded in order, by one thread."""

    pairs: Pairs
    k: int
    rows: int
    width: int
    in_memory = False
    sequential = True

    def load(self) -> Matrix:
        block = as_matrix(self.pairs.take(self.k)[0])
        if block.shape != (self.rows, self.width):
            raise ValueError(
                f"block {self.k} of A has shape {block.shape}, and had {(self.rows, self.width)} "
                "the first time: it must give the same pairs (X, y) each time"
            )
        return block


class BlockMatrix(Matrix):
    """K blocks of rows, and who works on them.

    Parameters
    ----------
    pieces : sequence of Piece
    bounds : int64 array of K+1 row starts
    width : number of columns
    dtype : of the entries
    is_dense : whether the rows are
    nnz : stored entries
    executor : of :mod:`adacoord.parallel.executors`
    """

    blocked = True

    def __init__(
        self,
        pieces: Sequence[Piece],
        bounds: np.ndarray,
        width: int,
        dtype: np.dtype,
        is_dense: bool,
        nnz: int,
        executor: Executor,
    ):
        self.pieces, self.bounds, self.executor = pieces, bounds, executor
        self.shape = int(bounds[-1]), width
        self._dtype, self._is_dense, self._nnz = np.dtype(dtype), is_dense, nnz

    @classmethod
    def of(
        cls, matrix: Matrix, executor: Executor, bounds: np.ndarray | None = None
    ) -> BlockMatrix:
        """The rows of a matrix in memory: views of them (of data by columns, of their rows).

        Those of the usual bounds are made once, for all problems with these rows.
        """
        d, (_, indices, data), norms = matrix.shape[1], matrix.arrays, matrix.squared_norms
        if bounds is None:
            if "row_blocks" not in vars(matrix):
                vars(matrix)["row_blocks"] = _cut(matrix, _usual_bounds(matrix))
            pieces, bounds = vars(matrix)["row_blocks"]
        else:
            pieces, bounds = _cut(matrix, bounds)
        out = cls(pieces, bounds, d, data.dtype, indices is None, matrix.nnz, executor)
        out.__dict__["squared_norms"] = norms
        return out

    def with_executor(self, executor: Executor) -> BlockMatrix:
        """The same blocks, worked on by somebody else."""
        out = type(self).__new__(type(self))
        out.__dict__.update(self.__dict__)
        out.executor = executor
        return out

    # ---- what is known without a pass ---------------------------------------------------

    @property
    def dtype(self) -> np.dtype:
        return self._dtype

    @property
    def is_dense(self) -> bool:
        return self._is_dense

    @property
    def nnz(self) -> int:
        return self._nnz

    def __getattr__(self, name: str) -> Any:
        if name in ("indptr", "indices", "data"):
            raise ValueError(
                "the data are blocks of rows, and this needs all of them in memory; use "
                'solver="auto", which takes a method that works on blocks'
            )
        raise AttributeError(name)

    def __getitem__(self, index: Any) -> Any:
        raise ValueError(
            "rows of data in blocks cannot be picked, as cross-validation would do; fit on all of "
            "them, or on data that fit in memory"
        )

    # ---- functions of blocks ------------------------------------------------------------

    def map(
        self,
        function: Callable,
        *common: Any,
        rows: tuple[np.ndarray, ...] = (),
        each: Sequence[tuple] | None = None,
        blocks: range | None = None,
    ) -> Iterator[Any]:
        """``function(block, *common, *each of its own, *its part of rows)``, block by block.

        Of all blocks, or of ``blocks``, which ``each`` has an entry for.
        """
        return self.executor.map(function, self._jobs(*common, rows=rows, each=each, blocks=blocks))

    def _jobs(
        self,
        *common: Any,
        rows: tuple[np.ndarray, ...],
        each: Sequence[tuple] | None = None,
        blocks: range | None = None,
    ) -> Iterator[tuple]:
        for at, k in enumerate(range(len(self.pieces)) if blocks is None else blocks):
            part = self._parts[k]
            own = () if each is None else each[at]
            yield (self.pieces[k], *common, *own, *(array[part] for array in rows))

    @cached_property
    def _parts(self) -> list[slice]:
        """The rows of each block."""
        return [slice(a, b) for a, b in pairwise(self.bounds.tolist())]

    def gather(
        self, function: Callable, *common: Any, rows: tuple[np.ndarray, ...] = ()
    ) -> tuple[tuple[np.ndarray, ...], Any]:
        """What a function gives of all rows.

        Of a block it gives two tuples: arrays with an entry for each row, which are put together,
        and what is to be added up.
        """
        from ..parallel.executors import Serial, Threads

        found = _Gathered(self._parts)
        if isinstance(self.executor, (Serial, Threads)):  # who worked on a block puts it in place
            jobs = enumerate(self._jobs(*common, rows=rows))
            self.executor.run(
                partial(found.compute, function), ((piece, k, *rest) for k, (piece, *rest) in jobs)
            )
        else:
            for k, result in enumerate(self.map(function, *common, rows=rows)):
                found.put(k, result)
        return tuple(found.whole or ()), found.sums.total()

    def rowwise(self, function: Callable, *common: Any, rows: tuple[np.ndarray, ...]) -> Any:
        """The sum of ``function(*common, *parts of rows)`` over the blocks; no block is loaded.

        The vectors are here: threads share them, and nobody else is sent any.  What the function
        writes to its parts stays.
        """
        from ..parallel.executors import Serial, Threads
        from ..parallel.reduction import fold

        executor = self.executor if isinstance(self.executor, Threads) else Serial()
        parts = [tuple([array[part] for array in rows]) for part in self._parts]
        found: list[Any] = [None] * len(parts)
        # a task for each thread: one for each block would cost more than its share of the work
        each = -(-len(parts) // getattr(executor, "n_jobs", 1))
        shares = (range(k, min(k + each, len(parts))) for k in range(0, len(parts), each))
        executor.run(
            _of_vectors, [(_NO_BLOCK, function, common, parts, share, found) for share in shares]
        )
        return fold(found)

    # ---- products -----------------------------------------------------------------------

    def dot(self, x: np.ndarray) -> np.ndarray:
        if not x.any():
            return np.zeros(self.shape[:1] + x.shape[1:])
        return self.gather(_dot, x)[0][0]

    def tdot(self, v: np.ndarray) -> np.ndarray:
        return self.gather(_tdot, rows=(v,))[1][0]

    def both(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (z,), (u,) = self.gather(_both, x, rows=(v,))
        return z, u

    def accurate_dot(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        high, low = self.gather(_accurate_dot, x)[0]
        return high, low

    def accurate_tdot(self, v: np.ndarray, v_low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        high, low = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for more, rest in self.map(_accurate_tdot, rows=(v, v_low)):
            total = high + more
            part = total - high
            low += rest + ((high - (total - part)) + (more - part))  # what the sum lost
            high = total
        return high, low

    # Blocks may be stored by rows or by columns, and cut in different ways.

    def dot_depth(self, x: np.ndarray, width: int) -> int:
        return (self.shape[1] if self.is_dense else int(self.row_sizes.max())) + 1

    def tdot_depth(self, width: int) -> int:
        """Of the longest block, with the sums of the blocks."""
        rows, folds = int(np.diff(self.bounds).max()), len(self.pieces).bit_length()
        if not self.is_dense:
            return rows + 1 + folds
        cut = self.block_rows(width) if width > 1 else math.isqrt(rows) + LONG
        return depth(rows, cut) + folds

    def magnitude_dot(self, x: np.ndarray) -> np.ndarray:
        return self.gather(_magnitudes, x)[0][0]

    def column_squares(self, weight: np.ndarray) -> np.ndarray:
        return self.gather(_column_squares, rows=(weight,))[1][0]

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Dense rows (their indices increase), in float64."""
        chosen = np.zeros(self.shape[0], dtype=bool)
        chosen[rows] = True
        return np.concatenate(list(self.map(_take, rows=(chosen,))))

    @cached_property
    def squared_norms(self) -> np.ndarray:
        """|a_i|^2, by a pass that looks for what no solver could work with."""
        return self._measured[0]

    @cached_property
    def row_sizes(self) -> np.ndarray:
        if self.is_dense:
            return np.full(self.shape[0], self.shape[1])
        return self._measured[1]

    @cached_property
    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        found = list(self.map(_measure, each=[(int(first),) for first in self.bounds[:-1]]))
        norms, sizes = (np.concatenate(part) for part in zip(*found, strict=True))
        return norms, sizes  # none of dense rows


class _Gathered:
    """What functions of blocks give, as :meth:`BlockMatrix.gather` wants it."""

    def __init__(self, parts: list[slice]):
        from ..parallel.reduction import Sum

        self.parts, self.sums = parts, Sum()
        self.whole: list[np.ndarray] | None = None
        self._lock = Lock()

    def compute(self, function: Callable, block: Any, k: int, *arguments: Any) -> None:
        """What a function gives of the k-th block."""
        self.put(k, function(block, *arguments))

    def put(self, k: int, result: tuple) -> None:
        of_rows, summed = result
        with self._lock:  # whoever is first knows what there is
            if self.whole is None:
                n = self.parts[-1].stop
                self.whole = [np.empty((n, *part.shape[1:]), part.dtype) for part in of_rows]
        for array, part in zip(self.whole, of_rows, strict=True):
            array[self.parts[k]] = part
        self.sums.give(k, summed)


def as_blocks(A: Any) -> tuple[BlockMatrix, np.ndarray | None] | None:
    """``A`` as blocks of rows, with its targets where it has them; None if it is something else.

    A store, a Dask collection, or an iterable of pairs (X, y) that is no array, which may be gone
    through again.
    """
    from ..parallel.collections import is_collection, of_collection
    from ..parallel.executors import Serial

    if is_collection(A):
        return of_collection(A), None
    if hasattr(A, "read") and hasattr(A, "bounds"):
        pieces: list[Any] = [Stored(A, k) for k in range(len(A.bounds) - 1)]
        matrix = BlockMatrix(
            pieces, A.bounds, A.shape[1], A.dtype, not A.is_sparse, A.nnz, Serial()
        )
        targets = A.targets
    elif gives_pairs(A):
        matrix, targets = _of_pairs(A)
    else:
        return None
    check_blocks(matrix)
    return matrix, targets


def check_blocks(matrix: BlockMatrix) -> None:
    """One pass that refuses what no solver could work with, in a sentence."""
    check_scale(matrix.squared_norms, "A")


def gives_pairs(A: Any) -> bool:
    """Whether ``A`` is a list or another iterable of pairs, and no array or list of rows."""
    if sparse.issparse(A) or hasattr(A, "__array__") or not isinstance(A, Iterable):
        return False
    if isinstance(A, (list, tuple)):
        return bool(A) and isinstance(A[0], tuple) and len(A[0]) == 2 and np.ndim(A[0][1]) in (1, 2)
    return not isinstance(A, (str, bytes, dict, set)) and not isinstance(A, Iterator)


def _of_pairs(source: Iterable) -> tuple[BlockMatrix, np.ndarray]:
    from ..parallel.executors import Serial

    held = isinstance(source, (list, tuple))
    pairs, pieces, sizes, targets = Pairs(source), [], [], []
    nnz, width, dense, dtype = 0, 0, True, np.dtype(np.float32)
    for k, pair in enumerate(source):
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ValueError(
                f"block {k} of A is a {type(pair).__name__}: blocks of rows are pairs (X, y), the "
                "rows and their targets"
            )
        block, y = as_matrix(pair[0], f"block {k} of A"), np.asarray(pair[1])
        if y.shape[:1] != block.shape[:1]:
            raise ValueError(
                f"block {k} of A has {block.shape[0]} rows and targets of shape {y.shape}: there "
                "must be one target a row"
            )
        if k and (block.shape[1] != width or block.is_dense != dense):
            raise ValueError(
                f"block {k} of A has {block.shape[1]} {'dense' if block.is_dense else 'sparse'} "
                f"columns, and the first {width} {'dense' if dense else 'sparse'} ones: all blocks "
                "must be alike"
            )
        width, dense, dtype = block.shape[1], block.is_dense, np.promote_types(dtype, block.dtype)
        n = block.shape[0]
        pieces.append(Held(block) if held else Turn(pairs, k, n, width))
        sizes.append(n)
        targets.append(y)
        nnz += block.nnz
    if not pieces:
        raise ValueError("A has no blocks of rows: it needs at least one pair (X, y)")
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    matrix = BlockMatrix(pieces, bounds, width, dtype, dense, nnz, Serial())
    return matrix, np.concatenate(targets)


def _unchecked(A: Any) -> Matrix:
    """Rows that were checked when the problem was made."""
    if sparse.issparse(A):
        return Matrix(A.shape, A.indptr.astype(np.uint64), _unsigned(A.indices), A.data)
    n, d = A.shape
    return Matrix((n, d), np.arange(n + 1, dtype=np.uint64) * np.uint64(d), None, A.reshape(-1))


def _usual_bounds(matrix: Matrix) -> np.ndarray:
    indptr, indices, data = matrix.arrays
    return block_bounds(matrix.shape, data.itemsize, None if indices is None else indptr)


def _cut(matrix: Matrix, bounds: np.ndarray) -> tuple[list[Held], np.ndarray]:
    return [Held(matrix.some_rows(int(a), int(b))) for a, b in pairwise(bounds)], bounds


# ---- functions of one block: (arrays with an entry for each row), (what is added up) -------------


def _of_vectors(
    block: None, function: Callable, common: tuple, parts: list[tuple], share: range, out: list
) -> None:
    for k in share:
        out[k] = function(*common, *parts[k])


def _dot(block: Matrix, x: np.ndarray) -> tuple:
    return (block.dot(x),), ()


def _tdot(block: Matrix, v: np.ndarray) -> tuple:
    return (), (block.tdot(v),)


def _both(block: Matrix, x: np.ndarray, v: np.ndarray) -> tuple:
    z, u = block.both(x, v)
    return (z,), (u,)


def _accurate_dot(block: Matrix, x: np.ndarray) -> tuple:
    return block.accurate_dot(x), ()


def _accurate_tdot(block: Matrix, v: np.ndarray, v_low: np.ndarray) -> tuple:
    return block.accurate_tdot(v, v_low)


def _magnitudes(block: Matrix, x: np.ndarray) -> tuple:
    return (block.magnitude_dot(x),), ()


def _column_squares(block: Matrix, weight: np.ndarray) -> tuple:
    return (), (block.column_squares(weight),)


def _take(block: Matrix, chosen: np.ndarray) -> np.ndarray:
    return as_scipy(block)[chosen].astype(np.float64, copy=False)


def _measure(block: Matrix, first: int) -> tuple[np.ndarray, np.ndarray]:
    check_rows(block, "A", first)
    return block.squared_norms, block.row_sizes[: 0 if block.is_dense else None]
