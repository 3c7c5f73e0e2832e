"""From a file's targets to a problem, and from a result to a model: what the CLI is made of."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from pathlib import Path

import numpy as np
from scipy import sparse

from ..api.solve import Result
from ..io import Model
from ..io.writing import check_writable
from ..problem import Problem
from ..problem.losses import get_loss

#: Solvers hold vectors of as many numbers as there are columns.  This many columns are always
#: taken; more only where there are this many for each row and entry, or fewer.
COLUMNS, COLUMNS_AN_ENTRY = 1 << 22, 64


def check_outputs(inputs: Iterable[Path | None] = (), **options: Path | None) -> None:
    """Refuse files that cannot be written, or are read, before the work that they are to hold."""
    for option, path in options.items():
        if path is not None:
            try:
                check_writable(path)
            except OSError as error:
                raise ValueError(f"--{option} {error}") from None
            if path.is_file() and any(p and p.exists() and path.samefile(p) for p in inputs):
                raise ValueError(f"--{option} {path}: this file is read, and would be overwritten; "
                                 "name another")


def make_problem(
    A: sparse.csr_matrix,
    targets: np.ndarray,
    *,
    loss: str | None = None,
    l1: float = 0.0,
    l2: float | None = None,
    positive: bool = False,
    intercept: bool = True,
) -> tuple[Problem, np.ndarray | None]:
    """A problem and, for classification, the two labels (the second is the positive one).

    ``loss=None`` is logistic on two labels and squared on real targets; ``l2=None`` is 1/n, or 0
    when ``l1`` is given.
    """
    _check_width(A)
    labels = np.unique(targets)
    if loss is None and _may_be_classes(labels, targets.size):
        shown = ", ".join(f"{v:g}" for v in labels[:5]) + (", ..." if labels.size > 5 else "")
        raise ValueError(
            f"the targets are {labels.size} different whole numbers ({shown}), classes or "
            "quantities: the command line trains on two classes only, so for classes use "
            "adacoord.LogisticRegression from Python; for quantities say --loss squared"
        )
    chosen = get_loss(loss or ("logistic" if labels.size == 2 else "squared"))
    if chosen.blocks:
        raise ValueError(
            f'loss="{chosen.name}": model files hold one coefficient a column; solve such problems '
            "from Python with adacoord.solve"
        )
    if l2 is None:
        l2 = 0.0 if l1 > 0.0 else 1.0 / targets.size
    classes = None
    if chosen.task == "classification":
        if labels.size != 2:
            raise ValueError(
                f'the targets have {labels.size} different values: loss="{chosen.name}" needs '
                "exactly two labels; for real targets use --loss squared"
            )
        classes = labels
        targets = np.where(targets == labels[1], 1.0, -1.0)
    problem = Problem(
        A, targets, loss=chosen, l1=l1, l2=l2, positive=positive, intercept=intercept
    )
    return problem, classes


def _may_be_classes(labels: np.ndarray, n: int) -> bool:
    """Several whole numbers, each on two rows or more on average."""
    return 2 < labels.size <= n / 2 and bool((labels == np.rint(labels)).all())


def _check_width(A: sparse.csr_matrix) -> None:
    n, d = A.shape
    if d > max(COLUMNS, COLUMNS_AN_ENTRY * (n + A.nnz)):
        raise ValueError(
            f"the largest index is {d}, and there are only {A.nnz} entries in {n} rows: each "
            f"vector of so many columns takes {8e-9 * d:.3g} GB; correct the index, or number the "
            "columns that occur without gaps"
        )


def strange_labels(targets: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    """The targets that are none of the two classes; none for regression."""
    return targets[:0] if classes is None else targets[~np.isin(targets, classes)]


def make_model(problem: Problem, classes: np.ndarray | None, result: Result) -> Model:
    """The result as a model that can be saved."""
    loss, penalty = problem.loss, problem.penalty
    return Model(
        coef=result.x,
        intercept=result.intercept,
        loss=loss.name,
        loss_parameter=getattr(loss, loss.parameter) if loss.parameter else None,
        classes=classes,
        l1=penalty.l1,
        l2=penalty.l2,
        positive=penalty.positive,
        certificate={
            "primal": result.primal, "dual": result.dual, "gap": result.gap,
            "relative_gap": result.relative_gap, "passes": result.passes,
            "seconds": result.seconds, "solver": result.solver, "status": result.status,
            "n": problem.n, "d": problem.d, "fit_intercept": problem.intercept,
        },
    )


def n_columns(model) -> int:
    """The columns of a model's training data."""
    return model.coef.size if isinstance(model, Model) else model.n_features_in_


