"""Data sets by name, against a local server that truncates, corrupts, stalls and disappears."""

from __future__ import annotations

import bz2
import hashlib
import http.server
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import adacoord as ac
from adacoord import datasets
from adacoord.io import download as http_get
from adacoord.io import load_svmlight, save_svmlight

ROWS, COLUMNS = 400, 30
NAME = "toy_train.binary"


def body(seed=0):
    rng = np.random.default_rng(seed)
    lines = [
        f"{rng.choice([-1, 1])} "
        + " ".join(f"{j}:{rng.standard_normal():.6g}" for j in range(1, 1 + rng.integers(COLUMNS)))
        for _ in range(ROWS)
    ]
    return bz2.compress("\n".join(lines).encode() + b"\n")


class Server:
    """Serves one body; ``faults`` holds what goes wrong with each request, in turn."""

    def __init__(self):
        self.body, self.etag, self.faults = body(), '"one"', []
        self.requests, self.ranges = [], True
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request):
        wanted = request.headers.get("Range")
        self.requests.append(wanted)
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, int):
            request.send_error(fault)
            return
        data, start, status = self.body, 0, 200
        if wanted and self.ranges and request.headers.get("If-Range") == self.etag:
            start, status = int(wanted.removeprefix("bytes=").removesuffix("-")), 206
            if start >= len(data):
                request.send_error(416)
                return
        if fault == "corrupt":
            middle = len(data) // 2
            data = (
                data[:middle]
                + bytes(b ^ 255 for b in data[middle : middle + 50])
                + data[middle + 50 :]
            )
        request.send_response(status)
        if fault != "no length":
            request.send_header("Content-Length", str(len(data) - start))
        if self.etag:
            request.send_header("ETag", self.etag)
        if status == 206:
            at = 3 if fault == "wrong range" else start
            request.send_header("Content-Range", f"bytes {at}-{len(data) - 1}/{len(data)}")
        request.end_headers()
        half = (len(data) - start) // 2
        if fault in ("truncate", "stall"):
            request.wfile.write(data[start : start + half])
            request.wfile.flush()
            if fault == "stall":
                time.sleep(1.0)
            request.close_connection = True
        elif fault != "empty":
            request.wfile.write(data[start:])

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def server(monkeypatch, tmp_path):
    server = Server()
    monkeypatch.setattr(datasets, "SITE", server.url)
    monkeypatch.setitem(
        datasets.SOURCES, NAME, datasets.Source(f"binary/{NAME}.bz2", ROWS, COLUMNS)
    )
    monkeypatch.setenv("ADACOORD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ADACOORD_DATA", raising=False)
    monkeypatch.setattr(http_get, "TIMEOUT", 0.2)
    monkeypatch.setattr(http_get, "PAUSE", 0.001)
    yield server
    server.close()


def cached():
    folder = datasets.cache_folder()
    return {f.name: f for f in folder.iterdir() if not f.name.endswith(".lock")}


def assert_loads(server):
    A, b = ac.datasets.load(NAME)
    file = datasets.cache_folder() / f"{NAME}.bz2"
    assert file.read_bytes() == server.body
    expected, labels = load_svmlight(file, COLUMNS)
    assert (expected != A).nnz == 0 and A.shape == (ROWS, COLUMNS)
    np.testing.assert_array_equal(b, labels)
    assert set(cached()) == {f"{NAME}.bz2", f"{NAME}.bz2.sha256"}  # nothing half-made is left


def test_download_once(server):
    assert_loads(server)
    assert_loads(server)
    assert server.requests == [None]  # the second was read from the cache
    assert ac.datasets.load(NAME, n_features=50)[0].shape == (ROWS, 50)


@pytest.mark.parametrize("fault", ["truncate", "stall", "empty", 503, 429])
def test_an_interrupted_download_goes_on_where_it_was(server, fault):
    server.faults = ["truncate", fault, fault]
    assert_loads(server)
    half = len(server.body) // 2
    assert server.requests[:2] == [None, f"bytes={half}-"]
    starts = [int(r[6:-1]) for r in server.requests[1:]]
    assert starts == sorted(starts) and len(server.requests) == 4


