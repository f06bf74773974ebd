"""Deflated data is decompressed from any of its blocks on, at whichever bit that begins."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from typing import TYPE_CHECKING

import pytest
from tests.thrift import ALL

from seekable.index.build import content as entering
from seekable.storage.seek_points import _FILLERS, inflate_from_bit

if TYPE_CHECKING:
    from pathlib import Path


def texts(size: int, seed: int) -> bytes:
    """Return text that compresses as such does."""
    rng = random.Random(seed)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(3000)]
    return b" ".join(rng.choices(words, k=size // 6))


def test_fillers_are_nothing_but_bits() -> None:
    for bits, filler in enumerate(_FILLERS):
        assert len(filler) % 8 == bits
        whole = filler + "1" + "10" + "0000000"  # the last block, an empty one
        data = int(whole[::-1], 2).to_bytes(len(whole) // 8 + 1, "little")
        stream = zlib.decompressobj(-15)
        assert (stream.decompress(data), stream.eof) == (b"", True)


@pytest.mark.parametrize("level", [1, 6, 9])
def test_all_points_of_a_file_lead_to_its_content(
    level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entering, "SPACING", 40_000)
    content = texts(3_000_000, level)
    data = gzip.compress(content[:1_000_000], level) + gzip.compress(content[1_000_000:], level)
    path = tmp_path / "a.gz"
    path.write_bytes(data)
    with io.FileIO(path) as file:
        points = entering.gzip_seek_points(file, str(path))
    assert len(points) > 40
    assert {point.bit % 8 for point in points} == set(range(8))
    for number, point in enumerate(points):
        assert content[point.start - 1000 : point.start].endswith(point.window[-1000:])
        rest = memoryview(data)[point.bit // 8 :]
        # What follows a point is read up to the next ones, and of some points up to the end.
        enough = len(content) if ALL or number % 8 == 0 else 100_000
        found = bytearray()
        for part in inflate_from_bit(rest, bit=point.bit % 8, window=point.window, path="a.gz"):
            found += part
            if len(found) >= enough:
                break
        assert found == content[point.start : point.start + len(found)]
        assert len(found) >= min(enough, len(content) - point.start)
