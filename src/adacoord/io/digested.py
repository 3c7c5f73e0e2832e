"""Files that are whole or refused: written beside, synced, renamed; digested, checked first.

A digested file is ``ADACOORD-<KIND>-<version>\\n``, the SHA-256 of that line and the payload in
64 hex digits, ``\\n``, then the payload: an npz of plain arrays with one JSON member.  The digest
is checked before a byte of the payload is parsed, and nothing in it can run code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

_FACTS = "facts.json"
_DIGEST_LENGTH = 64


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` that takes its name once it is whole and on disk.

    Parameters
    ----------
    path : str or path-like
        The file to write.  If the block raises, or the process is killed, what stood there
        before is untouched.

    Yields
    ------
    BinaryIO
        The temporary file, open for writing.
    """
    target = os.path.realpath(path)  # through a symbolic link, so that the link survives
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{os.fspath(path)}: the folder {folder!r} does not exist; "
                                "create it first")
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    try:
        # mode "x", not mkstemp: the file gets the user's usual permissions, not 0600
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise
    if os.name == "posix":  # the rename itself is durable only once its folder is synced
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_digested(
    path: str | os.PathLike,
    kind: str,
    version: int,
    arrays: Mapping[str, np.ndarray],
    facts: Mapping[str, Any],
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
    """
    payload = _pack(arrays, facts)
    header = f"ADACOORD-{kind}-{version}\n".encode("ascii")
    with replacing(path) as file:
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
    with open(path, "rb") as file:
        content = file.read()
    header = re.match(rb"ADACOORD-%s-([1-9][0-9]{0,8})\n" % kind.encode("ascii"), content)
    if header is None:
        raise ValueError(
            f"{name}: this is not an adacoord {what} file (it starts with {content[:16]!r}); "
            f"give a file that adacoord wrote, or write the {what} again"
        )
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
    except (ValueError, TypeError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{name}: the digest of this {what} file is right but its content cannot be read "
            f"({error}); write the {what} again with adacoord"
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
    if payload[:2] != b"PK":  # np.load would take a bare array too
        raise ValueError("the payload is not an npz archive")
    with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
        facts = json.loads(archive[_FACTS])
        arrays = {name: archive[name] for name in archive.files if name != _FACTS}
    if not isinstance(facts, dict):
        raise ValueError(f"{_FACTS} is not an object")
    return arrays, facts
