"""What a cluster that loses tasks is asked: with a client of the test's own, and no Dask worker."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed", reason='needs pip install "adacoord[dask]"')
from distributed.scheduler import KilledWorker

from adacoord.parallel import dask
from adacoord.parallel.dask import Cluster


class Future:
    def __init__(self, key, outcome):
        self.key, self.outcome, self.released = key, outcome, False

    @property
    def status(self):
        if self.outcome is TimeoutError:
            return "pending"
        return "error" if isinstance(self.outcome, BaseException) else "finished"

    def result(self, timeout=None):
        if self.outcome is TimeoutError:
            raise TimeoutError
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def release(self):
        self.released = True


class Client:
    """Runs tasks where it is, but for those whose place in ``fates`` says otherwise."""

    status = "running"

    def __init__(self, fates=(), workers=1):
        self.fates, self.workers = iter(fates), workers
        self.submitted = []
        self.busy = ()

    def submit(self, function, *arguments, key, pure, **how):
        fate = next(self.fates, None) if function is dask._on_worker else None
        plain = [a.outcome if isinstance(a, Future) else a for a in arguments]
        future = Future(key, fate if fate is not None else function(*plain))
        self.submitted.append(future)
        return future

    def nthreads(self):
        return {f"w{k}": 1 for k in range(self.workers)}

    def processing(self):
        return {"w0": tuple(self.busy)}


class Piece:
    in_memory = False

    def __init__(self, k):
        self.k = k

    def load(self):
        return self.k


def double(block, shift):
    return 2 * block + shift


def jobs(n=4):
    return [(Piece(k), 1) for k in range(n)]


KILLED = KilledWorker("task", SimpleNamespace(address="tcp://w0"), 3)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(dask, "PAUSE", 0.0)
    monkeypatch.setattr(dask, "PATIENCE", 0.0)


@pytest.mark.parametrize("fates", [(KILLED,), (None, KILLED, KILLED), (None, None, TimeoutError)])
def test_what_is_lost_is_submitted_again_under_another_key(fates):
    client = Client(fates)
    assert list(Cluster(client).map(double, jobs())) == [1, 3, 5, 7]
    keys = [future.key for future in client.submitted]
    assert len(set(keys)) == len(keys)
    lost = [f for f in client.submitted if f.status != "finished"]
    assert len(lost) == sum(fate is not None for fate in fates)
    assert all(future.released for future in lost)


def test_an_error_of_a_task_is_raised():
    client = Client((None, ValueError("row 3 is wrong")))
    with pytest.raises(ValueError, match="row 3"):
        list(Cluster(client).map(double, jobs()))
    runs = [f for f in client.submitted if f.key.startswith("adacoord-run")]
    assert all(future.released for future in runs[1:])


def test_a_slow_task_that_a_worker_is_on_is_waited_for():
    """Not submitted a second time beside itself."""
    client = Client((TimeoutError,))
    results = Cluster(client).map(double, jobs(1))
    looks = itertools.count()

    def processing():
        slow = client.submitted[-1]
        if next(looks) == 2:
            slow.outcome = 11
        return {"w0": (slow.key,)}

    client.processing = processing
    assert list(results) == [11]
    assert sum(f.key.startswith("adacoord-run") for f in client.submitted) == 1


def test_a_cluster_that_never_finishes_is_given_up(monkeypatch):
    monkeypatch.setattr(dask, "ATTEMPTS", 5)
    client = Client(itertools.repeat(KILLED))
    with pytest.raises(RuntimeError, match=r"5 attempts \(KilledWorker.*enough memory"):
        list(Cluster(client).map(double, jobs(1)))


def test_a_cluster_without_workers_is_given_up(monkeypatch):
    monkeypatch.setattr(dask, "DESERTED", 0.0)
    client = Client((TimeoutError,), workers=0)
    with pytest.raises(RuntimeError, match=r"no worker for .*start some, or fit without"):
        list(Cluster(client).map(double, jobs(1)))


def test_a_client_closed_during_a_fit():
    client = Client((KILLED,))
    results = Cluster(client).map(double, jobs(1))
    client.status = "closed"
    with pytest.raises(RuntimeError, match="closed before the fit had ended"):
        list(results)


def test_blocks_are_loaded_once_until_it_is_closed():
    client, of = Client(), jobs()
    cluster = Cluster(client)
    for _ in range(3):
        list(cluster.map(double, of))
    loads = [f for f in client.submitted if f.key.startswith("adacoord-load")]
    assert len(loads) == 4
    cluster.close()
    assert all(future.released for future in loads)


def test_large_common_arguments_are_sent_once():
    client, large, small = Client(), np.ones(dask.COMMON), np.ones(3)

    def add(block, x, own, y):
        return block + x.sum() + own + y.sum()

    of = [(Piece(k), large, k, small) for k in range(5)]
    assert list(Cluster(client).map(add, of)) == [2 * k + large.size + 3 for k in range(5)]
    sent = [f for f in client.submitted if f.key.startswith("adacoord-send")]
    assert len(sent) == 1
    assert sent[0].outcome is large


def test_workers_that_join_get_their_share(monkeypatch):
    monkeypatch.setattr(dask, "LOOK", 0.0)
    client, of, wishes = Client(), jobs(6), []
    cluster = Cluster(client)
    list(cluster.map(double, of))
    list(cluster.map(double, of))  # nobody new: nothing is moved
    client.who_has = lambda futures: {future.key: ("w0",) for future in futures}
    submit = client.submit

    def noting(*arguments, workers=None, allow_other_workers=False, **how):
        if workers is not None:
            assert allow_other_workers  # a wish: bound to a worker, it would die with it
            wishes.extend(workers)
        return submit(*arguments, **how)

    client.submit, client.workers = noting, 3
    assert list(cluster.map(double, of)) == [1, 3, 5, 7, 9, 11]
    assert sorted(wishes) == ["w1", "w1", "w2", "w2"]
