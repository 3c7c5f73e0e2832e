r"""Least squares under x >= 0 without a penalty, which no solver of a certified gap takes.

Problem   min 1/2 sum_i w_i (a_i'x + c - b_i)^2 over x >= 0 and c
Reduced   to the triangle R of sqrt(w) [1, A - m, b - m_b] = Q R, m being the means: rows are many,
          and columns stay as they are.  R is made of blocks of rows, so that sparse and tall data
          need no dense copy; its first row and column are the intercept's, and go.
Solved    by the active sets of Lawson and Hanson (SciPy's), with columns scaled to length 1: in all
          units the same.  Columns without length (of zeros, constant beside an intercept) get 0.

There is no duality gap, and nothing is certified: ``dual``, ``gap`` and ``relative_gap`` are NaN.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from scipy.optimize import nnls

from .._blas import one_thread
from .._solve import Result
from ..columns import as_scipy
from ..monitor import History
from ..problem import Problem

#: Numbers that the triangle may have (32 MB), and those of a block of rows.
LARGEST, BLOCK = 2**22, 2**22
#: Steps of the active sets, in units of the columns; SciPy's own limit is 3.
STEPS = 10


def applies(problem: Problem, solver: str) -> bool:
    """Whether it is for :func:`solve_nonnegative`."""
    return (solver == "auto" and problem.loss.name == "squared" and problem.penalty.positive
            and not problem.has_certificate)


def solve_nonnegative(problem: Problem) -> Result:
    """The least squares of a problem with x >= 0 and no penalty."""
    n, d = problem.matrix.shape
    if min(n, d) * d > LARGEST:
        raise ValueError(
            f"X has shape {(n, d)}: without a penalty, coefficients of zero or more are found by "
            f"active sets on dense {min(n, d)} x {d} numbers, which is too large; give a small "
            "penalty instead (alpha, l1 or l2 of 1e-8, say)"
        )
    began = perf_counter()
    with one_thread():
        R, means, target_mean = _triangle(problem)
        lengths = np.linalg.norm(R[:, :d], axis=0)
        # what is left of a constant column is the rounding of its mean
        weight = 1.0 if problem.weights is None else float(np.max(problem.weights))
        noise = 8.0 * np.finfo(np.float64).eps * np.sqrt(n * weight) * np.abs(means)
        kept = np.flatnonzero(lengths > noise)
        x, converged = np.zeros(d), True
        if kept.size:
            unit = float(np.linalg.norm(R[:, d])) or 1.0
            try:
                found, _ = nnls(R[:, kept] / lengths[kept], R[:, d] / unit,
                                maxiter=STEPS * kept.size)
                x[kept] = found / lengths[kept] * unit
            except RuntimeError:  # too many steps
                converged = False
    c = target_mean - float(np.sum(means * x)) if problem.intercept else 0.0
    return _result(problem, x, c, converged, perf_counter() - began)


def _triangle(problem: Problem) -> tuple[np.ndarray, np.ndarray, float]:
    """(R without the intercept, the means that were subtracted): of d columns and the targets."""
    n, d = problem.matrix.shape
    A, b = as_scipy(problem.matrix), problem.b
    w = np.ones(n) if problem.weights is None else problem.weights
    means, target_mean = np.zeros(d), 0.0
    if problem.intercept:
        means = problem.matrix.tdot(w) / w.sum()
        target_mean = float(np.sum(w * b) / w.sum())
    first = int(problem.intercept)
    R = np.empty((0, first + d + 1))
    rows = max(d + 2, BLOCK // (d + 2))
    for i in range(0, n, rows):
        part = slice(i, i + rows)
        block = A[part] if problem.matrix.is_dense else A[part].toarray()
        root = np.sqrt(w[part])[:, None]
        columns = [root * (block - means), root * (b[part, None] - target_mean)]
        R = np.vstack([R, np.hstack([root] * first + columns)])
        R = np.linalg.qr(R, mode="r")
    return R[first:, first:], means, target_mean


def _result(problem: Problem, x, c, converged: bool, seconds: float) -> Result:
    primal = problem.primal(x, c)
    history = History()
    history.append(
        passes=1, seconds=seconds, operations=problem.matrix.nnz, primal=primal, dual=np.nan,
        gap=np.nan, relative_gap=np.nan,
    )
    history.freeze()
    return Result(
        x=x, intercept=c, y=problem.loss.derivative(problem.predict(x, c), problem.b),
        primal=primal, dual=np.nan, gap=np.nan, relative_gap=np.nan, converged=converged,
        status="stationary, no certificate" if converged else "max_passes", passes=1,
        seconds=seconds, history=history, solver="nnls",
    )
