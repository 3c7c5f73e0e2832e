"""svmlight / LIBSVM text: ``label index:value index:value ... # comment``, one sample a line.

The text is parsed by one pass of a byte kernel (see :mod:`adacoord.io.svmlight_kernel`) into
arrays sized by counting the colons and line ends beforehand.  Numbers are correctly rounded: the
few that the kernel cannot vouch for are noted down and handed to Python's ``float`` afterwards.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import operator
import os
import re
import zlib
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from . import svmlight_kernel as kernel
from .writing import replacing

_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00"}
_OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_DAMAGE = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)
#: A compressed file may expand to so many bytes, or to so many times its size if that is more.
#: Real data sets expand 3 to 15 times; a file made for the purpose, more than 10,000 times.
_EXPANDED, _RATIO = 1 << 28, 100
_CHUNK = 1 << 20

_TOKEN = re.compile(rb"[^\s#]+")
_ENTRIES_A_WRITE = 1 << 17


def load_svmlight(
    path: str | os.PathLike,
    n_features: int | None = None,
    *,
    zero_based: bool = False,
    max_bytes: int | None = None,
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Read an svmlight file, plain or compressed.

    Parameters
    ----------
    path : str or path-like
        The file; one that ends in ``.gz``, ``.bz2`` or ``.xz`` is decompressed.
    n_features : int, optional
        Number of columns; by default the largest index in the file.  More widens the matrix,
        less is an error.
    zero_based : bool, default False
        Whether the file's first column has index 0 instead of 1.
    max_bytes : int, optional
        A compressed file that expands to more bytes is refused; by default 256 MiB or, if that is
        more, 100 times its size.

    Returns
    -------
    A : scipy.sparse.csr_matrix of float64
        Indices are sorted, int32 where they fit.  Explicit zeros are kept.
    b : ndarray of float64
        The labels.

    Raises
    ------
    ValueError
        ``path:line:column: reason, got 'token'`` for text that cannot be read, and a sentence
        for a damaged, misnamed or empty file.

    Notes
    -----
    The numbers are those of ``sklearn.datasets.load_svmlight_file(path, zero_based=False)``, bit
    for bit.  The differences: indices may come in any order within a row (they are sorted) and
    may exceed int32; NaN and infinite numbers, and digits grouped as in ``1_000``, are refused;
    scikit-learn 1.9's index arrays are int64 even where int32 would do.  A ``qid:``
    token after the label is skipped.
    """
    n_features = _checked_count("n_features", n_features, "take the largest index in the file")
    max_bytes = _checked_count("max_bytes", max_bytes, "take 256 MiB or 100 times the file's size")
    text = _read(path, max_bytes)
    if not text.endswith(b"\n"):
        text += b"\n"  # every loop of the kernel stops at a line end
    most = text.count(b":")  # an upper bound: comments and qid hold colons too
    narrow = most < 2**31 - 1 and (n_features is None or n_features < 2**31)
    outcome = _run(text, most, np.int32 if narrow else np.int64, zero_based)
    if outcome[0] == kernel.TOO_WIDE and narrow:
        outcome = _run(text, most, np.int64, zero_based)
    code, position, largest, ordered, b, indptr, indices, values, inexact = outcome
    if code != kernel.DONE:
        _refuse(path, text, position, code)
    if b.size == 0:
        raise ValueError(
            f"{os.fspath(path)}: the file has no rows; give one with at least one "
            "line 'label index:value ...'"
        )
    _round_correctly(path, text, b, values, inexact)

    needed = max(largest + 1, 1)
    if n_features is not None and n_features < needed:
        raise ValueError(
            f"n_features={n_features}: {os.fspath(path)} has {needed} columns; pass "
            f"n_features={needed} or more, or None"
        )
    shape = (b.size, needed if n_features is None else n_features)
    A = sparse.csr_matrix((values, indices, indptr), shape=shape)
    if not ordered:
        A.sort_indices()
        if not A.has_canonical_format:
            _refuse_repeated(path, text)
    A.has_canonical_format = True  # spares others the search
    return A, b


