"""A fitted estimator as points of the problems that its data make: what ``certify`` judges."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from scipy import sparse

from ..problem import Problem


class _Posed(Exception):
    """Carries the tasks of a fit out of it, unsolved."""


def _pose(tasks, *_, **__) -> None:
    raise _Posed(tasks)


def points(estimator, X, y) -> Iterator[tuple[str, Problem, np.ndarray, float | np.ndarray]]:
    """(heading, problem, x, intercept) of each problem that a fit to (X, y) would solve.

    The fit is made on a copy and ends where it would begin to solve, so that the scaling, the
    weights of classes and the encoding of labels are those of the fit itself.
    """
    if not getattr(estimator, "refit", True):
        raise ValueError(
            f"{type(estimator).__name__}(refit=False): its coefficients are the mean of the folds' "
            "models, which is the optimum of no problem, so there is nothing to certify; fit it "
            "with refit=True"
        )
    posing = copy(estimator)
    posing._solve = _pose
    try:
        posing.fit(X, y)
    except _Posed as posed:
        problems = [task.problem for task in posed.args[0]]
    classes = getattr(estimator, "classes_", None)
    if classes is not None and not np.array_equal(classes, posing.classes_):
        raise ValueError(
            f"the data have the labels {_shown(posing.classes_)}, and the model knows "
            f"{_shown(classes)}: give the data it was trained on"
        )
    coef = estimator.coef_
    coef = np.atleast_2d(coef.toarray() if sparse.issparse(coef) else coef).astype(np.float64)
    c = np.broadcast_to(np.asarray(estimator.intercept_, dtype=np.float64), coef.shape[:1])
    if problems[0].loss.blocks:
        problem = problems[0]
        yield "", problem, coef.T, c if problem.intercept else problem.no_intercept
        return
    if len(problems) != len(coef):
        raise ValueError(f"the data make {len(problems)} problems, and the model has "
                         f"{len(coef)} rows of coefficients: give the data it was trained on")
    for k, problem in enumerate(problems):
        x, intercept = coef[k], float(c[k]) if problem.intercept else 0.0
        if problem.d == x.size + 1:  # liblinear's bias: the coefficient of a column
            x = np.append(x, c[k] / estimator.intercept_scaling)
        yield _heading(classes, k, len(problems)), problem, x, intercept


def _heading(classes, k: int, count: int) -> str:
    if count == 1:
        return ""
    return f"target {k}: " if classes is None else f"{classes[k]} against the rest: "


def _shown(labels: np.ndarray) -> str:
    return ", ".join(map(str, labels[:5])) + (", ..." if labels.size > 5 else "")
