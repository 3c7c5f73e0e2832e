"""Weights, bounds and offsets: the optimum by a solver of another kind, and what a gap proves.

The independent optimum is Clarabel's (an interior point method, by cvxpy), from the textbook's
formulas; where it does not reach its own tolerance the case is left out.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

import adacoord as ac
from adacoord.problem import losses
from adacoord.problem.losses import LOSSES
from adacoord.solvers.newton.bounded import search, solve_model
from adacoord.solvers.registry import admit

SMOOTH = [
    "squared", "huber", "logistic", "squared_hinge", "smooth_hinge", "squared_epsilon_insensitive",
    "poisson", "log_cosh", "gamma", "tweedie",
]  # fmt: skip
KINKED = ["hinge", "absolute", "quantile", "epsilon_insensitive"]
#: Not of those that cvxpy has in one word.
WITHOUT = {"smooth_hinge", "log_cosh", "gamma", "tweedie"}


def case(name, seed, scaled=True):
    """A problem with all there is, as arguments of ``Problem``."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 60)), int(rng.integers(2, 25))
    A = rng.standard_normal((n, d)) * (np.exp(rng.standard_normal(d)) if scaled else 1.0)
    b = A @ rng.standard_normal(d) * 0.3 + rng.standard_normal(n)
    task = LOSSES[name].task
    if task == "classification":
        b = np.where(b > 0, 1.0, -1.0)
        b[:2] = 1.0, -1.0
    elif task == "count":
        b = rng.poisson(np.exp(np.clip(b, -3, 2))).astype(float)
    elif task == "positive":
        b = np.exp(np.clip(b, -3, 2))
    l1 = rng.choice([0.0, 0.05, 0.3], d) * rng.choice([0, 1])
    l2 = rng.choice([0.0, 0.01, 0.5], d) * rng.choice([0, 1])
    l2 = np.where((l1 == 0.0) & (l2 == 0.0) & (rng.random(d) < 0.8), 0.1, l2)
    return {
        "A": A,
        "b": b,
        "loss": name,
        "l1": l1,
        "l2": l2,
        "lower": np.where(rng.random(d) < 0.3, -0.2, -np.inf),
        "upper": np.where(rng.random(d) < 0.3, 0.1, np.inf),
        "offset": 0.5 * rng.standard_normal(n) if rng.random() < 0.6 else None,
        "sample_weight": rng.random(n) + 0.1 if rng.random() < 0.5 else None,
        "intercept": bool(rng.integers(2)),
    }


def pointwise(cp, name, z, b):
    r = z - b
    m = cp.multiply(b, z)
    return {
        "squared": lambda: cp.square(r) / 2,
        "huber": lambda: cp.huber(r, 1.35) / 2,
        "logistic": lambda: cp.logistic(-m),
        "squared_hinge": lambda: cp.square(cp.pos(1 - m)),
        "squared_epsilon_insensitive": lambda: cp.square(cp.pos(cp.abs(r) - 0.1)),
        "poisson": lambda: cp.exp(z) - m,
        "hinge": lambda: cp.pos(1 - m),
        "absolute": lambda: cp.abs(r),
        "quantile": lambda: 0.5 * cp.abs(r),
        "epsilon_insensitive": lambda: cp.pos(cp.abs(r) - 0.1),
    }[name]()


def clarabel(k):
    """P*, or None where Clarabel is not sure of it."""
    cp = pytest.importorskip("cvxpy")
    n, d = k["A"].shape
    x, c = cp.Variable(d), cp.Variable() if k["intercept"] else 0.0
    z = k["A"] @ x + c + (0.0 if k["offset"] is None else k["offset"])
    w = np.ones(n) if k["sample_weight"] is None else k["sample_weight"]
    value = w @ pointwise(cp, k["loss"], z, k["b"]) / n
    value += k["l1"] @ cp.abs(x) + 0.5 * k["l2"] @ cp.square(x)
    ends = np.flatnonzero(np.isfinite(k["lower"])), np.flatnonzero(np.isfinite(k["upper"]))
    held = [x[ends[0]] >= k["lower"][ends[0]]] if ends[0].size else []
    held += [x[ends[1]] <= k["upper"][ends[1]]] if ends[1].size else []
    found = cp.Problem(cp.Minimize(value), held)
    tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    try:
        found.solve(solver="CLARABEL", **tight)
    except (cp.SolverError, UserWarning):
        return None
    return found.value if found.status == "optimal" else None


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*SMOOTH, *KINKED} - WITHOUT))
def test_the_optimum_is_clarabels(name):
    pytest.importorskip("cvxpy")
    compared = 0
    for seed in range(8):
        arguments = case(name, seed)
        best = clarabel(arguments)
        if best is None:
            continue
        problem = ac.Problem(**arguments)
        result = ac.solve(problem, tol=1e-9, max_passes=300)
        assert result.converged
        assert result.solver == "newton"
        assert abs(result.primal - best) <= 1e-8 * max(abs(best), 1.0)
        assert result.gap >= result.primal - best - 1e-9 * abs(best)
        compared += 1
    assert compared >= 3


