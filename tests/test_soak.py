"""Many fits in one process leave nothing behind: no memory, threads, open files or temporary files.

The fits run in a process of their own (``python tests/test_soak.py FITS``), which prints what is
left as JSON: of other tests' garbage nothing could be told.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

pytestmark = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="open files and memory are read from /proc"
)

#: Each fit is done this often before anything is counted: compiled code and caches stay.
WARM_UP = 2


def left_behind() -> dict[str, int]:
    """Memory (bytes), threads, open files and temporary files of this process."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {
        "memory": resident,
        "threads": len(os.listdir("/proc/self/task")),
        "python_threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
        "temporary": sum(len(files) for _, _, files in os.walk(tempfile.gettempdir())),
    }


def kinds(folder: str) -> list:
    """Fits of every kind, each a function of a seed."""
    import adacoord as ac
    from adacoord.solvers.registry import SOLVERS

    def data(seed, task="regression", n=120, d=15):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((n, d))
        z = A @ rng.standard_normal(d) + rng.standard_normal(n)
        b = {
            "regression": z,
            "classification": np.where(z > 0, 1.0, -1.0),
            "multiclass": (np.arange(n) % 3).astype(float),
            "count": np.floor(np.exp(np.clip(0.3 * z, -2, 2))),
            "positive": np.exp(np.clip(0.3 * z, -2, 2)),
        }[task]
        return (sparse.csr_array(A * (rng.random((n, d)) < 0.4)) if seed % 2 else A), b

    def by_loss(name):
        cls = (ac.losses.LOSSES | ac.losses.BLOCK_LOSSES)[name]

        def fit(seed):
            A, b = data(seed, cls.task)
            penalty = ({"l2": 1e-2}, {"l1": 1e-2}, {"l1": 1e-2, "l2": 1e-3})[seed % 3]
            ac.solve(ac.Problem(A, b, name, intercept=seed % 5 < 2, **penalty), max_passes=20)

        return fit

    def by_solver(name):
        def fit(seed):
            A, b = data(seed, "classification")
            ac.solve(ac.Problem(A, b, "smooth_hinge", l2=1e-2), name, max_passes=5, seed=seed)

        return fit

    def estimator(make, task):
        def fit(seed):
            A, b = data(seed, task)
            model = make().fit(A, b)
            model.predict(A)
            path = os.path.join(folder, "model")
            ac.save_model(model, path)
            ac.load_model(path).predict(A)
            os.remove(path)

        return fit

    def refused(seed):
        A, b = data(seed)
        try:
            ac.solve(ac.Problem(A, np.full_like(b, np.nan), l2=1.0))
        except ValueError:
            return
        raise AssertionError("targets of NaN were taken")

    def others(seed):
        A, b = data(seed)
        problem = ac.Problem(A, b, l1=1e-2, intercept=True)
        ac.path(problem, tol=1e-4)
        ac.certify(problem, np.zeros(problem.d), 0.0, effort=2)
        ac.certify(problem, np.zeros(problem.d), 0.0, effort=0, rigorous=True)
        ac.solve(ac.Problem(A, b, l2=1e-2), n_jobs=2, max_passes=5)
        ac.solve(ac.Problem(A, b, l2=1e-2), max_passes=5, callback=lambda progress: True)

    return [
        *(by_loss(name) for name in (*ac.losses.LOSSES, *ac.losses.BLOCK_LOSSES)),
        *(by_solver(name) for name in SOLVERS),
        estimator(lambda: ac.LinearSVC(C=0.1), "classification"),
        estimator(lambda: ac.LogisticRegression(), "multiclass"),
        estimator(lambda: ac.Lasso(alpha=0.1), "regression"),
        estimator(lambda: ac.Ridge(), "regression"),
        estimator(lambda: ac.LassoCV(cv=3, n_alphas=10), "regression"),
        estimator(lambda: ac.LogisticRegressionCV(Cs=3, cv=3), "classification"),
        refused,
        others,
    ]


def soak(fits: int) -> dict[str, int]:
    """What so many fits, once everything is warm, left behind."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = kinds(folder)
        for k in range(WARM_UP * len(every)):
            every[k % len(every)](k)
        before = left_behind()
        for k in range(fits):
            every[k % len(every)](k)
        after = left_behind()
        return {name: after[name] - before[name] for name in before}


def run(fits: int, folder: Path) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, __file__, str(fits)],
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(folder), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("fits", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_nothing_is_left_behind(fits, tmp_path):
    left = run(fits, tmp_path)
    assert left["memory"] < 20e6, left
    for name in ("threads", "python_threads", "files", "temporary"):
        assert left[name] <= 0, left
    assert not any(tmp_path.iterdir())


def test_what_is_left_behind_is_seen(tmp_path, monkeypatch):
    """The meter itself: memory, a thread, a file and a temporary file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = left_behind()
    stop, kept = threading.Event(), np.ones(8_000_000)
    thread = threading.Thread(target=stop.wait)
    thread.start()
    with open(tmp_path / "left", "w"):
        after = left_behind()
    stop.set()
    thread.join()
    assert kept.sum() == 8_000_000 and after["memory"] - before["memory"] > 40e6
    for name in ("threads", "python_threads", "files", "temporary"):
        assert after[name] == before[name] + 1, name


if __name__ == "__main__":
    print(json.dumps(soak(int(sys.argv[1]))))
