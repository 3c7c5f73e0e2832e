"""The folder for what can be made again: compiled kernels, downloaded data sets."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """``ADACOORD_CACHE``, or ``adacoord`` in the user's cache folder; it need not exist.

    Raises
    ------
    RuntimeError
        If there is neither the variable nor a home.
    """
    chosen = os.environ.get("ADACOORD_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "adacoord"
