from __future__ import annotations

import functools
import json
import math
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.splitter import lines

import seekable as sk
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.decoding import Decoder, decoder_named, line_span

if TYPE_CHECKING:
    from pathlib import Path

ENDS = [b"", b"\n", b"\r\n", b"\n\n", b"\r\n \t\r\n\n", b"\n  "]


def decode(decoder: Decoder, raw: bytes) -> Any:
    try:
        return decoder.fast(memoryview(raw))
    except ValueError:
        if decoder.recover is None:
            raise
        return decoder.recover(raw)


def shout(line: bytes) -> str:
    return line.decode().upper()


@pytest.mark.parametrize("end", ENDS)
def test_each_decoder_leaves_out_the_line_end_and_what_follows(end: bytes) -> None:
    raw = b'{"a": "b"}' + end
    assert decode(decoder_named("json"), raw) == {"a": "b"}
    assert decode(decoder_named("text"), raw) == '{"a": "b"}'
    assert decode(decoder_named("bytes"), raw) == b'{"a": "b"}'
    assert decode(decoder_named(shout), raw) == '{"A": "B"}'
    assert line_span(memoryview(raw)) == 10


def test_a_carriage_return_alone_ends_no_line() -> None:
    assert decode(decoder_named("text"), b"a\rb\r") == "a\rb\r"
    assert decode(decoder_named("text"), b"a\r\r\n") == "a\r"
    assert decode(decoder_named("text"), "a\u2028b\x0bc\x85d\n".encode()) == "a\u2028b\x0bc\x85d"


@given(
    st.lists(st.sampled_from([b"a", b"\r", b" ", b"\xc3\xa9"]), max_size=6),
    st.sampled_from([b"", b"\n", b"\r\n"]),
)
def test_text_and_bytes_agree_with_a_plain_splitter(pieces: list[bytes], end: bytes) -> None:
    raw = b"".join(pieces) + end
    if raw:
        (line,) = lines(raw, keep_blank=True)
        assert decode(decoder_named("bytes"), raw) == line
        assert decode(decoder_named("text"), raw) == line.decode()
        assert line_span(memoryview(raw)) == len(line)


@pytest.mark.parametrize(
    "raw",
    [b"NaN", b"[Infinity, -Infinity]", b"1e400", b'"\\ud800"', b"123456789012345678901234567890", b" [1]\t"],
)
def test_json_that_python_accepts_is_accepted(raw: bytes) -> None:
    found, expected = decode(decoder_named("json"), raw + b"\r\n"), json.loads(raw)
    assert found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"{'a': 1}", b'{"a": 1} {"b": 2}', b'"\xff"', b"\x00", b'{"a":1}\n{"b":2}']
)
def test_what_is_no_json_is_refused_both_ways(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode(decoder_named("json"), raw)


def test_text_is_strict_utf8() -> None:
    with pytest.raises(UnicodeDecodeError):
        decode(decoder_named("text"), b"\xff\n")
    assert decode(decoder_named("bytes"), b"\xff\n") == b"\xff"


@pytest.mark.parametrize("asked", ["json", "text", "bytes", shout, functools.partial(int, base=16), len])
def test_decoders_survive_pickling(asked: Any) -> None:
    decoder = decoder_named(asked)
    again = pickle.loads(pickle.dumps(decoder))
    assert again.name == decoder.name
    assert decode(again, b"12\n") == decode(decoder, b"12\n")


def test_functions_are_known_by_their_qualified_names() -> None:
    assert decoder_named(shout).name == f"{__name__}.shout"
    assert decoder_named(shout).function is shout
    assert decoder_named(functools.partial(shout)).name == "functools.partial"
    assert decoder_named("json").function is None


def test_what_is_no_decoder_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"decode must be one of 'json', 'text', 'bytes'.*got 'yaml'"):
        decoder_named("yaml")
    with pytest.raises(WrongType, match="got 3"):
        decoder_named(3)  # type: ignore[arg-type]


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("value", ["[" * 4000 + "]" * 4000, '{"a":' * 4000 + "1" + "}" * 4000, "9" * 5000])
def test_json_that_python_cannot_read_is_a_corrupt_record_wherever_it_stands(
    tmp_path: Path, value: str
) -> None:
    bad = f'{{"b":{value}, "n":1}}'
    for row, content in enumerate(([bad, '{"n":2}'], ['{"n":0}', bad, '{"n":2}'])):
        path = tmp_path / f"{row}.jsonl"
        path.write_text("\n".join(content) + "\n")
        ds = sk.open(path)
        for some in (ds, ds.select_columns(["n"])):
            for asked in (row, [row]):
                with pytest.raises(sk.CorruptRecord, match=rf"record {row} at byte {8 * row} "):
                    some[asked]
        assert ds[row + 1] == {"n": 2}
        assert [record for record in sk.open(path, errors=lambda error: error.row) if record == row] == [row]


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("text", ["[" * 4000, '{"a":' + "9" * 5000 + "}"])
def test_a_list_of_another_tool_that_python_cannot_read_is_refused_by_name(tmp_path: Path, text: str) -> None:
    for name in ("dataset_dict.json", "index.json"):
        folder = tmp_path / name[:5]
        folder.mkdir()
        (folder / name).write_text(text)
        (folder / "a.arrow").touch()
        with pytest.raises(sk.SeekableError, match=name):
            sk.open(folder if name[0] == "d" else f"wids:{folder / name}")
