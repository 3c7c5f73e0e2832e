"""What every solver promises: steps that do not depend on how they are asked for."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from itertools import count, product

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.api.monitor import History, check_interval, sooner
from adacoord.solvers.newton import newton, size
from adacoord.solvers.newton.newton import LOOK
from adacoord.solvers.registry import SOLVERS

PROBLEMS = {
    "l2": ("squared", 0.0, 0.02),
    "l1+l2": ("logistic", 0.01, 0.02),
    "l1": ("squared", 0.02, 0.0),
    "hinge": ("hinge", 0.0, 0.02),
    "hinge, l1": ("hinge", 0.01, 0.0),
}
SPDC_OPTIONS = [
    {"sampling": sampling, "batch_size": m}
    for sampling in ("uniform", "lipschitz", "weighted")
    for m in (1, 4, 27)
] + [
    {"steps": "theory"},
    {"sampling": "weighted", "steps": "theory", "batch_size": 4},
    {"sampling": "weighted", "steps": "icml2015"},
    {"sampling": "adaptive"},
    {"sampling": "adaptive", "steps": "theory", "delta_passes": 20},
    {"sampling": "adaptive", "steps": "theory2", "kappa": 1.0, "rho": 0.1},
    {"sampling": "adaptive", "steps": "constant", "weights": "last", "delta_passes": 20},
    {"sampling": "lipschitz", "steps": "constant", "delta": (0.2, 0.8), "delta_passes": 20},
    {"sampling": "ideal"},
]
#: Eight blocks of one to nine rows, the row of zeros among them.
GROUPS = np.repeat(np.arange(8), [1, 2, 9, 1, 3, 1, 5, 5])[np.random.default_rng(0).permutation(27)]
SPDC_OPTIONS += [
    {"groups": GROUPS},
    {"groups": GROUPS, "sampling": "weighted", "batch_size": 3},
    {"kinks": "direct"},
    {"kinks": "direct", "sampling": "weighted", "batch_size": 4},
]
ADASPDC_OPTIONS = [
    {},
    {"kinks": "direct"},
    {"batch_size": 4},
    {"batch_size": 27},
    {"groups": GROUPS},
    {"groups": GROUPS, "batch_size": 3},
]
DOUBLY_OPTIONS = [{}, {"sampling": "lipschitz"}, {"sampling": "adaptive"}]
DSPDC_OPTIONS = [{"steps": s, "sampling": "adaptive"} for s in ("printed", "constant")]


def name_of(value):
    if not isinstance(value, dict):
        return str(value)
    return " ".join("groups" if k == "groups" else str(v) for k, v in value.items())


def able(name, kind, options=None):
    """Whether the registry lets the solver take the problem (ideal sampling: two will do)."""
    if (options or {}).get("sampling") == "ideal" and kind not in ("l2", "hinge"):
        return False
    missing = {"strongly_convex"} if PROBLEMS[kind][2] == 0.0 else set()
    missing |= {"smooth", "differentiable"} if PROBLEMS[kind][0] == "hinge" else set()
    missing |= {"quadratic"} if PROBLEMS[kind][1] > 0.0 else set()
    entry = SOLVERS[name].variant(make_problem(kind, "dense"))
    return not missing & entry.needs and entry.options >= set(options or {})


def make_problem(kind, storage, *, intercept=False, weights=False, seed=0):
    rng = np.random.default_rng(seed)
    loss, l1, l2 = PROBLEMS[kind]
    n, d = 27, 10
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5) * rng.exponential(1.0, (n, 1))
    A[5] = 0.0
    z = A @ rng.standard_normal(d) + 0.5 + 0.3 * rng.standard_normal(n)
    return ac.Problem(
        sparse.csr_matrix(A) if storage == "csr" else A,
        z if loss == "squared" else np.where(z > 0, 1.0, -1.0),
        loss,
        l1,
        l2,
        intercept=intercept,
        sample_weight=rng.exponential(1.0, n) if weights else None,
    )


#: Finish what is hard for the others: only a gap that is rounding over l2 lasts.
QUICK = ("newton", "newton-cg", "afg", "asdca", "lbfgs", "sag")
#: Draw nothing, or nothing on data as small as here.
DETERMINISTIC = ("cd", "newton", "newton-cg", "afg", "lbfgs", "pdhg")


@pytest.fixture
def nothing_is_small(monkeypatch):
    """Newton's method as it is for larger data."""
    monkeypatch.setattr(size, "SMALL", 0)
    monkeypatch.setattr(newton, "SMALL", 0)


