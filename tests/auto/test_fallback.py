"""A wrong pick of ``auto`` is repaired, once, and a right one is left alone."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord import estimators
from adacoord.api import solve as solving
from adacoord.api.monitor import History, Switch
from adacoord.auto import fallback as rules
from adacoord.auto.fallback import alternative, expected, fallback, forecast
from adacoord.auto.rule import choose
from adacoord.solvers.registry import SOLVERS, admit


def wide(n=120, d=3000, seed=0):
    """Few rows that hardly meet: dual ascent's, and nothing for APDC."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) / math.sqrt(d)
    return A, np.where(rng.random(n) < 0.5, 1.0, -1.0)


def tall(n=1500, d=400, seed=1):
    """Rows that meet all the time, and columns of very different lengths: APDC's."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * np.geomspace(1.0, 0.05, d)
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    return A, A @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)


@pytest.fixture
def pick(monkeypatch):
    """``pick(name)``: from now on ``auto`` begins with it."""

    def force(name):
        for module in (solving, rules):
            monkeypatch.setattr(module, "choose", lambda problem: name)

    return force


def wide_problem(**how):
    return ac.Problem(*wide(), "hinge", l2=1e-7, **how)


def tall_problem():
    return ac.Problem(*tall(), "squared", l2=1e-7)


def test_a_wrong_pick_is_put_right(pick):
    problem = wide_problem(intercept=True)
    with pytest.warns(ac.ConvergenceWarning):
        alone = ac.solve(problem, "apdc", max_passes=60)
    pick("apdc")
    result = ac.solve(problem, max_passes=60)
    assert alone.relative_gap > 1e-3 and result.converged
    switched = result.history.switched
    assert switched == Switch(switched.passes, "apdc", "acf") and 0 < switched.passes < 100
    assert result.solver == "acf" and result.passes > switched.passes
    assert f"acf (after {switched.passes} passes of apdc)" in repr(result)
    # judged by itself, and by the solver that should have been picked
    assert problem.gap(result.x, result.y, result.intercept) <= 1e-6 * result.primal * (1 + 1e-9)
    assert result.primal == pytest.approx(ac.solve(problem, "acf").primal, rel=2e-6)


@pytest.mark.parametrize("seed", range(4))
def test_columns_of_several_classes_that_crawl_are_left_to_newton(seed):
    """Columns of many sizes, and classes that they separate: once 1,000 passes, and gaps of 0.1."""
    rng = np.random.default_rng(seed)
    n, d, k = 20, 5, 4
    A = rng.standard_normal((n, d)) * 10.0 ** np.array([3, 1, 4, 2, -1])
    b = np.r_[:k, rng.integers(0, k, n - k)]
    problem = ac.Problem(A, b, "multinomial", l1=1e-2, intercept=True)
    result = ac.solve(problem, tol=1e-6, max_passes=200)
    assert result.converged and result.solver == "lbfgs"
    assert result.history.switched == Switch(100, "acf", "lbfgs")
    with pytest.warns(ac.ConvergenceWarning):  # who asks for it by name gets it
        assert ac.solve(problem, "acf", tol=1e-6, max_passes=200).solver == "acf"


def crawling(storage, seed, n=500, d=130):
    """A lasso of few numbers whose columns have singular values from 1 to 1e-5."""
    rng = np.random.default_rng([7, n, d, seed])
    U, _, V = np.linalg.svd(rng.standard_normal((n, d)), full_matrices=False)
    A = U @ (np.geomspace(1.0, 1e-5, len(V))[:, None] * V)
    b = A @ (rng.standard_normal(d) * (rng.random(d) < 0.1))
    b = b / b.std() + 0.3 * rng.standard_normal(n)
    l1 = 1e-5 * ac.Problem(A, b, l1=1.0, intercept=True).l1_max()
    return ac.Problem(storage(A), b, l1=l1, intercept=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sparse.csr_array])
def test_a_lasso_of_few_numbers_that_crawls_is_left_to_newton(storage, seed):
    """Once 1,000 passes, and a gap of 0.9 on sparse data or a second on dense ones."""
    problem = crawling(storage, seed)
    result = ac.solve(problem, tol=1e-6)
    assert result.converged and result.solver == "newton"
    assert result.history.switched.before == "acf" and result.history.switched.passes < 500
    assert result.primal <= ac.solve(problem, "newton", tol=1e-9).primal * (1 + 1e-6)
    with pytest.warns(ac.ConvergenceWarning):  # who asks for it by name gets it
        assert ac.solve(problem, "acf", tol=1e-12, max_passes=50).solver == "acf"


def test_a_path_of_such_lassos_ends():
    problem = crawling(sparse.csr_array, 0, 120, 200)
    path = ac.path(problem, problem.penalty.l1 * np.geomspace(100.0, 1.0, 5))
    assert path.converged.all()


@pytest.mark.parametrize("penalty", [{"l2": 1e-6}, {"l1": 1e-6}, {}])
def test_several_classes_with_a_sign_are_newtons_where_coefficients_are_few(penalty):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 6)) * 10.0 ** rng.uniform(-2, 2, 6)
    b = np.arange(40) % 3
    problem = ac.Problem(A, b, "multinomial", positive=True, intercept=True, **penalty)
    result = ac.solve(problem, tol=1e-6, max_passes=100)
    assert result.converged and result.solver == "lbfgs" and (result.x >= 0.0).all()
    if penalty:
        assert result.primal <= ac.solve(problem, "apdc", max_passes=10**5).primal * (1 + 1e-6)


def test_the_other_way_round(pick, monkeypatch):
    monkeypatch.setattr(rules, "newton_cg_can", lambda problem: False)
    problem = tall_problem()
    pick("dcd")
    result = ac.solve(problem)
    assert result.converged and result.history.switched.before == "dcd"
    assert result.solver == alternative(problem, SOLVERS["dcd"])
    with pytest.warns(ac.ConvergenceWarning):
        ac.solve(problem, "dcd", max_passes=result.passes)


def test_it_goes_on_where_the_first_one_was(pick, monkeypatch):
    from adacoord.solvers.dual.acf import AdaptiveFrequencies

    problem, starts = wide_problem(), []
    make = AdaptiveFrequencies.__init__
    monkeypatch.setattr(
        AdaptiveFrequencies,
        "__init__",
        lambda self, *how: (starts.append(how[2]), make(self, *how))[1],
    )
    pick("apdc")
    result = ac.solve(problem)
    history, switched = result.history, result.history.switched
    at = int(np.flatnonzero(history.passes == switched.passes)[0])
    assert history.gap[at + 1] <= history.gap[at]
    # counts go on, and none of the first one's work is lost
    assert (np.diff(history.passes) > 0).all() and (np.diff(history.operations) > 0).all()
    # the second one is given the best points of the first one, which are not its last ones
    (start,) = starts
    assert problem.primal(start.x) == history.primal[: at + 1].min() < history.primal[at]
    assert problem.dual(start.y) == history.dual[: at + 1].max() > 0.0
    # the first part is what the first one does by itself, bit by bit
    alone = ac.solve(problem, "apdc", callback=lambda p: p.passes >= switched.passes)
    np.testing.assert_array_equal(alone.history.gap, history.gap[: at + 1])
    np.testing.assert_array_equal(alone.history.operations, history.operations[: at + 1])


def test_same_seed_same_bits(pick):
    pick("apdc")
    one, two = (ac.solve(wide_problem(), seed=7) for _ in range(2))
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.y, two.y)
    assert one.history.switched == two.history.switched
    other = ac.solve(wide_problem(), seed=8)
    assert not np.array_equal(one.x, other.x)


def test_limits_hold_over_both(pick):
    problem = wide_problem()
    pick("apdc")
    whole = ac.solve(problem)
    turn = whole.history.switched.passes
    for most in (turn - 1, turn, turn + 1):
        with pytest.warns(ac.ConvergenceWarning, match=f"max_passes={most}"):
            cut = ac.solve(problem, max_passes=most)
        assert cut.passes == most == cut.history.passes[-1]
        assert (cut.history.switched is None) == (most <= turn)
    with pytest.warns(ac.ConvergenceWarning, match=r"acf \(after \d+ passes of apdc\) stopped"):
        ac.solve(problem, max_passes=turn + 1)
    seen = []

    def stop(progress):
        seen.append(progress)
        return progress.passes > turn

    stopped = ac.solve(problem, callback=stop)
    assert stopped.status == "callback" and stopped.passes > turn
    assert [p.switched is not None for p in seen] == [p.passes > turn for p in seen]

    def interrupt(progress):
        if progress.passes > turn:
            raise KeyboardInterrupt

    broken = ac.solve(problem, callback=interrupt)
    assert broken.status == "interrupted" and broken.passes == stopped.passes
    assert broken.gap == stopped.gap and broken.solver == "acf"


def test_an_interrupt_while_the_second_one_is_made(pick, monkeypatch):
    from adacoord.solvers.dual.acf import AdaptiveFrequencies

    def broken(*_, **__):
        raise KeyboardInterrupt

    pick("apdc")
    monkeypatch.setattr(AdaptiveFrequencies, "__init__", broken)
    result = ac.solve(wide_problem())
    assert result.status == "interrupted" and result.solver == "apdc"
    assert result.passes == result.history.passes[-1] and np.isfinite(result.gap)


def test_it_switches_once(pick, monkeypatch):
    monkeypatch.setattr(rules, "forecast", lambda history, tol: (math.inf, math.inf))
    pick("apdc")
    result = ac.solve(wide_problem())
    first = result.history.passes[1]
    assert result.history.switched == Switch(first, "apdc", "acf")


def test_a_second_one_that_fails_costs_half_of_what_is_left(pick, monkeypatch):
    """The first one goes on from where it was, and a run that it would have won is won."""
    problem = wide_problem()
    alone = ac.solve(problem, "acf")
    from adacoord.solvers.primal_dual.apdc import APDC

    monkeypatch.setattr(APDC, "_pass", lambda self: None)
    monkeypatch.setattr(rules, "JUDGED_AFTER", 0.0)
    monkeypatch.setattr(rules, "patience", lambda *_: 0.0)
    monkeypatch.setattr(rules, "expected", lambda *_: 1e-3)
    pick("acf")
    most = 4 * alone.passes
    result = ac.solve(problem, max_passes=most)
    assert result.converged and result.solver == "acf" and result.history.switched is None
    idle = result.passes - alone.passes
    assert 0 < idle <= most // 2 + 1
    np.testing.assert_array_equal(result.x, alone.x)
    assert (np.diff(result.history.passes) > 0).all()


def test_a_second_one_that_is_stuck_gives_way(pick, monkeypatch):
    from adacoord.solvers.primal_dual.apdc import APDC

    monkeypatch.setattr(APDC, "stuck", True)
    monkeypatch.setattr(rules, "patience", lambda *_: 0.0)
    monkeypatch.setattr(rules, "expected", lambda *_: 1e-3)
    pick("acf")
    result = ac.solve(wide_problem())
    assert result.converged and result.solver == "acf"


def test_only_auto_is_put_right(pick):
    with pytest.warns(ac.ConvergenceWarning):
        named = ac.solve(wide_problem(), "apdc", max_passes=60)
    assert named.history.switched is None and named.solver == "apdc"
    pick("acf")  # options are those of the method they were given for
    with pytest.warns(ac.ConvergenceWarning):
        asked = ac.solve(tall_problem(), order="shrinking", max_passes=400)
    assert asked.history.switched is None


@pytest.mark.slow
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_a_right_pick_is_left_alone(make_data, tol):
    losses = ("hinge", "smooth_hinge", "logistic", "squared", "huber")
    shapes = ((300, 20, 1.0), (60, 400, 0.2), (400, 100, 0.1))
    for (n, d, density), loss, (l1, l2) in itertools.product(
        shapes, losses, ((0.0, 1e-2), (0.0, 1e-4), (1e-3, 1e-2), (1e-3, 1e-4))
    ):
        A, b = make_data(n, d, density, task=ac.losses.LOSSES[loss].task)
        problem = ac.Problem(A, b, loss, l1=l1, l2=l2, intercept=True)
        result = solving.run(problem, "auto", tol=tol, max_passes=1000, options={})
        assert result.history.switched is None, problem
        assert result.solver == choose(problem)


def test_the_fallback_is_one_that_can(make_data):
    """Whatever ``auto`` takes, what it may turn to takes the problem too."""
    seen = set()
    A, b = make_data(50, 80, 0.3)
    targets = {"classification": b, "regression": b, "count": b + 1.0, "multiclass": (b > 0) * 1}
    targets["positive"] = b + 2.0
    known = ac.losses.LOSSES | ac.losses.BLOCK_LOSSES
    for (name, loss), l1, l2, positive in itertools.product(
        known.items(), (0.0, 0.01), (0.0, 1e-6, 0.1), (False, True)
    ):
        problem = ac.Problem(A, targets[loss.task], name, l1=l1, l2=l2, positive=positive)
        for entry in SOLVERS.values():
            try:
                first = admit(problem, entry.name, {})
            except ValueError:
                continue
            second = alternative(problem, first)
            if second is not None:
                assert second != first.name
                assert admit(problem, second, {}).name == second
                assert 0.0 < expected(problem, SOLVERS[second].variant(problem)) < math.inf
                seen.add((first.name, second))
    assert {("apdc", "acf"), ("acf", "apdc"), ("acf", "newton"), ("dcd", "apdc")} <= seen


def test_without_a_certificate_there_is_no_fallback(make_data):
    problem = ac.Problem(*make_data(30, 5), "logistic")
    assert fallback(problem, SOLVERS["newton"], None) is None


def test_one_look_is_no_forecast():
    """Of a solver that is looked at when it says so, never before its first pass."""
    seen = History()
    seen.append(
        passes=10,
        seconds=0.1,
        operations=1000,
        primal=1.0,
        dual=0.5,
        gap=0.5,
        relative_gap=0.5,
    )
    assert forecast(seen, 1e-6) == (1000, 0.0)


def test_forecast():
    def of(operations, gap, tol=1e-6, scale=1.0):
        return forecast(
            History(operations=operations, gap=gap, relative_gap=[g / scale for g in gap]), tol
        )

    # two digits in the later half of 40 entries, four more to go
    assert of([0, 20, 40], [1.0, 1.0, 1e-2]) == (40, pytest.approx(40.0))
    # the first half does not count
    assert of([0, 10, 20, 40], [1e3, 1.0, 1e-1, 1e-2])[1] == pytest.approx(80.0)
    assert of([0, 20, 40], [1.0, 0.5, 0.5])[1] == math.inf  # no progress
    assert of([0, 20, 40], [math.inf, math.inf, 1.0])[1] == math.inf
    assert of([0, 20, 40], [1.0, 1.0, 1e-7]) == (40, 0.0)  # there
    assert of([0, 20, 40], [1.0, 0.1, 1e-2], tol=0.0)[1] == math.inf
    # P fell with the gap: relative to it nothing happened, and yet something did
    history = History(operations=[0, 20, 40], gap=[1.0, 1.0, 0.1], relative_gap=[1.0] * 3)
    assert forecast(history, 1e-2)[1] == pytest.approx(40.0)


def test_a_path_is_put_right_too(pick):
    pick("apdc")
    path = ac.path(wide_problem(), l2=[1e-6, 1e-7], keep_results=True)
    assert path.converged.all()
    assert [r.solver for r in path.results] == ["acf", "acf"]
    assert path.results[0].history.switched.before == "apdc"
    assert path.results[1].history.switched is None  # nor is the wrong one tried again


def test_a_path_keeps_to_what_can(pick, monkeypatch):
    """Newton's method takes over at one point, and cannot take the next one."""
    monkeypatch.setattr(rules, "newton_cg_can", lambda problem: False)
    A, b = tall()
    pick("dcd")
    path = ac.path(
        ac.Problem(A, b, "squared"), l1=[0.0, 0.0, 1e-4], l2=[1e-7, 1e-7, 1e-7], keep_results=True
    )
    assert path.converged.all()
    assert [r.solver for r in path.results] == ["newton", "newton", "acf"]


