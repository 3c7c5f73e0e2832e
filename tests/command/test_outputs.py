"""What is left on disk by a command that is interrupted, or whose output goes nowhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import adacoord as ac
from adacoord.io import load_model, save_model, save_svmlight

from .calls import adacoord


def interrupted_fit(folder, *options):
    """(out, err) of a fit without end, ended by Ctrl-C."""
    fit = [sys.executable, "-m", "adacoord", "fit", str(folder / "train.svm")]
    endless = ["--l2", "1e-9", "--tol", "0", "--max-passes", "100000000", "--solver", "spdc"]
    process = subprocess.Popen(
        [*fit, *endless, *options, "--model", str(folder / "m")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr.readline().startswith("Problem(")
    time.sleep(4.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "adacoord: interrupted; this is the best point so far" in err
    return out, err


@pytest.mark.slow
def test_ctrl_c_writes_the_best_point_so_far(files):
    folder, *_ = files
    out, _ = interrupted_fit(folder)
    assert "certified within" in out
    assert load_model(folder / "m").relative_gap_ > 0.0


@pytest.mark.slow
def test_ctrl_c_between_the_classes(irises):
    folder, *_ = irises
    out, _ = interrupted_fit(folder, "--loss", "hinge")
    assert out.count("certified within") == 3
    assert load_model(folder / "m").coef_.shape == (3, 4)


@pytest.mark.slow
@pytest.mark.parametrize("interrupt", [False, True])
def test_no_file_is_made_before_the_end(files, interrupt):
    """Killed while it trains: nothing stands at --model, nor beside it."""
    folder, *_ = files
    before = sorted(folder.iterdir())
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "adacoord",
            "fit",
            str(folder / "train.svm"),
            "--l2",
            "1e-9",
            "--tol",
            "0",
            "--max-passes",
            "100000000",
            "--solver",
            "spdc",
            "--model",
            str(folder / "m"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr.readline().startswith("Problem(")
        assert sorted(folder.iterdir()) == before
    finally:
        process.send_signal(signal.SIGTERM if interrupt else signal.SIGKILL)
        process.communicate(timeout=60)
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="devices as Linux has them")
def test_a_full_disk_loses_no_more_than_it_must(files, device):
    folder, *_ = files
    full = device(folder, "full", 7)
    done = adacoord("fit", folder / "train.svm", "--quiet", "--model", full)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "certified within" in done.stdout and "train: accuracy" in done.stdout
    assert f"No space left on device: '{full}'" in done.stderr
    done = adacoord(
        "compare",
        folder / "train.svm",
        "--quiet",
        "--solvers",
        "apdc",
        "--csv",
        full,
        "--report",
        folder / "r.html",
    )
    assert done.returncode == 2 and f"No space left on device: '{full}'" in done.stderr
    assert "apdc" in done.stdout and "</html>" in (folder / "r.html").read_text()
    save_model(ac.Ridge().fit(np.eye(6), np.ones(6)), folder / "m")
    for command in (
        ["predict", folder / "m", folder / "train.svm"],
        ["info"],
        ["fit", folder / "train.svm", "--quiet", "--model", folder / "saved"],
    ):
        with open(full, "w") as output:
            done = subprocess.run(
                [sys.executable, "-m", "adacoord", *map(str, command)],
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith(
            "adacoord: [Errno 28] No space left on device"
        ), done.stderr
        assert "Traceback" not in done.stderr and "ignored" not in done.stderr
    assert load_model(folder / "saved").loss == "logistic"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes that break are POSIX")
@pytest.mark.parametrize("closed", ["pipe", "stdout", "both"])
def test_nobody_reads_the_output(files, closed):
    folder, A, label = files
    save_model(ac.Ridge().fit(np.eye(6), np.ones(6)), folder / "m")
    save_svmlight(folder / "long.svm", np.vstack([A] * 50), np.tile(label, 50))
    ends = {"pipe": "| true", "stdout": ">&-", "both": ">&- 2>&-"}[closed]
    for words in (
        "info",
        "info m",
        "predict m train.svm",
        "predict m long.svm",
        "certify m real.svm",
        "compare train.svm --solvers apdc --quiet --csv c.csv",
        "fit train.svm --quiet --model saved",
    ):
        command = f"{sys.executable} -m adacoord {words} {ends}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
            timeout=120,
        )
        assert done.returncode == (1 if closed == "pipe" else 0), (words, done.stderr)
        assert "Traceback" not in done.stderr and "ignored" not in done.stderr
        assert "adacoord:" not in done.stderr, (words, done.stderr)
    assert load_model(folder / "saved").loss == "logistic"
    assert (folder / "c.csv").read_text().startswith("solver")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout here")
def test_outputs_to_standard_output(files):
    folder, *_ = files
    adacoord("fit", folder / "train.svm", "--quiet", "--model", folder / "m")
    plain = adacoord("predict", folder / "m", folder / "train.svm").stdout
    done = adacoord("predict", folder / "m", folder / "train.svm", "-o", "/dev/stdout")
    assert done.stdout == plain and len(plain.split()) == 300
    done = adacoord(
        "compare", folder / "train.svm", "--quiet", "--solvers", "apdc", "--csv", "/dev/stdout"
    )
    assert done.returncode == 0 and done.stdout.startswith("solver,") and "passes to" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_predictions_keep_the_mode_of_their_file(files):
    folder, *_ = files
    save_model(ac.Ridge().fit(np.eye(6), np.ones(6)), folder / "m")
    (folder / "p").touch()
    (folder / "p").chmod(0o600)
    done = adacoord("predict", folder / "m", folder / "train.svm", "-o", folder / "p")
    assert done.returncode == 0, done.stderr
    assert (folder / "p").stat().st_mode & 0o777 == 0o600
    assert len((folder / "p").read_text().split()) == 300
