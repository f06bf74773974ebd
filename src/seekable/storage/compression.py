"""Compressed files, read from their start to their end.

A file is compressed if its name says so: ``.gz`` or ``.zst`` at its end. Members of gzip and frames of zstd
that follow each other are one content, as for the programs of these names; what is cut off or damaged is an
error, never a shorter content.
"""

from __future__ import annotations

import shlex
import zlib
from typing import TYPE_CHECKING, Any, Final, Literal

from seekable.errors import MissingDependency, UnsupportedFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["COMPRESSED", "Compression", "broken", "compression_of", "inflated", "uncompressed_name", "zstd"]

Compression = Literal["gz", "zst"]

COMPRESSED: Final[tuple[Compression, ...]] = ("gz", "zst")
"""What the names of compressed files end with, after a dot."""

WITH_HEADER = 31
"""What zlib calls a gzip member, with a window of any size."""

_AT_ONCE = 1 << 20
"""Bytes of content made at a time, where the library can be told."""

_LARGEST_WINDOW = 1 << 31
"""As of ``zstd --long=31``."""

_PROGRAMS = {"gz": "gzip", "zst": "zstd"}


def compression_of(name: str) -> Compression | None:
    """Return how a file is compressed, by its name; None if it is not.

    Example:
        >>> compression_of("web/part-1.jsonl.GZ"), compression_of("gz")
        ('gz', None)
    """
    end = name[-4:].lower()
    return "zst" if end == ".zst" else "gz" if end.endswith(".gz") else None


def uncompressed_name(name: str) -> str:
    """Return the name that a file would have if it were not compressed.

    Example:
        >>> uncompressed_name("part-1.jsonl.gz"), uncompressed_name("part-1.jsonl")
        ('part-1.jsonl', 'part-1.jsonl')
    """
    return name.rpartition(".")[0] if compression_of(name) else name


def inflated(
    chunks: Iterable[bytes],
    kind: Compression,
    path: str,
    *,
    on_part: Callable[[int, int], None] | None = None,
) -> Iterator[bytes]:
    """Yield the content of a compressed file, in pieces of any size.

    Args:
        chunks: the bytes of the file, in their order.
        kind: how it is compressed.
        path: what the file is called in errors.
        on_part: is told where each member or frame begins: its byte in the file, and in the content.

    Raises:
        UnsupportedFormat: the bytes are not of this kind, are damaged, or end too early; the message says
            where.
        MissingDependency: zstandard is needed.

    Example:
        >>> import gzip
        >>> b"".join(inflated([gzip.compress(b"good "), gzip.compress(b"day")], "gz", "a.gz"))
        b'good day'
    """
    made = 0
    for piece, begun in _gunzipped(chunks, path) if kind == "gz" else _unzstd(chunks, path):
        if begun is not None and on_part is not None:
            on_part(begun, made)
        made += len(piece)
        if piece:
            yield piece


def _gunzipped(chunks: Iterable[bytes], path: str) -> Iterator[tuple[bytes, int | None]]:
    """Yield pieces of content; those that begin a member with the byte where it begins."""
    member, read, made, begun = None, 0, 0, None
    for chunk in chunks:
        read, data = read + len(chunk), chunk
        while data:
            if member is None:
                data = data.lstrip(b"\0") if made or begun is not None else data
                if not data:
                    break
                member, begun = zlib.decompressobj(WITH_HEADER), read - len(data)
                fresh: int | None = begun
            try:
                piece = member.decompress(data, _AT_ONCE)
            except zlib.error as error:
                raise broken(path, "gz", read - len(data), made, error) from None
            made += len(piece)
            yield piece, fresh
            fresh = None
            data = member.unused_data if member.eof else member.unconsumed_tail
            member = None if member.eof else member
    if member is not None:
        raise broken(path, "gz", read, made, "it ends in the middle of a member")


def _unzstd(chunks: Iterable[bytes], path: str) -> Iterator[tuple[bytes, int | None]]:
    """Yield pieces of content; those that begin a frame with the byte where it begins."""
    library = zstd()
    frame, read, made, fresh = None, 0, 0, None
    for chunk in chunks:
        read, data = read + len(chunk), chunk
        while data:
            if frame is None:
                frame = library.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj()
                fresh = read - len(data)
            try:
                piece = frame.decompress(data)
            except library.ZstdError as error:
                raise broken(path, "zst", read - len(data), made, error) from None
            made += len(piece)
            yield piece, fresh
            fresh = None
            data = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise broken(path, "zst", read, made, "it ends in the middle of a frame")


def zstd() -> Any:
    """Return the library for zstd.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        import zstandard
    except ImportError:
        message = "files of .zst need the package zstandard: pip install 'seekable[zstd]'"
        raise MissingDependency(message) from None
    return zstandard


def broken(path: str, kind: Compression, at: int, made: int, why: object) -> UnsupportedFormat:
    """Return the error for a file that cannot be decompressed.

    Args:
        path: the file.
        kind: how it should be compressed.
        at: up to which of its bytes it was read.
        made: how many bytes of content came out before.
        why: what the library says.
    """
    program = _PROGRAMS[kind]
    return UnsupportedFormat(
        f"{path!r} cannot be decompressed as {program} at about byte {at:,}, behind {made:,} bytes of "
        f"content: {why}. Test it with `{program} -t {shlex.quote(path)}` and get it again; what is before "
        f"the damage can be kept with `{program} -dc {shlex.quote(path)} > NEW`"
    )
