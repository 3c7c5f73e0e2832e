"""A newcomer's first hour: the lines of docs/command_line.md, typed one after the other.

They run in an empty folder, through the installed command, in processes that have the core's
dependencies only: pyarrow, pandas, matplotlib and Dask cannot be imported.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "command_line.md"
EXTRAS = ("pyarrow", "pandas", "polars", "matplotlib", "dask", "distributed")


def lines_of(page: Path) -> str:
    return "\n".join(
        re.findall(r"^```bash\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a POSIX shell")
def test_the_page_as_it_stands(tmp_path):
    commands = Path(sys.executable).parent
    if not (commands / "adacoord").exists():
        pytest.skip("adacoord is not installed beside this Python: pip install -e .")
    script = lines_of(PAGE)
    for word in ("demo", "fit", "predict", "certify", "compare", "info"):
        assert f"adacoord {word}" in script
    absent, folder = tmp_path / "absent", tmp_path / "new"
    folder.mkdir()
    for name in EXTRAS:
        (absent / name).mkdir(parents=True)
        (absent / name / "__init__.py").write_text(f"raise ImportError('{name} is no part of it')")
    path = [str(absent), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {k: v for k, v in os.environ.items() if k != "ADACOORD_DATA"}
    env |= {
        "PATH": os.pathsep.join([str(commands), env["PATH"]]),
        "PYTHONPATH": os.pathsep.join(path),
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=env,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert "no point is below" in done.stdout  # the demo
    assert "Training multinomial logistic regression on 3 labels (class_0, cl" in done.stderr
    assert done.stdout.count("certified within") == 3  # two fits to a terminal, one with --cv
    assert "of the optimum" in done.stdout and "chosen on 5 folds" in done.stderr
    [tested] = re.findall(r"test: accuracy (\S+)% on 45 rows", done.stdout)
    assert float(tested) > 90.0
    assert f"accuracy {tested}% on 45 rows" in done.stderr.splitlines()
    predicted = (folder / "predictions.txt").read_text().split()
    assert len(predicted) == 45 and set(predicted) == {"class_0", "class_1", "class_2"}
    assert "</html>" in (folder / "report.html").read_text()
    assert len(json.loads((folder / "predictions.json").read_text())["predictions"]) == 45
    assert (folder / "coefficients.csv").read_text().startswith("feature,class_0,class_1,class_2\n")
    assert "adacoord" in json.loads((folder / "installation.json").read_text())
    assert "{'accuracy': " in done.stdout
