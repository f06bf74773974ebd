"""Damaged files: an error that says where, or the rows that pyarrow reads too; never others."""

from __future__ import annotations

import base64
import contextlib
import io
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from tests.formats.parquet import family
from tests.formats.parquet.truth import Bytes, Kept, leaf_of, opened, same, written
from tests.thrift import sample, some

import seekable as sk
from seekable.errors import CorruptRecord, IndexStale, SeekableError, UnsupportedFormat
from seekable.formats.tables.parquet.pages import leading_header
from seekable.formats.tables.parquet.parquet_format import ParquetFormat, page_tables
from seekable.formats.tables.parquet.thrift import ThriftError, unsigned

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {name: family.FLAT[name] for name in ("int32", "float64", "string", "dictionary", "bool")} | {
    name: family.NESTED[name] for name in ("list", "list_string", "struct_two")
}
TINY: dict[str, Any] = {"data_page_size": 200, "write_batch_size": 16}


def small(**options: Any) -> bytes:
    return written(family.table(KINDS, 60), row_group_size=40, **(TINY | options))


def everything(data: bytes, columns: list[str] | None = None) -> None:
    """Read all rows, one column at a time, and compare them where pyarrow reads them too."""
    survey = ParquetFormat().read_layout(Bytes(data))
    table = opened(data)
    for group, rows in enumerate(survey.group_rows):
        try:  # by groups, because what a damaged group lacks pyarrow takes from the next one
            want = pq.ParquetFile(io.BytesIO(data)).read_row_group(group)
        except (pa.ArrowException, OSError, ValueError):
            want = None
        for name in columns or table.schema.names:
            for chosen in (np.arange(rows), np.arange(rows // 2, rows // 2 + 1)):
                if not rows:
                    continue
                with contextlib.suppress(CorruptRecord):
                    got = table.rows(group, chosen, [name])
                    assert got.num_rows == len(chosen)
                    if want is not None and want.num_rows == rows:
                        wanted = want.column(name).take(pa.array(chosen))
                        assert same(pa.chunked_array([got.column(0)]), wanted), (group, name)


def test_a_file_that_is_cut_off_anywhere_is_refused() -> None:
    data = small()
    for size in [*range(14), *range(14, len(data), 37), len(data) - 1]:
        with pytest.raises(UnsupportedFormat, match=r"some\.parquet"):
            ParquetFormat().read_layout(Bytes(data[:size]))


def test_more_behind_the_end_is_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="more behind it"):
        ParquetFormat().read_layout(Bytes(small() + b"\n"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes are too few"),
        (b"PAR1", "4 bytes are too few"),
        (b"PK\3\4" + bytes(100), "end of a Parquet file"),
        (b'{"a": 1}\n' * 20, "end of a Parquet file"),
        (b"PAR1" + bytes(20) + b"PARE", "encrypted"),
        (b"PAR1" + bytes(20) + (2**32 - 1).to_bytes(4, "little") + b"PAR1", "4294967295 bytes"),
        (b"PAR1" + bytes(20) + (20).to_bytes(4, "little") + b"PAR1", "cannot be read"),
        (b"PAR1" + b"\xff" * 20 + (20).to_bytes(4, "little") + b"PAR1", "cannot be read"),
        (b"PAR1" + (0).to_bytes(4, "little") + b"PAR1", "cannot be read"),
    ],
)
def test_what_is_no_parquet_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(UnsupportedFormat, match=says):
        ParquetFormat().read_layout(Bytes(data))


@pytest.mark.parametrize(
    "options", [{}, {"write_page_index": True}, {"data_page_version": "2.0", "compression": "zstd"}], ids=str
)
def test_a_bit_of_the_footer_that_flips_changes_no_row_unseen(options: dict[str, Any]) -> None:
    data = small(**options)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    rng = np.random.default_rng(5)
    for place in rng.choice(np.arange(start, len(data)), some(90, of=3), replace=False):
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(0, 8))
        with contextlib.suppress(SeekableError):
            everything(bytes(changed))


@pytest.mark.parametrize("options", [{}, {"write_page_index": True}, {"data_page_version": "2.0"}], ids=str)
def test_a_bit_of_a_page_header_that_flips_changes_no_row_unseen(options: dict[str, Any]) -> None:
    data = small(compression="zstd", **options)
    table = opened(data)
    rng = np.random.default_rng(6)
    for name in ("int32", "string", "list"):
        paged = leaf_of(table, 0, name)
        for offset in [paged.table.dictionary[0], *paged.table.offset[:3].tolist()]:
            for place in sample(range(offset, offset + 14), of=3):
                changed = bytearray(data)
                changed[place] ^= 1 << int(rng.integers(0, 8))
                with contextlib.suppress(SeekableError):
                    everything(bytes(changed), [name])


def test_an_error_says_where() -> None:
    data = bytearray(small(use_dictionary=False, compression="zstd"))
    paged = leaf_of(opened(bytes(data)), 1, "string")
    start = paged.chunk.start
    data[start : start + 40] = b"\xff" * 40
    table = opened(bytes(data))
    with pytest.raises(CorruptRecord, match=r"column 'string' of group 1") as raised:
        table.rows(1, np.array([5]), ["string"])
    assert (raised.value.path, raised.value.row) == (Bytes.path, 45)
    assert (raised.value.offset, raised.value.length) == (start, paged.chunk.stop - start)
    assert raised.value.preview.startswith(b"\xff" * 40)
    with pytest.raises(CorruptRecord, match="of group 1"):
        table.run(1, 0, 20, ["string"])
    assert table.rows(1, np.array([5]), ["int32"]).num_rows == 1
    assert table.rows(0, np.array([5]), ["string"]).num_rows == 1


