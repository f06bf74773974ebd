from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.registry import FORMATS, SUFFIXES, Format, format_named, format_of
from seekable.formats.source_options import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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


class Odd:
    """Finds nothing: it stands for what finds the records of a format of tests."""

    def __init__(self, name: str) -> None:
        self.name = name


def odd_source(form: Format, options: SourceOptions) -> Callable[[Any], Any]:
    if options.strict:
        raise sk.InvalidArgument("no strict=")
    return lambda files: (form.name, options.shown, files)


def test_a_format_is_a_line_with_what_finds_and_what_builds() -> None:
    form = Format("odd", (".odd",), f"{__name__}:Odd", f"{__name__}:odd_source", "odd")
    assert isinstance(form.scanner, Odd)
    assert form.scanner.name == "odd"
    build: Callable[[Any], Any] = form.source(SourceOptions(shown="here"))
    assert build([1]) == ("odd", "here", [1])
    with pytest.raises(sk.InvalidArgument, match="no strict="):
        form.source(SourceOptions(shown="here", strict=True))


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_what_a_line_names_is_there(form: Format) -> None:
    assert form.scanner.name == form.name
    resolved = form.with_holder("int32-vector") if form.holder_finder else form
    assert resolved.scanner.name == resolved.name
    assert callable(resolved.source(SourceOptions(shown="here")))


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_options_are_refused_before_a_file_is_looked_for(form: Format) -> None:
    with pytest.raises(sk.InvalidArgument, match=r"decode must be one of|decode= is for lines"):
        form.source(SourceOptions(shown="here", decode="nonsense"))
    with pytest.raises(sk.WrongType, match="errors must be a function"):
        SourceOptions(shown="here", errors="skip")  # type: ignore[arg-type]


OPENED = """
import sys
import seekable as sk
assert sk.open(sys.argv[1], index=sk.Index(jobs=1))[1] == {"id": 1}
names = ("parquet", "arrow", "tables", "columnar", "hub", "specs")
print([m for m in sys.modules if m.startswith("seekable.formats.") or m.startswith("seekable.nodes.sources.")
       or m.startswith("seekable.dataset.") if any(n in m for n in names)], "pyarrow" in sys.modules)
"""


def test_json_lines_are_opened_without_code_of_tables_or_of_the_hub(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 0}\n{"id": 1}\n')
    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[] False\n"


@pytest.mark.parametrize("source", [3, None, b"bytes", [3], {"a.jsonl"}])
def test_what_is_no_path_is_refused_by_open(source: Any) -> None:
    with pytest.raises(sk.WrongType, match=r"paths?.*; got "):
        sk.open(source)


def test_an_iterator_of_paths_is_a_list_of_them(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text(f"{number}\n", encoding="utf-8")
    paths: Any = (tmp_path / f"{number}.jsonl" for number in (2, 0))
    assert list(sk.open(paths)) == [2, 0]
