"""Where a record comes: by inverses, not by looking."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.dataset.common import endless, flow, numbers

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

PLACE = "<builtins.range>"


def test_positions_are_absolute_and_sorted() -> None:
    ds = numbers(9).shuffle(seed=1)
    order = flow(ds, 27)
    for epoch in range(3):
        records = order[9 * epoch : 9 * epoch + 9]
        for row in range(9):
            assert ds.find(PLACE, row, epoch=epoch) == [9 * epoch + records.index(row)]


def test_other_places_and_rows_are_not_found() -> None:
    assert numbers(9).find("<builtins.list>", 3) == []
    assert numbers(9).find(PLACE, 9) == []
    assert numbers(9).take(3).find(PLACE, 5) == []
    # Over the ends of epochs too, where a row that was left out looks like one of the next epoch.
    for part in (numbers(9).take(3), numbers(9).skip(6), numbers(9)[::2], numbers(9).select([1, 3])):
        for row in range(9):
            wanted = [position for position in range(20) if flow(part, 20)[position] == row]
            assert [p for p in part.repeat(20).find(PLACE, row) if p < 20] == wanted
    assert numbers(0).find(PLACE, 0) == []


def test_of_a_repetition_every_time_is_found() -> None:
    ds = numbers(9).shuffle(seed=1).repeat(3)
    found = ds.find(PLACE, 4, epoch=2)
    assert len(found) == 3
    assert [ds._node.record(position) for position in found] == [4, 4, 4]
    assert all(54 <= position < 81 for position in found)


def test_of_endless_data_the_epoch_is_the_sources() -> None:
    ds = endless(10)
    records = flow(ds, 400)
    for epoch in range(3):
        place = [position for position, record in enumerate(records) if record == 7][epoch]
        assert ds.find(PLACE, 7, epoch=epoch)[:1] == [place]


def test_the_cost_does_not_grow_with_the_number_of_records() -> None:
    ds = numbers(10**12, "far").shuffle(seed=1).map(str).batch(3)
    (position,) = ds.find("<builtins.range far>", 123_456_789, epoch=5)
    assert "123456789" in ds._node.record(position)


def test_the_cost_of_a_part_does_not_grow_with_the_epoch_that_it_is_part_of() -> None:
    """One in a million epochs of a repetition is searched, and not the million."""
    ds = numbers(10**6, "far").shuffle(seed=1).repeat(10**8)
    part = ds.skip(10**13).take(10**6)
    place = ds.locate(10**13 + 7)
    assert part.find(place.path, place.row) == [7]
    backwards = ds[10**13 + 100 : 10**13 : -3]
    assert backwards.find(place.path, place.row) == [31]


def test_a_row_that_comes_too_often_to_list_is_refused() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="more than 10,000,000 positions"):
        numbers(3).repeat(10**9).find(PLACE, 1)


def test_files_are_found_by_any_path_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("x\ny\nz\n")
    ds = sk.open(str(tmp_path / "*.txt")).shuffle(seed=2)
    position = next(i for i in range(6) if ds.locate(i).path.endswith("b.txt") and ds.locate(i).row == 2)
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "b.txt", "b.txt", os.path.join(".", "b.txt")):
        assert ds.find(path, 2) == [position]
    assert ds.find("c.txt", 2) == ds.find("b.txt", 3) == []


@pytest.mark.parametrize(
    ("row", "epoch", "message"),
    [(-1, 0, r"row must be at least 0 \(got -1\)"), (0, -1, r"epoch must be at least 0 \(got -1\)")],
)
def test_bad_arguments_are_named(row: int, epoch: int, message: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=message):
        numbers(3).find(PLACE, row, epoch=epoch)
