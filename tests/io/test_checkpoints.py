"""Checkpoint files: nothing that is not whole is read, and no failure loses the last whole one."""

from __future__ import annotations

import errno
import io
import os
import warnings

import numpy as np
import pytest

import adacoord as ac
from adacoord.io import checkpoints, writing
from adacoord.io.checkpoints import read_checkpoint, write_checkpoint
from adacoord.io.digested import write_digested


def tree(k):
    return {
        "k": k,
        "text": "ä",
        "nothing": None,
        "numbers": {"tiny": 5e-324, "inf": np.inf, "whole": 2**70, "yes": True},
        "deep": {"er": {"x": np.arange(6.0).reshape(2, 3), "empty": {}}},
        "scalar": np.float64(0.1 + 0.2),
        "words": np.array([2**64 - 1], dtype=np.uint64),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    }


def read(path):
    return read_checkpoint(str(path))


@pytest.fixture
def two(tmp_path):
    """The path of two checkpoints, of 1 and 2."""
    path = tmp_path / "c"
    for k in (1, 2):
        write_checkpoint(str(path), tree(k))
    return path


def test_a_tree_comes_back(tmp_path):
    assert read(tmp_path / "c") == (None, [])
    write_checkpoint(str(tmp_path / "c"), tree(3))
    found, wrong = read(tmp_path / "c")
    assert wrong == [] and found.keys() == tree(3).keys()
    np.testing.assert_equal(found, tree(3))
    assert found["columns"].flags.f_contiguous and found["deep"]["er"]["x"].flags.writeable
    assert found["words"].dtype == np.uint64 and type(found["numbers"]["yes"]) is bool


def test_the_last_two_are_kept(two):
    for k in (3, 4):
        write_checkpoint(str(two), tree(k))
        assert read(two)[0]["k"] == k
        assert read(f"{two}.previous")[0]["k"] == k - 1
        assert sorted(os.listdir(two.parent)) == ["c", "c.previous"]
    write_checkpoint(str(two), tree(5), keep=False)
    assert read(two)[0]["k"] == 5 and read(f"{two}.previous")[0]["k"] == 3


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX")
def test_both_are_where_a_link_points_to(tmp_path):
    for name in ("elsewhere", "here"):
        (tmp_path / name).mkdir()
    link = tmp_path / "here" / "c"
    link.symlink_to("../elsewhere/c")
    checkpoints.check_place(str(link))  # though there is nothing yet
    assert not checkpoints.exists(str(link))
    for k in (1, 2):
        write_checkpoint(str(link), tree(k))
    assert os.listdir(tmp_path / "here") == ["c"] and link.is_symlink()
    assert sorted(os.listdir(tmp_path / "elsewhere")) == ["c", "c.previous"]
    (tmp_path / "elsewhere" / "c").write_bytes(b"")
    assert read(link)[0]["k"] == 1


def test_the_one_before_it_where_there_is_no_other(two):
    two.unlink()  # killed between two renames
    found, wrong = read(two)
    assert found["k"] == 1 and wrong == []


def damaged(two, content):
    """Neither read for what it is nor taken for another; alone it is refused."""
    two.write_bytes(content)
    found, (wrong,) = read(two)
    assert found["k"] == 1 and str(two) in wrong
    previous = two.with_name("c.previous")
    whole = previous.read_bytes()
    previous.unlink()
    with pytest.raises(ValueError, match=r"no whole checkpoint .*remove it to start") as refused:
        read(two)
    assert str(two) in str(refused.value)
    previous.write_bytes(whole)


def test_every_truncation_is_detected(two):
    content = two.read_bytes()
    for size in range(len(content)):
        damaged(two, content[:size])
    damaged(two, content + b"\0")


def test_a_thousand_bit_flips_are_detected(two):
    content, rng = two.read_bytes(), np.random.default_rng(0)
    for place in rng.choice(8 * len(content), 1000, replace=False):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << (place % 8)
        damaged(two, bytes(flipped))


