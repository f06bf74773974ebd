"""Pipelines as Shar folders: the files are those of sk.SharWriter, whoever writes them, also after kills."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.dataset import test_shar_writer
from tests.dataset.common import numbers
from tests.dataset.test_shar_writer import FIELDS, cut, spoiled
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.thrift import wider

import seekable as sk
from seekable.formats.shar.shar_cuts import audio_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.writing.manifest import Written


def cuts(count: int) -> sk.Dataset:
    return numbers(count).map(cut)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def by_writer(folder: Path, records: Any, **arguments: Any) -> dict[str, bytes]:
    test_shar_writer.write(folder, records, **arguments)
    return contents(folder)


@pytest.mark.parametrize("count", [1, 3, 4, 10])
@pytest.mark.parametrize("arguments", [{}, {"compress_jsonl": True}, {"create_index": False}])
def test_the_files_are_those_of_the_writer(arguments: dict[str, Any], count: int, tmp_path: Path) -> None:
    wanted = by_writer(tmp_path / "wanted", cuts(count), shard_size=3, **arguments)
    written = cuts(count).write_shar(tmp_path / "out", FIELDS, shard_size=3, jobs=1, **arguments)
    assert contents(tmp_path / "out") == wanted
    assert [os.path.basename(path) for path in written.paths] == sorted(
        name for name in wanted if name.startswith("cuts.") and not name.endswith(".idx")
    )
    assert (written.rows, written.kept) == (count, 0)
    assert written.bytes == sum(map(len, wanted.values()))
    again = cuts(count).write_shar(tmp_path / "out", FIELDS, shard_size=3, jobs=1, **arguments)
    assert again.kept == len(written.paths)


def test_no_cuts_are_one_empty_shard(tmp_path: Path) -> None:
    cuts(0).write_shar(tmp_path, FIELDS)
    found = contents(tmp_path)
    assert found["cuts.000000.jsonl"] == b""
    assert found["cuts.000000.jsonl.idx"] == bytes(8)
    assert found["recording.000000.tar"] == bytes(10_240)


@pytest.mark.exhaustive
def test_the_same_bytes_whoever_does_it(tmp_path: Path) -> None:
    ds = cuts(30).shuffle(seed=3)
    with ThreadPoolExecutor(3) as threads:
        ways: list[dict[str, Any]] = [{"jobs": 1}, {"jobs": 2}, {"executor": threads}]
        for number, way in enumerate(ways):
            ds.write_shar(tmp_path / str(number), FIELDS, shard_size=7, **way)
    wanted = by_writer(tmp_path / "wanted", ds, shard_size=7)
    assert wanted == contents(tmp_path / "0") == contents(tmp_path / "1") == contents(tmp_path / "2")


def test_what_is_written_comes_back_and_is_written_as_it_was(tmp_path: Path) -> None:
    cuts(7).write_shar(tmp_path / "one", FIELDS, shard_size=3, jobs=1)
    found = sk.open(f"shar:{tmp_path}/one")
    assert [record["id"] for record in found] == [f"utt-{number}" for number in range(7)]
    assert found[4]["custom"]["lang"] == cut(4)["custom"]["lang"]
    assert audio_form(found[4]["recording"]["data"]) == "wav"
    again = sk.open(f"shar:{tmp_path}/one").write_shar(tmp_path / "two", FIELDS, shard_size=3, jobs=1)
    assert again.rows == 7
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_holes_are_left_out_and_counted(tmp_path: Path) -> None:
    ds = numbers(10).map(lambda number: sk.HOLE if number % 4 == 1 else cut(number), version=1)
    written = ds.write_shar(tmp_path, FIELDS, shard_size=4, jobs=1)
    assert (written.rows, written.holes) == (7, 3)
    ids = [json.loads(line)["id"] for path in written.paths for line in Path(path).read_text().splitlines()]
    assert ids == [f"utt-{number}" for number in range(10) if number % 4 != 1]


EVERY_FILE = [
    *("cuts.000001.jsonl", "cuts.000001.jsonl.idx", "lang.000001.jsonl", "lang.000001.jsonl.idx"),
    *("recording.000001.tar", "recording.000001.tar.idx", "vector.000001.tar", "vector.000001.tar.idx"),
]


@pytest.mark.parametrize("noted", [pytest.param(True, marks=pytest.mark.exhaustive), False])
@pytest.mark.parametrize("name", EVERY_FILE)
def test_a_shard_with_a_lost_or_damaged_file_is_made_again(name: str, noted: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    cuts(9).write_shar(tmp_path, FIELDS, shard_size=3, jobs=1)
    whole = contents(tmp_path)
    assert name in whole
    for damaged in (None, whole[name][:-3]):
        if not noted:
            manifest = tmp_path / ".seekable-write.json.idx"
            manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "finished": {}}))
        (tmp_path / name).unlink()
        if damaged is not None:
            (tmp_path / name).write_bytes(damaged)
        assert cuts(9).write_shar(tmp_path, FIELDS, shard_size=3, jobs=1).kept == 2
        assert contents(tmp_path) == whole


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"shard_size": 0}, sk.errors.InvalidArgument, "shard_size must be at least 1"),
        ({"shard_size": None}, sk.errors.WrongType, "shard_size must be an integer"),
        ({"fields": {"recording": "aac"}}, sk.errors.InvalidArgument, "has the kind 'aac'"),
        ({"folder": "out.tar"}, sk.errors.InvalidArgument, "a Shar folder has several files"),
        ({"create_index": "yes"}, sk.errors.WrongType, "create_index must be True or False"),
    ],
)
def test_arguments_are_checked(
    arguments: dict[str, Any], kind: type[Exception], says: str, tmp_path: Path
) -> None:
    given = {"fields": FIELDS, "folder": "out", **arguments}
    folder = tmp_path / given.pop("folder")
    with pytest.raises(kind, match=says):
        cuts(3).write_shar(folder, **given)
    assert not list(tmp_path.iterdir())


def test_another_call_is_refused_unless_it_may_go(tmp_path: Path) -> None:
    cuts(9).write_shar(tmp_path, FIELDS, shard_size=3, jobs=1)
    with pytest.raises(sk.StateMismatch, match="shard_size was 3, is 5"):
        cuts(9).write_shar(tmp_path, FIELDS, shard_size=5)
    with pytest.raises(sk.StateMismatch, match=r"fields was \[recording: wav.* is \[recording: flac\]"):
        cuts(9).write_shar(tmp_path, {"recording": "flac"}, shard_size=3)
    with pytest.raises(sk.errors.InvalidArgument, match="holds data that was not written by such a call"):
        cuts(9).write_jsonl(tmp_path)
    bare = numbers(4).map(lambda number: {**cut(number), "custom": {}}, version=1)
    written = bare.write_shar(tmp_path, {"recording": "flac"}, shard_size=4, jobs=1, overwrite=True)
    assert written.kept == 0
    names = ("cuts.000000.jsonl", "recording.000000.tar")
    assert set(contents(tmp_path)) == {*names, *(f"{name}.idx" for name in names)}
    (tmp_path / "extra.000000.tar").write_bytes(bytes(10_240))
    with pytest.raises(sk.errors.InvalidArgument, match=r"'extra\.000000\.tar'"):
        bare.write_shar(tmp_path, {"recording": "flac"}, shard_size=4, jobs=1, overwrite=True)


def test_a_cut_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    ds = numbers(5).map(lambda number: spoiled(data=b"x") if number == 3 else cut(number), version=1)
    with pytest.raises(
        sk.errors.WrongType, match=r"row 3 .* as shar: the field 'recording' of cut 'utt-0': the pay"
    ):
        ds.write_shar(tmp_path, FIELDS, shard_size=2, jobs=1)
    assert {name.split(".")[1] for name in contents(tmp_path)} == {"000000"}


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def before(folder: Path) -> Written:
    return cuts(7).write_shar(folder, FIELDS, shard_size=2, jobs=1)


def overwrite(folder: Path) -> Written:
    return cuts(6).shuffle(seed=5).write_shar(folder, FIELDS, shard_size=3, jobs=1, overwrite=True)


def check_after_a_kill(folder: Path) -> None:
    """A shard whose cuts are there is whole; the next call leaves nothing of the killed one."""
    wanted, others = contents(folder.parent / "wanted"), contents(folder.parent / "before")
    found = contents(folder) if folder.exists() else {}
    assert all(content in (wanted.get(name), others.get(name)) for name, content in found.items())
    for name, content in found.items():
        if name.startswith("cuts.") and name.endswith(".jsonl") and content == wanted.get(name):
            number = name.split(".")[1]
            assert all(found[each] == wanted[each] for each in wanted if number in each)
    overwrite(folder)
    assert contents(folder) == wanted
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


def test_killed_at_an_operation_of_each_kind_the_next_call_has_the_bytes(
    tmp_path: Path, killer: Killer
) -> None:
    overwrite(tmp_path / "wanted")
    before(tmp_path / "before")
    before(tmp_path / "all")
    kinds = killer.operations(tmp_path / "all", overwrite, tmp_path / "all")
    for kind, number in one_of_each_kind(kinds):
        folder = tmp_path / kind
        before(folder)
        assert killer.kill_at(number, folder, overwrite, folder, kind=kind) == KILLED
        check_after_a_kill(folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize("has_others", [False, True], ids=["new", "over"])
def test_killed_at_any_file_operation_the_next_call_has_the_bytes(
    has_others: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
    killer: Killer,
) -> None:
    overwrite(tmp_path / "wanted")
    before(tmp_path / "before")
    codes: list[int] = []
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        if has_others:
            before(folder)
        codes.append(killer.kill_at(len(codes) * wider(1) + 1, folder, overwrite, folder))
        check_after_a_kill(folder)
    assert codes.count(KILLED) * wider(1) >= 40


def test_what_is_kept_beside_the_files_is_no_field_for_lhotse(tmp_path: Path) -> None:
    cuts(3).write_shar(tmp_path / "set", FIELDS, jobs=1)
    cuts(3).stream(epochs=1, lanes=1).write_shar(tmp_path / "stream", FIELDS, jobs=1)
    for folder in (tmp_path / "set", tmp_path / "stream"):
        sk.open(folder)
        hidden = [path for path in folder.iterdir() if path.name.startswith(".")]
        assert hidden
        assert {path.suffix for path in hidden} == {".idx"}