def test_an_estimator_says_so(pick):
    pick("apdc")
    A, b = wide()
    svm = estimators.LinearSVC(loss="hinge", C=1e5, tol=1e-6).fit(A, b)
    assert svm.solver_ == "acf" and svm.history_.switched.before == "apdc"
    assert svm.relative_gap_ <= 1e-6


def test_the_command_line_says_so(pick, tmp_path):
    from typer.testing import CliRunner

    from adacoord.command.cli import app
    from adacoord.io import save_svmlight

    A, b = wide()
    save_svmlight(tmp_path / "wide.svm", sparse.csr_matrix(A), b)
    pick("apdc")
    run = CliRunner().invoke(
        app, ["fit", str(tmp_path / "wide.svm"), "--loss", "hinge", "--l2", "1e-7"]
    )
    assert run.exit_code == 0
    assert "acf (after " in run.stdout and "passes of apdc)" in run.stdout
    assert "apdc -> acf" in run.stderr


@pytest.mark.parametrize("shape", [(700, 3000), (600, 4000)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_wide_least_squares_of_columns_by_decades_are_factorised(shape, order):
    """Where few columns count conjugate gradients crawl, and rows have these in common."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
    l2 = 1.0 / len(b)
    apart = np.asarray(A * np.exp(1.5 * rng.standard_normal(shape[1])), order=order)
    problem = ac.Problem(apart, b, l2=l2, intercept=True)
    assert choose(problem) == "newton"
    slow = admit(problem, "newton-cg", {})
    assert expected(problem, SOLVERS["acf"]) > expected(problem, SOLVERS["newton"])
    assert alternative(problem, slow) == "newton"
    assert choose(ac.Problem(np.asarray(A, order=order), b, l2=l2, intercept=True)) == "newton-cg"
