"""The argument ``decode=``: names, dicts by field, functions, and what is refused at opening."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import pytest

from seekable.errors import InvalidArgument, MissingDependency, UnsupportedFormat, WrongType
from seekable.formats.tar.field_decoders import FieldDecoders, check_fields, checked_decode
from seekable.formats.tar.images import IMAGE_SPECS
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable

FIELDS = ["jpg", "seg.png", "json", "wav", "xyz", "json.gz", "llc", "a.flac.gz"]


def names(decode: Any, fields: list[str] = FIELDS) -> list[str]:
    decoders = checked_decode(decode)
    return [decoders.of(field).name for field in fields]


def reversed_bytes(data: bytes) -> bytes:
    return data[::-1]


class Part:
    """Stands for a decoder of a part of audio."""

    ranged = True

    def __init__(self, offset: float) -> None:
        self.offset = offset

    def __call__(self, data: Any) -> Any:
        return len(data)

    @property
    def name(self) -> str:
        return f"part({self.offset})"


def test_the_default() -> None:
    default = ["bytes", "bytes", "json", "bytes", "bytes", "gzip+json", "bytes", "gzip+bytes"]
    assert names(None) == default
    assert names({}) == default
    assert names("webdataset") == default
    assert checked_decode("webdataset").with_url
    assert not checked_decode(None).with_url


def test_all_bytes_are_those_of_the_file() -> None:
    assert names("bytes") == ["bytes"] * len(FIELDS)


@pytest.mark.parametrize("spec", IMAGE_SPECS)
def test_an_image_spec_is_for_images_alone(spec: str) -> None:
    assert names(spec) == [spec, spec, "json", "bytes", "bytes", "gzip+json", "bytes", "gzip+bytes"]


def test_lilcom_is_for_its_fields_alone() -> None:
    assert names("lilcom")[-2] == "lilcom"
    assert names("lilcom")[:3] == ["bytes", "bytes", "json"]


def test_a_decoder_of_a_part_is_for_audio_alone() -> None:
    assert names(Part(1)) == [
        *("bytes", "bytes", "json", "part(1)", "bytes", "gzip+json", "bytes", "gzip+part(1)"),
    ]


@pytest.mark.parametrize(
    ("decode", "field", "name"),
    [
        ({"json": "text"}, "json", "text"),
        ({"json": "text"}, "seg.json", "text"),
        ({"json": "text"}, "SEG.JSON", "text"),
        ({"JSON": "text"}, "seg.json", "text"),
        ({"json": "text", "seg.json": "bytes"}, "seg.json", "bytes"),
        ({"json": "text", "seg.json": "bytes"}, "a.seg.json", "bytes"),
        ({"json": "text", "seg.json": None}, "seg.json", "json"),
        ({"json": "text"}, "json.gz", "gzip+text"),
        ({"json": "text", "json.gz": "bytes"}, "json.gz", "bytes"),
        ({"json": "text", "json.gz": "int"}, "a.json.gz", "gzip+int"),
        ({"gz": "bytes"}, "a.json.gz", "bytes"),
        ({"jpg": "rgb8"}, "png", "bytes"),
        ({"jpg": "rgb8"}, "cls", "int"),
        ({"pyd": "bytes"}, "pyd", "bytes"),
        ({"xyz": "numpy"}, "xyz", "numpy"),
    ],
)
def test_the_field_wins_over_its_last_component(decode: Any, field: str, name: str) -> None:
    assert names(decode, [field]) == [name]


@pytest.mark.parametrize(
    ("decode", "error", "message"),
    [
        ("jpeg", InvalidArgument, r"decode must be one of 'bytes', .*'webdataset', or a dict by field \(got"),
        ("json", InvalidArgument, r"decoder of one field: say which, decode=\{'FIELD': 'json'\}"),
        (reversed_bytes, InvalidArgument, r"which field .* decode=\{'FIELD': reversed_bytes\}"),
        (3, WrongType, r"a name, or a dict by field \(got 3 of type int\)"),
        (["jpg"], WrongType, "a name, or a dict by field"),
        ({"jpg": "jpeg"}, InvalidArgument, "one of 'bytes', 'text'"),
        ({"jpg": 3}, WrongType, "a name or a function of bytes"),
        ({"jpg": "webdataset"}, InvalidArgument, "the decoder of a field is one of"),
        ({3: "json"}, WrongType, r"keys of decode must be names of fields \(got 3\)"),
        ({"": "json"}, WrongType, "keys of decode must be names of fields"),
        ({"jpg": "pil", "JPG": "l8"}, InvalidArgument, "names the field 'jpg' twice"),
    ],
)
def test_what_decode_cannot_be(decode: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        checked_decode(decode)


def check(decode: Any, fields: list[str], wanted: list[str] | None = None) -> FieldDecoders:
    decoders = checked_decode(decode)
    check_fields(fields if wanted is None else wanted, decoders, fields=fields, where="shards/*.tar")
    return decoders


@pytest.mark.parametrize("field", ["pyd", "pkl", "pickle", "a.pyd", "pyd.gz"])
@pytest.mark.parametrize("decode", [None, "pil", "webdataset", {"jpg": "pil"}])
def test_pickles_are_refused_at_opening(field: str, decode: Any) -> None:
    with pytest.raises(UnsupportedFormat) as raised:
        check(decode, ["jpg", field])
    message = str(raised.value)
    assert message.startswith(f"shards/*.tar: the field {field!r} is not loaded: it is pickled")
    assert "Leave the column out with columns=" in message
    assert f"decode={{{field!r}: pickle.loads}}" in message


def test_pickles_that_are_left_out_or_decoded_by_the_caller_are_not_refused() -> None:
    check("bytes", ["pyd"])
    check({"pyd": pickle.loads}, ["jpg", "a.pyd"])
    check({"pyd": "bytes"}, ["pyd"])
    check(None, ["jpg", "pyd"], wanted=["jpg"])


@pytest.mark.parametrize(
    ("decode", "field", "package", "extra"),
    [
        (None, "cbor", "cbor2", "cbor"),
        (None, "pth", "torch", "torch"),
        ("rgb8", "jpg", "PIL", "images"),
        ({"llc": "lilcom"}, "llc.gz", "lilcom", "audio"),
    ],
)
def test_a_package_that_is_not_installed_is_named_at_opening(
    monkeypatch: pytest.MonkeyPatch, decode: Any, field: str, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency) as raised:
        check(decode, [field])
    assert f"needs {package}, which is not installed: pip install 'seekable[{extra}]'" in str(raised.value)
    check("bytes", [field])


def test_a_name_that_fits_no_field_is_refused() -> None:
    with pytest.raises(
        InvalidArgument, match=r"decode has 'jpeg', and the fields of .* are 'jpg', 'seg.json'"
    ):
        check({"jpeg": "pil", "json": "text"}, ["jpg", "seg.json"])
    check({"jpeg": "pil"}, [])
    check({"seg": "bytes", "json.gz": "text"}, ["seg", "json.gz"])
    check({"json": "text", "gz": "bytes"}, ["json.gz"])


def test_the_description_enters_fingerprints() -> None:
    def described(decode: Any, version: str | None = None) -> Any:
        def describe(function: Callable[..., Any]) -> Any:
            return describe_function(function, version)

        return checked_decode(decode).described(describe)

    assert described(None) is None
    assert described({}) is None
    assert described("rgb8") == "rgb8"
    assert described(Part(1.5)) == "part(1.5)"
    assert described({"wav": Part(2), "jpg": "pil"}) == {"jpg": "pil", "wav": "part(2)"}
    assert described({"b": None, "A": reversed_bytes}, "3") == {
        "a": {"name": f"{__name__}.reversed_bytes", "version": "3"},
        "b": None,
    }
    with pytest.raises(InvalidArgument, match="version="):
        described({"jpg": [].append})


def test_decoders_are_picklable_and_equal_where_the_argument_is() -> None:
    for decode in (None, "bytes", "rgb8", "webdataset", {"jpg": "pil", "x": reversed_bytes}):
        decoders = checked_decode(decode)
        copy = pickle.loads(pickle.dumps(decoders))
        assert copy == decoders
        assert hash(copy) == hash(decoders)
        assert copy.of("jpg") == decoders.of("jpg")
