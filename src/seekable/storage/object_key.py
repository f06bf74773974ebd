"""Names of objects in the cache on disk, and their units."""

from __future__ import annotations

import re

import msgspec
import xxhash

from seekable.storage.addresses import is_address, parse, shown

UNIT_BYTES = 256 << 10
"""The size of a unit: the bytes that are transferred in about the time that any request takes."""

_COMMIT = re.compile(r"(hf://datasets/[^@]+)@[0-9a-f]{40}/")
"""The commit of a file on the Hub: files of several commits that have one content are one object."""

_FEWEST_EXTENTS, _MOST_EXTENT_UNITS = 256, 256


class ObjectKey(msgspec.Struct, frozen=True):
    """The name of an object in the cache, and what is to be known of it.

    Attributes:
        digest: 32 hexadecimal digits: a digest of the other three.
        size: the size of the object in bytes.
        identity: the number that stands for its content.
        address: its address, without userinfo and query.
    """

    digest: str
    size: int
    identity: int
    address: str

    def unit_bytes(self, unit: int) -> int:
        """Return the number of bytes of a unit: 256 KiB, or fewer for the last one."""
        return min(UNIT_BYTES, self.size - unit * UNIT_BYTES)


def object_key(address: str, *, size: int, identity: int) -> str:
    """Return the name of an object in the cache: a digest, and what is to be known of the object.

    Args:
        address: its address; userinfo and query have no influence.
        size: its size in bytes.
        identity: the number that stands for its content.

    Example:
        >>> key = object_key("https://me:pw@host/a.jsonl?sig=1", size=5, identity=7)
        >>> key == object_key("https://host/a.jsonl", size=5, identity=7), key.split(" ", 1)[1]
        (True, '5 7 https://host/a.jsonl')
    """
    plain = str(parse(address)) if is_address(address) else address
    plain = _COMMIT.sub(r"\1/", plain, count=1)
    digest = xxhash.xxh3_128_hexdigest(f"{plain}\0{identity}\0{size}".encode("utf-8", "surrogateescape"))
    return f"{digest} {size} {identity} {shown(address)}"


def parsed_key(ref_key: str) -> ObjectKey:
    """Return the parts of what `object_key` returned.

    Example:
        >>> parsed_key(object_key("s3://bucket/a.jsonl", size=5, identity=7)).address
        's3://bucket/a.jsonl'
    """
    digest, size, identity, address = ref_key.split(" ", 3)
    return ObjectKey(digest, int(size), int(identity), address)


def unit_count(size: int) -> int:
    """Return the number of units of an object.

    Example:
        >>> unit_count(0), unit_count(1), unit_count(256 << 10), unit_count((256 << 10) + 1)
        (0, 1, 1, 2)
    """
    return -(-size // UNIT_BYTES)


def extent_units(most_bytes: int) -> int:
    """Return how many units an extent has, given the limit of the cache in bytes.

    An extent takes at most one of 256 parts of the limit, because extents are evicted as a whole, and blocks
    that are still needed may lie in one with others.

    Example:
        >>> [extent_units(most_bytes) for most_bytes in (1 << 20, 1 << 30, 1 << 40)]
        [1, 16, 256]
    """
    units = most_bytes // _FEWEST_EXTENTS // UNIT_BYTES
    return min(1 << max(units.bit_length() - 1, 0), _MOST_EXTENT_UNITS)
