"""CSV, compared with Python's own csv module on whatever bytes there are."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import pickle
import re
import tempfile
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.formats.splitter import BOM

import seekable as sk
from seekable.formats.lines.csv import CsvScanner, Dialect, csv_records, dialect_of, record_span
from seekable.index.finder import ByteSource

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
        source = ByteSource(file, size=len(data), head=data[: 1 << 16], chunk_bytes=chunk_bytes)
        starts = [int(start) for start in CsvScanner(name).scan(source)]
    return list(itertools.pairwise([*starts, len(data)]))


def fields(data: bytes, start: int, stop: int) -> list[str] | None:
    """Return the fields of a record, however many there are; None if it was torn."""
    row = next(csv.reader([data[start:stop].decode()]))
    records = csv_records(",".join(map(str, range(len(row)))).encode(), Dialect())
    view = memoryview(data)[start:stop]
    try:
        return list(records.fast(view).values())
    except csv.Error:
        told = "nothing closes it"
    try:
        return list(records.recover(bytes(view[: record_span(view)])).values())
    except ValueError as error:
        return None if told in str(error) else []


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


@given(text=TEXT, name=st.sampled_from(["csv", "tsv", "csv-semicolon", "csv-pipe", "csv-x01"]))
def test_each_delimiter_is_the_one_of_its_format(text: str, name: str) -> None:
    delimiter = dialect_of(name).delimiter
    data = text.replace(",", delimiter).encode()
    expected = reference(data.decode(), delimiter)[1:]
    assert len(ranges(data, chunk_bytes=9, name=name)) == len(expected)


@pytest.mark.parametrize(
    ("lines", "quoting"),
    [("\n", csv.QUOTE_MINIMAL), ("\r\n", csv.QUOTE_MINIMAL), ("\n", csv.QUOTE_ALL), ("\r", csv.QUOTE_ALL)],
)
def test_files_in_chunks_of_the_usual_size(tmp_path: Path, lines: str, quoting: Literal[0, 1]) -> None:
    texts = ["plain", 'said "so"', "two\nlines", "", "a,b", "r\r\nn", '"', "x" * 3000, '""']
    rows = [[str(n), texts[n % 9], texts[n * n % 9]] for n in range(6_000)]
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator=lines, quoting=quoting).writerows([["id", "a", "b"], *rows])
    ds = sk.open(path)
    assert len(ds) == len(rows)
    some = range(0, len(rows), 7)
    assert ds[list(some)] == [dict(zip(("id", "a", "b"), rows[row], strict=True)) for row in some]
    data = path.read_bytes()
    place = ds.locate(13)
    assert next(csv.reader([data[place.offset : place.offset + place.length].decode()])) == rows[13]


def put(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name.replace("_", ".")
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_each_file_is_read_by_its_own_header(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_csv="id,text\n1,x\n2,y\n",
        b_csv="\ufefftext,id,more\nz,3,!\n",
        c_csv="only,this\n",
        d_csv="",
    )
    put(tmp_path, e_csv_gz=gzip.compress(b'\r\n\nid,text\n4,"g\nz"\n'))
    ds = sk.open(tmp_path)
    wanted = [
        {"id": "1", "text": "x"},
        {"id": "2", "text": "y"},
        {"text": "z", "id": "3", "more": "!"},
        {"id": "4", "text": "g\nz"},
    ]
    assert [ds[row] for row in range(len(ds))] == wanted
    assert ds[[3, 0, 2, 1]] == [wanted[row] for row in (3, 0, 2, 1)]
    assert list(pickle.loads(pickle.dumps(ds)).shuffle(seed=1).take(4)) == [
        wanted[row] for row in sk.from_sequence(range(4), version="n").shuffle(seed=1)
    ]


def test_sources_of_other_headers_and_delimiters_are_read_together(tmp_path: Path) -> None:
    put(tmp_path, a_csv="id,n\n1,x\n2,y\n", b_tsv='n\tid\n"a\tb"\t3\n', c_jsonl='{"id": 4}\n')
    parts = [sk.open(tmp_path / name) for name in ("a.csv", "b.tsv", "c.jsonl")]
    both = sk.concat(parts)
    assert both[[3, 2, 0]] == [{"id": 4}, {"n": "a\tb", "id": "3"}, {"id": "1", "n": "x"}]


def test_decoding_may_be_left_to_the_user(tmp_path: Path) -> None:
    put(tmp_path, a_csv='id,text\n1,"two\nlines"\r\n\r\n2,b\n')
    raw = [b'1,"two\nlines"', b"2,b"]
    assert list(sk.open(tmp_path, decode="bytes")) == raw
    assert list(sk.open(tmp_path, decode="text")) == [line.decode() for line in raw]
    assert list(sk.open(tmp_path, decode=len)) == [len(line) for line in raw]
    again = pickle.loads(pickle.dumps(sk.open(tmp_path, decode="bytes")))
    assert list(again) == raw
    assert [place.length for place in again.locate([0, 1])] == [13, 3]
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"decode must be one of 'json', 'text', 'bytes', 'csv' or"
    ):
        sk.open(tmp_path, decode="tsv")
    put(tmp_path, b_txt="x\n")
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"one of 'json', 'text', 'bytes' or a function.*got 'csv'"
    ):
        sk.open(tmp_path / "b.txt", decode="csv")


@pytest.mark.parametrize(
    ("rows", "row", "message"),
    [
        ("1,2\n3\n", 1, "it has 1 fields, and the header names 2 columns: 'a', 'b'"),
        ("1,2\n3,4,5\n", 1, "it has 3 fields"),
        ('1,2\n"3","4"x,5\n', 1, "it has 3 fields"),
        ('1,2\n3,"4\n5,6\n', 1, "the quote at character 2 opens a field, and nothing closes it"),
    ],
)
def test_rows_that_do_not_fit_are_told_with_both_counts(
    tmp_path: Path, rows: str, row: int, message: str
) -> None:
    path = put(tmp_path, a_csv="a,b\n" + rows) / "a.csv"
    ds = sk.open(path)
    for asked in (row, [0, row]):
        with pytest.raises(sk.CorruptRecord, match=message) as caught:
            ds[asked]
        assert (caught.value.row, caught.value.offset) == (row, 8)
    holes = sk.open(path, errors=lambda _: sk.HOLE)
    assert list(holes) == [{"a": "1", "b": "2"}, sk.HOLE]


def test_text_that_is_not_utf_8_is_an_error_of_its_record(tmp_path: Path) -> None:
    ds = sk.open(put(tmp_path, a_csv=b"a\nM\xfcller\nok\n"))
    with pytest.raises(sk.CorruptRecord, match=r"no text in utf-8 .*say sk\.formats\.Csv\(encoding="):
        ds[0]
    assert ds[1] == {"a": "ok"}


def test_a_field_may_be_longer_than_the_csv_module_takes(tmp_path: Path) -> None:
    long = 'x"' * (csv.field_size_limit() + 1)
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], [long, "1"]])
    assert sk.open(tmp_path)[0] == {"a": long, "b": "1"}


def test_headers_that_name_a_column_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sk.errors.UnsupportedFormat, match="the header names 'b' more than once; rename one"):
        sk.open(put(tmp_path, a_csv="a,b,b\n1,2,3\n"))


def test_a_long_header_is_looked_at_when_a_record_is_read(tmp_path: Path) -> None:
    names = [f"column {number}" for number in range(9000)]
    row = ",".join(map(str, range(9001)))
    put(tmp_path, a_csv=",".join([*names, "column 5"]) + f"\n{row}\n")
    with pytest.raises(sk.CorruptRecord, match="the header is wrong: the header names 'column 5' more than"):
        sk.open(tmp_path)[0]


@pytest.mark.parametrize("delimiter", [";", "\t", "|", "\x01"])
def test_another_delimiter_is_noticed(tmp_path: Path, delimiter: str) -> None:
    put(tmp_path, a_csv=f"a{delimiter}b\n1{delimiter}2\n")
    name = {";": "csv-semicolon", "\t": "tsv", "|": "csv-pipe", "\x01": "csv-x01"}[delimiter]
    with pytest.raises(sk.errors.UnsupportedFormat, match="has one column") as caught:
        sk.open(tmp_path / "a.csv")
    told = re.findall(r"say (sk\.formats\.Csv\(delimiter=.*?'\)), or rename", str(caught.value))
    for form in (name, eval(told[0])):
        assert sk.open(tmp_path / "a.csv", format=form)[0] == {"a": "1", "b": "2"}


def test_one_column_is_fine(tmp_path: Path) -> None:
    assert list(sk.open(put(tmp_path, a_csv='a\nx\n""\n\ny\n'))) == [{"a": "x"}, {"a": ""}, {"a": "y"}]


def test_other_files_are_refused(tmp_path: Path) -> None:
    put(tmp_path, a_csv=gzip.compress(b"a,b\n1,2\n", mtime=0), b_csv="a,b\n".encode("utf-16"))
    for name, message in (("a.csv", "compressed"), ("b.csv", "UTF-16LE")):
        with pytest.raises(sk.errors.UnsupportedFormat, match=message):
            sk.open(tmp_path / name)


def test_a_header_that_changed_is_another_dataset(tmp_path: Path) -> None:
    first = sk.open(put(tmp_path, a_csv="a,b\n1,2\n")).fingerprint
    assert sk.open(put(tmp_path, a_csv="a,c\n1,2\n")).fingerprint != first


def test_streams_say_that_they_read_no_csv(tmp_path: Path) -> None:
    put(tmp_path, a_csv="a,b\n1,2\n")
    with pytest.raises(sk.errors.InvalidArgument, match=r"reads 'jsonl', 'text' \(got 'csv'\): use open\(\)"):
        sk.open_stream(tmp_path / "a.csv")


def test_a_scanner_is_a_small_value() -> None:
    assert pickle.loads(pickle.dumps(CsvScanner("tsv"))) == CsvScanner("tsv")
    assert not CsvScanner().splittable


UNQUOTED = 'id\ttext\n1\t"hello\n2\tworld\n3\tbye"\n4\t"end\n'
ROWS = [{"id": n, "text": text} for n, text in zip("1234", ('"hello', "world", 'bye"', '"end'), strict=True)]


def test_a_quote_that_may_be_a_character_is_refused_until_the_user_says_what_it_is(tmp_path: Path) -> None:
    put(tmp_path, a_tsv=UNQUOTED)
    told = r"line 2: a quote opens .* 3 lines.*say sk\.formats\.Csv\(quote=''\) if"
    with pytest.raises(sk.errors.UnsupportedFormat, match=told):
        sk.open(tmp_path)
    for ds in (sk.open(tmp_path, format=sk.formats.Csv(quote="")), sk.open(tmp_path, format="tsv-unquoted")):
        assert list(ds) == ROWS
        assert list(pickle.loads(pickle.dumps(ds))) == ROWS
    quoted = sk.open(tmp_path, format=sk.formats.Csv(quote='"'))
    assert quoted[0] == {"id": "1", "text": "hello\n2\tworld\n3\tbye"}
    # Far into a file the record is refused, where it is read.
    put(tmp_path, a_tsv="id\ttext\n" + "0\tx\n" * 20_000 + UNQUOTED[8:])
    ds = sk.open(tmp_path)
    with pytest.raises(sk.CorruptRecord, match=r"record 20000 .*say sk\.formats\.Csv\(quote=''"):
        ds[20_000]


def test_text_over_lines_is_a_record_where_none_of_them_could_be_one(tmp_path: Path) -> None:
    put(tmp_path, a_tsv='id\ttext\n1\t"good\nday\n"\n2\tx\n', b_csv='id,text\n1,"so\nit, is"\n')
    assert [record["text"] for record in sk.open(tmp_path / "a.tsv")] == ["good\nday\n", "x"]
    assert sk.open(tmp_path / "b.csv")[0]["text"] == "so\nit, is"


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("k|v\n'a|\n'|\"\n", {"delimiter": "|", "quote": "'"}),
        ("k\x01v\n'a|\n'\x01\"\n", {"delimiter": "\x01", "quote": "'"}),
        ('k,v\n"a|\n",""""\n', {"encoding": "cp1252"}),
    ],
)
def test_a_dialect_may_be_said(tmp_path: Path, content: str, options: dict[str, str]) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content.replace("a", "é").encode(options.get("encoding", "utf-8")))
    form = sk.formats.Csv(**options)  # type: ignore[arg-type]
    ds = sk.open(path, format=form)
    assert list(ds) == [{"k": "é|\n", "v": '"'}]
    assert list(pickle.loads(pickle.dumps(ds))) == list(ds)
    assert sk.open(path, format=form, decode="text")[0].startswith(options.get("quote", '"') + "é|")
    format_name = ds._node.describe(None)["format"]
    assert sk.open(path, format=format_name)[0] == ds[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"delimiter": "ab"}, "delimiter must be one ASCII character"),
        ({"delimiter": "\n"}, "no line end"),
        ({"quote": ","}, "not the delimiter ','"),
        ({"encoding": "utf-16"}, "single bytes.*got 'utf-16'"),
        ({"encoding": "cp037"}, "single bytes"),
        ({"encoding": "gbk", "delimiter": "|"}, "a part of another character"),
        ({"encoding": 1}, "encoding must be a text"),
    ],
)
def test_a_dialect_by_which_no_record_is_found_is_refused(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    put(tmp_path, a_csv="a,b\n1,2\n")
    with pytest.raises(sk.SeekableError, match=says):
        sk.open(tmp_path / "a.csv", format=sk.formats.Csv(**options))
