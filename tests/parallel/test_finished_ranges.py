"""Work that did not come to its end goes on where it ended: nothing that was finished is done again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable.errors import WorkerDied
from seekable.parallel.map_ranges import FinishedRanges

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 600


class Dying:
    """A function of a record that breaks off once, as the death of a worker does, and counts its calls."""

    def __init__(self, made: Callable[[Any], Any]) -> None:
        self.made, self.calls, self.has_died = made, 0, False

    def __call__(self, record: Any) -> Any:
        if record["id"] == 400 and not self.has_died:
            self.has_died = True
            raise WorkerDied("a worker process died")
        self.calls += 1
        return self.made(record)


@pytest.fixture
def data(tmp_path: Path) -> sk.Dataset:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"id": {row}}}\n' for row in range(ROWS)))
    return sk.open(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        ("filter", [row for row in range(ROWS) if row % 3]),
        ("flatten", [row for row in range(ROWS) for _ in range(row % 3)]),
        ("sort", sorted(range(ROWS), key=lambda row: (row * 7 % ROWS, row))),
        ("sort by text", sorted(range(ROWS), key=lambda row: f"{row * 7 % ROWS}")),
        ("keys", list(range(ROWS))),
    ],
)
def test_finished_ranges_are_kept(data: sk.Dataset, tmp_path: Path, made: str, rows: list[int]) -> None:
    functions: dict[str, Callable[[Any], Any]] = {
        "filter": lambda record: record["id"] % 3,
        "flatten": lambda record: [record["id"]] * (record["id"] % 3),
        "sort": lambda record: record["id"] * 7 % ROWS,
        "sort by text": lambda record: str(record["id"] * 7 % ROWS),
        "keys": lambda record: record["id"],
    }
    function, save = Dying(functions[made]), tmp_path / "kept.u64"

    def find() -> sk.Dataset:
        if made == "keys":
            return sk.open(tmp_path / "a.jsonl", key=function, version="1")
        return getattr(data, made.partition(" ")[0])(function, save=save, version="1", jobs=1)  # type: ignore[no-any-return]

    with pytest.raises(WorkerDied):
        find()
    before = function.calls
    found = find()
    assert function.calls - before < ROWS - 100
    assert not list(tmp_path.rglob("*.part"))
    if made == "keys":
        assert found.key(17) == {"id": 17}
    else:
        assert [each if isinstance(each, int) else each["id"] for each in found] == rows


def test_ranges_of_something_else_or_torn_ones_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.part"
    with FinishedRanges(str(path), of="one") as kept:
        for stop in (1, 2):
            kept.add(stop, np.arange(stop))
    whole = path.read_bytes()
    for damaged, ends in ((whole[:-1], [1]), (whole[:-1] + b"x", [1]), (whole + b"12", [1, 2]), (b"", [])):
        path.write_bytes(damaged)
        with FinishedRanges(str(path), of="one") as kept:
            assert [stop for stop, _ in kept.read()] == ends
            kept.add(9, {"a": "b"})
            assert [stop for stop, _ in kept.read()] == [*ends, 9]
    with FinishedRanges(str(path), of="other") as kept:
        assert not list(kept.read())
