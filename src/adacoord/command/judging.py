"""What is said of a fitted model: its certificates, its scores, its predictions."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from ..api.monitor import History
from ..estimators.judge import points
from ..io.posing import check_width
from ..io.reading import Data, read_data


@dataclass(frozen=True)
class Solved:
    """One problem of a fit: the objective, what is certified of it, what it took."""

    name: str
    objective: float
    gap: float
    relative_gap: float
    certified: bool
    solver: str
    method: str
    passes: int
    seconds: float

    def facts(self) -> dict[str, Any]:
        """For machines."""
        return {
            "problem": self.name.removesuffix(": "),
            "objective": self.objective,
            "gap": self.gap,
            "relative_gap": self.relative_gap,
            "solver": self.solver,
            "passes": self.passes,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        proof = (
            f"certified within {self.gap:.3g} of the optimum (relative gap {self.relative_gap:.2e})"
            if self.certified
            else "no certificate (there is none without a penalty)"
        )
        return (
            f"{self.name}objective {self.objective:.10g}, {proof}; {self.method}, {self.passes} "
            f"passes, {self.seconds:.2f} s"
        )


def certificates(model: Any, A: Any, targets: np.ndarray) -> Iterator[Solved]:
    """Each problem of a fit."""

    def each(value) -> list:
        return list(value) if isinstance(value, list | np.ndarray) else [value]

    histories, solvers = each(model.history_), each(model.solver_)
    if len(solvers) < len(histories):  # the same for all
        solvers *= len(histories)
    for (name, problem, x, intercept), gap, relative_gap, history, solver in zip(
        points(model, A, targets),
        each(model.dual_gap_),
        each(model.relative_gap_),
        histories,
        solvers,
        strict=True,
    ):
        passes, seconds = (
            (history.passes[-1], history.seconds[-1]) if len(history.passes) else (0, 0.0)
        )
        yield Solved(
            name,
            float(problem.primal(x, intercept)),
            float(gap),
            float(relative_gap),
            problem.has_certificate,
            str(solver),
            _method(solver, history),
            int(passes),
            float(seconds),
        )


def _method(solver: str, history: History) -> str:
    """The solver, and the one it took over from."""
    switched = history.switched
    if switched is None or switched.before == solver:
        return solver
    return f"{solver} (after {switched.passes} passes of {switched.before})"


@dataclass(frozen=True)
class Score:
    """Accuracy for classification, R^2 and root mean squared error otherwise."""

    rows: int
    accuracy: float | None = None
    r2: float | None = None
    rmse: float | None = None
    strange: int = 0

    def facts(self) -> dict[str, Any]:
        """For machines."""
        if self.accuracy is not None:
            return {"accuracy": self.accuracy, "rows": self.rows}
        return {"r2": self.r2, "rmse": self.rmse, "rows": self.rows}

    def __str__(self) -> str:
        if self.accuracy is not None:
            text = f"accuracy {self.accuracy:.4%} on {self.rows} rows"
            if self.strange:
                text += f", {self.strange} of them with labels that the model does not know"
            return text
        return f"R^2 {self.r2:.6f}, root mean squared error {self.rmse:.6g} on {self.rows} rows"


def score(model: Any, predicted: np.ndarray, targets: np.ndarray) -> Score | None:
    """Of predictions; None where they are quantities, and the targets words or of other shape."""
    if is_classifier(model):
        strange = strange_labels(targets, model.classes_).size
        return Score(targets.size, float(np.mean(predicted == targets)), strange=strange)
    if targets.dtype == object or predicted.shape != targets.shape:
        return None
    error = float(np.mean((predicted - targets) ** 2))
    spread = float(np.var(targets))
    r2 = 1.0 - error / spread if spread > 0.0 else float("nan")
    return Score(targets.size, r2=r2, rmse=error**0.5)


def strange_labels(targets: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The targets that are none of the classes."""
    if (targets.dtype == object) != (classes.dtype == object):
        return targets  # words, and numbers
    return targets[~np.isin(targets, classes)]


def data_for(model: Any, source: str, *, needed: bool, target: str | None, **how: Any) -> Data:
    """The data of ``source``, with the columns that the model knows by name in its order."""
    names = getattr(model, "feature_names_in_", None)
    return read_data(
        source,
        target=target,
        columns=None if names is None else [str(name) for name in names],
        known_target=getattr(model, "target_name_", None),
        targets_needed=needed,
        **how,
    )


def predict(model: Any, A: Any) -> np.ndarray:
    """What an estimator predicts."""
    return _nameless(model).predict(with_columns(A, model.n_features_in_))


def probabilities(model: Any, A: Any) -> np.ndarray:
    """The probability of the second class, or of all if there are more than two."""
    if not hasattr(model, "predict_proba"):
        loss = f" with loss={model.loss!r}" if hasattr(model, "loss") else ""
        raise ValueError(
            f"--proba: {type(model).__name__}{loss} gives no probabilities; leave it out, or train "
            "with the logistic or the multinomial loss"
        )
    p = _nameless(model).predict_proba(with_columns(A, model.n_features_in_))
    return p[:, 1] if p.shape[1] == 2 else p


def _nameless(model: Any) -> Any:
    """The model without names of columns: those of the data are in its order by now."""
    model = copy(model)
    vars(model).pop("feature_names_in_", None)
    return model


def in_lines(values: np.ndarray) -> str:
    """One line a row; numbers with all their digits."""

    def text(value) -> str:
        return f"{value:.17g}" if isinstance(value, float | np.floating) else str(value)

    return "".join(" ".join(map(text, np.atleast_1d(row))) + "\n" for row in values)


def points_of(model: Any, A: Any, targets: np.ndarray):
    """(heading, problem, x, intercept) of each problem that an estimator claims to solve.

    The problems are those of all columns of the data: the model's coefficient of a column that it
    does not have is 0.  The weights of samples are not in a model file: they are taken to be equal.
    """
    check_width(A)
    d = max(A.shape[1], model.n_features_in_)
    wide = _nameless(model)
    wide.coef_ = _widened(model.coef_, d)
    return points(wide, with_columns(A, d), targets)


def with_columns(A: Any, d: int) -> Any:
    """``A`` with ``d`` columns: for a prediction those beyond the model's have coefficient 0."""
    if A.shape[1] == d:
        return A
    if isinstance(A, np.ndarray):
        raise ValueError(
            f"the data have {A.shape[1]} columns of features, and {d} are needed: give the columns "
            "that the model was trained on"
        )
    if not sparse.issparse(A):
        raise ValueError(
            f"the store has {A.shape[1]} columns, and {d} are needed; convert the data again with "
            f"--n-features {d}"
        )
    A = A.copy()
    A.resize((A.shape[0], d))
    return A


def _widened(coef, d: int):
    """``coef`` with zeros for the columns that it lacks."""
    if coef.shape[-1] == d:
        return coef
    coef = coef.toarray() if sparse.issparse(coef) else coef
    return np.concatenate([coef, np.zeros((*coef.shape[:-1], d - coef.shape[-1]))], axis=-1)
