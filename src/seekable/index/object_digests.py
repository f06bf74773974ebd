"""Digests of the units of objects in stores, with which the bytes that are fetched later are compared.

``digests-<content>.bin`` belongs to the object of that content digest. It has, as little-endian uint64, the
xxh3_64 of what follows, and the xxh3_64 of each 256 KiB of the object, compressed as it is. They are made
where the index is built by reading all of an object. So bits that flip on the way here, or in a server, are
found wherever whole units are fetched.

Objects below 1 MiB have none, nor those of which headers or footers alone are read: their files would be as
many as the objects. An index without such a file is read without comparisons.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import xxhash

from seekable.storage.addresses import UNIT_BYTES, unit_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST_BYTES: Final = 1 << 20
_WORD: Final = 8
_MOST_OPEN: Final = 1024
"""The objects whose digests stay open: 8 bytes of each 256 KiB, which is 32 kB a GB."""


def has_digests(size: int) -> bool:
    """Return True if an object of a size is large enough to have digests."""
    return size >= _LEAST_BYTES


def digests_name(content: int) -> str:
    """Return the file name of the digests of an object, by its content digest.

    Example:
        >>> digests_name(255)
        'digests-00000000000000ff.bin'
    """
    return f"digests-{content:016x}.bin"


def encode_digests(digests: bytes) -> bytes:
    """Return the content of the file of some digests, little-endian uint64."""
    return xxhash.xxh3_64_intdigest(digests).to_bytes(_WORD, "little") + digests


@final
@dataclass(frozen=True, slots=True)
class ObjectDigests:
    """The digests of one object; they are read when bytes of it come for the first time."""

    folder: str
    """The folder of the index."""

    content: int
    """The content digest of the object."""

    size: int
    """Its size in bytes."""

    def difference(self, start: int, data: memoryview) -> str | None:
        """Return where some bytes differ from those that were indexed; None if no whole unit of them does.

        Args:
            start: the offset of the first byte in the object.
            data: the bytes.
        """
        digests = _opened(self.folder, self.content, unit_count(self.size))
        if digests is None:
            return None
        stop = start + len(data)
        last = unit_count(self.size) if stop == self.size else stop // UNIT_BYTES
        for unit in range(-(-start // UNIT_BYTES), last):
            first, end = unit * UNIT_BYTES, min((unit + 1) * UNIT_BYTES, self.size)
            hasher = xxhash.xxh3_64()
            hasher.update(data[first - start : end - start])  # Other threads run meanwhile.
            found, expected = hasher.intdigest(), int(digests[unit])
            if found != expected:
                return (
                    f"the bytes {first} to {end} have the digest xxh3:{found:016x}, and had "
                    f"xxh3:{expected:016x} when they were indexed"
                )
        return None


@functools.lru_cache(_MOST_OPEN)
def _opened(folder: str, content: int, count: int) -> NDArray[np.uint64] | None:
    """Return the digests of an object; None if they are not there, or damaged."""
    try:
        with open(os.path.join(folder, digests_name(content)), "rb") as file:
            data = file.read()
    except OSError:
        return None
    is_whole = len(data) == (count + 1) * _WORD and encode_digests(data[_WORD:]) == data
    return np.frombuffer(data, "<u8", offset=_WORD) if is_whole else None
