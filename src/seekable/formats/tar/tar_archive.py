"""Tar archives as the library writes them: equal members make equal bytes, on every machine, at any time.

They are the bytes that Python's ``tarfile`` writes by default for a ``TarInfo`` with a name and a size alone:
mode 0644, no owner, no time. A member has one header block where its name is ASCII and has at most 100 bytes;
else a PAX header precedes it.
"""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

from seekable.errors import UnsupportedFormat
from seekable.formats.tar.header import BLOCK_BYTES
from seekable.formats.tar.samples import group_samples
from seekable.formats.tar.walk import Walk
from seekable.index.build.content import ForwardStream
from seekable.writing.compressed_files import read_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seekable.formats.tar.samples import SampleRule

__all__ = ["RECORD_BYTES", "archive", "end_mark", "member", "member_header", "samples_in"]

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
