"""The compiled kernels' cache: wherever it cannot be used, fits go on without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adacoord

SCRIPT = """
import numpy as np, sys, time
import adacoord as ac
A = np.random.default_rng(0).standard_normal((50, 5))
r = ac.solve(ac.Problem(A, np.sign(A[:, 0]), loss="logistic", l2=1e-2), "dcd", max_passes=500)
assert r.converged
from adacoord.solvers.dual.dual_cd import dual_pass
hits = sum(dual_pass.stats.cache_hits.values())
value = ac.losses.Squared().dual_prox(1.0, 0.0, 0.0, 1.0)
print(dual_pass.stats.cache_path is not None, hits, float(value))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package, to damage."""
    shutil.copytree(Path(adacoord.__file__).parent, tmp_path / "src" / "adacoord",
                    ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "src" / "adacoord"


def run(package: Path, **env) -> list[str]:
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    env = {**inherited, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **env}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def block_cache(package: Path) -> None:
    """Make __pycache__ impossible to create (also for root): a file stands in its place."""
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").write_text("not a folder")


@pytest.mark.slow
def test_cache_beside_the_source_then_hit(package):
    assert run(package) == ["True", "0", "0.5"]
    assert run(package) == ["True", "1", "0.5"]


@pytest.mark.slow
def test_falls_back_to_the_user_cache(package, tmp_path):
    block_cache(package)
    home = tmp_path / "home"
    home.mkdir()
    env = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    assert run(package, **env)[0] == "True"
    assert run(package, **env) == ["True", "1", "0.5"]
    assert list(home.rglob("*.nbi"))


@pytest.mark.slow
def test_works_without_any_cache(package):
    block_cache(package)
    nowhere = "/proc/no/such/folder"  # not even root can create it
    assert run(package, HOME=nowhere, XDG_CACHE_HOME=nowhere) == ["False", "0", "0.5"]


@pytest.mark.slow
def test_damaged_cache_is_compiled_anew(package):
    run(package)
    damaged = list(package.rglob("*.nbi"))
    assert damaged
    for index in damaged:
        index.write_bytes(index.read_bytes()[:40])
    assert run(package) == ["True", "0", "0.5"]
    run(package)  # writes a new index where the damaged one could not be extended
    assert run(package) == ["True", "1", "0.5"]


@pytest.mark.slow
def test_an_edited_loss_reaches_the_solvers(package):
    """Numba alone would go on using the old one, cached in the solver's file."""
    run(package)
    source = package / "kernels" / "loss.py"
    text = source.read_text()
    source.write_text(text.replace("v /= 1.0 + s * alpha", "v /= 2.0 + s * alpha"))
    assert source.read_text() != text
    out = run(package)
    assert out[1] == "0"
    assert float(out[2]) == pytest.approx(1 / 3)


def test_prefetch_changes_nothing():
    from adacoord.kernels.jit import jit, prefetch

    @jit
    def total(a):
        s = 0.0
        for k in range(a.shape[0]):
            prefetch(a, np.uint64(k + 1000))  # far outside: a hint never faults
            s += a[k]
        return s

    assert total(np.arange(10.0)) == 45.0
