r"""Paths of the squared loss on the Gram matrix: many points in one call, each certified.

The moments of the rows (:mod:`adacoord.linalg.moments`) say all that least squares asks: P, the
correlations of the residual, and with them a dual point and its D.  They say it up to about
:math:`\epsilon (|b| + \sum_j |x_j| |a_j|)^2/n`; what is more than TRUSTED of the tolerance is not
believed but judged from the data.  Neither are points at which the data would say something else,
because the means of their columns hide as much from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..linalg.blas import one_thread
from ..linalg.moments import LeastSquares, fits, means, moments, rounding
from ..problem import Problem
from ..problem.penalties import Penalty

#: The share of tol P that rounding may have in a certificate from the Gram matrix; of P, by a bound
#: that is ten times the error or more; and of P as it comes from the data, by an estimate.
TRUSTED, BOUND, SAME = 0.01, 1e-9, 1e-10
#: The relative gap that the kernel goes for beyond ``tol``, where it is near: it costs next to
#: nothing (100 points of 5,000 x 300: 1.5 ms to 1e-4, 2.7 ms to 1e-13), and so no choice among the
#: points hangs on what was left undone.
GOAL = 1e-13
#: Multiply-adds of a call (some tenths of a second), after which Ctrl-C is heard.
BUDGET = 1e9
#: Matrices of d x d numbers that a path holds: the moments, G, its part that is worked on, and a
#: factor of that.
MATRICES = 4
#: Columns for which a point of a path pays, dense; pairs of entries, sparse, in units of the
#: entries (5 passes over the data per point, of 10 times the cost of a multiply-add of BLAS).
COLUMNS_PER_POINT, PAIRS_PER_POINT = 50, 2.0


def possible(problem: Problem) -> bool:
    """Whether moments say all there is to know, and fit (``linalg.moments.LARGEST``)."""
    simple = problem.penalty.uniform and not problem.penalty.grouped
    simple = simple and problem.offset is None and problem.loss.name == "squared"
    return simple and fits(problem.d, MATRICES)


def pays(problem: Problem, points: int) -> bool:
    """Whether a path of so many points is expected to be cheaper with the Gram matrix."""
    matrix = problem.matrix
    if matrix.is_dense:
        return problem.d <= COLUMNS_PER_POINT * points
    pairs = float(np.sum(np.square(matrix.row_sizes, dtype=np.float64)))
    return pairs + problem.d**2 <= PAIRS_PER_POINT * points * matrix.nnz


def least_squares(problem: Problem) -> LeastSquares:
    """The problem's loss, by its moments."""
    with one_thread():
        shift = np.zeros(problem.d + 1)
        if problem.intercept:
            shift = means(problem.matrix, problem.b, problem.weights)
        found = moments(problem.matrix, problem.b, problem.weights, shift)
        return found.least_squares(problem.intercept, problem.n)


@dataclass(frozen=True)
class GramPath:
    """Points of a path: arrays with one entry (``X``: a row) per point.

    ``dual`` is D less what rounding may hide; ``trusted`` says whether that is little enough.
    """

    X: np.ndarray
    c: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    relative_gap: np.ndarray
    passes: np.ndarray
    operations: np.ndarray
    trusted: np.ndarray


def gram_path(
    loss: LeastSquares,
    penalties: list[Penalty],
    tol: float,
    max_passes: int,
    x: np.ndarray | None = None,
    between: Callable[[], object] = lambda: None,
) -> GramPath:
    """The solutions under ``penalties`` in turn, each from the one before, and their certificates.

    ``x`` is where the first begins; ``between`` is called now and then, and may raise.
    """
    from ..kernels.gram_path import gram_certificates, gram_path

    tol = float(tol)  # of another type it would compile the kernel once more
    points, d = len(penalties), loss.cross.size
    first, second = (np.array(v) for v in zip(*(p.arguments[:2] for p in penalties), strict=True))
    *_, positive = penalties[0].arguments
    X, passes, work = np.zeros((points, d)), np.zeros(points, dtype=np.int64), np.zeros(points)
    last = np.zeros(d) if x is None else np.array(x, dtype=np.float64)
    unit = rounding(loss.rows)
    noise = unit * float(loss.sizes[-1]) ** 2
    done = 0
    while done < points:
        between()
        done += gram_path(
            loss.gram,
            loss.cross,
            loss.square,
            loss.moving,
            first[done:],
            second[done:],
            positive,
            tol,
            min(GOAL, tol),
            noise,
            max_passes,
            BUDGET,
            last,
            X[done:],
            passes[done:],
            work[done:],
        )
    primal, dual, doubt = np.empty(points), np.empty(points), np.empty(points)
    gram_certificates(
        loss.gram,
        loss.cross,
        loss.square,
        first,
        second,
        positive,
        X,
        loss.sizes,
        unit,
        primal,
        dual,
        doubt,
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        dual = np.minimum(primal, dual) - doubt
        scale = np.maximum(np.maximum(np.abs(primal), np.abs(dual)), 0.5e-12 * loss.square)
        relative = np.where(scale > 0.0, (primal - dual) / scale, np.inf)
        hidden = np.abs(X) @ np.abs(loss.means) + abs(loss.target_mean)
        hidden = np.finfo(np.float64).eps * hidden * np.sqrt(2.0 * np.maximum(primal, 0.0))
        believed = (doubt <= min(TRUSTED * tol, BOUND) * primal) & (hidden <= SAME * primal)
    return GramPath(
        X=X,
        c=loss.intercepts(X),
        primal=primal,
        dual=dual,
        relative_gap=relative,
        passes=passes,
        operations=work.astype(np.int64),
        trusted=believed,
    )