def solved(problem, tol, max_passes):
    """To tol; or not where columns without a penalty part the classes, so that P has no minimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        result = ac.solve(problem, tol=tol, max_passes=max_passes)
    apart = problem.b * problem.predict(result.x, result.intercept) > 0.0
    assert result.converged or (problem.loss.name == "logistic" and apart.all())
    return result


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SMOOTH + KINKED), st.integers(0, 10_000), st.floats(0.0, 1.0))
@example("logistic", 3415, 0.0)
def test_no_gap_is_smaller_than_the_distance(name, seed, share):
    """gap >= P(x) - P(other) for every x, y and every other point within the bounds and the box."""
    problem = ac.Problem(**case(name, seed))
    penalty = problem.penalty
    rng = np.random.default_rng(seed + 1)
    result = solved(problem, 1e-8, 300)
    x = penalty.nearest(share * result.x + 0.1 * (1 - share) * rng.standard_normal(problem.d))
    y = result.y + 0.1 * (1 - share) * rng.standard_normal(problem.n)
    c = result.intercept
    gap = problem.gap(x, y, c)
    assert gap >= problem.primal(x, c) - result.primal - 1e-12 * abs(result.primal)
    certificate = ac.certify(problem, x, c, effort=2)
    assert certificate.gap >= problem.primal(x, c) - result.primal - 1e-12 * abs(result.primal)
    feasible, u = problem.feasible_dual(y)
    assert np.isfinite(problem._dual(feasible, u))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SMOOTH + KINKED), st.integers(0, 10_000))
@example("logistic", 3415)
def test_every_case_is_solved_and_proved(name, seed):
    problem = ac.Problem(**case(name, seed))
    result = solved(problem, 1e-7, 500)
    _, _, lower, upper = problem.penalty.by_column(problem.d)
    assert (result.x >= lower).all() and (result.x <= upper).all()


@pytest.mark.parametrize("name", ["squared", "logistic", "hinge", "poisson"])
def test_sparse_data_give_the_same(name):
    arguments = case(name, 4)
    arguments["A"] = np.where(np.abs(arguments["A"]) > 0.5, arguments["A"], 0.0)
    dense = ac.solve(ac.Problem(**arguments), tol=1e-9)
    for kind in (sparse.csr_matrix, sparse.csc_matrix):
        other = ac.solve(ac.Problem(**arguments | {"A": kind(arguments["A"])}), tol=1e-9)
        assert other.converged
        assert other.primal == pytest.approx(dense.primal, rel=1e-8)


def test_nonnegative_and_bounded_least_squares_are_scipys():
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((60, 12)), rng.standard_normal(60)
    lower, upper = rng.uniform(-0.2, 0.0, 12), rng.uniform(0.0, 0.1, 12)
    want = optimize.lsq_linear(A, b, (lower, upper), tol=1e-14).x
    found = ac.solve(ac.Problem(A, b, lower=lower, upper=upper), tol=1e-12)
    assert found.converged and found.box is None  # bounds are enough for a proof
    np.testing.assert_allclose(found.x, want, atol=1e-7)


def test_a_column_that_must_be_one_is_an_offset():
    """A bound above 0: x = 0 is not even allowed."""
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((60, 5)), np.sign(rng.standard_normal(60))
    o = rng.standard_normal(60)
    with_offset = ac.solve(ac.Problem(A, b, "logistic", l2=0.1, offset=o), tol=1e-12)
    pinned = ac.solve(
        ac.Problem(
            np.column_stack([A, o]),
            b,
            "logistic",
            l2=[0.1] * 5 + [0.0],
            lower=[-np.inf] * 5 + [1.0],
            upper=[np.inf] * 5 + [1.0],
        ),
        tol=1e-12,
    )
    assert with_offset.primal == pytest.approx(pinned.primal, rel=1e-11)
    np.testing.assert_allclose(with_offset.x, pinned.x[:5], atol=1e-7)


def test_columns_without_a_penalty_are_proved_within_a_box():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((80, 6))
    b = A @ [3.0, -2.0, 1.0, 0.0, 0.0, 0.0] + 0.1 * rng.standard_normal(80)
    problem = ac.Problem(A, b, l1=[0.0, 0.0, 0.1, 0.1, 0.1, 0.1], intercept=True)
    result = ac.solve(problem, tol=1e-10)
    assert result.converged
    assert (result.box[:2] >= 1000.0 * np.abs(result.x[:2])).all()
    assert np.isinf(result.box[2:]).all()
    note = ac.certify(problem, result.x, result.intercept).note
    assert "2 of 6 columns have neither a penalty nor bounds" in note
    # a point far out has a box of its own, and no smaller gap than it deserves
    far = result.x + 1e4
    assert problem.gap(far, result.y, result.intercept) >= problem.primal(far) - result.primal


@pytest.mark.parametrize(
    ("solver", "given_", "words"),
    [
        ("apdc", {"l1": [0.1, 0.2, 0.0], "l2": 0.1}, ["apdc", "single columns", '"newton"']),
        ("acf", {"l2": 0.1, "upper": 1.0}, ["upper=1", '"newton"']),
        ("dcd", {"l2": 0.1, "offset": np.ones(20)}, ["offset", "logistic", '"newton"']),
    ],
)
def test_who_cannot_says_who_can(solver, given_, words):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((20, 3)), np.where(np.arange(20) % 2, 1.0, -1.0)
    with pytest.raises(ValueError) as caught:
        ac.solve(ac.Problem(A, b, "logistic", **given_), solver)
    for word in words:
        assert word in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8))
def test_the_model_is_solved(seed, m):
    """Against projected gradients from many starts: the model is convex."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((m + 2, m))
    H, r = B.T @ B, rng.standard_normal(m)
    l1, l2 = rng.choice([0.0, 0.5], m), rng.choice([0.0, 0.3], m)
    low, high = rng.choice([-np.inf, -0.3, 0.1], m), rng.choice([np.inf, 0.2], m)
    v = np.clip(rng.standard_normal(m), low, high)
    start, first = v.copy(), r.copy()

    def slope(t):
        return first + H @ (t - start) + l2 * t

    slopes = r.copy()
    solve_model(H, slopes, v, l1, l2, low, high, 40)
    u = slope(v)
    np.testing.assert_allclose(slopes + l2 * v, u, atol=1e-9)
    stepped = v - 0.1 * u
    stepped = np.clip(stepped - np.clip(stepped, -0.1 * l1, 0.1 * l1), low, high)
    np.testing.assert_allclose(stepped, v, atol=1e-9)  # where the proximal gradient rests


