"""What entries are made of: rules, traces, data and stand-ins, figures, the page, the command."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

import adacoord as ac
from adacoord.command.cli import app
from adacoord.report.plots import COLOURS, DASHES
from adacoord.reproduce import command
from adacoord.reproduce.entry import (
    CORRECTED,
    PRINTED,
    Curve,
    Entry,
    Findings,
    Panel,
    Rule,
    Table,
)
from adacoord.reproduce.figures import POINTS, _styles, compact, draw
from adacoord.reproduce.lab import Lab, Missing, scaled
from adacoord.reproduce.trace import Trace, mean_trace, trace

# ---- rules ---------------------------------------------------------------------------------------


def judge(*rules):
    return Entry("spdc-fig9", "Figure 9", "a claim.", rules, lambda lab: None)


def test_verdicts():
    entry = judge(Rule("a", "a", at_most=1.0), Rule("b", "b", at_least=2.0))
    assert entry.verdict({"a": 1.0, "b": 2.0}) == "holds"
    assert entry.verdict({"a": 0.5, "b": 1.9}) == "holds in part"
    assert entry.verdict({"a": math.inf, "b": math.nan}) == "does not hold"


def test_variants_are_judged_apart():
    entry = judge(Rule("a", "a", at_most=1.0), Rule("b", "b", at_most=1.0, variant=CORRECTED))
    measured = {"a": 2.0, "b": 0.5}
    assert [entry.verdict(measured, v) for v in entry.variants] == ["does not hold", "holds"]


def test_bounds_in_words():
    assert Rule("a", "a", at_most=0.5).bound == "at most 0.5"
    assert Rule("a", "a", at_least=1.0, at_most=3.0).bound == "at least 1 and at most 3"


# ---- traces --------------------------------------------------------------------------------------


def seen(passes, primal):
    passes, primal = np.array(passes, float), np.array(primal, float)
    return Trace(passes, 10.0 * passes, 100.0 * passes, primal, np.full(passes.size, np.nan))


def test_crossing_is_interpolated_in_the_logarithm():
    run = seen([0, 10, 20], [1.0, 1e-2, 1e-4])
    assert run.to(1e-3, 0.0) == pytest.approx(15.0)
    assert run.to(1e-3, 0.0, "seconds") == pytest.approx(150.0)
    assert run.to(1e-5, 0.0) == math.inf


def test_crossing_is_the_last_one():
    assert seen([0, 1, 2, 3], [1.0, 1e-6, 1.0, 1e-6]).to(1e-3, 0.0) == pytest.approx(2.5)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 5))
    return ac.Problem(A, A @ np.ones(5) + rng.standard_normal(60), l2=1e-2)


def test_trace_is_what_the_solver_did(problem):
    best = ac.solve(problem, tol=1e-13).primal
    run = trace(problem, "spdc", passes=100, optimum=best, floor=1e-9)
    assert run.primal[0] == problem.null_value
    assert run.primal[-1] - best <= 1e-9 < run.primal[-2] - best
    assert list(run.passes[:4]) == [0, 1, 2, 3]
    again = trace(problem, "spdc", passes=int(run.passes[-1]))
    assert again.primal[-1] == run.primal[-1]


def test_trace_certifies(problem):
    run = trace(problem, "dcd", passes=200, certify=True, floor=1e-8)
    assert run.gap[-1] <= 1e-8
    assert run.to_gap(1e-8) <= run.passes[-1]
    assert (run.gap[1:] >= run.primal[1:].min() - ac.solve(problem, tol=1e-13).primal).all()


def test_trace_ends_where_p_blows_up(problem, monkeypatch):
    monkeypatch.setattr(ac.Problem, "primal", lambda self, x, c=0.0: 1e7 * self.null_value)
    run = trace(problem, "sag", passes=500)
    assert run.passes[-1] == 1
    assert run.to(1e-3, 0.0) == math.inf


def test_mean_trace():
    run = mean_trace([seen([0, 1, 2], [1.0, 0.5, 0.25]), seen([0, 1], [1.0, 0.1])])
    np.testing.assert_allclose(run.primal, [1.0, 0.3, 0.175])


# ---- data ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of data with a stand-in for rcv1 and nothing else."""
    rng = np.random.default_rng(0)
    A = sparse.random(40, 8, 0.3, format="csr", random_state=rng)
    ac.io.save_svmlight(tmp_path / "rcv1.subset.binary.svm", A, np.sign(rng.standard_normal(40)))
    monkeypatch.setenv("ADACOORD_DATA", str(tmp_path))
    monkeypatch.setenv("ADACOORD_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_stand_in_is_named(folder):
    lab = Lab()
    data = lab.data("rcv1", "rows", bias=True, rows=30)
    assert data.A.shape[0] == 30
    np.testing.assert_allclose(data.A.multiply(data.A).sum(axis=1), 1.0)
    assert any("stands in for rcv1" in text for text in lab.remarks)
    assert any("30 of its 40 rows" in text for text in lab.remarks)
    assert lab.data("rcv1", "rows", bias=True, rows=30) is data


def test_missing_data_is_named(folder):
    with pytest.raises(Missing, match=r"news20\.binary is not at hand, nor news20\.rebuilt"):
        Lab().data("news20")


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix])
def test_scaled(kind):
    A = kind(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 10.0]]))
    rows = np.linalg.norm(_dense(scaled(A, "rows")), axis=1)
    np.testing.assert_allclose(rows, [1.0, 0.0, 1.0])
    mean = np.linalg.norm(_dense(scaled(A, "mean")), axis=1)
    np.testing.assert_allclose(mean, [1.0, 0.0, 2.0])
    assert scaled(A, "none") is A


