from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from seekable.storage.files import read_or_map

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("size", [0, 1, 64 << 10, (64 << 10) + 1, 1 << 20])
def test_all_bytes_are_there_and_large_files_are_mapped(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    data = os.urandom(size)
    path.write_bytes(data)
    found = read_or_map(str(path), size=size)
    assert found[:] == data
    assert isinstance(found, memoryview) == (size > 64 << 10)
    assert read_or_map(str(path))[:] == data


def test_a_file_that_is_not_as_it_should_be_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"123")
    with pytest.raises(FileNotFoundError, match="has 3 bytes and not 4"):
        read_or_map(str(path), size=4)
    with pytest.raises(FileNotFoundError):
        read_or_map(str(path) + "x")


def test_a_map_outlives_the_name_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (1 << 20))
    found = read_or_map(str(path))
    path.unlink()
    assert found[-3:] == b"xxx"


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (1 << 20))
    before = os.listdir("/proc/self/fd")
    found = read_or_map(str(path))
    assert os.listdir("/proc/self/fd") == before
    assert len(found) == 1 << 20
