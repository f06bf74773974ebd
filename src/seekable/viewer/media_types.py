"""Finds the type of bytes by their first ones: one that a browser may show, or bytes to save.

A record's own word for its type is not used: only what is in this list is shown, and all else is an
attachment. Formats that can hold a script (SVG, HTML, PDF) are not in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD_BYTES = 64
"""The number of first bytes that ``media_type`` looks at."""

Kind = Literal["image", "audio", "video", "other"]


@dataclass(frozen=True, slots=True)
class MediaType:
    """The type of some bytes, and the use that a browser may make of them."""

    name: str
    """The value of the header Content-Type."""

    kind: Kind
    """The element that shows it; "other" is only to be saved."""

    suffix: str
    """The end of the name of a file that is saved, with its dot."""


_OTHER = MediaType("application/octet-stream", "other", ".bin")
_STARTS: dict[bytes, MediaType] = {
    b"\x89PNG\r\n\x1a\n": MediaType("image/png", "image", ".png"),
    b"\xff\xd8\xff": MediaType("image/jpeg", "image", ".jpg"),
    b"GIF87a": MediaType("image/gif", "image", ".gif"),
    b"GIF89a": MediaType("image/gif", "image", ".gif"),
    b"fLaC": MediaType("audio/flac", "audio", ".flac"),
    b"OggS\x00": MediaType("audio/ogg", "audio", ".ogg"),
    b"ID3": MediaType("audio/mpeg", "audio", ".mp3"),
}
_MP3 = _STARTS[b"ID3"]
_BMP = MediaType("image/bmp", "image", ".bmp")
_WEBM = MediaType("video/webm", "video", ".webm")
_RIFF: dict[bytes, MediaType] = {
    b"WAVE": MediaType("audio/wav", "audio", ".wav"),
    b"WEBP": MediaType("image/webp", "image", ".webp"),
}
_MP4 = MediaType("video/mp4", "video", ".mp4")
_M4A = MediaType("audio/mp4", "audio", ".m4a")
_AVIF = MediaType("image/avif", "image", ".avif")
_BRANDS: dict[bytes, MediaType] = {
    **dict.fromkeys((b"avif", b"avis"), _AVIF),
    **dict.fromkeys((b"M4A ", b"M4B "), _M4A),
    **dict.fromkeys((b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V "), _MP4),
}
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
"""The lengths of the headers that BMP has had."""


def media_type(head: bytes) -> MediaType:
    r"""Return what bytes are, by the first ``HEAD_BYTES`` of them or more.

    Example:
        >>> media_type(b"RIFF\x24\x00\x00\x00WAVEfmt ").name
        'audio/wav'
        >>> media_type(b"<svg xmlns='http://www.w3.org/2000/svg'>").kind
        'other'
    """
    for start, found in _STARTS.items():
        if head.startswith(start):
            return found
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], _OTHER)
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], _OTHER)
    if head[:4] == b"\x1a\x45\xdf\xa3" and b"\x42\x82\x84webm" in head[:HEAD_BYTES]:
        return _WEBM
    if head[:2] == b"BM" and head[6:10] == bytes(4) and int.from_bytes(head[14:18], "little") in _BMP_HEADERS:
        return _BMP
    return _MP3 if _is_mp3_frame(head[:4]) else _OTHER


def media_headers(found: MediaType, *, name: str) -> Mapping[str, str]:
    """Return the headers of an answer whose body is bytes of a record.

    A page that opens such an address directly has no origin, no script and no other address to load. Bytes
    of no listed type are saved, never shown.

    Args:
        found: what ``media_type`` said of the bytes.
        name: the name of a saved file, without its suffix; other characters than ASCII letters, digits, ``-``
            and ``_`` become ``_``.

    Example:
        >>> media_headers(media_type(b"<html>"), name="corpus-17")["Content-Disposition"]
        'attachment; filename="corpus-17.bin"'
    """
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    how = "attachment" if found.kind == "other" else "inline"
    return {
        "Content-Type": found.name,
        "Content-Disposition": f'{how}; filename="{safe}{found.suffix}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
        "Accept-Ranges": "bytes",
    }


def _is_mp3_frame(head: bytes) -> bool:
    """Return whether four bytes are the header of a frame of MPEG audio, layer III, of a stated bit rate."""
    if len(head) < 4:  # noqa: PLR2004 - the header has four bytes
        return False
    word = int.from_bytes(head, "big")
    sync, version, layer = word >> 21, word >> 19 & 3, word >> 17 & 3
    bit_rate, sample_rate = word >> 12 & 15, word >> 10 & 3
    return (sync, layer) == (0x7FF, 1) and version != 1 and bit_rate not in {0, 15} and sample_rate != 3  # noqa: PLR2004
