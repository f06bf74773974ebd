"""The decoder of one field: by the last component of its name, or as the caller says.

``seg.json`` is JSON, as ``json`` is. A field that ends in ``.gz`` is decompressed, and the rest of its name
decides. Images, audio, video, and fields of unknown names stay bytes. Pickles are refused, because to load
one runs code that it holds.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument, MissingDependency, UnsupportedFormat, WrongType
from seekable.formats.tar.field_values import (
    Bytes,
    as_cbor,
    as_integer,
    as_json,
    as_lilcom,
    as_msgpack,
    as_numpy,
    as_tenbin,
    as_tensors,
    as_text,
    beginning,
    gunzipped,
)
from seekable.formats.tar.images import IMAGE_DECODERS, IMAGE_SUFFIXES, UPRIGHT
from seekable.nodes.files.decoders import NamedPayload, kind_of_payload, payload_decoder, payload_kinds

if TYPE_CHECKING:
    from seekable.nodes.files.decoders import AskedDecoder
    from seekable.nodes.saving import Loading, Saving

__all__ = [
    "AUDIO_SUFFIXES",
    "FIELD_DECODERS",
    "FieldDecoder",
    "FieldDecoders",
    "check_fields",
    "checked_decode",
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

    @property
    def install(self) -> str:
        """The command that installs a missing package: ``pip install 'seekable[images]'``."""
        return f"pip install 'seekable[{_EXTRAS[self.missing_package]}]'"


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


_EXTRAS = {"PIL": "images", "cbor2": "cbor", "lilcom": "audio", "soundfile": "audio", "torch": "torch"}
"""The extra that installs each optional package."""

_NO_FIELDS: frozenset[str] = frozenset()

_KINDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(IMAGE_DECODERS, IMAGE_SUFFIXES),
    "audio": AUDIO_SUFFIXES,
    "lilcom": frozenset({"llc"}),
    "webdataset": _NO_FIELDS,
}
"""The names that stand for the whole argument, with the fields that each decodes; others have the default."""


@dataclass(frozen=True, slots=True)
class FieldDecoders:
    """The decoders of all fields, as ``decode=`` says. Picklable if the functions of the caller are.

    Example:
        >>> decoders = checked_decode({"seg.json": "bytes", "json": "text"})
        >>> decoders.of("seg.json").name, decoders.of("a.json").name, decoders.of("cls").name
        ('bytes', 'text', 'int')
    """

    every: str | Callable[[bytes], Any] | None
    """The decoder of all fields, or of all of its kind: "bytes", an image spec, "audio" and so on; None for
    the default."""

    by_field: tuple[tuple[str, AskedDecoder], ...]
    """Names of fields, or their last components, in lower case, and the decoder of each; sorted."""

    @property
    def with_url(self) -> bool:
        """True if records also have ``__url__``, the name of the file."""
        return self.every == "webdataset"

    def asked(self, field: str) -> AskedDecoder:
        """Return the decoder that the caller asks for: a name, a function, or None for the default.

        Of several names that fit, the longest wins: the whole field before its last component.
        """
        if self.every is not None:
            return self._of_kind(field)
        by_field = dict(self.by_field)
        return next((by_field[name] for name in _fitting(field) if name in by_field), None)

    def of(self, field: str) -> FieldDecoder:
        """Return the decoder of a field."""
        return field_decoder(field, self.asked(field))

    def unused(self, fields: Iterable[str]) -> list[str]:
        """Return the names of the argument that fit none of the fields."""
        used = {ending for field in fields for ending in _fitting(field)}
        return [name for name, _ in self.by_field if name not in used]

    def described(self, describe: Callable[[Callable[[bytes], Any]], Any]) -> Any:
        """Return the argument as JSON, for fingerprints.

        Args:
            describe: returns the description of a function.
        """
        if self.by_field:
            return {field: _described(asked, describe) for field, asked in self.by_field}
        return _described(self.every, describe)

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the argument for a pipeline file."""
        if self.by_field:
            return {"by_field": [[field, _as_json(asked, into)] for field, asked in self.by_field]}
        return {"every": _as_json(self.every, into)}

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> FieldDecoders:
        """Return the decoders that `as_json` wrote; errors as of `seekable.nodes.saving.Loading`."""
        said = given.checked(value, dict[str, Any], where)
        by_field = given.checked(said.get("by_field", []), list[tuple[str, Any]], f"{where}.by_field")
        named = {field: _from_json(asked, given, f"{where}[{field!r}]") for field, asked in by_field}
        try:
            return checked_decode(named or _from_json(said.get("every"), given, f"{where}.every"))
        except InvalidArgument as error:
            message = f"{where}: {error}"
            raise CorruptState(message) from None

    def _of_kind(self, field: str) -> AskedDecoder:
        if not isinstance(self.every, str):
            return self.every if last_component(field) in AUDIO_SUFFIXES else None
        if self.every == "bytes":
            return "bytes"
        return self.every if last_component(field) in _KINDS[self.every] else None


