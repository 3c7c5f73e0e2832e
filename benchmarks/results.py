"""The scoreboard: ``RESULTS.md`` and its picture, from the figures of ``race.py`` and ``users.py``.

    ADACOORD_DATA=... python benchmarks/race.py --json race.json
    ADACOORD_DATA=... python benchmarks/users.py --out users.json
    python benchmarks/results.py race.json users.json [--quick ...]

What comes after the files is how ``race.py`` was called besides: it is written with the command.
Writes ``benchmarks/RESULTS.md`` and ``docs/race.svg``, and puts the picture and a table of where we
lose between the marks in ``README.md`` and ``docs/choosing.md``.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from users import RATIO, faults, ratio

HERE = Path(__file__).parent
ROOT = HERE.parent
LIBRARIES = ("scikit-learn", "liblinear-official", "snapml", "celer", "skglm", "cyanure")
Rows = list[tuple[str, float, str]]  # name, ours over theirs, what else there is to say
#: What a document shows of it stands between these.
MARKS = "<!-- results -->", "<!-- end of results -->"


def race_rows(path: Path) -> Rows:
    """Where nobody else got there, or we did not, the ratio is a bound: said in words."""
    words = {
        "<": "no peer got there: an upper bound",
        ">": "ours was cut: a lower bound",
        "?": "nobody got there",
    }
    return [
        (
            row["problem"],
            math.nan if row["bound"] == "?" else row["ratio"],
            "; ".join(filter(None, (row["best_peer"], words.get(row["bound"])))),
        )
        for row in json.loads(path.read_text())
    ]


def user_rows(path: Path) -> Rows:
    found = json.loads(path.read_text())
    return [(name, ratio(row), ", ".join(faults(row))) for name, row in found.items()]


def decided(rows: Rows) -> Rows:
    return [row for row in rows if 0.0 < row[1] < math.inf]


def geometric_mean(rows: Rows) -> float:
    return math.exp(sum(math.log(value) for _, value, _ in rows) / len(rows))


def lost(rows: Rows) -> list[str]:
    """Where others are faster, the worst first."""
    worst_first = sorted(decided(rows), key=lambda row: -row[1])
    return [f"{name} ({value:.2f})" for name, value, _ in worst_first if value > 1.0]


def worst(rows: Rows) -> str:
    name, value, _ = max(decided(rows), key=lambda row: row[1])
    return f"{value:.2f} ({name})"


def summary(rows: Rows) -> list[str]:
    known, others = decided(rows), lost(rows)
    undecided = [name for name, *_ in rows if name not in {name for name, *_ in known}]
    lines = [
        f"geometric mean: {geometric_mean(known):.2f}",
        f"worst: {worst(rows)}",
        f"slower than the best of the others in {len(others)} of {len(known)} rows"
        + (f": {', '.join(others)}" if others else ""),
    ]
    if undecided:
        lines.append(f"without a ratio, as nobody finished: {', '.join(undecided)}")
    return lines


def table(rows: Rows, head: str) -> list[str]:
    lines = [f"| {head} | ours/theirs | |", "|---|---|---|"]
    return lines + [f"| {name} | {value:.2f} | {said} |" for name, value, said in rows]


def excerpt(race: Rows, users: Rows, folder: str) -> str:
    """The picture and the table of a document; ``folder`` is where it has the picture."""
    columns = race, users
    lines = [
        f"![CPU seconds of ours over theirs, each problem a dot]({folder}race.svg)",
        "",
        "| ours / theirs in CPU seconds | to 1e-6, against the best of all libraries "
        "| estimators at their defaults, against scikit-learn |",
        "|---|---|---|",
    ]
    facts = {
        "problems": [str(len(decided(rows))) for rows in columns],
        "geometric mean": [f"{geometric_mean(decided(rows)):.2f}" for rows in columns],
        "worst": [worst(rows) for rows in columns],
        "slower in": [
            f"{len(found)}: {', '.join(found)}" if found else "none" for found in map(lost, columns)
        ],
    }
    return "\n".join(lines + [f"| {name} | {a} | {b} |" for name, (a, b) in facts.items()])


def put(page: Path, text: str) -> None:
    """Replace what stands between the marks of a page."""
    first, last = MARKS
    old = page.read_text()
    if old.count(first) != 1 or old.count(last) != 1:
        raise SystemExit(f"{page}: {first} and {last} must stand in it, once each")
    page.write_text(
        re.sub(f"{first}.*{last}", lambda _: f"{first}\n{text}\n{last}", old, flags=re.S)
    )


def processor() -> str:
    """Its name, where the system tells it."""
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def versions() -> str:
    found = []
    for name in ("adacoord", "numpy", "scipy", "numba", *LIBRARIES):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def draw(race: Rows, users: Rows, file: Path) -> None:
    """Every row as a dot, sorted, on a logarithmic axis: below 1 we are faster."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, rows, title in (
        (axes[0], race, "to 1e-6, against the best of all libraries"),
        (axes[1], users, "estimators at their defaults, against scikit-learn"),
    ):
        values = sorted(value for _, value, _ in rows)
        colours = ["#0072b2" if value <= 1.0 else "#d55e00" for value in values]
        ax.scatter(range(len(values)), values, c=colours, s=14)
        ax.axhline(1.0, color="0.5", linewidth=0.8)
        ax.set(yscale="log", title=title, xlabel=f"{len(values)} problems", xticks=[])
        ax.title.set_fontsize("small")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("CPU seconds, ours / theirs")
    with mpl.rc_context({"svg.hashsalt": file.stem}):  # the same figures, the same file
        figure.savefig(file, metadata={"Date": None})


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit("give the figures of race.py and of users.py: results.py race.json users.json")
    race, users = race_rows(Path(sys.argv[1])), user_rows(Path(sys.argv[2]))
    assert __doc__ is not None
    commands = [line for line in __doc__.splitlines() if line.startswith("    ")]
    commands[0] = " ".join([commands[0], *sys.argv[3:]])
    lines: list[Any] = [
        "# Results",
        "",
        "CPU seconds of ours over theirs, one thread each: below 1 we are faster.",
        "",
        f"- {date.today().isoformat()}",
        f"- {processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        f"- Python {platform.python_version()}, {versions()}",
        "",
        *commands,
        "",
        "## The race: `race.py`",
        "",
        "To a relative error of 1e-6 in the objective, ours with its certificate, against the best",
        f"of all libraries that are installed: {len(race)} problems.",
        "",
        *(line for fact in summary(race) for line in (fact, "")),
        *table(race, "problem"),
        "",
        "## What changing the import costs: `users.py`",
        "",
        f"Each estimator at its defaults against scikit-learn's at its.  {RATIO} is the most that",
        "a row may take.",
        "",
        *(line for fact in summary(users) for line in (fact, "")),
        *table(users, "row"),
        "",
    ]
    (HERE / "RESULTS.md").write_text("\n".join(lines))
    draw(decided(race), decided(users), ROOT / "docs" / "race.svg")
    put(ROOT / "README.md", excerpt(race, users, "docs/"))
    put(ROOT / "docs" / "choosing.md", excerpt(race, users, ""))
    for name, rows in (("race", race), ("users", users)):
        print(name, *summary(rows), sep="\n  ")


if __name__ == "__main__":
    main()
