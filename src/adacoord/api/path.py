"""``path``: one problem under many penalties, each solved from where the last one ended."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..auto.fallback import lesson
from ..exceptions import ConvergenceWarning
from ..parallel.config import asked, config_context, refuse_checkpoint
from ..problem import Problem
from ..problem.many import certificates
from ..problem.penalties import Penalty
from . import gram
from .monitor import History, Switch
from .solve import Result, _check_limits, run, shared_out, threads_of_its_own

#: The solver's name in the :class:`Result` of a point that the Gram matrix gave.
ON_GRAM = "acf"


@dataclass(frozen=True)
class Path:
    """Solutions along a path of penalties, one a point, each with its certificate.

    Attributes
    ----------
    l1, l2 : the penalties, in the order in which they were solved
    coefs : array of shape (points, d), or (points, d, K) with K classes
    intercepts : array of shape (points,), or (points, K)
    primal, dual, gap, relative_gap, converged : the certificates, as in :class:`Result`
    passes, operations, seconds : what each point took beyond the one before; on a Gram matrix
        operations are entries of that, and the seconds of one call are shared out by them
    results : the :class:`Result` of each point, or None if they were not kept
    interrupted : whether Ctrl-C ended it: it then holds the points that were finished
    """

    l1: np.ndarray
    l2: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    gap: np.ndarray
    relative_gap: np.ndarray
    converged: np.ndarray
    passes: np.ndarray
    operations: np.ndarray
    seconds: np.ndarray
    results: list[Result] | None = None
    interrupted: bool = False

    def __len__(self) -> int:
        return self.l1.size

    def plot(self, ax: Any = None) -> Any:
        """Draw the coefficients against the penalty, strong ones on the left.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure without.

        Returns
        -------
        matplotlib axes
        """
        from .views import plot_path

        return plot_path(self, ax)

    def _repr_html_(self) -> str:
        from .views import table

        return table(
            f"Path of {len(self)} points{', interrupted' * self.interrupted}",
            {
                "l1": f"{self.l1[0]:.3g} to {self.l1[-1]:.3g}",
                "l2": f"{self.l2[0]:.3g} to {self.l2[-1]:.3g}",
                "certified relative gap, largest": f"{self.relative_gap.max():.2e}",
                "points at tol": f"{np.count_nonzero(self.converged)} of {len(self)}",
                "passes": int(self.passes.sum()),
                "seconds": float(self.seconds.sum()),
            },
        )

    def __repr__(self) -> str:
        return (
            f"Path({len(self)} points{', interrupted' * self.interrupted}, "
            f"l1 {self.l1[0]:.3g} to {self.l1[-1]:.3g}, l2 "
            f"{self.l2[0]:.3g} to {self.l2[-1]:.3g}; relative gaps up to "
            f"{self.relative_gap.max():.2e}, {self.passes.sum()} passes, "
            f"{self.seconds.sum():.3g} s)"
        )


def path(
    problem: Problem,
    l1: Any = None,
    l2: Any = None,
    *,
    n_points: int = 100,
    ratio: float = 1e-3,
    tol: float = 1e-6,
    solver: str = "auto",
    max_passes: int = 1000,
    seed: int = 0,
    keep_results: bool = False,
    n_jobs: int | None = None,
    executor: Any = None,
    **options: Any,
) -> Path:
    """Solve a problem along a path of penalties, from each point on to the next.

    Without ``l1`` and ``l2``, l1 falls from ``problem.l1_max()``, where x = 0, to ``ratio`` of it,
    in ``n_points`` equal factors, under the problem's own l2.

    The squared loss with an l1 (or x >= 0) and no more columns than rows is solved on its Gram
    matrix, all points in one call, where that is cheaper and the matrices (4 of d x d numbers)
    take no more than 1 GB (``adacoord.linalg.moments.LARGEST``).  Certificates are then from the
    Gram matrix, too, where rounding is below a hundredth of ``tol``, and from the data elsewhere.

    Parameters
    ----------
    problem : Problem
        Its own penalty is used for whichever of ``l1`` and ``l2`` is not given.
    l1, l2 : float or array, optional
        The penalties, solved in the order given (from strong to weak is fastest).  Two arrays
        must have the same length, a number stands for all points.  liblinear's C is
        ``l2 = 1/(n C)``.  Where columns have weights of their own, these are factors of the
        problem's l1_j and l2_j (1 where not given).
    n_points, ratio : int, float
        Of the path in l1 that is made if neither is given.
    tol, solver, max_passes, seed, n_jobs, executor, **options
        As in :func:`solve`, for each point; the rows are shared out once for all of them.
    keep_results : bool
        Keep the whole :class:`Result` (its dual point and history) of each point.

    Returns
    -------
    Path
        After Ctrl-C what was finished, marked ``interrupted``; KeyboardInterrupt where that is
        nothing.

    Warns
    -----
    ConvergenceWarning
        Once, when points stopped at ``max_passes`` before ``tol``.
    """
    _check_limits(problem, tol, max_passes, None, seed)
    refuse_checkpoint("a path", "leave it out, or solve its points one by one")
    first, second = _penalties(problem, l1, l2, n_points, ratio)
    n_jobs, executor = asked(n_jobs, executor)
    options, n_jobs = threads_of_its_own(solver, options, n_jobs)
    problem = weighed(problem)
    weakest = under(problem, float(first[-1]), float(second[-1]))
    # weights of single columns are for one array: run by run then
    if (n_jobs is not None or executor is not None) and weakest.penalty.uniform:
        with shared_out(weakest, solver, options, n_jobs, executor) as weakest, config_context():
            shared = problem.with_penalty()
            shared.matrix = weakest.matrix
            return path(
                shared,
                first,
                second,
                tol=tol,
                solver=solver,
                max_passes=max_passes,
                seed=seed,
                keep_results=keep_results,
                **options,
            )
    switched: Switch | None = None  # what a switch has taught: not again the wrong method

    def one(problem: Problem, start: Any, spent: int = 0) -> Result:
        nonlocal switched
        found = run(
            problem,
            lesson(problem, switched) if solver == "auto" else solver,
            tol=tol,
            max_passes=max_passes - spent,
            seed=seed,
            start=start,
            options=options,
        )
        switched = found.history.switched or switched
        return found

    results: list[Result] = []

    def gathered(interrupted: bool) -> Path:
        found = _gather(first, second, results, keep_results, interrupted)
        missed = np.flatnonzero([result.status == "max_passes" for result in results])
        if missed.size:
            worst = missed[np.argmax(found.relative_gap[missed])]
            warnings.warn(
                f"{missed.size} of {len(found)} points of the path stopped at "
                f"max_passes={max_passes}; the worst has a relative gap of "
                f"{found.relative_gap[worst]:.2e} at l1={found.l1[worst]:.3g}, "
                f"l2={found.l2[worst]:.3g}, tol={tol:g} was asked for. Allow more passes, raise "
                "tol, or end the path earlier.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return found

    def walk() -> Iterator[Any]:
        _ = problem.null_value  # made once for the problems of all points
        if solver == "auto" and not options and gram.possible(problem):
            problems = [
                problem.with_penalty(float(l1), float(l2))
                for l1, l2 in zip(first, second, strict=True)
            ]
            if all(p.penalty.sparse for p in problems) and gram.pays(problem, first.size):
                return _on_gram(problems, one, tol, max_passes, keep_results)
        return follow(problem, zip(first, second, strict=True), one)

    try:
        for point in walk():
            results.append(point)
        return gathered(interrupted=False)
    except KeyboardInterrupt:
        if not results:
            raise
        return gathered(interrupted=True)


def under(problem: Problem, l1: float, l2: float) -> Problem:
    """The problem under another penalty: factors of the columns' own weights, where they have."""
    problem = weighed(problem)
    columns: Any = problem.penalty
    own: Any = (1.0, 1.0) if columns.uniform else columns.by_column(problem.d)
    return problem.with_penalty(l1 * own[0], l2 * own[1])