def _dense(A):
    return A.toarray() if sparse.issparse(A) else A


def test_user_may_normalise_otherwise(folder):
    data = Lab(normalize="mean").data("rcv1", "rows")
    assert np.sqrt(data.A.multiply(data.A).sum(axis=1)).mean() == pytest.approx(1.0)


def test_optimum_is_certified(folder):
    lab = Lab()
    data = lab.data("rcv1")
    case = lab.case(data, "smooth_hinge", 1e-2)
    assert lab.case(data, "smooth_hinge", 1e-2) is case
    assert case.floor <= 1e-10 * case.optimum
    assert ac.solve(case.problem, tol=1e-10).dual <= case.optimum


# ---- figures, page, command ----------------------------------------------------------------------


def test_figure_is_small_and_whole(tmp_path):
    x = np.arange(1000.0)
    y = np.exp(-x / 100)
    y[3] = np.nan
    panel = Panel("λ = 1e-6", [Curve("SPDC", x, y), Curve("mine", x, 2 * y)])
    draw([[panel, panel], [panel]], tmp_path / "f.svg")
    draw([[panel, panel], [panel]], tmp_path / "f2.svg")
    text = (tmp_path / "f.svg").read_text()
    ET.fromstring(text)
    assert "SPDC" in text
    assert "mine" in text
    longest = max(part.count("L") for part in text.split('d="'))
    assert longest <= POINTS
    assert len(text) < 100_000


def test_pairs_share_a_colour_and_long_legends_are_broken(tmp_path):
    x = np.arange(1.0, 9.0)
    curves = [Curve(f"a method with a long name {k}", x, x * k) for k in range(1, 4)]
    curves += [Curve(f"{c.label}, dashed", x, 5 * c.y) for c in curves]
    draw([[Panel("t", curves)]], tmp_path / "f.svg")
    elements = list(ET.parse(tmp_path / "f.svg").iter())
    lines = [style for e in elements if "stroke-width: 1.3" in (style := e.get("style") or "")][:6]
    colours = [line.split("stroke: ")[1].split(";")[0] for line in lines]
    assert colours[:3] == colours[3:] and len(set(colours)) == 3
    assert ["stroke-dasharray" in line for line in lines] == [False] * 3 + [True] * 3
    legend = [e for e in elements if "long name" in (e.text or "")]
    heights = {e.get("y") or e.get("transform").split()[-1] for e in legend}
    assert len(legend) == 6 and len(heights) >= 3


