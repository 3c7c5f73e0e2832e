"""load_svmlight and save_svmlight: identity with scikit-learn, round trips, every error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import tracemalloc
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from adacoord.io import load_svmlight, save_svmlight

SETTINGS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def same_bits(x, y):
    x, y = np.asarray(x), np.asarray(y)
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def assert_same(ours, theirs):
    (A, b), (A2, b2) = ours, theirs
    assert type(A) is sp.csr_matrix and A.shape == A2.shape
    assert A.has_sorted_indices and A.has_canonical_format
    for name in ("indices", "indptr"):
        ours, theirs = getattr(A, name), getattr(A2, name)
        # scikit-learn 1.9 keeps int64 where int32 would do
        assert ours.dtype == np.int32 and same_bits(ours, theirs.astype(np.int32)), name
    assert same_bits(A.data, A2.data) and same_bits(b, b2)


def written(folder, text, name="data.svm"):
    path = Path(folder, name)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- identity with scikit-learn ---------------------------------------------------------------

DIGITS = st.text("0123456789", max_size=22)


@st.composite
def numbers(draw):
    """Any decimal text: short, long, with a point, an exponent, leading and trailing zeros."""
    if draw(st.booleans()):
        return repr(draw(FINITE))
    whole, part = draw(DIGITS), draw(DIGITS)
    text = draw(st.sampled_from(["", "+", "-"])) + (whole or part or "0")
    text += "." + part if draw(st.booleans()) else ""
    if draw(st.booleans()):
        text += draw(st.sampled_from("eE")) + draw(st.sampled_from(["", "+", "-"]))
        text += str(draw(st.integers(0, 30)))
    return text


@st.composite
def files(draw):
    """Well-formed text, with everything the format allows around the numbers."""
    blank = st.sampled_from([" ", "\t", "  ", " \t", "\x0b", "\r "])
    end = st.sampled_from(["\n", "\r\n", " \n", "\t\r\n", " # a:b 1:2 #\n", "#\n", "\n \r\n"])
    text = draw(st.sampled_from(["", "# header 1:x\n", "\n\n", " \t\n"]))
    for _ in range(draw(st.integers(1, 6))):
        indices = sorted(draw(st.sets(st.integers(1, 3000), max_size=6)))
        tokens = [draw(numbers())]
        if draw(st.integers(0, 4)) == 0:
            tokens.append(f"qid:{draw(st.integers(0, 9))}")
        tokens += [f"{'0' * draw(st.integers(0, 1))}{i}:{draw(numbers())}" for i in indices]
        text += draw(st.sampled_from(["", " "])) + "".join(t + draw(blank) for t in tokens)
        text += draw(end)
    return text.rstrip("\n") if draw(st.booleans()) else text


@SETTINGS
@given(text=files())
@example("1")
@example("1 qid:3")
@example("-0 1:-0 2:0 3:0.0e5")
@example("1 1:9007199254740993 2:9007199254740992 3:1e22 4:1e23 5:5e-324 6:1e-400")
@example("1 1:0.1e1 2:.5 3:5. 4:1E+2 5:00000000000000000000000001 6:0.000000000000000000000001")
def test_same_bits_as_scikit_learn(tmp_path, text):
    path = written(tmp_path, text)
    assert_same(load_svmlight(path), load_svmlight_file(str(path), zero_based=False))


@pytest.mark.parametrize("power", [-90, -65, -64, -30, -22, -21, -3, 0, 3, 22, 25, 64, 65])
def test_hard_roundings(tmp_path, power):
    """Up to 19 digits, and halves between two doubles, against Python's float."""
    rng = np.random.default_rng(power + 100)
    mantissas = [int(m) for m in rng.integers(2**53, 9 * 10**18, 3000)]
    mantissas += [2 * int(m) + 1 for m in rng.integers(2**52, 2**53, 3000)]
    mantissas += [int(m) for m in 10 ** rng.uniform(0, 17, 3000)]
    tokens = [f"{m}e{power}" for m in mantissas]
    _, b = load_svmlight(written(tmp_path, "\n".join(tokens)))
    assert same_bits(b, np.array([float(token) for token in tokens]))


