"""The data of the benchmarks: made once, always the same, kept in ``benchmarks/.data``."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), ".data")

_OLD = 1_700_000_000
"""When the files claim to have been made: what was indexed right after it was made would be indexed twice."""

_WRITE_BYTES = 8 << 20
"""The number of bytes written at a time. The page cache keeps what comes in small writes in small pieces, and
then reads it at half the speed; files that were read from a disk lie there in large ones."""

_SOURCES = ("web", "books", "code", "news", "wiki")


_FIELDS_BYTES = 1800
"""The bytes of the values of a record of many fields."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the data, and the numbers of rounds."""

    records: int
    """JSON lines of about 2.3 kB."""

    short_lines: int
    """JSON lines of about 100 bytes."""

    sources: int
    """Small files that the records are dealt to."""

    rounds: int
    """The number of rounds of a race."""

    trials: int
    """The number of timed restarts at each position."""

    converted: int
    """Records that are converted into the formats of other libraries."""

    large: int
    """Bytes, at least, of what two processes index."""

    opened: tuple[tuple[int, int], ...]
    """Files, and rows in all of them, that are opened with an index."""

    script_lines: int
    """The lines of a script of Kaldi that is opened with an index."""

    samples: int
    """The samples of tar files and the cuts of Shar, of about 20 kB each; a multiple of ten."""

    archives: int
    """The tar files that are opened with an index."""

    scale: tuple[int, int, int]
    """Files, records in each, and the ranks of a run that is planned."""


FULL = Sizes(
    records=200_000,
    short_lines=2_000_000,
    sources=500,
    rounds=9,
    trials=50,
    converted=50_000,
    large=4_200_000_000,
    opened=((1_000, 10_000_000), (100_000, 1_000_000)),
    script_lines=10_000_000,
    samples=10_000,
    archives=10_000,
    scale=(100_000, 10_000, 512),
)
QUICK = replace(
    FULL,
    records=40_000,
    short_lines=400_000,
    rounds=3,
    trials=10,
    converted=10_000,
    large=1_250_000_000,
    opened=((1_000, 1_000_000), (10_000, 100_000)),
    script_lines=1_000_000,
    samples=2_000,
    archives=2_000,
    scale=(10_000, 1_000, 512),
)


@dataclass(frozen=True, slots=True)
class Data:
    """The paths of the data files."""

    sizes: Sizes

    folder: str

    long: str
    """One file of all records."""

    short: str
    """One file of short lines."""

    halves: tuple[str, str]
    """The records in two files."""

    small: tuple[str, ...]
    """The records in many files."""


def make(sizes: Sizes, folder: str = FOLDER) -> Data:
    """Return the data of these sizes, made now unless it is there."""
    folder = os.path.join(folder, f"{sizes.records}-{sizes.short_lines}-{sizes.sources}")
    os.makedirs(folder, exist_ok=True)
    placed(os.path.join(os.path.dirname(folder), ".gitignore"), [b"*\n"])
    # Each in a folder of its own, because Forager indexes folders.
    long = os.path.join(folder, "long", "long.jsonl")
    short = os.path.join(folder, "short", "short.jsonl")
    if not os.path.exists(long):
        placed(long, _long_lines(sizes.records))
    if not os.path.exists(short):
        placed(short, _short_lines(sizes.short_lines))
    return Data(sizes, folder, long, short, _halves(long, sizes), dealt(long, folder, sizes, sizes.sources))


