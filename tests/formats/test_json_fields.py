from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import seekable as sk
from seekable.formats.lines.json_fields import JsonFields
from seekable.formats.lines.line_source import LineDecoder, decoder_named, only_field, some_fields

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEYS = ["text", "id", "", "a.b", "t\u00e9", "text2"]
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5)

PIECES = [
    *(b"%c" % byte for byte in b'{}[],:"\\ \n\r'),
    b'"text"',
    b'"te\\u0078t"',
    b'"id"',
    b"1",
    b"-0.5e3",
    b"1e400",
    b"NaN",
    b"null",
    b"tru",
    b'"\xff"',
    b'"\xc3\xa9"',
    b'"\\ud800"',
    b'"\\q"',
    b'{"text": 1',
    b', "id": 2}',
]
LINES = st.one_of(
    st.builds(
        lambda value, ascii_only, end: json.dumps(value, ensure_ascii=ascii_only).encode() + end,
        OBJECTS | VALUES,
        st.booleans(),
        st.sampled_from([b"", b"\n", b"\r\n", b"\n \n"]),
    ),
    st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join),
)
LINES_OF_OBJECTS = st.one_of(
    OBJECTS.map(lambda value: json.dumps(value).encode() + b"\n"),
    st.lists(st.sampled_from(PIECES), max_size=5).map(lambda pieces: b"{" + b"".join(pieces) + b"}\n"),
)


def outcome(function: Callable[..., Any], *given: Any) -> Any:
    """Return what a function returns, as text that compares NaN too, or that it raised."""
    try:
        return repr(function(*given))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return ValueError


def kept(record: Any, fields: set[str]) -> Any:
    """The trivial model of some fields: those of the whole record."""
    if isinstance(record, dict):
        return {name: value for name, value in record.items() if name in fields}
    return record


@pytest.mark.usefixtures("uncollected")
@given(
    st.lists(LINES, max_size=4) | st.lists(LINES_OF_OBJECTS, max_size=4),
    st.sets(st.sampled_from(KEYS), max_size=3),
)
@example([b'{"text": 1, "text": 2}'], {"text"})
@example([b'{"text": 1, "id": }'], {"text"})
@example([b'{"text": 1, "id": "\xff"}'], {"text"})
@example([b'{"text": 1, "\xff": 2}'], {"text"})
@example([b'{"text": 1, "id": NaN}'], {"text"})
@example([b'{"text": 1, "id": 1e400}'], {"text"})
@example([b'{"text": 1, "id": "\\ud800"}'], {"text"})
@example([b'{"text": 1, "id": ' + b"7" * 4301 + b"}"], {"text"})
@example([b'{"text": 1, "id": ' + b"[" * 5000 + b"}"], {"text"})
@example([b"[1]", b"{}"], set())
@example([b'{"text": 1} {"text": 2}\n', b'{"text": {}\n', b'{"text": 3}}\n'], {"text"})
@example([b'{"text": 1} {"text": 2}\n', b'{"text": "a}\n', b'{b"}\n'], {"text"})
@example([b'{"text": 1}\n', b'{"text": 2}\n'], {"text"})
def test_some_fields_are_those_of_the_whole_record(lines: list[bytes], fields: set[str]) -> None:
    lean, whole = some_fields(decoder_named("json"), frozenset(fields)), decoder_named("json")
    for line in lines:
        found, expected = outcome(decoded, lean, line), outcome(decoded, whole, line)
        if expected is ValueError:
            assert found is ValueError
        else:
            assert repr(kept(decoded(lean, line), fields)) == repr(kept(decoded(whole, line), fields))
    for decoder in (lean, whole):
        assert decoder.many is not None
        together = outcome(decoder.many, [memoryview(line) for line in lines])
        assert together is ValueError or together == repr([decoded(decoder, line) for line in lines])


def decoded(decoder: LineDecoder, line: bytes) -> Any:
    try:
        return decoder.fast(memoryview(line))
    except (ValueError, msgspec.DecodeError, RecursionError):
        assert decoder.recover is not None
        return decoder.recover(line)


@given(st.integers(4000, 4700), st.integers(0, 9000), st.sampled_from([b"", b"-"]))
def test_an_integer_with_too_many_digits_is_refused_in_each_field(digits: int, at: int, sign: bytes) -> None:
    line = b'{"pad": "%s", "id": %s%s, "text": 7}' % (b"x" * at, sign, b"8" * digits)
    of_text = JsonFields(["text"])
    if outcome(msgspec.json.decode, line) is ValueError:
        assert outcome(of_text.decode, line) is ValueError
    else:
        assert digits <= 4300
        assert kept(of_text.decode(line), {"text"}) == {"text": 7}


