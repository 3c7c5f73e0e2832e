"""svmlight / LIBSVM text: ``label index:value index:value ... # comment``, one sample a line.

Reading goes in pieces of whole lines (:mod:`adacoord.io.svmlight_text`); each is parsed by one
pass of a byte kernel (:mod:`adacoord.io.svmlight_kernel`) into its rows or into what is wrong with
it (:mod:`adacoord.io.svmlight_rows`), by several threads if asked to; what they give is put
together in the order of the file.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import operator
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from functools import partial
from itertools import islice, pairwise
from typing import TypeVar

import numpy as np
from scipy import sparse

from .svmlight_rows import Refusal, Rows, index_type_of, joined, parse
from .svmlight_text import compression, pieces
from .writing import replacing

Item = TypeVar("Item")
Result = TypeVar("Result")

_PIECE = 1 << 18  # with its arrays, in a core's own cache
_CHUNK = 1 << 25
_ENTRIES_A_WRITE = 1 << 17


def load_svmlight(
    path: str | os.PathLike,
    n_features: int | None = None,
    *,
    zero_based: bool = False,
    max_bytes: int | None = None,
    n_jobs: int | None = None,
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Read an svmlight file, plain or compressed.

    Parameters
    ----------
    path : str or path-like
        The file; one that ends in ``.gz``, ``.bz2`` or ``.xz`` is decompressed.
    n_features : int, optional
        Number of columns; by default the largest index in the file.  More widens the matrix,
        less is an error.
    zero_based : bool, default False
        Whether the file's first column has index 0 instead of 1.
    max_bytes : int, optional
        A compressed file that expands to more bytes is refused; by default 256 MiB or, if that is
        more, 100 times its size.
    n_jobs : int, optional
        Number of threads that parse while the calling one reads and decompresses; by default, and
        with 1, the calling thread does everything.  The result and the errors are the same for
        any number.

    Returns
    -------
    A : scipy.sparse.csr_matrix of float64
        Indices are sorted, int32 where they fit.  Explicit zeros are kept.
    b : ndarray of float64
        The labels.

    Raises
    ------
    ValueError
        ``path:line:column: reason, got 'token'`` for text that cannot be read, and a sentence
        for a damaged, misnamed or empty file.

    Notes
    -----
    The numbers are those of ``sklearn.datasets.load_svmlight_file(path, zero_based=False)``, bit
    for bit.  The differences: indices may come in any order within a row (they are sorted) and
    may exceed int32; NaN and infinite numbers, and digits grouped as in ``1_000``, are refused;
    scikit-learn 1.9's index arrays are int64 even where int32 would do.  A ``qid:``
    token after the label is skipped.
    """
    n_features = _checked_count("n_features", n_features, "take the largest index in the file")
    max_bytes = _checked_count("max_bytes", max_bytes, "take 256 MiB or 100 times the file's size")
    n_jobs = _checked_count("n_jobs", n_jobs, "read in the calling thread")
    text = pieces(path, _PIECE, max_bytes)
    with closing(_rows(path, text, zero_based, n_jobs)) as rows:
        everything = joined(rows)
    return _matrix(everything, _width(everything, n_features, f"{os.fspath(path)} has"))


def read_chunks(
    path: str | os.PathLike,
    n_features: int | None = None,
    *,
    zero_based: bool = False,
    chunk_bytes: int | None = None,
    n_jobs: int | None = None,
) -> Generator[tuple[sparse.csr_matrix, np.ndarray]]:
    """Read an svmlight file, plain or compressed, some rows at a time, in bounded memory.

    Parameters
    ----------
    path, n_features, zero_based, n_jobs
        As in :func:`load_svmlight`.  Without ``n_features`` each matrix is as wide as its own
        largest index asks for.
    chunk_bytes : int, optional
        About so much text makes one pair; by default 32 MiB.  Lines are not cut: one that is
        longer has to fit into memory.

    Yields
    ------
    A : scipy.sparse.csr_matrix of float64
        Rows in the order of the file, at least one.  Indices are sorted, int64 in a matrix that
        needs it and int32 in the others.
    b : ndarray of float64
        Their labels.

    Raises
    ------
    ValueError
        As :func:`load_svmlight` does, with lines counted over the whole file, when the reading
        comes to the place; what a compressed file expands to is not bounded.  A file without rows
        is refused at its end.
    """
    n_features = _checked_count("n_features", n_features, "take the largest index of each matrix")
    chunk_bytes = _checked_count("chunk_bytes", chunk_bytes, "take 32 MiB") or _CHUNK
    n_jobs = _checked_count("n_jobs", n_jobs, "read in the calling thread")
    return _chunks(path, n_features, zero_based, chunk_bytes, n_jobs)


