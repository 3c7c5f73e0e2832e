"""Targets, weights and points as arrays, or a sentence that says what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.matrix import LARGEST, SMALLEST
from .column_penalty import ColumnPenalty
from .group_penalty import GroupPenalty
from .loss import Loss
from .multiclass import check_codes
from .penalties import Penalty
from .targets import check_matrix


def check_flag(value: Any, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r}: it must be True or False")
    return bool(value)


def check_size(values: np.ndarray, name: str, remedy: str) -> None:
    """Numbers whose squares and products leave float64 are refused: what is shown is the worst."""
    largest = max(values.max(), -values.min())
    if largest > LARGEST:
        i = int(np.argmax(np.abs(values)))
        raise ValueError(
            f"{name} has the value {values[i]:g} at position {i}: numbers beyond {LARGEST:g} "
            f"overflow when they are squared; {remedy}"
        )
    if 0.0 < largest < SMALLEST:
        raise ValueError(
            f"{name} has no value larger than {largest:g}: the squares of such numbers vanish; "
            f"{remedy}"
        )


def as_numbers(values: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:  # ragged lists
        raise ValueError(f"{name} cannot be read as an array of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {array.dtype}: it must hold real numbers")
    return array.astype(np.float64, copy=False)


def as_vector(values: Any, n: int, name: str) -> np.ndarray:
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries: drop those rows, or fill them first")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read as a vector of numbers: {error}") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise ValueError(
            f"{name} has shape {np.shape(values)}: A has {n} rows, so {name} must have shape ({n},)"
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} has dtype {array.dtype}: it must hold real numbers; encode labels as "
            "numbers first"
        )
    array = array.astype(np.float64)  # a copy: the problem must not change with the caller's array
    finite = np.isfinite(array)
    if not finite.all():
        i = int(np.argmin(finite))
        raise ValueError(
            f"{name} has the value {array[i]} at position {i}: every value must be a "
            "finite number; drop or impute missing values"
        )
    return array


def check_targets(b: Any, n: int, loss: Loss) -> np.ndarray:
    if loss.task == "targets":
        return check_matrix(np.asarray(b), n)
    b = as_vector(b, n, "b")
    if loss.task == "classification":
        positive, negative = np.count_nonzero(b == 1.0), np.count_nonzero(b == -1.0)
        if positive + negative < n:
            labels = np.unique(b)
            shown = ", ".join(f"{v:g}" for v in labels[:5]) + (", ..." if labels.size > 5 else "")
            raise ValueError(
                f'b has the labels {shown}: loss="{loss.name}" takes -1 and +1; encode two '
                "classes with numpy.where(b == positive_label, 1, -1)"
            )
        if not (positive and negative):
            raise ValueError(
                f"b has the single label {b[0]:g}: a classifier needs rows of both classes"
            )
        return b
    if loss.task == "multiclass":
        return check_codes(b, loss.name)
    check_size(b, "b", "rescale the targets")
    if loss.task == "count" and b.min() < 0.0:
        raise ValueError(
            f'b has the value {b.min():g}: loss="{loss.name}" takes counts, or other targets of '
            "zero or more"
        )
    if loss.task == "positive" and b.min() < SMALLEST:
        raise ValueError(
            f'b has the value {b.min():g}: loss="{loss.name}" takes targets of more than 0; drop '
            'the rows, or use loss="tweedie", which takes zeros'
        )
    return b


def check_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    w = as_vector(sample_weight, n, "sample_weight")
    if w.min() < 0.0:
        i = int(np.argmin(w))
        raise ValueError(
            f"sample_weight has the value {w[i]:g} at position {i}: weights must be zero or more"
        )
    if not w.any():
        raise ValueError("sample_weight is zero for every row: at least one must be positive")
    check_size(w, "sample_weight", "rescale the weights, and the penalty with them")
    least = np.min(w, where=w > 0.0, initial=np.inf)
    if least < SMALLEST:
        raise ValueError(
            f"sample_weight has the value {least:g} at position {int(np.argmax(w == least))}: a "
            f"weight below {SMALLEST:g} is lost beside the others; use 0 to leave the row out"
        )
    return w


def check_offset(offset: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    if offset is None:
        return None
    if len(shape) == 1:
        array = as_vector(offset, shape[0], "offset")
    else:
        array = as_numbers(offset, "offset").copy()
        if array.shape != shape:
            raise ValueError(
                f"offset has shape {array.shape}: A has {shape[0]} rows and b {shape[1]} classes, "
                f"so offset must have shape {shape}"
            )
        if not np.isfinite(array).all():
            i, k = np.argwhere(~np.isfinite(array))[0]
            raise ValueError(
                f"offset has the value {array[i, k]} at position ({i}, {k}): every value must be "
                "a finite number; drop or impute missing values"
            )
    if array.any():
        check_size(array.ravel(), "offset", "rescale it")
    return array if array.any() else None


def check_penalty(penalty: Penalty | ColumnPenalty | GroupPenalty) -> None:
    for name in ("l1", "l2", "l21") if isinstance(penalty, GroupPenalty) else ("l1", "l2"):
        weights = getattr(penalty, name)
        values: Any = (weights,)
        if not penalty.uniform:  # all are good, or the first that is not
            values = np.ravel(weights)
            values = values[(values != 0.0) & ~((values >= SMALLEST) & (values <= LARGEST))][:1]
        for value in values:
            if value != 0.0 and not SMALLEST <= value <= LARGEST:
                raise ValueError(
                    f"{name}={float(value)!r}: a penalty must be 0 or between {SMALLEST:g} and "
                    f"{LARGEST:g}, so that its products are numbers; rescale the data, or use 0"
                )
