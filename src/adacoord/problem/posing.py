"""From what the user gives to data and a penalty, or to a sentence that says why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.matrix import Matrix, as_matrix
from .column_penalty import ColumnPenalty, as_penalty
from .group_penalty import GroupPenalty, as_groups
from .inputs import check_penalty
from .penalties import Penalty

if TYPE_CHECKING:
    from .problem import Problem

AnyPenalty = Penalty | ColumnPenalty | GroupPenalty


def check_blocks(problem: Problem) -> None:
    """Refuse what no solver takes on data in blocks of rows, whatever the penalty."""
    if problem.loss.task == "targets":
        raise ValueError(
            f"b has {problem._block[0]} columns: data in blocks of rows take one target at a "
            "time; solve for one column of b after the other, or give the data as one array"
        )
    offset = problem.offset
    if offset is not None and problem.loss.without_offset(problem.b, offset) is None:
        raise ValueError(
            f'offset: data in blocks of rows take no offset of the loss "{problem.loss.name}"; '
            "leave it out, or give the data as one array"
        )


def group_penalty(
    problem: Problem, groups: Any, group_weights: Any, l21: Any, l1: Any, l2: Any
) -> GroupPenalty:
    """l21 of groups of columns, with l1 and l2."""
    groups = np.arange(problem.d) if groups is None else groups
    penalty = as_groups(groups, group_weights, l21, l1, l2, problem.d)
    check_penalty(penalty)
    if problem.matrix.blocked:
        raise ValueError(
            "groups: data in blocks of rows take no groups of columns; give the data as one array"
        )
    if problem._block and penalty.weights.size < problem.d:
        raise ValueError(
            f"groups has {penalty.weights.size} labels for {problem.d} columns: with several "
            "targets or classes each column is a group by itself; leave groups out"
        )
    if problem._block:  # whatever the labels: what is asked of groups is of the columns in turn
        penalty = replace(
            penalty, index=np.arange(problem.d), weights=penalty.weights[penalty.index]
        )
    if not problem.loss.differentiable:
        raise ValueError(
            f'loss="{problem.loss.name}": groups need a smooth loss, such as "squared", '
            '"logistic", "poisson", "huber" or "smooth_hinge"'
        )
    return penalty


def column_penalty(
    problem: Problem, l1: Any, l2: Any, positive: bool, lower: Any, upper: Any
) -> AnyPenalty:
    """l1, l2 and bounds, of which some are an array."""
    if problem.loss.task == "targets":
        raise ValueError(
            "b has several columns: with several targets l1 and l2 are one number each, and "
            "there are no bounds; solve for one target at a time"
        )
    sizes, blocks = partial(_column_sizes, problem), problem.loss.blocks
    penalty = as_penalty(l1, l2, positive, lower, upper, problem.d, sizes, blocks)
    check_penalty(penalty)
    penalty = within_a_box(problem, penalty)
    if problem.matrix.blocked and not penalty.uniform:
        raise ValueError(
            f"{penalty.words}: data in blocks of rows take one l1 and one l2 for all columns, "
            "and no bounds but positive=True; give the data as one array"
        )
    return penalty


def within_a_box(problem: Problem, penalty: Penalty | ColumnPenalty) -> Penalty | ColumnPenalty:
    """The penalty; with kinks or x >= 0, and none, that of columns which all go without.

    Such a P is no smooth one, whose slope would say how near the optimum is, but a linear program,
    or one with bounds like any others: solved as such, with the certificate of a box
    (:mod:`.column_penalty`).  (Least squares with x >= 0 have a method of their own.)
    """
    smooth = problem.loss.differentiable and not penalty.sparse
    apart = problem.loss.name == "squared" or problem.loss.blocks
    if penalty.coercive or smooth or apart or problem.matrix.blocked:
        return penalty
    zero, _, lower, upper = penalty.by_column(problem.d)
    return ColumnPenalty(zero, zero, lower, upper, _column_sizes(problem))


def _column_sizes(problem: Problem) -> np.ndarray:
    """What x_j could be: a change of the predictions by one unit of the targets."""
    unit = 1.0
    if problem.loss.task == "regression":
        b = problem.b if problem.offset is None else problem.b - problem.offset
        centre = problem._mean(b) / problem._mean(np.ones(problem.n)) if problem.intercept else 0.0
        unit = problem._mean(np.square(b - centre)) ** 0.5 or float(np.abs(b).max()) or 1.0
    return unit / problem._column_lengths


def is_one(weight: Any) -> bool:
    """Whether a weight is one for all columns (or None); NumPy takes a microsecond to say so."""
    return weight is None or isinstance(weight, float) or np.ndim(weight) == 0


def is_zero(weight: Any) -> bool:
    return isinstance(weight, (int, float)) and weight == 0.0


def as_data(A: Any, b: Any, weights: Any) -> tuple[Matrix, Any, Any]:
    """The data as a matrix, or as blocks of rows, with their targets and weights."""
    if not isinstance(A, (np.ndarray, Matrix)):
        from ..data.blocks import as_blocks
        from ..parallel.collections import as_local

        found = as_blocks(A)
        if found is not None:
            matrix, targets = found
            return matrix, _given(targets if b is None else as_local(b)), as_local(weights)
    if isinstance(A, Iterator):
        raise ValueError(
            f"A={type(A).__name__}: an iterator can be gone through once, and solvers go through "
            "their data again and again; give a list of pairs (X, y), or an object whose __iter__ "
            "starts anew"
        )
    return as_matrix(A), _given(b), weights


def _given(b: Any) -> Any:
    if b is None:
        raise ValueError("b=None: these data bring no targets; give one for each row")
    return b
