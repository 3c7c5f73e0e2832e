"""BLAS on one thread: for every thread, after every interrupt, in every child."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from types import SimpleNamespace

import pytest

from adacoord.linalg import blas as _blas
from adacoord.linalg.blas import one_thread


def threads():
    """Of NumPy's and SciPy's: others, such as that of cvxpy's SCS, may be loaded beside them later,
    and know one thread only."""
    return [library.get() for library in _blas._libraries()]


@pytest.fixture(autouse=True)
def two_threads():
    """Two threads before, whatever the machine's number."""
    before = [(library, library.get()) for library in _blas._libraries()]
    for library, _ in before:
        library.set(2)
    yield
    assert set(threads()) == {2}
    for library, number in before:
        library.set(number)


def run(code: str, seconds: float = 120.0, **environment) -> str:
    """What a program prints, that has so many seconds and two threads of BLAS."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", **environment}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        env=environment,
        timeout=seconds,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_library_is_known():
    """SciPy brings a BLAS of its own, which is loaded when first asked for."""
    out = run("""
        import numpy
        from adacoord.linalg.blas import one_thread
        with one_thread():
            import scipy.linalg
            from threadpoolctl import threadpool_info
            print({p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"})
    """)
    assert out.split() == ["{1}"]


def test_every_thread_can_hold_it():
    """threadpoolctl obeys the first thread that sets a number, and ignores the others."""
    with one_thread():
        pass  # here the main thread sets it
    seen = []

    def other():
        with one_thread():
            seen.append(threads())
        seen.append(threads())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert set(seen[0]) == {1} and set(seen[1]) == {2}


def test_the_last_one_gives_the_threads_back():
    seen, enter, leave = [], threading.Event(), threading.Event()

    def other():
        with one_thread():
            enter.set()
            leave.wait(60.0)
        seen.append(threads())

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert enter.wait(60.0)
    seen.append(threads())
    leave.set()
    thread.join()
    assert set(seen[0]) == {1} and set(seen[1]) == {2}


def test_a_number_a_thread(monkeypatch):
    """OpenBLAS on OpenMP keeps a number for each thread: every one sets its own."""
    local = threading.local()
    openmp = SimpleNamespace(
        get_num_threads=lambda: getattr(local, "n", 2),
        threading_layer="openmp",
        set_num_threads=lambda n: setattr(local, "n", n),
        internal_api="openblas",
    )
    library = _blas._Library(openmp)
    monkeypatch.setattr(_blas, "_libraries", lambda: [library])
    seen = []

    def other():
        with one_thread():
            seen.append(library.get())
        seen.append(library.get())

    with one_thread():
        for _ in range(2):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert library.get() == 1
    assert seen == [1, 2, 1, 2] and library.get() == 2


@pytest.mark.slow
def test_same_bits_in_four_threads():
    """Each of the four leaves and enters while others compute."""
    out = run(
        """
        import threading
        import numpy as np
        import adacoord as ac
        rng = np.random.default_rng(0)
        cases = []
        for n, d in ((300, 200), (60, 400)):
            A = rng.standard_normal((n, d))
            b = np.sign(A[:, 0] + rng.standard_normal(n))
            cases += [ac.Problem(A, b, loss, l2=1e-3, intercept=True)
                      for loss in ("logistic", "squared")]
        def solve(problem):
            found = ac.solve(problem, "newton", tol=1e-10)
            return found.x.tobytes() + np.float64(found.intercept).tobytes()
        expected = [solve(problem) for problem in cases]
        different = []
        def work():
            for _ in range(12):
                for problem, bits in zip(cases, expected):
                    different.append(solve(problem) != bits)
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
        print(len(different), sum(different))
    """,
        seconds=300.0,
    )
    assert out.split() == ["192", "0"]


# ---- interrupts --------------------------------------------------------------------------------


def hold():
    with one_thread(), one_thread():
        pass


def test_an_interrupt_leaves_nothing_held(interrupted_at):
    hold()
    step = 0
    while interrupted_at(step, _blas.__file__, hold):
        assert set(threads()) == {2}, step
        assert not _blas._of_process.users and not _blas._of_process.before, step
        thread = threading.Thread(target=hold)  # the lock is free for others
        thread.start()
        thread.join(10.0)
        assert not thread.is_alive(), step
        step += 1
    assert step > 50


def test_an_interrupt_whose_traceback_is_kept(interrupted_at):
    """The frames of a traceback keep the context managers alive that it passed through."""
    kept = []

    def hold_and_keep():
        try:
            hold()
        except KeyboardInterrupt as interrupt:
            kept.append(interrupt)

    step, late = 0, 0
    while True:
        kept.clear()
        interrupted_at(step, _blas.__file__, hold_and_keep)
        if not kept:
            break
        late += set(threads()) != {2}
        step += 1
        kept.clear()
        assert set(threads()) == {2}
    assert late <= 4  # cut short at the first step of the way out, of which Python has no second


# ---- children ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_children_of_a_fork_while_threads_fit():
    out = run(
        """
        import os, signal, threading, time
        import numpy as np
        import adacoord as ac
        from adacoord.linalg.blas import one_thread
        from threadpoolctl import threadpool_info
        def threads():
            return {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}
        with one_thread():
            pass
        over = threading.Event()
        def fit():
            while not over.is_set():
                with one_thread():
                    pass
        workers = [threading.Thread(target=fit) for _ in range(2)]
        for worker in workers: worker.start()
        hung = wrong = 0
        for _ in range(150):
            child = os.fork()
            if child == 0:
                right = threads() == {2}
                with one_thread():
                    right = right and threads() == {1}
                os._exit(0 if right and threads() == {2} else 1)
            end = time.monotonic() + 20.0
            while True:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    wrong += status != 0
                    break
                if time.monotonic() > end:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    hung += 1
                    break
                time.sleep(0.001)
            if hung > 2: break
        over.set()
        for worker in workers: worker.join()
        print(hung, wrong)
    """,
        seconds=200.0,
    )
    assert out.split() == ["0", "0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_inside():
    with one_thread():
        child = os.fork()
        if child == 0:
            inside = threads()
    if child == 0:
        os._exit(0 if set(inside) == {1} and set(threads()) == {2} else 1)
    end, status = time.monotonic() + 60.0, (0, 0)
    while status == (0, 0):
        assert time.monotonic() < end
        time.sleep(0.01)
        status = os.waitpid(child, os.WNOHANG)
    assert status == (child, 0)
