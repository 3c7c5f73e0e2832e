"""Data of any kind into memory, as the command line names them.

===================  ===========================================================================
``train.csv``        a table: CSV, ``.tsv`` or Parquet; ``target`` names the column of targets
``X.npy``, ``.npz``  arrays; ``target`` names the ``.npy`` file of targets
a folder             a store, whose rows stay on disk
``-``                standard input: svmlight text, CSV or Parquet, as its content says
another file         svmlight text
``a9a``              no file, but a name of :mod:`adacoord.datasets`
===================  ===========================================================================
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .arrays import ARRAYS, array_chunks
from .chunks import Chunk
from .converting import check_unused
from .standard import STANDARD, as_file
from .store import open_store
from .svmlight import load_svmlight
from .tables import CSV, PARQUET, check_columns, ending, features_beside, listed, open_table

#: What the names of files end in: without one, a name may be that of a data set.
_FILES = (*CSV, *PARQUET, *ARRAYS, ".svm", ".libsvm", ".txt")


@dataclass(frozen=True)
class Data:
    """Rows, and what is known of them.

    Attributes
    ----------
    X : array, sparse matrix or store
    y : the targets: float64, or an object array of words; None where there are none
    columns : the names of the features; None where they have none
    target : the name of the column of targets; None where it has none
    """

    X: Any
    y: np.ndarray | None
    columns: list[str] | None = None
    target: str | None = None


def read_data(
    source: str,
    *,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    known_target: str | None = None,
    targets_needed: bool = True,
    zero_based: bool = False,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Data:
    """Read what ``source`` names.

    Parameters
    ----------
    source : str
        As the module says.
    target : str, optional
        What holds the targets, of a table or of arrays.
    columns : sequence of str, optional
        The columns of a table that are wanted, in this order, by a model that knows them.  By
        default all that are not the target.
    known_target : str, optional
        The column of a table that holds the targets, if there is one of this name and ``target``
        does not say another.
    targets_needed : bool, default True
        Whether a table without targets is refused.
    zero_based, n_jobs : optional
        Of svmlight text, as in :func:`adacoord.io.load_svmlight`.
    verbose : bool, default False
        Show a line of progress of a download.
    """
    text = {"zero_based": zero_based}
    if os.path.isdir(source):
        check_unused("stores", target=target, **text)
        store = open_store(source)
        return Data(store, store.targets)
    if is_name(source):
        from .. import datasets

        check_unused("data sets by name", target=target, **text)
        with _neither(source):
            return Data(*datasets.load(source, verbose=verbose))
    with as_file(source) as path:
        kind = ending(path)
        if kind in (*CSV, *PARQUET):
            check_unused(f"{kind} files", **text)
            return _read_table(path, target, columns, known_target, targets_needed)
        if kind in ARRAYS:
            check_unused(f"{kind} files", **text)
            if target is None and targets_needed:
                raise ValueError(
                    f"{path} holds no targets; name the .npy file that does, with --target"
                )
            return Data(*_joined(path, array_chunks(path, target)))
        check_unused("svmlight files", target=target)
        return Data(*load_svmlight(path, zero_based=zero_based, n_jobs=n_jobs))


def is_name(source: str) -> bool:
    """Whether it can only be the name of a data set: there is no such file."""
    return (
        source != STANDARD
        and source == os.path.basename(source)
        and not os.path.exists(source)
        and ending(source) not in _FILES
    )


@contextmanager
def located(source: str, verbose: bool = False) -> Iterator[str]:
    """The file of a source, for as long as the block; a data set is downloaded if need be."""
    if is_name(source):
        from .. import datasets

        with _neither(source):
            found = datasets.path(source, verbose=verbose)
        yield str(found)
        return
    with as_file(source) as path:
        yield path


@contextmanager
def _neither(source: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error} (nor is there a file {source})") from None


def _read_table(
    path: str,
    target: str | None,
    columns: Sequence[str] | None,
    known_target: str | None,
    targets_needed: bool,
) -> Data:
    table = open_table(path)
    if target is None and (targets_needed or known_target in table.columns):
        target = known_target
    if target is not None or targets_needed:
        features = features_beside(table, target)
    else:
        check_columns(table)
        features = table.columns
    if columns is not None:
        missing = [column for column in columns if column not in features]
        if missing:
            raise ValueError(
                f"{path}: there is no column {missing[0]!r}, which the model was trained on; the "
                f"columns are {listed(table.columns)}"
            )
        features = list(columns)
    X, y = _joined(path, table.chunks(features, target, labels=True))
    if y is not None and y.dtype == object:
        y = _numbers_or_words(path, str(target), y)
    return Data(X, y, features, target)


def _joined(name: str, chunks: Any) -> tuple[Any, np.ndarray | None]:
    """All rows and targets, in memory."""
    with closing(chunks):
        parts: Iterable[Chunk] = list(chunks)
    if not parts:
        raise ValueError(f"{name}: there are no rows; give at least one")
    rows, targets, _ = zip(*parts, strict=True)
    X = sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)
    if targets[0] is None:
        return X, None
    y = np.concatenate(targets)
    return X, y.ravel() if y.dtype == object else y.ravel().astype(np.float64)


def _numbers_or_words(name: str, column: str, y: np.ndarray) -> np.ndarray:
    """Numbers where all are; words are labels."""
    try:
        numbers = y.astype(np.float64)
    except ValueError:
        return y
    odd = np.flatnonzero(~np.isfinite(numbers))
    if odd.size:
        raise ValueError(
            f"{name}: the column {column!r} holds {y[odd[0]]!r} in row {odd[0]} (counted from 0); "
            "targets must be finite: drop such rows"
        )
    return numbers
