"""Model files: adacoord's digested npz against safetensors with the same facts and a digest.

    python benchmarks/model_files.py        (needs pip install safetensors)

Bytes, and the least CPU milliseconds of 30 writes and 30 reads, each with a SHA-256 over the file;
what fsync takes is left out of both.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import adacoord as ac
from adacoord.io import digested
from adacoord.io.fitted import assemble, dismantle


def least(function) -> float:
    best = np.inf
    for _ in range(30):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return 1e3 * best


def main() -> None:
    import safetensors
    from safetensors.numpy import load, save

    rng = np.random.default_rng(0)
    print(f"safetensors {safetensors.__version__}; bytes, ms to write, ms to read")
    for n, d, K in ((200, 10, 2), (500, 2000, 10), (300, 200_000, 2)):
        X = rng.standard_normal((n, d))
        y = rng.integers(0, K, n)
        model = ac.LogisticRegression(C=1e-3, max_iter=30).fit(X, y)
        arrays, facts = dismantle(model)
        numbers = {k: np.ascontiguousarray(v) for k, v in arrays.items() if v.dtype.kind != "U"}
        words = {k: v.tolist() for k, v in arrays.items() if v.dtype.kind == "U"}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model")

            def write_ours(arrays=arrays, facts=facts, file=file):
                payload = digested._pack(arrays, facts)
                file.write_bytes(hashlib.sha256(payload).digest() + payload)

            def read_ours(file=file):
                content = memoryview(file.read_bytes())
                assert hashlib.sha256(content[32:]).digest() == content[:32]
                assemble(*digested._unpack(content[32:]))

            def write_theirs(numbers=numbers, facts=facts, words=words, file=file):
                text = {"facts": json.dumps(facts), "words": json.dumps(words)}
                payload = save(numbers, text)
                file.write_bytes(hashlib.sha256(payload).digest() + payload)

            def read_theirs(file=file):
                content = file.read_bytes()
                assert hashlib.sha256(memoryview(content)[32:]).digest() == content[:32]
                payload = content[32:]
                size = int.from_bytes(payload[:8], "little")
                text = json.loads(payload[8 : 8 + size])["__metadata__"]
                arrays = load(payload) | {
                    k: np.array(v) for k, v in json.loads(text["words"]).items()
                }
                assemble(arrays, json.loads(text["facts"]))

            for name, write, read in (
                ("npz", write_ours, read_ours),
                ("safetensors", write_theirs, read_theirs),
            ):
                write()
                print(
                    f"{n} x {d}, {K} classes, {name}: {file.stat().st_size}, {least(write):.3f}, "
                    f"{least(read):.3f}"
                )


if __name__ == "__main__":
    main()
