"""Every snippet of the documentation runs."""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
#: What Sphinx makes under docs/.
BUILT = ("_build", "generated", "auto_examples")


def blocks(path: Path, language: str) -> list[str]:
    fences = re.findall(r"^```([^\n`]*)\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)
    return [text for tag, text in fences if tag == language]


def test_readme_python(capsys):
    """The snippets build on one another, as a reader would type them."""
    snippets = blocks(README, "python")
    assert len(snippets) >= 3
    namespace: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for snippet in snippets:
            exec(compile(snippet, str(README), "exec"), namespace)
    assert namespace["result"].converged
    assert "of the optimum" in capsys.readouterr().out


PAGES = sorted((ROOT / "docs").glob("**/*.md"))
PAGES = [page for page in PAGES if page.relative_to(ROOT / "docs").parts[0] not in BUILT]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages(page):
    """The snippets of a page build on one another; those of different pages do not."""
    namespace: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for snippet in blocks(page, "python"):
            exec(compile(snippet, str(page), "exec"), namespace)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_cluster_of_scaling(capsys):
    """Its snippet goes on from the first of the page."""
    pytest.importorskip("distributed", reason='needs pip install "adacoord[dask]"')
    page = ROOT / "docs" / "scaling.md"
    namespace: dict = {}
    for snippet in (blocks(page, "python")[0], *blocks(page, "py")):
        exec(compile(snippet, str(page), "exec"), namespace)
    assert float(capsys.readouterr().out) <= 1e-4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_scripts_that_pages_name(page):
    for script in re.findall(r"`(benchmarks/\w+\.py)", page.read_text()):
        assert (ROOT / script).exists(), script


def test_every_estimator_and_function_is_in_the_reference():
    import adacoord

    text = (ROOT / "docs" / "api.rst").read_text()
    listed = {line.strip().split(".")[-1] for line in text.splitlines()}
    modules = {"datasets", "io", "losses", "solvers", "__version__"}
    assert set(adacoord.__all__) - modules <= listed
    assert set(adacoord.io.__all__) <= listed


def test_readme_commands(tmp_path, monkeypatch):
    """The commands of the README, on files of the names it uses."""
    import numpy as np

    from adacoord.command.cli import app

    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 3)).round(3)
    b = np.where(A[:, 0] + 0.3 * rng.standard_normal(300) > 0, "iris", "rose")
    monkeypatch.chdir(tmp_path)
    for name, rows in (("train.csv", range(200)), ("test.csv", range(200, 300))):
        lines = [f"{','.join(map(str, A[i]))},{b[i]}" for i in rows]
        Path(name).write_text("\n".join(["length,width,height,species", *lines]))
    lines = [
        line
        for block in blocks(README, "")
        for line in block.splitlines()
        if line.startswith("adacoord ")
    ]
    assert len(lines) >= 5
    for line in lines:
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, (line, result.output)
    assert len(Path("predictions.txt").read_text().splitlines()) == 100


def literals() -> list[str]:
    """Every string of the package; of one with values in it the pieces between them."""
    trees = (ast.parse(file.read_text()) for file in (ROOT / "src").glob("**/*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def test_warnings_in_their_own_words():
    """What the page on warnings quotes is what the package says."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text().replace("\n", " ")
    quotes, said = re.findall(r'\*\*"(.+?)"\*\*', text), literals()
    assert len(quotes) == 14
    for piece in (piece.strip() for quote in quotes for piece in quote.split("...")):
        assert any(piece in words for words in said), piece


def test_install_commands_stand_in_the_readme():
    text = README.read_text()
    assert "pip install . && adacoord demo" in text
    assert 'pip install -e ".[test]" && pytest' in text
    assert 'pip install -q -e ".[test]"' in (ROOT / ".ci" / "run").read_text()


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 120


#: Documents and pages; those that Sphinx makes are checked when it makes them.
DOCUMENTS = [
    *(p for p in sorted(ROOT.glob("*.md"))),
    *PAGES,
    ROOT / "benchmarks" / "README.md",
]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page):
    """Every link to a file, and to a heading of one, has its end."""
    for target in re.findall(r"\]\(([^)\s:]+)\)", page.read_text()):
        name, _, heading = target.partition("#")
        if name.startswith("auto_examples/"):
            continue
        end = page.parent / name if name else page
        assert end.exists(), target
        if heading:
            assert heading in headings(end), target


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and MyST name them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


def test_every_solver_has_its_line():
    from adacoord.solvers.registry import SOLVERS

    text = (ROOT / "docs" / "choosing.md").read_text().split("## All solvers")[1]
    rows = re.findall(r"^\| (`.+?) \|", text, re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", " ".join(rows))) == set(SOLVERS)


def test_every_loss_has_its_formula():
    from adacoord.problem.losses import BLOCK_LOSSES, LOSSES

    text = (ROOT / "docs" / "models.md").read_text()
    assert set(LOSSES | BLOCK_LOSSES) == set(
        re.findall(r"^\| `(\w+)`.* \| \S*.*\$", text, re.MULTILINE)
    )
