"""``adacoord predict`` and ``adacoord certify``: what a saved model says, and how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .consoles import err, say


def predict(
    model: options.Model,
    data: options.Data,
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
    target: options.KnownTarget = None,
    zero_based: options.ZeroBased = False,
    json: options.Json = False,
) -> None:
    """Predict with a saved model, and say how good it is where the data have targets.

    One prediction a line: the label, as it stands in the training data, or a number.  Accuracy (or
    R^2) is printed on standard error.  Columns of a table are found by their names.
    """
    from ..io.facts import as_json
    from ..io.standard import check_once, named, write_out
    from ..io.writing import check_outputs, replacing
    from . import judging

    check_once(model, data)
    output = named(output)
    check_outputs([Path(model), Path(data)], output=output)
    estimator = _loaded(model)
    rows = judging.data_for(estimator, data, needed=False, target=target, zero_based=zero_based)
    predicted = judging.predict(estimator, rows.X)
    likely = judging.probabilities(estimator, rows.X) if proba else None
    found = None if rows.y is None else judging.score(estimator, predicted, rows.y)
    if json:
        text = as_json(
            {
                "predictions": predicted,
                **({} if likely is None else {"probabilities": likely}),
                **({} if found is None else {"score": found.facts()}),
            }
        )
    else:
        text = judging.in_lines(predicted if likely is None else likely)
    if output is not None:
        with replacing(output) as file:
            file.write(text.encode())
    else:
        write_out(text.encode())
    if found is not None:
        say(str(found), err)


def certify(
    model: options.Model,
    train: Annotated[
        str, typer.Argument(metavar="DATA", help="the data it was trained on, as for fit")
    ],
    effort: Annotated[
        int, typer.Option(help="passes to spend on the proof, where the loss has kinks")
    ] = 10,
    target: options.KnownTarget = None,
    zero_based: options.ZeroBased = False,
    json: options.Json = False,
) -> None:
    """How far from optimal a saved model is on its training data, provably."""
    from ..api.certify import certify as bound
    from ..io.facts import as_json
    from ..io.standard import check_once, write_out
    from . import judging

    check_once(model, train)
    estimator = _loaded(model)
    rows = judging.data_for(estimator, train, needed=True, target=target, zero_based=zero_based)
    assert rows.y is not None
    facts = []
    for name, problem, x, intercept in judging.points_of(estimator, rows.X, rows.y):
        found = bound(problem, x, intercept, effort=effort)
        facts.append(
            {
                "problem": name.removesuffix(": "),
                "objective": found.primal,
                "bound": found.dual,
                "gap": found.gap,
                "relative_gap": found.relative_gap,
                "note": found.note,
            }
        )
        if not json:
            say(f"{name}objective {found.primal:.10g}. {found.note}")
    if json:
        write_out(as_json({"problems": facts}).encode())


def _loaded(model: str) -> Any:
    from ..io import load_model
    from ..io.standard import as_file

    with as_file(model) as path:
        return load_model(path)
