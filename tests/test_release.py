"""What a release holds: wheel and source archive, built and installed in a clean environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import adacoord

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, **more) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("hatchling", reason='needs pip install -e ".[test]"')
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


@pytest.mark.slow
def test_what_is_inside(built):
    wheel, source = built
    assert adacoord.__version__ in wheel.name and adacoord.__version__ in source.name
    names = zipfile.ZipFile(wheel).namelist()
    assert "adacoord/py.typed" in names and "adacoord/report/page.html" in names
    assert all(name.startswith(("adacoord/", "adacoord-")) for name in names)
    assert not [name for name in names if name.endswith((".nbc", ".pyc", ".svm", ".xz"))]
    with tarfile.open(source) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"src", "tests", "docs", "benchmarks", "examples", "README.md", "LICENSE"} <= tops


@pytest.mark.slow
def test_a_clean_environment(built, tmp_path):
    """The wheel alone, beside the dependencies of this environment; far from the sources."""
    venv.create(tmp_path / "env", with_pip=False)
    inside = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    python = inside / ("python.exe" if os.name == "nt" else "python")
    run(
        *(sys.executable, "-m", "pip", "--python", python),
        *("install", "-q", "--no-deps", built[0]),
    )
    import numpy

    here = run(python, "-c", "import site; print(site.getsitepackages()[0])").strip()
    path = os.pathsep.join([here, str(Path(numpy.__file__).parents[1])])
    env = {k: v for k, v in os.environ.items() if k != "ADACOORD_DATA"}
    env |= {"PYTHONPATH": path, "ADACOORD_CACHE": str(tmp_path / "cache")}
    code = "import adacoord; print(adacoord.__file__, adacoord.__version__)"
    where, version = run(python, "-c", code, cwd=tmp_path, env=env).split()
    assert Path(where).is_relative_to(tmp_path / "env") and version == adacoord.__version__
    said = run(inside / "adacoord", "demo", cwd=tmp_path, env=env)
    assert "no point is below" in said


def test_the_recipe_names_what_pyproject_does():
    """conda's recipe, the citation and the package agree."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    for requirement in project["dependencies"]:
        name, least = requirement.split(">=")
        assert f"- {name} >={least}" in recipe
    assert f'version = "{adacoord.__version__}"' in recipe
    assert f"version: {adacoord.__version__}" in (ROOT / "CITATION.cff").read_text()
