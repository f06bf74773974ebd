"""Checks that the first bytes of a file are text in UTF-8, whatever its name."""

from __future__ import annotations

from seekable.errors import UnsupportedFormat
from seekable.storage.files import refuse_lfs_pointer, shell_path

_COMPRESSED = {
    b"\x1f\x8b\x08": ("gzip", "gunzip -c {path} > NEW"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -dc {path} > NEW"),
    b"BZh": ("bzip2", "bunzip2 -c {path} > NEW"),
    b"\xfd7zXZ\x00": ("xz", "xz -dc {path} > NEW"),
    b"PK\x03\x04": ("a zip archive", "unzip {path}"),
}
_SUFFIXES = {"gzip": ".gz", "zstd": ".zst"}
_TABLES = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"Obj\x01": "Avro"}
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
        UnsupportedFormat: the bytes are compressed, of a table, or in another encoding, or they are a pointer
            of Git LFS.

    Example:
        >>> check_is_text(b"good day", "a.txt")
    """
    refuse_lfs_pointer(head, path)
    quoted = shell_path(path)
    for magic, (name, command) in _COMPRESSED.items():
        if head.startswith(magic):
            raise UnsupportedFormat(
                f"{path!r} is compressed ({name}), and a compressed file has no cheap way to its middle; "
                f"decompress it once: {command.format(path=quoted)}{_or_rename(name)}"
            )
    for magic, name in _TABLES.items():
        if head.startswith(magic):
            raise UnsupportedFormat(f"{path!r} is a file of {name}, not lines of text; its name misleads")
    encoding = _wide_encoding(head)
    if encoding:
        raise UnsupportedFormat(
            f"{path!r} is text in {encoding}, and lines are read as UTF-8; "
            f"convert it once: iconv -f {encoding} -t UTF-8 {quoted} > NEW"
        )


def _or_rename(name: str) -> str:
    suffix = _SUFFIXES.get(name)
    return f"; or, if that is all that it is, let its name end with {suffix}" if suffix else ""


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
