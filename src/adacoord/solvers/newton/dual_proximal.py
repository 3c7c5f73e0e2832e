r"""The proximal point of the dual by semismooth Newton steps: for kinks, or where ascent crawls.

Problem     max_y D(y) - sum_i W_i/N (y_i - y_i^k)^2/(2 sigma), the proximal point of the dual at
            y^k, which is min_{x,c} Psi(x, c) = l2/2 |x|^2 + sum_i W_i/N phi_i^sigma(a_i.x + c),
            (phi_i^sigma)' = dprox(., b_i, y_i^k, sigma): smooth, and piecewise quadratic where phi
            has kinks (Rockafellar's augmented Lagrangian, by a semismooth Newton method)
Step        H d = -grad Psi,  H = l2 I + A' diag(W h/N) A,  h = dprox' there, by Cholesky: d x d,
            or as many rows as have a curvature, where these are fewer; then a point of the line on
            which the slope of Psi has fallen enough
Stages      when the gap of the subproblem, |grad Psi|^2/(2 l2), is below its proximal term,
            y^{k+1} = dprox(z) and sigma doubles.  Smooth losses start at a sigma that makes it
            plain Newton.
Cost        two products with A, the rows with h > 0 once against themselves, the factorisation

Hinge, C = 100, unit rows, to a relative gap of 1e-6: 64 steps on w8a and 61 on a9a, after 8 passes
of ACF, which alone takes 768 and 563 (liblinear on w8a: over 30,000); 77 on w8a for C = 1000.
From the start, on dense tables (20,000 x 100, columns scaled or in units of their own, hinge and
epsilon_insensitive, l2 = 1e-4 and 1e-6): 30 to 75 steps, where coordinates of either kind take
1,000 passes and more.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import jit
from ...kernels.loss import dual_prox, dual_prox_slope
from ...linalg.blas import one_thread
from ...linalg.cholesky import Cholesky
from ...linalg.gram import weighted_gram, weighted_moments
from .size import SIDE

#: sigma over the mean step of coordinate ascent in the first stage; over 1/gamma for smooth losses;
#: with kinks over 1/mean |z - b| where that is more, as on long rows: a smaller one leaves
#: curvature to all rows and takes y nowhere (.43 s for .58 on the mean of 11 hinge and
#: epsilon_insensitive problems, 6,000 x 350; a9a and w8a as before).
FIRST, FIRST_SMOOTH, FIRST_KINKS, GROWTH = 10.0, 1e4, 0.3, 2.0
#: The largest sigma over the first: y = y^k + sigma (z - b) magnifies what z has rounded away.
LARGEST = 1e8
#: The slope along the line, in units of the first one, between which a step is taken.
SHORT, OVER = -0.5, 0.1
#: A step may cost so many passes of coordinate ascent, and the matrix H so many columns.
WORTH, COLUMNS = 15.0, 3000
#: Multiplications of LAPACK, and of BLAS on dense rows, in the time of one entry of A (9 to 14 and
#: 13 to 27 a nanosecond, 3,000 x 700 to 20,000 x 200; an entry takes dual ascent .85 of one).
LAPACK, BLAS = 8.0, 16.0
#: Of the dense rows that have curvature at first, the share that has it on the mean of a run,
#: beyond d of them (epsilon_insensitive and hinge, 4,000 x 900 to 30,000 x 150: .07 to .13).
LATER = 0.15
#: Steps between two computations of z.
RESYNC = 32
#: Of its names in the state of a solver.
PREFIX = "proximal_"


def affordable(problem, rows: np.ndarray) -> bool:
    """Whether Newton steps, at first with the curvature of ``rows``, are cheap beside products."""
    share = 1.0
    if problem.matrix.is_dense and not problem.loss.gamma:
        share = LATER + (1.0 - LATER) * min(1.0, problem.d / max(rows.size, 1))
    return _affordable(problem, rows, share)


def within_reach(problem) -> bool:
    """Whether they may become cheap: at an optimum with kinks at most d rows have curvature."""
    rows = problem.active
    share = 1.0 if problem.loss.gamma else min(1.0, problem.d / max(rows.size, 1))
    return _affordable(problem, rows, share)


def _affordable(problem, rows: np.ndarray, share: float) -> bool:
    d = problem.d
    if d > COLUMNS or not problem.penalty.quadratic:
        return False
    work = share * gram_work(problem, rows) + d**3 / (6.0 * LAPACK)
    return work <= 2.0 * WORTH * problem.matrix.nnz


def gram_work(problem, rows: np.ndarray) -> float:
    """Work of the rows against themselves, in entries of A.

    BLAS makes it cheap for dense rows.  Without kinks all of them keep their curvature, and what is
    cheap then is Newton's method from the start: they count as others do (logistic, 13,645 x 622:
    1.1 s where APDC takes .4).
    """
    sizes = problem.matrix.row_sizes[rows].astype(np.float64)
    pairs = float(np.sum(sizes * sizes))
    return pairs / (2.0 * BLAS) if problem.matrix.is_dense and not problem.loss.gamma else pairs


def first_sigma(loss, step: float) -> float:
    """The least sigma of the first stage; ``step`` is the mean step of coordinate ascent."""
    return max(FIRST * step, FIRST_SMOOTH / loss.gamma if loss.gamma else 0.0)


def sigma_with_kinks(z: np.ndarray, b: np.ndarray) -> float:
    """sigma at which z - b takes y a good part of the way between its ends, which are 1 apart."""
    apart = float(np.mean(np.abs(z - b))) if z.size else 0.0
    return FIRST_KINKS / apart if apart > 0.0 else 0.0


def split_state(state: dict) -> tuple[dict, dict]:
    """What belongs to a :class:`ProximalPoint`, and what to the solver that has it."""
    own = {name: value for name, value in state.items() if name.startswith(PREFIX)}
    return own, {name: value for name, value in state.items() if name not in own}


class ProximalPoint:
    """The stages, one Newton step at a time; see the module's docstring.

    ``weight`` are w/n, ``sigma`` that of the first stage.  After :meth:`begin` and after each
    :meth:`step` ``x``, ``c`` and ``y`` are those of the point, ``u`` the average of ``y``.
    """

    _state = ("center", "sigma", "first", "fresh", "x", "c", "z", "steps")

    def __init__(self, problem, weight: np.ndarray, sigma: float):
        self.problem, self.weight, self.first, self.sigma = problem, weight, sigma, sigma
        self.law = problem.loss.code, *problem.loss.constants
        self.fresh, self.steps = True, 0  # whether the stage has just begun; steps in all

    def state(self) -> dict:
        """What a run goes on from, for :meth:`restore`."""
        return {PREFIX + name: np.copy(getattr(self, name)) for name in self._state}

    def restore(self, state: dict) -> None:
        for name in self._state:
            value = state[PREFIX + name]
            setattr(self, name, value.copy() if value.ndim else value.item())
        self.respond()

    def begin(self, x: np.ndarray, c: float, y: np.ndarray) -> None:
        """From a point."""
        self.x, self.c, self.center = x.copy(), c, y.copy()
        self.z = self.problem.predictions(self.x, self.c)
        self.respond()

    def respond(self) -> None:
        """y at z, its derivative, and the gradient of Psi."""
        problem = self.problem
        self.y, self.h = np.empty(problem.n), np.empty(problem.n)
        respond(*self.law, self.z, problem.b, self.center, self.sigma, self.y, self.h)
        self.h *= self.weight
        weighted = self.weight * self.y
        self.u, self.imbalance = problem.matrix.tdot(weighted), float(np.sum(weighted))
        self.gradient = problem.penalty.l2 * self.x + self.u
        self.held = float(np.sum(self.h))

    def step(self) -> int:
        """One Newton step, in the next stage where this one is solved; the entries touched."""
        problem, l2 = self.problem, self.problem.penalty.l2
        touched = 2 * problem.matrix.nnz
        if not self.fresh and self._solved():
            self.center, self.sigma = self.y, min(GROWTH * self.sigma, LARGEST * self.first)
            self.respond()
            touched += problem.matrix.nnz
        curved = np.flatnonzero(self.h)
        with one_thread():
            dx, dc = self._direction(curved)
        dz = problem.matrix.dot(dx) + dc
        linear, square = l2 * float(np.sum(self.x * dx)), l2 * float(np.sum(dx * dx))

        def slope(t):
            line = self.z, dz, t, problem.b, self.center, self.sigma, self.weight
            return linear + t * square + slope_along(*self.law, *line)

        down = -float(np.sum(self.gradient * dx)) - self.imbalance * dc * problem.intercept
        t = step_length(slope, down)
        self.x, self.c, self.fresh = self.x + t * dx, self.c + t * dc, False
        self.steps += 1
        self.z = self.z + t * dz
        if self.steps % RESYNC == 0:
            self.z = problem.predictions(self.x, self.c)
            touched += problem.matrix.nnz
        self.respond()
        return touched + int(gram_work(problem, curved))

    def _solved(self) -> bool:
        """Whether the subproblem is as good as its proximal term asks."""
        moved = float(np.sum(self.weight * np.square(self.y - self.center)))
        gap = float(np.sum(np.square(self.gradient))) / (2.0 * self.problem.penalty.l2)
        if self.problem.intercept:
            gap += self.imbalance**2 / (2.0 * self.held) if self.held else np.inf
        return gap <= moved / (2.0 * self.sigma)

    def _direction(self, curved: np.ndarray) -> tuple[np.ndarray, float]:
        """Newton's (dx, dc)."""
        problem, l2, d = self.problem, self.problem.penalty.l2, self.x.size
        if problem.matrix.is_dense and 0 < curved.size < SIDE * d:
            return self._by_rows(curved)
        H = np.zeros((d + problem.intercept, d + problem.intercept))
        if not problem.intercept:
            H[:] = weighted_gram(problem.matrix, self.h)
            H[np.arange(d), np.arange(d)] += l2
            return Cholesky(H).solve(-self.gradient), 0.0
        H[:d, :d], H[-1, :-1] = weighted_moments(problem.matrix, self.h)
        H[:-1, -1] = H[-1, :-1]
        H[np.arange(d), np.arange(d)] += l2
        # without a curved row nothing holds c, and rounding may undo what little does
        H[-1, -1] = (self.held or 1.0) * (1.0 + 1e-10)
        step = Cholesky(H).solve(-np.append(self.gradient, self.imbalance))
        return step[:d], float(step[-1])

    def _by_rows(self, curved: np.ndarray) -> tuple[np.ndarray, float]:
        """The same by Woodbury's formula: B B' + l2 I, B the curved rows, centred for c."""
        l2, h = self.problem.penalty.l2, self.h[curved]
        B = self.problem.matrix.take(curved)
        centre, g = np.zeros(self.x.size), self.gradient
        if self.problem.intercept:
            centre = (h @ B) / self.held
            B -= centre
            g = g - centre * self.imbalance
        B *= np.sqrt(h)[:, None]
        K = B @ B.T
        np.einsum("ii->i", K)[:] += l2
        dx = (B.T @ Cholesky(K).solve(B @ g) - g) / l2
        if not self.problem.intercept:
            return dx, 0.0
        return dx, -self.imbalance / self.held - float(centre @ dx)


