"""What the estimators share: checked input, one or more problems, and what they leave behind.

An estimator says which problems its data make (:class:`Task` each); this file solves them and
sets the fitted attributes.

=================  ============================================================================
``coef_``          the coefficients, as scikit-learn's class of that name shapes them
``intercept_``     not penalised, unless ``intercept_scaling`` asks for liblinear's
``n_iter_``        passes over the data
``dual_coef_``     y of the dual problem, shaped as ``coef_`` with rows in place of columns
``dual_gap_``      P - D, a bound on how far P is from its least value; one number a problem
``relative_gap_``  (P - D)/max(|P|, |D|, 1e-12 |P(0)|): at most ``tol``, or there was a warning
``history_``       what each gap check saw; one a problem
``solver_``        the method that ran
=================  ============================================================================

P is in the papers' scaling, a mean over the rows; without a penalty there is no gap, and both
are NaN.  The certificate is that of ``coef_`` and ``intercept_`` as they are: float32 data make
float32 ones where the rounded point too is within ``tol``, and float64 ones where it is not.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..api.monitor import History
from ..api.solve import SHORT, Result, advice, run
from ..exceptions import ConvergenceWarning
from ..problem import Problem
from ..solvers.registry import SOLVERS
from .callbacks import CallbackSupportMixin, Reporter
from .threads import side_by_side

FLOATS = (np.float64, np.float32)


class EstimatorConvergenceWarning(ConvergenceWarning, SklearnConvergenceWarning):
    """A fit stopped before the gap it was asked for; scikit-learn's filters know it too."""


@dataclass
class Task:
    """One problem of a fit."""

    problem: Problem
    start: Any = None


