"""The kernels of :mod:`.bounded`: sweeps over a model's coordinates, and smoothed losses."""

from __future__ import annotations

import numpy as np

from ...kernels.jit import jit
from ...kernels.loss import conjugate, dual_prox
from ...kernels.prox import shrink


@jit
def best_coordinate(v, r, q, l1, l2, low, high):
    """argmin_t r (t - v) + q/2 (t - v)^2 + l1 |t| + l2/2 t^2 within [low, high]."""
    held = q + l2
    if held > 0.0:
        return min(max(shrink(q * v - r, -l1, l1) / held, low), high)
    if abs(r) <= l1:
        return min(max(0.0, low), high) if l1 > 0.0 else v
    end = high if r < 0.0 else low
    return end if abs(end) < np.inf else v  # nothing holds it: left to the next model


@jit
def sweep_model(H, r, v, l1, l2, low, high, sweeps):
    """Coordinate descent on r.(t - v) + (t - v)'H(t - v)/2 + g(t); ``r`` and ``v`` follow.

    Ends after a sweep that changes nothing; returns how often a coordinate came to a kink or a
    bound, or left one.
    """
    changed = 0
    for _ in range(sweeps):
        moved = False
        for j in range(v.shape[0]):
            new = best_coordinate(v[j], r[j], H[j, j], l1[j], l2[j], low[j], high[j])
            step = new - v[j]
            if step != 0.0:
                moved = True
                before = v[j] == low[j] or v[j] == high[j] or (v[j] == 0.0 and l1[j] > 0.0)
                after = new == low[j] or new == high[j] or (new == 0.0 and l1[j] > 0.0)
                if before or after or (v[j] * new < 0.0 and l1[j] > 0.0):
                    changed += 1
                v[j] = new
                for i in range(v.shape[0]):
                    r[i] += step * H[j, i]
        if not moved:
            break
    return changed


@jit
def smoothed_losses(code, alpha, epsilon, lo, hi, z, dz, t, b, center, sigma, weight):
    """sum_i w_i max_v v z_i - phi*(v) - (v - center_i)^2/(2 sigma), at z + t dz."""
    total = 0.0
    for i in range(z.shape[0]):
        at = z[i] + t * dz[i]
        v = dual_prox(code, alpha, epsilon, lo, hi, at, b[i], center[i], sigma)
        away = v - center[i]
        value = v * at - conjugate(code, alpha, epsilon, lo, hi, v, b[i])
        total += weight[i] * (value - 0.5 * away * away / sigma)
    return total
