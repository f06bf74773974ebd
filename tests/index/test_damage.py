from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.index.corpus import check, fill, index_files, open_data, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.parallel.progress import Progress

DAMAGES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, path.stat().st_size - 5),
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"more"),
}
SCRAMBLED: dict[str, Callable[[Path], object]] = {
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "one bit": lambda path: path.write_bytes(path.read_bytes()[:-9] + b"\x7f" + path.read_bytes()[-8:]),
}


def the(folder: Path, pattern: str) -> Path:
    (path,) = (folder / ".seekable").glob(pattern)
    return path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", ["catalog.json", "files-*.bin", "offsets-*.u64"])
def test_what_is_damaged_is_built_again(tmp_path: Path, file: str, damage: str) -> None:
    fill(tmp_path)
    check(open_data(tmp_path))
    DAMAGES[damage](the(tmp_path, file))
    check(open_data(tmp_path))
    before = index_files(tmp_path)
    check(open_data(tmp_path))
    assert index_files(tmp_path) == before


@pytest.mark.parametrize("damage", SCRAMBLED)
@pytest.mark.parametrize("file", ["catalog.json", "files-*.bin"])
def test_what_is_scrambled_is_built_again(tmp_path: Path, file: str, damage: str) -> None:
    fill(tmp_path)
    check(open_data(tmp_path))
    SCRAMBLED[damage](the(tmp_path, file))
    check(open_data(tmp_path))


@pytest.mark.parametrize(
    "catalog",
    [
        b"[]",
        b'{"seekable_index": 1, "table": "files-1.bin", "files": [\n\n]}\n',
        b'{"seekable_index": 3, "table": "../../etc/passwd", "files": [\n\n]}\n',
        b'{"seekable_index": 3, "files": [\n\n]}\n',
        b"\xff\xfe",
    ],
)
def test_a_strange_catalog_is_replaced(tmp_path: Path, catalog: bytes) -> None:
    fill(tmp_path)
    open_data(tmp_path)
    the(tmp_path, "catalog.json").write_bytes(catalog)
    check(open_data(tmp_path))


def test_only_the_files_of_a_lost_segment_are_scanned_again(tmp_path: Path) -> None:
    fill(tmp_path, files=2)
    open_data(tmp_path)
    lost = the(tmp_path, "offsets-*.u64")
    write(tmp_path / "part-9.jsonl", b"1\n")
    open_data(tmp_path)
    lost.unlink()
    told: list[Progress] = []
    check(open_data(tmp_path, progress=told.append))
    assert told[-1].files == 2


def test_what_nothing_refers_to_is_removed_an_hour_later(tmp_path: Path) -> None:
    fill(tmp_path, files=1)
    open_data(tmp_path)
    folder = tmp_path / ".seekable"
    old = {the(tmp_path, "files-*"), the(tmp_path, "offsets-*.u64")}
    left = folder / "files-0123.bin.0123456789abcdef.tmp"
    foreign = folder / "README"
    for path in (left, foreign):
        path.touch()
    for path in (*old, left, foreign):
        os.utime(path, (0, 0))
    write(tmp_path / "part-0.jsonl", b"1\n", seconds=1)
    open_data(tmp_path)
    assert all(path.exists() for path in old), "their hour begins when they are replaced"
    assert not left.exists()
    assert foreign.exists()
    for path in old:
        os.utime(path, (time.time() - 3601,) * 2)
    write(tmp_path / "part-0.jsonl", b"1\n2\n", seconds=2)
    check(open_data(tmp_path))
    assert not any(path.exists() for path in old)
