"""A plan says beforehand which bytes of which files reading it takes.

The world is closed: a new class of plan fails here until a dataset with such a plan stands in the table.
"""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.concrete import concrete_classes
from tests.formats.shar.shar_folders import write_shar
from tests.nodes.token_data import write_pair
from tests.test_closed_world import (
    from_archives,
    from_compressed,
    from_csv,
    from_files,
    from_folders,
    from_sibling_archives,
    from_tables,
)
from tests.thrift import sample

import seekable as sk
import seekable.nodes
from seekable.nodes.bases import InMemoryPlan
from seekable.nodes.columns.decode_column import DECODED
from seekable.nodes.graph import Plan
from seekable.storage.mapped import OpenFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seekable.storage.mapped import MappedFile

ROWS = 300
MOST_SLICED = 9

Bytes = dict[str, set[int]]
"""The numbers of bytes of each file."""


class Recorded:
    """A view that notes the bytes that are taken of it."""

    def __init__(self, view: Any, path: str, taken: Bytes) -> None:
        self._view, self._path, self._taken = view, path, taken

    def __getitem__(self, at: slice) -> Any:
        found = self._view[at]
        start = at.start or 0
        self._taken.setdefault(self._path, set()).update(range(start, start + len(found)))
        return found


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bytes]:
    """Return the bytes that are taken of files that are opened from now on."""
    noted: Bytes = {}
    opened = OpenFiles.open

    def recorded(self: OpenFiles, number: int, make: Callable[[], MappedFile]) -> MappedFile:
        mapped = opened(self, number, make)
        if not isinstance(mapped.view, Recorded):
            mapped.view = Recorded(mapped.view, mapped.path, noted)
        return mapped

    monkeypatch.setattr(OpenFiles, "open", recorded)
    yield noted
    DECODED.forget()


def texts(folder: Path) -> sk.Dataset:
    return from_files(ROWS, folder)


