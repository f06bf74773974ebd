"""Kept rows under a name: of this dataset and this function or of none, whole or not there, kept once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.dataset.common import numbers
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.thrift import ALL

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.parallel.progress import Progress

ROOT = Path(__file__).parents[2]


def is_even(number: int) -> bool:
    return number % 2 == 0


def is_fifth(number: int) -> bool:
    return number % 5 == 0


def never(number: int) -> bool:
    pytest.fail(f"it was called with {number}")


def above(limit: int) -> Callable[[int], bool]:
    return lambda number: number > limit


def test_a_second_run_calls_nothing(tmp_path: Path) -> None:
    save = tmp_path / "kept.u64"
    calls: list[int] = []

    def counted(number: int) -> bool:
        calls.append(number)
        return number % 3 == 0

    first = numbers(30).filter(counted, save=save, version="thirds")
    assert calls == list(range(30))
    told: list[Progress] = []
    second = numbers(30).filter(counted, save=str(save), version="thirds", jobs=1, progress=told.append)
    assert calls == list(range(30))
    assert told == []
    assert list(first) == list(second) == list(range(0, 30, 3))
    assert first.fingerprint == second.fingerprint == numbers(30).filter(lambda n: n % 3 == 0).fingerprint


def test_the_file_and_its_description_can_be_read_by_anything(tmp_path: Path) -> None:
    numbers(10).filter(is_even, save=tmp_path / "kept.u64")
    raw = (tmp_path / "kept.u64").read_bytes()
    assert [int.from_bytes(raw[at : at + 8], "little") for at in range(0, len(raw), 8)] == [0, 2, 4, 6, 8]
    described = json.loads((tmp_path / "kept.u64.json").read_text())
    assert described["seekable_kept"] == 1
    assert described["dataset"] == numbers(10).fingerprint
    assert (described["records"], described["count"]) == (10, 5)
    assert described["function"]["name"].endswith("test_saved.is_even")
    assert {file.name for file in tmp_path.iterdir()} == {"kept.u64", "kept.u64.json", "kept.u64.lock"}


@pytest.mark.parametrize(
    ("child", "fn", "version", "says"),
    [
        (numbers(11), is_even, None, r"the dataset was xxh3:\w+ of 10 records, is xxh3:\w+ of 11 records"),
        (numbers(10), never, None, r"the function was .*is_even, is .*never"),
        (numbers(10), is_even, "2", r"the function was .*is_even, is .*is_even, version '2'"),
    ],
)
def test_rows_of_something_else_are_refused(
    child: sk.Dataset, fn: Callable[[Any], Any], version: str | None, says: str, tmp_path: Path
) -> None:
    save = tmp_path / "kept.u64"
    numbers(10).filter(is_even, save=save)
    with pytest.raises(sk.StateMismatch, match=says) as caught:
        child.filter(fn, save=save, version=version)
    assert str(save) in str(caught.value)
    assert "Name another file with save=, or remove this one" in str(caught.value)
    save.unlink()
    if fn is is_even:
        assert list(child.filter(fn, save=save, version=version)) == [n for n in child if is_even(n)]


def test_another_closure_is_another_function_unless_a_version_stands_for_it(tmp_path: Path) -> None:
    save = tmp_path / "kept.u64"
    numbers(10).filter(above(3), save=save)
    assert list(numbers(10).filter(above(3), save=save)) == [4, 5, 6, 7, 8, 9]
    with pytest.raises(sk.StateMismatch, match=r"the code of .*above.* was xxh3:\w+, is xxh3:\w+"):
        numbers(10).filter(above(4), save=save)
    other = tmp_path / "other.u64"
    numbers(10).filter(above(3), save=other, version=1)
    assert list(numbers(10).filter(above(4), save=other, version=1)) == [4, 5, 6, 7, 8, 9]


def test_another_python_is_named_where_code_differs(tmp_path: Path) -> None:
    save = tmp_path / "kept.u64"
    numbers(10).filter(is_even, save=save)
    sidecar = tmp_path / "kept.u64.json"
    was = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({**was, "python": "3.0", "code": "xxh3:00"}))
    with pytest.raises(sk.StateMismatch, match=r"by Python 3\.0 then and 3\.\d+ now.*version="):
        numbers(10).filter(is_even, save=save)


def cut(path: Path) -> None:
    os.truncate(path, 16)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8] ^= 1
    path.write_bytes(data)


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0" * 8)


@pytest.mark.parametrize("damage", [cut, flip, lengthen])
def test_damaged_rows_are_refused(damage: Callable[[Path], None], tmp_path: Path) -> None:
    save = tmp_path / "kept.u64"
    numbers(10).filter(is_even, save=save)
    damage(save)
    with pytest.raises(sk.errors.CorruptState, match=r"kept\.u64' has .*remove it to filter again"):
        numbers(10).filter(is_even, save=save)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"seekable_kept": 1}', "\xff"])
def test_a_description_that_cannot_be_read_is_refused(text: str, tmp_path: Path) -> None:
    save = tmp_path / "kept.u64"
    numbers(10).filter(is_even, save=save)
    (tmp_path / "kept.u64.json").write_text(text, encoding="latin-1")
    with pytest.raises(sk.errors.CorruptState, match=r"kept\.u64\.json' cannot be read"):
        numbers(10).filter(is_even, save=save)


def test_a_newer_description_is_refused(tmp_path: Path) -> None:
    save, sidecar = tmp_path / "kept.u64", tmp_path / "kept.u64.json"
    numbers(10).filter(is_even, save=save)
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), "seekable_kept": 2}))
    with pytest.raises(sk.errors.CorruptState, match="has version 2, and this seekable knows 1"):
        numbers(10).filter(is_even, save=save)


def test_a_file_of_somebody_elses_is_never_written_over(tmp_path: Path) -> None:
    save = tmp_path / "corpus.jsonl"
    save.write_text("{}\n")
    with pytest.raises(sk.errors.InvalidArgument, match=r"it was not kept by filter\(\)"):
        numbers(10).filter(is_even, save=save)
    assert save.read_text() == "{}\n"
    with pytest.raises(sk.errors.InvalidArgument, match=r"it was not kept by filter\(\)"):
        numbers(10).filter(is_even, save=tmp_path)


def test_save_is_the_path_of_a_file(tmp_path: Path) -> None:
    for wrong in ("", f"{tmp_path}/"):
        with pytest.raises(sk.errors.InvalidArgument, match="save must name a file"):
            numbers(10).filter(never, save=wrong)
    with pytest.raises(sk.errors.WrongType, match="a path must be a str"):
        numbers(10).filter(never, save=3)  # type: ignore[arg-type]
    with pytest.raises(sk.DataNotFound, match=r"no folder '.*nowhere' for save='.*kept\.u64': make it first"):
        numbers(10).filter(never, save=tmp_path / "nowhere" / "kept.u64")


def test_rows_that_were_removed_are_kept_again(tmp_path: Path) -> None:
    save = tmp_path / "kept.u64"
    numbers(10).filter(is_even, save=save)
    save.unlink()
    assert list(numbers(4).filter(above(1), save=save)) == [2, 3]
    assert list(numbers(4).filter(above(1), save=save)) == [2, 3]


def test_the_place_is_that_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    ds = numbers(10).filter(is_even, save="kept [*]\n\udcff.u64")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert list(ds) == [0, 2, 4, 6, 8]


def keep_fifths(save: Path) -> None:
    numbers(2000).filter(is_fifth, save=save, jobs=1)


def test_killed_at_any_file_operation_the_next_run_has_the_rows(tmp_path: Path) -> None:
    with Killer() as killer:
        (tmp_path / "all").mkdir()
        kinds = killer.operations(tmp_path / "all", keep_fifths, tmp_path / "all" / "kept.u64")
        assert len(kinds) >= 8
        assert {"open", "os.fsync", "os.rename"} <= {*kinds}
        each = [(None, number) for number in range(1, len(kinds) + 1)]
        for kind, number in each if ALL else one_of_each_kind(kinds):
            folder = tmp_path / f"{kind}-{number}"
            folder.mkdir()
            assert killer.kill_at(number, folder, keep_fifths, folder / "kept.u64", kind=kind) == KILLED
            assert list(numbers(2000).filter(is_fifth, save=folder / "kept.u64")) == [*range(0, 2000, 5)]
            assert {file.name for file in folder.iterdir()} == {"kept.u64", "kept.u64.json", "kept.u64.lock"}


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


COUNTING = """
import os, sys
import seekable as sk
descriptor = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def passes(number):
    os.write(descriptor, b"x")
    return number % 5 == 0
