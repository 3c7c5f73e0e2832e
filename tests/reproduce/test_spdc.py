"""What the entries of SPDC and AdaSPDC compute: speed-ups, leads, slopes, data, counting."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.reproduce import adaspdc, lab, spdc, spdc_races, spdc_rates, spdc_ridge
from adacoord.reproduce.entry import PRINTED
from adacoord.reproduce.trace import Trace, lead, mean_trace, speedup, trace


def line(digits_a_pass, passes=100, start=1.0):
    """P - P* = start 10^(-digits_a_pass t), looked at after each pass; P* = 2."""
    t = np.arange(passes + 1.0)
    nothing = np.full(t.size, np.nan)
    return Trace(t, t, t, 2.0 + start * 10.0 ** (-digits_a_pass * t), nothing)


def test_speedup_is_the_ratio_of_passes():
    # halfway mine is at 1e-5, where the other is after 80 passes
    assert speedup(line(0.1), line(0.0625), 2.0, 100, 1e-8) == pytest.approx(80 / 50)
    assert speedup(line(0.1), line(0.2), 2.0, 100, 1e-8) == pytest.approx(0.5)
    assert speedup(line(0.1), line(0.01), 2.0, 100, 1e-8) == math.inf


def test_speedup_to_what_counts_as_arrived():
    # halfway mine is at 1e-20, far below 1e-8, which it reaches at 20
    assert speedup(line(0.4), line(0.1), 2.0, 100, 1e-8) == pytest.approx(4.0, rel=1e-6)


def test_speedup_of_a_run_that_never_moves_is_not_a_number():
    assert math.isnan(speedup(line(0.0), line(0.1), 2.0, 100, 1.0))


def test_lead_in_digits():
    assert lead(line(0.03), line(0.02), 2.0, 100, 1e-8) == pytest.approx(1.0)
    assert lead(line(0.02), line(0.03), 2.0, 100, 1e-8) == pytest.approx(-1.0)
    # mine is at 1e-8 after 40 passes, where the other is at 1e-4
    assert lead(line(0.2), line(0.1), 2.0, 100, 1e-8) == pytest.approx(4.0, rel=1e-6)


def test_a_run_that_ended_early_keeps_its_last_value():
    assert line(0.1, passes=10).at(50, 2.0) == pytest.approx(0.1)
    assert line(0.1).at(5, 2.0) == pytest.approx(10**-0.5)


def test_slope():
    x = np.array([1.0, 10.0, 100.0])
    assert spdc_rates.slope(x, 3.0 * x**0.5) == pytest.approx(0.5)
    assert math.isnan(spdc_rates.slope(x, [1.0, 2.0, math.inf]))


def test_ridge_data_has_the_paper_s_spectrum():
    data = spdc_ridge.ridge_data(20_000, 5, np.random.default_rng(0))
    np.testing.assert_allclose(data.A.var(axis=0), np.arange(1.0, 6.0) ** -2.0, rtol=0.05)
    noise = data.b - data.A.sum(axis=1)
    assert noise.var() == pytest.approx(1.0, rel=0.05)


def test_what_weighted_sampling_gains():
    # R = 4, Rbar = 2, rho = 1; kappa = 16/lambda, q = (kappa/n)^(1/4) = 3, alpha = (3-1)/(3+1)
    norms = np.array([1.0, 1.0, 2.0, 4.0])
    assert spdc.shorter_radius(norms, 16.0 / (81.0 * 4.0), 1.0) == pytest.approx(1.5)
    assert spdc.shorter_radius(np.ones(4), 1e-8, 1.0) == 1.0


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 6)) * np.exp(rng.standard_normal(80))[:, None]
    b = np.where(A @ np.ones(6) + rng.standard_normal(80) > 0, 1.0, -1.0)
    return lab.Lab(quick=True), lab.Data("random", A, b)


def test_a_pass_of_batch_methods_is_a_gradient(case):
    here, data = case
    problem = here.case(data, "smooth_hinge", 1e-3)
    run = spdc_races.race(here, problem, ("L-BFGS",), 6, "test", floor=0.0).runs["L-BFGS"]
    both = trace(problem.problem, "lbfgs", passes=12)
    np.testing.assert_array_equal(run.passes, both.passes / 2)
    assert run.passes[-1] == 6
    # two products with A each
    assert run.operations[-1] == pytest.approx(12 * data.A.size, rel=0.2)


def test_figures_share_runs(case, monkeypatch):
    here, data = case
    problem = here.case(data, "smooth_hinge", 1e-3)
    first = spdc_races.race(here, problem, ("SPDC", "SDCA"), 5, "test").runs
    monkeypatch.setattr(lab, "trace", None)
    again = spdc_races.race(here, problem, ("SPDC",), 5, "test").runs
    np.testing.assert_array_equal(first["SPDC"].primal, again["SPDC"].primal)


@pytest.mark.parametrize(("share", "applies"), [(0.9, True), (1.1, False)])
def test_asdca_s_condition(case, share, applies):
    here, data = case
    R2 = (data.A**2).sum(axis=1).max()
    l2 = share * R2 / (10 * 80 * 4.0)  # the logistic loss has gamma = 4
    assert spdc_races.asdca_applies(here.case(data, "logistic", l2)) is applies


def test_judge_is_the_problem_before_its_perturbation(case):
    _, data = case
    hinge = ac.Problem(data.A, data.b, "hinge", l2=1e-2)
    smooth = ac.Problem(data.A, data.b, ac.losses.SmoothHinge(mu=1e-2), l2=1e-2)
    run = trace(smooth, "spdc", passes=3000, judge=hinge)
    best = ac.solve(hinge, tol=1e-9).primal
    assert run.primal[0] == 1.0
    assert 0.0 <= run.primal[-1] - best <= 0.5e-2 + 1e-3


def test_perturbed_problems_reach_the_accuracy(case):
    _, data = case
    levels = (0.1, 0.03)
    for x, y in (
        spdc_rates.by_accuracy_flat(data.A, data.A.sum(axis=1) + data.b, levels),
        spdc_rates.by_accuracy_kinked(data.A, data.b, 1e-2, levels),
        spdc_rates.by_accuracy_neither(data.A, data.b, 1e-2, levels),
        spdc_rates.by_accuracy_neither(data.A, data.b, 1e-2, levels, steps="practical"),
    ):
        np.testing.assert_allclose(x, [10.0, 100.0 / 3.0])
        assert np.isfinite(y).all()


def test_best_step_of_sag_is_the_best(case):
    here, data = case
    problem = here.case(data, "smooth_hinge", 1e-3)
    for label, step in adaspdc.sag_steps(here, problem, 10).items():
        ends = {
            s: trace(
                problem.problem, "sag", passes=10, step=s, lipschitz=adaspdc.SAG[label]
            ).primal[-1]
            for s in adaspdc.SAG_STEPS
        }
        assert step == min(ends, key=ends.get)


def test_runs_of_adaspdc_are_as_long_as_theory_asks():
    """ln(100)(1 + 2 sqrt(kappa/n)), kappa by the mean norm, and 60 passes at the least."""
    A = np.diag([1.0, 3.0, 2.0, 2.0])
    made = lab.Lab().case(lab.Data("some", A, np.ones(4)), "squared", 1e-4)
    want = np.log(100.0) * (1 + 2 * np.sqrt(2.0**2 / 1e-4 / 4))
    assert adaspdc.theory_passes(made) == round(want)
    made = lab.Lab().case(lab.Data("some", A, np.ones(4)), "squared", 1.0)
    assert adaspdc.theory_passes(made) == 60


def test_means_are_over_seeds(case):
    here, data = case
    problem = here.case(data, "smooth_hinge", 1e-3)
    means, spread = adaspdc.runs_of(here, problem, dict.fromkeys(adaspdc.SAG, 0.5), 4, 4, "test")
    for label, solver, count in (("AdaSPDC", "adaspdc", 4), ("APDC", "apdc", 3)):
        runs = [trace(problem.problem, solver, passes=4, seed=s) for s in range(count)]
        np.testing.assert_allclose(means[label].primal, mean_trace(runs).primal)
    assert set(means) == set(adaspdc.LABELS)
    assert spread > 0.0


def test_single_runs_of_adaspdc_against_a_rival(case):
    here, data = case
    problem = here.case(data, "smooth_hinge", 1e-3)
    rivals = {
        "SPDC": ("spdc", {"steps": "theory"}),
        "SAG, L = max |a|": ("sag", {"step": 0.25, "lipschitz": "norm"}),
    }
    for rival, (solver, options) in rivals.items():
        found = adaspdc.leads_again(here, problem, 6, 0.25, rival, range(3))
        for seed, value in enumerate(found):
            ends = [
                trace(problem.problem, name, passes=6, seed=seed, **more).primal[-1]
                for name, more in (("adaspdc", {}), (solver, options))
            ]
            mine, other = np.array(ends) - problem.optimum
            assert value == pytest.approx(np.log10(other / mine), abs=1e-6)
        assert adaspdc.again_row("a", rival, found)[2] == f"{found[0]:.2f}"


def test_sets_of_one_run_are_run_again_at_the_smallest_lambda(case):
    here, data = case
    steps, results = dict.fromkeys(adaspdc.SAG, 0.25), {}
    for l2 in (1e-2, 1e-3):
        problem = here.case(data, "smooth_hinge", l2)
        means, _ = adaspdc.runs_of(here, problem, steps, 6, 1, "some")
        results[f"some, λ = {l2:g}"] = problem, means, 6, steps
    table = adaspdc._again(here, {"some": (None, 1), "often": (None, 10)}, results)
    leads = {m: adaspdc.ahead(means, problem, 6, m) for m in adaspdc.OTHERS[PRINTED]}
    nearest = min(leads, key=leads.get)
    (row,) = table.rows
    assert row[:3] == ["some, λ = 0.001", nearest, f"{leads[nearest]:.2f}"]
    assert float(row[3]) <= float(row[4]) <= float(row[5]) and len(row) == len(table.columns)


def test_the_worst_rival_of_adaspdc_is_named():
    here = SimpleNamespace(optimum=2.0)
    means = {label: line(0.01) for label in adaspdc.LABELS} | {"AdaSPDC": line(0.03)}
    means["SAG"] = line(0.05)  # not as printed
    assert adaspdc._worst_remark({"w8a, λ = 1e-5": (here, means, 100, {})}) == []
    ahead = means | {"SDCA": line(0.04)}
    results = {"w8a": (here, means, 100, {}), "rcv1": (here, ahead, 100, {})}
    (text,) = adaspdc._worst_remark(results)
    assert "on rcv1, by 1.00 digits (SDCA is ahead)" in text


def test_fewer_rows_leave_no_empty_columns(monkeypatch):
    A = sparse.csr_matrix(np.eye(50) + np.eye(50, k=1))
    monkeypatch.setattr(lab, "_open", lambda name: (A, np.ones(50), []))
    kept = lab.Lab().data("some", rows=10).A
    assert kept.shape[0] == 10
    assert np.asarray((kept != 0).sum(axis=0)).min() == 1


@pytest.mark.parametrize("name", ["rcv1-test", "mnist-parity"])
def test_parity_of_digits(name, monkeypatch):
    A = sparse.csr_matrix(np.diag([51.0, 102.0, 255.0]))
    digits = np.array([0.0, 3.0, 8.0])

    def load(file, download):
        if file != "mnist":
            raise ValueError(file)
        return A, digits

    monkeypatch.setattr(lab.datasets, "load", load)
    data = lab.Lab().data(name)
    np.testing.assert_array_equal(data.b, [1.0, -1.0, 1.0])
    assert data.A.max() == 1.0


def test_runs_are_as_long_as_theory_asks():
    A = np.eye(4) * [1.0, 2.0, 3.0, 2.0]
    problem = lab.Case(lab.Data("rows", A, np.ones(4)), "squared", 0.09)
    # kappa = 100, n = 4: ln(1e6)(1 + 2 * 5)
    assert spdc_races.theory_passes(problem, 1e-6) == math.ceil(11 * math.log(1e6))


def test_wolfe_lbfgs_counts_evaluations(case):
    here, data = case
    problem = here.case(data, "logistic", 1e-2)
    run = spdc_races.wolfe_lbfgs(problem.problem, 200, problem.optimum, 1e-9)
    assert run.primal[-1] - problem.optimum <= 1e-9 and len(run.primal) < 200
    assert (np.diff(run.primal) <= 0.0).all() and run.passes[-1] == len(run.primal) - 1
    short = spdc_races.wolfe_lbfgs(problem.problem, 5, problem.optimum, 0.0)
    assert short.passes[-1] == 5
    np.testing.assert_array_equal(short.primal, run.primal[:6])


def test_complexities_are_those_of_table_2():
    A = np.ones((4, 1)) * 3.0  # |A| = sqrt(n) R = 6
    found = spdc_rates.complexities(A, 0.01)
    assert found[spdc_rates.CP] == pytest.approx(1.0 + 6.0 / (2.0 * 0.2))
    assert found["SPDC, m = n"] == pytest.approx(1.0 + 60.0)
    assert found["SPDC"] == pytest.approx(1.0 + 30.0)
