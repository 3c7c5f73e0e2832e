"""How every kernel of the package is compiled: one decorator, one prefetch.

``jit`` is ``numba.njit`` with the package's settings:

* ``cache=True``: a kernel is compiled once a machine, not once a process.  Numba keeps the
  cache beside the source, or in the user's cache folder where that cannot be written; where
  neither can, the kernel is compiled anew in each process instead of failing at import.  A full
  disk or a damaged cache file costs a compilation, never a fit: files end with a digest of their
  content, and one that does not match is read as if it were not there.
* The cache is keyed on *all* the files that hold shared scalar kernels.  Numba looks only at
  the file of the outermost function, so an edited loss would otherwise be ignored by the
  solvers that inline it.
* ``error_model="numpy"`` removes the zero-division branch from the inner loops.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from pathlib import Path

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.caching import IndexDataCacheFile
from numba.extending import intrinsic

#: Reassociation lets LLVM vectorise a reduction; NaN and inf keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}

#: Where kernels live that others inline.
_SHARED = ("kernels/*.py", "sampling/*.py", "solvers/*/*kernels.py")
_PACKAGE = Path(__file__).parent.parent
_FILES = sorted(file for pattern in _SHARED for file in _PACKAGE.glob(pattern))
_STAMP = tuple((s.st_mtime, s.st_size) for s in (file.stat() for file in _FILES))


def jit(function=None, *, fastmath=False, inline=False):
    """Compile ``function`` in nopython mode, cached on disk wherever a folder can be written.

    ``inline=True`` makes it a part of every kernel that calls it: for the small functions that run
    once per row, which LLVM leaves as calls when they distinguish many cases.
    """

    def compile_(f):
        options = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": fastmath,
            "forceinline": inline,
        }
        try:
            dispatcher = numba.njit(cache=True, **options)(f)
        except RuntimeError:  # numba: "cannot cache function ...: no locator available"
            return numba.njit(**options)(f)
        cache = dispatcher._cache
        stamp = (cache._cache_file._source_stamp, _STAMP)
        cache._cache_file = _CacheFile(cache._cache_path, cache._impl.filename_base, stamp)
        _forgive(cache)
        return dispatcher

    return compile_ if function is None else compile_(function)


class _CacheFile(IndexDataCacheFile):
    """Numba's index and data files, with what it takes to tell a wrong one from a right one.

    Damaged pickles raise whatever they like, or load as something else; damaged machine code
    runs.  So each file ends with a digest (a pickle's reader does not look beyond its end).  Each
    data file says whose it is: one left by an older source may stand where the index has a newer
    one, if a process was killed, or the disk was full, between the two writes.
    """

    def save(self, key, data):
        super().save(key, (self._source_stamp, key, data))

    def load(self, key):
        found = super().load(key)
        return found[2] if found and found[:2] == (self._source_stamp, key) else None

    def _dump(self, obj):
        data = super()._dump(obj)
        return data + hashlib.sha256(data).digest()

    def _load_index(self):
        head = pickle.dumps(self._version, protocol=-1)
        return super()._load_index() if _is_whole(self._index_path, head) else {}

    def _load_data(self, name):
        return super()._load_data(name) if _is_whole(self._data_path(name)) else None


def _is_whole(path: str, head: bytes = b"") -> bool:
    """Whether a file is ``head``, something, and the digest of that; False if there is none."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return False
    data, digest = content[len(head) : -32], content[-32:]
    return content.startswith(head) and hashlib.sha256(data).digest() == digest


def _forgive(cache) -> None:
    """Make a cache that cannot be read or written one that holds nothing."""
    load, save = cache.load_overload, cache.save_overload

    def load_overload(*args):
        try:
            return load(*args)
        except Exception:  # of another Numba, say, that can unpickle but not rebuild it
            return None

    def save_overload(*args):
        try:
            save(*args)
        except Exception:  # the disk is full; the index may name what is not there
            with contextlib.suppress(OSError):
                Path(cache._cache_file._index_path).unlink(missing_ok=True)

    cache.load_overload, cache.save_overload = load_overload, save_overload


@intrinsic
def prefetch(typingctx, array, index):
    """Ask the CPU to fetch the cache line of ``array[index]``; never faults, returns nothing."""
    if not (isinstance(array, types.Array) and array.ndim == 1):
        return None

    def codegen(context, builder, signature, args):
        view = cgutils.create_struct_proxy(array)(context, builder, args[0])
        pointer = builder.gep(view.data, [args[1]])
        void_pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        f = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [void_pointer.type, i32, i32, i32]),
            "llvm.prefetch.p0i8",
        )
        # read, kept in all cache levels, data
        builder.call(f, [void_pointer, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, index), codegen
