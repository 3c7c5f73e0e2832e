"""What the tests share: small real and generated problems, and where the data sets are."""

from __future__ import annotations

import dis
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

# before SciPy is imported: scikit-learn's checks of array API input run only with it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
from scipy import sparse


@pytest.fixture(scope="session")
def data():
    """``data(name)``: (A, b) of a file of ADACOORD_DATA; skips, saying so, where there is none."""
    folder = os.environ.get("ADACOORD_DATA")
    loaded = {}

    def load(name):
        if not folder or not Path(folder).is_dir():
            pytest.skip("ADACOORD_DATA does not name the folder of the data sets")
        path = Path(folder) / f"{name}.svm.xz"
        if not path.exists():
            pytest.skip(f"{name}.svm.xz is not in ADACOORD_DATA")
        if name not in loaded:
            from adacoord.io import load_svmlight

            loaded[name] = load_svmlight(path)
        return loaded[name]

    return load


@pytest.fixture
def make_data():
    """``make_data(n, d, density, seed, task)``: a small (A, b); CSR where density < 1."""

    def make(n, d, density=1.0, seed=0, task="classification", dtype=np.float64):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((n, d))
        if density < 1.0:
            A *= rng.random((n, d)) < density
        w = rng.standard_normal(d) * (rng.random(d) < 0.5)
        z = A @ w + 0.5 * rng.standard_normal(n)
        b = {
            "classification": np.where(z > 0, 1.0, -1.0),
            "regression": z,
            "count": np.floor(np.exp(np.clip(0.3 * z, -3, 3))),
        }[task]
        if task == "classification":
            b[:2] = 1.0, -1.0
        A = A.astype(dtype)
        return (sparse.csr_matrix(A) if density < 1.0 else A), b

    return make


@pytest.fixture
def interrupted_at():
    """``interrupted_at(step, file, function)``: Ctrl-C at any moment at which Python may hear it.

    Calls the function and raises KeyboardInterrupt at a step of a file's code; False past the last.
    The steps are those at which Python looks for signals: the start of a function, the end of a
    call, the end of a loop's turn.
    """
    return _interrupted_at


def _interrupted_at(step: int, file: str, function) -> bool:
    left, last = step, {}

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before, last[frame] = last.get(frame, ""), _opcodes(frame.f_code)[frame.f_lasti]
        if event == "call" or (event == "opcode" and before.startswith(("CALL", "JUMP_BACKWARD"))):
            left -= 1
            if left < 0:
                sys.settrace(None)
                last.clear()
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return left < 0


@cache
def _opcodes(code) -> dict[int, str]:
    return {instruction.offset: instruction.opname for instruction in dis.get_instructions(code)}
