"""Stores: what is written comes back, block by block; what is not a store is refused."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import stat
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import adacoord as ac
from adacoord.data.partition import block_bounds
from adacoord.io import store as stores
from adacoord.io.storing import writing_store


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch):
    """tests/io/test_store_disk.py is about the disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def write(path, *chunks, **options):
    with writing_store(path, **options) as writer:
        for X, y in chunks:
            writer.append(X, y)
    return ac.open_store(path)


def make(n=60, d=7, kind="sparse", dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    if kind != "dense":
        X *= rng.random((n, d)) < 0.3
        X[n // 2 : n // 2 + 3] = 0.0
        X = sparse.csr_matrix(X)
    if kind == "iso":
        X.data[:] = -2.5
    return X, rng.standard_normal(n)


def blocks_of(store):
    return [store.read(k) for k in range(store.bounds.size - 1)]


def as_dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def check(store, X, y):
    """The store holds (X, y), by blocks and as a whole."""
    store.verify()
    X = X if sparse.issparse(X) else np.asarray(X)
    assert store.shape == X.shape and store.is_sparse == sparse.issparse(X)
    np.testing.assert_array_equal(store.targets, y)
    assert store.targets.dtype == np.float64 and not isinstance(store.targets, np.memmap)
    parts = blocks_of(store)
    bounds = store.bounds
    assert [part.shape for part in parts] == [
        (stop - start, X.shape[1]) for start, stop in pairwise(bounds)
    ]
    if store.is_sparse:
        X = sparse.csr_matrix(X).sorted_indices()
        assert store.nnz == X.nnz
        whole = store.A
        pointers = np.concatenate([[0], *(p.indptr[1:] + 0 for p in parts)])
        starts = np.concatenate([[0], np.cumsum([p.nnz for p in parts])])
        for k, part in enumerate(parts):
            pointers[bounds[k] + 1 : bounds[k + 1] + 1] += starts[k]
            assert part.indptr.dtype == np.int64 and part.indptr[0] == 0
            assert part.indices.dtype == (np.int32 if X.shape[1] < 2**31 else np.int64)
        np.testing.assert_array_equal(pointers, X.indptr)
        np.testing.assert_array_equal(whole.indptr, X.indptr)
        for indices in (np.concatenate([p.indices for p in parts]), whole.indices):
            np.testing.assert_array_equal(indices, X.indices)
        numbers = (np.concatenate([p.data for p in parts]), whole.data)
        expected = X.data
    else:
        assert all(part.flags.c_contiguous for part in parts)
        assert store.nnz == X.size
        numbers, expected = (np.concatenate(parts), store.A), X
    for values in numbers:
        assert values.dtype == store.dtype
        assert values.tobytes() == expected.astype(store.dtype).tobytes()
    np.testing.assert_array_equal(
        bounds, block_bounds(X.shape, store.dtype.itemsize, X.indptr if store.is_sparse else None)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "sparse", "iso"])
@pytest.mark.parametrize("n, d", [(1, 1), (1, 5), (60, 7), (3000, 300)])
def test_round_trip(tmp_path, kind, dtype, n, d):
    X, y = make(n, d, kind, dtype)
    store = write(tmp_path / "s", (X, y))
    assert store.dtype == dtype
    check(store, X, y)
    assert os.listdir(tmp_path) == ["s"]
    values = (tmp_path / "s" / "values.npy").stat().st_size
    if kind == "iso" and X.nnz:
        assert values == 128 + np.dtype(dtype).itemsize
    if n == 3000:
        assert store.bounds.size > 4


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_round_trip_in_chunks(tmp_path_factory, data):
    kind = data.draw(st.sampled_from(["dense", "sparse", "iso"]))
    X, y = make(data.draw(st.integers(1, 40)), data.draw(st.integers(1, 6)), kind, seed=1)
    if kind == "iso" and X.nnz and data.draw(st.booleans()):
        X.data[data.draw(st.integers(0, X.nnz - 1))] = data.draw(st.sampled_from([0.0, -0.0, 7.0]))
    cuts = sorted(data.draw(st.lists(st.integers(0, X.shape[0]), max_size=5)))
    edges = [0, *cuts, X.shape[0]]
    chunks = [(X[i:j], y[i:j]) for i, j in pairwise(edges)]
    folder = tmp_path_factory.mktemp("chunks")
    check(write(folder / "s", *chunks), X, y)


@pytest.mark.parametrize("kind", ["dense", "sparse", "iso"])
def test_the_bytes_do_not_depend_on_the_chunks(tmp_path, kind):
    X, y = make(kind=kind)
    write(tmp_path / "a", (X, y))
    write(tmp_path / "b", (X[:1], y[:1]), (X[1:40], y[1:40]), (X[40:], y[40:]))
    names = sorted(os.listdir(tmp_path / "a"))
    assert names == sorted(os.listdir(tmp_path / "b"))
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_minus_zero_is_not_a_zero(tmp_path):
    X = sparse.csr_matrix((np.array([0.0, -0.0]), np.array([0, 1]), np.array([0, 2])), (1, 2))
    check(write(tmp_path / "s", (X, [1.0])), X, [1.0])


def test_numpy_reads_the_files_and_sha256sum_the_digest(tmp_path):
    X, y = make()
    write(tmp_path / "s", (X, y))
    for name, expected in (
        ("values", X.data), ("indices_1", X.indices), ("pointers_to_1", X.indptr), ("targets", y),
    ):  # fmt: skip
        np.testing.assert_array_equal(np.load(tmp_path / "s" / f"{name}.npy"), expected)
    descriptor = json.loads((tmp_path / "s" / "binsparse.json").read_text())["binsparse"]
    assert descriptor == {
        "version": "0.1",
        "format": "CSR",
        "shape": [60, 7],
        "number_of_stored_values": X.nnz,
        "data_types": {"pointers_to_1": "int64", "indices_1": "int32", "values": "float64"},
    }
    digest, name = (tmp_path / "s" / "binsparse.json.sha256").read_text().split()
    content = (tmp_path / "s" / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest


def test_int64_indices_where_the_width_needs_them(tmp_path):
    wide = 2**40
    narrow = sparse.csr_matrix((np.ones(2), np.array([0, 2**31 - 2]), [0, 1, 2]), (2, 2**31 - 1))
    far = sparse.csr_matrix(
        (np.array([2.0, 3.0]), np.array([5, wide - 1]), np.array([0, 2])), (1, wide)
    )
    store = write(tmp_path / "a", (narrow, [0.0, 1.0]))
    assert store.A.indices.dtype == np.int32
    check(store, narrow, [0.0, 1.0])
    store = write(tmp_path / "b", (narrow, [0.0, 1.0]), (far, [2.0]))  # written again as int64
    both = sparse.csr_matrix(
        (np.array([1.0, 1, 2, 3]), np.array([0, 2**31 - 2, 5, wide - 1]), np.array([0, 1, 2, 4])),
        (3, wide),
    )
    check(store, both, np.arange(3.0))
    assert sorted(os.listdir(tmp_path / "b")) == sorted(
        ["binsparse.json", "binsparse.json.sha256", "indices_1.npy", "pointers_to_1.npy",
         "targets.npy", "values.npy"]
    )  # fmt: skip


def test_rows_without_entries(tmp_path):
    X = sparse.csr_matrix((5, 3))
    store = write(tmp_path / "s", (X, np.zeros(5)))
    check(store, X, np.zeros(5))


def test_what_numpy_and_scipy_have(tmp_path):
    """Other formats, types and orders; unsorted indices and duplicates; the input is untouched."""
    y = np.array([True, False, True])
    dense = np.arange(12).reshape(3, 4)
    for k, X in enumerate(
        (dense.tolist(), np.asfortranarray(dense), dense[:, ::-1][:, ::-1], dense.astype(np.int8))
    ):
        store = write(tmp_path / f"d{k}", (X, y))
        assert store.dtype == np.float64
        np.testing.assert_array_equal(store.read(0), dense)
    assert write(tmp_path / "half", (dense.astype(np.float16), y)).dtype == np.float32
    for name in ("csc", "coo", "lil", "dok"):
        store = write(tmp_path / name, (sparse.coo_array(dense).asformat(name), y))
        np.testing.assert_array_equal(store.read(0).toarray(), dense)
    X = sparse.csr_matrix((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), (1, 3))
    check(write(tmp_path / "dup", (X, [1.0])), sparse.csr_matrix([[1.0, 0, 2]]), [1.0])
    assert X.nnz == 3 and X.indices.tolist() == [2, 0, 2]


@pytest.mark.parametrize("kind", ["dense", "sparse", "iso"])
def test_it_pickles_as_its_path(tmp_path, kind, monkeypatch):
    X, y = make(kind=kind)
    write(tmp_path / "s", (X, y))
    monkeypatch.chdir(tmp_path)
    store = ac.open_store("s")
    content = pickle.dumps(store)
    assert len(content) < 1000
    monkeypatch.chdir("/")
    check(pickle.loads(content), X, y)
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()).read(0).sum())"
    done = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True)
    assert float(done.stdout) == pytest.approx(X.sum()), done.stderr

    write(tmp_path / "s", (2 * X, y), force=True)
    with pytest.raises(ValueError, match="another store"):
        pickle.loads(content)
    with pytest.raises(ValueError, match=r"changed|another"):
        store.verify()


