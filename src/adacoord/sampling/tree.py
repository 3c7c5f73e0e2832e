r"""A sum tree: draw from weights that change after every draw, O(log n) for both (AIS, Fig. 1).

The tree of n weights is one array of 2m numbers, m the power of two at or above n: leaf i is
``tree[m + i]`` (0 for the m - n leaves that pad), each inner node k is the sum of its children
``tree[2k]`` and ``tree[2k + 1]``, so the total is ``tree[1]``.  An update recomputes the nodes
above a leaf as sums of their children, in place of adding the difference: the tree is at any
time, to the last bit, the one that :func:`tree_build` makes of its leaves, and nothing drifts.

No leaf is below ``FLOOR``.  All gradient maps can be 0 at once (rows beyond the hinge), and
0/0 would follow; with the floor such weights are equal, hence uniform, and beside any weight
that matters the floor is nothing.
"""

from __future__ import annotations

import numpy as np

from ..kernels.jit import jit
from .random import uniform

#: The least weight: 1e-200 of anything is lost in its rounding, and n of them are still normal.
FLOOR = 1e-200


@jit
def tree_rebuild(tree):
    """Recompute every inner node from the leaves."""
    for k in range(tree.shape[0] // 2 - 1, 0, -1):
        tree[k] = tree[2 * k] + tree[2 * k + 1]


@jit
def tree_build(weights):
    """The tree of ``weights``."""
    n = weights.shape[0]
    m = 1
    while m < n:
        m *= 2
    tree = np.zeros(2 * m)
    for i in range(n):
        tree[m + i] = max(weights[i], FLOOR)
    tree_rebuild(tree)
    return tree


@jit
def tree_update(tree, i, weight):
    """Give leaf ``i`` a new weight."""
    k = (tree.shape[0] >> 1) + i
    tree[k] = max(weight, FLOOR)
    k >>= 1
    while k > 0:
        tree[k] = tree[2 * k] + tree[2 * k + 1]
        k >>= 1


@jit
def tree_draw(tree, u):
    """The first i whose weights up to i sum to at least ``u`` of the total, 0 < u <= 1.

    A leaf that pads is never drawn, whatever the rounding: the way is never into an empty half.
    """
    m = tree.shape[0] >> 1
    target = u * tree[1]
    k = 1
    while k < m:
        k *= 2
        left = tree[k]
        if target > left and tree[k + 1] > 0.0:
            target -= left
            k += 1
    return k - m


@jit
def mixture_draw(tree, n, delta, u):
    """Draw i with p_i = (1-delta)/n + delta w_i/sum w; returns i and n p_i (eq. 13 of AIS).

    One number ``u`` in (0, 1] serves for the choice between the two parts and, stretched, for
    the draw from the chosen one.
    """
    even = 1.0 - delta
    if u <= even:
        i = min(np.int64(u / even * n), n - 1)
    else:
        i = tree_draw(tree, (u - even) / delta)
    return i, even + delta * n * (tree[(tree.shape[0] >> 1) + i] / tree[1])


@jit
def tree_updates(tree, leaves, weights, nodes):
    """:func:`tree_update` for several leaves, level by level; ``nodes`` is scratch.

    The leaves are independent of each other until they meet, so the CPU overlaps their cache
    misses and latencies; the few nodes above are recomputed once for all.  (32 at a time, with
    :func:`mixture_draws`: 3x faster than one after the other for 50,000 weights.)
    """
    one, level = np.uint64(1), np.uint64(tree.shape[0] >> 1)
    count = 0
    for k in range(leaves.shape[0]):
        node, weight = level + np.uint64(leaves[k]), max(weights[k], FLOOR)
        if tree[node] != weight:
            tree[node] = weight
            nodes[count] = node
            count += 1
    while level > np.uint64(count):
        level >>= one
        for k in range(count):
            node = nodes[k] >> one
            nodes[k] = node
            tree[node] = tree[node << one] + tree[(node << one) + one]
    for k in range(np.int64(level) - 1, 0, -1):
        tree[k] = tree[2 * k] + tree[2 * k + 1]


@jit
def mixture_draws(tree, n, delta, state, leaves, frequencies, nodes, targets):
    """:func:`mixture_draw` for every place of ``leaves``, level by level; ``nodes`` and
    ``targets`` are scratch."""
    one, m = np.uint64(1), np.uint64(tree.shape[0] >> 1)
    even, total = 1.0 - delta, tree[1]
    walkers = 0
    for k in range(leaves.shape[0]):
        u = uniform(state)
        if u <= even:
            leaves[k] = min(np.int64(u / even * n), n - 1)
        else:
            leaves[k] = -1  # to be found by walker number ``walkers``
            targets[walkers] = (u - even) / delta * total
            nodes[walkers] = one
            walkers += 1
    level = one
    while level < m:
        level <<= one
        for k in range(walkers):
            node, target = nodes[k] << one, targets[k]
            left = tree[node]
            # without a branch: which way to go is a coin to the CPU
            right = np.uint64(target > left) & np.uint64(tree[node + one] > 0.0)
            nodes[k] = node + right
            targets[k] = target - left * right
    walkers = 0
    for k in range(leaves.shape[0]):
        if leaves[k] < 0:
            leaves[k] = np.int64(nodes[walkers] - m)
            walkers += 1
        frequencies[k] = even + delta * n * (tree[m + np.uint64(leaves[k])] / total)
