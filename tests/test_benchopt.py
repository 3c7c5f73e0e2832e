"""The solver files for benchopt's benchmarks minimise what those benchmarks evaluate."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

FOLDER = Path(__file__).parents[1] / "benchmarks" / "benchopt"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
Z = X @ [1.0, -2.0, 0.0, 0.5] + RNG.standard_normal(60) + 1.0
Y = np.where(Z > 1.0, 1.0, -1.0)

pytestmark = pytest.mark.slow


def squares(t):
    return 0.5 * np.sum((Z - X @ t[:4] - t[4:].sum()) ** 2)


def pinball(t, q):
    r = Z - X @ t[:4] - t[4:].sum()
    return np.mean(np.maximum(q * r, (q - 1.0) * r))


def logistic(t):
    return np.sum(np.logaddexp(0.0, -Y * (X @ t[:4] + t[4:].sum())))


def norm1(t):
    return np.abs(t[:4]).sum()


def norm2(t):
    return 0.5 * np.sum(t[:4] ** 2)


#: name: (arguments of set_objective, targets, the objective as the benchmark writes it, intercept)
CASES = {
    "lasso": ({"lmbd": 3.0}, Z, lambda t: squares(t) + 3.0 * norm1(t), True),
    "ridge": ({"lmbd": 3.0}, Z, lambda t: squares(t) + 3.0 * norm2(t), True),
    "elastic_net": (
        {"lmbda": 0.1, "l1_ratio": 0.3},
        Z,
        lambda t: squares(t) / 60 + 0.1 * (0.3 * norm1(t) + 0.7 * norm2(t)),
        True,
    ),
    "logreg_l1": ({"lmbd": 2.0}, Y, lambda t: logistic(t) + 2.0 * norm1(t), False),
    "logreg_l2": ({"lmbd": 2.0}, Y, lambda t: logistic(t) + 2.0 * norm2(t), True),
    "linear_svm": (
        {"C": 0.1},
        Y,
        lambda t: 0.1 * np.sum(np.maximum(0.0, 1.0 - Y * (X @ t))) + norm2(t),
        False,
    ),
    "quantile": (
        {"lmbd": 0.05, "quantile": 0.8},
        Z,
        lambda t: pinball(t, 0.8) + 0.05 * norm1(t),
        True,
    ),
}


def test_every_file_has_its_case():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_solver(name):
    pytest.importorskip("benchopt", reason="needs pip install benchopt")
    arguments, y, objective, intercept = CASES[name]
    spec = importlib.util.spec_from_file_location(f"bench_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    solver = module.Solver()
    more = {"fit_intercept": intercept} if name not in ("logreg_l1", "linear_svm") else {}
    solver.set_objective(X=X, y=y, **arguments, **more)
    solver.run(1e-10)
    found = solver.get_result()["beta"]
    assert found.shape == (4 + intercept,)
    # nobody who starts there finds anything better
    for seed in range(3):
        start = found + 1e-3 * np.random.default_rng(seed).standard_normal(found.size)
        other = minimize(objective, start, method="Nelder-Mead", options={"maxfev": 4000})
        assert objective(found) <= other.fun + 1e-8 * abs(other.fun)