def test_repr(tmp_path):
    assert "60 x 7, dense of float32, 1 block)" in repr(
        write(tmp_path / "s", make(kind="dense", dtype=np.float32))
    )
    X, y = make()
    assert f"sparse, {X.nnz} entries of float64" in repr(write(tmp_path / "t", (X, y)))


def test_blocks_that_there_are_not(tmp_path):
    store = write(tmp_path / "s", make())
    for k in (-1, 1):
        with pytest.raises(IndexError, match=f"block {k}: .* 0 to 0"):
            store.read(k)


def test_training_takes_what_comes_back(tmp_path):
    X, y = make(300, 5)
    for store in (write(tmp_path / "a", (X, y)), write(tmp_path / "b", (X.toarray(), y))):
        result = ac.solve(ac.Problem(store.A, store.targets, loss="squared", l2=0.1))
        assert result.converged
        same = ac.solve(ac.Problem(store.read(0), store.targets, loss="squared", l2=0.1))
        np.testing.assert_array_equal(result.x, same.x)


# What is refused when it is written.


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_only_finite_numbers(tmp_path, kind, bad):
    X, y = make(kind=kind)
    (X.data if kind == "sparse" else X)[-1] = bad
    row = int(np.flatnonzero(np.diff(X.indptr))[-1]) if kind == "sparse" else 59
    with pytest.raises(ValueError, match=f"X has the value {bad} in row {row} .*impute"):
        write(tmp_path / "s", (X[:10], y[:10]), (X[10:], y[10:]))
    X, y = make(kind=kind)
    y[50] = bad
    with pytest.raises(ValueError, match=f"y has the value {bad} in row 50 "):
        write(tmp_path / "s", (X[:10], y[:10]), (X[10:], y[10:]))
    assert os.listdir(tmp_path) == []


