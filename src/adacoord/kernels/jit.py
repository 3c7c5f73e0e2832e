"""How every kernel of the package is compiled: one decorator, one prefetch.

``jit`` is ``numba.njit`` with the package's settings:

* A kernel is compiled once a machine, not once a process: :mod:`.store` keeps it on disk.
* Of one that only kernels call no more is compiled than they need: :mod:`.parts`.
* ``error_model="numpy"`` removes the zero-division branch from the inner loops.
"""

from __future__ import annotations

from .pause import paused

with paused():
    import numba
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    from .parts import lend
    from .store import KernelCache

#: Reassociation lets LLVM vectorise a reduction; NaN and inf keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}


def jit(function=None, *, fastmath=False, inline=False):
    """Compile ``function`` in nopython mode, cached on disk wherever a folder can be written.

    ``inline=True`` makes it a part of every kernel that calls it: for the small functions that run
    once per row, which LLVM leaves as calls when they distinguish many cases.
    """

    def compile_(f):
        if numba.config.DISABLE_JIT:
            return f
        options = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": fastmath,
            "forceinline": inline,
            "no_cfunc_wrapper": True,  # nobody passes a kernel as a pointer
        }
        dispatcher = numba.njit(**options)(f)
        dispatcher._cache = KernelCache(f)
        dispatcher.compile = paused()(dispatcher.compile)
        lend(dispatcher, options)
        return dispatcher

    return compile_ if function is None else compile_(function)


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
