"""Columns of records of CSV, by pyarrow's reader, which holds no lock of Python while it reads.

It reads quotes as the records are read one by one. What it is not asked for: other encodings than UTF-8, and
quotes that may be characters like others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from seekable._optional import optional
from seekable.formats.lines.line_bounds import BYTE_ORDER_MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyarrow import csv as pa_csv

    from seekable.formats.lines.csv import CsvRecords
else:
    pa = optional("pyarrow", extra="parquet")
    pa_csv = optional("pyarrow.csv", extra="parquet")

__all__ = ["table"]

_ALL: Final = (1 << 31) - 1
"""The bytes of a block, from which the reader makes one batch: the most that it takes."""


def table(views: Sequence[memoryview], records: CsvRecords, *, last: Sequence[int]) -> pa.RecordBatch:
    r"""Return records as one record batch of strings.

    Args:
        views: the ranges of the records, each of which begins and ends outside of quotes.
        records: the decoder of single records.
        last: the indices of those that are the last of their files, and may have no line end.

    Raises:
        Exception: a record has other columns, or they have to be read one by one.

    Example:
        >>> from seekable.formats.lines.csv import Dialect, csv_records
        >>> views = [memoryview(b'7,"good\nday"\n'), memoryview(b"8,")]
        >>> table(views, csv_records(b"id,text\n", Dialect()), last=[1]).to_pylist()
        [{'id': '7', 'text': 'good\nday'}, {'id': '8', 'text': ''}]
    """
    pieces: list[memoryview | bytes] = list(views)
    for at in last:
        _ = records.fast(views[at])  # Only the last record of a file may be torn.
        pieces[at] = bytes(views[at]) + b"\n"
    joined, dialect = b"".join(pieces), records.dialect
    doubtful = dialect.checks_lines and dialect.quote.encode() in joined
    marked = joined.startswith(BYTE_ORDER_MARK)  # The reader leaves it out, and here it is text.
    if records.wrong or doubtful or marked or dialect.encoding != "utf-8":
        message = "records are read one by one"
        raise ValueError(message)
    batch = pa_csv.open_csv(pa.BufferReader(joined), **_options(records)).read_next_batch()
    if batch.num_rows != len(views):
        message = f"{len(views)} records are {batch.num_rows} rows"
        raise ValueError(message)
    return batch


@lru_cache(maxsize=256)
def _options(records: CsvRecords) -> dict[str, Any]:
    names, dialect = records.names, records.dialect
    return {
        "read_options": pa_csv.ReadOptions(use_threads=False, block_size=_ALL, column_names=list(names)),
        "parse_options": pa_csv.ParseOptions(
            delimiter=dialect.delimiter, quote_char=dialect.quote or False, newlines_in_values=True
        ),
        "convert_options": pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    }
