"""``config_context``: who works, for all calls within a ``with``."""

import asyncio
import pickle
import threading

import numpy as np
import pytest

import adacoord as ac
from adacoord.parallel.config import Workers, asked
from adacoord.parallel.executors import Serial


class Noted(Serial):
    """Notes how often it is asked to work, and whether it was closed."""

    def __init__(self):
        self.maps, self.closed = 0, False

    def map(self, function, jobs):
        self.maps += 1
        return super().map(function, jobs)

    def close(self):
        self.closed = True


def test_the_innermost_counts():
    assert asked() == Workers(None, None)
    with ac.config_context(n_jobs=3):
        assert asked() == Workers(3, None)
        other = Noted()
        with ac.config_context(executor=other):
            assert asked() == Workers(None, other)
            assert asked(n_jobs=2) == Workers(2, None)  # what a call says itself
        with ac.config_context():
            assert asked() == Workers(None, None)
        assert asked() == Workers(3, None)
    with pytest.raises(KeyError), ac.config_context(n_jobs=2):
        raise KeyError
    assert asked() == Workers(None, None)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True])
def test_wrong_numbers_are_refused_at_the_door(n_jobs):
    with pytest.raises(ValueError, match="n_jobs="), ac.config_context(n_jobs=n_jobs):
        pytest.fail("entered")


def test_one_of_the_two():
    with (
        pytest.raises(ValueError, match="one of the two"),
        ac.config_context(n_jobs=2, executor=Noted()),
    ):
        pytest.fail("entered")
    with (
        pytest.raises(ValueError, match=r"dask\.distributed\.Client"),
        ac.config_context(executor="tcp://somewhere:8786"),
    ):
        pytest.fail("entered")


def test_is_local_to_a_thread():
    seen = {}

    def look(name, **how):
        with ac.config_context(**how):
            both.wait()
            seen[name] = asked()
            both.wait()
        seen[name, "after"] = asked()

    both = threading.Barrier(2)
    with ac.config_context(n_jobs=7):  # of this thread alone
        threads = [threading.Thread(target=look, args=(n,), kwargs={"n_jobs": n}) for n in (2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen[2].n_jobs == 2
    assert seen[3].n_jobs == 3
    assert seen[2, "after"] == seen[3, "after"] == Workers(None, None)


def test_is_local_to_an_asynchronous_task():
    async def look(n):
        with ac.config_context(n_jobs=n):
            await asyncio.sleep(0.01 * n)
            return asked().n_jobs

    async def several():
        return await asyncio.gather(*(look(n) for n in (3, 1, 2)))

    assert asyncio.run(several()) == [3, 1, 2]


def test_solve_path_and_estimators_ask_it(rows):
    A, z = rows()
    b = np.where(z > 0, 1.0, -1.0)
    problem = ac.Problem(A, b, "logistic", l2=1e-3)
    want = ac.solve(problem, n_jobs=1)
    walk = ac.path(problem, l2=[1e-2, 1e-3], n_jobs=1)
    three = np.digitize(z, [-1.0, 1.0])
    models = [
        (ac.LogisticRegression(), b),
        (ac.Lasso(alpha=0.01), z),
        (ac.ERMClassifier("logistic"), three),
        (ac.Ridge(), np.stack([z, -z], axis=1)),
    ]
    for model, y in models:
        noted = Noted()
        with ac.config_context(executor=noted):
            model.fit(A, y)
        assert noted.maps > 0
        assert model.n_jobs is None
        same = type(model)(**(model.get_params() | {"n_jobs": 2})).fit(A, y)
        assert np.array_equal(model.coef_, same.coef_)
    noted = Noted()
    with ac.config_context(executor=noted):
        assert np.array_equal(ac.solve(problem).x, want.x)
        assert np.array_equal(ac.path(problem, l2=[1e-2, 1e-3]).coefs, walk.coefs)
        before = noted.maps
        ac.solve(problem, n_jobs=1)  # says it itself
        assert noted.maps == before > 0
    assert not noted.closed  # its owner does that


def test_nothing_of_it_is_kept(rows):
    """An executor does not pickle: an estimator that has seen one does."""

    class Stubborn(Noted):
        def __reduce__(self):
            raise TypeError("not for others")

    A, z = rows()
    with ac.config_context(executor=Stubborn()):
        model = ac.LogisticRegression().fit(A, z > 0)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.coef_, model.coef_)
    assert np.array_equal(again.predict(A), model.predict(A))
