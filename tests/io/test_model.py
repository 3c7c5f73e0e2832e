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

import adacoord as ac
import adacoord.io
from adacoord.io import load_model, save_model
from adacoord.io.digested import read_digested, write_digested


def example_model(d=3, **changes):
    """A classifier as ``fit`` would leave it."""
    params = {"loss": "logistic", "l2": 1e-4} | changes
    model = ac.ERMClassifier(**params)
    model.coef_, model.intercept_ = np.arange(d)[None] / 3, np.array([-0.5])
    model.classes_, model.n_features_in_ = np.array(["no", "yes"]), d
    model.relative_gap_, model.n_iter_, model.solver_ = 1e-9, 12, "spdc"
    return model


def assert_same(x, y):
    assert type(x) is type(y) and x.get_params() == y.get_params()
    for name in ("coef_", "intercept_", "classes_"):
        one, two = getattr(x, name), getattr(y, name)
        assert one.dtype == two.dtype and one.shape == two.shape and (one == two).all()


def plain_file(path, **changes):
    """A file of format 1, as the command line of 0.1.0 wrote them."""
    content = {
        "coef": np.arange(3) / 3,
        "intercept": -0.5,
        "loss": "logistic",
        "loss_parameter": None,
        "classes": np.array([3, 7]),
        "l1": 0.0,
        "l2": 1e-4,
        "positive": False,
        "certificate": {"gap": 1e-9, "passes": 12, "solver": "spdc", "fit_intercept": True},
    } | changes
    arrays = {k: content.pop(k) for k in ("coef", "classes") if content[k] is not None}
    content.pop("classes", None)
    write_digested(path, "MODEL", 1, {k: np.asarray(v) for k, v in arrays.items()}, content)


# --- round trips ------------------------------------------------------------------------------


def test_same_model_same_bytes(tmp_path):
    save_model(example_model(), tmp_path / "a")
    other = ac.ERMClassifier(l2=1e-4)
    for name, value in reversed(vars(example_model()).items()):
        setattr(other, name, value)
    save_model(other, tmp_path / "b")
    content = (tmp_path / "a").read_bytes()
    assert content == (tmp_path / "b").read_bytes()
    magic, digest, payload = content.split(b"\n", 2)
    assert magic == b"ADACOORD-MODEL-3"
    assert digest.decode() == hashlib.sha256(magic + b"\n" + payload).hexdigest()
    stamps = {member.date_time for member in zipfile.ZipFile(io.BytesIO(payload)).infolist()}
    assert stamps == {(1980, 1, 1, 0, 0, 0)}
    assert_same(load_model(tmp_path / "a"), example_model())
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_lazy_names():
    assert set(adacoord.io.__all__) <= set(dir(adacoord.io))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = adacoord.io.nothing


# --- format 1 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels", [[3, 7], [-1.5, 2.0], ["no", "yes"], [False, True], [-(2**62), 2**62]]
)
def test_labels_of_format_1(tmp_path, labels):
    path = tmp_path / "m"
    plain_file(path, classes=np.array(labels))
    model = load_model(path)
    assert model.classes_.dtype == np.array(labels).dtype
    assert model.predict(np.array([[9.0, 9.0, 9.0], [0.0, 0.0, 0.0]])).tolist() == labels[::-1]
    assert model.n_iter_ == 12 and model.dual_gap_ == 1e-9 and model.solver_ == "spdc"
    assert not hasattr(model, "relative_gap_") and not hasattr(model, "history_")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coef": [[1.0]]}, "coef has dtype float64 and shape (1, 1): it must be one row"),
        ({"coef": np.zeros(0)}, "coef has dtype float64 and shape (0,): it must be one row"),
        ({"coef": [np.nan]}, "coef_=array([[nan]]): an array of finite numbers is needed"),
        ({"intercept": np.inf}, "intercept=inf: it must be a finite number"),
        ({"intercept": "x"}, "could not convert"),
        ({"l1": -1.0}, "l1=-1.0: it must be a finite number of at least 0"),
        ({"l2": None}, "float() argument"),
        ({"l2": 10**400}, "int too large"),
        ({"loss": 3}, "loss=3, which this adacoord does not have"),
        ({"loss": "logit"}, "loss='logit', which this adacoord does not have"),
        (
            {"loss_parameter": 0.5},
            "loss='logistic', loss_parameter=0.5: this loss has no parameter",
        ),
        ({"loss": "huber", "loss_parameter": -1.0}, "delta=-1.0"),
        ({"classes": [1]}, "coef_ has 1 row(s) for 1 class(es)"),
        ({"classes": [1, 1]}, "classes_=array([1, 1]): different labels are needed"),
        ({"classes": [1.0, np.nan]}, "classes_=array([ 1., nan]): different labels are needed"),
        ({"classes": [1, 2, 3]}, "coef_ has 1 row(s) for 3 class(es)"),
        ({"positive": "no"}, "positive='no': it must be true or false"),
        ({"certificate": [1]}, "certificate=[1]: it must be an object"),
        ({"certificate": {"gap": "x"}}, "could not convert"),
    ],
)
def test_format_1_that_is_no_model(tmp_path, changes, message):
    plain_file(tmp_path / "m", **changes)
    assert refusal(tmp_path / "m").startswith(
        f"the digest of this file is right but it does not hold a model ({message}"
    )


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
        if length < len(b"ADACOORD-MODEL-3\n"):
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
    flips += [(place, 0x20) for place in range(len(b"ADACOORD-MODEL-3\n") + 65)]  # A for a
    for place, flip in flips:
        damaged = bytearray(content)
        damaged[place] ^= flip
        path.write_bytes(damaged)
        refusal(path)


