"""Lets the tests of this folder import the naive solvers of ``reference.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
