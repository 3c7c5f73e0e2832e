"""Stores are made whole or not at all: full disks, kills, and what stood there before."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.io import folders
from adacoord.io import store as stores
from adacoord.io.storing import writing_store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks, limits and signals are POSIX")
X = np.arange(12.0).reshape(4, 3)
Y = np.arange(4.0)


def write(path, X=X, **options):
    with writing_store(path, **options) as writer:
        writer.append(X, Y)
    return ac.open_store(path)


def test_all_is_synced_before_it_has_its_name(tmp_path, monkeypatch):
    events = []
    fsync, rename = os.fsync, os.rename

    def note_sync(descriptor):
        events.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def note_rename(source, target):
        events.append((source, target))
        rename(source, target)

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs the names of descriptors")
    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "rename", note_rename)
    store = write(tmp_path / "s", sparse.csr_matrix(X))
    temporary, target = next(event for event in events if isinstance(event, tuple))
    assert re.fullmatch(r"\.s\.[0-9a-f]{16}\.tmp", os.path.basename(temporary))
    at = events.index((temporary, target))
    assert target == store.path
    assert events[at - 1] == temporary and events[at + 1 :] == [str(tmp_path)]
    synced = {os.path.basename(path) for path in events[: at - 1]}
    assert synced == set(os.listdir(store.path))
    assert os.path.basename(events[at - 2]) == stores.HEADER


def limited(limit, code, *args):
    """Run code where no file may grow beyond ``limit`` bytes: short writes, then an error."""
    full = (
        "import resource, sys\nimport numpy as np\nfrom scipy import sparse\n"
        "from adacoord.io.storing import writing_store\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n{code}"
    )
    return subprocess.run(
        [sys.executable, "-c", full, *map(str, args)], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("limit", [0, 100, 128, 300, 5000, 100_000, 1_000_000])
def test_a_full_disk_leaves_nothing(tmp_path, limit):
    code = """
try:
    with writing_store(sys.argv[1]) as writer:
        for k in range(50):
            X = sparse.random(2000, 50, 0.1, format="csr", random_state=k)
            writer.append(X, np.ones(2000))
except OSError as error:
    print(error)
"""
    done = limited(limit, code, tmp_path / "s")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "File too large" in done.stdout and str(tmp_path / "s") in done.stdout
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_at_the_end(tmp_path, monkeypatch):
    """The last sync, of the header, may be the one that fails."""
    for last in range(1, 7):
        calls, fsync = [], os.fsync

        def full(descriptor, last=last, calls=calls, fsync=fsync):
            calls.append(descriptor)
            if len(calls) == last:
                raise OSError(28, "No space left on device")
            fsync(descriptor)

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match=r"No space left on device.*/s'"):
                write(tmp_path / "s", sparse.csr_matrix(X))
        assert os.listdir(tmp_path) == [], last


def test_a_rename_that_fails_brings_the_old_store_back(tmp_path, monkeypatch):
    write(tmp_path / "s")
    rename = os.rename

    def failing(source, target):
        if target == str(tmp_path / "s") and not source.endswith("replaced"):
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(OSError, match="Input/output"):
        write(tmp_path / "s", 2 * X, force=True)
    assert os.listdir(tmp_path) == ["s"]
    np.testing.assert_array_equal(ac.open_store(tmp_path / "s").read(0), X)


def test_ctrl_c_at_any_step(tmp_path, interrupted_at, monkeypatch):
    """The old store is there, or the new one."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    for step in range(1000):
        path = tmp_path / str(step) / "s"
        path.parent.mkdir()
        write(path)
        if not interrupted_at(step, folders.__file__, lambda path=path: replace(path)):
            break
        store = ac.open_store(path)
        store.verify()
        assert store.read(0)[0, 1] in (1.0, 2.0)
        replace(path).verify()
    assert 20 < step < 999 and os.listdir(path.parent) == ["s"]


def replace(path):
    return write(path, 2 * X, force=True)


