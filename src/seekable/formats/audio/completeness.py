"""Checks that a payload is as long as its own headers promise.

soundfile reads less of a file that is cut off, without an error. A FLAC file needs no check: soundfile fails
at the frame that is cut off.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.formats.audio.payload import Payload

__all__ = ["check_complete"]

_PAGE_HEAD_BYTES = 27
_MOST_PAGE_BYTES = _PAGE_HEAD_BYTES + 255 + 255 * 255
_LAST_PAGE = 4
"""The flag of the last page of a stream."""

_ALL_FLAGS = 7

_UNKNOWN = 0xFFFFFFFF
_W64_TAG = b"riff\x2e\x91\xcf\x11"


def check_complete(payload: Payload) -> None:
    """Check that a payload is as long as its headers promise.

    Known are Ogg (by its pages), AIFF and 8SVX, AU, CAF, W64 and NIST Sphere. Others are not checked.

    Raises:
        ValueError: the payload is shorter.
    """
    head = bytes(payload.range(0, 1024))
    if head[:4] == b"OggS":
        _check_pages(payload, head)
        return
    promised = next((size(payload, head) for tag, size in _SIZES.items() if head.startswith(tag)), None)
    if promised is not None and promised > payload.size:
        message = f"the audio file is cut off: its header promises {promised:,} bytes, not {payload.size:,}"
        raise ValueError(message)


def _check_pages(payload: Payload, head: bytes) -> None:
    """Check the last page of an Ogg file: it is whole, and ends the stream that the first page begins."""
    start = max(payload.size - 2 * _MOST_PAGE_BYTES, 0)
    tail = bytes(payload.range(start, payload.size))
    at = _last_page(tail)
    page = tail[at : at + _PAGE_HEAD_BYTES + 255]
    count = page[26] if len(page) >= _PAGE_HEAD_BYTES else _PAGE_HEAD_BYTES + 255
    lengths = page[_PAGE_HEAD_BYTES : _PAGE_HEAD_BYTES + count]
    end = at + _PAGE_HEAD_BYTES + len(lengths) + sum(lengths)
    if len(lengths) < count or end > len(tail):
        message = f"the Ogg file is cut off within its last page, which begins at byte {start + at}"
        raise ValueError(message)
    if not page[5] & _LAST_PAGE:
        message = (
            f"the Ogg file is cut off: its last page, at byte {start + at}, is not the last one of its stream"
        )
        raise ValueError(message)
    if page[14:18] != head[14:18]:
        message = "the Ogg file holds several streams, of which only the first is decoded: split the file"
        raise ValueError(message)


def _last_page(tail: bytes) -> int:
    """Return where the last page begins; 0 if there is none. Sound may hold the four bytes of its tag."""
    at = tail.rfind(b"OggS")
    while at > 0 and len(tail) >= at + 6 and (tail[at + 4] != 0 or tail[at + 5] > _ALL_FLAGS):
        at = tail.rfind(b"OggS", 0, at)
    return max(at, 0)


def _form_bytes(_: Payload, head: bytes) -> int | None:
    return (
        8 + int.from_bytes(head[4:8], "big") if head[8:12] in {b"AIFF", b"AIFC", b"8SVX", b"16SV"} else None
    )


def _au_bytes(_: Payload, head: bytes) -> int | None:
    if len(head) < 12:  # noqa: PLR2004 - the header up to the size
        return None
    start, size = struct.unpack(">II" if head[:1] == b"." else "<II", head[4:12])
    return None if size == _UNKNOWN else int(start + size)


def _w64_bytes(_: Payload, head: bytes) -> int:
    return int.from_bytes(head[16:24], "little")


def _caf_bytes(payload: Payload, _: bytes) -> int | None:
    """Return the end of the last chunk; None where the samples reach to the end of the file."""
    at = 8
    while len(chunk := bytes(payload.range(at, at + 12))) == 12:  # noqa: PLR2004 - a name and a size
        (size,) = struct.unpack(">q", chunk[4:])
        if size < 0:
            return None
        at += 12 + size
    return at


def _sphere_bytes(_: Payload, head: bytes) -> int | None:
    fields = dict(re.findall(rb"^(\w+) -\S+ (.*?)\s*$", head, re.MULTILINE))
    coding = fields.get(b"sample_coding", b"pcm")
    try:
        counts = [int(fields[name]) for name in (b"sample_count", b"channel_count", b"sample_n_bytes")]
        size = int(head[8:16]) + counts[0] * counts[1] * counts[2]
    except (KeyError, ValueError):
        return None
    return size if b"," not in coding else None


_SIZES: dict[bytes, Callable[[Payload, bytes], int | None]] = {
    b"FORM": _form_bytes,
    b".snd": _au_bytes,
    b"dns.": _au_bytes,
    b"caff": _caf_bytes,
    _W64_TAG: _w64_bytes,
    b"NIST_1A": _sphere_bytes,
}
"""How many bytes a file promises to have, by its first bytes."""
