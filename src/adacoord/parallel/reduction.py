"""Sums of what blocks gave: pairwise, in the order of the blocks, the same bits whoever made them.

The tree of additions hangs on the number of parts alone, and rounds like its depth, log2 K.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def fold(parts: Iterable[Any]) -> Any:
    """The sum of ``parts`` (numbers, arrays, or tuples of them); at most log2 K are held."""
    held: list[tuple[int, Any]] = []  # sums, and of how many parts each
    for part in parts:
        count = 1
        while held and held[-1][0] == count:
            part, count = _add(held.pop()[1], part), 2 * count
        held.append((count, part))
    if not held:
        raise ValueError("there is no part to add up: the data have no block")
    total = held.pop()[1]
    while held:
        total = _add(held.pop()[1], total)
    return total


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, tuple):
        return tuple(_add(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, np.ndarray) and left.flags.owndata and left.flags.writeable:
        left += right  # a sum of ours, or what a function made for us; not so from other processes
        return left
    return left + right
