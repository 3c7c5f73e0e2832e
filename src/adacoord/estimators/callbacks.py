"""scikit-learn's callback protocol (1.9 and later), where it is installed.

A fit is one task.  With one problem its subtasks are the gap checks; with several (one-vs-rest,
many targets) each problem is one.  A callback that asks to stop stops the fit.
"""

from __future__ import annotations

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]  # where scikit-learn has none
        """Nothing to support."""


class Reporter:
    """Tells the estimator's callbacks how a fit goes."""

    def __init__(self, estimator, posed):
        self.estimator, self.posed = estimator, posed
        rows = posed.rows
        metadata = None if rows.weights is None else {"sample_weight": rows.weights}
        self.data = {"X": rows.X, "y": rows.y, "metadata": metadata}
        self.single = len(posed.problems) == 1

    def __enter__(self):
        self.context = self.estimator._init_callback_context(
            max_subtasks=None if self.single else len(self.posed.problems)
        )
        self.context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return self

    @property
    def progress(self):
        """What ``solve`` calls at each gap check, or None."""
        return self._check if self.single else None

    def _check(self, progress):
        return self._subtask("gap check", [progress])

    def solved(self, results) -> None:
        """One more problem is done."""
        self.results = results
        if not self.single:
            self._subtask("problem", results)

    def _subtask(self, name, points):
        context = self.context.subcontext(task_name=name)
        context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return context.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=self.posed.shaped(points),
            **self.data,
        )

    def __exit__(self, *error):
        from sklearn.callback._callback_support import callback_management_context

        with callback_management_context(self.estimator):
            if error[0] is None:
                self.context.call_on_fit_task_end(
                    estimator=self.estimator,
                    reconstruction_attributes=self.posed.shaped(self.results),
                    **self.data,
                )
