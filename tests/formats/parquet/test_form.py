"""The format as a value: picklable, and pyarrow only where it is needed."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pyarrow as pa
from tests.formats.parquet.truth import Bytes, Kept, written

from seekable.formats.tables.parquet.parquet_format import ParquetFormat, page_tables

WITHOUT = """
import sys
sys.modules["pyarrow"] = None
import seekable
from seekable.formats.tables.parquet.parquet_format import ParquetFormat
class Source:
    path, size = "x.parquet", 100
    def range(self, start, stop):
        return memoryview(bytes(stop - start))
for look in (lambda: ParquetFormat().read_layout(Source()), lambda: ParquetFormat().open(Source(), None)):
    try:
        look()
    except seekable.MissingDependency as error:
        print(error)
"""


def test_a_format_is_a_value() -> None:
    assert pickle.loads(pickle.dumps(ParquetFormat())) == ParquetFormat()
    assert ParquetFormat().name == "parquet"


def test_without_pyarrow_it_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.stdout.count("pip install 'seekable[parquet]'") == 2, done.stderr


def test_pyarrow_is_imported_by_reading_only() -> None:
    code = "import sys, seekable.formats.tables.parquet.parquet_format; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_page_tables_are_kept_where_there_is_a_store() -> None:
    data = written(pa.table({"a": [1, 2, 3], "b": [{"x": 1, "y": [2]}] * 3}))
    kept = Kept()
    assert page_tables(Bytes(data), kept) == kept.pages


def test_what_a_group_takes_in_the_file() -> None:
    data = written(pa.table({"a": range(10_000), "b": ["some text"] * 10_000}), row_group_size=5000)
    table = ParquetFormat().open(Bytes(data), None)
    spans = [table.span(group) for group in range(2)]
    assert spans[0][0] == 4
    assert spans[1][0] == sum(spans[0])
    assert sum(spans[1]) <= len(data)
