"""Dask collections as blocks of rows: arrays, frames of numbers, lists of delayed partitions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..data.blocks import BlockMatrix, check_blocks
from ..data.matrix import Matrix, as_matrix
from .config import asked, is_client
from .dask import Cluster
from .executors import Serial


@dataclass(frozen=True, eq=False)
class Delayed:
    """A partition of a collection, computed where it is worked on."""

    part: Any
    name: str
    in_memory = False
    scattered = True  # over the workers of a cluster

    @property
    def delayed(self) -> Any:
        """Its rows, lazily."""
        import dask

        return dask.delayed(_rows)(self.part, self.name)

    @property
    def whole(self) -> bool:
        """Whether one worker can compute it by itself: nothing of it is held by the cluster."""
        from distributed import futures_of

        return not futures_of(self.part)

    def load(self) -> Matrix:
        return self.delayed.compute(scheduler="synchronous")


def is_collection(X: Any) -> bool:
    """Whether X is a Dask array or dataframe, or a list of delayed partitions."""
    if isinstance(X, (list, tuple)):
        return bool(X) and all(map(_is_delayed, X))
    return _of_dask(X) and (hasattr(X, "to_delayed") or _is_delayed(X))


def of_collection(X: Any) -> BlockMatrix:
    """A Dask array, dataframe or list of delayed partitions as blocks of rows.

    They are computed once and stay on the cluster (:func:`client`); without one each is computed
    when it is worked on.  Partitions without a row are left out.
    """
    cluster, parts = client(), _partitions(X)
    pieces = [Delayed(part, f"partition {k} of X") for k, part in enumerate(parts)]
    executor: Any = Serial()
    if cluster is not None:
        executor = Cluster(cluster)
        executor.hold(pieces)
    found = list(executor.map(_described, [(piece,) for piece in pieces]))
    kept = [(piece, of) for piece, of in zip(pieces, found, strict=True) if of[0][0] > 0]
    if not kept:
        raise ValueError("X has no rows: it needs at least one")
    (_, width), _, dense, _ = kept[0][1]
    for piece, ((_, columns), _, is_dense, _) in kept:
        if (columns, is_dense) != (width, dense):
            raise ValueError(
                f"{piece.name} has {columns} {_kind(is_dense)} columns, and {kept[0][0].name} "
                f"{width} {_kind(dense)} ones: all partitions must be alike"
            )
    bounds = np.cumsum([0, *(of[0][0] for _, of in kept)]).astype(np.int64)
    dtype = np.result_type(*(np.dtype(of[1]) for _, of in kept))
    entries = sum(of[3] for _, of in kept)
    matrix = BlockMatrix(
        [piece for piece, _ in kept], bounds, width, dtype, dense, entries, executor
    )
    check_blocks(matrix)
    return matrix


def as_local(values: Any) -> Any:
    """Targets or weights of a collection as an array on the driver; others as they are."""
    if isinstance(values, (list, tuple)) and is_collection(values):
        return np.concatenate([np.asarray(_plain(part)) for part in _computed(list(values))])
    if is_collection(values):
        return np.asarray(_plain(_computed([values])[0]))
    return values


def client() -> Any:
    """The client that collections are computed by, or None.

    That of :func:`~adacoord.config_context`, or else Dask's default one.
    """
    executor = asked().executor
    if executor is not None:
        return executor if is_client(executor) else getattr(executor, "client", None)
    with suppress(ImportError, ValueError):
        from distributed import get_client

        return get_client()
    return None


def _computed(lazy: list[Any]) -> list[Any]:
    import dask

    cluster = client()
    if cluster is None:
        return list(dask.compute(*lazy))
    return cluster.gather(cluster.compute(lazy))


def _of_dask(X: Any) -> bool:
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr")


def _is_delayed(X: Any) -> bool:
    if not _of_dask(X):
        return False
    from dask.delayed import Delayed as DaskDelayed

    return isinstance(X, DaskDelayed)


def _partitions(X: Any) -> list[Any]:
    if isinstance(X, (list, tuple)):
        return list(X)
    if _is_delayed(X):
        return [X]
    dimensions = getattr(X, "ndim", None)
    if dimensions != 2:
        raise ValueError(
            f"X is a {type(X).__module__.split('.')[1]} {type(X).__name__} "
            + (f"of {dimensions} dimensions" if dimensions else "without rows and columns")
            + ": it must have two, rows by columns"
        )
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: X.shape[1]})
    else:
        _check_columns(X)
    return list(np.ravel(X.to_delayed()))


def _check_columns(frame: Any) -> None:
    for name, dtype in frame.dtypes.items():
        if not _numeric(dtype):
            raise ValueError(
                f"X has the column {name!r} of dtype {dtype}: columns must be real numbers; encode "
                "it as numbers, or leave it out"
            )


def _numeric(dtype: Any) -> bool:
    return getattr(getattr(dtype, "numpy_dtype", dtype), "kind", "O") in "fiub"


def _described(block: Matrix) -> tuple[tuple[int, int], str, bool, int]:
    """(shape, dtype, dense, stored entries)."""
    return block.shape, block.dtype.str, block.is_dense, block.nnz


def _kind(dense: bool) -> str:
    return "dense" if dense else "sparse"


# ---- on workers ----------------------------------------------------------------------------------


def _rows(content: Any, name: str) -> Matrix:
    """The rows of what Dask computed."""
    content = _plain(content)
    shape = np.shape(content)
    if len(shape) == 2 and shape[0] == 0:  # filters leave such partitions
        return Matrix((0, shape[1]), np.zeros(1, dtype=np.uint64), None, np.zeros(0))
    if isinstance(content, np.ndarray):  # frames are columns, and would be held twice
        content = np.ascontiguousarray(content)
    elif sparse.issparse(content):
        content = content.tocsr()
    return as_matrix(content, name)


def _plain(content: Any) -> Any:
    """An array of a frame or a series; missing values are NaN."""
    if not hasattr(content, "to_numpy"):
        return content
    dtypes = list(content.dtypes) if content.ndim == 2 else [content.dtype]
    if not dtypes or not all(map(_numeric, dtypes)):
        return content.to_numpy()
    plain = [getattr(dtype, "numpy_dtype", dtype) for dtype in dtypes]
    common = np.result_type(*plain)
    if content.ndim == 2:
        return content.to_numpy(dtype=common if common.kind == "f" else np.float64, na_value=np.nan)
    missing = plain != dtypes and bool(content.isna().any())
    return content.to_numpy(dtype=np.float64 if missing else common, na_value=np.nan)
