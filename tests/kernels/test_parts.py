"""Kernels inside kernels: one signature each, and on disk only what Python calls."""

from __future__ import annotations

import gc

import numpy as np

from adacoord.kernels.jit import jit
from adacoord.kernels.pause import paused


@jit
def _scaled(x, factor):
    total = 0.0
    for i in range(x.shape[0]):
        total += factor * x[i]
    return total


@jit
def _twice(x, times):
    count = 0
    total = _scaled(x, count)  # of a literal
    for count in range(times):  # noqa: B007
        total += _scaled(x, 2)
    return total + _scaled(x, count)


def test_a_part_and_python_agree(monkeypatch):
    x = np.arange(5.0)
    saved = []
    for kernel in (_scaled, _twice):
        monkeypatch.setattr(kernel._cache, "load_overload", lambda *args: None)
        monkeypatch.setattr(kernel._cache, "save_overload", lambda *args: saved.append(args))
    assert _twice(x, 3) == 6 * x.sum() + 2 * x.sum()
    assert not _scaled.overloads
    assert _scaled(x, 2) == 2 * x.sum()
    assert len(_scaled.overloads) == 1
    assert len(saved) == 2


def test_what_python_has_called_is_taken_as_it_is():
    x = np.arange(3.0)
    _scaled(x, 2)
    (compiled,) = (c for c in _scaled.overloads.values())
    args = compiled.signature.args
    assert _scaled.get_overload(args) is compiled.entry_point
    template, _, _, _ = _scaled.get_call_template(args, {})
    assert template.cases[0].args == args


def test_collection_goes_on_after_a_pause():
    assert gc.isenabled()
    with paused():
        assert not gc.isenabled()
        with paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()  # whoever has switched it off
    finally:
        gc.enable()
