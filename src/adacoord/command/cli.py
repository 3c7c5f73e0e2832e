"""The command line: ``adacoord`` demo, fit, predict, certify, compare, reproduce, convert,
warmup, info.

Exit codes: 0 done, 1 nobody reads the output any more, 2 bad input (one line on stderr), 3 not
converged (the result is still written), 130 interrupted (the best point so far is still written).

What people are told stands on standard output, or on standard error where that holds a file or
JSON; progress and warnings always on standard error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .apply import certify, predict
from .consoles import BAD_INPUT, CLOSED_PIPE, INTERRUPTED, console_beside, err, out, say
from .fit import fit

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Regularised linear models to a certified optimum.",
    epilog="Completion by the Tab key, in bash, zsh, fish and PowerShell: adacoord "
    "--install-completion, once. Exit codes: 0 done, 2 bad input, 3 not converged (the result is "
    "still written), 130 interrupted.",
)


def main() -> None:
    """Entry point: bad input is one line and exit code 2, never a traceback."""
    try:
        try:
            app()
        finally:
            _flush()
    except MemoryError:
        err.print("adacoord: not enough memory; is a column number in the file far too large?")
        sys.exit(BAD_INPUT)
    except (ValueError, OSError) as error:
        if isinstance(error, BrokenPipeError) and error.filename is None:  # standard output
            sys.exit(CLOSED_PIPE)
        say(f"adacoord: {error}", err)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        err.print("adacoord: interrupted")
        sys.exit(INTERRUPTED)


def _flush() -> None:
    """Write out what is left: what fails at Python's exit is a traceback."""
    if sys.stdout is None:  # closed by who started us
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        say(f"adacoord {__version__}")
        raise typer.Exit()


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="print it and end"),
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    quick: Annotated[
        bool, typer.Option("--quick", help="leave the race out: a second instead of half a minute")
    ] = False,
) -> None:
    """Train on bundled and generated data, show the certificates, race liblinear."""
    from .demo import run

    run(out, quick)


for command in (fit, predict, certify):
    app.command()(command)


@app.command()
def compare(
    data: options.Data,
    solvers: Annotated[
        str | None,
        typer.Option(
            help="such as spdc,spdc:adaptive,sag:step=0.25; default: the usual ones that can"
        ),
    ] = None,
    target: options.Target = None,
    loss: options.Loss = None,
    l1: options.L1 = 0.0,
    l2: options.L2 = None,
    positive: options.Positive = False,
    intercept: options.Intercept = True,
    tol: options.Tol = 1e-6,
    max_passes: Annotated[int, typer.Option(help="passes a solver may take")] = 200,
    max_seconds: Annotated[float | None, typer.Option(help="seconds a run may take")] = None,
    seeds: Annotated[int, typer.Option(help="runs of each solver, with seeds 0, 1, ...")] = 1,
    report: Annotated[Path | None, typer.Option(help="write an HTML page here")] = None,
    csv: Annotated[Path | None, typer.Option(help="write every gap check here")] = None,
    plot: Annotated[
        list[Path] | None,
        typer.Option(help="write a picture here: .png, .svg or .pdf; may be given several times"),
    ] = None,
    zero_based: options.ZeroBased = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Run several solvers on one problem, on one judge; write tables, plots and a report."""
    from ..report.command import run

    text = console_beside(json, report=report, csv=csv)
    code = run(
        None if json else text,
        err,
        data=data,
        reading={"target": target, "zero_based": zero_based},
        solvers=solvers,
        seeds=seeds,
        report=report,
        csv=csv,
        plots=plot or [],
        quiet=quiet,
        model={"loss": loss, "l1": l1, "l2": l2, "positive": positive, "intercept": intercept},
        limits={"tol": tol, "max_passes": max_passes, "max_seconds": max_seconds},
    )
    if code:
        raise typer.Exit(code)


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="all, or names that --list shows")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="what there is to reproduce")] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="smaller data, fewer settings: minutes instead of an hour"),
    ] = False,
    normalize: Annotated[
        str | None,
        typer.Option(help="rows, mean or none: scale the rows otherwise than the paper did"),
    ] = None,
    output: Annotated[Path, typer.Option(help="folder for reproduction.md and its figures")] = Path(
        "."
    ),
) -> None:
    """Run the papers' figures and tables again, and judge what they claim."""
    from ..reproduce.command import listing, run

    if show:
        listing(out)
    else:
        run(out, err, names=names or [], quick=quick, normalize=normalize, output=output)


@app.command()
def convert(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="a table (.csv, .tsv, .parquet), .npy, .npz by scipy.sparse.save_npz; any other "
            "is svmlight text; text may be .gz, .bz2, .xz; the name of a data set; - for stdin",
        ),
    ],
    store: Annotated[Path, typer.Argument(help="the folder to make")],
    target: options.Target = None,
    n_features: Annotated[
        int | None,
        typer.Option(help="columns of svmlight text; default: the largest index in it", min=1),
    ] = None,
    zero_based: options.ZeroBased = False,
    n_jobs: Annotated[
        int | None, typer.Option(help="threads that parse svmlight text", min=1)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace a store that is there")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a store of a file: a folder to train from with less memory than the data take.

    The file is read once, in bounded memory, and the store is there whole or not at all.  Its
    targets are numbers, and its columns have none of their names.
    """
    from ..io.converting import convert as make_store
    from ..io.reading import located
    from ..io.standard import named
    from .storing import describe_store, progress_bar

    if named(store) is None:
        raise ValueError("-: a store is a folder, and does not go to standard output; name one")
    with located(data, verbose=not quiet) as path, progress_bar(err, quiet) as progress:
        made = make_store(
            path,
            store,
            target=target,
            n_features=n_features,
            zero_based=zero_based,
            n_jobs=n_jobs,
            force=force,
            progress=progress,
        )
    say(describe_store(store, made))


@app.command()
def warmup() -> None:
    """Compile what the estimators need, once a machine: later fits start at once."""
    from ..kernels.store import can_write, kernel_folder
    from .warmup import run

    folder = kernel_folder()
    if folder is None or not can_write(folder):
        raise ValueError(
            f"{folder or 'the home folder'} cannot be written to, and compiled kernels would be "
            "lost; set ADACOORD_CACHE to a folder of yours"
        )
    run(err)
    say(f"Kernels are compiled and kept in {folder}")


@app.command()
def info(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="a model file to describe; - for stdin")
    ] = None,
    coefficients: Annotated[
        Path | None,
        typer.Option(
            help="write the model's coefficients here, .csv or .json; - for CSV on stdout"
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Versions, where kernels are cached, and what solvers there are; or what a model holds."""
    from ..io.facts import as_json
    from ..io.standard import as_file, named, to_file, write_out
    from . import about

    text = console_beside(json, coefficients=coefficients)
    if model is None:
        if coefficients is not None:
            raise ValueError(f"--coefficients {coefficients}: name a model file as well")
        facts = about.installation()
        lines = about.describe_installation(facts)
    else:
        from ..io import load_model, save_coefficients
        from ..io.writing import check_outputs

        check_outputs([Path(model)], coefficients=named(coefficients))
        with as_file(model) as path:
            estimator = load_model(path)
        if coefficients is not None:
            with to_file(coefficients, ".csv") as file:
                save_coefficients(estimator, file)
        facts = about.about_model(estimator)
        lines = about.describe_model(model, facts)
    if json:
        write_out(as_json(facts).encode())
    else:
        for line in lines:
            say(line, text)