def test_a_model_stays_within_bounds_that_leave_out_zero():
    """A step across 0 ends at the bound before it, not at the kink."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        B, m = rng.standard_normal((10, 8)), 8
        v, r = 0.1 + rng.random(m), rng.standard_normal(m)
        low, high = np.full(m, 0.1), np.full(m, 2.0)
        solve_model(B.T @ B, r, v, np.full(m, 0.5), np.zeros(m), low, high, 1)
        assert (v >= low).all() and (v <= high).all()


def test_a_thorough_model_is_solved_where_sweeps_never_are_done():
    """Four times as many coordinates as rows: sweeps let go again who a Newton step has stopped."""
    unsolved = 0
    for seed in range(20):
        rng = np.random.default_rng([7, seed])
        m = int(rng.integers(20, 60))
        B = rng.standard_normal((m // 4, m)) * np.exp(rng.standard_normal(m))
        H = B.T @ B
        H += 1e-13 * np.diag(H.diagonal())
        first = -B.T @ rng.standard_normal(m // 4)
        none = np.zeros(m)
        low = np.where(rng.random(m) < 0.7, -0.3 * rng.random(m), -np.inf)
        high = np.where(rng.random(m) < 0.7, 0.2 * rng.random(m), np.inf)
        v, r = np.zeros(m), first.copy()
        unsolved += not solve_model(H, r, v, none, none, low, high, 40)
        v, r = np.zeros(m), first.copy()
        assert solve_model(H, r, v, none, none, low, high, 40, thorough=True)
        assert (v >= low).all() and (v <= high).all()
        slopes = (first + H @ v) / np.abs(first).max()
        assert (slopes[v < high] >= -1e-7).all() and (slopes[v > low] <= 1e-7).all()
    assert unsolved > 10


@pytest.mark.parametrize("seed", range(6))
def test_several_classes(seed):
    """The optimum of L-BFGS-B and Newton, proved by the gap; and by scipy where it is smooth."""
    rng = np.random.default_rng(seed)
    n, d, k = 60, 6, 3
    A, b = rng.standard_normal((n, d)), np.r_[:k, rng.integers(0, k, n - k)]
    l1 = rng.choice([0.0, 0.05], d) * (seed % 2)
    l2 = rng.choice([0.05, 0.5], d)
    l2[0] = 0.0  # neither: a box
    l1[0] = 0.0
    problem = ac.Problem(
        A,
        b,
        "multinomial",
        l1,
        l2,
        lower=np.where(rng.random(d) < 0.3, -0.1, -np.inf),
        offset=rng.standard_normal((n, k)) if seed % 3 else None,
        intercept=bool(seed % 2),
    )
    result = ac.solve(problem, tol=1e-9, max_passes=100)
    assert result.converged
    assert result.solver == "lbfgs"
    for _ in range(5):
        other = problem.penalty.nearest(result.x + 0.05 * rng.standard_normal((d, k)))
        assert problem.primal(other, result.intercept) >= result.primal - 1e-9
        assert problem.gap(other, result.y, result.intercept) >= (
            problem.primal(other, result.intercept) - result.primal
        )


@pytest.mark.parametrize("seed", [1, 5, 16, 26])
def test_several_classes_on_columns_of_many_sizes(seed):
    """Models that sweeps alone do not solve: 1,000 passes once ended at a gap of 1."""
    rng = np.random.default_rng(seed)
    n, d, k = 26, 7, 4
    A = rng.integers(-2, 3, (n, d)) * 10.0 ** rng.uniform(1, 5, d) + rng.choice([0, 1e3])
    A[:, 5], A[:, 6] = A[:, 0], -A[:, 1]
    l1 = l2 = np.where(np.arange(d) % 3 == 2, 0.03, 0.003)
    problem = ac.Problem(A, rng.integers(0, k, n), "multinomial", l1, l2, intercept=True)
    result = ac.solve(problem, tol=1e-9, max_passes=60)
    assert result.converged and result.solver == "lbfgs"


@pytest.mark.parametrize("seed", [0, 7, 8])
@pytest.mark.parametrize("mean", [1.0, 1e3])
def test_the_damping_of_a_column_is_its_own(seed, mean):
    """Not that of the longest, which held intercepts and short columns where they were."""
    rng = np.random.default_rng(seed)
    n, d, k = 20, 5, 4
    A = (rng.integers(-2, 3, (n, d)) + mean) * 10.0 ** np.array([4, -3, 6, 3, -6])
    b = np.r_[:k, rng.integers(0, k, n - k)]
    l1 = [0.1, 0.1, 0.01, 0.1, 1.0]
    problem = ac.Problem(A, b, "multinomial", l1, 1e-3, upper=0.1, intercept=True)
    assert ac.solve(problem, tol=1e-6, max_passes=60).converged


def test_a_slope_that_rises_promises_nothing():
    """One of rounding let P rise, by a hundredth of it."""
    penalty = ac.Problem(np.eye(2), np.ones(2), l1=[0.1, 0.2]).penalty
    before, after = np.zeros(2), np.ones(2)
    for promised in (100.0, np.inf, np.nan):
        t, x = search(lambda t: t, penalty, before, after, 0.0, promised)
        assert t == 0.0 and x is before


def wide(name):
    """More columns move than a Gram matrix is made of: sweeps along the columns."""
    rng = np.random.default_rng(0)
    A = sparse.random(400, 1500, 0.05, random_state=0, format="csr")
    b = np.where(np.asarray(A @ rng.standard_normal(1500)) > 0, 1.0, -1.0)
    return ac.Problem(
        A, b, name, l2=np.where(np.arange(1500) < 3, 0.0, 1e-2), lower=-0.3, upper=0.3,
        offset=0.1 * rng.standard_normal(400), intercept=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["squared_hinge", "logistic", "hinge"])
def test_many_columns(name):
    problem = wide(name)
    result = ac.solve(problem, tol=1e-6)
    assert result.converged and result.box is None  # bounded columns need none
    assert np.count_nonzero(np.abs(result.x) == 0.3) > 1


@pytest.mark.parametrize(
    "problem",
    [
        ac.Problem(**case("logistic", 1)),
        ac.Problem(**case("hinge", 1)),
        wide("hinge"),
        ac.Problem(
            np.random.default_rng(0).standard_normal((60, 5)),
            np.arange(60) % 3,
            "multinomial",
            l1=[0.0, 0.1, 0.01, 0.2, 0.0],
            l2=0.1,
        ),
    ],
    ids=["logistic", "hinge", "wide", "classes"],
)
def test_it_goes_on_from_its_state_bit_by_bit(problem):
    def solver():
        name = "lbfgs" if problem.loss.blocks else "newton"
        return admit(problem, name, {}).load()(problem, np.random.default_rng(0))

    through, first, second = solver(), solver(), solver()
    through.advance(4)
    first.advance(2)
    second.restore(first.state())
    second.advance(2)
    for name in ("x", "y", "intercept"):
        np.testing.assert_array_equal(getattr(second, name), getattr(through, name))


SMOOTH = [name for name, cls in LOSSES.items() if cls().differentiable and name != "squared"]


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("intercept", [False, True])
def test_signs_without_a_penalty(loss, intercept):
    """``positive=True`` is lower=0, which bounds have a method for: it was refused by name."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((80, 5))
    z = A @ np.array([1.0, -1.0, 0.5, 0.0, 0.2]) + 0.5 * rng.standard_normal(80)
    task = LOSSES[loss].task
    b = np.sign(z) if task == "classification" else z
    b = np.exp(b) if task == "positive" else np.floor(np.exp(b)) if task == "count" else b
    for bounds in ({"positive": True}, {"lower": 0.0}):
        problem = ac.Problem(A, b, loss, intercept=intercept, **bounds)
        found = ac.solve(problem, tol=1e-8)
        assert found.converged and (found.x >= 0.0).all() and found.box is not None
        # bounds above that hold nothing are the same problem, proved without a box
        held = ac.Problem(A, b, loss, intercept=intercept, lower=0.0, upper=2.0 + 2.0 * found.x)
        other = ac.solve(held, tol=1e-8)
        assert other.converged and found.primal == pytest.approx(other.primal, rel=1e-6)


