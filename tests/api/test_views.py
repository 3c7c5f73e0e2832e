"""What results look like: pictures, frames, tables in notebooks."""

import sys
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest

import adacoord as ac
from adacoord.api.monitor import Switch

matplotlib.use("Agg")

RNG = np.random.default_rng(0)
A = RNG.standard_normal((80, 7))
B = A @ [3.0, -2.0, 0.0, 0.0, 1.0, 0.0, 0.0] + RNG.standard_normal(80)
PROBLEM = ac.Problem(A, B, l1=0.01, l2=1e-3)


@pytest.fixture(scope="module")
def result():
    return ac.solve(PROBLEM, "spdc", tol=1e-8)


@pytest.mark.parametrize("against", ["passes", "seconds", "operations"])
def test_the_gap_is_drawn(result, against):
    ax = result.plot(against)
    (line,) = ax.lines
    seen = result.history.relative_gap > 0.0
    assert np.array_equal(line.get_xdata(), getattr(result.history, against)[seen])
    assert np.array_equal(line.get_ydata(), result.history.relative_gap[seen])
    assert ax.get_yscale() == "log" and ax.get_xlabel() == against
    assert result.plot(ax=ax) is ax and len(ax.lines) == 2  # several results in one picture


def test_a_change_of_method_is_marked(result):
    result.history.switched = Switch(5, "spdc", "acf")
    try:
        ax = result.plot()
    finally:
        result.history.switched = None
    assert len(ax.lines) == 2 and "acf" in ax.texts[0].get_text()


def test_against_what(result):
    with pytest.raises(ValueError, match=r"against='days': .*\"passes\", \"seconds\""):
        result.plot("days")


def test_a_path_is_drawn():
    path = ac.path(PROBLEM, n_points=12)
    ax = path.plot()
    drawn = {tuple(line.get_ydata()) for line in ax.lines}
    for j in range(7):
        assert tuple(path.coefs[:, j]) in drawn or not path.coefs[:, j].any()
    assert ax.get_xscale() == "log" and ax.xaxis_inverted() and ax.get_xlabel() == "l1"
    ridge = ac.path(ac.Problem(A, B, l2=1.0), l2=np.geomspace(1, 1e-3, 5))
    assert ridge.plot().get_xlabel() == "l2"


def test_of_many_coefficients_the_largest_are_drawn():
    from adacoord.api.views import MOST_LINES

    X = RNG.standard_normal((30, 3 * MOST_LINES))
    path = ac.path(ac.Problem(X, X[:, 0], l2=1e-2), l2=[1e-1, 1e-2])
    lines = path.plot().lines
    assert len(lines) == MOST_LINES + 1  # and that of zero
    least = min(np.abs(line.get_ydata()).max() for line in lines[:-1])
    assert np.sum(np.abs(path.coefs).max(axis=0) > least) <= MOST_LINES


def test_a_frame(result):
    frame = result.history.to_frame()
    assert list(frame.columns) == list(result.history.columns)
    assert np.array_equal(frame["gap"], result.history.gap)


class Cells(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_tables_in_notebooks(result):
    text = Cells(result._repr_html_()).text
    assert f"{result.relative_gap:.2e}" in text and "converged" in text
    assert "5 of 7" in text or f"{np.count_nonzero(result.x)} of 7" in text
    assert "certified relative gap, largest" in Cells(ac.path(PROBLEM)._repr_html_()).text
    certificate = ac.certify(PROBLEM, result.x)
    assert certificate.note in Cells(certificate._repr_html_()).text
    free = ac.solve(ac.Problem(A, B), "newton")
    assert "none: there is no penalty" in Cells(free._repr_html_()).text


def test_names_are_escaped():
    from adacoord.api.views import table

    assert "<script>" not in table("<script>", {"<b>": "<script>alert(1)</script>"})


@pytest.mark.parametrize(
    "module, call",
    [
        ("matplotlib.pyplot", lambda r: r.plot()),
        ("pandas", lambda r: r.history.to_frame()),
    ],
)
def test_what_is_not_installed_is_named(result, module, call, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"needs {module}; install it with pip install"):
        call(result)
