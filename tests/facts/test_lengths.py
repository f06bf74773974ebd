"""The histogram of lengths against the lengths of the lines themselves."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seekable as sk
from seekable.formats.tar.sample_source import SampleSource
from seekable.nodes.files.byte_source import FileSource
from seekable.viewer.facts import lengths as room
from seekable.viewer.facts.histogram import PERCENTILES, lengths_in_bins
from seekable.viewer.facts.lengths import record_lengths

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("longest", [10, 400, 60_000, 200_000])
def test_lengths_of_many_files_are_those_of_their_lines(tmp_path: Path, longest: int) -> None:
    rng = np.random.default_rng(longest)
    lengths = rng.integers(1, longest, size=500, endpoint=True)
    for number, some in enumerate(np.split(lengths, [1, 1, 250])):
        (tmp_path / f"{number}.txt").write_bytes(b"".join(b"x" * (length - 1) + b"\n" for length in some))
    source = sk.open(tmp_path)._node
    assert isinstance(source, FileSource)
    found = record_lengths(source.files)
    assert found is not None
    assert (found.mean, found.shortest, found.longest) == (lengths.mean(), lengths.min(), lengths.max())
    expected = np.percentile(lengths, PERCENTILES, method="inverted_cdf")
    got = np.array([found.percentiles[percent] for percent in PERCENTILES])
    assert (got <= expected).all()
    assert (expected - got <= expected / (8192)).all()
    if longest < 1 << 16:
        assert (got == expected).all()


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
    node = sk.open(str(tmp_path / "*.txt"))._node
    assert isinstance(node, FileSource)
    *_, found = room.length_histogram(node)
    lengths = np.array([len(line) for line in lines])
    assert (found.done, found.of, found.total) == (60, 60, int(lengths.sum()))
    assert (found.shortest, found.longest) == (lengths.min(), lengths.max())
    assert found.histogram is not None
    assert sum(found.histogram.counts) == 60
    model = lengths_in_bins(lengths)
    assert model is not None
    percentiles = {each: int(np.percentile(lengths, each, method="inverted_cdf")) for each in (50, 95, 99)}
    assert found.percentiles == pytest.approx(percentiles, rel=1e-3)
    if longest == 50:
        assert found.percentiles == percentiles
        assert found.histogram == model
        assert found.made_of == "exact, from the index"


def test_no_records_have_no_lengths(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    node = sk.open(str(tmp_path / "a.txt"))._node
    *_, found = room.length_histogram(node)
    assert (found.done, found.histogram, found.document()["mean"]) == (0, None, None)
    assert "p50" not in found.document()


def test_documents_of_tokens_have_lengths_in_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join("x" * length for length in range(1, 30)))
    documents = sk.tokenize(
        str(tmp_path / "a.txt"), to=tmp_path / "tokens", tokenizer=lambda text: [*text.encode()]
    )
    *_, found = room.length_histogram(documents._node)
    assert (found.unit, found.total, found.longest) == ("tokens", sum(range(1, 30)), 29)
    assert found.histogram == lengths_in_bins(np.arange(1, 30))


def test_tables_have_no_lengths(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "a.parquet")
    node = sk.open(tmp_path / "a.parquet")._node
    assert not room.has_lengths(node)
    with pytest.raises(sk.errors.InvalidArgument, match="the index has no lengths"):
        next(room.length_histogram(node))


def test_samples_of_archives_have_the_lengths_of_info(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for number in range(9):
            member = tarfile.TarInfo(f"{number}.txt")
            member.size = 400 * number
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    node = sk.open(tmp_path / "a.tar")._node
    assert isinstance(node, SampleSource)
    *_, found = room.length_histogram(node)
    lengths = record_lengths(node.files)
    assert lengths is not None
    assert (found.mean, found.longest, found.percentiles) == (
        lengths.mean,
        lengths.longest,
        lengths.percentiles,
    )
