"""``adacoord fit``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .consoles import INTERRUPTED, NOT_CONVERGED, console_beside, err, say

if TYPE_CHECKING:
    from ..io.posing import Posed
    from ..io.reading import Data


def fit(
    train: options.Train,
    target: options.Target = None,
    loss: options.Loss = None,
    l1: options.L1 = 0.0,
    l2: options.L2 = None,
    C: Annotated[
        float | None, typer.Option("--C", help="liblinear's C in place of l2, which is 1/(n C)")
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(metavar="WEIGHTS", help="balanced, or label:weight,... (1 for all others)"),
    ] = None,
    cv: Annotated[
        int | None,
        typer.Option(metavar="FOLDS", help="choose the penalty on so many folds: 13 around it"),
    ] = None,
    positive: options.Positive = False,
    intercept: options.Intercept = True,
    solver: Annotated[str, typer.Option(help="auto, apdc, spdc, dcd, ...: see info")] = "auto",
    tol: options.Tol = 1e-6,
    max_passes: Annotated[int, typer.Option(help="passes over the data at the most")] = 1000,
    seed: Annotated[int, typer.Option(help="seed of the random order", min=0, max=2**32 - 1)] = 0,
    model: Annotated[
        Path | None, typer.Option(help="write the model here; - for standard output")
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="DATA", help="data of any kind to evaluate on")
    ] = None,
    zero_based: options.ZeroBased = False,
    n_jobs: Annotated[
        int | None, typer.Option(help="threads, -1 for all cores: same model for 1, 2, 4, ...")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="of a Dask cluster that is to work on the rows"),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="keep the state of the training here; one that is there needs --resume"),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(help="seconds between two checkpoints", min=0.0)
    ] = 60.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on from the checkpoint, if there is one")
    ] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Train on data, print the certificate, write the model.

    Without --loss the targets decide, and what is trained is printed.  Words are labels.  Two
    whole numbers are labels.  Three to 100 whole numbers, each on 5 rows or more, are labels too.
    All other numbers are quantities.  Two labels: logistic regression; several: multinomial;
    quantities: ridge regression (the lasso with --l1).  Of several labels, the losses of margins
    (logistic, hinge, squared_hinge, smooth_hinge) tell each from the rest.

    The model of a table knows its columns by name: predict and certify find them in any order.
    """
    from ..exceptions import CheckpointWarning, ConvergenceWarning
    from ..io import save_model
    from ..io.facts import as_json
    from ..io.standard import check_once, named, to_file, write_out
    from ..io.writing import check_outputs
    from .judging import certificates, predict, score
    from .training import keeping, make_estimator, noting_interrupts, working

    # What could fail after the training is tried before it.
    text = console_beside(json, model=model)
    check_once(train, test)
    inputs = [Path(source) for source in (train, test) if source is not None]
    check_outputs(inputs, model=named(model), checkpoint=checkpoint)
    if model is not None and checkpoint == model:
        raise ValueError(f"--checkpoint {checkpoint}: the model goes there; name another file")
    _check_search(cv, scheduler, checkpoint)
    with keeping(checkpoint, checkpoint_every, resume), working(n_jobs, scheduler):
        data, held_out, posed = _posed(
            train,
            test,
            {"target": target, "zero_based": zero_based, "n_jobs": n_jobs, "verbose": not quiet},
            {
                "loss": loss,
                "l1": l1,
                "l2": l2,
                "C": C,
                "class_weight": class_weight,
                "positive": positive,
                "intercept": intercept,
            },
        )
        assert data.y is not None
        _check_limits(posed, solver, tol, max_passes, seed)
        posed.describe(err)
        fitted: Any = make_estimator(
            posed, solver=solver, tol=tol, max_passes=max_passes, seed=seed
        )
        chosen = None
        with warnings.catch_warnings(record=True) as caught, noting_interrupts() as interrupts:
            warnings.simplefilter("always", ConvergenceWarning)
            warnings.simplefilter("always", CheckpointWarning)
            fitted.set_params(verbose=int(not quiet))
            if cv is not None:
                chosen = _chosen(fitted, data, cv, seed)
                say(str(chosen), err)
                fitted.set_params(l1=chosen.l1, l2=chosen.l2)
            fitted.fit(data.X, data.y)
    fitted.set_params(verbose=0)  # not for those who fit the saved model again
    _remember(fitted, data)
    failure = None
    if model is not None:
        try:
            with to_file(model) as path:
                save_model(fitted, path)
        except OSError as error:  # a full disk: show what was found before the complaint
            failure = error
    solved = list(certificates(fitted, data.X, data.y))
    scores = {
        name: score(fitted, predict(fitted, rows.X), rows.y)
        for name, rows in (("train", data), ("test", held_out))
        if rows is not None and rows.y is not None
    }
    short = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    if json:
        facts = _facts(fitted, posed) | {
            "converged": not (short or interrupts.seen),
            "problems": [problem.facts() for problem in solved],
            **{name: found and found.facts() for name, found in scores.items()},
            "cv": chosen and chosen.facts(),
            "file": model,
        }
        write_out(as_json(facts).encode())
    else:
        for problem in solved:
            say(str(problem), text)
        for name, found in scores.items():
            say(f"{name}: {found}", text)
    for warning in caught:
        if not (interrupts.seen and issubclass(warning.category, ConvergenceWarning)):
            say(f"adacoord: {str(warning.message).replace('max_iter', 'max_passes')}", err)
    if interrupts.seen:
        resumed = "" if checkpoint is None else ", and --resume goes on"
        say(f"adacoord: interrupted; this is the best point so far{resumed}", err)
    if failure is not None:
        raise failure
    if interrupts.seen:
        raise typer.Exit(INTERRUPTED)
    if short:
        raise typer.Exit(NOT_CONVERGED)


