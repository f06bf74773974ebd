"""Decoders of fields by name: the values of webdataset, and what differs on purpose."""

from __future__ import annotations

import gzip
import io
import json
import math
import pickle
import sys
from typing import Any

import msgpack
import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.fields.samples import npy, npz, png, tenbin
from tests.thrift import some

from seekable.errors import InvalidArgument, UnsupportedFormat, WrongType
from seekable.formats.tar.field_decoders import FIELD_DECODERS, field_decoder, last_component
from seekable.formats.tar.images import IMAGE_SPECS, IMAGE_SUFFIXES
from seekable.nodes.files.decoders import kind_of_payload, payload_decoder

webdataset = pytest.importorskip("webdataset")


def theirs(field: str, data: bytes, *handlers: Any) -> Any:
    decoder = webdataset.autodecode.Decoder([*map(webdataset.autodecode.imagehandler, handlers)])
    return decoder({"__key__": "k", field: data})[field]


def ours(field: str, data: bytes, asked: Any = None) -> Any:
    return field_decoder(field, asked).decode(memoryview(data))


def same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name, value in one.items():
            same(value, other[name])
    elif isinstance(one, float) and math.isnan(one):
        assert math.isnan(other)
    else:
        assert one == other


ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.zeros((0, 4), np.int16),
    np.zeros((4, 0)),
    np.array(1.5),
    np.array([1, 2], dtype=">u2"),
    np.array([("a", 1)], dtype=[("name", "U1"), ("count", "<i4")]),
    np.array([(1,)], dtype=[("n\u00e9", "<i4")]),  # version 3 of npy
    np.array(["2020-01-01"], dtype="M8[D]"),
    np.array([True, False]),
]

VALUES = [
    *(("txt", text.encode()) for text in ("", "good day", "é\n\0")),
    *((field, "ü".encode()) for field in ("text", "transcript", "seg.txt")),
    *((field, b"17") for field in ("cls", "cls2", "index", "inx", "id", "a.cls")),
    *(("cls", digits) for digits in (b" -5\n", b"1_000", b"+7", b"123456789012345678901234567890")),
    *(
        ("json", text)
        for text in (b"[1, 2.5, -0.0, 1e400]", b'{"a": {"b": []}}', b"NaN", b'"\\ud800"', b"0", b"false")
    ),
    *(
        ("jsn", text)
        for text in (b"\xef\xbb\xbf{}", '"é"'.encode("utf-16"), b'""', b"12345678901234567890123")
    ),
    *(("npy", npy(array)) for array in ARRAYS),
    ("npz", npz(a=np.arange(3), b=np.zeros((2, 2)))),
    ("npz", npz()),
    *((field, msgpack.packb({"a": [1, None, b"x", "é", 1.5, 2**63]})) for field in ("mp", "msg")),
    *((field, tenbin([np.arange(3), np.ones((2, 2), np.float16)])) for field in ("ten", "tb")),
    ("json.gz", gzip.compress(b"[1]", mtime=0)),
    ("txt.gz", gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0)),
    ("gz", gzip.compress(b"bytes", mtime=0)),
    ("json.gz.gz", gzip.compress(gzip.compress(b"[1]", mtime=0), mtime=0)),
    *(
        (field, b"\xffany")
        for field in ("jpg", "wav", "mp4", "xyz", "", "count", "class", "msgpack", "html", "cls.jpg")
    ),
]


@pytest.mark.parametrize(("field", "data"), VALUES)
def test_values_are_those_of_webdataset(field: str, data: bytes) -> None:
    same(ours(field, data), theirs(field, data))


def test_every_field_that_webdataset_decodes_is_decoded_or_refused() -> None:
    fields = set(webdataset.autodecode.decoders)
    refused = {field for field in fields if field_decoder(field).refusal}
    assert refused == {"pkl", "pickle", "pyd"}
    assert {field for field in fields if field_decoder(field).name == "bytes"} == set()


def test_null_is_none_and_not_bytes() -> None:
    assert theirs("json", b"null") == b"null"
    assert ours("json", b"null") is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
