"""Hostile problems: no certificate lies, no fit hangs, nothing but ValueError is raised.

See ``cases.py`` for the problems, ``check.py`` for what must hold, ``judge.py`` for who says so.
``python tests/hostile/count.py --cases 2000`` counts instead of asserting.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

from hostile.check import STRICT
from hostile.runner import lines_of, verdicts

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="long double is no longer than double here"
)

#: Seconds of silence that are a hang.  A first compilation is silent, too.
LIMIT = 120.0
CHUNK = 100


def failures(numbers: list[int]) -> list[str]:
    return [
        f"{verdict.text} [{verdict.solver}]: {kind}: {text}"
        for verdict in verdicts(numbers, LIMIT)
        for kind, text in verdict.failures
        if kind not in STRICT
    ]


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(CHUNK, 200, CHUNK))],
)
def test_hostile_problems(first):
    found = failures(list(range(first, first + CHUNK)))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 2000, CHUNK))
def test_more_hostile_problems(first):
    found = failures(list(range(first, first + CHUNK)))
    assert not found, "\n".join(found)


def test_a_silent_child_is_noticed():
    """A hang fails a test; it does not hang it."""
    code = "import time; print('one', flush=True); time.sleep(60)"
    started = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        said = list(lines_of(child, 5.0))
        child.kill()
    assert said == ["one", None]
    assert time.perf_counter() - started < 30.0
