"""Compressed files, read from their start to their end.

A file is compressed if its name says so: ``.gz``, ``.tgz`` or ``.zst`` at its end. Members of gzip and frames
of zstd that follow each other are one content, as for the programs of these names; what is cut off or damaged
is an error, never a shorter content.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, Literal, final

from seekable.errors import MissingDependency, UnsupportedFormat
from seekable.storage.files import shell_path
from seekable.storage.memory import WINDOW_VARIABLE, zstd_window_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Compression = Literal["gz", "zst"]

COMPRESSED: Final[tuple[Compression, ...]] = ("gz", "zst")
"""The endings of the names of compressed files, after a dot."""

WITH_HEADER = 31
"""The ``wbits`` argument of zlib for a gzip member, with a window of any size."""

_AT_ONCE = 1 << 20
"""The most bytes of content made at a time, where the library has a limit."""

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
    made, is_empty = 0, True
    for piece, begun in _gunzipped(chunks, path) if kind == "gz" else _unzstd(chunks, path):
        is_empty = False
        if begun is not None and on_part is not None:
            on_part(begun, made)
        made += len(piece)
        if piece:
            yield piece
    if is_empty:
        raise broken(path, kind, 0, 0, "it has no byte, and even empty content is some bytes when compressed")


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
    for chunk in _zstd_steps(chunks):
        read, data = read + len(chunk), chunk
        while data:
            if frame is None:
                frame = library.ZstdDecompressor(max_window_size=zstd_window_bytes()).decompressobj()
                fresh = read - len(data)
            try:
                piece = frame.decompress(data)
            except library.ZstdError as error:
                if _TOO_WIDE in str(error):
                    raise _too_wide(path, read - len(data)) from None
                raise broken(path, "zst", read - len(data), made, error) from None
            made += len(piece)
            yield piece, fresh
            fresh = None
            data = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise broken(path, "zst", read, made, "it ends in the middle of a frame")


_TOO_WIDE: Final = "requires too much memory"
"""What the library says of a frame whose window is larger than it may be."""


def _too_wide(path: str, at: int) -> UnsupportedFormat:
    """Return the error for a frame whose window is larger than it may be.

    Args:
        path: the file.
        at: about where in the file the frame begins.
    """
    named = shell_path(path)
    return UnsupportedFormat(
        f"{path!r}: the zstd frame at about byte {at:,} was written with a window of more than "
        f"{zstd_window_bytes():,} bytes (zstd --long), and each reader needs as much memory. Set "
        f"{WINDOW_VARIABLE}={1 << 31} to read any window, or write the file anew with a smaller one: "
        f"`zstd -dc --long=31 {named} | zstd > NEW`"
    )


_BLOCKS: Final = 8
"""The blocks of a step: their content is 1 MiB at the most."""

_FRAME: Final = bytes.fromhex("28b52ffd")
_SKIPPABLE: Final = bytes.fromhex("2a4d18")
"""What follows the first byte of a frame without content, which is 0x50 to 0x5f."""

_DESCRIPTOR_BYTES, _SKIPPABLE_BYTES, _BLOCK_BYTES, _CHECKSUM_BYTES = 5, 8, 3, 4
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_SIZE_BYTES: Final = (0, 2, 4, 8)
_REPEATED_BYTE: Final = 1


def _zstd_steps(chunks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield the bytes of a zstd file in pieces, each with at most 8 blocks and part of one more.

    The library makes all content of the bytes that it is given, and 4 bytes can stand for 128 KiB. The blocks
    of a frame say in 3 bytes each where the next one begins, and none has more content than that (RFC 8878).
    Bytes that are not of zstd are passed on: the library says what is wrong with them.

    Example:
        >>> b"".join(_zstd_steps([b"(\xb5/\xfd no", b" frame"]))
        b'(\xb5/\xfd no frame'
    """
    walk = _FrameWalk()
    for chunk in chunks:
        at = 0
        for end in walk.ends_in(chunk):
            yield chunk[at:end]
            at = end
        if at < len(chunk):
            yield chunk[at:]


@final
class _FrameWalk:
    """The place in a file that is walked from header to header."""

    def __init__(self) -> None:
        self._left = 0
        """The bytes up to the next header."""
        self._head = b""
        """The bytes of a header of which more is needed."""
        self._in_frame = False
        self._checksum_bytes = 0
        self._blocks = 0
        """The blocks since the last step ended."""

    def ends_in(self, chunk: bytes) -> Iterator[int]:
        """Yield the places in the next chunk where a step ends."""
        at = 0
        while at < len(chunk):
            if self._left:
                moved = min(self._left, len(chunk) - at)
                self._left -= moved
                at += moved
                continue
            needed = _BLOCK_BYTES if self._in_frame else _header_bytes(self._head)
            some = chunk[at : at + needed - len(self._head)]
            self._head += some
            at += len(some)
            if len(self._head) < needed:
                return
            if self._in_frame:
                self._take_block(self._head)
            elif _header_bytes(self._head) > needed:
                continue
            else:
                self._take_frame(self._head)
            self._head = b""
            if self._blocks == _BLOCKS:
                self._blocks = 0
                yield at

    def _take_frame(self, head: bytes) -> None:
        if head[1:4] == _SKIPPABLE:
            self._left = int.from_bytes(head[4:8], "little")
        elif head[:4] == _FRAME:
            self._in_frame = True
            self._checksum_bytes = _CHECKSUM_BYTES * (head[4] >> 2 & 1)

    def _take_block(self, head: bytes) -> None:
        word = int.from_bytes(head, "little")
        is_last, kind, size = word & 1, word >> 1 & 3, word >> 3
        self._left = 1 if kind == _REPEATED_BYTE else size
        self._blocks += 1
        if is_last:
            self._in_frame = False
            self._left += self._checksum_bytes


def _header_bytes(head: bytes) -> int:
    """Return the size of the header of a frame, as far as its first bytes say it."""
    if head[1:4] == _SKIPPABLE:
        return _SKIPPABLE_BYTES
    if len(head) < _DESCRIPTOR_BYTES:
        return _DESCRIPTOR_BYTES
    descriptor = head[4]
    is_single = descriptor >> 5 & 1
    size_bytes = _SIZE_BYTES[descriptor >> 6] or is_single
    return _DESCRIPTOR_BYTES + (not is_single) + _DICTIONARY_BYTES[descriptor & 3] + size_bytes


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
        f"{path!r} cannot be decompressed as {program} at about byte {at:,}, after {made:,} bytes of "
        f"content: {why}. Test it with `{program} -t {shell_path(path)}` and get it again; what is before "
        f"the damage can be kept with `{program} -dc {shell_path(path)} > NEW`"
    )
