"""``adacoord fit --checkpoint --resume``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from adacoord.api import checkpoint as keeping
from adacoord.io import checkpoints, load_model

from .calls import inside


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch):
    """tests/io/test_checkpoints.py is about the disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


FIT = ("fit", "train.svm", "--solver", "dcd", "--tol", "1e-12", "--max-passes", "40", "--quiet")


class Killed(BaseException):
    """In place of kill -9."""


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_fit_goes_on(irises, loss, monkeypatch):
    folder, *_ = irises  # three classes: a file for each
    command = (*FIT, "--loss", loss)
    whole = inside(*command, "--model", "whole", cwd=folder)
    kept = (*command, "--model", "m", "--checkpoint", "c", "--checkpoint-every", "0")
    left = 60

    def write(*args, **kwargs):
        nonlocal left
        checkpoints.write_checkpoint(*args, **kwargs)
        left -= 1
        if left == 0:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(keeping, "write_checkpoint", write)
        inside(*kept, cwd=folder)
    assert not (folder / "m").exists()
    refused = inside(*kept, cwd=folder)
    assert refused.returncode == 2 and "--checkpoint c: there is one already" in refused.stderr
    found = inside(*kept, "--resume", cwd=folder)
    assert found.returncode == whole.returncode == 3
    for name in ("coef_", "intercept_", "dual_coef_"):
        np.testing.assert_array_equal(
            getattr(load_model(folder / "m"), name), getattr(load_model(folder / "whole"), name)
        )
    other = inside(*kept, "--resume", "--l2", "0.5", cwd=folder)
    assert other.returncode == 2 and "l2=" in other.stderr and "another problem" in other.stderr


def test_what_cannot_be_kept_is_refused_before_the_work(files):
    folder, *_ = files
    for options, message in (
        (("--resume",), "--resume: name the checkpoint"),
        (("--checkpoint", "no/c"), "--checkpoint no/c: there is no such folder"),
        (("--checkpoint", "train.svm"), "this file is read, and would be overwritten"),
        (("--checkpoint", "m", "--model", "m"), "the model goes there"),
        (("--checkpoint", "test.svm.gz", "--resume"), "not an adacoord checkpoint file"),
    ):
        found = inside(*FIT, *options, cwd=folder)
        assert found.returncode == 2 and message in found.stderr, found
        assert found.stdout == ""
    assert sorted(os.listdir(folder)) == ["real.svm", "test.svm.gz", "train.svm"]


def test_the_first_time_with_resume(files):
    folder, *_ = files
    found = inside(*FIT, "--checkpoint", "c", "--resume", cwd=folder)
    assert found.returncode == 0 and (folder / "c").exists()


def test_a_damaged_checkpoint_is_named(files):
    folder, *_ = files
    kept = (*FIT, "--checkpoint", "c", "--checkpoint-every", "0")
    whole = inside(*kept, cwd=folder)
    (folder / "c").write_bytes((folder / "c").read_bytes()[:-1])
    found = inside(*kept, "--resume", cwd=folder)
    assert "adacoord: c: this checkpoint file is damaged" in found.stderr
    assert "c.previous" in found.stderr
    assert found.stdout.split("passes")[0] == whole.stdout.split("passes")[0]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended(files, number):
    folder, *_ = files
    command = [
        sys.executable,
        "-m",
        "adacoord",
        *FIT[:4],
        *("--loss", "hinge", "--l2", "1e-10"),  # rounding ends easy ones, whatever tol is
        *("--tol", "0", "--max-passes", "100000000"),
    ]
    process = subprocess.Popen(
        [*command, "--quiet", "--checkpoint", "c", "--checkpoint-every", "0.2"],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    )
    try:
        seen = 0  # a slow machine compiles for longer than the first checkpoint waits
        while not seen:
            assert process.poll() is None
            if (folder / "c").exists():
                seen = checkpoints.read_checkpoint(str(folder / "c"))[0]["passes"]
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert checkpoints.read_checkpoint(str(folder / "c"))[0]["passes"] >= seen
    if number == signal.SIGINT:
        assert process.returncode == 130 and "--resume goes on" in err
    else:
        assert process.returncode == -signal.SIGTERM
