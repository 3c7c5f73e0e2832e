"""SIGTERM and Ctrl-C: one last checkpoint, then what would have happened anyway."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import adacoord as ac
from adacoord.api.checkpoint import Checkpoints
from adacoord.io.checkpoints import read_checkpoint

from .runs import assert_same_bits, solve

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")

HOW = {"tol": 1e-12, "max_passes": 60}


def pose():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 8))
    return ac.Problem(A, np.sign(rng.standard_normal(60)), "smooth_hinge", l2=1e-4)


@pytest.fixture
def at_pass(monkeypatch):
    """``at_pass(k, *numbers)``: signals that come within the k-th pass."""
    from adacoord.solvers.dual.dual_cd import DualCoordinateAscent as Solver

    ascend = Solver._ascend

    def send(k, *numbers):
        def ascending(self):
            if self.passes == k:
                y, self.y = self.y, np.zeros_like(self.y)  # nothing to go on from
                for number in numbers:
                    signal.raise_signal(number)
                self.y = y
            ascend(self)

        monkeypatch.setattr(Solver, "_ascend", ascending)

    yield send
    monkeypatch.setattr(Solver, "_ascend", ascend)


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


def test_ctrl_c_gives_the_best_point_and_a_checkpoint(at_pass, tmp_path, monkeypatch):
    problem, path = pose(), tmp_path / "c"
    whole = solve(problem, "dcd", **HOW)
    at_pass(17, signal.SIGINT)
    found = ac.solve(problem, "dcd", checkpoint=path, **HOW)
    assert found.status == "interrupted" and found.passes == 18  # the pass under way was made
    assert read_checkpoint(str(path))[0]["passes"] == 18
    monkeypatch.undo()
    assert_same_bits(solve(problem, "dcd", checkpoint=path, **HOW), whole)


def test_the_second_time_at_once(at_pass, tmp_path, monkeypatch):
    problem, path = pose(), tmp_path / "c"
    whole = solve(problem, "dcd", **HOW)
    at_pass(17, signal.SIGINT, signal.SIGINT)
    found = ac.solve(problem, "dcd", checkpoint=path, checkpoint_every=0.0, **HOW)
    assert found.status == "interrupted" and found.passes == 17
    assert read_checkpoint(str(path))[0]["passes"] == 17  # the last before that pass
    monkeypatch.undo()
    assert_same_bits(solve(problem, "dcd", checkpoint=path, **HOW), whole)


def test_whoever_listened_is_told(at_pass, tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *args: heard.append(args))
    try:
        at_pass(5, signal.SIGTERM)
        found = solve(pose(), "dcd", checkpoint=tmp_path / "c", **HOW)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [number for number, _ in heard] == [signal.SIGTERM]
    assert found.status == "max_passes"  # it did not ask for an end


def test_who_ignores_a_signal_goes_on_ignoring_it(at_pass, tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        at_pass(5, signal.SIGINT)
        found = solve(pose(), "dcd", checkpoint=tmp_path / "c", **HOW)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.status == "max_passes"


def test_a_signal_that_comes_with_the_end(tmp_path):
    """After the last pass: the result is kept, and the interrupt is not lost."""
    problem, path = pose(), tmp_path / "c"

    def callback(progress):
        if progress.passes >= HOW["max_passes"]:
            signal.raise_signal(signal.SIGINT)

    found = solve(problem, "dcd", checkpoint=path, callback=callback, **HOW)
    assert found.status == "interrupted" and found.passes == HOW["max_passes"]
    assert read_checkpoint(str(path))[0]["reason"] == "max_passes"


def test_a_signal_in_the_last_moment(tmp_path, monkeypatch):
    end = Checkpoints.end

    def ended(self, *args):
        end(self, *args)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Checkpoints, "end", ended)
    found = solve(pose(), "dcd", checkpoint=tmp_path / "c", **HOW)
    assert found.status == "interrupted" and found.passes == HOW["max_passes"]


def test_an_error_ends_it_all(tmp_path):
    with pytest.raises(ZeroDivisionError):
        solve(pose(), "dcd", checkpoint=tmp_path / "c", callback=lambda p: 1 / 0, **HOW)


def test_other_threads_leave_signals_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: pytest.fail("not the main thread"))
    found = []
    thread = threading.Thread(
        target=lambda: found.append(solve(pose(), "dcd", checkpoint=tmp_path / "c", **HOW))
    )
    thread.start()
    thread.join()
    assert found[0].passes == HOW["max_passes"] and (tmp_path / "c").exists()


ENDED = """
import sys, numpy as np, adacoord as ac
rng = np.random.default_rng(0)
A = rng.standard_normal((60, 8))
problem = ac.Problem(A, np.sign(rng.standard_normal(60)), "smooth_hinge", l2=1e-4)
tell = lambda p: p.passes >= 40 and print(p.passes, flush=True)
r = ac.solve(problem, "dcd", tol=0.0, max_passes=10**8, checkpoint=sys.argv[1], callback=tell)
print("status", r.status)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_ended(number, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", ENDED, tmp_path / "c"], text=True, stdout=subprocess.PIPE
    )
    try:
        seen = int(process.stdout.readline())
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    kept = read_checkpoint(str(tmp_path / "c"))[0]
    assert kept["passes"] >= seen and kept["reason"] == ""
    if number == signal.SIGTERM:
        assert process.returncode == -signal.SIGTERM and "status" not in out
    else:
        assert process.returncode == 0 and "status interrupted" in out
