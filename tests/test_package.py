"""What importing the package does, and does not do."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest

import adacoord as ac


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_loads_nothing_heavy():
    heavy = ("numba", "scipy", "sklearn", "rich", "typer", "matplotlib")
    code = f"import adacoord, adacoord.io, sys; print([m for m in {heavy} if m in sys.modules])"
    assert python(code) == "[]"


def test_solving_loads_no_front_end():
    code = """
import sys, numpy as np, adacoord as ac
ac.solve(ac.Problem(np.eye(3), [1, -1, 1], loss="logistic", l2=0.1))
print([m for m in ("sklearn", "rich", "typer", "matplotlib") if m in sys.modules])
"""
    assert python(code) == "[]"


def test_functions_are_not_hidden_by_modules():
    """Importing a submodule first must not turn ``ac.solve`` into a module."""
    code = """
import adacoord.api.solve, adacoord.api.certify, adacoord.problem.problem, adacoord.command.cli
import adacoord as ac
print(callable(ac.solve), callable(ac.certify), callable(ac.Problem))
"""
    assert python(code) == "True True True"


def test_public_names():
    assert set(ac.__all__) <= set(dir(ac))
    for name in ac.__all__:
        assert getattr(ac, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'solver'"):
        ac.solver  # noqa: B018


def test_public_api_is_documented_and_typed():
    assert (Path(ac.__file__).parent / "py.typed").exists()
    for name in ("Problem", "solve", "Result", "certify", "Certificate", "save_model"):
        assert len(getattr(ac, name).__doc__) > 40


def test_dependencies_are_the_declared_few():
    core = {r.split(">")[0].split(";")[0].strip() for r in requires("adacoord") if "extra" not in r}
    # threadpoolctl comes with scikit-learn; newton holds BLAS to one thread by it
    assert core == {"numpy", "scipy", "numba", "scikit-learn", "threadpoolctl", "rich", "typer"}
    assert {"plot", "tables", "dask", "rigorous", "bench", "test", "docs"} == set(
        metadata("adacoord").get_all("Provides-Extra")
    )