class LinearEstimator(CallbackSupportMixin, BaseEstimator):
    """The shared fit; see the module's docstring."""

    #: Constraints on what every estimator takes.
    _parameter_constraints: dict = {
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- input --------------------------------------------------------------------------

    def _validated(self, X, y, **how):
        """(X, y) as arrays, X in float32 or float64 rows; what an earlier fit found is dropped."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, order="C", **how)
        kept = {"n_features_in_", "feature_names_in_"}
        if getattr(self, "warm_start", False):
            kept |= {"coef_", "intercept_", "dual_coef_"}
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            if name not in kept:
                delattr(self, name)
        return X, y

    def _weights(self, sample_weight, X) -> np.ndarray | None:
        """Sample weights as float64, or None."""
        if sample_weight is None:
            return None
        w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not w.any():
            raise ValueError(
                "sample_weight is zero for every row: at least one must be positive"
            )
        return w

    # ---- solving ------------------------------------------------------------------------

    def _limits(self) -> dict:
        """What :func:`~adacoord.api.solve.run` is told of when to stop."""
        # None is scikit-learn's "any": here 0, so that a fit is the same whenever it runs
        seed = 0
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return {
            "tol": self.tol, "max_passes": 1000 if self.max_iter is None else self.max_iter,
            "seed": seed, "options": {},
        }

    def _solve(self, tasks: list[Task], X, y, sample_weight, shape, also="") -> list[Result]:
        """Solve the problems, in turn or ``n_jobs`` at a time, and warn once.

        ``shape`` turns the results so far into ``coef_`` and ``intercept_``, for callbacks;
        ``also`` is what to warn of besides.
        """
        limits = {**self._limits(), "verbose": bool(self.verbose)}
        with Reporter(self, X, y, sample_weight, len(tasks), shape) as report:
            jobs = 1 if self.n_jobs is None or report.active else effective_n_jobs(self.n_jobs)
            if min(jobs, len(tasks)) > 1:
                jobs = min(jobs, len(tasks))
                results = side_by_side(self._until(limits), tasks, jobs, Event())
            else:
                results = []
                try:
                    for task in tasks:
                        results.append(run(
                            task.problem, self.solver, start=task.start,
                            callback=report.progress, **limits,
                        ))
                        report.solved(results)
                        if results[-1].status == "interrupted":
                            break
                except KeyboardInterrupt:  # between two problems, or where there is no point yet
                    if not results:
                        raise
                results += [_untouched(task.problem) for task in tasks[len(results):]]
        text = " ".join(filter(None, (also, self._shortfall(tasks, results))))
        if text:
            warnings.warn(text, EstimatorConvergenceWarning, stacklevel=4)
        return results

    def _until(self, limits: dict):
        """A solution of one of several problems; after Ctrl-C as it is at the next gap check."""
        def solve(task: Task, stop: Event) -> Result:
            if stop.is_set():
                return _untouched(task.problem)
            result = run(task.problem, self.solver, start=task.start,
                         callback=lambda _: stop.is_set(), **limits)
            stopped = result.status == "callback"
            return replace(result, status="interrupted") if stopped else result

        return solve

    def _shortfall(self, tasks, results) -> str:
        """What to say of problems that stopped before ``tol``; nothing where none did."""
        short = [i for i, r in enumerate(results)
                 if r.status in (*SHORT, "interrupted")]
        if not short:
            return ""
        gaps = [np.nan_to_num(results[i].relative_gap, nan=np.inf) for i in short]
        worst = short[int(np.argmax(gaps))]
        text = advice(tasks[worst].problem, results[worst], self.tol)
        text = text.replace("max_passes", "max_iter")
        text = text.replace("start from it", "fit again with warm_start=True")
        if len(results) > 1:
            text = f"{len(short)} of {len(results)} problems stopped early; the worst: {text}"
        return text

    def _held(self, recipe, problems, results: list[Result], coef, c, dtype):
        """(results, coefficients, intercepts): in ``dtype`` where that keeps to ``tol``."""
        for kind in (dtype, np.float64):
            with np.errstate(over="ignore", invalid="ignore"):
                rounded = coef.astype(kind), c.astype(kind)
                held = [
                    _moved(problem, result, *point) for problem, result, point
                    in zip(problems, results, recipe.points(*rounded), strict=True)
                ]
                # where there is no certificate, P is not to lose more than that either
                losses = [
                    at.relative_gap if p.has_certificate else p.relative_gap(at.primal, r.primal)
                    for p, r, at in zip(problems, results, held, strict=True)
                ]
            if max(losses) <= self.tol:
                break
        return held, *rounded

    def _store(self, results: list[Result], single: bool) -> None:
        """The certificate's attributes: numbers for a single problem, arrays for several."""
        def of(values):
            return values[0] if single else np.array(values)

        self.dual_gap_ = of([float(r.gap) for r in results])
        self.relative_gap_ = of([float(r.relative_gap) for r in results])
        self.history_ = results[0].history if single else [r.history for r in results]
        names = [r.solver for r in results]
        self.solver_ = names[0] if len(set(names)) == 1 else names

    # ---- warm starts --------------------------------------------------------------------

    def _starts(self, problems: list[Problem]) -> list[Any]:
        """Where to start: the last fit, if ``warm_start`` asks for it and its shape fits."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return [None] * len(problems)
        coef = self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_
        return starts_near(
            problems, coef, getattr(self, "intercept_", 0.0), getattr(self, "dual_coef_", None)
        )


def _moved(problem: Problem, result: Result, x, intercept) -> Result:
    """The result with another primal point, and what is certified of that."""
    x = x.astype(np.float64)
    if np.array_equal(x, result.x) and np.array_equal(intercept, result.intercept):
        return result
    primal = problem.primal(x, intercept)
    moved = replace(result, x=x, intercept=intercept, primal=primal)
    if not problem.has_certificate:
        return moved
    gap = problem.gap(x, result.y, intercept)
    dual = primal - gap
    return replace(moved, dual=dual, gap=gap, relative_gap=problem.relative_gap(primal, dual))


def starts_near(problems: list[Problem], coef, intercept, dual=None) -> list[Any]:
    """Points to start from, of what an estimator has in ``coef_``, ``intercept_``, ``dual_coef_``.

    None for all where the shape of ``coef_`` is another.
    """
    x = np.atleast_2d(coef).astype(np.float64)
    c = np.broadcast_to(np.asarray(intercept, dtype=np.float64), (x.shape[0],))
    y = np.atleast_2d(np.empty((0, 0)) if dual is None else dual)
    first = problems[0]
    if first.loss.blocks:
        x, c, y = x.T[None], c[None], y.T[None]
    if x.shape != (len(problems), *first.x_shape):
        return [None] * len(problems)
    known = y.shape == (len(problems), *first.y_shape)
    return [
        _start_at(problem, x[i], c[i], y[i] if known else None)
        for i, problem in enumerate(problems)
    ]


def _start_at(problem: Problem, x, intercept, y=None) -> SimpleNamespace:
    """A point to start from; without a dual one, the slopes of the losses there are."""
    if not problem.intercept:
        intercept = problem.no_intercept
    if y is None:
        y = problem.loss.derivative(problem.predict(x, intercept), problem.b)
    return SimpleNamespace(x=x, intercept=intercept, y=y)


def _untouched(problem: Problem) -> Result:
    """x = 0, for problems that an interrupt left over."""
    history = History()
    history.freeze()
    y, u = problem.feasible_dual(problem.loss.start(problem.b))
    primal, dual = problem.null_value, problem._dual(y, u)
    return Result(
        x=np.zeros(problem.x_shape), intercept=problem.no_intercept, y=y, primal=primal,
        dual=dual, gap=primal - dual, relative_gap=problem.relative_gap(primal, dual),
        converged=False, status="interrupted", passes=0, seconds=0.0, history=history,
        solver="none",
    )


def with_bias(X, scaling: float):
    """``X`` and a column of ``scaling``: liblinear's penalised bias."""
    # in the type of X where that holds it exactly: the intercept is its multiple
    dtype = X.dtype if float(X.dtype.type(scaling)) == scaling else np.float64
    column = np.full((X.shape[0], 1), scaling, dtype=dtype)
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(column)], format="csr")
    return np.hstack([X, column])
