"""Runs that go on from a checkpoint end with the bits of those that were never interrupted."""

from __future__ import annotations

import dataclasses
import os
from inspect import signature
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.api import solve as solving
from adacoord.auto import fallback as rules
from adacoord.io.storing import writing_store
from adacoord.solvers.newton import newton, size
from adacoord.solvers.primal_dual.apdc import APDC
from adacoord.solvers.registry import SOLVERS, Entry

from .runs import assert_same_bits, resumes, solve, solve_killed


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch):
    """tests/io/test_checkpoints.py is about the disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def pose(loss="smooth_hinge", l1=0.0, l2=1e-3, n=90, d=12, dense=False, blocks=1, targets=1, **how):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6) * np.geomspace(1.0, 0.1, d)
    z = A @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    b = z if loss in ("squared", "absolute") else np.where(z > 0.0, 1.0, -1.0)
    if loss == "multinomial":
        b = np.arange(n) % 3
    if targets > 1:
        b = np.outer(b, np.arange(1, targets + 1)) + rng.standard_normal((n, targets))
    A = A if dense else sparse.csr_matrix(A)
    how = {"intercept": True} | how
    if blocks == 1:
        return ac.Problem(A, b, loss, l1, l2, **how)
    cuts = np.linspace(0, n, blocks + 1).astype(int)
    pairs = [(A[i:j], b[i:j]) for i, j in pairwise(cuts)]
    return ac.Problem(pairs, None, loss, l1, l2, **how)


#: By class: the name it goes by, its problem, and what it is run with.
CASES = {
    "SPDC": ("spdc", pose(), {"sampling": "adaptive"}),
    "AdaSPDC": ("adaspdc", pose(), {"batch_size": 4}),
    "APDC": ("apdc", pose(l1=1e-3), {}),
    "DSPDC": ("dspdc", pose(), {"sampling": "adaptive"}),
    "SPD1VR": ("spd1-vr", pose(), {"sampling": "adaptive"}),
    "DualCoordinateAscent": ("dcd", pose(), {}),
    "DualRounds": ("dcd", pose("hinge", blocks=3), {"n_jobs": 2}),
    "AdaptiveFrequencies": ("acf", pose("hinge"), {}),
    "WorkingSetDescent": ("acf", pose("logistic", l1=1e-4), {}),
    "GramWorkingSet": ("acf", pose("squared", l1=1e-3, d=300, dense=True), {}),
    "BlockWorkingSet": ("acf", pose("logistic", l1=1e-3, blocks=3), {"n_jobs": 2}),
    "GroupWorkingSet": ("acf", pose("logistic", l2=0.0, l21=1e-4, groups=np.arange(12) // 3), {}),
    "ClassWorkingSet": ("acf", pose("multinomial", l1=1e-4, l2=0.0), {}),
    "TargetWorkingSet": ("acf", pose("squared", l2=0.0, l21=1e-3, d=80, dense=True, targets=2), {}),
    "CoordinateDescent": ("cd", pose("logistic"), {"order": "iid"}),
    "StochasticDualCoordinateAscent": ("sdca", pose(), {}),
    "Newton": ("newton", pose("logistic", l2=1e-8), {}),
    "BlockNewton": ("newton", pose("logistic", l2=1e-8, blocks=3), {"n_jobs": 2}),
    "SmallNewton": ("newton", pose("absolute"), {}),
    "InteriorPoint": ("newton", pose("absolute", l1=1e-3, l2=0.0, dense=True), {}),
    "BoundedNewton": ("newton", pose("logistic", l1=1e-3 * np.arange(12), upper=0.5), {}),
    "BoundedClasses": ("lbfgs", pose("multinomial", l1=1e-3 * np.arange(12), upper=0.5), {}),
    "KinkedNewton": ("newton", pose("hinge"), {}),
    "NonNegativeLeastSquares": ("newton", pose("squared", l2=0.0, positive=True), {}),
    "NewtonCG": ("newton-cg", pose("logistic", l2=1e-7), {}),
    "AcceleratedSDCA": ("asdca", pose(l2=1e-5), {}),
    "StochasticAverageGradient": ("sag", pose(), {}),
    "AcceleratedFullGradient": ("afg", pose(), {}),
    "LimitedMemoryBFGS": ("lbfgs", pose("logistic", l2=1e-7), {}),
    "QuasiNewton": ("lbfgs", pose("multinomial", l2=1e-7), {}),
    "PrimalDualHybridGradient": ("pdhg", pose(), {}),
}
LIMITS = {"tol": 1e-13, "max_passes": 40}


def entries(entry: Entry):
    yield entry
    for field in dataclasses.fields(entry):
        other = getattr(entry, field.name)
        if isinstance(other, Entry):
            yield from entries(other)


@pytest.fixture
def nothing_is_small(monkeypatch):
    monkeypatch.setattr(size, "SMALL", 0)
    monkeypatch.setattr(newton, "SMALL", 0)


def test_every_solver_is_among_them():
    assert {e.cls for entry in SOLVERS.values() for e in entries(entry)} == set(CASES)


@pytest.mark.parametrize("cls", CASES)
def test_every_solver_goes_on(cls, monkeypatch, tmp_path, request):
    if cls != "SmallNewton":
        request.getfixturevalue("nothing_is_small")
    name, problem, options = CASES[cls]
    ran = []
    for entry in {e.cls: e for s in SOLVERS.values() for e in entries(s)}.values():
        kind = entry.load()
        begun = kind.__init__

        def noted(self, *args, begun=begun, kind=kind, **kwargs):
            ran.append(type(self).__name__)
            begun(self, *args, **kwargs)

        monkeypatch.setattr(kind, "__init__", noted)
    most = 1 if cls == "NonNegativeLeastSquares" else 9  # which takes a single pass
    expected = resumes(monkeypatch, tmp_path, 4, 0, problem, name, most, **LIMITS, **options)
    assert cls in ran and expected.passes >= 1


RANDOM = {
    "spdc": ("spdc", pose("hinge"), {}),
    "apdc": ("apdc", pose("hinge", dense=True), {}),
    "acf on rows": ("acf", pose(l2=1e-5), {}),
    "acf on columns": ("acf", pose("logistic", l1=1e-4, l2=0.0, n=60, d=150), {}),
    "what a problem is reduced to": (
        "acf",
        pose("squared", l1=1e-4 * np.arange(1, 13), l2=0.0, offset=np.arange(90) / 90),
        {},
    ),
    "newton": ("newton", pose("hinge", l2=1e-5), {}),
    "newton-cg": ("newton-cg", pose("logistic", l2=1e-9, d=40), {}),
    "rounds on blocks": ("dcd", pose(l2=1e-4, blocks=4), {"n_jobs": 2}),
    "sets on blocks": ("acf", pose("logistic", l1=1e-4, l2=0.0, d=150, blocks=4), {}),
    "newton-cg on blocks": ("newton-cg", pose("logistic", l2=1e-9, d=40, blocks=4), {"n_jobs": 2}),
}


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("case", RANDOM)
def test_twenty_random_resumes(case, monkeypatch, tmp_path):
    name, problem, options = RANDOM[case]
    resumes(monkeypatch, tmp_path, 20, 1, problem, name, tol=1e-14, max_passes=60, **options)


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        ("apdc", pose("multinomial")),
        ("spdc", pose("multinomial", dense=True)),
        ("newton-cg", pose("multinomial", l2=1e-8)),
        ("newton", pose("multinomial", l2=1e-8)),
        ("lbfgs", pose("multinomial", dense=True, l2=1e-8, sample_weight=np.arange(90.0))),
        ("newton", pose("logistic", l2=0.0)),
        ("newton-cg", pose("squared", l2=0.0, dense=True)),
    ],
)
def test_several_classes_and_no_penalty(solver, problem, monkeypatch, tmp_path):
    resumes(monkeypatch, tmp_path, 5, 2, problem, solver, most=5, **LIMITS)


def test_a_continuation_is_taken_up_within_a_stage(monkeypatch, tmp_path):
    problem = pose("hinge", l1=1e-3, l2=0.0)  # kinks, and nothing strongly convex
    for solver in ("spdc", "apdc", "adaspdc"):
        (tmp_path / solver).mkdir()
        resumes(
            monkeypatch, tmp_path / solver, 12, 3, problem, solver, most=7, tol=0.0, max_passes=90
        )


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "acf", "apdc"])
def test_a_warm_start(solver, monkeypatch, tmp_path):
    problem = pose("multinomial") if solver == "lbfgs" else pose()
    start = solve(problem.with_penalty(l2=0.1), solver, tol=1e-3)
    whole = resumes(monkeypatch, tmp_path, 4, 4, problem, solver, start=start, most=6, **LIMITS)
    path, found = tmp_path / "paused", None
    while found is None or found.status == "callback":  # which looks at the start once more
        found = solve(
            problem, solver, start=start, checkpoint=path, callback=lambda p: True, **LIMITS
        )
    if solver != "lbfgs":  # with a callback it is looked at after each pass
        assert_same_bits(found, whole)
    np.testing.assert_array_equal(found.x, whole.x)


# ---- a change of method --------------------------------------------------------------------------


@pytest.fixture
def crawling(monkeypatch):
    """``auto`` begins with dcd, and gives it up early."""
    for module in (solving, rules):
        monkeypatch.setattr(module, "choose", lambda problem: "dcd")
    monkeypatch.setattr(rules, "JUDGED_AFTER", 0.0)
    monkeypatch.setattr(rules, "patience", lambda *_: 0.0)
    monkeypatch.setattr(rules, "expected", lambda *_: 1e-3)


@pytest.mark.usefixtures("crawling")
def test_a_fallback_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr(rules, "alternative", lambda *_: "apdc")
    problem = pose("smooth_hinge", l2=1e-3)
    found = resumes(monkeypatch, tmp_path, 12, 5, problem, tol=1e-10, max_passes=400, most=20)
    assert found.history.switched is not None and found.history.switched.before == "dcd"


@pytest.mark.usefixtures("crawling")
def test_a_fallback_that_fails_gives_way(monkeypatch, tmp_path):
    monkeypatch.setattr(rules, "alternative", lambda *_: "apdc")
    monkeypatch.setattr(APDC, "_pass", lambda self: None)
    found = resumes(
        monkeypatch, tmp_path, 20, 6, pose("hinge", l2=1e-6), tol=1e-10, max_passes=120, most=6
    )
    assert found.history.switched is None and found.solver == "dcd"


def test_small_data_that_are_stuck(monkeypatch, tmp_path):
    """From Newton's method for small data, which waits for nobody, to another."""
    from adacoord.solvers.newton.small import STUCK, SmallNewton

    begun = SmallNewton.__init__

    def stuck(self, *args, **kwargs):
        begun(self, *args, **kwargs)
        self.stage = STUCK

    monkeypatch.setattr(SmallNewton, "__init__", stuck)
    problem = pose("logistic", l1=1e-3)
    found = resumes(monkeypatch, tmp_path, 5, 7, problem, most=3, tol=1e-12, max_passes=60)
    assert found.history.switched is not None and found.history.switched.before == "newton"


