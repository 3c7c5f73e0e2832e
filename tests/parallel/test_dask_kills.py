"""Workers that are killed in the middle of a fit: the same bits, and nobody waits for long."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import adacoord as ac
from adacoord.parallel.dask import Cluster
from adacoord.parallel.executors import Serial

distributed = pytest.importorskip("distributed", reason='needs pip install "adacoord[dask]"')

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

KILLS = 20
#: Seconds that nobody waits for a result.
LONGEST = 60.0


class Counted(Serial):
    """How often blocks are mapped over."""

    maps = 0

    def map(self, function, jobs):
        self.maps += 1
        return super().map(function, jobs)


class Killer:
    """Kills workers of a cluster that the test has started."""

    def __init__(self, cluster, client):
        self.cluster, self.client, self.killed = cluster, client, []

    def kill(self, count=1):
        """``count`` of them at once, as soon as so many are there."""
        ends = time.monotonic() + LONGEST
        while len(alive := self._alive()) < count:
            assert time.monotonic() < ends, "the nannies start no worker"
            time.sleep(0.02)
        for pid in alive[:count]:
            os.kill(pid, signal.SIGKILL)
            self.killed.append(pid)

    def _alive(self):
        """Processes of workers that the scheduler knows.

        A nanny does not restart a worker that dies before it has started.
        """
        known = self.client.nthreads()
        return [
            nanny.pid
            for nanny in self.cluster.workers.values()
            if nanny.status.name == nanny.process.status.name == "running"
            and nanny.worker_address in known
            and nanny.pid not in self.killed
        ]


class Watched(Cluster):
    """Kills as planned, and notes how long results were waited for."""

    def __init__(self, client, killer, plan):
        super().__init__(client)
        self.killer, self.plan = killer, plan
        self.maps, self.waits = 0, []

    def map(self, function, jobs):
        how, jobs = self.plan.get(self.maps), list(jobs)
        self.maps += 1
        if how in ("one", "both"):
            self.killer.kill(2 if how == "both" else 1)
        results = super().map(function, jobs)
        for k in range(len(jobs)):
            if how == "gather" and k == len(jobs) // 2:
                self.killer.kill()
            started = time.monotonic()
            result = next(results)
            self.waits.append(time.monotonic() - started)
            yield result

    def _block(self, piece):
        first = not self._blocks
        future = super()._block(piece)
        if first and self.plan.get("load"):
            self.killer.kill()
        return future


def test_twenty_kills(cluster, client, rows):
    """Spread over a fit; both workers at once, one while blocks load, one during a gather."""
    A, z = rows()
    problem = ac.Problem(A, np.where(z > 0, 1.0, -1.0), "logistic", l2=1e-6, intercept=True)
    counted = Counted()
    here = ac.solve(problem, solver="lbfgs", tol=1e-11, executor=counted)
    planned = ["both", "gather", *["one", "gather"] * 8]
    assert counted.maps > len(planned)
    at = np.linspace(1, counted.maps - 2, len(planned)).astype(int).tolist()
    plan = {"load": True, **dict(zip(at, planned, strict=True))}
    killer = Killer(cluster, client)
    watched = Watched(client, killer, plan)
    with ThreadPoolExecutor(1) as pool:
        fit = pool.submit(ac.solve, problem, "lbfgs", tol=1e-11, executor=watched)
        there = fit.result(timeout=900)
    watched.close()
    assert len(killer.killed) == len(set(killer.killed)) == KILLS
    assert watched.maps == counted.maps
    assert max(watched.waits) < LONGEST
    assert np.array_equal(here.x, there.x)
    assert np.array_equal(here.y, there.y)
    assert here.history.gap.tolist() == there.history.gap.tolist()


def test_kills_while_partitions_are_computed(cluster, client, rows):
    """Of a collection: whose tasks are not ours, and are given up after three deaths."""
    import dask.array as da

    def slowly(block):  # travels by value
        time.sleep(0.5)
        return block

    A, z = rows(3000, 12)
    X = da.from_array(A, chunks=(300, 12)).map_blocks(slowly, dtype=float)
    want = ac.Ridge(n_jobs=1).fit(
        [(A[k : k + 300], z[k : k + 300]) for k in range(0, 3000, 300)], None
    )
    killer = Killer(cluster, client)
    with ThreadPoolExecutor(1) as pool:
        fit = pool.submit(ac.Ridge().fit, X, z)
        for _ in range(5):
            time.sleep(0.5)
            if not fit.done():
                killer.kill()
        model = fit.result(timeout=600)
    assert len(killer.killed) >= 3
    assert np.array_equal(model.coef_, want.coef_)
