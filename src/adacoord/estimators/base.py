"""What the estimators share: a fit is checked rows, the problems they pose, and their solutions.

An estimator says what its rows are (``_rows``), what it asks for (``_recipe``) and under which
penalties (``_penalties``); :meth:`LinearEstimator._pose` makes the problems, and this file solves
them and sets the fitted attributes.

=================  ============================================================================
``coef_``          the coefficients, as scikit-learn's class of that name shapes them
``intercept_``     not penalised, unless ``intercept_scaling`` asks for liblinear's
``n_iter_``        passes over the data
``dual_coef_``     y of the dual problem, shaped as ``coef_`` with rows in place of columns; large
                   ones are kept only if ``keep_dual`` asks for them
``dual_gap_``      P - D, a bound on how far P is from its least value; one number per problem
``relative_gap_``  (P - D)/max(|P|, |D|, 1e-12 |P(0)|): at most ``tol``, or there was a warning
``history_``       what each gap check saw; one per problem
``solver_``        the method that ran, a name that ``solver`` takes; ``"auto"`` where several did
=================  ============================================================================

P is in the papers' scaling, a mean over the rows; without a penalty there is no gap, and both
are NaN.  The certificate is that of ``coef_`` and ``intercept_`` as they are: float32 data make
float32 ones where the rounded point too is within ``tol``, and float64 ones where it is not.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from numbers import Integral, Real
from threading import Event
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..api.monitor import History
from ..api.solve import SHORT, Result, advice, run
from ..api.targets import alike, solve_together
from ..data.blocks import BlockMatrix
from ..data.matrix import Matrix, as_matrix
from ..exceptions import ConvergenceWarning
from ..parallel.choice import executor_for
from ..parallel.config import Workers, asked, keeping
from ..problem import Problem
from ..solvers.registry import SOLVERS, admit
from .callbacks import CallbackSupportMixin, Reporter
from .columns import Columns
from .export import ExportMixin
from .recipes import Posed, Recipe, Rows
from .row_blocks import checked_targets, in_rows
from .threads import side_by_side

FLOATS = (np.float64, np.float32)
#: Types of parameters that say all there is to check of them.
PLAIN = frozenset({bool, int, float, str, type(None)})
#: The bytes of ``dual_coef_`` that are kept unasked.
SMALL_DUAL = 2**20
#: scikit-learn's names of methods: ours of that name where it takes the problem, else "auto".
SKLEARN_SOLVERS = frozenset(
    {
        "cholesky",
        "cyclic",
        "highs",
        "highs-ds",
        "highs-ipm",
        "interior-point",
        "lbfgs",
        "liblinear",
        "lsqr",
        "newton-cg",
        "newton-cholesky",
        "random",
        "revised simplex",
        "sag",
        "saga",
        "sparse_cg",
        "svd",
    }
)


class EstimatorConvergenceWarning(ConvergenceWarning, SklearnConvergenceWarning):
    """A fit stopped before the gap it was asked for; scikit-learn's filters know it too."""


