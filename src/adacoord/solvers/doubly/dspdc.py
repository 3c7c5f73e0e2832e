r"""DSPDC: one dual and one primal coordinate a step (AIS, Algorithm 2; Yu, Lin and Yang 2015).

Problem     min_x max_y (1/N) sum_i W_i (y_i a_i.x - phi_i*(y_i)) + g(x), for smooth losses
            (gamma > 0) and l2 > 0
Step        row i with probability p_i, column j with q_j (of D columns):
              y_i+ = dprox(a_i.xbar, b_i, y_i, s_i),    ybar = y + (dy/p_i) e_i
              x_j+ = argmin_v (1/N) sum_k W_k a_kj ybar_k v + g_j(v) + (v - x_j)^2/(2 t_j)
              xbar = x+ + (theta/q_j) dx e_j,           starting from xbar = x
            The printed x-step has the signs of its gradient and of g reversed, and n for 1/p_i.
Steps       Lam = max_ij W_i a_ij^2, and with a multiplier m
              tau = (m/2) sqrt(gamma/(N lambda Lam)),  sigma = (m/2D) sqrt(N lambda/(gamma Lam))
            theory     s_i = sigma/(N p_i), t_j = tau/(D q_j), m = 1 (1 - max delta of it where
                       the sampling is not uniform, as in Theorem 1), theta = 1 - 1/(max(N, D)
                       + (2D/m) sqrt(N Lam/(lambda gamma)))
            practical  s_i = sigma sqrt(Lam)/max_j |a_ij|, t_j = tau sqrt(Lam)/max_i |a_ij| (of
                       the rows sqrt(W_i) a_i), m = 1.6, theta = 1
            a number   that m, practical steps, xbar = x+ + dx e_j (see below)
            printed    s_i = sigma/(N p_i), t_j = tau/(D q_j), xbar = x+ + dx e_j, and m is
                       ``multiplier``: Algorithm 2 with the fixed steps that the paper tunes
            constant   s_i = sigma and t_j = tau for any p and q (eq. 10), else as printed
Sampling    :mod:`adacoord.sampling.tree`: p_i = (1-delta)/N + delta w_i/sum w, q_j alike, with
            w = |a_i|, |A^j| (lipschitz) or |pi_i|^kappa, |psi_j|^kappa (adaptive), pi_i = dy/s_i
            and psi_j = dx/t_j of the coordinate's last step (printed with a stray 1/2)
Cost        z = A x and u = A'Wy/N are carried along, so that both products are look-ups: xbar and
            ybar differ from x and y in one coordinate, so their products need one entry of A
            each, found by bisection in its column.  (A second vector A xbar would be exact too,
            but walks the column twice.)  A step touches nnz(row i) + nnz(column j) entries.
Pass        as many entries as A has
Intercept   one more column, of value max |a_ij|, and no penalty
Stops       never: the monitor does.

Why these practical steps.  The coupling of one step needs s_i t_j W_i a_ij^2 <= N p_i q_j, which
for uniform draws is m <= 2.  With xbar = x+ + dx, m = 4 to 8 takes half the passes or less on
many data sets (a2a, smooth_hinge, l2 = 1e-2: 1879 for m = 4 and 1404 for m = 6 against 4292,
adaptive 1338 and 1001 against 2770), but diverges on others: entries that are all positive with
l2 = 1e-5, or few columns (m > 2 sqrt(D)).  Steps that grow with the adaptive p_i (1062 on a2a,
m = 4) diverge there as well, and so do those by 1/p_i.  With theta/q_j, m = 1.6 and steps that
do not depend on p none of 53 problems did under any sampling, those among them.
"""

from __future__ import annotations

from numbers import Real
from typing import ClassVar

import numpy as np
from scipy import sparse

from ...data.columns import as_scipy
from ...data.matrix import Matrix, as_matrix
from ...kernels.jit import jit
from ...kernels.loss import dual_prox
from ...kernels.prox import prox
from ...kernels.rows import row_add
from ...problem import Problem
from ...sampling.random import uniform
from ...sampling.schedule import check_mixture, share
from ...sampling.tree import mixture_draw, tree_build, tree_update
from ..base import Solver

#: Passes between two computations of z and u from x and y themselves.
RESYNC = 32
#: m of the practical steps; convergence needs < 2.
PRACTICAL = 1.6


