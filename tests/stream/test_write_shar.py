"""A stream as a Shar folder: the cuts are the items in the order of slots, however written."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.dataset.test_shar_writer import FIELDS, cut, spoiled
from tests.dataset.test_write_shar import by_writer, contents
from tests.killing import KILLED, Killer
from tests.thrift import wider

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seekable.writing.manifest import Written


def parts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return none to three cuts, the more of them the higher the last digit of the id."""
    return [{**record, "id": f"{record['id']}.{part}"} for part in range(int(record["id"][-1]) // 3)]


def uneven(count: int, lanes: int) -> sk.Stream:
    """Return a stream in which items wait, and whose lanes end unevenly."""
    rows = sk.from_sequence(range(count), version="uneven").stream(lanes=lanes, epochs=1)
    return rows.map(cut).flatten(parts).shuffle(buffer=5, seed=3)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_none_one_and_many_items(count: int, lanes: int, tmp_path: Path) -> None:
    stream = uneven(count, lanes)
    written = stream.write_shar(tmp_path / "out", FIELDS, shard_size=10, jobs=1)
    found = contents(tmp_path / "out")
    lines = b"".join(found[os.path.basename(path)] for path in written.paths).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [item["id"] for item in stream]
    assert written.bytes == sum(map(len, found.values()))
    assert {name.split(".")[1] for name in found} == {f"{number:06}" for number in range(len(written.paths))}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("lanes", [1, 3])
def test_full_shards_are_those_of_the_writer(lanes: int, jobs: int, tmp_path: Path) -> None:
    stream = sk.from_sequence(range(30)).stream(lanes=lanes, epochs=1).map(cut)
    stream.write_shar(tmp_path / "out", FIELDS, shard_size=12, jobs=jobs)
    assert by_writer(tmp_path / "wanted", stream, shard_size=12) == contents(tmp_path / "out")


@pytest.mark.parametrize("lanes", [1, 3])
def test_an_item_that_is_no_cut_is_named(lanes: int, tmp_path: Path) -> None:
    numbers = sk.from_sequence(range(30)).stream(lanes=lanes, epochs=1)
    stream = numbers.map(lambda number: spoiled(data=b"x") if number == 20 else cut(number), version=1)
    with pytest.raises(
        sk.errors.WrongType, match=r"with token .* as shar: the field 'recording' of cut 'utt-0'"
    ):
        stream.write_shar(tmp_path, FIELDS, shard_size=10, jobs=1)


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def before(folder: Path) -> Written:
    return uneven(12, 2).write_shar(folder, FIELDS, shard_size=4, jobs=1)


def overwrite(folder: Path, lanes: int, jobs: int) -> Written:
    return uneven(16, lanes).write_shar(folder, FIELDS, shard_size=6, jobs=jobs, overwrite=True)


def check_after_a_kill(folder: Path, lanes: int) -> None:
    overwrite(folder, lanes, 1)
    assert contents(folder) == contents(folder.parent / "wanted")
    assert not [path for path in folder.rglob("*") if path.name.endswith(".tmp")]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("lanes", "jobs", "step"), [(3, 1, 1), (3, 2, 6)])
def test_killed_at_any_file_operation_the_next_call_has_the_bytes(
    lanes: int, jobs: int, step: int, tmp_path: Path, killer: Killer
) -> None:
    overwrite(tmp_path / "wanted", lanes, 1)
    step, codes = wider(step), list[int]()
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        if len(codes) % 2:
            before(folder)
        codes.append(killer.kill_at(len(codes) * step + 1, folder, overwrite, folder, lanes, jobs))
        check_after_a_kill(folder, lanes)
    assert codes.count(KILLED) * step >= 40
