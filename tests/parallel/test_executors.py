"""Who works on blocks: results in order, errors, limits on what is loaded."""

import pickle
import threading
import time

import numpy as np
import pytest

from adacoord.parallel.choice import count, executor_for
from adacoord.parallel.executors import Serial, Threads


class Piece:
    """A block that notes how many of its kind are loaded at a time."""

    lock = threading.Lock()
    loaded = most = 0

    def __init__(self, k, in_memory=False):
        self.k, self.in_memory = k, in_memory

    def load(self):
        with Piece.lock:
            Piece.loaded += 1
            Piece.most = max(Piece.most, Piece.loaded)
        return self.k


def square(block, shift):
    time.sleep(0.001 * (block % 3))
    with Piece.lock:
        Piece.loaded -= 1
    return block * block + shift


@pytest.fixture(params=[Serial, lambda: Threads(2), lambda: Threads(5)], ids=["1", "2", "5"])
def executor(request):
    Piece.loaded = Piece.most = 0
    made = request.param()
    yield made
    made.close()


@pytest.mark.parametrize("in_memory", [True, False])
def test_results_come_in_order(executor, in_memory):
    jobs = [(Piece(k, in_memory), 7) for k in range(30)]
    assert list(executor.map(square, jobs)) == [k * k + 7 for k in range(30)]
    assert list(executor.map(square, jobs)) == [k * k + 7 for k in range(30)]


@pytest.mark.parametrize("in_memory", [True, False])
def test_each_job_is_run_once(executor, in_memory):
    seen = []
    executor.run(lambda block, shift: seen.append(square(block, shift)), [])
    assert not seen
    jobs = [(Piece(k, in_memory), 7) for k in range(30)]
    executor.run(lambda block, shift: seen.append(square(block, shift)), jobs)
    assert sorted(seen) == [k * k + 7 for k in range(30)]


def test_the_first_error_of_a_run_is_raised(executor):
    def fails(block, shift):
        square(block, shift)
        if block in (3, 4):
            raise ValueError(f"block {block} is wrong")

    with pytest.raises(ValueError, match="block 3"):
        executor.run(fails, [(Piece(k, True), 0) for k in range(9)])
    executor.run(square, [(Piece(2, True), 1)])  # and it goes on


def test_ctrl_c_ends_a_run(executor):
    """Nobody begins another block, and those under way are waited for."""
    begun, ended = [], []
    caller = threading.get_ident()

    def work(block):
        begun.append(block)
        if threading.get_ident() == caller and len(begun) > 3:
            raise KeyboardInterrupt
        time.sleep(0.005)
        ended.append(block)

    with pytest.raises(KeyboardInterrupt):
        executor.run(work, [(Piece(k, True),) for k in range(200)])
    assert len(begun) < 50
    assert len(ended) == len(begun) - 1


def test_holds_no_more_blocks_than_it_works_on(executor):
    list(executor.map(square, [(Piece(k), 0) for k in range(40)]))
    assert Piece.most <= getattr(executor, "n_jobs", 1) + 1


def test_an_error_of_a_block_is_raised(executor):
    def fails(block, _):
        if block == 3:
            raise ValueError("block 3 is wrong")
        return block

    with pytest.raises(ValueError, match="block 3"):
        list(executor.map(fails, [(Piece(k), 0) for k in range(9)]))
    assert list(executor.map(square, [(Piece(2), 1)])) == [5]  # and it goes on


def test_threads_end():
    before = threading.active_count()
    executor = Threads(3)
    list(executor.map(square, [(Piece(k, True), 0) for k in range(9)]))
    executor.close()
    assert threading.active_count() == before
    assert pickle.loads(pickle.dumps(executor)).n_jobs == 3


def test_overflow_in_a_block_is_no_warning(executor):
    def overflow(block):
        return np.float64(1e300) * np.array([1e300])

    [result] = executor.map(overflow, [(Piece(0, True),)])
    assert np.isinf(result).all()


def test_counts_of_jobs():
    assert count(3) == 3
    assert count(-1) >= 1
    assert isinstance(executor_for(1, None), Serial)
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_jobs="):
            count(wrong)
    with pytest.raises(ValueError, match="one of the two"):
        executor_for(2, Serial())
    with pytest.raises(ValueError, match=r"dask\.distributed\.Client"):
        executor_for(None, 3)
