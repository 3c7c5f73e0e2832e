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


def environment(package: Path, **env) -> dict[str, str]:
    """With a cache beside the copy, unless ``env`` has another."""
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    mine = {"ADACOORD_CACHE": str(package.parents[1] / "cache")}
    path = {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**inherited, **path, **mine, **env}


def start(package: Path, **env) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(package, **env),
    )


def end(process: subprocess.Popen) -> list[str]:
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return out.split()


def run(package: Path, **env) -> list[str]:
    return end(start(package, **env))


def stored(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


@pytest.mark.slow
def test_in_the_chosen_folder_and_nowhere_else(package, tmp_path):
    assert run(package) == ["True", "0", "0.5"]
    assert stored(tmp_path / "cache" / "kernels")
    assert run(package) == ["True", "1", "0.5"]
    assert not stored(package)  # which may be read-only site-packages


@pytest.mark.slow
def test_in_the_home_of_the_user(package, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    env = {"ADACOORD_CACHE": "", "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    assert run(package, **env)[0] == "True"
    assert run(package, **env) == ["True", "1", "0.5"]
    assert stored(home / ".cache" / "adacoord" / "kernels")


@pytest.mark.slow
def test_works_without_any_cache(package):
    nowhere = "/proc/no/such/folder"  # not even root can create it
    assert run(package, ADACOORD_CACHE=nowhere)[1:] == ["0", "0.5"]
    assert run(package, ADACOORD_CACHE=nowhere)[1:] == ["0", "0.5"]


@pytest.mark.slow
def test_what_may_only_be_read_is_read(package, tmp_path):
    """A file stands where the folder of temporary files would be: root may write anywhere else."""
    run(package)
    code = SCRIPT + "\nimport adacoord.kernels.store as s\nprint(s.can_write('/proc/no'))"
    deny = "import os\nos.replace = None\n"  # every write fails at its last step
    done = subprocess.run(
        [sys.executable, "-c", deny + code],
        capture_output=True,
        text=True,
        env=environment(package),
        check=True,
    )
    assert done.stdout.split() == ["True", "1", "0.5", "False"]
    assert not list((tmp_path / "cache").rglob("*.tmp"))


@pytest.mark.slow
def test_two_processes_that_compile_at_once(package, tmp_path):
    both = [start(package) for _ in range(2)]
    assert [end(process)[2] for process in both] == ["0.5", "0.5"]
    assert run(package) == ["True", "1", "0.5"]
    assert not list((tmp_path / "cache").rglob("*.tmp"))


@pytest.mark.slow
def test_the_content_counts_and_nothing_else(package, tmp_path):
    """Not the time of a file, nor where it is."""
    run(package)
    before = stored(tmp_path / "cache")
    for file in package.rglob("*.py"):
        os.utime(file, (1, 1))
    assert run(package) == ["True", "1", "0.5"]
    twin = tmp_path / "twin" / "src" / "adacoord"
    shutil.copytree(package, twin)
    assert run(twin, ADACOORD_CACHE=str(tmp_path / "cache")) == ["True", "1", "0.5"]
    assert stored(tmp_path / "cache") == before


@pytest.mark.slow
def test_damaged_cache_is_compiled_anew(package, tmp_path):
    run(package)
    damaged = stored(tmp_path / "cache")
    assert damaged
    for file in damaged:
        file.write_bytes(file.read_bytes()[:40])
    assert run(package) == ["True", "0", "0.5"]
    assert run(package) == ["True", "1", "0.5"]


def test_old_kernels_are_forgotten(tmp_path):
    from adacoord.kernels import store

    old, new, other = (tmp_path / name for name in ("0" * 16, "1" * 16, "not ours"))
    for folder in (old, new, other):
        folder.mkdir()
        (folder / "kernel.nbc").write_bytes(b"")
    os.utime(old, (1, 1))
    os.utime(other, (1, 1))
    store._forget(tmp_path)
    assert [folder.exists() for folder in (old, new, other)] == [False, True, True]


CACHED = """
import random, sys
from pathlib import Path

def make(folder):
    source = Path(folder, "kernels.py")
    source.write_text("from adacoord.kernels.jit import jit\\n"
                      "@jit\\ndef twice(a):\\n    return a + a\\n")
    sys.path.insert(0, str(folder))

def fresh():
    sys.modules.pop("kernels", None)
    import kernels
    return kernels.twice

folder, count = sys.argv[1], int(sys.argv[2])
make(folder)
assert fresh()(2.0) == 4.0 and fresh()(3) == 6
files = sorted(Path(folder).rglob("*.nbc"))
assert len(files) == 2
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
# one kernel's file under the name of another
files[0].write_bytes(whole[files[1]])
swapped = fresh()
assert (swapped(2.0), swapped(3)) == (4.0, 6)
print("done")
"""


@pytest.mark.slow
def test_random_damage_costs_a_compilation_and_no_fit(tmp_path):
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    path = str(Path(adacoord.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", CACHED, str(tmp_path), "100"],
        capture_output=True,
        text=True,
        env={**inherited, "PYTHONPATH": path, "ADACOORD_CACHE": str(tmp_path)},
        check=False,
        timeout=300,
    )
    assert done.stdout == "done\n", done.stderr


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
