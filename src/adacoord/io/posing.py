"""From a data file to a problem: what its targets are taken for, and the penalty that is usual.

The targets of a file are numbers, and their meaning is not in it.  Where no loss is named:

- two whole numbers: labels, and the logistic loss;
- three to ``MOST_CLASSES`` whole numbers, each on ``LEAST_ROWS`` rows or more: labels, and the
  multinomial loss;
- anything else: quantities, and the squared loss.

Counts and ages have rare values, classes seldom do.  Of the sets at hand the rarest value of those
with quantities is on one row (abalone, cpuact, diabetes), and of those with classes on 51 or more
out of 7,674 (letter, mnist, usps, reuters_r8) or 48 out of 178 (iris, wine, digits); ratings of one
to five stars (movielens) are taken for classes.  Wherever there are three whole numbers or more,
what was assumed is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.console import Console
from scipy import sparse

from ..problem import Problem
from ..problem.losses import Loss, get_loss

#: Whole numbers are taken for classes if there are no more than this many, each on so many rows.
MOST_CLASSES, LEAST_ROWS = 100, 5
#: Solvers hold vectors of as many numbers as there are columns.  This many columns are always
#: taken; more only where there are this many for each row and entry, or fewer.
COLUMNS, COLUMNS_PER_ENTRY = 1 << 22, 64


@dataclass(frozen=True)
class Posed:
    """A file's problem.

    Attributes
    ----------
    problem : the first of them, where each class is told from the rest
    classes : the labels; None for a regression
    assumed : a sentence on what the targets were taken for; empty where that is plain
    """

    problem: Problem
    classes: np.ndarray | None
    assumed: str

    @property
    def count(self) -> int:
        """How many problems the data make."""
        if self.classes is None or self.classes.size <= 2 or self.problem.loss.blocks:
            return 1
        return int(self.classes.size)

    def describe(self, console: Console) -> None:
        """Print the problem, and what was assumed."""
        console.print(str(self.problem), markup=False, soft_wrap=True)
        if self.classes is not None and self.count > 1:
            console.print(
                f"{self.count} such problems: each of the labels {shown(self.classes)} "
                "against the rest",
                markup=False,
                soft_wrap=True,
            )
        if self.assumed:
            console.print(self.assumed, markup=False, soft_wrap=True)


def pose(
    A: sparse.csr_matrix,
    targets: np.ndarray,
    *,
    loss: str | None = None,
    l1: float = 0.0,
    l2: float | None = None,
    positive: bool = False,
    intercept: bool = True,
) -> Posed:
    """The problem of a file's rows and targets.

    ``loss=None`` is what the module says; ``l2=None`` is 1/n, or 0 when ``l1`` is given.
    """
    check_width(A)
    chosen, classes, assumed = _read_targets(targets, loss)
    if l2 is None:
        l2 = 0.0 if l1 > 0.0 else 1.0 / targets.size
    if classes is not None:
        first = classes[0] if classes.size > 2 else classes[1]
        targets = (
            np.searchsorted(classes, targets)
            if chosen.blocks
            else np.where(targets == first, 1.0, -1.0)
        )
    problem = Problem(A, targets, loss=chosen, l1=l1, l2=l2, positive=positive, intercept=intercept)
    return Posed(problem, classes, assumed)


def _read_targets(targets: np.ndarray, name: str | None) -> tuple[Loss, np.ndarray | None, str]:
    """The loss, the labels (None for a regression), and what was assumed."""
    values, rows = np.unique(targets, return_counts=True)
    whole = bool((values == np.rint(values)).all())
    assumed = ""
    if name is None:
        name, assumed = _assume(values, rows) if whole else ("squared", "")
    loss = get_loss(name)
    if loss.task not in ("classification", "multiclass"):
        return loss, None, assumed
    if not whole:
        odd = values[values != np.rint(values)][0]
        raise ValueError(
            f"the targets have the value {odd:g}: loss={loss.name!r} takes labels, which are whole "
            "numbers; for real targets use --loss squared"
        )
    if values.size < 2:
        raise ValueError(
            f"the targets have the single value {values[0]:g}: loss={loss.name!r} "
            "needs rows of two labels or more"
        )
    if loss.blocks and values.size == 2:  # as LogisticRegression and ERMClassifier take it
        loss = get_loss("logistic")
    return loss, values, assumed


def _assume(values: np.ndarray, rows: np.ndarray) -> tuple[str, str]:
    """The name of the loss for whole-number targets, and the sentence that says so."""
    if values.size <= 2:
        return ("logistic" if values.size == 2 else "squared"), ""
    seen = f"{values.size} whole-number targets ({shown(values)})"
    fewest = int(rows.min())
    if values.size > MOST_CLASSES:
        why = f"they are more than {MOST_CLASSES}"
    elif fewest < LEAST_ROWS:
        why = f"the value {values[rows.argmin()]:g} is on {fewest} row{'s' * (fewest > 1)} only"
    else:
        return "multinomial", (
            f"{seen}, each on {fewest} rows or more: taken as classes; if they are "
            "quantities, say --loss squared"
        )
    return "squared", (
        f"{seen}: taken as quantities, for a regression, because {why}; if they are classes, say "
        "--loss multinomial"
    )


def shown(labels: np.ndarray) -> str:
    """The first few labels, as text."""

    def text(label) -> str:
        return f"{label:g}" if isinstance(label, float | np.floating) else str(label)

    return ", ".join(map(text, labels[:5])) + (", ..." if len(labels) > 5 else "")


def check_width(A: sparse.csr_matrix) -> None:
    """Refuse a column number that is far beyond the rest."""
    n, d = A.shape
    if d > max(COLUMNS, COLUMNS_PER_ENTRY * (n + A.nnz)):
        raise ValueError(
            f"the largest index is {d}, and there are only {A.nnz} entries in {n} rows: each "
            f"vector of so many columns takes {8e-9 * d:.3g} GB; correct the index, or number the "
            "columns that occur without gaps"
        )