@pytest.mark.parametrize("form", [".18e", ".20f", ".25f", ".19e", ".40e"])
def test_more_digits_than_a_mantissa_holds(tmp_path, form):
    """What lies right below, on and above a half between two doubles, among other numbers."""
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(3000)
    tokens = [format(Decimal(x), form) for x in numbers.tolist()]
    for x in numbers[:500].tolist():
        with localcontext(prec=99):  # all the digits there are
            half = (Decimal(x) + Decimal(float(np.nextafter(x, 9)))) / 2
        tokens += [str(half), f"{half}1", str(half)[:-1], str(half)[:19], str(half)[:20]]
    _, b = load_svmlight(written(tmp_path, "\n".join(tokens)))
    assert same_bits(b, np.array([float(token) for token in tokens]))


@pytest.mark.parametrize("power", [-60, -40, -30, -25, -15, 23, 40, 60])
def test_decimals_next_to_a_half(tmp_path, power):
    """The decimals of 17 and 18 digits that are nearest to halves between two doubles."""
    rng = np.random.default_rng(power + 100)
    tokens = []
    for x in (rng.uniform(1, 10, 1000) * 10.0**power).tolist():
        with localcontext(prec=400):
            half = (Decimal(x) + Decimal(float(np.nextafter(x, np.inf)))) / 2
        tokens += [format(half, form) for form in (".16e", ".17e", ".30e")]
    _, b = load_svmlight(written(tmp_path, "\n".join(tokens)))
    assert same_bits(b, np.array([float(token) for token in tokens]))


def data_file(name):
    folder = os.environ.get("ADACOORD_DATA")
    if not folder:
        pytest.skip("ADACOORD_DATA is not set: real files are not tested")
    path = Path(folder, f"{name}.svm.xz")
    if not path.exists():
        pytest.skip(f"ADACOORD_DATA has no {path.name}: it is not tested")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a2a", "heart_scale", "colon-cancer", "rcv1.subset.binary"])
def test_real_files_as_scikit_learn(name):
    path = data_file(name)
    with lzma.open(path) as file:
        theirs = load_svmlight_file(file, zero_based=False)
    assert_same(load_svmlight(path), theirs)


def test_zero_based(tmp_path):
    path = written(tmp_path, "1 0:5 3:2\n-1 1:1\n")
    ours = load_svmlight(path, zero_based=True)
    assert_same(ours, load_svmlight_file(str(path), zero_based=True))


@pytest.mark.parametrize("ending", COMPRESS)
def test_compressions(tmp_path, ending):
    text = b"+1 1:0.5\n-1 2:1e-3\n"
    path = written(tmp_path, COMPRESS[ending](text), f"data.svm{ending}")
    A, b = load_svmlight(str(path))
    assert A.toarray().tolist() == [[0.5, 0.0], [0.0, 1e-3]] and b.tolist() == [1.0, -1.0]


def test_n_features_widens_as_scikit_learn(tmp_path):
    path = written(tmp_path, "1 1:5 3:2\n")
    ours = load_svmlight(path, n_features=np.int64(9))
    assert ours[0].shape == (1, 9)
    assert_same(ours, load_svmlight_file(str(path), zero_based=False, n_features=9))


def test_unsorted_indices_are_sorted(tmp_path):
    unsorted = load_svmlight(written(tmp_path, "1 3:3 1:1 2:2\n2 2:5\n3 2:7 1:6\n"))
    assert_same(unsorted, load_svmlight(written(tmp_path, "1 1:1 2:2 3:3\n2 2:5\n3 1:6 2:7\n")))


def test_indices_beyond_int32(tmp_path):
    wide = 2**31 + 5
    A, _ = load_svmlight(written(tmp_path, f"1 1:1 {wide}:2\n"))
    assert A.shape == (1, wide) and A.indices.dtype == np.int64
    assert A.indices.tolist() == [0, wide - 1] and A.data.tolist() == [1.0, 2.0]
    A, _ = load_svmlight(written(tmp_path, f"1 1:1 {2**31 - 1}:2\n"))
    assert A.indices.dtype == np.int32 and A.indices[-1] == 2**31 - 2


# --- errors -----------------------------------------------------------------------------------

