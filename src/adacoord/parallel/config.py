"""``config_context``: who works on blocks of rows, and where a fit is kept, within a ``with``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


class Workers(NamedTuple):
    """What ``n_jobs=`` and ``executor=`` ask for."""

    n_jobs: int | None = None
    executor: Any = None


class Keeping(NamedTuple):
    """What ``checkpoint=`` and ``checkpoint_every=`` ask for."""

    checkpoint: str | os.PathLike | None = None
    checkpoint_every: float = 60.0

    def of(self, k: int, count: int) -> dict[str, Any]:
        """The same of the k-th of ``count`` problems, as arguments: each has its own file."""
        if self.checkpoint is None or count == 1:
            return self._asdict()
        return {**self._asdict(), "checkpoint": f"{os.fspath(self.checkpoint)}.{k}"}


_NOBODY, _NOWHERE = Workers(), Keeping()
_CURRENT: ContextVar[Workers] = ContextVar("adacoord_workers", default=_NOBODY)
_KEEPING: ContextVar[Keeping] = ContextVar("adacoord_keeping", default=_NOWHERE)


@contextmanager
def config_context(
    *,
    n_jobs: int | None = None,
    executor: Any = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = 60.0,
) -> Iterator[None]:
    """Who works on blocks of rows within a ``with``, where a call does not say so itself.

    It counts for :func:`solve`, :func:`path` and the estimators, and says where Dask collections
    are computed.  Of several, one within the other, the innermost counts.  A checkpoint is for one
    fit, or one :func:`solve`, and counts until another one is named.

    Parameters
    ----------
    n_jobs : int, optional
        As in :func:`solve`; for the estimators as their parameter of that name.
    executor : dask.distributed.Client, optional
        As in :func:`solve`.
    checkpoint : str or path-like, optional
        As in :func:`solve`.  A fit of several problems (one class against the rest, several
        targets, the scales of a :class:`HuberRegressor`) keeps each in a file of its own,
        ``checkpoint.0``, ``checkpoint.1``, ...; a search over folds is refused.
    checkpoint_every : float
        As in :func:`solve`.

    Notes
    -----
    It is local to the thread or asynchronous task that enters it, and nothing of it is kept in an
    estimator.

    Examples
    --------
    >>> with ac.config_context(executor=client):  # doctest: +SKIP
    ...     model = ac.LogisticRegression().fit(X, y)
    """
    if n_jobs is not None or executor is not None:
        from .choice import executor_for

        executor_for(n_jobs, executor)  # refused here, not at the first call
    keeping = Keeping(checkpoint, checkpoint_every) if checkpoint is not None else _KEEPING.get()
    token, kept = _CURRENT.set(Workers(n_jobs, executor)), _KEEPING.set(keeping)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        _KEEPING.reset(kept)


def asked(n_jobs: int | None = None, executor: Any = None) -> Workers:
    """What a call asks for; where it does not, what the innermost :func:`config_context` says."""
    if n_jobs is None and executor is None:
        return _CURRENT.get()
    return Workers(n_jobs, executor)


def keeping(checkpoint: str | os.PathLike | None = None, checkpoint_every: float = 60.0) -> Keeping:
    """Where a call is kept; where it does not say so, what :func:`config_context` says."""
    return _KEEPING.get() if checkpoint is None else Keeping(checkpoint, checkpoint_every)


def refuse_checkpoint(who: str, remedy: str) -> None:
    """Refuse the checkpoint of a :func:`config_context` where none would be kept."""
    path = _KEEPING.get().checkpoint
    if path is not None:
        raise ValueError(
            f"checkpoint={os.fspath(path)!r}: {who} solves many problems one after the other, and "
            f"keeps none of them; {remedy}"
        )


def is_client(executor: Any) -> bool:
    """Whether it is a Dask client."""
    return type(executor).__module__.split(".")[0] == "distributed"
