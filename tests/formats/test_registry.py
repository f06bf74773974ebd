from __future__ import annotations

import pytest

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.registry import FORMATS, SUFFIXES, format_named, format_of


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.jsonl", "jsonl"),
        ("b/c.ndjson", "jsonl"),
        ("a.json", "jsonl"),
        ("A.JSON", "jsonl"),
        ("a.b.txt", "text"),
        (".txt", "text"),
        ("a.jsonl.gz", "jsonl"),
        ("a.txt.ZST", "text"),
    ],
)
def test_a_name_tells_its_format_by_suffix(name: str, form: str) -> None:
    assert format_of(name) is FORMATS[form]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.jsonl.xz", r"compressed by its name \(\.xz\).*decompress it once.*\.jsonl"),
        ("a.bz2", r"\.bz2"),
        ("a.zst", r"no known format.*\.jsonl\.zst.*format="),
        ("a.avro", r"no known format; known suffixes are \.jsonl.*format=, one of 'jsonl', 'text', 'csv'"),
        ("noext", "no known format"),
    ],
)
def test_other_names_are_refused_with_the_way_out(name: str, message: str) -> None:
    with pytest.raises(UnsupportedFormat, match=message):
        format_of(name)


def test_formats_are_found_by_name() -> None:
    assert all(format_named(name).name == name for name in FORMATS)
    with pytest.raises(InvalidArgument, match=r"format must be one of 'jsonl', 'text', .*; got 'json'"):
        format_named("json")


def test_every_format_is_complete_and_no_suffix_is_claimed_twice() -> None:
    assert len(set(SUFFIXES)) == len(SUFFIXES)
    for form in FORMATS.values():
        assert form.scanner.name == form.name
        assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in form.suffixes)