@settings(max_examples=some(60, of=3))
def test_json_is_that_of_the_standard_library(value: Any) -> None:
    text = json.dumps(value).encode()
    same(ours("json", text), json.loads(text))


def test_cbor(monkeypatch: pytest.MonkeyPatch) -> None:
    cbor2 = pytest.importorskip("cbor2")
    monkeypatch.setitem(sys.modules, "cbor", cbor2)
    data = cbor2.dumps({"a": [1, b"x", None, 2**70]})
    same(ours("cbor", data), theirs("cbor", data))


def test_arrays_are_writable_and_hold_no_view() -> None:
    data = bytearray(npy(np.arange(4)) + b"more")
    array = ours("npy", data)  # type: ignore[arg-type]
    arrays = ours("ten", tenbin([np.arange(4)]))
    data[-20:] = bytes(20)
    array += 1
    arrays[0] += 1
    assert array.tolist() == arrays[0].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("field", "data", "expected"),
    [
        ("txt", b"a\xff", r"expected text in UTF-8, found b'\xff' at byte 1 of 2 bytes: b'a\xff'"),
        ("cls", b"cat", "expected an integer, found 3 bytes: b'cat'"),
        ("json", b"", "expected JSON, found no bytes (Expecting value: line 1 column 1 (char 0))"),
        ("json", b"{" * 50, "expected JSON, found 50 bytes: b'" + "{" * 40 + "'..."),
        ("json", b"[" * 200_000, "expected JSON, found 200,000 bytes"),
        ("npy", b"", "expected an npy file, found no bytes"),
        ("npy", npy(np.arange(9))[:-1], "expected an npy file, found 199 bytes"),
        ("npy", npy(np.arange(9))[:9], "expected an npy file, found 9 bytes"),
        ("npz", b"PK\x03\x04nothing", "expected an npz file, found 11 bytes"),
        ("mp", b"\x01\x02", "expected one MessagePack document, found 2 bytes"),
        ("mp", b"\xa1\xff", "expected one MessagePack document"),
        (
            "ten",
            b"~TenBin?",
            "expected a chunk of tenbin (b'~TenBin~') at byte 0, found 8 bytes: b'~TenBin?'",
        ),
        ("ten", tenbin([np.arange(3)])[:-60], "expected 24 bytes in the chunk of tenbin at byte 80, found 4"),
        (
            "ten",
            tenbin([np.arange(3)])[:80],
            "expected a header and data for each array of tenbin, found 1 chunks",
        ),
        ("txt.gz", b"text", "expected data compressed by gzip, found 4 bytes: b'text'"),
        ("txt.gz", gzip.compress(b"text", mtime=0)[:-3], "expected data compressed by gzip"),
    ],
)
def test_a_value_that_cannot_be_decoded_says_what_was_expected_and_found(
    field: str, data: bytes, expected: str
) -> None:
    with pytest.raises(ValueError, match="expected") as raised:
        ours(field, data)
    assert expected in str(raised.value)


def test_a_header_of_tenbin_that_promises_too_much_is_an_error() -> None:
    data = bytearray(tenbin([np.arange(3)]))
    data[16 + 24 : 16 + 32] = (1 << 60).to_bytes(8, "little")
    with pytest.raises(ValueError, match=r"expected an array of shape \(1152921504606846976,\)"):
        ours("ten", bytes(data))


class Boom:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was loaded",))


def test_nothing_pickled_is_loaded() -> None:
    objects = io.BytesIO()
    np.save(objects, np.array([Boom()], dtype=object), allow_pickle=True)
    archive = io.BytesIO()
    np.savez(archive, a=np.array([Boom()], dtype=object))
    newest = io.BytesIO()
    np.lib.format.write_array(newest, np.array([Boom()], dtype=object), version=(3, 0))
    for field, data in (
        ("npy", objects.getvalue()),
        ("npy", newest.getvalue()),
        ("npz", archive.getvalue()),
        ("npz", pickle.dumps(Boom())),
        ("npy", pickle.dumps(Boom())),
    ):
        with pytest.raises(ValueError, match="expected an np"):
            ours(field, data)
    for field in ("pyd", "pkl", "pickle", "seg.pyd", "PYD", "pyd.gz"):
        with pytest.raises(UnsupportedFormat, match="pickles are never loaded"):
            ours(field, pickle.dumps(Boom()))


