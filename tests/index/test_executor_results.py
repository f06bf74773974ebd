"""The results of an executor's workers: in the index folder, a few bytes as answers, nothing left behind."""

from __future__ import annotations

import errno
import pickle
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.index.corpus import check, fill, open_data, write
from tests.index.test_parts import cut
from tests.parallel.executors import Inline, run

import seekable as sk
from seekable.index.build import file_parts as parts
from seekable.index.build import kept_parts, scan
from seekable.index.build.kept_parts import SharedBatch, StoredParts

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = b"".join(b'{"row": %d}\r\n%s' % (row, b"\n \t\n" * (row % 3)) for row in range(400))

MOST_SENT = 64_000


@pytest.fixture
def tiny_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is a hundred bytes, and a batch is a part."""
    cut(monkeypatch, 100)
    monkeypatch.setattr(parts, "_BATCH_BYTES", 100)
    monkeypatch.setattr(scan, "_SPILL_BYTES", 64)


class Elsewhere(Executor):
    """Pickles arguments and results, as another machine would need them, and notes the sizes of results."""

    def __init__(self, change: Callable[[Any], Any] = lambda arguments: arguments) -> None:
        self.sizes: list[int] = []
        self.calls: list[Callable[[], Any]] = []
        self.answers: list[Any] = []
        self._change = change

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        def call() -> Any:
            data = pickle.dumps(function(*(self._change(pickle.loads(each)) for each in sent)))
            self.sizes.append(len(data))
            self.answers.append(pickle.loads(data))
            return self.answers[-1]

        sent = [pickle.dumps(each) for each in arguments]
        self.calls.append(call)
        future: Future[Any] = Future()
        run(future, call, ())
        return future


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.match("part-*.bin") or path.match("*.tmp")]


def offsets_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.u64")}


def test_no_result_is_large_for_many_records(tmp_path: Path) -> None:
    write(tmp_path / "many.txt", b"a\n" * 1_000_000)
    fill(tmp_path / "small", files=300)
    executor = Elsewhere()
    here = sk.open(tmp_path / "many.txt", index=sk.Index(folder=tmp_path / "here", jobs=1))
    lines = sk.open(tmp_path / "many.txt", index=sk.Index(folder=tmp_path / "there", executor=executor))
    sk.open(tmp_path / "small", index=sk.Index(folder=tmp_path / "there", executor=executor))
    assert max(executor.sizes) < 1000
    assert lines.fingerprint == here.fingerprint
    assert offsets_in(tmp_path / "here").items() <= offsets_in(tmp_path / "there").items()
    assert not left_in(tmp_path / "there")
    some = lines.take(300_000)
    kept = some.filter(lambda line: line == "a", save=tmp_path / "kept.u64", executor=executor)
    assert len(kept) == 300_000
    assert max(executor.sizes) < MOST_SENT


def odd(name: str) -> Executor:
    def elsewhere(shared: Any) -> Any:
        return replace(shared, marker="/no/such/file") if isinstance(shared, SharedBatch) else shared

    made: dict[str, Callable[[], Executor]] = {
        "another folder": lambda: Elsewhere(elsewhere),
        "each task twice": Twice,
        "the result is damaged": lambda: Damaging(0),
        "the result is lost": lambda: Damaging(None),
    }
    return made[name]()


class Twice(Elsewhere):
    """Runs each task twice, and loses the first answer."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **given: Any) -> Future[Any]:
        super().submit(function, *arguments, **given)
        return super().submit(function, *arguments, **given)


class Damaging(Inline):
    """Damages each file that a task wrote, or removes it."""

    def __init__(self, byte: int | None) -> None:
        self._byte = byte

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **given: Any) -> Future[Any]:
        future = super().submit(function, *arguments, **given)
        for path in [each for each in Path(arguments[0].folder).glob("part-*.bin") if each.stat().st_size]:
            if self._byte is None:
                path.unlink()
            else:
                data = bytearray(path.read_bytes())
                data[self._byte] ^= 1
                path.write_bytes(data)
        return future


@pytest.mark.usefixtures("tiny_parts")
@pytest.mark.parametrize(
    "name", ["another folder", "each task twice", "the result is damaged", "the result is lost"]
)
def test_odd_executors_build_the_same_index(tmp_path: Path, name: str) -> None:
    write(tmp_path / "large.jsonl", ROWS)
    fill(tmp_path, files=5)
    open_data(tmp_path, index_dir=tmp_path / "here")
    there = open_data(tmp_path, index_dir=tmp_path / "there", executor=odd(name))
    check(there)
    assert offsets_in(tmp_path / "there") == offsets_in(tmp_path / "here")
    assert not left_in(tmp_path / "there")


@pytest.mark.usefixtures("tiny_parts")
def test_a_task_that_runs_again_after_the_build_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "large.jsonl", ROWS)
    executor = Elsewhere()
    open_data(tmp_path, executor=executor)
    assert any(isinstance(answer, StoredParts) for answer in executor.answers)
    for call in tuple(executor.calls):
        call()
    assert not left_in(tmp_path / ".seekable")


@pytest.mark.usefixtures("tiny_parts")
def test_where_the_disk_of_a_worker_is_full_results_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kept_parts, "write_atomically", full)
    write(tmp_path / "large.jsonl", ROWS)
    executor = Elsewhere()
    check(open_data(tmp_path, executor=executor))
    assert not any(isinstance(answer, StoredParts) for answer in executor.answers)


@pytest.mark.usefixtures("tiny_parts")
def test_a_build_that_was_stopped_scans_no_finished_part_again(tmp_path: Path) -> None:
    class Stopped(BaseException):
        pass

    class Stopping(Elsewhere):
        def submit(self, function: Callable[..., Any], /, *arguments: Any, **given: Any) -> Future[Any]:
            if len(self.calls) == 30:
                raise Stopped
            return super().submit(function, *arguments, **given)

    write(tmp_path / "large.jsonl", ROWS)
    with pytest.raises(Stopped):
        open_data(tmp_path, executor=Stopping())
    executor = Elsewhere()
    check(open_data(tmp_path, executor=executor))
    assert len(executor.calls) == -(-len(ROWS) // 100) - 30
    assert not left_in(tmp_path / ".seekable")


@pytest.mark.usefixtures("tiny_parts")
def test_a_kept_part_of_a_file_that_was_replaced_is_not_used(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "other"
    write(path, ROWS)
    write(other, ROWS.replace(b"row", b"col"))

    class Replacing(Elsewhere):
        def submit(self, function: Callable[..., Any], /, *arguments: Any, **given: Any) -> Future[Any]:
            if len(self.calls) == 5:
                other.replace(path)
            return super().submit(function, *arguments, **given)

    files = open_data(path, executor=Replacing())
    check(files)
    clean = open_data(path, index_dir=tmp_path / "clean")
    assert files.entry(0) == clean.entry(0)
    assert not left_in(tmp_path / ".seekable")
