"""Small problems are solved to the last digit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LinearRegression
from smooth_problems import make

import adacoord as ac
from adacoord.api.solve import run
from adacoord.auto.rule import choose
from adacoord.problem import losses
from adacoord.problem.losses import LOSSES
from adacoord.solvers.newton import interior, program, size, small
from adacoord.solvers.newton.active_set import ActiveSet
from adacoord.solvers.newton.dense import DenseNewton
from adacoord.solvers.newton.dense_kernels import descend
from adacoord.solvers.newton.newton import Newton
from adacoord.solvers.newton.small import SmallNewton, rounded


def solve(problem, solver="auto", **limits):
    """``ac.solve`` without its warning."""
    return run(problem, solver, options={}, **limits)


def problem(make_data, loss="hinge", n=40, d=6, density=1.0, **settings):
    task = LOSSES[loss].task
    A, b = make_data(n, d, density, task=task)
    settings = {"l2": 0.05, "intercept": True, **settings}
    return ac.Problem(A, b, loss, **settings)


SMOOTH = [name for name, cls in LOSSES.items() if cls().differentiable]
KINKED = [name for name in LOSSES if name not in SMOOTH]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(40, 6), (12, 20)])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_is_rounding(make_data, loss, shape, intercept):
    p = problem(make_data, loss, *shape, intercept=intercept)
    r = solve(p, tol=1e-4, max_passes=1000)
    assert r.status == "converged"
    assert r.relative_gap <= 1e-12
    # the certificate is that of the problem, recomputed from the points
    assert p.gap(r.x, r.y, r.intercept) <= 1e-12 * abs(r.primal)
    assert p.primal(r.x, r.intercept) == r.primal
    assert r.history.relative_gap[-1] == r.relative_gap
    assert r.passes == r.history.passes[-1] <= 1000


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
@pytest.mark.parametrize(
    "penalty",
    [{"l1": 0.05, "l2": 0.0}, {"l1": 0.05, "l2": 0.05}, {"l1": 0.05, "l2": 0.05, "positive": True}],
    ids=str,
)
@pytest.mark.parametrize("density", [1.0, 0.4])
def test_l1_is_exact(make_data, loss, penalty, density):
    p = problem(make_data, loss, density=density, **penalty)
    r = solve(p, tol=1e-4, max_passes=2000)
    assert r.relative_gap <= 1e-11
    pull = -p.average(r.y) if p.penalty.positive else np.abs(p.average(r.y))
    assert (r.x[pull < p.penalty.l1 * (1.0 - 1e-9)] == 0.0).all()  # zeros are zeros, not 1e-17


@pytest.mark.parametrize("loss", KINKED)
def test_weights_and_repeated_rows_agree_to_ten_digits(make_data, loss):
    A, b = make_data(30, 8, task=LOSSES[loss].task)
    w = np.random.default_rng(0).integers(0, 4, 30)
    n, m = 30, int(w.sum())
    weighted = ac.Problem(A, b, loss, l2=1 / n, sample_weight=w, intercept=True)
    repeated = ac.Problem(np.repeat(A, w, axis=0), np.repeat(b, w), loss, l2=1 / m, intercept=True)
    x, y = (solve(p, tol=1e-4, max_passes=1000).x for p in (weighted, repeated))
    np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


def test_against_an_independent_solver(make_data):
    """The hinge as a quadratic program with slacks, by SciPy."""
    p = problem(make_data, n=25, d=4)
    A, b = p.matrix.data.reshape(25, 4), p.b

    def objective(v):
        return np.mean(v[5:]) + 0.025 * v[:4] @ v[:4]

    def slope(v):
        return np.r_[0.05 * v[:4], 0.0, np.full(25, 1 / 25)]

    rows = np.column_stack([b[:, None] * A, b, np.eye(25)])
    found = optimize.minimize(
        objective,
        np.r_[np.zeros(5), np.ones(25)],
        jac=slope,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: rows @ v - 1.0, "jac": lambda v: rows},
        bounds=[(None, None)] * 5 + [(0, None)] * 25,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    r = solve(p, tol=1e-4, max_passes=1000)
    np.testing.assert_allclose(r.x, found.x[:4], atol=1e-6)
    assert r.primal <= found.fun + 1e-12


@pytest.mark.parametrize("loss", KINKED)
@pytest.mark.parametrize("mu", [1.0, 1e-2])
def test_rounding_is_the_moreau_envelope(make_data, loss, mu):
    """phi_mu(z) = max_v vz - phi*(v) - (mu/2)(v - y)^2, up to a constant: by the dual prox."""
    p = problem(make_data, loss)
    rng = np.random.default_rng(0)
    y = p.into_domain(rng.standard_normal(p.n))
    z = 2.0 * rng.standard_normal(p.n)
    loss, b = rounded(p, mu, y)
    slopes = loss.derivative(z, b)
    np.testing.assert_allclose(slopes, p.loss.dual_prox(z, p.b, y, 1.0 / mu), atol=1e-12)


def test_a_wrong_guess_is_not_kept(make_data, monkeypatch):
    p = problem(make_data)

    def wrong(self):
        self.t, self.c, self.y, self.ended = np.ones(p.d), 0.0, np.zeros(p.n), True

    monkeypatch.setattr(ActiveSet, "iterate", wrong)
    r = solve(p, tol=1e-6, max_passes=1000)
    assert r.converged
    assert p.gap(r.x, r.y, r.intercept) / r.primal <= 1e-6


@pytest.mark.parametrize("l2", [1e-4, 1e-5, 1e-6])
def test_a_guess_gives_up(make_data, l2):
    """Soon: also where it stays the same and more rows are held at kinks than can be met."""
    p = problem(make_data, n=300, d=5, l2=l2)
    guesses = ActiveSet(p)
    guesses.begin(np.full(5, 50.0), 0.0, np.zeros(300))
    while not guesses.ended:
        guesses.iterate()
    assert guesses.failed
    assert guesses.taken <= 10


def test_where_newton_fails_another_method_goes_on(make_data, monkeypatch):
    def fail(self):
        self.ended = self.failed = True

    monkeypatch.setattr(DenseNewton, "iterate", fail)
    p = problem(make_data, "hinge")
    r = solve(p, tol=1e-6, max_passes=1000)
    assert r.converged and r.history.switched.before == "newton"
    alone = solve(p, "newton", tol=1e-6, max_passes=1000)  # by that for larger data
    assert alone.converged and alone.history.switched.after == "newton"
    monkeypatch.setattr(interior, "IDLE", 0)  # stuck at once
    p = p.with_penalty(l1=1e-3)  # which that for larger data takes by an interior point alone
    alone = solve(p, "newton", tol=1e-6, max_passes=1000)
    assert alone.status == "stuck" and not alone.converged
    with pytest.warns(ac.ConvergenceWarning, match=r'newton is stuck .* Use solver="auto"'):
        ac.solve(p, "newton")


def test_large_problems_are_left_alone(make_data, monkeypatch):
    monkeypatch.setattr(size, "SMALL", 10)
    monkeypatch.setattr(SmallNewton, "__init__", None)
    p = problem(make_data, "hinge")
    assert solve(p, tol=1e-3, max_passes=1000).converged


def test_limits_are_kept(make_data):
    p = problem(make_data, "hinge", l2=1e-6)
    r = solve(p, tol=1e-9, max_passes=1)
    assert r.status == "max_passes"
    assert r.passes == 1
    assert r.relative_gap > 1e-9


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_interrupted_at_once(make_data, monkeypatch, loss):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(DenseNewton, "iterate", interrupt)
    p = problem(make_data, loss)
    r = solve(p, tol=1e-4, max_passes=1000)
    assert r.status == "interrupted"
    assert not r.converged
    assert r.relative_gap >= p.gap(r.x, r.y, r.intercept) / max(r.primal, r.dual) > 0.0


@pytest.mark.parametrize("loss", KINKED)
def test_little_is_had_for_little(make_data, loss):
    p = problem(make_data, loss, n=200, d=10, l2=1e-3)
    little, all_of_it = (solve(p, tol=tol, max_passes=1000) for tol in (1e-2, 1e-4))
    assert little.status == "converged"
    assert 1e-10 < p.gap(little.x, little.y, little.intercept) / little.primal <= 1e-2
    assert little.passes < all_of_it.passes


@pytest.mark.parametrize("loss", KINKED)
@pytest.mark.parametrize("shape", [(200, 10), (40, 300)], ids=str)
@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_callbacks_see_the_problem_itself(make_data, loss, shape, l1):
    """Not the rounded one, and its own tol; passes and seconds of all legs."""
    p = problem(make_data, loss, *shape, l1=l1, l2=0.01)
    seen = []
    r = solve(p, tol=1e-5, max_passes=1000, callback=lambda progress: seen.append(progress))
    assert seen
    for progress in seen:
        assert progress.tol == 1e-5
        assert p.primal(progress.x, progress.intercept) == pytest.approx(progress.primal, 1e-12)
        assert progress.primal >= r.primal * (1.0 - 1e-12)
        assert progress.dual <= r.dual + 1e-12
        assert progress.relative_gap == p.relative_gap(progress.primal, progress.dual)
        assert not progress.x.flags.writeable
    for name in ("passes", "seconds"):
        values = [getattr(progress, name) for progress in seen]
        assert values == sorted(values)
    assert seen[-1].passes <= r.passes


def test_a_callback_stops_it(make_data):
    p = problem(make_data, n=200, d=10, l2=1e-3)
    r = solve(p, tol=1e-6, max_passes=1000, callback=lambda progress: True)
    assert r.status == "callback"
    assert p.gap(r.x, r.y, r.intercept) == pytest.approx(r.gap, abs=1e-12)


def test_a_warm_start_is_polished_at_once(make_data):
    p = problem(make_data, n=100, d=8)
    cold = solve(p, tol=1e-4, max_passes=1000)
    warm = solve(p, tol=1e-4, max_passes=1000, start=cold)
    assert warm.passes <= 2 < cold.passes
    np.testing.assert_allclose(warm.x, cold.x, rtol=1e-12)


def test_repeated_rows_at_kinks(make_data):
    """More rows at kinks than unknowns: they repeat one another."""
    A, b = make_data(40, 6)
    p = ac.Problem(np.repeat(A, 8, axis=0), np.repeat(b, 8), "hinge", l2=0.05, intercept=True)
    r = solve(p, tol=1e-4, max_passes=1000)
    once = solve(ac.Problem(A, b, "hinge", l2=0.05, intercept=True), tol=1e-4, max_passes=1000)
    assert r.relative_gap <= 1e-12
    np.testing.assert_allclose(r.x, once.x, rtol=1e-9)


@pytest.mark.parametrize("shape", [(50, 8), (8, 20)], ids=str)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_norm_without_a_penalty(shape, intercept, weighted):
    """Of the many minimisers of a rank-deficient problem, as scikit-learn's LinearRegression."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
    A[:, 3], A[:, 5] = A[:, 1], 2.0
    w = rng.integers(0, 3, shape[0]) + (np.arange(shape[0]) == 0) if weighted else None
    p = ac.Problem(A, b, "squared", sample_weight=w, intercept=intercept)
    r = solve(p, tol=1e-10, max_passes=100)
    assert r.status == "stationary, no certificate"
    peer = LinearRegression(fit_intercept=intercept).fit(A, b, w)
    np.testing.assert_allclose(r.x, peer.coef_, atol=1e-12)
    np.testing.assert_allclose(r.intercept, peer.intercept_, atol=1e-12)


