r"""What conjugate gradients have learnt of the Hessian, for the systems that come after.

Each of their steps makes a pair (v, H v).  The next system has another right-hand side and nearly
the same H: M^-1 is corrected for the last pairs as L-BFGS corrects H_0 (Morales and Nocedal 2000),
so that few directions are gone through again.  Passes to 1e-4, with and without (users.py):
logistic, 20,000 x 2,000, 13 and 19; 10,000 x 768 with correlated columns, 11 and 22; Poisson,
20,000 x 2,000, 11 and 13.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...problem import Problem
from .kernels import less_pairs, plus_pairs

#: The most pairs that M^-1 is corrected for; they take at most this share of a pass, and these
#: bytes.
MOST, SHARE, LARGEST = 30, 0.25, 2**28


class Pairs:
    """The last pairs; those of the system that is being solved wait for the next one."""

    _state = ("v", "hv", "bends", "count", "begun")

    def __init__(self, problem: Problem, size: int):
        # 4 numbers of each coordinate are read for each pair, and A twice in a pass; with classes
        # they were no help
        share = int(0.5 * SHARE * problem.matrix.nnz / problem.d)
        self.most = 0 if problem.loss.blocks else min(MOST, share, LARGEST // (32 * size))
        self.v, self.hv = np.zeros((2 * self.most, size)), np.zeros((2 * self.most, size))
        self.bends = np.zeros(2 * self.most)
        self.count = 0  # pairs noted so far
        self.begun = 0  # ... when the present system was begun

    def state(self) -> dict:
        return {f"pairs_{name}": np.array(getattr(self, name)) for name in self._state}

    def restore(self, state: dict) -> None:
        for name in self._state:
            value = state[f"pairs_{name}"]
            setattr(self, name, value.copy() if value.ndim else int(value))

    def begin(self) -> None:
        """Another system: all pairs noted so far are of use."""
        self.begun = self.count

    def note(self, v: np.ndarray, hv: np.ndarray, bend: float) -> None:
        """bend = v.Hv.  The first of a system, which are those of its largest eigenvalues."""
        if bend > 0.0 and self.count - self.begun < self.most:
            place = self.count % (2 * self.most)
            self.v[place], self.hv[place], self.bends[place] = v.ravel(), hv.ravel(), bend
            self.count += 1

    def solve(self, r: np.ndarray, inner: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """M^-1 r, where ``inner`` is M^-1 without the pairs."""
        first = max(0, self.begun - self.most)
        if first == self.begun:
            return inner(r)
        pairs = self.v, self.hv, self.bends, first, self.begun
        q, shares = r.flatten(), np.empty(self.begun - first)
        less_pairs(*pairs, q, shares)
        out = inner(q.reshape(r.shape)).ravel()
        plus_pairs(*pairs, out, shares)
        return out.reshape(r.shape)