LABEL = "a line must start with its label, a number"
INDEX = "a feature must read index:value, with a whole number as its index"
VALUE = "a value must be a number, in the form index:value"
FINITE_VALUE = "a value must be a finite number"
TWICE = "an index must not appear twice in a row"
ZERO = "indices start at 1; the file seems zero-based (pass zero_based=True)"


@pytest.mark.parametrize(
    ("text", "line", "column", "reason", "token"),
    [
        ("1 1:2\nabc 1:2\n", 2, 1, LABEL, "abc"),
        ("# c\n\n\t1x 1:2", 3, 2, LABEL, "1x"),
        ("- 1:2", 1, 1, LABEL, "-"),
        ("1e 1:2", 1, 1, LABEL, "1e"),
        ("1_0 1:2", 1, 1, LABEL, "1_0"),
        (
            "1:2 2:3",
            1,
            1,
            "a line must start with its label, and this one starts with a feature",
            "1:2",
        ),
        (
            "1,2 1:3",
            1,
            1,
            "a row must have one label, and this one has several (multi-label)",
            "1,2",
        ),
        ("1\nnan 1:3", 2, 1, "a label must be a finite number", "nan"),
        ("-Infinity", 1, 1, "a label must be a finite number", "-Infinity"),
        ("1\n1e999", 2, 1, "a label must be a finite number", "1e999"),
        ("1 1:2 3", 1, 7, INDEX, "3"),
        ("1 a:2", 1, 3, INDEX, "a:2"),
        ("1 -1:2", 1, 3, INDEX, "-1:2"),
        ("1 1.5:2", 1, 3, INDEX, "1.5:2"),
        ("1 :2", 1, 3, INDEX, ":2"),
        ("1 1:2 qid:3", 1, 7, INDEX, "qid:3"),
        ("1 qid:3 qid:4", 1, 9, INDEX, "qid:4"),
        ("1 q", 1, 3, INDEX, "q"),
        ("1 1:2\r\n1  2:x\r\n", 2, 4, VALUE, "2:x"),
        ("1 1:", 1, 3, VALUE, "1:"),
        ("1 1: 2", 1, 3, VALUE, "1:"),
        ("1 1:2:3", 1, 3, VALUE, "1:2:3"),
        ("1 1:0x1p3", 1, 3, VALUE, "1:0x1p3"),
        ("1 1:1_0", 1, 3, VALUE, "1:1_0"),
        ("1 1:.", 1, 3, VALUE, "1:."),
        ("1 1:1e+", 1, 3, VALUE, "1:1e+"),
        ("1 1:.#comment", 1, 3, VALUE, "1:."),
        ("1 1:1 2:\xe9\n", 1, 7, VALUE, "2:\xe9"),
        ("1 1:1\n1 1:2 2:NaN", 2, 7, FINITE_VALUE, "2:NaN"),
        ("1 1:-inf", 1, 3, FINITE_VALUE, "1:-inf"),
        ("1 1:1 20:-1e400 30:1", 1, 7, FINITE_VALUE, "20:-1e400"),
        ("1 1:1\n1 0:2", 2, 3, ZERO, "0:2"),
        ("1 2:1 2:3", 1, 7, TWICE, "2:3"),
        ("# 1:2\n9 1:1\n1 qid:1 5:1 9:2 05:3 # 5:1 5:1\n", 3, 17, TWICE, "05:3"),
        (
            "1 9999999999999999999:1",
            1,
            3,
            "an index must have at most 18 digits",
            "9999999999999999999:1",
        ),
    ],
)
def test_parse_errors(tmp_path, text, line, column, reason, token):
    path = written(tmp_path, text)
    with pytest.raises(ValueError) as caught:
        load_svmlight(path)
    assert str(caught.value) == f"{path}:{line}:{column}: {reason}, got {token!r}"


def test_long_token_is_shortened(tmp_path):
    path = written(tmp_path, "1 1:" + "x" * 500)
    with pytest.raises(ValueError) as caught:
        load_svmlight(path)
    assert str(caught.value) == f"{path}:1:3: {VALUE}, got {'1:' + 'x' * 55 + '...'!r}"


