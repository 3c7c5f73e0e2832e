"""The folds of least squares by their moments: one pass over the data for all of them.

The moments of the rows that test are subtracted from those of all rows, which leaves those of the
rows that train; the errors on the rows that test are in their own.  Points whose certificate, or
error, is not known well enough that way (:mod:`adacoord.api.gram`) are asked of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from types import SimpleNamespace

import numpy as np

from ..api import gram
from ..data.matrix import as_matrix
from ..linalg.blas import one_thread
from ..linalg.moments import Moments, fits, means, moments
from ..problem import Problem
from ..problem.many import certificates
from ..problem.penalties import Penalty
from .recipes import Recipe, Rows
from .search import Solve, Walk, weighted_mean

#: What a mean squared error from moments may be off by, relative to itself.
EXACT = 1e-10


@dataclass(frozen=True)
class GramFolds:
    """All rows, and the test rows of each fold.

    Attributes
    ----------
    total : moments of all rows
    tested : those of the test rows of each fold
    """

    problem: Problem
    rows: Rows
    recipe: Recipe
    tol: float
    max_passes: int
    total: Moments
    tested: list[Moments]

    @classmethod
    def of(cls, problem: Problem, rows: Rows, recipe, tol, max_passes, folds, points, jobs):
        """None where moments do not pay, or do not fit beside one another."""
        matrices = len(folds) + 1 + gram.MATRICES * min(jobs, len(folds))
        if not (
            gram.possible(problem)
            and fits(problem.d, matrices)
            and gram.pays(problem, points * len(folds))
        ):
            return None
        data = problem.matrix, rows.without_offset[0], rows.weights
        with one_thread():
            shift = means(*data) if problem.intercept else np.zeros(problem.d + 1)
            tested = [moments(*data, shift, test) for _, test in folds]
            counts = np.bincount(np.concatenate([test for _, test in folds]), minlength=problem.n)
            each_once = bool((counts == 1).all())
            total = reduce(add, tested) if each_once else moments(*data, shift)
        return cls(problem, rows, recipe, tol, max_passes, total, tested)

    def start(self, penalties: list[Penalty]):
        """Of all rows: the solution under the last of the penalties, by way of the others."""
        loss = self.total.least_squares(self.problem.intercept, self.total.mass)
        found = gram.gram_path(loss, penalties, self.tol, self.max_passes)
        return _point(self.problem, found.X[-1], float(found.c[-1]))

    def walk(self, k: int, train, test, paths: list[list[Penalty]], solve: Solve) -> Walk:
        """The paths of a fold; what the moments do not settle is left to ``solve``."""
        walk = Walk.empty(len(paths), len(paths[0]))
        with one_thread():
            loss = self._training(k, train, test).least_squares(
                self.problem.intercept, self._mass(train)
            )
            for i, penalties in enumerate(paths):
                found = gram.gram_path(
                    loss, penalties, self.tol, self.max_passes, between=solve.check
                )
                walk.gaps[i], walk.passes[i] = found.relative_gap, np.maximum(found.passes, 1)
                X, c = found.X, found.c
                self._ask_the_data(i, walk, found, penalties, train, solve)
                walk.short[i] = ~(walk.gaps[i] <= self.tol)
                walk.scores[i] = self._errors(k, test, X, c)
        return walk

    def _mass(self, kept: np.ndarray) -> float:
        weights = self.rows.weights
        return float(kept.size if weights is None else weights[kept].sum())

    def _training(self, k: int, train, test) -> Moments:
        """By subtraction, where the fold trains on all rows that it does not test."""
        left = np.ones(self.problem.n, dtype=bool)
        left[test] = False
        apart = bool(left[train].all())
        each_once = train.size == np.count_nonzero(left)
        left[train] = False
        if apart and each_once and not left.any():
            return self.total - self.tested[k]
        data = self.problem.matrix, self.rows.without_offset[0], self.rows.weights
        return moments(*data, self.total.shift, train)

    def _ask_the_data(self, i, walk: Walk, found: gram.GramPath, penalties, train, solve) -> None:
        """Judge, and where that is not enough solve, what rounding leaves in doubt."""
        asked = np.flatnonzero(~(found.trusted & (found.relative_gap <= self.tol)))
        if not asked.size:
            return
        [problem] = self.recipe.problems(self.rows.take(train), [(0.0, 0.0)])
        problems = [problem.with_penalty(*penalties[j].arguments[:2]) for j in asked]
        judged = certificates(problems, found.X[asked], found.c[asked])
        for j, problem, (primal, y, dual) in zip(asked, problems, judged, strict=True):
            walk.gaps[i, j] = problem.relative_gap(primal, dual)
            if walk.gaps[i, j] <= self.tol:
                continue
            start = SimpleNamespace(x=found.X[j], intercept=float(found.c[j]), y=y)
            result = solve(problem, start)
            if result.status == "interrupted":
                raise KeyboardInterrupt
            walk.gaps[i, j] = result.relative_gap
            walk.passes[i, j] += result.passes
            found.X[j], found.c[j] = result.x, result.intercept

    def _errors(self, k: int, test, X, c) -> np.ndarray:
        """Mean squared errors on the test rows."""
        tested = self.tested[k]
        if tested.mass > 0.0:
            total, doubt = tested.squared_error(X, c)
            if (doubt <= EXACT * total).all():
                return total / tested.mass
        left_out = self.rows.take(test)
        X = self.recipe.columns.in_units(X)
        predicted = as_matrix(left_out.X, "X").dot(np.ascontiguousarray(X.T)) + c
        errors = np.square(predicted - left_out.without_offset[0][:, None])
        return np.array([weighted_mean(column, left_out.weights) for column in errors.T])


def _point(problem: Problem, x: np.ndarray, c: float):
    y = problem.loss.derivative(problem.predict(x, c), problem.b)
    return SimpleNamespace(x=x, intercept=c, y=y)
