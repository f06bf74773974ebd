"""A run that is resumed by rows leaves out what the present pipeline leaves out, from the begun epoch on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

OLD, MORE = {2, 5, 11}, {3, 30, 31}


def write(folder: Path, names: str) -> None:
    for name in names:
        first = 100 * (ord(name) - ord("a"))
        lines = "".join(f'{{"id": {first + row}}}\n' for row in range(40))
        if not (folder / f"{name}.jsonl").exists():
            (folder / f"{name}.jsonl").write_text(lines)


def dataset(folder: Path, out: set[int], *, fill: Any = "replace", seed: int = 1) -> sk.Dataset:
    made = sk.open(folder).shuffle(seed=seed)
    return made.without([("b.jsonl", row) for row in out], fill=fill) if out else made


def loader_of(dataset: sk.Dataset) -> sk.Loader:
    return sk.Loader(dataset, batch_size=8, collate=list, epochs=2)


def ids(loader: sk.Loader, batches: int | None = None) -> list[int]:
    found: list[int] = []
    for number, batch in enumerate(loader, 1):
        found += [record["id"] for record in batch]
        if number == batches:
            break
    return found


@pytest.mark.parametrize(
    ("old", "old_fill", "new", "fill"),
    [
        (set(), "replace", MORE, "replace"),
        (OLD, "replace", OLD | MORE, "replace"),
        (OLD, "hole", OLD | MORE, "hole"),
        (OLD, "hole", MORE, "replace"),
        (OLD, "replace", set(), "replace"),
    ],
)
def test_what_is_left_of_the_epoch_has_the_old_order_without_the_rows(
    old: set[int], old_fill: Any, new: set[int], fill: Any, tmp_path: Path
) -> None:
    write(tmp_path, "bc")
    before = loader_of(dataset(tmp_path, old, fill=old_fill))
    ids(before, 4)
    state = json.loads(json.dumps(before.state_dict()))
    whole = ids(loader_of(dataset(tmp_path, old, fill=old_fill)))
    write(tmp_path, "a")  # A new file before the old ones: all rows have other numbers.
    resumed = loader_of(dataset(tmp_path, new, fill=fill, seed=2))
    resumed.load_state_dict(state, resume="rows")
    again = json.loads(json.dumps(resumed.state_dict()))
    found = ids(resumed)
    assert not {100 + row for row in new} & set(found)
    if old_fill == fill == "replace":
        begun = whole[32:80]  # After four of ten batches of 8 records.
        assert not {100 + row for row in new | old} & set(found[:48])
        moved = [(was, one) for was, one in zip(begun, found, strict=False) if was != one]
        assert len(moved) < 12
        if not old:  # Just the rows that are new in the list have others in their places.
            assert {was for was, _ in moved} <= {100 + row for row in new}
        assert set(range(40)) <= set(found[48:])
    twice = loader_of(dataset(tmp_path, new, fill=fill, seed=2))
    twice.load_state_dict(again, resume="rows")
    assert ids(twice) == found