def columns(folder: Path) -> sk.Dataset:
    """Lines of JSON as columns."""
    lines = [f'{{"id": {row}, "text": "{"x" * (row % 9)}"}}\n' for row in range(ROWS)]
    (folder / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    return sk.open(folder, decode="numpy")


def tokens(folder: Path) -> sk.Dataset:
    """Two files of documents."""
    for name, rows in (("a", range(ROWS // 3)), ("b", range(ROWS // 3, ROWS))):
        write_pair(folder / f"{name}.bin", [np.full(5 + row % 7, row) for row in rows])
    return sk.open(str(folder / "*.bin"), format="tokens")


def tokens_with_masks(folder: Path) -> sk.Dataset:
    """A file of datatrove, with a file of masks beside it."""
    lengths = np.arange(ROWS) % 9
    total = int(lengths.sum())
    np.arange(total, dtype="<u2").tofile(folder / "0.ds")
    np.cumsum(lengths).astype("<u8").tofile(folder / "0.ds.index")
    (np.arange(total) % 2).astype("u1").tofile(folder / "0.ds.loss")
    (folder / "0.ds.metadata").write_text(f"gpt2|2\n{total}\n1 T", encoding="utf-8")
    return sk.open(folder)


def samples(folder: Path) -> sk.Dataset:
    """Two archives of samples of two members each, of which one is used."""
    for name in ("a", "b"):
        with tarfile.open(folder / f"{name}.tar", "w") as archive:
            for row in range(50):
                for suffix, size in (("txt", row % 9), ("json", 2)):
                    member = tarfile.TarInfo(f"{name}{row:03d}.{suffix}")
                    member.size = size
                    archive.addfile(member, io.BytesIO(b"1" * size))
    return sk.open(str(folder / "*.tar"))


def parquet(folder: Path, **options: Any) -> sk.Dataset:
    """Small pages, with dictionaries, and one column of lists."""
    rows = range(3000)
    table = pa.table(
        {
            "id": list(rows),
            "text": [f"text {row % 50}" for row in rows],
            "ids": [[row] * (row % 3) for row in rows],
        }
    )
    pq.write_table(
        table,
        folder / "a.parquet",
        row_group_size=1500,
        data_page_size=512,
        write_batch_size=50,
        write_page_index=True,
    )
    return sk.open(str(folder / "*.parquet"), **options)


def arrow(folder: Path) -> sk.Dataset:
    with pa.ipc.new_file(folder / "a.arrow", pa.schema({"id": pa.int64(), "text": pa.string()})) as file:
        for first in (0, 300):
            ids = list(range(first, first + 300))
            file.write_batch(pa.record_batch({"id": ids, "text": [str(row) * 3 for row in ids]}))
    return sk.open(str(folder / "*.arrow"))


def with_length(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "length": len(record)}


def batch_of_lengths(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [with_length(record) for record in records]


def halves(record: dict[str, Any]) -> list[Any]:
    return [record["id"], record["text"]]


def joined(folder: Path) -> sk.Dataset:
    left, right = folder / "left", folder / "right"
    for place, rows in ((left, range(80)), (right, range(40, 120))):
        place.mkdir()
        lines = [json.dumps({"id": str(row), place.name: "x" * (row % 5)}) for row in rows]
        (place / "a.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return sk.join(sk.open(left), sk.open(right), on="id", how="left", jobs=1)


def mixed(folder: Path) -> sk.Dataset:
    (folder / "lines").mkdir()
    (folder / "tables").mkdir()
    parts = [texts(folder / "lines"), parquet(folder / "tables", columns=["id"])]
    return sk.mix(parts, weights=[1, 1], seed=3)


def zipped(folder: Path) -> sk.Dataset:
    lines = texts(folder)
    return sk.zip([lines, lines.shuffle(1)])


def shar(folder: Path) -> sk.Dataset:
    write_shar(folder, [20, 0, 40])
    return sk.open(f"shar:{folder}")


CASES: dict[str, Callable[[Path], sk.Dataset]] = {
    "archives of Kaldi": lambda folder: from_archives(ROWS, folder),
    "arrow": arrow,
    "batch": lambda folder: texts(folder).batch(3),
    "cast": lambda folder: parquet(folder).cast({"id": str}),
    "columns": columns,
    "compressed": lambda folder: from_compressed(ROWS, folder),
    "csv": lambda folder: from_csv(ROWS, folder),
    "flatten": lambda folder: texts(folder).flatten(halves, jobs=1),
    "join": joined,
    "lines": texts,
    "map": lambda folder: texts(folder).map(with_length),
    "map_batches": lambda folder: texts(folder).map_batches(batch_of_lengths, size=7),
    "mix": mixed,
    "pack": lambda folder: tokens(folder).pack(64, seed=1, jobs=1),
    "pack of lines": lambda folder: parquet(folder).pack(64, seed=1, key="ids", jobs=1),
    "parquet": parquet,
    "parquet in folders": lambda folder: from_folders(ROWS, folder),
    "parquet, one column": lambda folder: parquet(folder, columns=["text"]),
    "rename": lambda folder: texts(folder).rename({"text": "body"}),
    "samples": samples,
    "samples, one field": lambda folder: samples(folder).select_columns(["json"]),
    "shar": shar,
    "shuffled": lambda folder: texts(folder).shuffle(3),
    "siblings": lambda folder: from_sibling_archives(60, folder),
    "tables": lambda folder: from_tables(ROWS, folder),
    "tokens": tokens,
    "tokens with masks": tokens_with_masks,
    "windows": lambda folder: tokens(folder).windows(8, jobs=1),
    "windows with masks": lambda folder: tokens_with_masks(folder).windows(8, align=["loss_mask"], jobs=1),
    "zip": zipped,
}

NOT_EXACT = {"csv", "parquet", "shar", "siblings", "samples", "cast", "pack of lines", "tables", "mix"}


def plans_of(plan: Any) -> set[type[Plan]]:
    """Return the classes of a plan and of all plans in it."""
    found: set[type[Plan]] = set()
    pending = [plan]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple):
            pending.extend(part)
        elif isinstance(part, Plan) or type(part).__name__.endswith("Plan"):
            if isinstance(part, Plan):
                found.add(type(part))
            assert is_dataclass(part)
            pending.extend(getattr(part, field.name) for field in fields(part))
    return found


def bytes_of(plan: Plan) -> Bytes:
    found: Bytes = {}
    for ranges in plan.ranges():
        columns = (ranges.which.tolist(), ranges.starts.tolist(), ranges.ends.tolist())
        for file, start, end in zip(*columns, strict=True):
            assert start <= end
            found.setdefault(ranges.files.mapped(file).path, set()).update(range(start, end))
    return {path: numbers for path, numbers in found.items() if numbers}


@pytest.mark.parametrize("name", sample(CASES, of=2))
def test_ranges_are_the_bytes_that_are_read(name: str, tmp_path: Path, taken: Bytes) -> None:
    dataset = CASES[name](tmp_path)
    size = len(dataset)
    for positions in (np.arange(0, size, 7), np.array([size - 1, 3, 3]), np.arange(min(size, 40))):
        DECODED.forget()
        plan = dataset._node.plan(positions.astype(np.int64))
        expected = bytes_of(plan)
        assert len(plan) > MOST_SLICED or parts_of(plan) == expected
        taken.clear()
        plan.read()
        for path, numbers in taken.items():
            assert numbers <= expected.get(path, set()), (
                f"{path}: {sorted(numbers - expected.get(path, set()))[:9]}"
            )
        if name not in NOT_EXACT:
            assert {path: numbers for path, numbers in taken.items() if numbers} == expected


def parts_of(plan: Plan) -> Bytes:
    """Return the bytes of slices of a plan."""
    found: Bytes = {}
    for at in range(0, len(plan), 3):
        for path, numbers in bytes_of(plan.slice(at, min(at + 3, len(plan)))).items():
            found.setdefault(path, set()).update(numbers)
    return found


def test_every_class_of_plan_is_read(tmp_path: Path) -> None:
    seen: set[type[Plan]] = set()
    for number, build in enumerate(CASES.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        dataset = build(folder)
        seen |= plans_of(dataset._node.plan(np.arange(40)))
    # By name: a dataclass with slots is made twice, and the first of the two may still be there.
    classes = {kind.__qualname__ for kind in concrete_classes(Plan) if not issubclass(kind, InMemoryPlan)}
    missing = classes - {kind.__qualname__ for kind in seen}
    assert not missing, f"put datasets with plans of {missing} into the table of this file"
