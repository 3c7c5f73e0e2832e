"""The entries of the AIS paper: their formulas and their runs against naive ones."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.reproduce import ais, ais_doubly, ais_runs, ais_theory
from adacoord.reproduce.entry import PRINTED
from adacoord.reproduce.lab import Case, Data, Lab
from adacoord.reproduce.trace import Trace, trace
from adacoord.solvers.doubly.dspdc import DSPDC
from adacoord.solvers.doubly.spd1vr import SPD1VR


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def data(n=40, d=6, density=0.6):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    A[:, 0] += 0.1
    return A, np.where(A @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.fixture(params=["dense", "csr"])
def problem(request):
    A, b = data()
    return ac.Problem(
        A if request.param == "dense" else sparse.csr_matrix(A), b, "smooth_hinge", l2=0.05
    )


# ---- Algorithm 1, step by step -------------------------------------------------------------------


def naive_chain(A, b, lam, steps, total, tau, sigma, theta, random, constant=False):
    """Algorithm 1 as printed, for the smoothed hinge, with the random numbers given; or with
    sigma for every row."""
    n, d = A.shape
    x = xbar = np.zeros(d)
    y, pi = np.zeros(n), np.ones(n)
    for t in range(steps):
        delta = 0.2 + 0.6 * t / total
        w = np.sqrt(np.abs(pi))
        p = (1 - delta) / n + delta * w / w.sum()
        u = random(t)
        if u <= 1 - delta:
            i = min(int(u / (1 - delta) * n), n - 1)
        else:
            i = int(np.searchsorted(np.cumsum(w) / w.sum(), (u - (1 - delta)) / delta))
        s = sigma if constant else sigma / (n * p[i])
        new = -b[i] * np.clip(-b[i] * (s * (A[i] @ xbar - b[i]) + y[i]) / (1 + s), 0, 1)
        dy = new - y[i]
        average = A.T @ y / n
        before, x = x, (x - tau * (average + dy * A[i] / (n * p[i]))) / (1 + lam * tau)
        pi[i], y[i] = dy / s, new
        xbar = x + theta * (x - before)
    w = np.sqrt(np.abs(pi))
    delta = 0.2 + 0.6 * steps / total
    return x, y, (1 - delta) / n + delta * w / w.sum()


def splitmix(seed):
    """The random numbers of the kernels, in Python's integers."""
    mask, state = 2**64 - 1, seed

    def draw(_):
        nonlocal state
        state = z = (state + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return (((z ^ (z >> 31)) >> 11) + 1.0) / 2**53

    return draw


@pytest.mark.parametrize("rule", ["theory", "constant"])
def test_chain_is_algorithm_1(problem, rule):
    A, b = data()
    chain = ais_theory.Chain(problem, 300, rule, seed=5)
    chain.advance(120)
    chain.advance(1)
    steps = chain.tau, chain.sigma, chain.theta
    x, y, p = naive_chain(A, b, 0.05, 121, 300, *steps, splitmix(5), rule == "constant")
    np.testing.assert_allclose(chain.x, x, atol=1e-12)
    np.testing.assert_allclose(chain.y, y, atol=1e-12)
    np.testing.assert_allclose(chain.p, p, rtol=1e-9)
    assert chain.p.sum() == pytest.approx(1.0)


def test_chain_has_the_steps_of_theorem_1(problem):
    chain = ais_theory.Chain(problem, 300)
    R = math.sqrt((data()[0] ** 2).sum(axis=1).max())
    assert chain.tau == pytest.approx(0.2 / (2 * R) / math.sqrt(40 * 0.05))
    assert chain.sigma == pytest.approx(0.2 / (2 * R) * math.sqrt(40 * 0.05))
    mu = 1 / (40 / chain.sigma + 40 / 0.2)
    assert ais_theory.printed_theta(problem, chain.tau, chain.sigma) == pytest.approx(1 - mu)


def test_maps_vanish_at_the_solution(problem):
    best = ac.solve(problem, tol=1e-13)
    chain = ais_theory.Chain(problem, 300)
    chain.x, chain.y = best.x, best.y
    assert np.abs(chain.maps()).max() < 1e-5
    chain.x, chain.y = np.zeros(6), np.zeros(40)
    # v = s(z - b)/(1 + s) at z = y = 0
    np.testing.assert_allclose(chain.maps(), -problem.b / (1 + chain.sigma))


def test_theta_t_by_hand():
    p, before = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    # (1/2 + .75/.5) 1 + (1/2 + .25/1.5) 4 over (1/2 + 1) 1 + (1/2 + 1) 4
    expected = (2.0 + (0.5 + 1 / 6) * 4) / 7.5
    assert ais_theory.contraction(np.array([1.0, -2.0]), p, before, 1.0, 1.0) == pytest.approx(
        expected
    )


def test_theta_t_keeps_the_corrected_theta_at_constant_p(problem):
    """Eq. 15 holds whatever y is, if p does not change: that is what the corrected mu says."""
    chain = ais_theory.Chain(problem, 300)
    rng = np.random.default_rng(1)
    for _ in range(50):
        w = rng.exponential(size=40) ** 3
        p = 0.2 / 40 + 0.8 * w / w.sum()
        assert ais_theory.contraction(rng.standard_normal(40), p, p, chain.sigma, 1.0) <= (
            chain.theta + 1e-12
        )


def test_rho_t_by_hand():
    # (1 + 27)/4 - (4/2)^2 = 3, over (1 + 9)/2
    assert ais_theory.spread(np.array([1.0, -3.0]), np.array([1.0, 3.0])) == pytest.approx(0.6)
    assert ais_theory.spread(np.array([2.0, -2.0]), np.ones(2)) == pytest.approx(0.0)
    assert ais_theory.spread(np.zeros(2), np.ones(2)) == 0.0


def test_watch_sees_the_run(problem):
    case = Case(Data("small", *data()), "smooth_hinge", 0.05)
    watch = ais_theory.Watch(case, 50)
    assert watch.seen.shape[1] == 3
    assert (np.diff(watch.seen[:, 0]) > 0.0).all()
    assert ais_theory.least(watch) <= ais_theory.least(watch, 1.0)
    # theta_t again, from a chain that is advanced by single steps
    chain = ais_theory.Chain(case.problem, 40 * ais_runs.horizon(case.problem))
    looks = np.rint(watch.seen[:10, 0] * 40).astype(int)
    found = []
    for t in range(1, looks[-1] + 1):
        before = chain.p
        chain.advance(1)
        if t in looks:
            found.append(
                ais_theory.contraction(chain.y - case.dual_point, chain.p, before, chain.sigma, 1.0)
            )
    np.testing.assert_allclose(watch.seen[:10, 1], found, rtol=1e-9)


# ---- comparisons ---------------------------------------------------------------------------------


def seen(passes, primal):
    passes, primal = np.array(passes, float), np.array(primal, float)
    return Trace(passes, passes, passes, primal, np.full(passes.size, np.nan))


FAST, SLOW = seen([0, 5, 10], [1.0, 1e-5, 1e-10]), seen([0, 10, 20], [1.0, 1e-5, 1e-10])


def test_ratio_is_at_the_level_that_both_reach():
    assert ais_runs.ratio(FAST, SLOW, 0.0) == pytest.approx(0.5)
    short = seen([0, 10], [1.0, 1e-2])
    assert ais_runs.ratio(short, FAST, 0.0) == pytest.approx(10 / 2)


@pytest.mark.parametrize("end", [2.0, math.inf, math.nan])
def test_ratio_of_a_run_that_goes_nowhere(end):
    lost = seen([0, 10], [1.0, end])
    assert ais_runs.ratio(lost, FAST, 0.0) == math.inf
    assert ais_runs.ratio(FAST, lost, 0.0) == 0.0
    assert math.isnan(ais_runs.ratio(lost, lost, 0.0))


def test_rows_of_the_table():
    short = seen([0, 10], [1.0, 1e-2])
    assert ais_runs.row("a2a", "practical", {"US": short, "LIS": SLOW, "AIS": FAST}, 0.0) == [
        "a2a",
        "practical",
        "(1.0e-02)",
        "16",
        "8",
        "0.2",
        "0.5",
    ]


def test_lead_is_over_the_better():
    assert ais_runs.lead({"US": SLOW, "LIS": FAST, "AIS": FAST}, 0.0) == pytest.approx(1.0)
    assert ais_runs.lead({"US": SLOW, "LIS": SLOW, "AIS": FAST}, 0.0) == pytest.approx(0.5)


def test_horizon_is_what_spdc_predicts(problem):
    rate = trace_rate(problem)
    assert ais_runs.horizon(problem) == math.ceil(math.log(1e8) / (40 * rate))
    assert ais_runs.horizon(problem.with_penalty(l2=1e-9), 700) == 700
    assert ais_runs.horizon(problem.with_penalty(l2=1e3)) == 20


def trace_rate(problem):
    from adacoord.solvers.primal_dual.spdc_steps import uniform_steps

    norms = np.sqrt(problem.matrix.squared_norms)
    return uniform_steps(norms, 1, problem.penalty.l2, problem.loss.gamma).rate


def test_variants_have_the_options_of_the_paper():
    """US is the same run in all that the paper has; LIS has delta_t and AIS the last weights."""
    for variant in (PRINTED, ais.THEOREM2, ais_runs.FIGURES):
        options = ais.OPTIONS[variant]
        assert options["US"] == {"steps": "theory"}
        assert (options["LIS"]["sampling"], options["LIS"]["delta"]) == ("lipschitz", (0.2, 0.8))
        assert (options["AIS"]["sampling"], options["AIS"]["weights"]) == ("adaptive", "last")
    assert [ais.OPTIONS[k]["AIS"]["steps"] for k in (PRINTED, ais.THEOREM2, ais_runs.FIGURES)] == [
        "theory",
        "theory2",
        "constant",
    ]
    assert ais.OPTIONS[ais_runs.FIGURES]["LIS"]["steps"] == "constant"


@pytest.mark.slow
@pytest.mark.skipif("ADACOORD_DATA" not in os.environ, reason="needs a2a, w8a and mnist")
@pytest.mark.parametrize(
    "name, factor", [("a2a", 12.3 / 20.1), ("w8a", 6.8 / 12.3), ("gisette", 9.6 / 15.9)]
)
def test_figure_4(name, factor):
    """AIS ahead of the better of US and LIS as far as in an independent implementation."""
    lab = Lab(False)
    case = ais_runs.table2_case(lab, name)
    runs = ais.runs_of(lab, case, 5, 2500, (ais_runs.FIGURES,))[ais_runs.FIGURES]
    assert ais_runs.lead(runs, case.optimum) <= 1.15 * factor


# ---- the doubly stochastic methods with the print's steps ----------------------------------------


@pytest.mark.parametrize("steps", ["printed", "constant"])
@pytest.mark.parametrize("sampling", ais_runs.SAMPLING.values())
def test_a_pass_of_so_many_iterations(problem, sampling, steps):
    """The iterates are DSPDC's; a pass is N D/(N + D) of them, whatever entries they touch."""
    options = ais_doubly.over_the_run(sampling, 50) | {"steps": steps, "multiplier": 2.0}
    mine = ais_doubly.ByIterations(problem, generator(), **options)
    entries = []
    for _ in range(3):
        before = mine.operations
        mine.advance(1)
        entries.append(mine.operations - before)
    other = DSPDC(problem, generator(), **options)
    other._due = lambda: (2**60, 15)  # 40 * 6/46 is 5.2
    if sampling == "uniform":  # delta_t of the others grows from pass to pass
        other.advance(1)
        np.testing.assert_array_equal(mine.x, other.x)
        assert sum(entries) == other.operations
    if problem.matrix.is_dense:
        assert entries == [5 * 46] * 3


@pytest.mark.parametrize("sampling", ais_runs.SAMPLING.values())
def test_printed_spd1vr_has_steps_that_stay(problem, sampling):
    options = ais_doubly.over_the_run(sampling, 50)
    mine = ais_doubly.PrintedSPD1VR(problem, generator(), multiplier=2.0, **options)
    even = SPD1VR(problem, generator(), steps="theory")
    for _ in range(3):
        np.testing.assert_allclose(mine.s, 2.0 * even.s)
        np.testing.assert_allclose(mine.t, 2.0 * even.t)
        mine.advance(3)


@pytest.mark.parametrize(
    "kind, more",
    [pair for kinds in ais_doubly.TUNED.values() for pair in kinds.values()],
    ids=str,
)
@pytest.mark.parametrize("sampling", ais_runs.SAMPLING.values())
def test_printed_methods_find_the_optimum(problem, kind, more, sampling):
    best = ac.solve(problem, tol=1e-13).primal
    options = ais_doubly.over_the_run(sampling, 500) | more
    stepper = kind(problem, generator(), multiplier=1.0, **options)
    run = trace(problem, stepper, passes=10_000, optimum=best, floor=1e-9)
    assert run.primal[-1] - best <= 1e-9


def test_tuning_takes_the_best(problem):
    case = Case(Data("small", *data()), "smooth_hinge", 0.05)

    def make(rng, m):
        return ais_doubly.ByIterations(case.problem, rng, multiplier=m, steps="printed")

    best, run = ais_doubly.tuned(case, make, (1e-3, 1.0, 1e3), 200, 2)
    assert best == 1.0
    assert run.primal[-1] < run.primal[0]


def test_epochs():
    run = ais_doubly.at_epochs(seen([0, 1, 2, 3, 6, 7], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), 3)
    np.testing.assert_array_equal(run.passes, [0, 3, 6])
    np.testing.assert_array_equal(run.primal, [6.0, 3.0, 2.0])


# ---- seconds, figures ----------------------------------------------------------------------------


def test_paper_keeps_its_own_rule():
    for table in ais.PAPER_SECONDS.values():
        assert set(table) == set(ais_runs.CASES)
        assert all(aiss / us <= ais.SLIGHTLY for us, _, aiss in table.values())


@pytest.mark.parametrize("solver", ais.PAPER_SECONDS)
def test_seconds_a_pass(solver):
    case = Case(Data("small", *data()), "smooth_hinge", 0.05)
    found = ais.seconds_a_pass(case, solver, 2)
    assert list(found) == ["US", "LIS", "AIS"]
    assert all(0.0 < v < math.inf for v in found.values())