def test_newer_version_is_refused(tmp_path):
    path = tmp_path / "m.adacoord"
    write_digested(path, "MODEL", 4, {}, {})
    assert refusal(path) == (
        "this model file has format 4, and this adacoord reads formats up to 3; upgrade adacoord, "
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
    assert refusal(path) == (
        "the digest of this file is right but it does not hold a model (it "
        "lacks 'coef'); save the model again"
    )
    write_digested(path, "MODEL", 3, {}, {})
    assert "it lacks 'estimator'" in refusal(path)
    write_digested(path, "CHECKPOINT", 1, {}, {})
    assert refusal(path).startswith(
        "this is not an adacoord model file (it starts with b'ADACOORD-CHECKPO')"
    )


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
    plain_file(path)
    members = members_of(path) | {"coef.npy": npy(np.zeros(10_000_000))}
    with_digest(path, packed(members, zipfile.ZIP_DEFLATED))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        assert "is compressed, and adacoord compresses nothing" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "header",
    [
        {"shape": (10**9,)},
        {"shape": (10**30,)},
        {"shape": (-1,)},
        {"shape": (2,)},
        {"shape": (3, 0)},
        {"descr": "|O"},
        {"descr": "<U99"},
        {"descr": "<c16"},
        {"descr": "|V8"},
        {"descr": [("x", "<f8")]},
    ],
)
def test_headers_that_claim_other_content(tmp_path, header):
    path = tmp_path / "m.adacoord"
    plain_file(path)
    with_digest(path, packed(members_of(path) | {"coef.npy": npy(np.ones(3), **header)}))
    tracemalloc.start()
    try:
        assert "coef.npy" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_file_of_a_machine_with_other_bytes(tmp_path):
    path = tmp_path / "m.adacoord"
    plain_file(path)
    with_digest(path, packed(members_of(path) | {"coef.npy": npy(np.arange(3, dtype=">f8") / 3)}))
    np.testing.assert_array_equal(load_model(path).coef_, [np.arange(3) / 3])


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no /dev/zero here")
def test_a_file_without_an_end():
    assert refusal("/dev/zero").startswith("this is not an adacoord model file")


ODD = [
    None,
    True,
    0,
    -1,
    2**63,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 999,
    "coef_",
    [],
    [[]],
    {},
    {"array": "a0"},
    {"array": 3},
    {"objects": "a0"},
    {"list": 1},
    {"tuple": [1]},
    {"dict": [[1, 2]]},
    {"dict": [[{"list": []}, 2]]},
    {"loss": ["huber", None]},
    {"loss": ["huber", "x"]},
    {"loss": ["squared", 3]},
    {"history": {}},
    {"sparse": [{"list": [1, 6]}, {"array": "a0"}, {"array": "a1"}, {"array": "a2"}]},
    {"sparse": [{"list": [10**12, 10**12]}, {"array": "a0"}, {"array": "a0"}, {"array": "a0"}]},
]


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
        del content[int(rng.integers(len(content))) :]
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
    fitted = [
        None,
        ac.Ridge().fit(X, X[:, 0]),
        ac.ERMRegressor("huber").fit(X, X[:, 0]),
        ac.LinearSVC(penalty="l1").fit(X, y).sparsify(),
        ac.LogisticRegression().fit(X, y > 0),
    ]
    refused = 0
    for model in fitted:
        if model is None:
            plain_file(path)
        else:
            save_model(model, path)
        members = members_of(path)
        for _ in range(300):
            with_digest(path, mutated(rng, members), 1 if model is None else 3)
            try:
                found = load_model(path)
            except ValueError as error:
                assert str(error).startswith(f"{path}: the digest of this ")
                refused += 1
            else:
                assert len(found.predict(np.zeros((5, found.n_features_in_)))) == 5
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
from adacoord import ERMRegressor, save_model
stop_at, path = sys.argv[1:]
if stop_at != "anywhere":
    def wait(*args):
        print("saving", flush=True)
        time.sleep(60)
    setattr(os, stop_at, wait)
else:
    print("saving", flush=True)
model = ERMRegressor()
model.intercept_, model.n_features_in_, k = 0.0, 200_000, 1
while True:
    model.coef_, model.l2 = np.full(200_000, float(k)), float(k)
    save_model(model, path)
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
def test_kill_at_any_time_leaves_a_whole_file(tmp_path):
    path = tmp_path / "m.adacoord"
    save_model(example_model(), path)
    for after in (0.003, 0.017, 0.041, 0.083):
        killed_while_saving(path, "anywhere", after)
        model = load_model(path)
        assert model.n_features_in_ == 3 or (model.coef_ == model.l2).all()
