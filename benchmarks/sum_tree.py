"""What adaptive sampling costs a step: one update and one draw of the sum tree.

    python benchmarks/sum_tree.py

The minimum of 5 rounds.  Each factor of 10 in n adds log2(10) = 3.3 levels to walk up and down:
equal differences from line to line are the log n of the design, until the tree (16 bytes a
weight) outgrows the caches and each of the lowest levels costs a miss.
"""

from __future__ import annotations

import math
import time

import numpy as np

from adacoord.kernels.jit import jit
from adacoord.sampling.random import uniform
from adacoord.sampling.tree import mixture_draw, tree_build, tree_update

STEPS = 500_000
ROUNDS = 5


@jit
def steps(tree, n, count, state):
    """Draw an index, give it a new weight, ``count`` times."""
    for _ in range(count):
        i, _ = mixture_draw(tree, n, 0.8, uniform(state))
        tree_update(tree, i, uniform(state))


def main() -> None:
    state = np.array([0], dtype=np.uint64)
    steps(tree_build(np.ones(10)), 10, 10, state)  # compile
    print(f"{'n':>9s}  {'levels':>6s}  {'ns a step':>9s}  {'ns a level':>10s}")
    for power in range(2, 7):
        n = 10**power
        tree = tree_build(np.random.default_rng(0).random(n))
        best = math.inf
        for _ in range(ROUNDS):
            started = time.perf_counter()
            steps(tree, n, STEPS, state)
            best = min(best, time.perf_counter() - started)
        levels = math.ceil(math.log2(n))
        each = 1e9 * best / STEPS
        print(f"{n:9d}  {levels:6d}  {each:9.1f}  {each / levels:10.2f}")


if __name__ == "__main__":
    main()
