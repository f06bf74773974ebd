from __future__ import annotations

import io
import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.index.catalog import encode_catalog
from seekable.index.file_table import Entry, FileTable, OffsetSegment, encode_table, in_order
from seekable.storage.file_names import natural_key

UINT64 = st.integers(0, 2**64 - 1)
COUNT = st.integers(0, 2**62)
NAMES = st.binary(min_size=1, max_size=12).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"/")))
SEGMENTS = st.builds(OffsetSegment, digest=UINT64, length=COUNT)
ENTRIES = st.lists(
    st.builds(
        Entry,
        NAMES,
        st.sampled_from(["jsonl", "text"]),
        COUNT,
        st.integers(-(2**63), 2**63 - 1),
        st.integers(-(2**63), 2**63 - 1),
        COUNT,
        UINT64,
        UINT64,
        UINT64,
        segment=st.one_of(SEGMENTS, st.just(OffsetSegment(7, 7))),
        start=COUNT,
        generation=st.integers(1, 9),
    ),
    unique_by=lambda entry: entry.key,
    max_size=8,
)


@given(ENTRIES)
def test_a_table_gives_back_its_files_in_natural_order(entries: list[Entry]) -> None:
    table = FileTable(encode_table(in_order(entries)))
    assert table.entries() == sorted(entries, key=lambda entry: (natural_key(entry.name), entry.format))
    for row, entry in enumerate(table.entries()):
        assert table.name(row) == entry.name
        assert table.format(row) == entry.format
        assert table.digest("content", row) == entry.content
        assert table.rows([entry.name, "none"], format_name=entry.format).tolist() == [row, -1]
    assert table.rows(["none"], format_name="parquet").tolist() == [-1]


@given(ENTRIES)
def test_the_table_depends_on_the_files_alone(entries: list[Entry]) -> None:
    assert in_order(entries) == in_order(reversed(entries))


@given(ENTRIES, st.data())
def test_a_table_that_was_cut_is_refused(entries: list[Entry], data: st.DataObject) -> None:
    encoded = encode_table(in_order(entries))
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(ValueError, match="a table of"):
        FileTable(encoded[:cut])


def test_a_table_of_another_version_is_refused() -> None:
    encoded = bytearray(encode_table([]))
    encoded[8] = 1
    with pytest.raises(ValueError, match="not a table of version 3"):
        FileTable(bytes(encoded))


@given(ENTRIES)
def test_the_catalog_is_plain_json_in_ascii(entries: list[Entry]) -> None:
    table = encode_table(in_order(entries))
    text = b"".join(encode_catalog(FileTable(table).entries(), table=table)).decode("ascii")
    catalog = json.load(io.StringIO(text))
    assert catalog["table"] == FileTable(table).file_name
    assert [(file["name"], file["format"]) for file in catalog["files"]] == [
        entry.key for entry in FileTable(table).entries()
    ]


def test_the_layout_is_as_documented() -> None:
    segment = OffsetSegment(digest=21, length=22)
    entry = Entry(
        "é",
        "text",
        11,
        -12,
        13,
        14,
        15,
        16,
        2**64 - 1,
        segment=segment,
        start=18,
        generation=19,
        groups=20,
        schema=7,
    )
    words = np.frombuffer(encode_table([entry])[:-8], "<u8")
    assert words[:6].tolist() == [int.from_bytes(b"seekable", "little"), 3, 1, 1, 1, 8]
    assert words[6:19].view("<i8").tolist() == [11, -12, 13, 14, 15, 16, -1, 0, 0, 18, 19, 20, 7]
    assert words[19:].tolist() == [21, 22]
    assert encode_table([entry])[-8:] == "é\0text\0".encode()
