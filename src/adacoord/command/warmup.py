"""``adacoord warmup``: compile what the estimators need, so that no fit waits for it.

Each step is a fit on generated data of a kind (small or not, dense or sparse) that takes another
way through the solvers; whatever it compiles stays in the cache (:mod:`adacoord.kernels.store`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

Step = tuple[str, Callable[[], Any]]


def steps() -> Iterator[Step]:
    """Names and fits, in the order of what is wanted most."""
    from scipy import sparse

    from .. import estimators as es
    from ..solvers.newton.size import SMALL

    rng = np.random.default_rng(0)
    small = rng.standard_normal((60, 6))
    large = rng.standard_normal((SMALL // 90 + 1, 90))  # just above what counts as small
    text = sparse.random_array((3000, 900), density=0.02, rng=rng, format="csr")
    text.indices, text.indptr = text.indices.astype(np.int32), text.indptr.astype(np.int32)
    for kind, X in (("small", small), ("dense", large), ("sparse", text)):
        z = np.asarray(X[:, :5].sum(axis=1)).ravel()
        z = z + 0.5 * z.std() * rng.standard_normal(z.size)
        signs, three = z > np.median(z), np.digitize(z, np.quantile(z, [0.3, 0.6]))
        counts = np.round(np.exp(z / max(np.abs(z).max(), 1.0)))
        jobs: list[tuple[Any, np.ndarray]] = [
            (es.LinearSVC(), signs),
            (es.LinearSVC(loss="hinge"), signs),
            (es.LogisticRegression(), signs),
            (es.LogisticRegression(), three),
            (es.LogisticRegression(penalty="l1"), signs),
            (es.Ridge(), z),
            (es.Lasso(alpha=0.01 * float(np.abs(z).mean())), z),
            (es.ElasticNet(alpha=0.01 * float(np.abs(z).mean())), z),
            (es.LinearSVR(), z),
            (es.LassoCV(cv=3, alphas=10), z),
            (es.LogisticRegressionCV(Cs=3, cv=3), signs),
            (es.ERMRegressor(loss="quantile", l2=1e-2), z),
            (es.ERMRegressor(loss="poisson", l2=1e-2), counts),
        ]
        for model, y in jobs:
            yield f"{type(model).__name__}, {kind}", partial(model.fit, X, y)


def run(console: Console) -> None:
    """Take every step, under a progress bar where there is a terminal."""
    from rich.progress import Progress

    todo = list(steps())
    with Progress(console=console, transient=True) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nobody reads what these fits found
        task = bar.add_task("compiling", total=len(todo))
        for name, fit in todo:
            bar.update(task, description=name)
            fit()
            bar.advance(task)
