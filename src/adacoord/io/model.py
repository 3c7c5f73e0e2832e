"""Model files: fitted estimators, saved and loaded.

A file is a digested npz (see :mod:`adacoord.io.digested`), arrays and JSON.  Loading one checks the
digest first and never runs code.

======  ==========================================================================================
format  what it holds
======  ==========================================================================================
3       a fitted estimator (:mod:`adacoord.io.fitted`): what is written
2       the same, by 0.1.0
1       the plain numbers that the command line of 0.1.0 trained (:mod:`adacoord.io.plain`)
======  ==========================================================================================
"""

from __future__ import annotations

import os
from typing import Any

from .digested import read_digested, write_digested

_KIND = "MODEL"
_PLAIN, _NEWEST = 1, 3


def save_model(model: Any, path: str | os.PathLike) -> None:
    """Write ``model`` to ``path`` in one step: a killed process leaves the old file whole.

    Parameters
    ----------
    model : fitted estimator
        Any estimator of adacoord, with its parameters and all that ``fit`` left behind.
    path : str or path-like
        The same model always gives the same bytes.
    """
    from .fitted import dismantle, is_estimator

    if not is_estimator(model):
        raise ValueError(
            f"model={type(model).__name__}: save_model takes a fitted estimator of "
            "adacoord; for others use their own library"
        )
    write_digested(path, _KIND, _NEWEST, *dismantle(model))


def load_model(path: str | os.PathLike) -> Any:
    """Read a model file, of this version of adacoord or of an earlier one.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    fitted estimator
        What was saved.

    Raises
    ------
    ValueError
        If the file is not a model file, is damaged, or was written by a newer adacoord.
    """
    version, arrays, facts = read_digested(path, _KIND, _NEWEST)
    from .fitted import assemble, check_fitted
    from .plain import assemble_plain

    try:
        model = assemble_plain(arrays, facts) if version == _PLAIN else assemble(arrays, facts)
        check_fitted(model)
    except Exception as error:  # content that nobody's program wrote raises whatever it likes
        lacking = isinstance(error, KeyError)
        reason = f"it lacks {error}" if lacking else str(error) or type(error).__name__
        raise ValueError(
            f"{os.fspath(path)}: the digest of this file is right but it does not "
            f"hold a model ({reason}); save the model again"
        ) from error
    return model
