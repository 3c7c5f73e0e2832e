"""Several threads in one pass: who does what, and the barrier where they meet.

A pass that a team makes is one compiled call per thread.  Each thread has a ``part`` of ``parts``:
the rows ``part, part + parts, ...`` of a batch while products are made, and a range of columns
while vectors change.  A row's product is the work of one thread and a column's changes come in the
order of the rows, whoever owns it, so the bits do not depend on the number of threads.

``team`` is (part, parts, cuts, edges, gate): entries of row i in the columns of a part are
``cuts[i parts + part]`` to ``cuts[i parts + part + 1]``, its columns ``edges[part]`` to
``edges[part + 1]``.  Alone, ``cuts`` is ``indptr`` itself, and the barrier is not entered.
"""

from __future__ import annotations

import ctypes
import os

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import jit

#: Looks at the gate before the processor is offered to others.  Waits within a batch are shorter
#: (a few microseconds) unless there are more threads than processors; then yielding is all.
SPINS = 2000
#: Where the gate keeps its counters, each in a cache line of its own; MEMBERS says how many meet.
ARRIVED, ROUND, GIVEN_UP, MEMBERS, GATE = 0, 16, 32, 48, 64

_library = ctypes.CDLL(None) if os.name != "nt" else ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
_yield = _library.sched_yield if os.name != "nt" else _library.SwitchToThread
#: By a name of our own, so that compiled code in the cache finds it in every process.
binding.add_symbol("adacoord_yield", ctypes.cast(_yield, ctypes.c_void_p).value)


@intrinsic
def _add(typingctx, array, index, value):
    """Add to an integer of ``array`` as one indivisible step; returns what it was."""

    def codegen(context, builder, signature, args):
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(view.data, [args[1]])
        return builder.atomic_rmw("add", pointer, args[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), codegen


@intrinsic
def _read(typingctx, array, index):
    """What an integer of ``array`` is now, and whatever was written before it became that."""

    def codegen(context, builder, signature, args):
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(view.data, [args[1]])
        return builder.load_atomic(pointer, "seq_cst", 8)

    return types.int64(array, types.int64), codegen


@intrinsic
def _yield_processor(typingctx):
    """Let another thread run."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.IntType(32), [])
        function = cgutils.get_or_insert_function(builder.module, kind, "adacoord_yield")
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), codegen


@jit
def meet(gate):
    """Wait for all members; True if one of them will never come, and the pass is to end."""
    here = _read(gate, ROUND)
    if _add(gate, ARRIVED, 1) + 1 == gate[MEMBERS]:
        _add(gate, ARRIVED, -gate[MEMBERS])
        _add(gate, ROUND, 1)
        return False
    spins = 0
    while _read(gate, ROUND) == here:
        spins += 1
        if spins > SPINS:
            if _read(gate, GIVEN_UP) != 0:
                return True
            _yield_processor()
    return False
