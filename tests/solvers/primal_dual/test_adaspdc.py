"""AdaSPDC makes the iterates of Algorithm 1 of its paper, with general blocks of rows.

Only the blocks that were drawn, the partition of the sampler and the choice of beta come from the
package; block norms (by SVD), steps and iterates are the reference's.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference
from block_problems import GAMMA, GROUPS, N_ROWS, PENALTIES, assert_same, make
from reference import NaiveMultinomial, NaiveSPDC
from scipy import sparse

import adacoord as ac
from adacoord.solvers.primal_dual import adaspdc
from adacoord.solvers.primal_dual.adaspdc import AdaSPDC
from adacoord.solvers.primal_dual.block_primal import BlockPrimal
from adacoord.solvers.primal_dual.spdc import SPDC
from adacoord.solvers.primal_dual.spdc_primal import DensePrimal, ScaledPrimal, StampedPrimal

STORAGES = pytest.mark.parametrize("storage", ["dense", "csr"])
BATCHES = pytest.mark.parametrize("m", [1, 4])
GROUPED = pytest.mark.parametrize("grouped", [False, True])


def make_solver(problem, seed=5, **options):
    return AdaSPDC(problem, np.random.Generator(np.random.PCG64(seed)), **options)


def run_both(
    A,
    b,
    loss,
    penalty,
    passes,
    *,
    storage="csr",
    w=None,
    intercept=False,
    dtype=float,
    m=1,
    groups=None,
    kinks="continuation",
):
    """The solver and the reference, after the same blocks."""
    l1, l2, positive = penalty
    data = sparse.csr_matrix(A.astype(dtype)) if storage == "csr" else A.astype(dtype)
    problem = ac.Problem(
        data, b, loss, l1, l2, positive=positive, sample_weight=w, intercept=intercept
    )
    solver = make_solver(problem, batch_size=m, groups=groups, kinks=kinks)
    drawn, draw = [], solver.sampler.order
    solver.sampler.order = lambda *a: drawn.append(draw(*a)) or drawn[-1]
    n = b.size
    w = np.ones(n) if w is None else w
    rows = np.flatnonzero((w > 0) & (intercept | (A != 0).any(axis=1)))
    W = w * rows.size / n
    blocks = reference.blocks_of(rows, groups)
    N = len(blocks)
    m = min(m, N)
    R = reference.block_radii(A, W, solver.beta, blocks)
    p = np.zeros(n)
    for k, block in enumerate(blocks):
        # m disjoint parts of the blocks, whose sizes differ by one at most, one block from each
        p[block] = solver.sampler.p[k]
        assert 1 / p[block[0]] == pytest.approx(N // m) or 1 / p[block[0]] == pytest.approx(
            -(-N // m)
        )
    kind = NaiveMultinomial if loss == "multinomial" else NaiveSPDC
    naive = kind(A, b, loss, penalty, rows, W, 0.0, np.zeros(n), 0.0, p, solver.beta)
    stage, steps = -1, 0
    for k in range(passes):
        solver.advance(1)
        if solver.stage != stage:  # of Section 3 of SPDC: its curvatures are the package's choice
            lam, gamma = l2 or solver.lam, GAMMA[loss] or solver.gamma
            if kinks == "continuation":
                naive.delta_x, naive.delta_y = lam - l2, gamma - GAMMA[loss]
            naive.begin_stage()
            stage = solver.stage
        picks = drawn[-1].reshape(-1, m)
        steps += len(picks)
        assert steps == (k + 1) * N // m and len(drawn) == k + 1
        general = kinks == "direct" and not l2 * GAMMA[loss]
        reference.ada_pass(naive, picks, blocks, R, lam, gamma, theta=1.0 if general else None)
    assert not solver.frozen
    return solver, naive


# ---- iterates ----------------------------------------------------------------------------------


@STORAGES
@BATCHES
@GROUPED
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_iterates(loss, penalty, grouped, m, storage):
    A, b = make(loss)
    solver, naive = run_both(
        A, b, loss, PENALTIES[penalty], 5, storage=storage, m=m, groups=GROUPS if grouped else None
    )
    kind = {"dense": DensePrimal, "csr": ScaledPrimal if penalty == "l2" else StampedPrimal}
    assert type(solver.primal) is kind[storage]
    assert_same(solver, naive)


@STORAGES
@BATCHES
@GROUPED
@pytest.mark.parametrize("penalty", PENALTIES)
def test_weights_intercept_and_rows_that_are_not_there(penalty, grouped, m, storage):
    A, b = make("squared", seed=1, zero_rows=(3, 17))
    w = np.random.default_rng(2).exponential(1.0, b.size)
    w[[3, 9]] = 0.0
    w[GROUPS == "g9"] = 0.0  # a block with no row left
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            "squared",
            PENALTIES[penalty],
            4,
            storage=storage,
            w=w,
            m=m,
            groups=GROUPS if grouped else None,
            intercept=intercept,
        )
        assert 13 <= solver.rows.size < 20 and (not grouped or solver.n_blocks <= 9)
        assert (solver.intercept != 0.0) == intercept
        assert_same(solver, naive)


@STORAGES
@BATCHES
@GROUPED
@pytest.mark.parametrize("penalty", PENALTIES)
def test_multinomial(penalty, grouped, m, storage):
    A, b = make("multinomial", seed=4)
    w = np.random.default_rng(5).exponential(1.0, b.size)
    for options in ({}, {"w": w, "intercept": True}):
        solver, naive = run_both(
            A,
            b,
            "multinomial",
            PENALTIES[penalty],
            5,
            storage=storage,
            m=m,
            groups=GROUPS if grouped else None,
            **options,
        )
        assert isinstance(solver.primal, BlockPrimal) and solver.x.shape == (11, 3)
        assert_same(solver, naive, 1e-9)


@STORAGES
@BATCHES
@GROUPED
@pytest.mark.parametrize("kind", ["hinge", "lasso"])
def test_iterates_by_perturbation(kind, grouped, m, storage):
    loss = {"hinge": "hinge", "lasso": "squared"}[kind]
    penalty = PENALTIES["l2"] if kind == "hinge" else (0.02, 0.0, False)
    A, b = make(loss, seed=6)
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            loss,
            penalty,
            24,
            storage=storage,
            m=m,
            groups=GROUPS if grouped else None,
            intercept=intercept,
        )
        assert solver.stage >= 1
        assert_same(solver, naive)


@STORAGES
@BATCHES
@GROUPED
@pytest.mark.parametrize(
    "loss, penalty",
    [
        ("hinge", (0.0, 0.03, False)),
        ("hinge", (0.02, 0.0, False)),
        ("squared", (0.02, 0.0, False)),
        ("squared", (0.02, 0.0, True)),
        ("multinomial", (0.02, 0.0, False)),
        ("squared", (0.02, 0.03, False)),
    ],
)
def test_kinks_as_they_are(loss, penalty, grouped, m, storage):
    """Eq. 8 with theta = 1, nothing perturbed; where there are no kinks, as ever."""
    A, b = make(loss, seed=6)
    for intercept in (False, True):
        solver, naive = run_both(
            A,
            b,
            loss,
            penalty,
            12,
            storage=storage,
            m=m,
            groups=GROUPS if grouped else None,
            intercept=intercept,
            kinks="direct",
        )
        assert solver.stage == 0 and not naive.delta_x and not naive.delta_y
        assert (naive.theta == 1.0) == (solver.general) == (penalty[1] * GAMMA[loss] == 0.0)
        assert_same(solver, naive)


@pytest.mark.slow
@STORAGES
@BATCHES
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_float32(loss, penalty, m, storage):
    A, b = make(loss, seed=7)
    A = A.astype(np.float32).astype(float)
    solver, naive = run_both(
        A,
        b,
        loss,
        PENALTIES[penalty],
        4,
        storage=storage,
        m=m,
        dtype=np.float32,
        intercept=True,
        groups=GROUPS,
    )
    assert all(
        v.dtype == np.float32
        for k, v in solver.primal.state.items()
        if k in ("vectors", "zu", "xu")
    )
    assert_same(solver, naive, rtol=1e-3)


@STORAGES
@pytest.mark.parametrize("m", [9, 10, 22, 23])
def test_batches_up_to_all_blocks(m, storage):
    A, b = make("squared", seed=8)
    for groups in (None, GROUPS, np.zeros(N_ROWS)):
        solver, naive = run_both(
            A, b, "squared", PENALTIES["l2"], 5, storage=storage, m=m, groups=groups
        )
        assert solver.blocks == min(m, solver.n_blocks)
        assert_same(solver, naive)


@STORAGES
@pytest.mark.parametrize("penalty", ["l2", "l1+l2"])
def test_iterates_after_many_passes(penalty, storage):
    """Past the re-synchronisation of pass 32, and through looks at the gap."""
    A, b = make("squared", seed=9)
    for m in (1, 4):
        assert_same(
            *run_both(A, b, "squared", PENALTIES[penalty], 40, storage=storage, m=m, groups=GROUPS)
        )


def test_strong_penalties_for_which_the_scaled_form_is_not_made():
    A, b = make("squared", seed=10)
    solver, naive = run_both(A, b, "squared", (0.0, 1e5, False), 4)
    assert type(solver.primal) is StampedPrimal
    assert_same(solver, naive)


@STORAGES
def test_groups_of_one_row_are_no_groups(storage):
    A, b = make("squared", seed=11)
    data = sparse.csr_matrix(A) if storage == "csr" else A
    for m in (1, 4):
        problem = ac.Problem(data, b, l2=0.03)
        plain, single = (
            make_solver(problem, batch_size=m, groups=g) for g in (None, np.arange(N_ROWS))
        )
        plain.advance(7)
        single.advance(7)
        np.testing.assert_array_equal(plain.x, single.x)
        np.testing.assert_array_equal(plain.y, single.y)


# ---- the step sizes, by hand -------------------------------------------------------------------


def solver_of_norms(*norms, l2=0.25, loss="squared", **options):
    """Rows of these norms, set up but not advanced."""
    A = np.diag(np.array(norms))
    solver = make_solver(ac.Problem(A, np.ones(len(norms)), loss, l2=l2), **options)
    solver.lam, solver.gamma = l2, 1.0
    solver._plan()
    return solver


def test_steps_by_hand():
    """N = 4, lambda = 1/4, gamma = 1: sigma_i = 1/(2 R_i), tau = 1/(2R), theta = 1 - 1/(4 + 4R)."""
    solver = solver_of_norms(1.0, 2.0, 0.5, 4.0)
    np.testing.assert_allclose(solver.sigma, [1 / 2, 1 / 4, 1, 1 / 8], rtol=1e-14)
    tau, theta = solver._primal_steps(np.array([1.0, 2.0, 0.5, 4.0]))
    np.testing.assert_allclose(tau, [1 / 2, 1 / 4, 1, 1 / 8], rtol=1e-14)
    np.testing.assert_allclose(theta, [7 / 8, 11 / 12, 5 / 6, 19 / 20], rtol=1e-14)
    np.testing.assert_allclose(solver.kappa, 1.0, rtol=1e-14)
    # m = 4: sigma_i = 1/(4 R_i), tau = 1/R, theta = 1 - 1/(1 + 2R)
    solver = solver_of_norms(1.0, 2.0, 0.5, 4.0, batch_size=4)
    np.testing.assert_allclose(solver.sigma, [1 / 4, 1 / 8, 1 / 2, 1 / 16], rtol=1e-14)
    assert solver._primal_steps(4.0) == pytest.approx((1 / 4, 8 / 9), rel=1e-14)
    np.testing.assert_allclose(solver.kappa, 1 / 4, rtol=1e-14)  # 1/m in the primal step


def test_steps_of_blocks_by_hand():
    """Two blocks of two orthogonal rows: norms 2 and 4 as rows go, times sqrt(1/2) in the
    average over blocks; N = 2, lambda = 1/2, gamma = 1, so sigma_i = 1/(2 R_i)."""
    solver = solver_of_norms(1.0, 4.0, 2.0, 0.5, l2=0.5, groups=["a", "b", "a", "b"])
    np.testing.assert_allclose(solver.radius, [np.sqrt(2.0), np.sqrt(8.0)], rtol=1e-14)
    np.testing.assert_allclose(solver.sigma, [8**-0.5, 32**-0.5, 8**-0.5, 32**-0.5], rtol=1e-14)
    tau, theta = solver._primal_steps(np.sqrt(8.0))
    assert tau == pytest.approx(32**-0.5, rel=1e-14)
    assert theta == pytest.approx(1 - 1 / (2 + 2 * np.sqrt(8.0)), rel=1e-14)
    np.testing.assert_allclose(solver.kappa, 1 / 2, rtol=1e-14)  # (1/rows)/p


def test_the_longest_block_of_a_batch_sets_tau():
    """As the kernels get them: tau_t and theta_t of each step."""
    A, b = make("squared", seed=12)
    solver = make_solver(ac.Problem(A, b, l2=0.03), batch_size=4)
    seen, run = [], solver._run
    solver._run = lambda *a: seen.append(a) or run(*a)
    solver.advance(1)
    order, _, _, tau, theta, starts = seen[0]
    R = np.linalg.norm(A, axis=1)
    assert len(tau) == N_ROWS // 4 and len(set(tau)) > 1
    for k in range(tau.size):
        longest = R[order[starts[k] : starts[k + 1]]].max()
        want = reference.ada_primal(longest, N_ROWS, 4, 0.03, 1.0)
        assert (tau[k], theta[k]) == pytest.approx(want, rel=1e-13)


# ---- block norms -------------------------------------------------------------------------------


@STORAGES
@pytest.mark.parametrize("intercept", [False, True])
def test_block_norms(intercept, storage):
    """With weights and the column of the intercept."""
    A, b = make("squared", seed=13, zero_rows=(4,))
    w = np.random.default_rng(14).exponential(1.0, N_ROWS)
    w[6] = 0.0
    problem = ac.Problem(
        sparse.csr_matrix(A) if storage == "csr" else A,
        b,
        l2=0.03,
        sample_weight=w,
        intercept=intercept,
    )
    solver = make_solver(problem, groups=GROUPS)
    assert (solver.beta > 0.0) == intercept
    rows = [i for i in range(N_ROWS) if i != 6 and (i != 4 or intercept)]
    full = np.hstack([A, np.full((N_ROWS, 1), solver.beta)])
    labels = sorted({GROUPS[i] for i in rows})
    for label, radius in zip(labels, solver.radius, strict=True):
        member = [i for i in rows if GROUPS[i] == label]
        scaled = np.sqrt(w[member] * len(labels) / N_ROWS)[:, None] * full[member]
        assert radius == pytest.approx(np.linalg.norm(scaled, 2), rel=1e-10)


# ---- against SPDC ------------------------------------------------------------------------------


def ridge(n, d, seed=16, normalised=False):
    """Section 4.1: Sigma_jj = j^-2, b = a.1 + noise."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) / np.arange(1, d + 1)
    b = A @ np.ones(d) + rng.standard_normal(n)
    if normalised:
        A /= np.linalg.norm(A, axis=1, keepdims=True)
    return A, b


