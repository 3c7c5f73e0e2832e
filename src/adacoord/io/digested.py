"""Files that are read whole or refused: digested, and checked before anything is parsed.

A digested file is ``ADACOORD-<KIND>-<version>\\n``, the SHA-256 of that line and the payload in
64 hex digits, ``\\n``, then the payload: an npz of plain arrays with one JSON member.  The digest
is checked before a byte of the payload is parsed, and nothing in it can run code.  A digest says
nothing about who made the file: what is read takes no more memory than the file has bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from .writing import replacing

_FACTS = "facts.json"
_DIGEST_LENGTH = 64


def write_digested(
    path: str | os.PathLike,
    kind: str,
    version: int,
    arrays: Mapping[str, np.ndarray],
    facts: Mapping[str, Any],
    previous: str | None = None,
) -> None:
    """Write arrays and plain facts as one digested file; the same content gives the same bytes.

    Parameters
    ----------
    path : str or path-like
        Where to write; an existing file is replaced in one step.
    kind : str
        What the file is, in capitals: ``"MODEL"``, ``"CHECKPOINT"``, ...
    version : int
        Version of the kind's format.
    arrays : mapping of str to ndarray
        Numbers, booleans or strings; object arrays are refused, for they would need pickle.
    facts : mapping
        Whatever JSON can hold.
    previous : str, optional
        Where the file that is replaced goes.
    """
    payload = _pack(arrays, facts)
    header = f"ADACOORD-{kind}-{version}\n".encode("ascii")
    with replacing(path, previous) as file:
        file.write(header + _digest(header, payload) + b"\n")
        file.write(payload)


def read_digested(
    path: str | os.PathLike, kind: str, newest: int
) -> tuple[int, dict[str, np.ndarray], dict[str, Any]]:
    """Read a file written by :func:`write_digested`, checking its digest before parsing it.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : str
        The kind expected.
    newest : int
        The newest version of that kind the caller understands.

    Returns
    -------
    version : int
    arrays : dict of str to ndarray
    facts : dict

    Raises
    ------
    ValueError
        If the file is of another kind, newer than ``newest``, truncated or altered.
    """
    name, what = os.fspath(path), kind.lower()
    if os.path.isdir(path):
        raise ValueError(f"{name}: this is a folder; name the {what} file in it")
    with open(path, "rb") as file:
        content = file.read(64)  # a device may have no end
        header = re.match(rb"ADACOORD-%s-([1-9][0-9]{0,8})\n" % kind.encode("ascii"), content)
        if header is None:
            raise ValueError(
                f"{name}: this is not an adacoord {what} file (it starts with {content[:16]!r}); "
                f"give a file that adacoord wrote, or write the {what} again"
            )
        content += file.read()
    version = int(header[1])
    if version > newest:
        raise ValueError(
            f"{name}: this {what} file has format {version}, and this adacoord reads formats up "
            f"to {newest}; upgrade adacoord, or write the {what} again with this version"
        )
    start = header.end() + _DIGEST_LENGTH + 1
    payload = memoryview(content)[start:]
    if content[header.end() : start] != _digest(header[0], payload) + b"\n":
        raise ValueError(
            f"{name}: this {what} file is damaged (its SHA-256 digest does not match its "
            f"{len(content)} bytes); copy it again from the original, or write the {what} again"
        )
    try:
        return version, *_unpack(payload)
    except Exception as error:  # content that nobody's program wrote raises whatever it likes
        raise ValueError(
            f"{name}: the digest of this {what} file is right but its content cannot be read "
            f"({str(error) or type(error).__name__}); write the {what} again with adacoord"
        ) from error


def _digest(header: bytes, payload: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(header)
    digest.update(payload)
    return digest.hexdigest().encode("ascii")


def _pack(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    # stored, not deflated: the bytes must not depend on the zlib at hand
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_member(_FACTS), json.dumps(facts, sort_keys=True))
        for name in sorted(arrays):
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(arrays[name]), allow_pickle=False)
    return buffer.getvalue()


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # the same bytes on every platform
    return info


def _unpack(payload: memoryview) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        members = archive.infolist()
        for m in members:
            if m.compress_type != zipfile.ZIP_STORED or m.compress_size != m.file_size:
                raise ValueError(f"{m.filename!r} is compressed, and adacoord compresses nothing")
        if sum(m.file_size for m in members) > len(payload):
            raise ValueError("its members are larger than the file")
        content = {m.filename: archive.read(m) for m in members}
    facts = json.loads(content.pop(_FACTS))
    if not isinstance(facts, dict):
        raise ValueError(f"{_FACTS} is not an object")
    return {name.removesuffix(".npy"): _array(name, npy) for name, npy in content.items()}, facts


def _array(name: str, npy: bytes) -> np.ndarray:
    """An array from the bytes of an npy file, which hold neither more nor less than it."""
    stream = io.BytesIO(npy)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{name} is not in version 1.0 of the npy format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "biufU":
        raise ValueError(f"{name} has dtype {dtype}, and not numbers or strings")
    start = stream.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(npy) - start:
        raise ValueError(f"{name} has shape {shape} and {len(npy) - start} bytes of content")
    array = np.frombuffer(npy, dtype, math.prod(shape), start)
    array = array.reshape(shape, order="F" if fortran else "C").astype(dtype.newbyteorder("="))
    if dtype.kind == "U":
        array.tolist()  # a code beyond Unicode's raises ValueError
    return array
