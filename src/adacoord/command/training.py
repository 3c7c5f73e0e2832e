"""What ``fit``, ``predict`` and ``certify`` are made of: an estimator, and what to say of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from types import SimpleNamespace

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from ..api.monitor import History
from ..estimators import ERMClassifier, ERMRegressor
from ..estimators.judge import points
from ..io.posing import Posed, check_width


def make_estimator(
    posed: Posed, *, solver: str, tol: float, max_passes: int, seed: int
) -> ERMClassifier | ERMRegressor:
    """The estimator that solves a file's problems; not fitted."""
    problem = posed.problem
    kind = ERMRegressor if posed.classes is None else ERMClassifier
    return kind(
        problem.loss.name,
        problem.penalty.l1,
        problem.penalty.l2,
        positive=problem.penalty.positive,
        fit_intercept=problem.intercept,
        tol=tol,
        max_iter=max_passes,
        solver=solver,
        random_state=seed,
    )


@contextmanager
def noting_interrupts() -> Iterator[SimpleNamespace]:
    """``seen`` of what this gives says whether Ctrl-C was pressed: a fit may end well after it."""
    noted = SimpleNamespace(seen=False)

    def note(number, frame):
        noted.seen = True
        raise KeyboardInterrupt

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:  # else somebody else listens, or nobody is to
        signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def strange_labels(targets: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    """The targets that are none of the classes; none for regression."""
    return targets[:0] if classes is None else targets[~np.isin(targets, classes)]


def certificates(model, A: sparse.csr_matrix, targets: np.ndarray) -> Iterator[str]:
    """A line for each problem of a fit: the objective, what is certified of it, what it took."""

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
        proof = (
            f"certified within {gap:.3g} of the optimum (relative gap {relative_gap:.2e})"
            if problem.has_certificate
            else "no certificate (there is none without a penalty)"
        )
        passes, seconds = (
            (history.passes[-1], history.seconds[-1]) if len(history.passes) else (0, 0.0)
        )
        yield (
            f"{name}objective {problem.primal(x, intercept):.10g}, {proof}; "
            f"{_method(solver, history)}, {passes} passes, {seconds:.2f} s"
        )


def _method(solver: str, history: History) -> str:
    """The solver, and the one it took over from."""
    switched = history.switched
    if switched is None or switched.before == solver:
        return solver
    return f"{solver} (after {switched.passes} passes of {switched.before})"


def evaluate(model, A: sparse.csr_matrix, targets: np.ndarray) -> str:
    """Accuracy for classification, R^2 and root mean squared error otherwise."""
    predicted = model.predict(with_columns(A, model.n_features_in_))
    if is_classifier(model):
        return f"accuracy {np.mean(predicted == targets):.4%} on {targets.size} rows"
    error = float(np.mean((predicted - targets) ** 2))
    spread = float(np.var(targets))
    r2 = 1.0 - error / spread if spread > 0.0 else float("nan")
    return f"R^2 {r2:.6f}, root mean squared error {error**0.5:.6g} on {targets.size} rows"


def predictions(model, A: sparse.csr_matrix, proba: bool) -> np.ndarray:
    """What an estimator predicts; with ``proba`` the second class's probability, or all."""
    A = with_columns(A, model.n_features_in_)
    if not proba:
        return model.predict(A)
    if not hasattr(model, "predict_proba"):
        loss = f" with loss={model.loss!r}" if hasattr(model, "loss") else ""
        raise ValueError(
            f"--proba: {type(model).__name__}{loss} gives no probabilities; leave it out, or train "
            "with the logistic or the multinomial loss"
        )
    p = model.predict_proba(A)
    return p[:, 1] if p.shape[1] == 2 else p


def in_lines(values: np.ndarray) -> str:
    """One line a row; numbers with all their digits."""

    def text(value) -> str:
        return f"{value:.17g}" if isinstance(value, float | np.floating) else str(value)

    return "".join(" ".join(map(text, np.atleast_1d(row))) + "\n" for row in values)


def points_of(model, A: sparse.csr_matrix, targets: np.ndarray):
    """(heading, problem, x, intercept) of each problem that an estimator claims to solve.

    The problems are those of all columns of the data: the model's coefficient of a column that it
    does not have is 0.  The weights of samples are not in a model file: they are taken to be equal.
    """
    check_width(A)
    d = max(A.shape[1], model.n_features_in_)
    wide = copy(model)
    wide.coef_ = _widened(model.coef_, d)
    return points(wide, with_columns(A, d), targets)


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
