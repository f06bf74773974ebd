"""The histogram of lengths against the lengths of the lines themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import seekable as sk
from seekable.facts import length_histogram as room
from seekable.facts.histogram import lengths_in_bins
from seekable.nodes.sources.file_source import FileSource

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("at_once", [1, 7, 1 << 18])
@pytest.mark.parametrize("longest", [50, 300_000])
def test_each_line_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, longest: int
) -> None:
    monkeypatch.setattr(room, "_RECORDS_AT_ONCE", at_once)
    rng = np.random.default_rng(3)
    lines = [b"x" * int(length) + b"\n" for length in rng.integers(1, longest, 60)]
    for name, some in {"a": lines[:13], "b": [], "c": lines[13:14], "d": lines[14:]}.items():
        (tmp_path / f"{name}.txt").write_bytes(b"".join(some))
    node = sk.open(str(tmp_path / "*.txt")).node
    assert isinstance(node, FileSource)
    *_, found = room.length_histogram(node.files)
    lengths = np.array([len(line) for line in lines])
    assert (found.done, found.of, found.total_bytes) == (60, 60, int(lengths.sum()))
    assert (found.shortest, found.longest) == (lengths.min(), lengths.max())
    assert found.histogram is not None
    assert sum(found.histogram.counts) == 60
    model = lengths_in_bins(lengths)
    assert model is not None
    if longest == 50:
        assert found.histogram == model
        assert found.made_of == "exact, from the index"


def test_no_records_have_no_lengths(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    node = sk.open(str(tmp_path / "a.txt")).node
    assert isinstance(node, FileSource)
    *_, found = room.length_histogram(node.files)
    assert (found.done, found.histogram, found.document()["mean"]) == (0, None, None)