def passes_to(problem, solver, tol=1e-6, limit=3000):
    """The first pass after which the relative gap is there, looked at after each."""
    for k in range(1, limit):
        solver.advance(1)
        x, y = solver.x, solver.y
        if problem.gap(x, y) <= tol * problem.primal(x):
            return k
    raise AssertionError(f"{limit} passes are not enough")


def passes_of_both(problem, seeds=(0,)):
    out = []
    for seed in seeds:
        rngs = [np.random.Generator(np.random.PCG64(seed)) for _ in range(2)]
        solvers = AdaSPDC(problem, rngs[0]), SPDC(problem, rngs[1], steps="theory")
        out.append([passes_to(problem, solver) for solver in solvers])
    return np.mean(out, axis=0)


@STORAGES
@BATCHES
def test_normalised_rows_make_the_iterates_of_spdc_but_for_theta(m, storage):
    """sigma and tau are then those of SPDC; theta = 1 - 1/(n/m + R sqrt(..)) has R for SPDC's 2R.
    With SPDC's theta the iterates are SPDC's."""
    A, b = ridge(40, 10, normalised=True)
    problem = ac.Problem(sparse.csr_matrix(A) if storage == "csr" else A, b, l2=1e-3)
    ada = make_solver(problem, batch_size=m)
    spdc = SPDC(problem, np.random.Generator(np.random.PCG64(5)), steps="theory", batch_size=m)
    own = ada._primal_steps
    ada._primal_steps = lambda radius: (
        own(radius)[0],
        np.full(np.shape(radius), 1 - 1 / (40 / m + 2 * (40 / m / 1e-3) ** 0.5)),
    )
    ada.advance(6)
    spdc.advance(6)
    np.testing.assert_allclose(ada.sigma, spdc.sigma, rtol=1e-12)
    np.testing.assert_allclose(ada.x, spdc.x, rtol=0, atol=1e-12 * abs(spdc.x).max())
    np.testing.assert_allclose(ada.y, spdc.y, rtol=0, atol=1e-12 * abs(spdc.y).max())


