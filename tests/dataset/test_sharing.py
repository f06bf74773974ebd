"""Datasets are shared: by threads, by forked and other processes, and by other datasets."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.dataset.common import numbers
from tests.thrift import some

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


def drawn(record: Any, rng: np.random.Generator) -> tuple[Any, int]:
    return record, int(rng.integers(1000))


@pytest.fixture
def dataset(tmp_path: Path) -> sk.Dataset:
    """Files under most kinds of node."""
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("".join(f"{name}{row}\n" for row in range(700)))
    files = sk.open(str(tmp_path))
    left = sk.mix([files.shuffle(seed=1), numbers(500).shuffle(seed=2)], weights=[2, 1], seed=3)
    right = sk.concat([files, numbers(len(left))]).take(len(left)).shuffle(seed=4)
    return sk.zip([left, right]).map(drawn, rng=True, seed=5).batch(3)


def test_many_threads_read_one_dataset(dataset: sk.Dataset) -> None:
    n = 2 * len(dataset)
    wanted = dataset._node.fetch(np.arange(n))
    fresh = pickle.loads(pickle.dumps(dataset))
    together = threading.Barrier(8)

    def read(worker: int) -> bool:
        rng = np.random.default_rng(worker)
        together.wait(timeout=30)
        for _ in range(some(40)):
            positions = rng.integers(0, n, 20)
            if fresh._node.fetch(positions) != [wanted[p] for p in positions]:
                return False
            one = int(positions[0])
            if fresh[sk.Position(one)] != wanted[one]:
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))


def test_a_forked_child_reads_what_its_parent_reads(dataset: sk.Dataset) -> None:
    wanted = dataset[[5, 1, 100]]
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        same = dataset[[5, 1, 100]] == wanted and dataset._node.record(5) == wanted[0]
        os.write(write, b"same" if same else b"other")
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"same"
    assert os.waitpid(child, 0)[1] == 0
    assert dataset[[5, 1, 100]] == wanted


def test_a_pickle_holds_the_description_alone(dataset: sk.Dataset) -> None:
    before = pickle.dumps(dataset)
    # Reading compiles, opens and maps, and none of that goes along.
    records = list(dataset)
    assert dataset.find("nowhere", 1) == []
    assert dataset.explain()
    after = pickle.dumps(dataset)
    assert len(after) == len(before)
    assert len(after) < 6000
    assert list(pickle.loads(after)) == records


def test_a_pickle_does_not_grow_with_the_data(tmp_path: Path) -> None:
    sizes = []
    for rows in (10, 100_000):
        path = tmp_path / f"{rows:06}.txt"
        path.write_text("x\n" * rows)
        sizes.append(len(pickle.dumps(sk.open(str(path)).shuffle(seed=1))))
    assert abs(sizes[1] - sizes[0]) < 20


def test_one_dataset_under_several_others_is_read_by_each_as_if_alone() -> None:
    """In another library two branches over one node move one cursor."""
    shared = numbers(50).shuffle(seed=1)
    both = sk.zip([shared.take(40), shared.skip(10)])
    one, other = iter(shared), iter(shared)
    next(one)
    assert list(both) == [(a, b) for a, b in zip(list(shared)[:40], list(shared)[10:], strict=True)]
    assert next(other) == shared[0]
    assert next(one) == shared[1]


def test_depth_is_no_obstacle() -> None:
    ds = numbers(100)
    for seed in range(100):
        ds = ds.shuffle(seed=seed).take(100)
    assert sorted(ds) == list(range(100))
    assert sorted(pickle.loads(pickle.dumps(ds))) == list(range(100))
    assert [ds[row] for row in range(100)] == list(ds)
