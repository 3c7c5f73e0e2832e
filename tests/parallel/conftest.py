"""Problems large enough to be cut, and a cluster of processes that the tests start."""

from __future__ import annotations

import numpy as np
import pytest

import adacoord as ac

#: One for each form that blocks have: the loss, the penalty, and what to ask of ``solve``.  Where
#: ``auto`` keeps to the serial method, the method for blocks is named.
CASES = {
    "hinge": ("hinge", {"l2": 1e-3}, {"solver": "newton"}),
    "dual rounds": ("hinge", {"l2": 1e-1}, {"solver": "dcd", "tol": 1e-3}),
    "logistic": ("logistic", {"l2": 1e-3}, {}),
    "float32 copies": ("logistic", {"l2": 1e-3}, {"solver": "newton-cg"}),
    "squared": ("squared", {"l2": 1e-3}, {}),
    "lasso": ("squared", {"l1": 1e-2}, {}),
    "l1-logistic": ("logistic", {"l1": 1e-3}, {}),
    "multinomial": ("multinomial", {"l2": 1e-2}, {"solver": "newton-cg"}),
}


def make_rows(n=12_000, d=45):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((n, d))
    z = A @ (rng.standard_normal(d) * (rng.random(d) < 0.5)) + rng.standard_normal(n)
    return A, z


@pytest.fixture
def rows():
    """``rows(n, d)``: (A, z), dense rows and real targets."""
    return make_rows


@pytest.fixture(params=CASES)
def case(request):
    """(A problem of eight blocks of rows, how to solve it); one after the other of each form."""
    loss, penalty, how = CASES[request.param]
    A, z = make_rows(8_000, 150) if request.param == "float32 copies" else make_rows()
    b = z
    if loss in ("hinge", "logistic"):
        b = np.where(z > 0, 1.0, -1.0)
    if loss == "multinomial":
        b = np.digitize(z, np.quantile(z, [0.3, 0.7])).astype(float)
    return ac.Problem(A, b, loss, intercept=True, **penalty), {"tol": 1e-5} | how


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, each with its nanny; restarted for the next module."""
    distributed = pytest.importorskip("distributed", reason='needs pip install "adacoord[dask]"')
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        yield made


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster) as made:
        made.wait_for_workers(2, timeout=60)
        yield made