def test_of_several_rows_the_error_is_about_the_one_that_is_damaged() -> None:
    data = bytearray(small(use_dictionary=False, compression="zstd"))
    pages = leaf_of(opened(bytes(data)), 1, "string").table
    assert len(pages.size) > 1
    data[pages.offset[1] : pages.offset[1] + 40] = b"\xff" * 40
    table = opened(bytes(data), Kept(page_tables(Bytes(small(use_dictionary=False, compression="zstd")))))
    first = int(pages.first[1])
    with pytest.raises(CorruptRecord, match="'string' of group 1") as raised:
        table.rows(1, np.arange(20), ["int32", "string"])
    assert raised.value.row == 40 + first
    assert table.rows(1, np.arange(first), ["int32", "string"]).num_rows == first


@pytest.mark.parametrize("columns", [["int32"], ["list_string", "struct_two"]])
def test_a_file_that_changed_is_told_as_such(columns: list[str]) -> None:
    class Stale(Bytes):
        stale = False

        def range(self, start: int, stop: int) -> memoryview:
            if self.stale:
                raise IndexStale("changed")
            return super().range(start, stop)

    source = Stale(small())
    table = ParquetFormat().open(source, None)
    table.rows(0, np.array([0]), columns)
    source.stale = True
    with pytest.raises(IndexStale, match="changed"):
        table.rows(0, np.array([1, 2]), columns)
    with pytest.raises(IndexStale, match="changed"):
        table.run(0, 0, 40, columns)
    with pytest.raises(IndexStale, match="changed"):
        table.run(0, 0, 4, columns)


def test_rows_that_take_more_memory_than_there_is_are_refused() -> None:
    """A footer that speaks of 2**40 rows makes nobody reserve room for them."""
    data = written(pa.table({"a": pa.array([7], pa.int64())}), use_dictionary=False, compression="none")
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8].replace(b"\x16\x02", b"\x16" + unsigned(2 << 40))
    lying = data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert max(ParquetFormat().read_layout(Bytes(lying)).group_rows) == 2**40
    table = opened(lying)
    with pytest.raises(CorruptRecord):
        table.rows(0, np.array([2**39]), ["a"])
    with pytest.raises(CorruptRecord):
        table.run(0, 0, 2**40, ["a"])
    with pytest.raises(CorruptRecord):
        table.run(0, 5, 10, ["a"])


def test_a_header_that_says_more_than_there_is_is_refused() -> None:
    data = small(use_dictionary=False)
    paged = leaf_of(opened(data), 0, "int32")
    page = data[paged.table.offset[0] : paged.table.offset[0] + paged.table.size[0]]
    assert leading_header(memoryview(page)).values > 0
    for size in (0, 1, 5, len(page) - 1):
        with pytest.raises(ThriftError):
            leading_header(memoryview(page[:size]))
    with pytest.raises(ThriftError):
        leading_header(memoryview(page + b"x"))


class _Kms(pe.KmsClient):  # type: ignore[misc]
    def __init__(self, _: Any) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64decode(key)


@pytest.mark.parametrize("plain", [True, False])
def test_encrypted_files_are_refused(tmp_path: Path, *, plain: bool) -> None:
    factory = pe.CryptoFactory(_Kms)
    ways = pe.EncryptionConfiguration(footer_key="f", column_keys={"k": ["a"]}, plaintext_footer=plain)
    keys = factory.file_encryption_properties(pe.KmsConnectionConfig(), ways)
    path = os.path.join(tmp_path, "secret.parquet")
    table = pa.table({"a": [1, 2], "b": [3, 4]})
    with pq.ParquetWriter(path, table.schema, encryption_properties=keys) as writer:
        writer.write_table(table)
    with open(path, "rb") as file:
        data = file.read()
    with pytest.raises(UnsupportedFormat, match="encrypted"):
        ParquetFormat().read_layout(Bytes(data))


def test_two_columns_of_one_name_are_refused() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(UnsupportedFormat, match="'a'"):
        ParquetFormat().read_layout(Bytes(written(table)))


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_a_page_that_is_not_that_of_its_checksum_is_corrupt(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"id": range(100), "text": ["x" * 50 + str(row % 3) for row in range(100)]})
    pq.write_table(table, path, compression=compression, row_group_size=50, write_page_checksum=True)
    good = path.read_bytes()
    for group in range(2):
        for column in range(2):
            chunk = pq.read_metadata(path).row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            data = bytearray(good)
            data[start + chunk.total_compressed_size - 3] ^= 0x01
            path.write_bytes(bytes(data))
            dataset = sk.open(path)
            assert dataset[99 - 50 * group]["id"] == 99 - 50 * group
            with pytest.raises(CorruptRecord, match=r"a\.parquet: record \d+ "):
                dataset[50 * group + 7]
            with pytest.raises(CorruptRecord, match=r"a\.parquet: record \d+ "):
                list(dataset)
            path.write_bytes(good)