@pytest.mark.parametrize("l2", [1e-2, 1e-3, 1e-4])
def test_passes_on_normalised_rows_are_those_of_spdc(l2):
    """Equal to within the little that theta makes of it."""
    A, b = ridge(200, 50, normalised=True)
    ada, spdc = passes_of_both(ac.Problem(A, b, l2=l2), seeds=(0, 1, 2))
    assert abs(ada - spdc) <= 0.05 * spdc + 1


@pytest.mark.parametrize("l2", [1e-2, 1e-3, 1e-4])
def test_fewer_passes_than_spdc_on_rows_of_different_norms(l2):
    A, b = ridge(200, 50)
    ada, spdc = passes_of_both(ac.Problem(A, b, l2=l2), seeds=(0, 1, 2))
    assert ada < 0.9 * spdc


@pytest.mark.slow
@pytest.mark.parametrize("l2", [1e-3, 1e-4, 1e-5])
def test_ridge_of_section_4_1(l2):
    A, b = ridge(1000, 1000)
    ada, spdc = passes_of_both(ac.Problem(A, b, l2=l2))
    A, b = ridge(1000, 1000, normalised=True)
    equal = passes_of_both(ac.Problem(A, b, l2=l2))
    print(f"l2 {l2:g}: AdaSPDC {ada:.0f}, SPDC {spdc:.0f} passes; normalised rows {equal}")
    assert ada <= spdc
    assert abs(equal[0] - equal[1]) <= 0.05 * equal[1] + 1