def as_installed(data: Data) -> dict[str, str]:
    """Return the environment of a process whose modules have bytecode, as an installation gives them.

    It lies in a folder of its own: this process may be told to write none, and what lies beside the sources
    may be of older ones. The first process writes it.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"PYTHONPYCACHEPREFIX": os.path.join(data.folder, "bytecode")}


def beginning(data: Data) -> str:
    """Return a file of the first records: those that other libraries get in their formats."""
    path = os.path.join(data.folder, f"first-{data.sizes.converted}", "first.jsonl")
    if not os.path.exists(path):
        with open(data.long, "rb") as lines:
            placed(path, itertools.islice(lines, data.sizes.converted))
    return path


def large(data: Data) -> tuple[str, tuple[str, ...]]:
    """Return one large file, which has the records several times, and as many links to a file with them."""
    times = -(-data.sizes.large // os.path.getsize(data.long))
    folder = os.path.join(data.folder, f"large-{times}")
    one = os.path.join(folder, "one", "one.jsonl")
    many = tuple(os.path.join(folder, "many", f"{i:04d}.jsonl") for i in range(times))
    if not os.path.exists(one):
        placed(one, _copies(data.long, times))
    os.makedirs(os.path.dirname(many[0]), exist_ok=True)
    for path in many:
        if not os.path.exists(path):
            os.link(data.long, path)
    return one, many


def numbered(data: Data, *, files: int, rows: int) -> str:
    """Return a folder of so many files with so many rows in all, each as small as a record can be."""
    folder = os.path.join(data.folder, f"numbered-{files}-{rows}")
    each = rows // files
    if os.path.exists(folder):
        return folder
    for i in range(files):
        lines = b"".join(b'{"id": %d}\n' % row for row in range(i * each, (i + 1) * each))
        placed(os.path.join(f"{folder}.new", f"{i % 100:02d}", f"{i:06d}.jsonl"), [lines])
    os.rename(f"{folder}.new", folder)
    return folder


def fields(data: Data, count: int) -> str:
    """Return a file of some 2 kB a record, in so many fields: ``text`` and others of as many characters."""
    path = os.path.join(data.folder, f"fields-{count}", "fields.jsonl")
    if not os.path.exists(path):
        random = np.random.default_rng(2)
        paragraphs = _paragraphs(random, count=500, words=_FIELDS_BYTES // count // 7)
        placed(path, _records_of_fields(random, paragraphs, records=data.sizes.converted, count=count))
    return path


def numbers(data: Data) -> tuple[str, str]:
    """Return a file of JSON lines and one of CSV: an id, three numbers, a flag, and a text with a quote."""
    paths = [os.path.join(data.folder, "numbers", name) for name in ("numbers.jsonl", "numbers.csv")]
    if not all(map(os.path.exists, paths)):
        random = np.random.default_rng(5)
        floats = random.random((data.sizes.converted, 2)).tolist()
        counts = random.integers(0, 1 << 40, data.sizes.converted).tolist()
        rows = [
            {"id": i, "x": x, "y": y, "n": n, "even": i % 2 == 0, "text": f'the "row", {i}'}
            for i, ((x, y), n) in enumerate(zip(floats, counts, strict=True))
        ]
        placed(paths[0], (json.dumps(row).encode() + b"\n" for row in rows))
        lines = (
            ",".join([*map(str, list(row.values())[:-1]), f'"the ""row"", {row["id"]}"']) for row in rows
        )
        placed(paths[1], (line.encode() + b"\n" for line in itertools.chain([",".join(rows[0])], lines)))
    return paths[0], paths[1]


def parquet_copies(data: Data) -> dict[str, str]:
    """Return Parquet files of the records, with two columns of numbers and one of few words beside."""
    kinds = {
        "large groups, snappy": (100_000, "snappy"),
        "large groups, zstd": (100_000, "zstd"),
        "small groups, zstd": (1_000, "zstd"),
    }
    found = {}
    for name, (group_rows, compression) in kinds.items():
        folder = os.path.join(data.folder, "parquet-" + name.replace(", ", "-").replace(" ", "-"))
        found[name] = os.path.join(folder, "part.parquet")
        if not os.path.exists(found[name]):
            os.makedirs(folder, exist_ok=True)
            _write_parquet(data.long, found[name], group_rows=group_rows, compression=compression)
    return found


def linked(path: str, copies: int) -> str:
    """Return the first of so many links to a file, in a folder of their own; the file itself if it is one."""
    if copies == 1:
        return path
    folder = f"{os.path.dirname(path)}-x{copies}"
    os.makedirs(folder, exist_ok=True)
    names = [os.path.join(folder, f"{number:04d}{os.path.splitext(path)[1]}") for number in range(copies)]
    for name in names:
        if not os.path.exists(name):
            os.link(path, name)
    return names[0]


def parquet_many(data: Data, *, files: int) -> str:
    """Return a folder of so many Parquet files with a row each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = os.path.join(data.folder, f"parquet-{files}")
    if os.path.exists(folder):
        return folder
    for i in range(files):
        below = os.path.join(f"{folder}.new", f"{i % 100:02d}")
        os.makedirs(below, exist_ok=True)
        path = os.path.join(below, f"{i:06d}.parquet")
        pq.write_table(pa.table({"id": [i], "text": [f"row {i}"]}), path)
        os.utime(path, (_OLD, _OLD))
    os.rename(f"{folder}.new", folder)
    return folder


