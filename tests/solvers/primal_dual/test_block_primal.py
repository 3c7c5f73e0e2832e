"""The block kernels make the iterates of SPDC with K classes, written down naively."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.data.matrix import as_matrix
from adacoord.problem.penalties import Penalty
from adacoord.solvers.primal_dual.block_primal import SCALED, STAMPED, BlockPrimal

PENALTIES = {
    "l2": (0.0, 0.03, False),
    "l1+l2": (0.02, 0.03, False),
    "positive": (0.005, 0.03, True),
}


class Naive:
    """Dense NumPy, one batch after the other; the intercept is a last column of value beta."""

    def __init__(self, A, b, K, W, sigma, kappa, penalty, beta):
        self.A = np.c_[A, np.full(len(A), beta)]
        self.b, self.W, self.sigma, self.kappa = b, W, sigma, kappa
        self.l1, _, self.positive = penalty
        self.n, self.K = len(A), K
        self.y = np.full((self.n, K), 1.0 / K)
        self.y[np.arange(self.n), b] -= 1.0
        self.center = self.y + 0.1
        self.x = np.zeros((self.A.shape[1], K))
        self.u = self.A.T @ (W[:, None] * self.y) / self.n
        self.xbar = self.x.copy()

    def step(self, batch, tau, theta, lam, delta=0.0):
        loss = ac.losses.Multinomial()
        direction, average = np.zeros_like(self.x), np.zeros_like(self.x)
        for i in batch:
            s, anchor = self.sigma[i], self.y[i]
            if delta:
                anchor = (anchor / s + delta * self.center[i]) / (1 / s + delta)
                s = 1 / (1 / s + delta)
            new = loss.dual_prox((self.A[i] @ self.xbar)[None], self.b[i : i + 1], anchor[None], s)[
                0
            ]
            change = self.W[i] * np.outer(self.A[i], new - self.y[i])
            direction += self.kappa[i] * change
            average += change / self.n
            self.y[i] = new
        v = self.x - tau * (self.u + direction)
        new = v.copy()
        top = v[:-1]
        if self.positive:
            top = np.maximum(top - tau * self.l1, 0.0)
        else:
            top = np.sign(top) * np.maximum(np.abs(top) - tau * self.l1, 0.0)
        new[:-1] = top / (1 + lam * tau)
        self.u += average
        self.xbar = new + theta * (new - self.x)
        self.x = new


def make(n=29, d=11, K=4, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < np.r_[0.1, 0.1, np.full(d - 2, 0.4)])
    b = np.argmax(A @ rng.standard_normal((d, K)) + 0.3 * rng.standard_normal((n, K)), axis=1)
    b[:K] = np.arange(K)
    return A, b


def run_both(
    storage,
    penalty,
    schedule,
    *,
    m=1,
    intercept=False,
    weighted=False,
    passes=4,
    delta=0.0,
    pieces=1,
    dtype=np.float64,
    start=0.0,
    settle=True,
    mode=None,
    seed=0,
):
    """``schedule``: a list of (tau, theta), taken in turn by the batches of a pass."""
    A, b = make(seed=seed)
    n, K = len(A), 4
    A = A.astype(dtype).astype(np.float64)
    rng = np.random.default_rng(1 + seed)
    W = rng.exponential(1.0, n) if weighted else np.ones(n)
    sigma, kappa = rng.uniform(0.2, 3.0, n), rng.uniform(0.5, 2.0, n) / m
    beta, lam = (1.5 if intercept else 0.0), PENALTIES[penalty][1]
    naive = Naive(A, b, K, W, sigma, kappa, PENALTIES[penalty], beta)
    x0 = start * np.abs(rng.standard_normal((A.shape[1], K)))
    naive.x[:-1], naive.xbar[:-1] = x0, x0

    matrix = as_matrix((sparse.csr_matrix(A) if storage == "csr" else A).astype(dtype))
    primal = BlockPrimal(matrix, m, K)
    primal.load(x0, naive.u[:-1])
    y, moves, center = naive.y.copy(), np.zeros(n), naive.center.copy()
    bias = np.zeros((4, K))
    bias[2], bias[3] = naive.u[-1], 1.0 / n
    change = np.zeros((m, K))
    g = Penalty(*PENALTIES[penalty])
    turn = 0
    for _ in range(passes):
        order = np.concatenate([rng.permutation(n)[: n // m * m] for _ in range(3)])
        for piece in np.array_split(order.astype(np.uint32), pieces):
            # the last batch of a piece may be smaller
            starts = np.append(np.arange(0, piece.size, m), piece.size)
            turns = (turn + np.arange(starts.size - 1)) % len(schedule)
            tau, theta = np.array(schedule)[turns].T.copy()
            turn += turns.size
            before = y.copy()
            primal.run(
                piece,
                starts,
                (b, W, sigma, kappa),
                (y, moves, center, delta, 4, 0.0, 0.0, 0.0, 0.0),
                (tau, theta),
                g,
                (beta, bias, change),
            )
            for k, first in enumerate(starts[:-1]):
                naive.step(piece[first : starts[k + 1]], tau[k], theta[k], lam, delta)
            if piece.size == 1:
                i = piece[0]
                assert moves[i] == pytest.approx(np.linalg.norm(y[i] - before[i]), rel=1e-12)
        if settle:
            primal.settle()
    if mode is not None:
        assert primal.state["scale"][5] == mode
    tol = 1e-10 if dtype == np.float64 else 2e-4
    assert np.abs(naive.x[:-1]).max() > 0.01
    for got, want in ((primal.x, naive.x[:-1]), (y, naive.y), (primal.u, naive.u[:-1])):
        np.testing.assert_allclose(got, want, rtol=0, atol=tol)
    if intercept:
        np.testing.assert_allclose(
            bias[:3], [naive.x[-1], naive.xbar[-1], naive.u[-1]], rtol=0, atol=tol
        )
    else:
        assert not bias[:2].any()
    return primal, naive


@pytest.mark.parametrize("theta", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_iterates(storage, penalty, m, theta):
    mode = None
    if storage == "csr":
        mode = SCALED if penalty == "l2" else STAMPED
    run_both(storage, penalty, [(0.3, theta)], m=m, mode=mode)
    run_both(
        storage, penalty, [(0.3, theta)], m=m, intercept=True, weighted=True, start=0.5, seed=1
    )


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_pieces_with_changing_steps(storage, penalty):
    """AdaSPDC: tau and theta change from step to step, and xbar is the previous step's."""
    schedule = [(0.3, 0.9), (0.05, 0.5), (0.4, 0.0), (0.2, 1.0)]
    for m, pieces in ((1, 87), (1, 5), (3, 6)):
        run_both(storage, penalty, schedule, m=m, pieces=pieces, intercept=True, passes=2)
        run_both(storage, penalty, schedule, m=m, pieces=pieces, passes=2, settle=False)


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_delta_and_float32(storage):
    for penalty in ("l2", "l1+l2"):
        run_both(storage, penalty, [(0.3, 0.9)], delta=0.2)
        run_both(storage, penalty, [(0.3, 0.9)], dtype=np.float32, intercept=True)


