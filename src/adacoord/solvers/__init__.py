"""The solvers: one file a method, each a stepper; :mod:`.registry` says what each can solve, and
:func:`expected_passes` what theory promises of it."""

from .bounds import expected_passes

__all__ = ["expected_passes"]
