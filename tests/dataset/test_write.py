"""What is written holds exactly the records of the dataset, in order, and nothing else is ever mixed in."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import FORMS, endless, numbers, row, rows, write
from tests.dataset.graphs import Graph, graphs
from tests.thrift import ALL

import seekable as sk
from seekable.writing.manifest import Shards
from seekable.writing.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.parallel.progress import Progress


def other_row(number: int) -> dict[str, Any]:
    return {"n": -number, "text": "", "half": 0.0}


def shown(record: Any) -> dict[str, str]:
    return {"shown": repr(record)}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


@given(records=st.integers(0, 10**7), rows_per_file=st.integers(1, 10**6))
def test_each_row_is_in_one_file(records: int, rows_per_file: int) -> None:
    rows_per_file = max(rows_per_file, records // 50 + 1)
    shards = Shards(records, rows_per_file, ".x")
    runs = [shards.rows(number) for number in range(len(shards))]
    assert [run.start for run in runs if run] == list(range(0, records, rows_per_file))
    assert sum(map(len, runs)) == records
    assert shards.names == sorted(set(shards.names))


@given(drawn=graphs(depth=3), files=st.integers(1, 4), form=st.sampled_from(FORMS))
def test_any_pipeline_comes_back(
    drawn: Graph, files: int, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("out")
    rows_per_file = -(-drawn.size // files) or 1
    written = write(drawn.dataset.map(shown), folder, form, rows_per_file=rows_per_file, jobs=1)
    wanted = [shown(item.record) for item in drawn.epoch(0)]
    assert list(sk.open(folder)) == wanted
    assert (written.rows, written.holes, written.kept) == (len(wanted), 0, 0)
    sizes = [len(sk.open(path)) for path in written.paths]
    assert all(size == rows_per_file for size in sizes[:-1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [0, 1, 100, 101, 999])
def test_none_one_and_many_rows(count: int, form: str, tmp_path: Path) -> None:
    written = write(rows(count), tmp_path / "new" / "out", form, rows_per_file=100)
    files = max(1, -(-count // 100))
    suffix = f"of-{files:05}.{form}"
    assert [os.path.basename(path) for path in written.paths] == [
        f"part-{number:05}-{suffix}" for number in range(files)
    ]
    assert written.rows == count
    assert written.bytes == sum(os.path.getsize(path) for path in written.paths)
    assert list(sk.open(tmp_path / "new" / "out")) == list(rows(count))


@pytest.mark.parametrize("compression", ["gz", "zst"])
def test_compressed_lines_are_read_from_any_place(compression: str, tmp_path: Path) -> None:
    written = rows(1000).write_jsonl(tmp_path, rows_per_file=400, compression=compression)
    assert {Path(path).suffix for path in written.paths} == {f".{compression}"}
    ds = sk.open(tmp_path)
    assert list(ds) == list(rows(1000))
    assert ds[777] == row(777)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_bytes_whoever_does_it(form: str, tmp_path: Path) -> None:
    ds = rows(900).shuffle(seed=3)
    with ThreadPoolExecutor(3) as threads:
        ways: list[dict[str, Any]] = [{"jobs": 1}, {"executor": threads}]
        if form == "jsonl" or ALL:
            ways.append({"jobs": 2})
        found = []
        for number, way in enumerate(ways):
            written = write(ds, tmp_path / str(number), form, rows_per_file=100, **way)
            found.append([Path(path).read_bytes() for path in written.paths])
    assert all(files == found[0] for files in found)
    assert list(sk.open(tmp_path / "1")) == list(ds)


def test_an_epoch_is_that_of_the_view(tmp_path: Path) -> None:
    ds = rows(50).shuffle(seed=1)
    ds.epoch(3).write_jsonl(tmp_path)
    assert list(sk.open(tmp_path)) == list(ds.epoch(3)) != list(ds)


def or_hole(record: dict[str, Any]) -> Any:
    return sk.HOLE if record["n"] % 10 in (3, 7) or 200 <= record["n"] < 300 else record


@pytest.mark.parametrize("form", FORMS)
def test_holes_are_left_out_and_counted(form: str, tmp_path: Path) -> None:
    ds = rows(1000).map(or_hole)
    kept = [record for record in ds if record is not sk.HOLE]
    written = write(ds, tmp_path, form, rows_per_file=100)
    assert (written.rows, written.holes) == (len(kept), 1000 - len(kept)) == (720, 280)
    assert list(sk.open(tmp_path)) == kept
    again = write(ds, tmp_path, form, rows_per_file=100)
    assert (again.rows, again.holes, again.kept) == (720, 280, 10)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_there_is_not_made_again(form: str, tmp_path: Path) -> None:
    calls: list[int] = []

    def counted(number: int) -> dict[str, int]:
        calls.append(number)
        return {"n": number}

    ds = numbers(100).map(counted, version=1)
    first = write(ds, tmp_path, form, rows_per_file=10, jobs=1)
    calls.clear()
    told: list[Progress] = []
    second = write(ds, tmp_path, form, rows_per_file=10, jobs=1, progress=told.append)
    assert calls == []
    assert second.paths == first.paths
    assert (first.kept, second.kept) == (0, 10)
    assert [progress.records for progress in told] == [100]
    anew = write(ds, tmp_path, form, rows_per_file=10, jobs=1, resume=False)
    assert anew.kept == 0
    assert set(calls) == set(range(100))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("noted", [True, False])
def test_what_is_missing_or_damaged_is_made_again(form: str, noted: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    written = write(rows(100), tmp_path, form, rows_per_file=10)
    whole = [Path(path).read_bytes() for path in written.paths]
    if not noted:
        # As a process leaves it that was killed before it could note what it had finished.
        manifest = tmp_path / ".seekable-write.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "finished": {}}))
    Path(written.paths[3]).unlink()
    os.truncate(written.paths[5], len(whole[5]) - 3)
    again = write(rows(100), tmp_path, form, rows_per_file=10)
    assert again.kept == 8
    assert [Path(path).read_bytes() for path in again.paths] == whole


@pytest.mark.parametrize("compression", ["gz", "zst"])
def test_damaged_compressed_lines_are_made_again(compression: str, tmp_path: Path) -> None:
    written = rows(100).write_jsonl(tmp_path, rows_per_file=50, compression=compression)
    manifest = tmp_path / ".seekable-write.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "finished": {}}))
    os.truncate(written.paths[1], os.path.getsize(written.paths[1]) // 2)
    assert rows(100).write_jsonl(tmp_path, rows_per_file=50, compression=compression).kept == 1
    assert list(sk.open(tmp_path)) == list(rows(100))


@pytest.mark.parametrize(
    ("dataset", "arguments", "says"),
    [
        (rows(101), {}, r"the dataset was xxh3:\w+ of 100 records, is xxh3:\w+ of 101 records"),
        (rows(100).shuffle(seed=1), {}, r"the dataset was xxh3:\w+ of 100 records"),
        (numbers(100).map(other_row), {}, r"the dataset was xxh3:\w+ of 100 records"),
        (rows(100), {"rows_per_file": 20}, "rows_per_file was 10, is 20"),
        (rows(100), {"compression": "gz"}, "compression was None, is 'gz'"),
        (rows(100), {"form": "parquet"}, "the format was jsonl, is parquet"),
    ],
)
def test_what_another_call_wrote_is_refused_unless_it_may_go(
    dataset: sk.Dataset, arguments: dict[str, Any], says: str, tmp_path: Path
) -> None:
    before = write(rows(100), tmp_path, rows_per_file=10)
    arguments = {"rows_per_file": 10, **arguments}
    with pytest.raises(sk.StateMismatch, match=says) as caught:
        write(dataset, tmp_path, **arguments)
    assert str(tmp_path) in str(caught.value)
    assert "overwrite=True" in str(caught.value)
    assert list(sk.open(tmp_path)) == list(rows(100))
    written = write(dataset, tmp_path, overwrite=True, **arguments)
    assert names(tmp_path) == {os.path.basename(path) for path in written.paths}
    assert list(sk.open(tmp_path)) == list(dataset)
    assert written.kept == 0
    assert before.rows == 100


def test_parquet_with_another_schema_is_another_call(tmp_path: Path) -> None:
    import pyarrow as pa

    rows(10).write_parquet(tmp_path)
    schema = pa.schema({"n": pa.int32(), "text": pa.string(), "half": pa.float64()})
    with pytest.raises(sk.StateMismatch, match=r"schema was 'inferred', is \[n: int32; text: string"):
        rows(10).write_parquet(tmp_path, schema=schema)
    with pytest.raises(sk.StateMismatch, match="row_group_rows was 8192, is 5"):
        rows(10).write_parquet(tmp_path, row_group_rows=5)


def made(factor: int) -> Callable[[int], dict[str, int]]:
    return lambda number: {"n": number * factor}


def test_changed_code_is_refused_unless_it_is_meant(tmp_path: Path) -> None:
    numbers(20).map(made(2)).write_jsonl(tmp_path, rows_per_file=10)
    (tmp_path / "part-00001-of-00002.jsonl").unlink()
    with pytest.raises(
        sk.StateMismatch, match=r"the code of .*made.*lambda.* was xxh3:\w+, is xxh3"
    ) as caught:
        numbers(20).map(made(3)).write_jsonl(tmp_path, rows_per_file=10)
    assert "check_code=False goes on" in str(caught.value)
    written = numbers(20).map(made(3)).write_jsonl(tmp_path, rows_per_file=10, check_code=False)
    assert written.kept == 1
    assert [record["n"] for record in sk.open(tmp_path)] == [
        number * (2 if number < 10 else 3) for number in range(20)
    ]


def test_a_version_stands_for_the_code(tmp_path: Path) -> None:
    numbers(20).map(made(2), version="a").write_jsonl(tmp_path)
    assert numbers(20).map(made(3), version="a").write_jsonl(tmp_path).kept == 1
    with pytest.raises(sk.StateMismatch, match="the dataset was"):
        numbers(20).map(made(2), version="b").write_jsonl(tmp_path)


@pytest.mark.parametrize("other", ["corpus.jsonl", "sub/a.parquet", "part-00000-of-00001.jsonl"])
def test_a_folder_with_other_data_is_refused(other: str, tmp_path: Path) -> None:
    path = tmp_path / other
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}\n")
    for overwrite in (False, True):
        with pytest.raises(sk.errors.InvalidArgument, match="holds data that was not written by such a call"):
            rows(10).write_jsonl(tmp_path, overwrite=overwrite)
    assert path.read_text() == "{}\n"
    assert {each.name for each in tmp_path.iterdir()} == {Path(other).parts[0]}


def test_what_is_no_data_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("hello")
    (tmp_path / ".hidden.jsonl").write_text("hello")
    rows(10).write_jsonl(tmp_path)
    rows(11).write_jsonl(tmp_path, overwrite=True)
    assert (tmp_path / "README.md").read_text() == "hello"
    assert list(sk.open(tmp_path)) == list(rows(11))


def test_data_that_comes_later_is_refused_too(tmp_path: Path) -> None:
    rows(10).write_jsonl(tmp_path)
    (tmp_path / "more.jsonl").write_text("{}\n")
    with pytest.raises(sk.errors.InvalidArgument, match=r"'more\.jsonl'"):
        rows(10).write_jsonl(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"seekable_write": 1}'])
def test_a_manifest_that_cannot_be_read_is_refused(text: str, tmp_path: Path) -> None:
    rows(10).write_jsonl(tmp_path)
    (tmp_path / ".seekable-write.json").write_text(text)
    with pytest.raises(
        sk.errors.CorruptState, match=r"seekable-write\.json', the manifest .* cannot be read"
    ):
        rows(10).write_jsonl(tmp_path)


def test_a_newer_manifest_is_refused(tmp_path: Path) -> None:
    rows(10).write_jsonl(tmp_path)
    manifest = tmp_path / ".seekable-write.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "seekable_write": 2}))
    with pytest.raises(sk.errors.CorruptState, match="has version 2, and this seekable reads version 1"):
        rows(10).write_jsonl(tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_an_endless_dataset_is_refused_with_the_way_out(form: str, tmp_path: Path) -> None:
    with pytest.raises(sk.errors.EndlessDataset, match=rf"write_{form}\(\) needs a length.*take\(k\)"):
        write(endless().map(row), tmp_path / "out", form)
    assert not (tmp_path / "out").exists()
    write(endless().map(row).take(30), tmp_path / "out", form)
    assert list(sk.open(tmp_path / "out")) == list(endless().map(row).take(30))


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"rows_per_file": 0}, sk.errors.InvalidArgument, "rows_per_file must be at least 1"),
        ({"rows_per_file": 2.5}, sk.errors.WrongType, "rows_per_file must be an integer"),
        ({"jobs": 0}, sk.errors.InvalidArgument, "jobs must be at least 1"),
        ({"compression": "xz"}, sk.errors.InvalidArgument, "compression must be"),
        ({"overwrite": 1}, sk.errors.WrongType, "overwrite must be True or False"),
        ({"form": "parquet", "schema": "n"}, sk.errors.WrongType, r"schema must be a pyarrow\.Schema"),
        (
            {"form": "parquet", "row_group_rows": 0},
            sk.errors.InvalidArgument,
            "row_group_rows must be at least 1",
        ),
        ({"form": "parquet", "compression": "xz"}, sk.errors.InvalidArgument, "compression must be 'zstd'"),
        ({"form": "parquet", "compression": 3}, sk.errors.WrongType, "compression must be a str"),
    ],
)
def test_arguments_are_checked_before_anything_is_made(
    arguments: dict[str, Any], kind: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=says):
        write(rows(10), tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()
    with pytest.raises(sk.errors.WrongType, match="folder must be the path"):
        rows(10).write_jsonl(3)  # type: ignore[arg-type]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("hello")
    for folder in (tmp_path / "out", tmp_path / "out" / "below"):
        with pytest.raises(sk.errors.InvalidArgument, match="cannot be a folder"):
            rows(10).write_jsonl(folder)


def fails_at_57(number: int) -> dict[str, int]:
    if number == 57:
        message = "fifty-seven"
        raise KeyError(message)
    return {"n": number}


@pytest.mark.parametrize("jobs", [1, 2])
def test_after_an_error_what_was_finished_stays(jobs: int, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="fifty-seven") as caught:
        numbers(100).map(fails_at_57).write_jsonl(tmp_path, rows_per_file=10, jobs=jobs)
    assert any("fails_at_57" in note for note in caught.value.__notes__)
    there = {f"part-{number:05}-of-00010.jsonl" for number in range(10)}
    assert names(tmp_path) <= there - {"part-00005-of-00010.jsonl"}
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
    if jobs == 1:
        assert len(names(tmp_path)) == 5
        assert json.loads((tmp_path / ".seekable-write.json").read_text())["finished"].keys() == set("01234")


# Everything but the last argument is what a disk without room does: a file cannot grow above a size.
NO_ROOM = """
import resource, sys
import seekable as sk
from tests.dataset.common import rows, write
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
for form in sys.argv[2:]:
    try:
        write(rows(2000), f"{sys.argv[1]}/{form}", form, rows_per_file=1000, jobs=1, compression=None)
    except OSError as error:
        print(form, type(error).__name__, error.errno, *error.__notes__)
