"""The bytes that stand in a file for the value of a field: the inverse of the default decoders.

The results are those of webdataset's writer for the same value, with two differences: a str in a field of
JSON is a JSON string, and nothing is pickled. Equal values have equal bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import operator
import zipfile
from typing import TYPE_CHECKING, Any, SupportsIndex

import msgspec
import numpy as np

from seekable._optional import optional
from seekable.errors import BadValue
from seekable.formats.tar.fields.field_decoder import last_component
from seekable.formats.tar.fields.images import IMAGES_WRITTEN, is_image, to_image
from seekable.formats.tar.fields.tenbin import to_tenbin

if TYPE_CHECKING:
    from collections.abc import Callable

    import cbor2
else:
    cbor2 = optional("cbor2", extra="cbor")

__all__ = ["encode_field"]

_SHOWN = 60
"""The most characters of a value in a message."""

_GZIP = b"\x1f\x8b\x08"
"""The beginning of data that gzip compressed."""


def encode_field(field: str, value: Any) -> bytes:
    """Return the bytes of a value, by the last component of its field; of a field ``.gz``, compressed.

    Bytes stay as they are, whatever the field; in a field ``.gz``, those that gzip did not make already are
    compressed. Fields of unknown names take bytes, and str, which becomes UTF-8.

    Args:
        field: the name of the field, such as "jpg" or "seg.json.gz".
        value: what the default decoder of the field returns, or, for images, an array or an image of Pillow.

    Raises:
        BadValue: the value does not fit the field.
        MissingDependency: the encoder needs a package that is not installed.

    Example:
        >>> encode_field("cls", 7), encode_field("json", None), encode_field("txt", "good day")
        (b'7', b'null', b'good day')
        >>> encode_field("cls", "cat")
        Traceback (most recent call last):
        ...
        seekable.errors.BadValue: the field 'cls' takes an integer (got 'cat' of type str)
    """
    suffix = last_component(field)
    compressed = field.lower().rpartition(".")[2] == "gz"
    if isinstance(value, bytes | bytearray | memoryview):
        encoded = bytes(value)
        compressed = compressed and not encoded.startswith(_GZIP)
    else:
        takes, encode = _ENCODERS.get(suffix, _OTHERS)
        try:
            encoded = encode(suffix, value)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise BadValue(_misfit(field, takes, value, error)) from error
    return gzip.compress(encoded, mtime=0) if compressed else encoded


def _misfit(field: str, takes: str, value: Any, error: Exception) -> str:
    shown = repr(value) if isinstance(value, str | int | float) or value is None else ""
    got = " of type ".join(filter(None, [shown[:_SHOWN], type(value).__qualname__]))
    reason = "" if isinstance(error, _Misfit) else f": {error}"
    return f"the field {field!r} takes {takes} (got {got}){reason}"


class _Misfit(ValueError):
    """The value is of another type than the field takes; the caller says which."""


def _text(_: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _Misfit
    return value.encode("utf-8")


def _integer(_: str, value: Any) -> bytes:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise _Misfit
    return str(operator.index(value)).encode("ascii")


def _text_or_integer(suffix: str, value: Any) -> bytes:
    return _text(suffix, value) if isinstance(value, str) else _integer(suffix, value)


def _json(_: str, value: Any) -> bytes:
    return json.dumps(value).encode("ascii")


def _msgpack(_: str, value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


def _cbor(_: str, value: Any) -> bytes:
    dumps = cbor2.dumps
    try:
        return dumps(value)
    except Exception as error:
        # The errors of cbor2 are its own.
        raise ValueError(str(error)) from error


def _tenbin(_: str, value: Any) -> bytes:
    arrays = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(array, np.ndarray | np.generic) for array in arrays):
        raise _Misfit
    return to_tenbin([np.asarray(array) for array in arrays])


def _npy(_: str, value: Any) -> bytes:
    if not isinstance(value, np.ndarray | np.generic):
        raise _Misfit
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(value), allow_pickle=False)
    return stream.getvalue()


def _npz(suffix: str, value: Any) -> bytes:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise _Misfit
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in value.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(_npy(suffix, array))
    return stream.getvalue()


def _image(suffix: str, value: Any) -> bytes:
    if not isinstance(value, np.ndarray) and not is_image(value):
        raise _Misfit
    return to_image(suffix, value)


_Encoder = tuple[str, "Callable[[str, Any], bytes]"]

_OTHERS: _Encoder = ("bytes or a str", _text)

_ENCODERS: dict[str, _Encoder] = {
    **dict.fromkeys(("cls", "cls2", "index", "inx", "id"), ("an integer", _integer)),
    **dict.fromkeys(("count", "class"), ("an integer or a str", _text_or_integer)),
    **dict.fromkeys(("txt", "text", "transcript", "html", "htm"), ("a str", _text)),
    **dict.fromkeys(("json", "jsn"), ("a value of JSON", _json)),
    **dict.fromkeys(("mp", "msg", "msgpack"), ("a value of MessagePack", _msgpack)),
    **dict.fromkeys(("ten", "tb", "tenbin"), ("arrays of numbers", _tenbin)),
    **dict.fromkeys(IMAGES_WRITTEN, ("an array of pixels, or an image of Pillow", _image)),
    "cbor": ("a value of CBOR", _cbor),
    "npy": ("an array", _npy),
    "npz": ("a dict of arrays by name", _npz),
}
"""For each field: a description of the values that it takes, and the encoder, a function of the field's last
component and a value."""
