"""Encoders of fields: the bytes of webdataset's writer, and back to the value through the decoders."""

from __future__ import annotations

import gzip
import io
import re
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.formats.fields.samples import npy, npz, tenbin
from tests.thrift import some

from seekable.errors import BadValue
from seekable.formats.tar.field_decoders import field_decoder
from seekable.formats.tar.tar_writer import encode_field

if TYPE_CHECKING:
    from collections.abc import Iterable

webdataset_writer = pytest.importorskip("webdataset.writer")

NOISE = np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8)


def theirs(field: str, value: Any) -> bytes:
    return bytes(
        webdataset_writer.encode_based_on_extension1(value, field, webdataset_writer.default_handlers)
    )


def decoded(field: str, data: bytes, asked: Any = None) -> Any:
    return field_decoder(field, asked).decode(memoryview(data))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("txt", "é\n"),
        ("html", "<p>"),
        ("any", "text"),
        ("cls", 7),
        ("id", -(10**30)),
        ("count", 3),
        ("class", np.int64(3)),
        ("class", "cat"),
        ("json", {"é": [1, None, float("nan"), {"a": "b"}]}),
        ("jsn", [1.5]),
        ("a.npy", NOISE),
        ("npy", np.asfortranarray(NOISE)),
        ("npz", {"a": NOISE, "b": np.zeros(0)}),
        ("npz", {}),
        ("mp", {"a": [1, b"x", "é", None, 2**63, 1.5]}),
        ("msgpack", []),
        ("ten", [NOISE, np.arange(3.0)]),
        ("tb", NOISE),
        ("tenbin", [NOISE[::2]]),
        ("jpg", NOISE),
        ("jpeg", NOISE[:, :, 0]),
        ("img", NOISE),
        ("png", NOISE),
        ("seg.png", NOISE.astype(np.float32) / 255),
        ("ppm", NOISE),
        ("tiff", NOISE),
        ("png", Image.fromarray(NOISE).convert("P")),
        ("any", b"bytes"),
        ("json", b"{}"),
    ],
)
def test_bytes_are_those_of_webdataset(field: str, value: Any) -> None:
    assert encode_field(field, value) == theirs(field, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, "ünd\0") for field in ("txt", "text", "transcript", "a.txt", "txt.gz")),
        *((field, 17) for field in ("cls", "cls2", "index", "inx", "id", "id.gz")),
        *(("json", value) for value in (None, "text", [1, {"a": []}], 0.1, True, "\ud800", 10**40)),
        *((field, {"a": [1, b"x"]}) for field in ("mp", "msg", "mp.gz")),
        *((field, b"\xff\0") for field in ("xyz", "jpg", "wav", "bin.gz", "")),
    ],
)
def test_values_come_back(field: str, value: Any) -> None:
    assert decoded(field, encode_field(field, value)) == value


def test_cbor_comes_back() -> None:
    pytest.importorskip("cbor2")
    assert decoded("cbor", encode_field("cbor", {"a": [1, b"x", None]})) == {"a": [1, b"x", None]}
    with pytest.raises(BadValue, match="the field 'cbor' takes a value of CBOR"):
        encode_field("cbor", object())


DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u8"]


@given(st.lists(st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=3)), max_size=3))
@settings(max_examples=some(40, of=3))
def test_arrays_come_back(shapes: list[tuple[str, list[int]]]) -> None:
    arrays = [np.ones(shape, dtype) for dtype, shape in shapes]
    named = {f"a{number}": array for number, array in enumerate(arrays)}
    by_name = decoded("npz", encode_field("npz", named))
    assert list(by_name) == list(named)
    alike(by_name.values(), arrays)
    alike(decoded("ten", encode_field("ten", arrays)), arrays)
    alike([decoded("npy", encode_field("npy", array)) for array in arrays], arrays)


