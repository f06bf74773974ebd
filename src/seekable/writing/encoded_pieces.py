"""The bytes of files that formats write: compressed content, and the pieces of lanes, opened together.

In a piece records are MessagePack, each after its length in 8 bytes, little-endian.
"""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Generic, TypeVar

import msgspec

from seekable.errors import InvalidArgument
from seekable.formats.file_format import FileFormat
from seekable.storage.compression import COMPRESSED, WITH_HEADER, compression_of, inflated, zstd
from seekable.storage.seek_points import write_frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable.storage.compression import Compression

__all__ = [
    "EncodedFormat",
    "EncodedRecords",
    "checked_compression",
    "one_file_compression",
    "open_pieces",
    "read_pieces",
    "write_pieces",
]


_READ_BYTES = 1 << 20

_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3


def checked_compression(compression: object) -> Compression | None:
    """Return the compression that a user names.

    Args:
        compression: ``"gz"``, ``"zst"``, or None.

    Raises:
        InvalidArgument: ``compression`` is something else.
        MissingDependency: ``compression`` is ``"zst"``, and zstandard is not installed.
    """
    for known in (None, *COMPRESSED):
        if compression == known:
            if known == "zst":
                zstd()
            return known
    message = f"compression must be {', '.join(map(repr, COMPRESSED))} or None (got {compression!r})"
    raise InvalidArgument(message)


def one_file_compression(
    name: str, compression: Compression | None, *, suffixes: tuple[str, ...], content: str
) -> Compression | None:
    """Return the compression of a file that a user names, by the suffix of its name.

    Args:
        name: the name of the file.
        compression: the compression that the user asks for; None leaves it to the suffix.
        suffixes: the suffixes of files that are not compressed, each with its dot, the usual one first.
        content: the content in words, for error messages.

    Raises:
        InvalidArgument: the suffix is that of another format, or of another compression.
        MissingDependency: the file is to be compressed with zstd, and zstandard is not installed.
    """
    lower = name.lower()
    stem, _, end = lower.rpartition(".")
    found = end if end in COMPRESSED else None
    usual = suffixes[0]
    if not (lower if found is None else stem).endswith(suffixes):
        message = (
            f"{content} is named *{usual}, *{usual}.gz or *{usual}.zst (got {name!r}); a name "
            f"without such a suffix is that of a folder"
        )
        raise InvalidArgument(message)
    if compression not in (None, found):
        message = (
            f"compression={compression!r} needs a file name that ends in {usual}.{compression} (got {name!r})"
        )
        raise InvalidArgument(message)
    return checked_compression(found)


def write_pieces(file: BinaryIO, pieces: Iterable[bytes], compression: Compression | None) -> None:
    """Write the content of a file, which then can be read from any place.

    Args:
        file: the file, open for writing.
        pieces: the content; where pieces end decides nothing but, of zstd, where frames may end.
        compression: the compression; None for none.
    """
    if compression == "zst":
        write_frames(file, pieces, level=_ZSTD_LEVEL)
    else:
        file.writelines(_gzipped(pieces) if compression == "gz" else pieces)


def read_pieces(path: str) -> Iterator[bytes]:
    """Yield the content of a file in pieces, decompressed as its name says.

    Raises:
        UnsupportedFormat: the file is not what its name says, or ends too early.
    """
    with open(path, "rb", buffering=0) as file:
        pieces = iter(lambda: file.read(_READ_BYTES), b"")
        kind = compression_of(path)
        yield from inflated(pieces, kind, path) if kind else pieces


def _gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    # No name and no time in the header: the same content makes the same bytes.
    stream = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, WITH_HEADER)
    for piece in pieces:
        yield stream.compress(piece)
    yield stream.flush()


_MOST_OPEN = 256
"""The most pieces that are open files at once: a process may have 1,024 of them in most systems."""


@contextlib.contextmanager
def open_pieces(paths: Sequence[str]) -> Iterator[list[BinaryIO]]:
    """Yield files, open for reading at their first bytes, and close them at the end.

    More than 256 are read into memory instead. All of them hold the records of one part, so the pieces of so
    many lanes are short.
    """
    with contextlib.ExitStack() as files:
        if len(paths) <= _MOST_OPEN:
            yield [files.enter_context(open(path, "rb")) for path in paths]
            return
        contents: list[BinaryIO] = []
        for path in paths:
            with open(path, "rb") as file:
                contents.append(io.BytesIO(file.read()))
        yield contents


_LENGTH = struct.Struct("<Q")

Record = TypeVar("Record", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class EncodedRecords(Generic[Record]):
    """Encoded records of pieces: a chunk for the format's ``write``."""

    records: Sequence[Record]


class EncodedFormat(FileFormat):
    """A format whose pieces hold each record encoded, after its length."""

    record: ClassVar[type[msgspec.Struct]]
    """The type of an encoded record."""

    @abstractmethod
    def encoded(self, chunks: Iterator[Any]) -> Iterator[msgspec.Struct]:
        """Yield the records of chunks, encoded.

        Raises:
            UnwritableRecord: as ``write``.
        """

    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write some records of one lane, encoded."""
        for record in self.encoded(chunks):
            encoded = msgspec.msgpack.encode(record)
            file.write(_LENGTH.pack(len(encoded)))
            file.write(encoded)

    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        """Yield the encoded records of pieces one at a time, as they may be large."""
        with open_pieces(pieces) as files:
            for turn in turns:
                for number in turn.tolist():
                    file = files[number]
                    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
                    yield EncodedRecords([msgspec.msgpack.decode(file.read(length), type=self.record)])
