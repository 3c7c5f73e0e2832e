r"""AdaSPDC: SPDC with its own step sizes for each block (Zhu and Storkey, 2015, Algorithm 1).

Problem     blocks A_i of rows (one row each, unless ``groups`` says otherwise; K classes of a
            sample for multinomial), R_i their spectral norms, m of N blocks a step
Step        that of :mod:`.primal_dual`, with
            sigma_i = sqrt(N lambda/(m gamma))/(2 R_i)                              (10)
            tau_t   = sqrt(m gamma/(N lambda))/(2 R_t), R_t = max R_i of the step   (12)
            theta_t = 1 - 1/(N/m + R_t sqrt(N/(m lambda gamma)))                    (15)
            (In print (9) has phi for phi*, and the ridge step the wrong sign of b.)
Guard       Theorem 1 does not hold as it stands: rows of which every second one is 100 times
            shorter make it diverge.  When the gap is above 10x the best one seen, tau_t (and
            theta_t with it) is from then on no longer than the shortest there was, and the best
            point is taken up again.
Kinks       by continuation, as in SPDC
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from ...data.columns import as_scipy
from ...sampling.batches import Blocks
from ...sampling.single import Uniform
from .base import PrimalDual, check_batch_size

#: Passes between two looks at the gap, and the growth that makes a divergence.
EVERY, DIVERGED = 4, 10.0
#: A gap below this share of P(0) counts as this much: the stage of a lasso may begin with a gap of
#: 1e-17, and a solved problem's is noise; neither's growth is a divergence.
NOISE = 1e-10


class AdaSPDC(PrimalDual):
    """Adaptive stochastic primal-dual coordinate descent; see the module's docstring.

    Parameters
    ----------
    batch_size : int
        Blocks of a step.
    groups : array of shape (n,), optional
        A label for each row: rows of equal labels make one block A_i, whose dual variables move
        together.  Numbers or strings; by default each row is its own block.
    """

    name = "adaspdc"
    _state = (
        *PrimalDual._state,
        "iterations",
        "sampler_seed",
        "frozen",
        "shortest",
        "best_gap",
        "best_x",
        "best_y",
        "best_c",
    )
    best_gap: float
    best_x: np.ndarray
    best_y: np.ndarray
    best_c: np.ndarray

    def __init__(self, problem, rng, start=None, *, batch_size=1, groups=None):
        check_batch_size(batch_size, problem.n)
        super().__init__(problem, rng, start, batch_size=1)
        self.members, self.first = group_rows(problem, self.rows, groups)
        sizes = np.diff(self.first)
        self.n_blocks = max(sizes.size, 1)
        self.blocks = min(int(batch_size), self.n_blocks)
        # Over N blocks in place of rows each row weighs more or less: sqrt(N/rows) of it.
        ratio = self.n_blocks / self.n_rows
        self.radius = np.sqrt(ratio) * self._block_norms(sizes)
        # rows of a step at most
        self.batch_size = int(np.sort(sizes)[-self.blocks :].sum()) if sizes.size else 1
        self._change = np.zeros((self.batch_size, *self._change.shape[1:]))
        self.iterations = 0
        self.sampler_seed = int(rng.integers(2**62))
        self.frozen, self.shortest = False, np.inf
        self.noise = NOISE * abs(problem.null_value)
        self._forget_best()
        self._make_sampler()

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

    def _make_sampler(self) -> None:
        rng = np.random.Generator(np.random.PCG64(self.sampler_seed))
        N, m = self.n_blocks, self.blocks
        self.sampler = Uniform(N) if m == 1 else Blocks(N, m, rng)

    def _plan(self):
        N, m, lam, gamma = self.n_blocks, self.blocks, self.lam, self.gamma
        self.sigma, self.kappa = np.zeros(self.problem.n), np.zeros(self.problem.n)
        per_row = np.diff(self.first)
        scale = np.sqrt(N * lam / (m * gamma)) / 2.0
        self.sigma[self.members] = np.repeat(scale / self.radius, per_row)
        # W_i dy_i a_i/N_rows is (N/N_rows) W_i dy_i a_i over N blocks
        self.kappa[self.members] = np.repeat(1.0 / (self.n_rows * self.sampler.p), per_row)
        tau, theta = self._primal_steps(self.radius)
        return float(np.max(lam * tau * theta))

    def _primal_steps(self, radius):
        """tau_t and theta_t for the largest radius of a step."""
        ratio = self.n_blocks / self.blocks
        tau = np.sqrt(self.gamma / (ratio * self.lam)) / (2.0 * radius)
        theta = 1.0 - 1.0 / (ratio + radius * np.sqrt(ratio / (self.lam * self.gamma)))
        return tau, theta

    def _sweep(self):
        # Batches need not divide a pass: after k passes floor(k N/m) of them are done.
        due = (self.passes + 1) * self.n_blocks // self.blocks - self.iterations
        picks = self.sampler.order(due, self.rng).reshape(due, self.blocks)
        radius = self.radius[picks].max(axis=1)
        if due:
            self.shortest = min(self.shortest, 1.0 / radius.max())
        if self.frozen:
            radius = np.full_like(radius, 1.0 / self.shortest)
        order, starts = self._rows_of(picks)
        self._run(order, self.sigma, self.kappa, *self._primal_steps(radius), starts)
        self.iterations += due
        if not self.perturbed and self.passes % EVERY == 0:
            self.primal.settle()
            self._guard(sum(self._gap_parts(self.primal.x)))

    def _rows_of(self, picks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of batches of blocks, and where each batch starts."""
        sizes = np.diff(self.first)[picks]
        flat = sizes.ravel()
        ends = np.cumsum(flat)
        places = np.arange(ends[-1] if ends.size else 0)
        places += np.repeat(self.first[:-1][picks.ravel()] - (ends - flat), flat)
        return self.members[places], np.append(0, np.cumsum(sizes.sum(axis=1)))

    def _guard(self, gap: float) -> None:
        """Freeze tau when the gap blows up, and take up the best point."""
        blown_up = gap > DIVERGED * max(self.best_gap, self.noise)
        if not np.isfinite(gap) or (blown_up and not self.frozen):
            self.frozen = True
            self.y[...] = self.best_y
            self.bias[0] = self.best_c
            self._load(self.best_x)
        elif gap < self.best_gap:
            self.best_gap, self.best_x, self.best_y = gap, self.primal.x, self.y.copy()
            self.best_c = np.copy(self.bias[0])

    def _look_at_stage(self, primal_part, dual_part):
        self._guard(primal_part + dual_part)
        super()._look_at_stage(primal_part, dual_part)

    def _begin_stage(self):
        super()._begin_stage()
        self._forget_best()  # its gap was that of another perturbation

    def _forget_best(self) -> None:
        self.best_gap = np.inf
        self.best_x, self.best_y = self.center_x, self.y.copy()
        self.best_c = np.copy(self.bias[0])

    def restore(self, state):
        self.sampler_seed = state["sampler_seed"]
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
