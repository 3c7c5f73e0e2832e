"""Run several solvers on one problem, on one judge: what ``adacoord compare`` does.

A contender is written ``solver``, ``solver:sampling`` or ``solver:option=value:...``:
``spdc:adaptive``, ``sag:step=0.25``, ``spdc:lipschitz:batch_size=8``.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..api.monitor import History, Progress
from ..api.solve import Result, solve
from ..auto.rule import choose
from ..data.columns import as_scipy
from ..exceptions import ConvergenceWarning
from ..problem import Problem
from ..problem.losses import Loss
from ..solvers import expected_passes
from ..solvers.registry import SOLVERS, admit

#: What is compared if nothing is asked for, as far as it can solve the problem.
USUAL = ("apdc", "spdc", "dcd", "sdca", "sag", "lbfgs")
#: Relative gaps that the tables tell the passes and the seconds to.
LEVELS = (1e-3, 1e-6, 1e-9)


@dataclass(frozen=True)
class Contender:
    """A solver with its options, under the name it was asked for."""

    label: str
    solver: str
    options: dict = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Run:
    """What one contender did with one seed; ``theory`` is the passes it was promised to take."""

    contender: Contender
    seed: int
    result: Result
    theory: int | None = None


def contenders(text: str | None, problem: Problem) -> list[Contender]:
    """Read a list such as ``spdc,spdc:adaptive,sag:step=0.25``, and check it against the problem.

    None is the usual ones that can solve the problem.
    """
    if text is None:
        found = [Contender(name, name) for name in USUAL if _can(problem, name)]
        return found or [Contender("auto", "auto")]
    found = [_contender(part.strip()) for part in text.split(",") if part.strip()]
    if not found:
        raise ValueError(f"--solvers {text!r}: no solver; use some of {', '.join(SOLVERS)}")
    labels = [c.label for c in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(f"--solvers {text!r}: {twice} is there twice; use --seeds to repeat it")
    for c in found:
        entry = admit(problem, choose(problem) if c.solver == "auto" else c.solver, c.options)
        rng = np.random.Generator(np.random.PCG64(0))
        entry.load()(_small(problem), rng, None, **c.options)  # it may not like its options
    return found


def _can(problem: Problem, name: str) -> bool:
    try:
        admit(problem, name, {})
    except ValueError:
        return False
    return True


def _contender(text: str) -> Contender:
    solver, *parts = text.split(":")
    options = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals:
            key, value = "sampling", part
        options[key] = _value(value)
    return Contender(text, solver, options)


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def compare(
    problem: Problem,
    who: Iterable[Contender],
    *,
    seeds: int = 1,
    tol: float = 1e-6,
    max_passes: int = 200,
    max_seconds: float | None = None,
    watch: Callable[[str], AbstractContextManager] | None = None,
) -> list[Run]:
    """Run every contender with the seeds 0, 1, ...; Ctrl-C ends it with what there is.

    Kernels are compiled on a few rows beforehand, so that seconds are those of a second fit.
    ``watch(label)`` is entered for each run and gives a function of its
    :class:`~adacoord.api.monitor.Progress`.
    """
    who, runs = list(who), []
    promised = {c.label: _promised(problem, c, tol) for c in who}
    rounds = [(c, seed) for seed in range(seeds) for c in who]
    for k, (c, seed) in enumerate(rounds):
        if seed == 0:
            _warm_up(problem, c)
        label = f"{k + 1}/{len(rounds)}  {c.label}" + (f"  seed {seed}" if seeds > 1 else "")
        with warnings.catch_warnings(), watch(label) if watch else nullcontext() as show:
            warnings.simplefilter("ignore", ConvergenceWarning)  # the tables say it
            result = solve(
                problem,
                c.solver,
                tol=tol,
                max_passes=max_passes,
                max_seconds=max_seconds,
                seed=seed,
                callback=_silent(show),
                **c.options,
            )
            if show is not None:  # a callback is not called when it is over
                show(
                    Progress(
                        result.passes,
                        result.seconds,
                        result.primal,
                        result.dual,
                        result.gap,
                        result.relative_gap,
                        tol,
                        result.x,
                        result.intercept,
                    )
                )
        runs.append(Run(c, seed, result, promised[c.label]))
        if result.status == "interrupted":
            break
    return runs


def _promised(problem: Problem, c: Contender, tol: float) -> int | None:
    """What theory has to say about a contender (of tol = 0 it says nothing)."""
    if tol == 0.0:
        return None
    solver = choose(problem) if c.solver == "auto" else c.solver
    return expected_passes(problem, solver, tol, **c.options)


def _silent(show) -> Callable[[Progress], None] | None:
    """A callback whose value never stops a run."""
    if show is None:
        return None

    def callback(progress: Progress) -> None:
        show(progress)

    return callback


def _small(problem: Problem) -> Problem:
    """Some rows of every label."""
    b = problem.b
    labels = np.unique(b) if problem.loss.task in ("classification", "multiclass") else [None]
    rows = np.concatenate(
        [np.flatnonzero(b == v if v is not None else b == b)[:20] for v in labels]
    )
    return Problem(
        as_scipy(problem.matrix)[rows],
        b[rows],
        problem.loss,
        **problem.penalty.given,
        intercept=problem.intercept,
        sample_weight=None if problem.weights is None else problem.weights[rows] + 1.0,
    )


def _warm_up(problem: Problem, c: Contender) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # these are of all rows
        options = {k: v for k, v in c.options.items() if k not in ("groups", "frequencies")}
        solve(_small(problem), c.solver, tol=0.0, max_passes=12, **options)


# ---- what the runs say ---------------------------------------------------------------------------


def first_below(history: History, level: float) -> tuple[int, float] | None:
    """(passes, seconds) of the first check with a relative gap of at most ``level``."""
    below = np.flatnonzero(history.relative_gap <= level)
    if not below.size:
        return None
    return int(history.passes[below[0]]), float(history.seconds[below[0]])


@dataclass(frozen=True)
class Row:
    """A contender's line in the tables: medians over the seeds, with the range where it is one.

    ``passes`` and ``seconds`` hold (median, least, most) for each of ``LEVELS``, or None where a
    seed did not get there; ``theory`` is the passes that theory promises to ``tol``, or None where
    it has no promise; ``total`` is the median (passes, seconds) of the whole runs.
    """

    label: str
    solver: str
    runs: int
    passes: list
    seconds: list
    theory: int | None
    primal: float
    dual: float
    relative_gap: float
    status: str
    total: tuple[float, float]

    @property
    def seconds_a_pass(self) -> float:
        return self.total[1] / max(self.total[0], 1.0)


def summarise(runs: list[Run]) -> list[Row]:
    """One row a contender, in the order they ran."""
    rows = []
    for label in dict.fromkeys(run.contender.label for run in runs):
        mine = [run.result for run in runs if run.contender.label == label]
        passes, seconds = [], []
        for level in LEVELS:
            found = [first_below(result.history, level) for result in mine]
            there = [f for f in found if f is not None]
            whole = len(there) == len(mine)
            passes.append(_spread([f[0] for f in there]) if whole else None)
            seconds.append(_spread([f[1] for f in there]) if whole else None)
        worst = max(mine, key=lambda r: r.relative_gap)
        rows.append(
            Row(
                label=label,
                solver=worst.solver,
                runs=len(mine),
                passes=passes,
                seconds=seconds,
                theory=next(run.theory for run in runs if run.contender.label == label),
                primal=min(r.primal for r in mine),
                dual=max(r.dual for r in mine),
                relative_gap=worst.relative_gap,
                status=worst.status,
                total=(
                    float(np.median([r.passes for r in mine])),
                    float(np.median([r.seconds for r in mine])),
                ),
            )
        )
    return rows


def _spread(values: list) -> tuple[float, float, float]:
    return float(np.median(values)), float(min(values)), float(max(values))


def as_csv(runs: list[Run]) -> str:
    """Every gap check of every run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = History.columns
    writer.writerow(["solver", "seed", *names])
    for run in runs:
        history = run.result.history
        for values in zip(*(getattr(history, name) for name in names), strict=True):
            writer.writerow([run.contender.label, run.seed, *(repr(v.item()) for v in values)])
    return out.getvalue()


def card(problem: Problem) -> dict[str, Any]:
    """What decides how hard the problem is; R over the rows as they are weighted."""
    weights = 1.0 if problem.weights is None else problem.weights
    lengths = np.sqrt(weights * problem.matrix.squared_norms)
    given = problem.penalty.given
    gamma, l2 = problem.loss.gamma, given["l2"]
    largest = float(lengths.max())
    return {
        "n": problem.n,
        "d": problem.d,
        "nnz": problem.matrix.nnz,
        "density": problem.matrix.nnz / (problem.n * problem.d),
        "loss": _name(problem.loss),
        "l1": given["l1"],
        "l2": l2,
        "positive": given["positive"],
        "intercept": problem.intercept,
        "R": largest,
        "Rbar": float(lengths.mean()),
        "kappa": largest**2 / (l2 * gamma) if l2 * gamma > 0.0 else None,
    }


def _name(loss: Loss) -> str:
    value = f" ({loss.parameter} = {getattr(loss, loss.parameter):g})" if loss.parameter else ""
    return loss.name.replace("_", " ") + value
