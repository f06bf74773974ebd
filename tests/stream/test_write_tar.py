"""A stream as tar files: the samples are the items in the order of slots, however written."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.dataset.test_write_tar import by_tarfile, contents, entries, members_of, sample
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.thrift import sample as sample_of
from tests.thrift import some, wider

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seekable.writing.manifest import Written


def parts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return none to three samples, the more of them the higher the last digit."""
    return [
        {**record, "__key__": f"{record['__key__']}-{part}"} for part in range(record["json"]["n"] % 10 // 3)
    ]


def uneven(count: int, lanes: int) -> sk.Stream:
    """Return a stream in which items wait, and whose lanes end unevenly."""
    rows = sk.from_sequence(range(count), version="uneven").stream(lanes=lanes, epochs=1)
    return rows.map(sample).flatten(parts).shuffle(buffer=5, seed=3)


@pytest.mark.parametrize("lanes", [1, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 7, some(200, of=2)])
def test_none_one_and_many_items(count: int, lanes: int, tmp_path: Path) -> None:
    stream = uneven(count, lanes)
    written = stream.write_tar(tmp_path / "out", rows_per_file=50, jobs=1)
    found = [entry for path in written.paths for entry in entries(path)]
    assert found == [member for item in stream for member in members_of(item)]
    assert os.path.basename(written.paths[0]) == "part-00000.tar"
    assert [os.path.basename(path) for path in written.paths] == sorted(contents(tmp_path / "out"))


def test_the_same_bytes_whoever_does_it_and_in_one_file(tmp_path: Path) -> None:
    stream = uneven(200, 3)
    stream.write_tar(tmp_path / "one", rows_per_file=50, jobs=1)
    with ThreadPoolExecutor(2) as threads:
        # Of the formats, lines of JSON are written by processes in each run of the tests.
        ways: list[dict[str, Any]] = [{"executor": threads}, {"jobs": 2}]
        for number, way in enumerate(sample_of(ways, of=2)):
            stream.write_tar(tmp_path / str(number), rows_per_file=50, **way)
            assert contents(tmp_path / str(number)) == contents(tmp_path / "one")
    (path,) = stream.write_tar(tmp_path / "one.tar", jobs=1).paths
    members = [member for item in stream for member in members_of(item)]
    assert (tmp_path / "one.tar").read_bytes() == by_tarfile(members)
    assert path == str(tmp_path / "one.tar")


@pytest.mark.parametrize("lanes", [1, 3])
def test_items_without_keys_have_the_numbers_of_their_slots(lanes: int, tmp_path: Path) -> None:
    numbers = sk.from_sequence(range(70)).stream(lanes=lanes, epochs=1)
    stream = numbers.map(lambda number: sk.HOLE if number % 10 == 3 else {"txt": str(number)})
    written = stream.write_tar(tmp_path, rows_per_file=25, jobs=1)
    names = [[name for name, _ in entries(path)] for path in written.paths]
    assert [each[0] for each in names] == ["000000000.txt", "000000025.txt", "000000050.txt"]
    assert all(each == sorted(set(each)) for each in names)
    assert (written.rows, written.holes) == (63, 7)


@pytest.mark.parametrize("lanes", [1, 3])
def test_an_item_that_is_no_sample_is_named(lanes: int, tmp_path: Path) -> None:
    numbers = sk.from_sequence(range(70)).stream(lanes=lanes, epochs=1)
    stream = numbers.map(
        lambda number: {"txt": {number}} if number == 33 else {"txt": str(number)}, version=1
    )
    with pytest.raises(sk.errors.WrongType, match=r"with token .* cannot be written as tar: the field 'txt'"):
        stream.write_tar(tmp_path, rows_per_file=10, jobs=1)


@pytest.mark.parametrize("lanes", [1, 3])
def test_items_in_a_row_with_one_key_are_refused(lanes: int, tmp_path: Path) -> None:
    numbers = sk.from_sequence(range(30)).stream(lanes=lanes, epochs=1)
    stream = numbers.map(lambda number: {"__key__": f"k{min(number, 20)}", "txt": ""}, version=1)
    with pytest.raises(sk.errors.WrongType, match="the record before has the same key 'k20'"):
        stream.write_tar(tmp_path, rows_per_file=10, jobs=1)


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def overwrite(folder: Path, lanes: int, jobs: int) -> Written:
    return uneven(60, lanes).write_tar(folder, rows_per_file=20, jobs=jobs, overwrite=True)


def check_after_a_kill(folder: Path, lanes: int) -> None:
    overwrite(folder, lanes, 1)
    assert contents(folder) == contents(folder.parent / "wanted")
    # A killed index leaves files of its own, in a folder of its own.
    torn = [path for path in folder.rglob("*.tmp") if path.parent.name != ".seekable"]
    assert not torn
    assert os.listdir(folder / ".seekable-write.lanes") == ["states"]


# Of the formats, lines of JSON are killed in each run of the tests: test_write_killed.py.
@pytest.mark.exhaustive
def test_killed_at_an_operation_of_each_kind_the_next_call_has_the_bytes(
    tmp_path: Path, killer: Killer
) -> None:
    overwrite(tmp_path / "wanted", 3, 1)
    uneven(45, 2).write_tar(tmp_path / "all", rows_per_file=20, jobs=1)
    kinds = killer.operations(tmp_path / "all", overwrite, tmp_path / "all", 3, 1)
    for kind, number in one_of_each_kind(kinds):
        folder = tmp_path / kind
        uneven(45, 2).write_tar(folder, rows_per_file=20, jobs=1)
        assert killer.kill_at(number, folder, overwrite, folder, 3, 1, kind=kind) == KILLED
        check_after_a_kill(folder, 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("lanes", "jobs", "step"), [(1, 1, 1), (3, 1, 1), (3, 2, 6)])
def test_killed_at_any_file_operation_the_next_call_has_the_bytes(
    lanes: int, jobs: int, step: int, tmp_path: Path, killer: Killer
) -> None:
    overwrite(tmp_path / "wanted", lanes, 1)
    step, codes = wider(step), list[int]()
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        if len(codes) % 2:
            uneven(45, 2).write_tar(folder, rows_per_file=20, jobs=1)
        codes.append(killer.kill_at(len(codes) * step + 1, folder, overwrite, folder, lanes, jobs))
        check_after_a_kill(folder, lanes)
    assert codes.count(KILLED) * step >= 15
