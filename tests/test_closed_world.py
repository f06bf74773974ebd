"""Every node there is resumes exactly, wherever it is cut.

The world is closed: a new class of dataset fails here until a builder of it stands in the table.
"""

from __future__ import annotations

import gc
import io
import itertools
import json
import struct
import tarfile
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import thrift
from tests.concrete import node_classes
from tests.formats.shar.shar_folders import write_shar
from tests.induction import check_every_cut, check_in_a_new_process
from tests.nodes.token_data import write_pair
from tests.storage.compressing import compressed
from tests.testing.plugin_formats import Fixed

import seekable as sk
from seekable import kaldi
from seekable.formats.shar.shar_source import SharSource
from seekable.formats.tables.tables import TableSource
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tar.siblings import Siblings
from seekable.formats.tokens.token_source import TokenSource
from seekable.nodes.batch import Batch
from seekable.nodes.columns.cast import Cast, UnifyColumns
from seekable.nodes.columns.choose import DropColumns, Fill, SelectColumns, SourceColumn
from seekable.nodes.columns.partitions import Partitions
from seekable.nodes.columns.rename import Alias, Computed, MapColumns, Rename
from seekable.nodes.concat import Concat
from seekable.nodes.epoch import Epoch
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.files.row_source import RowSource
from seekable.nodes.filter import Filter
from seekable.nodes.flatten import FlattenNode
from seekable.nodes.interleave import Interleave
from seekable.nodes.join import Join
from seekable.nodes.map import Map, MapBatches
from seekable.nodes.mix import Mix
from seekable.nodes.repeat import Repeat
from seekable.nodes.select import Sample, Select
from seekable.nodes.sequence_source import SequenceSource
from seekable.nodes.shuffle import Shuffle
from seekable.nodes.slice import Slice
from seekable.nodes.sort import Sort
from seekable.nodes.split import Split, StableSplit
from seekable.nodes.windowed import WindowedShuffle
from seekable.nodes.without import WithHoles, Without
from seekable.nodes.zip import Zip
from seekable.order.positions import StridedRange
from seekable.order.remaining import Remaining
from seekable.packing.nodes.blend import MegatronBlend
from seekable.packing.nodes.packed_node import PackNode, WindowsNode
from seekable.resume.continued import Continued, OldSegment
from seekable.resume.from_description import rebuild
from seekable.resume.placeholders import PlaceholderMap, PlaceholderSource
from seekable.testing import assert_resumes_exactly

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seekable.nodes.node import Node

BATCH = 199
# Without a batch, with one, with a last batch of four records, and with one that is full.
SIZES = [0, 1, 5 * BATCH + 4, 5 * BATCH]
SOME = SIZES[2]
FEW = SOME if thrift.ALL else BATCH + 4

Builder = "Callable[[int, Path], sk.Dataset]"


def numbers(n: int, version: str = "numbers") -> sk.Dataset:
    return sk.from_sequence(range(n), version=version)


def shuffled(n: int, version: str = "numbers") -> sk.Dataset:
    return numbers(n, version).shuffle(seed=5)


def squared(record: int) -> int:
    return record * record


def drawn(record: int, rng: np.random.Generator) -> tuple[int, float]:
    return record, rng.random()


def all_squared(records: list[int]) -> list[int]:
    return [record * record for record in records]


def is_odd(record: int) -> bool:
    return record % 2 == 1


