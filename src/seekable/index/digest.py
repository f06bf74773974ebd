"""The digests in an index: three for each file and one for each key, all by xxh3_64.

- *head and tail*: of the first 64 KiB, the last 64 KiB (they overlap in a small file) and the size
  as a little-endian uint64. Cheap; part of fingerprints.
- *content*: of the little-endian xxh3_64 digests of the file's consecutive pieces of 64 MiB, so that
  the pieces can be hashed in any order and at once. Of a file whose offsets came from the index of another
  tool, and which was not read for that reason, another number stands in its place.
- *offsets*: of the file's record offsets as little-endian uint64, the end sentinel included.
- *key*: of the text or the number by which a record is found.

As text a digest is ``xxh3:`` and 16 hexadecimal digits.
"""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING

import numpy as np
import xxhash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

END_BYTES = 64 << 10
PIECE_BYTES = 64 << 20

_DIGEST_BYTES = 8


def digest_text(digest: int) -> str:
    """Return a digest as it is written in the catalog and in fingerprints.

    Example:
        >>> digest_text(255)
        'xxh3:00000000000000ff'
    """
    return f"xxh3:{digest:016x}"


def digest_texts(digests: NDArray[np.uint64]) -> list[str]:
    """Return the texts of many digests, thirty times faster than one by one.

    Example:
        >>> import numpy as np
        >>> digest_texts(np.array([255, 1], np.uint64))
        ['xxh3:00000000000000ff', 'xxh3:0000000000000001']
    """
    if not len(digests):
        return []
    digits = digests.astype(">u8").tobytes().hex(",", _DIGEST_BYTES)
    return f"xxh3:{digits.replace(',', ',xxh3:')}".split(",")


def digest_number(text: str) -> int:
    """Return the digest of a text that `digest_text` made.

    Example:
        >>> digest_number("xxh3:00000000000000ff")
        255
    """
    return int(text.removeprefix("xxh3:"), 16)


def head_tail_digest(descriptor: int, *, size: int, head: bytes) -> int:
    """Return the digest of a file's ends, its first 64 KiB having been read already."""
    tail = os.pread(descriptor, END_BYTES, max(size - END_BYTES, 0))
    return ends_digest(head[:END_BYTES], tail, size=size)


def ends_digest(head: bytes, tail: bytes, *, size: int) -> int:
    """Return the digest of a file's ends.

    Args:
        head: its first 64 KiB; all of a smaller file.
        tail: its last 64 KiB; all of a smaller file.
        size: its size in bytes.

    Example:
        >>> digest_text(ends_digest(b"good day", b"good day", size=8))
        'xxh3:0f1bd13c81b8a6e0'
    """
    hasher = xxhash.xxh3_64(head)
    hasher.update(tail)
    hasher.update(size.to_bytes(8, "little"))
    return hasher.intdigest()


def content_digest(pieces: bytes) -> int:
    """Return the digest of a whole file from the joined digests of its pieces."""
    return xxhash.xxh3_64_intdigest(pieces)


def unread_content_digest(*, head_tail: int, offsets: int, size: int, mtime_ns: int) -> int:
    """Return the number that stands for the content digest of a file that was not read as a whole.

    It differs wherever the ends, the records, the size or the modification time of the file differ.
    """
    fields = (head_tail, offsets, size, mtime_ns)
    return xxhash.xxh3_64_intdigest(
        b"not read" + b"".join(field.to_bytes(_DIGEST_BYTES, "little", signed=field < 0) for field in fields)
    )


class PieceHasher:
    """Makes the digests of a file's pieces from consecutive bytes, the first of which begins a piece.

    Example:
        >>> hasher = PieceHasher()
        >>> hasher.update(memoryview(b"good day"))
        >>> digest_text(content_digest(hasher.digests()))
        'xxh3:ed5f46649323660b'
    """

    __slots__ = ("_digests", "_hasher", "_piece_bytes", "_room")

    def __init__(self, piece_bytes: int | None = None) -> None:
        """Begin a file, or a part of one.

        Args:
            piece_bytes: the size of a piece; None for 64 MiB, as content digests have them.
        """
        self._digests = array("Q")
        self._hasher = xxhash.xxh3_64()
        self._piece_bytes = self._room = PIECE_BYTES if piece_bytes is None else piece_bytes

    def update(self, data: memoryview) -> None:
        """Hash the next bytes of the file."""
        while len(data) >= self._room:
            self._hasher.update(data[: self._room])
            data = data[self._room :]
            self._end_piece()
        self._hasher.update(data)
        self._room -= len(data)

    def digests(self) -> bytes:
        """Return the digests as little-endian uint64; nothing can be added afterwards."""
        if self._room < self._piece_bytes:
            self._end_piece()
        return np.array(self._digests, "<u8").tobytes()

    def _end_piece(self) -> None:
        self._digests.append(self._hasher.intdigest())
        self._hasher.reset()
        self._room = self._piece_bytes


def key_hash(key: str | int) -> int:
    """Hash a key: xxh3_64 over ``s`` and its UTF-8, or over ``i`` and its decimal digits.

    Example:
        >>> key_hash("1") == key_hash(1)
        False
    """
    if not isinstance(key, str):
        return xxhash.xxh3_64_intdigest(b"i%d" % key)
    try:
        return xxhash.xxh3_64_intdigest(f"s{key}".encode())
    except UnicodeEncodeError:
        return xxhash.xxh3_64_intdigest(b"s" + key.encode("utf-8", "surrogatepass"))


def text_key_hashes(keys: Sequence[bytes]) -> NDArray[np.uint64]:
    """Return the hash of each key, as `key_hash` makes it of its text; uint64.

    Args:
        keys: the bytes of each key; where they are not UTF-8, the key is the text with surrogates that
            ``os.fsdecode`` makes of them.

    Example:
        >>> int(text_key_hashes([b"utt1"])[0]) == key_hash("utt1")
        True
    """
    try:
        b"\n".join(keys).decode()
    except UnicodeDecodeError:
        hashes = (key_hash(key.decode("utf-8", "surrogateescape")) for key in keys)
    else:
        hashes = (xxhash.xxh3_64_intdigest(b"s" + key) for key in keys)
    return np.fromiter(hashes, np.uint64, len(keys))
