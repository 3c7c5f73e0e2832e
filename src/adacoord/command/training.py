"""What ``fit`` is made of: who works, what is kept, the estimator."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..estimators import ERMClassifier, ERMRegressor
from ..io.checkpoints import exists
from ..io.posing import Posed
from ..parallel.config import config_context

#: Seconds that a scheduler has to answer.
CONNECTING = 10.0


@contextmanager
def working(n_jobs: int | None, scheduler: str | None) -> Iterator[None]:
    """Fits are worked on by so many threads, or by the cluster whose scheduler is named."""
    if scheduler is None:
        with config_context(n_jobs=n_jobs):
            yield
        return
    if n_jobs is not None:
        raise ValueError(
            f"--n-jobs {n_jobs} beside --scheduler: a cluster has its own number of workers; give "
            "one of the two"
        )
    with _connected(scheduler) as client, config_context(executor=client):
        yield


@contextmanager
def keeping(path: Path | None, every: float, resume: bool) -> Iterator[None]:
    """Fits are kept in checkpoints at ``path``; those that are there, only where that is meant."""
    if path is None:
        if resume:
            raise ValueError("--resume: name the checkpoint to go on from, with --checkpoint PATH")
        yield
        return
    there = exists(str(path)) or exists(f"{path}.0")  # of one problem, or of the first of several
    if there and not resume:
        raise ValueError(
            f"--checkpoint {path}: there is one already; go on from it with --resume, remove it, "
            "or name another file"
        )
    with config_context(checkpoint=path, checkpoint_every=every):
        yield


def _connected(scheduler: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            f'--scheduler {scheduler}: this needs Dask; pip install "adacoord[dask]"'
        ) from None
    try:
        # as a default, one that finds nobody would stay behind as Dask's scheduler
        return Client(scheduler, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--scheduler {scheduler}: no Dask scheduler answers there ({error}); give the address "
            "that `dask scheduler` printed, such as tcp://host:8786"
        ) from None


def make_estimator(
    posed: Posed, *, solver: str, tol: float, max_passes: int, seed: int
) -> ERMClassifier | ERMRegressor:
    """The estimator that solves a file's problems; not fitted."""
    problem = posed.problem
    kind: Any = ERMRegressor if posed.classes is None else ERMClassifier
    weights = {} if posed.class_weight is None else {"class_weight": posed.class_weight}
    return kind(
        problem.loss.name,
        **problem.penalty.given,
        fit_intercept=problem.intercept,
        tol=tol,
        max_iter=max_passes,
        solver=solver,
        random_state=seed,
        **weights,
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
