"""A row is the same however it is read: alone, again, in a batch, by its pages or with its whole group."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.parquet.footers import BINARY, I32, Struct, patched
from tests.formats.parquet.truth import opened, written

import seekable as sk
from seekable.errors import CorruptRecord, UnsupportedFormat
from seekable.formats.tables.parquet.thrift import unsigned
from seekable.nodes.columns.decode_column import DECODED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LISTS = [[row] * (row % 3) for row in range(70)]


class Interval(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types here
    """A type over two leaves, as pandas registers one for its intervals."""

    def __init__(self) -> None:
        super().__init__(pa.struct([("left", pa.int64()), ("right", pa.int64())]), "tests.interval")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> Interval:
        return cls()


@pytest.fixture
def interval() -> Iterator[Interval]:
    pa.register_extension_type(Interval())
    yield Interval()
    pa.unregister_extension_type("tests.interval")


def with_rows_of_values(data: bytes) -> bytes:
    """Return a file whose page of lists has its number of values in the place of that of rows.

    So pyarrow before 12 wrote pages of version 2.
    """
    values = sum(max(1, len(some)) for some in LISTS)
    start = pq.read_metadata(io.BytesIO(data)).row_group(0).column(1).data_page_offset
    right, wrong = (b"\x15" + unsigned(2 * number) for number in (len(LISTS), values))
    at = data.index(right + b"\x15\x00", start)
    return data[:at] + wrong + data[at + len(right) :]


def answers(path: Path) -> Iterator[list[Any]]:
    """Yield all records of a file, after several histories of reads."""
    DECODED.forget()
    dataset = sk.open(path, errors=str)
    rows = range(len(dataset))
    for _ in range(4):
        yield [dataset[row] for row in rows]
    DECODED.forget()
    yield dataset[list(rows[::-1])][::-1]
    DECODED.forget()
    yield list(dataset)


def test_lists_whose_pages_count_values_as_rows_are_those_of_pyarrow(tmp_path: Path) -> None:
    table = pa.table({"i": range(70), "l": LISTS})
    options: dict[str, Any] = {"data_page_version": "2.0", "use_dictionary": False, "compression": "none"}
    data = with_rows_of_values(written(table, write_statistics=False, **options))
    assert opened(data)._pages(0, "l"), "one row still takes one page"
    (tmp_path / "a.parquet").write_bytes(data)
    for records in answers(tmp_path / "a.parquet"):
        assert records == table.to_pylist()


def test_a_registered_type_over_several_leaves_is_that_of_pyarrow(tmp_path: Path, interval: Interval) -> None:
    pairs = [{"left": row, "right": row + 1} if row % 5 else None for row in range(20)]
    column = pa.ExtensionArray.from_storage(interval, pa.array(pairs, interval.storage_type))
    lists = pa.ListArray.from_arrays(pa.array(range(21), pa.int32()), column)
    pq.write_table(pa.table({"iv": column, "ivs": lists, "a": range(20)}), tmp_path / "a.parquet")
    wanted = [{"iv": pair, "ivs": [pair], "a": row} for row, pair in enumerate(pairs)]
    for records in answers(tmp_path / "a.parquet"):
        assert records == wanted


def test_pages_that_are_refused_here_are_read_if_pyarrow_reads_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A kind of page that nothing here knows: pyarrow has the last word about it.
    monkeypatch.setattr("seekable.formats.tables.parquet.pages._DICTIONARY_ENCODINGS", ())
    table = pa.table({"a": [row % 7 for row in range(50)]})
    pq.write_table(table, tmp_path / "a.parquet")
    for records in answers(tmp_path / "a.parquet"):
        assert records == table.to_pylist()


def test_a_dictionary_that_is_not_that_of_its_checksum_is_corrupt_in_all_reads(tmp_path: Path) -> None:
    table = pa.table({"a": [f"word {row % 9}" for row in range(70)]})
    data = bytearray(written(table, write_page_checksum=True, compression="none"))
    data[data.index(b"word 4") + 5] ^= 1
    (tmp_path / "a.parquet").write_bytes(data)
    for records in answers(tmp_path / "a.parquet"):
        assert all("its checksum" in record for record in records)
    with pytest.raises(CorruptRecord, match="its checksum"):
        sk.open(tmp_path / "a.parquet")[4]


def _without_leaves(name: bytes) -> Struct:
    return {3: (I32, 1), 4: (BINARY, name), 5: (I32, 0)}


def test_a_struct_without_leaves_is_left_out() -> None:
    def change(footer: Struct) -> None:
        elements = footer[2][1][1]
        elements.insert(1, _without_leaves(b"nothing"))
        elements[0][5] = (I32, 3)

    table = pa.table({"id": [1, 2, 3], "s": [{"a": 1}, None, {"a": 3}]})
    found = opened(patched(written(table), change))
    assert found.schema.names == ["id", "s"]
    for rows in (found.rows(0, np.array([0, 2]), ["s", "id"]), found.run(0, 0, 3, ["s", "id"]).take([0, 2])):
        assert rows.to_pylist() == [{"s": {"a": 1}, "id": 1}, {"s": {"a": 3}, "id": 3}]


def test_a_struct_without_leaves_beside_leaves_is_refused_by_name() -> None:
    def change(footer: Struct) -> None:
        elements = footer[2][1][1]
        elements.append(_without_leaves(b"nothing"))
        elements[2][5] = (I32, 2)

    data = patched(written(pa.table({"id": [1], "s": [{"a": 1}]})), change)
    with pytest.raises(UnsupportedFormat, match=r"column 's'.*struct without fields"):
        opened(data)
