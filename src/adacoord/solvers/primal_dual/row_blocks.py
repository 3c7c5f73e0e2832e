r"""Blocks of rows, as SPDC and AdaSPDC visit them (Section 3 of Zhu and Storkey, 2015).

Problem     blocks A_k of rows (one row each, unless ``groups`` says otherwise; with losses of
            several numbers a row all of these move together anyway), N of them, m a step
Norms       R_k = |A_k|_2, the spectral norm, in place of the norm of a row.  The average over
            rows is one over N blocks whose rows weigh N/rows as much: R_k has the root of that.
Step        that of :mod:`.primal_dual`, all rows of the m blocks in one batch
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from ...data.columns import as_scipy
from ...sampling.batches import Blocks, WeightedBatches
from ...sampling.single import Uniform, Weighted
from .base import PrimalDual, check_batch_size
from .team import count_jobs


class RowBlocks(PrimalDual):
    """The blocks, their norms and the batches of a pass; a method makes its ``sampler``.

    ``radius`` holds R_k, ``n_blocks`` is N, ``blocks`` is m, ``batch_size`` the number of rows
    that a step has at most.
    """

    _state = (*PrimalDual._state, "iterations", "sampler_seed")
    sampler: Uniform | Blocks | Weighted | WeightedBatches

    def __init__(self, problem, rng, start=None, *, batch_size, n_jobs, groups, kinks):
        check_batch_size(batch_size, problem.n)
        super().__init__(problem, rng, start, kinks=kinks, jobs=count_jobs(n_jobs, batch_size))
        self.members, self.first = group_rows(problem, self.rows, groups)
        sizes = np.diff(self.first)
        self.n_blocks = max(sizes.size, 1)
        self.blocks = min(int(batch_size), self.n_blocks)
        self.radius = np.sqrt(self.n_blocks / self.n_rows) * self._block_norms(sizes)
        self.batch_size = int(np.sort(sizes)[-self.blocks :].sum()) if sizes.size else 1
        self._change = np.zeros((self.batch_size, *self._change.shape[1:]))
        self.iterations = 0
        self.sampler_seed = int(rng.integers(2**62))

    def _make_sampler(self) -> None:
        """Set ``sampler``, from ``sampler_seed`` alone."""
        raise NotImplementedError

    def _block_norms(self, sizes: np.ndarray) -> np.ndarray:
        """The spectral norm of each block of rows sqrt(W_i) (a_i, beta)."""
        norms = np.zeros(self.problem.n)
        norms[self.rows] = self.norms
        out = norms[self.members[self.first[:-1]]] if sizes.size else np.ones(1)
        if sizes.size and sizes.max() > 1:
            A = as_scipy(self.problem.matrix)
            for k in np.flatnonzero(sizes > 1):
                rows = self.members[self.first[k] : self.first[k + 1]].astype(np.int64)
                out[k] = spectral_norm(A[rows], np.sqrt(self.weight[rows]), self.beta)
        return out

    def _per_row(self, values: np.ndarray) -> np.ndarray:
        """Values of the blocks, at the places of their rows among all rows."""
        out = np.zeros(self.problem.n)
        out[self.members] = np.repeat(values, np.diff(self.first))
        return out

    def _inverse_probabilities(self) -> np.ndarray:
        """kappa_i = 1/(rows p_k) for each row of block k: W_i dy_i a_i/rows is what it adds to u,
        and p_k the probability that a step has the block."""
        return self._per_row(1.0 / (self.n_rows * self.sampler.p))

    def _draw(self) -> np.ndarray:
        """The blocks of the next pass, m a line.  Batches need not divide a pass: after k passes
        floor(k N/m) of them are done."""
        due = (self.passes + 1) * self.n_blocks // self.blocks - self.iterations
        self.iterations += due
        return self.sampler.order(due, self.rng).reshape(due, self.blocks)

    def _rows_of(self, picks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of batches of blocks, and where each batch starts."""
        if self.n_blocks == self.members.size:  # one row each
            return self.members[picks.ravel()], np.arange(0, picks.size + 1, self.blocks)
        sizes = np.diff(self.first)[picks]
        flat = sizes.ravel()
        ends = np.cumsum(flat)
        places = np.arange(ends[-1] if ends.size else 0)
        places += np.repeat(self.first[:-1][picks.ravel()] - (ends - flat), flat)
        return self.members[places], np.append(0, np.cumsum(sizes.sum(axis=1)))

    def restore(self, state):
        self.sampler_seed = state["sampler_seed"]
        if self.rows.size:
            self._make_sampler()
        super().restore(state)


def group_rows(problem, rows: np.ndarray, groups) -> tuple[np.ndarray, np.ndarray]:
    """(members, first): block k is ``members[first[k]:first[k+1]]``, rows worth visiting only."""
    if groups is None:
        return rows, np.arange(rows.size + 1)
    groups = np.asarray(groups)
    if groups.shape != (problem.n,):
        raise ValueError(
            f"groups of shape {groups.shape}: it must have one label for each of the "
            f"{problem.n} rows"
        )
    try:
        labels, label = np.unique(groups, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"groups has labels that cannot be compared ({error}): use numbers alone, or strings "
            "alone, and one for every row"
        ) from None
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError(
            f"groups has the label nan for row {int(np.flatnonzero(np.isnan(groups))[0])}: give "
            "every row a label"
        )
    order = np.argsort(label[rows], kind="stable")
    counts = np.bincount(label[rows])
    return rows[order], np.append(0, np.cumsum(counts[counts > 0]))


def spectral_norm(A, scale: np.ndarray, beta: float) -> float:
    """|diag(scale) (A, beta 1)|_2, by the smaller Gram matrix, or by Lanczos if that is large."""
    edge = np.full((A.shape[0], 1), beta)
    if sparse.issparse(A):
        B = (sparse.diags(scale) @ sparse.hstack([A, edge])).tocsr()
    else:
        B = scale[:, None] * np.hstack([A, edge])
    if min(B.shape) <= 500:
        gram = B @ B.T if B.shape[0] <= B.shape[1] else B.T @ B
        gram = gram.toarray() if sparse.issparse(gram) else gram
        return float(np.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0)))
    # 1 % more: Lanczos finds the norm from below
    return 1.01 * float(svds(B, k=1, return_singular_vectors=False, random_state=0)[0])