# ---- endings -------------------------------------------------------------------------------------


def test_a_run_that_is_over_is_not_run_again(tmp_path, monkeypatch):
    problem, path = pose(), tmp_path / "c"
    first = solve(problem, "dcd", checkpoint=path)
    monkeypatch.setattr(SOLVERS["dcd"].load(), "_pass", lambda self: pytest.fail("it ran"))
    content = path.read_bytes()
    again = solve(problem, "dcd", checkpoint=path)
    assert first.converged and path.read_bytes() == content
    assert_same_bits(again, first)
    assert again.seconds >= again.history.seconds[-1] > 0.0


def test_a_callback_may_end_a_run_for_a_while(tmp_path):
    problem = pose(l2=1e-4)
    whole = solve(problem, "dcd", **LIMITS)
    path, turns = tmp_path / "c", 0
    while True:
        found = solve(problem, "dcd", checkpoint=path, callback=lambda p: True, **LIMITS)
        turns += 1
        if found.status != "callback":
            break
    assert_same_bits(found, whole)
    assert turns >= len(whole.history.passes) > 4  # each call got to the next check


def test_max_seconds_are_those_of_the_call(tmp_path, monkeypatch):
    problem, path = pose(l2=1e-5), tmp_path / "c"
    whole = solve(problem, "dcd", **LIMITS)
    clock = iter(range(10**6))
    monkeypatch.setattr("adacoord.api.monitor.time.perf_counter", lambda: next(clock) / 10)
    turns, found = 0, None
    while found is None or found.status == "max_seconds":
        found = solve(problem, "dcd", checkpoint=path, max_seconds=0.8, **LIMITS)
        turns += 1
    assert turns > 3 and found.status == "max_passes"
    # a clock that stops a run is looked at on the way: the bits are those of the passes
    np.testing.assert_array_equal(found.x, whole.x)
    assert found.passes == whole.passes and found.seconds > 4.0