def predictions(model, A: sparse.csr_matrix, proba: bool) -> np.ndarray:
    """What a model or estimator predicts; with ``proba`` the second class's probability, or all."""
    if not proba:
        return model.predict(A)
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"--proba: {type(model).__name__} gives no probabilities; leave it out, or train with "
            "the logistic loss"
        )
    p = model.predict_proba(A)
    return p[:, 1] if p.shape[1] == 2 else p


def in_lines(values: np.ndarray) -> str:
    """One line a row; numbers with all their digits."""
    def text(value) -> str:
        return f"{value:.17g}" if isinstance(value, float | np.floating) else str(value)

    return "".join(" ".join(map(text, np.atleast_1d(row))) + "\n" for row in values)


def points_of(model, A: sparse.csr_matrix, targets: np.ndarray):
    """(heading, problem, x, intercept) of each problem that a model claims to solve.

    The problems are those of all columns of the data: the model's coefficient of a column that it
    does not have is 0.  The weights of samples are not in a model file: they are taken to be equal.
    """
    _check_width(A)
    d = max(A.shape[1], n_columns(model))
    A = with_columns(A, d)
    if not isinstance(model, Model):
        from ..estimators.judge import points

        wide = copy(model)
        wide.coef_ = _widened(model.coef_, d)
        return points(wide, A, targets)
    strange = strange_labels(targets, model.classes)
    if strange.size:
        raise ValueError(
            f"the data have the label {strange[0]:g}, and the model knows {model.classes[0]:g} "
            f"and {model.classes[1]:g}: give the data it was trained on"
        )
    if model.classes is not None:
        targets = np.where(targets == model.classes[1], 1.0, -1.0)
    loss = get_loss(model.loss)
    if model.loss_parameter is not None:
        if loss.parameter is None:
            raise ValueError(f"loss={model.loss!r}, loss_parameter={model.loss_parameter:g}: this "
                             "loss has no parameter; save the model again without one")
        loss = type(loss)(model.loss_parameter)
    problem = Problem(
        A, targets, loss, model.l1, model.l2, positive=model.positive,
        intercept=model.certificate.get("fit_intercept", model.intercept != 0.0),
    )
    return [("", problem, _widened(model.coef, d), model.intercept)]


def with_columns(A: sparse.csr_matrix, d: int) -> sparse.csr_matrix:
    """``A`` with ``d`` columns: for a prediction those beyond the model's have coefficient 0."""
    if A.shape[1] == d:
        return A
    A = A.copy()
    A.resize((A.shape[0], d))
    return A


def _widened(coef, d: int):
    """``coef`` with zeros for the columns that it lacks."""
    if coef.shape[-1] == d:
        return coef
    coef = coef.toarray() if sparse.issparse(coef) else coef
    return np.concatenate([coef, np.zeros((*coef.shape[:-1], d - coef.shape[-1]))], axis=-1)


def evaluate(model: Model, A: sparse.csr_matrix, targets: np.ndarray) -> str:
    """Accuracy for classification, R^2 and root mean squared error otherwise."""
    predicted = model.predict(with_columns(A, model.coef.size))
    if model.classes is not None:
        return f"accuracy {np.mean(predicted == targets):.4%} on {targets.size} rows"
    error = float(np.mean((predicted - targets) ** 2))
    spread = float(np.var(targets))
    r2 = 1.0 - error / spread if spread > 0.0 else float("nan")
    return f"R^2 {r2:.6f}, root mean squared error {error**0.5:.6g} on {targets.size} rows"