sys.stdin.readline()
ds = sk.from_sequence(range(3000)).filter(passes, save=sys.argv[1], version=1, jobs=1)
print(sum(ds))
"""


def test_of_several_processes_one_keeps_and_the_others_wait(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTING, tmp_path / "kept.u64", tmp_path / "calls"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4 if ALL else 2)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        with process:
            assert process.communicate(timeout=60)[0].strip() == str(sum(range(0, 3000, 5)))
    assert (tmp_path / "calls").stat().st_size == 3000


HOLDING = """
import os, sys
import seekable as sk
def passes(number):
    if number == 500:
        print("holding", flush=True)
        sys.stdin.readline()
    return number % 5 == 0
sk.from_sequence(range(1000)).filter(passes, save=sys.argv[1], version=1, jobs=1)
"""

WAITING = """
import sys
import seekable as sk
def passes(number):
    return number % 5 == 0
def told(progress):
    if progress.notice:
        print(progress.notice, flush=True)
passes.__qualname__ = "passes"
print(sum(sk.from_sequence(range(1000)).filter(passes, save=sys.argv[1], version=1, jobs=1, progress=told)))
"""


def test_if_the_one_that_keeps_is_killed_a_waiter_takes_over(tmp_path: Path) -> None:
    save = tmp_path / "kept.u64"
    command = [sys.executable, "-c"]
    with subprocess.Popen(
        [*command, HOLDING, save], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "holding\n"
        with start(WAITING, save) as waiter:
            assert waiter.stdout
            assert "another process is filtering into" in waiter.stdout.readline()
            holder.kill()
            out, errors = waiter.communicate(timeout=60)
    assert out.strip() == str(sum(range(0, 1000, 5))), errors


def test_where_nothing_can_be_written_whole_rows_are_still_read(tmp_path: Path) -> None:
    save = tmp_path / "kept.u64"
    numbers(10).filter(is_even, save=save)
    (tmp_path / "kept.u64.lock").unlink()
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert list(numbers(10).filter(is_even, save=save)) == [0, 2, 4, 6, 8]
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
