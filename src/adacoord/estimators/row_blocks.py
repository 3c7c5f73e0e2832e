"""Estimators on data in blocks of rows: stores, pairs (X, y), Dask collections.

``fit`` takes them where it takes an array; targets and weights come to the driver, rows stay where
they are.  Predictions on Dask collections stay lazy.  Nothing of a cluster is kept in an estimator.
"""

from __future__ import annotations

from copy import copy
from functools import wraps
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from ..data.blocks import BlockMatrix, as_blocks, gives_pairs
from ..parallel.collections import as_local, is_collection


def in_rows(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """X as blocks of rows, if it is something of that kind; y and the weights as arrays then."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return X, y, sample_weight
    collection = is_collection(X)
    if isinstance(X, BlockMatrix) or (hasattr(X, "__array__") and not collection):
        return X, y, sample_weight
    found = as_blocks(X)
    if found is None:
        return X, y, sample_weight
    matrix, targets = found
    if collection and hasattr(X, "columns"):
        vars(matrix)["names"] = np.asarray(X.columns, dtype=object)
    return matrix, as_local(targets if y is None else y), as_local(sample_weight)


def refuse_blocks(estimator: Any, X: Any) -> None:
    """Refuse blocks of rows where those of a fold have to be picked."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return
    if is_collection(X) or hasattr(X, "bounds") or gives_pairs(X):
        name = type(estimator).__name__
        raise ValueError(
            f"X={type(X).__name__}: {name} picks the rows of folds, and needs them all in memory; "
            f"choose the penalty by {name} on a sample of rows in an array, and fit "
            f"{name.removesuffix('CV')} with it on all of them"
        )


def checked_targets(estimator: Any, X: BlockMatrix, y: Any, how: dict) -> np.ndarray:
    """What scikit-learn checks of X and y, of blocks: notes the features, gives y."""
    estimator.n_features_in_ = X.shape[1]
    vars(estimator).pop("feature_names_in_", None)
    names = vars(X).get("names")
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = names
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    if how.get("multi_output"):
        y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
    else:
        y = column_or_1d(y, warn=True)
        if how.get("y_numeric"):
            y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
    check_consistent_length(y, np.empty((X.shape[0], 0)))
    return y


def lazy(method):
    """A prediction that stays lazy on Dask collections, and goes block by block over others."""
    name = method.__name__

    @wraps(method)
    def predicted(self, X, *args):
        if isinstance(X, np.ndarray) or sparse.issparse(X):
            return method(self, X, *args)
        if is_collection(X):
            return _lazily(self, name, X)
        if hasattr(X, "read") and hasattr(X, "bounds"):  # a store
            parts = (X.read(k) for k in range(len(X.bounds) - 1))
            return np.concatenate([method(self, part, *args) for part in parts])
        return method(self, X, *args)

    return predicted


def _lazily(estimator: Any, name: str, X: Any) -> Any:
    """A Dask array of predictions, a block for each block of X."""
    import dask
    import dask.array as da

    small = copy(estimator)
    for heavy in ("dual_coef_", "history_"):
        vars(small).pop(heavy, None)
    example = np.asarray(_apply(np.zeros((1, estimator.n_features_in_)), small, name))
    none = example[:0]
    if not hasattr(X, "ndim"):
        parts = [
            da.from_delayed(
                dask.delayed(_apply)(part, small, name),
                shape=(np.nan, *example.shape[1:]),
                meta=none,
            )
            for part in (X if isinstance(X, (list, tuple)) else [X])
        ]
        return da.concatenate(parts)
    _check_features(estimator, X)
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    X = X.rechunk({1: X.shape[1]})
    how: dict[str, Any] = {"drop_axis": 1}
    if example.ndim == 2:
        how = {"chunks": (X.chunks[0], (example.shape[1],))}
    return X.map_blocks(_apply, small, name, meta=none, **how)


def _check_features(estimator: Any, X: Any) -> None:
    """What scikit-learn checks of the columns, before anything is computed."""
    name, known = type(estimator).__name__, getattr(estimator, "feature_names_in_", None)
    if X.ndim != 2 or X.shape[1] != estimator.n_features_in_:
        seen = f"{X.shape[1]} features" if X.ndim == 2 else f"{X.ndim} dimensions"
        raise ValueError(
            f"X has {seen}, but {name} is expecting {estimator.n_features_in_} features as input"
        )
    if known is not None and hasattr(X, "columns") and list(X.columns) != list(known):
        raise ValueError(
            f"X has the columns {list(X.columns)}, and {name} was fitted with {list(known)}: give "
            "them under these names, in this order"
        )


def _apply(block: Any, estimator: Any, name: str) -> np.ndarray:
    rows = block.to_numpy() if hasattr(block, "to_numpy") else block
    if np.shape(rows)[0] == 0:  # filters leave such partitions
        return _apply(np.zeros((1, estimator.n_features_in_)), estimator, name)[:0]
    if hasattr(estimator, "feature_names_in_"):  # columns are in their order
        estimator = copy(estimator)
        del estimator.feature_names_in_
    return np.asarray(getattr(estimator, name)(rows))
