"""What is fuzzed: readers of all formats, the index, caches, states, pipeline files, and pipelines.

A target is given a folder and a source of randomness, and raises AssertionError where seekable differs from a
model that is too simple to be wrong, or raises anything that is not a SeekableError.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.format_cases import CASES
from tests.formats.splitter import lines
from tests.fuzz import caches, documents, formats, kaldi, tables
from tests.fuzz.corpus import CSV_PIECES, PIECES, made, mutated
from tests.fuzz.parquet import parquet
from tests.fuzz.tar import tar
from tests.stream import laws
from tests.stream.graphs import streams

import seekable as sk

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

BROKEN = object()
"""Stands where a record must be refused."""


def jsonl(folder: Path, rng: random.Random) -> None:
    """Compare records of JSON lines with Python's json on the lines of a plain splitter."""
    written = write(folder, rng, ".jsonl")
    compare(folder, "jsonl", [parsed(line) for data in written for line in lines(data, keep_blank=False)])


def text(folder: Path, rng: random.Random) -> None:
    """Compare records of text with the lines of a plain splitter."""
    written = write(folder, rng, ".txt")
    compare(folder, "text", [decoded(line) for data in written for line in lines(data, keep_blank=True)])


def csv(folder: Path, rng: random.Random) -> None:
    """Compare records of CSV with those of Python's csv."""
    written = write(folder, rng, ".csv", CSV_PIECES)
    compare(folder, "csv", [record for data in written for record in tables.csv_records(data, BROKEN)])


def a_format(_: Path, rng: random.Random) -> None:
    """Damage the data of any format, before it is indexed."""
    formats.data(CASES[rng.choice([*CASES])], rng)


def an_index(_: Path, rng: random.Random) -> None:
    """Damage the index of any format."""
    formats.index(CASES[rng.choice([*CASES])], rng)


def arrow(_: Path, rng: random.Random) -> None:
    """Damage files of Arrow."""
    tables.arrow(rng)


def grown(folder: Path, rng: random.Random) -> None:
    """Change files between openings: what is open says so, what is opened again is right."""
    write(folder, rng, ".txt")
    held = opened(folder, "text")
    for _ in range(rng.randrange(1, 4)):
        name = rng.choice(sorted(path.name for path in folder.glob("*.txt")))
        (folder / name).write_bytes(mutated(rng, (folder / name).read_bytes()))
        if rng.random() < 0.3:
            write(folder, rng, ".txt")
    for row in range(len(held) if held is not None else 0):
        refused_or_whole(held, row)
    files = sorted(folder.glob("*.txt"))
    wanted = [decoded(line) for path in files for line in lines(path.read_bytes(), keep_blank=True)]
    compare(folder, "text", wanted)


def damaged(folder: Path, rng: random.Random) -> None:
    """Damage the index: it is rebuilt or refused, and never gives other records."""
    written = write(folder, rng, ".txt")
    if opened(folder, "text") is None:
        return
    for path in sorted((folder / ".seekable").iterdir()):
        if rng.random() < 0.5:
            data = path.read_bytes()
            # Offsets are trusted by their length: that they are still what was written is for verify to say.
            cut = path.suffix == ".u64" and data
            path.write_bytes(data[: rng.randrange(len(data))] if cut else mutated(rng, data))
    compare(folder, "text", [decoded(line) for data in written for line in lines(data, keep_blank=True)])


def pipelines(_: Path, rng: random.Random) -> None:
    """Compare a stream of stages that are drawn with its model, and cut it anywhere."""
    case = seed(rng.getrandbits(64))(one_pipeline)
    case()


@settings(
    max_examples=3,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(streams(), st.data())
def one_pipeline(stream: sk.Stream, data: st.DataObject) -> None:
    laws.check(stream, lambda least, most: data.draw(st.integers(least, most)))


TARGETS: dict[str, Callable[[Path, random.Random], None]] = {
    "jsonl": jsonl,
    "text": text,
    "csv": csv,
    "arrow": arrow,
    "grown": grown,
    "damaged": damaged,
    "pipelines": pipelines,
    "parquet": parquet,
    "kaldi-objects": kaldi.objects,
    "kaldi-tables": kaldi.tables,
    "tar": tar,
    "formats": a_format,
    "indexes": an_index,
    "caches": caches.caches,
    "states": documents.states,
    "saved states": documents.saved_states,
    "pipeline files": documents.pipeline_files,
}


def write(folder: Path, rng: random.Random, suffix: str, of: tuple[bytes, ...] = PIECES) -> list[bytes]:
    """Write one to three files that look old, and return what is in them."""
    written = []
    for number in range(rng.randrange(1, 4)):
        path = folder / f"{number}{suffix}"
        data = made(rng, of)
        path.write_bytes(data)
        os.utime(path, ns=(10**18, 10**18 + rng.randrange(10**9)))
        written.append(data)
    return written


def opened(folder: Path, form: str) -> sk.Dataset | None:
    """Open the folder; None if a file is refused as no text, which is its right."""
    try:
        return sk.open(folder, format=form)
    except sk.errors.UnsupportedFormat:
        return None


def compare(folder: Path, form: str, wanted: list[Any]) -> None:
    """Compare all records, one by one and together."""
    ds = opened(folder, form)
    if ds is None:
        return
    assert len(ds) == len(wanted), (len(ds), len(wanted))
    for row, record in enumerate(wanted):
        assert same(read(ds, row), record), (row, read(ds, row), record)
    good = [row for row, record in enumerate(wanted) if record is not BROKEN]
    together = ds[good]
    for row, record in zip(good, together, strict=True):
        assert same(record, wanted[row]), (row, record, wanted[row])
    holes = sk.open(folder, format=form, errors=lambda _: sk.HOLE)
    assert [record is sk.HOLE for record in holes] == [record is BROKEN for record in wanted]


def read(ds: sk.Dataset, row: int) -> Any:
    """Return a record, or that it is refused where it lies."""
    try:
        return ds[row]
    except sk.CorruptRecord as error:
        told = error
    place = ds.locate(row)
    assert (told.path, told.row, told.offset) == (place.path, place.row, place.offset)
    return BROKEN


def refused_or_whole(held: sk.Dataset | None, row: int) -> None:
    """Read from a dataset whose files may have changed: an error of ours, or some text."""
    assert held is not None
    with contextlib.suppress(sk.IndexStale, sk.CorruptRecord):
        assert isinstance(held[row], str)


def parsed(line: bytes) -> Any:
    """Return what Python's json makes of a line."""
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return BROKEN


def decoded(line: bytes) -> Any:
    """Return a line as text."""
    try:
        return line.decode("utf-8")
    except ValueError:
        return BROKEN


def same(a: Any, b: Any) -> bool:
    """Compare records as JSON, where NaN is NaN and 1 is not 1.0."""
    if a is BROKEN or b is BROKEN:
        return a is b
    return json.dumps(a) == json.dumps(b)
