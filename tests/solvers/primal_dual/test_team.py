"""Mini-batches on several threads: the bits of one, and nothing left behind."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.data.matrix import as_matrix
from adacoord.kernels.team import meet
from adacoord.solvers.primal_dual.team import Team, column_edges, row_cuts
from adacoord.solvers.registry import SOLVERS

JOBS = (1, 2, 3, 4)
PENALTIES = {"l2": (0.0, 0.01), "l1+l2": (0.005, 0.01), "l1": (0.01, 0.0)}


def make(storage, loss="logistic", penalty="l2", n=61, d=37, dtype=float, **options):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4) * rng.exponential(1.0, (n, 1))
    A[5] = 0.0
    A = A.astype(dtype)
    b = rng.integers(0, 3, n) if loss == "multinomial" else np.where(A[:, 0] + A[:, 3] > 0, 1, -1)
    l1, l2 = PENALTIES[penalty]
    data = A
    if storage != "dense":
        data = sparse.csr_matrix(A)
    if storage == "unsorted":
        for i in range(n):
            row = slice(data.indptr[i], data.indptr[i + 1])
            data.indices[row] = data.indices[row][::-1].copy()
            data.data[row] = data.data[row][::-1].copy()
        data.has_sorted_indices = False
    return ac.Problem(data, b, loss, l1, l2, **options)


def run(problem, name, passes=6, **options):
    rng = np.random.Generator(np.random.PCG64(1))
    solver = SOLVERS[name].load()(problem, rng, None, **options)
    solver.advance(passes)
    return solver


def assert_bits(a, b):
    for name in ("x", "y", "intercept", "operations"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for name, value in a.state().items():
        np.testing.assert_array_equal(value, b.state()[name], err_msg=name)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("storage", ["dense", "csr", "unsorted"])
@pytest.mark.parametrize("name", ["spdc", "adaspdc"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bits_do_not_depend_on_the_threads(name, storage, penalty, dtype):
    problem = make(storage, penalty=penalty, dtype=dtype, intercept=True)
    alone = run(problem, name, batch_size=12)
    for jobs in JOBS:
        assert_bits(run(problem, name, batch_size=12, n_jobs=jobs), alone)


@pytest.mark.parametrize("penalty", ["l2", "l1+l2"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_classes_and_groups(storage, penalty):
    problem = make(storage, "multinomial", penalty, intercept=True)
    groups = np.arange(61) % 9
    for options in ({"batch_size": 12}, {"batch_size": 2, "groups": groups}):
        alone = run(problem, "adaspdc", **options)
        for jobs in JOBS:
            assert_bits(run(problem, "adaspdc", n_jobs=jobs, **options), alone)


@pytest.mark.parametrize("options", [{"sampling": "weighted"}, {"steps": "theory"}])
def test_weighted_batches_and_batches_of_everything(options):
    problem = make("csr", "hinge")
    for m in (2, 60, 61):
        alone = run(problem, "spdc", batch_size=m, **options)
        for jobs in JOBS:
            assert_bits(run(problem, "spdc", batch_size=m, n_jobs=jobs, **options), alone)


def test_the_scale_of_x_is_flushed_by_all():
    """l2 so strong that s underflows within a pass."""
    rng = np.random.default_rng(0)
    A = sparse.random(900, 7, 0.5, format="csr", random_state=rng)
    problem = ac.Problem(A, rng.standard_normal(900), l2=3.0)
    alone = run(problem, "spdc", 3, batch_size=2)
    assert alone.team.jobs == 1
    assert_bits(run(problem, "spdc", 3, batch_size=2, n_jobs=3), alone)


def test_a_state_goes_from_one_number_of_threads_to_another():
    problem = make("csr", penalty="l1+l2")
    before, whole = (
        run(problem, "spdc", 4, batch_size=8, n_jobs=2),
        run(problem, "spdc", 9, batch_size=8),
    )
    after = run(problem, "spdc", 0, batch_size=8, n_jobs=3)
    after.restore(before.state())
    after.advance(5)
    assert_bits(after, whole)


def test_no_threads_unless_asked_for_and_none_left():
    problem = make("csr")
    for options in ({}, {"n_jobs": 1}):
        assert run(problem, "spdc", batch_size=8, **options).team._pool is None
    solver = run(problem, "spdc", batch_size=8, n_jobs=3)
    threads = list(solver.team._pool._threads)
    assert len(threads) == 2 and all(thread.is_alive() for thread in threads)
    del solver
    gc.collect()
    for thread in threads:
        thread.join(5.0)
        assert not thread.is_alive()


def test_a_team_is_pickled_without_its_threads():
    problem = make("csr")
    solver = run(problem, "spdc", batch_size=8, n_jobs=2)
    team = pickle.loads(pickle.dumps(solver.team))
    assert team._pool is None and solver.team._pool is not None
    solver.team = solver.primal.team = team
    solver.advance(2)
    assert_bits(solver, run(problem, "spdc", 8, batch_size=8))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"n_jobs": 2}, r"n_jobs=2 with batch_size=1: .*use batch_size=64"),
        ({"n_jobs": 0, "batch_size": 8}, "n_jobs=0: it must be a whole number"),
        ({"n_jobs": 1.5, "batch_size": 8}, "n_jobs=1.5"),
        ({"n_jobs": True, "batch_size": 8}, "n_jobs=True"),
    ],
)
@pytest.mark.parametrize("name", ["spdc", "adaspdc"])
def test_what_is_refused(name, options, words):
    with pytest.raises(ValueError, match=words):
        ac.solve(make("csr"), name, **options)


def test_columns_are_cut_evenly():
    matrix = as_matrix(sparse.random(50, 40, 0.3, format="csr", random_state=0))
    edges = column_edges(matrix, 3)
    cuts = row_cuts(matrix, edges).astype(int)
    share = np.zeros(3)
    for i in range(50):
        for part in range(3):
            columns = matrix.indices[cuts[3 * i + part] : cuts[3 * i + part + 1]]
            assert ((columns >= edges[part]) & (columns < edges[part + 1])).all()
            share[part] += columns.size
    assert cuts[0] == 0 and cuts[-1] == matrix.nnz and share.min() > 0.8 * share.mean()
    dense = column_edges(as_matrix(np.ones((3, 20))), 4)
    assert dense[0] == 0 and dense[-1] == 20 and (np.diff(dense) >= 0).all()


def test_an_error_in_one_thread_ends_them_all():
    team = Team(as_matrix(np.ones((3, 20))), 3)

    def work(share):
        part, _, _, _, gate = share
        if part == 1:
            raise MemoryError("no more")
        return meet(gate)

    with pytest.raises(MemoryError):
        team.run(work)

    def ours(share):
        if share[0] == 0:
            raise KeyboardInterrupt
        return meet(share[4])

    with pytest.raises(KeyboardInterrupt):
        team.run(ours)
    assert team.run(lambda share: meet(share[4])) is False


FORKED = """
import os, numpy as np, adacoord as ac
A = np.random.default_rng(0).standard_normal((300, 20))
problem = ac.Problem(A, np.sign(A[:, 0]), "logistic", l2=0.01)
from adacoord.solvers.primal_dual.spdc import SPDC
solver = SPDC(problem, np.random.Generator(np.random.PCG64(0)), batch_size=16, n_jobs=2)
solver.advance(2)
child = os.fork()
solver.advance(2)
if child:
    print(os.waitpid(child, 0)[1] == 0)
os._exit(0) if not child else None
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_makes_its_own_threads():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "True\n", done.stderr


CTRL_C = """
import os, signal, threading, numpy as np, adacoord as ac
A = np.random.default_rng(0).standard_normal((2000, 50))
problem = ac.Problem(A, np.where(A[:, 0] > 0, 1.0, -1.0), "smooth_hinge", l2=1e-12)
def show(p):
    if p.passes == 20:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
r = ac.solve(problem, "spdc", tol=1e-15, max_passes=10**9, batch_size=32, n_jobs=2, callback=show)
print(r.status, r.passes >= 20, np.isfinite(r.gap))
"""


def test_ctrl_c():
    done = subprocess.run(
        [sys.executable, "-c", CTRL_C], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "interrupted True True\n", done.stderr
