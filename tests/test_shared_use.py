"""Fits side by side: in threads, in processes, after a fork; the bits of a fit alone."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac

RNG = np.random.default_rng(4)
DENSE = RNG.standard_normal((300, 12))
SPARSE = sparse.random_array((400, 60), density=0.1, rng=RNG, format="csr")
SIGNS = np.where(DENSE[:, 0] + 0.5 * RNG.standard_normal(300) > 0.0, 1, -1)
TEXT = np.where(SPARSE @ RNG.standard_normal(60) + 0.1 * RNG.standard_normal(400) > 0.0, 1, -1)

#: Every way from data to coefficients that keeps something between two calls would show here.
FITS = {
    "svm": lambda: ac.LinearSVC(loss="hinge").fit(DENSE, SIGNS),
    "svm, text": lambda: ac.LinearSVC(loss="hinge", solver="acf", tol=1e-6).fit(SPARSE, TEXT),
    "logistic": lambda: ac.LogisticRegression(C=10.0).fit(DENSE, SIGNS),
    "logistic, spdc": lambda: ac.LogisticRegression(solver="spdc").fit(SPARSE, TEXT),
    "lasso": lambda: ac.Lasso(alpha=0.01).fit(DENSE, DENSE @ np.arange(12.0)),
    "ridge": lambda: ac.Ridge().fit(SPARSE, TEXT.astype(float)),
    "classes": lambda: ac.LogisticRegression().fit(DENSE, np.digitize(DENSE[:, 1], [-0.5, 0.5])),
    "folds": lambda: ac.LassoCV(n_alphas=10, cv=3).fit(DENSE, DENSE @ np.arange(12.0)),
    "quantile": lambda: ac.ERMRegressor(loss="quantile", l2=1e-3).fit(DENSE, DENSE[:, 3]),
}


def bits(name: str) -> bytes:
    model = FITS[name]()
    return np.asarray(model.coef_).tobytes() + np.asarray(model.intercept_).tobytes()


@pytest.fixture(scope="module")
def alone() -> dict[str, bytes]:
    return {name: bits(name) for name in FITS}


def test_threads(alone):
    """All fits at once, twice: nothing global is shared."""
    names = [*FITS, *reversed(FITS)] * 2
    barrier = threading.Barrier(4)

    def fit(name: str) -> bytes:
        return bits(name)

    with ThreadPoolExecutor(4, initializer=barrier.wait) as pool:
        found = list(pool.map(fit, names))
    assert found == [alone[name] for name in names]


def _in_child(name: str, pipe) -> None:
    pipe.send(bits(name))
    pipe.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", FITS)
def test_a_fork_after_a_fit(alone, name):
    """The child of a process that has fitted (and has run threads) fits, and ends."""
    ac.LassoCV(n_alphas=5, cv=3, n_jobs=2).fit(DENSE, DENSE @ np.arange(12.0))
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_in_child, args=(name, there))
    child.start()
    there.close()
    try:
        assert here.poll(120), "the child of a fork hangs"
        assert here.recv() == alone[name]
        child.join(60)
        assert child.exitcode == 0
    finally:
        child.kill()


SCRIPT = """
import numpy as np, sys
import adacoord as ac
rng = np.random.default_rng(0)
A = rng.standard_normal((200, 8)); b = A @ np.arange(8.0) + rng.standard_normal(200)
print(ac.Lasso(alpha=.1).fit(A, b).coef_.tobytes().hex())
print(ac.LinearSVC(loss="hinge").fit(A, b > 0).coef_.tobytes().hex())
"""


@pytest.mark.slow
def test_processes_that_start_together(tmp_path):
    """On an empty cache: both compile, both are right."""
    env = {**os.environ, "ADACOORD_CACHE": str(tmp_path)}
    run = [sys.executable, "-c", SCRIPT]
    both = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True, env=env) for _ in range(2)]
    said = [process.communicate(timeout=600)[0] for process in both]
    warm = subprocess.run(run, stdout=subprocess.PIPE, text=True, env=env, check=True).stdout
    assert said[0] == said[1] == warm and warm
