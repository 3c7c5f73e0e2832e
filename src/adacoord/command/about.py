"""What ``adacoord info`` tells: the installation, or a model file."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import numpy as np

from .. import __version__


def installation() -> dict[str, Any]:
    """Versions, the kernels' cache (None where it cannot be written), losses and solvers."""
    from ..kernels.store import can_write, kernel_folder
    from ..problem.losses import BLOCK_LOSSES, LOSSES
    from ..solvers.registry import SOLVERS

    folder = kernel_folder()
    packages = ("numpy", "scipy", "numba", "scikit-learn", "rich", "typer")
    return {
        "adacoord": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version(name) for name in packages},
        "kernels": folder if folder and can_write(folder) else None,
        "losses": [*LOSSES, *BLOCK_LOSSES],
        "solvers": {entry.name: entry.summary for entry in SOLVERS.values()},
    }


def describe_installation(facts: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    from ..kernels.store import kernel_folder

    yield f"adacoord {facts['adacoord']}, Python {facts['python']}, {facts['platform']}"
    yield ", ".join(f"{name} {number}" for name, number in facts["packages"].items())
    yield (
        f"kernels cached in {facts['kernels']}"
        if facts["kernels"]
        else f"kernels are not cached: {kernel_folder() or 'the home folder'} cannot be written "
        "to; set ADACOORD_CACHE to a folder of yours"
    )
    yield f"losses: {', '.join(facts['losses'])}"
    yield "solvers: " + ", ".join(f"{name} ({says})" for name, says in facts["solvers"].items())


def about_model(model: Any) -> dict[str, Any]:
    """What a fitted estimator holds, and the certificate it carries."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    facts = {
        "estimator": type(model).__name__,
        "params": model.get_params(),
        "coefficients": coef.size,
        "nonzero": np.count_nonzero(coef),
        "intercept": model.intercept_,
    }
    for name, attribute in (
        ("features", "feature_names_in_"),
        ("target", "target_name_"),
        ("classes", "classes_"),
        ("relative_gap", "relative_gap_"),
        ("passes", "n_iter_"),
        ("solver", "solver_"),
    ):
        if hasattr(model, attribute):
            facts[name] = getattr(model, attribute)
    return facts


def describe_model(name: str, facts: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    from ..io.posing import shown

    params = ", ".join(f"{key}={value!r}" for key, value in facts["params"].items())
    yield f"{name}: {facts['estimator']}({' '.join(params.split())})"
    yield (
        f"{facts['nonzero']} of {facts['coefficients']} coefficients are not zero, intercept "
        f"{_numbers(facts['intercept'])}"
    )
    if "features" in facts:
        of = f", of the target {facts['target']}" if facts.get("target") else ""
        yield f"{len(facts['features'])} features: {shown(facts['features'])}{of}"
    if "classes" in facts:
        yield f"{facts['classes'].size} classes: {shown(facts['classes'])}"
    if "relative_gap" in facts:
        yield (
            f"relative gap: {_numbers(facts['relative_gap'])}"
            if np.isfinite(facts["relative_gap"]).any()
            else "no certificate (there is none without a penalty)"
        )
    for key in ("passes", "solver"):
        if key in facts:
            yield f"{key}: {_numbers(facts[key])}"


def _numbers(values) -> str:
    return ", ".join(v if isinstance(v, str) else f"{v:.6g}" for v in np.atleast_1d(values).flat)
