"""The decoder of one field: by the last component of its name, or as the caller says.

``seg.json`` is JSON, as ``json`` is. A field that ends in ``.gz`` is decompressed, and the rest of its name
decides. Images, audio, video, and fields of unknown names stay bytes. Pickles are refused, because to load
one runs code that it holds.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument, UnsupportedFormat, WrongType
from seekable.formats.tar.fields.images import IMAGE_DECODERS, UPRIGHT
from seekable.formats.tar.fields.tenbin import as_tenbin
from seekable.formats.tar.fields.values import (
    Bytes,
    as_cbor,
    as_integer,
    as_json,
    as_lilcom,
    as_msgpack,
    as_numpy,
    as_tensors,
    as_text,
    beginning,
    gunzipped,
)
from seekable.nodes.files.decoders import NamedPayload, kind_of_payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.nodes.files.decoders import AskedDecoder

__all__ = [
    "AUDIO_SUFFIXES",
    "FIELD_DECODERS",
    "FieldDecoder",
    "field_decoder",
    "is_ranged",
    "last_component",
]

AUDIO_SUFFIXES = frozenset(
    {
        *("aif", "aifc", "aiff", "au", "caf", "flac", "m4a", "mp2", "mp3", "nist", "oga", "ogg", "opus"),
        *("rf64", "snd", "sox", "sph", "w64", "wav", "wma"),
    }
)
"""The fields that ``decode="audio"`` decodes."""

_BY_SOUNDFILE = AUDIO_SUFFIXES - {"rf64", "wav"}
"""The fields of audio of which none can be decoded without soundfile."""

_PICKLES = frozenset({"pickle", "pkl", "pyd"})


@dataclass(frozen=True, slots=True)
class FieldDecoder:
    """Decodes the values of one field. Small, picklable if its function is, and safe from threads.

    Example:
        >>> field_decoder("seg.json").decode(memoryview(b"[1, 2]"))
        [1, 2]
    """

    name: str
    """The name of the decoder, as `FIELD_DECODERS` has it, that of a decoder of a part with its arguments, or
    the qualified name of the function."""

    decode: Callable[[memoryview], Any]
    """Returns the value of the member whose bytes are given; it holds no reference to them. Raises
    ValueError, or whatever a function of the caller raises."""

    function: Callable[[bytes], Any] | None = None
    """The function of the caller, if it decodes the field."""

    ranged: bool = False
    """True if the decoder reads a part of the member alone, so that a view of a mapped file costs no more."""

    packages: tuple[str, ...] = ()
    """The optional packages that the decoder imports."""

    refusal: str = ""
    """The reason for which the field is not decoded at all; empty for all but pickles."""

    @property
    def missing_package(self) -> str:
        """The first package that the decoder needs and that is not installed; empty if there is none."""
        return next((name for name in self.packages if importlib.util.find_spec(name) is None), "")


def field_decoder(field: str, asked: AskedDecoder = None) -> FieldDecoder:
    """Return the decoder of a field.

    Args:
        field: the name of the field, such as "jpg" or "seg.json.gz".
        asked: a name of `FIELD_DECODERS`, a function of the bytes, or None for the decoder that the name of
            the field says.

    Raises:
        InvalidArgument: no decoder has this name.
        WrongType: it is neither a name nor a function.

    Example:
        >>> field_decoder("cls.gz").name, field_decoder("jpg").name, field_decoder("jpg", "rgb8").name
        ('gzip+int', 'bytes', 'rgb8')
    """
    if asked == "bytes" or (asked is None and field.startswith("__")):
        return FIELD_DECODERS["bytes"]
    last = last_component(field)
    decoder = _by_suffix(last) if asked is None else _as_asked(asked)
    if last in _BY_SOUNDFILE and kind_of_payload(decoder.decode) == "audio":
        decoder = replace(decoder, packages=("soundfile",))
    return _after_gunzip(decoder) if _is_compressed(field) else decoder


def last_component(field: str) -> str:
    """Return the part of a field's name that decides: the last one, without ``gz`` if there is another.

    Example:
        >>> last_component("seg.JSON.gz"), last_component("gz")
        ('json', '')
    """
    parts = field.lower().split(".")
    if parts[-1] == "gz":
        parts = parts[:-1] or [""]
    return parts[-1]


def is_ranged(asked: object) -> bool:
    """Return True for a decoder that reads a part of a member, such as ``sk.audio(offset=1)``."""
    return callable(asked) and bool(getattr(asked, "ranged", False))


def _is_compressed(field: str) -> bool:
    return field.lower().rpartition(".")[2] == "gz"


def _by_suffix(suffix: str) -> FieldDecoder:
    if suffix in _PICKLES:
        return FieldDecoder(
            "pickle", _refuse, refusal="it is pickled, and to load a pickle runs code that it holds"
        )
    return _DEFAULTS.get(suffix, FIELD_DECODERS["bytes"])


def _as_asked(asked: str | Callable[[bytes], Any]) -> FieldDecoder:
    if isinstance(asked, str):
        if asked not in FIELD_DECODERS:
            names = ", ".join(repr(name) for name in FIELD_DECODERS if not name.endswith(UPRIGHT))
            message = f"the decoder of a field is one of {names}, or a function of bytes (got {asked!r})"
            raise InvalidArgument(message)
        return FIELD_DECODERS[asked]
    if not callable(asked):
        message = f"the decoder of a field is a name or a function of bytes (got {asked!r})"
        raise WrongType(message)
    ranged = is_ranged(asked)
    named: Any = asked if hasattr(asked, "__qualname__") else type(asked)
    name = str(getattr(asked, "name", "")) if ranged else ""
    name = name or f"{named.__module__}.{named.__qualname__}"
    reading: Callable[[Any], Any] = asked if ranged else _OnBytes(asked)
    return FieldDecoder(name, reading, asked, ranged=ranged)


def _after_gunzip(decoder: FieldDecoder) -> FieldDecoder:
    """Return a decoder of what gzip compressed; it reads the whole member."""
    if decoder.refusal:
        return decoder
    unzipped = _AfterGunzip(decoder.decode)
    return replace(decoder, name=f"gzip+{decoder.name}", decode=unzipped, ranged=False)


@dataclass(frozen=True, slots=True)
class _OnBytes:
    function: Callable[[bytes], Any]

    def __call__(self, data: Bytes) -> Any:
        return self.function(bytes(data))


@dataclass(frozen=True, slots=True)
class _AfterGunzip:
    decode: Callable[[memoryview], Any]

    def __call__(self, data: Bytes) -> Any:
        return self.decode(memoryview(gunzipped(data)))


def _refuse(data: Bytes) -> Any:
    """Refuse a pickle that is read although it was refused at opening.

    Raises:
        UnsupportedFormat: always.
    """
    message = f"pickles are never loaded (found {beginning(data)})"
    raise UnsupportedFormat(message)


def _image(name: str) -> FieldDecoder:
    decoder = IMAGE_DECODERS[name]
    packages = ("PIL", "torch") if decoder.made == "tensor" else ("PIL",)
    return FieldDecoder(name, decoder, packages=packages)


FIELD_DECODERS: dict[str, FieldDecoder] = {
    decoder.name: decoder
    for decoder in (
        FieldDecoder("bytes", bytes),
        FieldDecoder("text", as_text),
        FieldDecoder("json", as_json),
        FieldDecoder("int", as_integer),
        FieldDecoder("numpy", as_numpy),
        FieldDecoder("msgpack", as_msgpack),
        FieldDecoder("tenbin", as_tenbin),
        FieldDecoder("cbor", as_cbor, packages=("cbor2",)),
        FieldDecoder("audio", NamedPayload("audio"), ranged=True),
        FieldDecoder("lilcom", as_lilcom, packages=("lilcom",)),
        *map(_image, IMAGE_DECODERS),
    )
}
"""The decoders that users name."""

_DEFAULTS = {
    **dict.fromkeys(("txt", "text", "transcript"), FIELD_DECODERS["text"]),
    **dict.fromkeys(("cls", "cls2", "index", "inx", "id"), FIELD_DECODERS["int"]),
    **dict.fromkeys(("json", "jsn"), FIELD_DECODERS["json"]),
    **dict.fromkeys(("mp", "msg"), FIELD_DECODERS["msgpack"]),
    **dict.fromkeys(("ten", "tb"), FIELD_DECODERS["tenbin"]),
    **dict.fromkeys(("npy", "npz"), FIELD_DECODERS["numpy"]),
    "cbor": FIELD_DECODERS["cbor"],
    "pth": FieldDecoder("pth", as_tensors, packages=("torch",)),
}
"""The decoders of fields by the last component of their names; all other fields stay bytes."""