@pytest.mark.parametrize("loss", ["huber", "log_cosh"])
def test_as_many_coefficients_as_rows(loss):
    """A support that is as large as the rows allow, where coordinate descent crawls for ever."""
    rng = np.random.default_rng(60)
    A = rng.standard_normal((60, 400)) * (rng.random((60, 400)) < 1.0)
    b = A @ (rng.standard_normal(400) * (rng.random(400) < 0.3)) + rng.standard_normal(60)
    top = ac.Problem(A, b, loss, l2=1.0, intercept=True).l1_max()
    p = ac.Problem(A, b, loss, l1=0.05 * top)
    r = solve(p, tol=1e-9, max_passes=300)
    assert r.status == "converged" and r.solver == "newton"
    assert np.count_nonzero(r.x) >= 59


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("rank", [4, 12, 30])
def test_the_least_point_of_a_model_by_active_sets(rank, positive):
    """Against coordinate descent with all the sweeps it wants."""
    rng = np.random.default_rng(rank)
    A, b = rng.standard_normal((rank, 20)), rng.standard_normal(rank)
    problem = ac.Problem(A, b, l1=0.05, positive=positive)
    newton = DenseNewton(problem)
    newton.begin(np.zeros(20), 0.0, (problem.loss.code, *problem.loss.constants), b)
    newton._curve(newton.bent, newton.law)
    gradient = newton._work[3][:20].copy()
    step = newton._exactly(np.zeros(20), gradient, np.zeros(20))
    x, slopes = np.zeros(20), gradient.copy()
    descend(newton.H, slopes, x, 0.05, positive, 20_000)

    def model(s):
        return gradient @ s + 0.5 * s @ newton.H @ s + 0.05 * np.abs(s).sum()

    assert model(step) <= model(x) + 1e-12 and (not positive or (step >= 0.0).all())


