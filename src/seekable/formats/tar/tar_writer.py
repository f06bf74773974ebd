"""The writer of tar files of samples: records become members as in WebDataset, plain or compressed.

The bytes of a field are those that webdataset's writer makes of the same value, with two differences: a str
in a field of JSON is a JSON string, and nothing is pickled. Equal values have equal bytes.

Equal members make equal archives, on every machine, at any time. They have the bytes that ``tarfile`` writes
by default for a ``TarInfo`` with a name and a size alone: mode 0644, no owner, no time. A member has
one header block where its name is ASCII and has at most 100 bytes; else a PAX header precedes it.
"""

from __future__ import annotations

import functools
import gzip
import io
import itertools
import json
import operator
import re
import tarfile
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self, SupportsIndex

import msgspec
import numpy as np

from seekable._optional import optional
from seekable.errors import BadValue, UnsupportedFormat
from seekable.formats.classify import find_data
from seekable.formats.file_format import UnwritableRecord
from seekable.formats.tar.field_decoders import last_component
from seekable.formats.tar.field_values import to_tenbin
from seekable.formats.tar.header import BLOCK_BYTES
from seekable.formats.tar.images import IMAGES_WRITTEN, is_image, to_image
from seekable.formats.tar.samples import SampleRule, group_samples
from seekable.formats.tar.tar_words import TarSurveyor
from seekable.formats.tar.walk import Walk
from seekable.index.build.content import ForwardStream
from seekable.index.opening import open_files
from seekable.nodes.key import SAMPLE_KEY
from seekable.writing.encoded_pieces import (
    EncodedFormat,
    EncodedRecords,
    checked_compression,
    one_file_compression,
    read_pieces,
    write_pieces,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    import cbor2

    from seekable.storage.compression import Compression
else:
    cbor2 = optional("cbor2", extra="cbor")

__all__ = [
    "RECORD_BYTES",
    "TarFormat",
    "archive",
    "encode_field",
    "end_mark",
    "member",
    "member_header",
    "samples_in",
    "tar",
]


def tar(*, compression: str | None = None) -> TarFormat:
    """Return the format of tar files, plain or compressed.

    Args:
        compression: ``"gz"``, ``"zst"``, or None.

    Raises:
        InvalidArgument: ``compression`` is something else.
        MissingDependency: ``compression`` is ``"zst"``, and zstandard is not installed.
    """
    return TarFormat(checked_compression(compression))


class _EncodedSample(msgspec.Struct, frozen=True):
    """One record, ready to be written."""

    key: str | None
    """The key; None for a record without one, whose key is then its number."""

    fields: list[tuple[str, bytes]]
    """The fields in the order of the record, each with the content of its member."""


@dataclass(frozen=True, slots=True)
class TarFormat(EncodedFormat):
    """The format of tar files: consecutive members for each record, ``KEY.FIELD``."""

    compression: Compression | None

    name: ClassVar[str] = "tar"
    record: ClassVar[type[msgspec.Struct]] = _EncodedSample

    @property
    def way_out(self) -> str:
        """The advice for a record that is not a sample."""
        return "make it one first, with map()"

    @property
    def suffix(self) -> str:
        """The suffix: ``.tar``, ``.tar.gz`` or ``.tar.zst``."""
        return ".tar" if self.compression is None else f".tar.{self.compression}"

    @property
    def options(self) -> dict[str, Any]:
        """The compression, as the user gave it."""
        return {"compression": self.compression}

    def of_one_file(self, name: str) -> Self:
        """Return the format with the compression of the suffix, ``.tar.gz`` for instance, or none."""
        if name.lower().endswith(".tgz") and self.compression in (None, "gz"):
            return type(self)("gz")
        return type(self)(
            one_file_compression(name, self.compression, suffixes=(".tar",), content="a tar file")
        )

    def write(
        self, file: BinaryIO, chunks: Iterator[Any], *, first: int, beside: Sequence[BinaryIO] = ()
    ) -> None:
        """Write the members of each record; a record without a key has its number as the key."""
        write_pieces(file, archive(_members(chunks, first)), self.compression)

    def encoded(self, chunks: Iterator[Any]) -> Iterator[_EncodedSample]:
        """Yield each record as a sample."""
        return itertools.chain.from_iterable(map(_encoded_samples, chunks))

    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        """Return the number of samples, None if the file is damaged."""
        return samples_in(path, SampleRule())

    def index(self, path: str, *, jobs: int | None, executor: Executor | None) -> None:
        """Index the files.

        Raises:
            UnsupportedFormat: the samples of a file cannot be told apart: two records that do not follow each
                other have the same key and other fields.
            AccessDenied: the index cannot be written.
        """
        open_files(find_data(path, format_name="tar"), TarSurveyor("tar"), jobs=jobs, executor=executor)


_KEY_DIGITS = 9

_LEFT_OUT = re.compile(r"__[^/]*__(/|$)")
"""The names that WebDataset and its readers leave out."""


def _encoded_samples(records: Sequence[Any]) -> Iterator[_EncodedSample]:
    """Yield records as samples.

    Fields whose names begin with an underscore are left out, and so are None values of all fields but JSON.

    Raises:
        UnwritableRecord: a record is not a dict, or its key, a field or a value does not fit a sample.
    """
    for place, record in enumerate(records):
        try:
            yield _encoded_sample(record)
        except (TypeError, ValueError) as error:
            raise UnwritableRecord(len(records) - place, str(error)) from None


def _members(
    chunks: Iterable[Sequence[Any] | EncodedRecords[_EncodedSample]], first: int
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the members of all records.

    Args:
        chunks: records, or samples of pieces.
        first: the number of the first record, for the keys of records without one.

    Raises:
        UnwritableRecord: as `_encoded_samples`, or two samples that follow each other have the same key.
    """
    before: str | None = None
    number = first
    for chunk in chunks:
        samples = chunk.records if isinstance(chunk, EncodedRecords) else chunk
        made = samples if isinstance(chunk, EncodedRecords) else _encoded_samples(chunk)
        for place, sample in enumerate(made):
            key = f"{number:0{_KEY_DIGITS}}" if sample.key is None else sample.key
            if key == before:
                why = f"the record before has the same key {key!r}, and readers would join the two"
                raise UnwritableRecord(len(samples) - place, why)
            for field, content in sample.fields:
                yield f"{key}.{field}", content
            before, number = key, number + 1


def _encoded_sample(record: Any) -> _EncodedSample:
    if not isinstance(record, dict):
        raise TypeError(f"it is of type {type(record).__name__}, and a sample is made of a dict of fields")
    fields = []
    for field, value in record.items():
        if not isinstance(field, str):
            raise TypeError(f"it has the field {field!r} of type {type(field).__name__}, and fields are str")
        if field.startswith("_") or (value is None and not _is_json(field)):
            continue
        if fault := _field_fault(field):
            raise ValueError(f"the field {field!r} {fault}")
        fields.append((field, encode_field(field, value)))
    if not fields:
        raise ValueError("it has no field that could be written, and a sample has at least one")
    key = record.get(SAMPLE_KEY)
    if key is not None and (fault := _key_fault(key)):
        raise ValueError(f"the key {key!r} {fault}")
    return _EncodedSample(key, fields)


def _is_json(field: str) -> bool:
    return field.rpartition(".")[2] in ("json", "jsn")


@functools.lru_cache(1024)
def _field_fault(field: str) -> str | None:
    """Return what is wrong with the name of a field; None for a good one."""
    if not field:
        return "is empty"
    if "/" in field or "\0" in field:
        return "has a slash or a NUL, which the end of a file name cannot hold"
    if field != field.lower():
        return f"has capital letters, and readers would make it {field.lower()!r}: rename it"
    return None


def _key_fault(key: object) -> str | None:
    """Return what is wrong with a key; None for a good one."""
    if not isinstance(key, str):
        return f"is of type {type(key).__name__}, and a key is a str"
    if "\0" in key:
        return "has a NUL, where readers would end it"
    steps = key.split("/")
    if "" in steps or "." in steps or ".." in steps:
        return "is no plain relative path: it begins or ends with '/', or has an empty, '.' or '..' step"
    if "." in steps[-1]:
        dashed = "/".join([*steps[:-1], steps[-1].replace(".", "-")])
        return (
            f"has a dot in its last step, where readers would end the key and begin the field: name it "
            f"otherwise, {dashed!r} for instance"
        )
    if len(steps) > 1 and _LEFT_OUT.match(key):
        return "begins with a folder like __meta__, which readers leave out"
    return None


_SHOWN = 60
"""The most characters of a value in a message."""

_GZIP = b"\x1f\x8b\x08"
"""The beginning of data that gzip compressed."""


def encode_field(field: str, value: Any) -> bytes:
    """Return the bytes of a value as the last component of its field says; compressed for ``.gz``.

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
        _encoded = bytes(value)
        compressed = compressed and not _encoded.startswith(_GZIP)
    else:
        takes, encode = _ENCODERS.get(suffix, _OTHERS)
        try:
            _encoded = encode(suffix, value)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise BadValue(_misfit(field, takes, value, error)) from error
    return gzip.compress(_encoded, mtime=0) if compressed else _encoded


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


RECORD_BYTES = 10_240
"""The bytes of an archive are a multiple of this number."""

_NAME_BYTES = 100
_PLAIN_BYTES = 1 << 33
"""Sizes from here on have no place in the header's 11 octal digits."""

_BEHIND_NAME = b"0000644\x000000000\x000000000\x00"
_BEHIND_SIZE = b"00000000000\x00"
_CHECKSUM_BLANK = b"        "
_BEHIND_CHECKSUM = b"0" + bytes(100) + b"ustar\x0000"
_CONSTANT_SUM = sum(_BEHIND_NAME + _BEHIND_SIZE + _CHECKSUM_BLANK + _BEHIND_CHECKSUM)


def member_header(name: str, size: int) -> bytes:
    r"""Return the blocks in front of the content of a member, a PAX header included where one is needed.

    Args:
        name: the name of the member; lone surrogates stand for bytes that are not UTF-8.
        size: the number of bytes of the content.

    Example:
        >>> header = member_header("0001.txt", 5)
        >>> len(header), header[:9], header[124:136], header[257:265]
        (512, b'0001.txt\x00', b'00000000005\x00', b'ustar\x0000')
        >>> len(member_header("é.txt", 5))
        1536
    """
    if len(name) > _NAME_BYTES or size >= _PLAIN_BYTES or not name.isascii():
        info = tarfile.TarInfo(name)
        info.size = size
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    encoded = name.encode()
    digits = b"%011o\0" % size
    checksum = b"%06o\0 " % (_CONSTANT_SUM + sum(encoded) + sum(digits))
    start = encoded.ljust(_NAME_BYTES, b"\0") + _BEHIND_NAME + digits + _BEHIND_SIZE
    return (start + checksum + _BEHIND_CHECKSUM).ljust(BLOCK_BYTES, b"\0")


def member(name: str, content: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the header, the content and the padding of a member, to be written one after the other."""
    size = len(content)
    return member_header(name, size), content, bytes(-size % BLOCK_BYTES)


def end_mark(size: int) -> bytes:
    """Return the end mark: two blocks of zeros, and zeros up to a multiple of 10,240 bytes.

    Args:
        size: the number of bytes of all members.

    Example:
        >>> len(end_mark(1536)), len(end_mark(10_240 - 512))
        (8704, 10752)
    """
    least = 2 * BLOCK_BYTES
    return bytes(least + -(size + least) % RECORD_BYTES)


def archive(members: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield the bytes of an archive in pieces; one member is held in memory at a time.

    Args:
        members: the names and contents of the members.
    """
    size = 0
    for name, content in members:
        for piece in member(name, content):
            if piece:
                size += len(piece)
                yield piece
    yield end_mark(size)


def samples_in(path: str, rule: SampleRule) -> int | None:
    """Return the number of samples of a tar file; None if it is damaged or does not end as ours do.

    Args:
        path: the path of the file, plain or compressed.
        rule: which members make a sample.
    """
    size = 0

    def counted() -> Iterator[bytes]:
        nonlocal size
        for piece in read_pieces(path):
            size += len(piece)
            yield piece

    try:
        found = group_samples(Walk(ForwardStream(counted(), path=path)), rule, path=path)
    except UnsupportedFormat:
        return None
    end = int(found.starts[-1])
    return len(found.starts) - 1 if size == end + len(end_mark(end)) else None