def weighed(problem: Problem) -> Problem:
    """The problem with weights of 1 where columns have none, but bounds: what factors are of."""
    columns: Any = problem.penalty
    if columns.uniform:
        return problem
    own = columns.by_column(problem.d)[:2]
    return problem.with_penalty(*(None if w.any() else 1.0 for w in own))


def follow(
    problem: Problem,
    penalties: Iterable[tuple[float, float]],
    solve: Callable[[Problem, Result | None], Result],
) -> Iterator[Result]:
    """The solution under each (l1, l2), found from the one before.

    Where columns have weights of their own, l1 and l2 are factors of these.  Ctrl-C is raised, also
    where a solve has kept its best point: that one is not finished.
    """
    last = None
    for l1, l2 in penalties:
        last = solve(under(problem, float(l1), float(l2)), last)
        if last.status == "interrupted":
            raise KeyboardInterrupt
        yield last


def _on_gram(
    problems: list[Problem],
    one: Callable[[Problem, Any, int], Result],
    tol: float,
    max_passes: int,
    keep: bool,
) -> Iterator[Result]:
    """The solutions of all problems, on the Gram matrix that they share.

    Points that do not get to ``tol`` there are solved by ``one``, from where they are.  Half of the
    passes are left for that: descent crawls where columns are far from 0 and no intercept centres
    them, which Newton's method puts right.  (60 paths of 5 points, 90 to 400 rows and columns of
    means up to 300: 214 of 300 points got to 1e-3, all of them with this.)
    """
    started = time.perf_counter()
    loss = gram.least_squares(problems[0])
    penalties = [p.penalty for p in problems if isinstance(p.penalty, Penalty)]
    found = gram.gram_path(loss, penalties, tol, max(max_passes // 2, 1))
    seconds = time.perf_counter() - started
    operations = found.operations + loss.cross.size
    operations[0] += problems[0].matrix.nnz  # read once, for all
    shares = operations * (seconds / np.sum(operations))
    # no more than the sweeps, each of them less than a pass over the data
    passes_of = np.minimum(found.passes, -(-found.operations // problems[0].matrix.nnz))
    ask = np.flatnonzero(np.full(len(problems), keep) | ~found.trusted)
    of_data = certificates([problems[k] for k in ask], found.X[ask], found.c[ask])
    for k, problem in enumerate(problems):
        x, c, passes = found.X[k], float(found.c[k]), int(passes_of[k])
        primal, dual, y = float(found.primal[k]), float(found.dual[k]), None
        if keep or not found.trusted[k]:
            primal, y, dual = next(of_data)
        relative = problem.relative_gap(primal, dual)
        converged = relative <= tol
        if not converged and passes < max_passes:
            if y is None:
                y = problem.loss.derivative(problem.predict(x, c), problem.b)
            result = one(problem, SimpleNamespace(x=x, intercept=c, y=y), passes)
            if result.status == "interrupted":
                raise KeyboardInterrupt
            yield result
            continue
        history = History()
        history.append(
            passes=passes,
            seconds=shares[k],
            operations=operations[k],
            primal=primal,
            dual=dual,
            gap=primal - dual,
            relative_gap=relative,
        )
        history.freeze()
        yield Result(
            x=x,
            intercept=c,
            y=np.empty(0) if y is None else y,  # asked for only where results are kept
            primal=primal,
            dual=dual,
            gap=primal - dual,
            relative_gap=relative,
            converged=converged,
            status="converged" if converged else "max_passes",
            passes=passes,
            seconds=float(shares[k]),
            history=history,
            solver=ON_GRAM,
        )
    assert next(of_data, None) is None  # as many as were asked for


def _gather(
    first: np.ndarray, second: np.ndarray, results: list[Result], keep: bool, interrupted: bool
) -> Path:
    def of(name: str) -> np.ndarray:
        return np.array([getattr(r, name) for r in results])

    m = len(results)
    return Path(
        l1=first[:m],
        l2=second[:m],
        coefs=of("x"),
        intercepts=of("intercept"),
        primal=of("primal"),
        dual=of("dual"),
        gap=of("gap"),
        relative_gap=of("relative_gap"),
        converged=of("converged"),
        passes=of("passes"),
        operations=np.array([r.history.operations[-1] for r in results]),
        seconds=of("seconds"),
        results=results if keep else None,
        interrupted=interrupted,
    )


def _penalties(
    problem: Problem, l1: Any, l2: Any, n_points: Any, ratio: Any
) -> tuple[np.ndarray, np.ndarray]:
    if problem.penalty.grouped:
        raise ValueError(
            f"{problem.penalty.words}: a path goes over l1 and l2, not over groups; use "
            "GroupLassoCV, or solve(problem.with_penalty(l21=...), start=...) in a loop"
        )
    if l1 is None and l2 is None:
        l1 = _default(problem, n_points, ratio)
    penalty: Any = problem.penalty
    own = (penalty.l1, penalty.l2)
    if not penalty.uniform:  # the factor 1 of what there is
        own = (float(np.any(own[0] > 0.0)), float(np.any(own[1] > 0.0)))
    first = _weights(own[0] if l1 is None else l1, "l1")
    second = _weights(own[1] if l2 is None else l2, "l2")
    if 1 < first.size != second.size > 1:
        raise ValueError(
            f"l1 has {first.size} values and l2 has {second.size}: give two arrays of the same "
            "length, or a number for one of them"
        )
    size = max(first.size, second.size)
    first, second = (np.array(np.broadcast_to(v, size)) for v in (first, second))
    bare = np.flatnonzero((first == 0.0) & (second == 0.0))
    if bare.size:
        raise ValueError(
            f"l1=0.0 and l2=0.0 at point {bare[0]} of the path: without a penalty there is no "
            "duality gap; make one of them positive"
        )
    return first, second


def _default(problem: Problem, n_points: Any, ratio: Any) -> np.ndarray:
    if isinstance(n_points, bool) or not isinstance(n_points, (int, np.integer)) or n_points < 1:
        raise ValueError(f"n_points={n_points!r}: it must be a whole number, 1 or more")
    real = isinstance(ratio, (int, float, np.number)) and not isinstance(ratio, bool)
    if not real or not 0.0 < ratio < 1.0:
        raise ValueError(f"ratio={ratio!r}: the last l1 over the first must be between 0 and 1")
    largest = weighed(problem).l1_max()
    if not np.isfinite(largest):
        raise ValueError(
            "l1: columns without an l1 of their own are not zero at any factor of the others', so "
            "there is no path that starts from x = 0; give the factors l1 yourself"
        )
    if largest == 0.0:
        raise ValueError(
            "l1_max() is 0: x = 0 solves this problem for every l1 (no column is correlated with "
            "the targets), so there is no path; give l1 or l2 to solve it all the same"
        )
    return np.geomspace(largest, ratio * largest, n_points)


def _weights(values: Any, name: str) -> np.ndarray:
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name}={values!r}: it must be a number or an array of numbers") from None
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"{name} has shape {np.shape(values)}: it must be a number or a vector with at least "
            "one value"
        )
    bad = np.flatnonzero(~((array >= 0.0) & (array < np.inf)))
    if bad.size:
        raise ValueError(
            f"{name} has the value {array[bad[0]]} at position {bad[0]}: penalties must be finite, "
            "zero or more"
        )
    return array
