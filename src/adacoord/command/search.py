"""``fit --cv``: the strength of the penalty, chosen on folds.

The penalty is tried times ``FACTORS``, l1 and l2 alike.  On each fold the problems are solved from
strong to weak, each from where the last one ended and to a certified optimum
(:mod:`adacoord.estimators.search`), and judged on the rows that were left out: classes by accuracy,
quantities by the mean of the loss.  Of equally good ones the strongest is taken.  Rows are dealt to
the folds by the seed; files are often sorted.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from ..estimators.classifier_search import with_every_class
from ..estimators.search import CrossValidated, Walk, points
from ..exceptions import ConvergenceWarning

#: Half decades, from strong to weak; for l2 = 1/n they are C = 0.001 to 1000.
FACTORS = 10.0 ** np.linspace(3.0, -3.0, 13)


@dataclass(frozen=True)
class Choice:
    """What was chosen, and by what.

    Attributes
    ----------
    l1, l2 : the penalty
    folds : how many there were
    measure : "accuracy", or "mean loss"
    scores : the mean over the folds, for each of ``FACTORS``
    relative_gap : the largest of all solutions that the choice rests on
    """

    l1: float
    l2: float
    folds: int
    measure: str
    scores: np.ndarray
    best: int
    relative_gap: float

    def facts(self) -> dict[str, Any]:
        """For machines."""
        return {
            "folds": self.folds,
            "measure": self.measure,
            "factors": FACTORS,
            "scores": self.scores,
            "best": self.scores[self.best],
            "relative_gap": self.relative_gap,
        }

    def __str__(self) -> str:
        score = self.scores[self.best]
        shown = f"accuracy {score:.4%}" if self.measure == "accuracy" else f"mean loss {score:.6g}"
        penalty = ", ".join(f"{n} = {v:.6g}" for n, v in (("l1", self.l1), ("l2", self.l2)) if v)
        end = {0: "strongest", FACTORS.size - 1: "weakest"}.get(self.best)
        further = (
            f"; it is the {end} of them: give it as --l1 or --l2 to search around it" if end else ""
        )
        return (
            f"chosen on {self.folds} folds among {FACTORS.size} penalties: {penalty} ({shown} on "
            f"the rows left out, relative gaps up to {self.relative_gap:.1e}){further}"
        )


class _Search(CrossValidated):
    """Folds, and who walks them, for an estimator that has no ``cv`` of its own."""

    def __init__(self, model: Any):
        self.n_jobs, self.tol = None, model.tol
        self._runner, self._tell = model._runner, model._tell


def choose(model: Any, X: Any, y: np.ndarray, folds: int, seed: int) -> Choice:
    """Choose the penalty of ``model``, an ERM estimator that holds the one to start from."""
    labels = is_classifier(model)
    splits = _splits(y, folds, seed, labels)
    rows = copy(model)._rows(X, y, None)  # the estimator itself is to be fitted afterwards
    recipe = model._recipe(rows)
    penalties = [(model.l1 * factor, model.l2 * factor) for factor in FACTORS.tolist()]
    d = rows.X.shape[1]

    def one_fold(train, test, solve):
        fold = with_every_class(train, rows) if labels else rows.take(train)
        left_out = rows.take(test)
        problems = recipe.problems(fold, [(0.0, 0.0)] * recipe.count)
        walk = Walk.empty(1, len(penalties))
        for j, results in enumerate(points(problems, penalties, solve)):
            coef, c = recipe.coefficients(results, d)
            z = left_out.X @ coef.T + c
            if labels:
                codes = z.argmax(axis=1) if z.shape[1] > 1 else (z[:, 0] > 0.0).astype(int)
                score = np.mean(codes == left_out.targets)
            else:
                score = np.mean(recipe.loss.value(z[:, 0], left_out.targets[0]))
            walk.note((0, j), float(score), results)
        return walk

    search = _Search(model)
    walks = search._walk(splits, one_fold)
    missed = search._missed(walks)
    if missed:
        warnings.warn(missed, ConvergenceWarning, stacklevel=2)
    scores = np.mean([walk.scores[0] for walk in walks], axis=0)
    best = int(np.argmax(scores) if labels else np.argmin(scores))
    return Choice(
        *penalties[best],
        folds=folds,
        measure="accuracy" if labels else "mean loss",
        scores=scores,
        best=best,
        relative_gap=float(np.max([walk.gaps for walk in walks])),
    )


def _splits(y: np.ndarray, folds: int, seed: int, labels: bool) -> list[tuple]:
    most = int(np.unique(y, return_counts=True)[1].max()) if labels else y.size
    if not 2 <= folds <= most:
        of = "rows of a label" if labels else "rows"
        raise ValueError(
            f"--cv {folds}: it must be 2 or more, and no more than there are {of} ({most})"
        )
    splitter = StratifiedKFold if labels else KFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a label that is not in every fold
        return list(splitter(folds, shuffle=True, random_state=seed).split(y, y))
