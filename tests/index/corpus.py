"""Folders of data, and what an index says of them compared with a plain splitter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tests.formats.splitter import lines, split

from seekable.formats.table import SUFFIXES, format_named
from seekable.index.opening import open_files
from seekable.storage.listing import find_files

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from seekable.index.fileset import FileSet
    from seekable.parallel.progress import ProgressHook

LONG_AGO_NS = 1_600_000_000 * 10**9


def write(path: Path, data: bytes, *, seconds: float = 0) -> None:
    """Write a file that looks old, so that nothing about it is in doubt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    age(path, seconds=seconds)


def age(path: Path, *, seconds: float = 0) -> None:
    """Set a file's time to some seconds after a moment long ago."""
    time_ns = LONG_AGO_NS + int(seconds * 10**9)
    os.utime(path, ns=(time_ns, time_ns))


def fill(folder: Path, *, files: int = 3, rows: int = 5) -> None:
    """Write some files of JSON lines."""
    for number in range(files):
        data = b"".join(b'{"file": %d, "row": %d}\n' % (number, row) for row in range(rows + number))
        write(folder / f"part-{number}.jsonl", data)


def open_data(
    asked: Path | list[Path],
    *,
    form: str = "jsonl",
    index_dir: Path | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressHook | None = None,
) -> FileSet:
    """Open what a user would."""
    return open_files(
        find_files(asked, suffixes=SUFFIXES),
        format_named(form).finder,
        index_dir=index_dir,
        jobs=jobs,
        executor=executor,
        progress=progress,
    )


def read(files: FileSet) -> list[bytes]:
    """Return the lines of all records, found through the index."""
    found = []
    for file in range(len(files)):
        rows = np.arange(files.records[file])
        starts, ends = files.words(np.full(len(rows), file), rows)
        view = files.mapped(file).view
        files.mapped(file).check()
        for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
            assert files.range(file, row) == (start, end)
            line, newline, _ = bytes(view[start:end]).partition(b"\n")
            found.append(line.removesuffix(b"\r") if newline else line)
    return found


def expected(files: FileSet, *, form: str = "jsonl") -> list[bytes]:
    """Return the lines of all records, found by a plain splitter."""
    return [
        line
        for file in range(len(files))
        for line in lines(Path(files.path(file)).read_bytes(), keep_blank=form == "text")
    ]


def check(files: FileSet, *, form: str = "jsonl") -> None:
    """Compare all that a set of files says with the files themselves."""
    assert read(files) == expected(files, form=form)
    for file in range(len(files)):
        data = Path(files.path(file)).read_bytes()
        assert files.records[file] == len(split(data, keep_blank=form == "text"))
        assert files.sizes[file] == len(data)
    assert files.starts.tolist() == [0, *np.cumsum(files.records).tolist()]


def index_files(folder: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time of everything in an index folder, by name."""
    return {
        file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in (folder / ".seekable").iterdir()
    }
