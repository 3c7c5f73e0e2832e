"""What was found, as JSON for other programs: every number to its last digit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def as_json(facts: Any) -> str:
    """One object on one line; numbers that are not finite are null, as JSON has none."""
    return json.dumps(_plain(facts), ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)  # a path, or a loss with its parameter
