"""How every kernel of the package is compiled: one decorator, one prefetch.

``jit`` is ``numba.njit`` with the package's settings:

* ``cache=True``: a kernel is compiled once a machine, not once a process.  Numba keeps the
  cache beside the source, or in the user's cache folder where that cannot be written; where
  neither can, the kernel is compiled anew in each process instead of failing at import.  A full
  disk or a damaged cache file costs a compilation, never a fit.
* The cache is keyed on *all* the files that hold shared scalar kernels.  Numba looks only at
  the file of the outermost function, so an edited loss would otherwise be ignored by the
  solvers that inline it.
* ``error_model="numpy"`` removes the zero-division branch from the inner loops.
"""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
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
        options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath,
                   "forceinline": inline}
        try:
            dispatcher = numba.njit(cache=True, **options)(f)
        except RuntimeError:  # numba: "cannot cache function ...: no locator available"
            return numba.njit(**options)(f)
        index = dispatcher._cache._cache_file
        index._source_stamp = (index._source_stamp, _STAMP)
        _forgive(dispatcher._cache)
        return dispatcher

    return compile_ if function is None else compile_(function)


def _forgive(cache) -> None:
    """Make a cache that cannot be read or written one that holds nothing."""
    load, save = cache.load_overload, cache.save_overload

    def load_overload(*args):
        try:
            return load(*args)
        except Exception:  # a damaged pickle raises whatever it likes
            return None

    def save_overload(*args):
        try:
            save(*args)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            # the disk is full, or the index to be extended is damaged: start a new one next time
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
