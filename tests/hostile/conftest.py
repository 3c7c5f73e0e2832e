"""Lets the tests of this folder import their judge, cases and runner."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
