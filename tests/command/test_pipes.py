"""``-``: standard input and output in place of files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import pytest

from adacoord.io import load_model

from .calls import inside


def test_data_from_standard_input(tables):
    folder, *_ = tables
    train, test = ((folder / f"{name}.csv").read_bytes() for name in ("train", "test"))
    fit = ("fit", "-", "--target", "kind", "--model", "m", "--quiet")
    done = inside(*fit, cwd=folder, stdin=gzip.compress(train))
    assert done.returncode == 0, done.stderr
    named = inside("predict", "m", "test.csv", cwd=folder)
    piped = inside("predict", "m", "-", "-o", "-", cwd=folder, stdin=test)
    assert (piped.stdout, piped.stderr) == (named.stdout, named.stderr)
    model = (folder / "m").read_bytes()
    assert inside("predict", "-", "test.csv", cwd=folder, stdin=model).stdout == named.stdout
    assert inside("info", "-", cwd=folder, stdin=model).stdout.startswith("-: ERMClassifier(")
    for command in (
        ("certify", "m", "-"),
        ("compare", "-", "--target", "kind", "--solvers", "apdc", "--quiet"),
        ("fit", "train.csv", "--test", "-", "--target", "kind", "--quiet"),
    ):
        done = inside(*command, cwd=folder, stdin=train)
        assert done.returncode == 0, (command, done.stderr)
    numbers = (folder / "real.csv").read_bytes()
    done = inside("convert", "-", "store", "--target", "y", cwd=folder, stdin=numbers)
    assert done.returncode == 0 and "store: 180 rows, 3 columns, dense" in done.stdout


def test_a_file_on_standard_output_and_text_on_the_other(tables):
    folder, *_ = tables
    compare = ("compare", "real.csv", "--target", "y", "--solvers", "newton", "--quiet")
    for option, start in (("--csv", "solver,seed,"), ("--report", "<!doctype html>")):
        done = inside(*compare, option, "-", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.lower().startswith(start) and "passes" in done.stderr
        assert "written" not in done.stderr
    assert not (folder / "-").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a POSIX shell")
def test_a_pipeline(tables):
    folder, *_ = tables
    adacoord = f"{sys.executable} -m adacoord"
    done = subprocess.run(
        [
            "bash",
            "-o",
            "pipefail",
            "-c",
            f"cat train.csv | {adacoord} fit - --target kind --quiet --model - "
            f"| {adacoord} predict - test.csv --json",
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["score"]["rows"] == 90
    assert "certified within" in done.stderr and "train: accuracy" in done.stderr
    inside("fit", "train.csv", "--target", "kind", "--model", "m", "--quiet", cwd=folder)
    with open(folder / "copy", "wb") as copy:
        subprocess.run(
            [*adacoord.split(), "fit", "train.csv", "--target", "kind", "--model", "-"],
            stdout=copy,
            stderr=subprocess.PIPE,
            cwd=folder,
            check=True,
        )
    assert load_model(folder / "copy").coef_.tolist() == load_model(folder / "m").coef_.tolist()
