r"""Working sets with their Gram matrix, for least squares of several targets.

Problem     min P(x, c) for squares of K targets on dense data, with rows of x as groups (l21: the
            multitask lasso), l1 and l2
Solve       min on the set by :mod:`.target_kernels`, to SHARE of the gap; to SURE as long as that
            takes less than a look, to BEST as long as it takes next to nothing

All else is as with one target (:mod:`.gram_set`): what K targets share, the Gram matrix, is most of
the work.
"""

from __future__ import annotations

import numpy as np

from ...kernels.classes import centre_rows
from ...problem.targets import dots
from .gram_set import BEST, SHARE, SURE, GramWorkingSet
from .target_kernels import gram_rows

#: Sweeps of one pass; products with A that it costs beside them, with the look that may follow.
MOST, FREE = 10_000, 4
#: It goes on to BEST up to so many multiply-adds, which take some .05 of the .4 ms of a round at
#: least, or this part of a product with A: a few columns are solved to the last digit.
LITTLE, PART = 50_000, 100
#: A round takes as long as the products of a set, where its size is m, with more columns up to the
#: root of m^2 and so many times d for each target: more columns may come in than with one target.
ROUND = 6
#: Columns for each target whose products in float32 pay for the one more round.
FLOAT32 = 15


class TargetWorkingSet(GramWorkingSet):
    """Working sets with their Gram matrix, of several targets; see the module's docstring."""

    def _minimise(self, gram, q, square, moving, x):
        problem, penalty, K = self.problem, self.problem.penalty, self.problem.n_classes
        if penalty.grouped:
            thresholds, l1, l2 = penalty.arguments
            thresholds = thresholds[self.members] + self.level
        else:
            l1, l2, _ = penalty.arguments
            thresholds, l1 = np.zeros(x.shape[0]), l1 + self.level
        np.einsum("ii->i", gram)[~moving] = 0.0
        point = np.ascontiguousarray(x.T)
        goal = max(SHARE * min(self.estimate, 1.0), BEST)
        look = float(problem.matrix.nnz * K)
        gap, work = gram_rows(
            gram,
            np.ascontiguousarray(q.T),
            square,
            thresholds,
            l1,
            l2,
            np.array([goal, min(goal, SURE), BEST]),
            np.array([np.inf, FREE * look, max(LITTLE, look / PART)]),
            np.finfo(np.float64).eps * square,
            MOST,
            point,
        )
        return point.T, gap, work

    def _most(self, support):
        d, K = self.problem.x_shape
        return int(np.sqrt(super()._most(support) ** 2 + ROUND * d * K))

    @property
    def _rough_pays(self):
        return super()._rough_pays and self.problem.d >= FLOAT32 * self.problem.n_classes

    def _square(self):
        return self.problem._mean(dots(self.y, self.y))

    def _centre(self, residual):
        mean = np.empty(residual.shape[1])
        centre_rows(residual, self.problem.weights, self.mass, mean)
        return mean

    def _moved(self):
        return (self.point != 0.0).any(axis=1)

    def _slack(self):
        slack = super()._slack()
        return slack if slack.ndim == 1 else slack.min(axis=1)