def save_svmlight(path: str | os.PathLike, A, b) -> None:
    """Write a matrix and its labels as one-based svmlight text that reads back to the same bits.

    Parameters
    ----------
    path : str or path-like
        An ending ``.gz``, ``.bz2`` or ``.xz`` compresses.  An existing file is replaced in one
        step, once the new one is whole.
    A : array or sparse matrix of shape (n, d)
        The entries of a dense matrix that are 0 are left out; stored zeros of a sparse one are
        kept, and its duplicate entries are summed.
    b : array of shape (n,)
        The labels.

    Notes
    -----
    The format does not hold d: where the last columns are empty, pass ``n_features`` to
    :func:`load_svmlight`.
    """
    A, b = _checked_data(A, b)
    with replacing(path) as file, _compressing(path, file) as stream:
        bounds = np.searchsorted(A.indptr, np.arange(0, A.nnz, _ENTRIES_A_WRITE)[1:])
        for start, stop in pairwise(np.unique([0, *bounds, b.size]).tolist()):
            stream.write(_rows_as_text(A, b, start, stop))


def _checked_count(name: str, value: int | None, default: str) -> int | None:
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(
            f"{name}={value!r}: it must be a whole number of at least 1, or None to {default}"
        )
    return number


def _read(path: str | os.PathLike, max_bytes: int | None) -> bytes:
    """Return the text of ``path``, decompressed after its ending."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        content = file.read()
    ending = os.path.splitext(name)[1].lower()
    found = next((e for e, magic in _MAGIC.items() if content.startswith(magic)), "")
    if ending in _MAGIC and found != ending:
        raise ValueError(
            f"{name}: the name ends in {ending} but the content does not start as a "
            f"{ending} file does; rename it after what it holds, or copy it again"
        )
    if ending not in _MAGIC:
        if found:
            raise ValueError(
                f"{name}: the content is that of a {found} file; rename it to end in {found}"
            )
        return content
    most = max_bytes or max(_EXPANDED, _RATIO * len(content))
    chunks, size = [], 0
    try:
        with _OPEN[ending](io.BytesIO(content)) as stream:
            while size <= most and (chunk := stream.read(_CHUNK)):
                chunks.append(chunk)
                size += len(chunk)
    except _DAMAGE as error:
        raise ValueError(
            f"{name}: this {ending} file is truncated or corrupt ({error}); copy or "
            "download it again"
        ) from error
    if size > most:
        raise ValueError(
            f"{name}: this {ending} file of {len(content)} bytes expands to more than "
            f"max_bytes={most}; if you trust it, pass a larger max_bytes, or "
            "decompress it first"
        )
    return b"".join(chunks)


def _run(text: bytes, most: int, index_type: type, zero_based: bool) -> tuple:
    rows = text.count(b"\n")
    b = np.empty(rows)
    indptr = np.empty(rows + 1, np.int64)
    indices: np.ndarray = np.empty(most, index_type)
    values = np.empty(most)
    # Rarely used, and then sparsely: the system gives memory only to the pages written to.
    inexact = np.empty((most + rows, 3), np.int64)
    code, position, rows, entries, n_inexact, largest, ordered = kernel.parse(
        np.frombuffer(text, np.uint8),
        0 if zero_based else 1,
        np.iinfo(index_type).max,
        b,
        indptr,
        indices,
        values,
        inexact,
    )
    if entries < most:  # release the surplus
        indices, values = indices[:entries].copy(), values[:entries].copy()
    b, indptr, inexact = b[:rows].copy(), indptr[: rows + 1], inexact[:n_inexact]
    return code, position, largest, ordered, b, indptr, indices, values, inexact


def _round_correctly(path, text: bytes, b, values, inexact: np.ndarray) -> None:
    """Replace the numbers the kernel could not round exactly by Python's reading of them."""
    numbers = np.array([float(text[start:end]) for start, end in inexact[:, :2].tolist()])
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        start, _, slot = inexact[infinite[0]]
        _refuse(path, text, int(start), kernel.BAD_LABEL if slot < 0 else kernel.BAD_VALUE)
    slots = inexact[:, 2]
    values[slots[slots >= 0]] = numbers[slots >= 0]
    b[-1 - slots[slots < 0]] = numbers[slots < 0]