WRITES_FOR_EVER = """
import sys, numpy as np
from scipy import sparse
from adacoord.io.storing import writing_store
with writing_store(sys.argv[1], force=True) as writer:
    while True:
        writer.append(sparse.csr_matrix(np.eye(100)), np.ones(100))
        print("more", flush=True)
"""


@pytest.mark.parametrize("before", [False, True])
def test_kill_leaves_nothing_that_opens(tmp_path, before):
    if before:
        write(tmp_path / "s")
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES_FOR_EVER, str(tmp_path / "s")], stdout=subprocess.PIPE
    )
    with process:
        for _ in range(20):
            assert process.stdout.readline()
        (left,) = (name for name in os.listdir(tmp_path) if name != "s")
        assert re.fullmatch(r"\.s\.[0-9a-f]{16}\.tmp", left)
        with writing_store(tmp_path / "s", force=True) as writer:  # the other one's is locked
            writer.append(2 * X, Y)
        assert left in os.listdir(tmp_path)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == sorted([left, "s"])
    with pytest.raises(ValueError, match="no such file"):
        ac.open_store(tmp_path / left)
    np.testing.assert_array_equal(ac.open_store(tmp_path / "s").read(0), 2 * X)
    write(tmp_path / "s", force=True)
    assert os.listdir(tmp_path) == ["s"]


def test_kills_at_any_time(tmp_path):
    """A conversion is killed again and again: there is no store, or a whole one."""
    code = """
import sys, numpy as np
from adacoord.io.storing import writing_store
print("ready", flush=True)
for k in range(10_000):
    with writing_store(sys.argv[1], force=True) as writer:
        writer.append(np.full((40, 5), float(k)), np.arange(40.0))
"""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "s")], stdout=subprocess.PIPE
        )
        with process:
            process.stdout.readline()
            time.sleep(float(rng.uniform(0.05, 0.4)))
            process.kill()
        if (tmp_path / "s").exists():
            store = ac.open_store(tmp_path / "s")
            store.verify()
            assert len(np.unique(store.read(0))) == 1
            found += 1
    assert found
    write(tmp_path / "s", force=True)
    assert os.listdir(tmp_path) == ["s"]


def test_an_interrupt_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES_FOR_EVER, str(tmp_path / "s")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert os.listdir(tmp_path) == []


# What stood there before.


def test_nothing_is_replaced_that_is_not_a_store(tmp_path):
    write(tmp_path / "s")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    (tmp_path / "mixed").mkdir()
    for name in (*os.listdir(tmp_path / "s"), "mine"):
        (tmp_path / "mixed" / name).touch()
    for name in ("s", "file", "folder", "mixed"):
        with pytest.raises(FileExistsError, match=r"there already; .*--force"):
            write(tmp_path / name)
    for name in ("file", "folder", "mixed"):
        with pytest.raises(FileExistsError, match="not a store, and would be removed"):
            write(tmp_path / name, force=True)
    assert (tmp_path / "file").read_text() == "mine"
    assert os.listdir(tmp_path / "folder") == ["mine"] and len(os.listdir(tmp_path / "mixed")) == 5
    (tmp_path / "empty").mkdir()
    for name in ("s", "empty"):
        write(tmp_path / name, 2 * X, force=True)
        np.testing.assert_array_equal(ac.open_store(tmp_path / name).read(0), 2 * X)
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "folder", "mixed", "s"]


def test_a_damaged_store_can_be_replaced(tmp_path):
    write(tmp_path / "s")
    os.truncate(tmp_path / "s" / "values.npy", 3)
    write(tmp_path / "s", force=True).verify()


def test_a_link_stays_one(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "s").symlink_to("disk/s")
    for _ in range(2):
        write(tmp_path / "s", force=True).verify()
        assert (tmp_path / "s").is_symlink() and os.listdir(tmp_path / "disk") == ["s"]


def test_folders_that_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder to make it in .*create it"):
        write(tmp_path / "no" / "s")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        write(tmp_path / "file" / "s")


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_folders_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(PermissionError, match="no folder can be made"):
        write(tmp_path / "s")
