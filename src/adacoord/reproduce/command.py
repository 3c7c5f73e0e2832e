"""``adacoord reproduce``: run entries, print their verdicts, leave figures and the page."""

from __future__ import annotations

import json
from datetime import date
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

from .. import __version__
from ..io.writing import check_outputs, replacing
from . import entries, page
from .entry import Entry
from .lab import Lab, Missing

NORMALIZE = ("rows", "mean", "none")


def listing(out: Console) -> None:
    """Print what there is."""
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("what it shows")
    for entry in entries().values():
        table.add_row(entry.name, f"{entry.title}: {entry.claim}")
    out.print(table)


def run(
    out: Console,
    err: Console,
    *,
    names: list[str],
    quick: bool,
    normalize: str | None,
    output: Path,
) -> None:
    """Run the entries; what is done stays, also after Ctrl-C."""
    known = entries()
    chosen = _chosen(names, known)
    if normalize is not None and normalize not in NORMALIZE:
        raise ValueError(f"--normalize {normalize}: it must be one of {', '.join(NORMALIZE)}")
    if find_spec("matplotlib") is None:
        raise ValueError('figures need matplotlib; install it with pip install "adacoord[plot]"')
    if not output.is_dir():
        raise ValueError(f"--output {output}: there is no such folder to write to")
    folder = output / "reproduction"
    folder.mkdir(exist_ok=True)
    for target in (folder.with_suffix(".md"), *(folder / f"{entry.name}.json" for entry in chosen)):
        check_outputs(output=target)
    lab = Lab(quick, normalize)
    settings = ["--quick"] * quick + ([f"--normalize {normalize}"] if normalize else [])
    for k, entry in enumerate(chosen):
        lab.tell = partial(_tell, err, f"{k + 1}/{len(chosen)}  {entry.name}")
        lab.tell(entry.title)
        began, about = (
            perf_counter(),
            {
                "command": " ".join(["adacoord reproduce", entry.name, *settings]),
                "date": date.today().isoformat(),
                "version": __version__,
                "quick": quick,
            },
        )
        lab.remarks = []
        try:
            findings = entry.run(lab)
        except Missing as error:
            kept = page.missing(entry, f"{error}.", about | {"seconds": 0.0})
        else:
            if findings.panels:
                from .figures import draw

                draw(findings.panels, folder / f"{entry.name}.svg")
            kept = page.record(
                entry, findings, lab.remarks, about | {"seconds": perf_counter() - began}
            )
        with replacing(folder / f"{entry.name}.json") as file:
            file.write(f"{json.dumps(kept, indent=1)}\n".encode())
        path = page.write(folder, list(known))
        _print(out, kept)
    err.print(f"written: {path}", markup=False, soft_wrap=True)


def _tell(err: Console, head: str, text: str) -> None:
    err.print(f"{head}: {text}", markup=False, soft_wrap=True)


def _chosen(names: list[str], known: dict[str, Entry]) -> list[Entry]:
    if not names:
        raise ValueError("no entry was named; use all, or some of: " + ", ".join(known))
    if "all" in names:
        return list(known.values())
    wrong = [name for name in names if name not in known]
    if wrong:
        raise ValueError(
            f"{wrong[0]}: there is no such entry; use all, or some of: " + ", ".join(known)
        )
    return [known[name] for name in dict.fromkeys(names)]


def _print(out: Console, kept: dict) -> None:
    verdicts = "; ".join(
        f"{verdict} ({variant})" if len(kept["verdicts"]) > 1 else verdict
        for variant, verdict in kept["verdicts"].items()
    )
    out.print(
        f"{kept['name']}: {verdicts}  [{kept['seconds']:.0f} s]", markup=False, soft_wrap=True
    )
    for rule in kept["rules"]:
        mark = "+" if rule["holds"] else "-"
        out.print(
            f"  {mark} {rule['text']}: {page.show(rule['measured'])} ({rule['bound']}; "
            f"{rule['variant']})",
            markup=False,
            soft_wrap=True,
        )
    for text in kept["remarks"]:
        out.print(f"    {text}", markup=False, soft_wrap=True)
