"""Model files: round trips, refusal of every damage, and a kill that loses nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import adacoord as ac
import adacoord.io
from adacoord.io import Model, load_model, save_model
from adacoord.io.digested import read_digested, write_digested

SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PENALTY = st.floats(0, 1e300)
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
LABELS = st.one_of(
    st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=2, unique=True),
    st.lists(FINITE, min_size=2, max_size=2, unique=True),
    st.lists(WORDS, min_size=2, max_size=2, unique=True),
    st.just([False, True]),
)
FIELDS = ("intercept", "loss", "loss_parameter", "l1", "l2", "positive", "certificate",
          "format_version")


def example_model(d=3, **changes):
    settled = {
        "coef": np.arange(d) / 3, "intercept": -0.5, "loss": "logistic", "classes": ["no", "yes"],
        "l2": 1e-4, "certificate": {"gap": 1e-9, "passes": 12, "solver": "spdc"},
    }
    return Model(**(settled | changes))


def assert_same(x, y):
    for name in FIELDS:
        assert repr(getattr(x, name)) == repr(getattr(y, name)), name  # tells -0.0, and NaN, apart
    assert x.coef.dtype == y.coef.dtype == np.float64 and x.coef.tobytes() == y.coef.tobytes()
    if y.classes is None:
        assert x.classes is None
    else:
        assert x.classes.dtype == y.classes.dtype and (x.classes == y.classes).all()


# --- round trips ------------------------------------------------------------------------------


@SETTINGS
@given(
    coef=st.lists(FINITE, max_size=20),
    intercept=FINITE,
    loss=WORDS,
    loss_parameter=st.none() | FINITE,
    classes=st.none() | LABELS,
    l1=PENALTY,
    l2=PENALTY,
    positive=st.booleans(),
    certificate=st.dictionaries(
        WORDS, st.none() | st.booleans() | st.integers() | st.floats() | WORDS, max_size=5
    ),
)
def test_round_trip(tmp_path, **fields):
    fields["certificate"] = dict(sorted(fields["certificate"].items()))  # as the file keeps it
    model = Model(**fields | {"coef": np.array(fields["coef"], float)})
    save_model(model, tmp_path / "m.adacoord")
    assert_same(load_model(tmp_path / "m.adacoord"), model)
    assert os.listdir(tmp_path) == ["m.adacoord"]


def test_same_model_same_bytes(tmp_path):
    save_model(example_model(), tmp_path / "a")
    certificate = {"solver": "spdc", "passes": 12, "gap": 1e-9}
    save_model(example_model(certificate=certificate), tmp_path / "b")
    content = (tmp_path / "a").read_bytes()
    assert content == (tmp_path / "b").read_bytes()
    magic, digest, payload = content.split(b"\n", 2)
    assert magic == b"ADACOORD-MODEL-1"
    assert digest.decode() == hashlib.sha256(magic + b"\n" + payload).hexdigest()
    stamps = {member.date_time for member in zipfile.ZipFile(io.BytesIO(payload)).infolist()}
    assert stamps == {(1980, 1, 1, 0, 0, 0)}


def test_numpy_certificate_becomes_plain(tmp_path):
    model = example_model(certificate={"gap": np.float64(0.5), "passes": np.int32(3)})
    assert repr(model.certificate) == "{'gap': 0.5, 'passes': 3}"


def test_model_is_frozen():
    coef = np.ones(2)
    model = example_model(coef=coef)
    coef[0] = 5.0
    assert model.coef[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        model.coef[0] = 2.0
    with pytest.raises(AttributeError):
        model.l1 = 2.0


def test_lazy_names():
    assert set(adacoord.io.__all__) <= set(dir(adacoord.io))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = adacoord.io.nothing


# --- predictions ------------------------------------------------------------------------------

A = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 5.0, -9.0]])


@pytest.mark.parametrize("form", [np.array, sp.csr_matrix, sp.csc_array, np.float32, list,
                                  lambda x: x.astype(object)])
def test_predictions(form):
    model = example_model()
    z = A @ model.coef - 0.5
    data = form(A)
    np.testing.assert_allclose(model.decision_function(data), z, rtol=1e-14)
    assert model.decision_function(data).dtype == np.float64
    assert model.predict(data).tolist() == ["yes", "no", "no"]
    p = model.predict_proba(data)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-z)), rtol=1e-13)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
    regression = example_model(loss="huber", loss_parameter=1.35, classes=None)
    np.testing.assert_array_equal(regression.predict(data), regression.decision_function(data))
    poisson = example_model(loss="poisson", classes=None)
    np.testing.assert_allclose(poisson.predict(data), np.exp(z), rtol=1e-13)


def test_extreme_probabilities():
    model = example_model(coef=[1.0], intercept=0.0)
    p = model.predict_proba([[800.0], [-800.0], [-40.0]])
    assert p[0].tolist() == [0.0, 1.0] and p[1].tolist() == [1.0, 0.0]
    assert p[2, 1] == pytest.approx(np.exp(-40.0), rel=1e-14)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.ones((2, 4)), "A has 4 columns, and the model was trained on 3; give it the columns"),
        (sp.csr_matrix((2, 1)), "A has 1 columns, and the model was trained on 3; give it the"),
        (np.ones(3), "A has 1 dimension(s): it must have 2"),
        (np.ones((1, 3)) * 1j, "A has dtype complex128: it must hold real numbers"),
        (np.array([["a", "b", "c"]]), "A has dtype <U1: it must hold real numbers"),
        ([[1.0, 1.0, 1.0], [np.nan, 0.0, 0.0]], "A gives a decision value of nan in row 1: it"),
    ],
)
def test_bad_data(data, message):
    with pytest.raises(ValueError) as caught:
        example_model().predict(data)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("loss", "classes", "kind"), [("hinge", [0, 1], "classification"),
                                                       ("squared", None, "regression")])
def test_no_probabilities(loss, classes, kind):
    with pytest.raises(ValueError) as caught:
        example_model(loss=loss, classes=classes).predict_proba(A)
    assert str(caught.value) == (
        f"loss={loss!r} ({kind}) gives no probabilities: use decision_function, or train a "
        "classifier with loss='logistic'"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coef": [[1.0]]}, "coef has dtype float64 and shape (1, 1): it must be one row"),
        ({"coef": [1j]}, "coef has dtype complex128 and shape (1,): it must be one row"),
        ({"coef": [np.nan]}, "coef holds NaN or infinite numbers"),
        ({"intercept": np.inf}, "intercept=inf: it must be a finite number"),
        ({"intercept": "x"}, "intercept='x': it must be a finite number"),
        ({"l1": -1.0}, "l1=-1.0: it must be a finite number of at least 0"),
        ({"l2": None}, "l2=None: it must be a finite number of at least 0"),
        ({"loss": 3}, "loss=3: it must be the name of a loss"),
        ({"loss_parameter": np.nan}, "loss_parameter=nan: it must be a finite number"),
        ({"classes": [1]}, "classes=[1]: they must be two different labels"),
        ({"classes": [1, 1]}, "classes=[1, 1]: they must be two different labels"),
        ({"classes": [1.0, np.nan]}, "classes=[1.0, nan]: they must be two different labels"),
        ({"l2": 10**400}, "l2=1000"),
        ({"positive": "no"}, "positive='no': it must be True or False"),
        ({"classes": np.array([1, "a"], object)}, "classes=array([1, 'a'], dtype=object): they"),
        ({"certificate": [1]}, "certificate=[1]: it must be a dict"),
        ({"certificate": {"x": [1]}}, "certificate['x']=[1]: keys must be strings"),
        ({"format_version": 2}, "format_version=2: this adacoord writes format 1"),
    ],
)
def test_bad_models(changes, message):
    with pytest.raises(ValueError) as caught:
        example_model(**changes)
    assert str(caught.value).startswith(message)


def test_only_models_are_saved(tmp_path):
    with pytest.raises(ValueError, match=r"^model=dict: save_model takes a fitted estimator"):
        save_model({}, tmp_path / "m")


# --- damage -----------------------------------------------------------------------------------


def refusal(path):
    with pytest.raises(ValueError) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "m.adacoord"
    save_model(example_model(), path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        message = refusal(path)
        if length < len(b"ADACOORD-MODEL-1\n"):
            assert message == (
                f"this is not an adacoord model file (it starts with {content[:length][:16]!r}); "
                "give a file that adacoord wrote, or write the model again"
            )
        else:
            assert message == (
                "this model file is damaged (its SHA-256 digest does not match its "
                f"{length} bytes); copy it again from the original, or write the model again"
            )
    path.write_bytes(content + b"\0")
    assert "is damaged" in refusal(path)


def test_every_flipped_byte_is_refused(tmp_path):
    path = tmp_path / "m.adacoord"
    save_model(example_model(), path)
    content = path.read_bytes()
    flips = [(place, 1 << place % 8) for place in range(len(content))]
    flips += [(place, 0x20) for place in range(len(b"ADACOORD-MODEL-1\n") + 65)]  # A for a
    for place, flip in flips:
        damaged = bytearray(content)
        damaged[place] ^= flip
        path.write_bytes(damaged)
        refusal(path)


def test_newer_version_is_refused(tmp_path):
    path = tmp_path / "m.adacoord"
    write_digested(path, "MODEL", 3, {}, {})
    assert refusal(path) == (
        "this model file has format 3, and this adacoord reads formats up to 2; upgrade adacoord, "
        "or write the model again with this version"
    )


class Bomb:
    """Runs code when unpickled."""

    def __reduce__(self):
        return os.mkdir, (self.path,)

    def __init__(self, path):
        self.path = str(path)


def test_pickles_are_never_run(tmp_path):
    path, trace = tmp_path / "m.adacoord", tmp_path / "ran"
    path.write_bytes(pickle.dumps(Bomb(trace)))
    assert refusal(path).startswith("this is not an adacoord model file (it starts with b'\\x80")

    # an object array inside a file whose digest is right
    npz = io.BytesIO()
    np.savez(npz, coef=np.array([Bomb(trace)], object), **{"facts.json": np.zeros(1)})
    for payload in (npz.getvalue(), pickle.dumps(Bomb(trace)), b""):
        magic = b"ADACOORD-MODEL-1\n"
        digest = hashlib.sha256(magic + payload).hexdigest().encode()
        path.write_bytes(magic + digest + b"\n" + payload)
        message = refusal(path)
        assert message.startswith("the digest of this model file is right but its content cannot")
    assert not trace.exists()


def test_content_that_is_no_model(tmp_path):
    path = tmp_path / "m.adacoord"
    write_digested(path, "MODEL", 1, {}, {})
    assert refusal(path) == ("the digest of this file is right but it does not hold a model (it "
                             "lacks 'coef'); save the model again")
    write_digested(path, "CHECKPOINT", 1, {}, {})
    assert refusal(path).startswith("this is not an adacoord model file (it starts with "
                                    "b'ADACOORD-CHECKPO')")


def with_digest(path, payload, version=1):
    magic = f"ADACOORD-MODEL-{version}\n".encode()
    digest = hashlib.sha256(magic + payload).hexdigest().encode()
    path.write_bytes(magic + digest + b"\n" + payload)


def packed(members, how=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def members_of(path):
    payload = path.read_bytes().split(b"\n", 2)[2]
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(array, **changes):
    """An npy file; ``changes`` are made to its header alone."""
    buffer = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array) | changes
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + array.tobytes()


def test_compressed_members_are_refused_before_they_are_expanded(tmp_path):
    path = tmp_path / "m.adacoord"
    save_model(example_model(), path)
    members = members_of(path) | {"coef.npy": npy(np.zeros(10_000_000))}
    with_digest(path, packed(members, zipfile.ZIP_DEFLATED))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        assert "is compressed, and adacoord compresses nothing" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("header", [
    {"shape": (10**9,)}, {"shape": (10**30,)}, {"shape": (-1,)}, {"shape": (2,)},
    {"shape": (3, 0)}, {"descr": "|O"}, {"descr": "<U99"}, {"descr": "<c16"}, {"descr": "|V8"},
    {"descr": [("x", "<f8")]},
])
def test_headers_that_claim_other_content(tmp_path, header):
    path = tmp_path / "m.adacoord"
    save_model(example_model(), path)
    with_digest(path, packed(members_of(path) | {"coef.npy": npy(np.ones(3), **header)}))
    tracemalloc.start()
    try:
        assert "coef.npy" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_file_of_a_machine_with_other_bytes(tmp_path):
    path = tmp_path / "m.adacoord"
    save_model(example_model(), path)
    with_digest(path, packed(members_of(path) | {"coef.npy": npy(np.arange(3, dtype=">f8") / 3)}))
    assert_same(load_model(path), example_model())


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no /dev/zero here")
def test_a_file_without_an_end():
    assert refusal("/dev/zero").startswith("this is not an adacoord model file")


ODD = [None, True, 0, -1, 2**63, 10**400, 1e308, float("nan"), float("inf"), "", "x" * 999, "coef_",
       [], [[]], {}, {"array": "a0"}, {"array": 3}, {"objects": "a0"}, {"list": 1}, {"tuple": [1]},
       {"dict": [[1, 2]]}, {"dict": [[{"list": []}, 2]]}, {"loss": ["huber", None]},
       {"loss": ["huber", "x"]}, {"loss": ["squared", 3]}, {"history": {}},
       {"sparse": [{"list": [1, 6]}, {"array": "a0"}, {"array": "a1"}, {"array": "a2"}]},
       {"sparse": [{"list": [10**12, 10**12]}, {"array": "a0"}, {"array": "a0"}, {"array": "a0"}]}]


def odd_array(rng, array):
    kind = rng.integers(8)
    if kind == 0:
        return npy(array.astype(rng.choice(["<f4", ">f8", "<i8", "?", "<U7", "<u2"])))
    if kind == 1:
        return npy(np.full(array.shape, rng.choice([np.nan, np.inf, -1e308])))
    if kind == 2:
        shape = [(), (0,), (1, 1), (2, 3), (7,), (1, 6, 1), (0, 10**18)][rng.integers(7)]
        return npy(np.ones(shape))
    if kind == 3:
        return npy(array, shape=tuple(int(v) for v in rng.integers(-2, 10**9, rng.integers(4))))
    if kind == 4:
        return npy(array, descr=str(rng.choice(["<U1", "|O", "<m8[s]", "|S8", "<f16", "<c8"])))
    if kind == 5:
        return npy(np.full(3, 2**31, np.uint32).view("<U1"))
    content = bytearray(npy(array))
    if kind == 6:
        del content[int(rng.integers(len(content))):]
    else:
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    return bytes(content)


def odd_tree(rng, tree):
    """The same JSON with one value replaced."""
    if not isinstance(tree, (dict, list)) or not tree or rng.random() < 0.25:
        return ODD[rng.integers(len(ODD))]
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    key = keys[rng.integers(len(keys))]
    changed = tree.copy()
    if rng.random() < 0.1:
        del changed[key]
    else:
        changed[key] = odd_tree(rng, tree[key])
    return changed


def mutated(rng, members):
    """A payload with one thing wrong: in the JSON, in an array, or in the archive itself."""
    members = dict(members)
    name = list(members)[rng.integers(len(members))]
    how = rng.integers(5)
    if how <= 1:
        facts = odd_tree(rng, json.loads(members["facts.json"]))
        members["facts.json"] = json.dumps(facts)
    elif how == 2 and name != "facts.json":
        array = np.lib.format.read_array(io.BytesIO(members[name]))
        members[name] = odd_array(rng, array)
    elif how == 3:
        content = [b"", b"[" * 100_000, b"1" * 9999, b'{"a":' * 5000, b"\x93NUMPY\x01\x00\xff\xff"]
        members[name] = content[rng.integers(len(content))]
        if rng.random() < 0.3:
            del members[name]
    stored = zipfile.ZIP_STORED
    payload = packed(members, [stored, stored, zipfile.ZIP_DEFLATED][rng.integers(3)])
    if how == 4:
        payload = bytearray(payload)
        for _ in range(rng.integers(1, 4)):
            payload[rng.integers(len(payload))] = rng.integers(256)
    return bytes(payload)


def test_odd_content_under_a_right_digest_is_loaded_or_refused(tmp_path):
    rng, path = np.random.default_rng(18), tmp_path / "m.adacoord"
    X = rng.standard_normal((40, 6))
    y = np.searchsorted(np.quantile(X[:, 0], [0.3, 0.6]), X[:, 0])
    plain = example_model(classes=[3, 7])
    fitted = [plain, ac.Ridge().fit(X, X[:, 0]), ac.ERMRegressor("huber").fit(X, X[:, 0]),
              ac.LinearSVC(penalty="l1").fit(X, y).sparsify(),
              ac.LogisticRegression().fit(X, y > 0)]
    refused = 0
    for model in fitted:
        save_model(model, path)
        members = members_of(path)
        for _ in range(300):
            with_digest(path, mutated(rng, members), 1 if model is plain else 2)
            try:
                found = load_model(path)
            except ValueError as error:
                assert str(error).startswith(f"{path}: the digest of this ")
                refused += 1
            else:
                width = found.coef.size if model is plain else found.n_features_in_
                assert len(found.predict(np.zeros((5, width)))) == 5
    assert 600 < refused < 1500


def test_object_arrays_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        write_digested(tmp_path / "x", "CHECKPOINT", 1, {"a": np.array([{}])}, {})
    assert os.listdir(tmp_path) == []


def test_digested_files_of_other_kinds(tmp_path):
    arrays = {"x": np.arange(3), "words": np.array(["a", "bc"])}
    write_digested(tmp_path / "c", "CHECKPOINT", 3, arrays, {"pass": 7})
    version, loaded, facts = read_digested(tmp_path / "c", "CHECKPOINT", 4)
    assert version == 3 and facts == {"pass": 7} and loaded.keys() == arrays.keys()
    assert all((loaded[name] == arrays[name]).all() for name in arrays)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load_model(tmp_path / "none")
    assert caught.value.filename == str(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        save_model(example_model(), tmp_path / "none" / "m")


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    save_model(example_model(), tmp_path / "m")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_model(example_model(l2=2.0), tmp_path / "m")
    assert os.listdir(tmp_path) == ["m"]
    assert load_model(tmp_path / "m").l2 == 1e-4


# --- a kill while saving ----------------------------------------------------------------------

CHILD = """
import os, sys, time
import numpy as np
from adacoord.io import Model, save_model
stop_at, path = sys.argv[1:]
if stop_at != "anywhere":
    def wait(*args):
        print("saving", flush=True)
        time.sleep(60)
    setattr(os, stop_at, wait)