class LinearEstimator(ExportMixin, CallbackSupportMixin, BaseEstimator):
    """The shared fit; see the module's docstring."""

    #: Constraints on what every estimator takes.
    _parameter_constraints: dict = {
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", *SOLVERS, *SKLEARN_SOLVERS})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "keep_dual": ["boolean", None],
    }

    @classmethod
    @cache  # a signature takes 40 us to read
    def _get_param_names(cls):
        return super()._get_param_names()

    def _validate_params(self):
        """As scikit-learn does, but once of the same numbers and words: 50 us of a small fit."""
        given = self.get_params(deep=False)
        kinds = tuple(map(type, given.values()))
        if not PLAIN.issuperset(kinds):
            super()._validate_params()
            return
        constraints = Constraints(self._parameter_constraints)
        _valid(type(self).__name__, constraints, tuple(given), kinds, tuple(given.values()))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- pose ---------------------------------------------------------------------------

    def fit(self, X, y, sample_weight=None, offset=None):
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Used as it is, without a copy, where it is of float32 or float64 and in C or Fortran
            order, CSR or CSC.  Or blocks of rows, which stay where they are: a store
            (:func:`adacoord.open_store`), an iterable of pairs (X, y), a Dask array or dataframe
            or a list of delayed partitions, with y of the same kind (None for what has its own).
        y : array of shape (n_samples,), or (n_samples, n_targets) where the class takes several
        sample_weight : array of shape (n_samples,) or a number, optional
        offset : array of shape (n_samples,), or (n_samples, rows of ``coef_``), optional
            What is added to the predictions while the model is fitted: the logarithm of an
            exposure with a log link, or what another model predicts.  ``predict`` takes one, too.

        Returns
        -------
        self
        """
        self._validate_params()
        X, y, sample_weight = in_rows(X, y, sample_weight)
        posed = self._pose(X, y, sample_weight, offset)
        self._begin(posed.rows)
        return self._solve(posed, self._warm_starts(posed))

    def _pose(self, X, y, sample_weight=None, offset=None) -> Posed:
        """The problems of the data; of a search, under the penalty that it has chosen.

        Sets nothing but what scikit-learn's check of X notes: the number and names of features.
        """
        rows = self._rows(X, y, sample_weight)
        recipe = self._recipe(rows)
        return self._posed(recipe.with_offset(rows, offset), recipe)

    def _columns(self, rows: Rows) -> Columns:
        """What ``penalty_factor``, ``bounds`` and ``standardize`` ask for, where there are such."""
        return Columns.of(
            rows.X,
            rows.weights,
            getattr(self, "standardize", False),
            getattr(self, "penalty_factor", None),
            getattr(self, "bounds", None),
        )

    def _rows(self, X, y, sample_weight) -> Rows:
        """Checked input."""
        raise NotImplementedError

    def _recipe(self, rows: Rows) -> Recipe:
        """What the parameters ask for, of such rows."""
        raise NotImplementedError

    def _penalties(self, rows: Rows, recipe: Recipe) -> list[tuple[float, float]]:
        """(l1, l2) of each problem; of a search, as it was chosen."""
        raise NotImplementedError

    def _iterations(self, passes: list[int]):
        """``n_iter_``, of the passes of each problem."""
        raise NotImplementedError

    def _posed(self, rows: Rows, recipe: Recipe) -> Posed:
        return Posed(rows, recipe, recipe.problems(rows, self._penalties(rows, recipe)))

    def _checked(self, X, y, sample_weight, **how):
        """X in float32 or float64, rows or columns as they are; y; weights in float64 or None.

        And X as solvers read it, where that was the check of it.
        """
        matrix = None
        if isinstance(X, BlockMatrix):
            y = checked_targets(self, X, y, how)
        elif (matrix := _faultless(X, y, how.get("multi_output", False))) is not None:
            self.n_features_in_ = X.shape[1]
            vars(self).pop("feature_names_in_", None)
        else:
            X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), dtype=FLOATS, **how)
        if sample_weight is None:
            return X, y, None, matrix
        like = np.empty((X.shape[0], 0)) if isinstance(X, BlockMatrix) else X
        w = _check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)
        if not w.any():
            raise ValueError("sample_weight is zero for every row: at least one must be positive")
        return X, y, w, matrix

    def _begin(self, rows: Rows) -> None:
        """Drop what an earlier fit found, but for where a warm start begins."""
        kept = {"n_features_in_", "feature_names_in_"}
        if getattr(self, "warm_start", False):
            kept |= {"coef_", "intercept_", "dual_coef_"}
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            if name not in kept:
                delattr(self, name)
        if rows.classes is not None:
            self.classes_ = rows.classes

    def _warm_starts(self, posed: Posed) -> list[Any]:
        """Where to start: the last fit, if ``warm_start`` asks for it and its shape fits."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return [None] * len(posed.problems)
        return posed.starts(
            self.coef_, getattr(self, "intercept_", 0.0), getattr(self, "dual_coef_", None)
        )

    # ---- solve --------------------------------------------------------------------------

    def _runner(self) -> Callable[..., Result]:
        """``solve(problem, start, **how)`` within the limits of this estimator."""
        # None is scikit-learn's "any": here 0, so that a fit is the same whenever it runs
        seed = 0
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        passes = 1000 if self.max_iter is None else self.max_iter

        def solve(problem: Problem, start=None, **how) -> Result:
            limits = {"tol": self.tol, "max_passes": passes}
            name = as_ours(self.solver, problem)
            return run(problem, name, seed=seed, options={}, start=start, **(limits | how))

        return solve

    def _solve(self, posed: Posed, starts: list[Any], also: str = ""):
        """Solve the problems, set the fitted attributes, and warn once; ``also`` is what to warn
        of besides."""
        problems = posed.problems
        heard = getattr(self, "_skl_callbacks", ())
        with Reporter(self, posed) if heard else nullcontext() as report:
            workers = asked(self.n_jobs)
            jobs = 1 if workers.n_jobs is None or report else effective_n_jobs(workers.n_jobs)
            if min(jobs, len(problems)) > 1:
                results = self._side_by_side(problems, starts, jobs)
            else:
                results = self._in_turn(problems, starts, report, workers)
        text = " ".join(filter(None, (also, self._shortfall(problems, results))))
        if text:
            warnings.warn(text, EstimatorConvergenceWarning, stacklevel=3)
        self._store(posed, results)
        return self

    def _in_turn(self, problems, starts, report: Reporter | None, workers: Workers) -> list[Result]:
        """A solution of each problem; after Ctrl-C those there are, and zeros for the rest.

        ``workers`` share the rows of each, where its method has a form for that.
        """
        solve, results = self._runner(), []
        callback = report.progress if report else None
        asks = workers != Workers()
        if self._together(problems, starts, asks or report is not None):
            results = solve_together(problems, self.tol)
            if all(r.converged for r in results):
                return results
            starts, results = results, []
        executor = executor_for(*workers) if asks else None  # one for all: blocks travel once
        try:
            for k, (problem, start) in enumerate(zip(problems, starts, strict=True)):
                how = keeping().of(k, len(problems))
                if asks and self._shares(problem):
                    how["executor"] = executor
                results.append(
                    solve(problem, start, callback=callback, verbose=bool(self.verbose), **how)
                )
                if report:
                    report.solved(results)
                if results[-1].status == "interrupted":
                    break
        except KeyboardInterrupt:  # between two problems, or where there is no point yet
            if not results:
                raise
        finally:
            if executor is not None:
                executor.close()
        return results + [_untouched(problem) for problem in problems[len(results) :]]

    def _together(self, problems: list[Problem], starts: list[Any], watched: bool) -> bool:
        """Whether nothing was asked for that one decomposition for all targets does not give."""
        plain = not (watched or self.verbose or keeping().checkpoint)
        plain = plain and all(start is None for start in starts)
        return plain and as_ours(self.solver, problems[0]) == "auto" and alike(problems)

    def _shares(self, problem: Problem) -> bool:
        """Whether the method for a problem may share its rows out; others work on one core."""
        name = as_ours(self.solver, problem)
        if name == "auto" or problem.matrix.blocked:
            return True
        entry = SOLVERS[name].variant(problem.reduction.problem)
        return entry.row_blocks or entry.in_blocks is not None

    def _side_by_side(self, problems, starts, jobs: int) -> list[Result]:
        """The same in several threads; after Ctrl-C each as it is at the next gap check.

        Threads that are left over share the rows of the problems.
        """
        solve, at_once = self._runner(), min(jobs, len(problems))
        kept = keeping()  # of this thread

        def one(task, stop: Event) -> Result:
            k, (problem, start) = task
            if stop.is_set():
                return _untouched(problem)
            how = kept.of(k, len(problems))
            if self._shares(problem):
                how["n_jobs"] = max(jobs // at_once, 1)
            result = solve(problem, start, callback=lambda _: stop.is_set(), **how)
            if result.status == "callback":
                result = replace(result, status="interrupted")
            self._tell(
                f"problem {k + 1} of {len(problems)}: {result.method}, {result.passes} "
                f"passes, relative gap {result.relative_gap:.1e}"
            )
            return result

        tasks = enumerate(zip(problems, starts, strict=True))
        return side_by_side(one, tasks, at_once, Event())

    def _tell(self, text: str) -> None:
        """A line for who asked for it, where the line of :mod:`adacoord.api.progress` is not."""
        if self.verbose:
            print(text, file=sys.stderr, flush=True)

    def _shortfall(self, problems, results) -> str:
        """What to say of problems that stopped before ``tol``; nothing where none did."""
        short = [i for i, r in enumerate(results) if r.status in (*SHORT, "interrupted")]
        if not short:
            return ""
        gaps = [np.nan_to_num(results[i].relative_gap, nan=np.inf) for i in short]
        worst = short[int(np.argmax(gaps))]
        named = as_ours(self.solver, problems[worst]) != "auto"
        text = advice(problems[worst], results[worst], self.tol, named)
        text = text.replace("max_passes", "max_iter")
        text = text.replace("start from it", "fit again with warm_start=True")
        if len(results) > 1:
            text = f"{len(short)} of {len(results)} problems stopped early; the worst: {text}"
        return text

    # ---- store --------------------------------------------------------------------------

    def _store(self, posed: Posed, results: list[Result]) -> None:
        """Set the fitted attributes: numbers for a single problem, arrays for several."""

        def of(values):
            return values[0] if len(results) == 1 else np.array(values)

        ran = {r.solver for r in results} - {NOT_RUN}
        results, coef, c = self._held(posed, results)
        for name, value in posed.recipe.shaped(coef, c).items():
            setattr(self, name, value)
        if self._keeps(results):
            self.dual_coef_ = posed.recipe.duals(results)
        elif hasattr(self, "dual_coef_"):  # a warm start began from it
            del self.dual_coef_
        self.dual_gap_ = of([float(r.gap) for r in results])
        self.relative_gap_ = of([float(r.relative_gap) for r in results])
        self.history_ = results[0].history if len(results) == 1 else [r.history for r in results]
        self.solver_ = ran.pop() if len(ran) == 1 else "auto"
        self.n_iter_ = self._iterations([max(r.passes, 1) for r in results])

    def _keeps(self, results: list[Result]) -> bool:
        """Whether the fit leaves its dual points behind; pickles and model files hold them."""
        if self.keep_dual is not None:
            return self.keep_dual
        small = sum(r.y.nbytes for r in results) <= SMALL_DUAL
        return small or getattr(self, "warm_start", False)

    def _held(self, posed: Posed, results: list[Result]):
        """(results, coefficients, intercepts): in X's type where that keeps to ``tol``."""
        coef, c = posed.coefficients(results)
        for kind in (posed.rows.X.dtype, np.float64):
            with np.errstate(over="ignore", invalid="ignore"):
                rounded = coef.astype(kind, copy=False), c.astype(kind, copy=False)
                held = [
                    _moved(problem, result, *point, self.tol)
                    for problem, result, point in zip(
                        posed.problems, results, posed.recipe.points(*rounded), strict=True
                    )
                ]
                # where there is no certificate, P is not to lose more than that either
                losses = [
                    at.relative_gap if p.has_certificate else p.relative_gap(at.primal, r.primal)
                    for p, r, at in zip(posed.problems, results, held, strict=True)
                ]
            if max(losses) <= self.tol:
                break
        return held, *rounded


@dataclass(frozen=True, eq=False)
class Constraints:
    """A class's constraints, equal to themselves alone: a class may be given others."""

    of: dict

    def __hash__(self):
        return id(self.of)

    def __eq__(self, other):
        return isinstance(other, Constraints) and self.of is other.of


@lru_cache(maxsize=256)
def _valid(name: str, constraints: Constraints, names: tuple, kinds: tuple, values: tuple) -> None:
    """Refuse what the class does not take; ``kinds`` tell 1 from True and 1.0."""
    given = dict(zip(names, values, strict=True))
    validate_parameter_constraints(constraints.of, given, caller_name=name)


@np.errstate(over="ignore", invalid="ignore")
def _faultless(X, y, multi_output: bool = False) -> Matrix | None:
    """X for solvers, if X and y are arrays that scikit-learn's checks would hand back as they are.

    It takes them 0.2 ms to find that out, a third of a small fit, and a pass over large data that
    solvers need not make (text, 6,000 x 15,000, LinearSVR: 4.5 -> 4.1 ms).  What is None may be
    faultless all the same.
    """
    plain = (
        type(y) is np.ndarray
        and (type(X) is np.ndarray or (sparse.issparse(X) and X.format in ("csr", "csc")))
        and X.dtype in FLOATS
        and y.dtype.kind in "fiub"
        and X.ndim == 2
        and X.shape[1] > 0
        and y.shape[:1] == X.shape[:1] != (0,)
        and (y.ndim == 1 or (multi_output and y.ndim == 2 and y.shape[1] > 0))
        and math.isfinite(y.sum())
    )
    try:
        return as_matrix(X, "X") if plain else None
    except ValueError:  # numbers that are not finite, or too large
        return None


def as_ours(solver: str, problem: Problem) -> str:
    """The name for :func:`~adacoord.api.solve.run`, of a name that an estimator takes."""
    if solver not in SKLEARN_SOLVERS:
        return solver
    if solver not in SOLVERS:
        return "auto"
    try:
        admit(problem, solver, {})
    except ValueError:  # it cannot solve this one
        return "auto"
    return solver


def _moved(problem: Problem, result: Result, x, intercept, tol: float) -> Result:
    """The result with another primal point, and what is certified of that."""
    x = x.astype(np.float64, copy=False)
    if np.array_equal(x, result.x) and np.array_equal(intercept, result.intercept):
        return result
    moved = replace(result, x=x, intercept=intercept)
    if not problem.has_certificate:
        return replace(moved, primal=problem.primal(x, intercept))
    primal, dual = problem.judge(x, result.y, intercept, tol)
    gap, relative_gap = primal - dual, problem.relative_gap(primal, dual)
    return replace(moved, primal=primal, dual=dual, gap=gap, relative_gap=relative_gap)


#: In place of a solver's name, of a problem that an interrupt left over.
NOT_RUN = ""


def _untouched(problem: Problem) -> Result:
    """x = 0, for problems that an interrupt left over."""
    history = History()
    history.freeze()
    x, (y, u) = np.zeros(problem.x_shape), problem.feasible_dual(problem.loss.start(problem.b))
    primal = problem.null_value
    dual = problem.bound(x, problem.no_intercept, primal, y, u, problem._dual(y, u))
    return Result(
        x=x,
        intercept=problem.no_intercept,
        y=y,
        primal=primal,
        dual=dual,
        gap=primal - dual,
        relative_gap=problem.relative_gap(primal, dual),
        converged=False,
        status="interrupted",
        passes=0,
        seconds=0.0,
        history=history,
        solver=NOT_RUN,
    )
