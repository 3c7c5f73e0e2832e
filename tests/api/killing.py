"""Kill a checkpointing fit again and again: ``python killing.py FOLDER KILLS SEED``.

A child is forked from a process that has everything imported and compiled, goes on from the
checkpoint that the last one left, writes one before every pass and acknowledges each in a pipe, and
is killed at a random moment.  What it left has to be whole, and no older than what was last
acknowledged.  A run that gets to its end has to have the bits of one that nobody killed.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import time
import warnings

import numpy as np

import adacoord as ac
from adacoord.api import checkpoint
from adacoord.io.checkpoints import read_checkpoint

HOW = {"tol": 0.0, "max_passes": 150}


def pose():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 8))
    return ac.Problem(A, np.sign(rng.standard_normal(50)), "smooth_hinge", l2=1e-4)


def fit(path, pipe):
    """The child: acknowledges a checkpoint once its writing has ended."""
    write = checkpoint.write_checkpoint

    def acknowledged(path, tree, **how):
        write(path, tree, **how)
        os.write(pipe, struct.pack("q", tree["passes"]))

    checkpoint.write_checkpoint = acknowledged
    ac.solve(pose(), "dcd", checkpoint=path, checkpoint_every=0.0, **HOW)


def killed(path, moment):
    """(passes acknowledged last, whether it was killed before its end)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            fit(path, writer)
        finally:
            os._exit(0)
    os.close(writer)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    content = b""
    while part := os.read(reader, 1 << 16):
        content += part
    os.close(reader)
    count = len(content) // 8
    last = struct.unpack_from("q", content, 8 * (count - 1))[0] if count else -1
    return last, os.WIFSIGNALED(status)


def main(folder, kills, seed):
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    whole = ac.solve(pose(), "dcd", **HOW)
    for name in ("first", "second"):  # the first has everything compiled
        started = time.perf_counter()
        ac.solve(pose(), "dcd", checkpoint=f"{folder}/{name}", checkpoint_every=0.0, **HOW)
    span = (time.perf_counter() - started) / 6.0  # so that a run is killed some ten times
    done, finished, acknowledged, run, between = 0, 0, -1, 0, 0
    while done < kills:
        path = f"{folder}/{run}"
        last, hit = killed(path, float(rng.uniform(0.0, span)))
        acknowledged = max(acknowledged, last)
        tree, wrong = read_checkpoint(path)
        assert wrong == [], f"a kill left a damaged checkpoint: {wrong}"
        found = -1 if tree is None else tree["passes"]
        assert found >= acknowledged, f"{found} passes are kept, {acknowledged} were acknowledged"
        between += tree is not None and not os.path.exists(path)
        done += hit
        if not hit:
            assert tree["reason"] == "max_passes"
        if not hit or done == kills:
            found = ac.solve(pose(), "dcd", checkpoint=path, **HOW)
            assert np.array_equal(found.x, whole.x) and np.array_equal(found.y, whole.y)
            assert np.array_equal(found.history.gap, whole.history.gap)
            finished, run, acknowledged = finished + 1, run + 1, -1
    print(json.dumps({"kills": done, "finished": finished, "between renames": between}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
