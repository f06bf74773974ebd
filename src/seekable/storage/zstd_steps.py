"""Data of zstd, cut into steps from which little content comes at a time.

The library ``zstandard`` makes all content of the bytes that it is given, and 4 bytes can stand for 128 KiB.
The blocks of a frame say in 3 bytes each where the next one begins, and none has more content than that
(RFC 8878).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["zstd_steps"]

_BLOCKS: Final = 8
"""The blocks of a step: their content is 1 MiB at the most."""

_FRAME: Final = bytes.fromhex("28b52ffd")
_SKIPPABLE: Final = bytes.fromhex("2a4d18")
"""What follows the first byte of a frame without content, which is 0x50 to 0x5f."""

_DESCRIPTOR_BYTES, _SKIPPABLE_BYTES, _BLOCK_BYTES, _CHECKSUM_BYTES = 5, 8, 3, 4
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_SIZE_BYTES: Final = (0, 2, 4, 8)
_REPEATED_BYTE: Final = 1


def zstd_steps(chunks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield the bytes of a zstd file in pieces, each of which has at most 8 blocks, and part of one more.

    Bytes that are not of zstd are passed on: the library says what is wrong with them.

    Example:
        >>> b"".join(zstd_steps([b"(\xb5/\xfd no", b" frame"]))
        b'(\xb5/\xfd no frame'
    """
    walk = _Walk()
    for chunk in chunks:
        at = 0
        for end in walk.ends_in(chunk):
            yield chunk[at:end]
            at = end
        if at < len(chunk):
            yield chunk[at:]


@final
class _Walk:
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
        """Yield the bytes of the next chunk behind which a step ends."""
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