# ---- the guard ---------------------------------------------------------------------------------


def counter_example(seed):
    """Unit rows, every second one 100 times shorter: Theorem 1 does not hold."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, 20))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    A[1::2] *= 1e-2
    return A, A @ rng.standard_normal(20) + 0.1 * rng.standard_normal(200)


@pytest.mark.parametrize("seed", range(10))
def test_the_counter_example_converges(seed):
    A, b = counter_example(seed)
    problem = ac.Problem(A, b, l2=1e-5)
    x = np.linalg.solve(A.T @ A / 200 + 1e-5 * np.eye(20), A.T @ b / 200)
    result = ac.solve(problem, "adaspdc", tol=1e-6, max_passes=3000, seed=seed)
    assert result.converged
    assert result.primal <= problem.primal(x) * (1 + 1e-6)
    assert result.dual <= problem.primal(x)


@pytest.mark.parametrize("seed", range(10))
def test_without_the_guard_the_counter_example_diverges(seed, monkeypatch):
    A, b = counter_example(seed)
    problem = ac.Problem(A, b, l2=1e-5)
    monkeypatch.setattr(AdaSPDC, "_guard", lambda self, gap: None)
    loose = make_solver(problem, seed=seed)
    with np.errstate(all="ignore"):
        loose.advance(100)
        assert not problem.gap(loose.x, loose.y) < 100 * problem.primal(np.zeros(20))


def test_what_the_guard_does():
    """It freezes tau at the shortest so far, and takes up the best point seen."""
    A, b = counter_example(0)
    problem = ac.Problem(A, b, l2=1e-5)
    solver = make_solver(problem, seed=0)
    gaps, guard = [], solver._guard
    solver._guard = lambda gap: gaps.append(gap) or guard(gap)
    while not solver.frozen:
        best, best_x = solver.best_gap, solver.best_x.copy()
        solver.advance(1)
        assert solver.passes < 200
    assert gaps[-1] > adaspdc.DIVERGED * best == adaspdc.DIVERGED * min(gaps)
    np.testing.assert_allclose(solver.x, best_x, rtol=1e-12)
    assert problem.gap(solver.x, solver.y) == pytest.approx(best, rel=1e-6)
    seen, run = [], solver._run
    solver._run = lambda *a: seen.append(a) or run(*a)
    solver.advance(2)
    want = reference.ada_primal(1.0, 200, 1, 1e-5, 1.0)  # of the unit rows
    for _, _, _, tau, theta, _ in seen:
        np.testing.assert_allclose(tau, want[0], rtol=1e-10)
        np.testing.assert_allclose(theta, want[1], rtol=1e-10)


@STORAGES
@pytest.mark.parametrize("kinks", ["continuation", "direct"])
@pytest.mark.parametrize("kind", ["squared", "logistic", "smooth_hinge", "hinge", "lasso"])
def test_the_guard_leaves_good_runs_alone(kind, kinks, storage):
    """Neither the noise of a solved problem nor the small gaps of a new stage are divergences."""
    rng = np.random.default_rng(17)
    A = rng.standard_normal((100, 8))
    z = A @ np.ones(8) + rng.standard_normal(100)
    loss = "squared" if kind == "lasso" else kind
    b = z if loss == "squared" else np.where(z > 0, 1.0, -1.0)
    penalty = {"l1": 1e-2} if kind == "lasso" else {"l2": 1e-2}
    for intercept in (False, True):
        problem = ac.Problem(
            sparse.csr_matrix(A) if storage == "csr" else A, b, loss, intercept=intercept, **penalty
        )
        solver = make_solver(problem, kinks=kinks)
        solver.advance(400)
        assert not solver.frozen


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 4},
        {"groups": np.arange(200) // 4},
        {"batch_size": 3, "groups": np.arange(200) // 7},
    ],
    ids=str,
)
def test_the_counter_example_with_batches_and_blocks(options):
    A, b = counter_example(1)
    result = ac.solve(ac.Problem(A, b, l2=1e-5), "adaspdc", max_passes=5000, **options)
    assert result.converged


def test_the_guard_survives_a_restart():
    """Frozen or not, best point and all: state() carries it."""
    A, b = counter_example(2)
    problem = ac.Problem(sparse.csr_matrix(A), b, l2=1e-5)
    whole = make_solver(problem)
    whole.advance(120)
    assert whole.frozen
    for k in (6, 25, 60):
        first, other = make_solver(problem), make_solver(problem, seed=1)
        first.advance(k)
        other.restore(first.state())
        other.advance(120 - k)
        np.testing.assert_array_equal(other.x, whole.x)
        np.testing.assert_array_equal(other.y, whole.y)
        assert other.frozen