def test_resumed_by_a_later_call(server):
    server.faults = ["truncate", *["empty"] * http_get.ATTEMPTS]
    with pytest.raises(OSError, match=rf"{NAME}.*connection ended early.*bytes are kept"):
        ac.datasets.load(NAME)
    assert f"{NAME}.bz2" not in cached()  # no half file under the real name
    asked = len(server.requests)
    assert_loads(server)
    assert server.requests[asked:] == [f"bytes={len(server.body) // 2}-"]


@pytest.mark.parametrize("etag", ['"two"', "", 'W/"weak"'])
def test_a_file_that_changed_meanwhile_is_begun_anew(server, etag):
    """Half of the old and half of the new file would be neither."""
    server.faults = ["truncate", *["empty"] * http_get.ATTEMPTS]
    with pytest.raises(OSError):
        ac.datasets.load(NAME)
    server.body, server.etag = body(seed=1), etag
    server.faults = ["truncate"]
    assert_loads(server)


@pytest.mark.parametrize("fault", ["wrong range", 416])
def test_a_server_that_answers_another_range(server, fault):
    server.faults = ["truncate", fault]
    assert_loads(server)


def test_a_server_without_ranges(server):
    server.ranges = False
    server.faults = ["truncate", "truncate"]
    assert_loads(server)
    assert len(server.requests) == 3


def test_no_length(server):
    server.faults = ["no length"]
    assert_loads(server)


def test_corruption_inside_the_compression_is_noticed(server):
    server.faults = ["corrupt"]
    with pytest.raises(ValueError, match=r"truncated or corrupt.*remove .*bz2 to have it"):
        ac.datasets.load(NAME)
    cached()[f"{NAME}.bz2"].unlink()
    assert_loads(server)


def test_a_known_digest_is_checked_before_the_file_appears(server, monkeypatch):
    right = hashlib.sha256(server.body).hexdigest()
    monkeypatch.setitem(
        datasets.SOURCES, NAME, datasets.Source(f"binary/{NAME}.bz2", ROWS, COLUMNS, right)
    )
    server.faults = ["corrupt"]
    with pytest.raises(OSError, match=rf"SHA-256 .* not {right[:16]}.*removed"):
        ac.datasets.load(NAME)
    assert cached() == {}
    assert_loads(server)


def test_damage_in_the_cache_is_noticed(server):
    assert_loads(server)
    file = cached()[f"{NAME}.bz2"]
    file.write_bytes(body(seed=2))
    with pytest.raises(ValueError, match=r"changed since it was downloaded.*remove it"):
        ac.datasets.load(NAME)


@pytest.mark.parametrize("n, d", [(ROWS + 1, COLUMNS), (ROWS, COLUMNS - 5)])
def test_another_shape_than_stated(server, monkeypatch, n, d):
    monkeypatch.setitem(datasets.SOURCES, NAME, datasets.Source(f"binary/{NAME}.bz2", n, d))
    with pytest.raises(ValueError, match=rf"400 rows and \d+ columns, but {NAME} has {n} and {d}"):
        ac.datasets.load(NAME)


def test_columns_that_are_empty_at_the_end(server, monkeypatch):
    monkeypatch.setitem(datasets.SOURCES, NAME, datasets.Source(f"binary/{NAME}.bz2", ROWS, 77))
    assert ac.datasets.load(NAME)[0].shape == (ROWS, 77)


def test_not_there(server):
    server.faults = [404]
    with pytest.raises(OSError, match=r"404 Not Found.*ADACOORD_DATA"):
        ac.datasets.load(NAME)
    assert server.requests == [None]  # asking again would not help


def test_offline(server, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(datasets, "SITE", f"http://127.0.0.1:{free.getsockname()[1]}")
        with pytest.raises(OSError, match=r"could not be downloaded.*[Cc]heck the connection"):
            ac.datasets.load(NAME)
    with pytest.raises(FileNotFoundError, match="neither in ADACOORD_DATA nor in the cache"):
        ac.datasets.load(NAME, download=False)


def test_stalled_for_good(server):
    server.faults = ["stall"] * 50
    server.body = server.body[:2]  # the first half is one byte, then nothing ever moves
    with pytest.raises(OSError, match=r"no byte came for 0\.2 seconds"):
        ac.datasets.load(NAME)


def test_two_at_once(server):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ac.datasets.load(NAME)[1].sum(), range(4)))
    assert len(set(found)) == 1 and server.requests == [None]


