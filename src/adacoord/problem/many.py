"""Certificates of many points of one problem under many penalties, or targets, from the data.

What :meth:`Problem.primal`, ``feasible_dual`` and ``bound`` say of each, with the products of A by
all points at once: BLAS takes them as matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .problem import Problem
from .rounding import TOL

#: Numbers in the block of predictions held at a time (32 MB).
BLOCK = 2**22


class Certificate(NamedTuple):
    """P(x, c), a feasible dual point, and the bound on P* that it proves."""

    primal: float
    y: np.ndarray
    dual: float


def certificates(
    problems: Sequence[Problem], X: np.ndarray, c: np.ndarray, tol: float = TOL
) -> Iterator[Certificate]:
    """Of (X_k, c_k) for each of the problems, which differ in penalty and targets alone.

    The dual points are the slopes of the (smooth) losses there, made feasible.
    """
    step = max(1, BLOCK // problems[0].n) if problems else 1
    for first in range(0, len(problems), step):
        part = slice(first, first + step)
        yield from _block(problems[part], X[part], c[part], tol)


def _block(
    problems: Sequence[Problem], X: np.ndarray, c: np.ndarray, tol: float
) -> Iterator[Certificate]:
    any_of = problems[0]
    # a row for each problem: of columns every operation would read the others with them
    Z = np.ascontiguousarray(any_of.matrix.dot(np.ascontiguousarray(X).T).T)
    Z += c[:, None]
    # memory from the system takes as long as what is written there: one block where that will do
    Y = np.empty_like(Z) if any_of.loss.unbounded else Z
    primal = np.empty(len(X))
    for k, (problem, z) in enumerate(zip(problems, Z, strict=True)):
        primal[k] = problem._primal_at(z, X[k])
        Y[k] = problem._repaired(problem.loss.derivative(z, problem.b))
    U = any_of.average(Y.T)
    for k, problem in enumerate(problems):
        y, u = problem._scaled(Y[k], U[:, k])
        dual, z = problem._dual(y, u), None if Y is Z else Z[k]
        bound = problem.bound(X[k], float(c[k]), primal[k], y, u, dual, z, tol, len(X))
        yield Certificate(float(primal[k]), y, bound)
