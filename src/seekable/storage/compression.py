"""Compressed files, read from their start to their end.

A file is compressed if its name says so: ``.gz``, ``.tgz`` or ``.zst`` at its end. Members of gzip and frames
of zstd that follow each other are one content, as for the programs of these names; what is cut off or damaged
is an error, never a shorter content.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, Literal

from seekable.errors import MissingDependency, UnsupportedFormat
from seekable.storage.files import shell_path
from seekable.storage.zstd_steps import zstd_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["COMPRESSED", "Compression", "broken", "compression_of", "inflated", "uncompressed_name", "zstd"]

Compression = Literal["gz", "zst"]

COMPRESSED: Final[tuple[Compression, ...]] = ("gz", "zst")
"""The endings of the names of compressed files, after a dot."""

WITH_HEADER = 31
"""The ``wbits`` argument of zlib for a gzip member, with a window of any size."""

_AT_ONCE = 1 << 20
"""The most bytes of content made at a time, where the library has a limit."""

_LARGEST_WINDOW = 1 << 31
"""The window of ``zstd --long=31``, in bytes."""

_PROGRAMS = {"gz": "gzip", "zst": "zstd"}


def compression_of(name: str) -> Compression | None:
    """Return the compression of a file by its name, None for a file that is not compressed.

    Example:
        >>> compression_of("web/part-1.jsonl.GZ"), compression_of("gz")
        ('gz', None)
    """
    end = name[-4:].lower()
    return "zst" if end == ".zst" else "gz" if end == ".tgz" or end.endswith(".gz") else None


def uncompressed_name(name: str) -> str:
    """Return the name of a file without the ending of its compression.

    Example:
        >>> uncompressed_name("part-1.jsonl.gz"), uncompressed_name("part-1.jsonl")
        ('part-1.jsonl', 'part-1.jsonl')
        >>> uncompressed_name("part-1.tgz")
        'part-1.tar'
    """
    if name[-4:].lower() == ".tgz":
        return f"{name[:-4]}.tar"
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
        kind: the compression.
        path: the name of the file in error messages.
        on_part: is called with the first byte of each member or frame, in the file and in the content.

    Raises:
        UnsupportedFormat: the bytes are of another compression, damaged, or end too early; the message says
            at which byte.
        MissingDependency: zstandard is not installed.

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
    """Yield pieces of content, each with the first byte of the member that begins with it, or None."""
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
    """Yield pieces of content, each with the first byte of the frame that begins with it, or None."""
    library = zstd()
    frame, read, made, fresh = None, 0, 0, None
    for chunk in zstd_steps(chunks):
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
    """Return the module ``zstandard``.

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
        kind: the compression that its name stands for.
        at: the number of its bytes that were read.
        made: the number of bytes of content before the damage.
        why: the message of the library.
    """
    program = _PROGRAMS[kind]
    return UnsupportedFormat(
        f"{path!r} cannot be decompressed as {program} at about byte {at:,}, behind {made:,} bytes of "
        f"content: {why}. Test it with `{program} -t {shell_path(path)}` and get it again; what is before "
        f"the damage can be kept with `{program} -dc {shell_path(path)} > NEW`"
    )
