"""What changing the import costs: every estimator at its defaults against scikit-learn's.

    ADACOORD_DATA=... python benchmarks/users.py [--seed 0] [--rows PATTERN] [--quick] [--out FILE]

CPU seconds of a fit, one thread, the least of a few that take turns, kernels warm; each row in a
process of its own.  The objective of both is computed by one formula in float64
(``users_judge.py``).  A row breaks the rule (``!``) if it takes more than 1.2 times scikit-learn's
seconds (1.5 under 2 ms), if its objective is worse by more than our ``tol``, if it warns where
scikit-learn does not, or if a fit takes more than 60 s.  Finished rows are kept in ``--out`` and
not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from provenance import commit
from users_judge import mean_error, objective, strength
from users_rows import ROWS, Row
from workers import ONE_THREAD

#: CPU seconds of one fit.
LIMIT = 60.0
#: Repeats end after so many pairs or CPU seconds, whichever is first.
REPEATS, BUDGET = 20, 4.0
#: The rule: the largest ratio, and that of fits under SHORT seconds.
RATIO, SHORT_RATIO, SHORT = 1.2, 1.5, 0.002
#: Of cross-validated errors where the two chose differently.
CHOICE = 1e-3


def timed(model: Any, X: Any, y: np.ndarray) -> tuple[float, list[str]]:
    """(CPU seconds of a fit, the kinds of warnings)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = cpu_seconds()
        model.fit(X, y)
        seconds = cpu_seconds() - start
    kinds = {w.category.__name__ for w in caught}
    return seconds, sorted(kinds - {"FutureWarning", "DeprecationWarning"})


def cpu_seconds() -> float:
    """Of this process; under a limit Linux gives ``time.process_time`` in steps of 4 ms."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def limit() -> None:
    """SIGXCPU ends the process LIMIT CPU seconds from now."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(cpu_seconds() + LIMIT), hard))


def measure(row: Row, seed: int, say) -> None:
    """Run one row and tell what is known as soon as it is: a row that is cut keeps that."""
    X, y, words = row.data(np.random.default_rng([seed, zlib.crc32(row.name.encode())]))
    ours, theirs = row.models()
    say({"data": words})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in (ours, theirs):  # imports, and most of the kernels
            model.fit(*few(X, y, row.kind))
    limit()
    other, their_warnings = timed(theirs, X, y)
    say({"theirs": other, "their_warnings": their_warnings})
    limit()
    mine, our_warnings = timed(ours, X, y)
    say({"ours": mine, "our_warnings": our_warnings} | compare(row, ours, theirs, X, y))
    spent = other + mine
    times = []
    while spent < BUDGET and len(times) < REPEATS:
        times.append((timed(theirs, X, y)[0], timed(ours, X, y)[0]))
        spent += sum(times[-1])
    if times:  # the first pair was a warm-up
        other, mine = map(min, zip(*times, strict=True))
    say({"theirs": other, "ours": mine, "done": True})


def few(X: Any, y: np.ndarray, kind: str) -> tuple[Any, np.ndarray]:
    """Some of the rows: of each class, if there are classes, enough for folds."""
    if kind not in ("logistic", "svc", "ridge classes"):
        return X[:300], y[:300]
    order = np.argsort(y, kind="stable")
    _, first, sizes = np.unique(y[order], return_index=True, return_counts=True)
    kept = np.concatenate([order[i : i + min(m, 10)] for i, m in zip(first, sizes, strict=True)])
    return X[np.sort(kept)], y[np.sort(kept)]