def test_a_result_of_a_checkpoint_is_certified(tmp_path, monkeypatch):
    problem, path = pose(), tmp_path / "c"
    assert solve_killed(monkeypatch, path, 4, problem, "apdc") is None
    found = solve(problem, "apdc", checkpoint=path)
    assert found.converged
    assert problem.gap(found.x, found.y, found.intercept) <= 1e-6 * found.primal * (1 + 1e-9)


# ---- whose run it is -----------------------------------------------------------------------------


def test_the_checkpoint_of_another_run_is_refused(tmp_path, monkeypatch):
    known = {"A", "b", "loss", "l1", "l2", "positive", "sample_weight", "intercept"}
    known |= {"lower", "upper", "offset", "l21", "groups", "group_weights"}
    assert set(signature(ac.Problem).parameters) == known, "a new one wants a case below"
    A = np.random.default_rng(0).standard_normal((40, 5))
    b, w, path = np.sign(A[:, 0]), np.ones(40), tmp_path / "c"
    given = {"A": A, "b": b, "loss": "smooth_hinge", "l2": 0.01, "sample_weight": w}
    how = {"solver": "dcd", "tol": 1e-8, "max_passes": 50, "seed": 0}
    start = solve(ac.Problem(**given), tol=1e-2)

    def go(posed, run):
        return solve(ac.Problem(**(given | posed)), checkpoint=path, **(how | run))

    go({}, {})
    content = path.read_bytes()
    other = A.copy()
    other[17, 3] = np.nextafter(other[17, 3], 9.0)
    float32 = {"A": A.astype(np.float32)}
    cases = [
        ({"A": other}, {}, "other data: A has changed"),
        ({"A": np.asfortranarray(A)}, {}, "layout='dense rows' there, and layout='dense columns'"),
        ({"A": sparse.csr_matrix(A)}, {}, "layout="),
        (float32, {}, "dtype='float64' there, and dtype='float32' now"),
        ({"A": A[:39], "b": b[:39], "sample_weight": w[:39]}, {}, "n=40 there, and n=39 now"),
        ({"b": -b}, {}, "other data: b has changed"),
        ({"sample_weight": None}, {}, "other data: sample_weight has changed"),
        ({"sample_weight": 2.0 * w}, {}, "other data: sample_weight has changed"),
        ({"loss": "logistic"}, {}, "loss='smooth_hinge' there, and loss='logistic' now"),
        ({"loss": ac.losses.SmoothHinge(mu=0.5)}, {}, "mu=1.0 there, and mu=0.5 now"),
        ({"l1": 0.1}, {}, "l1=0.0 there, and l1=0.1 now"),
        ({"l2": 0.02}, {}, "l2=0.01 there, and l2=0.02 now"),
        ({"positive": True}, {}, "positive=False there, and positive=True now"),
        ({"intercept": True}, {}, "intercept=False there"),
        ({"l1": np.linspace(0.0, 0.1, 5)}, {"solver": "newton"}, "l1 has changed"),
        ({"lower": -1.0}, {"solver": "newton"}, "lower=None there, and lower=-1.0 now"),
        ({"upper": np.arange(5.0)}, {"solver": "newton"}, "upper has changed"),
        ({"offset": 0.1 * b}, {"solver": "newton"}, "offset has changed"),
        ({"l21": 0.1, "groups": [0, 0, 1, 1, 2]}, {"solver": "acf"}, "group.* has changed"),
        ({}, {"solver": "sdca"}, "there, and "),
        ({}, {"tol": 1e-9}, "tol=1e-08 there, and tol=1e-09 now"),
        ({}, {"max_passes": 51}, "max_passes=50 there, and max_passes=51 now"),
        ({}, {"seed": 1}, "seed=0 there, and seed=1 now"),
        ({}, {"start": start}, "start has changed"),
        ({"A": [(A[:9], b[:9]), (A[9:], b[9:])], "b": None}, {}, "layout='dense blocks' now"),
    ]
    for posed, run, message in cases:
        with pytest.raises(ValueError, match=message) as refused:
            go(posed, run)
        assert str(path) in str(refused.value) and "name another file" in str(refused.value)
        assert path.read_bytes() == content
    monkeypatch.setattr("adacoord.api.checkpoint.__version__", "0.9.7")
    with pytest.raises(ValueError, match="another minor version"):
        go({}, {})


