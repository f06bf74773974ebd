"""Compressed files of any content: written in pieces, and read from start to end."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, BinaryIO

from seekable.errors import InvalidArgument
from seekable.storage.compression import COMPRESSED, WITH_HEADER, compression_of, inflated, zstd
from seekable.storage.seek_points import write_frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seekable.storage.compression import Compression

__all__ = ["checked_compression", "one_file_compression", "read_pieces", "write_pieces"]

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
