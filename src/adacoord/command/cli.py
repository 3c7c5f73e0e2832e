"""The command line: ``adacoord demo | fit | predict | certify | compare | reproduce | info``.

Exit codes: 0 done, 1 nobody reads the output any more, 2 bad input (one line on stderr), 3 not
converged (the result is still written), 130 interrupted (the best point so far is still written).
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Regularised linear models to a certified optimum.",
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

CLOSED_PIPE, BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 1, 2, 3, 130


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
        err.print(f"adacoord: {error}", markup=False, soft_wrap=True)
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


@app.command()
def demo() -> None:
    """Train on bundled and generated data, show the certificates, race liblinear."""
    from .demo import run

    run(out)


@app.command()
def fit(
    train: Annotated[Path, typer.Argument(help="svmlight file; .gz, .bz2, .xz are read too")],
    loss: Annotated[
        str | None,
        typer.Option(
            help="default: logistic on two labels, multinomial on a few, squared otherwise"
        ),
    ] = None,
    l1: Annotated[float, typer.Option(help="weight of |x|_1")] = 0.0,
    l2: Annotated[
        float | None, typer.Option(help="weight of |x|^2/2; default 1/n, or 0 if l1 is given")
    ] = None,
    positive: Annotated[bool, typer.Option("--positive", help="only x >= 0")] = False,
    intercept: Annotated[bool, typer.Option(help="fit an unpenalised intercept")] = True,
    solver: Annotated[str, typer.Option(help="auto, apdc, spdc, dcd, ...: see info")] = "auto",
    tol: Annotated[float, typer.Option(help="relative duality gap to reach")] = 1e-6,
    max_passes: Annotated[int, typer.Option(help="passes over the data at the most")] = 1000,
    seed: Annotated[int, typer.Option(help="seed of the random order", min=0, max=2**32 - 1)] = 0,
    model: Annotated[Path | None, typer.Option(help="write the model here")] = None,
    test: Annotated[Path | None, typer.Option(help="svmlight file to evaluate on")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress line")] = False,
) -> None:
    """Train on a file, print the certificate, write the model.

    Without --loss the targets decide.  Two whole numbers are labels: logistic.  Three to 100 whole
    numbers, each on 5 rows or more, are labels too: multinomial.  All others are quantities:
    squared.  What was assumed of three whole numbers or more is printed.  Of several labels, the
    losses of margins (logistic, hinge, squared_hinge, smooth_hinge) tell each from the rest.
    """
    from ..api.solve import _check_limits
    from ..exceptions import ConvergenceWarning
    from ..io import load_svmlight, save_model
    from ..io.posing import pose, shown
    from ..io.writing import check_outputs
    from ..solvers.registry import admit
    from .training import (
        certificates,
        evaluate,
        make_estimator,
        noting_interrupts,
        strange_labels,
    )

    # What could fail after the training is tried before it.
    check_outputs([train, test], model=model)
    A, targets = load_svmlight(train)
    held_out = None if test is None else load_svmlight(test)
    posed = pose(A, targets, loss=loss, l1=l1, l2=l2, positive=positive, intercept=intercept)
    if held_out is not None and posed.classes is not None:
        strange = strange_labels(held_out[1], posed.classes)
        if strange.size:
            raise ValueError(
                f"--test {test}: the file has the label {strange[0]:g}, and {train} "
                f"has {shown(posed.classes)}; label both alike"
            )
    _check_limits(posed.problem, tol, max_passes, None, seed)
    if solver != "auto":
        admit(posed.problem, solver, {})
    posed.describe(err)
    fitted = make_estimator(posed, solver=solver, tol=tol, max_passes=max_passes, seed=seed)
    with warnings.catch_warnings(record=True) as caught, noting_interrupts() as interrupts:
        warnings.simplefilter("always", ConvergenceWarning)
        fitted.set_params(verbose=int(not quiet)).fit(A, targets)
    fitted.set_params(verbose=0)  # not for those who fit the saved model again
    failure = None
    if model is not None:
        try:
            save_model(fitted, model)
        except OSError as error:  # a full disk: show what was found before the complaint
            failure = error
    for line in certificates(fitted, A, targets):
        out.print(line, markup=False, soft_wrap=True)
    out.print(f"train: {evaluate(fitted, A, targets)}")
    if held_out is not None:
        out.print(f"test: {evaluate(fitted, *held_out)}")
    if interrupts.seen:
        err.print("adacoord: interrupted; this is the best point so far", soft_wrap=True)
    else:
        for warning in caught:
            text = str(warning.message).replace("max_iter", "max_passes")
            err.print(f"adacoord: {text}", markup=False, soft_wrap=True)
    if failure is not None:
        raise failure
    if interrupts.seen:
        raise typer.Exit(INTERRUPTED)
    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        raise typer.Exit(NOT_CONVERGED)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="a model file, by fit or by save_model")],
    data: Annotated[Path, typer.Argument(help="svmlight file")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="one prediction a line; default: standard output"),
    ] = None,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba",
            help="probability of the second class, or of each if there are more than "
            "two (logistic and multinomial only)",
        ),
    ] = False,
) -> None:
    """Predict with a saved model; labels of the file are ignored."""
    from ..io import load_model, load_svmlight
    from ..io.writing import check_outputs, replacing
    from .training import in_lines, predictions

    check_outputs([model, data], output=output)
    text = in_lines(predictions(load_model(model), load_svmlight(data)[0], proba))
    if output is not None:
        with replacing(output) as file:
            file.write(text.encode())
    elif sys.stdout is not None:
        sys.stdout.write(text)


@app.command()
def certify(
    model: Annotated[Path, typer.Argument(help="a model file, by fit or by save_model")],
    train: Annotated[Path, typer.Argument(help="svmlight file with the data it was trained on")],
    effort: Annotated[
        int, typer.Option(help="passes to spend on the proof, where the loss has kinks")
    ] = 10,
) -> None:
    """How far from optimal a saved model is on its training data, provably."""
    from ..api.certify import certify as bound
    from ..io import load_model, load_svmlight
    from .training import points_of

    for name, problem, x, intercept in points_of(load_model(model), *load_svmlight(train)):
        found = bound(problem, x, intercept, effort=effort)
        out.print(
            f"{name}objective {found.primal:.10g}. {found.note}", markup=False, soft_wrap=True
        )


@app.command()
def compare(
    data: Annotated[
        str,
        typer.Argument(
            help="svmlight file, or the name of a data set such as a9a (downloaded if need be)"
        ),
    ],
    solvers: Annotated[
        str | None,
        typer.Option(
            help="such as spdc,spdc:adaptive,sag:step=0.25; default: the usual ones that can"
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="default: logistic on two labels, multinomial on a few, squared otherwise"
        ),
    ] = None,
    l1: Annotated[float, typer.Option(help="weight of |x|_1")] = 0.0,
    l2: Annotated[
        float | None, typer.Option(help="weight of |x|^2/2; default 1/n, or 0 if l1 is given")
    ] = None,
    positive: Annotated[bool, typer.Option("--positive", help="only x >= 0")] = False,
    intercept: Annotated[bool, typer.Option(help="fit an unpenalised intercept")] = True,
    tol: Annotated[float, typer.Option(help="relative duality gap to reach")] = 1e-6,
    max_passes: Annotated[int, typer.Option(help="passes a solver may take")] = 200,
    max_seconds: Annotated[float | None, typer.Option(help="seconds a run may take")] = None,
    seeds: Annotated[int, typer.Option(help="runs of each solver, with seeds 0, 1, ...")] = 1,
    report: Annotated[Path | None, typer.Option(help="write an HTML page here")] = None,
    csv: Annotated[Path | None, typer.Option(help="write every gap check here")] = None,
    plot: Annotated[
        list[Path] | None,
        typer.Option(help="write a picture here: .png, .svg or .pdf; may be given several times"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Run several solvers on one problem, on one judge; write tables, plots and a report."""
    from ..report.command import run

    code = run(
        out,
        err,
        data=data,
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
def info(
    model: Annotated[Path | None, typer.Argument(help="a model file to describe")] = None,
) -> None:
    """Versions, where kernels are cached, and what solvers there are; or what a model holds."""
    from .about import describe_installation, describe_model

    for line in describe_installation() if model is None else describe_model(model):
        out.print(line, markup=False, soft_wrap=True)
