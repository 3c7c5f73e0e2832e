"""From a data file to a problem: what its targets are taken for, and the penalty that is usual.

Targets that are words are labels.  Of numbers, the meaning is not in the file.  Where no loss is
named:

- two words or whole numbers: labels, and the logistic loss;
- three to ``MOST_CLASSES`` words, or as many whole numbers, each on ``LEAST_ROWS`` rows or more:
  labels, and the multinomial loss;
- other numbers: quantities, and the squared loss.

Counts and ages have rare values, classes seldom do.  Of the sets at hand the rarest value of those
with quantities is on one row (abalone, cpuact, diabetes), and of those with classes on 51 or more
out of 7,674 (letter, mnist, usps, reuters_r8) or 48 out of 178 (iris, wine, digits); ratings of one
to five stars (movielens) are taken for classes.  Wherever there are three whole numbers or more,
what was assumed is said.
"""

from __future__ import annotations

import math
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
#: What people call a model of this loss.
_MODELS = {
    "logistic": "logistic regression",
    "multinomial": "multinomial logistic regression",
    "hinge": "a linear support vector machine",
    "squared_hinge": "a linear support vector machine (squared hinge)",
    "smooth_hinge": "a linear support vector machine (smooth hinge)",
}


@dataclass(frozen=True)
class Posed:
    """A file's problem.

    Attributes
    ----------
    problem : the first of them, where each class is told from the rest
    classes : the labels; None for a regression
    assumed : a sentence on what the targets were taken for; empty where that is plain
    class_weight : "balanced", or the weight of each label that was named, or None
    """

    problem: Problem
    classes: np.ndarray | None
    assumed: str
    class_weight: dict | str | None = None

    @property
    def count(self) -> int:
        """How many problems the data make."""
        if self.classes is None or self.classes.size <= 2 or self.problem.loss.blocks:
            return 1
        return int(self.classes.size)

    @property
    def model(self) -> str:
        """What is trained, in the words that people use, and on what."""
        loss, penalty = self.problem.loss, self.problem.penalty
        what = _MODELS.get(loss.name)
        if loss.name == "squared":
            names = {(False, False): "least squares", (False, True): "ridge regression"}
            names |= {(True, False): "the lasso", (True, True): "an elastic net"}
            what = names[bool(penalty.l1), bool(penalty.l2)]
        if what is None:
            what = f"a linear model with the {loss.name} loss"
        if self.classes is None:
            return f"{what} on targets that are quantities"
        return f"{what} on {self.classes.size} labels ({shown(self.classes)})"

    def describe(self, console: Console) -> None:
        """Print the problem, what people call it, and what was assumed."""
        console.print(str(self.problem), markup=False, soft_wrap=True)
        if self.classes is not None and self.count > 1:
            console.print(
                f"{self.count} such problems: each of the labels {shown(self.classes)} "
                "against the rest",
                markup=False,
                soft_wrap=True,
            )
        console.print(f"Training {self.model}", markup=False, soft_wrap=True)
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
    C: float | None = None,
    class_weight: str | None = None,
) -> Posed:
    """The problem of a file's rows and targets.

    ``loss=None`` is what the module says; ``l2=None`` is 1/n, or 0 when ``l1`` is given.  ``C`` is
    liblinear's, for ``l2`` = 1/(C sum of the weights), which is 1/(n C) where rows have none.
    ``class_weight`` is "balanced", or ``label:weight,...``; labels without a weight have 1.
    """
    check_width(A)
    chosen, classes, assumed = _read_targets(targets, loss)
    by_label, weights = _class_weights(targets, classes, class_weight, chosen)
    total = float(targets.size if weights is None else weights.sum())
    if C is not None:
        l2 = _penalty_of(C, total, l1, l2)
    elif l2 is None:
        l2 = 0.0 if l1 > 0.0 else 1.0 / targets.size
    if classes is not None:
        first = classes[0] if classes.size > 2 else classes[1]
        targets = (
            np.searchsorted(classes, targets)
            if chosen.blocks
            else np.where(targets == first, 1.0, -1.0)
        )
    problem = Problem(
        A,
        targets,
        loss=chosen,
        l1=l1,
        l2=l2,
        positive=positive,
        intercept=intercept,
        sample_weight=None if weights is None else weights * (targets.size / total),
    )
    return Posed(problem, classes, assumed, by_label)