def test_what_is_no_checkpoint_is_neither_read_nor_overwritten(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,2,3\n")
    with pytest.raises(ValueError, match="not an adacoord checkpoint file"):
        ac.solve(ac.Problem(np.eye(3), np.ones(3), l2=1.0), checkpoint=path)
    assert path.read_text() == "1,2,3\n" and os.listdir(tmp_path) == ["data.csv"]
    model = tmp_path / "model"
    ac.save_model(ac.Ridge().fit(np.eye(3), np.ones(3)), model)
    with pytest.raises(ValueError, match="not an adacoord checkpoint file"):
        ac.solve(ac.Problem(np.eye(3), np.ones(3), l2=1.0), checkpoint=model)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(ValueError, match="neither a file nor free"):
            ac.solve(ac.Problem(np.eye(3), np.ones(3), l2=1.0), checkpoint=tmp_path / "fifo")


def test_a_crafted_file_is_refused(tmp_path):
    path = str(tmp_path / "c")
    for arrays, facts in (
        ({"no/such/branch": np.ones(2)}, {}),
        ({"k/x": np.ones(2)}, {"k": 1}),
        ({}, {"identity": {}}),
    ):
        write_digested(path, "CHECKPOINT", 1, arrays, facts)
        with pytest.raises(ValueError, match="checkpoint"):
            ac.solve(ac.Problem(np.eye(3), np.ones(3), l2=1.0), checkpoint=path)
    problem = ac.Problem(np.eye(3), np.ones(3), l2=1.0)
    os.remove(path)
    ac.solve(problem, "dcd", checkpoint=path)
    found = read(path)[0]
    for name, value in (("x", np.ones(4)), ("y", np.ones((3, 1))), ("best_primal", np.ones(2))):
        wrong = {**found, "monitor": {**found["monitor"], name: value}}
        write_checkpoint(path, wrong, keep=False)
        with pytest.raises(ValueError, match=f"does not hold a run.*{name}"):
            ac.solve(problem, "dcd", checkpoint=path)
    write_digested(path, "CHECKPOINT", 2, {}, {})
    with pytest.raises(ValueError, match="format 2"):
        read(path)


# ---- disks that fail -----------------------------------------------------------------------------


class Disk:
    """Takes 100 bytes at a time; the ``fails``-th thing asked of it fails with ``number``."""

    def __init__(self, monkeypatch, number):
        self.number, self.fails, self.asked = number, None, 0
        for name in ("fsync", "replace"):
            monkeypatch.setattr(writing.os, name, self.guarded(getattr(os, name)))
        monkeypatch.setattr(writing, "open", self.open, raising=False)

    def ask(self):
        self.asked += 1
        if self.asked == self.fails:
            raise OSError(self.number, os.strerror(self.number))

    def guarded(self, function):
        def guarded(*args):
            self.ask()
            return function(*args)

        return guarded

    def open(self, descriptor, mode):
        disk = self

        class Raw(io.FileIO):
            def write(self, data):
                disk.ask()
                return super().write(bytes(data[:100]))

        return io.BufferedWriter(Raw(descriptor, mode))


@pytest.fixture(params=[errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
def disk(request, monkeypatch):
    return Disk(monkeypatch, request.param)


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_disk_that_fails_at_any_write_loses_nothing(tmp_path, disk, before):
    path = str(tmp_path / "c")
    failed = 0
    while True:
        for name in os.listdir(tmp_path):
            os.remove(tmp_path / name)
        disk.fails = None
        for k in range(1, before + 1):
            write_checkpoint(path, tree(k))
        disk.asked, disk.fails = 0, failed + 1
        try:
            write_checkpoint(path, tree(before + 1))
            break
        except OSError as error:
            assert error.errno == disk.number and str(path) in str(error)
        failed += 1
        found, wrong = read(path)
        assert wrong == []
        # the last one that was acknowledged, or the new one, where only its folder was not synced
        newest = 0 if found is None else found["k"]
        assert newest in (before, before + 1)
        assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
        disk.fails = None
        write_checkpoint(path, tree(before + 2))  # and the next one is written as if nothing was
        assert read(path)[0]["k"] == before + 2
        if before:
            assert read(f"{path}.previous")[0]["k"] in (before, before + 1)
    assert failed >= 10 and read(path)[0]["k"] == before + 1  # short writes alone do no harm


def test_a_run_survives_a_disk_that_fails(tmp_path, disk):
    A = np.random.default_rng(0).standard_normal((30, 4))
    problem, path = ac.Problem(A, np.sign(A[:, 0]), "logistic", l2=0.01), tmp_path / "c"
    whole = ac.solve(problem, "dcd", tol=1e-8)
    for fails in range(1, 60, 7):
        disk.asked, disk.fails = 0, fails
        with pytest.warns(ac.CheckpointWarning, match=r"could not be written .*goes on") as caught:
            found = ac.solve(problem, "dcd", tol=1e-8, checkpoint=path, checkpoint_every=0.0)
        assert len(caught) == 1 and str(path) in str(caught[0].message)
        np.testing.assert_array_equal(found.x, whole.x)
        assert read(path)[0]["reason"] == "converged"  # the next one was written again
        path.unlink()
        os.remove(f"{path}.previous")


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path, monkeypatch):
    A = np.random.default_rng(0).standard_normal((30, 4))
    problem, path = ac.Problem(A, np.sign(A[:, 0]), "logistic", l2=0.01), tmp_path / "c"
    whole = ac.solve(problem, "dcd", tol=1e-8)
    how = {"tol": 1e-8, "checkpoint": path, "checkpoint_every": 0.0}
    stopped = ac.solve(problem, "dcd", callback=lambda p: p.passes > 9, **how)
    assert stopped.status == "callback"
    content = path.read_bytes()
    path.write_bytes(content[:-7])
    before, kept = (tmp_path / "c.previous").read_bytes(), []
    real = checkpoints.write_checkpoint

    def write(*args, **kwargs):
        real(*args, **kwargs)
        kept.append((tmp_path / "c.previous").read_bytes())

    monkeypatch.setattr("adacoord.api.checkpoint.write_checkpoint", write)
    with pytest.warns(ac.CheckpointWarning, match="damaged") as caught:
        found = ac.solve(problem, "dcd", **how)
    (message,) = [str(w.message) for w in caught]
    assert str(path) in message and "c.previous" in message
    np.testing.assert_array_equal(found.x, whole.x)
    # the damaged one took nobody's place, and later ones did
    assert kept[0] == before and kept[1] != before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ac.solve(problem, "dcd", **how)
