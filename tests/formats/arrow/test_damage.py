"""Damaged, cut off and foreign files: an error that says what is wrong, or what the file says."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.formats.arrow.tables import Codec, Held, Kind, batch, opened, written
from tests.thrift import some

import seekable as sk
from seekable.errors import CorruptRecord, UnsupportedFormat
from seekable.formats.tables.arrow.arrow_format import ArrowFormat
from seekable.formats.tables.arrow.ipc import blocks_of, read_footer

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.formats.tables.arrow.arrow_format import ArrowTable

KINDS: list[Kind] = ["file", "stream"]


def read_all(data: bytes) -> list[dict[str, Any]] | None:
    """Return all rows, made Python values; None if there was an error."""
    try:
        survey = ArrowFormat().read_layout(Held(data))
        table = opened(data)
    except UnsupportedFormat as error:
        return None if "'/data/a.arrow'" in str(error) else []
    found: list[dict[str, Any]] = []
    for group, rows in enumerate(survey.group_rows):
        # A damaged length may be any number, where a column has no buffers.
        values = values_of(table, group, min(rows, 1000), table.schema.names)
        if values is None:
            for name in table.schema.names:
                values_of(table, group, min(rows, 1000), [name])
            return None
        found += values
    return found


def values_of(table: ArrowTable, group: int, rows: int, columns: list[str]) -> list[dict[str, Any]] | None:
    try:
        some = table.rows(group, np.arange(0, rows, 7), columns)
        whole = table.run(group, 0, rows, columns)
    except UnsupportedFormat:
        return None
    except CorruptRecord as error:
        told = error
    else:
        made_python(some)
        return made_python(whole)
    assert (told.path, told.offset) == ("/data/a.arrow", table.span(group)[0])
    assert f"record batch {group}" in str(told)
    return None


def made_python(found: pa.RecordBatch) -> list[dict[str, Any]] | None:
    """Return the rows as Python values; None where Python has none, as for a time zone that is unknown."""
    try:
        return found.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, ArithmeticError, KeyError):
        return None


def test_more_rows_than_can_be_counted_are_an_error_before_memory_is_taken(tmp_path: Path) -> None:
    data = bytearray(written([pa.record_batch({"n": pa.nulls(7)})], "stream", None))
    rows = data.find(struct.pack("<q", 7))
    column = data.find(struct.pack("<q", 7), rows + 8)
    struct.pack_into("<q", data, rows, 1 << 50)
    with pytest.raises(UnsupportedFormat, match=r"1125899906842624 rows, and its first column has 7"):
        opened(bytes(data))
    struct.pack_into("<q", data, column, 1 << 50)
    (tmp_path / "a.arrow").write_bytes(data)
    with pytest.raises(UnsupportedFormat, match=r"a\.arrow' is said to have 1,125,899,906,842,624 rows"):
        sk.open(tmp_path / "a.arrow")


def test_a_decimal_that_python_cannot_hold_is_named(tmp_path: Path) -> None:
    scaled = pa.Array.from_buffers(pa.decimal128(38, -100), 3, [None, pa.py_buffer(b"\x01" * 48)])
    table = pa.record_batch([scaled, pa.array([1, 2, 3])], names=["d", "n"])
    (tmp_path / "a.arrow").write_bytes(written([table], "file", None))
    for decode in ("python", "numpy"):
        ds = sk.open(tmp_path / "a.arrow", decode=decode)
        for read in (lambda ds: ds[1], lambda ds: ds[[0, 1]], list):
            with pytest.raises(sk.errors.BadValue, match=r"row [01], column 'd'"):
                read(ds)
        assert ds.select_columns(["n"])[1] == {"n": 2}
    with pytest.raises(sk.errors.InvalidArgument, match="'d'"):
        sk.open(tmp_path / "a.arrow").write_parquet(tmp_path / "out")


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bits_never_end_the_process(kind: Kind, codec: Codec) -> None:
    good = written([batch(20, seed) for seed in (0, 2)], kind, codec)
    assert len(read_all(good) or []) == 40
    rng = random.Random(f"{kind} {codec}")
    refused = 0
    for _ in range(some(40, of=3)):
        data = bytearray(good)
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(len(data) - 8)
            if rng.random() < 0.6:
                data[at] ^= 1 << rng.randrange(8)
            else:
                data[at : at + 8] = rng.choice([b"\xff" * 8, bytes(8), b"\xff" * 3 + b"\x7f" + bytes(4)])
        refused += read_all(bytes(data)) is None
    assert 0 < refused < some(40, of=3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_cut_off_is_never_taken_for_more(kind: Kind) -> None:
    batches = [pa.record_batch({"a": [n, n + 1], "t": ["x" * n, None]}) for n in range(4)]
    good = written(batches, kind)
    rows = [row for each in batches for row in each.to_pylist()]
    # Where a record batch ends a stream may end too: its end need not be marked.
    table = opened(good)
    ends = {sum(table.span(group)): 2 * group + 2 for group in range(4)} | {table.span(0)[0]: 0}
    for length in range(len(good)):
        found = read_all(good[:length])
        whole = ends.get(length) if kind == "stream" else None
        assert found == (None if whole is None else rows[:whole]), length


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has nothing|begins with nothing"),
        (b"FEA1" + bytes(20) + b"FEA1", r"Feather V1.*pyarrow\.feather\.write_feather"),
        (b"PAR1" + bytes(20), r"is no file of Arrow but Parquet; its name should end with \.parquet"),
        (b"good day, this is text\n", "cannot be read as a file or a stream of Arrow"),
        (b"ARROW1\x00\x00", "8 bytes, too few for a footer"),
        (b"ARROW1" + bytes(40), "does not end with b'ARROW1'"),
        (
            b"ARROW1" + bytes(40) + struct.pack("<i", 1 << 30) + b"ARROW1",
            "footer is said to have 1073741824 bytes",
        ),
        (b"ARROW1" + bytes(40) + struct.pack("<i", -5) + b"ARROW1", "footer is said to have -5 bytes"),
        (b"\xff" * 4 + b"\xff\xff\xff\x7f" + bytes(30), "a head of 2147483647 bytes.*the file has 38"),
    ],
)
def test_other_files_are_refused_with_what_they_are(data: bytes, message: str) -> None:
    with pytest.raises(UnsupportedFormat, match=message):
        ArrowFormat().read_layout(Held(data))


def test_bytes_behind_the_end_are_refused_with_where_they_are() -> None:
    one, other = ([pa.record_batch({name: [1, 2]})] for name in "ab")
    stream = written(one, "stream")
    for more in (written(other, "stream"), b"good day", bytes(16)):
        with pytest.raises(
            UnsupportedFormat, match=rf"ends at byte {len(stream)}, and the {len(more)} bytes"
        ):
            ArrowFormat().read_layout(Held(stream + more))
    # The footer of the last file fits the first one too, whose rows would come in the place of its own.
    with pytest.raises(UnsupportedFormat, match="may be several files, one behind the other"):
        ArrowFormat().read_layout(Held(written(one, "file") * 2))


def lying_offsets(kind: pa.DataType, child: pa.Array[Any] | None) -> bytes:
    """Return a file of one column of 4 rows, the offsets of which go far out and back."""
    offsets = pa.py_buffer(np.array([0, 1, 2_000_000_000, -2_000_000_000, 3], np.int32))
    if child is None:
        column = pa.Array.from_buffers(kind, 4, [None, offsets, pa.py_buffer(b"abc")])
    else:
        column = pa.Array.from_buffers(kind, 4, [None, offsets], children=[child])
    return written([pa.RecordBatch.from_arrays([column], names=["c"])], "file")


ENTRIES = pa.array(
    [{"key": "k", "value": 1}] * 3,
    pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.int8())]),
)


@pytest.mark.parametrize(
    ("kind", "child"),
    [
        (pa.string(), None),
        (pa.binary(), None),
        (pa.list_(pa.int8()), pa.array([1, 2, 3], pa.int8())),
        (pa.map_(pa.string(), pa.int8()), ENTRIES),
    ],
    ids=str,
)
def test_offsets_that_lie_are_found_in_the_rows_that_are_read(kind: pa.DataType, child: Any) -> None:
    table = opened(lying_offsets(kind, child))
    assert len(table.rows(0, np.array([0]), ["c"])["c"][0].as_py()) == 1
    for rows, wrong in (([1], 1), ([2], 2), ([3], 3), ([0, 3], 3), ([0, 1, 2], 1)):
        told = rf"a\.arrow: record {wrong} .*: row {wrong} of record batch 0, column 'c': "
        with pytest.raises(CorruptRecord, match=told):
            table.rows(0, np.array(rows), ["c"])


def test_text_that_is_no_utf_8_is_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 2, 4], np.int32))
    column = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ok\xff\xff")])
    table = opened(written([pa.RecordBatch.from_arrays([column], names=["c"])], "stream"))
    assert table.rows(0, np.array([0]), ["c"]).to_pylist() == [{"c": "ok"}]
    with pytest.raises(CorruptRecord, match="UTF8") as caught:
        table.rows(0, np.array([1]), ["c"])
    assert caught.value.row == 1


def test_indices_outside_of_their_dictionary_are_refused() -> None:
    words = pa.array(["a", "b"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 5, 0], pa.int8()), words, safe=False)
    table = opened(written([pa.RecordBatch.from_arrays([column], names=["w"])], "stream"))
    assert table.run(0, 0, 2, ["w"]).to_pylist() == [{"w": "a"}, {"w": "b"}]
    with pytest.raises(CorruptRecord, match="an index of rows 1 to 3 is outside of 2 values") as caught:
        table.run(0, 1, 4, ["w"])
    assert caught.value.row == 2
    assert table.rows(0, np.array([1, 3]), ["w"]).to_pylist() == [{"w": "b"}, {"w": "a"}]


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_buffer_that_claims_to_be_huge_is_not_believed(codec: Codec) -> None:
    data = bytearray(written([pa.record_batch({"a": np.arange(1000)})], "stream", codec))
    at = data.index(struct.pack("<q", 8000))
    data[at : at + 8] = struct.pack("<q", 1 << 50)
    table = opened(bytes(data))
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(CorruptRecord, match=f"are said to be {1 << 50} bytes of data"):
        table.run(0, 0, 1, ["a"])
    assert (pa.default_memory_pool().max_memory() or 0) - (before or 0) < 1 << 20


def test_a_body_that_a_message_makes_longer_than_its_file_is_not_looked_for() -> None:
    data = bytearray(written([pa.record_batch({"a": np.arange(1000)})], "file", "zstd"))
    (length,) = {block.body_bytes for block in blocks_of(read_footer(Held(bytes(data))), size=len(data))[1]}
    at, _ = opened(bytes(data)).span(0)
    # The message speaks of its body's length and of its buffers': both say more than the footer.
    head_bytes = struct.unpack_from("<i", data, at + 4)[0]
    head = bytes(data[at : at + 8 + head_bytes])
    for number in range(length - 8, length + 1):
        head = head.replace(struct.pack("<q", number), struct.pack("<q", 1 << 40))
    data[at : at + len(head)] = head
    table = opened(bytes(data))
    with pytest.raises(
        CorruptRecord, match=f"a buffer of {1 << 40} bytes .* does not lie in a body of {length}"
    ):
        table.run(0, 0, 1, ["a"])
