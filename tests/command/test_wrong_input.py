"""What is wrong with a table, an option or a pipe: one sentence, exit code 2, nothing written."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import adacoord as ac
from adacoord.io import convert, save_model

from .calls import inside

FIT = ("fit", "train.csv", "--target", "kind")
TABLES = {
    "empty.csv": "",
    "blank.csv": "\n\n",
    "header.csv": "a,y\n",
    "numbers.csv": "1,2\n3,4\n",
    "ragged.csv": "a,b,y\n1,2,3\n4,5\n",
    "words.csv": "a,city,y\n1,Rome,3\n2,Oslo,4\n",
    "missing.csv": "a,y\n1,2\n,3\n",
    "hole.csv": "a,y\n1,p\n1,\n",
    "twice.csv": "a,a,y\n1,2,3\n",
    "alone.csv": "y\n1\n2\n",
    "quote.csv": 'a,y\n1,"2\n3,4\n',
    "one.csv": "a,y\n1,yes\n2,yes\n",
    "ids.csv": "a,y\n" + "".join(f"{i},row {i}\n" for i in range(200)),
    "other.csv": "a,b,y\n1,2,yes\n2,1,no\n",
    "svm.csv": "1 1:2 2:3\n-1 1:1\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    for name, text in TABLES.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes(b"a,y\n1,caf\xe9\n")
    (folder / "packed.csv").write_bytes(gzip.compress(b"a,y\n1,2\n"))
    rows = [f"{i % 7},{i % 3},{'yes' if i % 2 else 'no'}\n" for i in range(20)]
    (folder / "train.csv").write_text("width,depth,kind\n" + "".join(rows))
    real = [f"{i % 7},{i % 3},{i / 2}\n" for i in range(20)]
    (folder / "real.csv").write_text("width,depth,y\n" + "".join(real))
    (folder / "train.svm").write_text("1 1:2 2:1\n-1 1:1\n" * 10)
    np.save(folder / "X.npy", np.eye(3))
    convert(folder / "train.svm", folder / "store")
    (folder / "folder").mkdir()
    done = inside(*FIT, "--model", "m", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    save_model(ac.Ridge().fit(np.eye(3), np.arange(3)), folder / "ridge")
    return folder


CASES = {
    ("fit", "empty.csv", "--target", "y"): "empty.csv: the file is empty; its first line must name",
    ("fit", "blank.csv", "--target", "y"): "blank.csv: the file is empty",
    ("fit", "header.csv", "--target", "y"): "header.csv: there are no rows; give at least one",
    ("fit", "numbers.csv", "--target", "y"): "the first line holds numbers (1,2), and it must name",
    ("fit", "ragged.csv", "--target", "y"): "ragged.csv:3: this line has 2 values, and the first "
    "one names 3 columns",
    ("fit", "words.csv", "--target", "y"): "words.csv:2: the column 'city' holds 'Rome', which is "
    "not a finite number; encode the column as numbers, or leave it out",
    ("fit", "missing.csv", "--target", "y"): "missing.csv:3: the column 'a' has no value; drop or",
    ("fit", "hole.csv", "--target", "y"): "hole.csv:3: the column 'y' has no value",
    ("fit", "twice.csv", "--target", "y"): "two columns have the same name ('a', 'a', 'y'); rename",
    ("fit", "alone.csv", "--target", "y"): "alone.csv: there is no column but the target",
    ("fit", "quote.csv", "--target", "y"): "this line cannot be read (unexpected end of data); is "
    "a quote not closed?",
    ("fit", "latin.csv", "--target", "y"): "latin.csv: this is not UTF-8 text",
    ("fit", "packed.csv", "--target", "y"): "packed.csv: the content is that of a .gz file; rename",
    ("fit", "svm.csv", "--target", "y"): "target='y': name the column of svm.csv",
    ("fit", "one.csv", "--target", "y"): "the targets have the single value yes",
    ("fit", "ids.csv", "--target", "y"): "the targets are 200 different words (row 0, row 1, row "
    "10, row 100, row 101, ...), more than 100: is this the column of the targets?",
    ("fit", "train.csv"): "target=None: name the column of train.csv that holds the targets "
    "(--target on the command line); the columns are 'width', 'depth', 'kind'",
    ("fit", "train.csv", "--target", "sort"): "target='sort': name the column of train.csv",
    ("fit", "gone.csv", "--target", "y"): "No such file or directory: 'gone.csv'",
    ("fit", "train.svm", "--target", "y"): "target='y': svmlight files have no use for it; leave",
    ("fit", "store", "--target", "y"): "target='y': stores have no use for it; leave it out",
    (*FIT, "--zero-based"): "zero_based=True: .csv files have no use for it; leave it out",
    (*FIT, "--loss", "squared"): "the targets are words (no, yes): loss='squared' takes numbers",
    (*FIT, "--C", "0"): "--C 0: it must be finite and more than 0; --C 1 is l2 = 1/n",
    (*FIT, "--C", "-1"): "--C -1: it must be finite and more than 0",
    (*FIT, "--C", "nan"): "--C nan: it must be finite and more than 0",
    (*FIT, "--C", "1", "--l2", "0.1"): "--C 1 beside --l2 0.1: C sets the penalty, l2 = 1/(n C)",
    (*FIT, "--C", "1", "--l1", "0.1"): "--C 1 beside --l1 0.1: C sets the penalty",
    (*FIT, "--class-weight", "maybe:2"): "there is no label maybe; the labels are no, yes",
    (*FIT, "--class-weight", "yes"): "'yes' is not label:weight with a weight of more than 0; say "
    "balanced, or such as yes:10,no:1",
    (*FIT, "--class-weight", "yes:2,no:0"): "'no:0' is not label:weight",
    (*FIT, "--class-weight", "yes:many"): "'yes:many' is not label:weight",
    ("fit", "train.svm", "--class-weight", "2:1"): "there is no label 2; the labels are -1, 1",
    ("fit", "real.csv", "--target", "y", "--class-weight", "balanced"): "--class-weight balanced: "
    "the targets are quantities (loss='squared')",
    (*FIT, "--cv", "1"): "--cv 1: it must be 2 or more, and no more than there are rows of a label",
    (*FIT, "--cv", "11"): "--cv 11: it must be 2 or more, and no more than there are rows of a "
    "label (10)",
    (*FIT, "--cv", "3", "--l2", "0"): "--cv 3: there is no penalty to choose",
    (*FIT, "--cv", "3", "--checkpoint", "c"): "--cv 3 beside --checkpoint c: a search has none",
    (*FIT, "--cv", "3", "--scheduler", "tcp://h:1"): "--cv 3 beside --scheduler tcp://h:1",
    ("fit", "store", "--cv", "3"): "--cv 3: folds are picked from rows in memory",
    (*FIT, "--model", "folder"): "--model folder: this is a folder",
    (*FIT, "--model", "train.csv"): "--model train.csv: this file is read, and would be",
    (*FIT, "--model", "-", "--json"): "--model and --json both go to standard output; name a file",
    (*FIT, "--test", "other.csv"): "target='kind': name the column of other.csv",
    ("fit", "other.csv", "--target", "y", "--test", "one.csv"): "one.csv: there is no column 'b', "
    "which the model was trained on; the columns are 'a', 'y'",
    ("fit", "real.csv", "--target", "y", "--test", "one.csv"): "no column 'width'",
    ("fit", "-", "--target", "y"): "standard input is empty; pipe the data in, or name a file",
    ("fit", "-", "--test", "-"): "-: standard input is given twice, and is there once",
    ("predict", "m", "folder"): "folder/binsparse.json: there is no such file",
    ("predict", "m", "other.csv"): "other.csv: there is no column 'width', which the model was tra",
    ("predict", "m", "train.csv", "--target", "sort"): "target='sort': name the column",
    ("predict", "ridge", "twice.csv"): "two columns have the same name",
    ("predict", "m", "X.npy"): "the data have 3 columns of features, and 2 are needed",
    ("predict", "m", "train.csv", "-o", "folder"): "--output folder: this is a folder",
    ("predict", "-", "-"): "-: standard input is given twice",
    ("predict", "-", "train.csv"): "standard input is empty",
    ("certify", "m", "X.npy"): "X.npy holds no targets; name the .npy file that does",
    ("certify", "m", "other.csv"): "target='kind': name the column of other.csv",
    ("compare", "train.csv"): "target=None: name the column of train.csv",
    ("compare", "train.csv", "--target", "kind", "--csv", "-", "--report", "-"): "--report and "
    "--csv both go to standard output",
    ("compare", "train.csv", "--target", "kind", "--csv", "-", "--json"): "--csv and --json both",
    ("compare", "train.csv", "--target", "kind", "--plot", "-"): "--plot -: the name must end in",
    ("convert", "train.csv", "s", "--target", "kind"): "train.csv:2: the column 'kind' holds 'no', "
    "which is not a finite number; targets are numbers here: encode labels as 0, 1, ...",
    ("convert", "real.csv", "-", "--target", "y"): "-: a store is a folder",
    ("info", "--coefficients", "c.csv"): "--coefficients c.csv: name a model file as well",
    ("info", "m", "--coefficients", "c.txt"): "its name must end with .csv or .json",
    ("info", "m", "--coefficients", "-", "--json"): "--coefficients and --json both go to",
}


@pytest.mark.parametrize("arguments", CASES, ids=" ".join)
def test_one_sentence(folder, arguments):
    before = sorted(folder.iterdir())
    done = inside(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, ""), done
    said = ("Problem(", "Training ")
    lines = [line for line in done.stderr.splitlines() if not line.startswith(said)]
    assert len(lines) == 1 and lines[0].startswith("adacoord: "), done.stderr
    assert CASES[arguments] in lines[0]
    assert sorted(folder.iterdir()) == before


def test_parquet_without_pyarrow(folder, monkeypatch):
    from adacoord.io import tables

    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    (folder / "t.parquet").write_bytes(b"PAR1")
    for arguments in (("fit", "t.parquet", "--target", "y"), ("fit", "-", "--target", "y")):
        done = inside(*arguments, cwd=folder, stdin=b"PAR1")
        assert done.returncode == 2
        assert 'Parquet needs pyarrow; install it with pip install "adacoord[tables]", or save' in (
            done.stderr
        )


def test_pictures_to_standard_output_without_matplotlib(folder, monkeypatch):
    from adacoord.report import plots

    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    done = inside("compare", "train.svm", "--plot", "-", cwd=folder)
    assert done.returncode == 2 and 'pip install "adacoord[plot]"' in done.stderr