def _penalty_of(C: float, total: float, l1: float, l2: float | None) -> float:
    if l2 is not None or l1:
        other = f"--l2 {l2:g}" if l2 is not None else f"--l1 {l1:g}"
        raise ValueError(f"--C {C:g} beside {other}: C sets the penalty, l2 = 1/(n C); give one")
    if not (0.0 < C < math.inf):
        raise ValueError(f"--C {C:g}: it must be finite and more than 0; --C 1 is l2 = 1/n")
    return 1.0 / (C * total)


def _class_weights(
    targets: np.ndarray, classes: np.ndarray | None, text: str | None, loss: Loss
) -> tuple[dict | str | None, np.ndarray | None]:
    """(weights of labels, of rows), of what ``--class-weight`` says."""
    if text is None:
        return None, None
    if classes is None:
        raise ValueError(
            f"--class-weight {text}: the targets are quantities (loss={loss.name!r}); leave it "
            "out, or name a loss of labels, such as --loss logistic"
        )
    codes = np.searchsorted(classes, targets)
    if text == "balanced":
        return text, (targets.size / (classes.size * np.bincount(codes)))[codes]
    found: dict = {}
    for part in text.split(","):
        label, colon, number = (word.strip() for word in part.rpartition(":"))
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not colon or not 0.0 < weight < math.inf:
            raise ValueError(
                f"--class-weight {text}: {part!r} is not label:weight with a weight of more than "
                "0; say balanced, or such as yes:10,no:1"
            )
        named = label if classes.dtype == object else _number(label)
        if named not in classes.tolist():
            raise ValueError(
                f"--class-weight {text}: there is no label {label}; the labels are {shown(classes)}"
            )
        found[named] = weight
    by_code = np.array([found.get(label, 1.0) for label in classes.tolist()])
    return found, by_code[codes]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _read_targets(targets: np.ndarray, name: str | None) -> tuple[Loss, np.ndarray | None, str]:
    """The loss, the labels (None for a regression), and what was assumed."""
    values, rows = np.unique(targets, return_counts=True)
    words = values.dtype == object
    whole = words or bool((values == np.rint(values)).all())
    assumed = ""
    if name is None:
        if words:
            name = _of_words(values)
        else:
            name, assumed = _assume(values, rows) if whole else ("squared", "")
    loss = get_loss(name)
    if loss.task not in ("classification", "multiclass"):
        if words:
            raise ValueError(
                f"the targets are words ({shown(values)}): loss={loss.name!r} takes numbers; for "
                "labels use --loss multinomial"
            )
        return loss, None, assumed
    if not whole:
        odd = values[values != np.rint(values)][0]
        raise ValueError(
            f"the targets have the value {odd:g}: loss={loss.name!r} takes labels, which are whole "
            "numbers; for real targets use --loss squared"
        )
    if values.size < 2:
        raise ValueError(
            f"the targets have the single value {_text(values[0])}: loss={loss.name!r} "
            "needs rows of two labels or more"
        )
    if loss.blocks and values.size == 2:  # as LogisticRegression and ERMClassifier take it
        loss = get_loss("logistic")
    return loss, values, assumed


def _of_words(values: np.ndarray) -> str:
    """The name of the loss for targets that are words."""
    if values.size > MOST_CLASSES:
        raise ValueError(
            f"the targets are {values.size} different words ({shown(values)}), more than "
            f"{MOST_CLASSES}: is this the column of the targets? If they are classes, say --loss "
            "multinomial"
        )
    return "logistic" if values.size == 2 else "multinomial"


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
    return ", ".join(map(_text, labels[:5])) + (", ..." if len(labels) > 5 else "")


def _text(label) -> str:
    return f"{label:g}" if isinstance(label, float | np.floating) else str(label)


def check_width(A: sparse.csr_matrix) -> None:
    """Refuse a column number of sparse rows that is far beyond the rest."""
    n, d = A.shape
    if hasattr(A, "nnz") and d > max(COLUMNS, COLUMNS_PER_ENTRY * (n + A.nnz)):
        raise ValueError(
            f"the largest index is {d}, and there are only {A.nnz} entries in {n} rows: each "
            f"vector of so many columns takes {8e-9 * d:.3g} GB; correct the index, or number the "
            "columns that occur without gaps"
        )
