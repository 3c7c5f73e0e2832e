"""What a run is given: data sets with their stand-ins, and problems with their optima.

A data set that is not at hand is replaced by one of the same kind, and said so; nothing is
downloaded.  Problems are kept for the next entry, with the optimum that all curves are drawn
against: the P of a solution whose certified relative gap is at most ``OPTIMAL`` where that can be
reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .. import datasets
from ..api.solve import run
from ..problem import Problem
from .trace import Trace, trace

#: The relative gap of the optima that curves are drawn against.
OPTIMAL = 1e-11
#: The papers' data sets: the collection's name, what stands in for it, and what that is.
SETS = {
    "rcv1": (
        "rcv1_train.binary",
        "rcv1.subset.binary",
        "24,721 documents of RCV1-v2, not the collection's sample",
    ),
    "news20": (
        "news20.binary",
        "news20.rebuilt.binary",
        "the same documents, with another tokenisation",
    ),
    "covtype": (
        "covtype.libsvm.binary.scale",
        "covtype.binary.scale",
        "the same data, scaled anew",
    ),
    "rcv1-test": (
        "rcv1_test.binary",
        "mnist",
        "mnist's even digits against its odd ones, many rows but few columns",
    ),
    "mnist-parity": ("mnist", "mnist", ""),
    "gisette": ("gisette_scale", "mnist", "mnist's 4 against 9, the digits gisette was made from"),
}


class Missing(Exception):
    """Neither a data set nor its stand-in is at hand."""


@dataclass(frozen=True)
class Data:
    """A data set as a run sees it."""

    name: str
    A: Any  # a CSR matrix, or an array
    b: np.ndarray


@dataclass
class Case:
    """A problem and its optimum."""

    data: Data
    loss: str
    l2: float
    l1: float = 0.0

    @cached_property
    def problem(self) -> Problem:
        return Problem(self.data.A, self.data.b, self.loss, l1=self.l1, l2=self.l2)

    @cached_property
    def _solution(self):
        return run(self.problem, "auto", tol=OPTIMAL, max_passes=5000, options={})

    @property
    def optimum(self) -> float:
        """P of the solution."""
        return self._solution.primal

    @property
    def dual_point(self) -> np.ndarray:
        """y of the solution."""
        return self._solution.y

    @property
    def floor(self) -> float:
        """P - P* below this is not to be trusted: the solution's own certified gap."""
        return max(self._solution.gap, 1e-14 * abs(self.optimum))


@dataclass
class Lab:
    """What an entry's run is given."""

    quick: bool = False
    normalize: str | None = None
    tell: Callable[[str], None] = lambda text: None
    remarks: list[str] = field(default_factory=list)
    _data: dict = field(default_factory=dict)
    _cases: dict = field(default_factory=dict)
    _kept: dict = field(default_factory=dict)

    def choose(self, quick, full):
        """One of two settings."""
        return quick if self.quick else full

    def once(self, key, measure: Callable[[], object]):
        """What ``measure`` found the first time it was asked for under this key: for entries that
        show the same runs."""
        if key not in self._kept:
            self._kept[key] = measure()
        return self._kept[key]

    def data(
        self, name: str, normalize: str = "none", bias: bool = False, rows: int | None = None
    ) -> Data:
        """A data set, or what stands in for it (and a remark that says so).

        ``normalize`` is what the paper did, unless the user asked for another: ``"rows"`` (each
        row of norm 1), ``"mean"`` (norms of mean 1), ``"none"``; ``bias`` adds a column of ones
        before that; ``rows`` takes so many rows at random, the same ones each time.
        """
        normalize = self.normalize or normalize
        key = name, normalize, bias, rows
        if key not in self._data:
            self._data[key] = self._load(*key)
        found, remarks = self._data[key]
        self.remarks += [text for text in remarks if text not in self.remarks]
        return found

    def _load(self, name, normalize, bias, rows):
        A, b, remarks = _open(name)
        if rows is not None and rows < A.shape[0]:
            kept = np.sort(np.random.default_rng(0).choice(A.shape[0], rows, replace=False))
            remarks.append(f"{name}: {rows:,} of its {A.shape[0]:,} rows, drawn at random.")
            A, b = A[kept], b[kept]
            if sparse.issparse(A):  # columns that are empty now have x_j = 0 whatever happens
                A = A[:, np.flatnonzero(np.bincount(A.indices, minlength=A.shape[1]))]
        if bias:
            ones = np.ones((A.shape[0], 1))
            A = (
                sparse.hstack([A, ones], format="csr")
                if sparse.issparse(A)
                else np.hstack([A, ones])
            )
        return Data(name, scaled(A, normalize), b), remarks

    def case(self, data: Data, loss: str, l2: float, l1: float = 0.0) -> Case:
        """A problem on the data; the same one as before, if there was one."""
        key = id(data), loss, l2, l1
        if key not in self._cases:
            self._cases[key] = Case(data, loss, l2, l1)
        return self._cases[key]

    def trace(
        self, case: Case, solver: str, *, passes: int, floor: float, seed: int = 0, **options
    ) -> Trace:
        """A run on a case of this lab, to P - P* <= ``floor``; the same one as before, if there
        was one: figures share their curves.
        """
        key = id(case), solver, passes, floor, seed, tuple(sorted(options.items()))
        return self.once(
            key,
            lambda: trace(
                case.problem,
                solver,
                passes=passes,
                seed=seed,
                optimum=case.optimum,
                floor=floor,
                **options,
            ),
        )


def _open(name: str):
    """(A, b, remarks) of a data set by the paper's name for it."""
    original, other, what = SETS.get(name, (name, name, ""))
    for file in dict.fromkeys((original, other)):
        try:
            A, b = datasets.load(file, download=False)
            break
        except (ValueError, OSError):
            continue
    else:
        raise Missing(
            f"{original} is not at hand"
            + (f", nor {other}" if other != original else "")
            + "; set ADACOORD_DATA to a folder that has it"
        )
    remarks = [f"{file} stands in for {name}: {what}."] if file != original else []
    if (name, file) == ("gisette", "mnist"):
        kept = (b == 4) | (b == 9)
        A, b = A[kept] / 255.0, np.where(b[kept] == 4, 1.0, -1.0)
    elif (name, file) in (("rcv1-test", "mnist"), ("mnist-parity", "mnist")):
        A, b = A / 255.0, np.where(b % 2 == 0, 1.0, -1.0)
    if A.nnz > 0.4 * A.shape[0] * A.shape[1]:
        A = A.toarray()
    return A, b, remarks


def scaled(A, how: str):
    """Rows of norm 1, rows whose norms have the mean 1, or A itself."""
    if how == "none":
        return A
    norms = np.sqrt(np.asarray((A.multiply(A) if sparse.issparse(A) else A * A).sum(axis=1)))
    norms = norms.ravel()
    factor = 1.0 / np.where(norms > 0.0, norms, 1.0) if how == "rows" else 1.0 / norms.mean()
    if sparse.issparse(A):
        return sparse.csr_matrix(sparse.diags(np.broadcast_to(factor, norms.shape)) @ A)
    return A * np.broadcast_to(factor, norms.shape)[:, None]