else:
    print("saving", flush=True)
k = 1
while True:
    save_model(Model(np.full(200_000, float(k)), l2=float(k)), path)
    k += 1
"""


def killed_while_saving(path, stop_at, after=0.0):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, stop_at, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "saving\n"
        time.sleep(after)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    assert child.returncode == -signal.SIGKILL


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
@pytest.mark.parametrize("stop_at", ["fsync", "replace"])
def test_kill_before_the_rename_leaves_the_old_file(tmp_path, stop_at):
    path = tmp_path / "m.adacoord"
    save_model(example_model(), path)
    old = path.read_bytes()
    killed_while_saving(path, stop_at)
    assert path.read_bytes() == old
    assert len(list(tmp_path.glob(".m.adacoord.*.tmp"))) == 1  # the kill did fall within a save
    save_model(example_model(), path)
    assert os.listdir(tmp_path) == ["m.adacoord"]  # the next save cleans up


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
def test_kill_at_any_time_leaves_a_whole_file(tmp_path):
    path = tmp_path / "m.adacoord"
    save_model(Model(np.zeros(200_000)), path)
    for after in (0.003, 0.017, 0.041, 0.083):
        killed_while_saving(path, "anywhere", after)
        model = load_model(path)
        assert (model.coef == model.l2).all()
