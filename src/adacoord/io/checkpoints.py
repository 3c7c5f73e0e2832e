"""Checkpoint files: a tree of plain arrays and numbers, and the one written before it.

A file is a digested npz (see :mod:`adacoord.io.digested`).  A tree is dictionaries of dictionaries,
with arrays, numbers, strings and None at its ends; what is not an array is in the JSON member.

A new file takes the place of the last one when it is whole and on disk, and the last one goes to
``path.previous``: at every moment one of the two is whole, and is no older than the last one whose
writing had ended.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .digested import read_digested, write_digested
from .writing import check_writable

#: The format that is written, and the only one that is read.
FORMAT = 1
_KIND = "CHECKPOINT"

Tree = dict[str, Any]


def previous_of(path: str) -> str:
    """Where the checkpoint before the last one is."""
    return f"{os.path.realpath(path)}.previous"  # of a link beside the file that it names


def check_place(path: str) -> None:
    """Refuse a place where no checkpoint could be written, before there is anything to lose."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise ValueError(
            f"checkpoint={path!r}: this is neither a file nor free; name a file that may be made"
        )
    check_writable(path)


def exists(path: str) -> bool:
    """Whether there is something to go on from."""
    return os.path.exists(path) or os.path.exists(previous_of(path))


def write_checkpoint(path: str, tree: Tree, keep: bool = True) -> None:
    """Write a checkpoint; the one that is there becomes the previous one.

    ``keep=False`` overwrites it: it is damaged, and the previous one is the one that counts.
    """
    arrays: dict[str, np.ndarray] = {}
    facts = _without_arrays(tree, "", arrays)
    write_digested(path, _KIND, FORMAT, arrays, facts, previous_of(path) if keep else None)


def read_checkpoint(path: str) -> tuple[Tree | None, list[str]]:
    """(the newest checkpoint that is whole, what is wrong with one that is newer).

    None where there is none at all.

    Raises
    ------
    ValueError
        If there are files, and none of them is a whole checkpoint.
    """
    wrong: list[str] = []
    for name in (path, previous_of(path)):
        try:
            return _read(name), wrong
        except FileNotFoundError:
            continue
        except (ValueError, OSError) as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError(
            f"checkpoint={path!r}: there is no whole checkpoint to go on from "
            f"({'; '.join(wrong)}); name another file, or remove it to start from the beginning"
        )
    return None, []


def _read(name: str) -> Tree:
    version, arrays, tree = read_digested(name, _KIND, FORMAT)
    if version != FORMAT:
        raise ValueError(f"{name}: this checkpoint has format {version}, and not {FORMAT}")
    for place, array in arrays.items():
        *branches, last = place.split("/")
        branch: Any = tree
        for key in branches:
            branch = branch.get(key) if isinstance(branch, dict) else None
        if not isinstance(branch, dict):
            raise ValueError(f"{name}: this checkpoint has no place for its array {place!r}")
        branch[last] = array if array.ndim else array[()]
    return tree


def _without_arrays(tree: Tree, prefix: str, arrays: dict[str, np.ndarray]) -> Tree:
    """What JSON can hold of a tree; the rest goes into ``arrays``, named by where it was."""
    out: Tree = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            out[name] = _without_arrays(value, f"{prefix}{name}/", arrays)
        elif isinstance(value, (np.ndarray, np.generic)):
            arrays[prefix + name] = np.asarray(value)
        else:
            out[name] = value
    return out
