"""A problem in a few plain facts: whether another one is the same, and if not, in what.

Numbers stand as they are; arrays are represented by their SHA-256.  Data in blocks of rows are
digested where they are, block by block, by whoever works on them (:mod:`adacoord.parallel`).
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..data.matrix import Matrix
from .column_penalty import ColumnPenalty
from .group_penalty import GroupPenalty
from .penalties import Penalty
from .problem import Problem

#: What users call an attribute of a problem.
_NAMES = {"weights": "sample_weight"}


def fingerprint(problem: Problem) -> dict[str, Any]:
    """The facts, by name: of A its type, layout and digest, then all that was given."""
    facts: dict[str, Any] = {}
    for name, value in vars(problem).items():
        if name.startswith("_") or isinstance(getattr(Problem, name, None), cached_property):
            continue  # made of the rest
        if isinstance(value, Matrix):
            facts |= _facts_of(value)
        elif isinstance(value, (Penalty, ColumnPenalty, GroupPenalty)):
            facts |= {given: plain(weight) for given, weight in value.given.items()}
        elif is_dataclass(value):
            facts[name] = getattr(value, "name", type(value).__name__)
            facts |= {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        else:
            facts[_NAMES.get(name, name)] = plain(value)
    return facts


def plain(value: Any) -> Any:
    """A number, a word or None as JSON gives it back; of all else the digest."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    return digest(np.asarray(value))


def _facts_of(matrix: Matrix) -> dict[str, Any]:
    held = "columns" if matrix.by_columns else "blocks" if matrix.blocked else "rows"
    return {
        "A": digest_matrix(matrix),
        "dtype": matrix.dtype.name,
        "layout": f"{'dense' if matrix.is_dense else 'sparse'} {held}",
    }


def digest(*arrays: np.ndarray | None) -> str:
    """The SHA-256 of arrays: of their types, shapes and numbers."""
    total = hashlib.sha256()
    for array in arrays:
        if array is None:
            total.update(b"None;")
            continue
        array = np.asarray(array)
        if array.dtype.kind == "O":  # labels of groups, say
            array = array.astype(str)
        array = np.ascontiguousarray(array)
        total.update(f"{array.dtype.str}{array.shape};".encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def digest_matrix(matrix: Matrix) -> str:
    """The SHA-256 of the data as they are held, in one pass."""
    if matrix.blocked:
        each = list(matrix.map(_digest_block))  # type: ignore[attr-defined]
        return digest(matrix.bounds, np.array(each))  # type: ignore[attr-defined]
    return _digest_block(matrix)


def _digest_block(block: Matrix) -> str:
    return digest(*(block.columns.arrays if block.by_columns else block.arrays))