def test_penalties_too_strong_for_the_scaled_form():
    """theta lambda tau >= 1/2 takes stamps; a scaled point that meets it starts afresh."""
    run_both("csr", "l2", [(25.0, 0.9)], mode=STAMPED)
    run_both("csr", "l2", [(25.0, 0.0)], mode=SCALED)
    run_both("csr", "l2", [(0.3, 0.0), (25.0, 0.9)], mode=STAMPED)


def test_scale_that_underflows():
    run_both("csr", "l2", [(3000.0, 0.0)], passes=3)


@pytest.mark.parametrize("penalty", ["l2", "l1+l2"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_state_carries_everything(storage, penalty):
    A, b = make()
    n, K = len(A), 4
    matrix = as_matrix(sparse.csr_matrix(A) if storage == "csr" else A)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(n).astype(np.uint32) for _ in range(6)]
    y0 = ac.losses.Multinomial().start(b)
    g = Penalty(*PENALTIES[penalty])

    def advance(primal, y, orders):
        for order in orders:
            primal.run(
                order,
                np.arange(n + 1),
                (b, np.ones(n), np.ones(n), np.ones(n)),
                (y, np.zeros(n), y, 0.0, 4, 0.0, 0.0, 0.0, 0.0),
                (np.full(n, 0.3), np.full(n, 0.9)),
                g,
                (0.0, np.full((4, K), 1.0 / n), np.zeros((1, K))),
            )
            primal.settle()

    whole, y = BlockPrimal(matrix, 1, K), y0.copy()
    whole.load(np.zeros((11, K)), matrix.tdot(y) / n)
    advance(whole, y, orders[:3])
    twin, y_twin = BlockPrimal(matrix, 1, K), y.copy()
    for name, array in twin.state.items():
        array[...] = whole.state[name]
    advance(whole, y, orders[3:])
    advance(twin, y_twin, orders[3:])
    assert (whole.x == twin.x).all() and (y == y_twin).all()


def test_refresh_keeps_x_and_xbar():
    for storage in ("dense", "csr"):
        primal, naive = run_both(storage, "l2", [(0.3, 0.9)])
        x = primal.x
        primal.refresh(naive.u[:-1] + 1.0)
        np.testing.assert_allclose(primal.x, x, rtol=0, atol=1e-15)
        np.testing.assert_allclose(primal.u, naive.u[:-1] + 1.0, rtol=1e-15)
