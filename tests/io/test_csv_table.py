"""CSV text: what is taken, to the last bit, and what is said of the rest."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adacoord.io import csv_table
from adacoord.io.csv_table import CsvTable


def read(path, target="y", labels=True):
    table = CsvTable(path)
    features = [column for column in table.columns if column != target]
    chunks = list(table.chunks(features, target, labels))
    return (
        features,
        np.concatenate([chunk.X for chunk in chunks]),
        np.concatenate([chunk.y for chunk in chunks]),
    )


def of_text(tmp_path, text, **how):
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(tmp_path / "t.csv", **how)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(
                st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n"), min_size=1
            ).filter(lambda s: s.strip() == s),
            st.integers(-(10**20), 10**20),
        ),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(",;\t"),
    st.sampled_from([2, 7, 2**17]),
)
def test_what_python_writes_is_read(tmp_path_factory, rows, delimiter, size):
    folder = tmp_path_factory.mktemp("csv")
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(["a", "y", "b, and more"])
    writer.writerows([repr(a), y, b] for a, y, b in rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "_VALUES", size)
        patch.setattr(csv_table, "_PIECE", 16 * size)
        features, X, y = of_text(folder, out.getvalue())
    assert features == ["a", "b, and more"]
    assert X.tolist() == [[a, float(b)] for a, _, b in rows]
    assert y.tolist() == [label for _, label, _ in rows]


@pytest.mark.parametrize(
    "text",
    [
        "a,y,b\n1,2,3\n4,5,6\n",
        "a,y,b\r\n1,2,3\r\n4,5,6",
        "\ufeffa,y,b\n1,2,3\n4,5,6",
        "\n\n a , y,b\n\n 1,2, 3\n \n4,5 ,6\n\n",
        'a;y;b\n"1";2;3\n4;5;6\n',
        "a\ty\tb\n1\t2\t3\n4\t5\t6\n",
    ],
)
def test_forms(tmp_path, text):
    features, X, y = of_text(tmp_path, text)
    assert features == ["a", "b"] and X.tolist() == [[1, 3], [4, 6]] and y.tolist() == ["2", "5"]
    *_, y = of_text(tmp_path, text, labels=False)
    assert y.dtype == np.float64 and y.tolist() == [2, 5]


@pytest.mark.parametrize("ending, pack", [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed(tmp_path, ending, pack):
    path = tmp_path / f"t.csv{ending}"
    path.write_bytes(pack(b"a,y\n1,p\n2,q\n"))
    _, X, y = read(path)
    assert X.tolist() == [[1], [2]] and y.tolist() == ["p", "q"]
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match="truncated or corrupt"):
        read(path)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", r"t.csv: the file is empty; its first line must name the columns"),
        ("\n \n", r"t.csv: the file is empty"),
        ("1,2\n3,4\n", r"the first line holds numbers \(1,2\), and it must name the columns"),
        ("a,y\n1,2\n3\n", r"t.csv:3: this line has 1 value, and the first one names 2 columns"),
        ("a,y\n\n1,2\n3,4,5\n", r"t.csv:4: this line has 3 values"),
        ("\na,y\n1,2\n3,4,5\n", r"t.csv:4: this line has 3 values"),
        ("a,y\n1,2\nRome,2\n", r"t.csv:3: the column 'a' holds 'Rome', which is not a finite numb"),
        ("a,y\n1,2\n,2\n", r"t.csv:3: the column 'a' has no value; drop or impute"),
        ("a,y\n1,2\n1, \n", r"t.csv:3: the column 'y' has no value; drop or impute"),
        ("a,y\n1,2\nnan,2\n", r"t.csv:3: the column 'a' holds 'nan'"),
        ("a,y\n1,2\n1e999,2\n", r"t.csv:3: the column 'a' holds '1e999'"),
        ("a,y\n1,2\n1_000,2\n", r"t.csv:3: the column 'a' holds '1_000'"),
        ('a,y\n"1\n\n",2\nx,2\n', r"t.csv:5: the column 'a' holds 'x'"),
        ('a,y\n1,2\n1,"2\n', r"t.csv:\d: this line cannot be read .*is a quote not closed\?"),
        (b"a,y\n1,caf\xe9\n", r"t.csv: this is not UTF-8 text .*save the table again as CSV"),
        (gzip.compress(b"a,y\n1,2\n"), r"the content is that of a .gz file; rename it"),
    ],
)
def test_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        of_text(tmp_path, text)


def test_words_are_no_numbers(tmp_path):
    with pytest.raises(ValueError, match=r"t.csv:2: the column 'y' holds 'cat', which is not a fi"):
        of_text(tmp_path, "a,y\n1,cat\n", labels=False)


def test_columns_that_are_not_wanted_are_not_looked_at(tmp_path):
    (tmp_path / "t.csv").write_text("name,b,a\nx,1,2\nz,3,4\n")
    [chunk] = CsvTable(tmp_path / "t.csv").chunks(["a", "b"], None)
    assert chunk.X.tolist() == [[2, 1], [4, 3]] and chunk.y is None
    assert math.isclose(chunk.done, 1.0)