@pytest.mark.parametrize("loss", [losses.SmoothHinge(1e-3), losses.Huber(1e-3)], ids=str)
@pytest.mark.parametrize("shape", [(300, 40), (60, 200), (7000, 40), (200, 1500)])
@pytest.mark.parametrize("penalty", ["bounds", "weights"])
def test_narrow_bends_are_left_to_an_interior_point(loss, shape, penalty):
    """Of 448 iterations, or a gap of 1 after 1,000, 60 at most are left."""
    rng = np.random.default_rng(sum(shape))
    A, d = rng.standard_normal(shape), shape[1]
    b = A @ rng.standard_normal(d) / d**0.5 + 0.5 * rng.standard_normal(shape[0])
    b = np.sign(b) if loss.task == "classification" else b
    l1 = 0.01 * ac.Problem(A, b, loss, l1=1.0, intercept=True).l1_max()
    columns = (
        {"l1": l1, "lower": -0.1, "upper": rng.random(d)}
        if penalty == "bounds"
        else {"l1": l1 * rng.choice([0.0, 1.0, 2.0], d), "l2": 1e-7 * rng.random(d)}
    )
    problem = ac.Problem(A, b, loss, intercept=True, **columns)
    found = ac.solve(problem, tol=1e-7, max_passes=60)
    assert found.converged and found.solver == "newton"
