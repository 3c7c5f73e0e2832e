"""What ``adacoord demo`` shows: a certificate on real data, a race on a large sparse problem."""

from __future__ import annotations

import time
import warnings

import numpy as np
from rich.console import Console
from scipy import sparse

from ..api.solve import Result, solve
from ..auto.rule import choose
from ..kernels.compiling import on_compilation
from ..problem import Problem

#: The race is run to this relative gap; the peer has to come as close to the best objective.
TOL = 1e-6
#: The peer's tolerances, tried from scratch one after the other, and the seconds it may take.
LADDER = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
PATIENCE = 10.0


def text_like(n: int = 20_000, d: int = 50_000, topics: int = 100, seed: int = 0):
    """A generated problem shaped like tf-idf text: Zipf's words, topics, quotes, noisy labels.

    Each document has one topic; half of its words are everybody's, half are its topic's own.
    Half of the documents quote one of the first 200 at length, so that many rows are much alike.
    This matters for the race: without the quotes the problems are easy, and liblinear wins them.

    Returns
    -------
    A : csr_matrix of shape (n, d), unit rows, about 110 words a row
    b : array of -1 and +1
    """
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(4.2, 0.6, n), 8, 800).astype(np.int64)
    rows = np.repeat(np.arange(n), lengths)
    rank = _zipf(rng, d, rows.size)
    topic = rng.integers(topics, size=n)
    vocabulary = rng.integers(d, size=(topics, d // 20))
    own = vocabulary[topic[rows], _zipf(rng, d // 20, rows.size)]
    words = np.where(rng.random(rows.size) < 0.5, rank, own)
    A = sparse.csr_matrix((np.ones(words.size), (rows, words)), shape=(n, d))
    A.sum_duplicates()
    present = np.bincount(A.indices, minlength=d)
    A.data = (1.0 + np.log(A.data)) * np.log((1.0 + n) / (1.0 + present))[A.indices]
    who = np.flatnonzero(rng.random(n) < 0.5)
    quoted = rng.integers(min(200, n), size=who.size)
    quotes = sparse.csr_matrix((np.full(who.size, 1.5), (who, quoted)), shape=(n, n))
    A = sparse.csr_matrix(A + quotes @ A)
    A.sum_duplicates()
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    A.data /= np.sqrt(np.bincount(rows, A.data**2))[rows]
    score = A @ rng.standard_normal(d) + 0.5 * rng.standard_normal(topics)[topic]
    b = np.where(score + 0.3 * score.std() * rng.standard_normal(n) > 0.0, 1.0, -1.0)
    return A, b


def _zipf(rng: np.random.Generator, size: int, draws: int) -> np.ndarray:
    """Indices below ``size``, index k with probability proportional to 1/(k + 10)."""
    sums = np.cumsum(1.0 / (np.arange(size) + 10.0))
    return np.searchsorted(sums, sums[-1] * rng.random(draws)).clip(max=size - 1)


def run(console: Console, quick: bool = False) -> None:
    """The whole demo, or without the race; prints to ``console``."""
    console.print("[bold]1. Real data: breast cancer (569 x 30), logistic regression[/bold]")
    _real_data(console)
    if quick:
        return
    console.print("\n[bold]2. A race: 20,000 documents of 50,000 words, linear SVM[/bold]")
    _race(console)


def _real_data(console: Console) -> None:
    from sklearn.datasets import load_breast_cancer

    A, label = load_breast_cancer(return_X_y=True)
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    problem = Problem(A, np.where(label == 1, 1.0, -1.0), loss="logistic", l2=1e-3, intercept=True)
    result = solve(problem, tol=1e-9, verbose=True)
    _print_certificate(console, result)
    correct = np.mean(np.sign(problem.predict(result.x, result.intercept)) == problem.b)
    console.print(f"   training accuracy {correct:.1%}, intercept {result.intercept:+.4f}")


def _race(console: Console) -> None:
    A, b = text_like()
    _warm_up(console, A, b)
    for loss, C in (("hinge", 1.0), ("hinge", 10.0), ("logistic", 100.0)):
        problem = Problem(A, b, loss=loss, l2=1.0 / (A.shape[0] * C))
        console.print(f"   {loss}, C = {C:g}")
        started = time.perf_counter()
        result = solve(problem, tol=TOL, verbose=True)
        ours = time.perf_counter() - started
        # "as good": no further above the proven lower bound than we were asked to come
        target = max(result.dual + TOL * abs(result.primal), result.primal)
        seconds, objective, tol = _climb(problem, A, C, target)
        console.print(
            f"      {f'adacoord ({result.solver})':22s}{ours:6.2f} s   objective "
            f"{result.primal:.9f}   certified {result.relative_gap:.1e}",
            soft_wrap=True,
        )
        late = "" if objective <= target else ", not as good"
        console.print(
            f"      {f'liblinear (tol={tol:g})':22s}{seconds:6.2f} s   objective "
            f"{objective:.9f}   no certificate{late}",
            soft_wrap=True,
        )
    console.print(
        "   liblinear was run from scratch at tol=1e-2, 1e-3, ... until a run came as\n"
        f"   close to the optimum, or {PATIENCE:.0f} s had passed; the time is that run's own.\n"
        "   Ours includes the certificate. The data are generated: half of the documents\n"
        "   quote another, which makes the problems harder than random words would be."
    )


def _climb(problem: Problem, A, C: float, target: float) -> tuple[float, float, float]:
    """(seconds, objective, tol) of the first rung of the ladder at or below ``target``."""
    from sklearn.exceptions import ConvergenceWarning

    spent = 0.0
    for tol in LADDER:
        peer = _peer(problem.loss.name, C, tol)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            peer.fit(A, problem.b)
        seconds = time.perf_counter() - started
        objective = problem.primal(peer.coef_.ravel())
        spent += seconds
        if objective <= target or spent > PATIENCE:
            break
    return seconds, objective, tol


def _peer(loss: str, C: float, tol: float):
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    if loss == "hinge":
        return LinearSVC(loss="hinge", C=C, tol=tol, fit_intercept=False, max_iter=100_000)
    return LogisticRegression(
        C=C, tol=tol, solver="liblinear", dual=True, fit_intercept=False, max_iter=100_000
    )


def _warm_up(console: Console, A, b) -> None:
    """Compile what the race needs on a few rows, so that its seconds are the solvers' own."""
    tell = "   Compiling kernels (the first run only, about ten seconds)."
    with on_compilation(lambda: console.print(tell)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loss in ("hinge", "logistic"):
            # what "auto" takes for all of the data; for a few rows it takes another
            solver = choose(Problem(A, b, loss=loss, l2=1e-5))
            solve(Problem(A[:200], b[:200], loss=loss, l2=1e-3), solver, max_passes=1)


def _print_certificate(console: Console, result: Result) -> None:
    console.print(
        f"   objective {result.primal:.12f}, and no point is below {result.dual:.12f}:\n"
        f"   certified to {result.relative_gap:.1e} relative, {result.passes} passes, "
        f"{result.seconds:.2f} s ({result.solver})"
    )
