"""All state of a run on a cluster is the driver's: it goes on on another, or on threads."""

from __future__ import annotations

import numpy as np
import pytest

import adacoord as ac

from .runs import assert_same_bits, solve, solve_killed

distributed = pytest.importorskip("distributed", reason='needs pip install "adacoord[dask]"')
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.mark.parametrize(
    ("loss", "l1", "solver"), [("hinge", 0.0, "dcd"), ("logistic", 1e-3, "acf")]
)
def test_a_cluster_and_threads_go_on_from_one_another(
    client, loss, l1, solver, monkeypatch, tmp_path
):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((900, 12))
    b = np.sign(A @ rng.standard_normal(12) + rng.standard_normal(900))
    pairs = [(A[k::3], b[k::3]) for k in range(3)]
    problem, path = ac.Problem(pairs, None, loss, l1, 1e-3), tmp_path / "c"
    how = {"tol": 1e-12, "max_passes": 12}
    whole = solve(problem, solver, n_jobs=1, **how)
    for who in ({"executor": client}, {"n_jobs": 2}, {"executor": client}):
        assert solve_killed(monkeypatch, path, 3, problem, solver, **who, **how) is None
    assert_same_bits(solve(problem, solver, executor=client, checkpoint=path, **how), whole)
