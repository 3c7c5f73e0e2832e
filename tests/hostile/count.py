"""Counts the hostile cases that fail, by kind: ``python tests/hostile/count.py --cases 2000``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.check import KINDS, STRICT
from hostile.runner import verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first number")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of silence: a hang")
    given = parser.parse_args()

    started, kinds, failed, strict, refused, converged = (
        time.perf_counter(),
        Counter(),
        0,
        0,
        0,
        0,
    )
    for verdict in verdicts(list(range(given.first, given.first + given.cases)), given.limit):
        found = {kind for kind, _ in verdict.failures}
        kinds.update(found)
        failed += bool(found - set(STRICT))
        strict += bool(found)
        refused += verdict.refused
        converged += verdict.converged
        if found:
            print(f"{verdict.text} [{verdict.solver}]")
            for kind, text in verdict.failures:
                print(f"    {kind}: {text}", flush=True)
    print(
        f"\n{given.cases} cases in {time.perf_counter() - started:.0f} s: {failed} fail, "
        f"{strict} when rounding is no excuse, {refused} refused, "
        f"{converged} converged"
    )
    for kind in KINDS:
        print(f"{kinds[kind]:6d}  {kind}")


if __name__ == "__main__":
    main()
