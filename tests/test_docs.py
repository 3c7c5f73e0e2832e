"""Every snippet of the documentation runs."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def blocks(path: Path, language: str) -> list[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)
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


def test_readme_commands(tmp_path, monkeypatch):
    """The commands of the README, on files of the names it uses."""
    import numpy as np

    from adacoord.command.cli import app
    from adacoord.io import save_svmlight

    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 8))
    b = np.where(A[:, 0] + 0.3 * rng.standard_normal(300) > 0, 1, -1)
    monkeypatch.chdir(tmp_path)
    save_svmlight("train.svm.xz", A[:200], b[:200])
    save_svmlight("test.svm.xz", A[200:], b[200:])
    lines = [
        line
        for block in blocks(README, "")
        for line in block.splitlines()
        if line.startswith("adacoord ")
    ]
    assert len(lines) == 6
    for line in lines:
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, (line, result.output)
    assert len(Path("predictions.txt").read_text().splitlines()) == 100


def test_install_commands_stand_in_the_readme():
    text = README.read_text()
    assert "pip install . && adacoord demo" in text
    assert 'pip install -e ".[test]" && pytest' in text
    assert 'pip install -q -e ".[test]"' in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("path", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_between_documents(path):
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / path).read_text()):
        assert (ROOT / target).exists(), target
