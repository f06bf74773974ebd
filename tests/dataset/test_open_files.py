"""The number of files that a dataset has open, as the system counts them."""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seekable as sk
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 3


def _records(file: int) -> list[dict[str, Any]]:
    return [{"id": file * ROWS + row, "text": f"row {row} of {file}"} for row in range(ROWS)]


def _json_lines(file: int) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in _records(file)).encode()


def _csv(file: int) -> bytes:
    return "\n".join(["id,text", *(f"{each['id']},{each['text']}" for each in _records(file))]).encode()


def _text(file: int) -> bytes:
    return "\n".join(each["text"] for each in _records(file)).encode()


def _parquet(file: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(_records(file)), sink)
    return bytes(sink.getvalue())


def _arrow(file: int) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(_records(file))
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


FORMATS: dict[str, Callable[[int], bytes]] = {
    "jsonl": _json_lines,
    "jsonl.gz": lambda file: gzip.compress(_json_lines(file)),
    "csv": _csv,
    "txt": _text,
    "parquet": _parquet,
    "arrow": _arrow,
}

TABLES = {"parquet", "arrow"}


def open_paths(folder: Path) -> list[str]:
    """Return the files below a folder that this process has open, one for each descriptor."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the descriptor of the listing itself
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [path for path in found if path.startswith(f"{folder}/")]


def open_names(folder: Path) -> list[str]:
    """Return the names of the files below a folder that this process has open, in order."""
    return sorted(os.path.relpath(path, folder) for path in open_paths(folder))


def descriptors(folder: Path) -> int:
    return len(open_paths(folder))


def maps(folder: Path) -> int:
    """Return the number of data files below a folder that are mapped into memory."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        lines = [line for line in file if f" {folder}/" in line]
    paths = [line.split(maxsplit=5)[-1].strip() for line in lines]
    return len({path for path in paths if path.startswith(f"{folder}/") and "/.seekable/" not in path})


def spread(size: int) -> list[int]:
    """Return rows of which any that follow each other are in different files."""
    return [(row * 7919) % size for row in range(0, size, 3)]


def counts(folder: Path) -> tuple[int, int]:
    return descriptors(folder), maps(folder)


def assert_soon(condition: Callable[[], bool]) -> None:
    """Fail unless a condition holds within a minute.

    A thread of Arrow's lets go of a map after the read that it helped with returns, not before.
    """
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        os.sched_yield()
    assert condition()


def write(folder: Path, form: str, files: int) -> Path:
    folder.mkdir(exist_ok=True)
    for file in range(files):
        (folder / f"{file:03}.{form}").write_bytes(FORMATS[form](file))
    return folder


def check_bound(folder: Path, most: int, *, maps_too: bool) -> None:
    """Read a folder in all ways, and compare the number of open files with the bound after each read.

    Maps of closed files are kept, but not those of tables, whose readers take memory.
    """
    expected = list(sk.open(folder, index=sk.Index(jobs=1)))
    assert_soon(lambda: counts(folder) == (0, 0))
    ds = sk.open(folder, storage=sk.Storage(max_open_files=most))
    rows = spread(len(ds))
    for row in rows:
        assert ds[row] == expected[row]
        assert descriptors(folder) <= most
        assert_soon(lambda: not maps_too or maps(folder) <= most)
    assert ds[rows] == [expected[row] for row in rows]
    assert list(ds) == expected
    assert descriptors(folder) <= most
    assert_soon(lambda: maps(folder) <= most if maps_too else maps(folder) == len(os.listdir(folder)) - 1)
    windows = ds.shuffle(seed=1, window=8, lanes=2 * most)
    with ThreadPoolExecutor(4) as threads:
        assert sorted(map(str, threads.map(windows.__getitem__, range(len(ds))))) == sorted(
            map(str, expected)
        )
    for _ in sk.Loader(windows, batch_size=50, workers=sk.Workers(2, type="thread"), collate=list):
        # Threads advise the system about a file that others have closed, with a descriptor of the moment.
        assert descriptors(folder) <= most + (0 if maps_too else 3)
        # What the threads read at this moment is mapped too.
        assert_soon(lambda: not maps_too or maps(folder) <= most + 3)
    ds.close()
    assert_soon(lambda: counts(folder) == (0, 0))
    assert ds[rows[0]] == expected[rows[0]]
    del ds, windows
    gc.collect()  # the loader's iterator
    assert_soon(lambda: counts(folder) == (0, 0))


