r"""Losses with kinks and no l2: the linear program that they make, by HiGHS.

With :math:`\phi_i(z) = h_i (z - b_i - \varepsilon)_+ - l_i (b_i - \varepsilon - z)_+` on the domain
:math:`[l_i, h_i]` of its conjugate,

.. math::

    \min\; \tfrac1n \sum_i w_i (h_i s_i - l_i t_i) + l_1 \sum_j (x^+_j + x^-_j) \quad\text{with} \\
    A (x^+ - x^-) + c - s + t - r = b, \quad |r_i| \le \varepsilon,\; s, t, x^\pm \ge 0,

whose multipliers are :math:`-w_i y_i/n`: a primal and a dual point, which the monitor judges.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse

from ...data.columns import as_scipy
from ...problem import Problem


def solve_program(problem: Problem) -> tuple[np.ndarray, float, np.ndarray] | None:
    """(x, c, y) at a vertex; None where HiGHS finds none."""
    rows, penalty = problem.active, problem.penalty
    n, d = rows.size, problem.d
    A = as_scipy(problem.matrix)[rows]
    A = sparse.csr_array(A) if sparse.issparse(A) else A.astype(np.float64)
    b = problem.b[rows]
    w = np.ones(n) if problem.weights is None else problem.weights[rows]
    low, high = (end[rows] for end in problem._domain)
    epsilon = problem.loss.constants[1]
    # in units of the columns and of the targets: HiGHS has absolute tolerances
    scale = np.sqrt(problem.matrix.column_moments[1] / problem.n)
    scale = np.where(scale > 0.0, scale, 1.0)
    unit = float(np.abs(b).max()) or 1.0
    mass = float(w.max())
    identity = sparse.eye_array(n, format="csr")
    scaled = sparse.csr_array(A) @ sparse.diags_array(1.0 / scale)
    blocks, costs = [scaled], [penalty.l1 * problem.n / (scale * mass)]
    bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * d
    if not penalty.positive:
        blocks.append(-scaled)
        costs.append(costs[0])
        bounds += [(0.0, None)] * d
    if problem.intercept:
        blocks.append(sparse.csr_array(np.ones((n, 1))))
        costs.append(np.zeros(1))
        bounds.append((None, None))
    for sign, cost in ((-1.0, high), (1.0, -low)):
        blocks.append(sign * identity)
        costs.append(w * cost / mass)
        bounds += [(0.0, None)] * n
    if epsilon > 0.0:
        blocks.append(-identity)
        costs.append(np.zeros(n))
        bounds += [(-epsilon / unit, epsilon / unit)] * n
    found = optimize.linprog(
        np.concatenate(costs),
        A_eq=sparse.hstack(blocks, format="csr"),
        b_eq=b / unit,
        bounds=bounds,
        method="highs",
    )
    if found.status != 0:
        return None
    x = found.x[:d] if penalty.positive else found.x[:d] - found.x[d : 2 * d]
    c = unit * float(found.x[d if penalty.positive else 2 * d]) if problem.intercept else 0.0
    y = problem.loss.derivative(np.zeros(problem.n), problem.b)  # of rows that are left out
    y[rows] = -found.eqlin.marginals * mass / w
    return unit * x / scale, c, y
