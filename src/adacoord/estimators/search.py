"""What the cross-validated estimators share: paths over the folds, and who is told of what.

On each fold the data are wrapped once, and its problems are solved under every penalty from strong
to weak, each from where the last one ended (:func:`adacoord.path` is the same walk).  Every point
is certified to ``tol``, in ``path_gaps_``; small problems are solved to the last digit, so that no
choice hangs on what was left undone.  Least squares with an l1 does without the rows of a fold
(:mod:`.gram_folds`).  Then the chosen penalty is solved on all rows.

Ctrl-C during the paths raises KeyboardInterrupt, as there is no model yet; during the last solution
it keeps the best point so far and warns, as every estimator here does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.model_selection import KFold, check_cv
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled, process_routing
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from ..api.path import follow
from ..parallel.config import asked, refuse_checkpoint
from ..problem import Problem
from .recipes import Rows
from .threads import side_by_side

#: What scorers ask a model for.
RESPONSES = ("predict", "decision_function", "predict_proba", "predict_log_proba")
#: An intercept so large that a loss of margins is 0 in float64.
NEVER_WRONG = 1e3


@dataclass
class Walk:
    """One fold's paths: arrays of shape (paths, points)."""

    scores: np.ndarray
    gaps: np.ndarray
    passes: np.ndarray
    short: np.ndarray
    coefs: np.ndarray | None = None

    @classmethod
    def empty(cls, paths: int, points: int) -> Walk:
        shape = paths, points
        return cls(
            np.empty(shape),
            np.empty(shape),
            np.empty(shape, dtype=np.int32),
            np.zeros(shape, dtype=bool),
        )

    def note(self, where: tuple[int, int], score: float, results: Sequence) -> None:
        """What the problems of one point came to."""
        self.scores[where] = score
        self.gaps[where] = np.max([r.relative_gap for r in results])
        self.passes[where] = max(1, *(r.passes for r in results))
        self.short[where] = not all(r.converged for r in results)


class Solve:
    """``solve(problem, start)`` within the limits of the search; Ctrl-C ends it."""

    def __init__(self, run: Callable[..., Any], stop: Event | None):
        self.run, self.stop = run, stop

    def __call__(self, problem: Problem, start: Any) -> Any:
        if self.stop is None:
            return self.run(problem, start)
        result = self.run(problem, start, callback=lambda _: self.stop.is_set())
        self.check()
        return result

    def check(self) -> None:
        """Raise KeyboardInterrupt where another thread has had it."""
        if self.stop is not None and self.stop.is_set():
            raise KeyboardInterrupt