def long_problem(name):  # labels are noise, hardly a penalty: far from solved in any test
    rng = np.random.default_rng(0)
    b = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    l2 = 1e-30 if name in QUICK else 1e-12
    A = rng.standard_normal((300, 60))
    if name == "newton":  # classes that can be told apart, and next to nothing that holds x back
        return ac.Problem(A, np.sign(A @ rng.standard_normal(60)), "smooth_hinge", l2=1e-14)
    if name == "acf":  # rows too long for second-order steps, but by BLAS
        A = sparse.csr_array(A)
    return ac.Problem(A, b, "smooth_hinge", l2=l2)


def make_solver(name, problem, seed=0, start=None, **options):
    rng = np.random.Generator(np.random.PCG64(seed))
    return SOLVERS[name].variant(problem).load()(problem, rng, start, **options)


def assert_bits(a, b):
    for name in ("x", "y", "intercept", "passes", "operations"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


BY_SOLVER = {
    "spdc": SPDC_OPTIONS,
    "adaspdc": ADASPDC_OPTIONS,
    "dspdc": DOUBLY_OPTIONS + DSPDC_OPTIONS,
    "spd1-vr": DOUBLY_OPTIONS,
    "acf": [{}, *({"order": o} for o in ("published", "argmax", "iid"))],
    "cd": [{}, *({"order": o} for o in ("frequencies", "argmax", "iid"))],
    "sag": [{}, {"lipschitz": "norm", "step": 0.25}],
}
OPTIONS = [(name, o) for name in SOLVERS for o in BY_SOLVER.get(name, [{}])]
CASES = pytest.mark.parametrize(
    "name, options, kind",
    [(n, o, k) for n, o in OPTIONS for k in PROBLEMS if able(n, k, o)],
    ids=name_of,
)
STORAGES = pytest.mark.parametrize("storage", ["dense", "csr"])


@CASES
@STORAGES
def test_passes_add_up(name, options, kind, storage):
    """advance(a); advance(b) is advance(a + b), across pass 32 and the ends of stages."""
    problem = make_problem(kind, storage, intercept=True, weights=True)
    whole, parts, single = (make_solver(name, problem, **options) for _ in range(3))
    whole.advance(75)
    for k in (3, 1, 27, 0, 2, 31, 11):
        parts.advance(k)
        parts.x.sum()  # to look is not to touch
    for _ in range(75):
        single.advance(1)
    assert_bits(whole, parts)
    assert_bits(whole, single)
    assert whole.passes == 75 and (name != "spdc" or not whole.perturbed or whole.stage >= 1)


@pytest.mark.slow
@CASES
@STORAGES
def test_state_continues_elsewhere(name, options, kind, storage):
    """state() into a fresh solver, at several moments."""
    problem = make_problem(kind, storage, intercept=True)
    for passes in (0, 1, 17, 32, 40):
        first = make_solver(name, problem, **options)
        first.advance(passes)
        state = first.state()
        for key, value in state.items():
            assert isinstance(value, (np.ndarray, int, float, np.number)), key
            assert np.asarray(value).dtype.kind in "biuf", key
        frozen = {k: np.array(v) for k, v in state.items()}
        first.advance(30)
        other = make_solver(name, problem, **options)
        other.restore(state)
        assert other.passes == passes
        other.advance(30)
        assert_bits(first, other)
        for key, value in state.items():  # copies, not views
            np.testing.assert_array_equal(value, frozen[key], err_msg=key)


@pytest.mark.parametrize("name, options", OPTIONS, ids=name_of)
def test_state_is_the_whole_state(name, options):
    """The generator is part of it: the seed of the solver that takes over does not matter."""
    problem = make_problem("l2", "csr")
    first, other = (make_solver(name, problem, seed, **options) for seed in (0, 1))
    first.advance(3)
    other.restore(first.state())
    first.advance(3)
    other.advance(3)
    assert_bits(first, other)


@pytest.mark.parametrize("name", SOLVERS)
def test_restore_into_a_used_solver(name):
    first, other = (make_solver(name, make_problem("l2", "csr")) for _ in range(2))
    other.advance(5)
    other.restore(first.state())
    assert_bits(first, other)


@CASES
@STORAGES
def test_seeds(name, options, kind, storage):
    problem = make_problem(kind, storage)
    a, b, c = (make_solver(name, problem, seed, **options) for seed in (0, 0, 1))
    for solver in (a, b, c):
        solver.advance(3)
    assert_bits(a, b)
    # nothing to draw: all rows in every batch, all columns in turn, or a whole system
    draws = options.get("batch_size") != 27 and options.get("order") != "argmax"
    if draws and name not in DETERMINISTIC:
        assert not (np.array_equal(a.y, c.y) and np.array_equal(a.x, c.x))


def test_global_random_state_is_neither_used_nor_changed():
    found = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        found.append(ac.solve(make_problem("l2", "csr"), "spdc", batch_size=3))
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(found[0].x, found[1].x)


@CASES
@STORAGES
def test_y_stays_in_the_domain_and_operations_are_counted(name, options, kind, storage):
    problem = make_problem(kind, storage)
    solver = make_solver(name, problem, **options)
    assert 5 not in solver.rows  # the row of zeros
    b = problem.b
    sizes = np.diff(problem.matrix.indptr.astype(int))
    orders, m = [], min(options.get("batch_size", 1), 26)
    if name in ("spdc", "adaspdc"):
        run = solver._run

        def recorded(order, *args, **kwargs):
            run(order, *args, **kwargs)
            orders.append(order.copy())

        solver._run = recorded
        parts, looks = solver._gap_parts, []
        solver._gap_parts = lambda x: looks.append(1) or parts(x)
    for k in range(1, 40):
        before = solver.operations
        solver.advance(1)
        if problem.loss.name != "squared":  # hinge and logistic
            assert np.all(-b * solver.y >= 0.0) and np.all(-b * solver.y <= 1.0)
        assert np.isfinite(solver.y).all() and np.isfinite(solver.x).all()
        if name in ("spdc", "adaspdc"):
            total = sum(sizes[o].sum() for o in orders)
            # a look at the gap of a stage is a product with A, so is a step of ideal sampling
            products = len(looks) + (k * 26 if options.get("sampling") == "ideal" else 0)
            assert solver.operations == total + products * problem.matrix.nnz
            assert bool(looks) == (solver.perturbed or name == "adaspdc")
            assert all(np.isin(o, solver.rows).all() for o in orders)
            if "groups" not in options:
                assert sum(o.size for o in orders) == k * 26 // m * m
        elif name == "dcd":  # each row once a pass
            assert solver.operations - before == sizes[solver.rows].sum()
        elif name == "sdca" and storage == "dense":
            assert solver.operations - before == 26 * 10


@STORAGES
@pytest.mark.parametrize("name", SOLVERS)
def test_start(name, storage):
    """A start point is where the solver starts, and is not written to."""
    kind = "l1+l2" if able(name, "l1+l2") else "l2"
    problem = make_problem(kind, storage, intercept=True)
    found = ac.solve(problem, name, tol=1e-10, max_passes=100_000)
    found.x.flags.writeable = found.y.flags.writeable = False
    solver = make_solver(name, problem, start=found)
    np.testing.assert_array_equal(solver.y, found.y)
    np.testing.assert_allclose(solver.x, found.x, atol=1e-4)
    assert solver.intercept == pytest.approx(found.intercept)
    solver.advance(40)
    assert problem.gap(solver.x, solver.y, solver.intercept) < 1e-7


@STORAGES
@pytest.mark.parametrize("name", SOLVERS)
def test_nothing_to_visit(name, storage):
    """All rows zero, no intercept: the answer is x = 0, and nothing divides by zero."""
    A = np.zeros((4, 3))
    b = np.array([1.0, -1.0, 1.0, -1.0])
    problem = ac.Problem(sparse.csr_matrix(A) if storage == "csr" else A, b, "logistic", l2=0.1)
    result = ac.solve(problem, name, tol=1e-12)
    assert not result.x.any()
    assert result.primal == pytest.approx(np.log(2.0), rel=1e-14)
    with_intercept = ac.Problem(
        problem.matrix, np.array([1.0, 1.0, 1.0, -1.0]), "logistic", l2=0.1, intercept=True
    )
    result = ac.solve(with_intercept, name, tol=1e-9, max_passes=20_000)
    assert result.intercept == pytest.approx(np.log(3.0), rel=1e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_one_row(name):
    for A in (np.array([[2.0]]), sparse.csr_matrix([[2.0]])):  # min (2x - 3)^2/2 + x^2/2
        result = ac.solve(ac.Problem(A, [3.0], l2=1.0), name, tol=1e-13)
        assert result.x[0] == pytest.approx(6 / 5, rel=1e-6)


# ---- solve() and its monitor -------------------------------------------------------------------


def assert_consistent(problem, result):
    """The history is what a monitor may have seen, and the result its best points."""
    h = result.history
    arrays = (h.passes, h.seconds, h.operations, h.primal, h.dual, h.gap, h.relative_gap)
    assert all(isinstance(a, np.ndarray) and a.shape == h.passes.shape for a in arrays)
    least = 0 if result.status == "interrupted" else 1
    assert np.all(np.diff(h.passes) >= least)
    assert np.all(np.diff(h.seconds) >= 0) and np.all(np.diff(h.operations) >= least)
    # of the best points so far, of which x = 0 is one, and what rounding may hide: more of it
    # where newton-cg has come near to the optimum of a problem with next to no penalty
    hidden = 0.2 if result.solver == "newton-cg" else 0.02
    best_p = np.minimum.accumulate(np.minimum(h.primal, problem.null_value))
    raw = np.maximum(best_p - np.maximum.accumulate(h.dual), 0.0)
    rounding = 1e-12 * (np.abs(best_p) + np.abs(h.dual.max()))
    assert np.all(np.diff(h.gap) <= rounding[1:])
    assert np.all(h.gap >= raw) and np.all(h.gap <= (1.0 + hidden) * raw + rounding)
    assert result.primal == best_p[-1]
    assert h.dual.max() - rounding[-1] - hidden * raw[-1] <= result.dual < h.dual.max()
    assert result.gap == h.gap[-1] and result.relative_gap == h.relative_gap[-1]
    assert result.passes == h.passes[-1] and result.seconds >= h.seconds[-1]
    # and the points are those the numbers belong to
    assert problem.primal(result.x, result.intercept) == result.primal
    assert problem.dual(result.y) == pytest.approx(h.dual.max(), rel=1e-11)
    assert result.converged == (result.status == "converged")


@pytest.mark.slow
@STORAGES
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("intercept", [False, True])
def test_tolerance(kind, intercept, storage):
    problem = make_problem(kind, storage, intercept=intercept, weights=True)
    for name in (s for s in SOLVERS if able(s, kind)):
        # a linear program with a free variable: SPDC, which cannot balance its primal and dual
        # steps, would need more than 50,000 passes for 1e-5
        tol = 2e-2 if (name, kind, intercept) == ("spdc", "hinge, l1", True) else 1e-5
        result = ac.solve(problem, name, tol=tol, max_passes=50_000)
        assert result.status == "converged" and result.relative_gap <= tol
        if len(result.history.gap) > 1:
            assert result.history.relative_gap[-2] > tol  # it stopped at the first that was enough
        assert result.solver == name
        assert_consistent(problem, result)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("name", SOLVERS)
def test_max_passes(name):
    problem = make_problem("l2", "csr", intercept=True)
    if name in QUICK:
        problem = long_problem(name)
    with pytest.warns(ac.ConvergenceWarning) as caught:
        result = ac.solve(problem, name, tol=1e-14, max_passes=7)
    assert (result.status, result.passes, result.converged) == ("max_passes", 7, False)
    assert_consistent(problem, result)
    (warning,) = caught
    text = str(warning.message)
    assert warning.filename == __file__  # it points at the caller
    assert f"{result.relative_gap:.2e}" in text and "1e-14" in text and "max_passes=7" in text
    assert re.search(r"more passes.*tol.*penalty", text)


def test_warning_for_float32_names_the_real_reason():
    problem = make_problem("l2", "dense")
    A = problem.matrix.data.reshape(27, 10).astype(np.float32)
    problem = ac.Problem(A, problem.b, l2=0.02)
    with pytest.warns(ac.ConvergenceWarning, match="float64"):
        ac.solve(problem, "spdc", tol=1e-15, max_passes=3000)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("name", SOLVERS)
def test_max_seconds(name, monkeypatch):
    """By a clock that gains a tenth of a second each time it is read."""
    problem = long_problem(name)
    ticks = count()
    monkeypatch.setattr("adacoord.api.monitor.time.perf_counter", lambda: next(ticks) / 10)
    with pytest.warns(ac.ConvergenceWarning, match="max_seconds"):
        result = ac.solve(problem, name, tol=0.0, max_passes=10**9, max_seconds=0.8)
    assert result.status == "max_seconds" and not result.converged
    assert 0.8 <= result.history.seconds[-1] <= 1.0
    assert_consistent(problem, result)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("name", SOLVERS)
def test_callback(name):
    problem = long_problem(name)
    seen = []
    result = ac.solve(
        problem,
        name,
        tol=1e-15,  # no warning: it was asked to stop
        callback=lambda p: seen.append(p) or p.passes >= 20,
    )
    assert result.status == "callback" and not result.converged
    assert [p.passes for p in seen] == list(result.history.passes)
    assert [p.gap for p in seen] == list(result.history.gap) and seen[0].tol == 1e-15
    assert seen[-1].primal == result.primal and seen[-1].dual == result.dual
    assert_consistent(problem, result)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("when", [0, 12])
@pytest.mark.parametrize("once", [True, False])
def test_interrupt_from_a_callback(name, when, once):
    """Also when the callback would go on raising."""
    problem = long_problem(name)
    calls = []

    def callback(progress):
        if progress.passes >= when and not (once and calls):
            calls.append(progress)
            raise KeyboardInterrupt

    try:
        result = ac.solve(problem, name, tol=1e-15, callback=callback)
    except KeyboardInterrupt:  # would end the whole test run
        pytest.fail(f"KeyboardInterrupt left solve(); the callback was called {len(calls)} times")
    assert result.status == "interrupted" and not result.converged
    assert result.passes >= when
    assert_consistent(problem, result)


def test_other_exceptions_of_a_callback_pass_through():
    with pytest.raises(ZeroDivisionError):
        ac.solve(make_problem("l2", "csr"), "spdc", callback=lambda p: 1 / 0)


CTRL_C = """
import os, signal, sys, threading, numpy as np, adacoord as ac
A = np.random.default_rng(0).standard_normal((20000, 50))
problem = ac.Problem(A, np.where(A[:, 0] > 0, 1.0, -1.0), "smooth_hinge", l2=L2)
sys.setswitchinterval(1e-5)
press = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
def well_under_way(progress):
    if progress.passes >= 20 and press.ident is None:
        press.start()
r = ac.solve(problem, SOLVER, tol=1e-15, max_passes=10**9, callback=well_under_way)
# Two evaluations differ by rounding: of the gap's own size, or of P(0) = .5 where the gap is tiny.
close = abs(problem.gap(r.x, r.y) - r.gap) <= 1e-9 * r.gap + 1e-13
print("status", r.status, r.passes, r.gap == r.primal - r.dual, close)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_ctrl_c(name):
    """A signal in the middle of a run: a thread of the run's own process sends it, so that a quick
    solver is not done before another process was given its turn."""
    code = CTRL_C.replace("SOLVER", repr(name)).replace("L2", "1e-30" if name in QUICK else "1e-12")
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr
    last = run.stdout.split()
    assert last[:2] == ["status", "interrupted"] and int(last[2]) >= 20, run.stdout
    assert last[3:] == ["True", "True"] and not run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("name", SOLVERS)
def test_warm_start_from_a_solution_is_done_at_once(name, kind):
    """Its x and its y prove the gap it has: whoever continues knows at the first check."""
    for by, intercept in product(SOLVERS, (False, True)):
        if able(name, kind) and able(by, kind):
            problem = make_problem(kind, "csr", intercept=intercept)
            found = ac.solve(problem, by, tol=1e-6, callback=lambda p: p.passes > 900)
            again = ac.solve(problem, name, tol=found.relative_gap + 1e-13, start=found)
            # on small data newton goes on to the last digit
            assert again.status == "converged", (by, problem)
            assert again.passes <= (10 if name == "newton" else 0), (by, problem)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("name", SOLVERS)
def test_checks_follow_the_passes_alone(name):
    """Two seeds, and a slow callback: the gap is looked at after the same passes."""
    problem = long_problem(name)
    runs, most = [], 20 if name == "cd" else 300  # which solves it, to the last bit
    for seed, nap in ((0, 0.0), (1, 0.002)):
        with pytest.warns(ac.ConvergenceWarning):
            runs.append(
                ac.solve(
                    problem,
                    name,
                    tol=0.0,
                    max_passes=most,
                    seed=seed,
                    callback=lambda p, nap=nap: time.sleep(nap),
                ).history.passes
            )
    np.testing.assert_array_equal(*runs)
    expected, cost = [0], SOLVERS[name].load().check_cost
    while expected[-1] < most:
        expected.append(min(expected[-1] + check_interval(expected[-1], cost), most))
    if name == "lbfgs":  # which ends before, in rounding
        expected = expected[: runs[0].size]
    if name == "newton":  # looked at when it says so, and with a callback after as many passes
        step = check_interval(0, LOOK / (LOOK + problem.d))  # as a look costs
        np.testing.assert_array_equal(runs[0][:30], step * np.arange(1, 31))
        assert step > 1 and set(np.diff(runs[0])) <= {1, step}
        return
    if name == "newton-cg":  # after its steps, which take some passes of conjugate gradients each
        assert runs[0].size > 1 and 1 == np.diff(runs[0]).min() < np.diff(runs[0]).max()
        return
    np.testing.assert_array_equal(runs[0], expected)


def test_check_interval():
    # 5 x .4 = 2 passes at first, a twentieth of the passes later, never less than one
    assert [check_interval(k, 0.4) for k in (0, 39, 60, 1000)] == [2, 2, 3, 50]
    assert [check_interval(k, c) for k, c in ((0, 1.0), (120, 1.0), (0, 0.0))] == [5, 6, 1]


def test_a_check_comes_sooner_where_tol_is_near():
    def after(gaps, tol=1e-6, interval=5):
        history = History(passes=[0, 5, 10][: len(gaps)], relative_gap=gaps)
        return sooner(interval, history, tol)

    assert after([]) == after([1.0]) == 5  # nothing to predict from
    assert after([1.0, 1e-2]) == 5  # 10 passes to go
    assert after([1.0, 1e-2, 1e-5]) == 2  # 5/3 of a pass: not sooner than 2
    assert after([1.0, 1e-4, 1e-5]) == 5
    assert after([1.0, 1e-1, 1e-5]) == 2 and after([1.0, 1e-4, 4e-6]) == 3
    assert after([1.0, 1e-2, 1e-2]) == after([np.inf, 1.0]) == 5  # no progress, no rate
    assert after([1.0, 1e-5], tol=0.0) == 5
    assert after([1.0, 1e-7], interval=1) == 1


def test_a_callback_cannot_write_into_the_best_point():
    with pytest.raises(ValueError, match="read-only"):
        ac.solve(make_problem("l2", "dense"), "dcd", callback=lambda p: p.x.fill(0.0))