def _posed(
    train: str, test: str | None, reading: dict, posing: dict
) -> tuple[Data, Data | None, Posed]:
    """The data, those to test on, and the problem that the first make."""
    from ..io.posing import pose, shown
    from ..io.reading import read_data
    from ..parallel.choice import count
    from .judging import strange_labels

    n_jobs = reading["n_jobs"]
    reading = reading | {"n_jobs": None if n_jobs is None else count(n_jobs)}
    data, held_out = read_data(train, **reading), None
    assert data.y is not None
    if test is not None:
        reading = reading | {"target": None, "known_target": reading["target"]}
        held_out = read_data(test, columns=data.columns, **reading)
    posed = pose(data.X, data.y, **posing)
    if held_out is not None and held_out.y is not None:
        if posed.classes is not None:
            strange = strange_labels(held_out.y, posed.classes)
            if strange.size:
                raise ValueError(
                    f"--test {test}: the file has the label {shown(strange[:1])}, and {train} "
                    f"has {shown(posed.classes)}; label both alike"
                )
        elif held_out.y.dtype == object:
            raise ValueError(
                f"--test {test}: the targets are words ({shown(held_out.y)}), and those of "
                f"{train} are quantities; give both alike"
            )
    return data, held_out, posed


def _check_limits(posed: Posed, solver: str, tol: float, max_passes: int, seed: int) -> None:
    from ..api.solve import _check_limits
    from ..solvers.registry import admit

    _check_limits(posed.problem, tol, max_passes, None, seed)
    if solver != "auto":
        admit(posed.problem, solver, {})


def _check_search(cv: int | None, scheduler: str | None, checkpoint: Path | None) -> None:
    if cv is None:
        return
    for option, value, remedy in (
        ("--scheduler", scheduler, "choose the penalty on a sample of rows, without it"),
        ("--checkpoint", checkpoint, "leave it out, or fit the chosen penalty alone"),
    ):
        if value is not None:
            raise ValueError(f"--cv {cv} beside {option} {value}: a search has none; {remedy}")


def _chosen(fitted: Any, data: Data, cv: int, seed: int) -> Any:
    from .search import choose

    assert data.y is not None
    if hasattr(data.X, "bounds"):
        raise ValueError(
            f"--cv {cv}: folds are picked from rows in memory, and those of a store are on disk; "
            "give the file it was made of, or choose the penalty on a part of it"
        )
    if not fitted.l1 and not fitted.l2:
        raise ValueError(f"--cv {cv}: there is no penalty to choose; give --l2 or --l1 above 0")
    return choose(fitted, data.X, data.y, cv, seed)


def _remember(fitted: Any, data: Data) -> None:
    """Names of columns, for those who predict from tables."""
    import numpy as np

    if data.columns is not None:
        fitted.feature_names_in_ = np.array(data.columns, dtype=object)
        fitted.target_name_ = data.target


def _facts(fitted: Any, posed: Posed) -> dict[str, Any]:
    """What was trained, for machines."""
    return {
        "trained": posed.model,
        "estimator": type(fitted).__name__,
        "loss": fitted.loss,
        "l1": fitted.l1,
        "l2": fitted.l2,
        "rows": posed.problem.n,
        "columns": posed.problem.d,
        "classes": posed.classes,
    }