def test_an_interrupt_keeps_what_came(server, monkeypatch):
    def stop(done, total):
        raise KeyboardInterrupt

    target = datasets.cache_folder() / "f"
    target.parent.mkdir(parents=True)
    monkeypatch.setattr(http_get, "_CHUNK", 100)
    with pytest.raises(KeyboardInterrupt):
        http_get.download(f"{server.url}/f", target, report=stop)
    assert not target.exists() and cached()["f.part"].stat().st_size == 100
    seen = []
    http_get.download(f"{server.url}/f", target, report=lambda *a: seen.append(a))
    assert target.read_bytes() == server.body and server.requests == [None, "bytes=100-"]
    assert seen[-1] == (len(server.body), len(server.body)) and seen[0][0] == 200


def test_progress_is_shown_on_request(server, capsys):
    ac.datasets.load(NAME, verbose=True)
    assert "Traceback" not in capsys.readouterr().err


# ---- ADACOORD_DATA, names and folders ------------------------------------------------------------


def test_the_users_folder_comes_first(server, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((5, 3)), np.array([1.0, -1, 1, -1, 1])
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("a9a.svm.xz", "own.data.svm", "rcv1_train.binary.bz2", f"{NAME}.svm.gz"):
        save_svmlight(folder / name, A, b)
    (folder / "README.md").write_text("not data")
    monkeypatch.setenv("ADACOORD_DATA", str(folder))
    for name in ("a9a", "own.data", "rcv1_train.binary", NAME):
        found, labels = ac.datasets.load(name)
        np.testing.assert_array_equal(found.toarray(), A)
        np.testing.assert_array_equal(labels, b)
    assert server.requests == []
    names = ac.datasets.names()
    assert names[:3] == ["a9a", "own.data", NAME]
    assert "news20.binary" in names and names.count("a9a") == 1 and "README.md" not in names


def test_a_substitute_is_never_taken_for_the_original(tmp_path, monkeypatch):
    save_svmlight(tmp_path / "rcv1.subset.binary.svm.xz", np.eye(2), [1.0, -1.0])
    monkeypatch.setenv("ADACOORD_DATA", str(tmp_path))
    monkeypatch.setenv("ADACOORD_CACHE", str(tmp_path / "cache"))
    assert ac.datasets.load("rcv1.subset.binary")[0].shape == (2, 2)
    with pytest.raises(FileNotFoundError, match=r"rcv1_train\.binary\.bz2"):
        ac.datasets.load("rcv1_train.binary", download=False)


@pytest.mark.parametrize("name", ["a9b", "rcv1.binary", "../a9a", "", "/etc/passwd", 3])
def test_unknown_names(name, monkeypatch):
    monkeypatch.delenv("ADACOORD_DATA", raising=False)
    with pytest.raises(ValueError, match="data set") as caught:
        ac.datasets.load(name)
    if name == "a9b":
        assert "did you mean a9a" in str(caught.value)


def test_a_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("ADACOORD_DATA", str(tmp_path / "gone"))
    with pytest.raises(ValueError, match=r"ADACOORD_DATA=.*no such folder"):
        ac.datasets.load("a9a")


@pytest.mark.parametrize(
    "platform, variable, tail",
    [
        ("linux", "XDG_CACHE_HOME", "adacoord/datasets"),
        ("win32", "LOCALAPPDATA", "adacoord/datasets"),
    ],
)
def test_cache_folders(monkeypatch, tmp_path, platform, variable, tail):
    monkeypatch.delenv("ADACOORD_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert datasets.cache_folder() == tmp_path / tail


def test_every_source_is_https_and_named_like_its_file():
    for name, source in datasets.SOURCES.items():
        assert source.url.startswith("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/")
        assert source.file.split("/")[1].removesuffix(".bz2") == name
        assert source.file.split("/")[0] in ("binary", "multiclass", "regression")


@pytest.mark.parametrize(
    "name", ["a2a", "a9a", "w8a", "colon-cancer", "heart_scale", "abalone", "housing_scale"]
)
def test_stated_shapes_are_those_of_the_files_at_hand(name, data):
    A, _ = data(name)
    assert A.shape[0] == datasets.SOURCES[name].n and A.shape[1] <= datasets.SOURCES[name].d