def _write_parquet(lines: str, path: str, *, group_rows: int, compression: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(4)
    schema = pa.schema({"id": pa.int64(), "score": pa.float64(), "source": pa.string(), "text": pa.string()})
    with (
        open(lines, "rb") as file,
        pq.ParquetWriter(path + ".new", schema, compression=compression) as writer,
    ):
        while some := [json.loads(line) for line in itertools.islice(file, group_rows)]:
            columns = {name: [record[name] for record in some] for name in ("id", "source", "text")}
            table = pa.table({**columns, "score": random.random(len(some))}, schema=schema)
            writer.write_table(table, row_group_size=group_rows)
    os.utime(path + ".new", (_OLD, _OLD))
    os.replace(path + ".new", path)


def _copies(path: str, times: int) -> Iterator[bytes]:
    for _ in range(times):
        with open(path, "rb", buffering=0) as file:
            yield from iter(lambda: file.read(_WRITE_BYTES), b"")


def _halves(long: str, sizes: Sizes) -> tuple[str, str]:
    first, second = dealt(long, os.path.dirname(os.path.dirname(long)), sizes, 2)
    return first, second


def dealt(long: str, folder: str, sizes: Sizes, files: int) -> tuple[str, ...]:
    """Return the records of a file in so many files of a folder, as many in each."""
    paths = tuple(os.path.join(folder, f"in-{files}", f"{i:04d}.jsonl") for i in range(files))
    if all(map(os.path.exists, paths)):
        return paths
    each = sizes.records // files
    with open(long, "rb") as lines:
        for path in paths:
            placed(path, [next(lines) for _ in range(each)])
    return paths


def placed(path: str, lines: Iterable[bytes]) -> None:
    """Write a file in large pieces, under another name at first; it looks old."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb", buffering=_WRITE_BYTES) as file:
        file.writelines(lines)
    os.utime(path + ".new", (_OLD, _OLD))
    os.replace(path + ".new", path)


def _long_lines(count: int) -> Iterator[bytes]:
    """Yield records of 3 to 9 paragraphs of running text.

    There is nothing in it that JSON escapes: what is compared is how records are reached, and the more
    time their decoding takes, which all have to do, the less the rest shows.
    """
    random = np.random.default_rng(0)
    paragraphs = _paragraphs(random, count=5000, words=53)
    sizes = random.integers(3, 10, count)
    picks = random.integers(0, len(paragraphs), int(sizes.sum()))
    starts = np.cumsum(sizes) - sizes
    for i, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        text = " ".join(paragraphs[pick] for pick in picks[start : start + size].tolist())
        record = {"id": i, "source": _SOURCES[i % len(_SOURCES)], "text": text}
        yield json.dumps(record).encode() + b"\n"


def _short_lines(count: int) -> Iterator[bytes]:
    random = np.random.default_rng(1)
    paragraphs = [paragraph.encode() for paragraph in _paragraphs(random, count=5000, words=11)]
    picks = random.integers(0, len(paragraphs), count).tolist()
    for i, pick in enumerate(picks):
        yield b'{"id": %d, "text": "%s"}\n' % (i, paragraphs[pick])


def _records_of_fields(
    random: np.random.Generator, paragraphs: list[str], *, records: int, count: int
) -> Iterator[bytes]:
    names = [f"field{i}" for i in range(count - 1)]
    names.insert(count // 2, "text")
    for picks in random.integers(0, len(paragraphs), (records, count)).tolist():
        texts = (paragraphs[pick] for pick in picks)
        yield json.dumps(dict(zip(names, texts, strict=True))).encode() + b"\n"


def _paragraphs(random: np.random.Generator, *, count: int, words: int) -> list[str]:
    letters = random.integers(ord("a"), ord("z") + 1, (4000, 12), dtype=np.uint8)
    lengths = random.integers(2, 11, 4000)
    vocabulary = [bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)]
    chosen = random.integers(0, len(vocabulary), (count, words)).tolist()
    return [" ".join(vocabulary[word] for word in row) for row in chosen]