"""


def test_a_disk_without_room_leaves_no_torn_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_ROOM, tmp_path, *FORMS],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr == ""
    assert done.stdout.count("the same call goes on") == len(FORMS)
    for form in FORMS:
        assert f"{form} OSError 27" in done.stdout
        assert names(tmp_path / form) == set()
        assert not [path for path in (tmp_path / form).iterdir() if path.name.endswith(".tmp")]
        write(rows(2000), tmp_path / form, form, rows_per_file=1000, compression=None)
        assert list(sk.open(tmp_path / form)) == list(rows(2000))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


AS_NOBODY = """
import os, sys
from seekable.errors import AccessDenied
from tests.dataset.common import rows
rows(10).write_jsonl(sys.argv[2])  # imports what nobody may read
os.chmod(sys.argv[1], 0o555)
if os.geteuid() == 0:
    os.seteuid(65534)
for folder in (sys.argv[1], sys.argv[1] + "/below"):
    try:
        rows(10).write_jsonl(folder)
    except AccessDenied as error:
        print(error)
"""


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    # Not in tmp_path: the next pytest that starts closes the folders of this one to other users.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder = Path(name, "out")
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, folder, tmp_path / "before"],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )
        assert done.stdout.count("name another one") == 2
        assert "cannot be written by this user" in done.stdout
        assert list(folder.iterdir()) == []


def test_a_finished_folder_needs_no_right_to_write(tmp_path: Path) -> None:
    rows(10).write_jsonl(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    (tmp_path / ".seekable-write.lock").unlink()
    before.pop(".seekable-write.lock")
    assert rows(10).write_jsonl(tmp_path).kept == 1
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_names_of_any_kind_and_another_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written = rows(30).write_jsonl("out [*]\n\udcff", rows_per_file=10)
    assert all(os.path.isabs(path) for path in written.paths)
    assert list(sk.open(list(written.paths))) == list(rows(30))
    assert len(sk.open("out [*]\n\udcff")) == 30


def test_a_glob_finds_the_files_alone(tmp_path: Path) -> None:
    rows(30).write_jsonl(tmp_path, rows_per_file=10)
    assert list(sk.open(str(tmp_path / "*"))) == list(rows(30))


def test_progress_goes_on_within_a_file_and_ends_with_all(tmp_path: Path) -> None:
    told: list[Progress] = []
    numbers(60_000).map(row).write_jsonl(tmp_path, jobs=1, progress=told.append)
    assert {progress.task for progress in told} == {"writing"}
    assert told[-1].is_done
    seen = [progress.records for progress in told]
    assert seen == sorted(seen)
    assert len(seen) > 1


def test_threads_that_write_at_once_wait_for_each_other(tmp_path: Path) -> None:
    barrier = threading.Barrier(4)

    def go(_: int) -> int:
        barrier.wait()
        return rows(500).write_jsonl(tmp_path, rows_per_file=50, jobs=1).kept

    with ThreadPoolExecutor(4) as threads:
        kept = list(threads.map(go, range(4)))
    assert sorted(kept) == [0, 10, 10, 10]
    assert list(sk.open(tmp_path)) == list(rows(500))


def test_a_call_that_begins_between_two_looks_at_a_folder_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[int] = []
    refuse_others = Target.refuse_others

    def late(target: Target, is_ours: Any, *, suffix: str) -> None:
        """Look at the files only after another call has written them all."""
        if not others:
            others.append(1)
            rows(500).write_jsonl(tmp_path, rows_per_file=50)
        refuse_others(target, is_ours, suffix=suffix)

    monkeypatch.setattr(Target, "refuse_others", late)
    assert rows(500).write_jsonl(tmp_path, rows_per_file=50).kept == 10


def test_what_is_written_again_has_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        rows(100).write_jsonl(tmp_path / folder, compression="gz")
    one, two = (
        (tmp_path / folder / "part-00000-of-00001.jsonl.gz").read_bytes() for folder in ("one", "two")
    )
    assert one == two
    assert gzip.decompress(one).count(b"\n") == 100


def test_row_groups_are_bounded_by_rows(tmp_path: Path) -> None:
    written = rows(1000).write_parquet(tmp_path, row_group_rows=300, rows_per_file=700)
    metadata = [pq.read_metadata(path) for path in written.paths]
    groups = [[file.row_group(i).num_rows for i in range(file.num_row_groups)] for file in metadata]
    assert groups == [[300, 300, 100], [300]]
    assert metadata[0].row_group(0).column(0).has_offset_index


def large(number: int) -> dict[str, bytes]:
    return {"blob": bytes([number % 251]) * (2 << 20)}


def test_row_groups_are_bounded_by_bytes(tmp_path: Path) -> None:
    written = numbers(40).map(large).write_parquet(tmp_path, jobs=1)
    file = pq.read_metadata(written.paths[0])
    assert file.num_row_groups > 1
    assert max(file.row_group(i).total_byte_size for i in range(file.num_row_groups)) < 300 << 20
    assert sum(file.row_group(i).num_rows for i in range(file.num_row_groups)) == 40
