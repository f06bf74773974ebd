"""What the tests of written streams share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tests.stream import functions

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seekable.writing.manifest import Written

FORMS = ["jsonl", "parquet"]

HIDDEN = {".seekable-write.json", ".seekable-write.lock", ".seekable-write.lanes"}


def write(stream: sk.Stream, folder: Path, form: str = "jsonl", **arguments: Any) -> Written:
    method = stream.write_parquet if form == "parquet" else stream.write_jsonl
    return method(folder, **arguments)


def shown(item: Any) -> dict[str, str]:
    return {"shown": functions.shown(item)}


def row(number: int) -> dict[str, Any]:
    return {"n": number, "text": f"text {number}", "ids": [number, number + 1]}


def parts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return none to three records, the more of them the higher the last digit."""
    return [{**record, "part": part} for part in range(record["n"] % 10 // 3)]


def uneven(count: int, lanes: int) -> sk.Stream:
    """Return a stream in which items wait, and whose lanes end unevenly."""
    numbers = sk.from_sequence(range(count), version="uneven")
    rows = numbers.stream(lanes=lanes, epochs=1).map(row).flatten(parts)
    return rows.shuffle(buffer=5, seed=3)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder that any other tool sees."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def check_whole(items: Iterable[Any], folder: Path, written: Written) -> None:
    """Compare what is in a folder with the items of a stream; nothing else may be there."""
    wanted = list(items)
    assert list(sk.open(folder)) == wanted
    assert written.rows == len(wanted)
    assert written.bytes == sum(os.path.getsize(path) for path in written.paths)
    assert [os.path.basename(path) for path in written.paths] == sorted(contents(folder))
    assert {path.name for path in folder.iterdir()} - {".seekable"} == contents(folder).keys() | HIDDEN
    assert os.listdir(folder / ".seekable-write.lanes") == ["states"]