@SETTINGS
@given(text=st.lists(st.sampled_from(list(b"0123456789:.+-e#qidnaf,x \t\r\n\0\xff")), max_size=40))
def test_arbitrary_bytes_are_read_or_refused_in_place(tmp_path, text):
    path = written(tmp_path, bytes(text))
    try:
        A, b = load_svmlight(path)
    except ValueError as error:
        assert str(error).startswith(f"{path}:")
    else:
        assert A.shape[0] == b.size > 0 and np.isfinite(A.data).all() and np.isfinite(b).all()


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load_svmlight(tmp_path / "none.svm")
    assert caught.value.filename == str(tmp_path / "none.svm")


@pytest.mark.parametrize("text", ["", "\n", " \n# only a comment", "#"])
def test_no_rows(tmp_path, text):
    path = written(tmp_path, text)
    with pytest.raises(ValueError) as caught:
        load_svmlight(path)
    assert str(caught.value) == (
        f"{path}: the file has no rows; give one with at least one line 'label index:value ...'"
    )


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_damaged_compression(tmp_path, ending):
    whole = COMPRESS[ending](b"+1 1:0.5\n-1 2:1e-3\n" * 50)
    path = tmp_path / f"data.svm{ending}"
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for damaged in [whole[:cut] for cut in range(8, len(whole))] + [bytes(flipped)]:
        path.write_bytes(damaged)
        with pytest.raises(ValueError) as caught:
            load_svmlight(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: this {ending} file is truncated or corrupt (")
        assert message.endswith("); copy or download it again")


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_misnamed_compression(tmp_path, ending):
    path = written(tmp_path, "1 1:1\n", f"data{ending}")
    with pytest.raises(ValueError) as caught:
        load_svmlight(path)
    assert str(caught.value) == (
        f"{path}: the name ends in {ending} but the content does not start as a {ending} file "
        "does; rename it after what it holds, or copy it again"
    )
    path = written(tmp_path, COMPRESS[ending](b"1 1:1\n"), "data.svm")
    with pytest.raises(ValueError) as caught:
        load_svmlight(path)
    assert str(caught.value) == (
        f"{path}: the content is that of a {ending} file; rename it to end in {ending}"
    )


def test_n_features_too_small(tmp_path):
    path = written(tmp_path, "1 7:1\n")
    with pytest.raises(ValueError) as caught:
        load_svmlight(path, n_features=3)
    assert str(caught.value) == (
        f"n_features=3: {path} has 7 columns; pass n_features=7 or more, or None"
    )


@pytest.mark.parametrize("name", ["n_features", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1, 2.0, "3"])
def test_not_a_count(tmp_path, name, value):
    with pytest.raises(ValueError, match=rf"^{name}={value!r}: it must be a whole number"):
        load_svmlight(written(tmp_path, "1 1:1\n"), **{name: value})


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_a_file_that_expands_beyond_bounds(tmp_path, ending):
    text = b"1 1:1\n" * 4_000_000
    path = written(tmp_path, COMPRESS[ending](text), f"data.svm{ending}")
    A, _ = load_svmlight(path)  # 24 MB are nothing to speak of, whatever the file's size
    assert A.shape == (4_000_000, 1)
    size = path.stat().st_size
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as caught:
            load_svmlight(path, max_bytes=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()
    assert str(caught.value) == (
        f"{path}: this {ending} file of {size} bytes expands to more than max_bytes=1000000; if "
        "you trust it, pass a larger max_bytes, or decompress it first"
    )
    assert load_svmlight(path, max_bytes=len(text))[1].size == 4_000_000
    with pytest.raises(ValueError, match="expands to more than max_bytes"):
        load_svmlight(path, max_bytes=len(text) - 1)


@pytest.mark.slow
def test_expansion_is_bounded_by_default(tmp_path):
    text = b"1" + b" " * (1 << 28)
    path = written(tmp_path, bz2.compress(text), "data.svm.bz2")
    assert path.stat().st_size < 1000
    with pytest.raises(ValueError, match=r"of \d+ bytes expands to more than max_bytes=268435456"):
        load_svmlight(path)


def test_several_streams_in_one_file(tmp_path):
    for ending in (".gz", ".bz2", ".xz"):
        content = COMPRESS[ending](b"1 1:1\n") + COMPRESS[ending](b"2 2:1\n")
        assert load_svmlight(written(tmp_path, content, f"two{ending}"))[1].tolist() == [1.0, 2.0]


def test_a_wide_index_is_cheap(tmp_path):
    path = written(tmp_path, "1 1:1\n-1 100000000:1\n")
    tracemalloc.start()
    try:
        assert load_svmlight(path)[0].shape == (2, 100_000_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


# --- saving -----------------------------------------------------------------------------------


@SETTINGS
@given(data=st.data(), ending=st.sampled_from(list(COMPRESS)))
def test_round_trip(tmp_path, data, ending):
    n, d = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    mask = data.draw(st.lists(st.booleans(), min_size=n * d, max_size=n * d))
    rows, columns = np.divmod(np.flatnonzero(mask), d)
    values = data.draw(st.lists(FINITE, min_size=rows.size, max_size=rows.size))
    A = sp.csr_matrix((np.array(values, float), (rows, columns)), shape=(n, d))
    b = np.array(data.draw(st.lists(FINITE, min_size=n, max_size=n)))
    path = tmp_path / f"data.svm{ending}"
    save_svmlight(path, A, b)
    assert_same(load_svmlight(path, n_features=d), (A, b))
    assert not list(tmp_path.glob(".*.tmp"))


def test_large_round_trip(tmp_path):
    """More rows and entries than one write holds, an empty stretch among them."""
    A = sp.random(4000, 300, 0.3, format="csr", random_state=0)
    A = sp.csr_matrix(sp.vstack([A[:2000], sp.csr_matrix((50, 300)), A[2000:]]))
    b = np.arange(4050) / 7
    save_svmlight(tmp_path / "data.svm", A, b)
    assert_same(load_svmlight(tmp_path / "data.svm", n_features=300), (A, b))


def test_what_is_written(tmp_path):
    A = np.array([[1.0, 0.0, 0.1], [0.0, 0.0, 0.0], [-10.0, 1e300, 2.5]])
    save_svmlight(tmp_path / "data.svm", A, [1, -1, 0.5])
    text = (tmp_path / "data.svm").read_bytes()
    assert text == b"1 1:1 3:0.1\n-1\n0.5 1:-10 2:1e+300 3:2.5\n"


def test_other_matrices_are_written_and_left_alone(tmp_path):
    repeated = sp.csr_matrix(
        (np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    save_svmlight(tmp_path / "data.svm", repeated, [1])
    assert (tmp_path / "data.svm").read_text() == "1 1:2 3:5\n"
    assert repeated.indices.tolist() == [2, 0, 2]
    for A in (sp.coo_array(repeated), sp.csc_matrix(repeated).astype(np.float32), [[2, 0, 5]]):
        save_svmlight(tmp_path / "data.svm", A, np.array([True]))
        assert (tmp_path / "data.svm").read_text() == "1 1:2 3:5\n"


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        ([[1.0]], [1, 2], "A has shape (1, 1) and b has shape (2,): A must have a row"),
        ([1.0], [1], "A has shape (1,) and b has shape (1,): A must have a row"),
        (np.empty((0, 2)), [], "A has shape (0, 2) and b has shape (0,): A must have a row"),
        ([[np.nan]], [1], "A or b holds NaN or infinite numbers"),
        ([[1.0]], [np.inf], "A or b holds NaN or infinite numbers"),
        ([[1j]], [1], "A has dtype complex128: it must hold real numbers"),
        ([[1.0]], ["a"], "b has dtype <U1: it must hold real numbers"),
    ],
)
def test_save_errors(tmp_path, A, b, message):
    path = written(tmp_path, "old")
    with pytest.raises(ValueError) as caught:
        save_svmlight(path, A, b)
    assert str(caught.value).startswith(message)
    assert path.read_text() == "old" and os.listdir(tmp_path) == [path.name]


def test_save_into_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        save_svmlight(tmp_path / "none" / "data.svm", [[1.0]], [1])


def test_importing_io_is_light():
    code = "import sys, adacoord.io; print(sorted({'numba', 'scipy', 'sklearn'} & {*sys.modules}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
