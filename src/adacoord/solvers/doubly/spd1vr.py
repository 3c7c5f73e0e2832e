r"""SPD1-VR: steps of O(1) cost with variance reduction (AIS, Algorithm 3; Tan et al. 2018).

Problem     min_x max_y (1/N) sum_i W_i (y_i a_i.x - phi_i*(y_i)) + g(x), for smooth losses
            (gamma > 0) and l2 > 0
Epoch       (x~, y~) = (x, y);  Gx = A'W y~/N and Gy = A x~ (a pass each);  p and q anew;  then
            T steps from (x~, y~) (the print restarts from the first epoch's)
Step        draw i, i' among the rows and j, j' among the columns;
              xb = prox_j(x_j; Gx_j + a_i'j W_i' (y_i' - y~_i')/(N P(i'|j)))
              yb = dprox_i(y_i; Gy_i + a_ij' (x_j' - x~_j')/P(j'|i))
              x_j = prox_j(x_j; Gx_j + a_ij W_i (yb - y~_i)/(N P(i|j)))
              y_i = dprox_i(y_i; Gy_i + a_ij (xb - x~_j)/P(j|i))
            with steps t_j and s_i.  The importance weights 1/P are missing in print, and the sign
            inside its dual prox is wrong.
Sampling    An entry (i, j) is drawn with probability P_ij = alpha_i beta_j/Z, Z the sum over all
            stored entries.  With B_i = sum of beta_j over row i and C_j = sum of alpha_i over
            column j, P_i = alpha_i B_i/Z and P_j = beta_j C_j/Z are the chances of a row and a
            column, and

              P(i|j) = P_ij/P_j = alpha_i/C_j,      P(j|i) = P_ij/P_i = beta_j/B_i.

            i' is drawn from P(.|j) and j' from P(.|i), so that for given j

              E[a_i'j W_i' (y_i' - y~_i') C_j/(N alpha_i')] = (A'W (y - y~))_j/N:

            unbiased, and alike for j', for i given j and for j given i.  Dense data: B_i and C_j
            are constant, so that alpha = N p, beta = D q gives back independent draws by p and q.
            alpha_i = (1-delta) + delta N w_i/sum w, beta_j alike, with w = 1 (uniform: over the
            non-zeros, B and C are the counts of rows and columns), |a_i| and |A^j| (lipschitz; q
            by 1/D, the print has 1/n), or |map|^kappa of the gradient maps at (x~, y~) (adaptive)
Steps       s_i = sigma_i/(M P_i), t_j = tau_j/(M P_j) for M entries (dense: sigma/(D N p_i) and
            tau/(N D q_j)) with tau sigma = v^2 N/max W a^2, tau/sigma = gamma/lambda.
            theory     v = 0.1;  practical  v = 0.15, with row i's and column j's own largest
            entry in place of the largest of all;  a number: that v (0.1 to 0.4 in the papers)
            Steps that do not depend on P, or grow with it, take about half the passes on
            well-conditioned problems under adaptive sampling, and diverge on others: the norm in
            which an epoch contracts, sum_i y_i^2/(s_i P_i) + sum_j x_j^2/(t_j P_j), then changes
            from epoch to epoch.  At s_i P_i constant it does not (no divergence in 53 problems,
            ill-conditioned ones among them); what adaptive sampling saves is variance alone, and
            passes it saves none (a2a, smooth_hinge, l2 = 1e-2: 93, uniform and adaptive).
Draws       O(1), by alias tables: of the rows and, dense, the columns; sparse, of each row's and
            each column's entries.  ``steps="theory"`` on dense data draws uniformly from two
            lists of min(ND/log(ND), 10 (N + D)) indices instead, as printed: the same law only
            on average over the lists.
Pass        an epoch is 3 passes: Gx, Gy and T = M/3 steps, which look up 3 entries each
Intercept   one more column, of value max |a_ij|, and no penalty
Stops       never: the monitor does.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import jit
from ...kernels.loss import dual_prox
from ...kernels.prox import prox
from ...sampling.random import uniform
from ...sampling.single import alias_table
from .dspdc import DoublyStochastic

#: v of the practical steps: on a2a (l2 = 1e-2) 0.2 still converges and 0.3 does not.
PRACTICAL = 0.15
#: Passes of an epoch: two full gradients, then inner steps.  With 2 or 4 passes of steps to an
#: epoch v has to be half as large on ill-conditioned problems, which costs what it saves.
EPOCH = 3
#: Entries of A that a step looks up.
LOOKUPS = 3

_NO_TABLE = np.zeros(0), np.zeros(0, dtype=np.int64)


class SPD1VR(DoublyStochastic):
    """Variance-reduced steps of O(1) cost; see the module's docstring."""

    name = "spd1-vr"
    check_cost = 0.2
    _state = ("part", "random", "x_ref", "y_ref", "Gx", "Gy", "alpha", "beta_j", "list_seed")

    def __init__(self, problem, rng, start=None, **options):
        super().__init__(problem, rng, start, **options)
        self.x_ref, self.y_ref = self.part.copy(), self.y[self.rows]
        self.Gx, self.Gy = np.zeros_like(self.x_ref), np.zeros_like(self.y_ref)
        self.alpha, self.beta_j = np.ones_like(self.y_ref), np.ones_like(self.x_ref)
        self.list_seed = self.random.copy()
        if not self.rows.size:
            return
        if self.matrix.is_dense:
            self.columns = None  # look-ups need no second copy
        v = {"practical": PRACTICAL, "theory": 0.1}.get(self.rule, self.rule)
        ratio = np.sqrt(problem.loss.gamma / problem.penalty.strong_convexity)
        product = v * np.sqrt(self.n_rows)
        rows, columns = self.row_max, self.column_max
        if self.rule == "theory":
            rows, columns = (np.full_like(a, rows.max()) for a in (rows, columns))
        self.sigma, self.tau = product / (ratio * rows), product * ratio / columns
        self._prepare()

    def _sums(self, alpha: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(B, C): beta summed over the entries of each row, alpha over those of each column."""
        if self.matrix.is_dense:
            return np.full(alpha.size, beta.sum()), np.full(beta.size, alpha.sum())
        rows, columns = self.matrix.indptr, self.columns.colptr
        return (
            np.add.reduceat(beta[self.matrix.indices], rows[:-1].astype(np.int64)),
            np.add.reduceat(alpha[self.columns.rows], columns[:-1].astype(np.int64)),
        )

    def _steps(self, alpha, beta, B, C) -> tuple[np.ndarray, np.ndarray]:
        """(s, t)."""
        entries = self.matrix.nnz / float(np.sum(alpha * B))  # M/Z
        return self.sigma / (entries * alpha * B), self.tau / (entries * beta * C)

    def _prepare(self) -> None:
        """Steps and tables: all that follows from alpha, beta and the seed of the lists."""
        self.B, self.C = self._sums(self.alpha, self.beta_j)
        self.s, self.t = self._steps(self.alpha, self.beta_j, self.B, self.C)
        even = self.sampling == "uniform"
        if not self.matrix.is_dense:
            entries = (
                _NO_TABLE * 2
                if even
                else (
                    *entry_tables(self.matrix.indptr, self.matrix.indices, self.beta_j),
                    *entry_tables(self.columns.colptr, self.columns.rows, self.alpha),
                )
            )
            self.tables = *alias_table(self.alpha * self.B), *entries
        elif even:
            self.tables = _NO_TABLE * 3
        elif self.rule == "theory":
            rng = np.random.Generator(np.random.PCG64(int(self.list_seed[0])))
            self.tables = *self._list(self.alpha, rng), *self._list(self.beta_j, rng), *_NO_TABLE
        else:
            self.tables = *alias_table(self.alpha), *alias_table(self.beta_j), *_NO_TABLE

    def _list(self, weights: np.ndarray, rng: np.random.Generator):
        """The list as a table whose cells keep nothing."""
        N, D = self.matrix.shape
        size = int(max(min(N * D / np.log(max(N * D, 3)), 10 * (N + D)), 1))
        keep, alias = alias_table(weights)
        cell = rng.integers(weights.size, size=size)
        return np.zeros(size), np.where(rng.random(size) < keep[cell], cell, alias[cell])

    def _weights(self) -> tuple[np.ndarray, np.ndarray]:
        """w of the rows and of the columns."""
        if self.sampling == "lipschitz":
            return self.row_norm, self.column_norm
        loss, penalty = self.problem.loss, self.problem.penalty
        ones = np.ones_like(self.alpha), np.ones_like(self.beta_j)
        s, t = self._steps(*ones, *self._sums(*ones))
        dual = (loss.dual_prox(self.Gy, self.b, self.y_ref, s) - self.y_ref) / s
        primal = (penalty.prox(self.x_ref - t * self.Gx, t) - self.x_ref) / t
        if self.free >= 0:
            primal[self.free] = self.Gx[self.free]
        return np.abs(dual) ** self.kappa, np.abs(primal) ** self.kappa

    def _draw_probabilities(self) -> None:
        if self.sampling == "uniform":
            return
        self.alpha, self.beta_j = (
            # all maps can be 0 (every row beyond the hinge, or at the solution): uniform then
            (1.0 - self.delta) + self.delta * w.size * w / w.sum() if w.any() else np.ones(w.size)
            for w in self._weights()
        )
        self.list_seed = self.random.copy()
        self._prepare()

    def _pass(self):
        phase = self.passes % EPOCH
        if phase == 0:
            self.x_ref, self.y_ref = self.part.copy(), self.y[self.rows]
            self.Gx = self.matrix.tdot(self.row_weight * self.y_ref) / self.n_rows
            self.operations += self.matrix.nnz
        elif phase == 1:
            self.Gy = self.matrix.dot(self.x_ref)
            self._draw_probabilities()
            self.operations += self.matrix.nnz
        else:
            self._inner()

    def _inner(self) -> None:
        loss, matrix = self.problem.loss, self.matrix
        steps = -(-matrix.nnz // LOOKUPS)
        y = self.y[self.rows]
        columns = (matrix.indptr, None, matrix.data) if matrix.is_dense else self.columns.arrays
        spd1vr_steps(
            *matrix.arrays,
            *columns,
            *self.tables,
            steps,
            self.b,
            self.row_weight / self.n_rows,
            self.s,
            self.t,
            self.alpha,
            self.beta_j,
            self.B,
            self.C,
            y,
            self.part,
            self.y_ref,
            self.x_ref,
            self.Gy,
            self.Gx,
            self.random,
            loss.code,
            *loss.constants,
            *self.problem.penalty.arguments,
            self.free,
        )
        self.y[self.rows] = y
        self.operations += LOOKUPS * steps

    def restore(self, state):
        super().restore(state)
        if self.rows.size:
            self._prepare()


@jit
def entry_tables(starts, index, weights):
    """An alias table (of positions in the data) for the entries of each row or column."""
    one = np.uint64(1)
    keep, alias = np.empty(index.shape[0]), np.empty(index.shape[0], np.int64)
    for k in range(np.uint64(starts.shape[0] - 1)):
        start, stop = starts[k], starts[k + one]
        own = np.empty(stop - start)
        for e in range(start, stop):
            own[e - start] = weights[index[e]]
        own_keep, own_alias = alias_table(own)
        for e in range(start, stop):
            keep[e] = own_keep[e - start]
            alias[e] = own_alias[e - start] + np.int64(start)
    return keep, alias


@jit
def _pick(keep, alias, start, size, u):
    """A position in [start, start + size) by its table, uniformly if there is none."""
    place = (1.0 - u) * size
    cell = min(np.int64(place), size - 1)
    k = start + cell
    if keep.shape[0] > 0 and place - cell >= keep[k]:
        k = alias[k]
    return np.uint64(k)


@jit
def spd1vr_steps(
    indptr,
    indices,
    data,
    colptr,
    rows,
    values,
    row_keep,
    row_alias,
    keep,
    alias,
    column_keep,
    column_alias,
    steps,
    b,
    weight,
    s,
    t,
    alpha,
    beta,
    B,
    C,
    y,
    x,
    y_ref,
    x_ref,
    Gy,
    Gx,
    state,
    code,
    mu,
    epsilon,
    lo,
    hi,
    l1,
    l2,
    positive,
    free,
):
    """``steps`` steps.  Dense: ``keep, alias`` is the table of columns; sparse: of the entries of
    each row, and ``column_keep, column_alias`` of those of each column."""
    one, width = np.uint64(1), np.uint64(x.shape[0])
    n = row_keep.shape[0] if row_keep.shape[0] > 0 else y.shape[0]  # cells: a list has more
    d = keep.shape[0] if keep.shape[0] > 0 else x.shape[0]
    for _ in range(steps):
        i = _pick(row_keep, row_alias, 0, n, uniform(state))
        if indices is None:
            j = _pick(keep, alias, 0, d, uniform(state))
            i2 = _pick(row_keep, row_alias, 0, n, uniform(state))
            j2 = _pick(keep, alias, 0, d, uniform(state))
            a, a_i2, a_j2 = data[i * width + j], data[i2 * width + j], data[i * width + j2]
        else:
            first = np.int64(indptr[i])
            size = np.int64(indptr[i + one]) - first
            e = _pick(keep, alias, first, size, uniform(state))
            j, a = np.uint64(indices[e]), data[e]
            top = np.int64(colptr[j])
            height = np.int64(colptr[j + one]) - top
            e = _pick(column_keep, column_alias, top, height, uniform(state))
            i2, a_i2 = np.uint64(rows[e]), values[e]
            e = _pick(keep, alias, first, size, uniform(state))
            j2, a_j2 = np.uint64(indices[e]), data[e]
        bound, curve, sign = l1, l2, positive
        if j == free:
            bound, curve, sign = 0.0, 0.0, False

        gradient = Gx[j] + a_i2 * weight[i2] * (y[i2] - y_ref[i2]) * C[j] / alpha[i2]
        xb = prox(x[j] - t[j] * gradient, t[j], bound, curve, sign)
        product = Gy[i] + a_j2 * (x[j2] - x_ref[j2]) * B[i] / beta[j2]
        yb = dual_prox(code, mu, epsilon, lo, hi, product, b[i], y[i], s[i])

        gradient = Gx[j] + a * weight[i] * (yb - y_ref[i]) * C[j] / alpha[i]
        x[j] = prox(x[j] - t[j] * gradient, t[j], bound, curve, sign)
        product = Gy[i] + a * (xb - x_ref[j]) * B[i] / beta[j]
        y[i] = dual_prox(code, mu, epsilon, lo, hi, product, b[i], y[i], s[i])
