from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.viewer.facts import matching, reading
from seekable.viewer.facts.search import (
    MOST_HITS,
    Searched,
    SearchResult,
    json_spellings,
    search_all,
    search_sample,
)

if TYPE_CHECKING:
    from pathlib import Path

LETTERS = 'ab"/<&\\\n\t\x01 é\u2028😀'
TEXTS = st.text(st.sampled_from(LETTERS), max_size=8)


def values(record: Any) -> list[Any]:
    """All texts and bytes of a record, the simplest way."""
    if isinstance(record, dict):
        return [text for value in record.values() for text in values(value)]
    if isinstance(record, list):
        return [text for value in record for text in values(value)]
    return [record] if isinstance(record, str | bytes) else []


def alike(text: str) -> str:
    """A text with small letters, letter by letter; those with another number of letters stay."""

    def one(letter: str) -> str:
        lower = "\u03c3" if letter == "\u03c2" else letter.lower()
        return lower if len(lower) == 1 and lower.isascii() == letter.isascii() else letter

    return "".join(map(one, text))


def rows_with(ds: sk.Dataset, text: str, *, case: bool) -> list[int]:
    """The rows that have a text, by reading all."""

    def has(value: str | bytes) -> bool:
        there = value if isinstance(value, str) else value.decode("utf-8", "replace")
        return text in there if case else alike(text) in alike(there)

    return [row for row, record in enumerate(ds) if any(map(has, values(record)))]


def last(work: Any) -> SearchResult:
    *_, found = work
    assert isinstance(found, SearchResult)
    return found


def check(ds: sk.Dataset, text: str) -> None:
    for case in (False, True):
        check_one(ds, Searched(text, case=case))
        check_one(ds, Searched(text.upper(), case=case))


def check_one(ds: sk.Dataset, searched: Searched) -> None:
    expected = rows_with(ds, searched.text, case=searched.case)
    everything = last(search_all(ds._node, searched))
    sample = last(search_sample(ds._node, searched, n=len(ds)))
    assert [hit.row for hit in everything.hits] == expected == sorted(hit.row for hit in sample.hits)
    assert everything.found == sample.found == len(expected)
    assert everything.done == everything.of
    assert sample.share is not None
    assert sample.share.exact
    for hit in (*everything.hits, *sample.hits):
        assert any(
            hit.excerpt in (each if isinstance(each, str) else each.decode()) for each in values(ds[hit.row])
        )
        found = [part for part, is_found in hit.parts if is_found]
        assert {alike(part) for part in found} == {alike(searched.text)}
        assert "".join(part for part, _ in hit.parts) == hit.excerpt


