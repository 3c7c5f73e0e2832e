"""What ``adacoord info`` tells: the installation, or a model file."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

from .. import __version__


def describe_installation() -> Iterator[str]:
    """Versions, the kernels' cache, the losses and the solvers."""
    from ..kernels.loss import dual_prox
    from ..problem.losses import BLOCK_LOSSES, LOSSES
    from ..solvers.registry import SOLVERS

    yield f"adacoord {__version__}, Python {platform.python_version()}, {platform.platform()}"
    packages = ("numpy", "scipy", "numba", "scikit-learn", "rich", "typer")
    yield ", ".join(f"{name} {version(name)}" for name in packages)
    folder = getattr(dual_prox._cache, "cache_path", None)
    yield (
        f"kernels cached in {folder}"
        if folder
        else ("kernels are not cached: no folder can be written; set NUMBA_CACHE_DIR to one")
    )
    yield f"losses: {', '.join([*LOSSES, *BLOCK_LOSSES])}"
    yield "solvers: " + ", ".join(f"{e.name} ({e.summary})" for e in SOLVERS.values())


def describe_model(path: Path) -> Iterator[str]:
    """What a model file holds, and the certificate it carries."""
    from ..io import load_model
    from ..io.posing import shown

    model = load_model(path)
    params = ", ".join(f"{name}={value!r}" for name, value in model.get_params().items())
    yield f"{path}: {type(model).__name__}({' '.join(params.split())})"
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    yield (
        f"{np.count_nonzero(coef)} of {coef.size} coefficients are not zero, intercept "
        f"{_numbers(model.intercept_)}"
    )
    if hasattr(model, "classes_"):
        yield f"{model.classes_.size} classes: {shown(model.classes_)}"
    if hasattr(model, "relative_gap_"):
        yield (
            f"relative gap: {_numbers(model.relative_gap_)}"
            if np.isfinite(model.relative_gap_).any()
            else "no certificate (there is none without a penalty)"
        )
    for name, attribute in (("passes", "n_iter_"), ("solver", "solver_")):
        if hasattr(model, attribute):
            yield f"{name}: {_numbers(getattr(model, attribute))}"


def _numbers(values) -> str:
    return ", ".join(v if isinstance(v, str) else f"{v:.6g}" for v in np.atleast_1d(values).flat)
