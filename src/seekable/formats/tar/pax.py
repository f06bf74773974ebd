"""PAX records: what an extended header says of the member behind it, as ``length key=value`` lines."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TIMES", "PaxFields", "matters", "pax_fields", "pax_records"]

TIMES = {b"%d mtime=" % size: size for size in range(10, 100)}
"""By its first 9 bytes, the size of a body whose only record is a time: a quick answer of `matters`."""

_SPARSE = b"GNU.sparse."


@dataclass(frozen=True, slots=True)
class PaxFields:
    """The fields of a member that PAX records give; None for those that they leave to its header."""

    path: bytes | None = None
    """The whole name."""

    size: int | None = None
    """The number of bytes of the payload."""

    link_path: bytes | None = None
    """The name of the member that a link leads to."""

    is_sparse: bool = False
    """True if the payload is a sparse file: a map of holes and what lies between them."""


def matters(body: bytes) -> bool:
    r"""Return True if records may give a name, a size, a link or a sparse file.

    Most hold times alone, and need not be parsed.

    Example:
        >>> matters(b"28 mtime=1700000000.1234567\n"), matters(b"14 path=a.txt\n")
        (False, True)
    """
    return b"path=" in body or b"size=" in body or b"sparse" in body


def pax_records(body: bytes) -> dict[bytes, bytes]:
    r"""Return records by key; the last of several with one key holds.

    Raises:
        ValueError: they are damaged; the message says at which of their bytes.

    Example:
        >>> pax_records(b"14 path=a.txt\n8 k=a\nb\n")
        {b'path': b'a.txt', b'k': b'a\nb'}
    """
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(body) and body[at]:
        digits = body[at : at + 20].partition(b" ")[0]
        stop = at + int(digits) if digits.isdigit() else -1
        key, equals, value = body[at + len(digits) + 1 : stop - 1].partition(b"=")
        if not at < stop <= len(body) or body[stop - 1 : stop] != b"\n" or not equals or not key:
            raise ValueError(f"the PAX records are damaged at their byte {at}: {body[at : at + 40]!r}")
        records[key] = value
        at = stop
    if body[at:].strip(b"\0"):
        raise ValueError(f"the PAX records are damaged at their byte {at}: {body[at : at + 40]!r}")
    return records


def pax_fields(body: bytes) -> PaxFields:
    r"""Return what records give of a member.

    Raises:
        ValueError: they are damaged, the name is empty or holds a NUL, or the size is no decimal number.

    Example:
        >>> pax_fields(b"14 path=a.txt\n")
        PaxFields(path=b'a.txt', size=None, link_path=None, is_sparse=False)
    """
    records = pax_records(body)
    path, size = records.get(_SPARSE + b"name", records.get(b"path")), records.get(b"size")
    if path is not None and (not path or b"\0" in path):
        raise ValueError(f"the PAX record of the name is {path!r}; readers disagree on such a member")
    if size is not None and not size.isdigit():
        raise ValueError(f"the PAX record of the size is {size!r}")
    return PaxFields(
        path,
        None if size is None else int(size),
        records.get(b"linkpath"),
        any(key.startswith(_SPARSE) for key in records),
    )