@pytest.mark.parametrize("piece", [1, 40, 1 << 22])
@given(st.lists(TEXTS, max_size=6), TEXTS.filter(len), st.sampled_from(["ascii", "letters", "html"]))
def test_json_lines_as_writers_write_them(
    tmp_path_factory: pytest.TempPathFactory, piece: int, texts: list[str], text: str, way: str
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    lines = []
    for number, each in enumerate(texts):
        record = {text: number, "meta": [each, {"more": text if number == 2 else 1}]}
        line = json.dumps(record, ensure_ascii=way == "ascii")
        if way == "html":
            line = line.replace("<", "\\u003c").replace("&", "\\u0026").replace("\u2028", "\\u2028")
            line = line.replace("/", "\\/") if number % 2 else line
        lines.append(line + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_PIECE_BYTES", piece)
        check(sk.open(path), text)


@given(TEXTS)
def test_each_spelling_is_the_text(text: str) -> None:
    for spelling in json_spellings(text):
        assert json.loads(b'"' + spelling + b'"') == text


@pytest.mark.parametrize("text", ["committee", 'so "quoted"', "line\nbreak", "é", "absent", ","])
def test_other_formats(tmp_path: Path, text: str) -> None:
    texts = ["the committee met", 'so "quoted", it said', "a line\nbreak", "café, é", "", "committee é"]
    pq.write_table(pa.table({"id": range(6), "text": texts}), tmp_path / "a.parquet")
    csv = "id,text\n" + "".join(
        f'{i},"{each.replace(chr(34), chr(34) * 2)}"\n' for i, each in enumerate(texts)
    )
    (tmp_path / "a.csv").write_text(csv, encoding="utf-8")
    (tmp_path / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    sk.from_sequence([{"txt": each.encode()} for each in texts]).write_tar(tmp_path / "tar")
    for path in ("a.parquet", "a.csv", "a.txt", "tar"):
        check(sk.open(tmp_path / path), text)
    check(sk.open(tmp_path / "a.txt", decode="bytes"), text)
    check(sk.from_sequence(texts), text)


def test_many_rows_and_many_files(tmp_path: Path) -> None:
    for file in range(3):
        lines = [json.dumps({"text": f"row {row} of {file}"}) for row in range(1000 * file)]
        (tmp_path / f"{file}.jsonl").write_text("\n".join(lines))
    found = last(search_all(sk.open(tmp_path)._node, Searched("of")))
    assert (found.found, len(found.hits)) == (3000, MOST_HITS)
    assert [hit.row for hit in found.hits] == list(range(MOST_HITS))
    assert found.document()["made_of"].startswith("from all, at ")


def test_results_come_while_the_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a cat"}\n' * 50)
    monkeypatch.setattr(reading, "_PIECE_BYTES", 100)
    monkeypatch.setattr("seekable.viewer.facts.reading.ResultPace.due", lambda _: True)
    results = list(search_all(sk.open(tmp_path)._node, Searched("cat")))
    assert [each.found for each in results] == sorted({each.found for each in results})
    assert [each.done for each in results] == sorted({each.done for each in results})
    assert results[-1].found == 50
    assert results[0].made_of == f"from the first {results[0].done:,} of 900 bytes"


def test_corrupt_records_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a cat"}\n{"text": "cat"\n{"text": "dog"\n"cat"\n')
    ds = sk.open(tmp_path)
    found = last(search_all(ds._node, Searched("cat")))
    assert ([hit.row for hit in found.hits], found.corrupt) == ([0, 3], 1)
    sample = last(search_sample(ds._node, Searched("cat"), n=4))
    assert (sorted(hit.row for hit in sample.hits), sample.corrupt) == ([0, 3], 2)


def test_a_changed_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a cat"}\n' * 5)
    ds = sk.open(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"text": "a cat"}\n' * 4)
    with pytest.raises(sk.IndexStale, match=r"a\.jsonl"):
        last(search_all(ds._node, Searched("cat")))


@pytest.mark.parametrize("text", ["", "x" * 1025])
def test_texts_that_cannot_be_searched(text: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"1 to 1,024 bytes \(got"):
        last(search_sample(sk.from_sequence(["x"])._node, Searched(text), n=1))


def test_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    found = last(search_all(sk.open(tmp_path / "a.jsonl")._node, Searched("cat")))
    assert (found.found, found.done, found.of) == (0, 0, 0)


def test_a_search_within_a_field(tmp_path: Path) -> None:
    lines = [{"a": "cat", "b": {"c": ["dog", "cat"]}}, {"a": "dog", "b": {"c": ["a CAT"]}}, {"a": "cat"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    node = sk.open(tmp_path)._node
    found = last(search_all(node, Searched("cat", path=("b",))))
    assert [(hit.row, hit.key, hit.excerpt) for hit in found.hits] == [
        (0, "b.c[]", "cat"),
        (1, "b.c[]", "a CAT"),
    ]
    assert found.document()["key"] == "b"
    found = last(search_sample(node, Searched("^c.t$", regex=True, path=("b", "c", None)), n=3))
    assert [hit.row for hit in found.hits] == [0]


@given(
    st.lists(st.text("abAB \u00e9\u00c9\n", max_size=8), max_size=5),
    st.sampled_from(["a+b", "[^a]b", "(?-i:A).", "\u00e9$"]),
)
def test_an_expression_is_that_of_python(texts: list[str], expression: str) -> None:
    expected = [row for row, text in enumerate(texts) if re.search(expression, text, re.IGNORECASE)]
    found = last(search_all(sk.from_sequence(texts)._node, Searched(expression, regex=True)))
    assert [hit.row for hit in found.hits] == expected
    for hit in found.hits:
        places = [match.span() for match in re.finditer(expression, texts[hit.row], re.IGNORECASE)]
        assert list(hit.spans) == places


def test_all_places_of_an_excerpt_are_marked() -> None:
    text = 99 * "." + "Cat cat" + 75 * "." + "cat" + 99 * "." + "cat"
    found = last(search_all(sk.from_sequence([text])._node, Searched("CAT")))
    assert [part for part, is_found in found.hits[0].parts if is_found] == ["Cat", "cat", "c"]
    assert found.hits[0].excerpt.startswith(80 * "." + "Cat")


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|aa)+$", "(?:a?){24}a{24}$"])
def test_a_hostile_expression_is_ended(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_SECONDS", 0.3)
    work = search_all(sk.from_sequence(["fine", "a" * 40 + "b"])._node, Searched(expression, regex=True))
    with pytest.raises(sk.errors.InvalidArgument, match="was ended"):
        list(work)


@pytest.mark.parametrize("expression", ["(", "(?P<x", "[z-a]", "a{99999999999}", "(" * 500 + ")" * 500])
def test_what_is_no_expression_says_why(expression: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="is no regular expression"):
        list(search_all(sk.from_sequence(["a"])._node, Searched(expression, regex=True)))