def test_a_pickle_is_loaded_by_the_function_of_the_caller() -> None:
    assert ours("pyd", pickle.dumps([1]), pickle.loads) == [1]


def test_functions_take_bytes() -> None:
    seen: list[Any] = []
    ours("jpg", b"abc", seen.append)
    ours("jpg.gz", gzip.compress(b"abc"), seen.append)
    assert seen == [b"abc", b"abc"]
    assert [type(data) for data in seen] == [bytes, bytes]


def test_bytes_are_those_of_the_file() -> None:
    zipped = gzip.compress(b"[1]")
    assert ours("json.gz", zipped, "bytes") == zipped
    assert ours("json.gz", zipped, "text") == "[1]"
    assert ours("__meta.json", b"[1]") == b"[1]"
    assert ours("__meta.json", b"[1]", "json") == [1]


class Reads:
    ranged = True

    def __call__(self, data: Any) -> Any:
        return type(data).__name__, len(data)


def test_a_decoder_of_a_part_is_given_the_view_itself() -> None:
    decoder = field_decoder("wav", Reads())
    assert decoder.ranged
    assert decoder.decode(memoryview(b"abc")) == ("memoryview", 3)
    zipped = field_decoder("wav.gz", Reads())
    assert not zipped.ranged
    assert zipped.decode(memoryview(gzip.compress(b"abcd"))) == ("memoryview", 4)


def test_names_that_are_not_there_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"one of 'bytes', 'text', 'json'.*\(got 'jpeg'\)"):
        field_decoder("jpg", "jpeg")
    with pytest.raises(WrongType, match=r"a name or a function of bytes \(got 3\)"):
        field_decoder("jpg", 3)  # type: ignore[arg-type]


def test_decoders_are_picklable() -> None:
    for name in FIELD_DECODERS:
        for field in ("x", "x.gz"):
            copy = pickle.loads(pickle.dumps(field_decoder(field, name)))
            assert copy == field_decoder(field, name)
    assert pickle.loads(pickle.dumps(field_decoder("json"))).decode(b"[1]") == [1]


def test_last_component() -> None:
    names = ["jpg", "a.JPG", "a.b.json.gz", "gz", "", ".jpg", "a.", "JPEG.Gz"]
    assert [last_component(name) for name in names] == ["jpg", "jpg", "json", "", "", "jpg", "", "jpeg"]


def test_the_image_fields_are_those_of_webdataset() -> None:
    assert frozenset(webdataset.autodecode.IMAGE_EXTENSIONS) == IMAGE_SUFFIXES
    assert len(IMAGE_SUFFIXES) == 63
    assert set(IMAGE_SPECS) == set(webdataset.autodecode.imagespecs)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1"])
def test_images_are_those_of_webdataset(mode: str) -> None:
    data = png(mode)
    for spec in IMAGE_SPECS:
        if "torch" in spec:
            continue
        one, other = ours("png", data, spec), theirs("png", data, spec)
        if spec.startswith("pil"):
            assert type(one) is type(other)
            assert one == other
        else:
            same(one, other)
            assert one.flags.writeable


