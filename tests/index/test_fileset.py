from __future__ import annotations

import os
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli import warm
from tests.index.corpus import check, expected, fill, open_data, read, write

from seekable.errors import IndexStale
from seekable.index.fileset import FileSet, combine


def expire(folder: Path) -> None:
    """Let the hour pass after which replaced files of an index are removed."""
    hour_ago = (time.time() - 3601,) * 2
    for file in (folder / ".seekable").iterdir():
        os.utime(file, hour_ago)


def replace_table(folder: Path) -> None:
    """Make two later indexes, so that the first one's table and no more than that is removed."""
    for number in range(2):
        write(folder / f"added-{number}.jsonl", b"1\n")
        open_data(folder)
        expire(folder)
    write(folder / "added-2.jsonl", b"1\n")
    open_data(folder)


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> list[FileSet]:
    """Forty sources, each with an index of its own."""
    sources = []
    for number in range(40):
        folder = tmp_path_factory.mktemp("source")
        fill(folder, files=1, rows=number + 1)
        sources.append(open_data(folder))
    return sources


def test_sources_are_combined_in_order(apart: list[FileSet]) -> None:
    together = combine(apart)
    check(together)
    assert read(together) == [line for source in apart for line in read(source)]
    assert [together.entry(file) for file in range(40)] == [source.entry(0) for source in apart]
    check(combine([together, apart[3]]))
    assert len(combine([])) == 0


@given(st.data())
def test_ranges_of_many_records_are_those_of_each(apart: list[FileSet], data: st.DataObject) -> None:
    files = combine(apart[: data.draw(st.sampled_from([1, 2, 40]))])
    size = data.draw(st.integers(0, 200))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    numbers = random.integers(0, len(files), size)
    rows = random.integers(0, files.records[numbers])
    starts, ends = files.words(numbers, rows)
    assert starts.dtype == ends.dtype == np.uint64
    one_by_one = [files.range(file, row) for file, row in zip(numbers.tolist(), rows.tolist(), strict=True)]
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == one_by_one


def test_arrays_that_are_handed_out_cannot_be_written(tmp_path: Path) -> None:
    fill(tmp_path)
    files = open_data(tmp_path)
    for array in (files.sizes, files.records, files.mtimes_ns, files.starts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_pickle_is_small_and_gives_back_the_same(tmp_path: Path) -> None:
    fill(tmp_path, files=20)
    for asked in (tmp_path, [tmp_path / "part-3.jsonl", tmp_path / "part-1.jsonl"]):
        files = open_data(asked)
        again = pickle.loads(pickle.dumps(files))
        check(again)
        assert read(again) == read(files)
        assert len(pickle.loads(pickle.dumps(again))) == len(files)
        assert repr(again) == repr(files)


def test_the_pickle_of_many_files_is_little_more_than_a_name(tmp_path: Path) -> None:
    for number in range(3000):
        write(tmp_path / f"{number}.jsonl", b"1\n")
    assert len(pickle.dumps(open_data(tmp_path))) < 600
    some = [tmp_path / f"{number}.jsonl" for number in range(0, 3000, 2)]
    assert len(pickle.dumps(open_data(some))) < 600 + 4 * len(some)


def test_unpickling_opens_nothing_until_it_is_used(tmp_path: Path) -> None:
    fill(tmp_path)
    pickled = pickle.dumps(open_data(tmp_path))
    (tmp_path / ".seekable" / "catalog.json").unlink()
    for file in (tmp_path / ".seekable").glob("files-*"):
        file.unlink()
    files = pickle.loads(pickled)
    assert len(files) == 3
    with pytest.raises(IndexStale, match="open the dataset again"):
        files.load()


def test_files_are_found_again_in_a_later_table(tmp_path: Path) -> None:
    fill(tmp_path)
    files = open_data([tmp_path / "part-2.jsonl", tmp_path / "part-0.jsonl"])
    pickled, lines = pickle.dumps(files), read(files)
    del files
    replace_table(tmp_path)
    again = pickle.loads(pickled)
    assert read(again) == lines
    assert read(pickle.loads(pickle.dumps(again))) == lines


def test_files_that_a_later_table_knows_otherwise_are_stale(tmp_path: Path) -> None:
    fill(tmp_path)
    pickled = pickle.dumps(open_data(tmp_path))
    write(tmp_path / "part-1.jsonl", b"1\n", seconds=1)
    replace_table(tmp_path)
    with pytest.raises(IndexStale, match="open the dataset again"):
        pickle.loads(pickled).load()


def test_many_files_are_found_again_in_a_later_table(tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path / f"{number}.jsonl", b"%d\n" % number)
    files = open_data(tmp_path)
    early, lines = pickle.dumps(files), read(files)
    replace_table(tmp_path)
    assert read(files) == lines
    late = pickle.dumps(files)
    del files
    assert read(pickle.loads(late)) == lines
    assert read(pickle.loads(early)) == lines


def test_threads_may_use_one_set_at_once(apart: list[FileSet]) -> None:
    together = pickle.loads(pickle.dumps(combine(apart)))
    lines = expected(together)
    found: list[list[bytes]] = []
    threads = [threading.Thread(target=lambda: found.append(read(together))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [lines] * 6


FORKING = """
import os, sys
from pathlib import Path
from tests.index.corpus import open_data, check
files = open_data(Path(sys.argv[1]))
check(files)
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        check(files)
        check(open_data(Path(sys.argv[1])))
        os._exit(0)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] for child in children))
"""


def test_a_set_is_usable_in_forked_children(tmp_path: Path) -> None:
    fill(tmp_path)
    done = warm.run([str(tmp_path)], program=FORKING, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr


def test_the_names_of_files_are_relative_to_the_root(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b.jsonl", b"1\n")
    files = open_data(tmp_path)
    assert (files.name(0), files.path(0)) == ("a/b.jsonl", str(tmp_path / "a/b.jsonl"))
    entry = files.entry(0)
    assert (entry.name, entry.format, entry.size, entry.records) == ("a/b.jsonl", "jsonl", 2, 1)
