"""``solve`` and ``certify``: from a problem to a point with a proof."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..auto.fallback import Fallback, fallback
from ..auto.rule import choose
from ..exceptions import ConvergenceWarning
from ..parallel.config import asked, keeping
from ..problem import Problem
from ..problem.reduction import Reduction
from ..solvers.base import Point, Restored, Stepper
from ..solvers.registry import SOLVERS, Entry, admit
from .monitor import History, Monitor, Progress

if TYPE_CHECKING:
    from ..parallel.executors import Executor
    from .progress import ProgressLine

#: The endings before ``tol`` that are warned of.
SHORT = ("max_passes", "max_seconds", "rounding", "stuck", "no minimum")


@dataclass(frozen=True)
class Result:
    """A point, and the proof of how good it is.

    Attributes
    ----------
    x, intercept : the best primal point seen; of shapes (d, K) and (K,) with K classes
    y : the best feasible dual point seen
    primal, dual : P(x, intercept), and D(y) less what rounding may hide: a bound on P*
    gap : P - D, a bound on P - P*; without a penalty there is none, and dual, gap and
        relative_gap are NaN
    relative_gap : (P - D)/max(|P|, |D|, 1e-12 |P(0)|), what ``tol`` asks for
    converged : whether ``relative_gap <= tol``; without a penalty, whether
        :meth:`Problem.stationarity` is
    status : "converged", "max_passes", "max_seconds", "callback", "interrupted", "rounding" (P - D
        is as small as float64 can tell, but ``tol`` asks for less), "stuck" (the solver can do no
        better: ``"auto"`` goes on with another), or "liblinear"
        (its rule, for reproductions: see the option ``stop`` of ``"acf"``); without a penalty
        "stationary, no certificate" in place of "converged", and "no minimum" where a point
        proves that there is none (separable classes)
    passes, seconds : what it took, with what went before a checkpoint
    history : arrays ``passes seconds operations primal dual gap relative_gap``, and ``switched``
    solver : the solver that ran; the last one, where ``auto`` changed it (``history.switched``)
    box : None; or, where columns have neither a penalty nor bounds, a B_j for each of these (inf
        for the others): ``gap`` bounds how far P is from its least value among all x with
        abs(x_j) <= B_j, which is 1000 times x_j or more
    """

    x: np.ndarray
    intercept: float | np.ndarray
    y: np.ndarray
    primal: float
    dual: float
    gap: float
    relative_gap: float
    converged: bool
    status: str
    passes: int
    seconds: float
    history: History
    solver: str
    box: np.ndarray | None = None

    @property
    def method(self) -> str:
        """The solver, and the one it took over from, in words."""
        switched = self.history.switched
        if switched is None or switched.before == self.solver:
            return self.solver
        return f"{self.solver} (after {switched.passes} passes of {switched.before})"

    def plot(self, against: str = "passes", ax: Any = None) -> Any:
        """Draw the certified relative gap against ``"passes"``, ``"seconds"`` or ``"operations"``.

        Parameters
        ----------
        against : str
        ax : matplotlib axes, optional
            Where to draw; a new figure without.

        Returns
        -------
        matplotlib axes
        """
        from .views import plot_history

        return plot_history(self.history, self.method, against, ax)

    def _repr_html_(self) -> str:
        from .views import table

        proved = "none: there is no penalty" if np.isnan(self.gap) else f"{self.relative_gap:.2e}"
        return table(
            f"Result of {self.method}",
            {
                "status": self.status,
                "certified relative gap": proved,
                "P(x)": self.primal,
                "bound on the optimum": self.dual,
                "coefficients not 0": f"{np.count_nonzero(self.x)} of {self.x.size}",
                "passes": self.passes,
                "seconds": self.seconds,
            },
        )

    def __repr__(self) -> str:
        certificate = (
            "no certificate" if np.isnan(self.gap) else f"relative_gap={self.relative_gap:.2e}"
        )
        return (
            f"Result({self.method}: {self.status} after {self.passes} passes, "
            f"{self.seconds:.3g} s; primal={self.primal:.10g}, {certificate})"
        )


def solve(
    problem: Problem,
    solver: str = "auto",
    *,
    tol: float = 1e-6,
    max_passes: int = 1000,
    max_seconds: float | None = None,
    seed: int = 0,
    start: Result | None = None,
    callback: Callable[[Progress], object] | None = None,
    verbose: bool = False,
    n_jobs: int | None = None,
    executor: Any = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = 60.0,
    **options: Any,
) -> Result:
    r"""Minimise :math:`P(x, c) = \frac1n\sum_i w_i\phi_i(a_i^Tx + c) + g(x)` to a certified gap.

    Parameters
    ----------
    problem : Problem
    solver : str
        ``"acf"`` adapts the frequencies of coordinates (Glasmachers and Dogan, 2013): with an l1
        and a smooth loss on working sets of columns, otherwise on rows of the dual, with
        shrinking.  ``"dcd"`` is dual coordinate ascent in shuffled order, ``"sdca"`` with rows
        drawn independently, ``"cd"`` coordinate descent on all columns in turn.  ``"newton"`` is
        Newton's method with Cholesky's factorisation where one side of A is small, for l2 (smooth
        losses: or no penalty), and for small data of every kind; ``"newton-cg"`` that with
        preconditioned conjugate gradients, for smooth losses at any size.  Weights of single
        columns that no change of units makes the same, bounds, and offsets of margins are for
        ``"newton"``, ``"cd"`` and, with several classes, ``"lbfgs"``.  ``"apdc"`` adapts step
        sizes and sampling as it goes; ``"spdc"`` is Algorithms 1-3 of Zhang and Xiao (2017),
        ``"adaspdc"`` that of Zhu and Storkey (2015), ``"dspdc"`` and ``"spd1-vr"`` Algorithms 2
        and 3 of the paper on adaptive importance sampling (2021).  ``"asdca"`` (accelerated SDCA),
        ``"sag"`` (stochastic average gradient), ``"afg"`` (accelerated full gradient), ``"lbfgs"``
        and ``"pdhg"`` (Chambolle and Pock) are what the papers compare with.  ``"auto"`` takes the
        one that is expected to be fastest (:func:`adacoord.auto.rule.choose`); where it is far
        slower than that another one takes over, once (``history.switched``).
    tol : float
        Stop when (P - D)/max(\|P\|, \|D\|, 1e-12 \|P(0)\|) is at most this.  Without a penalty
        there is no such gap, and :meth:`Problem.stationarity` takes its place.
    max_passes : int
        Stop after so many passes: n row visits each (for ``"cd"``, ``"acf"`` on columns,
        ``"dspdc"``, ``"spd1-vr"`` and the full gradients ``"afg"``, ``"lbfgs"``, ``"pdhg"`` about
        as many entries touched as A has; for ``"newton"`` an iteration, or on small data and few
        columns the iterations that one kernel makes at once; for ``"newton-cg"``, and
        ``"lbfgs"`` with several classes, a product with A and one with its transpose).
    max_seconds : float, optional
        Stop after so many seconds (of this call, where it goes on from a checkpoint).  The only
        thing here that depends on the clock.
    seed : int
        Same seed, same bits.
    start : Result, optional
        Start from its ``x``, ``intercept`` and ``y`` instead of from zero.
    callback : callable, optional
        Called with a :class:`~adacoord.api.monitor.Progress` at each gap check; a true value stops.
    verbose : bool
        Show a line of progress.
    n_jobs : int, optional
        Threads that work on blocks of rows, -1 for as many as there are cores: same bits for 1, 2,
        4, ...  ``None`` is the serial method.  Blocks are for data of some megabytes and more;
        ``"auto"`` keeps the serial method where that is faster.  (``"spdc"`` and ``"adaspdc"``
        share out mini-batches instead.)
    executor : dask.distributed.Client, optional
        Work on blocks of rows on a Dask cluster: the bits of ``n_jobs=1``.  (For all calls:
        :func:`config_context`.)
    checkpoint : str or path-like, optional
        A file to keep the state of the run in.  A run that finds one of the same problem and
        options there goes on from it, to the bits of a run that was never interrupted, and returns
        at once where that run was over.  The one before is kept as ``checkpoint.previous``, and
        used where the last is damaged (a ``CheckpointWarning`` says so).  SIGTERM and Ctrl-C are
        acted upon after the pass under way, and one last checkpoint; the second time at once.
    checkpoint_every : float
        Seconds between two checkpoints; 0 for one before each pass.
    **options
        The solver's own: for ``"spdc"`` ``sampling``, ``steps``, ``batch_size``, ``alpha``,
        ``kappa``, ``delta``, ``delta_passes``, ``weights``, ``rho``, ``groups``, ``kinks``; for
        ``"adaspdc"`` ``batch_size``, ``groups``, ``kinks``; for ``"sag"`` ``step`` (in units of
        1/L) and ``lipschitz`` (what L is); for ``"dspdc"`` and ``"spd1-vr"`` ``sampling``,
        ``steps``, ``delta``, ``kappa``, ``delta_passes``, and ``multiplier`` for ``"dspdc"``; for
        ``"acf"`` ``order``, ``frequencies``, and ``stop="liblinear"`` with ``eps``; for ``"cd"``
        ``order``, ``frequencies``.

    Returns
    -------
    Result
        The best point seen, also after Ctrl-C (``status="interrupted"``).

    Warns
    -----
    ConvergenceWarning
        When it stopped before ``tol`` for another reason than the callback or Ctrl-C.
    """
    n_jobs, executor = asked(n_jobs, executor)
    result = run(
        problem,
        solver,
        tol=tol,
        max_passes=max_passes,
        max_seconds=max_seconds,
        seed=seed,
        start=start,
        callback=callback,
        verbose=verbose,
        n_jobs=n_jobs,
        executor=executor,
        **keeping(checkpoint, checkpoint_every)._asdict(),
        options=options,
    )
    if result.status in SHORT:
        text = advice(problem, result, tol, named=solver != "auto")
        warnings.warn(text, ConvergenceWarning, stacklevel=2)
    return result


def run(
    problem: Problem,
    solver: str,
    *,
    tol: float,
    max_passes: int,
    options: dict[str, Any],
    max_seconds: float | None = None,
    seed: int = 0,
    start: Point | None = None,
    callback: Callable[[Progress], object] | None = None,
    verbose: bool = False,
    n_jobs: int | None = None,
    executor: Any = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = 60.0,
) -> Result:
    """:func:`solve` without its warning."""
    _check_limits(problem, tol, max_passes, max_seconds, seed)
    if start is not None and not all(hasattr(start, a) for a in ("x", "y", "intercept")):
        raise ValueError(
            f"start={type(start).__name__}: it must be a Result of a problem of the same shape"
        )
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={callback!r}: it must be a function of one argument, or None")
    reduction = problem.reduction
    options, n_jobs = threads_of_its_own(solver, options, n_jobs)
    how: dict[str, Any] = {
        "tol": tol,
        "max_passes": max_passes,
        "options": options,
        "max_seconds": max_seconds,
        "seed": seed,
        "start": start,
        "callback": callback,
        "verbose": verbose,
        "checkpoint": checkpoint,
        "checkpoint_every": checkpoint_every,
    }
    if n_jobs is None and executor is None:
        return _run(problem, reduction, solver, **how)
    with shared_out(reduction.problem, solver, options, n_jobs, executor) as work:
        judged = work if reduction.problem is problem else problem
        return _run(judged, replace(reduction, problem=work), solver, **how)


def _run(
    judged: Problem,
    reduction: Reduction,
    solver: str,
    *,
    tol: float,
    max_passes: int,
    options: dict[str, Any],
    max_seconds: float | None,
    seed: int,
    start: Point | None,
    callback: Callable[[Progress], object] | None,
    verbose: bool,
    checkpoint: str | os.PathLike | None,
    checkpoint_every: float,
) -> Result:
    """Solve what the problem asked was reduced to, and judge it by the problem asked."""
    problem = reduction.problem
    entry = admit(problem, choose(problem) if solver == "auto" else solver, options)

    def make(entry: Entry, start: Point | None) -> Stepper:
        rng = np.random.Generator(np.random.PCG64(seed))
        made = entry.load()(problem, rng, reduction.point(start), **options)
        return made if reduction.trivial else Restored(made, reduction)

    def other() -> Fallback | None:
        return fallback(problem, entry, make, named=solver != "auto")

    checkpoints = None
    if checkpoint is not None:
        from .checkpoint import Checkpoints, identify

        checkpoints = Checkpoints(checkpoint, checkpoint_every)
        limits = {"tol": float(tol), "max_passes": int(max_passes), "seed": int(seed)}
        checkpoints.identity = identify(judged, solver, entry, options, start, **limits)
    monitor = Monitor(
        judged,
        tol=tol,
        max_passes=max_passes,
        max_seconds=max_seconds,
        callback=callback,
        checkpoints=checkpoints,
    )
    with _progress_line(entry.name, tol) if verbose else nullcontext() as line:
        monitor.show = line.update if line else None
        # options are those of the solver they were given for
        status = monitor.run(lambda: make(entry, start), start, None if options else other)
    return Result(
        x=monitor.x,
        intercept=monitor.intercept,
        y=monitor.y,
        primal=monitor.best_primal,
        dual=monitor.best_dual,
        gap=monitor.gap,
        relative_gap=monitor.relative_gap,
        converged=status in ("converged", "stationary, no certificate"),
        status=status,
        passes=monitor.passes,
        seconds=monitor.seconds,
        history=monitor.history,
        solver=monitor.history.switched.after if monitor.history.switched else entry.name,
        box=_box(judged, monitor.x),
    )


def _box(problem: Problem, x: np.ndarray) -> np.ndarray | None:
    box = problem.penalty.outside(x)
    return None if box is None else box.ravel()


def threads_of_its_own(
    solver: str, options: dict[str, Any], n_jobs: int | None
) -> tuple[dict[str, Any], int | None]:
    """(options, n_jobs): an option of solvers that share out something else than blocks of rows."""
    if n_jobs is not None and solver in SOLVERS and "n_jobs" in SOLVERS[solver].options:
        return options | {"n_jobs": n_jobs}, None
    return options, n_jobs


@contextmanager
def shared_out(
    problem: Problem, solver: str, options: dict[str, Any], n_jobs: Any, executor: Any
) -> Iterator[Problem]:
    """The problem in blocks of rows for who is asked for, where that is worth it."""
    from ..parallel.choice import executor_for

    workers = executor_for(n_jobs, executor)
    try:
        yield _in_blocks(problem, solver, options, workers)
    finally:
        if workers is not executor:  # else its owner does
            workers.close()


def _in_blocks(
    problem: Problem, solver: str, options: dict[str, Any], workers: Executor
) -> Problem:
    from ..auto.scale import worth_blocks
    from ..parallel.choice import in_blocks

    if problem.matrix.blocked:
        return in_blocks(problem, workers)
    entry = admit(problem, choose(problem) if solver == "auto" else solver, options)
    named = solver != "auto"
    if named and not (entry.row_blocks or entry.in_blocks):
        raise ValueError(
            f'solver="{solver}" has no form for blocks of rows; leave n_jobs and executor out, or '
            'use solver="auto"'
        )
    return in_blocks(problem, workers) if worth_blocks(problem, entry, named) else problem


def _progress_line(name: str, tol: float) -> ProgressLine:
    from .progress import ProgressLine

    return ProgressLine(name, tol)


def _check_limits(problem: Any, tol: Any, max_passes: Any, max_seconds: Any, seed: Any) -> None:
    if not isinstance(problem, Problem):
        raise ValueError(
            f"problem={type(problem).__name__}: make one with adacoord.Problem(A, b, loss=..., "
            "l2=...)"
        )
    if isinstance(tol, bool) or not (
        isinstance(tol, (int, float, np.number)) and 0.0 <= tol < np.inf
    ):
        raise ValueError(f"tol={tol!r}: the relative gap to reach must be a number, zero or more")
    if isinstance(max_passes, bool) or not (
        isinstance(max_passes, (int, np.integer)) and max_passes >= 1
    ):
        raise ValueError(f"max_passes={max_passes!r}: it must be a whole number, 1 or more")
    if max_seconds is not None and (
        isinstance(max_seconds, bool)
        or not (isinstance(max_seconds, (int, float, np.number)) and max_seconds > 0)
    ):
        raise ValueError(f"max_seconds={max_seconds!r}: it must be positive, or None for no limit")
    if isinstance(seed, bool) or not (isinstance(seed, (int, np.integer)) and seed >= 0):
        raise ValueError(f"seed={seed!r}: it must be a whole number, zero or more")


def _limit(result: Result) -> str:
    if result.status == "max_passes":
        return f"max_passes={result.passes}"
    return f"max_seconds after {result.passes} passes"


def advice(problem: Problem, result: Result, tol: float, named: bool) -> str:
    """What to say of a result that stopped before ``tol``: what was reached, what to do.

    ``named``: the method was asked for by its name.
    """
    if result.status == "interrupted":
        return (
            f"interrupted after {result.passes} passes with a relative gap of "
            f"{result.relative_gap:.2e}; tol={tol:g} was asked for. The best point so far was "
            "kept; start from it to go on."
        )
    if problem.has_certificate:
        return _advice(problem, result, tol, named)
    return _unpenalised_advice(problem, result, tol)


def _unpenalised_advice(problem: Problem, result: Result, tol: float) -> str:
    if result.status == "no minimum":
        return (
            "l1=0.0 and l2=0.0: the coefficients found separate the classes, so larger ones are "
            "better for ever and there is no minimum; add a penalty such as l2=1e-8"
        )
    stationarity = problem.stationarity(result.x, result.intercept)
    return (
        f"{result.method} stopped at {_limit(result)} with slopes at a cosine of "
        f"{stationarity:.2e} to the columns; tol={tol:g} was asked for. Without a penalty a "
        "minimum need not exist: add one such as l2=1e-8, or allow more passes."
    )


def _advice(problem: Problem, result: Result, tol: float, named: bool) -> str:
    if result.status == "stuck":
        remedy = (
            'Use solver="auto", which goes on with another method.'
            if named
            else "To get there, scale the columns, raise tol or use a stronger penalty."
        )
        return (
            f"{result.method} is stuck after {result.passes} passes at a relative gap of "
            f"{result.relative_gap:.2e}; tol={tol:g} was asked for. {remedy}"
        )
    if result.status == "rounding":
        return (
            f"{result.method} stopped after {result.passes} passes with a relative gap of "
            f"{result.relative_gap:.2e}, all of it rounding; tol={tol:g} was asked for. To get "
            "there, centre and scale the columns and the targets, or raise tol."
        )
    float32 = problem.matrix.dtype == np.float32 and tol < 1e-6
    remedy = "allow more passes, raise tol, use a stronger penalty, or scale the columns"
    if float32 and result.relative_gap < 1e-4:
        remedy = "float32 data cannot do much better: pass A as float64, or ask for less with tol"
    elif result.box is not None:
        bare = np.count_nonzero(np.isfinite(result.box))
        remedy = (
            f"give the {bare} columns that have neither a penalty nor bounds one of them (without, "
            "a minimum need not exist), or allow more passes"
        )
    return (
        f"{result.method} stopped at {_limit(result)} with a relative gap of "
        f"{result.relative_gap:.2e}; tol={tol:g} was asked for. To get there, {remedy}."
    )
