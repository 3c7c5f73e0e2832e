"""Dask collections: fits, lazy predictions, and what is wrong with partitions.

Without a cluster here but for the last tests: the blocks are the same.
"""

import pickle
import threading

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac

dask = pytest.importorskip("dask", reason='needs pip install "adacoord[dask]"')
da = pytest.importorskip("dask.array", reason='needs pip install "adacoord[dask]"')
dd = pytest.importorskip("dask.dataframe", reason='needs pip install "adacoord[dask]"')
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = list("abcdefghijkl")


@pytest.fixture
def table(rows):
    return rows(900, 12)


@pytest.fixture
def frame(table):
    return dd.from_pandas(pd.DataFrame(table[0], columns=NAMES), npartitions=3)


def parts(array, size=300):
    return [dask.delayed(array[k : k + size]) for k in range(0, array.shape[0], size)]


def pairs(A, z, size=300):
    """The same blocks without Dask."""
    return [(A[k : k + size], z[k : k + size]) for k in range(0, len(A), size)]


KINDS = {
    "array": lambda A, z: (da.from_array(A, chunks=(300, 5)), da.from_array(z, chunks=450)),
    "frame": lambda A, z: (
        dd.from_pandas(pd.DataFrame(A, columns=NAMES), npartitions=3),
        dd.from_pandas(pd.Series(z), npartitions=2),
    ),
    "delayed": lambda A, z: (parts(A), parts(z)),
    "sparse": lambda A, z: (parts(sparse.csr_matrix(A)), z),
    "one delayed": lambda A, z: ([dask.delayed(A)], dask.delayed(z)),
    "unknown sizes": lambda A, z: (
        dd.from_pandas(pd.DataFrame(A, columns=NAMES), npartitions=3).to_dask_array(),
        z,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_fit_has_the_bits_of_the_same_blocks(table, kind):
    A, z = table
    X, y = KINDS[kind](A, z)
    blocks = pairs(A, z)
    if kind == "sparse":
        blocks = [(sparse.csr_matrix(a), b) for a, b in blocks]
    if kind == "one delayed":
        blocks = [(A, z)]
    want = ac.Ridge().fit(blocks, None)
    model = ac.Ridge().fit(X, y)
    assert np.array_equal(model.coef_, want.coef_)
    assert model.intercept_ == want.intercept_
    assert model.relative_gap_ <= model.tol
    weights = np.abs(z)
    weighted = ac.Ridge().fit(X, y, sample_weight=da.from_array(weights, chunks=100))
    np.testing.assert_allclose(
        weighted.coef_, ac.Ridge(tol=1e-10).fit(A, z, weights).coef_, atol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
def test_problems_of_collections(table, kind):
    A, z = table
    X, y = KINDS[kind](A, z)
    problem = ac.Problem(X, y, l1=0.05, intercept=True, sample_weight=da.from_array(1.0 + z * z))
    assert problem.matrix.blocked
    found = ac.solve(problem, tol=1e-8)
    want = ac.Problem(A, z, l1=0.05, intercept=True, sample_weight=1.0 + z * z)
    assert found.converged
    assert found.primal == pytest.approx(ac.solve(want, tol=1e-9).primal, rel=1e-7)
    assert ac.certify(problem, found.x, found.intercept).relative_gap <= 2e-8


def test_problems_of_collections_need_targets(table):
    with pytest.raises(ValueError, match="b=None"):
        ac.Problem(da.from_array(table[0]), l2=1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_stay_lazy(table, kind):
    A, z = table
    X, _ = KINDS[kind](A, z)
    labels = np.where(z > 0, "yes", "no")
    model = ac.LogisticRegression().fit(A, labels)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        lazy = getattr(model, name)(X)
        assert isinstance(lazy, da.Array)
        want = getattr(model, name)(A)
        assert lazy.dtype == want.dtype
        assert lazy.ndim == want.ndim
        if want.dtype.kind == "f":
            np.testing.assert_allclose(lazy.compute(), want, rtol=1e-12)
        else:
            assert lazy.compute().tolist() == want.tolist()


def test_predictions_compute_nothing_before_they_are_asked_for(table):
    A, z = table
    computed = []

    def noting(block):
        computed.append(len(block))
        return block

    X = da.from_array(A, chunks=(300, 12)).map_blocks(noting, dtype=float, meta=np.empty((0, 0)))
    lazy = ac.Ridge().fit(A, z).predict(X)
    assert computed == []
    lazy.compute(scheduler="synchronous")
    assert computed == [300, 300, 300]


def test_scores(table):
    A, z = table
    X, y = KINDS["array"](A, z)
    model = ac.Ridge().fit(A, z)
    assert model.score(X, y) == pytest.approx(model.score(A, z))


def test_columns_of_frames(table, frame):
    model = ac.Ridge().fit(frame, table[1])
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match=r"X has the columns \['b', 'a'.*in this order"):
        model.predict(frame[["b", "a", *NAMES[2:]]])
    with pytest.raises(ValueError, match="X has 5 features, but Ridge is expecting 12 features"):
        model.predict(frame[NAMES[:5]])
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        model.predict(frame["a"])


def test_numbers_of_every_kind(table):
    """Whole numbers, flags, float32, and pandas' own types with their missing values."""
    A, z = table
    whole = pd.DataFrame(A[:, :3].astype(np.float32), columns=list("abc"))
    whole["flag"] = A[:, 3] > 0
    whole["count"] = np.round(10 * A[:, 4]).astype(int)
    whole["nullable"] = np.round(10 * A[:, 5]).astype(int)
    whole["nullable"] = whole["nullable"].astype("Int64")
    X = dd.from_pandas(whole, npartitions=3)
    y = pd.Series(z).astype("Float64")
    model = ac.Ridge(tol=1e-10).fit(X, dd.from_pandas(y, npartitions=2))
    plain = whole.astype(float).to_numpy()
    np.testing.assert_allclose(model.coef_, ac.Ridge(tol=1e-10).fit(plain, z).coef_, atol=1e-7)
    found, wanted = model.predict(X).compute(), model.predict(plain)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    whole.loc[500, "nullable"] = pd.NA
    with pytest.raises(ValueError, match="partition 1 of X has the value nan in row 200"):
        ac.Ridge().fit(dd.from_pandas(whole, npartitions=3), z)


def test_partitions_without_rows(table, frame):
    A, z = table
    X = dd.concat([frame[frame.a > 1e9], frame, frame[frame.b > 1e9]])
    model = ac.Ridge().fit(X, z)
    assert np.array_equal(model.coef_, ac.Ridge().fit(pairs(A, z), None).coef_)
    np.testing.assert_allclose(model.predict(X).compute(), model.predict(A), rtol=1e-12)
    kept = A[:, 0] > 0
    filtered = ac.Ridge(tol=1e-10).fit(frame[frame.a > 0], z[kept])
    np.testing.assert_allclose(
        filtered.coef_, ac.Ridge(tol=1e-10).fit(A[kept], z[kept]).coef_, atol=1e-6
    )
    with pytest.raises(ValueError, match="X has no rows"):
        ac.Ridge().fit(frame[frame.a > 1e9], z[:0])


def bad(kind, A, z):
    B = A.copy()
    if kind == "nan":
        B[500, 2] = np.nan
        return da.from_array(B, chunks=(300, 12)), z
    if kind == "inf":
        B[500, 2] = np.inf
        return parts(B), z
    if kind == "width":
        return [dask.delayed(A[:300]), dask.delayed(A[300:, :5])], z
    if kind == "mixed":
        return [dask.delayed(A[:300]), dask.delayed(sparse.csr_matrix(A[300:]))], z
    if kind == "words":
        return da.from_array(A.astype(str), chunks=(300, 12)), z
    if kind == "objects":
        B = A.astype(object)
        B[500, 2] = "word"
        return parts(B), z
    if kind == "column of words":
        table = pd.DataFrame(A, columns=NAMES).assign(colour="red")
        return dd.from_pandas(table, npartitions=3), z
    if kind == "column of dates":
        table = pd.DataFrame(A, columns=NAMES).assign(day=pd.Timestamp("2020-01-01"))
        return dd.from_pandas(table, npartitions=3), z
    if kind == "too few targets":
        return da.from_array(A, chunks=(300, 12)), da.from_array(z[:-1])
    if kind == "no targets":
        return da.from_array(A, chunks=(300, 12)), None
    if kind == "vector":
        return da.from_array(z), z
    if kind == "series":
        return dd.from_pandas(pd.Series(z), npartitions=2), z
    if kind == "bag":
        import dask.bag as db

        return db.from_sequence([1, 2, 3]), z
    return parts(z), z  # vectors


BAD = {
    "nan": "partition 1 of X has the value nan in row 200",
    "inf": "partition 1 of X has the value inf in row 200",
    "width": "partition 1 of X has 5 dense columns, and partition 0 of X 12 dense ones",
    "mixed": "partition 1 of X has 12 sparse columns, and partition 0 of X 12 dense ones",
    "words": "partition 0 of X has dtype <U32: the data must be real numbers",
    "objects": "partition 1 of X has dtype object: the data must be real numbers",
    "column of words": "X has the column 'colour' of dtype .*leave it out",
    "column of dates": "X has the column 'day' of dtype datetime64.*leave it out",
    "too few targets": r"inconsistent numbers of samples: \[899, 900\]",
    "no targets": "requires y to be passed",
    "vector": "X is a array Array of 1 dimensions: it must have two",
    "series": "Series of 1 dimensions: it must have two",
    "bag": "X is a bag Bag without rows and columns",
    "vectors": r"partition 0 of X has shape \(300,\): it must have two dimensions",
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_wrong_is_said(table, kind):
    with pytest.raises(ValueError, match=BAD[kind]):
        ac.Ridge().fit(*bad(kind, *table))


@pytest.mark.parametrize("name", ["LassoCV", "RidgeCV", "LogisticRegressionCV", "LinearSVCCV"])
def test_searches_are_refused(table, frame, name):
    """They would fetch all rows, without a word."""
    A, z = table
    for X in (da.from_array(A, chunks=(300, 12)), frame, parts(A), pairs(A, z)):
        with pytest.raises(ValueError, match=f"{name} picks the rows of folds.*fit {name[:-2]}"):
            getattr(ac, name)().fit(X, z > 0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ac.LogisticRegression(solver="spdc"), 'use solver="auto", or one of'),
        (ac.LogisticRegression(l1_ratio=1.0), "no method takes this .* use l2 alone"),
    ],
)
def test_what_has_no_form_for_blocks_is_refused(table, model, message):
    A, z = table
    with pytest.raises(ValueError, match=message):
        model.fit(da.from_array(A, chunks=(300, 12)), np.digitize(z, [-1, 1]))


def test_several_threads_without_a_cluster(table):
    """Each computes the partitions that it works on."""
    A, z = table
    X = da.from_array(A, chunks=(100, 12))
    models = [
        ac.ERMClassifier("logistic", n_jobs=n).fit(X, np.digitize(z, [-1, 1])) for n in (1, 4)
    ]
    assert np.array_equal(models[0].coef_, models[1].coef_)


# ---- on a cluster --------------------------------------------------------------------------------


@pytest.mark.slow
def test_fit_by_the_default_client_and_by_that_of_the_context(cluster, table):
    from distributed import Client, get_task_stream

    A, z = table
    X, y = KINDS["array"](A, z)
    want = ac.Ridge().fit(pairs(A, z), None)
    with Client(cluster) as client:  # the default one
        with get_task_stream(client=client) as stream:
            model = ac.Ridge(n_jobs=2).fit(X, y)  # threads of this process have no rows to share
        assert any(str(task["key"]).startswith("adacoord-run") for task in stream.data)
        assert np.array_equal(model.coef_, want.coef_)
        assert not client.futures  # nothing stays behind
    with Client(cluster, set_as_default=False) as client:
        for kind in KINDS:
            X, y = KINDS[kind](A, z)
            with get_task_stream(client=client) as stream, ac.config_context(executor=client):
                model = ac.Ridge().fit(X, y)
            assert any(str(task["key"]).startswith("adacoord-run") for task in stream.data)
            np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-9)
            again = pickle.loads(pickle.dumps(model))
            assert np.array_equal(again.coef_, model.coef_)
        with (
            pytest.raises(ValueError, match="partition 1 of X has the value nan in row 200"),
            ac.config_context(executor=client),
        ):
            ac.Ridge().fit(*bad("nan", A, z))


@pytest.mark.slow
def test_solve_by_a_client(cluster, table):
    """A problem of a collection is computed once, also where the client is named twice."""
    from distributed import Client, get_task_stream

    A, z = table
    with Client(cluster) as client, get_task_stream(client=client) as stream:
        problem = ac.Problem(da.from_array(A, chunks=(300, 12)), z, l2=0.1)
        found = ac.solve(problem, executor=client)
        assert sum(str(task["key"]).startswith("_rows") for task in stream.data) <= 3
    assert np.array_equal(found.x, ac.solve(ac.Problem(pairs(A, z), l2=0.1)).x)


@pytest.mark.slow
def test_a_store_that_the_workers_read(cluster, table, tmp_path):
    from distributed import Client

    A, z = table
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "z.npy", z)
    from adacoord.io import convert

    store = convert(tmp_path / "A.npy", tmp_path / "store", target=str(tmp_path / "z.npy"))
    want = ac.Lasso(alpha=0.05).fit(store, None)
    with Client(cluster) as client, ac.config_context(executor=client):
        model = ac.Lasso(alpha=0.05).fit(ac.open_store(tmp_path / "store"), None)
    assert np.array_equal(model.coef_, want.coef_)


@pytest.mark.slow
def test_fits_in_several_threads_on_one_cluster(cluster, table):
    from distributed import Client

    A, z = table
    X, found = da.from_array(A, chunks=(300, 12)), {}

    def fit(alpha):
        with ac.config_context(executor=client):
            found[alpha] = ac.Ridge(alpha=alpha).fit(X, z).coef_

    with Client(cluster, set_as_default=False) as client:
        threads = [threading.Thread(target=fit, args=(alpha,)) for alpha in (1.0, 10.0, 100.0)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for alpha in (1.0, 10.0, 100.0):
        assert np.array_equal(found[alpha], ac.Ridge(alpha=alpha).fit(pairs(A, z), None).coef_)


def test_a_closed_client_is_refused(table):
    distributed = pytest.importorskip("distributed")

    class Client:
        status = "closed"

    Client.__module__ = distributed.Client.__module__
    with pytest.raises(ValueError, match="this client is closed; connect another one"):
        ac.solve(ac.Problem(*table, l2=1.0), executor=Client())
