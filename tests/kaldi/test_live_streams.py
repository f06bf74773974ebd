"""Objects of a stream are read as soon as they have arrived: the writer may wait for an answer."""

from __future__ import annotations

import io
from typing import Any

import pytest
from tests.kaldi.holder_cases import TABLE_CASES, TABLE_IDS, Case, dumped, plain

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.objects.buffered_cursor import BufferedCursor
from seekable.kaldi import FileCursor, MemoryCursor, find_holder


class Live(io.RawIOBase):
    """A stream whose writer has written some bytes, and waits before it writes more."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._data:
            raise AssertionError("a read that waits for more than the object")
        part, self._data = self._data[: len(buffer)], self._data[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("case", TABLE_CASES, ids=TABLE_IDS)
def test_an_object_is_read_without_the_next_one(case: Case, *, binary: bool) -> None:
    try:
        raw = dumped(case.holder, case.value, binary=binary)
    except InvalidArgument:
        pytest.skip("this type has no text form")
    holder = find_holder(case.holder)
    wanted = plain(holder.read(MemoryCursor(raw)))
    for cursor in (
        BufferedCursor(Live(raw), name="stream"),
        FileCursor(io.BufferedReader(Live(raw)), name="stream"),
    ):
        assert plain(holder.read(cursor)) == wanted