def test_many_lines_are_read_together_or_one_by_one(tmp_path: Path) -> None:
    lines = [b'{"id": %d, "text": "row %d"}\n' % (row, row) for row in range(300)]
    assert JsonFields(["text"]).decode_many([memoryview(line) for line in lines])[7] == {"text": "row 7"}
    lines[5], lines[9] = b'{"id": 5}\n', b'{"id": "\xff", "text": "row 9"}\n'
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines))
    ds = sk.open(path).select_columns(["text"], missing="none")
    assert ds[[4, 5, 6]] == [{"text": "row 4"}, {"text": None}, {"text": "row 6"}]
    with pytest.raises(sk.CorruptRecord) as found:
        ds[[4, 9, 6]]
    assert (found.value.row, found.value.offset) == (9, ds.locate(9).offset)
    with pytest.raises(sk.SeekableError, match="row 5: select_columns"):
        sk.open(path).select_columns(["text"])[[4, 5, 6]]


def test_a_record_without_a_field_is_whole() -> None:
    of_both = JsonFields(["a", "b"])
    lines = [b'{"a": 1, "c": 2}', b'{"c": 3, "b": 2, "a": 1}', b'{"c": 3}']
    expected = [{"a": 1, "c": 2}, {"b": 2, "a": 1}, {"c": 3}]
    assert list(map(of_both.decode, lines)) == expected
    assert list(map(JsonFields([]).decode, lines)) == [{}, {}, {}]


@pytest.mark.parametrize("name", ["\ud800", "t\u00e9"])
def test_a_field_whose_name_is_not_ascii(name: str) -> None:
    decoder = decoder_named("json")
    assert some_fields(decoder, frozenset(["text", name])) is decoder
    line = json.dumps({"": 1, name: 3}).encode()
    assert decoded(only_field(decoder, name), line) == {name: 3}


@pytest.mark.parametrize(
    "made",
    [
        lambda decoder: some_fields(decoder, frozenset(["text"])),
        lambda decoder: only_field(decoder, "text"),
        lambda decoder: some_fields(some_fields(decoder, frozenset(["text", "id"])), frozenset(["text"])),
    ],
    ids=["some", "only", "fewer"],
)
def test_other_decoders_of_one_field(made: Callable[[LineDecoder], LineDecoder]) -> None:
    view, decoder = memoryview(b'{"id": 7, "text": "hi"}\n'), made(decoder_named("json"))
    assert decoder.fast(view) == {"text": "hi"}


def corrupt_file(path: Path) -> list[Any]:
    """Write lines, some of them wrong, and return what each is in a dataset whose errors give None."""
    lines, records = [], list[Any]()
    for i in range(700):
        record = {"id": i, "text": f"line {i}", "more": "x" * (i % 50)}
        line = json.dumps(record)
        if i % 97 == 5:
            line, found = line[:-1], None
        elif i % 89 == 3:
            line, found = line[:-1] + ', "score": NaN}', {**record, "score": math.nan}
        elif i % 83 == 7:
            line, found = json.dumps({"id": i}), {"id": i}
        else:
            found = record
        lines.append(line)
        records.append(found)
    path.write_text("\n".join(lines))
    return records


def nothing(_: sk.CorruptRecord) -> dict[str, Any]:
    return {"text": None, "id": None}


def test_many_records_are_those_that_are_read_one_by_one(tmp_path: Path) -> None:
    records = corrupt_file(tmp_path / "a.jsonl")
    ds = sk.open(tmp_path / "a.jsonl", errors=nothing)
    expected = [{"text": None, "id": None} if record is None else record for record in records]
    assert repr(list(ds)) == repr([ds[i] for i in range(len(ds))]) == repr(expected)
    lean = ds.select_columns(["text"], missing="none")
    texts = [{"text": record.get("text")} for record in expected]
    assert list(lean) == [lean[i] for i in range(len(lean))] == texts
    rows = [699, 5, 3, 7, 7, 0, 102]
    assert lean.__getitems__(rows) == [texts[row] for row in rows]


def test_errors_of_one_field_name_the_record_and_its_fields(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": 2}\n{"id": 3, "text": "c", "x": }\n')
    ds = sk.open(tmp_path / "a.jsonl").select_columns(["text"])
    for read in (lambda row: ds[row], lambda row: ds.__getitems__([0, row])):
        with pytest.raises(sk.errors.MissingColumn, match=r"there is no column 'text'; the record has 'id'"):
            read(1)
        with pytest.raises(sk.CorruptRecord, match=r"a\.jsonl.*record 2"):
            read(2)
