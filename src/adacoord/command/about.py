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
    yield f"kernels cached in {folder}" if folder else (
        "kernels are not cached: no folder can be written; set NUMBA_CACHE_DIR to one"
    )
    yield f"losses: {', '.join([*LOSSES, *BLOCK_LOSSES])}"
    yield "solvers: " + ", ".join(f"{e.name} ({e.summary})" for e in SOLVERS.values())


def describe_model(path: Path) -> Iterator[str]:
    """What a model file holds, and the certificate it carries."""
    from ..io import Model, load_model

    model = load_model(path)
    if not isinstance(model, Model):
        yield from _describe_estimator(path, model)
        return
    parameter = "" if model.loss_parameter is None else f"({model.loss_parameter:g})"
    yield (
        f"{path}: {model.loss}{parameter}, l1={model.l1:g}, l2={model.l2:g}"
        f"{', positive' * model.positive}"
    )
    yield (
        f"{np.count_nonzero(model.coef)} of {model.coef.size} coefficients are not zero, "
        f"intercept {model.intercept:g}"
    )
    if model.classes is not None:
        yield f"classes {model.classes[0]:g} and {model.classes[1]:g}"
    for name, value in model.certificate.items():
        yield f"{name}: {value:.10g}" if isinstance(value, float) else f"{name}: {value}"


def _describe_estimator(path: Path, model) -> Iterator[str]:
    yield f"{path}: {' '.join(repr(model).split())}"
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    yield f"{np.count_nonzero(coef)} of {coef.size} coefficients are not zero"
    if hasattr(model, "classes_"):
        yield "classes " + ", ".join(map(str, model.classes_))
    for name in ("relative_gap_", "n_iter_", "solver_"):
        if hasattr(model, name):
            yield f"{name[:-1]}: {getattr(model, name)}"