def test_options_of_the_solver_are_part_of_it(tmp_path):
    problem, groups = pose(), np.repeat(np.arange(9), 10)
    how = {"checkpoint": tmp_path / "c", "max_passes": 5, "tol": 1e-9}
    solve(problem, "spdc", sampling="weighted", groups=groups, n_jobs=1, batch_size=2, **how)
    with pytest.raises(ValueError, match="sampling='weighted' there, and sampling='uniform' now"):
        solve(problem, "spdc", sampling="uniform", groups=groups, batch_size=2, **how)
    with pytest.raises(ValueError, match="groups has changed"):
        solve(problem, "spdc", sampling="weighted", groups=groups[::-1], batch_size=2, **how)
    # but not how many threads there are
    solve(problem, "spdc", sampling="weighted", groups=groups, batch_size=2, n_jobs=2, **how)


def test_threads_and_blocks_go_on_from_one_another(tmp_path, monkeypatch):
    problem, path = pose(l2=1e-4, blocks=4), tmp_path / "c"
    whole = solve(problem, "dcd", n_jobs=1, **LIMITS)
    for jobs in (1, 2, 4, 3):
        solve_killed(monkeypatch, path, 8, problem, "dcd", n_jobs=jobs, **LIMITS)
    assert_same_bits(solve(problem, "dcd", n_jobs=2, checkpoint=path, **LIMITS), whole)


