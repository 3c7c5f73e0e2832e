"""The one writer of files: whole or untouched, and nothing replaced that is not a plain file."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from adacoord import ERMRegressor
from adacoord.io import load_model, save_model, save_svmlight
from adacoord.io.writing import check_writable, replacing

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes, links and FIFOs are POSIX")
MODEL = ERMRegressor(l2=0.1).fit(np.eye(3), np.arange(3.0))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def test_new_files_honour_the_umask(tmp_path, umask):
    write(tmp_path / "new")
    assert mode(tmp_path / "new") == 0o640


@pytest.mark.parametrize("kept", [0o600, 0o644, 0o664, 0o755])
def test_an_existing_file_keeps_its_mode(tmp_path, umask, kept):
    path = tmp_path / "m"
    path.touch()
    path.chmod(kept)
    save_model(MODEL, path)
    assert mode(path) == kept and load_model(path).l2 == 0.1
    check_writable(path)
    assert mode(path) == kept and load_model(path).l2 == 0.1


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives away")
def test_an_existing_file_keeps_its_owner(tmp_path):
    path = tmp_path / "m"
    path.touch()
    os.chown(path, 1234, 5678)
    path.chmod(0o600)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (1234, 5678, 0o600)


def test_links_stay_links(tmp_path):
    (tmp_path / "folder").mkdir()
    for name, target in (("link", "folder/m"), ("second", "link")):
        (tmp_path / name).symlink_to(target)
    for name in ("link", "second"):  # the first makes the file that it names
        save_model(MODEL, tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert not (tmp_path / "folder" / "m").is_symlink()
        assert load_model(tmp_path / "folder" / "m").l2 == 0.1
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "second"]
    assert os.listdir(tmp_path / "folder") == ["m"]
    (tmp_path / "loop").symlink_to("loop")
    for attempt in (write, check_writable):
        with pytest.raises(OSError, match="loop"):
            attempt(tmp_path / "loop")
    assert (tmp_path / "loop").is_symlink()


@pytest.mark.parametrize(
    "save",
    [
        lambda path: save_model(MODEL, path),
        lambda path: save_svmlight(path, np.eye(2), [1, 2]),
    ],
)
def test_a_fifo_is_written_to(tmp_path, save):
    path, came = tmp_path / "fifo", []
    save(tmp_path / "file")
    os.mkfifo(path)
    check_writable(path)  # does not wait for a reader
    reader = threading.Thread(target=lambda: came.append(path.read_bytes()), daemon=True)
    reader.start()
    save(path)
    reader.join(10.0)
    assert came == [(tmp_path / "file").read_bytes()]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "file"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="devices as Linux has them")
def test_devices_are_written_to(tmp_path, device):
    (tmp_path / "devices").mkdir()
    for name, minor in (("null", 3), ("full", 7)):
        (tmp_path / name).symlink_to(device(tmp_path / "devices", name, minor))
    save_model(MODEL, tmp_path / "null")
    with pytest.raises(OSError, match=r"No space left on device: '.*full'"):
        save_model(MODEL, tmp_path / "full")
    for name in ("null", "full"):
        check_writable(tmp_path / name)
        assert stat.S_ISCHR((tmp_path / name).stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["devices", "full", "null"]


SAVE = """
import sys
from adacoord import load_model, save_model
model = load_model(sys.argv[2])
print("before")
save_model(model, sys.argv[1])
print("after")
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout here")
@pytest.mark.parametrize("kind", ["pipe", "file", "append"])
def test_standard_output_is_written_to(tmp_path, kind):
    save_model(MODEL, tmp_path / "m")
    expected = b"before\n" + (tmp_path / "m").read_bytes() + b"after\n"
    command = [sys.executable, "-c", SAVE, "/dev/stdout", tmp_path / "m"]
    if kind == "pipe":
        done = subprocess.run(command, capture_output=True, check=True, timeout=60)
        assert done.stdout == expected
        return
    path = tmp_path / "out"
    path.write_bytes(b"kept\n")
    with open(path, "ab" if kind == "append" else "wb") as out:
        subprocess.run(command, stdout=out, check=True, timeout=60)
    assert path.read_bytes() == (b"kept\n" if kind == "append" else b"") + expected


def test_what_cannot_be_written(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for name, message in (
        ("folder", "this is a folder; name a file in it"),
        ("none/m", "there is no such folder to write it to"),
        ("file/m", "there is no such folder to write it to"),
        ("m" * 300, "no file can be made|name too long"),
    ):
        for attempt in (write, check_writable):
            with pytest.raises(OSError, match=message):
                attempt(tmp_path / name)
    if os.path.isdir("/proc/self"):  # which refuses root too
        with pytest.raises(OSError, match=r"/proc/self/m: no file can be made in .*name another"):
            check_writable("/proc/self/m")
    if os.getuid() != 0:
        (tmp_path / "file").chmod(0o444)
        with pytest.raises(PermissionError, match="may not be written to"):
            check_writable(tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_check_leaves_nothing(tmp_path):
    check_writable(tmp_path / "new")
    assert os.listdir(tmp_path) == []


def test_an_error_in_the_block_leaves_the_old_file(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    with pytest.raises(KeyError), replacing(path) as file:
        file.write(b"half")
        raise KeyError("x")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["m"]


CHILD = """
import sys, time
from adacoord.io.writing import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    print("writing", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def child(path, seconds):
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "writing\n"
    process.stdout.close()
    return process


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    """Not what others are writing at the time, nor what has another name."""
    path = tmp_path / "m"
    killed, alive = child(path, 60), child(path, 4)
    killed.send_signal(signal.SIGKILL)
    killed.wait(10)
    others = [".m.tmp", ".m.x.tmp", ".mm.0123456789abcdef.tmp", "m.0123456789abcdef.tmp"]
    for name in others:
        (tmp_path / name).touch()
    assert len(list(tmp_path.glob(".m.????????????????.tmp"))) == 2
    write(path)
    assert len(list(tmp_path.glob(".m.????????????????.tmp"))) == 1
    assert path.read_bytes() == b"new"
    assert alive.wait(30) == 0 and path.read_bytes() == b"half"
    assert sorted(os.listdir(tmp_path)) == sorted(["m", *others])


def test_many_writers_at_once(tmp_path):
    """Each takes the others' files neither for abandoned nor for its own."""
    path, errors, end = tmp_path / "m", [], time.monotonic() + 1.0

    def work(k):
        try:
            while time.monotonic() < end:
                write(path, bytes([k]) * 10_000)
                assert len(set(path.read_bytes())) == 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and os.listdir(tmp_path) == ["m"]