@pytest.mark.parametrize("form", FORMATS)
def test_at_most_so_many_files_are_open_however_they_are_read(tmp_path: Path, form: str) -> None:
    check_bound(write(tmp_path / "data", form, 30), 4, maps_too=form in TABLES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMATS)
def test_at_most_128_of_500_files_are_open_by_default(tmp_path: Path, form: str) -> None:
    folder = write(tmp_path / "data", form, 500)
    check_bound(folder, 100, maps_too=form in TABLES)
    ds = sk.open(folder)
    for row in spread(len(ds)):
        ds[row]
    assert_soon(lambda: counts(folder) == (128, 128 if form in TABLES else 500))


@pytest.mark.parametrize("decode", ["numpy", "arrow"])
def test_blocks_in_memory_keep_no_file_mapped_that_was_closed(tmp_path: Path, decode: Any) -> None:
    folder = write(tmp_path / "data", "arrow", 12)
    ds = sk.open(folder, decode=decode, storage=sk.Storage(max_open_files=3))
    for _ in range(5):
        for row in spread(len(ds)):
            ds[row]
            assert_soon(lambda: max(counts(folder)) <= 3)
    record = ds[0]
    ds.close()
    assert_soon(lambda: counts(folder) == (0, int(decode == "arrow")))
    del record
    assert_soon(lambda: counts(folder) == (0, 0))


def test_the_file_used_least_recently_is_closed(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "txt", 4)
    ds = sk.open(folder, storage=sk.Storage(max_open_files=2))
    for file in (0, 1, 0, 1, 0, 2):
        ds[file * ROWS]
    assert open_names(folder) == ["000.txt", "002.txt"]


def test_one_open_file_is_enough_for_many_threads(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "jsonl", 8)
    expected = list(sk.open(folder))
    ds = sk.open(folder, storage=sk.Storage(max_open_files=1))
    rows = spread(len(ds)) * 20
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(ds.__getitem__, rows)) == [expected[row] for row in rows]
    assert descriptors(folder) == 1


def test_derived_datasets_and_pickles_keep_the_bound(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "jsonl", 12)
    ds = sk.open(folder, storage=sk.Storage(max_open_files=3))
    twice = sk.concat([ds, ds.map(str), sk.mix([ds.shuffle(seed=1), ds], seed=2)[:20]])
    assert len(list(twice)) == len(twice)
    assert descriptors(folder) <= 3
    again = pickle.loads(pickle.dumps(twice))
    ds.close()
    assert len(list(again)) == len(twice)
    assert 0 < descriptors(folder) <= 3
    again.close()
    assert descriptors(folder) == 0


def test_a_deleted_dataset_closes_its_files_at_once(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "jsonl", 12)
    gc.disable()
    try:
        for use in (
            lambda ds: ds[0],
            list,
            lambda ds: list(ds.map(str)),
            lambda ds: ds.shuffle(seed=1)[[1, 2, 30]],
            lambda ds: [
                sum(map(len, batch)) for batch in sk.Loader(ds, batch_size=5, collate=list, prefetch=2)
            ],
        ):
            ds = sk.open(folder)
            use(ds)
            del ds
            assert descriptors(folder) == 0
    finally:
        gc.enable()


def test_a_with_block_closes_the_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "parquet", 5)
    with sk.open(folder) as ds, sk.from_sequence([1]) as numbers:
        assert len(list(ds)) == 5 * ROWS
        assert list(numbers) == [1]
        assert descriptors(folder) == 5
    assert descriptors(folder) == 0


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize(("most", "error"), [(0, InvalidArgument), (-1, InvalidArgument), ("3", WrongType)])
def test_the_bound_is_a_number_of_files(tmp_path: Path, form: str, most: Any, error: type[Exception]) -> None:
    folder = write(tmp_path / "data", form, 1)
    with pytest.raises(error, match="max_open_files"):
        sk.open(folder, storage=sk.Storage(max_open_files=most))
    assert not (folder / ".seekable").exists()


FEW_DESCRIPTORS = """
import resource, sys
import seekable as sk
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print(sum(record["id"] for record in sk.open(sys.argv[1]).shuffle(seed=1)))
"""


@pytest.mark.usefixtures("forked_programs")
def test_sixty_four_descriptors_are_enough_for_many_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "jsonl", 90)
    done = subprocess.run(
        [sys.executable, "-c", FEW_DESCRIPTORS, folder], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == sum(range(90 * ROWS))
