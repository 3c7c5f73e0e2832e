"""``certify(..., rigorous=True)``: bounds in exact arithmetic.

That P and D are right, to 50 digits, is tested where mpmath is: ``tests/hostile/test_rounding.py``.
"""

from __future__ import annotations

import ast
import builtins
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.api import rigorous
from adacoord.problem.losses import BLOCK_LOSSES, LOSSES


def data(name, seed=0, n=40, d=4):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    z = A @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    task = (LOSSES | BLOCK_LOSSES)[name].task
    b = {
        "classification": np.where(z > 0, 1.0, -1.0),
        "multiclass": (np.arange(n) % 3).astype(float),
        "count": np.floor(np.exp(np.clip(z, -2, 2))),
        "positive": np.exp(np.clip(z, -2, 2)),
    }.get(task, z)
    return A, b


@pytest.mark.parametrize("name", [*LOSSES, *BLOCK_LOSSES])
@pytest.mark.parametrize("penalty", [{"l2": 0.1}, {"l1": 0.05}, {"l1": 0.05, "l2": 0.1}])
@pytest.mark.parametrize("intercept", [False, True])
def test_no_more_than_the_bound_in_floats(name, penalty, intercept):
    A, b = data(name)
    problem = ac.Problem(
        sparse.csr_array(A), b, name, intercept=intercept, sample_weight=np.arange(40.0), **penalty
    )
    r = ac.solve(problem, tol=1e-6)
    plain = ac.certify(problem, r.x, r.intercept)
    proved = ac.certify(problem, r.x, r.intercept, rigorous=True)
    assert 0.0 <= proved.gap <= plain.gap and proved.gap >= 0.9 * plain.gap - 1e-11
    assert proved.dual <= proved.primal
    last = Fraction(math.ulp(proved.gap))  # the gap is rounded up, too
    assert Fraction(proved.gap) <= Fraction(proved.primal) - Fraction(proved.dual) + last
    assert ("exact" if name in exact() else "interval") in proved.note
    assert "rounded up" in proved.note and "rounded up" not in plain.note


def exact():
    return [name for name, formulas in rigorous.FORMULAS.items() if formulas.exact]


def test_every_loss_is_there():
    assert set(rigorous.FORMULAS) | {rigorous.CLASSES} == set(LOSSES) | set(BLOCK_LOSSES)


def test_the_least_gap_there_is():
    """A gap far below what float64 can tell of P."""
    A, b = data("squared")
    problem = ac.Problem(A, b, l2=0.1, intercept=True)
    r = ac.solve(problem, tol=1e-12)
    proved = ac.certify(problem, r.x, r.intercept, rigorous=True)
    assert 0.0 < proved.gap <= 1e-25 and proved.dual <= proved.primal


def test_points_far_from_optimal():
    A, b = data("hinge")
    problem = ac.Problem(A, b, "hinge", l2=0.1)
    proved = ac.certify(problem, np.full(4, 3.0), effort=0, rigorous=True)
    assert proved.gap == pytest.approx(ac.certify(problem, np.full(4, 3.0), effort=0).gap, rel=1e-9)


def test_positive_penalties():
    A, b = data("squared")
    problem = ac.Problem(A, b, l1=0.05, positive=True)
    r = ac.solve(problem, tol=1e-9)
    assert ac.certify(problem, r.x, rigorous=True).gap <= 1e-9 * r.primal
    assert ac.certify(problem, -np.ones(4), rigorous=True).gap == np.inf


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-1, 3), Fraction(1, 2), Fraction(0)])
def test_rounded_up(value):
    up = rigorous._up(value)
    assert Fraction(up) >= value and Fraction(np.nextafter(up, -np.inf)) < value
    assert rigorous._up(Fraction(10) ** 400) == np.inf


def test_classes_are_balanced_exactly():
    A, b = data("multinomial")
    w = np.random.default_rng(0).random(40)
    problem = ac.Problem(A, b, "multinomial", l2=0.1, intercept=True, sample_weight=w)
    check = rigorous._Check(problem)
    rng = np.random.default_rng(1)
    v = check._on_simplex([[Fraction(t) for t in rng.random(40)] for _ in range(3)])
    v = check._classes_balanced(v)
    for k in range(3):
        assert sum(weight * t for weight, t in zip(check.weights, v[k], strict=True)) == 0
    for i, own in enumerate(check.b):
        row = [v[k][i] + (k == own) for k in range(3)]
        assert sum(row) == 1 and min(row) >= 0


def test_scaled_onto_the_constraint_exactly():
    """|u| <= l1 with a y that is twice too long."""
    A, b = data("squared")
    problem = ac.Problem(A, b, l1=0.1)
    check = rigorous._Check(problem)
    v = [[Fraction(t) for t in (-b).tolist()]]
    u = check._average(v[0])
    share = Fraction(0.1) / max(map(abs, u))
    D = check._dual(v, [None] * problem.d)
    v = [share * t for t in v[0]]
    assert share < 1 and max(map(abs, check._average(v))) == Fraction(0.1)
    losses = [Fraction(t) * s + s * s / 2 for t, s in zip(b.tolist(), v, strict=True)]
    assert -sum(losses) / 40 == D


def test_refusals(monkeypatch):
    A, b = data("logistic")
    problem = ac.Problem(A, b, "logistic", l2=0.1)
    with pytest.raises(ValueError, match="rigorous=1: it must be True or False"):
        ac.certify(problem, np.zeros(4), rigorous=1)
    blocks = ac.Problem([(A[:20], b[:20]), (A[20:], b[20:])], loss="logistic", l2=0.1)
    with pytest.raises(ValueError, match="rigorous=True: the data are blocks of rows"):
        ac.certify(blocks, np.zeros(4), rigorous=True)
    monkeypatch.delitem(rigorous.FORMULAS, "hinge")
    with pytest.raises(ValueError, match='loss="hinge": rigorous=True knows absolute, epsilon'):
        ac.certify(ac.Problem(A, b, "hinge", l2=0.1), np.zeros(4), rigorous=True)
    real = builtins.__import__

    def without_flint(name, *args, **kwargs):
        if name == "flint":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_flint)
    with pytest.raises(ImportError, match=r"adacoord\[rigorous\]"):
        ac.certify(problem, np.zeros(4), rigorous=True)
    assert ac.certify(ac.Problem(A, b, "squared", l2=0.1), np.zeros(4), rigorous=True).gap > 0


def test_it_shares_no_code():
    tree = ast.parse(Path(rigorous.__file__).read_text())
    names = [
        name
        for node in ast.walk(tree)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else []
        )
    ]  # fmt: skip
    assert set(names) <= {
        "__future__", "math", "collections.abc", "dataclasses", "fractions", "itertools", "typing",
        "numpy", "flint",
    }  # fmt: skip
    assert not any(isinstance(n, ast.ImportFrom) and n.level for n in ast.walk(tree))
