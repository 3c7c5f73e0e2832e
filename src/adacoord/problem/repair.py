"""Feasible dual points: the sum of an intercept's constraint made 0 within the domain.

On data in blocks of rows, :func:`repaired` takes the same steps on parts of the vectors, by who has
the rows: one vector beside the point that is made, and none for the ends of the domain (a store of
50 columns: 12 vectors of n numbers at a look, 9 with this).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.summation import UNIT
from .multiclass import balance
from .row_sums import sum_and_size

if TYPE_CHECKING:
    from .loss import Loss
    from .problem import Problem


def balanced(problem: Problem, y: np.ndarray) -> np.ndarray:
    """Make sum_i w_i y_i = 0 without leaving the domain, which always contains 0.

    Each row gives in proportion to its room, the distance to the nearer end of its domain:
    rows strictly inside can move at (to first order) no cost, rows at an end cannot.  Where
    there is not enough room, the heavier of the positive and the negative part is scaled.
    """
    w = problem.weights
    if problem.loss.simplex:
        return balance(y, problem.b, np.ones(problem.n) if w is None else w)
    if problem.loss.blocks:
        from ..kernels.classes import centre_rows

        mass = float(problem.n if w is None else w.sum())
        y, mean = np.array(y, dtype=np.float64, order="C"), np.empty(y.shape[1])
        for _ in range(3):  # as below; there are no ends
            centre_rows(y, w, mass, mean)
        return y
    total, size = sum_and_size(y if w is None else w * y)
    if total == 0.0:  # as where dual methods start
        return y
    lo, hi = problem._ends
    room: Any
    if endless(lo, hi):
        room, bounded = 1.0, False
    elif np.ndim(lo) == np.ndim(hi) == 0 and hi - lo < np.inf:
        room, bounded = np.minimum(y - lo, hi - y), True
    else:
        room = np.minimum(y - lo, hi - y)
        free = room == np.inf
        bounded = not free.all()
        room[free] = 1.0
    # Three times: the first sum may be of large numbers, and D is off by c times what is left.
    if not bounded:
        movable = float(problem.n if w is None else w.sum())
    else:
        movable = float(np.sum(room if w is None else w * room))
    given = y
    for _ in range(3):
        # what is below the rounding of the sum would be counted as that (:mod:`.rounding`)
        if abs(total) <= UNIT * size or movable == 0.0 or (bounded and abs(total) > movable):
            break
        step = (total / movable) * room
        y = y - step if y is given else np.subtract(y, step, out=y)
        if bounded:
            y = np.minimum(np.maximum(y, lo, out=y), hi, out=y)
        total, size = sum_and_size(y if w is None else w * y)
    if total == 0.0:
        return y
    up = 0.5 * (size + abs(total))  # of the heavier part
    share = 1.0 - abs(total) / up
    if share == 1.0:  # rounding: less than the last digit
        return y
    return np.where(y > 0.0 if total > 0.0 else y < 0.0, y * share, y)


def endless(lo: Any, hi: Any) -> bool:
    """Whether these are the ends of all numbers, and not some for each row."""
    return isinstance(lo, float) and isinstance(hi, float) and hi == -lo == np.inf


def repaired(problem: Problem, y: np.ndarray) -> np.ndarray:
    """A copy of ``y`` in the domain of the conjugates, and balanced for the intercept."""
    weights = () if problem.weights is None else (problem.weights,)
    matrix, loss, b, out = problem.matrix, problem.loss, problem.b, np.empty(problem.n)
    if not problem.intercept:
        matrix.rowwise(_clip, loss, rows=(y, b, out))
        idle = problem._idle_rows
        if idle.size:
            z = np.zeros(idle.size) if problem.offset is None else problem.offset[idle]
            out[idle] = loss.derivative(z, b[idle])
        return out
    room = np.empty(problem.n)
    matrix.rowwise(_clip, loss, rows=(y, b, out))
    movable, bounded = matrix.rowwise(_measure, loss, rows=(out, b, room, *weights))
    for _ in range(3):
        total = matrix.rowwise(_sum, rows=(out, *weights))
        if total == 0.0 or movable == 0.0 or (bounded and abs(total) > movable):
            break
        matrix.rowwise(_shift, loss, total / movable, rows=(out, b, room))
    up, down = matrix.rowwise(_sides, rows=(out, *weights))
    if up != down:
        matrix.rowwise(_scale, *((down / up, 1.0) if up > down else (1.0, up / down)), rows=(out,))
    return out


def _clip(loss: Loss, y: np.ndarray, b: np.ndarray, out: np.ndarray) -> float:
    lo, hi = loss._ends(b)
    np.minimum(np.maximum(y, lo), hi, out=out)
    return 0.0


def _measure(
    loss: Loss, y: np.ndarray, b: np.ndarray, room: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, int]:
    """room = the distance to the nearer end, 1 where there is none; its sum, and how many have."""
    lo, hi = loss._ends(b)
    np.minimum(y - lo, hi - y, out=room)
    endless = room == np.inf
    room[endless] = 1.0
    return _sum(room, weights), int(room.size - np.count_nonzero(endless))


def _sum(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    return float((values if weights is None else weights * values).sum())


def _shift(loss: Loss, share: float, y: np.ndarray, b: np.ndarray, room: np.ndarray) -> float:
    y -= share * room
    return _clip(loss, y, b, y)


def _sides(y: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    weighted = y if weights is None else weights * y
    return float(np.maximum(weighted, 0.0).sum()), -float(np.minimum(weighted, 0.0).sum())


def _scale(above: float, below: float, y: np.ndarray) -> float:
    y *= np.where(y > 0.0, above, below)
    return 0.0