def _refuse_repeated(path, text: bytes) -> None:
    """Refuse the first index that appears twice in a row of well-formed text."""
    position = 0
    for line in text.split(b"\n"):
        seen = set()
        for token in _TOKEN.finditer(line.partition(b"#")[0]):
            index, colon, _ = token[0].partition(b":")
            if colon and index.lstrip(b"0") in seen:
                _refuse(path, text, position + token.start(), kernel.REPEATED)
            if colon:  # the label has none
                seen.add(index.lstrip(b"0"))
        position += len(line) + 1


def _refuse(path, text: bytes, position: int, code: int) -> NoReturn:
    """Raise the error of the token that holds ``position``."""
    start = text.rfind(b"\n", 0, position) + 1
    line = text[start : text.index(b"\n", position)]
    token = next(t for t in _TOKEN.finditer(line) if t.end() > position - start)
    number = text.count(b"\n", 0, start) + 1
    shown = token[0].decode("utf-8", "backslashreplace")
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise ValueError(
        f"{os.fspath(path)}:{number}:{token.start() + 1}: {_reason(code, token[0])}, got {shown!r}"
    )


def _reason(code: int, token: bytes) -> str:
    if code == kernel.BAD_LABEL:
        if b":" in token:
            return "a line must start with its label, and this one starts with a feature"
        if b"," in token:
            return "a row must have one label, and this one has several (multi-label)"
        if _is_not_finite(token):
            return "a label must be a finite number"
        return "a line must start with its label, a number"
    if code == kernel.BAD_VALUE:
        if _is_not_finite(token.partition(b":")[2]):
            return "a value must be a finite number"
        return "a value must be a number, in the form index:value"
    return {
        kernel.BAD_INDEX: "a feature must read index:value, with a whole number as its index",
        kernel.INDEX_ZERO: "indices start at 1; the file seems zero-based (pass zero_based=True)",
        kernel.REPEATED: "an index must not appear twice in a row",
        kernel.TOO_WIDE: "an index must have at most 18 digits",
    }[code]


def _is_not_finite(token: bytes) -> bool:
    try:
        return not math.isfinite(float(token))
    except ValueError:
        return False


def _checked_data(A, b) -> tuple[sparse.csr_matrix, np.ndarray]:
    A = A if sparse.issparse(A) else np.asarray(A)
    b = np.asarray(b)
    for name, array in (("A", A), ("b", b)):
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} has dtype {array.dtype}: it must hold real numbers; convert it first"
            )
    if A.ndim != 2 or b.shape != (A.shape[0],) or b.size == 0:
        raise ValueError(
            f"A has shape {A.shape} and b has shape {b.shape}: A must have a row, of "
            "at least one, for each label in b"
        )
    A, b = sparse.csr_matrix(A, dtype=np.float64), b.astype(np.float64)
    if not (np.isfinite(A.data).all() and np.isfinite(b).all()):
        raise ValueError(
            "A or b holds NaN or infinite numbers: svmlight files hold finite ones; "
            "remove or fill them in first"
        )
    if not A.has_canonical_format:
        A = A.copy()  # the caller's matrix stays as it is
        A.sum_duplicates()
    return A, b


def _compressing(path: str | os.PathLike, file):
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending == ".gz":
        return gzip.GzipFile("", "wb", 6, file, mtime=0)
    if ending == ".bz2":
        return bz2.BZ2File(file, "wb")
    if ending == ".xz":
        return lzma.LZMAFile(file, "wb", preset=1)  # preset 6: 8x the time for a fifth less
    return nullcontext(file)


def _rows_as_text(A: sparse.csr_matrix, b: np.ndarray, start: int, stop: int) -> bytes:
    first, last = A.indptr[start], A.indptr[stop]
    pairs = zip((A.indices[first:last] + 1).tolist(), A.data[first:last].tolist(), strict=True)
    tokens = list(map(" %d:%r".__mod__, pairs))
    bounds = (A.indptr[start : stop + 1] - first).tolist()
    lines = [
        f"{label!r}{''.join(tokens[i:j])}\n"
        for label, (i, j) in zip(b[start:stop].tolist(), pairwise(bounds), strict=True)
    ]
    # repr writes whole numbers as 1.0
    return "".join(lines).replace(".0 ", " ").replace(".0\n", "\n").encode("ascii")
