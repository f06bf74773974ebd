from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from seekable.index.build import scan as spool_module
from seekable.index.build.scan import OffsetBuffer
from seekable.index.digest import digest_text

if TYPE_CHECKING:
    from pathlib import Path


def filled(folder: Path, parts: list[list[int]], *, size: int) -> OffsetBuffer:
    spool = OffsetBuffer(str(folder))
    for part in parts:
        spool.add(np.array(part, np.uint64))
    spool.finish(size=size)
    return spool


def test_the_digest_of_offsets_is_pinned(tmp_path: Path) -> None:
    assert digest_text(filled(tmp_path, [[0, 3]], size=7).digest) == "xxh3:e2cd2b00af4bb059"


@given(
    parts=st.lists(st.lists(st.integers(0, 2**63), max_size=5), max_size=5),
    spill_bytes=st.sampled_from([8, 24, 1 << 20]),
)
def test_offsets_are_the_same_in_memory_and_on_disk(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[int]], spill_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool_module, "_SPILL_BYTES", spill_bytes)
        spool = filled(folder, parts, size=9)
    expected = np.array([*(start for part in parts for start in part), 9], "<u8").tobytes()
    assert spool.records == len(expected) // 8 - 1
    assert spool.digest == xxhash.xxh3_64_intdigest(expected)
    if not spool.on_disk:
        assert spool.data == expected
        assert os.listdir(folder) == []
        return
    segment = spool.publish()
    assert spool.publish() == segment, "a commit that failed is tried again"
    assert (folder / segment.file_name).read_bytes() == expected
    assert (segment.bytes, segment.digest) == (len(expected), spool.digest)
    spool.discard()
    assert os.listdir(folder) == [segment.file_name]


def test_what_is_discarded_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "_SPILL_BYTES", 8)
    spool = OffsetBuffer(str(tmp_path))
    spool.add(np.array([1, 2, 3], np.uint64))
    assert len(os.listdir(tmp_path)) == 1
    spool.discard()
    spool.discard()
    assert os.listdir(tmp_path) == []


def test_offsets_that_somebody_else_removed_are_no_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "_SPILL_BYTES", 8)
    spool = OffsetBuffer(str(tmp_path))
    spool.add(np.array([1], np.uint64))
    (left,) = tmp_path.iterdir()
    left.unlink()
    spool.add(np.array([2], np.uint64))
    spool.finish(size=3)
    with pytest.raises(FileNotFoundError):
        spool.publish()
    spool.discard()
