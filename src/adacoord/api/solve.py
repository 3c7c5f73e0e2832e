"""``solve`` and ``certify``: from a problem to a point with a proof."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..auto.fallback import Fallback, fallback
from ..auto.rule import choose
from ..exceptions import ConvergenceWarning
from ..problem import Problem
from ..solvers.base import Point, Stepper
from ..solvers.registry import Entry, admit
from .monitor import History, Monitor, Progress

if TYPE_CHECKING:
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
    passes, seconds : what it took
    history : arrays ``passes seconds operations primal dual gap relative_gap``, and ``switched``
    solver : the solver that ran; the last one, where ``auto`` changed it (``history.switched``)
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

    @property
    def method(self) -> str:
        """The solver, and the one it took over from, in words."""
        switched = self.history.switched
        if switched is None or switched.before == self.solver:
            return self.solver
        return f"{self.solver} (after {switched.passes} passes of {switched.before})"

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
    **options: Any,
) -> Result:
    r"""Minimise :math:`P(x, c) = \frac1n\sum_i w_i\phi_i(a_i^Tx + c) + g(x)` to a certified gap.

    Parameters
    ----------
    problem : Problem
    solver : {"auto", "acf", "newton", "newton-cg", "apdc", "spdc", "adaspdc", "dspdc", "spd1-vr", \
            "dcd", "sdca", "cd", "asdca", "sag", "afg", "lbfgs", "pdhg"}
        ``"acf"`` adapts the frequencies of coordinates (Glasmachers and Dogan, 2013): with an l1
        and a smooth loss on working sets of columns, otherwise on rows of the dual, with
        shrinking.  ``"dcd"`` is dual coordinate ascent in shuffled order, ``"sdca"`` with rows
        drawn independently, ``"cd"`` coordinate descent on all columns in turn.  ``"newton"`` is
        Newton's method with Cholesky's factorisation where one side of A is small, for l2 (smooth
        losses: or no penalty), and for small data of every kind; ``"newton-cg"`` that with
        preconditioned conjugate gradients, for smooth losses at any size.  ``"apdc"`` adapts step
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
        as many entries touched as A has; for ``"newton"`` an iteration; for ``"newton-cg"`` a
        product with A and one with its transpose).
    max_seconds : float, optional
        Stop after so many seconds.  The only thing here that depends on the clock.
    seed : int
        Same seed, same bits.
    start : Result, optional
        Start from its ``x``, ``intercept`` and ``y`` instead of from zero.
    callback : callable, optional
        Called with a :class:`~adacoord.api.monitor.Progress` at each gap check; a true value stops.
    verbose : bool
        Show a line of progress.
    **options
        The solver's own: for ``"spdc"`` ``sampling``, ``steps``, ``batch_size``, ``alpha``,
        ``kappa``, ``delta``, ``delta_passes``, ``rho``; for ``"adaspdc"`` ``batch_size``,
        ``groups``; for ``"sag"`` ``step`` (in units of 1/L); for
        ``"dspdc"`` and ``"spd1-vr"`` ``sampling``, ``steps``, ``delta``, ``kappa``,
        ``delta_passes``; for ``"acf"`` ``order``, and ``stop="liblinear"`` with ``eps``; for
        ``"cd"`` ``order``.

    Returns
    -------
    Result
        The best point seen, also after Ctrl-C (``status="interrupted"``).

    Warns
    -----
    ConvergenceWarning
        When it stopped before ``tol`` for another reason than the callback or Ctrl-C.
    """
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
        options=options,
    )
    if result.status in SHORT:
        warnings.warn(advice(problem, result, tol), ConvergenceWarning, stacklevel=2)
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
) -> Result:
    """:func:`solve` without its warning."""
    _check_limits(problem, tol, max_passes, max_seconds, seed)
    entry = admit(problem, choose(problem) if solver == "auto" else solver, options)
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={callback!r}: it must be a function of one argument, or None")
    if start is not None and not all(hasattr(start, a) for a in ("x", "y", "intercept")):
        raise ValueError(
            f"start={type(start).__name__}: it must be a Result of a problem of the same shape"
        )

    def make(entry: Entry, start: Point | None) -> Stepper:
        rng = np.random.Generator(np.random.PCG64(seed))
        return entry.load()(problem, rng, start, **options)

    def other() -> Fallback | None:
        return fallback(problem, entry, make, named=solver != "auto")

    monitor = Monitor(
        problem,
        tol=tol,
        max_passes=max_passes,
        max_seconds=max_seconds,
        callback=callback,
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
    )


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


def advice(problem: Problem, result: Result, tol: float) -> str:
    """What to say of a result that stopped before ``tol``: what was reached, what to do."""
    if result.status == "interrupted":
        return (
            f"interrupted after {result.passes} passes with a relative gap of "
            f"{result.relative_gap:.2e}; tol={tol:g} was asked for. The best point so far was "
            "kept; start from it to go on."
        )
    if problem.has_certificate:
        return _advice(problem, result, tol)
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


def _advice(problem: Problem, result: Result, tol: float) -> str:
    if result.status == "stuck":
        return (
            f"{result.method} is stuck after {result.passes} passes at a relative gap of "
            f'{result.relative_gap:.2e}; tol={tol:g} was asked for. Use solver="auto", which goes '
            "on with another method."
        )
    if result.status == "rounding":
        return (
            f"{result.method} stopped after {result.passes} passes with a relative gap of "
            f"{result.relative_gap:.2e}, all of it rounding; tol={tol:g} was asked for. To get "
            "there, centre and scale the columns and the targets, or raise tol."
        )
    float32 = problem.matrix.dtype == np.float32 and tol < 1e-6
    remedy = (
        "float32 data cannot do much better: pass A as float64, or ask for less with tol"
        if float32 and result.relative_gap < 1e-4
        else "allow more passes, raise tol, use a stronger penalty, or scale the columns"
    )
    return (
        f"{result.method} stopped at {_limit(result)} with a relative gap of "
        f"{result.relative_gap:.2e}; tol={tol:g} was asked for. To get there, {remedy}."
    )