def alike(back: Iterable[Any], arrays: list[Any]) -> None:
    for one, other in zip(back, arrays, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


def test_arrays_are_what_numpy_and_webdataset_write() -> None:
    assert encode_field("npy", NOISE) == npy(NOISE)
    assert encode_field("npy", np.float32(3)) == npy(np.float32(3))
    assert encode_field("npz", {"a": NOISE, "file": NOISE}) == npz_by_hand({"a": NOISE, "file": NOISE})
    assert encode_field("npz", {"a": NOISE}) == npz(a=NOISE)
    assert encode_field("ten", (NOISE, NOISE)) == tenbin([NOISE, NOISE])
    assert encode_field("mp", [1]) == msgpack.packb([1])
    big = np.arange(3, dtype=">i4")
    assert encode_field("ten", big) == tenbin([big.astype("<i4")])


def npz_by_hand(arrays: dict[str, Any]) -> bytes:
    """An npz file with a name that ``np.savez_compressed`` cannot take."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **{name.replace("file", "eliF"): array for name, array in arrays.items()})
    return stream.getvalue().replace(b"eliF", b"file")


@pytest.mark.parametrize("field", ["png", "ppm", "tif", "webp", "png.gz"])
def test_images_come_back_whole(field: str) -> None:
    assert np.array_equal(decoded(field, encode_field(field, NOISE), "rgb8"), NOISE)
    assert np.array_equal(decoded(field, encode_field(field, NOISE[:, :, :1]), "l8"), NOISE[:, :, 0])
    assert np.array_equal(decoded(field, encode_field(field, Image.fromarray(NOISE)), "rgb8"), NOISE)


def test_jpeg_comes_back_nearly() -> None:
    smooth = np.linspace(0, 255, 64 * 64, dtype=np.uint8).reshape(64, 64)
    back = decoded("jpg", encode_field("jpg", smooth), "l8")
    assert np.abs(back.astype(int) - smooth).max() <= 2


def test_equal_values_have_equal_bytes() -> None:
    for field, value in (("json.gz", [1]), ("npz", {"a": NOISE}), ("txt.gz", b"bytes")):
        assert encode_field(field, value) == encode_field(field, value)
    assert encode_field("txt.gz", "a")[4:8] == bytes(4)
    assert gzip.decompress(encode_field("txt.gz", b"bytes")) == b"bytes"
    zipped = gzip.compress(b"bytes")
    assert encode_field("txt.gz", zipped) == encode_field("txt", zipped) == zipped
    assert encode_field("xyz", bytearray(b"a")) == encode_field("xyz", memoryview(b"a")) == b"a"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("txt", 3, "the field 'txt' takes a str (got 3 of type int)"),
        ("txt", "\ud800", "surrogates not allowed"),
        ("cls", "cat", "the field 'cls' takes an integer (got 'cat' of type str)"),
        ("cls", True, "takes an integer (got True of type bool)"),
        ("cls", 1.0, "takes an integer (got 1.0 of type float)"),
        ("json", {1, 2}, "takes a value of JSON (got set): Object of type set is not JSON serializable"),
        ("seg.json", NOISE, "the field 'seg.json' takes a value of JSON (got ndarray)"),
        ("npy", [1, 2], "takes an array (got list)"),
        ("npy", np.array([object()]), "Object arrays cannot be saved"),
        ("npz", NOISE, "takes a dict of arrays by name (got ndarray)"),
        ("npz", {"a": [1]}, "takes a dict of arrays by name (got dict)"),
        ("npz", {"a": np.array([object()])}, "Object arrays cannot be saved"),
        ("ten", "x", "takes arrays of numbers (got 'x' of type str)"),
        ("ten", np.zeros(2, np.uint32), "tenbin has arrays of float16, float32, "),
        ("ten", np.zeros(2, bool), "(got bool)"),
        ("ten", np.zeros([1] * 10), "at most 9 dimensions (got 10)"),
        ("mp", {1, object()}, "takes a value of MessagePack"),
        ("jpg", "a.jpg", "takes an array of pixels, or an image of Pillow (got 'a.jpg' of type str)"),
        ("jpg", NOISE.astype(int), "(got int64 of shape (6, 5, 3))"),
        ("jpg", NOISE[:, :, :2], "(got uint8 of shape (6, 5, 2))"),
        ("png", NOISE * 1.0, "expected floats from 0 to 1 (got values from"),
        ("png", NOISE * np.nan, "expected floats from 0 to 1"),
        ("png", np.zeros((0, 3), np.uint8), "of shape (0, 3)"),
        ("jpg", Image.new("RGBA", (2, 2)), "JPEG cannot hold an image of mode RGBA"),
        ("pyd", [1], "the field 'pyd' takes bytes or a str (got list)"),
        ("pth", [1], "the field 'pth' takes bytes or a str (got list)"),
        ("wav", NOISE, "the field 'wav' takes bytes or a str (got ndarray)"),
        ("xyz", None, "the field 'xyz' takes bytes or a str (got None of type NoneType)"),
        ("txt", "a" * 1000 + "\ud800", "(got '" + "a" * 59 + " of type str)"),
    ],
)
def test_a_value_that_does_not_fit_names_the_field_and_the_type(field: str, value: Any, message: str) -> None:
    with pytest.raises(BadValue, match=re.escape(message)):
        encode_field(field, value)
