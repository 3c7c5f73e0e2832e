"""The scoreboard: ``RESULTS.md`` and its picture, from the figures of ``race.py`` and ``users.py``.

    ADACOORD_DATA=... python benchmarks/race.py --json race.json
    ADACOORD_DATA=... python benchmarks/race.py --models --json models.json
    ADACOORD_DATA=... python benchmarks/users.py --out users.json
    python benchmarks/results.py race.json models.json users.json [--quick ...]

What comes after the files is how ``race.py`` was called besides: it is written with the commands.
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
from collections import Counter
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from users import RATIO, faults, ratio

HERE = Path(__file__).parent
ROOT = HERE.parent
LIBRARIES = (
    "scikit-learn",
    "liblinear-official",
    "snapml",
    "celer",
    "skglm",
    "cyanure",
    "glum",
    "adelie",
)
Rows = list[tuple[str, float, str]]  # name, ours over theirs, what else there is to say
#: What a document shows of it stands between these.
MARKS = "<!-- results -->", "<!-- end of results -->"


@dataclass
class Board:
    """The rows of one benchmark, and what is said of them."""

    title: str
    words: str
    brief: str  #: the heading of a column, or of a picture
    rows: Rows
    commits: Counter[str]  #: how many rows are of which commit


def race_board(path: Path) -> Board:
    rows = json.loads(path.read_text())
    words = (
        "To a relative error of 1e-6 in the objective, ours with its certificate, against the\n"
        f"best of all libraries that are installed: {len(rows)} problems."
    )
    brief = "to 1e-6, against the best of all libraries"
    return Board("The race: `race.py`", words, brief, race_rows(rows), commits(rows))


def models_board(path: Path) -> Board:
    rows = json.loads(path.read_text())
    words = (
        "The same for weights of columns, groups, several targets, counts, amounts, quantiles,\n"
        f"x >= 0 and classes with an l1: {len(rows)} problems."
    )
    brief = "the same, other models"
    return Board("Other models: `race.py --models`", words, brief, race_rows(rows), commits(rows))


def users_board(path: Path) -> Board:
    found = json.loads(path.read_text())
    rows = [(name, ratio(row), ", ".join(faults(row))) for name, row in found.items()]
    words = (
        f"Each estimator at its defaults against scikit-learn's at its.  {RATIO} is the most that\n"
        "a row may take."
    )
    return Board(
        "What changing the import costs: `users.py`",
        words,
        "estimators at their defaults, against scikit-learn",
        rows,
        commits(list(found.values())),
    )


def race_rows(rows: list[dict]) -> Rows:
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
        for row in rows
    ]


def commits(rows: list[dict]) -> Counter[str]:
    return Counter(row.get("commit") or "unknown" for row in rows)


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


def measured(found: Counter[str]) -> str:
    """Which commits the rows are of."""
    if len(found) == 1:
        return f"Measured on commit {next(iter(found))}."
    return "Rows by commit: " + ", ".join(f"{n} on {name}" for name, n in found.most_common()) + "."


def table(rows: Rows) -> list[str]:
    lines = ["| problem | ours/theirs | |", "|---|---|---|"]
    return lines + [f"| {name} | {value:.2f} | {said} |" for name, value, said in rows]


def section(board: Board) -> list[str]:
    facts = [board.words, *summary(board.rows), measured(board.commits)]
    lines = [line for fact in facts for line in (*fact.splitlines(), "")]
    return [f"## {board.title}", "", *lines, *table(board.rows), ""]


def excerpt(boards: list[Board], folder: str) -> str:
    """The picture and the table of a document; ``folder`` is where it has the picture."""
    lines = [
        f"![CPU seconds of ours over theirs, each problem a dot]({folder}race.svg)",
        "",
        " | ".join(["| ours / theirs in CPU seconds", *(board.brief for board in boards), ""]),
        "|---" * (len(boards) + 1) + "|",
    ]
    columns = [board.rows for board in boards]
    facts = {
        "problems": [str(len(decided(rows))) for rows in columns],
        "geometric mean": [f"{geometric_mean(decided(rows)):.2f}" for rows in columns],
        "worst": [worst(rows) for rows in columns],
        "slower in": [
            f"{len(found)}: {', '.join(found)}" if found else "none" for found in map(lost, columns)
        ],
    }
    lines += [" | ".join([f"| {name}", *values, ""]) for name, values in facts.items()]
    return "\n".join(line.rstrip() for line in lines)


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


def draw(boards: list[Board], file: Path) -> None:
    """Every row as a dot, sorted, on a logarithmic axis: below 1 we are faster."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 3.4), layout="constrained")
    axes = figure.subplots(1, len(boards), sharey=True)
    for ax, board in zip(axes, boards, strict=True):
        values = sorted(value for _, value, _ in decided(board.rows))
        colours = ["#0072b2" if value <= 1.0 else "#d55e00" for value in values]
        ax.scatter(range(len(values)), values, c=colours, s=14)
        ax.axhline(1.0, color="0.5", linewidth=0.8)
        ax.set(yscale="log", title=board.brief, xlabel=f"{len(values)} problems", xticks=[])
        ax.title.set_fontsize("small")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("CPU seconds, ours / theirs")
    with mpl.rc_context({"svg.hashsalt": file.stem}):  # the same figures, the same file
        figure.savefig(file, metadata={"Date": None})


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(
            "give the figures of the three: results.py race.json models.json users.json "
            "(of race.py, race.py --models and users.py)"
        )
    readers = race_board, models_board, users_board
    boards = [read(Path(path)) for read, path in zip(readers, sys.argv[1:4], strict=True)]
    assert __doc__ is not None
    commands = [line for line in __doc__.splitlines() if line.startswith("    ")]
    for i in (0, 1):
        commands[i] = " ".join([commands[i], *sys.argv[4:]])
    lines = [
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
    ]
    lines += [line for board in boards for line in section(board)]
    (HERE / "RESULTS.md").write_text("\n".join(lines))
    draw(boards, ROOT / "docs" / "race.svg")
    put(ROOT / "README.md", excerpt(boards, "docs/"))
    put(ROOT / "docs" / "choosing.md", excerpt(boards, ""))
    for board in boards:
        print(board.title, *summary(board.rows), sep="\n  ")


if __name__ == "__main__":
    main()
