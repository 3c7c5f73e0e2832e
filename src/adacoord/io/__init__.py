"""Files in, files out: svmlight data, stores and model files.

The names load their modules when they are first used, so that ``import adacoord.io`` stays
free of numba and scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "load_svmlight": ".svmlight",
    "save_svmlight": ".svmlight",
    "load_model": ".model",
    "save_model": ".model",
    "save_coefficients": ".coefficients",
    "open_store": ".store",
    "convert": ".converting",
}

__all__ = [
    "convert",
    "load_model",
    "load_svmlight",
    "open_store",
    "save_coefficients",
    "save_model",
    "save_svmlight",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
