from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable.errors import InvalidArgument, MissingDependency, UnsupportedFormat
from seekable.formats.classify import card_of_file
from seekable.formats.contract import Reading
from seekable.formats.table import CARDS, NAMES, SUFFIXES, card_named, format_class, format_named, plugged

if TYPE_CHECKING:
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
    assert card_of_file(name).name == form


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
        card_of_file(name)


def test_formats_are_found_by_name() -> None:
    assert all(format_named(name).name == name for name in NAMES)
    with pytest.raises(InvalidArgument, match=r"format must be one of 'jsonl', 'text', .*; got 'json'"):
        format_named("json")


def test_no_suffix_no_spec_and_no_kind_of_node_is_of_two_cards() -> None:
    assert len(set(SUFFIXES)) == len(SUFFIXES)
    for field in ("suffixes", "named_suffixes", "lists", "specs", "kinds", "name"):
        said = [getattr(card, field) for card in CARDS]
        values = said if field == "name" else [value for some in said for value in some]
        assert len(set(values)) == len(values), field
    suffixes = [suffix for card in CARDS for suffix in (*card.suffixes, *card.named_suffixes)]
    assert len(set(suffixes)) == len(suffixes)
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in suffixes)


@pytest.mark.parametrize("card", [card for card in CARDS if ":" in card.home], ids=lambda card: card.name)
def test_what_a_card_names_is_there(card: Any) -> None:
    found = format_class(card)
    assert found.card.home == card.home
    if card.by_name:
        form = found().with_name(card.name)
        assert form.name == form.finder.name == card.name


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_decoding_is_refused_before_a_file_is_indexed(name: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"decode must be one of|decode= is for lines"):
        format_named(name).check(Reading(shown="here", decode="nonsense"))


@pytest.mark.parametrize("name", ["parquet", "arrow", "kaldi-directory", "tar", "tokens"])
def test_wrong_columns_are_refused_before_a_file_is_indexed(name: str) -> None:
    with pytest.raises(sk.errors.WrongType, match="columns"):
        format_named(name).check(Reading(shown="here", columns="id"))


def test_errors_is_a_function() -> None:
    with pytest.raises(sk.errors.WrongType, match="errors must be a function"):
        Reading(shown="here", errors="skip")  # type: ignore[arg-type]


def test_a_subject_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, card_named("tokens").home.partition(":")[0], None)
    with pytest.raises(MissingDependency, match=r"needs seekable\.formats\.tokens, which is not installed"):
        format_named("tokens")
    monkeypatch.setitem(sys.modules, "seekable.packing.packing_methods", None)
    with pytest.raises(MissingDependency, match=r"needs seekable\.packing, which is not installed"):
        plugged("packing")


OPENED = """
import sys
import seekable as sk
assert sk.open(sys.argv[1], index=sk.Index(jobs=1))[1] == {"id": 1}
names = ("parquet", "arrow", "tables", "columnar", "hub", "specs")
print([m for m in sys.modules if m.startswith("seekable.formats.") or m.startswith("seekable.nodes.files.")
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
    with pytest.raises(sk.errors.WrongType, match=r"paths?.*; got "):
        sk.open(source)


def test_an_iterator_of_paths_is_a_list_of_them(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text(f"{number}\n", encoding="utf-8")
    paths: Any = (tmp_path / f"{number}.jsonl" for number in (2, 0))
    assert list(sk.open(paths)) == [2, 0]