def test_bad_arguments(tmp_path):
    problem = pose()
    for checkpoint in (3, "", b"c"):
        with pytest.raises(ValueError, match="name of a file"):
            solve(problem, checkpoint=checkpoint)
    for every in (-1.0, np.nan, np.inf, "60", True):
        with pytest.raises(ValueError, match=r"checkpoint_every=.*seconds"):
            solve(problem, checkpoint=tmp_path / "c", checkpoint_every=every)
    with pytest.raises(OSError, match="no such folder"):
        solve(problem, checkpoint=tmp_path / "no" / "c")
    with pytest.raises(OSError, match="folder"):
        solve(problem, checkpoint=tmp_path)
    assert list(tmp_path.iterdir()) == []


# ---- data that are elsewhere ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "l1", "solver"), [("hinge", 0.0, "dcd"), ("logistic", 1e-3, "acf")]
)
def test_a_store_on_disk(loss, l1, solver, monkeypatch, tmp_path):
    monkeypatch.setattr("adacoord.data.partition.LEAST_BYTES", 2**10)  # several blocks
    whole, path = pose(loss, l1), tmp_path / "store"
    with writing_store(path) as writer:
        writer.append(sparse.csr_matrix(whole.matrix.dense), whole.b)
    (tmp_path / "runs").mkdir()
    problem = ac.Problem(ac.open_store(path), None, loss, l1, 1e-3)
    assert len(problem.matrix.pieces) > 3 and not problem.matrix.pieces[0].in_memory
    resumes(monkeypatch, tmp_path / "runs", 6, 8, problem, solver, most=6, **LIMITS)
