"""``adacoord compare``: contenders, runs, tables, files, and what is refused beforehand."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

import adacoord as ac
from adacoord.api.monitor import History
from adacoord.command.cli import app
from adacoord.data.columns import as_scipy
from adacoord.io import save_svmlight
from adacoord.report import plots
from adacoord.report.html import render
from adacoord.report.runs import (
    LEVELS,
    USUAL,
    Contender,
    as_csv,
    card,
    compare,
    contenders,
    first_below,
    summarise,
)
from adacoord.solvers.registry import SOLVERS


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    A = sparse.random(200, 30, 0.3, format="csr", random_state=rng)
    b = np.where(A @ rng.standard_normal(30) > 0, 1.0, -1.0)
    return ac.Problem(A, b, "logistic", l2=0.01, intercept=True)


@pytest.fixture(scope="module")
def runs(problem):
    who = contenders("apdc,spdc:adaptive,sag:step=0.25,pdhg", problem)
    return compare(problem, who, seeds=2, tol=1e-7, max_passes=60)


# ---- contenders ----------------------------------------------------------------------------------


def test_contenders_are_read(problem):
    found = contenders(
        "apdc, spdc:adaptive,spdc:lipschitz:batch_size=8:steps=theory,sag:step=.5", problem
    )
    assert [c.options for c in found] == [
        {},
        {"sampling": "adaptive"},
        {"sampling": "lipschitz", "batch_size": 8, "steps": "theory"},
        {"step": 0.5},
    ]
    assert [c.solver for c in found] == ["apdc", "spdc", "spdc", "sag"]
    assert found[1].label == "spdc:adaptive"
    assert contenders("auto", problem)[0].solver == "auto"


def test_the_usual_ones_are_those_that_can(problem):
    assert [c.solver for c in contenders(None, problem)] == list(USUAL)
    hinge = ac.Problem(problem.matrix, problem.b, "hinge", l2=0.1)
    assert [c.solver for c in contenders(None, hinge)] == ["apdc", "spdc", "dcd", "sdca"]
    lasso = ac.Problem(problem.matrix, problem.b, l1=0.1)
    assert {"apdc", "spdc", "sag"} <= {c.solver for c in contenders(None, lasso)}


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "no solver; use some of spdc"),
        ("spdc,spdc", "spdc is there twice; use --seeds"),
        ("simplex", "not a solver"),
        ("dcd:adaptive", 'solver="dcd" has no such option'),
        ("spdc:often", "sampling='often'"),
        ("sag:step=3", "step=3"),
        ("sag:step=big", "step='big'"),
    ],
)
def test_bad_contenders(problem, text, words):
    with pytest.raises(ValueError, match=words):
        contenders(text, problem)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_can_be_compared(name):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 5))
    problem = ac.Problem(A, A @ np.ones(5) + rng.standard_normal(60), l2=0.1)
    (run,) = compare(problem, [Contender(name, name)], tol=1e-4, max_passes=5000)
    assert run.result.converged and run.result.solver == name


# ---- runs ----------------------------------------------------------------------------------------


def test_runs_are_those_of_solve(problem, runs):
    """Nothing but the same calls: bits, seeds, and seeds in turn."""
    assert [(r.contender.label, r.seed) for r in runs] == [
        (label, seed)
        for seed in (0, 1)
        for label in ("apdc", "spdc:adaptive", "sag:step=0.25", "pdhg")
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run in runs:
            again = ac.solve(
                problem,
                run.contender.solver,
                tol=1e-7,
                max_passes=60,
                seed=run.seed,
                **run.contender.options,
            )
            np.testing.assert_array_equal(again.x, run.result.x)
            np.testing.assert_array_equal(again.history.gap, run.result.history.gap)


def test_progress_is_shown_to_the_end(problem):
    from contextlib import contextmanager

    seen = {}

    @contextmanager
    def watch(label):
        seen[label] = []
        yield seen[label].append

    runs = compare(problem, contenders("apdc,dcd", problem), seeds=2, watch=watch)
    assert list(seen) == [
        "1/4  apdc  seed 0",
        "2/4  dcd  seed 0",
        "3/4  apdc  seed 1",
        "4/4  dcd  seed 1",
    ]
    for run, progress in zip(runs, seen.values(), strict=True):
        assert progress[-1].relative_gap == run.result.relative_gap <= progress[-1].tol
        assert progress[0].passes == 0


def test_an_interrupt_keeps_what_there_is(problem):
    from contextlib import contextmanager

    @contextmanager
    def watch(label):
        def show(progress):
            if label.startswith("2/") and progress.passes and not over:
                over.append(label)
                raise KeyboardInterrupt

        yield show

    over = []
    runs = compare(problem, contenders("apdc,sag,dcd", problem), tol=1e-12, watch=watch)
    assert [r.result.status for r in runs] == ["converged", "interrupted"]


def test_first_below():
    history = History(
        passes=np.array([0, 5, 10]),
        seconds=np.array([0.1, 0.2, 0.4]),
        relative_gap=np.array([1.0, 1e-3, 1e-5]),
    )
    assert first_below(history, 1e-3) == (5, 0.2)
    assert first_below(history, 9e-4) == (10, 0.4)
    assert first_below(history, 1e-9) is None


def test_summary(runs):
    rows = summarise(runs)
    assert [r.label for r in rows] == ["apdc", "spdc:adaptive", "sag:step=0.25", "pdhg"]
    apdc = [r.result for r in runs if r.contender.label == "apdc"]
    expected = [first_below(r.history, 1e-6)[0] for r in apdc]
    assert rows[0].passes[1] == (np.median(expected), min(expected), max(expected))
    assert rows[0].primal == min(r.primal for r in apdc)
    assert rows[0].relative_gap == max(r.relative_gap for r in apdc) <= 1e-7
    assert rows[3].passes[2] is None and rows[3].status == "max_passes"
    assert rows[0].runs == 2 and len(rows[0].seconds) == len(LEVELS)


def test_csv_has_every_check(runs):
    table = list(csv.DictReader(io.StringIO(as_csv(runs))))
    assert len(table) == sum(r.result.history.passes.size for r in runs)
    mine = [row for row in table if row["solver"] == "spdc:adaptive" and row["seed"] == "1"]
    history = next(r for r in runs if r.contender.label == "spdc:adaptive" and r.seed == 1)
    for name in History.columns:
        np.testing.assert_array_equal(
            [float(row[name]) for row in mine], getattr(history.result.history, name)
        )


def test_card(problem):
    facts = card(problem)
    A = as_scipy(problem.matrix)
    lengths = np.sqrt(A.multiply(A).sum(axis=1))
    assert facts["R"] == pytest.approx(lengths.max())
    assert facts["Rbar"] == pytest.approx(lengths.mean())
    assert facts["kappa"] == pytest.approx(lengths.max() ** 2 / (0.01 * 4.0))  # gamma is 4
    assert (facts["n"], facts["d"], facts["nnz"]) == (200, 30, A.nnz)
    assert card(ac.Problem(A, problem.b, "hinge", l2=0.1))["kappa"] is None
    assert card(ac.Problem(A, problem.b, "smooth_hinge", l2=1))["loss"] == "smooth hinge (mu = 1)"


# ---- the page, without a browser -----------------------------------------------------------------


class Page(HTMLParser):
    """Every tag closed, every attribute kept."""

    VOID = {"meta", "link", "input", "line"}

    def __init__(self, text):
        super().__init__()
        self.open, self.attributes, self.text = [], [], {}
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.attributes += [(tag, *a) for a in attributes]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.attributes += [(tag, *a) for a in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.text[self.open[-1]] = self.text.get(self.open[-1], "") + data


def make_page(runs, problem, title="T"):
    return render(
        runs,
        problem,
        title=title,
        command="adacoord compare X",
        settings={"tol": 1e-7, "seeds": 2, "max_seconds": None},
    )


def test_page_structure(runs, problem):
    text = make_page(runs, problem)
    page = Page(text)
    assert not re.search(r'(?:src|href)=(?!"data:,")', text)  # nothing to fetch
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/2000/svg", "", text)
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text
    assert "width=device-width" in text
    data = json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1]
    )
    assert len(data["curves"]) == 8 and data["tol"] == 1e-7
    curve, history = data["curves"][0], runs[0].result.history
    assert curve["passes"] == history.passes.tolist()
    np.testing.assert_allclose(curve["gap"], history.relative_gap, rtol=1e-3)
    for label in ("apdc", "spdc:adaptive", "sag:step=0.25", "pdhg"):
        assert page.text["th"].count(label) >= 2  # in both tables
    assert "adacoord compare X" in page.text["pre"] and "not reached" in text
    assert "None" not in page.text["dd"]
    assert len(text) < 3_000_000


def test_names_cannot_break_the_page(runs, problem):
    nasty = "</script><script>alert(1)</script>&\"'"
    run = runs[0]
    broken = [type(run)(Contender(nasty, "apdc"), 0, run.result)]
    page = Page(make_page(broken, problem, title=nasty))
    assert page.text["script"].count("alert(1)") == 1  # as data alone
    assert "alert" in page.text["h1"]


def test_gaps_of_zero_and_infinity_are_left_out(runs, problem):
    history = History(*(np.array([0.0, 1.0, 2.0]) for _ in range(6)), np.array([np.inf, 1e-5, 0.0]))
    result = type(runs[0].result)(**(runs[0].result.__dict__ | {"history": history}))
    text = make_page([type(runs[0])(runs[0].contender, 0, result)], problem)
    assert '"gap":[null,1e-05,null]' in text


def test_colours_of_the_style_sheet_are_those_of_the_plots():
    from importlib import resources

    sheet = (resources.files("adacoord.report") / "page.css").read_text()
    for index, colour in enumerate(plots.COLOURS):
        assert f"--c{index}: {colour};" in sheet
    assert len({plots.style(k) for k in range(21)}) == 21


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((150, 6))
    save_svmlight(tmp_path / "t.svm", A, np.where(A[:, 0] + rng.standard_normal(150) > 0, 2, 1))
    return tmp_path / "t.svm"


def read(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def invoke(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], catch_exceptions=True)


def test_command(file, tmp_path):
    result = invoke(
        file,
        "--solvers",
        "apdc,spdc:adaptive,lbfgs",
        "--seeds",
        2,
        "--report",
        tmp_path / "r.html",
        "--csv",
        tmp_path / "r.csv",
    )
    assert result.exit_code == 0, result.output
    assert "spdc:adaptive" in result.output and "relative" in result.output
    page = (tmp_path / "r.html").read_text()
    assert "--solvers apdc,spdc:adaptive,lbfgs" in page and "--seeds 2" in page
    assert f"{1 / 150!r}" in page  # l2 = 1/n
    table = read(tmp_path / "r.csv")
    assert {row["solver"] for row in table} == {"apdc", "spdc:adaptive", "lbfgs"}
    # the command in the page gives the same runs
    import html
    import shlex

    words = shlex.split(html.unescape(re.search(r"<pre>(.*?)</pre>", page)[1]))
    again = invoke(*words[2:], "--csv", tmp_path / "again.csv")
    assert again.exit_code == 0
    for a, b in zip(table, read(tmp_path / "again.csv"), strict=True):
        assert (a["passes"], a["gap"], a["primal"]) == (b["passes"], b["gap"], b["primal"])


def test_exit_codes(file, tmp_path):
    assert invoke(file, "--solvers", "sag", "--max-passes", 2, "--quiet").exit_code == 3
    # one that got there is enough: the others are what it is compared with
    assert invoke(file, "--solvers", "apdc,pdhg", "--max-passes", 60).exit_code == 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--report", "gone/r.html"], "--report gone/r.html: there is no such folder"),
        (["--csv", "gone/r.csv"], "--csv gone/r.csv: there is no such folder"),
        (["--seeds", "0"], "--seeds 0"),
        (["--solvers", "simplex"], "not a solver"),
        (["--solvers", "lbfgs", "--l1", "0.1"], "takes no penalty but l2"),
        (["--tol", "-1"], "tol=-1.0"),
        (["--max-passes", "0"], "max_passes=0"),
    ],
)
def test_bad_input_before_any_work(file, arguments, words):
    result = invoke(file, *arguments)
    assert isinstance(result.exception, (ValueError, OSError)) and words in str(result.exception)


def test_data_by_name(tmp_path, monkeypatch, file):
    monkeypatch.setenv("ADACOORD_DATA", str(tmp_path))
    assert invoke("t", "--solvers", "apdc", "--quiet").exit_code == 0
    error = invoke("tt", "--solvers", "apdc").exception
    assert "did you mean t" in str(error) and "nor is there a file tt" in str(error)
    assert isinstance(invoke(tmp_path / "gone.svm").exception, OSError)


def test_plots(file, tmp_path):
    if plots.find_spec("matplotlib") is None:
        error = invoke(file, "--plot", tmp_path / "p.png").exception
        assert "adacoord[plot]" in str(error)
        pytest.skip("matplotlib is not installed: only the complaint about that was tested")
    result = invoke(
        file, "--solvers", "apdc,sag", "--plot", tmp_path / "p.png", "--plot", tmp_path / "p.svg"
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "p.svg").read_text()
    assert "must end in .png" in str(invoke(file, "--plot", tmp_path / "p.txt").exception)


# ---- what theory promises ------------------------------------------------------------------------


def test_theory_stands_beside_the_runs(capsys):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 5))
    problem = ac.Problem(A, A @ np.ones(5) + rng.standard_normal(60), l2=0.1)
    who = contenders("spdc:steps=theory,spdc:batch_size=4:steps=theory,apdc,sdca,auto", problem)
    runs = compare(problem, who, tol=1e-4)
    rows = {row.label: row for row in summarise(runs)}
    for c in who:
        row = rows[c.label]
        if c.solver in ("apdc", "auto"):
            assert row.theory is None
        else:
            assert row.theory == ac.solvers.expected_passes(problem, c.solver, 1e-4, **c.options)
            assert row.total[0] <= row.theory
    page = render(runs, problem, title="t", command="c", settings={"tol": 1e-4})
    assert "theory: passes to 0.0001" in page
    assert f"<td>{rows['sdca'].theory:,}</td>" in page
    from rich.console import Console

    from adacoord.report.command import _print

    _print(Console(width=200), runs, 1e-4)
    text = capsys.readouterr().out
    assert "theory" in text and str(rows["sdca"].theory) in text
    nothing = compare(problem, who[:1], tol=0.0, max_passes=3)
    assert summarise(nothing)[0].theory is None