@pytest.mark.parametrize("kind", ["PNG", "PPM", "TIFF"])
def test_pixels_of_16_bits_are_scaled_to_8(kind: str) -> None:
    pixels = np.array([[0, 128, 129, 257 * 9, 65535]], np.uint16)
    data = image_file(kind, pixels)
    assert ours("png", data, "l8").tolist() == [[0, 0, 1, 9, 255]]
    assert ours("png", data, "rgb8")[0, :, 1].tolist() == [0, 0, 1, 9, 255]
    assert np.asarray(ours("png", data, "pil"))[0, -2].tolist() == [9, 9, 9]
    assert ours("png", data, "l")[0, -1] == 1.0
    native = ours("png", data, "native")
    assert (native.dtype, native.tolist()) == (np.uint16, pixels.tolist())


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_pixels_without_a_range_are_refused_or_kept(dtype: str) -> None:
    pixels = np.array([[0, 1, -7]], dtype)
    data = image_file("TIFF", pixels)
    for spec in ("rgb8", "l8", "rgb", "l", "pil", "pill"):
        with pytest.raises(ValueError, match="which have no range that could be scaled"):
            ours("tiff", data, spec)
    native = ours("tiff", data, "native")
    assert (native.dtype, native.tolist()) == (dtype, pixels.tolist())
    assert np.array_equal(np.asarray(ours("tiff", data, "pilnative")), pixels)


def test_the_orientation_of_exif_is_followed_where_it_is_asked_for() -> None:
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # To be turned a quarter to the right.
    data = image_file("PNG", pixels, exif=exif)
    assert np.array_equal(ours("png", data, "rgb8"), pixels)
    assert np.array_equal(ours("png", data, "rgb8-upright"), np.rot90(pixels, -1))
    assert ours("png", data, "pilnative-upright").size == (2, 3)
    wide = image_file("PNG", np.full((2, 3), 257, np.uint16), exif=exif)
    assert ours("png", wide, "l8-upright").tolist() == [[1, 1]] * 3


def image_file(kind: str, pixels: Any, **options: Any) -> bytes:
    """A file of an array of pixels."""
    stream = io.BytesIO()
    PIL.Image.fromarray(pixels).save(stream, kind, **options)
    return stream.getvalue()


@pytest.mark.frameworks(name="torch")
def test_tensors_of_images_are_those_of_webdataset() -> None:
    import torch

    for mode in ("L", "RGB", "RGBA"):
        for spec in IMAGE_SPECS:
            if "torch" in spec:
                one, other = ours("png", png(mode), spec), theirs("png", png(mode), spec)
                assert one.dtype == other.dtype
                assert torch.equal(one, other)


@pytest.mark.frameworks(name="torch")
def test_tensors_are_loaded_and_other_objects_are_not() -> None:
    import torch

    stream = io.BytesIO()
    torch.save({"a": torch.arange(3)}, stream)
    assert ours("pth", stream.getvalue())["a"].tolist() == [0, 1, 2]
    stream = io.BytesIO()
    torch.save(Boom(), stream)
    with pytest.raises(ValueError, match=r"expected tensors that torch.load\(weights_only=True\) reads"):
        ours("pth", stream.getvalue())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "found no bytes"),
        (b"no image at all", "found 15 bytes: b'no image at all'"),
        (png("RGB")[:-30], "found"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "PostScript is a program, and is not run"),
    ],
)
def test_what_is_no_image_is_an_error(data: bytes, expected: str) -> None:
    with pytest.raises(ValueError, match="expected an image that Pillow reads") as raised:
        ours("jpg", data, "pil")
    assert expected in str(raised.value)
    assert "BytesIO" not in str(raised.value)


def test_lilcom() -> None:
    lilcom = pytest.importorskip("lilcom")
    array = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    data = lilcom.compress(array)
    same(ours("llc", data, "lilcom"), lilcom.decompress(data))
    with pytest.raises(ValueError, match="expected an array compressed by lilcom, found 3 bytes"):
        ours("llc", b"abc", "lilcom")


def test_the_decoder_of_audio_is_found_by_name_in_any_process() -> None:
    decode: Any = pickle.loads(pickle.dumps(field_decoder("wav", "audio").decode))
    with pytest.raises(ValueError, match="audio needs at least"):
        decode(b"RIFF")
    assert kind_of_payload(decode) == kind_of_payload(payload_decoder("audio", offset=2)) == "audio"
    assert [kind_of_payload(other) for other in (json.loads, "audio", None)] == ["", "", ""]
    with pytest.raises(InvalidArgument, match="'video'"):
        payload_decoder("video")
