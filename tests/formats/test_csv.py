"""CSV, compared with Python's own csv module on whatever bytes there are."""

from __future__ import annotations

import csv
import io
import itertools
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.formats.splitter import BOM

from seekable.formats.csv import CsvScanner, csv_records, record_span
from seekable.index.scanner import ByteSource

if TYPE_CHECKING:
    from pathlib import Path

PIECES = st.sampled_from(
    ['"', '""', '"""', ",", "\n", "\r\n", "\r", "a", "é", " ", '"b"', '","', '"\n', "c" * 30, ";", "\x00"]
)
TEXT = st.lists(PIECES, max_size=60).map("".join)


def reference(text: str, delimiter: str = ",") -> list[list[str]]:
    """Return all records as csv reads them, empty lines left out, the header among them."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=False)
    return [row for row in rows if row]


def ranges(data: bytes, *, chunk_bytes: int, name: str = "csv") -> list[tuple[int, int]]:
    """Return where records begin and end, the header not among them."""
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data)
        source = ByteSource(file.fileno(), size=len(data), head=data[: 1 << 16], chunk_bytes=chunk_bytes)
        starts = [int(start) for start in CsvScanner(name).scan(source)]
    return list(itertools.pairwise([*starts, len(data)]))


def fields(data: bytes, start: int, stop: int) -> list[str] | None:
    """Return the fields of a record, however many there are; None if it was torn."""
    row = next(csv.reader([data[start:stop].decode()]))
    records = csv_records(",".join(map(str, range(len(row)))).encode(), ",")
    try:
        return list(records.fast(memoryview(data)[start:stop]).values())
    except csv.Error:
        try:
            return list(
                records.recover(data[start : start + record_span(memoryview(data)[start:stop])]).values()
            )
        except ValueError as error:
            assert "nothing closes it" in str(error)
            return None


@given(text=TEXT, mark=st.sampled_from([b"", BOM]), chunk_bytes=st.sampled_from([1, 2, 3, 7, 1000]))
@example(text='a\n"b\n""c",d\n', mark=b"", chunk_bytes=5)
@example(text='a\nb"c"\nd""\n"e"f"\n"', mark=b"", chunk_bytes=4)
@example(text='"a""\n"\r\r\nb', mark=BOM, chunk_bytes=1)
def test_records_are_those_of_the_csv_module(text: str, mark: bytes, chunk_bytes: int) -> None:
    data = mark + text.encode()
    expected = reference(text)[1:]
    found = [fields(data, start, stop) for start, stop in ranges(data, chunk_bytes=chunk_bytes)]
    assert len(found) == len(expected)
    torn = [number for number, row in enumerate(found) if row is None]
    assert torn in ([], [len(found) - 1])
    assert found[: len(found) - len(torn)] == expected[: len(found) - len(torn)]