class DoublyStochastic(Solver):
    """What DSPDC and SPD1-VR share: the data worth visiting, by rows and by columns.

    Rows that are not active and columns without an entry in an active row are left out (x_j = 0
    is optimal there), an intercept is a last column of value ``beta``; without any of these the
    data are used as they are.  ``part`` is x on those columns.

    Parameters
    ----------
    sampling : {"uniform", "lipschitz", "adaptive"}
    steps : {"practical", "theory"} or float
    delta : (float, float)
        The share of the weights in the probabilities, at first and from ``delta_passes`` on;
        it grows linearly, once a pass.
    kappa : float
        The power of the gradient maps in the adaptive weights.
    delta_passes : int
    """

    needs = frozenset({"smooth", "strongly_convex"})
    rules: ClassVar[tuple[str, ...]] = ("practical", "theory")

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator,
        start=None,
        *,
        sampling="uniform",
        steps="practical",
        delta=(0.2, 0.8),
        kappa=0.5,
        delta_passes=100,
    ):
        _check_options(self.name, self.rules, sampling, steps, delta, kappa, delta_passes)
        _check_problem(self.name, problem)
        super().__init__(problem, rng, start)
        self.sampling, self.rule, self.kappa = sampling, steps, float(kappa)
        self.delta_range = float(delta[0]), float(delta[1])
        self.delta_passes = delta_passes
        self.random = rng.integers(2**63, size=1, dtype=np.uint64)
        self.kept, self.beta, self.part = np.zeros(0, np.int64), 0.0, np.zeros(0)
        if not self.rows.size:
            return
        self.matrix, self.kept, self.beta = _visited(problem, self.rows)
        self.columns = self.matrix.columns
        x, c = self._start
        self.part = x[self.kept].astype(np.float64)
        if self.beta:
            self.part = np.append(self.part, c / self.beta)
        self.free = self.kept.size if self.beta else -1
        self.b = problem.b[self.rows]
        self.row_weight = self.weight[self.rows]
        root = np.sqrt(self.row_weight)
        m, c = self.matrix, self.columns
        self.row_max, self.row_norm = _sizes(m.indptr, m.data, np.repeat(root, m.row_sizes))
        self.column_max, self.column_norm = _sizes(
            c.colptr, c.data, np.tile(root, m.shape[1]) if m.is_dense else root[c.rows]
        )

    @property
    def x(self):
        out = np.zeros(self.problem.d)
        out[self.kept] = self.part[: self.kept.size]
        return out

    @property
    def intercept(self):
        return self.beta * float(self.part[-1]) if self.beta else 0.0

    @property
    def delta(self) -> float:
        """The share of the weights in the probabilities of this pass."""
        if self.sampling == "uniform":
            return 0.0
        return share(self.delta_range, self.passes, self.delta_passes)


