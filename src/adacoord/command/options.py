"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

_DATA = (
    "a table (.csv, .tsv, .parquet), .npy, .npz, or svmlight text; text may be .gz, .bz2, .xz; a "
    "store, made by convert; the name of a data set, such as a9a; - for standard input"
)

Train = Annotated[str, typer.Argument(metavar="DATA", help=_DATA)]
Data = Annotated[str, typer.Argument(metavar="DATA", help="as for fit")]
Model = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="a model file, by fit or by save_model; - for stdin"),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="what holds the targets: a column of the table, a .npy file for .npy and .npz",
    ),
]
KnownTarget = Annotated[
    str | None,
    typer.Option(metavar="COLUMN|FILE", help="as for fit; default: the column fit was told of"),
]
ZeroBased = Annotated[
    bool, typer.Option("--zero-based", help="the first column of svmlight text has index 0")
]
Loss = Annotated[
    str | None,
    typer.Option(help="default: logistic on two labels, multinomial on a few, squared otherwise"),
]
L1 = Annotated[float, typer.Option(help="weight of |x|_1")]
L2 = Annotated[
    float | None, typer.Option(help="weight of |x|^2/2; default 1/n, or 0 if l1 is given")
]
Positive = Annotated[bool, typer.Option("--positive", help="only x >= 0")]
Intercept = Annotated[bool, typer.Option(help="fit an unpenalised intercept")]
Tol = Annotated[float, typer.Option(help="relative duality gap to reach")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object in place of text")]