def test_chunks_that_do_not_fit_together(tmp_path):
    X, y = make(kind="dense")
    for message, chunks in {
        "no rows": [],
        "no rows ": [(X[:0], y[:0])],
        "columns and the rows before have 7": [(X, y), (X[:, 1:], y)],
        "rows 60 on: X is sparse": [(X, y), (sparse.csr_matrix(X), y)],
        "rows 60 on: X is dense": [(sparse.csr_matrix(X), y), (X, y)],
        "convert all chunks to float64": [(X.astype(np.float32), y), (X, y)],
        "a row for each target": [(X, y[1:])],
        "a row for each target ": [(X, y[:, None])],
        "y has dtype <U": [(X, y.astype(str))],
        "X has dtype complex": [(X * 1j, y)],
        "X has dtype object": [(X.astype(object), y)],
        "no columns": [(X[:, :0], y)],
    }.items():
        with pytest.raises(ValueError, match=message.strip()):
            write(tmp_path / "s", *chunks)
    broken = sparse.csr_matrix(X)
    broken.indices[3] = 7
    with pytest.raises(ValueError, match="point outside"):
        write(tmp_path / "s", (broken, y))
    assert os.listdir(tmp_path) == []


# What is refused when it is opened or read.


@pytest.mark.parametrize("kind", ["dense", "sparse", "iso"])
def test_every_truncation_is_seen_at_the_door(tmp_path, kind):
    write(tmp_path / "s", make(5, 3, kind))
    for name in os.listdir(tmp_path / "s"):
        path = tmp_path / "s" / name
        whole = path.read_bytes()
        for size in reversed(range(len(whole))):
            os.truncate(path, size)
            with pytest.raises(ValueError, match=r"binsparse.json|npy"):
                ac.open_store(tmp_path / "s")
        path.write_bytes(whole + b"\0")
        with pytest.raises(ValueError, match=r"binsparse.json|npy"):
            ac.open_store(tmp_path / "s")
        path.unlink()
        with pytest.raises(ValueError, match=f"{name}: there is no such file.* convert"):
            ac.open_store(tmp_path / "s")
        path.write_bytes(whole)
    ac.open_store(tmp_path / "s").verify()