def compare(row: Row, ours: Any, theirs: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    """How much worse our objective is, relative to theirs; what may be; and our certificate."""
    gap = float(np.max(getattr(ours, "relative_gap_", np.nan)))
    tol = getattr(ours, "tol", 1e-4)
    told = {"gap": gap, "solver": str(getattr(ours, "solver_", "")), "allowed": tol}
    if hasattr(ours, "cv") and not math.isclose(strength(ours), strength(theirs), rel_tol=1e-6):
        mine, other = mean_error(ours), mean_error(theirs)
        choice = f"chose {strength(ours):.3g} against {strength(theirs):.3g}"
        told |= {"allowed": CHOICE, "choice": choice}
    else:
        mine, other = (objective(row.kind, model, X, y) for model in (ours, theirs))
    scale = np.maximum(np.abs(other), np.finfo(float).tiny)
    return told | {"worse": float(np.max((mine - other) / scale))}


def faults(result: dict[str, Any]) -> list[str]:
    """What breaks the rule."""
    if not result.get("done"):
        return [result.get("end", "not finished")]
    found = []
    largest = SHORT_RATIO if result["ours"] < SHORT else RATIO
    if result["ours"] > largest * result["theirs"]:
        found.append("slow")
    if not result["worse"] <= result["allowed"]:
        found.append("worse objective")
    if result["our_warnings"] and not result["their_warnings"]:
        found.append("warns")
    return found


def ratio(result: dict[str, Any]) -> float:
    """Ours over theirs; of a fit of ours that was cut, from below; nan where theirs is unknown."""
    return result.get("ours", LIMIT) / result["theirs"] if "theirs" in result else math.nan


def run(row: Row, seed: int) -> dict[str, Any]:
    """A row in a child process, whatever becomes of it."""
    command = [sys.executable, __file__, "--child", row.name, "--seed", str(seed)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD
    )
    result: dict[str, Any] = {}
    assert child.stdout is not None
    with child.stdout as lines:
        for line in lines:
            if line.startswith("{"):
                result |= json.loads(line)
    code = child.wait()
    if code == -signal.SIGXCPU:
        whose = "ours" if "theirs" in result else "theirs"
        result["end"] = f"{whose} cut after {LIMIT:.0f} s"
    elif code:
        result["end"] = f"ended with exit code {code}"
    return result


def line(row: Row, result: dict[str, Any]) -> str:
    broken = faults(result)
    ours, theirs = result.get("ours", math.nan), result.get("theirs", math.nan)
    said = [*broken, result.get("choice", "")]
    said += [f"theirs: {w}" for w in result.get("their_warnings", ())]
    worse = result.get("worse", math.nan)
    return (
        f"{'!' if broken else ' '} {row.name:34} {theirs:9.4f} {ours:9.4f} {ratio(result):8.2f} "
        f"{worse:9.0e} {result.get('gap', math.nan):8.0e} {result.get('solver', ''):12} "
        f"{result.get('data', '')}{'; ' if any(said) else ''}{', '.join(filter(None, said))}"
    )


def summary(results: dict[str, dict[str, Any]]) -> list[str]:
    """Geometric mean and worst, of all and of each group."""
    out = []
    for group in ("all", "tuned", "unseen", "real"):
        kept = {
            row.name: results[row.name]
            for row in ROWS
            if row.name in results and group in ("all", row.group)
        }
        ratios = {name: ratio(r) for name, r in kept.items() if not math.isnan(ratio(r))}
        if not ratios:
            continue
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        worst = max(ratios, key=ratios.__getitem__)
        broken = sum(bool(faults(r)) for r in kept.values())
        out.append(
            f"{group:7} {len(kept):3} rows: geometric mean {mean:.2f}, worst {ratios[worst]:.2f} "
            f"({worst}), {broken} break the rule"
        )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of all data")
    parser.add_argument("--rows", default="", help="a regular expression for the names of rows")
    parser.add_argument("--quick", action="store_true", help="a third of the rows")
    parser.add_argument("--out", help="finished rows; by default in the temporary folder")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        (row,) = [row for row in ROWS if row.name == args.child]
        measure(row, args.seed, lambda told: print(json.dumps(told), flush=True))
        return
    out = Path(args.out or Path(tempfile.gettempdir()) / f"adacoord-users-{args.seed}.json")
    results = json.loads(out.read_text()) if out.exists() else {}
    print(f"finished rows are kept in {out}; remove it to run them again")
    print(
        f"  {'':34} {'CPU seconds':^19} {'ours/':>8} {'objective':>9} {'our':>8}\n"
        f"  {'row':34} {'theirs':>9} {'ours':>9} {'theirs':>8} {'worse by':>9} {'gap':>8} "
        f"{'solver':12} data"
    )
    chosen = [
        row for row in ROWS if re.search(args.rows, row.name) and (row.quick or not args.quick)
    ]
    for row in chosen:
        if row.name not in results:
            results[row.name] = run(row, args.seed) | {"commit": commit()}
            out.write_text(json.dumps(results, indent=1))
        print(line(row, results[row.name]), flush=True)
    kept = {row.name: results[row.name] for row in chosen}
    print(*summary(kept), sep="\n")


if __name__ == "__main__":
    main()