class DSPDC(DoublyStochastic):
    """Doubly stochastic primal-dual coordinates; see the module's docstring.

    Parameters
    ----------
    steps : {"practical", "theory", "printed", "constant"} or float
    multiplier : float
        m of the ``"printed"`` and the ``"constant"`` steps; 4 to 8 is often best.
    sampling, delta, kappa, delta_passes
        As in :class:`DoublyStochastic`.
    """

    name = "dspdc"
    check_cost = 2.5
    rules = ("practical", "theory", "printed", "constant")
    _state = ("part", "z", "u", "last", "random", "row_tree", "column_tree")

    def __init__(self, problem, rng, start=None, *, multiplier=1.0, **options):
        steps = options.get("steps", "practical")
        if not _positive(multiplier):
            raise ValueError(f"multiplier={multiplier!r}: it must be a positive number")
        if multiplier != 1.0 and steps not in ("printed", "constant"):
            raise ValueError(
                f"multiplier={multiplier!r} with steps={steps!r}: it is for "
                'steps="printed" or "constant"'
            )
        self.multiplier = multiplier
        super().__init__(problem, rng, start, **options)
        self.z = self.u = self.row_tree = self.column_tree = np.zeros(0)
        self.last = np.zeros(2)  # the column of the last step, and how far xbar is ahead there
        if not self.rows.size:
            return
        self._set_steps()
        if self.sampling == "lipschitz":
            self.row_tree, self.column_tree = map(tree_build, (self.row_norm, self.column_norm))
        else:  # pi = psi = 1 at first, as printed
            N, D = self.matrix.shape
            self.row_tree, self.column_tree = tree_build(np.ones(N)), tree_build(np.ones(D))
        self._synchronise()

    def _set_steps(self) -> None:
        N, D = self.matrix.shape
        lam, gamma = self.problem.penalty.strong_convexity, self.problem.loss.gamma
        largest = float(self.row_max.max())  # sqrt(Lam)
        m = {
            "practical": PRACTICAL,
            "theory": 1.0,
            "printed": self.multiplier,
            "constant": self.multiplier,
        }.get(self.rule, self.rule)
        if self.rule == "theory" and self.sampling != "uniform":
            m *= 1.0 - max(self.delta_range)
        tau = 0.5 * m * np.sqrt(gamma / (N * lam)) / largest
        sigma = 0.5 * m / D * np.sqrt(N * lam / gamma) / largest
        self.tau, self.sigma, self.theta = np.full(D, tau), np.full(N, sigma), 1.0
        self.over_q = self.rule in ("practical", "theory")
        if self.rule == "theory":
            self.theta -= 1.0 / (max(N, D) + 2.0 * D / m * largest * np.sqrt(N / (lam * gamma)))
        elif self.rule not in ("printed", "constant"):
            self.tau *= largest / self.column_max
            self.sigma *= largest / self.row_max

    def _synchronise(self) -> None:
        self.z = self.matrix.dot(self.part)
        self.u = self.matrix.tdot(self.row_weight * self.y[self.rows]) / self.n_rows

    def _due(self) -> tuple[int, int]:
        """What ends a pass: entries touched, and steps.

        It ends within a step of its last entry: what it is over, the next has less.
        """
        return (self.passes + 1) * self.matrix.nnz - self.operations, np.iinfo(np.int64).max

    def _pass(self):
        problem = self.problem
        if self.passes and self.passes % RESYNC == 0:
            self._synchronise()
        y = self.y[self.rows]
        self.operations += dspdc_steps(
            *self.matrix.arrays,
            *self.columns.arrays,
            *self._due(),
            self.b,
            self.row_weight,
            self.sigma,
            self.tau,
            self.theta,
            self.rule in ("theory", "printed"),
            self.over_q,
            y,
            self.part,
            self.z,
            self.u,
            self.last,
            self.random,
            self.row_tree,
            self.column_tree,
            self.delta,
            self.kappa,
            self.sampling == "adaptive",
            problem.loss.code,
            *problem.loss.constants,
            *problem.penalty.arguments,
            self.free,
        )
        self.y[self.rows] = y


def _visited(problem: Problem, rows: np.ndarray) -> tuple[Matrix, np.ndarray, float]:
    """(data, kept columns, beta): the rows and columns worth visiting, the intercept's last."""
    matrix = problem.matrix
    A = as_scipy(matrix)
    if not (matrix.is_dense or A.has_sorted_indices):
        A = A.sorted_indices()  # a copy: abs() would sort the caller's read-only arrays
    if rows.size < problem.n:
        A = A[rows.astype(np.int64)]
    largest = abs(A).max(axis=0)
    largest = largest if matrix.is_dense else largest.toarray().ravel()
    kept = np.flatnonzero(largest)
    if kept.size < problem.d:
        A = A[:, kept]
    beta = 0.0
    if problem.intercept:
        # The largest value that does not shorten the steps, which go by the largest entry.
        beta = float(largest.max()) or 1.0
        bias = np.full((rows.size, 1), beta, dtype=matrix.dtype)
        A = (
            np.hstack([A, bias])
            if matrix.is_dense
            else sparse.hstack([A, sparse.csr_matrix(bias)], format="csr")
        )
    whole = rows.size == problem.n and kept.size == problem.d and not beta
    return (matrix if whole else as_matrix(A)), kept, beta


def _sizes(starts: np.ndarray, data: np.ndarray, root: np.ndarray):
    """(largest entry, norm) of each row or column, its entries times ``root``."""
    values = np.abs(data) * root
    starts = starts[:-1].astype(np.int64)
    return (
        np.maximum.reduceat(values, starts),
        np.sqrt(np.add.reduceat(np.square(values), starts)),
    )


def _check_problem(name, problem):
    if problem.loss.blocks:
        raise ValueError(
            f'loss="{problem.loss.name}": solver="{name}" takes losses of one number a row; use '
            'solver="auto"'
        )
    if problem.loss.gamma == 0.0:
        raise ValueError(
            f'loss="{problem.loss.name}": solver="{name}" needs a smooth loss; use a smooth one '
            'such as "smooth_hinge", or solver="spdc"'
        )
    if problem.penalty.strong_convexity == 0.0:
        raise ValueError(
            f'l2=0.0: solver="{name}" needs a strongly convex penalty; use l2 > 0, or '
            'solver="spdc" for l1 alone'
        )


