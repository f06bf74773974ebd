"""Very many files: what they cost in descriptors, maps and memory, and what adding one costs."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.cli import warm
from tests.index.corpus import check, fill, index_files, open_data, read, write
from tests.index.test_fileset import expire
from tests.thrift import some

from seekable.index.build import commit as merge
from seekable.index.catalog import read_table
from seekable.storage.mapped import most_maps

if TYPE_CHECKING:
    from seekable.parallel.progress import Progress

FILES = some(4000, of=4)
HERE = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    for number in range(FILES):
        write(folder / f"{number}.jsonl", b"%d\n%d\n" % (number, -number))
    open_data(folder)
    return folder


def run(script: str, *arguments: object) -> str:
    done = warm.run([*map(str, arguments)], program=script, cwd=HERE)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_many_files_are_opened_in_natural_order_and_nothing_is_written(many: Path) -> None:
    before = index_files(many)
    files = open_data(many)
    assert index_files(many) == before
    assert files.names() == [f"{number}.jsonl" for number in range(FILES)]
    assert [files.name(file) for file in (0, 9, 10, FILES - 1)] == [
        files.names()[file] for file in (0, 9, 10, FILES - 1)
    ]
    assert bytes(files.mapped(777).view[:]) == b"777\n-777\n"


FEW_DESCRIPTORS = """
import os, random, resource, shutil, sys
from pathlib import Path
from tests.index.corpus import open_data
folder, index = Path(sys.argv[1]), Path(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
files = open_data(folder, index_dir=index)
assert len(open_data(folder, index_dir=index)) == len(files)
numbers = list(range(len(files))) * 2
random.Random(0).shuffle(numbers)
for number in numbers:
    assert bytes(files.bytes_of(number, 0)).rstrip() == b"%d" % number
    assert bytes(files.mapped(number).view[files.range(number, 1)[0]:]) == b"%d\\n" % -number
with open("/proc/self/maps") as maps:
    mapped = sum(str(folder) in line for line in maps)
print(mapped, len(os.listdir("/proc/self/fd")), len(files._open_files))
"""


def test_few_descriptors_and_maps_are_enough_to_build_and_to_read(many: Path, tmp_path: Path) -> None:
    mapped, descriptors, spots = map(int, run(FEW_DESCRIPTORS, many, tmp_path).split())
    assert 0 < mapped <= 132
    assert descriptors < 160
    assert spots <= 260


OBJECTS = """
import gc, pickle, sys
import numpy as np
from seekable.index.fileset import FileSet
kept = []
for pickled in sys.argv[1:]:
    gc.collect()
    before = sys.getallocatedblocks()
    files = pickle.loads(bytes.fromhex(pickled))
    files.words(np.arange(2), np.zeros(2, np.int64))
    files.bytes_of(1, 0)
    kept.append(files)
    gc.collect()
    print(sys.getallocatedblocks() - before)
"""


def test_no_object_is_made_of_each_file_in_a_worker(many: Path, tmp_path: Path) -> None:
    fill(tmp_path)
    few, all_of_them = pickle.dumps(open_data(tmp_path)), pickle.dumps(open_data(many))
    assert len(all_of_them) < 600
    # The first set is there to be the first: what only that needs is not counted with the other.
    _, blocks = map(int, run(OBJECTS, few.hex(), all_of_them.hex()).split())
    assert blocks < 200


def test_all_names_and_digests_at_once_are_those_of_each(many: Path, tmp_path: Path) -> None:
    write(tmp_path / "other.jsonl", b"1\n")
    some = [tmp_path / "other.jsonl", many / "77.jsonl", many / "5.jsonl", many / "77.jsonl"]
    for files in (open_data(some), open_data(many)):
        entries = [files.entry(file) for file in range(len(files))]
        assert files.names() == [entry.name for entry in entries]
        assert files.digests("head_tail") == [entry.head_tail_digest for entry in entries]
        assert files.digests("content") == [entry.content_digest for entry in entries]
        assert files.digests("offsets") == [entry.offsets_digest for entry in entries]


def test_files_are_found_by_path(many: Path, tmp_path: Path) -> None:
    write(tmp_path / "77.jsonl", b"1\n")
    files = open_data([tmp_path / "77.jsonl", many / "77.jsonl", many / "5.jsonl", many / "77.jsonl"])
    assert files.numbers(str(many / "77.jsonl")) == [1, 3]
    assert files.numbers(str(tmp_path / "77.jsonl")) == [0]
    assert files.numbers(str(many / "6.jsonl")) == []
    assert files.numbers("77.jsonl") == []
    assert open_data(many).numbers(str(many / f"{FILES - 1}.jsonl")) == [FILES - 1]


def test_adding_a_file_reads_that_file_and_disturbs_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for number in range(600):
        write(folder / f"{number}.jsonl", b"%d\n" % number)
    old = open_data(folder)
    pickled, lines = pickle.dumps(old), read(old)
    write(folder / "10a.jsonl", b'"added"\n')
    told: list[Progress] = []
    assert len(open_data(folder, progress=told.append)) == 601
    assert (told[-1].files, told[-1].bytes) == (1, 8)
    assert read(pickle.loads(pickled)) == lines, "a worker that starts now"
    for number in range(2):
        expire(folder)
        write(folder / f"10b{number}.jsonl", b"%d\n" % number)
        open_data(folder)
    assert not (folder / ".seekable" / old._parts[0].table).exists()
    again = pickle.loads(pickled)
    assert read(again) == lines, "a worker that starts much later"
    assert len(pickle.dumps(again)) < 700 + 4 * 600, "its rows have others between them now"


def test_many_files_are_found_again_in_an_index_that_was_lost_and_built_again(tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path / f"{number}.jsonl", b"%d\n" % number)
    open_data(tmp_path)
    files = open_data([tmp_path / f"{number}.jsonl" for number in range(299, 0, -1)])
    pickled, lines = pickle.dumps(files), read(files)
    for file in (tmp_path / ".seekable").iterdir():
        file.unlink()
    open_data([tmp_path / f"{number}.jsonl" for number in range(0, 300, 2)])
    open_data(tmp_path)
    assert read(pickle.loads(pickled)) == lines


def test_a_folder_that_grows_file_by_file_has_few_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "_MOST_SEGMENTS", 4)
    first: tuple[bytes, list[bytes]] | None = None
    for number in range(40):
        write(tmp_path / f"{number}.jsonl", b"%d\n" % number * (number + 1))
        files = open_data(tmp_path)
        check(files)
        table = read_table(str(tmp_path / ".seekable"))
        assert table
        assert len(table.segments) <= 4
        if number == 5:
            first = pickle.dumps(files), read(files)
        expire(tmp_path)
    assert first
    assert read(pickle.loads(first[0])) == first[1]
    assert len(list((tmp_path / ".seekable").glob("offsets-*"))) < 12, "the others were removed in time"


def test_a_segment_that_is_damaged_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "_MOST_SEGMENTS", 2)
    for number in range(3):
        write(tmp_path / f"{number}.jsonl", b"%d\n" % number * (number + 1))
        if number < 2:
            open_data(tmp_path)
    (damaged,) = (
        tmp_path / ".seekable" / entry.segment.file_name
        for entry in read_table(str(tmp_path / ".seekable")).entries()  # type: ignore[union-attr]
        if entry.name == "0.jsonl"
    )
    damaged.write_bytes(bytes(damaged.stat().st_size))
    files = open_data(tmp_path)
    check(files)
    assert len(files) == 3


def test_the_number_of_maps_is_far_below_what_linux_allows() -> None:
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
        assert most_maps() < int(file.read()) // 4


def test_rows_are_found_by_any_number_of_names(many: Path) -> None:
    table = read_table(str(many / ".seekable"))
    assert table
    everything = [f"{number}.jsonl" for number in range(FILES)]
    random = np.random.default_rng(0)
    for count in (0, 1, 16, 17, FILES // 4, FILES):
        rows = random.permutation(FILES)[:count]
        names = [everything[row] for row in rows]
        assert table.rows(names, format_name="jsonl").tolist() == rows.tolist()
        assert table.rows([*names, "x.jsonl", ""], format_name="jsonl").tolist() == [*rows.tolist(), -1, -1]
    assert table.rows(everything, format_name="jsonl").tolist() == list(range(FILES))
    assert table.rows(everything, format_name="text").tolist() == [-1] * FILES
    for name in ("jsonl", ".jsonl", "0.json", "99.jsonl\0", os.fsdecode(b"\xff")):
        assert table.rows([name], format_name="jsonl").tolist() == [-1]
