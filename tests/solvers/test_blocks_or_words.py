"""Every loss with every penalty on data in blocks of rows: the optimum, or words on what to use."""

import numpy as np
import pytest

import adacoord as ac
from adacoord.problem.losses import LOSSES

ROWS, COLUMNS = 240, 6
EVERY = [*LOSSES, "multinomial"]
KINKED = [name for name in LOSSES if not LOSSES[name]().differentiable]
PENALTIES = {
    "l2": {"l2": 1e-2},
    "l1": {"l1": 1e-2},
    "both": {"l1": 1e-2, "l2": 1e-2},
    "none": {},
    "positive": {"l2": 1e-2, "positive": True},
    "positive l1": {"l1": 1e-2, "positive": True},
    "positive alone": {"positive": True},
}
#: What is refused, and a part of the words.
NO_METHOD = "no method takes this on data in blocks of rows; "
REFUSED = {
    **{(name, "none"): NO_METHOD + "use l2 > 0, or a smooth loss" for name in KINKED},
    **{
        (name, "positive alone"): NO_METHOD
        + ("use l2 > 0, or a smooth" if name in KINKED else "add a small penalty such as l1")
        for name in LOSSES
    },
    **{
        ("multinomial", p): NO_METHOD + "use l2 alone, or a model for each class"
        for p in PENALTIES
        if p not in ("l2", "none")
    },
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(11)
    A = rng.standard_normal((ROWS, COLUMNS)) + 0.3
    z = A @ np.array([1.0, -0.5, 0.0, 0.0, 0.3, 0.0]) + rng.standard_normal(ROWS)
    return A, z


def targets(loss, z):
    return {
        "classification": np.where(z > 0.0, 1.0, -1.0),
        "multiclass": np.digitize(z, [-0.5, 0.8]).astype(float),
        "count": np.round(np.exp(z / 2)),
        "positive": np.exp(z / 2),
    }.get(ac.losses.get_loss(loss).task, z)


def pairs(A, b):
    return [(A[k : k + 100], b[k : k + 100]) for k in range(0, ROWS, 100)]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", EVERY)
def test_losses_and_penalties(rows, loss, penalty):
    A, z = rows
    b, how = targets(loss, z), PENALTIES[penalty]
    problem = ac.Problem(pairs(A, b), None, loss, intercept=True, **how)
    if (loss, penalty) in REFUSED:
        with pytest.raises(ValueError) as error:
            ac.solve(problem)
        assert REFUSED[loss, penalty] in str(error.value)
        return
    found = ac.solve(problem, tol=1e-5, max_passes=3000)
    whole = ac.Problem(A, b, loss, intercept=True, **how)
    best = ac.solve(whole, tol=1e-8)
    assert found.converged
    assert found.primal == pytest.approx(best.primal, rel=2e-5)
    assert whole.primal(found.x, found.intercept) == pytest.approx(found.primal, rel=1e-12)


@pytest.mark.parametrize("loss", EVERY)
def test_an_offset(rows, loss):
    """Of regression and log links it becomes other targets; of margins it is refused."""
    A, z = rows
    b, offset = targets(loss, z), 0.2 * A[:, 0]
    if loss == "multinomial":
        offset = np.stack([offset, -offset, 0.0 * offset], axis=1)
    how = {"l2": 1e-2, "intercept": True, "offset": offset}
    if ac.losses.get_loss(loss).task in ("classification", "multiclass"):
        with pytest.raises(ValueError, match=f'take no offset of the loss "{loss}".*as one array'):
            ac.Problem(pairs(A, b), None, loss, **how)
        return
    found = ac.solve(ac.Problem(pairs(A, b), None, loss, **how), tol=1e-6, max_passes=3000)
    best = ac.solve(ac.Problem(A, b, loss, **how), tol=1e-8)
    assert found.converged
    assert found.primal == pytest.approx(best.primal, rel=2e-6)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"l1": np.arange(6.0)}, "take one l1 and one l2 for all columns"),
        ({"l2": 1.0, "upper": 0.5}, "no bounds but positive=True; give the data as one array"),
        ({"l21": 1.0}, "take no groups of columns; give the data as one array"),
    ],
)
def test_penalties_of_single_columns(rows, how, words):
    with pytest.raises(ValueError, match=words):
        ac.Problem(pairs(*rows), **how)


def test_several_targets(rows):
    A, z = rows
    both = np.stack([z, np.abs(z)], axis=1)
    for blocks, b in ((pairs(A, z), both), (pairs(A, both), None)):
        with pytest.raises(ValueError, match=r"b has 2 columns.*one column of b after"):
            ac.Problem(blocks, b, l2=1.0)
    model = ac.Ridge(tol=1e-10).fit(pairs(A, both), None)
    np.testing.assert_allclose(model.coef_, ac.Ridge(tol=1e-10).fit(A, both).coef_, atol=1e-6)


@pytest.mark.parametrize("solver", ["dcd", "acf", "newton", "newton-cg", "lbfgs"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "multinomial", "poisson"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_named_solver_names_one_that_works_on_blocks(rows, solver, loss, penalty):
    A, z = rows
    problem = ac.Problem(pairs(A, targets(loss, z)), None, loss, **PENALTIES[penalty])
    try:
        assert ac.solve(problem, solver, tol=1e-4, max_passes=3000).converged
    except ValueError as error:
        assert "apdc" not in str(error)
        assert 'solver="auto"' in str(error) or 'use solver="newton-cg"' in str(error)
