"""Checks that the first bytes of a file are text in UTF-8, whatever its name."""

from __future__ import annotations

from seekable.errors import UnsupportedFormat
from seekable.storage.files import shell_path
from seekable.storage.first_bytes import check_compression, refuse_foreign

_BYTE_ORDER_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32LE",
    b"\x00\x00\xfe\xff": "UTF-32BE",
    b"\xff\xfe": "UTF-16LE",
    b"\xfe\xff": "UTF-16BE",
}
_NUL_PATTERNS = {
    "x000": "UTF-32LE",
    "000x": "UTF-32BE",
    "x0x0": "UTF-16LE",
    "0x0x": "UTF-16BE",
}
_SAMPLE_BYTES = 1024
_FEWEST_BYTES = 16
_MOSTLY = 0.9


def check_is_text(head: bytes, path: str) -> None:
    """Check that the first bytes of a file may be lines of UTF-8.

    Args:
        head: the first bytes.
        path: the path of the file, for messages.

    Raises:
        UnsupportedFormat: the bytes are compressed, of another format, or in another encoding, or they are a
            pointer of Git LFS.

    Example:
        >>> check_is_text(b"good day", "a.txt")
    """
    check_compression(head, path)
    refuse_foreign(head, path, what="lines of text")
    encoding = _wide_encoding(head)
    if encoding:
        raise UnsupportedFormat(
            f"{path!r} is text in {encoding}, and lines are read as UTF-8; "
            f"convert it once: iconv -f {encoding} -t UTF-8 {shell_path(path)} > NEW"
        )


def _wide_encoding(head: bytes) -> str | None:
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    # Without a mark: NUL bytes in every second place, or in three of four. Some NUL bytes are fine.
    sample = head[: min(len(head), _SAMPLE_BYTES) // 4 * 4]
    if len(sample) < _FEWEST_BYTES:
        return None
    shares = [sample[place::4].count(0) * 4 / len(sample) for place in range(4)]
    pattern = "".join("0" if share > _MOSTLY else "x" if share < 1 - _MOSTLY else "?" for share in shares)
    return _NUL_PATTERNS.get(pattern)
