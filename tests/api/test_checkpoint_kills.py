"""kill -9 at random moments of a checkpointing fit: see ``killing.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")


@pytest.mark.parametrize("kills", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_kills(kills, tmp_path):
    script = Path(__file__).with_name("killing.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(kills), str(kills)],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["kills"] == kills and found["finished"] >= 1
    # what killed writers left is gone with the next checkpoint of the same run
    assert not list(tmp_path.glob(".*.tmp"))
