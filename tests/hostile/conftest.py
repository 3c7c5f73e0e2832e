"""Lets the tests of this folder import their judge, cases and runner as ``hostile``."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