@pytest.mark.parametrize("scale", [100.0, 1.0, 0.1])
@pytest.mark.parametrize("q", [0.1, 0.75, 0.9])
def test_an_intercept_that_no_row_holds(q, scale):
    """Without a row at a kink the guess once left c where it was: 1000 passes, and no solution."""
    X, y = load_diabetes(return_X_y=True)
    p = ac.Problem(X, y, ac.losses.Quantile(q), l2=scale / len(y), intercept=True)
    r = ac.solve(p, tol=1e-12)
    assert r.solver == "newton" and r.converged
    assert r.passes <= 25


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", KINKED)
def test_the_best_intercept(make_data, loss, weighted):
    """By trying all kinks; its slopes sum to 0 and are slopes there."""
    A, b = make_data(31, 3, task=LOSSES[loss].task)
    w = np.random.default_rng(1).integers(0, 3, 31) if weighted else None
    p = ac.Problem(A, b, loss, l2=0.1, sample_weight=w, intercept=True)
    x = np.array([0.3, -1.0, 0.5])
    z, epsilon = A @ x, p.loss.constants[1]
    c, y = ActiveSet(p).conditions._balanced(z)
    kinks = np.concatenate([b - z - epsilon, b - z + epsilon])
    assert p.primal(x, c) <= min(p.primal(x, float(k)) for k in kinks) * (1.0 + 1e-14)
    assert abs(p._mean(y)) <= 1e-15
    touch = p.loss.value(z + c, b) + p.loss.conjugate(y, b) - y * (z + c)
    np.testing.assert_allclose(touch if w is None else touch[w > 0], 0.0, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_that_wander_about(intercept):
    """With one rough step per width, the narrowest came before the rows at kinks were known."""
    X, y = load_digits(return_X_y=True)
    p = ac.Problem(X, y, "epsilon_insensitive", l2=1.2e-7, intercept=intercept)
    r = ac.solve(p, tol=1e-10)
    assert r.solver == "newton" and r.converged


@pytest.mark.parametrize("loss", KINKED)
def test_rows_at_a_kink(make_data, loss):
    """Those whose dual prox is strictly inside the domain, and not at the kink of epsilon |v|."""
    w = (np.random.default_rng(1).random(50) < 0.9).astype(float)
    p = problem(make_data, loss, n=50, d=3, sample_weight=w)
    rng, (lo, hi) = np.random.default_rng(1), p.loss.domain(p.b)
    z, y = 2.0 * rng.standard_normal(50), p.into_domain(rng.standard_normal(50))
    conditions = ActiveSet(p).conditions
    v, kink = conditions._respond(z, y)
    np.testing.assert_allclose(v, p.loss.dual_prox(z, p.b, y, conditions.dual_step), atol=1e-14)
    inside = (v > lo) & (v < hi) & (w > 0.0)
    if p.loss.constants[1] > 0.0:
        inside &= v != 0.0
    np.testing.assert_array_equal(kink, inside)
    assert 0 < kink.sum() < 50


def test_auto_takes_conjugate_gradients_on_small_data_with_long_rows():
    """Where a Gram matrix costs many products; data of some hundred rows go to the last digit."""
    A, b = make("logistic", 2000, 100)
    assert choose(ac.Problem(A, b, "logistic", l2=1e-3)) == "newton-cg"
    assert choose(ac.Problem(A[:, :10], b, "logistic", l2=1e-3)) == "newton"
    assert choose(ac.Problem(A[:160], b[:160], "logistic", l2=1e-3)) == "newton"
    for loss in ("squared", "squared_hinge"):  # which Newton steps end on
        assert choose(ac.Problem(A, b, loss, l2=1e-3)) == "newton"
    assert choose(ac.Problem(A, b, "logistic", l2=1e-3, l1=1e-3)) == "acf"  # columns, too


@pytest.mark.parametrize("l2", [1e-6, 1e-3, 1.0])
def test_small_classes_end_a_step_early_and_at_the_last_digit(l2):
    """The step that would change nothing is not made, from zero and from a neighbour's solution."""
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((150, 4)), rng.integers(3, size=150)
    problem = ac.Problem(A, b, "multinomial", l2=l2, intercept=True)
    before = run(problem.with_penalty(l2=2.0 * l2), "newton", tol=1e-4, max_passes=100, options={})
    for start in (None, before):
        found = run(problem, "newton", tol=1e-4, max_passes=100, options={}, start=start)
        solver = Newton(problem, np.random.Generator(np.random.PCG64(0)), start)
        solver.advance(found.passes + 3)
        np.testing.assert_allclose(found.x, solver.x, rtol=0, atol=1e-10 * np.abs(solver.x).max())
        assert found.relative_gap <= 1e-12


def test_a_start_of_classes_that_is_worse_than_zero_is_left():
    rng = np.random.default_rng(4)
    A, b = rng.standard_normal((150, 4)), rng.integers(3, size=150)
    problem = ac.Problem(A, b, "multinomial", l2=1e-2, intercept=True)
    found = ac.solve(problem, "newton", tol=1e-9)
    for large in (1e2, 1e200):
        start = SimpleNamespace(x=large * A[:4, :3], intercept=np.zeros(3), y=found.y)
        again = ac.solve(problem, "newton", tol=1e-9, start=start)
        assert again.converged and again.passes <= found.passes
        np.testing.assert_allclose(again.x, found.x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", ["absolute", "quantile", "hinge"])
@pytest.mark.parametrize("shape", [(60, 5), (25, 40), (10, 90)])
@pytest.mark.parametrize("share", [2.0, 0.3, 0.01])
def test_programs_end_in_the_vertex_without_highs(make_data, monkeypatch, loss, shape, share):
    p = problem(make_data, loss, *shape, l1=1.0, l2=0.0)
    p = p.with_penalty(l1=share * p.l1_max())
    x, c, _ = program.solve_program(p)
    monkeypatch.setattr(program, "solve_program", None)
    r = solve(p, tol=1e-4, max_passes=100)
    most = 1e-11 if shape[0] > shape[1] else 1e-9  # of a P that is nearly 0 where rows are few
    assert r.status == "converged" and r.relative_gap <= most
    assert r.primal == pytest.approx(p.primal(x, c), rel=most)
    slack = p.penalty.l1 - np.abs(p.average(r.y))
    assert (r.x[slack > 1e-6 * p.penalty.l1] == 0.0).all()
    if share > 1.0:
        assert not r.x.any()


def test_programs_go_to_highs_where_the_interior_point_is_stuck(make_data, monkeypatch):
    p = problem(make_data, "absolute", l1=0.05, l2=0.0)
    best = solve(p, tol=1e-4, max_passes=100)
    monkeypatch.setattr(interior, "IDLE", 0)
    r = solve(p, tol=1e-4, max_passes=100)
    assert r.status == "converged" and r.relative_gap <= 1e-11
    assert r.primal == pytest.approx(best.primal, rel=1e-12)


@pytest.mark.parametrize("shape", [(60, 5), (20, 40)])
def test_programs_of_columns_far_from_zero(make_data, monkeypatch, shape):
    near = problem(make_data, "absolute", *shape, l1=0.05, l2=0.0)
    far = ac.Problem(near.matrix.dense + 1e6, near.b, "absolute", l1=0.05, intercept=True)
    monkeypatch.setattr(program, "solve_program", None)
    found = [solve(p, tol=1e-6, max_passes=60) for p in (near, far)]
    assert all(r.status == "converged" for r in found)
    np.testing.assert_allclose(found[1].x, found[0].x, atol=1e-6)


def test_programs_in_pieces(make_data):
    p = problem(make_data, "quantile", l1=0.05, l2=0.0)
    rng = np.random.Generator(np.random.PCG64(0))
    whole, parts, other = (SmallNewton(p, rng) for _ in range(3))
    with np.errstate(all="ignore"):
        whole.advance(9)
        parts.advance(4)
        other.restore(parts.state())
        other.advance(5)
    for name in ("x", "y", "intercept", "estimate", "passes", "operations"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))


@pytest.mark.parametrize("loss", [losses.SmoothHinge(1e-3), losses.Huber(1e-3)], ids=str)
@pytest.mark.parametrize("shape", [(83, 66), (300, 40), (60, 300)])
@pytest.mark.parametrize("further", [{}, {"positive": True}, {"l2": 1e-5}, {"l1": 0.0, "l2": 1e-6}])
def test_narrow_bends(loss, shape, further):
    """Newton's models see no bend before the point is within it: gaps of .6 to 1 were left."""
    rng = np.random.default_rng(sum(shape))
    A = rng.standard_normal(shape)
    b = A @ rng.standard_normal(shape[1]) / shape[1] ** 0.5 + 0.5 * rng.standard_normal(shape[0])
    b = np.sign(b) if loss.task == "classification" else b
    posed = ac.Problem(A, b, loss, l1=1.0, intercept=True)
    penalty = {"l1": 0.01 * posed.l1_max()} | further
    posed = ac.Problem(A, b, loss, intercept=True, **penalty)
    result = solve(posed, tol=1e-9, max_passes=150)
    assert result.converged and result.history.switched is None
    solver = SmallNewton(posed, np.random.Generator(np.random.PCG64(0)))
    other = SmallNewton(posed, np.random.Generator(np.random.PCG64(0)))
    with np.errstate(all="ignore"):
        solver.advance(22)  # to DIRECT's end, and beyond
        while solver.stage == small.DESCEND:
            solver.advance(1)
        solver.advance(3)
        other.restore(solver.state())
        for part in (solver, other):
            part.advance(25)
    np.testing.assert_array_equal(solver.x, other.x)
    np.testing.assert_array_equal(solver.y, other.y)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("shape", [(90, 95), (40, 150), (150, 30)])
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sparse.csr_array])
def test_columns_far_from_zero(loss, shape, storage):
    """Systems that held the squares of means of 50,000 beside an l2 left gaps of up to 1."""
    rng = np.random.default_rng(shape[0])
    A, (n, d) = rng.standard_normal(shape), shape
    z = A @ rng.standard_normal(d) / d**0.5 + 0.3 * rng.standard_normal(n)
    task = LOSSES[loss].task
    b = np.sign(z) if task == "classification" else z
    b = np.exp(z) if task == "positive" else np.floor(np.exp(z)) if task == "count" else b
    far = A + 5e4 * rng.standard_normal(d) * (rng.random(d) < 0.5)
    weights = rng.integers(1, 3, n)
    found, near = (
        solve(
            ac.Problem(storage(X), b, loss, l2=1e-5, intercept=True, sample_weight=weights),
            tol=tol,
            max_passes=300,
        )
        for X, tol in ((far, 1e-5), (A, 1e-9))
    )
    assert found.converged and found.history.switched is None
    assert found.primal == pytest.approx(near.primal, rel=1e-5)
