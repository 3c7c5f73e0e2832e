"""Warnings of the package."""


class ConvergenceWarning(UserWarning):
    """A fit stopped before the gap it was asked for."""


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, or could not be written."""
