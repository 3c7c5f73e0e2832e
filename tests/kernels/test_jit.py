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
    shutil.copytree(
        Path(adacoord.__file__).parent,
        tmp_path / "src" / "adacoord",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return tmp_path / "src" / "adacoord"


def run(package: Path, **env) -> list[str]:
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    env = {**inherited, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **env}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env, check=False
    )
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


CACHED = """
import random, sys
from pathlib import Path
import numpy as np
from adacoord.kernels.jit import jit

def make(folder):
    source = Path(folder, "kernels.py")
    source.write_text("from adacoord.kernels.jit import jit\\n"
                      "@jit\\ndef twice(a):\\n    return a + a\\n")
    sys.path.insert(0, str(folder))

def fresh():
    sys.modules.pop("kernels", None)
    import kernels
    return kernels.twice

folder, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
make(folder)
assert fresh()(2.0) == 4.0 and fresh()(3) == 6
files = sorted(Path(folder).rglob(f"*.{kind}"))
assert files
whole = {f: f.read_bytes() for f in files}
rng = random.Random(7)
for k in range(count):
    file = rng.choice(files)
    content = bytearray(whole[file])
    if k % 10 == 0:
        del content[rng.randrange(len(content)):]
    for _ in range(rng.choice([1, 1, 3, 40])):
        if content:
            content[rng.randrange(len(content))] = rng.randrange(256)
    file.write_bytes(content)
    if bytes(content) == whole[file]:
        continue
    damaged = fresh()
    value = damaged(2.0), damaged(3)  # must neither raise nor crash nor be wrong
    assert value == (4.0, 6) and isinstance(value[1], int), (k, value)
    again = fresh()
    assert again(2.0) == 4.0 and again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 2, (k, again.stats)  # it was mended
    for f in files:
        f.write_bytes(whole[f])
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind, count", [("nbi", 100), ("nbc", 40)])
def test_random_damage_costs_a_compilation_and_no_fit(tmp_path, kind, count):
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    path = str(Path(adacoord.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", CACHED, str(tmp_path), kind, str(count)],
        capture_output=True,
        text=True,
        env={**inherited, "PYTHONPATH": path},
        check=False,
        timeout=300,
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.slow
def test_code_of_an_older_source_is_not_run(tmp_path):
    """Left where the index expects newer code, by a kill between its two writes."""
    script = """
import sys
from pathlib import Path
folder, factor = Path(sys.argv[1]), sys.argv[2]
(folder / "kernels.py").write_text(
    f"from adacoord.kernels.jit import jit\\n@jit\\ndef times(a):\\n    return {factor} * a\\n")
sys.path.insert(0, str(folder))
import kernels
print(kernels.times(1.0))
"""
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    env = {
        **inherited,
        "PYTHONPATH": str(Path(adacoord.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def times(factor):
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path), str(factor)],
            env=env,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        return float(done.stdout)

    assert times(2.0) == 2.0
    (data,) = tmp_path.rglob("*.nbc")
    old = data.read_bytes()
    assert times(3.25) == 3.25
    data.write_bytes(old)
    (source,) = tmp_path.glob("kernels.py")
    stat = source.stat()
    script = script.replace(
        "import kernels",
        f"""
import os
os.utime(folder / "kernels.py", ns=({stat.st_atime_ns}, {stat.st_mtime_ns}))
import kernels""",
    )
    assert times(3.25) == 3.25


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
