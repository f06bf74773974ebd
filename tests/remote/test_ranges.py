"""Ranges of a file that lies elsewhere, through any function that fetches bytes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from seekable.remote import remote_ranges as module
from seekable.remote.block_cache import BlockCache
from seekable.remote.block_plan import BLOCK_BYTES
from seekable.remote.remote_ranges import RemoteRanges

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = random.Random(0).randbytes(3 * BLOCK_BYTES + 1000)


class Elsewhere:
    """Holds the content, and counts the bytes that were fetched."""

    def __init__(self) -> None:
        self.fetched = 0

    def fetch(self, start: int, stop: int) -> bytes:
        self.fetched += stop - start
        return CONTENT[start:stop]


def opened(elsewhere: Elsewhere, folder: Path, *, version: str = "1") -> RemoteRanges:
    blocks = BlockCache(str(folder), most_bytes=1 << 30)
    return RemoteRanges(elsewhere.fetch, path="x://a", size=len(CONTENT), version=version, blocks=blocks)


def test_any_range_is_read_and_no_byte_is_fetched_twice(tmp_path: Path) -> None:
    elsewhere, rng = Elsewhere(), random.Random(1)
    source = opened(elsewhere, tmp_path, version="any range")
    for _ in range(200):
        start, stop = sorted(rng.choices(range(len(CONTENT) + 1), k=2))
        assert source.range(start, stop) == CONTENT[start:stop]
    assert source.range(0, len(CONTENT)) == CONTENT
    assert elsewhere.fetched == len(CONTENT)


def test_blocks_on_disk_serve_other_processes_and_other_versions_do_not_share_them(tmp_path: Path) -> None:
    first, second, other = Elsewhere(), Elsewhere(), Elsewhere()
    assert opened(first, tmp_path, version="disk").range(10, 20) == CONTENT[10:20]
    module._BLOCKS.forget()  # As in another process, which has none of them in memory.
    assert opened(second, tmp_path, version="disk").range(10, 20) == CONTENT[10:20]
    assert opened(other, tmp_path, version="newer").range(10, 20) == CONTENT[10:20]
    assert (first.fetched, second.fetched, other.fetched) == (BLOCK_BYTES, 0, BLOCK_BYTES)


def test_an_error_of_the_function_that_fetches_is_raised_as_it_is(tmp_path: Path) -> None:
    def fail(start: int, stop: int) -> bytes:
        raise ConnectionError(f"bytes {start} to {stop}")

    blocks = BlockCache(str(tmp_path), most_bytes=1 << 30)
    source = RemoteRanges(fail, path="x://a", size=len(CONTENT), version="broken", blocks=blocks)
    with pytest.raises(ConnectionError, match=f"bytes 0 to {BLOCK_BYTES}"):
        source.range(0, 1)
