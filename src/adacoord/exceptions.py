"""Warnings of the package."""


class ConvergenceWarning(UserWarning):
    """A fit stopped before the gap it was asked for."""
