"""``adacoord compare``: from the name of data to the tables and the files that were asked for."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..api.progress import ProgressLine
from ..api.solve import _check_limits
from ..io.facts import as_json
from ..io.posing import pose
from ..io.reading import read_data
from ..io.standard import STANDARD, named, to_file, write_out
from ..io.writing import check_outputs, replacing
from .runs import LEVELS, as_csv, card, compare, contenders, summarise

NOT_CONVERGED, INTERRUPTED = 3, 130


def run(
    out: Console | None,
    err: Console,
    *,
    data: str,
    reading: dict,
    solvers: str | None,
    seeds: int,
    report: Path | None,
    csv: Path | None,
    plots: list[Path],
    quiet: bool,
    model: dict,
    limits: dict,
) -> int:
    """Do it; returns the exit code.

    The table goes to ``out``; where that is None, JSON goes to standard output.
    """
    _check_files(Path(data), report, csv, plots)
    if seeds < 1:
        raise ValueError(f"--seeds {seeds}: at least one run of each solver is needed")
    rows = read_data(data, verbose=not quiet, **reading)
    assert rows.y is not None
    posed = pose(rows.X, rows.y, **model)
    problem = posed.problem
    if posed.count > 1:
        raise ValueError(
            f"--loss {problem.loss.name}: {posed.count} labels make {posed.count} problems, each "
            "class against the rest, and compare runs one; use --loss multinomial, or data of two "
            "labels"
        )
    _check_limits(problem, limits["tol"], limits["max_passes"], limits["max_seconds"], 0)
    who = contenders(solvers, problem)
    posed.describe(err)

    @contextmanager
    def watch(label):
        with ProgressLine(label, limits["tol"], err) as line:
            yield line.update

    runs = compare(problem, who, seeds=seeds, **limits, watch=None if quiet else watch)
    loss = problem.loss.name.replace("_", " ")
    name = "standard input" if data == STANDARD else Path(data).name
    l1, l2 = (problem.penalty.given[weight] for weight in ("l1", "l2"))
    title = f"{name}: {loss}, l2 = {l2:.4g}" + (f", l1 = {l1:.4g}" if l1 else "")
    settings = {
        "data": data,
        **{option: value for option, value in reading.items() if value},
        **model,
        **limits,
        "seeds": seeds,
        "solvers": ", ".join(c.label for c in who),
    }
    settings |= {"loss": problem.loss.name, "l2": l2}
    outputs: list[tuple[Path | None, Callable[[Path], bytes]]] = [
        (csv, lambda _: as_csv(runs).encode()),
        *((plot, lambda path: _drawn(runs, limits["tol"], title, path)) for plot in plots),
        (
            report,
            lambda _: _rendered(runs, problem, title, settings, _command(data, who, settings)),
        ),
    ]
    failure = None
    for path, make in outputs:
        if path is not None:
            try:
                with to_file(path) as place, replacing(place) as file:
                    file.write(make(path))
                if named(path):
                    err.print(f"written: {path}", markup=False, soft_wrap=True)
            except OSError as error:  # a full disk: what can still be written is
                failure = failure or error
    # after the files: nobody may be reading this
    if out is None:
        write_out(as_json(_facts(runs, problem, data, limits)).encode())
    else:
        _print(out, runs, limits["tol"])
    if failure is not None:
        raise failure
    if runs[-1].result.status == "interrupted":
        return INTERRUPTED
    return 0 if any(r.result.converged for r in runs) else NOT_CONVERGED


def _check_files(data: Path, report: Path | None, csv: Path | None, plots: list[Path]) -> None:
    """What could fail after the runs is tried before them."""
    check_outputs([data], report=named(report), csv=named(csv))
    for plot in plots:
        check_outputs(plot=plot)
    if plots:
        from .plots import check

        for path in plots:
            check(path)


def _drawn(runs, tol: float, title: str, path: Path) -> bytes:
    from .plots import draw

    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder, f"picture{path.suffix}")
        draw(runs, tol, title, picture)
        return picture.read_bytes()


def _rendered(runs, problem, title: str, settings: dict, command: str) -> bytes:
    from .html import render

    return render(runs, problem, title=title, settings=settings, command=command).encode()


def _print(out: Console, runs, tol: float) -> None:
    rows = summarise(runs)
    promised = any(row.theory is not None for row in rows)
    table = Table(box=None, pad_edge=False)
    table.add_column("solver", min_width=max(len(row.label) for row in rows), no_wrap=True)
    for kind in ("passes", "time (s)"):
        for level in LEVELS:
            table.add_column(f"{kind} to {_power(level)}", justify="right")
    if promised:
        table.add_column(f"theory to {_power(tol)}", justify="right")
    table.add_column("relative gap", justify="right")
    for row in rows:
        cells = ["-" if entry is None else f"{entry[0]:g}" for entry in row.passes]
        cells += ["-" if entry is None else f"{entry[0]:.2g}" for entry in row.seconds]
        if promised:
            cells.append("-" if row.theory is None else f"{row.theory}")
        table.add_row(row.label, *cells, f"{row.relative_gap:.2e}")
    out.print(table)


def _facts(runs, problem, data: str, limits: dict) -> dict:
    """The table for machines: medians over the seeds; None where a run did not get there."""
    return {
        "data": data,
        "problem": card(problem),
        **limits,
        "solvers": [
            {
                "solver": row.label,
                "runs": row.runs,
                "passes": row.total[0],
                "seconds": row.total[1],
                "passes_to": _medians(row.passes),
                "seconds_to": _medians(row.seconds),
                "primal": row.primal,
                "dual": row.dual,
                "relative_gap": row.relative_gap,
                "status": row.status,
            }
            for row in summarise(runs)
        ],
    }


def _medians(entries) -> dict:
    return {_power(level): entry and entry[0] for level, entry in zip(LEVELS, entries, strict=True)}


def _power(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-")


def _command(data: str, who, settings: dict) -> str:
    """The command that gives these runs again."""
    words = ["adacoord", "compare", data, "--solvers", ",".join(c.label for c in who)]
    for name in ("target", "loss", "l1", "l2", "tol", "max_passes", "max_seconds", "seeds"):
        value = settings.get(name)
        if value is not None and value != {"l1": 0.0, "seeds": 1}.get(name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--zero-based"] * ("zero_based" in settings)
    words += ["--positive"] * settings["positive"]
    words += ["--no-intercept"] * (not settings["intercept"])
    return shlex.join(words)
