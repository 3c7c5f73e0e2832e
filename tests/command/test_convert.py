"""``adacoord convert``: by its exit codes, what it says and what it leaves on disk."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import sparse

import adacoord as ac
from adacoord.command.storing import progress_bar
from adacoord.io import load_svmlight, save_svmlight

from .calls import adacoord, inside


def test_convert_svmlight(files):
    folder, _, _ = files
    done = inside("convert", folder / "train.svm", folder / "s")
    assert (done.returncode, done.stderr) == (0, "")
    A, y = load_svmlight(folder / "train.svm")
    assert re.fullmatch(
        rf".*/s: 300 rows, 6 columns, sparse with {A.nnz} entries, float64, 1 block, 0.02\d* MB\n",
        done.stdout,
    )
    store = ac.open_store(folder / "s")
    store.verify()
    assert (store.A != A).nnz == 0
    np.testing.assert_array_equal(store.targets, y)

    done = inside("convert", folder / "test.svm.gz", folder / "s")
    assert done.returncode == 2 and "there already" in done.stderr and "--force" in done.stderr
    assert ac.open_store(folder / "s").shape == (300, 6)
    done = inside("convert", folder / "test.svm.gz", folder / "s", "--force", "--n-features", 9)
    assert done.returncode == 0
    assert ac.open_store(folder / "s").shape == (100, 9)


def test_convert_other_kinds(tmp_path):
    A = sparse.random(30, 5, 0.5, format="csr", random_state=0)
    y = np.arange(30.0)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "X.npy", A.toarray())
    sparse.save_npz(tmp_path / "A.npz", A)
    (tmp_path / "z.svm").write_text("1 0:1\n")
    for name, options in {
        "X.npy": ("--target", tmp_path / "y.npy"),
        "A.npz": ("--target", tmp_path / "y.npy"),
        "z.svm": ("--zero-based",),
    }.items():
        done = inside("convert", tmp_path / name, tmp_path / f"{name}.store", *options)
        assert done.returncode == 0, done.stderr
        ac.open_store(tmp_path / f"{name}.store").verify()
    np.testing.assert_array_equal(ac.open_store(tmp_path / "X.npy.store").read(0), A.toarray())
    np.testing.assert_array_equal(ac.open_store(tmp_path / "A.npz.store").targets, y)
    if find_spec("pyarrow"):
        (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
        done = inside("convert", tmp_path / "t.csv", tmp_path / "t", "--target", "a")
        assert done.returncode == 0, done.stderr
        assert ac.open_store(tmp_path / "t").targets.tolist() == [1, 3]


def test_bad_input_is_one_line_and_leaves_nothing(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2\n2 1:x\n")
    np.save(tmp_path / "X.npy", np.eye(3))
    before = sorted(os.listdir(tmp_path))
    for arguments, message in {
        ("a.svm", "s"): r"a.svm:2:3: a value must be a number",
        ("X.npy", "s"): r"name the .npy file that does \(--target",
        ("none.svm", "s"): r"No such file.*none.svm",
        (".", "s"): r"[Dd]irectory",
        ("a.svm", "no/s"): r"no such folder to make it in",
        ("a.svm", "X.npy"): r"X.npy: this is there already",
        ("a.svm", "X.npy", "--force"): r"X.npy: this is not a store",
    }.items():
        done = inside("convert", *arguments, cwd=tmp_path)
        assert done.returncode == 2 and done.stdout == ""
        assert re.fullmatch(rf"adacoord: .*{message}.*\n", done.stderr), done.stderr
        assert sorted(os.listdir(tmp_path)) == before


def test_the_bar_is_for_terminals():
    screen = io.StringIO()
    with progress_bar(Console(file=screen, force_terminal=True, width=80), False) as progress:
        progress(12345, None)
        progress(23456, 0.5)
    assert "23456 rows" in screen.getvalue()
    for terminal, quiet in ((False, False), (True, True)):
        screen = io.StringIO()
        with progress_bar(Console(file=screen, force_terminal=terminal), quiet) as progress:
            assert progress is None
        assert screen.getvalue() == ""


@pytest.fixture
def endless(tmp_path):
    """Text that a process reads from a FIFO, as long as the test writes it."""
    if os.name != "posix":
        pytest.skip("FIFOs and signals are POSIX")
    os.mkfifo(tmp_path / "a.svm")
    process = subprocess.Popen(
        [sys.executable, "-m", "adacoord", "convert", tmp_path / "a.svm", tmp_path / "s"],
        stderr=subprocess.PIPE,
        text=True,
    )
    line = b"1 " + b" ".join(b"%d:0.5" % j for j in range(1, 8000)) + b"\n"
    with process, open(tmp_path / "a.svm", "wb", buffering=0) as pipe:
        written = 0
        while written < 2**25:
            written += pipe.write(line)
        yield process, tmp_path
        process.kill()


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_conversion_that_is_stopped(endless, number):
    process, folder = endless
    limit = time.monotonic() + 60
    while size_of(folder) < 2**20 and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(number)
    error = process.stderr.read()
    process.wait(60)
    left = [name for name in os.listdir(folder) if name != "a.svm"]
    if number == signal.SIGINT:
        assert (process.returncode, left) == (130, []), error
    else:
        assert process.returncode == -number
        assert len(left) == 1 and re.fullmatch(r"\.s\.[0-9a-f]{16}\.tmp", left[0])
        with pytest.raises(ValueError, match="no such file"):
            ac.open_store(folder / left[0])
    save_svmlight(folder / "b.svm", np.eye(3), np.arange(3))
    assert adacoord("convert", folder / "b.svm", folder / "s").returncode == 0
    assert sorted(os.listdir(folder)) == ["a.svm", "b.svm", "s"]
    ac.open_store(folder / "s").verify()
