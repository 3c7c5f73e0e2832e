"""Blocks of rows in SPDC, against the naive steps on blocks; norms and labels of blocks.

AdaSPDC's own steps on the same blocks are in test_adaspdc.  Only the blocks that were drawn, the
partition of the sampler and the choice of beta come from the package.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference
from block_problems import GAMMA, GROUPS, N_ROWS, PENALTIES, assert_same, make
from reference import NaiveMultinomial, NaiveSPDC
from scipy import sparse

import adacoord as ac
from adacoord.solvers.primal_dual.row_blocks import group_rows, spectral_norm
from adacoord.solvers.primal_dual.spdc import SPDC

STORAGES = pytest.mark.parametrize("storage", ["dense", "csr"])
RULES = {
    "practical": {},
    "theory": {"steps": "theory"},
    "batches": {"batch_size": 4},
    "weighted": {"sampling": "weighted", "alpha": 0.4, "steps": "theory"},
    "weighted batches": {"sampling": "lipschitz", "batch_size": 4},
    "2015": {"sampling": "weighted", "steps": "icml2015"},
}


def make_solver(problem, seed=5, **options):
    return SPDC(problem, np.random.Generator(np.random.PCG64(seed)), **options)


def own_steps(R, lam, gamma, options, solver):
    """(tau, sigma, theta, p) of the blocks, by the formulas of rows."""
    m = min(options.get("batch_size", 1), R.size)
    rule = options.get("steps", "practical")
    alpha = options.get("alpha", 0.5) if "sampling" in options else 0.0
    weights = reference.mixture(R, alpha)
    p = weights if m == 1 else reference.capped(weights, m)
    if alpha == 0.0 and m > 1:
        p = solver.sampler.p  # one over the size of a part of the blocks
        assert np.isin(np.round(1 / p), (R.size // m, -(-R.size // m))).all()
    if rule == "icml2015":
        return *reference.icml_steps(R, lam, gamma, p), p
    if rule == "practical":
        return *reference.practical_steps(R, lam, gamma, m, p), p
    return *reference.theory_steps(R, lam, gamma, m, alpha, p), p


def run_both(
    A, b, loss, penalty, passes, *, storage, groups=None, w=None, intercept=False, **options
):
    l1, l2, positive = penalty
    problem = ac.Problem(
        sparse.csr_matrix(A) if storage == "csr" else A,
        b,
        loss,
        l1,
        l2,
        positive=positive,
        sample_weight=w,
        intercept=intercept,
    )
    solver = make_solver(problem, groups=groups, **options)
    drawn, draw = [], solver.sampler.order
    solver.sampler.order = lambda *a: drawn.append(draw(*a)) or drawn[-1]
    n = b.size
    w = np.ones(n) if w is None else w
    rows = np.flatnonzero((w > 0) & (intercept | (A != 0).any(axis=1)))
    W = w * rows.size / n
    blocks = reference.blocks_of(rows, groups)
    R = reference.block_radii(A, W, solver.beta, blocks)
    np.testing.assert_allclose(solver.radius, R, rtol=1e-10)
    m = min(options.get("batch_size", 1), R.size)
    kind = NaiveMultinomial if loss == "multinomial" else NaiveSPDC
    naive, stage, steps = None, -1, 0
    for k in range(passes):
        solver.advance(1)
        if solver.stage != stage:
            lam, gamma = l2 or solver.lam, GAMMA[loss] or solver.gamma
            tau, sigma, theta, p = own_steps(R, lam, gamma, options, solver)
            full = np.zeros((2, n))
            for block, s, share in zip(blocks, sigma, p, strict=True):
                full[0, block], full[1, block] = s, share
            if naive is None:
                naive = kind(
                    A, b, loss, penalty, rows, W, tau, full[0], theta, full[1], solver.beta
                )
            naive.tau, naive.sigma, naive.theta = tau, full[0], theta
            naive.delta_x, naive.delta_y = lam - l2, gamma - GAMMA[loss]
            naive.begin_stage()
            stage = solver.stage
        picks = drawn[-1].reshape(-1, m)
        steps += len(picks)
        assert steps == (k + 1) * R.size // m and len(drawn) == k + 1
        naive.run([[i for q in pick for i in blocks[q]] for pick in picks])
    return solver, naive


# ---- iterates ----------------------------------------------------------------------------------


@STORAGES
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_iterates(loss, penalty, rule, storage):
    A, b = make(loss)
    assert_same(
        *run_both(A, b, loss, PENALTIES[penalty], 5, storage=storage, groups=GROUPS, **RULES[rule])
    )


@STORAGES
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "l1+l2"])
def test_classes(penalty, grouped, rule, storage):
    A, b = make("multinomial", seed=1)
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            "multinomial",
            PENALTIES[penalty],
            4,
            storage=storage,
            groups=GROUPS if grouped else None,
            intercept=intercept,
            **RULES[rule],
        )
        assert_same(solver, naive)


@STORAGES
@pytest.mark.parametrize("rule", ["practical", "weighted batches"])
@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_weights_intercept_and_rows_that_are_not_there(loss, rule, storage):
    """With a kink by its stages, and past the re-synchronisation of pass 32."""
    A, b = make(loss, seed=2, zero_rows=(4,))
    w = np.random.default_rng(3).exponential(1.0, N_ROWS)
    w[6] = 0.0
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            loss,
            PENALTIES["l2"],
            36,
            storage=storage,
            groups=GROUPS,
            w=w,
            intercept=intercept,
            **RULES[rule],
        )
        assert_same(solver, naive)


@pytest.mark.parametrize("rule", RULES)
def test_groups_of_one_row_are_no_groups(rule):
    A, b = make("squared", seed=4)
    problem = ac.Problem(A, b, l2=0.03)
    plain, single = (
        make_solver(problem, groups=g, **RULES[rule]) for g in (None, np.arange(N_ROWS))
    )
    plain.advance(7)
    single.advance(7)
    np.testing.assert_array_equal(plain.x, single.x)
    np.testing.assert_array_equal(plain.y, single.y)


@pytest.mark.parametrize("sampling", ["adaptive", "ideal"])
def test_adaptive_sampling_draws_rows(sampling):
    A, b = make("squared")
    with pytest.raises(ValueError, match=r"groups with sampling='.*': .*use sampling=\"uniform\""):
        ac.solve(ac.Problem(A, b, l2=0.03), "spdc", groups=GROUPS, sampling=sampling)
    A, b = make("multinomial")
    with pytest.raises(ValueError, match=r'loss="multinomial" with sampling='):
        ac.solve(ac.Problem(A, b, "multinomial", l2=0.03), "spdc", sampling=sampling)


# ---- norms and labels --------------------------------------------------------------------------


@STORAGES
@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (3, 40), (40, 3), (30, 30), (700, 501)])
def test_spectral_norm(shape, storage):
    rng = np.random.default_rng(15)
    B = rng.standard_normal(shape) * (rng.random(shape) < 0.3)
    scale = rng.exponential(1.0, shape[0])
    for beta in (0.0, 1.7):
        want = np.linalg.norm(scale[:, None] * np.hstack([B, np.full((shape[0], 1), beta)]), 2)
        got = spectral_norm(sparse.csr_matrix(B) if storage == "csr" else B, scale, beta)
        if min(shape) <= 500:
            assert got == pytest.approx(want, rel=1e-9)
        else:  # Lanczos, with a margin: never short of the norm
            assert want <= got <= 1.02 * want


def test_spectral_norm_of_zeros():
    assert spectral_norm(np.zeros((3, 2)), np.ones(3), 0.0) == 0.0
    assert spectral_norm(sparse.csr_matrix((3, 2)), np.ones(3), 0.0) == 0.0


def test_group_rows():
    problem = ac.Problem(np.eye(6), np.ones(6), l2=0.1)
    rows = np.array([0, 2, 3, 5], dtype=np.uint32)
    members, first = group_rows(problem, rows, np.array([7, 1, -2, 7, 1, 7]))
    np.testing.assert_array_equal(members, [2, 0, 3, 5])  # label 1 has no row left
    np.testing.assert_array_equal(first, [0, 1, 4])
    members, first = group_rows(problem, rows, None)
    np.testing.assert_array_equal(members, rows)
    np.testing.assert_array_equal(first, [0, 1, 2, 3, 4])
