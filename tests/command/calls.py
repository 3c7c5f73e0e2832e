"""The command line, called in a process of its own or within this one."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from adacoord.command.cli import main


def adacoord(*args, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "adacoord", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )


def inside(*args, cwd=".", stdin=b"") -> SimpleNamespace:
    """The same within this process, which is faster where a process of its own does not matter."""
    out, err = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        chdir(cwd),
        pytest.MonkeyPatch.context() as m,
        pytest.raises(SystemExit) as ended,
    ):
        m.setattr(sys, "argv", ["adacoord", *map(str, args)])
        m.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        main()
    return SimpleNamespace(
        returncode=ended.value.code or 0, stdout=out.getvalue(), stderr=err.getvalue()
    )
