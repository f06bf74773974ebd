"""Fuzzing tar: archives of all kinds against Python's tarfile, whole and damaged."""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from typing import TYPE_CHECKING

from tests.formats.tar.archives import END, head, listed, padded, pax, walked
from tests.fuzz.corpus import mutated

import seekable as sk

if TYPE_CHECKING:
    import random
    from pathlib import Path

_STEMS = ("a", "b", "d/a", "d.x/c", "x" * 120, "._a", ".h", "__m__", "A", "noext", "y/" * 60 + "z")
_SUFFIXES = (".txt", ".json2", ".TXT", "", ".", ".seg.png")
_SIZES = (0, 1, 511, 512, 513, 5000)
_ARCHIVES = 3


def tar(folder: Path, rng: random.Random) -> None:
    """Compare the members of archives with tarfile's; damage them: an error, or as many members."""
    for number in range(_ARCHIVES):
        data, headers = drawn(rng)
        found, taken = walked(data)
        assert found == listed(data)
        assert not taken.warnings
        for _ in range(20):
            at = rng.choice(headers) + rng.randrange(512)
            changed = data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]
            assert members(changed) is None, f"byte {at} was changed, and no error is raised"
        with contextlib.suppress(sk.errors.UnsupportedFormat):
            walked(mutated(rng, data), concatenated=rng.random() < 0.5)
        with warnings.catch_warnings(action="ignore"):  # Keys come again, archives may have no sample.
            opened(folder / str(number), data, rng)


def opened(folder: Path, data: bytes, rng: random.Random) -> None:
    """Open an archive: all payloads of all records lie where tarfile has them; a cut is an error."""
    folder.mkdir()
    path = folder / "a.tar"
    path.write_bytes(data)
    os.utime(path, ns=(10**18, 10**18 + rng.randrange(10**9)))
    told = ""
    try:
        ds = sk.open(path, format=sk.formats.Tar(group=rng.choice([None, "key"])), decode="bytes")
    except sk.errors.UnsupportedFormat as error:
        told = str(error)
    if told:
        assert any(
            text in told for text in ("not next to each other", "twice", "the second one of its field")
        )
    else:
        payloads = {data[at : at + size] for _, _, at, size in listed(data)}
        for row in ds:
            assert all(payload in payloads for field, payload in row.items() if field != "__key__")
    shutil.rmtree(folder / ".seekable", ignore_errors=True)
    end = walked(data)[1].end or 0
    cut = rng.randrange(1, end) if end else 0
    if cut % 512:
        path.write_bytes(data[:cut])
        try:
            sk.open(path, decode="bytes")
        except sk.errors.UnsupportedFormat:
            return
        message = f"cut at byte {cut}, and no error is raised"
        raise AssertionError(message)


def members(data: bytes) -> int | None:
    """Return the number of members; None if the archive is refused."""
    try:
        return len(walked(data)[0])
    except sk.errors.UnsupportedFormat:
        return None


def drawn(rng: random.Random) -> tuple[bytes, list[int]]:
    """Return an archive, and the offsets of its headers."""
    parts: list[list[bytes]] = []
    names: list[bytes] = []
    for _ in range(rng.randrange(1, 12)):
        name = (rng.choice(_STEMS) + rng.choice(_SUFFIXES)).encode()
        parts.append(member(rng, name, names))
    ends = (END, bytes(512), bytes(10240))
    data = b"".join(piece for part in parts for piece in part) + rng.choice(ends)
    offsets, at = [], 0
    for piece in (piece for part in parts for piece in part):
        offsets += [at] if piece[257:262] == b"ustar" and len(piece) == 512 else []
        at += len(piece)
    return data, offsets


def member(rng: random.Random, name: bytes, names: list[bytes]) -> list[bytes]:
    """Return the pieces of one member: headers, data of extended headers, its payload."""
    kind = rng.random()
    before: list[bytes] = []
    if rng.random() < 0.5:
        before = split(pax(b"28 mtime=1700000000.1234567\n"))
    if len(name) > 100:
        posix = split(pax(record(b"path", name)))
        before = rng.choice([posix, [head(b"L", len(name) + 1, kind=b"L"), padded(name + bytes(1))]])
    short = name[:100]
    if kind < 0.1:
        return [*before, head(short, 0, kind=b"5")]
    if kind < 0.2 and names:
        target = rng.choice(names)
        return [*split(pax(record(b"linkpath", target))), head(b"l.txt", 0, kind=b"1")]
    size = rng.choice(_SIZES)
    names.append(name)
    digits = rng.choice([b"%011o\0" % size, b"%012o" % size, b"\x80" + size.to_bytes(11, "big")])
    return [*before, head(short, digits), padded(rng.randbytes(size))]


def record(key: bytes, value: bytes) -> bytes:
    """Return a PAX record, whose length counts its own digits."""
    rest = b" %s=%s\n" % (key, value)
    length = next(size for size in range(len(rest), len(rest) + 9) if len(b"%d%s" % (size, rest)) == size)
    return b"%d%s" % (length, rest)


def split(extended: bytes) -> list[bytes]:
    return [extended[:512], extended[512:]]