def mixed(n: int) -> sk.Dataset:
    """Mix two sources that last equally long."""
    part = -(-n // 3)
    return sk.mix([shuffled(n - part, "a"), shuffled(part, "b")], weights=[n - part, part], seed=3)


def blended(n: int) -> sk.Dataset:
    """Blend two sources of which not all is drawn."""
    return sk.Dataset(MegatronBlend((shuffled(n, "a")._node, numbers(n, "b")._node), (0.7, 0.3), n))


def blended_exhaustively(n: int) -> sk.Dataset:
    """Blend all of two sources, or of one if there is one record."""
    sizes = [n - n // 3, n // 3] if n > 1 else [n]
    parts = tuple(shuffled(size, f"part{number}")._node for number, size in enumerate(sizes))
    return sk.Dataset(MegatronBlend(parts, None, n))


def mixed_for_all(n: int) -> sk.Dataset:
    """Mix two sources one of which starts over before the other ends."""
    return sk.mix([shuffled(n, "a"), shuffled(n // 3 + 1, "b")], weights=[1, 1], seed=3, stop="all")


def in_blocks(n: int) -> sk.Dataset:
    """Return up to 16 blocks of unequal lengths."""
    edges = [n * i * i // 256 for i in range(17)]
    parts: list[sk.Dataset] = [numbers(n)[a:b] for a, b in itertools.pairwise(edges)]
    return sk.concat(parts)


def mixed_by_lanes(n: int) -> sk.Dataset:
    """Mix two sources of 4 and of 6 lanes."""
    part = -(-n // 3)
    parts = [numbers(n - part, "a").shuffle(5, window=1, lanes=4), numbers(part, "b").interleave(lanes=6)]
    return sk.mix(parts, weights=[n - part, part], seed=3)


def from_files(n: int, folder: Path) -> sk.Dataset:
    """Three files, the middle one empty."""
    for name, rows in (("a", range(n // 3)), ("b", range(0)), ("c", range(n // 3, n))):
        lines = [json.dumps({"id": row, "text": "x" * (row % 7)}) for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return sk.open(str(folder / "*.jsonl"))


def from_csv(n: int, folder: Path) -> sk.Dataset:
    """Two files with columns in another order, every third record over two lines."""
    for name, columns, rows in (("a", "id,text", range(n // 2)), ("b", "text,id", range(n // 2, n))):
        texts = ['"x\ny"' if row % 3 else "x" for row in rows]
        pairs = zip(rows, texts, strict=True)
        lines = [f"{row},{text}" if name == "a" else f"{text},{row}" for row, text in pairs]
        (folder / f"{name}.csv").write_text(
            "".join(f"{line}\n" for line in [columns, *lines]), encoding="utf-8"
        )
    return sk.open(folder)


def from_script(n: int, folder: Path) -> sk.Dataset:
    """A script of vectors in two archives, one of which is text."""
    holder = kaldi.find_holder("vector")
    lines = []
    for name, rows in (("a", range(n // 3)), ("b", range(n // 3, n))):
        with (folder / f"{name}.vectors").open("wb") as file:
            for row in rows:
                file.write(f"utt{row} ".encode())
                lines.append(f"utt{row} {file.name}:{file.tell()}\n")
                holder.write(file, np.arange(row % 5), binary=name == "a")
    (folder / "a.scp").write_text("".join(lines), encoding="utf-8")
    return sk.open(f"scp:{folder}/a.scp", format=sk.formats.Kaldi(holder="vector"))


def from_archives(n: int, folder: Path) -> sk.Dataset:
    """Three archives of vectors, the second without an entry."""
    holder = kaldi.find_holder("int32-vector")
    for name, rows in (("a", range(n // 3)), ("b", range(0)), ("c", range(n // 3, n))):
        with (folder / f"{name}.ark").open("wb") as file:
            for row in rows:
                file.write(f"utt{row} ".encode())
                holder.write(file, np.arange(row % 5), binary=bool(row % 2))
    return sk.open(f"ark:{folder}/*.ark", format=sk.formats.Kaldi(holder="int32-vector"))


def from_compressed(n: int, folder: Path) -> sk.Dataset:
    """Two compressed files, one of each kind, of several members and frames."""
    for kind, rows in (("gz", range(n // 3)), ("zst", range(n // 3, n))):
        lines = [json.dumps({"id": row}).encode() + b"\n" for row in rows]
        parts = [b"".join(lines[at : at + 300]) for at in range(0, max(len(lines), 1), 300)]
        (folder / f"{kind}.jsonl.{kind}").write_bytes(compressed(parts, "gz" if kind == "gz" else "zst"))
    return sk.open(folder)


def from_tables(n: int, folder: Path) -> sk.Dataset:
    """Three files of several groups, the middle one empty; the last lacks a column."""
    for name, rows in (("a", range(n // 3)), ("b", range(0)), ("c", range(n // 3, n))):
        columns = {"id": pa.array(rows, pa.int64()), "text": pa.array(["x" * (row % 7) for row in rows])}
        if name == "c":
            del columns["text"]
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=150)
    return sk.open(str(folder / "*.parquet"))


def from_rows(n: int, folder: Path) -> sk.Dataset:
    """Three files that a format of a package reads, the middle one empty."""
    for name, rows in (("a", range(n // 3)), ("b", range(0)), ("c", range(n // 3, n))):
        (folder / f"{name}.fixed").write_bytes(struct.pack(f"<{len(rows)}q", *(-row for row in rows)))
    return sk.open(str(folder / "*.fixed"), format=Fixed())


def from_archives_of_samples(n: int, folder: Path, **options: Any) -> sk.Dataset:
    """Three tar files, the middle one without a sample; samples of the last one differ in their fields."""
    for name, rows in (("a", range(n // 3)), ("b", range(0)), ("c", range(n // 3, n))):
        with tarfile.open(folder / f"{name}.tar", "w") as archive:
            for row in rows:
                fields = {"json": json.dumps({"id": row}), "txt": "x" * (row % 7)}
                if name == "c" and row % 3:
                    del fields["txt"]
                for field, text in fields.items():
                    member = tarfile.TarInfo(f"d/{row}.{field}")
                    member.size = len(text)
                    archive.addfile(member, io.BytesIO(text.encode()))
    return sk.open(folder, **options)


def from_shar(n: int, folder: Path, **options: Any) -> sk.Dataset:
    """Three shards, the middle one without a cut, with a field of payloads and one of languages."""
    write_shar(folder, [n // 3, 0, n - n // 3])
    return sk.open(folder, **options)


def from_sibling_archives(n: int, folder: Path, **options: Any) -> sk.Dataset:
    """Two sides of two tar files; samples of the second file of one side are in another order."""
    for side, field in (("a", "json"), ("b", "txt")):
        (folder / side).mkdir(exist_ok=True)
        for name, rows in (("0", range(n // 3)), ("1", range(n // 3, n))):
            with tarfile.open(folder / side / f"{name}.tar", "w") as archive:
                for row in rows if (side, name) != ("b", "1") else reversed(rows):
                    data = str(row).encode()
                    member = tarfile.TarInfo(f"{row}.{field}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
    return sk.open({"a": folder / "a", "b": folder / "b"}, **options)


def from_folders(n: int, folder: Path) -> sk.Dataset:
    """Three tables in folders of two keys, one of which lies in no folder of the second key."""
    places = ("year=2023/lang=de", "year=2023", "year=2024/lang=__HIVE_DEFAULT_PARTITION__")
    for number, place in enumerate(places):
        (folder / place).mkdir(parents=True, exist_ok=True)
        rows = range(n * number // 3, n * (number + 1) // 3)
        pq.write_table(pa.table({"id": pa.array(rows, pa.int64())}), folder / place / "a.parquet")
    return sk.open(folder, format=sk.formats.Tables(partitions="hive"))


def lines_from_folders(n: int, folder: Path) -> sk.Dataset:
    """Two files of lines in folders of one key."""
    for lang, rows in (("de", range(n // 3)), ("en", range(n // 3, n))):
        (folder / f"lang={lang}").mkdir(exist_ok=True)
        lines = "".join(f'{{"id": {row}}}\n' for row in rows)
        (folder / f"lang={lang}" / "a.jsonl").write_text(lines, encoding="utf-8")
    return sk.open(folder, format=sk.formats.Jsonl(partitions="hive"))


def unified(n: int, folder: Path) -> sk.Dataset:
    """The columns of tables, lines and dicts, as one dataset's."""
    part, parts = n // 3, [steady_dicts(n - 2 * (n // 3))]
    for name, build in (("tables", from_tables), ("lines", from_files)):
        (folder / name).mkdir(exist_ok=True)
        parts.append(build(part, folder / name))
    together = sk.concat(parts, columns="union").shuffle(seed=2)
    return together.rename({"*": {"n": "m"}}, missing="none", columns="union")


def dicts(n: int, version: str = "dicts") -> sk.Dataset:
    """Return dicts in an order that is another one in each epoch."""
    return steady_dicts(n, version).shuffle(seed=5)


def steady_dicts(n: int, version: str = "dicts") -> sk.Dataset:
    records = [{"id": row, "text": "x" * (row % 7), "n": None if row % 3 else row} for row in range(n)]
    return sk.from_sequence(records, version=version)


def as_file_says(n: int, folder: Path) -> sk.Dataset:
    return from_files(n, folder).rename({"a.*": {"text": "body"}, "*": {"id": "number"}})


def length_of_text(record: dict[str, str]) -> int:
    return len(record["text"])


def lengths_of_texts(records: list[dict[str, str]]) -> list[int]:
    return [len(record["text"]) for record in records]


def joined_twice(n: int) -> sk.Dataset:
    """Return pairs of which the right side has two for every key but, of an odd number, the last."""
    right = sk.from_sequence([{"id": row // 2, "other": row} for row in range(n)], version="right")
    return sk.join(steady_dicts(-(-n // 2)), right, on="id", how="left", duplicates="all", jobs=1)


def from_tokens(n: int, folder: Path, **options: Any) -> sk.Dataset:
    """Three files of documents, the middle one empty; every seventh document has no token."""
    for name, rows in (("a", range(n // 3)), ("b", range(0)), ("c", range(n // 3, n))):
        write_pair(folder / f"{name}.bin", [np.full(row % 7, row) for row in rows])
    return sk.open(str(folder / "*.bin"), format="tokens", **options)


def files_but_some(n: int, folder: Path) -> sk.Dataset:
    """Leave out most records."""
    made = from_files(n, folder)
    if n < 2:
        return sk.Dataset(Without(made._node, np.arange(0, dtype=np.int64)))
    return made.without([made.locate(row) for row in range(n) if row % 5])


BUILDERS: dict[type[Node], list[Callable[[int, Path], sk.Dataset]]] = {
    Alias: [lambda n, _: dicts(n).rename({"text": "body"}, keep=True)],
    Batch: [lambda n, _: shuffled(3 * n - 1 if n else 0).batch(3)],
    Cast: [lambda n, _: dicts(n).cast({"id": str, "n": "float32"})],
    Computed: [
        lambda n, _: dicts(n).map(length_of_text, column="length"),
        lambda n, _: dicts(n).map_batches(lengths_of_texts, size=7, column="length"),
    ],
    Concat: [lambda n, _: sk.concat([shuffled(n // 3, "a"), numbers(n - n // 3, "b")])],
    Continued: [lambda n, _: continued(n), lambda n, _: continued_in_lanes(n)],
    Partitions: [from_folders, lines_from_folders],
    PlaceholderMap: [lambda n, _: sk.Dataset(rebuild(numbers(n).map(squared)._node.describe(None)))],
    PlaceholderSource: [lambda n, _: sk.Dataset(rebuild(numbers(n)._node.describe(None)))],
    DropColumns: [lambda n, _: dicts(n).drop_columns(["text"])],
    Epoch: [lambda n, _: shuffled(n).epoch(2)],
    FileSource: [from_files, from_compressed, from_csv, from_script, from_archives],
    Fill: [lambda n, _: dicts(n).fill({"n": -1, "more": [1]})],
    Filter: [
        lambda n, _: numbers(2 * n).filter(is_odd),
        lambda n, folder: numbers(2 * n).filter(is_odd, save=folder / "kept.u64"),
        lambda n, _: steady_dicts(2 * n).filter(where=[("id", ">=", n)]),
        lambda n, folder: from_files(n, folder).filter(files="*.jsonl"),
    ],
    FlattenNode: [
        lambda n, _: flattened(n),
        lambda n, folder: flattened(n, save=folder / "items.u64"),
    ],
    Interleave: [lambda n, _: shuffled(n).interleave(lanes=7)],
    Join: [
        lambda n, _: sk.join(
            steady_dicts(n), steady_dicts(2 * n, "more").rename({"text": "t", "n": "m"}), on="id"
        ),
        lambda n, _: joined_twice(n),
    ],
    Map: [
        lambda n, _: shuffled(n).map(squared),
        lambda n, _: shuffled(n).map(drawn, rng=True, seed=4),
    ],
    MapColumns: [as_file_says],
    MapBatches: [lambda n, _: shuffled(n).map_batches(all_squared, size=7)],
    MegatronBlend: [lambda n, _: blended(n), lambda n, _: blended_exhaustively(n)],
    Mix: [lambda n, _: mixed(n), lambda n, _: mixed_for_all(n), lambda n, _: mixed_by_lanes(n)],
    PackNode: [
        lambda n, _: documents(n).pack(4, seed=3, method=sk.Packing(order="table"), jobs=1),
        lambda n, _: documents(n).pack(
            4, seed=3, method=sk.Packing(order="exchange"), labels="within", jobs=1
        ),
        lambda n, _: documents(n).pack(4, seed=3, fim=sk.Fim(0, 1, 2, 3), jobs=1),
        lambda n, _: sk.from_sequence([{"tokens": [1, 2, 3]}] * n).pack(5, seed=3, method="best_fit", jobs=1),
        lambda n, _: documents(n).pack(
            4, seed=3, method=sk.Packing(order="megatron"), next_token=True, jobs=1
        ),
    ],
    Rename: [lambda n, _: dicts(n).rename({"text": "body", "id": "text"})],
    Repeat: [lambda n, _: shuffled(n).repeat(2)],
    Sample: [lambda n, _: numbers(3 * n).sample(n, seed=9)],
    Select: [lambda n, _: shuffled(n + 5).select([(7 * i) % (n + 5) for i in range(n)])],
    SampleSource: [
        from_archives_of_samples,
        lambda n, folder: from_archives_of_samples(
            n, folder, columns=["txt", "__key__"], format=sk.formats.Tar(missing="none")
        ),
    ],
    SharSource: [from_shar, lambda n, folder: from_shar(n, folder, columns=["recording", "lang"])],
    SelectColumns: [lambda n, _: dicts(n).select_columns(["text", "id"])],
    SequenceSource: [lambda n, _: numbers(n)],
    Shuffle: [lambda n, _: shuffled(n), lambda n, _: numbers(n).shuffle(5, fixed=True)],
    Siblings: [from_sibling_archives],
    Slice: [
        lambda n, _: shuffled(2 * n + 3)[2 * n : 0 if n else 1 : -2],
        lambda n, _: endless().take(n),
    ],
    Sort: [
        lambda n, _: numbers(n).sort(lambda row: row % 7),
        lambda n, folder: steady_dicts(n).sort("text", reverse=True, save=folder / "order.u64"),
    ],
    SourceColumn: [lambda n, folder: from_files(n, folder).shuffle(3).source_column("file", row="row")],
    Split: [
        lambda n, _: numbers(2 * n + 3).split({"a": 2, "b": None, "c": n}, seed=6)["c"],
        lambda n, _: numbers(n).split({"a": 1.0}, seed=6)["a"],
    ],
    StableSplit: [lambda n, _: part_of(n)],
    WindowedShuffle: [
        lambda n, _: in_blocks(n).shuffle(5, window=2, lanes=3),
        lambda n, _: in_blocks(n).shuffle(5, window=3, lanes=7, fixed=True),
        lambda n, folder: from_files(n, folder).shuffle(5, window=1, lanes=2),
    ],
    RowSource: [from_rows],
    TableSource: [from_tables],
    TokenSource: [from_tokens],
    UnifyColumns: [unified],
    WithHoles: [lambda n, _: all_but_some(n, fill="hole")],
    Without: [lambda n, _: all_but_some(n, fill="replace"), files_but_some],
    WindowsNode: [lambda n, _: documents(n).windows(4, next_token=True, jobs=1)],
    Zip: [lambda n, _: sk.zip([shuffled(n), shuffled(n, "b").map(squared)])],
}


def all_but_some(n: int, fill: Any) -> sk.Dataset:
    """Leave out every seventh record, and of few records none."""
    rows = np.arange(9, n, 7, dtype=np.int64)
    return sk.Dataset((WithHoles if fill == "hole" else Without)(numbers(n)._node, rows))


def continued(n: int) -> sk.Dataset:
    """The second half of an older order first, and before it a row that was in flight."""
    rows = [StridedRange(0, min(1, n)), StridedRange(n // 2, n - n // 2)] if n else []
    segments = tuple(OldSegment(0, some) for some in rows)
    return sk.Dataset(Continued((numbers(n)._node,), shuffled(n)._node, segments, Remaining((), n // 2), n))


def continued_in_lanes(n: int) -> sk.Dataset:
    """Two older orders of which lanes have drawn unequally much, in place of one of which others have."""
    left = Remaining.after(0, [n // 9, n // 5, n // 7])
    pieces = [OldSegment(slot, rows) for slot in range(2) for rows in left.before(n)]
    olds = numbers(n).interleave(lanes=3)._node, shuffled(n).interleave(lanes=3)._node
    axis = Remaining.after(0, [n // 8, n // 300])
    return sk.Dataset(Continued(olds, shuffled(n)._node, tuple(pieces), axis, 3 * n))


def flattened(n: int, save: Path | None = None) -> sk.Dataset:
    """Return just n items: two or none of each record, and one of the last if n is odd."""
    return numbers(n).flatten(lambda row: twice(row, n), save=save, version=1, jobs=1)


def twice(row: int, n: int) -> list[int]:
    if row == n - 1 and n % 2:
        return [row]
    return [row, -row] if row % 2 == 0 else []


def documents(n: int) -> sk.Dataset:
    """Return lists of 0 to 8 tokens, just enough for ``n`` samples of 4 tokens and one more."""
    lengths: list[int] = []
    left = 4 * n + 1 if n else 0
    while left:
        lengths.append(min(left, len(lengths) * 5 % 9))
        left -= lengths[-1]
    return sk.from_sequence([{"tokens": list(range(row, row + size))} for row, size in enumerate(lengths)])


def endless() -> sk.Dataset:
    schedule = [(0, [2, 1]), (50, [1, 3])]
    return sk.mix([shuffled(30, "a"), shuffled(50, "b")], weights=schedule, seed=8)


def part_of(n: int) -> sk.Dataset:
    """Return a part of just n records."""
    rows = n
    while True:
        part = numbers(rows).split({"train": 0.9, "test": 0.1}, seed=6, stable=True)["train"]
        if len(part) == n:
            return part
        rows += n - len(part)


# No mixture is empty: a source of positive weight must have records.
NEVER_EMPTY = (MegatronBlend, Mix, PackNode, WindowsNode)


def sizes_of(turn: int, kind: type[Node], number: int) -> list[int]:
    """Return all sizes, or few small ones, and for one builder of each class a large one."""
    if thrift.ALL:
        return SIZES
    return [*SIZES[:2], *([SIZES[2 + turn % 2]] if (kind, number) in ONE_OF_EACH else [])]


ONE_OF_EACH = thrift.one_of_each(BUILDERS)

EACH = [(kind, number) for kind, builders in BUILDERS.items() for number in range(len(builders))]

CASES = [
    pytest.param(kind, number, n, id=f"{kind.__name__}-{number}-{n}")
    for turn, (kind, number) in enumerate(EACH)
    for n in sizes_of(turn, kind, number)
    if n or kind not in NEVER_EMPTY
]


def test_every_class_of_node_has_a_builder() -> None:
    missing = {kind.__name__ for kind in node_classes() - BUILDERS.keys()}
    assert not missing, f"put builders of {missing} into the table of this file"
    assert node_classes() == BUILDERS.keys()


def test_the_walk_finds_a_new_class() -> None:
    class Another(Shuffle):  # type: ignore[misc]  # nodes are final, and this one is made to be found
        __module__ = "seekable.nodes.another"

    assert Another in node_classes()
    del Another
    gc.collect()  # classes are parts of cycles
    assert node_classes() == BUILDERS.keys()


@pytest.mark.parametrize(("kind", "number", "n"), thrift.sample(CASES, of=4))
def test_builders_make_what_they_are_asked_for(kind: type[Node], number: int, n: int, tmp_path: Path) -> None:
    made = BUILDERS[kind][number](n, tmp_path)
    assert type(made._node) is kind
    # A mixture ends with the source that ends first, so it may be longer or shorter than asked for.
    assert len(made) == {"mix": len(made), "repeat": 2 * n}.get(kind.kind, n)
    assert bool(made) == bool(n)


@pytest.mark.parametrize("kind", NEVER_EMPTY)
def test_what_cannot_be_empty_refuses_to_be(kind: type[Node], tmp_path: Path) -> None:
    for build in BUILDERS[kind]:
        with pytest.raises(sk.errors.InvalidArgument):
            build(0, tmp_path)


@pytest.mark.parametrize(("kind", "number", "n"), CASES)
def test_three_epochs_resume_exactly_at_every_cut(
    kind: type[Node], number: int, n: int, tmp_path: Path
) -> None:
    dataset = BUILDERS[kind][number](n, tmp_path)
    assert type(dataset._node) is kind
    check_every_cut(lambda: loader_of(dataset, batch=BATCH if n > 1 else 1))


@pytest.mark.parametrize("kind", thrift.sample(BUILDERS, of=3))
def test_three_epochs_that_are_read_ahead_resume_exactly_at_every_cut(
    kind: type[Node], tmp_path: Path
) -> None:
    dataset = BUILDERS[kind][0](SOME, tmp_path)
    check_every_cut(lambda: loader_of(dataset, prefetch=2))


def test_a_new_process_resumes_exactly_at_every_cut(tmp_path: Path) -> None:
    """One process for all."""
    cases = []
    for kind, builders in BUILDERS.items():
        for number, build in enumerate(builders):
            folder = tmp_path / f"{kind.__name__}-{number}"
            folder.mkdir()
            cases.append((folder.name, partial(loader_of, build(FEW, folder))))
    check_in_a_new_process(cases)


@pytest.mark.parametrize("kind", thrift.sample(BUILDERS, of=2))
def test_single_records_resume_exactly(kind: type[Node], tmp_path: Path) -> None:
    dataset = BUILDERS[kind][0](7, tmp_path)
    check_every_cut(lambda: sk.Loader(dataset, batch_size=None, prefetch=0))


@pytest.mark.parametrize(("kind", "number"), thrift.sample(EACH, of=2))
def test_the_sources_of_a_run_say_what_comes_next(kind: type[Node], number: int, tmp_path: Path) -> None:
    dataset = BUILDERS[kind][number](17, tmp_path)
    loader = loader_of(dataset, batch=5)
    loader.skip_batches(1)
    sources = loader.sources()
    assert all(each["rows"] <= each["of"] for each in sources)
    if len(sources) == 1 and kind is not Continued:
        place = dataset.locate(5)
        while isinstance(place, list | tuple):
            place = place[0]
        assert sources[0]["row_offset"] == place.row
        assert place.path.endswith(sources[0]["shard"])
        assert sources[0]["consumed"] == (15 if kind is Batch else 5)


def loader_of(dataset: sk.Dataset, *, batch: int = BATCH, prefetch: int = 0) -> sk.Loader:
    return sk.Loader(dataset, batch_size=batch, collate=list, prefetch=prefetch)


def test_endless_data_resumes_exactly() -> None:
    dataset = endless()
    for steps in (None, 9):
        assert_resumes_exactly(
            lambda: sk.Loader(dataset, batch_size=7, collate=list, steps=steps),  # noqa: B023 - used at once
            cuts=[0, 1, 5, 9, 17, 20] if steps else [0, 3, 999, 1000],
            runs=3,
            new_process=False,
        )
