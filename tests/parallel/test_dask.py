"""A real cluster: the bits of one thread on any number of workers; workers that join."""

import time

import numpy as np
import pytest

import adacoord as ac

distributed = pytest.importorskip("distributed", reason='needs pip install "adacoord[dask]"')

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", params=[2, 1, 3])
def sized(cluster, request):
    """A client of a cluster of so many workers."""
    cluster.scale(request.param)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(request.param, timeout=60)
        yield client, request.param


def test_the_bits_of_one_thread(sized, case):
    (client, workers), (problem, how) = sized, case
    here = ac.solve(problem, n_jobs=1, **how)
    with distributed.get_task_stream(client=client) as stream:
        there = ac.solve(problem, executor=client, **how)
    assert len({task["worker"] for task in stream.data}) == workers  # and they all worked
    assert here.converged
    assert np.array_equal(here.x, there.x)
    assert np.array_equal(here.y, there.y)
    assert np.array_equal(here.intercept, there.intercept)
    assert here.history.gap.tolist() == there.history.gap.tolist()


def test_a_worker_that_joins_is_used(client, cluster, rows):
    """One that joins in the middle of a fit runs functions of blocks."""
    A, z = rows()
    problem = ac.Problem(A, np.where(z > 0, 1.0, -1.0), "logistic", l2=1e-6, intercept=True)
    here = ac.solve(problem, solver="lbfgs", tol=1e-11, n_jobs=1)
    cluster.scale(1)
    while len(client.nthreads()) > 1:
        time.sleep(0.05)
    before = set(client.nthreads())

    def join(progress):
        if progress.passes >= 10 and len(client.nthreads()) == 1:
            cluster.scale(2)
            client.wait_for_workers(2, timeout=60)

    with distributed.get_task_stream(client=client) as stream:
        there = ac.solve(problem, solver="lbfgs", tol=1e-11, executor=client, callback=join)
    [joined] = set(client.nthreads()) - before
    ran = [str(task["key"]) for task in stream.data if task["worker"] == joined]
    assert sum(key.startswith("adacoord-run") for key in ran) > 10
    assert np.array_equal(here.x, there.x)


def test_large_arguments_travel_once(client, rows):
    """A vector that all blocks need is one task, not a part of each; and Dask has no warning."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((64, 10_000))
    problem = ac.Problem(A, A @ rng.standard_normal(10_000), l2=1.0)
    here = ac.solve(problem, solver="newton-cg", tol=1e-8, n_jobs=1)
    with distributed.get_task_stream(client=client) as stream:
        there = ac.solve(problem, solver="newton-cg", tol=1e-8, executor=client)
    kinds = [str(task["key"]).rsplit("-", 1)[0] for task in stream.data]
    assert 0 < kinds.count("adacoord-send") <= kinds.count("adacoord-run") / 2
    assert np.array_equal(here.x, there.x)


def test_a_path_loads_the_rows_once(client, rows):
    A, z = rows()
    problem = ac.Problem(A, np.where(z > 0, 1.0, -1.0), "logistic", intercept=True)
    here = ac.path(problem, l2=[1e-1, 1e-2, 1e-3], tol=1e-6, n_jobs=1)
    with distributed.get_task_stream(client=client) as stream:
        there = ac.path(problem, l2=[1e-1, 1e-2, 1e-3], tol=1e-6, executor=client)
    assert np.array_equal(here.coefs, there.coefs)
    loads = [task for task in stream.data if str(task["key"]).startswith("adacoord-load")]
    assert len(loads) == 8


def test_classes_load_the_rows_once(client, rows):
    """Problems with the same rows, one after the other on a cluster."""
    A, z = rows()
    y = np.digitize(z, np.quantile(z, [0.3, 0.7]))
    here = ac.ERMClassifier("logistic", n_jobs=2).fit(A, y)
    with ac.config_context(executor=client), distributed.get_task_stream(client=client) as stream:
        there = ac.ERMClassifier("logistic").fit(A, y)
    assert np.array_equal(here.coef_, there.coef_)
    loads = [task for task in stream.data if str(task["key"]).startswith("adacoord-load")]
    assert len(loads) == 8


def test_the_command_line(client, tmp_path, rows):
    """``adacoord fit STORE --scheduler ADDRESS``: the model of ``--n-jobs 1``."""
    from typer.testing import CliRunner

    from adacoord.command.cli import app
    from adacoord.io import convert, save_svmlight

    A, z = rows(6_000, 12)
    save_svmlight(tmp_path / "train.svm", A, np.where(z > 0, 1, -1))
    convert(tmp_path / "train.svm", tmp_path / "store")
    address = client.scheduler.address
    for name, how in (("here", ["--n-jobs", "1"]), ("there", ["--scheduler", address])):
        result = CliRunner().invoke(
            app, ["fit", str(tmp_path / "store"), *how, "--model", str(tmp_path / name), "--quiet"]
        )
        assert result.exit_code == 0, result.output
    here, there = ac.load_model(tmp_path / "here"), ac.load_model(tmp_path / "there")
    assert np.array_equal(here.coef_, there.coef_)
    assert there.n_jobs is None
