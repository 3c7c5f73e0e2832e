"""How long a user waits for the first fit of a process, and for the first on a machine.

    python benchmarks/startup.py [--repeats 5] [--quick]

CPU seconds of ``import adacoord`` and one ``fit`` together, in a fresh process that has imported
scikit-learn's linear models before: with all kernels in the cache (the least of the repeats), and
with an empty one (the least of two).  Then ``adacoord warmup`` on an empty cache, and two processes
that start at once on one: both have to find what a process alone finds.  Goals are those of the
column heads.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

from workers import ONE_THREAD

MODELS = ("LinearSVC", "LogisticRegression", "Lasso", "Ridge")
#: Rows and columns; 2^18 numbers are the most that count as small.
SIZES = {"small": (200, 10), "large": (20_000, 100), "sparse": (20_000, 5_000)}
WARM, COLD, WARMUP = 0.35, 4.0, 60.0
SCRIPT = """
import resource, sys
import numpy as np, scipy.sparse, sklearn.linear_model, sklearn.svm
name, kind, n, d = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(0)
if kind == "sparse":
    X = scipy.sparse.random_array((n, d), density=0.005, rng=rng, format="csr")
    X = scipy.sparse.csr_matrix(X)
else:
    X = rng.standard_normal((n, d))
z = X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
y = z if name in ("Lasso", "Ridge") else (z > 0.0).astype(int)
def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
known, before = set(sys.modules), seconds()
import adacoord as ac
model = getattr(ac, name)(**({"alpha": 0.01} if name == "Lasso" else {})).fit(X, y)
spent = seconds() - before
assert not {"rich", "typer", "matplotlib", "dask", "pandas"} & (set(sys.modules) - known)
print(spent, np.max(model.relative_gap_), *np.ravel(model.coef_)[:5])
"""


def started(name: str, kind: str, cache: str) -> subprocess.Popen:
    size = map(str, SIZES[kind])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, name, kind, *size],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(cache),
    )


def environment(cache: str) -> dict[str, str]:
    # Python's own cache as every user has it
    left_out = ("NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")
    kept = {k: v for k, v in os.environ.items() if k not in left_out}
    return kept | ONE_THREAD | {"ADACOORD_CACHE": cache}


def found(child: subprocess.Popen) -> tuple[float, list[float]]:
    """(CPU seconds, what was found) of a child that has to end well."""
    printed, _ = child.communicate()
    if child.returncode:
        raise SystemExit("a first fit failed")
    seconds, gap, *coef = map(float, printed.split())
    if not gap <= 1e-4:
        raise SystemExit(f"a first fit ended with a relative gap of {gap:g}")
    return seconds, coef


def first_fit(name: str, kind: str, cache: str) -> float:
    return found(started(name, kind, cache))[0]


def cold(name: str, kind: str) -> float:
    with tempfile.TemporaryDirectory() as cache:
        return first_fit(name, kind, cache)


def warmup(cache: str) -> float:
    """CPU seconds of ``adacoord warmup``, its imports among them."""
    script = "import sys; sys.argv = ['adacoord', 'warmup']\n" + (
        "import resource, atexit\n"
        "from adacoord.command.cli import main\n"
        "def tell():\n"
        "    used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "    print('\\n', used.ru_utime + used.ru_stime, file=sys.stderr)\n"
        "atexit.register(tell)\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment(cache),
    )
    return float(done.stderr.split()[-1])


def at_once(name: str, kind: str) -> bool:
    """Whether two processes on one empty cache find what a third, alone, finds in it."""
    with tempfile.TemporaryDirectory() as cache:
        both = [started(name, kind, cache) for _ in range(2)]
        answers = [found(child)[1] for child in both]
        return answers == [found(started(name, kind, cache))[1]] * 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="processes for each warm figure")
    parser.add_argument("--quick", action="store_true", help="warm figures only")
    args = parser.parse_args()
    print(f"{'CPU seconds of a first fit':34} {f'warm <= {WARM}':>13} {f'empty <= {COLD:g}':>13}")
    with tempfile.TemporaryDirectory() as cache:
        for kind in SIZES:
            for name in MODELS:
                first_fit(name, kind, cache)
                warm = min(first_fit(name, kind, cache) for _ in range(args.repeats))
                empty = "" if args.quick else f"{min(cold(name, kind) for _ in range(2)):13.2f}"
                print(f"{f'{name}, {kind}':34} {warm:13.2f} {empty}", flush=True)
    if args.quick:
        return
    with tempfile.TemporaryDirectory() as cache:
        print(f"adacoord warmup: {warmup(cache):.0f} s (<= {WARMUP:g})", flush=True)
    right = all(at_once(name, "small") for name in MODELS)
    print(f"two processes at once on an empty cache: {'both right' if right else 'WRONG'}")


if __name__ == "__main__":
    main()