def _positive(value) -> bool:
    number = isinstance(value, Real) and not isinstance(value, bool)
    return bool(number and 0.0 < value < np.inf)


def _check_options(name, rules, sampling, steps, delta, kappa, delta_passes):
    if sampling not in ("uniform", "lipschitz", "adaptive"):
        raise ValueError(
            f'sampling={sampling!r}: {name} takes "uniform", "lipschitz" or "adaptive"'
        )
    if not _positive(steps) and steps not in rules:
        names = ", ".join(f'"{rule}"' for rule in rules)
        raise ValueError(f"steps={steps!r}: {name} takes {names} or a positive number")
    check_mixture(delta, kappa, delta_passes)
    if sampling != "adaptive" and kappa != 0.5:
        raise ValueError(
            f"kappa={kappa!r} with sampling={sampling!r}: it is for "
            'sampling="adaptive"; leave it out'
        )
    if sampling == "uniform" and (*delta, delta_passes) != (0.2, 0.8, 100):
        raise ValueError(
            f'delta={delta!r}, delta_passes={delta_passes!r} with sampling="uniform": they are '
            'for sampling="lipschitz" or "adaptive"; leave them out'
        )


@jit
def _entry(data, colptr, rows, values, d, i, j):
    """a_ij: a look-up in dense data, a bisection of column j in sparse data."""
    if rows is None:
        return np.float64(data[i * d + j])
    low, high = colptr[j], colptr[j + np.uint64(1)]
    end = high
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if rows[middle] < i:
            low = middle + np.uint64(1)
        else:
            high = middle
    if low < end and rows[low] == i:
        return np.float64(values[low])
    return 0.0


@jit
def dspdc_steps(
    indptr,
    indices,
    data,
    colptr,
    rows,
    values,
    due,
    steps,
    b,
    weight,
    sigma,
    tau,
    theta,
    over_p,
    over_q,
    y,
    x,
    z,
    u,
    last,
    state,
    row_tree,
    column_tree,
    delta,
    kappa,
    adaptive,
    code,
    alpha,
    epsilon,
    lo,
    hi,
    l1,
    l2,
    positive,
    free,
):
    """At most ``steps``, until ``due`` entries are touched; returns how many were.

    ``over_p``: s_i = sigma_i/(N p_i) and t_j = tau_j/(D q_j), else sigma_i and tau_j.
    """
    one, width = np.uint64(1), np.uint64(x.shape[0])
    n, d = y.shape[0], x.shape[0]
    spent = done = 0
    while spent < due and done < steps:
        done += 1
        row, np_i = mixture_draw(row_tree, n, delta, uniform(state))
        column, dq_j = mixture_draw(column_tree, d, delta, uniform(state))
        i, j = np.uint64(row), np.uint64(column)
        s, t = sigma[i], tau[j]
        if over_p:
            s, t = s / np_i, t / dq_j

        product = z[i]  # a_i . xbar
        if last[1] != 0.0:
            product += last[1] * _entry(data, colptr, rows, values, width, i, np.uint64(last[0]))
        new = dual_prox(code, alpha, epsilon, lo, hi, product, b[i], y[i], s)
        dy = new - y[i]
        y[i] = new

        gradient = u[j]  # A^j . W ybar / N
        if dy != 0.0:
            change = weight[i] * dy
            gradient += change / np_i * _entry(data, colptr, rows, values, width, i, j)
            row_add(indices, data, indptr[i], indptr[i + one], change / n, u)
        new = x[j] - t * gradient
        if column != free:
            new = prox(new, t, l1, l2, positive)
        dx = new - x[j]
        x[j] = new
        if dx != 0.0:
            row_add(rows, values, colptr[j], colptr[j + one], dx, z)
        last[0] = column
        last[1] = theta * dx * (d / dq_j if over_q else 1.0)

        if adaptive:
            tree_update(row_tree, row, (abs(dy) / s) ** kappa)
            tree_update(column_tree, column, (abs(dx) / t) ** kappa)
        spent += np.int64(indptr[i + one] - indptr[i]) + np.int64(colptr[j + one] - colptr[j])
    return spent
