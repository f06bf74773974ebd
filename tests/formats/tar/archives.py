"""Archives made in memory, and what the walk and Python's tarfile find in them."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from seekable.errors import UnsupportedFormat
from seekable.formats.tar.samples import SampleRule, Samples, group_samples
from seekable.formats.tar.walk import Walk
from seekable.index.build.content import ForwardStream

if TYPE_CHECKING:
    from collections.abc import Iterable

PATH = "a/b.tar"

Member = tuple[bytes, int, int, int]
"""The name, the offset of the first extended header, that of the payload, and its size."""


def archive(members: Iterable[str | tarfile.TarInfo], **options: Any) -> bytes:
    """Return an archive by tarfile; the payload of a name is its number and itself."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", **options) as tar:
        for number, member in enumerate(members):
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member, io.BytesIO(bytes(member.size)))
            else:
                data = f"{number} {member}".encode("utf-8", "surrogateescape")
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def summed(head: bytes, form: str = "%06o\0 ", *, signed: bool = False) -> bytes:
    """Return a header with the checksum of its bytes."""
    bare = head[:148] + b" " * 8 + head[156:]
    total = int(np.frombuffer(bare, np.int8 if signed else np.uint8).sum(dtype=np.int64))
    return head[:148] + (form % total).encode().ljust(8) + head[156:]


END = bytes(1024)
MAGIC = {"posix": b"ustar\x0000", "gnu": b"ustar  \0", "v7": bytes(8)}


def head(
    name: bytes,
    size: bytes | int,
    *,
    kind: bytes = b"0",
    magic: str = "posix",
    link: bytes = b"",
    prefix: bytes = b"",
) -> bytes:
    """Return a header of 512 bytes."""
    digits = b"%011o\0" % size if isinstance(size, int) else size
    fields = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + digits + b"00000000000\0" + bytes(8)
    fields += kind + link.ljust(100, b"\0") + MAGIC[magic] + bytes(32 + 32 + 16) + prefix
    return summed(fields.ljust(512, b"\0"))


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def pax(records: bytes, kind: bytes = b"x") -> bytes:
    return head(b"PaxHeader/a", len(records), kind=kind) + padded(records)


def stream(data: bytes, chunk_bytes: int = 1000) -> ForwardStream:
    chunks = [data[at : at + chunk_bytes] for at in range(0, len(data), chunk_bytes)]
    return ForwardStream(chunks, path=PATH)


def walked(data: bytes, *, concatenated: bool = False) -> tuple[list[Member], Walk]:
    """Return the members that the walk finds, and the walk."""
    taken = Walk(stream(data), concatenated=concatenated)
    found: list[Member] = []
    for run in taken:
        columns = (run.names, run.starts.tolist(), run.payloads.tolist(), run.sizes.tolist())
        found += zip(*columns, strict=True)
    return found, taken


def listed(data: bytes, **options: Any) -> list[Member]:
    """Return the members that tarfile finds; a hard link has the payload of its target."""
    found: list[Member] = []
    places: dict[str, tuple[int, int]] = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", **options) as tar:
        for info in tar:
            if info.isreg() or info.islnk():
                place = (info.offset_data, info.size) if info.isreg() else places[info.linkname]
                places[info.name] = place
                found.append((info.name.rstrip("/").encode("utf-8", "surrogateescape"), info.offset, *place))
    return found


def grouped(data: bytes, rule: SampleRule | None = None, *, concatenated: bool = False) -> Samples:
    """Return the samples of an archive."""
    return group_samples(Walk(stream(data), concatenated=concatenated), rule or SampleRule(), path=PATH)


def records(data: bytes, samples: Samples) -> list[dict[str, bytes]]:
    """Return the payloads of each sample by field."""
    found = []
    for first, stop in zip(samples.first_members[:-1], samples.first_members[1:], strict=True):
        rows = range(int(first), int(stop))
        names = [samples.field_names[samples.fields[row]] for row in rows]
        places = [(int(samples.payloads[row]), int(samples.sizes[row])) for row in rows]
        found.append({name: data[at : at + size] for name, (at, size) in zip(names, places, strict=True)})
    return found


def refused(data: bytes, rule: SampleRule | None = None) -> str:
    """Return the message of the error that an archive gives."""
    with pytest.raises(UnsupportedFormat) as raised:
        grouped(data, rule)
    message = str(raised.value)
    assert message.startswith(f"{PATH}: ")
    return message
