"""Files that are cold are fetched ahead, and warm ones are left alone."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import seekable as sk
from seekable.storage.memory import DiskActivity, disk_reads

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_disk_is_noticed_again() -> None:
    activity = DiskActivity()
    assert activity.may_wait
    for _ in range(4):
        activity.note(0)
    assert not activity.may_wait
    activity.note(1)
    assert activity.may_wait


def evicted(path: Path, patience_seconds: float = 20) -> bool:
    """Drop a file from the page cache, and tell whether that worked: some file systems have no disk."""
    descriptor = os.open(path, os.O_RDONLY)
    give_up = time.monotonic() + patience_seconds
    # What is on its way from the disk cannot be dropped, so nothing but the one page is read.
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    try:
        while time.monotonic() < give_up:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            before = disk_reads()
            os.pread(descriptor, 4096, 0)
            if disk_reads() > before:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                return True
    finally:
        os.close(descriptor)
    return False


class Advised:
    """Counts the advice that the system is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ranges: list[tuple[int, int]] = []
        self._advise = os.posix_fadvise
        monkeypatch.setattr(os, "posix_fadvise", self)

    def __call__(self, descriptor: int, start: int, length: int, advice: int) -> None:
        if advice == os.POSIX_FADV_WILLNEED:
            self.ranges.append((start, length))
        self._advise(descriptor, start, length, advice)


@pytest.fixture
def corpus() -> Iterator[Path]:
    # Temporary files may be in memory, which drops none of them; these are on a disk where there is one.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield written(Path(folder))


def written(folder: Path) -> Path:
    path = folder / "a.txt"
    path.write_text("".join(f"{i:07d} {'x' * 1000}\n" for i in range(8192)))
    # Long ago, so that opening it a second time does not read it to be sure of it.
    os.utime(path, (1e9, 1e9))
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted by thread on Linux alone")
def test_warm_files_are_not_advised_on_for_long(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus.read_bytes()
    ds = sk.open(corpus).shuffle(1)
    advised = Advised(monkeypatch)
    for i in range(20):
        ds[list(range(64 * i, 64 * i + 64))]
    # The first four reads tell that no disk is behind them.
    assert 0 < len(advised.ranges) <= 4 * 64
    assert all(length < 64 << 10 for _, length in advised.ranges)


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted by thread on Linux alone")
def test_cold_files_are_fetched_before_they_are_read(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sk.open(corpus)  # indexed before, because that reads it
    if not evicted(corpus):
        pytest.skip("nothing can be dropped from memory here")
    ds = sk.open(corpus).shuffle(1)
    advised = Advised(monkeypatch)
    before = disk_reads()
    run = iter(sk.Loader(ds, batch_size=64, collate=list, prefetch=0))
    records = [record for batch in run for record in batch]
    assert disk_reads() > before
    assert records == ds._node.fetch(np.arange(8192))
    assert sorted(records) == list(sk.open(corpus))
    # Everything was told of, in few and long ranges that are in order within what is told at once.
    assert sum(length for _, length in advised.ranges) >= corpus.stat().st_size * 0.9
    assert len(advised.ranges) < 4096


def test_natural_order_is_fetched_in_one_go(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advised = Advised(monkeypatch)
    assert len(sk.open(corpus)._node.plan(np.arange(1000)).read()) == 1000
    assert advised.ranges == [(0, 1009 * 1000)]


def test_rows_asked_for_one_by_one_in_order_are_fetched_in_stretches(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds, advised = sk.open(corpus), Advised(monkeypatch)
    assert [int(ds[row][:7]) for row in range(8192)] == list(range(8192))
    told = [(start, start + length) for start, length in advised.ranges]
    assert len(told) <= 8192 // 64
    # From the ninth row on, all that is read was told of before it was read.
    assert told[0][0] <= 9 * 1009
    assert all(a_stop > b_start for (_, a_stop), (b_start, _) in itertools.pairwise(told))
    assert told[-1][1] >= 8190 * 1009
    advised.ranges.clear()
    for row in np.random.default_rng(0).permutation(8192)[:1000].tolist():
        ds[row]
    assert advised.ranges == []
