"""From data of any kind to a store, some rows at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Any

import numpy as np

from .arrays import ARRAYS, array_chunks
from .chunks import CHUNK_BYTES, Chunk
from .store import Store, open_store
from .storing import writing_store
from .svmlight import read_chunks
from .svmlight_text import compression
from .tables import CSV, PARQUET, ending, features_beside, open_table


def convert(
    source: str | os.PathLike | Iterable[tuple[Any, Any]],
    store: str | os.PathLike,
    *,
    target: str | os.PathLike | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    n_jobs: int | None = None,
    force: bool = False,
    progress: Callable[[int, float | None], None] | None = None,
) -> Store:
    """Make a store of a file, or of chunks of rows, in bounded memory.

    Parameters
    ----------
    source : path, or iterable of (X, y) pairs
        A file that ends in ``.npy`` (dense rows), ``.npz`` (a CSR matrix by
        ``scipy.sparse.save_npz``), ``.csv`` or ``.tsv`` (columns of numbers under their names),
        ``.parquet`` or ``.pq`` (the same; the extra ``tables``); any other is svmlight text.  Text
        may be compressed.  Or pairs of rows, dense or sparse, and their targets: ``[(A, b)]`` for
        arrays.
    store : path
        The folder to make.  It is there whole, or not at all.
    target : str or path, optional
        What holds the targets: the name of a column of a table, or for ``.npy`` and ``.npz`` the
        ``.npy`` file with them.  The others hold their targets themselves.
    n_features : int, optional
        Number of columns of svmlight text; by default the largest index in it.
    zero_based : bool, default False
        Whether the first column of svmlight text has index 0 instead of 1.
    n_jobs : int, optional
        Threads that parse svmlight text; the store is the same.
    force : bool, default False
        Replace a store that stands there.
    progress : callable, optional
        Called after each chunk with the number of rows written, and the part of the whole that
        has been read (None where that is not known).

    Returns
    -------
    Store

    Raises
    ------
    ValueError
        For data that are not finite real numbers, do not fit together, or cannot be read.

    Notes
    -----
    Memory is bounded by the longest row, line or pair given, and some 150 MB.  Numbers are stored
    as float32 if they are, else as float64.
    """
    # The folder first: what is wrong with it is said before the work.
    with (
        writing_store(store, force=force) as writer,
        closing(
            _chunks(source, target, n_features=n_features, zero_based=zero_based, n_jobs=n_jobs)
        ) as chunks,
    ):
        for chunk in chunks:
            writer.append(chunk.X, chunk.y)
            if progress is not None:
                progress(writer.rows, chunk.done)
    return open_store(store)


def _chunks(source: Any, target: Any, **options: Any) -> Generator[Chunk]:
    """The rows of a source; ``options`` are those of svmlight text."""
    if not isinstance(source, str | os.PathLike):
        check_unused("pairs", target=target, **options)
        return _pairs(source)
    kind = ending(source)
    if kind in (*ARRAYS, *CSV, *PARQUET):
        check_unused(f"{kind} files", **options)
        if kind in ARRAYS:
            if target is None:
                raise ValueError(
                    f"target=None: {os.fspath(source)} holds no targets; name the .npy file that "
                    "does (--target on the command line)"
                )
            return array_chunks(source, target)
        table = open_table(source, math.inf)
        return table.chunks(features_beside(table, target), target)
    check_unused("svmlight files", target=target)
    return _text(source, **options)


def check_unused(what: str, **options: Any) -> None:
    """Refuse options that data of a kind do not have."""
    for option, value in options.items():
        if value:
            raise ValueError(f"{option}={value!r}: {what} have no use for it; leave it out")


def _pairs(source: Iterable[tuple[Any, Any]]) -> Generator[Chunk]:
    width = None
    for pair in source:
        try:
            X, y = pair
            n, d = np.shape(X)
        except (TypeError, ValueError):
            raise ValueError(
                f"source gives a {type(pair).__name__}, and not a pair of rows X (with two "
                "dimensions) and targets y; give [(A, b)] for arrays"
            ) from None
        if width is not None and d != width and n:
            raise ValueError(
                f"source gives rows of {d} columns after rows of {width}; give all chunks the same "
                "columns"
            )
        width = d
        yield Chunk(X, y, None)


def _text(path: str | os.PathLike, **options: Any) -> Generator[Chunk]:
    size = None if compression(path) else os.stat(path).st_size
    chunks = read_chunks(path, chunk_bytes=CHUNK_BYTES, **options)
    with closing(chunks):
        for count, (X, y) in enumerate(chunks, 1):
            yield Chunk(X, y, min(count * CHUNK_BYTES / size, 1.0) if size else None)