def step_length(slope, first: float) -> float:
    """A t in (0, 1] where the increasing ``slope(t)``, -first at 0, lies in [SHORT, OVER] first.

    t = 1 is taken if the slope there is not above; the bracket is cut by regula falsi, kept away
    from its ends.
    """
    low, high, at_low, at_high, t = 0.0, 1.0, -first, first, 1.0
    for _ in range(30):
        value = slope(t)
        if value <= OVER * first and (t == 1.0 or value >= SHORT * first):
            break
        if value > 0.0:
            high, at_high = t, value
        else:
            low, at_low = t, value
        share = at_low / (at_low - at_high)
        t = low + (high - low) * min(max(share, 0.1), 0.9)
    return t


@jit
def respond(code, alpha, epsilon, lo, hi, z, b, center, sigma, y, h):
    """y = dprox(z) at the centre, and its derivative h."""
    for i in range(z.shape[0]):
        y[i] = dual_prox(code, alpha, epsilon, lo, hi, z[i], b[i], center[i], sigma)
        h[i] = dual_prox_slope(code, alpha, epsilon, lo, hi, y[i], b[i], sigma)


@jit
def slope_along(code, alpha, epsilon, lo, hi, z, dz, t, b, center, sigma, weight):
    """sum_i w_i dprox(z_i + t dz_i) dz_i."""
    total = 0.0
    for i in range(z.shape[0]):
        at = z[i] + t * dz[i]
        total += (
            weight[i] * dz[i] * dual_prox(code, alpha, epsilon, lo, hi, at, b[i], center[i], sigma)
        )
    return total
