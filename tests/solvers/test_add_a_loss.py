"""CONTRIBUTING's recipe, followed: ``log_cosh`` was added by it, and every solver takes it.

The optima are SciPy's, from the two lines of ``reference.py`` that the recipe asks for.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import reference
from scipy import sparse

import adacoord as ac
from adacoord.solvers.registry import SOLVERS, admit

LOSS = "log_cosh"
PENALTIES = {"l2": (0.0, 0.02), "l1 + l2": (0.02, 0.02), "l1": (0.05, 0.0)}
TOL = 1e-8


def data():
    """Heavy tails, so that the loss is far from a parabola; sparse rows, one of zeros."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((60, 12)) * (rng.random((60, 12)) < 0.6)
    A[9] = 0.0
    return A, A @ rng.standard_normal(12) + 0.7 + rng.standard_t(2, 60)


@cache
def optimum(penalty, intercept):
    l1, l2 = PENALTIES[penalty]
    return reference.smooth_optimum(*data(), LOSS, (l1, l2, False), intercept=intercept)[0]


def make(penalty, intercept, storage=np.asarray):
    A, b = data()
    l1, l2 = PENALTIES[penalty]
    return ac.Problem(storage(A), b, LOSS, l1, l2, intercept=intercept)


def takes(name, penalty):
    try:
        if name != "auto":
            admit(make(penalty, True), name, {})
    except ValueError:
        return False
    return True


CASES = [
    (name, penalty) for name in ("auto", *SOLVERS) for penalty in PENALTIES if takes(name, penalty)
]


def test_all_solvers_take_a_smooth_loss():
    assert {name for name, penalty in CASES if penalty == "l2"} == {"auto", *SOLVERS}
    assert {name for name, _ in CASES if _ == "l1"} >= {"auto", "acf", "cd", "apdc", "spdc"}


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("name, penalty", CASES)
def test_every_solver(name, penalty, intercept):
    best = optimum(penalty, intercept)
    for storage in (np.asarray, sparse.csr_matrix):
        result = ac.solve(make(penalty, intercept, storage), name, tol=TOL, max_passes=50_000)
        assert result.converged and result.relative_gap <= TOL
        assert result.primal == pytest.approx(best, rel=2 * TOL)
        assert result.dual <= best * (1 + 1e-12)


def test_everything_else_that_takes_a_loss(tmp_path):
    from typer.testing import CliRunner

    from adacoord.command.cli import app

    A, b = data()
    best = optimum("l2", True)
    for loss in (LOSS, ac.losses.LogCosh()):
        model = ac.ERMRegressor(loss, l2=0.02, tol=1e-8).fit(A, b)
        assert model.relative_gap_ <= 1e-8
        found = reference.objective(A, b, LOSS, (0.0, 0.02, False), model.coef_, model.intercept_)
        assert found == pytest.approx(best, rel=1e-7)
    ac.save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(ac.load_model(tmp_path / "model").predict(A), model.predict(A))
    proof = ac.certify(make("l2", True), model.coef_, model.intercept_)
    assert proof.relative_gap <= 1e-7
    path = ac.path(make("l2", True), l2=[0.1, 0.02], tol=1e-8)
    assert path.converged.all() and path.primal[-1] == pytest.approx(best, rel=1e-7)
    ac.io.save_svmlight(tmp_path / "train.svm", sparse.csr_matrix(A), b)
    arguments = ["fit", str(tmp_path / "train.svm"), "--loss", LOSS, "--l2", "0.02"]
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 0
    assert float(run.stdout.split()[1].rstrip(",")) == pytest.approx(best, rel=1e-5)
