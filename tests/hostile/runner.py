"""Cases in a child process that may be killed: a hang costs one case, not the run.

The child prints a line for each stage of a case and another when it has judged it.  The parent
kills a child that says nothing for ``limit`` seconds, blames the case it was at, and starts
another child behind that.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from hostile.check import Verdict

#: The folder that holds this package of tests.
TESTS = Path(__file__).parents[1]


def verdicts(numbers: list[int], limit: float) -> Iterator[Verdict]:
    """The verdict on each case, in order."""
    left = list(numbers)
    while left:
        for verdict in _one_child(left, limit):
            yield verdict
            left.remove(verdict.number)


def _one_child(numbers: list[int], limit: float) -> Iterator[Verdict]:
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    child = subprocess.Popen(
        [sys.executable, "-m", "hostile.runner"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        child.stdin.write(json.dumps(numbers))
        child.stdin.close()
        at, stage = numbers[0], "solve"
        for line in lines_of(child, limit):
            if line is None:
                kind = "judge" if stage == "judge" else "hang"
                yield Verdict(at, _text(at), [(kind, f"silent for {limit:g} s in: {stage}")])
                return
            said = json.loads(line)
            if "at" in said:
                at, stage = said["at"], said["stage"]
            else:
                said["failures"] = [tuple(f) for f in said["failures"]]
                yield Verdict(**said)
                at = None
        if child.wait() != 0 and at is not None:
            yield Verdict(at, _text(at), [("exception", f"the process died: {child.returncode}")])
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def lines_of(child, limit: float) -> Iterator[str | None]:
    """Lines of the child; None when it is silent for too long."""
    buffer = b""
    descriptor = child.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if not selector.select(limit):
                yield None
                return
            chunk = os.read(descriptor, 65536)
            if not chunk:
                return
            *whole, buffer = (buffer + chunk).split(b"\n")
            yield from (line.decode() for line in whole)


def _text(number: int) -> str:
    from hostile.cases import case

    return str(case(number))


def _child() -> None:
    from hostile.check import examine

    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # SciPy's solvers print

    def say(**values) -> None:
        print(json.dumps(values), file=report, flush=True)

    for number in json.load(sys.stdin):
        say(**vars(examine(number, lambda stage, number=number: say(at=number, stage=stage))))


if __name__ == "__main__":
    _child()
