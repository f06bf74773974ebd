"""Records as the command line prints them: any value of any format; the line of export where that has one."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import io
import json
import math
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thrift import some

import seekable as sk
from seekable.cli.output import write_document, write_line
from seekable.cli.records import record_json, write_records
from seekable.formats.lines.jsonl_writer import Unencodable, json_text
from seekable.kaldi import Wave

if TYPE_CHECKING:
    from pathlib import Path

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.timedeltas()
    | st.builds(np.float32, st.floats(width=32))
    | st.builds(np.longdouble, st.floats())
    | st.builds(np.datetime64, st.datetimes())
    | st.builds(np.array, st.lists(st.floats(), max_size=3))
    | st.builds(lambda some: Wave(8000, np.array([some])), st.lists(st.floats(), max_size=3))
    | st.sampled_from([1j, sk.HOLE, object, {1, 2}, frozenset("a"), bytearray(b"a"), range(3)])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=()), max_size=3) | st.integers(), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def strict(data: bytes) -> Any:
    """The content of standard JSON."""
    return json.loads(data.decode("utf-8"), parse_constant=pytest.fail)


@settings(max_examples=some(40, of=3), deadline=None)
@given(VALUES)
def test_every_value_is_printed_as_one_line_of_json_and_as_export_writes_it(value: Any) -> None:
    printed = record_json(value)
    strict(printed)
    assert b"\n" not in printed
    with contextlib.suppress(Unencodable):
        assert printed == json_text(value)


def test_what_json_lacks_is_printed_as_text() -> None:
    record = {"a": [math.nan, math.inf, -math.inf], "b": "caf\udce9", "c": b"\0", 4: (1, 2)}
    assert record_json(record) == (b'{"a":["nan","inf","-inf"],"b":"caf\\udce9","c":"AA==","4":[1,2]}')
    day = dt.datetime(2026, 11, 28, 12, tzinfo=dt.UTC)
    assert record_json([day, decimal.Decimal("1.50"), np.float32("nan")]) == (
        b'["2026-11-28T12:00:00Z","1.50","nan"]'
    )
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert b"..." in record_json(deep)


def tar_of(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", encoding="latin-1", format=tarfile.GNU_FORMAT) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def table_of(columns: dict[str, list[Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


FILES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a.jsonl": (b'{"s": NaN}\n{"s": "\\udce9"}\n' + b"[" * 3 + b"1e400" + b"]" * 3 + b"\n", {}),
    "a.txt": ("é\n\n".encode(), {}),
    "a.csv": (b"s,t\nnan,\x7f\n", {}),
    "names.tar": (tar_of({"caf\xe9.txt": b"x", "caf\xe9.json": b'{"s": [NaN, -Infinity, "\\ud800"]}'}), {}),
    "bytes.tar": (tar_of({"a.bin": bytes(99), "a.cls": b"7"}), {}),
    "key.ark": (b"caf\xe9 7\n", {"format": sk.formats.Kaldi(holder="int32")}),
    "word.ark": (b"a caf\xe9\n", {"format": sk.formats.Kaldi(holder="token")}),
    "nan.ark": (b"a  [\n  nan 1 ]\n", {"format": sk.formats.Kaldi(holder="matrix")}),
    "a.parquet": (
        table_of(
            {
                "f": [math.nan, None],
                "b": [b"\xff", None],
                "d": [decimal.Decimal("1.5"), None],
                "t": [dt.datetime(2026, 1, 1), None],  # noqa: DTZ001 - a column without a zone
                "l": [[math.inf], None],
            }
        ),
        {},
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_records_of_all_formats_are_printed(
    name: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    data, options = FILES[name]
    (tmp_path / name).write_bytes(data)
    ds: Any = sk.open(tmp_path / name, **options)
    rows = range(len(ds))
    write_records(ds._node, rows, as_json=True)
    documents = [strict(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [document["row"] for document in documents] == list(rows)
    write_records(ds._node, rows, as_json=False)
    lines = capsysbinary.readouterr().out.splitlines()
    assert len(lines) == len(rows)
    for line, document, record in zip(lines, documents, ds, strict=True):
        if name in {"a.jsonl", "a.txt", "a.csv"}:
            assert line in data
        else:
            assert strict(line) == document["record"]
            assert name == "bytes.tar" or line == record_json(record)


def test_documents_and_lines_take_any_text(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write_document({"a": "caf\udce9", "b": ["\ud800"]})
    write_line("caf\udce9 \ud800")
    assert capsysbinary.readouterr().out == (
        b'{"a":"caf\\udce9","b":["\\ud800"],"schema":1}\ncaf\xe9 \\ud800\n'
    )
