"""Fuzzing CSV, against Python's csv module, and Arrow, against itself undamaged."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from tests.formats.arrow.tables import batch, written
from tests.formats.arrow.test_damage import read_all
from tests.formats.splitter import BOM

if TYPE_CHECKING:
    import random

    from tests.formats.arrow.tables import Codec, Kind


def csv_records(data: bytes, broken: object) -> list[Any]:
    """Return the records of a file as csv reads them, what is broken replaced.

    In Latin-1 every byte is a character, so that what is no UTF-8 breaks its own record only.
    """
    text = data.removeprefix(BOM).decode("latin-1")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    if not rows:
        return []
    header, *rows = rows
    names = decoded(header)
    found = [record(names, decoded(row), broken) for row in rows]
    if found and is_torn(text):
        found[-1] = broken
    return found


def record(names: list[str] | None, row: list[str] | None, broken: object) -> Any:
    if names is None or row is None or len(row) != len(names) or len(set(names)) < len(names):
        return broken
    return dict(zip(names, row, strict=True))


def decoded(row: list[str]) -> list[str] | None:
    try:
        return [field.encode("latin-1").decode() for field in row]
    except UnicodeDecodeError:
        return None


def is_torn(text: str) -> bool:
    """Tell, character by character, whether a text ends within a quoted field."""
    state = "start"
    for character in text:
        if state == "quoted":
            state = "closed" if character == '"' else "quoted"
        elif character in ",\r\n":
            state = "start"
        elif character == '"' and state in ("start", "closed"):
            state = "quoted"
        else:
            state = "plain"
    return state == "quoted"


def arrow(rng: random.Random) -> None:
    """Damage a file of Arrow: all that can be read of it can be, and nothing ends the process."""
    kind: Kind = rng.choice(["file", "stream"])
    codec: Codec = rng.choice([None, "lz4", "zstd"])
    seeds = [rng.randrange(100) for _ in range(rng.randrange(1, 4))]
    if kind == "file":  # in which a dictionary cannot be replaced
        seeds = [2 * seed for seed in seeds]
    batches = [batch(rng.randrange(20), seed) for seed in seeds]
    data = bytearray(written(batches, kind, codec))
    assert read_all(bytes(data)) == [row for each in batches for row in each.to_pylist()]
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(data))
        how = rng.random()
        if how < 0.5:
            data[at] ^= 1 << rng.randrange(8)
        elif how < 0.8:
            wild = rng.choice([b"\xff" * 8, bytes(8), b"\xff" * 3 + b"\x7f", rng.randbytes(8)])
            data[at : at + len(wild)] = wild
        else:
            del data[at : at + rng.choice([1, 8, len(data)])]
        if not data:
            break
    read_all(bytes(data))