def _chunks(
    path: str | os.PathLike,
    n_features: int | None,
    zero_based: bool,
    chunk_bytes: int,
    n_jobs: int | None,
) -> Generator[tuple[sparse.csr_matrix, np.ndarray]]:
    size = min(_PIECE, chunk_bytes)
    text = pieces(path, size, math.inf)
    with closing(_rows(path, text, zero_based, n_jobs)) as rows:
        while (some := joined(islice(rows, chunk_bytes // size))).b.size:
            yield _matrix(some, _width(some, n_features, f"{os.fspath(path)} has at least"))


def save_svmlight(path: str | os.PathLike, A, b) -> None:
    """Write a matrix and its labels as one-based svmlight text that reads back to the same bits.

    Parameters
    ----------
    path : str or path-like
        An ending ``.gz``, ``.bz2`` or ``.xz`` compresses.  An existing file is replaced in one
        step, once the new one is whole.
    A : array or sparse matrix of shape (n, d)
        The entries of a dense matrix that are 0 are left out; stored zeros of a sparse one are
        kept, and its duplicate entries are summed.
    b : array of shape (n,)
        The labels.

    Notes
    -----
    The format does not hold d: where the last columns are empty, pass ``n_features`` to
    :func:`load_svmlight`.
    """
    A, b = _checked_data(A, b)
    with replacing(path) as file, _compressing(path, file) as stream:
        bounds = np.searchsorted(A.indptr, np.arange(0, A.nnz, _ENTRIES_A_WRITE)[1:])
        for start, stop in pairwise(np.unique([0, *bounds, b.size]).tolist()):
            stream.write(_rows_as_text(A, b, start, stop))


def _checked_count(name: str, value: int | None, default: str) -> int | None:
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(
            f"{name}={value!r}: it must be a whole number of at least 1, or None to {default}"
        )
    return number


def _rows(
    path: str | os.PathLike,
    text: Generator[np.ndarray],
    zero_based: bool,
    n_jobs: int | None,
) -> Generator[Rows]:
    """Parse the pieces of ``text``; those without a row are left out."""
    lines = found = 0
    with (
        closing(text),
        closing(_in_order(partial(parse, zero_based=zero_based), text, n_jobs or 1)) as parsed,
    ):
        for rows in parsed:
            if isinstance(rows, Refusal):
                if compression(path):
                    deque(text, 0)  # a damaged file is the reason of whatever is wrong in its text
                place = f"{os.fspath(path)}:{lines + rows.line + 1}:{rows.column + 1}"
                raise ValueError(f"{place}: {rows.reason}")
            lines += rows.lines
            found += rows.b.size
            if rows.b.size:
                yield rows
    if not found:
        raise ValueError(
            f"{os.fspath(path)}: the file has no rows; give one with at least one "
            "line 'label index:value ...'"
        )


def _in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int
) -> Generator[Result]:
    """Yield ``function(item)`` in the order of the items; threads work on the next ones."""
    if n_jobs == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        ahead: deque[Future[Result]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(function, item))
                if len(ahead) > 2 * n_jobs:  # one at work and one waiting for each thread
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _width(rows: Rows, n_features: int | None, has: str) -> int:
    needed = max(rows.width, 1)
    if n_features is not None and n_features < needed:
        raise ValueError(
            f"n_features={n_features}: {has} {needed} columns; pass n_features={needed} or more, "
            "or None"
        )
    return n_features or needed


def _matrix(rows: Rows, width: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    shape = (rows.b.size, width)
    index_type = index_type_of(int(rows.indptr[-1]), shape)
    indices = rows.indices.astype(index_type, copy=False)
    indptr = rows.indptr.astype(index_type, copy=False)
    A = sparse.csr_matrix((rows.values, indices, indptr), shape=shape)
    A.has_canonical_format = True  # spares others the search
    return A, rows.b


def _checked_data(A, b) -> tuple[sparse.csr_matrix, np.ndarray]:
    A = A if sparse.issparse(A) else np.asarray(A)
    b = np.asarray(b)
    for name, array in (("A", A), ("b", b)):
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} has dtype {array.dtype}: it must hold real numbers; convert it first"
            )
    if A.ndim != 2 or b.shape != (A.shape[0],) or b.size == 0:
        raise ValueError(
            f"A has shape {A.shape} and b has shape {b.shape}: A must have a row, of "
            "at least one, for each label in b"
        )
    A, b = sparse.csr_matrix(A, dtype=np.float64), b.astype(np.float64)
    if not (np.isfinite(A.data).all() and np.isfinite(b).all()):
        raise ValueError(
            "A or b holds NaN or infinite numbers: svmlight files hold finite ones; "
            "remove or fill them in first"
        )
    if not A.has_canonical_format:
        A = A.copy()  # the caller's matrix stays as it is
        A.sum_duplicates()
    return A, b


def _compressing(path: str | os.PathLike, file):
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending == ".gz":
        return gzip.GzipFile("", "wb", 6, file, mtime=0)
    if ending == ".bz2":
        return bz2.BZ2File(file, "wb")
    if ending == ".xz":
        return lzma.LZMAFile(file, "wb", preset=1)  # preset 6: 8x the time for a fifth less
    return nullcontext(file)


def _rows_as_text(A: sparse.csr_matrix, b: np.ndarray, start: int, stop: int) -> bytes:
    first, last = A.indptr[start], A.indptr[stop]
    pairs = zip((A.indices[first:last] + 1).tolist(), A.data[first:last].tolist(), strict=True)
    tokens = list(map(" %d:%r".__mod__, pairs))
    bounds = (A.indptr[start : stop + 1] - first).tolist()
    lines = [
        f"{label!r}{''.join(tokens[i:j])}\n"
        for label, (i, j) in zip(b[start:stop].tolist(), pairwise(bounds), strict=True)
    ]
    # repr writes whole numbers as 1.0
    return "".join(lines).replace(".0 ", " ").replace(".0\n", "\n").encode("ascii")
