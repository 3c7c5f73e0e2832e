"""Extrapolated sweeps: exact for linear maps, and nothing where there is nothing to combine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.solvers.primal import class_set
from adacoord.solvers.primal.class_set import ClassWorkingSet
from adacoord.solvers.primal.extrapolation import SWEEPS, combination
from adacoord.solvers.primal.group_set import GroupWorkingSet


def test_the_fixed_point_of_a_linear_map():
    """Of 5 dimensions, 6 points of a line of iterates know all of it."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((5, 5))
    M = np.linalg.qr(root)[0] @ np.diag([0.95, 0.9, 0.5, 0.2, 0.1]) @ np.linalg.qr(root)[0].T
    c = rng.standard_normal(5)
    iterates = [np.zeros(5)]
    for _ in range(5):
        iterates.append(M @ iterates[-1] + c)
    fixed = np.linalg.solve(np.eye(5) - M, c)
    weights = combination(np.array(iterates))
    assert weights.sum() == pytest.approx(1.0)
    found = weights @ np.array(iterates)[1:]
    assert np.abs(found - fixed).max() < 1e-2 * np.abs(iterates[-1] - fixed).max()


def test_nothing_to_combine():
    assert combination(np.ones((6, 4))) is None
    assert combination(np.full((6, 4), np.nan)) is None
    assert combination(np.empty((6, 0))) is None


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kind", ["groups", "targets", "targets without a Gram matrix"])
def test_the_model_follows(kind, is_sparse, intercept, monkeypatch):
    """What an extrapolation is said to lower P by is the difference of P, and slopes are of x."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 30)) + 2.0 * rng.standard_normal((50, 1)) + 0.5
    if is_sparse:
        A = sparse.csr_matrix(np.where(rng.random(A.shape) < 0.8, A, 0.0))
    w = rng.integers(0, 3, 50).astype(float)
    how = {"l21": 0.01, "l1": 1e-3, "sample_weight": w, "intercept": intercept}
    if kind == "groups":
        cls, b, how["groups"] = GroupWorkingSet, rng.standard_normal(50), np.arange(30) // 3
        monkeypatch.setattr(cls, "_newton", lambda self: None)
    else:
        cls, b = ClassWorkingSet, rng.standard_normal((50, 4))
        monkeypatch.setattr(class_set, "GRAM", 100 if kind == "targets" else 0)
    problem, moves = ac.Problem(A, b, **how), []
    dense, move = problem.matrix.dense, cls._move

    def primal(x):
        z = dense @ x
        c = w @ (b - z) / w.sum() if intercept else problem.no_intercept
        return problem.primal(x, c)

    def checked(self, x, image):
        other = self.point.copy()
        other[self.inside] = x
        rise = self._rise(x, image)
        assert rise == pytest.approx(primal(other) - primal(self.point), abs=1e-11)
        move(self, x, image)
        assert np.array_equal(self.point, other)
        # the intercept of the model is that of its start: slopes but for what is constant in them
        slopes = (w / 50 * (dense @ other + self.c - b).T).T
        # of numbers around 1, combined with weights of up to 1e4 or so, several times
        if getattr(self, "q", np.empty(0)).size:
            centred = dense - w @ dense / w.sum() if intercept else dense
            there = self.gram_of if kind == "groups" else self.set
            np.testing.assert_allclose(self.q.T, (centred.T @ slopes)[there], atol=1e-10)
        else:
            np.testing.assert_allclose(self.slopes, slopes, atol=1e-10)
        moves.append(rise)

    monkeypatch.setattr(cls, "_move", checked)
    solver = cls(problem, np.random.default_rng(0))
    solver.advance(30)
    assert moves and max(moves) < 0.0


def test_all_of_the_set_again_where_its_support_brings_little(monkeypatch):
    rng = np.random.default_rng(0)
    A, orders = rng.standard_normal((400, 40)), []
    problem = ac.Problem(A, A[:, :4] @ np.ones(4), l21=0.1, groups=np.arange(40) // 2)
    visit = GroupWorkingSet._visit

    def noted(self, order, eta):
        found = visit(self, order, eta)
        orders.append((order.size == self.set.size, found[0]))
        return found

    monkeypatch.setattr(GroupWorkingSet, "_visit", noted)
    GroupWorkingSet(problem, np.random.default_rng(0)).advance(6)
    brought = last = 0.0
    assert orders[0][0] and sum(whole for whole, _ in orders[: SWEEPS + 1]) > 1
    for whole, lowered in orders[: SWEEPS + 1]:
        assert whole or last > 1e-4 * brought
        brought, last = (lowered if whole else brought), lowered
