"""Data as the command line names them."""

from __future__ import annotations

import gzip
import io
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.io import convert, save_svmlight
from adacoord.io.reading import located, read_data
from adacoord.io.standard import as_file, check_once, to_file, write_out

X = np.array([[1.0, 0.0], [0.5, 2.0], [0.0, 3.0]])
Y = np.array([1.0, 2.0, 1.0])
CSV = "a,b,y\n1,0,1\n0.5,2,2\n0,3,1\n"


def dense(A):
    if hasattr(A, "read"):
        A = A.read(0)
    return A.toarray() if sparse.issparse(A) else A


@pytest.fixture
def piped(monkeypatch):
    """What stands on standard input."""

    def put(content):
        content = content.encode() if isinstance(content, str) else content
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))

    return put


def test_kinds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADACOORD_DATA", str(tmp_path / "named"))
    (tmp_path / "named").mkdir()
    (tmp_path / "t.csv").write_text(CSV)
    np.save("X.npy", X)
    np.save("y.npy", Y)
    sparse.save_npz("X.npz", sparse.csr_matrix(X))
    save_svmlight("t", X, Y)
    save_svmlight("named/three.svm.gz", X, Y)
    convert("t", "store")
    kinds = {"t": None, "store": None, "t.csv": "y", "X.npy": "y.npy", "X.npz": "y.npy"}
    if find_spec("pyarrow"):
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(
            pyarrow.table({"a": X[:, 0], "y": [1, 2, 1], "b": X[:, 1]}), "t.parquet"
        )
        kinds["t.parquet"] = "y"
    for source, target in {**kinds, "three": None}.items():
        found = read_data(source, target=target)
        assert np.array_equal(dense(found.X), X) and np.array_equal(found.y, Y), source
        assert found.y.dtype == np.float64
        is_table = source in ("t.csv", "t.parquet")
        assert (found.columns, found.target) == ((["a", "b"], "y") if is_table else (None, None))
    for source in kinds.keys() & {"t.csv", "X.npy", "X.npz", "t.parquet"}:
        found = read_data(source, targets_needed=False)
        assert found.y is None and len(dense(found.X)) == 3
        with pytest.raises(ValueError, match=r"holds (no|the) targets.*--target"):
            read_data(source)
    for source in ("t", "store", "three"):
        with pytest.raises(ValueError, match=r"target='y': .* have no use for it"):
            read_data(source, target="y")
    for source in kinds.keys() - {"t"}:
        with pytest.raises(ValueError, match=r"zero_based=True: .* have no use for it"):
            read_data(source, target=kinds[source], zero_based=True)
    with located("three") as path:
        assert path.endswith("three.svm.gz")
    with pytest.raises(ValueError, match=r"did you mean three\? \(nor is there a file thre\)"):
        read_data("thre")
    for gone in ("gone.csv", "gone.svm.gz", "./gone"):
        with pytest.raises(FileNotFoundError):
            read_data(gone)


def test_columns_of_a_model(tmp_path):
    path = str(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("id,b,y,a\nx,0,1,1\nz,2,2,0.5\n")
    found = read_data(path, columns=["a", "b"], known_target="y", targets_needed=False)
    assert found.X.tolist() == [[1, 0], [0.5, 2]] and found.y.tolist() == [1, 2]
    found = read_data(path, columns=["a"], known_target="gone", targets_needed=False)
    assert found.X.tolist() == [[1], [0.5]] and found.y is None
    found = read_data(path, columns=["a"], target="id", known_target="y")
    assert found.y.tolist() == ["x", "z"]
    with pytest.raises(ValueError, match=r"no column 'c', which the model was trained on; the col"):
        read_data(path, columns=["a", "c"], targets_needed=False)


@pytest.mark.parametrize(
    "values, taken",
    [
        (["1", "2.5", "-3e2"], [1, 2.5, -300]),
        (["cat", "dog", "cat"], ["cat", "dog", "cat"]),
        (["1", "2", "x"], ["1", "2", "x"]),
        (["0", "00", "nan?"], ["0", "00", "nan?"]),
    ],
)
def test_targets_are_numbers_where_all_are(tmp_path, values, taken):
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"1,{v}\n" for v in values))
    assert read_data(str(tmp_path / "t.csv"), target="y").y.tolist() == taken


def test_targets_that_are_not_finite(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n1,nan\n")
    with pytest.raises(ValueError, match=r"t.csv: the column 'y' holds 'nan' in row 1 "):
        read_data(str(tmp_path / "t.csv"), target="y")


def test_no_rows(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n")
    with pytest.raises(ValueError, match=r"t.csv: there are no rows"):
        read_data(str(tmp_path / "t.csv"), target="y")


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs pyarrow")
def test_words_in_parquet(tmp_path):
    import pyarrow
    from pyarrow import parquet

    words = pyarrow.array(["p", "q", "p"])
    for kind, values in {"plain": words, "coded": words.dictionary_encode()}.items():
        path = str(tmp_path / f"{kind}.parquet")
        parquet.write_table(pyarrow.table({"a": [1, 2, 3], "y": values}), path)
        assert read_data(path, target="y").y.tolist() == ["p", "q", "p"]
        with pytest.raises(ValueError, match=r"the column 'y' has type .*; it must hold numbers"):
            convert(path, tmp_path / "s", target="y")


def test_standard_input(piped, tmp_path):
    save_svmlight(tmp_path / "t.svm", X, Y)
    text = (tmp_path / "t.svm").read_bytes()
    for content, target in (
        (text, None),
        (gzip.compress(text), None),
        (b"# a comment\n\n" + text, None),
        (CSV, "y"),
        (gzip.compress(CSV.encode()), "y"),
    ):
        piped(content)
        found = read_data("-", target=target)
        assert np.array_equal(dense(found.X), X) and np.array_equal(found.y, Y)
    for content, message in (
        ("", "standard input is empty; pipe the data in"),
        ("1 1:2\n2 1:x\n", r"^standard input:2:3: a value"),
        ("a,y\n1,2\nx,2\n", r"^standard input:3: the column 'a' holds 'x'"),
        (gzip.compress(text)[:-9], r"^standard input: this .gz file is truncated"),
    ):
        piped(content)
        with pytest.raises(ValueError, match=message):
            read_data("-", target="y" if "," in str(content) else None)
    if find_spec("pyarrow"):
        piped(b"PAR1 and no more")
        with pytest.raises(ValueError, match=r"^standard input: the table cannot be read"):
            read_data("-", target="y")


def test_models_by_pipes(piped, tmp_path, capfdbinary):
    model = ac.Ridge().fit(X, Y)
    with to_file("-") as path:
        ac.save_model(model, path)
    content = capfdbinary.readouterr().out
    piped(content)
    with as_file("-") as path:
        assert np.array_equal(ac.load_model(path).coef_, model.coef_)
    piped(content[:-1])
    with pytest.raises(ValueError, match=r"^standard input: "), as_file("-") as path:
        ac.load_model(path)
    with to_file(tmp_path / "m") as path:
        assert path == tmp_path / "m"


def test_once():
    check_once("-", "a", None)
    with pytest.raises(ValueError, match="standard input is given twice"):
        check_once("-", "-")


def test_closed_streams(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="standard input is empty"), as_file("-"):
        pass
    monkeypatch.setattr(sys, "stdout", None)
    write_out(b"nobody reads this")
