"""A path with the suffix of a format is one file, of a dataset or of a stream: whole, or not at all."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import zstandard
from tests.dataset.common import numbers, row

import seekable as sk
from seekable.errors import InvalidArgument, StateMismatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Build = Callable[[int], sk.Dataset | sk.Stream]


def dataset(count: int) -> sk.Dataset:
    return numbers(count, "rows").map(row).shuffle(seed=1)


def stream(count: int) -> sk.Stream:
    return dataset(count).stream(lanes=3, epochs=1).shuffle(buffer=4, seed=2)


each = pytest.mark.parametrize("build", [dataset, stream])


def write(pipeline: sk.Dataset | sk.Stream, path: Path, **arguments: Any) -> Any:
    name = "write_parquet" if path.suffix == ".parquet" else "write_jsonl"
    return getattr(pipeline, name)(path, **arguments)


def lines(content: bytes) -> list[Any]:
    return [json.loads(line) for line in content.splitlines()]


@each
@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_any_reader_opens_the_file(build: Build, count: int, tmp_path: Path) -> None:
    wanted = list(build(count))
    paths = [tmp_path / "new" / name for name in ("a.parquet", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst")]
    for path in paths:
        written = write(build(count), path, jobs=1)
        assert written.paths == (str(path),)
        assert (written.rows, written.holes, written.kept) == (count, 0, 0)
        assert written.bytes == path.stat().st_size
        assert list(sk.open(path)) == wanted
    table, plain, gz, zst = paths
    assert pq.read_table(table).to_pylist() == wanted
    assert lines(plain.read_bytes()) == wanted
    assert lines(gzip.decompress(gz.read_bytes())) == wanted
    with zst.open("rb") as file:
        assert (
            lines(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()) == wanted
        )
    assert {name for name in os.listdir(tmp_path / "new") if not name.startswith(".")} == {
        path.name for path in paths
    }


@each
def test_files_side_by_side_do_not_disturb_each_other(build: Build, tmp_path: Path) -> None:
    write(build(5), tmp_path / "a.jsonl")
    (tmp_path / "mine.jsonl").write_text("1\n")
    write(build(6), tmp_path / "b.jsonl")
    assert write(build(5), tmp_path / "a.jsonl").kept == 1
    assert [len(sk.open(tmp_path / name)) for name in ("a.jsonl", "b.jsonl", "mine.jsonl")] == [5, 6, 1]
    assert len(sk.open(tmp_path / "*.jsonl")) == 12


@each
@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_the_same_call_makes_nothing_again(build: Build, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"one.{suffix}"
    write(build(50), path)
    before = path.stat()
    again = write(build(50), path)
    assert (again.rows, again.kept) == (50, 1)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    content = path.read_bytes()
    assert write(build(50), path, resume=False).kept == 0
    assert path.read_bytes() == content
    path.unlink()
    assert write(build(50), path).kept == 0
    assert path.read_bytes() == content


@each
def test_another_pipeline_is_refused_unless_it_may_overwrite(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    write(build(50), path)
    with pytest.raises(StateMismatch, match=r"one\.jsonl' is of another pipeline(.|\n)*Name another file"):
        write(build(51), path)
    assert len(sk.open(path)) == 50
    write(build(51), path, overwrite=True)
    assert list(sk.open(path)) == list(build(51))


@each
def test_a_file_of_another_origin_is_refused_unless_it_may_be_replaced(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text("mine\n")
    with pytest.raises(InvalidArgument, match=r"was not written by such a call.*overwrite=True"):
        write(build(9), path)
    assert path.read_text() == "mine\n"
    write(build(9), path, overwrite=True)
    assert list(sk.open(path)) == list(build(9))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_file_that_the_pipeline_reads_is_never_removed(*, streamed: bool, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}\n')
    (tmp_path / "link.jsonl").symlink_to(path)
    for name in ("one.jsonl", "link.jsonl"):
        source = sk.open(tmp_path / name).map(row)
        pipeline = source.stream(epochs=1) if streamed else source
        with pytest.raises(InvalidArgument, match=rf"reads .*{name}', which overwrite=True would remove"):
            pipeline.write_jsonl(path, overwrite=True)
    assert path.read_text() == '{"n": 1}\n{"n": 2}\n'


def test_lines_that_a_stream_reads_are_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"n": 1}\n')
    with pytest.raises(InvalidArgument, match="which overwrite=True would remove"):
        sk.open_stream(path).write_jsonl(path, overwrite=True)
    assert path.read_text() == '{"n": 1}\n'


@each
def test_a_folder_that_the_pipeline_reads_stays(build: Build, tmp_path: Path) -> None:
    build(50).write_jsonl(tmp_path, rows_per_file=20)
    there = sk.open(tmp_path)
    for pipeline in (there[::2], there[::2].stream(epochs=1), sk.zip([there, numbers(50)])):
        with pytest.raises(InvalidArgument, match=r"the pipeline reads .*part-00000"):
            pipeline.write_jsonl(tmp_path, overwrite=True)
    assert list(sk.open(tmp_path)) == list(build(50))
    build(51).write_jsonl(tmp_path, overwrite=True)
    assert list(sk.open(tmp_path)) == list(build(51))


@each
def test_a_file_that_was_changed_is_refused(build: Build, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    write(build(9), path)
    path.write_text("mine\n")
    with pytest.raises(InvalidArgument, match="overwrite=True"):
        write(build(9), path)
    write(build(9), path, overwrite=True)
    assert list(sk.open(path)) == list(build(9))


@each
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("one.jsonl", {"rows_per_file": 9}, "rows_per_file is for a folder of files"),
        ("one.parquet", {"rows_per_file": 9}, "rows_per_file is for a folder of files"),
        ("one.jsonl", {"compression": "gz"}, r"ends in \.jsonl\.gz"),
        ("one.jsonl.gz", {"compression": "zst"}, r"ends in \.jsonl\.zst"),
        ("one.csv", {}, r"a file of JSON lines is named \*\.jsonl"),
        ("one.txt.gz", {}, r"a file of JSON lines is named \*\.jsonl"),
    ],
)
def test_names_and_arguments_that_do_not_go_together_are_refused(
    build: Build, name: str, arguments: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgument, match=says):
        write(build(9), tmp_path / name, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_table_is_not_named_as_lines(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"a Parquet file is named \*\.parquet"):
        dataset(9).write_parquet(tmp_path / "one.jsonl")


@each
def test_a_folder_of_such_a_name_stays_a_folder(build: Build, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").mkdir()
    written = write(build(9), tmp_path / "a.jsonl", rows_per_file=5)
    assert len(written.paths) == 2
    written = build(9).write_jsonl(f"{tmp_path / 'b.jsonl'}{os.sep}", rows_per_file=5)
    assert len(written.paths) == 2


@each
def test_a_suffix_may_be_of_any_case_and_compression_agrees(build: Build, tmp_path: Path) -> None:
    write(build(9), tmp_path / "A.JSONL.GZ", compression="gz")
    assert len(lines(gzip.decompress((tmp_path / "A.JSONL.GZ").read_bytes()))) == 9


class Fails:
    """Fails at one record while ``on``."""

    def __init__(self) -> None:
        self.on = True

    def __call__(self, record: dict[str, Any]) -> dict[str, Any]:
        if self.on and record["n"] == 30:
            raise ZeroDivisionError("it fails")
        return record


def test_a_stream_goes_on_at_the_last_part_of_each_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seekable.writing.write_stream._SLOTS_PER_PART", 30)
    # Nothing is made ahead of the end of a part, so that calls can be counted.
    monkeypatch.setattr("seekable.stream.runs._MOST", 1)
    seen: list[int] = []
    fails = Fails()

    def noted(record: dict[str, Any]) -> dict[str, Any]:
        seen.append(record["n"])
        return fails(record)

    pipeline = dataset(300).stream(lanes=3, epochs=1).map(noted, version=1)
    with pytest.raises(ZeroDivisionError):
        write(pipeline, tmp_path / "one.jsonl", jobs=1)
    before, fails.on = len(seen), False
    assert before > 60
    write(pipeline, tmp_path / "one.jsonl", jobs=1)
    assert 300 < len(seen) <= 310
    assert list(sk.open(tmp_path / "one.jsonl")) == list(pipeline)


@each
def test_after_an_error_there_is_no_file_and_the_next_call_writes_it(build: Build, tmp_path: Path) -> None:
    fails = Fails()
    pipeline = build(50).map(fails, version=1)
    with pytest.raises(ZeroDivisionError):
        write(pipeline, tmp_path / "one.jsonl", jobs=1)
    assert not (tmp_path / "one.jsonl").exists()
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    fails.on = False
    write(pipeline, tmp_path / "one.jsonl", jobs=1)
    assert list(sk.open(tmp_path / "one.jsonl")) == list(pipeline)
    assert set(os.listdir(tmp_path)) - {".seekable"} == {
        "one.jsonl",
        ".one.jsonl.seekable-write.json",
        ".one.jsonl.seekable-write.lock",
    }
