r"""Least squares with l2 on the same rows for several targets: one decomposition for all of them.

With the columns centred by the weights, :math:`x_k = (A^T W A/n + \lambda)^{-1} A^T W b_k/n`; where
rows are fewer than columns, :math:`x_k = A^T \sqrt W (\sqrt W A A^T \sqrt W + n\lambda)^{-1}
\sqrt W b_k`.  The certificates are those of :mod:`adacoord.problem.many`, from the data, for every
target by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..auto.rule import cg_time, choose, newton_time
from ..data.columns import as_scipy
from ..linalg.blas import one_thread
from ..linalg.cholesky import Cholesky
from ..linalg.gram import gram_and_products
from ..problem import Problem
from ..problem.many import certificates
from ..problem.penalties import Penalty
from ..solvers.registry import newton_can
from .monitor import History
from .solve import Result

#: The solver's name in the results: a Newton step on a quadratic is its solution.
NAME = "newton"


def alike(problems: list[Problem]) -> bool:
    """Whether they are of this kind, and a decomposition takes no longer than each by itself."""
    first = problems[0]
    plain = (
        len(problems) > 1
        and first.loss.name == "squared"
        and isinstance(first.penalty, Penalty)
        and first.penalty.quadratic
        and first.penalty.l2 > 0.0
        and first.matrix.is_dense
        and not first.matrix.blocked
    )
    return plain and all(map(_like(first), problems)) and _pays(first, len(problems))


def _pays(first: Problem, count: int) -> bool:
    """Whether one decomposition does; conjugate gradients begin anew for each target."""
    chosen = choose(first)
    if chosen != "newton-cg" or not newton_can(first):
        return chosen == NAME
    return newton_time(first) <= count * cg_time(first)


def _like(first: Problem) -> Callable[[Problem], bool]:
    def like(problem: Problem) -> bool:
        same = problem.weights is first.weights or (
            problem.weights is not None
            and first.weights is not None
            and np.array_equal(problem.weights, first.weights)
        )
        return (
            same
            and problem.matrix is first.matrix
            and problem.penalty == first.penalty
            and problem.offset is None
        )

    return like


def solve_together(problems: list[Problem], tol: float) -> list[Result]:
    """A result of each; one that did not get to ``tol`` is where a solver may start from."""
    started = time.perf_counter()
    with one_thread(), np.errstate(all="ignore"):
        X, c = _solutions(problems)
        found = list(certificates(problems, X, c, tol))
    share = (time.perf_counter() - started) / len(problems)
    results, m = [], min(problems[0].n, problems[0].d)
    for k, (problem, at) in enumerate(zip(problems, found, strict=True)):
        relative = problem.relative_gap(at.primal, at.dual)
        told: dict[str, Any] = {"primal": at.primal, "dual": at.dual, "gap": at.primal - at.dual}
        told["relative_gap"] = relative
        history = History()
        operations = m * problem.matrix.nnz // (2 * len(problems)) + 3 * problem.matrix.nnz
        history.append(passes=1, seconds=share, operations=operations, **told)
        history.freeze()
        converged = relative <= tol
        results.append(
            Result(
                x=X[k],
                intercept=float(c[k]),
                y=at.y,
                converged=converged,
                status="converged" if converged else "max_passes",
                passes=1,
                seconds=share,
                history=history,
                solver=NAME,
                **told,
            )
        )
    return results


def _solutions(problems: list[Problem]) -> tuple[np.ndarray, np.ndarray]:
    """(x, c) of each, as rows."""
    first = problems[0]
    (n, d), m, w = first.matrix.shape, first.matrix, first.weights
    # less their mean, where there is an intercept
    B, centre, l2 = np.stack([p._dual_targets for p in problems]).T, np.zeros(d), first.penalty.l2
    shift, weight = np.zeros(len(problems)), np.full(n, 1.0 / n) if w is None else w / n
    if first.intercept:
        shift = np.array([p.b[0] - b for p, b in zip(problems, B[0], strict=True)])
    if d <= n:
        H, centre, products = gram_and_products(m, weight, B, first.intercept)
        np.einsum("ii->i", H)[:] += l2
        X = Cholesky(H).solve(products).T
    else:
        if first.intercept:
            centre = m.tdot(weight) / float(weight.sum())
        root = None if w is None else np.sqrt(w)
        Z = _rowwise(root, as_scipy(m) - centre)
        H = Z @ Z.T
        np.einsum("ii->i", H)[:] += n * l2
        X = Cholesky(H).solve(_rowwise(root, B)).T @ Z
    X = np.ascontiguousarray(X)
    return X, shift - X @ centre


def _rowwise(w: np.ndarray | None, values: np.ndarray) -> np.ndarray:
    """Rows times their weights; as they are where there are none."""
    return values if w is None else w[:, None] * values