def checked_decode(decode: Any) -> FieldDecoders:
    """Return the decoders that ``decode=`` asks for.

    Args:
        decode: None for the default; "bytes" for all fields as they are; an image spec such as "pil" for the
            fields that are images; "audio" or a decoder of ``sk.audio`` for those that are audio;
            "webdataset"; or a dict from fields, or their last components, to names of decoders and functions
            of bytes.

    Raises:
        InvalidArgument: no decoder has this name, or it decodes one field alone.
        WrongType: it is of another type.
    """
    if decode is None or decode == "bytes":
        return FieldDecoders(decode, ())
    if isinstance(decode, Mapping):
        return FieldDecoders(None, _by_field(decode))
    if isinstance(decode, str):
        if decode not in _KINDS:
            raise InvalidArgument(_not_for_all(decode))
        return FieldDecoders(decode, ())
    if is_ranged(decode):
        return FieldDecoders(decode, ())
    if callable(decode):
        message = f"decode must say which field a function is for: decode={{'FIELD': {_shown(decode)}}}"
        raise InvalidArgument(message)
    message = f"decode must be a name, or a dict by field (got {decode!r} of type {type(decode).__name__})"
    raise WrongType(message)


def check_fields(
    wanted: Iterable[str], decoders: FieldDecoders, *, fields: Iterable[str], where: str
) -> None:
    """Refuse, at opening, fields that will not be decoded, and names in ``decode=`` that no field has.

    Args:
        wanted: the fields that are read.
        decoders: what ``decode=`` asks for.
        fields: all fields of the data; where there are none, nothing is refused.
        where: the data, for messages.

    Raises:
        UnsupportedFormat: a field is pickled.
        MissingDependency: the decoder of a field needs a package that is not installed.
        InvalidArgument: a name in ``decode=`` fits no field.
    """
    present = list(fields)
    if present and (unused := decoders.unused(present)):
        names = ", ".join(map(repr, present))
        message = f"decode has {', '.join(map(repr, unused))}, and the fields of {where} are {names}"
        raise InvalidArgument(message)
    for field in wanted:
        decoder = decoders.of(field)
        if decoder.refusal:
            message = (
                f"{where}: the field {field!r} is not loaded: {decoder.refusal}. Leave the column out with "
                f"columns=, take its bytes with decode={{{field!r}: 'bytes'}}, or, if you trust its writer, "
                f"say decode={{{field!r}: pickle.loads}}"
            )
            raise UnsupportedFormat(message)
        if package := decoder.missing_package:
            message = (
                f"{where}: to decode the field {field!r} as {decoder.name!r} needs {package}, which is not "
                f"installed: {decoder.install}. Or leave the column out with "
                f"columns=, or take its bytes with decode={{{field!r}: 'bytes'}}"
            )
            raise MissingDependency(message)


def _by_field(decode: Mapping[Any, Any]) -> tuple[tuple[str, AskedDecoder], ...]:
    found: dict[str, AskedDecoder] = {}
    for field, asked in decode.items():
        if not isinstance(field, str) or not field:
            message = f"the keys of decode must be names of fields (got {field!r})"
            raise WrongType(message)
        if field.lower() in found:
            message = f"decode names the field {field.lower()!r} twice; upper and lower case are one field"
            raise InvalidArgument(message)
        field_decoder(field, asked)
        found[field.lower()] = asked
    return tuple(sorted(found.items()))


def _fitting(field: str) -> list[str]:
    """Return the names of ``decode=`` that fit a field, longest first.

    Example:
        >>> _fitting("a.seg.json"), _fitting("seg.gz")
        (['a.seg.json', 'seg.json', 'json'], ['seg.gz', 'gz', 'seg'])
    """
    whole = field.lower()
    names = [whole, whole.removesuffix(".gz")] if whole.endswith(".gz") else [whole]
    parts = [name.split(".") for name in names]
    return [".".join(of[start:]) for of in parts for start in range(len(of))]


def _not_for_all(decode: str) -> str:
    if decode in FIELD_DECODERS:
        return f"decode={decode!r} is the decoder of one field: say which, decode={{'FIELD': {decode!r}}}"
    names = ", ".join(repr(name) for name in ["bytes", *_KINDS] if not name.endswith(UPRIGHT))
    return f"decode must be one of {names}, or a dict by field (got {decode!r})"


def _shown(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _as_json(asked: Any, into: Saving) -> Any:
    if kind_of_payload(asked):
        return asked.as_json(into)
    return None if asked is None else into.named(asked)


def _from_json(value: Any, given: Loading, where: str) -> AskedDecoder:
    kind = next((kind for kind in payload_kinds() if isinstance(value, dict) and kind in value), "")
    if kind:
        return payload_decoder(kind).from_json(value, given, where)
    asked: AskedDecoder = None if value is None else given.named(value, where)
    return asked


def _described(asked: AskedDecoder, describe: Callable[[Callable[[bytes], Any]], Any]) -> Any:
    if asked is None or isinstance(asked, str):
        return asked
    name = getattr(asked, "name", None)
    return name if is_ranged(asked) and isinstance(name, str) else describe(asked)
