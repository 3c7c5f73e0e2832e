"""What the tests share: small real and generated problems, and where the data sets are."""

from __future__ import annotations

import dis
import os
import signal
import stat
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

# before SciPy is imported: scikit-learn's checks of array API input run only with it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
from scipy import sparse

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell starts what it puts into the background so, and Ctrl-C is tested
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
            "positive": np.exp(np.clip(0.3 * z, -3, 3)),
        }[task]
        if task == "classification":
            b[:2] = 1.0, -1.0
        A = A.astype(dtype)
        return (sparse.csr_matrix(A) if density < 1.0 else A), b

    return make


@pytest.fixture
def signal_steps():
    """``signal_steps(place, function, interrupt=-1)``: (what it returns, steps it took).

    The steps are those at which Python looks for signals, in the files whose names begin with
    ``place``: the start of a function, the end of a call, the end of a loop's turn.  At the step
    ``interrupt`` Ctrl-C is raised; if it comes out of the function, that returns None.  (Lines
    would not do: on the way out of a ``with`` its line comes again, where no signal is heard.)
    """
    return _signal_steps


@pytest.fixture
def interrupted_at():
    """``interrupted_at(step, file, function)``: Ctrl-C at a step of a file; False past the last."""
    return lambda step, file, function: _signal_steps(file, function, step)[1] > step


def _signal_steps(place: str, function, interrupt: int = -1):
    count, last = 0, {}

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_code.co_filename.startswith(place):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before, last[frame] = last.get(frame, ""), _opcodes(frame.f_code)[frame.f_lasti]
        if event == "call" or (event == "opcode" and before.startswith(("CALL", "JUMP_BACKWARD"))):
            count += 1
            if count - 1 == interrupt:
                sys.settrace(None)
                last.clear()
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        return function(), count
    except KeyboardInterrupt:
        return None, count
    finally:
        sys.settrace(before)


@cache
def _opcodes(code) -> dict[int, str]:
    return {instruction.offset: instruction.opname for instruction in dis.get_instructions(code)}


@pytest.fixture
def device():
    """``device(folder, name, minor)``: a device to spare.

    As root, a writer that renames would put a file over the real one.
    """

    def make(folder, name, minor):
        path = folder / name
        if os.getuid() != 0:
            return f"/dev/{name}"
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            open(path, "wb").close()
        except OSError as error:
            pytest.skip(f"no device can be made here: {error}")
        return path

    return make