class CrossValidated:
    """Of estimators with a ``cv``: folds, walks and metadata."""

    # the estimator's own
    cv: Any
    n_jobs: int | None
    tol: float
    _runner: Callable[..., Any]

    def _refuse_checkpoint(self) -> None:
        refuse_checkpoint(
            f"{type(self).__name__}, a search over folds,",
            "leave it out, or fit the chosen penalty alone",
        )

    # ---- walks --------------------------------------------------------------------------

    def _folds(self, X, y, classifier: bool, **params) -> list[tuple[np.ndarray, np.ndarray]]:
        """(train, test) of each fold, as indices."""
        cv = self.cv
        if cv is None:  # 5, or as many as there are rows (of the largest class) to go round
            most = np.unique(y, return_counts=True)[1].max() if classifier else X.shape[0]
            cv = int(np.clip(most, 2, 5))
        splits = check_cv(cv, y, classifier=classifier).split(X, y, **params)
        rows = np.arange(X.shape[0])
        return [(rows[train], rows[test]) for train, test in splits]

    def _walk(self, folds, one_fold: Callable[..., Walk]) -> list[Walk]:
        """``one_fold(train, test, solve)`` for each fold, ``n_jobs`` of them at a time."""
        run = self._runner()  # one seed for all

        def go(numbered, stop=None):
            k, fold = numbered
            walk = one_fold(*fold, Solve(run, stop))
            self._tell(
                f"fold {k + 1} of {len(folds)}: {walk.gaps.size} points, "
                f"{walk.passes.sum()} passes, relative gaps up to {np.max(walk.gaps):.1e}"
            )
            return walk

        jobs = self._jobs
        if min(jobs, len(folds)) == 1:
            return [go(numbered) for numbered in enumerate(folds)]
        stop = Event()
        walks = side_by_side(go, enumerate(folds), min(jobs, len(folds)), stop)
        if stop.is_set():  # by Ctrl-C after the last point of the last fold
            raise KeyboardInterrupt
        return walks

    @property
    def _jobs(self) -> int:
        """Folds at a time, at most."""
        n_jobs = asked(self.n_jobs).n_jobs
        return 1 if n_jobs is None else effective_n_jobs(n_jobs)

    def _missed(self, walks: list[Walk]) -> str:
        """What to say of points that stopped before ``tol``; nothing where none did."""
        short = np.stack([w.short for w in walks])
        if not short.any():
            return ""
        gaps = np.stack([w.gaps for w in walks])[short]
        worst = ""
        if not np.isnan(gaps).all():
            worst = (
                f"; the worst has a relative gap of {np.nanmax(gaps):.2e}, "
                f"tol={self.tol:g} was asked for"
            )
        return (
            f"{short.sum()} of {short.size} points of the folds' paths stopped early{worst}. Raise "
            "max_iter or tol, or leave out the weakest penalties."
        )

    # ---- metadata -----------------------------------------------------------------------

    def _routed(self, params: dict, sample_weight, scored: bool) -> tuple[dict, dict]:
        """(for the splitter, for the scorer), of what ``fit`` was given."""
        _raise_for_params(params, self, "fit")
        if sample_weight is not None:
            params = {**params, "sample_weight": sample_weight}
        if not _routing_enabled():
            return {}, params
        routed = process_routing(self, "fit", **params)
        return routed.splitter.split, routed.scorer.score if scored else {}

    def _router(self, scorer=None, *callers) -> MetadataRouter:
        """Who may ask for metadata: the splitter, and the scorer in ``callers``."""
        splitter = self.cv if hasattr(self.cv, "split") else KFold()
        router = (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split")
            )
        )
        if scorer is not None:
            mapping = MethodMapping()
            for caller in callers:
                mapping.add(caller=caller, callee="score")
            router.add(scorer=scorer, method_mapping=mapping)
        return router


class Shifted:
    """A model to be scored on rows with an offset, which scorers know nothing of."""

    def __init__(self, model: Any, offset: np.ndarray):
        self._model, self._offset = model, offset

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name not in RESPONSES:
            return found
        return wraps(found)(partial(found, offset=self._offset))  # scorers ask for its name


def shifted(model: Any, rows: Rows) -> Any:
    """The model as scorers are to see it on these rows."""
    if rows.offset is None:
        return model
    one = len(rows.offset) == 1 and rows.y.ndim == 1
    return Shifted(model, rows.offset[0] if one else rows.offset.T)


def points(
    problems: list[Problem], penalties: list[tuple[float, float]], solve
) -> Iterator[tuple[Any, ...]]:
    """The solutions of all problems at each penalty in turn."""
    return zip(*(_along(p, penalties, solve) for p in problems), strict=True)


def _along(problem: Problem, penalties, solve) -> Iterator[Any]:
    if one_sided(problem):
        yield from [_never_wrong(problem)] * len(penalties)
        return
    yield from follow(problem, penalties, solve)


def one_sided(problem: Problem) -> bool:
    """Whether all rows have the same label, and an intercept alone says so."""
    if not problem.intercept or problem.loss.task not in ("classification", "multiclass"):
        return False
    b = problem.b if problem.weights is None else problem.b[problem.weights > 0.0]
    return bool((b == b[0]).all())


def _never_wrong(problem: Problem):
    """x = 0, or nearly within bounds, and an intercept at which the losses are 0, to rounding."""
    b = problem.b if problem.weights is None else problem.b[problem.weights > 0.0]
    side = b[0]
    if problem.loss.blocks:
        side = np.where(np.arange(problem.x_shape[1]) == side, 1.0, -1.0)
    return SimpleNamespace(
        x=problem.null_point,
        intercept=NEVER_WRONG * side,
        relative_gap=0.0,
        passes=0,
        converged=True,
    )


def weighted_mean(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Of the rows of a test fold."""
    if weights is None:
        return float(np.mean(values))
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for every row of a test fold, which then says nothing: "
            "leave such rows out, or give other folds with cv"
        )
    return float(np.average(values, weights=weights))


def strong_first(strengths: np.ndarray) -> np.ndarray:
    """The order in which a path is walked."""
    return np.argsort(-np.asarray(strengths), kind="stable")


def as_rows(X):
    """Rows to predict, many times: scikit-learn would turn sparse columns into rows each time."""
    return X.tocsr() if sparse.issparse(X) else X
