"""The header of one page: what the page is, and how many bytes and values it has."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

from seekable.formats.parquet.thrift import BadThrift, Cut, read_struct

__all__ = ["DATA", "DATA_V2", "DICTIONARY", "RLE", "PageHeader", "leading_header", "read_header"]

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
RLE = 3
_WINDOW = 512
_DICTIONARY_ENCODINGS = (2, 8)


@dataclass(frozen=True, slots=True)
class PageHeader:
    """What stands before a page's bytes."""

    kind: int
    """`DATA`, `DICTIONARY`, `DATA_V2`, or a number that readers are to pass over."""

    length: int
    """How many bytes the header itself has."""

    packed: int
    """How many bytes follow it."""

    unpacked: int
    """How many bytes these are before compression."""

    values: int
    """How many values the page has, nulls among them."""

    rows: int | None
    """How many rows the page has, None where it does not say."""

    encoding: int
    """How the values are encoded, as Parquet numbers it."""

    levels: tuple[int, int]
    """Of `DATA_V2`: how many bytes the repetition levels take, and the definition levels."""

    compressed: bool
    """Of `DATA_V2`: whether the values are compressed."""

    crc: int | None = None
    """The CRC-32 of the bytes that follow, where the writer has left it."""

    levels_as: tuple[int, int] = (RLE, RLE)
    """How repetition and definition levels are encoded."""

    @property
    def needs_dictionary(self) -> bool:
        """Whether its values are numbers of values of the dictionary page."""
        return self.encoding in _DICTIONARY_ENCODINGS and self.kind in (DATA, DATA_V2)

    @property
    def size(self) -> int:
        """How many bytes header and page have together."""
        return self.length + self.packed


def leading_header(data: memoryview) -> PageHeader:
    """Return the header that a page's bytes begin with.

    Raises:
        BadThrift: it is no header, or one of another page.
    """
    window = _WINDOW
    while True:
        try:
            header = read_header(bytes(data[:window]), len(data))
        except Cut:
            if window >= len(data):
                raise
            window *= 8
        else:
            if header.size != len(data):
                raise BadThrift(f"a page of {len(data)} bytes whose header says {header.size}")
            if header.crc is not None and header.crc != zlib.crc32(data[header.length :]):
                raise BadThrift(f"a page of {len(data)} bytes that are not those of its checksum")
            return header


def read_header(data: bytes, most: int) -> PageHeader:
    """Return the header at the start of some bytes.

    Args:
        data: the bytes.
        most: how many bytes header and page can have at most.

    Raises:
        Cut: the bytes end before the header does.
        BadThrift: it is no header, or says what cannot be.
    """
    fields, length = read_struct(data)
    header = _header(fields, length, most)
    crc = fields.get(4)
    return replace(header, crc=crc % (1 << 32)) if isinstance(crc, int) else header


def _header(fields: dict[int, Any], length: int, most: int) -> PageHeader:
    kind, unpacked, packed = fields.get(1), fields.get(2), fields.get(3)
    if not (isinstance(kind, int) and isinstance(unpacked, int) and isinstance(packed, int)):
        raise BadThrift("a page header lacks its kind or its sizes")
    if unpacked < 0 or not 0 <= packed <= most - length:
        raise BadThrift(
            f"a page header of {length} bytes says that {packed} bytes follow ({unpacked} unpacked), "
            f"and there are {most - length}"
        )
    about = fields.get({DATA: 5, DICTIONARY: 7, DATA_V2: 8}.get(kind, 0), {})
    if kind not in (DATA, DICTIONARY, DATA_V2):
        return PageHeader(kind, length, packed, unpacked, 0, 0, -1, (0, 0), compressed=False)
    values = _number(about, 1, kind)
    encoding = _number(about, 4 if kind == DATA_V2 else 2, kind)
    if kind != DATA_V2:
        ways = about.get(4, RLE), about.get(3, RLE)
        return PageHeader(
            kind, length, packed, unpacked, values, None, encoding, (0, 0), compressed=True, levels_as=ways
        )
    levels = _number(about, 6, kind), _number(about, 5, kind)
    if sum(levels) > min(packed, unpacked):
        raise BadThrift(f"a page of {packed} bytes ({unpacked} unpacked) has levels of {levels} bytes")
    compressed = about.get(7, True) is not False
    rows = _number(about, 3, kind)
    return PageHeader(kind, length, packed, unpacked, values, rows, encoding, levels, compressed=compressed)


def _number(about: Any, field: int, kind: int) -> int:
    value = about.get(field) if isinstance(about, dict) else None
    if not isinstance(value, int) or value < 0:
        raise BadThrift(f"the header of a page of kind {kind} says {value} in field {field}")
    return value