@pytest.mark.parametrize("kind", ["dense", "sparse", "iso"])
def test_every_flipped_bit_is_seen(tmp_path, kind):
    write(tmp_path / "s", make(5, 3, kind))
    rng = np.random.default_rng(0)
    for name in os.listdir(tmp_path / "s"):
        path = tmp_path / "s" / name
        whole = path.read_bytes()
        bits = rng.permutation(8 * len(whole))[:600]
        for bit in bits.tolist():
            write_byte(path, bit // 8, whole[bit // 8] ^ (1 << bit % 8))
            if "json" in name or bit // 8 < 128:
                with pytest.raises(ValueError, match=f"{stores.HEADER}|{name}"):
                    ac.open_store(tmp_path / "s")
            else:
                store = ac.open_store(tmp_path / "s")
                with pytest.raises(ValueError, match=f"{name}: the numbers"):
                    store.verify()
                try:  # unverified: a refusal, or blocks within bounds
                    for part in blocks_of(store):
                        if store.is_sparse:
                            assert part.indices.size == part.indptr[-1] == part.data.size
                            assert part.nnz == 0 or 0 <= part.indices.min() <= 2
                            assert part.nnz == 0 or part.indices.max() <= 2
                            assert (np.diff(part.indptr) >= 0).all()
                except ValueError as error:
                    assert name in str(error) and "convert the data again" in str(error)
            write_byte(path, bit // 8, whole[bit // 8])
        assert path.read_bytes() == whole


def write_byte(path, position, value):
    with path.open("r+b") as file:  # in place: a file that is cut to nothing first is soon synced
        file.seek(position)
        file.write(bytes([value]))


def forge(folder, change):
    """Change the header, and give it the right digest."""
    path = folder / stores.HEADER
    header = json.loads(path.read_text())
    change(header)
    write_header(folder, json.dumps(header).encode())


def write_header(folder, content):
    digest = hashlib.sha256(content).hexdigest()
    for name, text in ((stores.HEADER, content), (stores.DIGEST, stores.digest_line(digest))):
        os.truncate(folder / name, len(text))  # in place, as in write_byte
        with (folder / name).open("r+b") as file:
            file.write(text)


def setting(*keys, to):
    def change(header):
        inner = header
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = to

    return change


STRANGE = [None, True, -1, 0, 1.5, 10**30, 10**400, "x", "../../etc/passwd", [], {}, [[]], {"a": 1}]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_headers_of_wrong_types_and_shapes(tmp_path, kind):
    write(tmp_path / "s", make(5, 3, kind))
    good = (tmp_path / "s" / stores.HEADER).read_bytes()
    header = json.loads(good)
    places = [("binsparse",), ("adacoord",)]
    places += [(part, key) for part in header for key in header[part] if key != "version"]
    places += [("binsparse", "data_types", name) for name in header["binsparse"]["data_types"]]
    places += [
        (*place, i) for place in (("binsparse", "shape"), ("adacoord", "bounds")) for i in (0, 1)
    ]
    for place in places:
        for value in STRANGE:
            write_header(tmp_path / "s", good)
            forge(tmp_path / "s", setting(*place, to=value))
            if (tmp_path / "s" / stores.HEADER).read_bytes() == good.rstrip():
                continue
            with pytest.raises(ValueError, match=f"{stores.HEADER}|npy") as caught:
                ac.open_store(tmp_path / "s")
            assert len(str(caught.value)) < 600 and "convert the data again" in str(caught.value)
    for content in (
        b"", b"null", b"[]", b"3", b"{", b'{"adacoord": 1}', b"\xff\xfe", b"NaN", b"[" * 10**5,
        b'{"adacoord": {"format": ' + b"1" * 5000 + b"}}",
    ):  # fmt: skip
        write_header(tmp_path / "s", content)
        with pytest.raises(ValueError, match=f"{stores.HEADER}: .*; "):
            ac.open_store(tmp_path / "s")


@pytest.mark.parametrize(
    "bounds", [[0], [5], [0, 5, 5], [0, 3, 2, 5], [1, 5], [0, 4], [0, 6], [0, 2.0, 5], [0, "2", 5]]
)
def test_bounds_that_do_not_rise_over_the_rows(tmp_path, bounds):
    write(tmp_path / "s", make(5, 3))
    forge(tmp_path / "s", setting("adacoord", "bounds", to=bounds))
    with pytest.raises(ValueError, match="bounds are"):
        ac.open_store(tmp_path / "s")


def test_wrong_shapes_that_fit_one_another(tmp_path):
    """Sizes that agree within the header and not with the files."""
    write(tmp_path / "s", make(6, 4, "dense"))

    def transposed(header):
        header["binsparse"]["shape"] = [4, 6]
        header["adacoord"]["bounds"] = [0, 4]

    forge(tmp_path / "s", transposed)
    with pytest.raises(ValueError, match=r"targets.npy: the file has 176 bytes.* take 160"):
        ac.open_store(tmp_path / "s")


def test_only_known_files_are_opened(tmp_path):
    """Names in the header are compared, not followed."""
    write(tmp_path / "s", make())
    secret = tmp_path / "secret.npy"
    np.save(secret, np.arange(10.0))
    for name in ("../secret.npy", str(secret), "secret.npy", "values.npy/../../secret.npy"):
        forge(tmp_path / "s", lambda h, name=name: h["adacoord"]["sha256"].update({name: "0" * 64}))
        with pytest.raises(ValueError, match="sha256 names"):
            ac.open_store(tmp_path / "s")
        forge(tmp_path / "s", lambda h, name=name: h["adacoord"]["sha256"].pop(name))
    ac.open_store(tmp_path / "s").verify()


def test_a_newer_format_is_refused_politely(tmp_path):
    write(tmp_path / "s", make())
    forge(tmp_path / "s", setting("adacoord", "format", to=2))
    with pytest.raises(ValueError, match=r"has format 2, .* reads format 1; upgrade adacoord"):
        ac.open_store(tmp_path / "s")


def test_a_huge_header_is_not_read(tmp_path, monkeypatch):
    write(tmp_path / "s", make())
    os.truncate(tmp_path / "s" / stores.HEADER, 2**31)
    monkeypatch.setattr("builtins.open", None)  # whoever opens a file fails
    with pytest.raises(ValueError, match=r"has 2147483648 bytes, and may have 16777216"):
        ac.open_store(tmp_path / "s")


@pytest.mark.skipif(os.name != "posix", reason="FIFOs are POSIX")
@pytest.mark.parametrize("name", [stores.HEADER, stores.DIGEST, "values.npy"])
def test_fifos_do_not_hang(tmp_path, name):
    write(tmp_path / "s", make())
    (tmp_path / "s" / name).unlink()
    os.mkfifo(tmp_path / "s" / name)
    with pytest.raises(ValueError, match="not a regular file"):
        ac.open_store(tmp_path / "s")


def test_what_is_no_store(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError, match="no such store"):
        ac.open_store(tmp_path / "nothing")
    with pytest.raises(ValueError, match="not a folder"):
        ac.open_store(tmp_path / "file")
    with pytest.raises(ValueError, match=r"binsparse.json: there is no such file"):
        ac.open_store(tmp_path / "folder")


def test_broken_indices_do_not_reach_the_kernels(tmp_path):
    """With every checksum right: such a store was made by somebody else, or on purpose."""
    X, y = make(5, 3)
    for name, position, value in (
        ("indices_1", 0, 3), ("indices_1", -1, -1), ("indices_1", 0, 2**31 - 1),
        ("pointers_to_1", 0, 1), ("pointers_to_1", -1, 1), ("pointers_to_1", -1, 2**62),
        ("pointers_to_1", 2, -1), ("pointers_to_1", 2, 2**40),
    ):  # fmt: skip
        write(tmp_path / "s", (X, y), force=True)
        path = tmp_path / "s" / f"{name}.npy"
        array = np.load(path)
        array[position] = value
        path.write_bytes(path.read_bytes()[:128] + array.tobytes())
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        forge(tmp_path / "s", setting("adacoord", "sha256", f"{name}.npy", to=digest))
        store = ac.open_store(tmp_path / "s")
        store.verify()
        with pytest.raises(ValueError, match=f"{name}.npy: .*convert the data again"):
            store.read(0)


def test_a_file_that_shrinks_while_it_is_open(tmp_path):
    X, y = make()
    store = write(tmp_path / "s", (X, y))
    os.truncate(tmp_path / "s" / "values.npy", 200)
    with pytest.raises(ValueError, match=r"values.npy: the file has changed"):
        store.read(0)


# More entries than 32 bits count: files with holes, which take no space.


@pytest.mark.parametrize("dense", [True, False])
def test_offsets_beyond_32_bits(tmp_path, dense):
    folder = tmp_path / "s"
    folder.mkdir()
    n, d = 2**22, 1500  # 6.3e9 entries
    nnz = n * d
    rng = np.random.default_rng(0)
    bounds = np.array([0, 7, n // 2, n // 2 + 5, n - 3, n])
    description = stores.Description(
        (n, d), nnz, np.dtype(np.float64), None if dense else np.dtype(np.int32), False, bounds, {}
    )
    for name, (dtype, length) in description.arrays.items():
        path = folder / stores.file_of(name)
        path.write_bytes(stores.npy_start(dtype, length))
        os.truncate(path, 128 + length * dtype.itemsize)
        description.sha256[path.name] = "?"
        if name == "pointers_to_1":
            with path.open("r+b") as file:
                file.seek(128)
                (np.arange(n + 1) * d).tofile(file)
    expected = {}
    for k in (0, 2, 4):
        first, last = int(bounds[k]), int(bounds[k + 1])
        block = rng.standard_normal((last - first, d))
        expected[k] = block
        for name, content in (
            ("values", block),
            ("indices_1", np.tile(np.arange(d), last - first)),
        ):
            if name in description.arrays:
                dtype = description.arrays[name][0]
                with (folder / f"{name}.npy").open("r+b") as file:
                    file.seek(128 + first * d * dtype.itemsize)
                    file.write(content.astype(dtype).tobytes())
    for name in (stores.HEADER, stores.DIGEST):
        (folder / name).touch()
    write_header(folder, description.to_json())
    store = ac.open_store(folder)
    assert store.nnz == nnz > 2**32
    for k, block in expected.items():
        part = store.read(k)
        np.testing.assert_array_equal(as_dense(part), block)
        whole = store.A
        if dense:
            np.testing.assert_array_equal(whole[bounds[k] : bounds[k + 1]], block)
        else:
            assert part.indices.dtype == np.int32 and part.indptr.dtype == np.int64
            assert whole.indices.dtype == np.int32 and whole.indptr.dtype == np.int64
            start, stop = whole.indptr[bounds[k]], whole.indptr[bounds[k + 1]]
            np.testing.assert_array_equal(whole.data[start:stop], block.ravel())
            assert whole.nnz == nnz
    used = sum(os.stat(folder / name).st_blocks * 512 for name in os.listdir(folder))
    assert used < 2**26


def test_stores_honour_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "s", make())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o750
    assert {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "s").iterdir()} == {0o640}


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs a process's peak")
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_reading_takes_the_memory_of_a_block(tmp_path, kind):
    X = np.ones((100_000, 200)) * np.arange(1, 201)
    y = np.zeros(100_000)
    write(tmp_path / "s", (X if kind == "dense" else sparse.csr_matrix(X), y))
    code = """
import re, sys
import adacoord as ac
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
store = ac.open_store(sys.argv[1])
store.read(store.bounds.size - 2)
before, total = peak(), 0.0
for k in range(store.bounds.size - 1):
    total += store.read(k).sum()
print(total, store.bounds.size - 1, peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "s"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    total, blocks, taken = done.stdout.split()
    assert float(total) == X.sum() and int(blocks) == 8
    assert int(taken) < 45 * 1024
