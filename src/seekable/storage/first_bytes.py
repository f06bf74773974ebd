"""The first bytes of a file say what it is, where its name says something else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from seekable.errors import UnsupportedFormat
from seekable.storage.compression import compression_of, uncompressed_name
from seekable.storage.files import shell_path

if TYPE_CHECKING:
    from seekable.storage.compression import Compression

HEAD_BYTES: Final = 512
"""The first bytes of a file that are enough to tell what it is."""

_LFS_POINTERS: Final = (
    b"version https://git-lfs.github.com/spec/",
    b"version https://hawser.github.com/spec/",
)
"""The first bytes of what Git LFS leaves in the place of files that were not fetched, lately and at first."""


class _Packed(NamedTuple):
    """A compression, or another way of packing whole files."""

    name: str
    begins: re.Pattern[bytes]
    suffix: str
    """The end of the names of such files that are read; empty if they are not."""

    command: str
    """The command that unpacks a file, whose path follows."""


_PACKED: Final = (
    _Packed("gzip", re.compile(rb"\x1f\x8b\x08"), ".gz", "gunzip -c"),
    _Packed("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), ".zst", "zstd -dc"),
    _Packed("bzip2", re.compile(rb"BZh[1-9](1AY|\x17rE)"), "", "bunzip2 -c"),
    _Packed("xz", re.compile(rb"\xfd7zXZ\x00"), "", "xz -dc"),
    _Packed("lz4", re.compile(rb"\x04\x22\x4d\x18|\x02\x21\x4c\x18"), "", "lz4 -dc"),
    _Packed("zip", re.compile(rb"PK\x03\x04|PK\x05\x06"), "", "unzip -p"),
)

_KINDS: Final = (
    ("tar", "a tar file", re.compile(rb".{257}ustar", re.DOTALL)),
    ("parquet", "a file of Parquet", re.compile(rb"PAR[1E]")),
    ("arrow", "a file of Arrow", re.compile(rb"ARROW1")),
    ("arrow", "a stream of Arrow", re.compile(rb"\xff\xff\xff\xff..\x00\x00", re.DOTALL)),
    ("", "a file of Feather V1", re.compile(rb"FEA1")),
    ("", "a file of Avro", re.compile(rb"Obj\x01")),
    ("tokens", "an array of NumPy (.npy)", re.compile(rb"\x93NUMPY")),
    ("tokens", "an index of Megatron (.idx)", re.compile(rb"MMIDIDX\x00\x00")),
    ("ark", "an archive of Kaldi", re.compile(rb"[^\s\x00]+ \x00B")),
)
"""The format, the words and the first bytes of files that are not text."""

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


def refuse_lfs_pointer(head: bytes, path: str) -> None:
    """Refuse a file that is a pointer of Git LFS.

    Args:
        head: the first bytes of the file.
        path: the name of the file in error messages.

    Raises:
        UnsupportedFormat: it is one.

    Example:
        >>> refuse_lfs_pointer(b'{"id": 1}', "a.jsonl")
    """
    if head.startswith(_LFS_POINTERS):
        message = (
            f"{path!r} is a pointer of Git LFS, and not the data: fetch the data with `git lfs pull` in the "
            f"repository, or download the file from where the repository came from"
        )
        raise UnsupportedFormat(message)


def check_compression(
    head: bytes, path: str, said: Compression | None = None, *, renames: bool = True
) -> None:
    """Check that a file is compressed if its name says so, and as it says; and that it is not a pointer.

    Args:
        head: the first bytes of the file.
        path: the name of the file in error messages.
        said: the compression that the name says.
        renames: True if files of the format may be compressed.

    Raises:
        UnsupportedFormat: it is compressed otherwise, or a pointer of Git LFS.

    Example:
        >>> check_compression(b'{"id": 1}', "a.jsonl")
    """
    refuse_lfs_pointer(head, path)
    found = next((packed for packed in _PACKED if packed.begins.match(head)), None)
    own = f".{said}" if said else None
    if not head or (found is None and own is None) or (found and found.suffix == own):
        return
    plain = uncompressed_name(path)
    if found is None:
        message = (
            f"{path!r} is not compressed by {'gzip' if said == 'gz' else 'zstd'}, as its name says: it "
            f"begins with {head[:16]!r}. If it is damaged, get it again; if it is not compressed, rename "
            f"it to {plain!r}"
        )
        raise UnsupportedFormat(message)
    command = f"decompress it once: {found.command} {shell_path(path)} > NEW"
    what = f"{path!r} begins as a file compressed by {found.name}"
    if said is None and compression_of(path):
        message = f"{what} inside of the compression that its name says: decompress it once"
    elif found.suffix and renames:
        message = f"{what}, and its name does not say so: rename it to {plain + found.suffix!r}, or {command}"
    else:
        message = f"{what}, and such a file has no cheap way to its middle; {command}"
    raise UnsupportedFormat(message)


def refuse_foreign(head: bytes, path: str, *, what: str, own: str = "") -> None:
    """Refuse a file that is of another format by its first bytes.

    Args:
        head: the first bytes of the file, without compression.
        path: the name of the file in error messages.
        what: what files of its name are, in words.
        own: the name of its format, files of which are let pass.

    Raises:
        UnsupportedFormat: it is of another format.

    Example:
        >>> refuse_foreign(b'{"id": 1}', "a.jsonl", what="lines of text")
    """
    for form, words, begins in _KINDS:
        if begins.match(head):
            if form and form == own:
                return
            message = f"{path!r} is {words}, not {what}; its name misleads"
            raise UnsupportedFormat(message)


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
