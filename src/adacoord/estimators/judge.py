"""A fitted estimator as points of the problems that its data make: what ``certify`` judges."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np

from ..problem import Problem
from .recipes import as_coefficients
from .row_blocks import in_rows


def points(estimator, X, y) -> Iterator[tuple[str, Problem, np.ndarray, float | np.ndarray]]:
    """(heading, problem, x, intercept) of each problem that a fit to (X, y) would solve.

    They are posed as the fit does it, so that the scaling, the weights of classes and the encoding
    of labels are the same; of a search, under the penalty that it has chosen.
    """
    if not getattr(estimator, "refit", True):
        raise ValueError(
            f"{type(estimator).__name__}(refit=False): its coefficients are the mean of the folds' "
            "models, which is the optimum of no problem, so there is nothing to certify; fit it "
            "with refit=True"
        )
    X, y, _ = in_rows(X, y, None)
    posed = copy(estimator)._pose(X, y)  # of the estimator itself X would set the features' names
    classes = getattr(estimator, "classes_", None)
    if classes is not None and not np.array_equal(classes, posed.rows.classes):
        raise ValueError(
            f"the data have the labels {_shown(posed.rows.classes)}, and the model knows "
            f"{_shown(classes)}: give the data it was trained on"
        )
    coef, c = as_coefficients(estimator.coef_, estimator.intercept_)
    if len(coef) != posed.recipe.height:
        raise ValueError(
            f"the data make {posed.recipe.height} problems, and the model has "
            f"{len(coef)} rows of coefficients: give the data it was trained on"
        )
    judged = zip(posed.problems, posed.recipe.points(coef, c), strict=True)
    for k, (problem, (x, intercept)) in enumerate(judged):
        yield _heading(classes, k, len(posed.problems)), problem, x, intercept


def _heading(classes, k: int, count: int) -> str:
    if count == 1:
        return ""
    return f"target {k}: " if classes is None else f"{classes[k]} against the rest: "


def _shown(labels: np.ndarray) -> str:
    return ", ".join(map(str, labels[:5])) + (", ..." if labels.size > 5 else "")
