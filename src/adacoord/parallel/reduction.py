"""Sums of what blocks gave: pairwise, in the order of the blocks, the same bits whoever made them.

The tree of additions hangs on the number of parts alone, and rounds like its depth, log2 K.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any

import numpy as np


class Sum:
    """The sum of parts (numbers, arrays, or tuples of them) that threads give in any order.

    Whoever gives the second half of a sum makes it; where parts come in order, log2 K are held.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], Any] = {}  # by (level, place): sums of 2^level parts
        self._lock = Lock()

    def give(self, k: int, part: Any) -> None:
        """The k-th part."""
        level = 0
        while True:
            with self._lock:
                if (level, k ^ 1) not in self._held:
                    self._held[level, k] = part
                    return
                other = self._held.pop((level, k ^ 1))
            part = _add(other, part) if k & 1 else _add(part, other)
            level, k = level + 1, k >> 1

    def total(self) -> Any:
        """Of all parts, once all were given."""
        if not self._held:
            raise ValueError("there is no part to add up: the data have no block")
        last, *others = (self._held[place] for place in sorted(self._held))  # the shortest first
        for other in others:
            last = _add(other, last)
        return last


def fold(parts: Iterable[Any]) -> Any:
    """The sum of ``parts`` that come in order."""
    total = Sum()
    for k, part in enumerate(parts):
        total.give(k, part)
    return total.total()


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, tuple):
        return tuple(_add(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, np.ndarray) and left.flags.owndata and left.flags.writeable:
        left += right  # a sum of ours, or what a function made for us; not so from other processes
        return left
    return left + right
