from __future__ import annotations

import gzip
import json
import pickle

import pytest
from tests.formats.splitter import BOM

from seekable.errors import UnsupportedFormat
from seekable.formats.lines.jsonl import JsonlScanner
from seekable.formats.lines.text import TextScanner
from seekable.index.digest import END_BYTES

ENGLISH = '{"text": "good day, and good night"}\n'
BOTH = [JsonlScanner(), TextScanner()]


@pytest.mark.parametrize("scanner", BOTH, ids=lambda scanner: scanner.name)
@pytest.mark.parametrize(
    ("head", "message"),
    [
        (gzip.compress(b"x", mtime=0), r"gzip.*gunzip -c '/my data/f' > NEW"),
        (b"\x28\xb5\x2f\xfd\x00", "zstd.*zstd -dc"),
        (b"BZh91AY", "bzip2.*bunzip2 -c"),
        (b"\xfd7zXZ\x00\x00", "xz.*xz -dc"),
        (b"PK\x03\x04\x14", "compressed by zip.*unzip"),
        (b"PAR1\x15\x04", "Parquet, not lines of text"),
        (b"ARROW1\x00\x00", "Arrow"),
        (ENGLISH.encode("utf-16"), "UTF-16LE.*iconv -f UTF-16LE -t UTF-8"),
        (ENGLISH.encode("utf-16-le"), "UTF-16LE"),
        (ENGLISH.encode("utf-16-be"), "UTF-16BE"),
        (b"\xfe\xff" + ENGLISH.encode("utf-16-be"), "UTF-16BE"),
        (ENGLISH.encode("utf-32"), "UTF-32LE"),
        (ENGLISH.encode("utf-32-le"), "UTF-32LE"),
        (ENGLISH.encode("utf-32-be"), "UTF-32BE"),
    ],
)
def test_what_is_no_utf8_text_is_named_with_the_way_out(
    scanner: JsonlScanner | TextScanner, head: bytes, message: str
) -> None:
    with pytest.raises(UnsupportedFormat, match=message):
        scanner.check_head(head, "/my data/f")


@pytest.mark.parametrize("scanner", BOTH, ids=lambda scanner: scanner.name)
@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\n",
        BOM,
        BOM + b'{"a": 1}\n',
        b"\x00" * 100,
        b'"' + b"\x00" * 100,
        b"a\x00b\x00",
        b'{"a": 1}\n\x00\x00\x00',
        '{"a": "日本語のテキスト"}\n'.encode(),
        b"\xff garbage\n{}\n",
        b'{"a": 1, "torn\n{"a": 2}\n',
        b'{"a": 1,\n',
        b"[1, 2]\n[3]\n",
        b"[1, 2]\n",
        b'"\\ud800"\n[\n',
        b"NaN\n1e400\n",
        b'{"a": 1}\n{\n',
        b"{",
        b"1 2\n",
        b'{"long": "' + b"x" * END_BYTES,
    ],
)
def test_what_may_be_lines_is_let_through(scanner: JsonlScanner | TextScanner, head: bytes) -> None:
    scanner.check_head(head[:END_BYTES], "f")


DOCUMENT = {"a": [1, 2], "b": {"c": "x\n"}}


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (json.dumps(DOCUMENT, indent=2).encode(), r"one JSON document.*jq -c \. /f > NEW.jsonl"),
        (b"\r\n " + json.dumps([DOCUMENT], indent=2).encode(), r"one JSON array.*jq -c '\.\[\]' /f"),
        (b'[\n{"a": 1},\n{"a": 2}\n]\n', "array"),
        (b'[{"a": 1},\n{"a": 2}]\n', "array"),
        (BOM + b'[\n{"a": 1}\n]\n', "array"),
        (json.dumps([DOCUMENT] * 5000, indent=2).encode(), "array"),
        (b'[\n{"a": 1},\n' * 1 + b'{"a": 22},\n' * 20_000, "array"),
    ],
)
def test_one_document_over_many_lines_is_no_jsonl(head: bytes, message: str) -> None:
    with pytest.raises(UnsupportedFormat, match=message):
        JsonlScanner().check_head(head[:END_BYTES], "/f")
    TextScanner().check_head(head[:END_BYTES], "/f")


def test_an_array_on_one_line_is_a_record_of_jsonl_but_not_a_json_file_of_records() -> None:
    JsonlScanner().check_head(b"[1, 2]\n", "/f.jsonl")
    with pytest.raises(UnsupportedFormat, match=r"one JSON array.*jq -c '\.\[\]' /f"):
        JsonlScanner().check_head(b' [{"a": 1}, {"a": 2}]\n', "/f.JSON")


@pytest.mark.parametrize("scanner", BOTH, ids=lambda scanner: scanner.name)
def test_scanners_are_small_values(scanner: JsonlScanner | TextScanner) -> None:
    assert pickle.loads(pickle.dumps(scanner)) == scanner
    assert len(pickle.dumps(scanner)) < 200