def test_variants_have_the_colour_of_their_method():
    styles = _styles(["US", "AIS", "AIS, Theorem 2", "US, practical", "SPDC", "other"])
    assert styles["AIS"][0] == styles["AIS, Theorem 2"][0] == COLOURS[0]
    assert [dash for _, dash in styles.values()] == ["", "", *DASHES[1:], "", ""]
    assert styles["other"][0] not in {styles[k][0] for k in ("US", "AIS", "SPDC")}
    assert _styles([]) == {}


def test_what_entries_share_is_measured_once():
    lab, calls = Lab(), []
    for key in ("a", "b", "a"):
        assert lab.once(key, lambda key=key: calls.append(key) or key.upper()) == key.upper()
    assert calls == ["a", "b"]


def test_compact_keeps_the_picture():
    style = "fill: none; stroke: #0072b2"
    text = (
        '<svg>\n <style>*{a: b}</style>\n <!-- $10^{-5}$ -->\n <g id="line2d_1">\n'
        + f'  <path d="M 1.234567 2 \nL 3.25 4.00001 " style="{style}"/>\n' * 3
        + '  <path id="m1" d="M 0 1" style="fill: red"/>\n </g>\n</svg>\n'
    )
    assert compact(text) == (
        "<svg>\n<style>*{a: b}.s0{"
        + style
        + "}</style>\n<g>\n"
        + '<path d="M 1.2 2 L 3.2 4.0 " class="s0"/>\n' * 3
        + '<path id="m1" d="M 0 1" style="fill: red"/>\n</g>\n</svg>\n'
    )


def found(lab):
    lab.remarks += ["a stand-in.", "Another."]
    return Findings(
        {"a": math.inf},
        [[Panel("p", [Curve("SPDC", [0, 1], [1.0, 0.1])])]],
        [Table("A table", ["set", "passes"], [["a9a", "3"]])],
        ["a remark."],
    )


@pytest.fixture
def fake(monkeypatch):
    def absent(lab):
        raise Missing("url is not at hand")

    known = {
        "spdc-fig8": Entry(
            "spdc-fig8", "Figure 8", "it is fast.", (Rule("a", "passes", at_most=3.0),), found
        ),
        "acf-fig9": Entry(
            "acf-fig9", "Figure 9", "so is it.", (Rule("b", "passes", at_most=3.0),), absent
        ),
    }
    monkeypatch.setattr(command, "entries", lambda: known)
    return known


def test_command_writes_page_figure_and_record(fake, tmp_path):
    done = CliRunner().invoke(app, ["reproduce", "all", "--output", str(tmp_path), "--quick"])
    assert done.exit_code == 0
    assert "spdc-fig8: does not hold" in done.output
    assert "acf-fig9: not run" in done.output
    text = (tmp_path / "reproduction.md").read_text()
    for part in (
        "| passes | at most 3 | never | not met |",
        "Of 2 entries as printed 0 hold, 0 in part and 1 do not;",
        "- a stand-in. Another.\n- a remark.\n",
        "![spdc-fig8](reproduction/spdc-fig8.svg)",
        "| a9a | 3 |",
        "url is not at hand",
        "adacoord reproduce spdc-fig8 --quick",
        "**not run**",
    ):
        assert part in text
    assert (tmp_path / "reproduction" / "spdc-fig8.svg").exists()
    kept = json.loads((tmp_path / "reproduction" / "spdc-fig8.json").read_text())
    assert kept["verdicts"] == {PRINTED: "does not hold"}


def test_one_entry_leaves_the_others_on_the_page(fake, tmp_path):
    for name in fake:
        assert not CliRunner().invoke(app, ["reproduce", name, "--output", str(tmp_path)]).exit_code
    text = (tmp_path / "reproduction.md").read_text()
    assert text.index("### spdc-fig8") < text.index("### acf-fig9")


def test_list():
    done = CliRunner().invoke(app, ["reproduce", "--list"])
    assert done.exit_code == 0
    assert "spdc-fig1" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no entry was named"),
        (["spdc-fig77"], "spdc-fig77: there is no such entry"),
        (["all", "--normalize", "columns"], "--normalize columns"),
        (["all", "--output", "nowhere"], "--output nowhere"),
    ],
)
def test_bad_words(words, message):
    done = CliRunner().invoke(app, ["reproduce", *words])
    assert isinstance(done.exception, ValueError)
    assert message in str(done.exception)
